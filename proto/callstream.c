/*
 * Composes and parses lines of the call stream.
 */
#include "proto/callstream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "proto/fields.h"

static const char *const begins[CALLSTREAM_BEGINS_N] = {
	"call", "jump", "signal", "interrupt", "syscall", "inlined", "found",
};
static const char *const ends[CALLSTREAM_ENDS_N] = {
	"return", "left", "unwound", "swapped", "lost", "open",
};
static const char *const whys[CALLSTREAM_WHYS_N] = {"preempted", "blocked", "exited", "unknown"};

const char *callstream_begin_name(enum callstream_begin begin)
{
	assert((unsigned)begin < CALLSTREAM_BEGINS_N);
	return begins[begin];
}

const char *callstream_end_name(enum callstream_end end)
{
	assert((unsigned)end < CALLSTREAM_ENDS_N);
	return ends[end];
}

const char *callstream_why_name(enum callstream_why why)
{
	assert((unsigned)why < CALLSTREAM_WHYS_N);
	return whys[why];
}

_Static_assert(CALLSTREAM_MAX_TEXT == FIELDS_MAX_TEXT && CALLSTREAM_MAX_LINE == FIELDS_MAX_LINE,
	       "the limits are those of fields.h");

#define FIELD(type, member)                                                     \
	{                                                                       \
		FIELD_##type, offsetof(struct callstream_item, member), NULL, 0 \
	}
#define WORD(member, words)                                                                    \
	{                                                                                      \
		FIELD_WORD, offsetof(struct callstream_item, member), words, ARRAY_SIZE(words) \
	}

static const struct fields_line layouts[CALLSTREAM_KINDS_N] = {
	[CALLSTREAM_HEAD] = {'H',
			     {FIELD(NUMBER, version), FIELD(LONG, time), FIELD(LONG, width),
			      FIELD(LONG, value)}},
	[CALLSTREAM_THREAD] = {'T',
			       {FIELD(NUMBER, thread), FIELD(NUMBER, pid), FIELD(NUMBER, tid),
				FIELD(TEXT, name)}},
	[CALLSTREAM_FUNCTION] = {'F',
				 {FIELD(NUMBER, function), FIELD(HEX, address), FIELD(TEXT, name),
				  FIELD(TEXT, image), FIELD(TEXT, file), FIELD(NUMBER, line)}},
	[CALLSTREAM_BEGIN] = {'B',
			      {FIELD(NUMBER, thread), FIELD(LONG, time), FIELD(LONG, width),
			       FIELD(NUMBER, cpu), FIELD(NUMBER, function), WORD(begin, begins)}},
	[CALLSTREAM_FINISH] = {'E',
			       {FIELD(NUMBER, thread), FIELD(LONG, time), FIELD(LONG, width),
				FIELD(NUMBER, cpu), WORD(end, ends), FIELD(LONG, insns)}},
	[CALLSTREAM_ON] = {'R', {FIELD(NUMBER, thread), FIELD(LONG, time), FIELD(NUMBER, cpu)}},
	[CALLSTREAM_OFF] = {'S',
			    {FIELD(NUMBER, thread), FIELD(LONG, time), FIELD(NUMBER, cpu),
			     WORD(why, whys)}},
	[CALLSTREAM_GAP] = {'G',
			    {FIELD(NUMBER, thread), FIELD(LONG, time), FIELD(LONG, width),
			     FIELD(NUMBER, cpu), FIELD(TEXT, name)}},
	[CALLSTREAM_MARK] = {'M',
			     {FIELD(NUMBER, thread), FIELD(LONG, time), FIELD(NUMBER, cpu),
			      FIELD(LONG, value), FIELD(TEXT, name)}},
	[CALLSTREAM_END] = {'Z', {FIELD(LONG, value), FIELD(LONG, cut)}},
};

size_t callstream_compose(const struct callstream_item *item, char *line)
{
	assert((unsigned)item->kind < CALLSTREAM_KINDS_N);
	return fields_compose(&layouts[item->kind], item, line);
}

int callstream_parse(char *line, struct callstream_item *ret)
{
	int kind = fields_kind(layouts, CALLSTREAM_KINDS_N, line);

	if (kind < 0)
		return -EBADMSG;
	*ret = (struct callstream_item){
		.kind = (enum callstream_kind)kind, .name = "", .image = "", .file = ""};
	if (!fields_parse(&layouts[kind], line, ret) ||
	    (ret->kind == CALLSTREAM_HEAD && ret->version != CALLSTREAM_VERSION))
		return -EBADMSG;
	return 0;
}
