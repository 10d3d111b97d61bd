/*
 * From a request to a stored snapshot: joining, refusing, the sender of a signal, and jobs that end
 * badly. The decoder is a program that does not exist; test_job_decode tests decoders.
 */
#include "daemon/trigger/trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "tests/unit/daemon/ring_source.h"
#include "tests/unit/daemon/scratch_dir.h"

struct fixture {
	char dir[SCRATCH_DIR_SIZE];
	struct config config;
	sd_event *event;
	struct ring_source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct intake intake;
	struct store *store;
	struct jobs *jobs;
	struct trigger trigger;
	int captured, ended, progress;
};

static void on_progress(void *userdata, const char *id, enum job_phase phase, uint32_t percent)
{
	struct fixture *f = userdata;

	(void)id;
	(void)phase;
	(void)percent;
	f->progress++;
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

	f->captured++;
	return evidence_new(&from, ret);
}

static void on_ended(void *userdata, const char *id)
{
	struct fixture *f = userdata;

	(void)id;
	f->ended++;
}

static int setup(void **state)
{
	static char *const argv[] = {"ptsnapd", "--worker=/no/such/decoder", NULL};
	const struct store_limits limits = {1 << 20, 20, 2};
	struct fixture *f = calloc(1, sizeof(*f));
	const struct jobs_handler handler = {f,		  on_progress, NULL,
					     on_captured, on_looked,   on_ended};
	struct intake_parts parts;
	char why[512];

	scratch_dir_make(f->dir);
	assert_int_equal(config_parse(2, argv, &f->config, why, sizeof(why)), 0);
	assert_true(sd_event_new(&f->event) >= 0);
	f->source = ring_source_new(1);
	assert_int_equal(timeline_new(1 << 16, 1 << 20, &f->timeline), 0);
	assert_int_equal(files_new("/proc", 8, &f->files), 0);
	assert_int_equal(procs_new("/proc", 8, NULL, &f->procs), 0);
	parts = (struct intake_parts){.source = ring_source_base(f->source),
				      .timeline = f->timeline,
				      .files = f->files,
				      .procs = f->procs,
				      .queue_bytes = 1 << 20,
				      .period_usec = 1000};
	assert_int_equal(intake_init(&f->intake, &parts), 0);
	assert_int_equal(store_new(f->dir, &limits, &f->store, why, sizeof(why)), 0);
	assert_int_equal(jobs_new(f->event, &f->config, ring_source_base(f->source), f->store,
				  &handler, &f->jobs),
			 0);
	assert_int_equal(trigger_init(&f->trigger, ring_source_base(f->source), f->store, f->jobs,
				      &f->config),
			 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	log_listen(NULL);
	trigger_done(&f->trigger);
	jobs_free(f->jobs);
	store_free(f->store);
	intake_done(&f->intake);
	procs_free(f->procs);
	files_free(f->files);
	timeline_free(f->timeline);
	ring_source_free(f->source);
	sd_event_unref(f->event);
	scratch_dir_remove(f->dir);
	config_done(&f->config);
	free(f);
	return 0;
}

static void run_until_ended(struct fixture *f, int n)
{
	while (f->ended < n)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
}

static const struct entry *entry_of(struct fixture *f, const char *id)
{
	const struct entry *e = NULL;

	assert_int_equal(store_find(f->store, id, &e), 0);
	return e;
}

/* Fires Q. ID (ENTRY_ID_SIZE bytes) is set if a snapshot is taken. */
static int fire(struct fixture *f, const struct request *q, char *id)
{
	struct trigger_answer answer;
	int r = trigger_fire(&f->trigger, q, &answer);

	if (r == 0)
		strcpy(id, answer.id);
	else
		assert_true(r < 0 || *answer.why);
	return r;
}

static struct request wish(uint64_t last_bytes, bool decode)
{
	struct request q;

	request_init(&q, "control", "test");
	q.last_bytes = last_bytes;
	q.decode = decode;
	return q;
}

static void trigger_fire_without_decoding_stores_a_bundle(void **state)
{
	struct fixture *f = *state;
	struct request q = wish(1024, false);
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	const struct entry *e;
	char id[ENTRY_ID_SIZE];
	uint64_t size;
	size_t n;

	strcpy(q.reason, "just so");
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 1);
	e = entry_of(f, id);
	assert_int_equal(e->state, ENTRY_DONE);
	assert_int_equal(e->raw_bytes, 1024);
	assert_true(e->report_bytes == ENTRY_ABSENT);
	assert_string_equal(e->reason, "just so");
	assert_int_equal(store_open(f->store, e, STORE_BUNDLE, &fd, &size), 0);
	assert_int_equal(size, e->bundle_bytes);
	assert_int_equal(bundle_open(fd, &b), 0);
	assert_string_equal(bundle_manifest(b)->id, id);
	assert_string_equal(bundle_manifest(b)->reason, "just so");
	assert_int_equal(bundle_manifest(b)->last_bytes, 1024);
	assert_int_equal(bundle_manifest(b)->n_cpus, 1);
	assert_int_equal(bundle_manifest(b)->cpus[0].ring_bytes, RING_SOURCE_AUX);
	assert_false(bundle_manifest(b)->have_cpu); /* an emulated trace has no processor */
	assert_non_null(bundle_cpu(b, 0, &n));
	assert_int_equal(n, 1024);
}

