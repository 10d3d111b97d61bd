/*
 * Records of the kernel's log: lines as kernels wrote them, and lines that look alike.
 */
#include "daemon/condition/kernel_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

#define ALL ((1u << TRIGGER_N_REPORTS) - 1)

/* What the kernel's message MESSAGE reports. */
static enum trigger_report report(const char *message)
{
	struct kernel_record r;
	char text[2048];

	snprintf(text, sizeof(text), "3,1,2,-;%s\n SUBSYSTEM=x\n", message);
	assert_int_equal(kernel_text_parse(text, &r), 0);
	assert_string_equal(r.message, message);
	return kernel_text_report(&r, ALL);
}

static void kernel_text_parse_tells_who_wrote_the_record(void **state)
{
	struct kernel_record r;

	(void)state;
	assert_int_equal(kernel_text_parse("6,339,5140900,-;NET: x\n", &r), 0);
	assert_true(r.by_kernel);
	assert_int_equal(kernel_text_parse("12,340,5140901,-,caller=T1;by a user\n", &r), 0);
	assert_false(r.by_kernel);
	assert_string_equal(r.message, "by a user");
}

static void kernel_text_parse_refuses_other_forms(void **state)
{
	static const char *const bad[] = {"", "x", ";", "a;b", "6;b", "6,1,2,-", ",;"};
	struct kernel_record r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(kernel_text_parse(bad[i], &r), -EBADMSG);
}

static void kernel_text_parse_cuts_long_messages(void **state)
{
	char text[4096] = "6,1,2,-;";
	struct kernel_record r;

	(void)state;
	memset(text + 8, 'a', sizeof(text) - 9);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(kernel_text_parse(text, &r), 0);
	assert_int_equal(strlen(r.message), KERNEL_TEXT_SIZE - 1);
}

static void kernel_text_report_knows_the_lines_of_kernels(void **state)
{
	(void)state;
	assert_int_equal(report("INFO: task kworker/0:1:17 blocked for more than 120 seconds."),
			 TRIGGER_HUNG_TASK);
	assert_int_equal(report("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [cat:812]"),
			 TRIGGER_SOFT_LOCKUP);
	assert_int_equal(report("NMI watchdog: Watchdog detected hard LOCKUP on cpu 2"),
			 TRIGGER_HARD_LOCKUP);
	assert_int_equal(report("rcu: INFO: rcu_preempt self-detected stall on CPU"),
			 TRIGGER_RCU_STALL);
	assert_int_equal(report("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"),
			 TRIGGER_RCU_STALL);
	assert_int_equal(report("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: "
				"{ 1-...D } 5 jiffies s: 1 root: 0x2/."),
			 TRIGGER_RCU_STALL);
	assert_int_equal(report("mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be0000"),
			 TRIGGER_MACHINE_CHECK);
	assert_int_equal(report("Oops: 0002 [#1] PREEMPT SMP NOPTI"), TRIGGER_OOPS);
	assert_int_equal(report("Oops: general protection fault, maybe for address 0x0: 0000 [#2]"),
			 TRIGGER_OOPS);
	assert_int_equal(report("invalid opcode: 0000 [#1] SMP"), TRIGGER_OOPS);
	assert_int_equal(report("Memory cgroup out of memory: Killed process 7 (a) total-vm:1kB"),
			 TRIGGER_OOM_KILL);
	assert_int_equal(report("Out of memory: Killed process 7 (a) total-vm:1kB"),
			 TRIGGER_OOM_KILL);
}

static void subject(const char *message, uint64_t *ret_pid, uint32_t *ret_cpu)
{
	struct kernel_record r = {.by_kernel = true};

	*ret_pid = 0;
	*ret_cpu = UINT32_MAX;
	snprintf(r.message, sizeof(r.message), "%s", message);
	kernel_text_subject(&r, kernel_text_report(&r, ALL), ret_pid, ret_cpu);
}

static void kernel_text_subject_is_the_task_or_cpu(void **state)
{
	uint64_t pid;
	uint32_t cpu;

	(void)state;
	subject("INFO: task kworker/0:1:17 blocked for more than 120 seconds.", &pid, &cpu);
	assert_int_equal(pid, 17);
	assert_int_equal(cpu, UINT32_MAX);
	/* A task's name has up to 15 bytes, and can look like the report itself. */
	subject("INFO: task a:9 blocked for more than :23 blocked for more than 120 seconds.", &pid,
		&cpu);
	assert_int_equal(pid, 23);
	subject("INFO: task a:99999999999 blocked for more than 120 seconds.", &pid, &cpu);
	assert_int_equal(pid, 0);
	subject("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [CPU#7:812]", &pid, &cpu);
	assert_int_equal(pid, 0);
	assert_int_equal(cpu, 3);
	subject("Oops: 0002 [#1] SMP CPU#3", &pid, &cpu);
	assert_int_equal(cpu, UINT32_MAX);
}

static void kernel_text_report_near_misses_are_none(void **state)
{
	static const char *const others[] = {
		"INFO: task cat:7 is well",
		"systemd-oomd: out of memory",
		"BUG: kernel NULL pointer dereference, address: 0000000000000000",
		"mce: CPU supports 9 MCE banks",
		"rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.",
		"Call Trace: [#a]",
		"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(report(others[i]), TRIGGER_N_REPORTS);
}

static void kernel_text_report_of_a_process_is_none(void **state)
{
	struct kernel_record r;

	(void)state;
	assert_int_equal(kernel_text_parse("11,1,2,-;Oops: 0002 [#1] SMP\n", &r), 0);
	assert_int_equal(kernel_text_report(&r, ALL), TRIGGER_N_REPORTS);
}

static void kernel_text_report_not_asked_for_is_none(void **state)
{
	struct kernel_record r;

	(void)state;
	assert_int_equal(kernel_text_parse("3,1,2,-;Oops: 0002 [#1] SMP\n", &r), 0);
	assert_int_equal(kernel_text_report(&r, 1u << TRIGGER_RCU_STALL), TRIGGER_N_REPORTS);
	assert_int_equal(kernel_text_report(&r, 1u << TRIGGER_OOPS), TRIGGER_OOPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_text_parse_tells_who_wrote_the_record),
		cmocka_unit_test(kernel_text_parse_refuses_other_forms),
		cmocka_unit_test(kernel_text_parse_cuts_long_messages),
		cmocka_unit_test(kernel_text_report_knows_the_lines_of_kernels),
		cmocka_unit_test(kernel_text_subject_is_the_task_or_cpu),
		cmocka_unit_test(kernel_text_report_near_misses_are_none),
		cmocka_unit_test(kernel_text_report_of_a_process_is_none),
		cmocka_unit_test(kernel_text_report_not_asked_for_is_none),
	};

	return cmocka_run_group_tests_name("kernel_text", tests, NULL, NULL);
}
