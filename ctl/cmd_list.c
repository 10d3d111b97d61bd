/*
 * ptsnapctl list: prints a line for each stored snapshot, oldest first.
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

/* The last column: unit, labels, and the reason of the snapshot or of its failure. */
static void print_words(struct json_object *report)
{
	const char *unit = field_text(report, "unit"), *error = field_text(report, "error");
	struct json_object *labels = field_get(report, "labels");

	if (field_true(report, "pinned"))
		fputs("[pinned] ", stdout);
	if (unit) {
		text_puts(stdout, unit, 40);
		putchar(' ');
	}
	if (json_object_is_type(labels, json_type_object)) {
		json_object_object_foreach(labels, key, value)
		{
			text_puts(stdout, key, 32);
			putchar('=');
			text_puts(stdout, json_object_get_string(value), 40);
			putchar(' ');
		}
	}
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

/* --json=short prints one object a line, --json=pretty one array. */
static int on_report(void *userdata, struct json_object *parameters)
{
	struct listing *l = userdata;
	struct json_object *report = field_get(parameters, "report");

	if (!json_object_is_type(report, json_type_object))
		return 0;
	if (l->settings->json == JSON_PRETTY)
		fputs(l->n == 0 ? "[\n" : ",\n", stdout);
	if (json_wanted(l->settings))
		json_print(l->settings, report);
	else
		print_row(report, l->n == 0);
	l->n++;
	return 0;
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
	if (s->json == JSON_PRETTY)
		puts(l.n > 0 ? "]" : "[]");
	else if (l.n == 0 && !s->quiet)
		say("no snapshots yet; `ptsnapctl snapshot' takes one");
	return 0;
}
