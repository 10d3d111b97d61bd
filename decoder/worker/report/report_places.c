/*
 * The places: each address of code that the report mentions is in one table, once, and the rest of
 * the report has indexes into it.
 *
 * A place is added when it is mentioned first. While the report is measured, a place counts for the
 * element that mentions it first, and is forgotten if that element is not kept. Before the report
 * is written, all places are forgotten: the table then has what the written elements mention.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

#define CACHE	   (1u << 15)
#define FIRST_SIZE 1024u
/* No place is written in fewer bytes. */
#define LEAST_BYTES (sizeof("{\"address\":\"0x0\"}") - 1)
/* Of the text of one place, which has 32 names of inlined functions at most. */
#define TEXT_LIMIT (16u << 20)

/* An address of a context, resolved. */
struct place {
	uint64_t address;
	uint32_t context;
	uint32_t image;	   /* index of the manifest; UINT32_MAX: no code is known there */
	uint64_t at;	   /* from the beginning of the file */
	uint64_t offset;   /* from the beginning of the function, or of memory without one */
	uint32_t function; /* number in the tally; 0: the tally does not have it */
	/* Of the function, as in struct function. */
	uint64_t start, file_start;
	const char *name;
};

struct report_places {
	struct place *list;
	size_t n, capacity;
	uint32_t *slots; /* index + 1, by a hash of the place; 0: free */
	size_t n_slots;
	struct report_places_mark total;
	bool no_memory;
	struct place *cache; /* direct-mapped by context and address; address 0: free */
	struct bytes_out text;
	struct json_writer *scratch; /* NULL: nothing is measured */
};

int report_places_init(struct report *r)
{
	struct report_places *p = calloc(1, sizeof(*p));

	r->places = p;
	if (!p)
		return -ENOMEM;
	bytes_out_init(&p->text, TEXT_LIMIT);
	p->cache = calloc(CACHE, sizeof(*p->cache));
	return p->cache ? 0 : -ENOMEM;
}

void report_places_done(struct report *r)
{
	struct report_places *p = r->places;

	if (!p)
		return;
	json_writer_free(p->scratch);
	bytes_out_done(&p->text);
	free(p->cache);
	free(p->list);
	free(p->slots);
	free(p);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return h ^ h >> 32;
}

/* --- What is known of an address --- */

static struct place of_function(const struct function *f, uint64_t at)
{
	struct place p = {
		.image = f->image,
		.at = at,
		.start = f->offset,
		.file_start = f->file_address,
		.name = f->name,
	};

	if (f->offset != FUNCTIONS_WHOLE_IMAGE)
		p.offset = at - f->offset;
	else if (f->file_address == 0)
		p.offset = at;
	return p;
}

/* Looked up once: many threads have the same branches, and each is measured before it is written.
 */
static const struct place *place_at(const struct report *r, uint32_t context, uint64_t address)
{
	struct place *p = &r->places->cache[mix(address, context) >> 16 & (CACHE - 1)];
	struct function f;
	uint32_t number;
	uint64_t at;

	if (p->address == address && p->context == context)
		return p;
	if (functions_resolve(&r->d->tally.functions, context, address, &f, &at, &number)) {
		*p = of_function(&f, at);
		p->function = number;
	} else {
		*p = (struct place){.image = UINT32_MAX};
	}
	p->address = address;
	p->context = context;
	return p;
}

const char *report_linkage_at(const struct report *r, uint32_t context, uint64_t address)
{
	return address == 0 ? NULL : place_at(r, context, address)->name;
}

/* --- The table --- */

static bool is_same(const struct place *a, const struct place *b)
{
	return a->address == b->address && a->image == b->image && a->at == b->at &&
	       a->offset == b->offset && a->name == b->name;
}

/* The slot of P, or the free slot where it belongs. */
static uint32_t *slot_of(const struct report_places *places, const struct place *p)
{
	const size_t mask = places->n_slots - 1;
	size_t i = (size_t)mix(p->address, p->image) & mask;

	while (places->slots[i] != 0 && !is_same(&places->list[places->slots[i] - 1], p))
		i = (i + 1) & mask;
	return &places->slots[i];
}

static int grow(struct report_places *places)
{
	const size_t n = MAX_OF(2 * places->n_slots, (size_t)FIRST_SIZE);
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(places->slots);
	places->slots = slots;
	places->n_slots = n;
	for (size_t i = 0; i < places->n; i++)
		*slot_of(places, &places->list[i]) = (uint32_t)i + 1;
	return 0;
}

/* Adds P, which is not there. */
static int append(struct report_places *places, const struct place *p)
{
	if (places->n >= UINT32_MAX / 2)
		return -ENOMEM;
	if (2 * places->n >= places->n_slots && grow(places) < 0)
		return -ENOMEM;
	if (ARRAY_RESERVE(places->list, places->capacity, places->n + 1) < 0)
		return -ENOMEM;
	places->list[places->n++] = *p;
	*slot_of(places, p) = (uint32_t)places->n;
	return 0;
}

