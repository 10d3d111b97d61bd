/*
 * The keys of a trigger's condition: their values, and whether all keys of a trigger fit together.
 *
 * A file or a call may set keys in any order, so what keys mean together is known only when all are
 * set.
 */
#include "daemon/config/trigger_condition.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/metric.h"
#include "daemon/config/config_setting.h"
#include "proto/base.h"

/* The kernel's limits: kernel/sched/psi.c, WINDOW_MIN_US, WINDOW_MAX_US. */
#define WINDOW_MIN_USEC	    500000u
#define WINDOW_MAX_USEC	    10000000u
#define STALL_DEFAULT_USEC  200000u
#define WINDOW_DEFAULT_USEC 2000000u
#define SEPARATORS	    " \t"

static const char *const resources[] = {
	[TRIGGER_NO_RESOURCE] = "",
	[TRIGGER_CPU] = "cpu",
	[TRIGGER_MEMORY] = "memory",
	[TRIGGER_IO] = "io",
};

static const char *const reports[TRIGGER_N_REPORTS] = {
	[TRIGGER_HUNG_TASK] = "hung-task",	   [TRIGGER_SOFT_LOCKUP] = "soft-lockup",
	[TRIGGER_HARD_LOCKUP] = "hard-lockup",	   [TRIGGER_RCU_STALL] = "rcu-stall",
	[TRIGGER_MACHINE_CHECK] = "machine-check", [TRIGGER_OOPS] = "oops",
	[TRIGGER_OOM_KILL] = "oom-kill",
};

const char *trigger_report_name(enum trigger_report report)
{
	return reports[report];
}

/* The index of the SIZE bytes at WORD in WORDS; N: none. */
static size_t find_word(const char *const *words, size_t n, const char *word, size_t size)
{
	size_t i = 0;

	while (i < n && (strlen(words[i]) != size || memcmp(words[i], word, size) != 0))
		i++;
	return i;
}

/* "memory", "memory some", "memory full" */
static int take_pressure(struct trigger_condition *c, const char *text)
{
	static const char *const shares[] = {"some", "full"};
	size_t size = strcspn(text, SEPARATORS);
	size_t resource = find_word(resources, ARRAY_SIZE(resources), text, size), share = 0;

	if (size == 0 || resource == ARRAY_SIZE(resources))
		return -EINVAL;
	text += size;
	text += strspn(text, SEPARATORS);
	if (*text)
		share = find_word(shares, ARRAY_SIZE(shares), text, strlen(text));
	if (share == ARRAY_SIZE(shares))
		return -EINVAL;
	c->pressure = (enum trigger_resource)resource;
	c->pressure_full = share == 1;
	return 0;
}

static int take_reports(struct trigger_condition *c, const char *text)
{
	uint32_t all = 0;

	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t size = strcspn(text, SEPARATORS);
		size_t report = find_word(reports, TRIGGER_N_REPORTS, text, size);

		if (report == TRIGGER_N_REPORTS)
			return -EINVAL;
		all |= 1u << report;
		text += size;
	}
	c->kernel_log = all;
	return all ? 0 : -EINVAL;
}

static int take_span(const char *text, uint64_t min, uint64_t max, uint64_t *ret_usec)
{
	uint64_t usec;

	if (config_parse_time(text, &usec) < 0 || usec < min || usec > max)
		return -EINVAL;
	*ret_usec = usec;
	return 0;
}

static int take_number(const char *text, double *ret)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !isfinite(number))
		return -EINVAL;
	*ret = number;
	return 0;
}

/* An absolute path that names something: no "/" at its end. */
static int check_path(const char *text)
{
	size_t size = strlen(text);

	return *text == '/' && text[size - 1] != '/' && size < PATH_MAX ? 0 : -EINVAL;
}

int trigger_condition_take(struct trigger_condition *c, enum trigger_key_id key, const char *text)
{
	struct metric_series series;

	switch (key) {
	case TRIGGER_PRESSURE: return take_pressure(c, text);
	case TRIGGER_PRESSURE_STALL: return take_span(text, 1, WINDOW_MAX_USEC, &c->stall_usec);
	case TRIGGER_PRESSURE_WINDOW:
		return take_span(text, WINDOW_MIN_USEC, WINDOW_MAX_USEC, &c->window_usec);
	case TRIGGER_KERNEL_LOG: return take_reports(c, text);
	case TRIGGER_KERNEL_LOG_MATCH: return 0;
	case TRIGGER_PATH_APPEARS:
	case TRIGGER_FIFO:
	case TRIGGER_METRIC_FILE: return check_path(text);
	case TRIGGER_METRIC: return metric_parse(text, &series);
	case TRIGGER_METRIC_ABOVE: return take_number(text, &c->above);
	case TRIGGER_METRIC_BELOW: return take_number(text, &c->below);
	default: return -EINVAL;
	}
}