static void trigger_fire_without_a_decoder_fails_and_keeps_the_bundle(void **state)
{
	struct fixture *f = *state;
	struct request q = wish(ENTRY_ABSENT, true);
	char id[ENTRY_ID_SIZE];
	const struct entry *e;
	uint64_t size;
	int fd;

	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 1);
	e = entry_of(f, id);
	assert_int_equal(e->state, ENTRY_FAILED);
	assert_non_null(strstr(e->error, "/no/such/decoder"));
	assert_int_equal(store_open(f->store, e, STORE_BUNDLE, &fd, &size), 0);
	close(fd);
	assert_int_equal(store_get_stats(f->store)->failed, 1);
	/* The next snapshot succeeds. */
	q = wish(ENTRY_ABSENT, false);
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 2);
	assert_int_equal(entry_of(f, id)->state, ENTRY_DONE);
}

static void trigger_fire_during_a_capture_joins_it(void **state)
{
	struct fixture *f = *state;
	struct request first = wish(2048, false), second = wish(1024, false);
	char a[ENTRY_ID_SIZE], b[ENTRY_ID_SIZE];

	assert_int_equal(fire(f, &first, a), 0);
	assert_int_equal(fire(f, &second, b), 0);
	assert_string_equal(a, b);
	assert_int_equal(jobs_running(f->jobs), 1);
	assert_int_equal(f->trigger.joined, 1);
	while (!f->captured)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_int_equal(fire(f, &second, b), 0); /* too late to join */
	assert_string_not_equal(a, b);
	run_until_ended(f, 2);
}

static void trigger_fire_for_more_than_is_captured_does_not_join(void **state)
{
	struct fixture *f = *state;
	struct request small = wish(1024, false), large = wish(2048, false);
	struct request all = wish(ENTRY_ABSENT, false);
	char a[ENTRY_ID_SIZE], b[ENTRY_ID_SIZE], c[ENTRY_ID_SIZE];

	assert_int_equal(fire(f, &small, a), 0);
	assert_int_equal(fire(f, &large, b), 0);
	assert_int_equal(fire(f, &all, c), 0);
	assert_string_not_equal(a, b);
	assert_string_not_equal(b, c);
	run_until_ended(f, 3);
	assert_int_equal(entry_of(f, a)->raw_bytes, 1024);
	assert_int_equal(entry_of(f, b)->raw_bytes, 2048);
	assert_int_equal(entry_of(f, c)->raw_bytes, RING_SOURCE_AUX);
}

static void trigger_fire_joining_asks_for_decoding_too(void **state)
{
	struct fixture *f = *state;
	struct request raw = wish(ENTRY_ABSENT, false), decoded = wish(ENTRY_ABSENT, true);
	char id[ENTRY_ID_SIZE];

	assert_int_equal(fire(f, &raw, id), 0);
	assert_int_equal(fire(f, &decoded, id), 0);
	run_until_ended(f, 1);
	/* Decoding was tried, and there is no decoder. */
	assert_int_equal(entry_of(f, id)->state, ENTRY_FAILED);
}

