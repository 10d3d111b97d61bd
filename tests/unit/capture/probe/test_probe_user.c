/*
 * capture/probe: functions, returns, latency, spans and static probes of this program.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/unit/capture/probe/probing.h"

#define MS     1000000ull
#define HOUR   (3600000 * MS)
#define SELF   "/proc/self/exe"
#define TARGET __attribute__((noinline, noclone, used))

/* What the probes watch. Each function does something that the compiler cannot leave out. */
volatile int sink;
int target_triple(int n);
int target_beside(int n);
void target_slow(uint64_t ns);
int target_recurse(int depth, uint64_t ns);
void target_jump(jmp_buf back);
void target_first(void);
void target_second(void);
void target_static_probes(void);
void target_asm(void);

__asm__(".text\n"
	".globl target_asm\n"
	".type target_asm, @function\n"
	"target_asm:\n"
	"	nop\n"
	"	nop\n"
	"	nop\n"
	"	ret\n"
	".size target_asm, .-target_asm\n");

TARGET int target_triple(int n)
{
	sink++;
	return 3 * n;
}

TARGET int target_beside(int n)
{
	sink--;
	return 5 * n;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS))};

	while (nanosleep(&t, &t) < 0)
		;
}

TARGET void target_slow(uint64_t ns)
{
	sleep_ns(ns);
	sink++;
}

TARGET int target_recurse(int depth, uint64_t ns)
{
	if (depth == 0)
		sleep_ns(ns);
	else
		sink += target_recurse(depth - 1, ns);
	return depth;
}

TARGET void target_jump(jmp_buf back)
{
	sink++;
	longjmp(back, 1);
}

TARGET void target_first(void)
{
	sink++;
}

TARGET void target_second(void)
{
	sink += 2;
}

/* As sys/sdt.h of SystemTap writes it. */
#define STATIC_PROBE(name, semaphore)                                                       \
	__asm__ volatile(                                                                   \
		"990: nop\n"                                                                \
		".pushsection .note.stapsdt, \"\", \"note\"\n"                              \
		".balign 4\n"                                                               \
		".4byte 992f - 991f, 994f - 993f, 3\n"                                      \
		"991: .asciz \"stapsdt\"\n"                                                 \
		"992: .balign 4\n"                                                          \
		"993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                         \
		".asciz \"ptsnap_test\"\n"                                                  \
		".asciz \"" name "\"\n"                                                     \
		".asciz \"\"\n"                                                             \
		"994: .balign 4\n"                                                          \
		".popsection\n"                                                             \
		".ifndef _.stapsdt.base\n"                                                  \
		".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
		".weak _.stapsdt.base\n"                                                    \
		".hidden _.stapsdt.base\n"                                                  \
		"_.stapsdt.base: .space 1\n"                                                \
		".size _.stapsdt.base, 1\n"                                                 \
		".popsection\n"                                                             \
		".endif\n")

__attribute__((section(".probes"), used)) volatile unsigned short hit_semaphore;

TARGET void target_static_probes(void)
{
	STATIC_PROBE("hit", "hit_semaphore");
	sink++;
	STATIC_PROBE("hit", "hit_semaphore");
	sink++;
	STATIC_PROBE("beside", "0");
}

/* Runs a child under a probe of this program, for that child. */
static unsigned probe_child(struct probe_spec spec, void (*run)(void *), struct seen *seen,
			    struct child *ret)
{
	struct child c = child_new(run, NULL);
	struct probe *p;
	unsigned n;

	spec.pid = c.pid;
	spec.file = SELF;
	p = arm(&spec, seen);
	assert_int_equal(child_run(&c), 0);
	n = collect(p, seen);
	probe_free(p);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(seen->events[i].pid, c.pid);
	if (ret)
		*ret = c;
	return n;
}

/* --- Entry and return --- */

static void call_triple(void *arg)
{
	(void)arg;
	target_beside(1);
	if (target_triple(14) != 42)
		_exit(9);
	target_beside(2);
}