/* --- Writing --- */

static void write_function(const struct report *r, struct json_writer *w, uint32_t number)
{
	const size_t kept = r->lists[REPORT_FUNCTIONS].kept;

	if (number == 0 || !r->function_places || r->function_places[number] == UINT32_MAX)
		return;
	if (r->measuring)
		json_u64(w, "function", r->lists[REPORT_FUNCTIONS].total);
	else if (r->function_places[number] < kept)
		json_u64(w, "function", r->function_places[number]);
}

static void write_place(const struct report *r, struct json_writer *w, const struct place *p)
{
	json_begin_object(w, NULL);
	json_hex(w, "address", p->address);
	if (p->image != UINT32_MAX) {
		report_name(r, w, p->name, p->image, p->file_start, p->start);
		json_u64(w, "offset", p->offset);
		write_function(r, w, p->function);
		report_image_ref(r, w, p->image);
		if (p->file_start != 0)
			json_hex(w, "fileAddress", p->file_start + p->offset);
		report_source(r, w, p->image, p->at);
		report_inlined(r, w, p->image, p->at);
	}
	json_end_object(w);
}

/* The bytes of the text of P in the list of places. */
static uint64_t measured(const struct report *r, const struct place *p)
{
	struct report_places *places = r->places;

	bytes_out_reset(&places->text);
	write_place(r, places->scratch, p);
	if (places->text.error)
		places->no_memory = true;
	return places->text.size;
}

/* An index that is written in as many bytes as any index of a report within the limit. */
static uint64_t widest(const struct report *r)
{
	return r->options->report_limit / LEAST_BYTES;
}

static void write_ref(const struct report *r, struct json_writer *w, const char *key,
		      const struct place *p)
{
	struct report_places *places = r->places;
	uint32_t *slot = places->n_slots > 0 ? slot_of(places, p) : NULL;
	size_t index = slot && *slot != 0 ? *slot - 1u : places->n;

	if (index == places->n) {
		if (append(places, p) < 0) {
			places->no_memory = true;
			json_null(w, key);
			return;
		}
		if (r->measuring)
			places->total.bytes += measured(r, p);
		places->total.n++;
	}
	json_u64(w, key, r->measuring ? widest(r) : index);
}

void report_place(const struct report *r, struct json_writer *w, const char *key, uint32_t context,
		  uint64_t address)
{
	if (address == 0 || !permit_address(r->d->replay->permit, address))
		json_null(w, key);
	else
		write_ref(r, w, key, place_at(r, context, address));
}

void report_bare_place(const struct report *r, struct json_writer *w, const char *key,
		       uint64_t address)
{
	const struct place p = {.address = address, .image = UINT32_MAX};

	if (address == MANIFEST_ABSENT || !permit_address(r->d->replay->permit, address))
		json_null(w, key);
	else
		write_ref(r, w, key, &p);
}

void report_function_place(const struct report *r, struct json_writer *w, const char *key,
			   uint32_t number)
{
	const struct function *f = &r->d->tally.functions.list[number];
	struct place p;

	if (f->image == UINT32_MAX || !permit_address(r->d->replay->permit, f->address)) {
		json_null(w, key);
		return;
	}
	p = of_function(f, f->offset == FUNCTIONS_WHOLE_IMAGE ? 0 : f->offset);
	p.address = f->address;
	p.function = number;
	write_ref(r, w, key, &p);
}

void report_places(const struct report *r, struct json_writer *w)
{
	json_begin_array(w, "places");
	for (size_t i = 0; i < r->places->n; i++)
		write_place(r, w, &r->places->list[i]);
	json_end_array(w);
}

/* --- Measuring --- */

int report_places_measure(struct report *r)
{
	struct report_places *places = r->places;

	if (json_writer_new_bytes(&places->text, r->options->pretty, &places->scratch) < 0)
		return -ENOMEM;
	json_begin_object(places->scratch, NULL);
	json_begin_array(places->scratch, "places");
	/* Each place counts as one behind another. */
	json_null(places->scratch, NULL);
	return 0;
}

struct report_places_mark report_places_mark(const struct report *r)
{
	return r->places->total;
}

int report_places_error(const struct report *r)
{
	return r->places->no_memory ? -ENOMEM : 0;
}

/* The newest place is the last one on its way through the slots: nothing behind it moves. */
void report_places_forget(const struct report *r, struct report_places_mark to)
{
	struct report_places *places = r->places;

	while (places->n > to.n) {
		*slot_of(places, &places->list[places->n - 1]) = 0;
		places->n--;
	}
	places->total = to;
}
