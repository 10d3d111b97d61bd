/*
 * ptsnapctl reload: has the recorder read its configuration and triggers again.
 */
#include "ctl/verb.h"

#include <stdio.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"

static const struct option OWN[] = {{NULL, 0, NULL, 0}};

static void print_warnings(struct json_object *warnings)
{
	size_t n = json_object_is_type(warnings, json_type_array)
			   ? json_object_array_length(warnings)
			   : 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *one = json_object_array_get_idx(warnings, i);

		if (!json_object_is_type(one, json_type_string))
			continue;
		fputs("ptsnapctl: ", stderr);
		text_puts(stderr, json_object_get_string(one), 0);
		fputc('\n', stderr);
	}
}

static void print_answer(const struct settings *s, struct json_object *answer)
{
	if (s->json == JSON_SHORT || s->json == JSON_PRETTY)
		text_puts_json(stdout, json_object_to_json_string_ext(
					       answer, JSON_C_TO_STRING_NOSLASHESCAPE |
							       (s->json == JSON_PRETTY
									? JSON_C_TO_STRING_PRETTY
									: 0)));
	else
		print_warnings(field_get(answer, "warnings"));
}

int cmd_reload(struct settings *s, int argc, char **argv)
{
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL;
	int r;

	if (option_next(s, argc, argv, OWN, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "reload takes no operand: %s", argv[optind]);
	if (s->help || s->version)
		return 0;
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_call(c, "Reload", NULL, NULL, NULL, &answer);
	if (r == 0)
		print_answer(s, answer);
	json_object_put(answer);
	return r;
}