void trigger_condition_reset(struct trigger_condition *c, enum trigger_key_id key)
{
	bool all = key == TRIGGER_N_KEYS;

	if (all || key == TRIGGER_PRESSURE) {
		c->pressure = TRIGGER_NO_RESOURCE;
		c->pressure_full = false;
	}
	if (all || key == TRIGGER_PRESSURE_STALL)
		c->stall_usec = STALL_DEFAULT_USEC;
	if (all || key == TRIGGER_PRESSURE_WINDOW)
		c->window_usec = WINDOW_DEFAULT_USEC;
	if (all || key == TRIGGER_KERNEL_LOG)
		c->kernel_log = 0;
	if (all || key == TRIGGER_METRIC_ABOVE)
		c->above = INFINITY;
	if (all || key == TRIGGER_METRIC_BELOW)
		c->below = -INFINITY;
}

/* --- All keys together --- */

static bool has(const struct trigger_object *o, enum trigger_key_id key)
{
	return o->values[key].text != NULL;
}

/* Without On=, the first key of a condition says what the trigger waits for. */
static void choose_kind(struct trigger_object *o)
{
	if (o->built_in || has(o, TRIGGER_ON) || o->on != TRIGGER_ON_CONTROL)
		return;
	for (enum trigger_key_id key = TRIGGER_PRESSURE; key < TRIGGER_N_KEYS; key++)
		if (has(o, key)) {
			o->on = (enum trigger_on)__builtin_ctz(trigger_keys[key].needs);
			return;
		}
}

/* The condition has KEY, or a problem. */
static bool lacks(const struct trigger_object *o, enum trigger_key_id key,
		  struct trigger_problem *ret)
{
	if (has(o, key))
		return false;
	*ret = (struct trigger_problem){.key = key};
	snprintf(ret->needs, sizeof(ret->needs), "On=%s needs %s=", trigger_on_name(o->on),
		 trigger_keys[key].name);
	return true;
}

static bool check_pressure(const struct trigger_object *o, struct trigger_problem *ret)
{
	if (lacks(o, TRIGGER_PRESSURE, ret))
		return true;
	if (o->condition.stall_usec <= o->condition.window_usec)
		return false;
	*ret = (struct trigger_problem){.key = TRIGGER_PRESSURE_STALL};
	snprintf(ret->needs, sizeof(ret->needs),
		 "PressureStall= is longer than PressureWindow=, so that it is never reached");
	return true;
}

static bool check_metric(const struct trigger_object *o, struct trigger_problem *ret)
{
	if (lacks(o, TRIGGER_METRIC_FILE, ret) || lacks(o, TRIGGER_METRIC, ret))
		return true;
	if (has(o, TRIGGER_METRIC_ABOVE) != has(o, TRIGGER_METRIC_BELOW))
		return false;
	*ret = (struct trigger_problem){.key = TRIGGER_METRIC_ABOVE};
	snprintf(ret->needs, sizeof(ret->needs),
		 "On=metric needs either MetricAbove= or MetricBelow=");
	return true;
}

/* Whether the keys of the condition are complete. */
static bool check_condition(const struct trigger_object *o, struct trigger_problem *ret)
{
	switch (o->on) {
	case TRIGGER_ON_PRESSURE: return check_pressure(o, ret);
	case TRIGGER_ON_KERNEL_LOG:
		return !has(o, TRIGGER_KERNEL_LOG_MATCH) && lacks(o, TRIGGER_KERNEL_LOG, ret);
	case TRIGGER_ON_PATH: return lacks(o, TRIGGER_PATH_APPEARS, ret);
	case TRIGGER_ON_FIFO: return lacks(o, TRIGGER_FIFO, ret);
	case TRIGGER_ON_METRIC: return check_metric(o, ret);
	default: return false;
	}
}

static void drop(struct trigger_problem *ret, const struct trigger_object *o,
		 enum trigger_key_id key, const char *needs)
{
	*ret = (struct trigger_problem){.key = key, .drop = true};
	snprintf(ret->needs, sizeof(ret->needs), "%s=%.60s needs %s", trigger_keys[key].name,
		 o->values[key].text, needs);
}

bool trigger_object_check(struct trigger_object *o, struct trigger_problem *ret)
{
	choose_kind(o);
	for (enum trigger_key_id key = TRIGGER_ENABLED; key < TRIGGER_N_KEYS; key++) {
		const uint32_t needs = trigger_keys[key].needs;
		char on[32];

		if (!has(o, key) || needs == 0 || (needs & (1u << o->on)))
			continue;
		/* A key of more than one kind is one of all conditions. */
		if (needs & (needs - 1))
			snprintf(on, sizeof(on), "a condition");
		else
			snprintf(on, sizeof(on), "On=%s",
				 trigger_on_name((enum trigger_on)__builtin_ctz(needs)));
		drop(ret, o, key, on);
		return true;
	}
	if (!o->decode && o->deadline_ns != ENTRY_ABSENT) {
		drop(ret, o, TRIGGER_DEADLINE, "Decode=yes");
		return true;
	}
	return check_condition(o, ret);
}

bool trigger_object_same_condition(const struct trigger_object *a, const struct trigger_object *b)
{
	if (a->on != b->on || !a->enabled || !b->enabled)
		return false;
	for (enum trigger_key_id key = TRIGGER_EVENTS; key < TRIGGER_N_KEYS; key++) {
		const char *x = a->values[key].text, *y = b->values[key].text;

		if (!x != !y || (x && strcmp(x, y) != 0))
			return false;
	}
	return true;
}
