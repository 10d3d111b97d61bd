/*
 * The kernel's own records of a host under load, against what /proc says: at any moment the
 * timeline knows the names and the mappings of every process that did not change meanwhile. And the
 * beginning: what processes do while /proc is being read for the first time is not missed.
 * PTSNAP_LIVE_SECONDS: how long there is load (default 10).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procscan.h"
#include "daemon/record/intake.h"
#include "proto/base.h"
#include "proto/bytes.h"
#include "tests/support/child.h"
#include "tests/system/load_source.h"
#include "tests/system/proc_oracle.h"

#define DATA_BYTES   (512u << 10)
#define AUX_BYTES    4096u
#define TIMELINE_MAX (4ull << 20) /* so little that most is folded */
#define WRITTEN_MAX  (512u << 20)
#define RACERS	     6
#define MOMENT_MSEC  400
#define DEFAULT_TIME 10
#define SECOND_NS    1000000000u

struct recorder {
	struct load_source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct intake intake;
};

static void recorder_stop(struct recorder *r)
{
	intake_done(&r->intake);
	procs_free(r->procs);
	files_free(r->files);
	timeline_free(r->timeline);
	load_source_free(r->source);
}

/* False: perf events are not to be had. */
static bool recorder_start(struct recorder *r)
{
	struct intake_parts parts = {.queue_bytes = 64u << 20, .period_usec = 5000};

	*r = (struct recorder){0};
	if (load_source_new(DATA_BYTES, AUX_BYTES, &r->source) < 0)
		return false;
	assert_int_equal(timeline_new_within(TIMELINE_MAX, &r->timeline), 0);
	assert_int_equal(files_new("/proc", 64, &r->files), 0);
	assert_int_equal(procs_new("/proc", 4096, NULL, &r->procs), 0);
	files_use(r->files, r->timeline, r->procs);
	procs_set_delay(r->procs, SECOND_NS);
	parts.source = load_source_base(r->source);
	parts.timeline = r->timeline;
	parts.files = r->files;
	parts.procs = r->procs;
	assert_int_equal(intake_init(&r->intake, &parts), 0);
	return true;
}

static void recorder_run(struct recorder *r, uint64_t until)
{
	struct pollfd p = {.fd = intake_fd(&r->intake), .events = POLLIN};

	for (uint64_t now = now_ns(CLOCK_MONOTONIC); now < until; now = now_ns(CLOCK_MONOTONIC))
		if (poll(&p, 1, (int)((until - now) / 1000000) + 1) > 0)
			intake_some(&r->intake);
}

static uint64_t recorder_lost(const struct recorder *r)
{
	struct timeline_stats stats;

	timeline_get_stats(r->timeline, &stats);
	return stats.lost + stats.dropped;
}

/* Compares what a snapshot taken now would say with /proc before and after it. */
static void recorder_check(struct recorder *r, struct oracle_result *result)
{
	struct oracle *before = oracle_read(), *after;
	struct timeline *loaded = NULL;
	uint64_t time = now_ns(CLOCK_MONOTONIC), bad;
	struct bytes_out out;

	intake_drain(&r->intake);
	after = oracle_read();
	bytes_out_init(&out, WRITTEN_MAX);
	assert_int_equal(timeline_write(r->timeline, &out), 0);
	assert_int_equal(timeline_load(out.data, out.size, &loaded, &bad), 0);
	assert_int_equal(bad, 0);
	oracle_compare(before, after, loaded, time, result);
	timeline_free(loaded);
	bytes_out_done(&out);
	oracle_free(before);
	oracle_free(after);
}

static void show(const char *what, const struct oracle_result *r)
{
	printf("# %s: %" PRIu64 " processes, %" PRIu64 " mappings compared, %" PRIu64
	       " changed meanwhile, %" PRIu64 " wrong, %" PRIu64 " stale mappings\n",
	       what, r->processes, r->mappings, r->changed, r->wrong, r->stale);
	if (r->wrong)
		printf("# %s\n", r->first_wrong);
}

/* --- Racers: they change on command, and say when they have --- */

struct racer {
	pid_t pid;
	int orders[2], answers[2];
};

static void map_code(const char *self)
{
	int fd = open(self, O_RDONLY | O_CLOEXEC);

	if (fd < 0 ||
	    mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096) == MAP_FAILED ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		    MAP_FAILED)
		_exit(EXIT_FAILURE);
	close(fd);
}

