/*
 * One trigger: the table of its keys, and how the text of a key becomes a value.
 */
#include "daemon/config/trigger_set.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_condition.h"
#include "proto/base.h"

#define NSEC_PER_USEC 1000u
#define ON(kind)      (1u << TRIGGER_ON_##kind)
#define CONDITIONS    (~0u << (TRIGGER_ON_EXIT + 1)) /* all kinds behind it */
#define TIME_VALID    "a time such as 500ms, 10s, 1min (without a unit: seconds)"
#define BOOLEAN_VALID "yes, no"

/* clang-format off */
const struct trigger_key trigger_keys[TRIGGER_N_KEYS] = {
	[TRIGGER_ENABLED] = {"Enabled", BOOLEAN_VALID, false, 0},
	[TRIGGER_ON] = {"On", "control, signal, unit, pressure, kernel-log, path, fifo, metric; for a "
			"built-in trigger only its own", false, 0},
	[TRIGGER_UNITS] = {"Units", "names of units with * and ?, such as web-*.service; up to 64",
			   true, ON(UNIT)},
	[TRIGGER_WATCH] = {"Watch", BOOLEAN_VALID, false, ON(UNIT)},
	[TRIGGER_SIGNAL_USERS] = {"SignalUsers", "names or numbers of users; up to 64", true,
				  ON(SIGNAL)},
	[TRIGGER_LAST_BYTES] = {"LastBytes", "a size of at least 1, such as 4M", false, 0},
	[TRIGGER_LAST_TIME] = {"LastTime", TIME_VALID, false, 0},
	[TRIGGER_DECODE] = {"Decode", BOOLEAN_VALID, false, 0},
	[TRIGGER_DEADLINE] = {"Deadline", TIME_VALID, false, 0},
	[TRIGGER_REASON] = {"Reason", "a text of up to 256 bytes", false, 0},
	[TRIGGER_LABEL] = {"Label", LABEL_VALID, true, 0},
	[TRIGGER_BURST] = {"Burst", "a number up to 1000000; 0: no limit", false, 0},
	[TRIGGER_INTERVAL] = {"Interval", TIME_VALID, false, 0},
	[TRIGGER_MIN_FILL] = {"MinFill", TIME_VALID, false, 0},
	[TRIGGER_COUNT] = {"Count", "a number from 1 to 1000000", false, 0},
	[TRIGGER_EXPIRE_AFTER] = {"ExpireAfter", TIME_VALID, false, 0},
	[TRIGGER_EVENTS] = {"Events", "a number from 1 to 32", false, CONDITIONS},
	[TRIGGER_EVENTS_WITHIN] = {"EventsWithin", TIME_VALID, false, CONDITIONS},
	[TRIGGER_PRESSURE] = {"Pressure", "cpu, memory or io, and then some (default) or full",
			      false, ON(PRESSURE)},
	[TRIGGER_PRESSURE_STALL] = {"PressureStall", "a time up to PressureWindow=, such as 150ms",
				    false, ON(PRESSURE)},
	[TRIGGER_PRESSURE_WINDOW] = {"PressureWindow", "a time from 500ms to 10s", false,
				     ON(PRESSURE)},
	[TRIGGER_KERNEL_LOG] = {"KernelLog", "hung-task, soft-lockup, hard-lockup, rcu-stall, "
				"machine-check, oops, oom-kill", true, ON(KERNEL_LOG)},
	[TRIGGER_KERNEL_LOG_MATCH] = {"KernelLogMatch", "a pattern with * and ?, such as *segfault at*",
				      false, ON(KERNEL_LOG)},
	[TRIGGER_PATH_APPEARS] = {"PathAppears", "an absolute path, whose last part may be a pattern",
				  false, ON(PATH)},
	[TRIGGER_FIFO] = {"FIFO", "an absolute path", false, ON(FIFO)},
	[TRIGGER_METRIC_FILE] = {"MetricFile", "an absolute path", false, ON(METRIC)},
	[TRIGGER_METRIC] = {"Metric", "NAME or NAME{LABEL=\"VALUE\",...}", false, ON(METRIC)},
	[TRIGGER_METRIC_ABOVE] = {"MetricAbove", "a number", false, ON(METRIC)},
	[TRIGGER_METRIC_BELOW] = {"MetricBelow", "a number", false, ON(METRIC)},
};

