/*
 * ptsnapctl monitor: what the recorder logs, line by line, until it ends or we are interrupted.
 */
#include "ctl/verb.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"

static void print_line(struct json_object *reply)
{
	uint64_t missed;

	if (field_u64(reply, "missed", &missed) && missed > 0)
		say("%" PRIu64 " lines were missed", missed);
	printf("%s ", figure_field_date(reply, "event.realtimeUSec").text);
	text_puts(stdout, field_text(reply, "event.message"), 2048);
	putchar('\n');
}

static void print_json(struct json_object *event, bool pretty)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE | (pretty ? JSON_C_TO_STRING_PRETTY : 0);

	text_puts_json(stdout, json_object_to_json_string_ext(event, flags));
}

/* Each line at once: who reads it through a pipe wants to act on it. */
static int on_event(void *userdata, struct json_object *reply)
{
	const struct settings *s = userdata;
	struct json_object *event = field_get(reply, "event");

	if (!json_object_is_type(event, json_type_object))
		return 0;
	if (s->json == JSON_SHORT || s->json == JSON_PRETTY)
		print_json(event, s->json == JSON_PRETTY);
	else
		print_line(reply);
	return fflush(stdout) < 0 ? say_error(EXIT_CODE_FAILURE, "standard output: %m") : 0;
}

int cmd_monitor(struct settings *s, int argc, char **argv)
{
	static const struct option own[] = {{NULL, 0, NULL, 0}};
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *last = NULL;
	int r;

	if (option_next(s, argc, argv, own, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "monitor takes no operand: %s", argv[optind]);
	if (s->help || s->version)
		return 0;
	r = client_open(s, 0, &c);
	if (r == 0)
		r = client_call(c, "Monitor", NULL, on_event, s, &last);
	json_object_put(last);
	return r;
}
