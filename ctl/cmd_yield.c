/*
 * ptsnapctl yield: has the recorder hand Intel PT back, so that perf or a debugger can use it, and
 * take it again.
 */
#include "ctl/verb.h"

#include <stdio.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/client/client.h"

enum { OWN_FOR = OPTION_OWN, OWN_END };

static const struct option OWN[] = {
	{"for", required_argument, NULL, OWN_FOR},
	{"end", no_argument, NULL, OWN_END},
	{NULL, 0, NULL, 0},
};

struct yield_request {
	struct settings *settings;
	uint64_t for_usec; /* 0: without an end */
	bool end;
};

static bool take_for(struct yield_request *q)
{
	if (!option_good(size_parse_time(optarg, &q->for_usec), "--for", optarg, TIME_VALID))
		return false;
	if (q->for_usec == 0)
		say("--for=%s: not understood; give " TIME_VALID, optarg);
	return q->for_usec != 0;
}

static int parse(struct yield_request *q, int argc, char **argv)
{
	int option;

	while ((option = option_next(q->settings, argc, argv, OWN, "", true)) != OPTION_END) {
		switch (option) {
		case OWN_FOR:
			if (!take_for(q))
				return EXIT_CODE_USAGE;
			break;
		case OWN_END: q->end = true; break;
		default: return EXIT_CODE_USAGE;
		}
	}
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "yield takes no operand: %s", argv[optind]);
	if (q->end && q->for_usec)
		return say_error(EXIT_CODE_USAGE, "either --for=TIME or --end");
	return 0;
}

static int print_answer(const struct yield_request *q, struct json_object *answer)
{
	const struct settings *s = q->settings;
	uint64_t until;

	if (s->json == JSON_SHORT || s->json == JSON_PRETTY) {
		text_puts_json(stdout, json_object_to_json_string_ext(
					       answer, JSON_C_TO_STRING_NOSLASHESCAPE |
							       (s->json == JSON_PRETTY
									? JSON_C_TO_STRING_PRETTY
									: 0)));
		return 0;
	}
	if (s->quiet)
		return 0;
	if (q->end)
		puts("Intel PT is taken again");
	else if (field_u64(answer, "untilUSec", &until))
		printf("Intel PT is free until %s\n", figure_date(until).text);
	else
		puts("Intel PT is free; `ptsnapctl yield --end' gives it back to the recorder");
	return 0;
}

int cmd_yield(struct settings *s, int argc, char **argv)
{
	struct yield_request q = {.settings = s};
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL, *parameters = NULL;
	int r = parse(&q, argc, argv);

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
		r = print_answer(&q, answer);
	json_object_put(answer);
	return r;
}