static void trigger_fire_beyond_the_queue_is_busy(void **state)
{
	struct fixture *f = *state;
	char id[ENTRY_ID_SIZE];
	int n = (int)f->config.max_jobs_queued + 1;

	for (int i = 0; i < n; i++) {
		struct request q = wish(512 * (uint64_t)(i + 1), false);

		assert_int_equal(fire(f, &q, id), 0);
	}
	struct request more = wish(ENTRY_ABSENT, false);
	assert_int_equal(fire(f, &more, id), TRIGGER_BUSY);
	assert_int_equal(f->trigger.refused, 1);
	run_until_ended(f, n);
	assert_int_equal(fire(f, &more, id), 0);
	run_until_ended(f, n + 1);
}

static void trigger_fire_when_closed_is_refused(void **state)
{
	struct fixture *f = *state;
	struct request q = wish(ENTRY_ABSENT, false);
	char id[ENTRY_ID_SIZE];

	f->trigger.closed = true;
	assert_int_equal(fire(f, &q, id), TRIGGER_CLOSED);
	assert_int_equal(jobs_running(f->jobs), 0);
}

static void trigger_signal_names_its_sender(void **state)
{
	struct fixture *f = *state;
	sd_event_source *source = NULL;
	const struct entry *e;
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	assert_true(trigger_add_signal(&f->trigger, f->event, &source) >= 0);
	kill(getpid(), SIGUSR2);
	run_until_ended(f, 1);
	e = store_at(f->store, 0);
	assert_string_equal(e->trigger, "signal");
	assert_int_equal(e->pid, getpid());
	assert_int_equal(e->uid, getuid());
	sd_event_source_disable_unref(source);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

/* Takes the DATA ring and the trace of CPU 0 away, as when its events go. */
static void take_ring(struct fixture *f, enum source_cpu_state state, const char *why)
{
	struct source *s = ring_source_base(f->source);

	s->watch->ring_removed(s->watch->userdata, 0, &s->cpus[0].pt);
	s->cpus[0].pt = (struct ring){.page = s->cpus[0].pt.page};
	s->cpus[0].state = state;
	strcpy(s->cpus[0].why, why);
}

static void trigger_fire_without_any_trace_is_a_snapshot_of_the_sideband(void **state)
{
	struct fixture *f = *state;
	struct request q = wish(ENTRY_ABSENT, false);
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	const struct manifest *m;
	char id[ENTRY_ID_SIZE];
	uint64_t size;

	take_ring(f, SOURCE_CPU_NO_PT, "this processor has no Intel PT");
	ring_source_base(f->source)->clock_is_monotonic = true;
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 1);
	assert_int_equal(entry_of(f, id)->state, ENTRY_DONE);
	assert_int_equal(entry_of(f, id)->raw_bytes, 0);
	assert_int_equal(store_open(f->store, entry_of(f, id), STORE_BUNDLE, &fd, &size), 0);
	assert_int_equal(bundle_open(fd, &b), 0);
	m = bundle_manifest(b);
	assert_string_equal(m->cpus[0].state, "no-pt");
	assert_string_equal(m->cpus[0].why, "this processor has no Intel PT");
	assert_true(m->cpus[0].stop_ns == MANIFEST_ABSENT);
	assert_true(m->cpus[0].stop_order == MANIFEST_ABSENT);
	assert_false(m->cpus[0].stop_timeout);
	assert_true(m->clock_is_monotonic);
	assert_true(m->perf_ns == m->monotonic_ns && m->perf_ns != MANIFEST_ABSENT);
	assert_int_equal(m->n_notes, 1);
	assert_string_equal(m->notes[0].kind, "pt-unavailable");
}