static void entry_of_a_function_is_an_event_at_its_address(void **state)
{
	struct seen seen;
	struct child c;

	(void)state;
	assert_int_equal(
		probe_child((struct probe_spec){.kind = PROBE_ENTRY, .symbol = "target_triple"},
			    call_triple, &seen, &c),
		1);
	assert_int_equal(seen.events[0].address, (uintptr_t)target_triple);
	assert_int_equal(seen.events[0].tid, c.pid);
	assert_true(seen.events[0].n_stack >= 1);
	assert_int_equal(seen.events[0].stack[0], (uintptr_t)target_triple);
}

static void return_of_a_function_is_an_event_with_its_value(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(
		probe_child((struct probe_spec){.kind = PROBE_RETURN, .symbol = "target_triple"},
			    call_triple, &seen, NULL),
		1);
	assert_int_equal(seen.events[0].value, 42);
}

static void call_asm(void *arg)
{
	(void)arg;
	target_asm();
	target_asm();
}

static void entry_with_an_offset_is_an_event_at_that_instruction(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(
		probe_child((struct probe_spec){.kind = PROBE_ENTRY, .symbol = "target_asm+0x2"},
			    call_asm, &seen, NULL),
		2);
	assert_int_equal(seen.events[0].address, (uintptr_t)target_asm + 2);
}

static void entry_in_another_process_is_no_event(void **state)
{
	struct child c = child_new(call_triple, NULL), other = child_new(call_triple, NULL);
	struct seen seen;
	struct probe *p = arm(
		&(struct probe_spec){
			.kind = PROBE_ENTRY, .file = SELF, .symbol = "target_triple", .pid = c.pid},
		&seen);

	(void)state;
	assert_int_equal(child_run(&other), 0);
	assert_int_equal(collect(p, &seen), 0);
	assert_int_equal(child_run(&c), 0);
	assert_int_equal(collect(p, &seen), 1);
	probe_free(p);
}

static void entry_in_any_process_is_seen_until_freed(void **state)
{
	struct seen seen;
	struct probe *p = arm(
		&(struct probe_spec){.kind = PROBE_ENTRY, .file = SELF, .symbol = "target_triple"},
		&seen);

	(void)state;
	target_triple(1);
	target_triple(1);
	assert_int_equal(collect(p, &seen), 2);
	assert_int_equal(seen.events[0].pid, getpid());
	/* A breakpoint is int3 (0xcc). */
	assert_int_equal(*(volatile uint8_t *)target_triple, 0xcc);
	probe_free(p);
	assert_int_not_equal(*(volatile uint8_t *)target_triple, 0xcc);
}

static void file_without_the_place_is_refused_and_nothing_stays(void **state)
{
	(void)state;
	expect_refusal(&(struct probe_spec){.kind = PROBE_ENTRY, .file = SELF, .symbol = "no_such"},
		       -ENOENT, "no function no_such");
	expect_refusal(
		&(struct probe_spec){.kind = PROBE_ENTRY, .file = SELF, .symbol = "target_asm+4"},
		-EINVAL, "has 4 bytes only");
	expect_refusal(
		&(struct probe_spec){.kind = PROBE_ENTRY, .file = "/etc/passwd", .symbol = "a"},
		-EBADMSG, "no ELF file");
	/* The first of two places is attached when the second is not found. */
	expect_refusal(&(struct probe_spec){.kind = PROBE_SPAN,
					    .file = SELF,
					    .symbol = "target_triple",
					    .to = "no_such",
					    .limit_ns = 1},
		       -ENOENT, "no function no_such");
	assert_int_not_equal(*(volatile uint8_t *)target_triple, 0xcc);
}

/* --- Latency --- */

static void call_slow(void *arg)
{
	(void)arg;
	target_slow(2 * MS);
}

static void latency_above_the_limit_is_an_event_with_its_duration(void **state)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC);
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_LATENCY,
							 .symbol = "target_slow",
							 .limit_ns = MS},
				     call_slow, &seen, NULL),
			 1);
	assert_in_range(seen.events[0].duration_ns, 2 * MS, now_ns(CLOCK_MONOTONIC) - begin);
	assert_in_range(seen.events[0].time_ns - seen.events[0].duration_ns, begin,
			now_ns(CLOCK_MONOTONIC));
}

