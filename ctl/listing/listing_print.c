/*
 * Prints branches, instructions and gaps, as columns or as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/listing/listing.h"
#include "proto/base.h"

#define RED   "\033[1;31m"
#define PLAIN "\033[0m"

#define WIDE	    120u /* columns from which on a line has the thread's name and the bytes */
#define LEAST_NAME  16u	 /* columns of a name on the narrowest line */
#define UNCUT_NAME  40u	 /* ... where names are not cut */
#define UNCUT_INSN  48u
#define BYTES_WIDTH 23u /* of eight bytes; few instructions are longer */

/* The time since the trigger, or since the begin of the trace if there is none. */
static int64_t time_of(const struct listing_printer *p, const struct listing_line *line)
{
	const struct listing_told *told = listing_told(p->listing);
	uint64_t zero = told->trigger ? told->trigger : told->first;

	return (int64_t)(line->time + line->width / 2 - zero);
}

/* --- JSON --- */

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static struct json_object *number(uint32_t n)
{
	return n == EXECSTREAM_UNKNOWN ? NULL : json_object_new_uint64(n);
}

static struct json_object *text(const char *s)
{
	return s && *s ? json_object_new_string(s) : NULL;
}

static void add_place(const struct listing_printer *p, struct json_object *o,
		      const struct listing_place *place)
{
	const struct listing_function *f = listing_function(p->listing, place);
	char address[19];

	/* Above 2^53 a number in JSON is not exact everywhere. */
	snprintf(address, sizeof(address), "0x%" PRIx64, place->address);
	add(o, "address", json_object_new_string(address));
	add(o, "function", f ? text(f->name) : NULL);
	add(o, "offset", f ? json_object_new_uint64(place->offset) : NULL);
	add(o, "image", f ? text(f->image) : NULL);
	if (p->lines) {
		add(o, "file", text(place->file));
		add(o, "line", place->line ? json_object_new_uint64(place->line) : NULL);
	}
}

static struct json_object *place_json(const struct listing_printer *p,
				      const struct listing_place *place)
{
	struct json_object *o = place ? json_object_new_object() : NULL;

	if (place)
		add_place(p, o, place);
	return o;
}

static void print_json(struct listing_printer *p, const struct listing_line *line)
{
	struct json_object *o = json_object_new_object();

	add(o, "atNSec", json_object_new_int64(time_of(p, line)));
	add(o, "uncertainNSec", json_object_new_uint64(line->width - line->width / 2));
	add(o, "cpu", number(line->origin->cpu));
	add(o, "pid", number(line->origin->pid));
	add(o, "tid", number(line->origin->tid));
	add(o, "comm", text(line->origin->comm));
	if (line->kind == EXECSTREAM_GAP) {
		add(o, "gap", json_object_new_string(line->gap));
		add(o, "gaps", json_object_new_uint64(line->gaps));
	} else if (line->kind == EXECSTREAM_INSN) {
		add_place(p, o, line->from);
		add(o, "bytes", text(line->from->bytes));
		add(o, "instruction", text(line->from->text));
	} else {
		add(o, "kind", json_object_new_string(execstream_branch_name(line->branch)));
		add(o, "from", place_json(p, line->from));
		add(o, "to", place_json(p, line->to));
	}
	if (p->settings->json == JSON_PRETTY)
		fputs(p->n == 0 ? "[\n" : ",\n", stdout);
	json_print(p->settings, o);
	json_object_put(o);
}

/* --- Columns --- */

static bool is_wide(const struct listing_printer *p)
{
	return !p->terminal || p->style.columns >= WIDE;
}

static void pad(size_t used, size_t width)
{
	printf("%*s", used < width ? (int)(width - used) : 0, "");
}

/* TEXT in WIDTH columns; what is longer is cut on a terminal. Returns the columns. */
static size_t put_cut(const struct listing_printer *p, const char *s, size_t width)
{
	return text_puts(stdout, s, p->terminal ? MAX_OF(width, 1) : 0);
}

/* "name+0x12", of which the name is cut. */
static size_t put_place(const struct listing_printer *p, const struct listing_place *place,
			size_t width)
{
	const struct listing_function *f = place ? listing_function(p->listing, place) : NULL;
	char end[24];
	size_t n;

	if (!place)
		return text_puts(stdout, "-", 0);
	if (!f) {
		snprintf(end, sizeof(end), "0x%" PRIx64, place->address);
		return put_cut(p, end, width);
	}
	snprintf(end, sizeof(end), "+0x%" PRIx64, place->offset);
	n = strlen(end);
	if (p->terminal && n >= width)
		return put_cut(p, f->name, width);
	n = put_cut(p, f->name, width - MIN_OF(n, width));
	return n + text_puts(stdout, end, 0);
}

static void put_number(uint32_t n, int width)
{
	if (n == EXECSTREAM_UNKNOWN)
		printf("%*s ", width, "-");
	else
		printf("%*" PRIu32 " ", width, n);
}

/* Time, CPU and thread. Returns the columns. */
static size_t put_begin(struct listing_printer *p, const struct listing_line *line)
{
	const struct listing_origin *o = line->origin;

	printf("%13.6f ", (double)time_of(p, line) / 1e6);
	put_number(o->cpu, 3);
	if (!is_wide(p)) {
		put_number(o->tid, 7);
		return 26;
	}
	put_number(o->pid, 7);
	put_number(o->tid, 7);
	pad(text_puts(stdout, *o->comm ? o->comm : "-", 15), 16);
	return 50;
}

