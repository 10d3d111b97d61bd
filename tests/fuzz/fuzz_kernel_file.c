/*
 * Fuzzes the reader of kernel files: plain, packed, or a module; the first byte chooses. Invariant:
 * masks lie within the text, in order.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file.h"

static const char symbols[] = "ffffffff81000000 T _stext\n"
			      "ffffffff81000400 T _etext\n"
			      "ffffffff82000000 R __alt_instructions\n"
			      "ffffffff82000018 R __alt_instructions_end\n"
			      "ffffffff82000020 D __start___jump_table\n"
			      "ffffffff82000040 D __stop___jump_table\n";
static const char sections[] = "m .text 0xffffffffc0000000\nm .text.unlikely 0xffffffffc0000400\n";

struct input {
	const uint8_t *bytes;
	size_t size;
};

static ssize_t read_input(void *userdata, uint64_t offset, void *to, size_t size)
{
	const struct input *in = userdata;

	if (offset >= in->size)
		return 0;
	size = MIN_OF(size, in->size - offset);
	memcpy(to, in->bytes + offset, size);
	return (ssize_t)size;
}

static void check(const struct kernel_file_text *t)
{
	uint64_t at = t->address;

	for (size_t i = 0; i < t->n_masked; i++) {
		assert(t->masked[i].begin >= at && t->masked[i].begin < t->masked[i].end);
		assert(i == 0 || t->masked[i].begin > at);
		at = t->masked[i].end;
	}
	assert(at - t->address <= t->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data + 1, size - 1};
	struct kernel_file file = {.source = {read_input, &in, size - 1},
				   .sections = sections,
				   .sections_size = sizeof(sections) - 1};
	struct kernel_file_text text;
	struct kernel_links *links;

	if (size == 0 || kernel_links_new(symbols, sizeof(symbols) - 1, &links) < 0)
		return 0;
	file.module = data[0] & 1 ? "m" : NULL;
	file.links = links;
	if (kernel_file_text(&file, &text) == 0) {
		check(&text);
		kernel_file_text_done(&text);
	}
	kernel_links_free(links);
	return 0;
}
