/*
 * The functions of a perf map: text -> lines -> spans that do not overlap, in order of address.
 *
 * The lines are read from the last one on, so a map that is too long loses its oldest lines. A
 * sweep over the addresses gives each address to the newest function that has it; that takes n log
 * n steps, whatever the text says.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/symbols/symbols.h"

/* A line of the text. The smaller the index, the newer the line. */
struct line {
	uint64_t begin, end;
	const char *name; /* in the text */
	size_t length;
};

struct span {
	uint64_t begin, end;
	uint32_t line;
	char *name; /* owned, made on first use; NULL: not asked for yet */
};

struct perfmap {
	struct line *lines;
	size_t n_lines;
	struct span *spans;
	size_t n_spans;
	char none; /* "", the name of a function whose name found no memory */
};

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a hexadecimal number and the blanks behind it, and moves *AT behind both. */
static bool take_number(const char **at, const char *end, uint64_t *ret)
{
	const char *p = *at;
	size_t digits = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (*ret = 0; p < end && digit(*p) >= 0; p++, digits++) {
		if (*ret >> 60)
			return false;
		*ret = *ret << 4 | (uint64_t)digit(*p);
	}
	if (digits == 0 || p == end || (*p != ' ' && *p != '\t'))
		return false;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*at = p;
	return true;
}

static bool parse(const char *text, const char *end, struct line *ret)
{
	uint64_t size;
	const char *nul;

	if (!take_number(&text, end, &ret->begin) || !take_number(&text, end, &size) || size == 0 ||
	    __builtin_add_overflow(ret->begin, size, &ret->end))
		return false;
	nul = memchr(text, '\0', (size_t)(end - text));
	end = nul ? nul : end;
	while (end > text && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	ret->name = text;
	ret->length = (size_t)(end - text);
	return ret->length > 0;
}

/* Reads the last lines first. */
static int read_lines(struct perfmap *m, const char *text, size_t size)
{
	size_t capacity = 0;

	while (size > 0 && m->n_lines < PERFMAP_MAX) {
		const char *end = text + size, *before = memrchr(text, '\n', size);
		const char *begin = before ? before + 1 : text;
		struct line line;

		size = before ? (size_t)(before - text) : 0;
		if (!parse(begin, end, &line))
			continue;
		if (ARRAY_RESERVE(m->lines, capacity, m->n_lines + 1) < 0)
			return -ENOMEM;
		m->lines[m->n_lines++] = line;
	}
	return 0;
}

/* The sweep over addresses. The heap has the lines that reach over the current address, and the
 * newest of them on top. */
struct sweep {
	const struct line *lines;
	uint32_t *order; /* the lines in order of address */
	uint32_t *heap;
	size_t n_heap;
};

static int compare_lines(const void *a, const void *b, void *lines)
{
	const struct line *x = (const struct line *)lines + *(const uint32_t *)a;
	const struct line *y = (const struct line *)lines + *(const uint32_t *)b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t t = *a;

	*a = *b;
	*b = t;
}

static void heap_put(struct sweep *s, uint32_t line)
{
	size_t i = s->n_heap++;

	s->heap[i] = line;
	for (; i > 0 && s->heap[(i - 1) / 2] > s->heap[i]; i = (i - 1) / 2)
		swap(&s->heap[(i - 1) / 2], &s->heap[i]);
}

static void heap_drop(struct sweep *s)
{
	size_t i = 0, least;

	s->heap[0] = s->heap[--s->n_heap];
	for (;; i = least) {
		least = i;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->n_heap; child++)
			if (s->heap[child] < s->heap[least])
				least = child;
		if (least == i)
			return;
		swap(&s->heap[i], &s->heap[least]);
	}
}

/* Gives [BEGIN, END) to LINE, in one span with the bytes before if LINE has those, too. */
static void add_span(struct perfmap *m, uint64_t begin, uint64_t end, uint32_t line)
{
	struct span *last = m->n_spans > 0 ? &m->spans[m->n_spans - 1] : NULL;

	if (begin >= end)
		return;
	if (last && last->line == line && last->end == begin)
		last->end = end;
	else
		m->spans[m->n_spans++] = (struct span){.begin = begin, .end = end, .line = line};
}