/* The orders: map something, be called something else, fork a child that maps more, execute. */
static int racer_main(int orders, int answers)
{
	char order, number[2][16], *const argv[] = {"racer", "--racer", number[0], number[1], NULL};
	static unsigned n;

	snprintf(number[0], sizeof(number[0]), "%d", orders);
	snprintf(number[1], sizeof(number[1]), "%d", answers);
	if (write(answers, "", 1) != 1)
		return EXIT_FAILURE;
	while (read(orders, &order, 1) == 1) {
		if (order == 'm')
			map_code("/proc/self/exe");
		if (order == 'n')
			prctl(PR_SET_NAME, n++ % 2 ? "one" : "other");
		if (order == 'e')
			execv("/proc/self/exe", argv);
		if (order == 'f' && test_fork() == 0) {
			map_code("/proc/self/exe");
			order = 0;
		}
		/* The child says that it is done, too. */
		if (write(answers, "", 1) != 1)
			return EXIT_FAILURE;
		while (order == 0)
			pause();
	}
	return EXIT_SUCCESS;
}

static void racer_order(const struct racer *r, char order)
{
	char byte;

	assert_int_equal(write(r->orders[1], &order, 1), 1);
	for (int n = order == 'f' ? 2 : 1; n > 0; n--)
		assert_int_equal(read(r->answers[0], &byte, 1), 1);
}

static void racer_start(struct racer *r)
{
	char byte;

	assert_int_equal(pipe(r->orders), 0);
	assert_int_equal(pipe(r->answers), 0);
	r->pid = test_fork();
	if (r->pid == 0) {
		close(r->orders[1]);
		close(r->answers[0]);
		_exit(racer_main(r->orders[0], r->answers[1]));
	}
	close(r->orders[0]);
	close(r->answers[1]);
	assert_int_equal(read(r->answers[0], &byte, 1), 1);
}

static void racer_stop(struct racer *r)
{
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	close(r->orders[1]);
	close(r->answers[0]);
}

/* --- The race --- */

struct race {
	struct racer racers[RACERS];
	uint32_t last; /* whose records came last */
	struct bytes_out records;
};

/* Between the records of one racer all of them change: those that were read already, this one, of
 * which only the name was read, and those that are still to come. */
static int on_record(void *userdata, const void *record, size_t size)
{
	struct race *race = userdata;
	struct perfrecord r;

	bytes_put_block(&race->records, record, size);
	assert_int_equal(perfrecord_parse(record, size, &r), 0);
	for (int i = 0; i < RACERS; i++) {
		if (r.pid != (uint32_t)race->racers[i].pid || r.pid == race->last)
			continue;
		race->last = r.pid;
		for (int k = 0; k < RACERS; k++)
			racer_order(&race->racers[k], "mnef"[(i + k) % 4]);
	}
	return 0;
}

static void feed(struct recorder *r, const struct bytes_out *records)
{
	struct perfrecord record;

	assert_int_equal(records->error, 0);
	for (size_t at = 0; at < records->size; at += record.size) {
		assert_int_equal(perfrecord_parse(records->data + at, records->size - at, &record),
				 0);
		intake_record(&r->intake, records->data + at, record.size);
	}
}

/* Rings first and /proc then, as the recorder does it; or the other way round. */
static bool run_race(bool rings_first, struct oracle_result *result)
{
	struct race race = {0};
	struct recorder r;
	bool ok = true;

	bytes_out_init(&race.records, WRITTEN_MAX);
	for (int i = 0; i < RACERS; i++)
		racer_start(&race.racers[i]);
	if (rings_first)
		ok = recorder_start(&r);
	if (ok)
		assert_int_equal(procscan_all("/proc", on_record, &race), 0);
	if (!rings_first)
		ok = recorder_start(&r);
	if (ok) {
		feed(&r, &race.records);
		recorder_check(&r, result);
		ok = recorder_lost(&r) == 0;
		recorder_stop(&r);
	}
	for (int i = 0; i < RACERS; i++)
		racer_stop(&race.racers[i]);
	bytes_out_done(&race.records);
	return ok;
}

