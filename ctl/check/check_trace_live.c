/*
 * Gets the bundle from the running recorder: starts a walk on each traced CPU, and takes one
 * snapshot of all of them. A walk is bound to its CPU before the walk begins, so that the ring of
 * this CPU has its whole life.
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

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"
#include "ctl/client/client.h"
#include "ctl/client/stored.h"

#define RUN_USEC      200000u
#define SNAPSHOT_USEC 60000000ull

static int bind_to_cpu(uint32_t cpu)
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

/* Runs in the child, which dies with its parent. Writes an errno to SAID if the exec fails. */
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
	r = bind_to_cpu(cpu);
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

static int start_walk(struct check *c, uint32_t cpu)
{
	struct check_walk *walk = &c->walks[c->n_walks];
	int said[2], r = 0;

	if (pipe2(said, O_CLOEXEC) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a pipe: %m");
	walk->pid = fork();
	if (walk->pid == 0)
		become(c, cpu, c->seed + c->n_walks, said[1]);
	close_fd(said[1]);
	if (walk->pid < 0)
		r = -errno;
	else /* a successful exec closes the pipe, and nothing is read */
		while (read(said[0], &r, sizeof(r)) < 0 && errno == EINTR)
			;
	close_fd(said[0]);
	if (walk->pid > 0)
		c->n_walks++;
	walk->tid = walk->pid;
	walk->cpu = cpu;
	/* The CPU may have gone offline, or left our cpuset. */
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

/* Ends the walks once the rings are copied. */
static int on_progress(void *userdata, struct json_object *parameters)
{
	const char *phase = field_text(parameters, "progress.phase");

	if (phase && strcmp(phase, "bundle") == 0)
		check_walks_end(userdata);
	return 0;
}

static int open_bundle(struct check *c, const struct settings *settings, struct json_object *answer)
{
	struct json_object *report = field_get(answer, "report");
	const char *id = field_text(report, "id"), *state = field_text(report, "state");
	const char *error = field_text(report, "error");
	CLEANUP(stored_freep) struct stored *stored = NULL;
	int r;

	if (!id || !state)
		return say_error(EXIT_CODE_FAILURE, "the recorder's answer names no report");
	if (strcmp(state, "failed") == 0)
		return say_error(EXIT_CODE_FAILURE, "snapshot %s failed: %s", id,
				 error ? error : "no cause given; see the recorder's log");
	r = stored_from_recorder(settings, id, &stored);
	if (r == 0)
		r = stored_open(stored, true, &c->bundle_fd);
	if (r != 0)
		return r;
	r = bundle_open(c->bundle_fd, &c->bundle);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "the bundle of snapshot %s: %s", id,
				 strerror(-r));
	return 0;
}

int check_snapshot(struct check *c, const struct settings *settings)
{
	CLEANUP(client_freep) struct client *client = NULL;
	struct json_object *p, *answer = NULL;
	int r = client_open(settings, SNAPSHOT_USEC, &client);

	if (r == 0) {
		p = json_object_new_object();
		json_object_object_add(p, "reason",
				       json_object_new_string("ptsnapctl check --trace"));
		/* The snapshot of the test's own recorder takes whole rings: its walks move between
		 * CPUs, and no part of them may be missing. */
		if (c->live)
			json_object_object_add(p, "windowBytes",
					       json_object_new_uint64(CHECK_WINDOW_BYTES));
		json_object_object_add(p, "decode", json_object_new_boolean(false));
		r = client_call(client, "Snapshot", p, on_progress, c, &answer);
	}
	check_walks_end(c);
	if (r == 0)
		r = open_bundle(c, settings, answer);
	json_object_put(answer);
	return r;
}

static int get_status(const struct settings *settings, struct json_object **ret)
{
	CLEANUP(client_freep) struct client *client = NULL;
	int r = client_open(settings, CLIENT_TIMEOUT_USEC, &client);
	const char *source;

	if (r == 0)
		r = client_call(client, "Status", NULL, NULL, NULL, ret);
	if (r != 0)
		return r;
	source = field_text(*ret, "status.source");
	if (source && strcmp(source, "intel_pt") == 0)
		return 0;
	return say_error(EXIT_CODE_NOT_TRACING,
			 "the recorder's source is %s, not intel_pt: `ptsnapctl check' says why; "
			 "--source=emulated starts a recorder for the test",
			 source ? source : "unknown");
}

static bool traces(struct json_object *cpu)
{
	const char *state = field_text(cpu, "state");

	return !state || strcmp(state, "tracing") == 0;
}

static int start_walks(struct check *c, struct json_object *status)
{
	cpu_set_t ours;
	int r = 0;

	if (sched_getaffinity(0, sizeof(ours), &ours) < 0)
		CPU_ZERO(&ours);
	for (size_t i = 0; r == 0 && i < field_count(status, "cpus"); i++) {
		struct json_object *cpu = field_at(status, "cpus", i);
		uint64_t number;

		if (!field_u64(cpu, "cpu", &number) || number >= CPU_SETSIZE ||
		    !CPU_ISSET(number, &ours) || !traces(cpu) || c->n_walks == CHECK_WALKS_MAX)
			continue;
		r = start_walk(c, (uint32_t)number);
	}
	if (r == 0 && c->n_walks == 0)
		return say_error(EXIT_CODE_NOT_TRACING,
				 "the recorder traces no CPU that we may run on; `ptsnapctl check' "
				 "says why");
	return r;
}

int check_live(struct check *c)
{
	struct json_object *answer = NULL;
	int r = get_status(c->options->settings, &answer);

	if (r == 0)
		r = start_walks(c, field_get(answer, "status"));
	json_object_put(answer);
	if (r == 0) {
		check_sleep(c, RUN_USEC);
		r = check_snapshot(c, c->options->settings);
	}
	check_walks_end(c);
	if (r == 0 && !bundle_manifest(c->bundle)->trace_user)
		return say_error(
			EXIT_CODE_NOT_TRACING,
			"the recorder traces only the kernel; the test needs Trace=user or "
			"Trace=both");
	return r;
}
