/*
 * Gets the bundle from a recorder of the test's own: ptsnapd with the emulated source, whose
 * command is two walks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "proto/base.h"
#include "proto/memfd.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

#define RUN_USEC   500000u
#define START_MSEC 30000u
#define END_MSEC   10000u
#define STEP_MSEC  20u
#define CPUS	   2u
#define AUX_SIZE   "4M"

/* A shell starts all walks and waits. Its arguments are the program and a seed for each walk.
 * SIGTERM ends the shell and the walks. */
static const char SCRIPT[] = "walk=$1; shift; trap 'kill $walks' TERM; "
			     "for s; do \"$walk\" \"$s\" & walks=\"$walks $!\"; done; wait";

struct recorder {
	pid_t pid; /* 0: reaped */
	int status;
	char *program, *socket; /* owned */
	int log;		/* the recorder's standard error, in memory */
	int walking;		/* a pipe: each walk that begins writes a line */
};

static void recorder_done(struct recorder *r)
{
	free(r->program);
	free(r->socket);
	close_fd(r->log);
	close_fd(r->walking);
}

static void sleep_msec(unsigned msec)
{
	struct timespec t = {msec / 1000, (long)(msec % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static _Noreturn void become(const struct check *c, const struct recorder *r, int walking)
{
	char socket[300], state[300], cpus[32], seeds[CPUS][32];
	const char *argv[16 + CPUS] = {r->program,
				       "--source=emulated",
				       "--aux-size=" AUX_SIZE,
				       socket,
				       state,
				       cpus,
				       "--",
				       "/bin/sh",
				       "-c",
				       SCRIPT,
				       "sh",
				       c->walk_path};
	size_t n = 12;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	snprintf(socket, sizeof(socket), "--socket=%s", r->socket);
	snprintf(state, sizeof(state), "--state-dir=%s/state", c->dir);
	snprintf(cpus, sizeof(cpus), "--emu-cpus=%u", CPUS);
	for (unsigned i = 0; i < CPUS; i++) {
		snprintf(seeds[i], sizeof(seeds[i]), "%ju", (uintmax_t)c->seed + i);
		argv[n++] = seeds[i];
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(walking, STDOUT_FILENO) < 0 ||
	    dup2(r->log, STDERR_FILENO) < 0)
		_exit(126);
	execv(r->program, (char **)argv);
	_exit(127);
}

/* Waits at most MSEC. Returns whether the recorder ended. */
static bool reap(struct recorder *r, unsigned msec)
{
	pid_t pid;

	while (r->pid > 0) {
		pid = waitpid(r->pid, &r->status, WNOHANG);
		if (pid == r->pid || (pid < 0 && errno == ECHILD))
			r->pid = 0;
		else if (msec < STEP_MSEC)
			return false;
		else {
			sleep_msec(STEP_MSEC);
			msec -= STEP_MSEC;
		}
	}
	return true;
}

static bool listens(const struct recorder *r)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(r->socket) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, r->socket);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

/* Prints the last line of the recorder's log, which says why it ended. */
static int say_last_line(const struct recorder *r)
{
	char text[1024];
	off_t size = lseek(r->log, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(text) - 1 ? size - ((off_t)sizeof(text) - 1) : 0;
	ssize_t n = pread(r->log, text, sizeof(text) - 1, from);
	int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : 0;
	char *line;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (*line == '\0')
		line = code == 127 ? "cannot be run" : "ended without a message";
	return say_error(code == EXIT_CODE_NOT_TRACING || code == 126 || code == 127
				 ? EXIT_CODE_NOT_TRACING
				 : EXIT_CODE_FAILURE,
			 "%s: %s", r->program, line);
}

/* Waits until each walk has written its line. */
static int wait_for_walks(struct recorder *r)
{
	struct pollfd p = {.fd = r->walking, .events = POLLIN};
	unsigned lines = 0, waited = 0;
	char text[64];
	ssize_t n;

	while (lines < CPUS) {
		if (poll(&p, 1, (int)STEP_MSEC) <= 0) {
			waited += STEP_MSEC;
			if (waited >= START_MSEC)
				return say_error(EXIT_CODE_TIMEOUT, "no walk under %s after %u s",
						 r->program, START_MSEC / 1000);
			continue;
		}
		n = read(r->walking, text, sizeof(text));
		if (n <= 0)
			return say_error(EXIT_CODE_FAILURE, "the walks under %s ended too early",
					 r->program);
		while (n-- > 0)
			lines += text[n] == '\n';
	}
	return 0;
}

/* Starts the recorder, and waits until its socket is there. */
static int start(struct check *c, struct recorder *r)
{
	int error = memfd_new("ptsnapd-log", 0, &r->log), walking[2];

	if (error == 0)
		error = program_find(c->options->daemon, PTSNAP_SBINDIR "/ptsnapd",
				     "../daemon/ptsnapd", &r->program);
	if (error < 0 || asprintf(&r->socket, "%s/socket", c->dir) < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	if (pipe2(walking, O_CLOEXEC) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a pipe: %m");
	r->walking = walking[0];
	r->pid = fork();
	if (r->pid == 0)
		become(c, r, walking[1]);
	close_fd(walking[1]);
	if (r->pid < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot start %s: %m", r->program);
	for (unsigned waited = 0; waited < START_MSEC; waited += STEP_MSEC) {
		if (listens(r))
			return 0;
		if (reap(r, 0))
			return say_last_line(r);
		sleep_msec(STEP_MSEC);
	}
	return say_error(EXIT_CODE_TIMEOUT, "%s: not ready after %u s", r->program,
			 START_MSEC / 1000);
}

int check_emulated(struct check *c)
{
	CLEANUP(recorder_done) struct recorder recorder = {.log = -EBADF, .walking = -EBADF};
	struct settings settings = *c->options->settings;
	int r = start(c, &recorder);

	if (r == 0)
		r = wait_for_walks(&recorder);
	if (r == 0) {
		settings.socket = recorder.socket;
		check_sleep(c, RUN_USEC);
		r = check_snapshot(c, &settings);
	}
	if (recorder.pid > 0) {
		kill(recorder.pid, SIGTERM);
		if (!reap(&recorder, END_MSEC)) {
			kill(recorder.pid, SIGKILL);
			reap(&recorder, END_MSEC);
		}
	}
	return r;
}
