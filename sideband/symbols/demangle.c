/*
 * Names as the source has them, by libiberty: what addr2line -C and perf show, and names of D.
 *
 * Mangled names are a stranger's. A name refers back to its own parts, so a short one may stand for
 * a text without an end, or make libiberty work without an end. Three limits hold: printing stops
 * when the text is too long; names whose references multiply the work are refused before libiberty
 * sees them; and names of Rust's "v0" scheme are parsed first.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "sideband/symbols/symbols.h"

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)
/* In names of C++ with parameter packs each reference may double what the name stands for:
 * libiberty looks through all parts of a pack before it prints anything. */
#define MAX_PACK_REFERENCES 20u
/* Within the type of a C++ conversion operator libiberty looks twice through what follows a
 * template parameter that has arguments, and so on at each level. */
#define MAX_CONVERSIONS 8u
/* libiberty makes the whole text of a name of D: a MiB with so many references. */
#define MAX_D_REFERENCES 10u
/* Bound lifetimes of a type, and digits of a length, in names of Rust. */
#define MAX_LIFETIMES 64u
#define MAX_DIGITS    8u

/* --- Rust's "v0" scheme (RFC 2603) --- */

/*
 * Checks that a name is built as the mangler builds names, and makes nothing of it. libiberty
 * counts bound lifetimes up to any number in the name, even where it prints none of them, and
 * follows a reference to wherever it leads. The checks exclude both.
 */
