/*
 * The bundle of a recorder that runs: a walk on each of its CPUs at once, one snapshot of them all,
 * which is not decoded there. Called by check_trace.c; check_trace_emulated.c takes its snapshots
 * here, too.
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

/* Once the copy is made the walks need not burn any longer. */
static int on_progress(void *userdata, struct json_object *parameters)
{
	const char *phase = field_text(parameters, "progress.phase");

	if (phase && strcmp(phase, "bundle") == 0)
		check_walks_end(userdata);
	return 0;
}

/* Our own recorder's is taken whole, so that nothing is missing from what its CPUs share. */
static struct json_object *make_parameters(const struct check *c)
{
	struct json_object *p = json_object_new_object();

	json_object_object_add(p, "reason", json_object_new_string("ptsnapctl check --trace"));
	if (c->live)
		json_object_object_add(p, "windowBytes",
				       json_object_new_uint64(CHECK_WINDOW_BYTES));
	json_object_object_add(p, "decode", json_object_new_boolean(false));
	return p;
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
	struct json_object *answer = NULL;
	int r = client_open(settings, SNAPSHOT_USEC, &client);

	if (r == 0)
		r = client_call(client, "Snapshot", make_parameters(c), on_progress, c, &answer);
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

	return r != 0 ? r : client_call(client, "Status", NULL, NULL, NULL, ret);
}

static int judge_status(struct json_object *status)
{
	const char *source = field_text(status, "source");

	if (source && strcmp(source, "intel_pt") == 0)
		return 0;
	return say_error(
		EXIT_CODE_NOT_TRACING,
		"the recorder's source is %s, not intel_pt: `ptsnapctl check' says what is "
		"in its way; --source=emulated tries a recorder of its own",
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
		r = check_walks_start(c, (uint32_t)number);
	}
	if (r == 0 && c->n_walks == 0)
		return say_error(EXIT_CODE_NOT_TRACING,
				 "the recorder traces no CPU that we may run on; `ptsnapctl check' "
				 "says why");
	return r;
}

/* The walks are user code. */
static int judge_bundle(const struct check *c)
{
	if (bundle_manifest(c->bundle)->trace_user)
		return 0;
	return say_error(EXIT_CODE_NOT_TRACING,
			 "the recorder traces the kernel only: Trace=user or "
			 "Trace=both is needed to compare anything");
}

int check_live(struct check *c)
{
	struct json_object *answer = NULL, *status;
	int r = get_status(c->options->settings, &answer);

	status = r == 0 ? field_get(answer, "status") : NULL;
	if (r == 0)
		r = judge_status(status);
	if (r == 0)
		r = start_walks(c, status);
	json_object_put(answer);
	if (r == 0) {
		check_sleep(c, RUN_USEC);
		r = check_snapshot(c, c->options->settings);
	}
	if (r == 0)
		r = judge_bundle(c);
	check_walks_end(c);
	return r;
}