static void trigger_fire_says_what_the_source_knows_of_itself(void **state)
{
	struct fixture *f = *state;
	struct source *s = ring_source_base(f->source);
	struct request q = wish(ENTRY_ABSENT, false);
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	const struct manifest *m;
	char id[ENTRY_ID_SIZE];
	uint64_t size;

	s->preset = "std";
	s->pt_attr = "type=8";
	s->sideband_attr = "type=1";
	s->sideband_missing = "text_poke";
	s->sizes_note = "smaller";
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 1);
	assert_int_equal(store_open(f->store, entry_of(f, id), STORE_BUNDLE, &fd, &size), 0);
	assert_int_equal(bundle_open(fd, &b), 0);
	m = bundle_manifest(b);
	assert_string_equal(m->preset, "std");
	assert_string_equal(m->pt_attr, "type=8");
	assert_string_equal(m->sideband_attr, "type=1");
	assert_string_equal(m->sideband_missing, "text_poke");
	assert_string_equal(m->sizes_note, "smaller");
	assert_string_equal(m->cpus[0].state, "tracing");
	assert_null(m->cpus[0].why);
	assert_int_equal(m->cpus[0].stop_order, 0);
	assert_int_equal(m->n_notes, 0);
}

/* The memory for the copy was made when there was no ring. */
static void jobs_fit_area_ring_that_came_is_copied_whole(void **state)
{
	struct fixture *f = *state;
	struct source *s = ring_source_base(f->source);
	const struct ring ring = s->cpus[0].pt;
	struct request q = wish(ENTRY_ABSENT, false);
	char id[ENTRY_ID_SIZE];

	take_ring(f, SOURCE_CPU_BUSY, "perf");
	jobs_fit_area(f->jobs);
	s->cpus[0].pt = ring;
	s->cpus[0].pt.aux_size = RING_SOURCE_AUX;
	s->cpus[0].state = SOURCE_CPU_TRACING;
	s->watch->ring_added(s->watch->userdata, 0, &s->cpus[0].pt, -1);
	jobs_fit_area(f->jobs);
	assert_int_equal(fire(f, &q, id), 0);
	jobs_fit_area(f->jobs);
	run_until_ended(f, 1);
	assert_int_equal(entry_of(f, id)->raw_bytes, RING_SOURCE_AUX);
}

static void jobs_free_with_jobs_under_way_waits_for_them(void **state)
{
	struct fixture *f = *state;
	struct request small = wish(1024, true), all = wish(ENTRY_ABSENT, true);
	char id[ENTRY_ID_SIZE];

	assert_int_equal(fire(f, &small, id), 0);
	assert_int_equal(fire(f, &all, id), 0);
	/* teardown frees the jobs, and the loop has not run. */
}

/* The trigger NAME, to be changed as a file would change it. */
static struct trigger_object *object(struct fixture *f, const char *name)
{
	return trigger_set_find(f->config.triggers, name);
}

static void trigger_fire_beyond_the_burst_is_limited_and_says_until_when(void **state)
{
	struct fixture *f = *state;
	struct trigger_answer answer;
	struct request q = wish(ENTRY_ABSENT, false);

	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_BURST, "1", 1), 0);
	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_INTERVAL, "1h", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_fire(&f->trigger, &q, &answer), 0);
	/* Joining takes no token and is not refused. */
	assert_int_equal(trigger_fire(&f->trigger, &q, &answer), 0);
	run_until_ended(f, 1);
	assert_int_equal(trigger_fire(&f->trigger, &q, &answer), TRIGGER_LIMITED);
	assert_true(answer.retry_usec > 3000000000u && answer.retry_usec <= 3600000000u);
	assert_int_equal(f->trigger.limited, 1);
	assert_int_equal(f->trigger.gate.triggers[0].fired, 1);
	assert_int_equal(f->trigger.gate.triggers[0].joined, 1);
	assert_int_equal(f->trigger.gate.triggers[0].limited, 1);
}

/* The fields of the last log line with the message id ID. */
struct told {
	const char *id;
	int n, error;
	char unit[ENTRY_UNIT_SIZE], trigger[ENTRY_NAME_SIZE];
};

static void on_told(void *userdata, int priority, const char *id, const struct log_fields *fields,
		    const char *text)
{
	struct told *t = userdata;

	(void)priority;
	(void)text;
	if (!id || strcmp(id, t->id) != 0)
		return;
	t->n++;
	t->error = fields->error;
	snprintf(t->unit, sizeof(t->unit), "%s", fields->trigger_unit);
	snprintf(t->trigger, sizeof(t->trigger), "%s", fields->trigger);
}

