/*
 * Reads /proc/PID/task/TID of threads that are asleep.
 */
#include "daemon/gather/asleep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "daemon/gather/memory_read.h"
#include "proto/base.h"
#include "proto/memfd.h"

#define NO_CALL UINT64_MAX
/* struct __pthread_mutex_s of glibc: the lock, a counter, the owner (sysdeps/x86/nptl/bits/
 * struct_mutex.h). Other locks have other words there. */
#define OWNER_OFFSET 8u
/* include/uapi/linux/futex.h */
#define FUTEX_OP_MASK 0x7fu
/* Memory that does not come is not waited for: the snapshot waits. */
#define PATIENCE_MS 50

struct sleeper {
	uint32_t pid, tid, ns_tid;
	char state;	  /* as in /proc/PID/status */
	uint64_t number;  /* of the system call, or NO_CALL */
	uint64_t address; /* of a futex that it waits for; 0: none */
	uint32_t owner; /* of that futex, if it is a mutex of glibc, in its own pid namespace; 0 */
};

struct asleep {
	struct sleeper *list;
	size_t n, capacity;
	uint64_t left; /* processes, or threads of one, that were not read */
};

struct reader {
	struct asleep *asleep;
	struct memory_copy copy;
	int dir, mem; /* of the process; mem negative: not opened yet, or cannot be */
	bool mem_tried, stuck;
	uint32_t pid;
	uint64_t until; /* CLOCK_MONOTONIC, ns */
};

void asleep_freep(struct asleep **a)
{
	if (*a)
		free((*a)->list);
	free(*a);
	*a = NULL;
}

static bool is_over(const struct reader *r)
{
	return r->asleep->n >= ASLEEP_MAX_THREADS ||
	       (r->asleep->n >= ASLEEP_MIN_THREADS && now_ns(CLOCK_MONOTONIC) > r->until);
}

/* Parses /proc/PID/task/TID/status. The last number of the line NSpid is that of the innermost
 * namespace. False: not a thread of a program, or not asleep. */
static bool parse_status(char *text, struct sleeper *ret)
{
	char *state = strstr(text, "\nState:\t"), *pids = strstr(text, "\nNSpid:"), *last;

	/* Kernel threads have no memory. */
	if (!state || !pids || !strstr(text, "\nVmSize:"))
		return false;
	ret->state = state[strlen("\nState:\t")];
	pids++;
	pids[strcspn(pids, "\n")] = '\0';
	last = strrchr(pids, '\t');
	if (!last || sscanf(last, "%" SCNu32, &ret->ns_tid) != 1)
		return false;
	/* D: uninterruptible; S: interruptible; K and I do not occur with memory. */
	return ret->state == 'S' || ret->state == 'D';
}

/* The thread that owns the mutex at ADDRESS; 0: not known. */
static uint32_t read_owner(struct reader *r, uint64_t address)
{
	CLEANUP_CLOSE int scratch = -EBADF;
	uint32_t owner = 0;
	ssize_t n;

	if (!r->mem_tried)
		r->mem = openat(r->dir, "mem", O_RDONLY | O_CLOEXEC);
	r->mem_tried = true;
	if (r->mem < 0 || r->stuck || memfd_new("ptsnap-proc", 0, &scratch) < 0)
		return 0;
	n = memory_copy(&r->copy, r->mem, address + OWNER_OFFSET, sizeof(owner), scratch);
	r->stuck |= n == -ETIMEDOUT;
	if (n != (ssize_t)sizeof(owner) || pread(scratch, &owner, sizeof(owner), 0) != n)
		return 0;
	return owner;
}

/* Parses /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall()): the number and the
 * arguments, "running", or "-1" with two registers outside of a system call. */
static void take_call(struct reader *r, const char *text, struct sleeper *s)
{
	uint64_t address = 0, op = 0;

	s->number = NO_CALL;
	if (!isdigit((unsigned char)*text) ||
	    sscanf(text, "%" SCNu64 " 0x%" SCNx64 " 0x%" SCNx64, &s->number, &address, &op) < 3)
		return;
	/* FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2 */
	op &= FUTEX_OP_MASK;
	if (s->number != SYS_futex || (op != 0 && op != 6 && op != 9 && op != 13))
		return;
	s->address = address;
	s->owner = read_owner(r, address);
}

