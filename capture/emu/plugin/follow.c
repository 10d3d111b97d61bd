/*
 * exec under the emulator: what the guest asks for, whether we can follow it, the exec. Called by
 * plugin.c in the emulator's process.
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
#include "capture/emu/plugin/arguments.h"
#include "proto/base.h"

#define NO_ROOM "its arguments and environment leave no room for the emulator's own"

struct follow {
	char *qemu, **argv, **envp;
	int kept; /* the program's file where no path leads to it, close-on-exec for now */
};

/* One call: what the guest gave, and what comes of it. */
struct work {
	const struct follow_self *self;
	const struct follow_call *call;
	size_t limit; /* of the kernel: bytes of strings and pointers */
	char *path, **argv, **envp;
	struct execplan plan;
	struct follow *follow;
	char reason[256];
};

/* Of a READY one that is not exec'ed after all. NULL is allowed. */
static void follow_free(struct follow *f)
{
	if (f == NULL)
		return;
	free(f->qemu);
	emustart_free(f->argv);
	emustart_free(f->envp);
	close_fd(f->kept);
	free(f);
}

static void work_done(struct work *w)
{
	free(w->path);
	arguments_free(w->argv);
	arguments_free(w->envp);
	execplan_done(&w->plan);
	follow_free(w->follow);
}

static enum follow_verdict native(struct work *w, const char *what, const char *why)
{
	snprintf(w->reason, sizeof(w->reason), "%s%s", what, why);
	return FOLLOW_NATIVE;
}

/* What a step says as 0, -errno. Want of memory is not the kernel's. */
static enum follow_verdict verdict_of(struct work *w, int r)
{
	if (r == -ENOMEM)
		return native(w, "", strerror(ENOMEM));
	return r < 0 ? FOLLOW_FAILS : FOLLOW_READY;
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
	return verdict_of(w, r);
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

/* The number may be another process' by now, or in another PID namespace. */
static bool is_ring(const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	uint64_t magic;

	return fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	       magic == EMURING_MAGIC;
}

/* Elsewhere the emulator's own libraries may be missing or others. */
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

/* With the ids, in the root directory and with the mounts that there are now. */
static enum follow_verdict check_reach(struct work *w)
{
	const struct follow_self *s = w->self;
	struct stat running, qemu;

	if (!is_ring(s->ring))
		return native(w, "the recorder is out of reach: ", "its rings cannot be opened");
	if (!is_recorders_root(s))
		return native(w, "the recorder is out of reach: ", "another root directory");
	if (!execplan_may(s->qemu, R_OK | X_OK) || stat(s->qemu, &qemu) < 0 ||
	    stat("/proc/self/exe", &running) < 0 || !is_same(&qemu, &running))
		return native(w, "the emulator is out of reach: ", s->qemu);
	if (!execplan_may(s->plugin, R_OK))
		return native(w, "the software PMU is out of reach: ", s->plugin);
	if (s->truth != NULL && !execplan_may(s->truth, W_OK | X_OK))
		return native(w, "the truth directory is out of reach: ", s->truth);
	return FOLLOW_READY;
}

/* Where guests do not look for free descriptors, below what they may raise to. */
static int keep_high(int fd, int how)
{
	struct rlimit files;
	int kept = -1;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 64)
		kept = fcntl(fd, how, (int)MIN_OF(files.rlim_cur, (rlim_t)1024) - 16);
	return kept >= 0 ? kept : fcntl(fd, how, STDERR_FILENO + 1);
}

/* A path of another program's descriptor stays good: an exec inherits that, too. */
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
	self->ring = path; /* who reads the old one may go on */
}

static enum follow_verdict name_by_descriptor(struct work *w)
{
	w->follow->kept = keep_high(w->plan.fd, F_DUPFD_CLOEXEC);
	if (w->follow->kept < 0)
		return native(w, "", strerror(errno));
	if (asprintf(&w->plan.program, "/proc/self/fd/%d", w->follow->kept) < 0) {
		w->plan.program = NULL;
		return native(w, "", strerror(ENOMEM));
	}
	return FOLLOW_READY;
}

/* As the kernel counts; false: one of them is too long, or all. */
static bool fits(char *const *strings, size_t *room)
{
	for (size_t i = 0; strings[i] != NULL; i++) {
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
	if (f->qemu == NULL || f->argv == NULL || f->envp == NULL)
		return native(w, "", strerror(ENOMEM));
	return fits(f->argv, &room) && fits(f->envp, &room) ? FOLLOW_READY : native(w, "", NO_ROOM);
}

static enum follow_verdict make_follow(struct work *w)
{
	enum follow_verdict v = FOLLOW_READY;

	w->follow = calloc(1, sizeof(*w->follow));
	if (w->follow == NULL)
		return native(w, "", strerror(ENOMEM));
	w->follow->kept = -EBADF;
	if (w->plan.program == NULL)
		v = name_by_descriptor(w);
	return v == FOLLOW_READY ? compose(w) : v;
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
			 w.path == NULL	     ? "exec"
			 : w.path[0] != '\0' ? w.path
					     : "a file without a name",
			 w.reason);
	work_done(&w);
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
