/*
 * Places of code: defined before their use.
 *
 * The table has sets of two places. Of a set, the place that was asked for last stays.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/code/insn.h"
#include "decoder/worker/listing/listing_private.h"
#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/symbols/symbols.h"

static void define_function(struct listing *l, uint32_t number, const struct function *f)
{
	const struct manifest *m = l->replay->manifest;
	const char *path = f->image < m->n_images ? m->images[f->image].path : NULL;
	CLEANUP_FREE char *source = NULL;
	char unnamed[FUNCTIONS_MAX_UNNAMED];
	struct execstream_item item = {
		.kind = EXECSTREAM_FUNCTION, .function = number, .image = path ? path : ""};

	if (replay_is_kernel(l->replay, f->address))
		item.image = "[kernel]";
	/* A second attempt to decode reads no names of strangers. */
	if (f->name && !l->options->no_symbols)
		source = demangle(f->name);
	functions_unnamed(unnamed, path, f->file_address, f->offset);
	item.name = source ? source : f->name ? f->name : unnamed;
	listing_put(l, &item);
}

/* The number of the tally's function INDEX in the stream. 0 or -ENOMEM. */
static int number_of(struct listing *l, uint32_t index, uint32_t *ret)
{
	size_t n = l->n_numbers;

	*ret = 0;
	/* Unknown code. */
	if (index == 0)
		return 0;
	if (ARRAY_RESERVE(l->numbers, l->capacity, (size_t)index + 1) < 0)
		return -ENOMEM;
	if (n <= index) {
		memset(l->numbers + n, 0, (index + 1 - n) * sizeof(*l->numbers));
		l->n_numbers = (size_t)index + 1;
	}
	if (l->numbers[index] == 0) {
		l->numbers[index] = ++l->n_defined;
		define_function(l, l->numbers[index], &l->functions->list[index]);
	}
	*ret = l->numbers[index];
	return 0;
}

/* The source line, where lines are asked for. */
static void add_source(const struct listing *l, const struct listing_place *p,
		       struct execstream_item *item)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct image_code code;

	if (!l->options->lines || l->options->no_symbols ||
	    replay_is_kernel(l->replay, p->address) ||
	    replay_find(l->replay, p->context, p->address, &code) != 0 ||
	    symbols_lines(l->replay->symbols, code.image, code.offset + (p->address - code.address),
			  frames, DWARF_MAX_FRAMES) == 0 ||
	    !frames[0].file)
		return;
	item->file = frames[0].file;
	item->line = frames[0].line;
}

static void put_hex(const uint8_t *bytes, size_t n, char to[static EXECSTREAM_MAX_BYTES + 1])
{
	for (size_t i = 0; i < n; i++) {
		*to++ = "0123456789abcdef"[bytes[i] >> 4];
		*to++ = "0123456789abcdef"[bytes[i] & 15];
	}
	*to = '\0';
}

static int define(struct listing *l, const struct listing_place *p, uint32_t number)
{
	char text[INSN_TEXT_MAX] = "", hex[EXECSTREAM_MAX_BYTES + 1] = "";
	struct execstream_item item = {.kind = EXECSTREAM_PLACE,
				       .place = number,
				       .address = p->address,
				       .bytes = hex,
				       .text = text,
				       .file = ""};
	uint8_t bytes[INSN_MAX_SIZE];
	struct functions_span span;
	int r = functions_find(l->functions, p->context, p->address, &span);

	if (r == 0)
		r = number_of(l, span.function, &item.function);
	if (r < 0)
		return r;
	item.offset = item.function ? p->address - span.entry : 0;
	if (l->text) {
		size_t n = replay_read(l->replay, p->context, p->address, bytes, sizeof(bytes));

		n = insn_text_write(l->text, (enum insn_mode)p->mode, p->address, bytes, n, text);
		put_hex(bytes, MIN_OF(n, sizeof(bytes)), hex);
	}
	add_source(l, p, &item);
	listing_put(l, &item);
	return 0;
}

int listing_place(struct listing *l, uint32_t context, uint8_t mode, uint64_t address,
		  uint32_t *ret)
{
	const struct listing_place wanted = {address, context, mode, true, true};
	uint64_t mixed = (address ^ (uint64_t)context << 44) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t first = (uint32_t)(mixed >> 40) % (EXECSTREAM_PLACES / 2) * 2;
	struct listing_place *set = &l->places[first];
	unsigned way;

	*ret = 0;
	if (address == 0)
		return 0;
	for (way = 0; way < 2; way++)
		if (set[way].used && set[way].address == address && set[way].context == context &&
		    set[way].mode == mode)
			break;
	if (way == 2) {
		int r;

		way = set[0].newest ? 1 : 0;
		r = define(l, &wanted, first + way + 1);
		if (r < 0)
			return r;
		set[way] = wanted;
	}
	set[way].newest = true;
	set[!way].newest = false;
	*ret = first + way + 1;
	return 0;
}
