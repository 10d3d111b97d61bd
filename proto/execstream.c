/*
 * Composes and parses lines of the execution stream.
 */
#include "proto/execstream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/base.h"

static const char *const branches[EXECSTREAM_BRANCHES_N] = {
	[EXECSTREAM_COND] = "cond",	[EXECSTREAM_JUMP] = "jump",
	[EXECSTREAM_CALL] = "call",	[EXECSTREAM_JUMP_IND] = "jump-ind",
	[EXECSTREAM_RET] = "ret",	[EXECSTREAM_CALL_IND] = "call-ind",
	[EXECSTREAM_FAR] = "far",	[EXECSTREAM_SYSCALL] = "syscall",
	[EXECSTREAM_ASYNC] = "async",	[EXECSTREAM_ENABLE] = "enable",
	[EXECSTREAM_RESUME] = "resume", [EXECSTREAM_DISABLE] = "disable",
	[EXECSTREAM_STOP] = "stop",
};

const char *execstream_branch_name(enum execstream_branch branch)
{
	assert((unsigned)branch < EXECSTREAM_BRANCHES_N);
	return branches[branch];
}

#define FIELD(type, member)                                                     \
	{                                                                       \
		FIELD_##type, offsetof(struct execstream_item, member), NULL, 0 \
	}
#define BRANCH                                                                  \
	{                                                                       \
		FIELD_WORD, offsetof(struct execstream_item, branch), branches, \
			ARRAY_SIZE(branches)                                    \
	}

static const struct fields_line layouts[EXECSTREAM_KINDS_N] = {
	[EXECSTREAM_HEAD] = {'H',
			     {FIELD(NUMBER, version), FIELD(LONG, time), FIELD(LONG, width),
			      FIELD(LONG, trigger)}},
	[EXECSTREAM_CONTEXT] = {'C',
				{FIELD(NUMBER, cpu), FIELD(NUMBER, pid), FIELD(NUMBER, tid),
				 FIELD(TEXT, name)}},
	[EXECSTREAM_WHEN] = {'W', {FIELD(LONG, time), FIELD(LONG, width)}},
	[EXECSTREAM_FUNCTION] = {'F',
				 {FIELD(NUMBER, function), FIELD(TEXT, name), FIELD(TEXT, image)}},
	[EXECSTREAM_PLACE] = {'D',
			      {FIELD(NUMBER, place), FIELD(HEX, address), FIELD(NUMBER, function),
			       FIELD(HEX, offset), FIELD(TEXT, bytes), FIELD(TEXT, text),
			       FIELD(TEXT, file), FIELD(NUMBER, line)}},
	[EXECSTREAM_BRANCH] = {'B', {BRANCH, FIELD(NUMBER, from), FIELD(NUMBER, to)}},
	[EXECSTREAM_INSN] = {'I', {FIELD(NUMBER, place)}},
	[EXECSTREAM_GAP] = {'G', {FIELD(TEXT, name)}},
	[EXECSTREAM_RECORDING] = {'R', {FIELD(TEXT, name), FIELD(LONG, count)}},
	[EXECSTREAM_END] = {'Z', {FIELD(LONG, branches), FIELD(LONG, insns), FIELD(LONG, gaps)}},
};

size_t execstream_compose(const struct execstream_item *item, char *line)
{
	assert((unsigned)item->kind < EXECSTREAM_KINDS_N);
	return fields_compose(&layouts[item->kind], item, line);
}

static bool are_digits(const char *text)
{
	size_t n = strspn(text, "0123456789abcdef");

	return text[n] == '\0' && n <= EXECSTREAM_MAX_BYTES && n % 2 == 0;
}

static bool is_sound(const struct execstream_item *item)
{
	return item->from <= EXECSTREAM_PLACES && item->to <= EXECSTREAM_PLACES &&
	       item->place <= EXECSTREAM_PLACES && item->function < EXECSTREAM_FUNCTIONS &&
	       are_digits(item->bytes) &&
	       (item->kind != EXECSTREAM_HEAD || item->version == EXECSTREAM_VERSION);
}

int execstream_parse(char *line, struct execstream_item *ret)
{
	int kind = fields_kind(layouts, EXECSTREAM_KINDS_N, line);

	if (kind < 0)
		return -EBADMSG;
	*ret = (struct execstream_item){.kind = (enum execstream_kind)kind,
					.name = "",
					.image = "",
					.bytes = "",
					.text = "",
					.file = ""};
	return fields_parse(&layouts[kind], line, ret) && is_sound(ret) ? 0 : -EBADMSG;
}
