/*
 * Composes and parses lines of the call stream.
 */
#include "proto/callstream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/base.h"

static const char letters[CALLSTREAM_KINDS_N + 1] = "HTFBERSGMZ";

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

/* The fields of each kind, in order. */
enum field_type { NUMBER32, NUMBER64, HEX, TEXT, BEGIN, END, WHY };

struct field {
	enum field_type type;
	size_t offset;
};

#define FIELD(type, member)                                    \
	{                                                      \
		type, offsetof(struct callstream_item, member) \
	}
#define MAX_FIELDS 6

static const struct {
	unsigned n;
	struct field fields[MAX_FIELDS];
} layouts[CALLSTREAM_KINDS_N] = {
	[CALLSTREAM_HEAD] = {4,
			     {FIELD(NUMBER32, version), FIELD(NUMBER64, time),
			      FIELD(NUMBER64, width), FIELD(NUMBER64, value)}},
	[CALLSTREAM_THREAD] = {4,
			       {FIELD(NUMBER32, thread), FIELD(NUMBER32, pid), FIELD(NUMBER32, tid),
				FIELD(TEXT, name)}},
	[CALLSTREAM_FUNCTION] = {6,
				 {FIELD(NUMBER32, function), FIELD(HEX, address), FIELD(TEXT, name),
				  FIELD(TEXT, image), FIELD(TEXT, file), FIELD(NUMBER32, line)}},
	[CALLSTREAM_BEGIN] = {6,
			      {FIELD(NUMBER32, thread), FIELD(NUMBER64, time),
			       FIELD(NUMBER64, width), FIELD(NUMBER32, cpu),
			       FIELD(NUMBER32, function), FIELD(BEGIN, begin)}},
	[CALLSTREAM_FINISH] = {6,
			       {FIELD(NUMBER32, thread), FIELD(NUMBER64, time),
				FIELD(NUMBER64, width), FIELD(NUMBER32, cpu), FIELD(END, end),
				FIELD(NUMBER64, insns)}},
	[CALLSTREAM_ON] = {3,
			   {FIELD(NUMBER32, thread), FIELD(NUMBER64, time), FIELD(NUMBER32, cpu)}},
	[CALLSTREAM_OFF] = {4,
			    {FIELD(NUMBER32, thread), FIELD(NUMBER64, time), FIELD(NUMBER32, cpu),
			     FIELD(WHY, why)}},
	[CALLSTREAM_GAP] = {5,
			    {FIELD(NUMBER32, thread), FIELD(NUMBER64, time), FIELD(NUMBER64, width),
			     FIELD(NUMBER32, cpu), FIELD(TEXT, name)}},
	[CALLSTREAM_MARK] = {5,
			     {FIELD(NUMBER32, thread), FIELD(NUMBER64, time), FIELD(NUMBER32, cpu),
			      FIELD(NUMBER64, value), FIELD(TEXT, name)}},
	[CALLSTREAM_END] = {2, {FIELD(NUMBER64, value), FIELD(NUMBER64, cut)}},
};

static char *put_number(char *to, uint64_t v)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

static char *put_hex(char *to, uint64_t v)
{
	unsigned shift = 60;

	*to++ = '0';
	*to++ = 'x';
	while (shift > 0 && (v >> shift) == 0)
		shift -= 4;
	for (;; shift -= 4) {
		*to++ = "0123456789abcdef"[v >> shift & 15];
		if (shift == 0)
			return to;
	}
}

static char *put_word(char *to, const char *word)
{
	return stpcpy(to, word);
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c <= '~' && c != '\\';
}

static char *put_text(char *to, const char *text)
{
	for (size_t i = 0; i < CALLSTREAM_MAX_TEXT && text[i] != '\0'; i++) {
		unsigned char c = (unsigned char)text[i];

		if (is_plain(c)) {
			*to++ = (char)c;
			continue;
		}
		*to++ = '\\';
		*to++ = 'x';
		*to++ = "0123456789abcdef"[c >> 4];
		*to++ = "0123456789abcdef"[c & 15];
	}
	return to;
}

