/*
 * Understands records of the kernel's log.
 *
 * The patterns are those of Linux 5.10 to 6.18; each names the function that prints the line. A
 * report has many lines, of which one is matched, so that a report is one event.
 */
#include "daemon/condition/kernel_text.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define FACILITY_SHIFT 3 /* syslog(2) */
#define HEX	       "[0-9a-f]"

static const struct {
	enum trigger_report report;
	const char *pattern;
} patterns[] = {
	/* kernel/hung_task.c, check_hung_task(), hung_task_info() */
	{TRIGGER_HUNG_TASK, "INFO: task *:* blocked for more than * seconds*"},
	/* kernel/watchdog.c, watchdog_timer_fn() */
	{TRIGGER_SOFT_LOCKUP, "*BUG: soft lockup - CPU#* stuck for *"},
	/* kernel/watchdog_hld.c, watchdog_overflow_callback(); kernel/watchdog.c,
	 * watchdog_hardlockup_check() */
	{TRIGGER_HARD_LOCKUP, "*Watchdog detected hard LOCKUP on cpu *"},
	/* kernel/rcu/tree_stall.h, print_other_cpu_stall(), print_cpu_stall();
	 * kernel/rcu/tree_exp.h, synchronize_rcu_expedited_stall() */
	{TRIGGER_RCU_STALL, "*INFO: * detected stalls on CPUs/tasks:*"},
	{TRIGGER_RCU_STALL, "*INFO: * self-detected stall on CPU*"},
	{TRIGGER_RCU_STALL, "*INFO: * detected expedited stalls on CPUs/tasks:*"},
	/* arch/x86/kernel/cpu/mce/core.c, __print_mce(); dev-mcelog.c and others */
	{TRIGGER_MACHINE_CHECK, "*[[]Hardware Error]: CPU *: Machine Check*"},
	{TRIGGER_MACHINE_CHECK, "*[[]Hardware Error]: Machine check events logged*"},
	/* arch/x86/kernel/dumpstack.c, __die_header(): "Oops: 0002 [#1] SMP" */
	{TRIGGER_OOPS, "*: " HEX HEX HEX HEX " [[]#[0-9]*] *"},
	{TRIGGER_OOPS, "*: " HEX HEX HEX HEX " [[]#[0-9]*]"},
	/* mm/oom_kill.c, __oom_kill_process() */
	{TRIGGER_OOM_KILL, "*ut of memory: Killed process *"},
};

int kernel_text_parse(const char *text, struct kernel_record *ret)
{
	const char *message = strchr(text, ';');
	char *end;
	unsigned long priority = strtoul(text, &end, 10);
	size_t n;

	if (end == text || *end != ',' || !message || message < end)
		return -EBADMSG;
	message++;
	n = MIN_OF(strcspn(message, "\n"), sizeof(ret->message) - 1);
	ret->by_kernel = priority >> FACILITY_SHIFT == 0;
	memcpy(ret->message, message, n);
	ret->message[n] = '\0';
	return 0;
}

enum trigger_report kernel_text_report(const struct kernel_record *record, uint32_t reports)
{
	if (!record->by_kernel)
		return TRIGGER_N_REPORTS;
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if ((reports & (1u << patterns[i].report)) &&
		    fnmatch(patterns[i].pattern, record->message, FNM_NOESCAPE) == 0)
			return patterns[i].report;
	return TRIGGER_N_REPORTS;
}

/* The number that begins at TEXT. False: there is none, or it is greater than MAX. */
static bool take_number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*ret = strtoul(text, &end, 10);
	return *ret <= max;
}

/* The last one: a task can have the words in its name. */
static const char *find_last(const char *text, const char *words)
{
	const char *found = NULL;

	for (const char *at = strstr(text, words); at; at = strstr(at + 1, words))
		found = at;
	return found;
}

void kernel_text_subject(const struct kernel_record *record, enum trigger_report report,
			 uint64_t *ret_pid, uint32_t *ret_cpu)
{
	const char *at = NULL;
	unsigned long n;

	if (report == TRIGGER_HUNG_TASK) {
		at = find_last(record->message, " blocked for more than ");
		while (at && at > record->message && at[-1] >= '0' && at[-1] <= '9')
			at--;
		if (at && take_number(at, INT32_MAX, &n))
			*ret_pid = n;
	} else if (report == TRIGGER_SOFT_LOCKUP) {
		at = strstr(record->message, "CPU#");
		if (at && take_number(at + strlen("CPU#"), UINT16_MAX, &n))
			*ret_cpu = (uint32_t)n;
	}
}