static void count_refusals(void *userdata, int priority, const char *id,
			   const struct log_fields *fields, const char *text)
{
	(void)priority;
	(void)id;
	(void)fields;
	*(unsigned *)userdata += strstr(text, "SIGUSR2: no snapshot") != NULL;
}

/* Whoever may signal the recorder cannot fill the log, and the status has all. */
static void trigger_signals_that_are_refused_are_counted_and_few_are_logged(void **state)
{
	struct fixture *f = *state;
	sd_event_source *source = NULL;
	unsigned lines = 0;
	const struct log_listener listener = {count_refusals, &lines};
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	assert_true(trigger_add_signal(&f->trigger, f->event, &source) >= 0);
	f->trigger.closed = true;
	log_listen(&listener);
	/* Each is read before the next is sent, or the kernel would merge them. */
	for (uint64_t i = 1; i <= 100; i++) {
		kill(getpid(), SIGUSR2);
		while (f->trigger.n < i)
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	}
	log_listen(NULL);
	assert_int_equal(f->trigger.refused, 100);
	assert_in_range(lines, 1, 20);
	assert_int_equal(lines + f->trigger.untold, 100);
	sd_event_source_disable_unref(source);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

static void trigger_fire_that_is_limited_names_the_unit_in_the_journal(void **state)
{
	struct fixture *f = *state;
	struct told told = {.id = LOG_EVENT_RATE_LIMITED};
	const struct log_listener listener = {on_told, &told};
	char id[ENTRY_ID_SIZE];
	struct request q;

	assert_int_equal(trigger_object_set(object(f, "unit"), TRIGGER_BURST, "1", 1), 0);
	assert_int_equal(trigger_object_set(object(f, "unit"), TRIGGER_INTERVAL, "1h", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	request_init(&q, "unit", "");
	strcpy(q.unit, "web.service");
	assert_int_equal(trigger_choose(&f->trigger, "unit", &q), 0);
	q.decode = false;
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 1);
	log_listen(&listener);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fire(f, &q, id), TRIGGER_LIMITED);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.unit, "web.service");
	assert_string_equal(told.trigger, "unit");
	/* The limit of users is logged once, too. */
	q.uid = 12345;
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 2);
	assert_int_equal(fire(f, &q, id), TRIGGER_LIMITED);
	assert_int_equal(told.n, 2);
	log_listen(NULL);
}

static void trigger_fire_that_joins_names_its_unit_in_the_journal(void **state)
{
	struct fixture *f = *state;
	struct told told = {.id = LOG_EVENT_SNAPSHOT_BEGUN};
	const struct log_listener listener = {on_told, &told};
	struct request q = wish(ENTRY_ABSENT, false);
	char id[ENTRY_ID_SIZE], again[ENTRY_ID_SIZE];

	assert_int_equal(fire(f, &q, id), 0);
	request_init(&q, "unit", "");
	strcpy(q.unit, "web.service");
	assert_int_equal(trigger_choose(&f->trigger, "unit", &q), 0);
	log_listen(&listener);
	assert_int_equal(fire(f, &q, again), 0);
	assert_string_equal(again, id);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.unit, "web.service");
	/* Users are not logged, as they could fill the journal. */
	q.uid = 12345;
	assert_int_equal(fire(f, &q, again), 0);
	assert_int_equal(told.n, 1);
	run_until_ended(f, 1);
}

static void trigger_fire_that_cannot_be_decoded_tells_the_error(void **state)
{
	struct fixture *f = *state;
	struct told told = {.id = LOG_EVENT_DECODE_FAILED};
	const struct log_listener listener = {on_told, &told};
	struct request q = wish(ENTRY_ABSENT, true);
	char id[ENTRY_ID_SIZE];

	log_listen(&listener);
	assert_int_equal(fire(f, &q, id), 0);
	run_until_ended(f, 1);
	assert_int_equal(told.n, 1);
	assert_int_equal(told.error, ENOENT);
	log_listen(NULL);
}