static const char *const on_names[TRIGGER_N_ON] = {
	[TRIGGER_ON_CONTROL] = "control", [TRIGGER_ON_SIGNAL] = "signal",
	[TRIGGER_ON_UNIT] = "unit", [TRIGGER_ON_EXIT] = "exit",
	[TRIGGER_ON_PRESSURE] = "pressure", [TRIGGER_ON_KERNEL_LOG] = "kernel-log",
	[TRIGGER_ON_PATH] = "path", [TRIGGER_ON_FIFO] = "fifo", [TRIGGER_ON_METRIC] = "metric",
};
/* clang-format on */

const char *trigger_on_name(enum trigger_on on)
{
	assert(on < ARRAY_SIZE(on_names));
	return on_names[on];
}

bool trigger_on_is_condition(enum trigger_on on)
{
	return on > TRIGGER_ON_EXIT;
}

enum trigger_key_id trigger_key_find(const char *name)
{
	enum trigger_key_id key = TRIGGER_ENABLED;

	while (key < TRIGGER_N_KEYS && strcmp(trigger_keys[key].name, name) != 0)
		key++;
	return key;
}

bool trigger_name_is_valid(const char *name)
{
	size_t n = 0;

	if (*name == '.' || *name == '-')
		return false;
	while (isalnum((unsigned char)name[n]) || (name[n] && strchr("-_.", name[n])))
		n++;
	return n > 0 && name[n] == '\0' && n < ENTRY_NAME_SIZE;
}

static int take_time(const char *text, uint64_t *ret_usec)
{
	uint64_t usec;

	if (config_parse_time(text, &usec) < 0 || usec > UINT64_MAX / NSEC_PER_USEC)
		return -EINVAL;
	*ret_usec = usec;
	return 0;
}

static int take_time_ns(const char *text, uint64_t *ret_ns)
{
	uint64_t usec;
	int r = take_time(text, &usec);

	if (r == 0)
		*ret_ns = usec * NSEC_PER_USEC;
	return r;
}

static int take_on(struct trigger_object *o, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(on_names); i++) {
		if (strcmp(text, on_names[i]) != 0)
			continue;
		if (o->on != (enum trigger_on)i && (o->built_in || i == TRIGGER_ON_EXIT))
			return -EINVAL;
		o->on = (enum trigger_on)i;
		return 0;
	}
	return -EINVAL;
}

/* Copies the next word at *AT to WORD and moves *AT behind it. False: there are no more words or,
 * with *RET_BAD, the word is too long. */
static bool next_word(const char **at, char *word, size_t size, bool *ret_bad)
{
	size_t n;

	*at += strspn(*at, " \t");
	n = strcspn(*at, " \t");
	*ret_bad = n >= size;
	if (n == 0 || *ret_bad)
		return false;
	memcpy(word, *at, n);
	word[n] = '\0';
	*at += n;
	return true;
}

static bool is_pattern(const char *word)
{
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && !strchr(":-_.\\@*?[]!", *word))
			return false;
	return true;
}

static void units_free(char **units, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(units[i]);
}

static int take_units(struct trigger_object *o, const char *text)
{
	char *units[TRIGGER_MAX_UNITS], word[ENTRY_UNIT_SIZE];
	size_t n = 0;
	bool bad;

	while (next_word(&text, word, sizeof(word), &bad)) {
		bad = n == TRIGGER_MAX_UNITS || !is_pattern(word);
		if (bad)
			break;
		units[n] = strdup(word);
		if (!units[n++]) {
			units_free(units, n);
			return -ENOMEM;
		}
	}
	if (bad) {
		units_free(units, n);
		return -EINVAL;
	}
	units_free(o->units, o->n_units);
	memcpy(o->units, units, n * sizeof(units[0]));
	o->n_units = n;
	return 0;
}

/* Whether WORD is a number or may be a user's name. Whether the host has such a user is asked
 * later. */
static bool is_user(const char *word)
{
	uint32_t uid;

	if (isdigit((unsigned char)*word))
		return names_find(NULL, NAMES_USER, word, &uid) == 0;
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && !strchr("-_.@\\$", *word))
			return false;
	return true;
}

static int take_users(struct trigger_object *o, const char *text)
{
	char word[256];
	size_t n = 0;
	bool bad;

	while (next_word(&text, word, sizeof(word), &bad)) {
		bad = n == TRIGGER_MAX_USERS || !is_user(word);
		if (bad)
			break;
		n++;
	}
	if (bad)
		return -EINVAL;
	o->n_users = n;
	return 0;
}

