/*
 * Reads a name of Rust as its grammar has it (RFC 2603, "v0"), and makes nothing of it. libiberty
 * counts lifetimes up to whatever number stands there, also where it prints none of them, and goes
 * wherever a reference leads: so both are looked at before. Used by demangle.c.
 */
#include "sideband/symbols/demangle_rust.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAX_LIFETIMES 64u
#define MAX_DIGITS    8u /* of a length */

static const char digits[] = "0123456789";
static const char digits_62[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct reader {
	const char *text; /* behind "_R" */
	size_t at, size;
	bool bad;
	bool begins[DEMANGLE_RUST_MAX]; /* a path, a type or a constant */
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

/* Up to the "_": of no digits it is 0, and from there on one less stands there. */
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

/* Begins before it is read, so that it can be referred to from within. */
static void begin(struct reader *r)
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

	begin(r);
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

	begin(r);
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

static void read_arguments(struct reader *r)
{
	while (!r->bad && !eat(r, 'E')) {
		if (eat(r, 'L'))
			read_62(r);
		else if (eat(r, 'K'))
			read_constant(r);
		else
			read_type(r);
	}
}

/* M and X: the path to it, its type, and of X the trait. */
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
	begin(r);
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
		read_arguments(r);
		break;
	case 'B': read_reference(r); break;
	default: r->bad = true;
	}
}

bool demangle_rust_is_sound(const char *name)
{
	struct reader r = {.text = name + 2};

	/* What was added by a compiler is left out. */
	r.size = strcspn(r.text, ".$");
	if (r.size > DEMANGLE_RUST_MAX)
		return false;
	read_path(&r);
	if (!r.bad && r.at < r.size) /* the crate that needed it */
		read_path(&r);
	return !r.bad && r.at == r.size;
}
