/*
 * Parses lines of perf script.
 */
#include "tests/vm/self/perf_lines.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* " instruction trace error type 1 time 94.8 cpu 0 pid 229 tid 229 ip 0x7f9f code 5: Failed to..."
 */
static bool parse_error(const char *text, struct perf_line *ret)
{
	const char *cpu = strstr(text, " cpu "), *code = strstr(text, " code ");

	if (!strstr(text, "instruction trace error") || !cpu || !code)
		return false;
	ret->kind = PERF_LINE_ERROR;
	ret->cpu = (uint32_t)strtoul(cpu + 5, NULL, 10);
	ret->error = MIN_OF((unsigned int)strtoul(code + 6, NULL, 10), PERF_LINE_ERRORS - 1);
	return true;
}

/* "  229 [000] instructions:u:   jcc     7f9f7b07f350     7f9f7b07f356": the address is the last
 * word. "  229 [000]     branches:u:   return     7f9f7b07f358 =>     563bb8170b7c" */
static bool parse_event(const char *text, struct perf_line *ret)
{
	char *end, *address;
	const char *at;

	ret->tid = (uint32_t)strtol(text, &end, 10);
	if (end == text || end[0] != ' ' || end[1] != '[')
		return false;
	ret->cpu = (uint32_t)strtoul(end + 2, &end, 10);
	if (*end++ != ']')
		return false;
	end += strspn(end, " ");
	if (strncmp(end, "instructions", 12) == 0)
		ret->kind = PERF_LINE_INSTRUCTION;
	else if (strncmp(end, "branches", 8) == 0)
		ret->kind = PERF_LINE_BRANCH;
	else
		return false;
	ret->interrupt = strstr(end, " hw int ");
	ret->edge = strstr(end, " tr ");
	at = ret->kind == PERF_LINE_BRANCH ? strstr(end, " => ") : end + strlen(end);
	while (at && at > end && isspace(at[-1]))
		at--;
	while (at && at > end && isxdigit(at[-1]))
		at--;
	if (!at)
		return false;
	ret->ip = strtoull(at, &address, 16);
	return address > at;
}

int perf_lines_read(FILE *from, void (*fn)(void *userdata, const struct perf_line *line),
		    void *userdata)
{
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;

	while (getline(&text, &size, from) > 0) {
		struct perf_line line = {0};

		if (!parse_event(text, &line) && !parse_error(text, &line)) {
			fprintf(stderr, "perf script says: %s", text);
			return -EBADMSG;
		}
		fn(userdata, &line);
	}
	return 0;
}
