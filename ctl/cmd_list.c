/*
 * ptsnapctl list: the stored snapshots, oldest first, a line each.
 */
#include "ctl/verb.h"

#include <stdio.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"

struct listing {
	const struct settings *settings;
	size_t n;
};

static void cell(const char *text, size_t width)
{
	size_t used = text_puts(stdout, text, width);

	printf("%*s", (int)(width + 1 - used), "");
}

static void print_labels(struct json_object *labels)
{
	if (!json_object_is_type(labels, json_type_object))
		return;
	json_object_object_foreach(labels, key, value)
	{
		text_puts(stdout, key, 32);
		putchar('=');
		text_puts(stdout, json_object_get_string(value), 40);
		putchar(' ');
	}
}

/* What it is about, how it was labelled, and why it was taken or what went wrong. */
static void print_words(struct json_object *report)
{
	const char *unit = field_text(report, "unit"), *error = field_text(report, "error");

	if (field_true(report, "pinned"))
		fputs("[pinned] ", stdout);
	if (unit) {
		text_puts(stdout, unit, 40);
		putchar(' ');
	}
	print_labels(field_get(report, "labels"));
	text_puts(stdout, error ? error : field_text(report, "reason"), 60);
}

static void print_row(struct json_object *report, bool first)
{
	if (first)
		puts("ID                        STATE      DATE                      TRIGGER        "
		     "   RAW     REPORT   GAPS REASON");
	cell(field_text(report, "id"), 25);
	cell(field_text(report, "state"), 10);
	cell(figure_field_date(report, "realtimeUSec").text, 25);
	cell(field_text(report, "trigger"), 10);
	printf("%10s %10s %6s ", figure_field_bytes(report, "rawBytes").text,
	       figure_field_bytes(report, "reportBytes").text,
	       figure_field_count(report, "gaps").text);
	print_words(report);
	putchar('\n');
}

/* --json=short: an object a line; pretty: one array. */
static void print_json(struct json_object *report, bool pretty, bool first)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE | (pretty ? JSON_C_TO_STRING_PRETTY : 0);

	if (pretty)
		fputs(first ? "[\n" : ",\n", stdout);
	text_puts_json(stdout, json_object_to_json_string_ext(report, flags));
}

static int on_report(void *userdata, struct json_object *parameters)
{
	struct listing *l = userdata;
	struct json_object *report = field_get(parameters, "report");

	if (!json_object_is_type(report, json_type_object))
		return 0;
	if (l->settings->json == JSON_SHORT || l->settings->json == JSON_PRETTY)
		print_json(report, l->settings->json == JSON_PRETTY, l->n == 0);
	else
		print_row(report, l->n == 0);
	l->n++;
	return 0;
}

static void finish(const struct listing *l)
{
	if (l->settings->json == JSON_PRETTY)
		puts(l->n > 0 ? "]" : "[]");
	else if (l->n == 0 && !l->settings->quiet)
		say("no snapshots yet; `ptsnapctl snapshot' takes one");
}

int cmd_list(struct settings *s, int argc, char **argv)
{
	static const struct option own[] = {{NULL, 0, NULL, 0}};
	CLEANUP(client_freep) struct client *c = NULL;
	struct listing l = {.settings = s};
	struct json_object *last = NULL;
	int r;

	if (option_next(s, argc, argv, own, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "list takes no operand: %s", argv[optind]);
	if (s->help || s->version)
		return 0;
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_call(c, "List", NULL, on_report, &l, &last);
	if (r != 0)
		return r;
	on_report(&l, last);
	json_object_put(last);
	finish(&l);
	return 0;
}
