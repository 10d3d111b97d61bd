/*
 * A guest program begins without seeing the emulator, and is replaced.
 */
#include "capture/emu/plugin/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "capture/emu/machine/emustart.h"
#include "capture/emu/plugin/guest.h"

/* Exit status when the program is refused; shells use it for a file that they cannot execute. */
#define STATUS_REFUSED 126
/* linux-user/signal.c, dump_core_and_abort, prints this for every fatal signal, even without a core
 * file. */
#define CHATTER "qemu: uncaught target signal "

/* The limit that the program was given. A process has one limit. */
static struct rlimit core_limit;

/* The thread is in an execve that is counted as untraced. If the execve fails, the count goes back.
 */
static __thread bool not_followed_yet;

static ssize_t write_stderr(void *cookie, const char *text, size_t size)
{
	size_t done = 0;

	(void)cookie;
	if (size >= strlen(CHATTER) && memcmp(text, CHATTER, strlen(CHATTER)) == 0)
		return (ssize_t)size;
	while (done < size) {
		ssize_t n = write(STDERR_FILENO, text + done, size - done);

		if (n < 0 && errno != EINTR)
			return 0;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)size;
}

/* Removes the prefix that emustart_envp() put before some variables. Each string stays where it is;
 * the guest's pointer moves behind the prefix. Layout of the stack: System V ABI for x86-64,
 * "Initial Stack and Register State": argc, argv, NULL, envp, NULL. */
static void restore_environment(uint64_t rsp)
{
	char begin[EMUSTART_PREFIX_SIZE];
	uint64_t argc, text;

	if (!guest_read(rsp, &argc, sizeof(argc)))
		return;
	for (uint64_t slot = rsp + 8 * (argc + 2);
	     guest_read(slot, &text, sizeof(text)) && text != 0; slot += 8) {
		if (!guest_read(text, begin, sizeof(begin)) || !emustart_is_prefix(begin))
			continue;
		text += EMUSTART_PREFIX_SIZE;
		guest_write(slot, &text, sizeof(text));
	}
}

void exec_begin(const char *comm, uint64_t rsp)
{
	FILE *f;
	int fd;

	/* A program without a path is executed by a descriptor, which only the emulator needs. */
	if (sscanf(guest_program(), "/proc/self/fd/%d", &fd) == 1)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	restore_environment(rsp);
	prctl(PR_SET_NAME, comm);
	/* The emulator prints through the C library's stderr; the program writes to descriptor 2.
	 */
	f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stderr});
	if (f) {
		setvbuf(f, NULL, _IOLBF, 0);
		stderr = f;
	}
	getrlimit(RLIMIT_CORE, &core_limit);
	exec_native(false);
}

void exec_native(bool native)
{
	struct rlimit limit = core_limit;

	/* A core file of the emulator would not be one of the program. */
	if (!native)
		limit.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &limit);
}

void exec_tell_parent(const struct exec *e)
{
	struct emuring_task *parent;

	if (e->parent == EMURING_NO_TASK)
		return;
	parent = emuring_task_at(e->ring, e->parent);
	atomic_store(&parent->vfork_done, (uint32_t)getpid());
	syscall(SYS_futex, &parent->vfork_done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void not_followed(struct exec *e, const char *why)
{
	not_followed_yet = true;
	atomic_fetch_add(&e->ring->shared->untraced_execs, 1);
	emuring_add_reason(e->ring->shared, why);
}

/* Replaces the program, or returns so that QEMU's own execve gives the guest an errno. */
static void follow(struct exec *e, struct task *t, struct follow *f)
{
	int r;

	exec_tell_parent(e);
	task_pause_truth(t);
	task_enter_kernel(t);
	r = follow_exec(f);
	task_resume_truth(t);
	if (r < 0)
		not_followed(e, "a program that could not be started under the emulator");
}

void exec_enter(struct exec *e, struct task *t)
{
	const uint64_t *args = t->call.args;
	const bool at = t->call.number == SYS_execveat;
	const struct follow_call call = {
		.at = at,
		.dirfd = at ? (int)args[0] : -1,
		.flags = at ? (int)args[4] : 0,
		.path = args[at ? 1 : 0],
		.argv = args[at ? 2 : 1],
		.envp = args[at ? 3 : 2],
	};
	struct follow *f = NULL;
	char why[EMURING_REASON_SIZE] = "";

	exec_native(true);
	e->self.exec_path = guest_program();
	switch (follow_prepare(&e->self, &call, &f, why, sizeof(why))) {
	case FOLLOW_READY: return follow(e, t, f);
	case FOLLOW_NESTED:
		not_followed(e, why);
		dprintf(STDERR_FILENO, "ptsnapd: %s\n", why);
		task_exit(t);
		exec_tell_parent(e);
		task_free(t);
		_exit(STATUS_REFUSED);
	case FOLLOW_NATIVE:
		not_followed(e, why);
		exec_tell_parent(e);
		break;
	case FOLLOW_FAILS: break;
	}
	task_enter_kernel(t);
}

void exec_failed(struct exec *e)
{
	exec_native(false);
	if (not_followed_yet)
		atomic_fetch_sub(&e->ring->shared->untraced_execs, 1);
	not_followed_yet = false;
}
