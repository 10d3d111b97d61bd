/*
 * exec under the emulator: the guest's arguments, the checks, the new command line, the exec.
 */
#include "capture/emu/plugin/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/emu/machine/emuring.h"
#include "capture/emu/machine/emustart.h"
#include "capture/emu/machine/execplan.h"
#include "capture/emu/plugin/guest.h"
#include "proto/base.h"

#define NO_ROOM "its arguments and environment leave no room for the emulator's own"

/* Part of a command line that precedes the program's own arguments: an option and argv[0], at most
 * 128 KiB each, and paths. */
#define LINE_MAX_SIZE (512u * 1024)

#define PAGE 4096u
/* fs/exec.c, bprm_stack_limits; include/uapi/linux/limits.h, ARG_MAX */
#define MOST  (8u * 1024 * 1024 / 4 * 3)
#define LEAST (128u * 1024)

size_t arguments_limit(void)
{
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) < 0)
		return LEAST;
	return MAX_OF(MIN_OF(stack.rlim_cur / 4, (rlim_t)MOST), (rlim_t)LEAST);
}

/* SIZE, reduced so that [ADDRESS, ADDRESS + SIZE) ends within the page: whole pages are readable or
 * not. */
static size_t up_to_page_end(uint64_t address, size_t size)
{
	return MIN_OF(size, (size_t)(PAGE - address % PAGE));
}

int arguments_read_string(uint64_t address, size_t max, int too_long, char **ret)
{
	CLEANUP_FREE char *text = NULL;
	char chunk[512];
	size_t size = 0;

	while (size < max) {
		size_t wanted = up_to_page_end(address + size, MIN_OF(sizeof(chunk), max - size));
		size_t n;

		if (!guest_read(address + size, chunk, wanted))
			return -EFAULT;
		n = strnlen(chunk, wanted);
		if (ARRAY_FIT(text, size + n + 1) < 0)
			return -ENOMEM;
		memcpy(text + size, chunk, n);
		size += n;
		text[size] = '\0';
		if (n < wanted) {
			*ret = TAKE_PTR(text);
			return 0;
		}
	}
	return too_long;
}

struct vector {
	char **strings; /* NULL-terminated at all times */
	size_t n, capacity;
};

/* Makes room for one more string and the NULL behind it. */
static int make_room(struct vector *v)
{
	if (ARRAY_RESERVE(v->strings, v->capacity, v->n + 2) < 0)
		return -ENOMEM;
	v->strings[v->n] = NULL;
	return 0;
}

static int add_string(struct vector *v, uint64_t address, size_t *room)
{
	size_t size;
	int r = make_room(v);

	if (r == 0)
		r = arguments_read_string(address, ARGUMENTS_MAX_STRING, -E2BIG, &v->strings[v->n]);
	if (r < 0)
		return r;
	size = strlen(v->strings[v->n]) + 1 + sizeof(uint64_t);
	v->strings[++v->n] = NULL;
	if (size > *room)
		return -E2BIG;
	*room -= size;
	return 0;
}

int arguments_read_vector(uint64_t address, size_t *room, char ***ret)
{
	struct vector v = {0};
	uint64_t pointers[64];
	bool end = address == 0;
	int r = make_room(&v);

	while (r == 0 && !end) {
		size_t size = up_to_page_end(address, sizeof(pointers)) & ~(size_t)7;

		/* An unaligned pointer may lie on two pages. */
		if (size == 0)
			size = sizeof(uint64_t);
		r = guest_read(address, pointers, size) ? 0 : -EFAULT;
		for (size_t i = 0; r == 0 && !end && i < size / sizeof(uint64_t); i++) {
			end = pointers[i] == 0;
			if (!end)
				r = add_string(&v, pointers[i], room);
		}
		address += size;
	}
	if (r < 0) {
		arguments_free(v.strings);
		return r;
	}
	*ret = v.strings;
	return 0;
}

void arguments_free(char **strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
}

struct follow {
	char *qemu, **argv, **envp;
	int kept; /* descriptor of a program without a path, close-on-exec until the exec */
};

/* One call: what the guest passed, and what follow_prepare() made of it. */
struct work {
	const struct follow_self *self;
	const struct follow_call *call;
	size_t limit; /* bytes that the kernel allows for strings and pointers */
	char *path, **argv, **envp;
	struct execplan plan;
	struct follow *follow;
	char reason[256];
};

/* NULL is allowed. */
static void follow_free(struct follow *f)
{
	if (!f)
		return;
	free(f->qemu);
	emustart_free(f->argv);
	emustart_free(f->envp);
	close_fd(f->kept);
	free(f);
}

static enum follow_verdict native(struct work *w, const char *what, const char *why)
{
	snprintf(w->reason, sizeof(w->reason), "%s%s", what, why);
	return FOLLOW_NATIVE;
}