static int read_thread(struct reader *r, const char *name)
{
	struct asleep *a = r->asleep;
	struct sleeper s = {.pid = r->pid};
	char path[64], text[4096];
	uint64_t tid;

	if (!number_parse(name, 10, UINT32_MAX, "", NULL, &tid))
		return 0;
	s.tid = (uint32_t)tid;
	snprintf(path, sizeof(path), "task/%" PRIu32 "/status", s.tid);
	if (procfile_read(r->dir, path, text, sizeof(text)) <= 0 || !parse_status(text, &s))
		return 0;
	snprintf(path, sizeof(path), "task/%" PRIu32 "/syscall", s.tid);
	if (procfile_read(r->dir, path, text, sizeof(text)) <= 0)
		*text = '\0';
	take_call(r, text, &s);
	if (ARRAY_RESERVE(a->list, a->capacity, a->n + 1) < 0)
		return -ENOMEM;
	a->list[a->n++] = s;
	return 0;
}

static int read_process(struct reader *r)
{
	struct dirent *e;
	DIR *task;
	int result = 0;

	/* A process that has ended is no error. */
	if (procfile_opendir(r->dir, "task", &task) < 0)
		return 0;
	r->mem = -EBADF;
	r->mem_tried = r->stuck = false;
	while (result == 0 && (e = readdir(task))) {
		if (is_over(r)) {
			r->asleep->left++;
			break;
		}
		result = read_thread(r, e->d_name);
	}
	closedir(task);
	r->mem = close_fd(r->mem);
	return result;
}

int asleep_read(const char *proc, const uint32_t *pids, size_t n, struct asleep **ret)
{
	CLEANUP(asleep_freep) struct asleep *a = calloc(1, sizeof(*a));
	struct reader r = {.asleep = a, .dir = -EBADF, .mem = -EBADF};
	int result = 0;

	if (!a)
		return -ENOMEM;
	r.until = now_ns(CLOCK_MONOTONIC) + ASLEEP_MAX_MSEC * UINT64_C(1000000);
	memory_copy_init(&r.copy);
	r.copy.patience_ms = PATIENCE_MS;
	for (size_t i = 0; i < n && result == 0; i++) {
		if (is_over(&r)) {
			a->left = n - i;
			break;
		}
		r.pid = pids[i];
		if (procfile_process(proc, r.pid, &r.dir) < 0)
			continue;
		result = read_process(&r);
		r.dir = close_fd(r.dir);
	}
	memory_copy_done(&r.copy);
	if (result == 0)
		*ret = TAKE_PTR(a);
	return result;
}

/* --- The text --- */

static bool is_recorded(const struct manifest *m, uint32_t pid)
{
	for (size_t i = 0; i < m->n_processes; i++)
		if (m->processes[i].pid == pid)
			return !m->processes[i].excluded;
	return false;
}

static void write_line(struct bytes_out *out, const struct sleeper *s)
{
	char line[128], number[24] = "-";
	int n;

	if (s->number != NO_CALL)
		snprintf(number, sizeof(number), "%" PRIu64, s->number);
	n = snprintf(line, sizeof(line),
		     "%" PRIu32 " %" PRIu32 " %" PRIu32 " %c %s 0x%" PRIx64 " %" PRIu32 "\n",
		     s->pid, s->tid, s->ns_tid, s->state, number, s->address, s->owner);
	bytes_put_block(out, line, (size_t)n);
}

int asleep_tell(const struct asleep *a, struct evidence *e)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	struct manifest_text *text;
	char head[32];

	bytes_out_init(&out, SIZE_MAX);
	bytes_put_block(&out, head,
			(size_t)snprintf(head, sizeof(head), "left %" PRIu64 "\n", a->left));
	for (size_t i = 0; i < a->n; i++)
		if (is_recorded(&e->manifest, a->list[i].pid))
			write_line(&out, &a->list[i]);
	if (out.error < 0)
		return out.error;
	text = evidence_add_text(e, &out);
	if (!text)
		return -E2BIG;
	text->pid = MANIFEST_ANY;
	text->kind = strdup(MANIFEST_TEXT_THREADS);
	return text->kind ? 0 : -ENOMEM;
}