static void trigger_fire_when_busy_takes_no_token(void **state)
{
	struct fixture *f = *state;
	char id[ENTRY_ID_SIZE];
	struct request q = wish(1, false);

	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_BURST, "7", 1), 0);
	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_INTERVAL, "1h", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	/* Each request asks for more than the one before, so none joins. */
	for (q.last_bytes = 1; !jobs_full(f->jobs); q.last_bytes++)
		assert_int_equal(fire(f, &q, id), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(fire(f, &q, id), TRIGGER_BUSY);
	assert_int_equal(bucket_tokens(&f->trigger.gate.triggers[0].own.bucket, 0),
			 7 - f->trigger.gate.triggers[0].fired);
	assert_int_equal(f->trigger.gate.triggers[0].refused, 20);
	run_until_ended(f, (int)f->trigger.gate.triggers[0].fired);
}

/* Users fire as often as they can, also the trigger that is for the unit. */
static void trigger_fire_for_a_failed_unit_passes_however_often_users_fire(void **state)
{
	struct fixture *f = *state;
	char id[ENTRY_ID_SIZE];
	struct request user, watched;
	int n = 0;

	assert_int_equal(trigger_object_set(object(f, "unit"), TRIGGER_BURST, "1", 1), 0);
	assert_int_equal(trigger_object_set(object(f, "unit"), TRIGGER_INTERVAL, "1h", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	request_init(&user, "control", "test");
	strcpy(user.unit, "web.service");
	assert_int_equal(trigger_choose(&f->trigger, "unit", &user), 0);
	user.decode = false;
	user.uid = 12345;
	for (user.last_bytes = 1; fire(f, &user, id) == 0; user.last_bytes++)
		n++;
	assert_int_equal(n, 1);
	/* Users fill the queue by another trigger, but for the part that is not theirs. */
	strcpy(user.trigger, "control");
	for (user.uid = 1; user.uid < 50; user.uid++, user.last_bytes++)
		n += fire(f, &user, id) == 0;
	assert_true(jobs_full_for_users(f->jobs));
	assert_false(jobs_full(f->jobs));

	request_init(&watched, "unit", "");
	strcpy(watched.unit, "web.service");
	assert_int_equal(trigger_choose(&f->trigger, "unit", &watched), 0);
	watched.decode = false;
	assert_int_equal(fire(f, &watched, id), 0);
	assert_int_equal(fire(f, &watched, id), 0); /* joins */
	assert_string_equal(entry_of(f, id)->unit, "web.service");
	run_until_ended(f, n + 1);
	assert_int_equal(fire(f, &watched, id), TRIGGER_LIMITED);
}

static void trigger_fire_before_the_ring_is_filled_is_refused_with_the_reason(void **state)
{
	struct fixture *f = *state;
	struct trigger_answer answer;
	struct request q = wish(ENTRY_ABSENT, false);

	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_MIN_FILL, "1h", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_fire(&f->trigger, &q, &answer), TRIGGER_UNFILLED);
	assert_non_null(strstr(answer.why, "trigger control wants 3600000 ms of it (MinFill=)"));
	f->trigger.fill.since_ns[0] = 1; /* traced since the host booted */
	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_MIN_FILL, "1us", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_fire(&f->trigger, &q, &answer), 0);
	run_until_ended(f, 1);
}