static enum follow_verdict read_call(struct work *w)
{
	const struct follow_call *c = w->call;
	size_t room = w->limit;
	int r = arguments_read_string(c->path, PATH_MAX, -ENAMETOOLONG, &w->path);

	if (r == 0 && c->at && (c->flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0)
		r = -EINVAL;
	if (r == 0)
		r = arguments_read_vector(c->argv, &room, &w->argv);
	if (r == 0)
		r = arguments_read_vector(c->envp, &room, &w->envp);
	if (r == 0 && strlen(w->path) + 1 > room)
		r = -E2BIG;
	/* With too little memory here, the kernel may still succeed. */
	if (r == -ENOMEM)
		return native(w, "", strerror(ENOMEM));
	return r < 0 ? FOLLOW_FAILS : FOLLOW_READY;
}

static enum follow_verdict plan(struct work *w)
{
	const struct execplan_request request = {
		.dirfd = w->call->at ? w->call->dirfd : AT_FDCWD,
		.path = w->path,
		.flags = w->call->at ? w->call->flags : 0,
		.argv = w->argv,
		.exe = w->self->exec_path,
	};
	int r = execplan_make(&request, &w->plan, w->reason, sizeof(w->reason));

	if (r == EXECPLAN_NATIVE)
		return FOLLOW_NATIVE;
	return r < 0 ? FOLLOW_FAILS : FOLLOW_READY;
}

int follow_self_read(struct follow_self *ret)
{
	CLEANUP_CLOSE int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	CLEANUP_FREE char *text = malloc(LINE_MAX_SIZE);
	struct emustart_line line;
	char qemu[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", qemu, sizeof(qemu) - 1);
	size_t size = 0;
	struct stat root;
	int r;

	*ret = (struct follow_self){0};
	if (fd < 0 || n < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	qemu[n] = '\0';
	while (size < LINE_MAX_SIZE && (n = read(fd, text + size, LINE_MAX_SIZE - size)) > 0)
		size += (size_t)n;
	if (n < 0)
		return -errno;
	r = emustart_read(text, size, &line);
	if (r < 0)
		return r;
	*ret = (struct follow_self){.qemu = strdup(qemu),
				    .plugin = line.plugin,
				    .ring = line.ring,
				    .truth = line.truth,
				    .exec_path = line.program,
				    .repeatable = line.repeatable};
	if (!ret->qemu) {
		emustart_line_done(&line);
		*ret = (struct follow_self){0};
		return -ENOMEM;
	}
	/* A program that inherited the descriptor started in a root directory where its emulator
	 * could be started. */
	if (strncmp(ret->ring, "/proc/self/", 11) == 0 && stat("/", &root) == 0) {
		ret->root[0] = root.st_dev;
		ret->root[1] = root.st_ino;
	}
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static enum follow_verdict refuse_nested(struct work *w)
{
	struct stat program, qemu;
	bool same = fstat(w->plan.fd, &program) == 0 && stat(w->self->qemu, &qemu) == 0 &&
		    is_same(&program, &qemu);

	if (!same && !emustart_is_nested(w->plan.name, w->plan.argv))
		return FOLLOW_READY;
	snprintf(w->reason, sizeof(w->reason), "%s", EMUSTART_NESTED);
	return FOLLOW_NESTED;
}

/* Whether the root directory is still the recorder's. In another one, the emulator's own libraries
 * may be missing or differ. */
static bool is_recorders_root(const struct follow_self *s)
{
	struct stat ours, theirs;
	char path[64];
	int pid, n = 0;

	if (s->root[1] != 0)
		return stat("/", &ours) == 0 && ours.st_dev == s->root[0] &&
		       ours.st_ino == s->root[1];
	if (sscanf(s->ring, "/proc/%d/fd/%n", &pid, &n) != 1 || n == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/root/.", pid);
	return stat("/", &ours) == 0 && stat(path, &theirs) == 0 && is_same(&ours, &theirs);
}

/* Checks that the next emulator could open all it needs, with the present user, groups, root
 * directory and mounts. */
static enum follow_verdict check_reach(struct work *w)
{
	const struct follow_self *s = w->self;
	CLEANUP_CLOSE int ring = open(s->ring, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct stat running, qemu;
	uint64_t magic;

	/* The process ID in the path may belong to another process by now, or to another PID
	 * namespace. */
	if (ring < 0 || pread(ring, &magic, sizeof(magic), 0) != sizeof(magic) ||
	    magic != EMURING_MAGIC)
		return native(w, "the recorder is out of reach: ", "its rings cannot be opened");
	if (!is_recorders_root(s))
		return native(w, "the recorder is out of reach: ", "another root directory");
	if (!execplan_may(s->qemu, R_OK | X_OK) || stat(s->qemu, &qemu) < 0 ||
	    stat("/proc/self/exe", &running) < 0 || !is_same(&qemu, &running))
		return native(w, "the emulator is out of reach: ", s->qemu);
	if (!execplan_may(s->plugin, R_OK))
		return native(w, "the software PMU is out of reach: ", s->plugin);
	if (s->truth && !execplan_may(s->truth, W_OK | X_OK))
		return native(w, "the truth directory is out of reach: ", s->truth);
	return FOLLOW_READY;
}

/* Duplicates FD to a high number, which programs rarely use, below their limit of descriptors. */
static int keep_high(int fd, int how)
{
	struct rlimit files;
	int kept = -1;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 64)
		kept = fcntl(fd, how, (int)MIN_OF(files.rlim_cur, (rlim_t)1024) - 16);
	return kept >= 0 ? kept : fcntl(fd, how, STDERR_FILENO + 1);
}

void follow_keep_ring(struct follow_self *self)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat root;
	char *path;
	int kept;

	if (strncmp(self->ring, "/proc/self/", 11) == 0 || !is_recorders_root(self) ||
	    stat("/", &root) < 0)
		return;
	fd = open(self->ring, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	kept = fd >= 0 ? keep_high(fd, F_DUPFD) : -1;
	if (kept < 0 || asprintf(&path, "/proc/self/fd/%d", kept) < 0)
		return;
	self->root[0] = root.st_dev;
	self->root[1] = root.st_ino;
	self->ring = path; /* the old string is not freed: another thread may be reading it */
}

/* Whether STRINGS fit into *ROOM bytes, as the kernel counts them; subtracts their size. */
static bool fits(char *const *strings, size_t *room)
{
	for (size_t i = 0; strings[i]; i++) {
		size_t size = strlen(strings[i]) + 1;

		if (size > ARGUMENTS_MAX_STRING || size + sizeof(uint64_t) > *room)
			return false;
		*room -= size + sizeof(uint64_t);
	}
	return true;
}

static enum follow_verdict compose(struct work *w)
{
	const struct emustart start = {
		.qemu = w->self->qemu,
		.plugin = w->self->plugin,
		.ring = w->self->ring,
		.truth = w->self->truth,
		.repeatable = w->self->repeatable,
		.comm = w->plan.comm,
		.program = w->plan.program,
		.argv = w->plan.argv,
	};
	size_t path = strlen(w->self->qemu) + 1, room = w->limit > path ? w->limit - path : 0;
	struct follow *f = w->follow;

	f->qemu = strdup(w->self->qemu);
	f->argv = emustart_argv(&start);
	f->envp = emustart_envp(w->envp);
	if (!f->qemu || !f->argv || !f->envp)
		return native(w, "", strerror(ENOMEM));
	return fits(f->argv, &room) && fits(f->envp, &room) ? FOLLOW_READY : native(w, "", NO_ROOM);
}

static enum follow_verdict make_follow(struct work *w)
{
	w->follow = calloc(1, sizeof(*w->follow));
	if (!w->follow)
		return native(w, "", strerror(ENOMEM));
	w->follow->kept = -EBADF;
	if (w->plan.program)
		return compose(w);
	/* No path leads to the program: execute it by a descriptor. */
	w->follow->kept = keep_high(w->plan.fd, F_DUPFD_CLOEXEC);
	if (w->follow->kept < 0)
		return native(w, "", strerror(errno));
	if (asprintf(&w->plan.program, "/proc/self/fd/%d", w->follow->kept) < 0) {
		w->plan.program = NULL;
		return native(w, "", strerror(ENOMEM));
	}
	return compose(w);
}

enum follow_verdict follow_prepare(const struct follow_self *self, const struct follow_call *call,
				   struct follow **ret, char *why, size_t why_size)
{
	static enum follow_verdict (*const steps[])(struct work *) = {
		read_call, plan, refuse_nested, check_reach, make_follow};
	struct work w = {.self = self, .call = call, .limit = arguments_limit(), .plan.fd = -EBADF};
	enum follow_verdict v = FOLLOW_READY;

	for (size_t i = 0; v == FOLLOW_READY && i < ARRAY_SIZE(steps); i++)
		v = steps[i](&w);
	if (v == FOLLOW_READY)
		*ret = TAKE_PTR(w.follow);
	if (v == FOLLOW_NATIVE || v == FOLLOW_NESTED)
		snprintf(why, why_size, "%s: %s",
			 !w.path	     ? "exec"
			 : w.path[0] != '\0' ? w.path
					     : "a file without a name",
			 w.reason);
	free(w.path);
	arguments_free(w.argv);
	arguments_free(w.envp);
	execplan_done(&w.plan);
	follow_free(w.follow);
	return v;
}

int follow_exec(struct follow *f)
{
	int r;

	if (f->kept >= 0)
		fcntl(f->kept, F_SETFD, 0);
	execve(f->qemu, f->argv, f->envp);
	r = -errno;
	follow_free(f);
	return r;
}