static const char digits[] = "0123456789";
static const char digits_62[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct reader {
	const char *text; /* behind "_R" */
	size_t at, size;
	bool bad;
	bool begins[DEMANGLE_MAX_NAME]; /* a path, a type or a constant begins there */
};

static void read_type(struct reader *r);
static void read_path(struct reader *r);

static char peek(const struct reader *r)
{
	return r->at < r->size ? r->text[r->at] : 0;
}

static char next(struct reader *r)
{
	char c = peek(r);

	r->bad |= c == 0;
	r->at += c != 0;
	return c;
}

static bool eat(struct reader *r, char c)
{
	bool is = peek(r) == c;

	r->at += is;
	return is;
}

/* --- Numbers and names --- */

/* A number to the base 62 up to its "_". No digits mean 0, digits mean one more than they say. */
static uint64_t read_62(struct reader *r)
{
	uint64_t value = 0;
	size_t n = strspn(r->text + r->at, digits_62);

	for (size_t i = 0; i < n && !r->bad; i++) {
		const char *digit = strchr(digits_62, r->text[r->at + i]);

		r->bad |= __builtin_mul_overflow(value, 62, &value) ||
			  __builtin_add_overflow(value, digit - digits_62, &value);
	}
	r->at += n;
	r->bad |= r->at >= r->size || next(r) != '_' || value == UINT64_MAX;
	return n > 0 ? value + 1 : 0;
}

static void read_disambiguator(struct reader *r)
{
	if (eat(r, 's'))
		read_62(r);
}

static void read_identifier(struct reader *r)
{
	size_t size = 0, n;

	eat(r, 'u');
	n = strspn(r->text + r->at, digits);
	if (peek(r) == '0')
		n = 1;
	r->bad |= n == 0 || n > MAX_DIGITS;
	for (; n > 0 && !r->bad; n--)
		size = size * 10 + (size_t)(next(r) - '0');
	eat(r, '_');
	r->bad |= size > r->size - r->at;
	r->at += r->bad ? 0 : size;
}

/* Called before the part is read, as the part may refer to itself. */
static void note_begin(struct reader *r)
{
	if (r->at < r->size)
		r->begins[r->at] = true;
}

static void read_reference(struct reader *r)
{
	size_t at = r->at - 1;
	uint64_t to = read_62(r);

	r->bad |= to >= at || !r->begins[to];
}

/* --- Types --- */

static void read_constant(struct reader *r)
{
	char c;

	note_begin(r);
	c = next(r);
	if (c == 'B')
		read_reference(r);
	if (c == 'B' || c == 'p')
		return;
	eat(r, 'n');
	r->at += strspn(r->text + r->at, "0123456789abcdef");
	r->bad |= next(r) != '_';
}

static void read_binder(struct reader *r)
{
	if (eat(r, 'G'))
		r->bad |= read_62(r) >= MAX_LIFETIMES;
}

static void read_function(struct reader *r)
{
	read_binder(r);
	eat(r, 'U');
	if (eat(r, 'K') && !eat(r, 'C'))
		read_identifier(r);
	while (!r->bad && !eat(r, 'E'))
		read_type(r);
	read_type(r);
}

static void read_dynamic(struct reader *r)
{
	read_binder(r);
	while (!r->bad && !eat(r, 'E')) {
		read_path(r);
		while (!r->bad && eat(r, 'p')) {
			read_identifier(r);
			read_type(r);
		}
	}
	r->bad |= next(r) != 'L';
	read_62(r);
}

static void read_compound(struct reader *r, char c)
{
	switch (c) {
	case 'R':
	case 'Q':
		if (eat(r, 'L'))
			read_62(r);
		read_type(r);
		break;
	case 'A':
		read_type(r);
		read_constant(r);
		break;
	case 'T':
		while (!r->bad && !eat(r, 'E'))
			read_type(r);
		break;
	case 'F': read_function(r); break;
	case 'D': read_dynamic(r); break;
	default: read_type(r); /* P, O, S */
	}
}

static void read_type(struct reader *r)
{
	char c = peek(r);

	note_begin(r);
	if (r->bad)
		return;
	if (c >= 'a' && c <= 'z') {
		r->at++;
	} else if (c != 0 && strchr("RQATFDPOS", c)) {
		r->at++;
		read_compound(r, c);
	} else {
		read_path(r);
	}
}

/* --- Paths --- */

/* M and X: the path of the implementation, its type and, for X, the trait. */
static void read_implementation(struct reader *r, bool of_trait)
{
	read_disambiguator(r);
	read_path(r);
	read_type(r);
	if (of_trait)
		read_path(r);
}

static void read_path(struct reader *r)
{
	note_begin(r);
	if (r->bad)
		return;
	switch (next(r)) {
	case 'C':
		read_disambiguator(r);
		read_identifier(r);
		break;
	case 'M': read_implementation(r, false); break;
	case 'X': read_implementation(r, true); break;
	case 'Y':
		read_type(r);
		read_path(r);
		break;
	case 'N':
		next(r);
		read_path(r);
		read_disambiguator(r);
		read_identifier(r);
		break;
	case 'I':
		read_path(r);
		while (!r->bad && !eat(r, 'E')) {
			if (eat(r, 'L'))
				read_62(r);
			else if (eat(r, 'K'))
				read_constant(r);
			else
				read_type(r);
		}
		break;
	case 'B': read_reference(r); break;
	default: r->bad = true;
	}
}

/* Whether NAME, which begins with "_R", is well-formed, each reference leads to the beginning of an
 * earlier part, and no type binds more lifetimes than a program needs. */
static bool is_sound_rust(const char *name)
{
	struct reader r = {.text = name + 2};

	/* Compilers add suffixes such as ".llvm.123". */
	r.size = strcspn(r.text, ".$");
	if (r.size > DEMANGLE_MAX_NAME)
		return false;
	read_path(&r);
	if (!r.bad && r.at < r.size) /* the crate that instantiated it */
		read_path(&r);
	return !r.bad && r.at == r.size;
}

/* --- Text up to a limit --- */

struct text {
	char bytes[DEMANGLE_MAX_TEXT + 1];
	size_t size;
	bool full;
	jmp_buf leave; /* where to go once the text is full */
};

static void put(const char *chunk, size_t size, void *userdata)
{
	struct text *t = userdata;

	t->full |= size > DEMANGLE_MAX_TEXT - t->size;
	if (t->full)
		longjmp(t->leave, 1);
	if (size > 0) /* CHUNK may be NULL */
		memcpy(t->bytes + t->size, chunk, size);
	t->size += size;
}

/* libiberty holds memory while it prints an identifier with Unicode letters, so longjmp() leaves it
 * only while it prints what stands between identifiers. Texts without an end are full of that. */
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

/* Counts LETTER, a number, and END, anywhere in NAME. 'S' and "_": S_, S0_, SZZ_ and the like. */
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

static bool demangle_cplus(const char *name, struct text *ret)
{
	bool packs = strstr(name, "Dp") || strstr(name, "sp");

	if (packs && count_numbered(name, 'S', "_") > MAX_PACK_REFERENCES)
		return false;
	if (strstr(name, "cv") && count_numbered(name, 'T', "_I") > MAX_CONVERSIONS)
		return false;
	if (setjmp(ret->leave))
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

/* A name of C may begin with _R or _D, too; what follows then is not what a mangler writes. */
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
		return is_sound_rust(name) && demangle_rust(name, ret);
	if (strncmp(name, "_D", 2) == 0 &&
	    (isdigit((unsigned char)name[2]) || !strcmp(name, "_Dmain")))
		return demangle_d(name, ret);
	return false;
}

char *demangle(const char *name)
{
	const char *end = strchrnul(name, '@'); /* "@version" or "@plt" stays as it is */
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
