/*
 * Snapshots one after the other while processes are started as fast as this host can, with the
 * kernel's own rings: no record may be lost, and of each process that was started its beginning and
 * its end must have arrived. PTSNAP_LOAD_BYTES: what one snapshot copies, in all (default 64 MiB).
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/trigger/trigger.h"
#include "proto/base.h"
#include "tests/support/child.h"
#include "tests/system/load_source.h"
#include "tests/unit/daemon/scratch_dir.h"

#define SPAWNERS       3
#define SNAPSHOTS      3
#define DATA_BYTES     (512u << 10)
#define NO_CPU_SECONDS 0.05 /* a ring is half full after this */
#define DEFAULT_LOAD   (64ull << 20)
#define PROCS_DELAY_NS 50000000u /* as in manager.c */

struct fixture {
	char dir[SCRATCH_DIR_SIZE];
	struct config config;
	sd_event *event;
	struct load_source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct intake intake;
	struct store *store;
	struct jobs *jobs;
	struct trigger trigger;
	sd_event_source *io;
	uint64_t taken; /* bytes */
	int ended;
};

static pid_t spawners[SPAWNERS];
static uint64_t forks, exits; /* of their children */

/* -Wl,--wrap: every record comes by here on its way. */
int __real_timeline_push(struct timeline *t, const struct perfrecord *r, const void *bytes,
			 size_t size);
int __wrap_timeline_push(struct timeline *t, const struct perfrecord *r, const void *bytes,
			 size_t size);

int __wrap_timeline_push(struct timeline *t, const struct perfrecord *r, const void *bytes,
			 size_t size)
{
	for (int i = 0; i < SPAWNERS; i++) {
		bool ours = (r->type == PERF_RECORD_FORK || r->type == PERF_RECORD_EXIT) &&
			    r->u.task.ppid == (uint32_t)spawners[i] &&
			    r->u.task.pid == r->u.task.tid;

		forks += ours && r->type == PERF_RECORD_FORK;
		exits += ours && r->type == PERF_RECORD_EXIT;
	}
	return __real_timeline_push(t, r, bytes, size);
}

/* --- Those who start processes --- */

struct spawner {
	pid_t pid;
	int orders[2], answer[2]; /* pipes: a byte to begin, another to stop; how many there were */
};

static bool is_told_to_stop(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static void spawn_all(struct spawner *s)
{
	char *const argv[] = {"true", NULL}, *const environment[] = {NULL};
	uint64_t n = 0;
	pid_t pid;
	char byte;

	if (read(s->orders[0], &byte, 1) != 1)
		_exit(1);
	while (!is_told_to_stop(s->orders[0])) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environment) != 0)
			_exit(1);
		waitpid(pid, NULL, 0);
		n++;
	}
	_exit(write(s->answer[1], &n, sizeof(n)) != sizeof(n));
}

static void start_spawner(struct spawner *s)
{
	assert_int_equal(pipe(s->orders), 0);
	assert_int_equal(pipe(s->answer), 0);
	s->pid = test_fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0)
		spawn_all(s);
	close(s->orders[0]);
	close(s->answer[1]);
}

/* How many processes it has started; it is gone. */
static uint64_t stop_spawner(struct spawner *s)
{
	uint64_t n = 0;
	int status;

	assert_int_equal(write(s->orders[1], "", 1), 1);
	close(s->orders[1]);
	assert_int_equal(read(s->answer[0], &n, sizeof(n)), sizeof(n));
	close(s->answer[0]);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_int_equal(status, 0);
	return n;
}

/* --- The recorder --- */

static void on_progress(void *userdata, const char *id, enum job_phase phase, uint32_t percent)
{
	(void)userdata;
	(void)id;
	(void)phase;
	(void)percent;
}

static void on_looked(void *userdata, struct evidence *e)
{
	(void)userdata;
	(void)e;
}

static int on_captured(void *userdata, const struct request *request, const char *id,
		       uint64_t previous_stop_ns, struct evidence **ret)
{
	struct fixture *f = userdata;
	const struct evidence_from from = {&f->config, &f->intake, request, id, previous_stop_ns};

	f->taken += intake_drain(&f->intake);
	return evidence_new(&from, ret);
}

static void on_ended(void *userdata, const char *id)
{
	struct fixture *f = userdata;

	(void)id;
	f->ended++;
}

static int on_records(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fixture *f = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	f->taken += intake_some(&f->intake);
	return 0;
}

static uint64_t load_bytes(void)
{
	const char *text = getenv("PTSNAP_LOAD_BYTES");
	uint64_t bytes = text ? strtoull(text, NULL, 10) : 0;

	return bytes > 0 ? bytes : DEFAULT_LOAD;
}

static uint64_t aux_size(void)
{
	uint64_t each = load_bytes() / (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), size = 4096;

	while (size * 2 <= each)
		size *= 2;
	return size;
}

static void build_service(struct fixture *f)
{
	const struct store_limits limits = {4 * load_bytes() + (1ull << 30), 20, 2};
	const struct jobs_handler handler = {f,		  on_progress, NULL,
					     on_captured, on_looked,   on_ended};
	struct source *source = load_source_base(f->source);
	char why[512];

	assert_int_equal(store_new(f->dir, &limits, &f->store, why, sizeof(why)), 0);
	assert_int_equal(jobs_new(f->event, &f->config, source, f->store, &handler, &f->jobs), 0);
	assert_int_equal(trigger_init(&f->trigger, source, f->store, f->jobs, &f->config), 0);
	assert_true(sd_event_add_io(f->event, &f->io, intake_fd(&f->intake), EPOLLIN, on_records,
				    f) >= 0);
}

