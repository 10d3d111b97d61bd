/*
 * ptsnapd --check: what check_host finds, for people and for scripts. Called by main.c.
 */
#include "daemon/check/check.h"

#include <stdio.h>

#include "proto/base.h"

#define EXIT_CODE_FAILURE     1
#define EXIT_CODE_NOT_TRACING 6

struct json_object *check_finding_to_json(const struct finding *finding)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "level",
			       json_object_new_string(finding_level_name(finding->level)));
	json_object_object_add(o, "what", json_object_new_string(finding->what));
	json_object_object_add(o, "text", json_object_new_string(finding->text));
	json_object_object_add(o, "fix",
			       *finding->fix ? json_object_new_string(finding->fix) : NULL);
	return o;
}

static void print_line(void *userdata, const struct finding *f)
{
	(void)userdata;
	printf("%-8s %s: %s%s%s\n", finding_level_name(f->level), f->what, f->text,
	       *f->fix ? "; fix: " : "", f->fix);
}

static void collect(void *userdata, const struct finding *f)
{
	json_object_array_add(userdata, check_finding_to_json(f));
}

int check_main(const struct config *config, bool json)
{
	struct json_object *all = json ? json_object_new_array() : NULL;
	struct check_paths paths;
	int failures;

	check_paths_init(&paths);
	failures = check_host(&paths, config, all ? collect : print_line, all);
	if (all)
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(all);
	if (fflush(stdout) < 0)
		return EXIT_CODE_FAILURE;
	return failures ? EXIT_CODE_NOT_TRACING : 0;
}