static void latency_below_the_limit_is_no_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_LATENCY,
							 .symbol = "target_slow",
							 .limit_ns = HOUR},
				     call_slow, &seen, NULL),
			 0);
}

static void call_recurse(void *arg)
{
	(void)arg;
	target_recurse(3, 2 * MS);
	target_recurse(0, 2 * MS);
}

static void latency_of_a_recursion_is_an_event_for_each_level(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_LATENCY,
							 .symbol = "target_recurse",
							 .limit_ns = MS},
				     call_recurse, &seen, NULL),
			 5);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(seen.events[i].value, i);
	for (unsigned i = 1; i < 4; i++)
		assert_true(seen.events[i].duration_ns > seen.events[i - 1].duration_ns);
	assert_int_equal(seen.events[4].value, 0);
	assert_true(seen.events[4].duration_ns < seen.events[3].duration_ns + HOUR);
}

static void call_deep_recurse(void *arg)
{
	(void)arg;
	target_recurse(20, 2 * MS);
	target_recurse(1, 2 * MS);
}

static void latency_of_a_deep_recursion_times_the_outer_levels(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_LATENCY,
							 .symbol = "target_recurse",
							 .limit_ns = MS},
				     call_deep_recurse, &seen, NULL),
			 8 + 2);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(seen.events[i].value, 13 + i);
	assert_int_equal(seen.events[8].value, 0);
	assert_int_equal(seen.events[9].value, 1);
}

static void call_jump(void *arg)
{
	jmp_buf back;

	(void)arg;
	for (volatile int i = 0; i < 100; i++)
		if (setjmp(back) == 0)
			target_jump(back);
	sleep_ns(2 * MS);
}

static void latency_of_calls_left_by_longjmp_is_no_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_LATENCY,
							 .symbol = "target_jump",
							 .limit_ns = 1},
				     call_jump, &seen, NULL),
			 0);
}

/* The function is left by longjmp() from an inner call, and then called again: the new call is
 * timed from its own entry. */
TARGET int target_maybe_jump(jmp_buf back, int depth, uint64_t ns);
TARGET int target_maybe_jump(jmp_buf back, int depth, uint64_t ns)
{
	if (depth)
		sink += target_maybe_jump(back, depth - 1, ns);
	else if (back)
		longjmp(back, 1);
	sleep_ns(ns);
	return depth;
}

static void call_after_jump(void *behind_ns)
{
	jmp_buf back;

	if (setjmp(back) == 0)
		target_maybe_jump(back, 12, 0);
	*(volatile uint64_t *)behind_ns = now_ns(CLOCK_MONOTONIC);
	target_maybe_jump(NULL, 1, 0);
	target_maybe_jump(NULL, 0, 0);
}

static void latency_after_longjmp_counts_from_the_new_entry(void **state)
{
	volatile uint64_t *behind_ns =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct child c = child_new(call_after_jump, (void *)behind_ns);
	struct seen seen;
	struct probe *p = arm(&(struct probe_spec){.kind = PROBE_LATENCY,
						   .file = SELF,
						   .symbol = "target_maybe_jump",
						   .limit_ns = 1,
						   .pid = c.pid},
			      &seen);

	(void)state;
	assert_int_equal(child_run(&c), 0);
	assert_int_equal(collect(p, &seen), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_true(seen.events[i].time_ns - seen.events[i].duration_ns >= *behind_ns);
	probe_free(p);
	munmap((void *)behind_ns, 4096);
}

static void *slow_thread(void *arg)
{
	target_slow((uintptr_t)arg);
	return NULL;
}

static void call_in_threads(void *arg)
{
	pthread_t t[3];

	(void)arg;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, slow_thread, (void *)(uintptr_t)(2 * MS));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

static void latency_is_counted_for_each_thread(void **state)
{
	struct seen seen;
	struct child c;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_LATENCY,
							 .symbol = "target_slow",
							 .limit_ns = MS},
				     call_in_threads, &seen, &c),
			 3);
	for (int i = 0; i < 3; i++) {
		assert_int_not_equal(seen.events[i].tid, c.pid);
		assert_int_not_equal(seen.events[i].tid, seen.events[(i + 1) % 3].tid);
	}
}