static void build(struct fixture *f)
{
	const struct config *c = &f->config;
	struct intake_parts parts = {.source = load_source_base(f->source),
				     .queue_bytes = c->queue_bytes,
				     .period_usec = c->intake_usec};

	scratch_dir_make(f->dir);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_int_equal(timeline_new_within(c->timeline_max, &parts.timeline), 0);
	assert_int_equal(files_new("/proc", c->max_files, &parts.files), 0);
	assert_int_equal(procs_new("/proc", c->max_processes, parts.source, &parts.procs), 0);
	assert_int_equal(intake_init(&f->intake, &parts), 0);
	f->timeline = parts.timeline;
	f->files = parts.files;
	f->procs = parts.procs;
	procs_set_delay(f->procs, PROCS_DELAY_NS);
	build_service(f);
}

static void demolish(struct fixture *f)
{
	sd_event_source_disable_unref(f->io);
	trigger_done(&f->trigger);
	jobs_free(f->jobs);
	store_free(f->store);
	intake_done(&f->intake);
	procs_free(f->procs);
	files_free(f->files);
	timeline_free(f->timeline);
	load_source_free(f->source);
	sd_event_unref(f->event);
	scratch_dir_remove(f->dir);
}

static void take_snapshots(struct fixture *f)
{
	struct trigger_answer answer;
	struct request q;

	request_init(&q, "control", "test");
	q.decode = false;
	for (int i = 0; i < SNAPSHOTS; i++) {
		assert_int_equal(trigger_fire(&f->trigger, &q, &answer), 0);
		while (f->ended <= i)
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	}
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Asks the kernel how long the drain's thread has run so far, and how long it was ready to run and
 * had no CPU. */
static void ask_scheduler(double *ret_ran, double *ret_waited)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t ran = 0, waited = 0;
	struct dirent *e;
	bool found = false;

	assert_non_null(dir);
	while (!found && (e = readdir(dir)) != NULL) {
		char path[300], comm[32] = "";
		FILE *in;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		in = fopen(path, "re");
		if (in == NULL)
			continue;
		found = fgets(comm, sizeof(comm), in) && strcmp(comm, "ptsnap-drain\n") == 0;
		fclose(in);
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		if (!found || (in = fopen(path, "re")) == NULL)
			continue;
		found = fscanf(in, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2;
		fclose(in);
	}
	closedir(dir);
	*ret_ran = (double)ran / 1e9;
	*ret_waited = (double)waited / 1e9;
}

/* Returns how long the drain's thread waited for a CPU, in seconds. */
static double report(const struct fixture *f, double elapsed, double loop)
{
	struct timeline_stats t;
	struct drain_stats d;
	double ran, waited, n;

	timeline_get_stats(f->timeline, &t);
	drain_get_stats(f->intake.drain, &d);
	ask_scheduler(&ran, &waited);
	n = (double)t.records;
	printf("# %" PRIu64 " records, %" PRIu64 " bytes in %.2f s: %.0f records/s, %" PRIu64
	       " lost\n",
	       t.records, f->taken, elapsed, n / elapsed, t.lost);
	printf("# CPU time a record: %.2f us in the drain's thread, %.2f us in the loop\n",
	       ran * 1e6 / n, loop * 1e6 / n);
	printf("# the drain's thread waited %.0f ms for a CPU in all; the queue held at most %" PRIu64
	       " bytes; %" PRIu64 " stalls\n",
	       waited * 1e3, d.queue_most, d.stalls);
	return waited;
}

/* Records were lost, but while the drain's thread was given no CPU: nobody's fault here. */
static bool is_too_busy(const struct fixture *f, double waited)
{
	struct timeline_stats stats;

	timeline_get_stats(f->timeline, &stats);
	return stats.lost > 0 && waited > NO_CPU_SECONDS;
}

/* N processes were started. */
static void check_records(const struct fixture *f, uint64_t n)
{
	struct timeline_stats stats;

	timeline_get_stats(f->timeline, &stats);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(f->intake.bad_records, 0);
	assert_int_equal(f->intake.bad_bytes, 0);
	assert_true(n > 0);
	assert_int_equal(forks, n);
	assert_int_equal(exits, n);
}

static void recorder_snapshots_under_load_lose_no_record(void **state)
{
	static char *const argv[] = {"ptsnapd", "--worker=/no/such/decoder", NULL};
	struct fixture *f = calloc(1, sizeof(*f));
	struct spawner s[SPAWNERS];
	double begin, loop, waited;
	uint64_t n = 0;
	bool too_busy;
	char why[512];

	(void)state;
	assert_int_equal(config_parse(2, argv, &f->config, why, sizeof(why)), 0);
	if (load_source_new(DATA_BYTES, aux_size(), &f->source) < 0) {
		config_done(&f->config);
		free(f);
		skip();
	}
	for (int i = 0; i < SPAWNERS; i++) {
		start_spawner(&s[i]);
		spawners[i] = s[i].pid;
	}
	build(f);
	begin = seconds(CLOCK_MONOTONIC);
	loop = seconds(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < SPAWNERS; i++)
		assert_int_equal(write(s[i].orders[1], "", 1), 1);
	take_snapshots(f);
	for (int i = 0; i < SPAWNERS; i++)
		n += stop_spawner(&s[i]);
	f->taken += intake_drain(&f->intake);
	waited = report(f, seconds(CLOCK_MONOTONIC) - begin,
			seconds(CLOCK_THREAD_CPUTIME_ID) - loop);
	assert_int_equal(store_get_stats(f->store)->done, SNAPSHOTS);
	too_busy = is_too_busy(f, waited);
	if (!too_busy)
		check_records(f, n);
	demolish(f);
	config_done(&f->config);
	free(f);
	if (too_busy)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorder_snapshots_under_load_lose_no_record),
	};

	return cmocka_run_group_tests_name("system/load", tests, NULL, NULL);
}
