/*
 * The fields of a tracepoint, and comparisons with them.
 */
#include "capture/probe/filter.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "capture/probe/probe_private.h"

#define MAX_FORMAT 65536
/* The kernel puts the fields common_* here and gives the program none of them. */
#define FIRST_OFFSET 8

struct field {
	unsigned offset, size;
	bool is_signed, is_array, is_loc, is_char;
};

/* Whether the declaration of LENGTH bytes ("char comm[16]") declares NAME. */
static bool declares(const char *text, size_t length, const char *name)
{
	size_t n = strlen(name);
	const char *bracket = memchr(text, '[', length);

	/* "__data_loc char[] filename": the bracket stands before the name. */
	if (bracket && bracket[1] != ']')
		length = (size_t)(bracket - text);
	return length > n && memcmp(text + length - n, name, n) == 0 && text[length - n - 1] == ' ';
}

static bool contains(const char *text, size_t length, const char *word)
{
	return memmem(text, length, word, strlen(word)) != NULL;
}

/* Finds the line of NAME (the kernel writes it in f_show() of kernel/trace/trace_events.c). */
static bool find_field(const char *format, const char *name, struct field *ret)
{
	for (const char *p = format; (p = strstr(p, "\tfield:")); p++) {
		const char *text = p + strlen("\tfield:"), *end = strchr(text, ';');
		size_t length = end ? (size_t)(end - text) : 0;
		int is_signed;

		if (!end || !declares(text, length, name))
			continue;
		if (sscanf(end, ";\toffset:%u;\tsize:%u;\tsigned:%d;", &ret->offset, &ret->size,
			   &is_signed) != 3)
			return false;
		ret->is_signed = is_signed != 0;
		ret->is_loc = strncmp(text, "__data_loc ", strlen("__data_loc ")) == 0;
		ret->is_array = memchr(text, '[', length) != NULL;
		ret->is_char = contains(text, length, "char");
		return true;
	}
	return false;
}

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static int parse_op(const char **p, uint8_t *ret)
{
	static const struct {
		const char *text;
		uint8_t op;
	} ops[] = {{"==", SHARED_EQ}, {"!=", SHARED_NE}, {"<=", SHARED_LE}, {">=", SHARED_GE},
		   {"<", SHARED_LT},  {">", SHARED_GT},	 {"&", SHARED_AND}};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		size_t n = strlen(ops[i].text);

		if (strncmp(*p, ops[i].text, n) != 0)
			continue;
		*ret = ops[i].op;
		*p += n;
		return *ret == SHARED_AND && **p == '&' ? -EINVAL : 0;
	}
	return -EINVAL;
}

/* A text in quotes, for an array of char. The end is compared too, if the array has room for it. */
static int parse_text(const char **p, const struct field *f, struct shared_test *t)
{
	const char *begin = *p + 1, *end = strchr(begin, '"');
	size_t n = end ? (size_t)(end - begin) : 0;

	if (!end || n >= SHARED_TEXT || !f->is_array || !f->is_char ||
	    (t->op != SHARED_EQ && t->op != SHARED_NE))
		return -EINVAL;
	if (!f->is_loc && n > f->size)
		return -EINVAL;
	memcpy(t->text, begin, n);
	t->is_text = f->is_loc ? SHARED_TEXT_ELSEWHERE : SHARED_TEXT_HERE;
	t->size = (uint8_t)(f->is_loc ? n + 1 : MIN_OF(n + 1, f->size));
	*p = end + 1;
	return 0;
}

/* Whether VALUE is one that the field can have. */
static bool fits(const struct field *f, long long value)
{
	unsigned bits = 8 * f->size;

	if (bits >= 64)
		return true;
	if (!f->is_signed)
		return value >= 0 && value < 1ll << bits;
	return value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1);
}

static int parse_number(const char **p, const struct field *f, struct shared_test *t)
{
	bool negative = **p == '-';
	char *end;

	if (f->is_array || f->is_loc ||
	    (f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8))
		return -EINVAL;
	if (!isdigit((unsigned char)(*p)[negative]))
		return -EINVAL;
	errno = 0;
	t->value = negative ? (uint64_t)strtoll(*p, &end, 0) : strtoull(*p, &end, 0);
	if (errno || !fits(f, (long long)t->value))
		return -ERANGE;
	t->size = (uint8_t)f->size;
	t->is_signed = f->is_signed;
	*p = end;
	return 0;
}