/* --- Spans --- */

static void *second_thread(void *arg)
{
	target_second();
	return arg;
}

/* Only the second of these spans is long; the end in a thread without a beginning is none. */
static void call_spans(void *arg)
{
	pthread_t t;

	(void)arg;
	target_second();
	target_first();
	target_second();
	target_first();
	sleep_ns(100 * MS);
	pthread_create(&t, NULL, second_thread, NULL);
	pthread_join(t, NULL);
	target_second();
	sleep_ns(100 * MS);
	target_second();
}

static void span_is_an_event_once_in_its_thread(void **state)
{
	struct seen seen;
	struct child c;
	unsigned n;

	(void)state;
	n = probe_child((struct probe_spec){.kind = PROBE_SPAN,
					    .symbol = "target_first",
					    .to = "target_second",
					    .limit_ns = 1},
			call_spans, &seen, &c);
	assert_int_equal(n, 2);
	assert_true(seen.events[1].duration_ns >= 100 * MS);
	assert_int_equal(seen.events[0].address, (uintptr_t)target_second);
	assert_int_equal(seen.events[0].tid, c.pid);
	assert_int_equal(seen.events[1].tid, c.pid);
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_SPAN,
							 .symbol = "target_first",
							 .to = "target_second",
							 .limit_ns = HOUR},
				     call_spans, &seen, &c),
			 0);
}

/* --- Static probes --- */

static void call_static(void *arg)
{
	(void)arg;
	target_static_probes();
	if (hit_semaphore != 2)
		_exit(9);
}

static void usdt_is_an_event_at_each_place(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(
		probe_child((struct probe_spec){.kind = PROBE_USDT, .symbol = "ptsnap_test:hit"},
			    call_static, &seen, NULL),
		2);
	assert_in_range(seen.events[0].address, (uintptr_t)target_static_probes,
			(uintptr_t)target_static_probes + 256);
	assert_true(seen.events[1].address > seen.events[0].address);
}

static void usdt_semaphore_is_set_while_armed(void **state)
{
	struct seen seen;
	struct probe *p = arm(
		&(struct probe_spec){.kind = PROBE_USDT, .file = SELF, .symbol = "ptsnap_test:hit"},
		&seen);

	(void)state;
	assert_int_equal(hit_semaphore, 2);
	probe_free(p);
	assert_int_equal(hit_semaphore, 0);
}

static void usdt_of_another_name_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		&(struct probe_spec){.kind = PROBE_USDT, .file = SELF, .symbol = "ptsnap_test:hi"},
		-ENOENT, "no static probe ptsnap_test:hi");
	expect_refusal(&(struct probe_spec){.kind = PROBE_USDT, .file = SELF, .symbol = "hit"},
		       -EINVAL, "is not PROVIDER:NAME");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_of_a_function_is_an_event_at_its_address),
		cmocka_unit_test(return_of_a_function_is_an_event_with_its_value),
		cmocka_unit_test(entry_with_an_offset_is_an_event_at_that_instruction),
		cmocka_unit_test(entry_in_another_process_is_no_event),
		cmocka_unit_test(entry_in_any_process_is_seen_until_freed),
		cmocka_unit_test(file_without_the_place_is_refused_and_nothing_stays),
		cmocka_unit_test(latency_above_the_limit_is_an_event_with_its_duration),
		cmocka_unit_test(latency_below_the_limit_is_no_event),
		cmocka_unit_test(latency_of_a_recursion_is_an_event_for_each_level),
		cmocka_unit_test(latency_of_a_deep_recursion_times_the_outer_levels),
		cmocka_unit_test(latency_of_calls_left_by_longjmp_is_no_event),
		cmocka_unit_test(latency_after_longjmp_counts_from_the_new_entry),
		cmocka_unit_test(latency_is_counted_for_each_thread),
		cmocka_unit_test(span_is_an_event_once_in_its_thread),
		cmocka_unit_test(usdt_is_an_event_at_each_place),
		cmocka_unit_test(usdt_semaphore_is_set_while_armed),
		cmocka_unit_test(usdt_of_another_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
