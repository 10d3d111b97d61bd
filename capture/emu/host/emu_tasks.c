/*
 * The emulator's threads, as the host's kernel sees them.
 */
#include "capture/emu/host/emu_keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUDGE_LOOKS 200
#define LEAVE_LOOKS 2000
#define NUDGE_NS    500000l

/* Field NUMBER (from 1, proc(5)) of /proc/PID/stat. AFTER: the text behind the ")" of the name. */
static const char *field(const char *after, int number)
{
	for (int i = 3; after && i < number; i++)
		after = strchr(after + 1, ' ');
	return after && *after == ' ' ? after + 1 : NULL;
}

/* The state letter of /proc/TID/stat. 0: no such thread. '?': unknown. */
static char task_state(uint32_t tid)
{
	char path[64], text[512], *after;
	const char *state, *threads;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ESRCH ? 0 : '?';
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name is in parentheses and may have any byte, even a parenthesis. */
	after = strrchr(text, ')');
	state = after ? field(after + 1, 3) : NULL;
	if (!state)
		return 0;
	/* A process' first thread that is dead while others live keeps its ID: it is reaped last,
	 * or another thread takes over its ID by an exec. */
	threads = field(after + 1, 20);
	return *state == 'Z' && threads && atoi(threads) > 1 ? '?' : *state;
}

enum emu_life emu_task_life(uint32_t tid)
{
	switch (task_state(tid)) {
	case 0:
	case 'Z':
	case 'X': return EMU_GONE;
	case 'T':
	case 't': return EMU_STOPPED;
	default: return EMU_LIVES;
	}
}

bool emu_task_is_ours(uint32_t tid, const struct stat *qemu)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/exe", tid);
	return stat(path, &st) == 0 && st.st_dev == qemu->st_dev && st.st_ino == qemu->st_ino;
}

struct tracee {
	pid_t tid;
	int stop; /* si_status of the present stop; 0: the thread runs */
	bool gone;
};

/* Looks for a stop. Leaves a death for others to reap, because COMMAND is the recorder's own child.
 */
static void look(struct tracee *t)
{
	siginfo_t info = {.si_pid = 0};

	if (waitid(P_PID, (id_t)t->tid, &info, WSTOPPED | WNOHANG | __WALL) < 0)
		t->gone = errno != EINTR;
	else if (info.si_pid != 0)
		t->stop = info.si_status;
}

static void nap(void)
{
	nanosleep(&(const struct timespec){.tv_nsec = NUDGE_NS}, NULL);
}

/* The signal to pass on. ptrace(2), "Stopped states": after a signal-delivery-stop, the tracee gets
 * the signal only if the tracer passes it on. A group-stop or our own trap has the event
 * PTRACE_EVENT_STOP. */
static uintptr_t signal_of(const struct tracee *t)
{
	return t->stop >> 8 != 0 ? 0 : (uintptr_t)t->stop;
}

struct nudge {
	uint32_t tid;
	bool (*done)(void *userdata);
	void *userdata;
	bool is_done;
};

/* ptrace(2), "Attaching and detaching": a detached tracee that was in a group-stop returns to the
 * group-stop (kernel/ptrace.c, __ptrace_unlink: JOBCTL_STOP_PENDING). */
static void *nudge_thread(void *userdata)
{
	struct nudge *n = userdata;
	struct tracee t = {.tid = (pid_t)n->tid};

	if (ptrace(PTRACE_SEIZE, t.tid, NULL, NULL) < 0)
		return NULL;
	for (int i = 0; i < NUDGE_LOOKS && !t.gone && !n->done(n->userdata); i++) {
		look(&t);
		if (t.stop != 0)
			ptrace(PTRACE_CONT, t.tid, NULL, signal_of(&t));
		t.stop = 0;
		nap();
	}
	/* Stop the tracee before detaching: a tracee that runs when it is detached would stop
	 * later, unnoticed. */
	ptrace(PTRACE_INTERRUPT, t.tid, NULL, NULL);
	for (int i = 0; i < LEAVE_LOOKS && !t.gone && t.stop == 0; i++) {
		look(&t);
		if (t.stop == 0)
			nap();
	}
	ptrace(PTRACE_DETACH, t.tid, NULL, signal_of(&t));
	n->is_done = n->done(n->userdata);
	return NULL;
}

/* PTRACE_DETACH fails if the tracee is dead, was killed after it had stopped, or did not stop in
 * time. The kernel notifies the parent of a tracee's death only when the tracee has no tracer. It
 * detaches all tracees of a thread that ends, in any state, and then notifies their parents
 * (kernel/ptrace.c, exit_ptrace). Therefore the tracer is a thread that ends here. */
bool emu_task_nudge(uint32_t tid, bool (*done)(void *userdata), void *userdata)
{
	struct nudge n = {.tid = tid, .done = done, .userdata = userdata};
	pthread_t thread;

	if (pthread_create(&thread, NULL, nudge_thread, &n) != 0)
		return false;
	pthread_join(thread, NULL);
	return n.is_done;
}
