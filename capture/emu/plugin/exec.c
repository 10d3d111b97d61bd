/*
 * A guest thread replaces its program.
 */
#include "capture/emu/plugin/exec.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/emu/plugin/disguise.h"
#include "capture/emu/plugin/guest.h"

/* Exit status when the program is refused; shells use it for a file that they cannot execute. */
#define STATUS_REFUSED 126

/* The thread is in an execve that is counted as untraced. If the execve fails, the count goes back.
 */
static __thread bool not_followed_yet;

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

static void refuse(struct exec *e, struct task *t, const char *why)
{
	char text[EMURING_REASON_SIZE + 32];
	int n = snprintf(text, sizeof(text), "ptsnapd: %s\n", why);

	not_followed(e, why);
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		n = 0;
	task_exit(t);
	exec_tell_parent(e);
	task_free(t);
	_exit(STATUS_REFUSED);
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

	disguise_native(true);
	e->self.exec_path = guest_program();
	switch (follow_prepare(&e->self, &call, &f, why, sizeof(why))) {
	case FOLLOW_READY: return follow(e, t, f);
	case FOLLOW_NESTED: return refuse(e, t, why);
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
	disguise_native(false);
	if (not_followed_yet)
		atomic_fetch_sub(&e->ring->shared->untraced_execs, 1);
	not_followed_yet = false;
}
