/*
 * ptsnapctl monitor, reload, yield: verbs about the recorder itself.
 */
#include "ctl/verb.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/client/client.h"

static const struct option NO_OPTIONS[] = {{NULL, 0, NULL, 0}};

/* Parses the command line of a verb that has neither options nor operands. */
static int parse_nothing(struct settings *s, int argc, char **argv)
{
	if (option_next(s, argc, argv, NO_OPTIONS, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "%s takes no operand: %s", argv[0], argv[optind]);
	return 0;
}

/* Flushes each line at once: the reader of a pipe wants to act on it. */
static int on_event(void *userdata, struct json_object *reply)
{
	const struct settings *s = userdata;
	struct json_object *event = field_get(reply, "event");
	uint64_t missed;

	if (!json_object_is_type(event, json_type_object))
		return 0;
	if (json_wanted(s)) {
		json_print(s, event);
	} else {
		if (field_u64(reply, "missed", &missed) && missed > 0)
			say("%" PRIu64 " lines were missed", missed);
		printf("%s ", figure_field_date(event, "realtimeUSec").text);
		text_puts(stdout, field_text(event, "message"), 2048);
		putchar('\n');
	}
	return fflush(stdout) < 0 ? say_error(EXIT_CODE_FAILURE, "standard output: %m") : 0;
}

int cmd_monitor(struct settings *s, int argc, char **argv)
{
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *last = NULL;
	int r = parse_nothing(s, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	r = client_open(s, 0, &c);
	if (r == 0)
		r = client_call(c, "Monitor", NULL, on_event, s, &last);
	json_object_put(last);
	return r;
}

int cmd_reload(struct settings *s, int argc, char **argv)
{
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL;
	int r = parse_nothing(s, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_call(c, "Reload", NULL, NULL, NULL, &answer);
	if (r == 0 && json_wanted(s))
		json_print(s, answer);
	for (size_t i = 0; r == 0 && !json_wanted(s) && i < field_count(answer, "warnings"); i++) {
		struct json_object *one = field_at(answer, "warnings", i);

		if (json_object_is_type(one, json_type_string))
			say("%s", json_object_get_string(one));
	}
	json_object_put(answer);
	return r;
}

struct yield_request {
	struct settings *settings;
	uint64_t for_usec; /* 0: until `yield --end' */
	bool end;
};

static int parse_yield(struct yield_request *q, int argc, char **argv)
{
	enum { OWN_FOR = OPTION_OWN, OWN_END };
	static const struct option own[] = {
		{"for", required_argument, NULL, OWN_FOR},
		{"end", no_argument, NULL, OWN_END},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		switch (option) {
		case OWN_FOR:
			if (!option_good(size_parse_time(optarg, &q->for_usec), "--for", optarg,
					 TIME_VALID))
				return EXIT_CODE_USAGE;
			if (q->for_usec == 0)
				return say_error(EXIT_CODE_USAGE,
						 "--for=%s: not understood; give " TIME_VALID,
						 optarg);
			break;
		case OWN_END: q->end = true; break;
		default: return EXIT_CODE_USAGE;
		}
	}
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "yield takes no operand: %s", argv[optind]);
	if (q->end && q->for_usec)
		return say_error(EXIT_CODE_USAGE, "give either --for=TIME or --end");
	return 0;
}

static void print_yielded(const struct yield_request *q, struct json_object *answer)
{
	uint64_t until;

	if (json_wanted(q->settings))
		json_print(q->settings, answer);
	else if (q->settings->quiet)
		return;
	else if (q->end)
		puts("The recorder takes Intel PT again");
	else if (field_u64(answer, "untilUSec", &until))
		printf("Intel PT is free until %s\n", figure_date(until).text);
	else
		puts("Intel PT is free; `ptsnapctl yield --end' gives it back to the recorder");
}

int cmd_yield(struct settings *s, int argc, char **argv)
{
	struct yield_request q = {.settings = s};
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL, *parameters = NULL;
	int r = parse_yield(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r != 0)
		return r;
	if (q.for_usec) {
		parameters = json_object_new_object();
		json_object_object_add(parameters, "forUSec", json_object_new_uint64(q.for_usec));
	}
	r = client_call(c, q.end ? "Resume" : "Yield", parameters, NULL, NULL, &answer);
	if (r == 0)
		print_yielded(&q, answer);
	json_object_put(answer);
	return r;
}
