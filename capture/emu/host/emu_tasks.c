/*
 * The emulator's threads as the host's kernel sees them. Called by emu_keeper.c in the recorder.
 */
#include "capture/emu/host/emu_tasks.h"

#include <errno.h>
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

/* Field NUMBER (from 1) of a line of /proc/PID/stat behind the name, AFTER its ")"; proc(5). */
static const char *field(const char *after, int number)
{
	for (int i = 3; after != NULL && i < number; i++)
		after = strchr(after + 1, ' ');
	return after != NULL && *after == ' ' ? after + 1 : NULL;
}

/* A first thread that is dead while others of its process live: its number is taken, for it is
 * reaped last, or by an exec of one of the others becomes that one's. */
static bool leads_others(const char *after)
{
	const char *threads = field(after, 20);

	return threads != NULL && atoi(threads) > 1;
}

/* The state letter of /proc/TID/stat, 0 when there is no such task, '?' when that cannot be told.
 */
static char task_state(uint32_t tid)
{
	char path[64], text[512], *after;
	const char *state;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return errno == ENOENT || errno == ESRCH ? 0 : '?';
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name is in parentheses and may hold anything, parentheses too. */
	after = strrchr(text, ')');
	state = after != NULL ? field(after + 1, 3) : NULL;
	if (state == NULL)
		return 0;
	return *state == 'Z' && leads_others(after + 1) ? '?' : *state;
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
	int stop; /* si_status of the stop that it is in; 0: it runs */
	bool gone;
};

/* Deaths are left to be seen by others: COMMAND is the recorder's own child. */
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

/* ptrace(2), "Stopped states": in a signal-delivery-stop the signal is the tracee's only if the
 * tracer passes it on; a group-stop or a trap of our own has event PTRACE_EVENT_STOP. */
static uintptr_t signal_of(const struct tracee *t)
{
	return t->stop >> 8 != 0 ? 0 : (uintptr_t)t->stop;
}

static void run_until(struct tracee *t, bool (*done)(void *userdata), void *userdata)
{
	for (int i = 0; i < NUDGE_LOOKS && !t->gone && !done(userdata); i++) {
		look(t);
		if (t->stop != 0)
			ptrace(PTRACE_CONT, t->tid, NULL, signal_of(t));
		t->stop = 0;
		nap();
	}
}

static bool is_our_child(pid_t pid)
{
	char path[64], line[128];
	long leader = 0, parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "Tgid:", 5) == 0)
			leader = strtol(line + 5, NULL, 10);
		if (strncmp(line, "PPid:", 5) == 0)
			parent = strtol(line + 5, NULL, 10);
	}
	fclose(f);
	return leader == pid && parent == getpid();
}

/* A tracee that was not stopped when it is let go of would stop later, and nobody would know. */
static void let_go(struct tracee *t)
{
	ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
	for (int i = 0; i < LEAVE_LOOKS && !t->gone && t->stop == 0; i++) {
		look(t);
		if (t->stop == 0)
			nap();
	}
	ptrace(PTRACE_DETACH, t->tid, NULL, signal_of(t));
	/* The death of a tracee is told to its parent only when the tracer knows of it. */
	if (t->gone && !is_our_child(t->tid))
		waitpid(t->tid, NULL, WNOHANG | __WALL);
}

/* ptrace(2), "Attaching and detaching": a tracee that was in a group-stop is put back into it when
 * it is detached (kernel/ptrace.c, __ptrace_unlink: JOBCTL_STOP_PENDING). */
bool emu_task_nudge(uint32_t tid, bool (*done)(void *userdata), void *userdata)
{
	struct tracee t = {.tid = (pid_t)tid};

	if (ptrace(PTRACE_SEIZE, t.tid, NULL, NULL) < 0)
		return false;
	run_until(&t, done, userdata);
	let_go(&t);
	return done(userdata);
}
