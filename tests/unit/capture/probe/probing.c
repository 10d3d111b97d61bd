/*
 * For tests of probes: arms one, keeps its events, and runs children that make events.
 */
#include "tests/unit/capture/probe/probing.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/base.h"
#include "tests/support/child.h"

static void keep(const struct probe_event *event, void *userdata)
{
	struct seen *seen = userdata;

	if (seen->n < ARRAY_SIZE(seen->events))
		seen->events[seen->n] = *event;
	seen->n++;
}

/* Whether this process may load the simplest probe. */
static void need_bpf(void)
{
	const struct probe_spec spec = {.kind = PROBE_EXEC, .pid = getpid()};
	struct seen seen = {0};
	struct probe *p = NULL;
	char *error = NULL;
	int r = probe_arm(&spec, keep, &seen, &p, &error);

	probe_free(p);
	if (r == -EPERM || r == -EOPNOTSUPP) {
		print_message("%s\n", error);
		free(error);
		skip();
	}
	free(error);
}

struct probe *arm(const struct probe_spec *spec, struct seen *seen)
{
	struct probe *p = NULL;
	char *error = NULL;
	int r;

	need_bpf();
	*seen = (struct seen){.n = 0};
	r = probe_arm(spec, keep, seen, &p, &error);
	if (r < 0)
		fail_msg("%d: %s", r, error);
	assert_null(error);
	return p;
}

void expect_refusal(const struct probe_spec *spec, int error, const char *text)
{
	struct probe *p = NULL;
	char *message = NULL;
	struct seen seen;
	int r;

	need_bpf();
	r = probe_arm(spec, keep, &seen, &p, &message);
	assert_null(p);
	assert_non_null(message);
	if (!strstr(message, text))
		fail_msg("\"%s\" is not in \"%s\"", text, message);
	free(message);
	assert_int_equal(r, error);
}

unsigned collect(struct probe *p, struct seen *seen)
{
	assert_true(probe_dispatch(p) >= 0);
	assert_int_equal(probe_missed(p), 0);
	return seen->n;
}

/* A shell starts jobs in the background with some signals ignored, and children inherit that. */
static void default_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_DFL);
}

struct child child_new(void (*run)(void *arg), void *arg)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char byte;

		close(ends[1]);
		default_signals();
		if (read(ends[0], &byte, 1) == 1)
			run(arg);
		_exit(0);
	}
	close(ends[0]);
	return (struct child){.pid = pid, .go = ends[1]};
}

int child_run(struct child *c)
{
	assert_int_equal(write(c->go, "", 1), 1);
	return child_wait(c);
}

int child_wait(struct child *c)
{
	int status;

	close(c->go);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	return status;
}