static int take(struct trigger_object *o, enum trigger_key_id key, const char *text)
{
	uint64_t n;
	int r;

	switch (key) {
	case TRIGGER_ENABLED: return config_parse_flag(text, &o->enabled);
	case TRIGGER_ON: return take_on(o, text);
	case TRIGGER_UNITS: return take_units(o, text);
	case TRIGGER_WATCH: return config_parse_flag(text, &o->watch);
	case TRIGGER_SIGNAL_USERS: return take_users(o, text);
	case TRIGGER_LAST_BYTES:
		if (config_parse_size(text, &n) < 0 || n == 0 || n == ENTRY_ABSENT)
			return -EINVAL;
		o->last_bytes = n;
		return 0;
	case TRIGGER_LAST_TIME:
		if (take_time_ns(text, &n) < 0 || n == 0)
			return -EINVAL;
		o->last_ns = n;
		return 0;
	case TRIGGER_DECODE: return config_parse_flag(text, &o->decode);
	case TRIGGER_DEADLINE: return take_time_ns(text, &o->deadline_ns);
	case TRIGGER_REASON:
		if (strlen(text) >= sizeof(o->reason) || !label_is_plain(text))
			return -EINVAL;
		strcpy(o->reason, text);
		return 0;
	/* One label a line, as values may have blanks. */
	case TRIGGER_LABEL: return labels_parse(&o->labels, text) < 0 ? -EINVAL : 0;
	case TRIGGER_BURST:
		if (config_parse_size(text, &n) < 0 || n > 1000000)
			return -EINVAL;
		o->burst = (uint32_t)n;
		o->has_burst = true;
		return 0;
	case TRIGGER_INTERVAL:
		r = take_time(text, &o->interval_usec);
		o->has_interval |= r == 0;
		return r;
	case TRIGGER_MIN_FILL: return take_time_ns(text, &o->min_fill_ns);
	case TRIGGER_COUNT:
		if (config_parse_size(text, &n) < 0 || n == 0 || n > 1000000)
			return -EINVAL;
		o->count = (uint32_t)n;
		return 0;
	case TRIGGER_EXPIRE_AFTER:
		if (take_time(text, &n) < 0 || n == 0)
			return -EINVAL;
		o->expire_usec = n;
		return 0;
	case TRIGGER_EVENTS:
		if (config_parse_size(text, &n) < 0 || n == 0 || n > TRIGGER_MAX_EVENTS)
			return -EINVAL;
		o->events = (uint32_t)n;
		return 0;
	case TRIGGER_EVENTS_WITHIN:
		if (take_time(text, &n) < 0 || n == 0)
			return -EINVAL;
		o->events_within_usec = n;
		return 0;
	default: return trigger_condition_take(&o->condition, key, text);
	}
}

/* Sets the fields of KEY to their defaults; TRIGGER_N_KEYS: those of all keys. */
static void take_back(struct trigger_object *o, enum trigger_key_id key)
{
	bool all = key == TRIGGER_N_KEYS;

	if (all || key == TRIGGER_ENABLED)
		o->enabled = true;
	if (key == TRIGGER_ON && !o->built_in)
		o->on = TRIGGER_ON_CONTROL;
	if (all || key == TRIGGER_UNITS) {
		units_free(o->units, o->n_units);
		o->n_units = 0;
	}
	if (all || key == TRIGGER_WATCH)
		o->watch = false;
	if (all || key == TRIGGER_SIGNAL_USERS)
		o->n_users = 0;
	if (all || key == TRIGGER_LAST_BYTES)
		o->last_bytes = ENTRY_ABSENT;
	if (all || key == TRIGGER_LAST_TIME)
		o->last_ns = ENTRY_ABSENT;
	if (all || key == TRIGGER_DECODE)
		o->decode = true;
	if (all || key == TRIGGER_DEADLINE)
		o->deadline_ns = ENTRY_ABSENT;
	if (all || key == TRIGGER_REASON)
		*o->reason = '\0';
	if (all || key == TRIGGER_LABEL)
		o->labels = (struct labels){0};
	/* A client who asks is limited as a user, and COMMAND ends only once. */
	if (all || key == TRIGGER_BURST) {
		o->burst = 0;
		o->has_burst =
			o->built_in && (o->on == TRIGGER_ON_CONTROL || o->on == TRIGGER_ON_EXIT);
	}
	if (all || key == TRIGGER_INTERVAL) {
		o->has_interval = false;
		o->interval_usec = 0;
	}
	if (all || key == TRIGGER_MIN_FILL)
		o->min_fill_ns = 0;
	if (all || key == TRIGGER_COUNT)
		o->count = 0;
	if (all || key == TRIGGER_EXPIRE_AFTER)
		o->expire_usec = 0;
	if (all || key == TRIGGER_EVENTS)
		o->events = 1;
	if (all || key == TRIGGER_EVENTS_WITHIN)
		o->events_within_usec = TRIGGER_WITHIN_DEFAULT_USEC;
	trigger_condition_reset(&o->condition, key);
}

