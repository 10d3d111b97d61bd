/*
 * Names as the source has them, by libiberty: what addr2line -C and perf show, and names of D. The
 * mangled names are a stranger's, and a short one may stand for a text without an end, as it refers
 * back to its own parts: so printing is left in the middle when it becomes too much, and names are
 * refused in which more is looked through than is printed.
 */
#include "sideband/symbols/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "sideband/symbols/demangle_rust.h"

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)
/* Each reference may double what the name stands for. Names of C++ that have more, and packs of
 * parameters: all that a pack is made of is looked through before anything of it is printed. */
#define MAX_PACK_REFERENCES 20u
/* Within the type of a conversion operator what follows a template parameter that has arguments is
 * looked through twice, and so on within it. */
#define MAX_CONVERSIONS 8u
/* D's are printed as a whole: a MiB at most. */
#define MAX_D_REFERENCES 10u

/* --- Text up to a limit --- */

struct text {
	char bytes[DEMANGLE_MAX_TEXT + 1];
	size_t size;
	bool full;
	jmp_buf leave; /* once it is full */
};

static void put(const char *chunk, size_t size, void *userdata)
{
	struct text *t = userdata;

	t->full |= size > DEMANGLE_MAX_TEXT - t->size;
	if (t->full)
		longjmp(t->leave, 1);
	if (size > 0) /* else there may be no chunk */
		memcpy(t->bytes + t->size, chunk, size);
	t->size += size;
}

/* Who demangles Rust holds memory while it gives a name of Unicode letters: it is left only where
 * it gives what stands between names. Texts without an end are full of that. */
static void put_rust(const char *chunk, size_t size, void *userdata)
{
	struct text *t = userdata;
	unsigned char first = size > 0 ? (unsigned char)chunk[0] : 0;

	t->full |= size > DEMANGLE_MAX_TEXT - t->size;
	if (!t->full || (first < 0x80 && ispunct(first) && first != '_') || first == ' ')
		put(chunk, size, t);
}

/* --- Languages --- */

static bool demangle_rust(const char *name, struct text *ret)
{
	if (setjmp(ret->leave))
		return false;
	return rust_demangle_callback(name, OPTIONS, put_rust, ret) && !ret->full;
}

/* Of LETTER 'S': S_, S0_, SZZ_ and the like; with END "_I" behind them; wherever they stand. */
static unsigned count_numbered(const char *name, char letter, const char *end)
{
	unsigned n = 0;

	for (const char *at = strchr(name, letter); at; at = strchr(at, letter)) {
		at++;
		at += strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		n += strncmp(at, end, strlen(end)) == 0;
	}
	return n;
}

static bool is_quick(const char *name)
{
	bool packs = strstr(name, "Dp") || strstr(name, "sp");

	return !(packs && count_numbered(name, 'S', "_") > MAX_PACK_REFERENCES) &&
	       !(strstr(name, "cv") && count_numbered(name, 'T', "_I") > MAX_CONVERSIONS);
}

static bool demangle_cplus(const char *name, struct text *ret)
{
	if (!is_quick(name) || setjmp(ret->leave))
		return false;
	return cplus_demangle_v3_callback(name, OPTIONS, put, ret);
}

static bool demangle_d(const char *name, struct text *ret)
{
	unsigned references = 0;
	char *text = NULL;
	size_t size;

	for (const char *at = strchr(name, 'Q'); at; at = strchr(at + 1, 'Q'))
		references++;
	if (references <= MAX_D_REFERENCES)
		text = dlang_demangle(name, OPTIONS);
	size = text ? strlen(text) : 0;
	if (size > 0 && size <= DEMANGLE_MAX_TEXT) {
		memcpy(ret->bytes, text, size);
		ret->size = size;
	}
	free(text);
	return ret->size > 0;
}

/* Names of C may begin with _R or _D, too: what follows is not what a mangler writes there. */
static bool demangle_any(const char *name, struct text *ret)
{
	ret->size = 0;
	ret->full = false;
	if (strncmp(name, "_Z", 2) == 0) {
		if (demangle_rust(name, ret))
			return true;
		ret->size = 0;
		ret->full = false;
		return demangle_cplus(name, ret);
	}
	if (strncmp(name, "_R", 2) == 0)
		return demangle_rust_is_sound(name) && demangle_rust(name, ret);
	if (strncmp(name, "_D", 2) == 0 &&
	    (isdigit((unsigned char)name[2]) || !strcmp(name, "_Dmain")))
		return demangle_d(name, ret);
	return false;
}

char *demangle(const char *name)
{
	const char *end = strchrnul(name, '@'); /* a version, or "@plt", which stays */
	char plain[DEMANGLE_MAX_NAME + 1];
	size_t size = (size_t)(end - name), rest = strlen(end);
	struct text text;
	char *ret;

	if (name[0] != '_' || size > DEMANGLE_MAX_NAME)
		return NULL;
	memcpy(plain, name, size);
	plain[size] = 0;
	if (!demangle_any(plain, &text) || text.size == 0 || rest > DEMANGLE_MAX_TEXT - text.size)
		return NULL;
	ret = malloc(text.size + rest + 1);
	if (!ret)
		return NULL;
	memcpy(ret, text.bytes, text.size);
	memcpy(ret + text.size, end, rest + 1);
	return ret;
}