static void trigger_fire_of_one_that_is_not_enabled_is_unknown(void **state)
{
	struct fixture *f = *state;
	char id[ENTRY_ID_SIZE];
	struct request q = wish(ENTRY_ABSENT, false);

	assert_int_equal(trigger_object_set(object(f, "control"), TRIGGER_ENABLED, "no", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(fire(f, &q, id), TRIGGER_UNKNOWN);
	assert_int_equal(trigger_choose(&f->trigger, "control", &q), TRIGGER_UNKNOWN);
}

static void trigger_choose_takes_what_the_trigger_does(void **state)
{
	struct fixture *f = *state;
	struct trigger_object *o = object(f, "unit");
	struct request q;

	assert_int_equal(trigger_object_set(o, TRIGGER_LAST_TIME, "2s", 1), 0);
	assert_int_equal(trigger_object_set(o, TRIGGER_DECODE, "no", 1), 0);
	assert_int_equal(trigger_object_set(o, TRIGGER_REASON, "it failed", 1), 0);
	assert_int_equal(trigger_object_set(o, TRIGGER_UNITS, "web.*", 1), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	request_init(&q, "control", "test");
	strcpy(q.unit, "web.service");
	assert_int_equal(trigger_choose(&f->trigger, "unit", &q), 0);
	assert_string_equal(q.kind, "unit");
	assert_string_equal(q.name, "unit");
	assert_string_equal(q.reason, "it failed");
	assert_int_equal(q.last_ns, 2000000000);
	assert_false(q.decode);
	strcpy(q.unit, "db.service");
	assert_int_equal(trigger_choose(&f->trigger, "unit", &q), TRIGGER_UNKNOWN);
	assert_int_equal(trigger_choose(&f->trigger, "signal", &q), TRIGGER_UNKNOWN);
	assert_int_equal(trigger_choose(&f->trigger, "exit", &q), TRIGGER_UNKNOWN);
	assert_int_equal(trigger_choose(&f->trigger, "none", &q), TRIGGER_UNKNOWN);
	assert_int_equal(trigger_choose_watched(&f->trigger, &q), TRIGGER_UNKNOWN);
}

static void trigger_fire_names_unit_and_labels_in_the_entry(void **state)
{
	struct fixture *f = *state;
	struct request q = wish(ENTRY_ABSENT, false);
	char id[ENTRY_ID_SIZE];

	strcpy(q.unit, "web.service");
	strcpy(q.sender_unit, "cron.service"); /* is set already, so it is not looked up */
	q.pid = (uint64_t)getpid();
	assert_int_equal(labels_add(&q.labels, "a", "b"), 0);
	assert_int_equal(fire(f, &q, id), 0);
	assert_string_equal(entry_of(f, id)->unit, "web.service");
	assert_string_equal(entry_of(f, id)->sender_unit, "cron.service");
	assert_string_equal(labels_get(&entry_of(f, id)->labels, "a"), "b");
	run_until_ended(f, 1);
	assert_string_equal(entry_of(f, id)->unit, "web.service");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(trigger_fire_beyond_the_burst_is_limited_and_says_until_when),
		CASE(trigger_signals_that_are_refused_are_counted_and_few_are_logged),
		CASE(trigger_fire_that_is_limited_names_the_unit_in_the_journal),
		CASE(trigger_fire_that_joins_names_its_unit_in_the_journal),
		CASE(trigger_fire_that_cannot_be_decoded_tells_the_error),
		CASE(trigger_fire_when_busy_takes_no_token),
		CASE(trigger_fire_for_a_failed_unit_passes_however_often_users_fire),
		CASE(trigger_fire_before_the_ring_is_filled_is_refused_with_the_reason),
		CASE(trigger_fire_of_one_that_is_not_enabled_is_unknown),
		CASE(trigger_choose_takes_what_the_trigger_does),
		CASE(trigger_fire_names_unit_and_labels_in_the_entry),
		CASE(trigger_fire_without_decoding_stores_a_bundle),
		CASE(trigger_fire_without_a_decoder_fails_and_keeps_the_bundle),
		CASE(trigger_fire_during_a_capture_joins_it),
		CASE(trigger_fire_for_more_than_is_captured_does_not_join),
		CASE(trigger_fire_joining_asks_for_decoding_too),
		CASE(trigger_fire_beyond_the_queue_is_busy),
		CASE(trigger_fire_when_closed_is_refused),
		CASE(trigger_signal_names_its_sender),
		CASE(trigger_fire_without_any_trace_is_a_snapshot_of_the_sideband),
		CASE(trigger_fire_says_what_the_source_knows_of_itself),
		CASE(jobs_fit_area_ring_that_came_is_copied_whole),
		CASE(jobs_free_with_jobs_under_way_waits_for_them),
	};

	return cmocka_run_group_tests_name("daemon/trigger", tests, NULL, NULL);
}