/* Owners change only where a line begins or ends, so there are at most two spans a line. */
static void sweep(struct perfmap *m, struct sweep *s)
{
	uint64_t at = 0;
	size_t i = 0;

	while (i < m->n_lines || s->n_heap > 0) {
		uint64_t next = i < m->n_lines ? m->lines[s->order[i]].begin : UINT64_MAX;

		while (s->n_heap > 0 && m->lines[s->heap[0]].end <= at)
			heap_drop(s);
		if (s->n_heap > 0) {
			uint64_t end = MIN_OF(m->lines[s->heap[0]].end, next);

			add_span(m, at, end, s->heap[0]);
			at = MAX_OF(at, end);
			if (end < next)
				continue;
		}
		at = next;
		while (i < m->n_lines && m->lines[s->order[i]].begin == at)
			heap_put(s, s->order[i++]);
	}
}

static int make_spans(struct perfmap *m)
{
	CLEANUP_FREE uint32_t *order = calloc(m->n_lines + 1, sizeof(*order));
	CLEANUP_FREE uint32_t *heap = calloc(m->n_lines + 1, sizeof(*heap));
	struct sweep s = {.lines = m->lines, .order = order, .heap = heap};

	m->spans = calloc(2 * m->n_lines + 1, sizeof(*m->spans));
	if (!order || !heap || !m->spans)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_lines; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, m->n_lines, sizeof(*order), compare_lines, m->lines);
	sweep(m, &s);
	return 0;
}

/* The lines of *RET are read, with result R. */
static int begin(struct perfmap **ret, int r)
{
	if (r == 0)
		r = make_spans(*ret);
	if (r < 0) {
		perfmap_free(*ret);
		*ret = NULL;
	}
	return r;
}

int perfmap_new(const void *text, size_t size, struct perfmap **ret)
{
	struct perfmap *m = calloc(1, sizeof(*m));
	int r = m ? begin(&m, read_lines(m, text, size)) : -ENOMEM;

	if (r == 0)
		*ret = m;
	return r;
}

int perfmap_new_of(size_t n,
		   const char *(*fn)(void *userdata, size_t i, uint64_t *ret_begin,
				     uint64_t *ret_size),
		   void *userdata, struct perfmap **ret)
{
	struct perfmap *m = calloc(1, sizeof(*m));
	size_t capacity = 0;
	int r = m ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && i < PERFMAP_MAX && r == 0; i++) {
		struct line line = {0};
		uint64_t size;

		line.name = fn(userdata, i, &line.begin, &size);
		line.length = strlen(line.name);
		if (line.length == 0 || size == 0 ||
		    __builtin_add_overflow(line.begin, size, &line.end))
			continue;
		r = ARRAY_RESERVE(m->lines, capacity, m->n_lines + 1);
		if (r == 0)
			m->lines[m->n_lines++] = line;
	}
	if (m)
		r = begin(&m, r);
	if (r == 0)
		*ret = m;
	return r;
}

void perfmap_free(struct perfmap *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_spans; i++)
		free(m->spans[i].name);
	free(m->spans);
	free(m->lines);
	free(m);
}

void perfmap_find(struct perfmap *m, uint64_t address, struct perfmap_function *ret)
{
	/* The first span that ends behind ADDRESS. */
	size_t at = FIRST_WHERE(i, m->n_spans, m->spans[i].end > address);
	struct span *s = at < m->n_spans ? &m->spans[at] : NULL;
	uint64_t begin, end;

	if (s && s->begin <= address) {
		const struct line *line = &m->lines[s->line];

		if (!s->name)
			s->name =
				strndup(line->name, MIN_OF(line->length, (size_t)PERFMAP_NAME_MAX));
		*ret = (struct perfmap_function){s->begin, s->end - s->begin,
						 s->name ? s->name : &m->none};
		return;
	}
	begin = at > 0 ? m->spans[at - 1].end : 0;
	end = s ? s->begin : UINT64_MAX;
	*ret = (struct perfmap_function){begin, end - begin, NULL};
}

size_t perfmap_count(const struct perfmap *m)
{
	return m->n_lines;
}
