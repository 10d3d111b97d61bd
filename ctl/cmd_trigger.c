/*
 * ptsnapctl trigger: lists the recorder's triggers, adds and removes them while the recorder runs,
 * and makes the event of one.
 *
 * The options of `trigger add' are the settings of a trigger's file: --last-time=20ms is
 * LastTime=20ms. The recorder checks the values.
 */
#include "ctl/verb.h"

#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"

#define MAX_SETTINGS 64u

/* clang-format off */
/* The settings by their options: the option's value is OPTION_OWN and the place in KEYS. */
static const char *const KEYS[] = {
	"On", "Enabled", "Units", "Watch", "LastBytes", "LastTime", "Decode", "Deadline", "Reason",
	"Label", "Burst", "Interval", "MinFill", "Count", "ExpireAfter", "Pressure", "PressureStall",
	"PressureWindow", "KernelLog", "KernelLogMatch", "PathAppears", "FIFO", "MetricFile",
	"Metric", "MetricAbove", "MetricBelow", "Events", "EventsWithin",
};
#define KEY(option, index) {option, required_argument, NULL, OPTION_OWN + (index)}
static const struct option OPTIONS[] = {
	KEY("on", 0), KEY("enabled", 1), KEY("units", 2), KEY("watch", 3), KEY("last-bytes", 4),
	KEY("last-time", 5), KEY("decode", 6), KEY("deadline", 7), KEY("reason", 8),
	KEY("label", 9), KEY("burst", 10), KEY("interval", 11), KEY("min-fill", 12),
	KEY("count", 13), KEY("expire-after", 14), KEY("pressure", 15), KEY("pressure-stall", 16),
	KEY("pressure-window", 17), KEY("kernel-log", 18), KEY("kernel-log-match", 19),
	KEY("path-appears", 20), KEY("fifo", 21), KEY("metric-file", 22), KEY("metric", 23),
	KEY("metric-above", 24), KEY("metric-below", 25), KEY("events", 26), KEY("events-within", 27), {NULL, 0, NULL, 0},
};
/* clang-format on */

struct trigger_request {
	struct settings *settings;
	struct json_object *wanted; /* owned: ["KEY=VALUE", ...] */
	char **operands;
	int n_operands;
};

static int add_setting(struct trigger_request *q, size_t index, const char *value)
{
	CLEANUP_FREE char *text = NULL;

	if (json_object_array_length(q->wanted) == MAX_SETTINGS)
		return say_error(EXIT_CODE_USAGE, "trigger add takes at most %u settings",
				 MAX_SETTINGS);
	if (asprintf(&text, "%s=%s", KEYS[index], value) < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	json_object_array_add(q->wanted, json_object_new_string(text));
	return 0;
}

/* Parses options; the operands begin with the sub-command. */
static int parse_trigger(struct trigger_request *q, int argc, char **argv)
{
	int option, r = 0;

	while ((option = option_next(q->settings, argc, argv, OPTIONS, "", true)) != OPTION_END) {
		if (option == OPTION_USAGE)
			return EXIT_CODE_USAGE;
		r = add_setting(q, (size_t)(option - OPTION_OWN), optarg);
		if (r != 0)
			return r;
	}
	q->operands = argv + optind;
	q->n_operands = argc - optind;
	return 0;
}

static struct json_object *named(const char *name)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(name));
	return o;
}

/* Prints TEXT in COLUMNS columns and a blank. */
static void column(const char *text, size_t columns)
{
	size_t used = text_puts(stdout, text, columns);

	printf("%*s", (int)(columns - MIN_OF(used, columns) + 1), "");
}

static void print_row(struct json_object *trigger)
{
	const char *cause = field_text(trigger, "cause"), *last = field_text(trigger, "lastEvent");

	column(field_text(trigger, "name"), 20);
	column(field_text(trigger, "on"), 10);
	column(field_text(trigger, "state"), 8);
	printf("%8s %8s ", figure_field_count(trigger, "fired").text,
	       figure_field_count(trigger, "events").text);
	if (cause)
		text_puts(stdout, cause, 0);
	else if (last)
		text_puts(stdout, last, 0);
	putchar('\n');
}

