/*
 * Reads dumps of just-in-time compilers: header and records -> pieces of code in order of time.
 *
 * Each record says its size, so a dump is read from one record to the next. Where that fails (the
 * recorder left out a part, or the file is damaged), the next place is taken from which several
 * records follow each other.
 */
#include "sideband/symbols/jitdump.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* tools/perf/Documentation/jitdump-specification.txt, sections III to IX. */
#define MAGIC		0x4a695444u
#define HEADER_SIZE	40u
#define FLAG_TSC	1u
#define RECORD_SIZE	16u
#define LOAD_SIZE	56u
#define MOVE_SIZE	64u
#define DEBUG_SIZE	32u
#define DEBUG_LINE_SIZE 16u
/* A name of these bytes alone means the name of the line before. */
#define SAME_FILE 0xff
/* V8 adds the size of an ELF header to the addresses of lines. Then no function has a line close
 * behind its beginning. */
#define ELF_HEADER_SIZE 64u
/* So many records must follow each other where reading goes on behind a gap. */
#define CHAIN 4u
/* ... and their times differ by less than this, ns or ticks. */
#define NEAR (UINT64_C(1) << 52)

enum record { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

/* A code index and the piece that had it last. */
struct slot {
	uint64_t index;
	uint32_t load; /* number + 1; 0: free */
};

struct jitdump {
	const uint8_t *bytes;
	size_t size;
	uint32_t pid;
	bool has_tsc, cut, closed;
	uint64_t last, dropped;
	struct jitdump_load *loads;
	size_t n, capacity;
	uint32_t *by_offset; /* without those that were moved */
	size_t n_by_offset;
	struct slot *slots; /* while reading */
	size_t n_slots, n_used;
	uint64_t lines, lines_address; /* the last record of source lines; 0: it was taken */
	bool near;		       /* some record has a line close behind its address */
};

static uint32_t u32_at(const struct jitdump *d, size_t at)
{
	uint32_t v;

	memcpy(&v, d->bytes + at, sizeof(v));
	return v;
}

static uint64_t u64_at(const struct jitdump *d, size_t at)
{
	uint64_t v;

	memcpy(&v, d->bytes + at, sizeof(v));
	return v;
}

/* --- Records --- */

static uint32_t least_size(uint32_t id)
{
	switch (id) {
	case CODE_LOAD: return LOAD_SIZE + 1;
	case CODE_MOVE: return MOVE_SIZE;
	case CODE_DEBUG_INFO: return DEBUG_SIZE;
	default: return RECORD_SIZE;
	}
}

/* Whether the bytes at AT can be a record, of which all may not be there. */
static bool is_record(const struct jitdump *d, size_t at, uint32_t *ret_size)
{
	uint32_t id, size;

	if (d->size - at < RECORD_SIZE)
		return false;
	id = u32_at(d, at);
	size = u32_at(d, at + 4);
	*ret_size = size;
	if (id > CODE_UNWINDING_INFO || size < least_size(id))
		return false;
	return id != CODE_LOAD || d->size - at < LOAD_SIZE ||
	       u64_at(d, at + 40) <= size - LOAD_SIZE - 1;
}

/* Whether records follow each other from AT on, or up to the end. */
static bool is_chain(const struct jitdump *d, size_t at)
{
	uint64_t before = 0;

	for (unsigned i = 0; i < CHAIN; i++) {
		uint32_t size;
		uint64_t time;

		if (!is_record(d, at, &size))
			return i > 0 && d->size - at < RECORD_SIZE;
		time = u64_at(d, at + 8);
		if (i > 0 && time - before + NEAR > 2 * NEAR)
			return false;
		if (size > d->size - at)
			return i > 1;
		before = time;
		at += size;
	}
	return true;
}

/* The first place from AT on from which records follow each other; the end: there is none. */
static size_t find_chain(const struct jitdump *d, size_t at)
{
	while (d->size - at >= RECORD_SIZE && !is_chain(d, at))
		at++;
	return d->size - at >= RECORD_SIZE ? at : d->size;
}

static struct slot *find_slot(struct slot *slots, size_t n, uint64_t index)
{
	size_t mask = n - 1, i = (size_t)((index * 0x9e3779b97f4a7c15ull) >> 32) & mask;

