/*
 * The walks of a live trace: one for each CPU that we may use, bound to it before it begins, so
 * that the whole of its life is in that CPU's ring. Called by check_trace_live.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

static int bind_to(uint32_t cpu)
{
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	int r;

	if (!set)
		return -ENOMEM;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	r = sched_setaffinity(0, size, set) < 0 ? -errno : 0;
	CPU_FREE(set);
	return r;
}

/* In the child. It dies with us, whatever becomes of us. */
static _Noreturn void become(const struct check *c, uint32_t cpu, uint64_t seed, int said)
{
	char text[32];
	char *argv[] = {(char[]){CHECK_WALK_NAME}, text, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;
	sigset_t none;

	snprintf(text, sizeof(text), "%ju", (uintmax_t)seed);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = bind_to(cpu);
	if (r == 0 && dup2(null, STDOUT_FILENO) < 0)
		r = -errno;
	if (r == 0) {
		execv(c->walk_path, argv);
		r = -errno;
	}
	if (write(said, &r, sizeof(r)) < 0)
		_exit(126);
	_exit(127);
}

/* A pipe that the exec closes tells whether there was one. */
static int wait_for_exec(int from)
{
	int error = 0;
	ssize_t n;

	do
		n = read(from, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(error) ? error : 0;
}

int check_walks_start(struct check *c, uint32_t cpu)
{
	struct check_walk *walk = &c->walks[c->n_walks];
	int said[2], r;

	if (pipe2(said, O_CLOEXEC) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a pipe: %m");
	walk->pid = fork();
	if (walk->pid == 0)
		become(c, cpu, c->seed + c->n_walks, said[1]);
	close_fd(said[1]);
	r = walk->pid < 0 ? -errno : wait_for_exec(said[0]);
	close_fd(said[0]);
	if (walk->pid > 0)
		c->n_walks++;
	walk->tid = walk->pid;
	walk->cpu = cpu;
	/* A CPU may go, or be taken from us, at any time. */
	if (r == -EINVAL)
		walk->cpu = UINT32_MAX;
	else if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: cannot be run: %s", c->walk_path,
				 strerror(-r));
	return 0;
}

void check_walks_end(struct check *c)
{
	size_t i;

	for (i = 0; i < c->n_walks; i++)
		if (c->walks[i].pid > 0)
			kill(c->walks[i].pid, SIGKILL);
	for (i = 0; i < c->n_walks; i++) {
		if (c->walks[i].pid > 0)
			while (waitpid(c->walks[i].pid, NULL, 0) < 0 && errno == EINTR)
				;
		c->walks[i].pid = 0;
	}
}

const struct check_walk *check_walks_find(const struct check *c, uint32_t tid)
{
	for (size_t i = 0; i < c->n_walks; i++)
		if ((uint32_t)c->walks[i].tid == tid)
			return &c->walks[i];
	return NULL;
}

void check_sleep(const struct check *c, uint64_t default_usec)
{
	uint64_t usec = c->options->run_usec ? c->options->run_usec : default_usec;
	struct timespec t = {(time_t)(usec / 1000000), (long)(usec % 1000000) * 1000};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}