static void scan_and_records_together_miss_nothing(void **state)
{
	struct oracle_result result = {0};

	(void)state;
	if (!run_race(true, &result))
		skip();
	show("rings before the scan", &result);
	assert_true(result.processes > 2 * RACERS);
	assert_int_equal(result.wrong, 0);
}

/* The race is a real one: the wrong order loses it. */
static void scan_before_the_rings_misses_something(void **state)
{
	struct oracle_result result = {0};

	(void)state;
	if (!run_race(false, &result))
		skip();
	show("rings after the scan", &result);
	assert_true(result.wrong > 0);
}

/* --- Load --- */

static const char *const loads[] = {
	"while :; do /bin/true; ls / >/dev/null; (exec sleep 0.01); done",
	"while :; do sh -c 'sleep 0.3 & exec cat /proc/self/maps' >/dev/null; sleep 0.02; done",
	/* Libraries, threads, new code in memory. */
	"exec python3 -c \"\nimport ctypes, mmap, os, threading, time\n"
	"def work():\n"
	"    import sqlite3, decimal, zlib, lzma, bz2, ssl\n"
	"    for i in range(10**9):\n"
	"        m = mmap.mmap(-1, 4096 * (1 + i % 4), prot=7)\n"
	"        if i % 8 == 0:\n"
	"            keep.append(m)\n"
	"        if os.fork() == 0:\n"
	"            time.sleep(0.05)\n"
	"            if i % 3 == 0:\n"
	"                os.execvp('python3', ['python3', '-c', 'import time; time.sleep(0.5)'])\n"
	"            os._exit(0)\n"
	"        os.wait()\n"
	"keep = []\n"
	"threading.Thread(target=work).start()\n\"",
	"command -v node >/dev/null || exit 0; while :; do exec 2>/dev/null; node -e '"
	"let s = 0; function f(i) { return i * 3 % 7; }"
	"for (let i = 0; i < 5e7; i++) s += f(i);'; done",
};

static void start_load(pid_t pids[ARRAY_SIZE(loads)])
{
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		pids[i] = test_fork();
		if (pids[i] != 0)
			continue;
		setpgid(0, 0);
		execl("/bin/sh", "sh", "-c", loads[i], NULL);
		_exit(127);
	}
}

/* With all that they have started. */
static void stop_load(const pid_t pids[ARRAY_SIZE(loads)])
{
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		kill(-pids[i], SIGKILL);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

static void timeline_agrees_with_proc_under_load(void **state)
{
	const char *text = getenv("PTSNAP_LIVE_SECONDS");
	uint64_t seconds = text ? strtoull(text, NULL, 10) : DEFAULT_TIME, end;
	struct oracle_result result = {0};
	struct timeline_stats stats;
	pid_t pids[ARRAY_SIZE(loads)];
	uint64_t moments = 0, lost;
	struct recorder r;

	(void)state;
	if (!recorder_start(&r))
		skip();
	start_load(pids);
	assert_int_equal(procscan_all("/proc", intake_record, &r.intake), 0);
	for (end = now_ns(CLOCK_MONOTONIC) + seconds * SECOND_NS;
	     now_ns(CLOCK_MONOTONIC) < end && !result.wrong; moments++) {
		recorder_run(&r, now_ns(CLOCK_MONOTONIC) + MOMENT_MSEC * 1000000u);
		recorder_check(&r, &result);
		if (recorder_lost(&r))
			break;
	}
	stop_load(pids);
	timeline_get_stats(r.timeline, &stats);
	lost = recorder_lost(&r);
	recorder_stop(&r);
	show("under load", &result);
	printf("# %" PRIu64 " moments, %" PRIu64 " records, %" PRIu64 " of them folded, %" PRIu64
	       " lost\n",
	       moments, stats.records, stats.folded, lost);
	if (lost)
		skip();
	assert_true(moments > 0 && result.processes > moments);
	assert_int_equal(result.wrong, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan_and_records_together_miss_nothing),
		cmocka_unit_test(scan_before_the_rings_misses_something),
		cmocka_unit_test(timeline_agrees_with_proc_under_load),
	};

	if (argc == 4 && strcmp(argv[1], "--racer") == 0)
		return racer_main(atoi(argv[2]), atoi(argv[3]));
	return cmocka_run_group_tests_name("system/live", tests, NULL, NULL);
}
