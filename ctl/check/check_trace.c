/*
 * Runs the self-test in a child process, and cleans up behind the child. A signal or the time-out
 * can end the child anywhere; the parent then reaps what the child started and removes its
 * directory.
 */
#include "ctl/check/check_trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

#define INTEL_PT      "/sys/bus/event_source/devices/intel_pt"
#define TIMEOUT_USEC  300000000ull
#define PATIENCE_USEC 5000000u
#define END_USEC      15000000ull

/* The child's part. */

static void check_done(struct check *c)
{
	check_walks_end(c);
	bundle_free(c->bundle);
	close_fd(c->bundle_fd);
	free(c->cpus);
	free(c->walk_path);
	free(c->worker_path);
	json_object_put(c->report);
}

static bool uses_running_recorder(const struct check_trace_options *o)
{
	if (o->source != CHECK_TRACE_AUTO)
		return o->source == CHECK_TRACE_INTEL_PT;
	if (access(INTEL_PT, F_OK) == 0)
		return true;
	if (!o->settings->quiet)
		say("this host has no Intel PT (" INTEL_PT "): trying the emulated source");
	return false;
}

static int work(const struct check_trace_options *o, const char *dir)
{
	CLEANUP(check_done) struct check c = {.options = o, .dir = dir, .bundle_fd = -EBADF};
	int r = program_find(o->walk, PTSNAP_LIBEXECDIR "/" CHECK_WALK_NAME, CHECK_WALK_NAME,
			     &c.walk_path);

	if (r == 0)
		r = worker_find(o->worker, &c.worker_path);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	if (access(c.walk_path, X_OK) < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: cannot be run: %m", c.walk_path);
	if (getrandom(&c.seed, sizeof(c.seed), 0) != (ssize_t)sizeof(c.seed))
		c.seed = (uint64_t)time(NULL);
	c.seed &= ~UINT64_C(0xff);
	c.live = uses_running_recorder(o);
	r = c.live ? check_live(&c) : check_emulated(&c);
	if (r == 0)
		r = check_decode(&c);
	if (r != 0)
		return r;
	r = json_wanted(o->settings) ? check_json(&c) : check_page(&c);
	if (fflush(stdout) == EOF || ferror(stdout))
		return say_error(EXIT_CODE_FAILURE, "standard output: %m");
	return r;
}

/* The parent's part. */

/* Removes the directory NAME in PARENT with its files, and its directories down to DEPTH. */
static void remove_below(int parent, const char *name, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (d && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) < 0 && depth > 0)
			remove_below(dirfd(d), e->d_name, depth - 1);
	}
	if (d)
		closedir(d);
	else
		close_fd(fd);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* Waits for a signal of SET, and returns the signal, or 0 at DEADLINE. */
static int wait_for_signal(const sigset_t *set, uint64_t deadline)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC), left = now < deadline ? deadline - now : 0;
	struct timespec t = {(time_t)(left / 1000000), (long)(left % 1000000) * 1000};
	int signal;

	do
		signal = sigtimedwait(set, NULL, &t);
	while (signal < 0 && errno == EINTR);
	return signal > 0 ? signal : 0;
}

/* Reaps all children that have ended; processes that the child leaves behind become our children.
 * Returns whether PID was among them, and its status. */
static bool reap(pid_t pid, int *ret_status)
{
	bool ended = false;
	int status;
	pid_t one;

	while ((one = waitpid(-1, &status, WNOHANG)) > 0) {
		if (one != pid)
			continue;
		ended = true;
		*ret_status = status;
	}
	return ended;
}

/* The recorder ends by itself when the process that started it ends; processes that the recorder
 * leaves behind do not, and are killed after PATIENCE_USEC. */
static void reap_others(const sigset_t *set)
{
	uint64_t start = now_usec(CLOCK_MONOTONIC), now = start;
	FILE *children;
	int pid;

	while (waitpid(-1, NULL, WNOHANG) >= 0 && now < start + END_USEC) {
		wait_for_signal(set, now + 100000);
		now = now_usec(CLOCK_MONOTONIC);
		if (now <= start + PATIENCE_USEC)
			continue;
		/* A kernel without this file keeps the processes alive. */
		children = fopen("/proc/thread-self/children", "re");
		while (children && fscanf(children, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		if (children)
			fclose(children);
	}
}

/* Waits for the child's end. Returns its exit code. *ret_signal is the signal that ended the wait,
 * or 0. */
static int attend(pid_t pid, const sigset_t *set, uint64_t timeout_usec, int *ret_signal)
{
	uint64_t deadline =
		timeout_usec == 0 ? UINT64_MAX : now_usec(CLOCK_MONOTONIC) + timeout_usec;
	int status = 0, signal;

	while (!reap(pid, &status)) {
		signal = wait_for_signal(set, deadline);
		if (signal == SIGCHLD)
			continue;
		*ret_signal = signal;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return signal != 0
			       ? EXIT_CODE_FAILURE
			       : say_error(EXIT_CODE_TIMEOUT,
					   "not done in time; --timeout= sets how long to wait");
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGPIPE) /* the reader has seen enough */
		return EXIT_CODE_FAILURE;
	return say_error(EXIT_CODE_FAILURE, "the check was killed by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static int run(const struct check_trace_options *o, const char *dir, const sigset_t *set,
	       int *ret_signal)
{
	uint64_t timeout = o->settings->timeout_usec;
	pid_t pid;
	int r;

	fflush(stdout);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot start a process: %m");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		r = work(o, dir);
		fflush(stdout);
		_exit(r);
	}
	r = attend(pid, set, timeout == UINT64_MAX ? TIMEOUT_USEC + o->run_usec : timeout,
		   ret_signal);
	reap_others(set);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	return r;
}

int check_trace(const struct check_trace_options *options)
{
	const char *parent = getenv("TMPDIR");
	sigset_t set, before;
	char dir[100];
	int r, signal = 0;

	/* The path of a socket has at most 107 bytes. */
	if (!parent || *parent != '/' || strlen(parent) > 60)
		parent = "/tmp";
	snprintf(dir, sizeof(dir), "%s/ptsnap-check-XXXXXX", parent);
	if (!mkdtemp(dir))
		return say_error(EXIT_CODE_FAILURE, "%s: %m", dir);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &before);
	r = run(options, dir, &set, &signal);
	remove_below(AT_FDCWD, dir, 2);
	if (signal != 0)
		raise(signal);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
