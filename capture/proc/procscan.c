/*
 * Goes through the processes in /proc: tells the timeline what ran before the recorder, as records,
 * and finds the processes that have perf events open.
 *
 * Threads come and go meanwhile. A thread that vanishes between two reads is left out, and live
 * records tell of a thread that appears. The memory that is used does not depend on how many
 * mappings or threads a process has.
 */
#include "capture/proc/procscan.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "capture/proc/procmaps.h"
#include "proto/base.h"

/* header, ids, path, trailer */
#define RECORD_MAX (PATH_MAX + 256)
#define PIDS	   (4u << 20) /* include/linux/threads.h, PID_MAX_LIMIT */
#define MAX_PASSES 8
#define EVENT_LINK "anon_inode:[perf_event]"

struct scan {
	procscan_fn fn;
	void *userdata;
	int dir; /* /proc/PID: bound to this process even if its pid is used again */
	uint32_t pid;
	uint64_t time; /* of the records; 0: what ran before the recorder */
	bool stopped;  /* by a result of FN */
	char line[PROCMAPS_MAX_LINE];
	uint8_t record[RECORD_MAX];
};

/* --- Records --- */

static void file_closep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static void dir_closep(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* The record has no CPU, as it tells a state and no event. (In records with time 0, that is 0.) */
static int give(struct scan *s, struct perfrecord *record)
{
	size_t size;
	int r;

	record->pid = s->pid;
	record->tid = s->pid;
	record->time = s->time;
	record->cpu = s->time ? UINT32_MAX : 0;
	r = perfrecord_compose(record, s->record, sizeof(s->record), &size);
	if (r != 0)
		return r;
	r = s->fn(s->userdata, s->record, size);
	s->stopped = r != 0;
	return r;
}

/* The leader's parent is that of the process, the other threads' parent is the leader. Neither
 * record may make its reader copy the parent's mappings into this process, so FORK has FORK_EXEC,
 * as perf sets it in records made from /proc, and the leader's COMM is one of an exec, which starts
 * an empty address space by the kernel's own rules. In a scan with a time, the leader's FORK does
 * that, and a thread has only a name. */
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
	comm.misc = leader && !s->time ? PERF_RECORD_MISC_COMM_EXEC : 0;
	comm.u.comm = (__typeof__(comm.u.comm)){.pid = s->pid, .tid = tid, .comm = name};
	r = leader || !s->time ? give(s, &fork) : 0;
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

/* The leader comes first. */
static int give_threads(struct scan *s, uint32_t ppid)
{
	CLEANUP(dir_closep) DIR *tasks = NULL;
	struct dirent *entry;
	uint32_t tid;
	int r = give_thread(s, s->pid, ppid);

	if (r != 0)
		return r;
	r = procfile_opendir(s->dir, "task", &tasks);
	while (r == 0 && (entry = readdir(tasks))) {
		if (!parse_id(entry->d_name, &tid) || tid == s->pid)
			continue;
		r = give_thread(s, tid, ppid);
		if (r == -ESRCH && !s->stopped) /* gone meanwhile */
			r = 0;
	}
	return r;
}

/* Whether the process may have written to pages of E, a private mapping of a file: a page that was
 * written to is no longer the file's (Documentation/admin-guide/mm/pagemap.rst: bit 61 of the
 * page's word; bit 62, it is swapped out; bit 63, it is present). */
static bool may_be_changed(const struct scan *s, const struct procmaps_entry *e)
{
	const uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
	CLEANUP_CLOSE int fd = openat(s->dir, "pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t words[512];

	for (uint64_t at = e->begin / size, end = e->end / size; fd >= 0 && at < end;) {
		size_t want = MIN_OF((size_t)(end - at), ARRAY_SIZE(words)) * sizeof(words[0]);
		ssize_t n = pread(fd, words, want, (off_t)(at * sizeof(words[0])));

		if (n < (ssize_t)sizeof(words[0]))
			return true;
		for (size_t i = 0; i < (size_t)n / sizeof(words[0]); i++)
			if (words[i] >> 62 & 1 || (words[i] >> 63 && !(words[i] >> 61 & 1)))
				return true;
		at += (size_t)n / sizeof(words[0]);
	}
	return fd < 0;
}

/* Records name memory without a file "//anon" (perf_event_mmap_event), whatever name prctl(2) gave
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
	if (s->time && e->path[0] == '/' && e->flags == MAP_PRIVATE && may_be_changed(s, e))
		record.u.mmap2.prot |= PROT_WRITE;
	return give(s, &record);
}

static int give_mappings(struct scan *s)
{
	CLEANUP(file_closep) FILE *maps = NULL;
	int r = procfile_fopen(s->dir, "maps", &maps);

	while (r == 0 && fgets(s->line, sizeof(s->line), maps)) {
		struct procmaps_entry entry;
		char *newline = strchr(s->line, '\n');

		if (newline)
			*newline = '\0';
		/* The kernel writes no line that is longer than LINE. */
		for (int c = 0; !newline && c != '\n' && c != EOF;)
			c = getc(maps);
		if (procmaps_parse(s->line, &entry) == 0 && (entry.prot & PROT_EXEC))
			r = give_mapping(s, &entry);
	}
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
	if (r == 0 && s->time && stat.kernel)
		return 0;
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

int procscan_again(const char *proc, uint32_t pid, uint64_t time, procscan_fn fn, void *userdata)
{
	struct scan s = {.fn = fn, .userdata = userdata, .time = time};

	assert(time > 0);
	return scan_process(&s, proc, pid);
}

/* One pass over /proc: scans the processes that are not in SEEN, a bit for each pid; *ret_new is
 * their number. A process that is gone, or whose mappings may not be seen, does not end the pass.
 */
static int scan_new(struct scan *s, const char *proc, uint8_t *seen, uint64_t *ret_new)
{
	CLEANUP(dir_closep) DIR *all = NULL;
	struct dirent *entry;
	uint32_t pid;
	int r = procfile_opendir(AT_FDCWD, proc, &all);

	*ret_new = 0;
	while (r == 0 && (entry = readdir(all))) {
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

/* A process that is forked meanwhile inherits, by its record, the state of its parent. But the
 * parent may be scanned after the fork, with other mappings and another name. The scan therefore
 * reads new processes, too, until a pass finds none. */
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

/* --- Holders of perf events --- */

/* 1: holds a perf event; 0: does not, or is gone; -errno: unknown. */
static int holds_event(int process)
{
	CLEANUP(dir_closep) DIR *fds = NULL;
	const struct dirent *d;
	int r = procfile_opendir(process, "fd", &fds);

	if (r < 0)
		return r == -ESRCH ? 0 : r;
	while ((d = readdir(fds))) {
		char target[sizeof(EVENT_LINK)];
		ssize_t n = readlinkat(dirfd(fds), d->d_name, target, sizeof(target));

		if (n == sizeof(EVENT_LINK) - 1 && memcmp(target, EVENT_LINK, (size_t)n) == 0)
			return 1;
	}
	return 0;
}

/* Keeps the HOLDERS_MAX lowest pids, in order. */
static void add_holder(struct holders *h, uint32_t pid, int process)
{
	struct holder new = {.pid = pid, .comm = "?"};
	size_t at = MIN_OF(h->n, HOLDERS_MAX);

	h->n++;
	(void)procfile_comm(process, "comm", new.comm, sizeof(new.comm));
	while (at > 0 && h->all[at - 1].pid > pid)
		at--;
	if (at == HOLDERS_MAX)
		return;
	memmove(&h->all[at + 1], &h->all[at],
		(MIN_OF(h->n, HOLDERS_MAX) - 1 - at) * sizeof(h->all[0]));
	h->all[at] = new;
}

int holders_find(const char *proc, uint32_t own_pid, struct holders *ret)
{
	CLEANUP(dir_closep) DIR *all = NULL;
	const struct dirent *d;
	uint64_t pid;
	int r = procfile_opendir(AT_FDCWD, proc, &all);

	*ret = (struct holders){.n = 0};
	if (r < 0)
		return r == -ESRCH ? -ENOENT : r;
	while ((d = readdir(all))) {
		CLEANUP_CLOSE int process = -EBADF;

		if (!number_parse(d->d_name, 10, UINT32_MAX, "", NULL, &pid) || pid == own_pid)
			continue;
		r = procfile_process(proc, (uint32_t)pid, &process);
		if (r == 0)
			r = holds_event(process);
		if (r > 0)
			add_holder(ret, (uint32_t)pid, process);
		ret->partial |= r < 0 && r != -ESRCH;
	}
	return 0;
}

void holders_format(const struct holders *h, char *ret, size_t size)
{
	size_t used = 0, shown = MIN_OF(h->n, HOLDERS_MAX);

	snprintf(ret, size, "no process that can be seen");
	for (size_t i = 0; i < shown && used < size; i++) {
		struct holder one = h->all[i];

		for (char *c = one.comm; *c; c++)
			if (*c < 0x20 || *c > 0x7e)
				*c = '?';
		used += (size_t)snprintf(ret + used, size - used, "%s%s (pid %u)",
					 i > 0 ? ", " : "", one.comm, one.pid);
	}
	if (h->n > shown && used < size)
		snprintf(ret + used, size - used, " and %zu more", h->n - shown);
}
