/*
 * What ran before the recorder, told as the records that it would have seen. Threads come and go
 * meanwhile: what vanishes between two reads is left out, and what appears is in the live records.
 * Memory does not depend on how many mappings or threads a process has. Called by the recorder
 * when it starts.
 */
#include "capture/proc/procscan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "capture/proc/procmaps.h"
#include "proto/base.h"

/* header, ids, path, trailer */
#define RECORD_MAX (PATH_MAX + 256)
#define PIDS	   (4u << 20) /* include/linux/threads.h, PID_MAX_LIMIT */
#define MAX_PASSES 8

struct scan {
	procscan_fn fn;
	void *userdata;
	int dir; /* /proc/PID: bound to this process even if its pid is used again */
	uint32_t pid;
	bool stopped; /* by fn's result */
	char line[PROCMAPS_MAX_LINE];
	uint8_t record[RECORD_MAX];
};

static void file_closep(FILE **file)
{
	if (*file != NULL)
		fclose(*file);
}

static void dir_closep(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

/* Time 0 and no CPU: state, not an event. */
static int give(struct scan *s, struct perfrecord *record)
{
	size_t size;
	int r;

	record->pid = s->pid;
	record->tid = s->pid;
	r = perfrecord_compose(record, s->record, sizeof(s->record), &size);
	if (r != 0)
		return r;
	r = s->fn(s->userdata, s->record, size);
	s->stopped = r != 0;
	return r;
}

/* The leader's parent is the process's, the other threads' is the leader. Neither record may make
 * the reader copy the parent's mappings into this process: FORK_EXEC is what perf sets on records
 * made from /proc, and an exec'd COMM starts an empty space by the kernel's own rules. */
static int give_thread(struct scan *s, uint32_t tid, uint32_t ppid)
{
	bool leader = tid == s->pid;
	uint32_t parent = leader ? ppid : s->pid;
	struct perfrecord fork = {.type = PERF_RECORD_FORK, .misc = PERF_RECORD_MISC_FORK_EXEC};
	struct perfrecord comm = {.type = PERF_RECORD_COMM};
	char path[64], name[64];
	int r;

	snprintf(path, sizeof(path), "task/%u/comm", tid);
	r = procfile_comm(s->dir, path, name, sizeof(name));
	if (r < 0)
		return r;
	fork.u.task = (__typeof__(fork.u.task)){
		.pid = s->pid, .ppid = parent, .tid = tid, .ptid = parent};
	comm.misc = leader ? PERF_RECORD_MISC_COMM_EXEC : 0;
	comm.u.comm = (__typeof__(comm.u.comm)){.pid = s->pid, .tid = tid, .comm = name};
	r = give(s, &fork);
	return r != 0 ? r : give(s, &comm);
}

static bool parse_id(const char *name, uint32_t *ret)
{
	uint64_t value;

	if (!number_parse(name, 10, INT32_MAX, "", NULL, &value) || value == 0)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* The leader first. Another thread that is gone meanwhile is left out. */
static int give_threads(struct scan *s, uint32_t ppid)
{
	CLEANUP(dir_closep) DIR *tasks = NULL;
	struct dirent *entry;
	uint32_t tid;
	int r = give_thread(s, s->pid, ppid);

	if (r != 0)
		return r;
	r = procfile_opendir(s->dir, "task", &tasks);
	while (r == 0 && (entry = readdir(tasks)) != NULL) {
		if (!parse_id(entry->d_name, &tid) || tid == s->pid)
			continue;
		r = give_thread(s, tid, ppid);
		if (r == -ESRCH && !s->stopped)
			r = 0;
	}
	return r;
}

/* Memory without a file is "//anon" to the kernel (perf_event_mmap_event), whatever name prctl gave
 * it. */
static int give_mapping(struct scan *s, const struct procmaps_entry *e)
{
	bool anonymous = e->path[0] == '\0' || strncmp(e->path, "[anon:", 6) == 0;
	struct perfrecord record = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};

	record.u.mmap2 = (__typeof__(record.u.mmap2)){
		.pid = s->pid,
		.tid = s->pid,
		.addr = e->begin,
		.len = e->end - e->begin,
		.pgoff = e->pgoff,
		.maj = e->maj,
		.min = e->min,
		.ino = e->ino,
		.prot = e->prot,
		.flags = e->flags,
		.filename = anonymous ? "//anon" : e->path,
	};
	return give(s, &record);
}

/* Reads on to the end of a line that was longer than any the kernel writes. */
static void skip_line(FILE *file)
{
	int c;

	do
		c = getc(file);
	while (c != '\n' && c != EOF);
}

static int give_line(struct scan *s, FILE *maps)
{
	struct procmaps_entry entry;
	char *newline = strchr(s->line, '\n');

	if (newline != NULL)
		*newline = '\0';
	else if (!feof(maps))
		skip_line(maps);
	if (procmaps_parse(s->line, &entry) < 0 || (entry.prot & PROT_EXEC) == 0)
		return 0;
	return give_mapping(s, &entry);
}

static int give_mappings(struct scan *s)
{
	CLEANUP(file_closep) FILE *maps = NULL;
	int r = procfile_fopen(s->dir, "maps", &maps);

	while (r == 0 && fgets(s->line, sizeof(s->line), maps) != NULL)
		r = give_line(s, maps);
	if (r == 0 && ferror(maps))
		r = errno != 0 ? -errno : -EIO;
	return r;
}

static int scan_process(struct scan *s, const char *proc, uint32_t pid)
{
	struct procfile_stat stat;
	CLEANUP_CLOSE int dir = -EBADF;
	int r = procfile_process(proc, pid, &dir);

	if (r < 0)
		return r;
	s->dir = dir;
	s->pid = pid;
	r = procfile_stat(dir, &stat);
	if (r == 0)
		r = give_threads(s, stat.ppid);
	if (r == 0 && !stat.kernel)
		r = give_mappings(s);
	return r;
}

int procscan_process(const char *proc, uint32_t pid, procscan_fn fn, void *userdata)
{
	struct scan s = {.fn = fn, .userdata = userdata};

	return scan_process(&s, proc, pid);
}

/* One way through /proc: those that are not in SEEN, a bit for each pid. *RET_NEW: how many. A
 * process that is gone, or whose mappings we may not see, is no reason to leave out the others. */
static int scan_new(struct scan *s, const char *proc, uint8_t *seen, uint64_t *ret_new)
{
	CLEANUP(dir_closep) DIR *all = NULL;
	struct dirent *entry;
	uint32_t pid;
	int r = procfile_opendir(AT_FDCWD, proc, &all);

	*ret_new = 0;
	while (r == 0 && (entry = readdir(all)) != NULL) {
		if (!parse_id(entry->d_name, &pid) || pid >= PIDS || (seen[pid / 8] >> pid % 8 & 1))
			continue;
		seen[pid / 8] |= (uint8_t)(1u << pid % 8);
		++*ret_new;
		r = scan_process(s, proc, pid);
		if (!s->stopped && (r == -ESRCH || r == -EACCES || r == -EPERM))
			r = 0;
	}
	return r;
}

/* Who is forked meanwhile inherits, by its record, what its parent has: but the parent may be read
 * later than that, when it has other mappings and another name. So the children are read, too:
 * again and again until there are no new ones. */
int procscan_all(const char *proc, procscan_fn fn, void *userdata)
{
	CLEANUP_FREE uint8_t *seen = calloc(PIDS / 8, 1);
	struct scan s = {.fn = fn, .userdata = userdata};
	uint64_t n_new = 1;
	int r = seen ? 0 : -ENOMEM;

	for (int i = 0; i < MAX_PASSES && r == 0 && n_new > 0; i++)
		r = scan_new(&s, proc, seen, &n_new);
	return r;
}