	while (slots[i].load != 0 && slots[i].index != index)
		i = (i + 1) & mask;
	return &slots[i];
}

/* LOAD is the piece with that INDEX from here on. */
static int note_index(struct jitdump *d, uint64_t index, size_t load)
{
	struct slot *slot;

	if (2 * (d->n_used + 1) > d->n_slots) {
		size_t n = d->n_slots ? 2 * d->n_slots : 256;
		struct slot *slots = calloc(n, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		for (size_t i = 0; i < d->n_slots; i++)
			if (d->slots[i].load != 0)
				*find_slot(slots, n, d->slots[i].index) = d->slots[i];
		free(d->slots);
		d->slots = slots;
		d->n_slots = n;
	}
	slot = find_slot(d->slots, d->n_slots, index);
	d->n_used += slot->load == 0;
	*slot = (struct slot){index, (uint32_t)load + 1};
	return 0;
}

static int add(struct jitdump *d, const struct jitdump_load *load, uint64_t index)
{
	if (d->n >= UINT32_MAX / 2)
		return -ENOMEM;
	if (ARRAY_RESERVE(d->loads, d->capacity, d->n + 1) < 0)
		return -ENOMEM;
	d->loads[d->n] = *load;
	return note_index(d, index, d->n++);
}

/* No process has code that reaches over the end of its addresses. */
static bool is_place(uint64_t address, uint64_t size)
{
	return size > 0 && size < UINT64_C(1) << 47 && address < UINT64_C(1) << 47;
}

static int read_load(struct jitdump *d, size_t at, uint32_t size)
{
	const uint64_t code_size = u64_at(d, at + 40);
	const char *name = (const char *)d->bytes + at + LOAD_SIZE;
	const char *nul = memchr(name, '\0', (size_t)(size - LOAD_SIZE - code_size));
	struct jitdump_load load = {.address = u64_at(d, at + 32),
				    .size = code_size,
				    .offset = at + size - code_size,
				    .time = u64_at(d, at + 8),
				    .name = name};

	if (d->lines_address == load.address)
		load.lines = d->lines;
	d->lines = 0;
	if (code_size == 0)
		return 0;
	if (!nul || u32_at(d, at + RECORD_SIZE) != d->pid || !is_place(load.address, code_size)) {
		d->dropped++;
		return 0;
	}
	load.name = nul - MIN_OF((size_t)(nul - name), (size_t)JITDUMP_NAME_MAX);
	return add(d, &load, u64_at(d, at + 48));
}

static int read_move(struct jitdump *d, size_t at)
{
	const uint64_t index = u64_at(d, at + 56), address = u64_at(d, at + 40);
	const struct slot *slot = d->n_slots ? find_slot(d->slots, d->n_slots, index) : NULL;
	struct jitdump_load load;

	if (!slot || slot->load == 0 || u32_at(d, at + RECORD_SIZE) != d->pid) {
		d->dropped++;
		return 0;
	}
	load = d->loads[slot->load - 1];
	if (load.address != u64_at(d, at + 32) || load.size != u64_at(d, at + 48) ||
	    !is_place(address, load.size)) {
		d->dropped++;
		return 0;
	}
	load.address = address;
	load.time = u64_at(d, at + 8);
	return add(d, &load, index);
}

static void note_lines(struct jitdump *d, size_t at, uint32_t size)
{
	d->lines = at;
	d->lines_address = u64_at(d, at + RECORD_SIZE);
	if (u64_at(d, at + 24) == 0 || size < DEBUG_SIZE + DEBUG_LINE_SIZE)
		return;
	d->near |= u64_at(d, at + DEBUG_SIZE) < d->lines_address + ELF_HEADER_SIZE;
}

static int read_record(struct jitdump *d, size_t at, uint32_t size)
{
	d->last = MAX_OF(d->last, u64_at(d, at + 8));
	switch (u32_at(d, at)) {
	case CODE_LOAD: return read_load(d, at, size);
	case CODE_MOVE: return read_move(d, at);
	case CODE_DEBUG_INFO: note_lines(d, at, size); return 0;
	case CODE_CLOSE: d->closed = true; return 0;
	default: return 0;
	}
}

static int read_records(struct jitdump *d, size_t at)
{
	int r = 0;

	while (r == 0 && d->size - at >= RECORD_SIZE) {
		uint32_t size = 0;
		bool is = is_record(d, at, &size);

		if (is && size <= d->size - at) {
			d->closed = false;
			r = read_record(d, at, size);
			at += size;
			continue;
		}
		/* A record that goes beyond the end is most often the one that is being written. */
		at = find_chain(d, at + 1);
		d->cut |= !is || at < d->size;
		d->lines = 0;
	}
	return r;
}

/* --- Order --- */

static int by_time(const void *a, const void *b)
{
	const struct jitdump_load *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_offset(const void *a, const void *b, void *loads)
{
	const struct jitdump_load *list = loads;
	const struct jitdump_load *x = &list[*(const uint32_t *)a],
				  *y = &list[*(const uint32_t *)b];

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int put_in_order(struct jitdump *d)
{
	size_t n = 0;

	if (d->n > 0)
		qsort(d->loads, d->n, sizeof(*d->loads), by_time);
	if (d->n > JITDUMP_MAX) {
		size_t over = d->n - JITDUMP_MAX;

		memmove(d->loads, d->loads + over, JITDUMP_MAX * sizeof(*d->loads));
		d->n = JITDUMP_MAX;
		d->dropped += over;
		d->cut = true;
	}
	d->by_offset = calloc(d->n + 1, sizeof(*d->by_offset));
	if (!d->by_offset)
		return -ENOMEM;
	for (size_t i = 0; i < d->n; i++)
		d->by_offset[i] = (uint32_t)i;
	qsort_r(d->by_offset, d->n, sizeof(*d->by_offset), by_offset, d->loads);
	for (size_t i = 0; i < d->n; i++)
		if (n == 0 ||
		    d->loads[d->by_offset[n - 1]].offset != d->loads[d->by_offset[i]].offset)
			d->by_offset[n++] = d->by_offset[i];
	d->n_by_offset = n;
	return 0;
}

static bool read_header(struct jitdump *d, size_t *ret_end)
{
	uint32_t size, machine;
	uint64_t flags;

	if (d->size < HEADER_SIZE || u32_at(d, 0) != MAGIC)
		return false;
	size = u32_at(d, 8);
	machine = u32_at(d, 12);
	flags = u64_at(d, 32);
	d->pid = u32_at(d, 20);
	d->has_tsc = flags & FLAG_TSC;
	*ret_end = MIN_OF((size_t)size, d->size);
	return size >= HEADER_SIZE && (machine == EM_X86_64 || machine == EM_386) &&
	       (flags & ~(uint64_t)FLAG_TSC) == 0;
}

int jitdump_new(const uint8_t *bytes, size_t size, struct jitdump **ret)
{
	struct jitdump *d = calloc(1, sizeof(*d));
	size_t at = 0;
	int r;

	if (!d)
		return -ENOMEM;
	d->bytes = bytes;
	d->size = size;
	r = read_header(d, &at) ? read_records(d, at) : JITDUMP_NOT;
	if (r == 0)
		r = put_in_order(d);
	free(d->slots);
	d->slots = NULL;
	if (r != 0) {
		jitdump_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void jitdump_free(struct jitdump *d)
{
	if (!d)
		return;
	free(d->slots);
	free(d->by_offset);
	free(d->loads);
	free(d);
}

bool jitdump_has_tsc(const struct jitdump *d)
{
	return d->has_tsc;
}

bool jitdump_is_whole(const struct jitdump *d)
{
	return !d->cut && d->dropped == 0;
}

bool jitdump_is_closed(const struct jitdump *d)
{
	return d->closed;
}

uint64_t jitdump_last(const struct jitdump *d)
{
	return d->last;
}

uint64_t jitdump_dropped(const struct jitdump *d)
{
	return d->dropped;
}

const struct jitdump_load *jitdump_loads(const struct jitdump *d, size_t *ret_n)
{
	*ret_n = d->n;
	return d->loads;
}

const uint8_t *jitdump_bytes(const struct jitdump *d, const struct jitdump_load *load)
{
	return d->bytes + load->offset;
}

const struct jitdump_load *jitdump_at(const struct jitdump *d, uint64_t offset)
{
	size_t n = FIRST_WHERE(i, d->n_by_offset, d->loads[d->by_offset[i]].offset > offset);
	const struct jitdump_load *load = n > 0 ? &d->loads[d->by_offset[n - 1]] : NULL;

	return load && offset - load->offset < load->size ? load : NULL;
}

/* --- Source lines --- */

struct lines {
	const struct jitdump *d;
	size_t at, end;
	uint64_t left; /* lines */
	const char *file;
};

struct line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static void begin_lines(struct lines *l, const struct jitdump *d, const struct jitdump_load *load)
{
	*l = (struct lines){
		.d = d,
		.at = (size_t)load->lines + DEBUG_SIZE,
		.end = (size_t)load->lines + u32_at(d, (size_t)load->lines + 4),
		.left = MIN_OF(u64_at(d, (size_t)load->lines + 24), (uint64_t)JITDUMP_LINES)};
}

static bool next_line(struct lines *l, struct line *ret)
{
	const char *name, *nul;

	if (l->left == 0 || l->end - l->at <= DEBUG_LINE_SIZE)
		return false;
	name = (const char *)l->d->bytes + l->at + DEBUG_LINE_SIZE;
	nul = memchr(name, '\0', l->end - l->at - DEBUG_LINE_SIZE);
	if (!nul)
		return false;
	ret->address = u64_at(l->d, l->at);
	ret->line = u32_at(l->d, l->at + 8);
	if ((uint8_t)name[0] != SAME_FILE || nul != name + 1)
		l->file = name;
	ret->file = l->file;
	l->at += DEBUG_LINE_SIZE + (size_t)(nul - name) + 1;
	l->left--;
	return true;
}

bool jitdump_line(const struct jitdump *d, uint64_t offset, const char **ret_file,
		  uint32_t *ret_line)
{
	const struct jitdump_load *load = jitdump_at(d, offset);
	uint64_t base, address, best = 0;
	bool found = false;
	struct lines l;
	struct line line;

	if (!load || load->lines == 0)
		return false;
	/* The lines have the addresses of where the code was first. */
	base = u64_at(d, (size_t)load->lines + RECORD_SIZE);
	address = base + (offset - load->offset) + (d->near ? 0 : ELF_HEADER_SIZE);
	begin_lines(&l, d, load);
	while (next_line(&l, &line)) {
		if (line.address > address || !line.file || (found && line.address < best))
			continue;
		found = true;
		best = line.address;
		*ret_file = line.file;
		*ret_line = line.line;
	}
	return found;
}