static int parse_name(const char **p, const char *format, struct field *f, char **ret_error)
{
	const char *begin = *p;
	char name[64];
	size_t n;

	while (isalnum((unsigned char)**p) || **p == '_')
		++*p;
	n = (size_t)(*p - begin);
	if (!n || n >= sizeof(name))
		return probe_fail(ret_error, -EINVAL, "A field's name is expected at \"%s\".",
				  begin);
	memcpy(name, begin, n);
	name[n] = 0;
	if (!find_field(format, name, f))
		return probe_fail(ret_error, -EINVAL, "The tracepoint has no field %s.", name);
	if (f->offset < FIRST_OFFSET)
		return probe_fail(ret_error, -EINVAL, "The field %s cannot be compared.", name);
	return 0;
}

/* FIELD OP VALUE; *P moves behind it. */
static int parse_test(const char **p, const char *format, struct shared_test *t, char **ret_error)
{
	const char *begin = *p;
	struct field f = {0};
	int r = parse_name(p, format, &f, ret_error);

	if (r < 0)
		return r;
	*t = (struct shared_test){.offset = f.offset};
	*p = skip_space(*p);
	r = parse_op(p, &t->op);
	*p = skip_space(*p);
	if (r == 0)
		r = **p == '"' ? parse_text(p, &f, t) : parse_number(p, &f, t);
	if (r == -ERANGE)
		return probe_fail(ret_error, -EINVAL, "The field cannot have the value in \"%s\".",
				  begin);
	if (r < 0)
		return probe_fail(ret_error, r,
				  "\"%s\" does not begin with a comparison that fits "
				  "the field.",
				  begin);
	return 0;
}

int filter_parse(const char *format, const char *filter, struct shared_test ret[SHARED_TESTS],
		 char **ret_error)
{
	const char *p = skip_space(filter ? filter : "");
	int n = 0;

	if (!*p)
		return 0;
	for (;;) {
		int r;

		if (n == SHARED_TESTS)
			return probe_fail(ret_error, -EINVAL,
					  "A filter has at most %d comparisons.", SHARED_TESTS);
		r = parse_test(&p, format, &ret[n++], ret_error);
		if (r < 0)
			return r;
		p = skip_space(p);
		if (!*p)
			return n;
		if (strncmp(p, "&&", 2) != 0)
			return probe_fail(ret_error, -EINVAL, "\"&&\" is expected at \"%s\".", p);
		p = skip_space(p + 2);
	}
}

/* --- Reading the format --- */

static bool is_name(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
			return false;
	return n > 0;
}

static int open_format(const char *tracepoint, size_t category)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[PROBE_STRING + 64];

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(path, sizeof(path), "%s/events", roots[i]);
		if (access(path, F_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/events/%.*s/%s/format", roots[i], (int)category,
			 tracepoint, tracepoint + category + 1);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		return fd < 0 ? -errno : fd;
	}
	return -EOPNOTSUPP;
}

static int read_text(int fd, char **ret)
{
	CLEANUP_FREE char *text = malloc(MAX_FORMAT);
	size_t size = 0;

	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, text + size, MAX_FORMAT - 1 - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		if (size == MAX_FORMAT - 1)
			return -EFBIG;
	}
	text[size] = 0;
	*ret = TAKE_PTR(text);
	return 0;
}

int filter_read_format(const char *tracepoint, char **ret, char **ret_error)
{
	size_t category = strcspn(tracepoint, ":");
	CLEANUP_CLOSE int fd = -EBADF;
	int r;

	if (!tracepoint[category] || !is_name(tracepoint, category) ||
	    !is_name(tracepoint + category + 1, strlen(tracepoint + category + 1)))
		return probe_fail(ret_error, -EINVAL, "\"%s\" is not CATEGORY:NAME.", tracepoint);
	fd = open_format(tracepoint, category);
	if (fd == -EOPNOTSUPP)
		return probe_fail(ret_error, fd,
				  "tracefs is not mounted or not visible at /sys/kernel/tracing.");
	if (fd == -ENOENT)
		return probe_fail(ret_error, fd, "This kernel has no tracepoint %s.", tracepoint);
	r = fd < 0 ? fd : read_text(fd, ret);
	if (r < 0)
		return probe_fail(ret_error, r, "The format of %s cannot be read: %s.", tracepoint,
				  strerror(-r));
	return 0;
}