void trigger_object_init(struct trigger_object *o, const char *name, enum trigger_on on,
			 bool built_in)
{
	assert(trigger_name_is_valid(name));
	*o = (struct trigger_object){.on = on, .built_in = built_in};
	snprintf(o->name, sizeof(o->name), "%s", name);
	take_back(o, TRIGGER_N_KEYS);
}

void trigger_object_done(struct trigger_object *o)
{
	units_free(o->units, o->n_units);
	for (size_t i = 0; i < TRIGGER_N_KEYS; i++)
		free(o->values[i].text);
	free(o->file);
	*o = (struct trigger_object){0};
}

static void value_replace(struct trigger_value *v, char *text, unsigned line)
{
	free(v->text);
	*v = (struct trigger_value){text, line};
}

int trigger_object_set(struct trigger_object *o, enum trigger_key_id key, const char *text,
		       unsigned line)
{
	struct trigger_value *v = &o->values[key];
	CLEANUP_FREE char *joined = NULL;
	int r;

	assert(key < TRIGGER_N_KEYS);
	if (!*text) {
		value_replace(v, NULL, 0);
		take_back(o, key);
		return 0;
	}
	if (trigger_keys[key].list && v->text)
		r = asprintf(&joined, "%s %s", v->text, text) < 0 ? -ENOMEM : 0;
	else
		r = (joined = strdup(text)) ? 0 : -ENOMEM;
	/* A label is added to the others; other lists are parsed again as a whole. */
	if (r == 0)
		r = take(o, key, key == TRIGGER_LABEL ? text : joined);
	if (r == 0)
		value_replace(v, TAKE_PTR(joined), line);
	return r;
}

int trigger_object_copy(const struct trigger_object *o, struct trigger_object *ret)
{
	int r = 0;

	trigger_object_init(ret, o->name, o->on, o->built_in);
	for (size_t i = 0; i < TRIGGER_N_KEYS && r == 0; i++)
		if (o->values[i].text && i != TRIGGER_LABEL)
			r = trigger_object_set(ret, (enum trigger_key_id)i, o->values[i].text,
					       o->values[i].line);
	ret->labels = o->labels;
	ret->runtime = o->runtime;
	if (r == 0 && o->values[TRIGGER_LABEL].text) {
		ret->values[TRIGGER_LABEL].text = strdup(o->values[TRIGGER_LABEL].text);
		r = ret->values[TRIGGER_LABEL].text ? 0 : -ENOMEM;
	}
	if (r < 0)
		trigger_object_done(ret);
	return r;
}

const char *trigger_object_text(const struct trigger_object *o, enum trigger_key_id key,
				char buffer[TRIGGER_TEXT_SIZE])
{
	assert(key < TRIGGER_N_KEYS);
	if (o->values[key].text)
		return o->values[key].text;
	switch (key) {
	case TRIGGER_ON: return on_names[o->on];
	case TRIGGER_ENABLED: return "yes";
	case TRIGGER_WATCH: return "no";
	case TRIGGER_DECODE: return "yes";
	case TRIGGER_MIN_FILL: return "0";
	case TRIGGER_EVENTS: return "1";
	case TRIGGER_EVENTS_WITHIN: return "1s";
	case TRIGGER_PRESSURE_STALL: return TRIGGER_STALL_DEFAULT;
	case TRIGGER_PRESSURE_WINDOW: return TRIGGER_WINDOW_DEFAULT;
	case TRIGGER_BURST:
		snprintf(buffer, TRIGGER_TEXT_SIZE, "%s", o->has_burst ? "0" : "");
		return buffer;
	default: return "";
	}
}

bool trigger_object_has_unit(const struct trigger_object *o, const char *unit)
{
	for (size_t i = 0; i < o->n_units; i++)
		if (fnmatch(o->units[i], unit, FNM_NOESCAPE) == 0)
			return true;
	return o->n_units == 0;
}

bool trigger_object_has_user(const struct trigger_object *o, const struct names *names,
			     uint64_t uid)
{
	const char *text = o->values[TRIGGER_SIGNAL_USERS].text;
	char word[256];
	uint32_t found;
	bool bad;

	if (o->n_users == 0)
		return true;
	while (text && next_word(&text, word, sizeof(word), &bad))
		if (names_find(names, NAMES_USER, word, &found) == 0 && found == uid)
			return true;
	return false;
}