static void put_head(const struct listing_printer *p)
{
	const bool since = listing_told(p->listing)->trigger != 0;

	printf("%13s CPU ", since ? "TRIGGER +ms" : "BEGIN +ms");
	if (is_wide(p))
		printf("%7s %7s %-16s", "PID", "TID", "COMM");
	else
		printf("%7s ", "TID");
}

/* The columns of a place: two share a line of branches. */
static size_t branch_width(const struct listing_printer *p, size_t used)
{
	size_t left = p->style.columns > used ? p->style.columns - used : 0;

	return p->terminal ? MAX_OF(left / 2, LEAST_NAME) : UNCUT_NAME;
}

#define KIND_WIDTH 14

static void print_branch(struct listing_printer *p, const struct listing_line *line)
{
	size_t width = branch_width(p, put_begin(p, line) + KIND_WIDTH + 1);

	printf("%-*s", KIND_WIDTH, execstream_branch_name(line->branch));
	pad(put_place(p, line->from, width - 1), width);
	putchar(' ');
	put_place(p, line->to, width - 1);
	putchar('\n');
}

static void print_branch_head(const struct listing_printer *p)
{
	size_t width = branch_width(p, (is_wide(p) ? 50 : 26) + KIND_WIDTH + 1);

	put_head(p);
	printf("%-*s%-*s %s\n", KIND_WIDTH, "KIND", (int)width, "FROM", "TO");
}

/* The columns of an instruction and of its place behind it, and of the line of the source. */
static void insn_widths(const struct listing_printer *p, size_t used, size_t *ret_text,
			size_t *ret_place, size_t *ret_file)
{
	size_t left = p->style.columns > used ? p->style.columns - used : 0;

	*ret_file = 0;
	*ret_text = UNCUT_INSN;
	*ret_place = UNCUT_NAME;
	if (!p->terminal)
		return;
	if (p->lines)
		*ret_file = left / 4;
	*ret_text = MAX_OF((left - *ret_file) * 55 / 100, LEAST_NAME);
	*ret_place = left > *ret_text + *ret_file ? left - *ret_text - *ret_file - 1 : 8;
}

/* "48 89 e5". */
static size_t put_bytes(const char *hex)
{
	size_t n = 0;

	for (; hex[0] && hex[1]; hex += 2)
		n += (size_t)printf("%s%.2s", n ? " " : "", hex);
	return n;
}

#define ADDRESS_WIDTH 16

static void put_line(const struct listing_printer *p, const struct listing_place *place,
		     size_t width)
{
	const char *slash = strrchr(place->file, '/');
	char number_text[16];
	size_t n;

	if (!p->lines || *place->file == '\0')
		return;
	snprintf(number_text, sizeof(number_text), ":%" PRIu32, place->line);
	n = strlen(number_text);
	putchar(' ');
	put_cut(p, slash && p->terminal ? slash + 1 : place->file,
		width > n + 2 ? width - n - 2 : 1);
	fputs(number_text, stdout);
}

static void print_insn(struct listing_printer *p, const struct listing_line *line)
{
	const struct listing_place *place = line->from;
	size_t used = put_begin(p, line) + ADDRESS_WIDTH + 1, text_width, width, file_width;

	printf("%*" PRIx64 " ", ADDRESS_WIDTH, place->address);
	if (is_wide(p)) {
		pad(put_bytes(place->bytes), BYTES_WIDTH);
		putchar(' ');
		used += BYTES_WIDTH + 1;
	}
	insn_widths(p, used, &text_width, &width, &file_width);
	pad(put_cut(p, *place->text ? place->text : "(bad)", text_width - 1), text_width);
	pad(put_place(p, place, width), file_width ? width : 0);
	put_line(p, place, file_width);
	putchar('\n');
}

static void print_insn_head(const struct listing_printer *p)
{
	size_t used = (is_wide(p) ? 50 + BYTES_WIDTH + 1 : 26) + ADDRESS_WIDTH + 1;
	size_t text_width, width, file_width;

	insn_widths(p, used, &text_width, &width, &file_width);
	put_head(p);
	printf("%*s ", ADDRESS_WIDTH, "ADDRESS");
	if (is_wide(p))
		printf("%-*s ", (int)BYTES_WIDTH, "BYTES");
	printf("%-*s%s\n", (int)text_width, "INSTRUCTION", p->lines ? "WHERE, LINE" : "WHERE");
}

static void print_gap(struct listing_printer *p, const struct listing_line *line)
{
	put_begin(p, line);
	fputs(p->style.color ? RED "# gap " : "# gap ", stdout);
	text_puts(stdout, line->gap, 0);
	if (line->gaps > 1)
		printf(", %ju times", (uintmax_t)line->gaps);
	fputs(p->style.color ? PLAIN "\n" : "\n", stdout);
}

static void print_text(struct listing_printer *p, const struct listing_line *line)
{
	if (p->n == 0 && p->insns)
		print_insn_head(p);
	else if (p->n == 0)
		print_branch_head(p);
	if (line->kind == EXECSTREAM_GAP)
		print_gap(p, line);
	else if (line->kind == EXECSTREAM_INSN)
		print_insn(p, line);
	else
		print_branch(p, line);
}

void listing_print(struct listing_printer *p, const struct listing_line *line)
{
	if (json_wanted(p->settings))
		print_json(p, line);
	else
		print_text(p, line);
	p->n++;
}

void listing_print_end(struct listing_printer *p)
{
	if (p->settings->json == JSON_PRETTY)
		puts(p->n > 0 ? "]" : "[]");
}