static char *put_field(char *to, const struct field *f, const struct callstream_item *item)
{
	const void *at = (const char *)item + f->offset;

	switch (f->type) {
	case NUMBER32: return put_number(to, *(const uint32_t *)at);
	case NUMBER64: return put_number(to, *(const uint64_t *)at);
	case HEX: return put_hex(to, *(const uint64_t *)at);
	case TEXT: return put_text(to, *(const char *const *)at);
	case BEGIN: return put_word(to, callstream_begin_name(item->begin));
	case END: return put_word(to, callstream_end_name(item->end));
	case WHY: return put_word(to, callstream_why_name(item->why));
	}
	return to;
}

size_t callstream_compose(const struct callstream_item *item, char *line)
{
	char *to = line;

	assert((unsigned)item->kind < CALLSTREAM_KINDS_N);
	*to++ = letters[item->kind];
	for (unsigned i = 0; i < layouts[item->kind].n; i++) {
		*to++ = '\t';
		to = put_field(to, &layouts[item->kind].fields[i], item);
	}
	*to++ = '\n';
	*to = '\0';
	return (size_t)(to - line);
}

static bool get_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return false;
	}
	*ret = v;
	return v <= max;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_hex(const char *text, uint64_t *ret)
{
	uint64_t v = 0;

	if (text[0] != '0' || text[1] != 'x' || text[2] == '\0' || strlen(text) > 2 + 16)
		return false;
	for (text += 2; *text != '\0'; text++) {
		if (digit(*text) < 0)
			return false;
		v = v << 4 | (uint64_t)digit(*text);
	}
	*ret = v;
	return true;
}

/* Unescapes in place. A text cannot contain a 0. */
static bool get_text(char *text, const char **ret)
{
	char *to = text;

	*ret = text;
	for (; *text != '\0'; to++) {
		if (!is_plain((unsigned char)*text) && *text != '\\')
			return false;
		if (*text != '\\') {
			*to = *text++;
			continue;
		}
		if (text[1] != 'x' || digit(text[2]) < 0 || digit(text[3]) < 0)
			return false;
		*to = (char)(digit(text[2]) << 4 | digit(text[3]));
		if (*to == '\0')
			return false;
		text += 4;
	}
	*to = '\0';
	return true;
}

static bool get_word(const char *text, const char *const *words, size_t n, unsigned *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret = (unsigned)i;
			return true;
		}
	}
	return false;
}

static bool get_field(char *text, const struct field *f, struct callstream_item *ret)
{
	void *at = (char *)ret + f->offset;
	uint64_t v = 0;
	unsigned word = 0;
	bool ok = false;

	switch (f->type) {
	case NUMBER32:
		ok = get_number(text, UINT32_MAX, &v);
		*(uint32_t *)at = (uint32_t)v;
		return ok;
	case NUMBER64: return get_number(text, UINT64_MAX, at);
	case HEX: return get_hex(text, at);
	case TEXT: return get_text(text, at);
	case BEGIN:
		ok = get_word(text, begins, ARRAY_SIZE(begins), &word);
		ret->begin = (enum callstream_begin)word;
		return ok;
	case END:
		ok = get_word(text, ends, ARRAY_SIZE(ends), &word);
		ret->end = (enum callstream_end)word;
		return ok;
	case WHY:
		ok = get_word(text, whys, ARRAY_SIZE(whys), &word);
		ret->why = (enum callstream_why)word;
		return ok;
	}
	return false;
}

/* Ends the field at *REST and moves *REST behind it; NULL: it was the last one. */
static char *next_field(char **rest)
{
	char *field = *rest, *tab = strchr(field, '\t');

	*rest = tab ? tab + 1 : NULL;
	if (tab)
		*tab = '\0';
	return field;
}

int callstream_parse(char *line, struct callstream_item *ret)
{
	const char *letter = line[0] != '\0' ? strchr(letters, line[0]) : NULL;
	char *rest = line;

	if (!letter || strlen(next_field(&rest)) != 1)
		return -EBADMSG;
	*ret = (struct callstream_item){.kind = (enum callstream_kind)(letter - letters),
					.name = "",
					.image = "",
					.file = ""};
	for (unsigned i = 0; i < layouts[ret->kind].n; i++) {
		if (!rest || !get_field(next_field(&rest), &layouts[ret->kind].fields[i], ret))
			return -EBADMSG;
	}
	if (rest || (ret->kind == CALLSTREAM_HEAD && ret->version != CALLSTREAM_VERSION))
		return -EBADMSG;
	return 0;
}