static int trigger_list(struct trigger_request *q, struct client *c)
{
	struct json_object *answer = NULL;
	int r = client_call(c, "ListTriggers", NULL, NULL, NULL, &answer);

	if (r == 0 && json_wanted(q->settings))
		json_print(q->settings, field_get(answer, "triggers"));
	else if (r == 0) {
		puts("NAME                 ON         STATE       FIRED   EVENTS LAST EVENT");
		for (size_t i = 0; i < field_count(answer, "triggers"); i++)
			print_row(field_at(answer, "triggers", i));
	}
	json_object_put(answer);
	return r;
}

static int trigger_add(struct trigger_request *q, struct client *c)
{
	struct json_object *answer = NULL, *parameters = named(q->operands[1]);
	int r;

	json_object_object_add(parameters, "settings", json_object_get(q->wanted));
	r = client_call(c, "AddTrigger", parameters, NULL, NULL, &answer);
	if (r == 0 && json_wanted(q->settings))
		json_print(q->settings, field_get(answer, "trigger"));
	json_object_put(answer);
	return r;
}

/* Tries every name. The exit code is that of the first failure. */
static int trigger_remove(struct trigger_request *q, struct client *c)
{
	int failed = 0;

	for (int i = 1; i < q->n_operands; i++) {
		struct json_object *answer = NULL;
		int r = client_call(c, "RemoveTrigger", named(q->operands[i]), NULL, NULL, &answer);

		json_object_put(answer);
		failed = failed ? failed : r;
	}
	return failed;
}

static int trigger_test(struct trigger_request *q, struct client *c)
{
	struct json_object *answer = NULL, *report;
	int r = client_call(c, "TestTrigger", named(q->operands[1]), NULL, NULL, &answer);

	report = field_get(answer, "report");
	if (r == 0 && json_wanted(q->settings)) {
		json_print(q->settings, report);
	} else if (r == 0) {
		text_puts(stdout, field_text(report, "id"), 0);
		putchar('\n');
		if (!q->settings->quiet)
			say("trigger %s has fired", q->operands[1]);
	}
	json_object_put(answer);
	return r;
}

/* What `trigger SUB-COMMAND' does, and how many names it takes. */
static const struct {
	const char *name;
	int min, max;
	int (*run)(struct trigger_request *q, struct client *c);
} COMMANDS[] = {
	{"list", 0, 0, trigger_list},
	{"add", 1, 1, trigger_add},
	{"remove", 1, 64, trigger_remove},
	{"test", 1, 1, trigger_test},
};
enum { COMMAND_ADD = 1 };

/* The sub-command's place in COMMANDS, or -1 after a message. */
static int find_command(const struct trigger_request *q)
{
	const char *name = q->n_operands > 0 ? q->operands[0] : "list";
	int names = MAX_OF(q->n_operands - 1, 0);

	for (size_t i = 0; i < ARRAY_SIZE(COMMANDS); i++) {
		if (strcmp(name, COMMANDS[i].name) != 0)
			continue;
		if (names < COMMANDS[i].min || names > COMMANDS[i].max)
			say("trigger %s takes %s", name,
			    COMMANDS[i].max == 0   ? "no operand"
			    : COMMANDS[i].max == 1 ? "the name of one trigger"
						   : "the names of triggers");
		else if (i != COMMAND_ADD && json_object_array_length(q->wanted) > 0)
			say("trigger %s takes no settings", name);
		else
			return (int)i;
		return -1;
	}
	say("trigger %s: not understood; valid: list, add, remove, test", name);
	return -1;
}

static int run_trigger(struct trigger_request *q)
{
	CLEANUP(client_freep) struct client *c = NULL;
	int command = find_command(q), r;

	if (command < 0)
		return EXIT_CODE_USAGE;
	r = client_open(q->settings, CLIENT_TIMEOUT_USEC, &c);
	return r != 0 ? r : COMMANDS[command].run(q, c);
}

int cmd_trigger(struct settings *s, int argc, char **argv)
{
	struct trigger_request q = {.settings = s, .wanted = json_object_new_array()};
	int r = parse_trigger(&q, argc, argv);

	if (r == 0 && !s->help && !s->version)
		r = run_trigger(&q);
	json_object_put(q.wanted);
	return r;
}
