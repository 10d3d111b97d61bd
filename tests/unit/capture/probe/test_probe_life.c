/*
 * capture/probe: what a probe holds, and that nothing of it stays.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/capture/probe/probing.h"
#ifdef HAVE_LIBBPF
#include <bpf/bpf.h>
#endif

#include "proto/base.h"
#include "tests/support/child.h"

#define SELF "/proc/self/exe"

__attribute__((noinline, noclone, used)) void target_nothing(void);
__attribute__((noinline, noclone, used)) void target_nothing(void)
{
	__asm__ volatile("");
}

static bool has_breakpoint(void)
{
	return *(volatile uint8_t *)target_nothing == 0xcc;
}

static const struct probe_spec on_entry = {
	.kind = PROBE_ENTRY, .file = SELF, .symbol = "target_nothing"};

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* One specification of each kind. */
static void each_kind(struct probe_spec ret[_PROBE_KINDS])
{
	for (unsigned k = 0; k < _PROBE_KINDS; k++)
		ret[k] = (struct probe_spec){.kind = (enum probe_kind)k, .comm = "no such name"};
	ret[PROBE_ENTRY].file = ret[PROBE_RETURN].file = SELF;
	ret[PROBE_LATENCY].file = ret[PROBE_SPAN].file = SELF;
	ret[PROBE_ENTRY].symbol = ret[PROBE_RETURN].symbol = "target_nothing";
	ret[PROBE_LATENCY].symbol = ret[PROBE_SPAN].symbol = "target_nothing";
	ret[PROBE_SPAN].to = "main";
	ret[PROBE_LATENCY].limit_ns = ret[PROBE_SPAN].limit_ns = 1;
	ret[PROBE_SYSCALL].limit_ns = ret[PROBE_WAKEUP].limit_ns = ret[PROBE_OFFCPU].limit_ns = 1;
	ret[PROBE_TRACEPOINT].tracepoint = "sched:sched_switch";
	ret[PROBE_USDT] = on_entry; /* this program has no static probe */
}

static void free_of_each_kind_closes_every_descriptor(void **state)
{
	struct probe_spec specs[_PROBE_KINDS];
	struct seen seen;

	(void)state;
	each_kind(specs);
	/* libbpf looks at the kernel once, and keeps what it found. */
	probe_free(arm(&specs[0], &seen));
	for (unsigned k = 0; k < _PROBE_KINDS; k++) {
		unsigned before = open_descriptors();
		struct probe *p;

		if (specs[k].kind == PROBE_TRACEPOINT &&
		    access("/sys/kernel/tracing/events", F_OK) < 0)
			continue;
		p = arm(&specs[k], &seen);
		assert_true(open_descriptors() > before);
		assert_int_equal(collect(p, &seen), 0);
		probe_free(p);
		assert_int_equal(open_descriptors(), before);
	}
}

static void refusal_closes_every_descriptor(void **state)
{
	struct probe_spec spec = on_entry;
	unsigned before;

	(void)state;
	spec.kind = PROBE_SPAN;
	spec.limit_ns = 1;
	spec.to = "no_such";
	expect_refusal(&spec, -ENOENT, "no function no_such");
	before = open_descriptors();
	expect_refusal(&spec, -ENOENT, "no function no_such");
	assert_int_equal(open_descriptors(), before);
	assert_false(has_breakpoint());
}

static void descriptor_is_readable_while_events_wait(void **state)
{
	struct seen seen;
	struct probe *p = arm(&on_entry, &seen);
	struct pollfd fd = {.fd = probe_fd(p), .events = POLLIN};

	(void)state;
	assert_int_equal(poll(&fd, 1, 0), 0);
	target_nothing();
	/* The kernel wakes readers up by an interrupt of its own, a moment later. */
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(probe_dispatch(p), 1);
	assert_int_equal(poll(&fd, 1, 0), 0);
	probe_free(p);
}

static void events_beyond_the_ring_are_counted(void **state)
{
	struct seen seen;
	struct probe *p = arm(&on_entry, &seen);

	(void)state;
	for (int i = 0; i < 5000; i++)
		target_nothing();
	assert_true(probe_missed(p) > 0);
	assert_true(probe_dispatch(p) > 64);
	assert_int_equal(seen.n + probe_missed(p), 5000);
	/* And it goes on. */
	target_nothing();
	assert_int_equal(probe_dispatch(p), 1);
	probe_free(p);
}

static void two_probes_of_one_place_do_not_disturb_each_other(void **state)
{
	struct seen one_seen, two_seen;
	struct probe *one = arm(&on_entry, &one_seen), *two = arm(&on_entry, &two_seen);

	(void)state;
	target_nothing();
	probe_free(one);
	assert_true(has_breakpoint());
	target_nothing();
	assert_int_equal(collect(two, &two_seen), 2);
	probe_free(two);
	assert_false(has_breakpoint());
}

#ifdef HAVE_LIBBPF
/* The newest program in the kernel. */
static uint32_t newest_program(void)
{
	uint32_t id = 0;

	while (bpf_prog_get_next_id(id, &id) == 0)
		;
	return id;
}

/* Whether a program with an id above FROM exists that has the name of one of ours. */
static bool exists_above(uint32_t from)
{
	for (uint32_t id = from; bpf_prog_get_next_id(id, &id) == 0;) {
		CLEANUP_CLOSE int fd = bpf_prog_get_fd_by_id(id);
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
		    strcmp(info.name, "user_place") == 0)
			return true;
	}
	return false;
}

static void arm_and_wait(int go)
{
	char *error = NULL;
	struct probe *p;

	if (probe_arm(&on_entry, NULL, NULL, &p, &error) < 0 || write(go, "", 1) != 1)
		_exit(9);
	for (;;)
		pause();
}

static void process_that_is_killed_leaves_nothing(void **state)
{
	struct seen seen;
	uint32_t before;
	int ends[2];
	char byte;
	pid_t pid;

	(void)state;
	probe_free(arm(&on_entry, &seen));
	before = newest_program();
	assert_int_equal(pipe(ends), 0);
	pid = test_fork();
	if (pid == 0)
		arm_and_wait(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_true(has_breakpoint());
	assert_true(exists_above(before));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* The kernel frees a program when no CPU can still execute the program. */
	while (has_breakpoint() || exists_above(before))
		usleep(1000);
	close(ends[0]);
	close(ends[1]);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_of_each_kind_closes_every_descriptor),
		cmocka_unit_test(refusal_closes_every_descriptor),
		cmocka_unit_test(descriptor_is_readable_while_events_wait),
		cmocka_unit_test(events_beyond_the_ring_are_counted),
		cmocka_unit_test(two_probes_of_one_place_do_not_disturb_each_other),
#ifdef HAVE_LIBBPF
		cmocka_unit_test(process_that_is_killed_leaves_nothing),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
