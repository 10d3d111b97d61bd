/*
 * Names and lines of stripped images, from their debug files.
 */
#include "sideband/symbols/symbols.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/bundle/manifest.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "tests/unit/sideband/apart.h"

#define MAX_FRAMES 8u

static volatile int sink;

static inline __attribute__((always_inline)) int symbols_apart_inlined(int x)
{
	sink = x;
	return sink + 1;
}

__attribute__((noinline)) static int symbols_apart_function(int x)
{
	__asm__ volatile("nop" : "+r"(x));
	return symbols_apart_inlined(x);
}
enum { FUNCTION_LINE = __LINE__ - 5 };

enum { STRIPPED, WHOLE, DEBUG, PACKED, NOTHING };

struct fixture {
	struct apart apart;
	const struct file *files[4];
	/* For each image: its file and its debug file, and how often the latter was asked for. */
	unsigned image[3], debug[3];
	unsigned asked[3];
	struct image_set *images;
	struct symbols *symbols;
};

static int make(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = NULL;
	if (!apart_make(&f->apart)) {
		free(f);
		return 0;
	}
	f->files[STRIPPED] = &f->apart.stripped;
	f->files[WHOLE] = &f->apart.whole;
	f->files[DEBUG] = &f->apart.debug;
	f->files[PACKED] = &f->apart.packed;
	*state = f;
	return 0;
}

static int drop(void **state)
{
	struct fixture *f = *state;

	if (f)
		apart_drop(&f->apart);
	free(f);
	return 0;
}

/* --- A loader --- */

static int open_image(void *userdata, uint32_t image, uint64_t *ret_size)
{
	const struct fixture *f = userdata;

	*ret_size = f->files[f->image[image]]->size;
	return 0;
}

static int open_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		      uint64_t *ret_size)
{
	struct fixture *f = userdata;

	assert_true(image < 3);
	assert_int_equal(id_size, 20);
	assert_non_null(memmem(f->apart.whole.bytes, f->apart.whole.size, build_id, id_size));
	f->asked[image]++;
	if (f->debug[image] == NOTHING)
		return -ENOENT;
	*ret_size = f->files[f->debug[image]]->size;
	return 0;
}

static ssize_t read_file(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	const struct fixture *f = userdata;
	const struct file *file = f->files[image < 3 ? f->image[image] : f->debug[image - 3]];

	assert_true(offset <= file->size);
	size = MIN_OF(size, (size_t)(file->size - offset));
	memcpy(to, file->bytes + offset, size);
	return (ssize_t)size;
}

static void open_with(struct fixture *f, const struct image_source *sources, size_t n)
{
	const struct image_loader loader = {
		.open = open_image, .read = read_file, .userdata = f, .debug = open_debug};

	memset(f->asked, 0, sizeof(f->asked));
	assert_int_equal(image_set_new(sources, n, &loader, &f->images), 0);
	assert_int_equal(symbols_new(f->images, &f->symbols), 0);
}

/* Image 0 has the file IMAGE and the debug file DEBUG, images 1 and 2 are the whole file. No
 * process maps image 2. */
static struct fixture *open_two(void **state, unsigned image, unsigned debug)
{
	struct fixture *f = *state;
	struct image_source sources[3] = {{.path = "/0", .ino = 1, .loadable = true},
					  {.path = "/1", .ino = 2, .loadable = true},
					  {.path = "/2", .ino = 3, .loadable = true}};

	if (!f)
		skip();
	f->image[0] = image;
	f->image[1] = f->image[2] = WHOLE;
	f->debug[0] = debug;
	f->debug[1] = f->debug[2] = NOTHING;
	sources[2].apart = true;
	open_with(f, sources, 3);
	return f;
}

static void done(struct fixture *f)
{
	symbols_free(f->symbols);
	image_set_free(f->images);
}

static uint64_t offset_of_function(void)
{
	char path[4096];
	uint64_t offset;

	assert_int_equal(symbols_apart_function(3), 4);
	assert_true(file_of_address((void *)(uintptr_t)symbols_apart_function, path, &offset));
	return offset;
}

/* --- Names --- */

/* Compares images 0 and 1 function by function; returns the number of names. */
static size_t compare_names(struct fixture *f)
{
	size_t named = 0;

	for (uint64_t at = 0; at < f->apart.whole.size;) {
		struct symbol whole, s;

		symbols_find(f->symbols, 1, at, &whole);
		symbols_find(f->symbols, 0, at, &s);
		assert_int_equal(s.offset, whole.offset);
		assert_int_equal(s.size, whole.size);
		assert_int_equal(s.name == NULL, whole.name == NULL);
		if (s.name)
			assert_string_equal(s.name, whole.name);
		named += s.name != NULL;
		at = MAX_OF(whole.offset + whole.size, at + 1);
	}
	return named;
}

static void find_with_files_apart_is_as_of_the_whole(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);

	symbols_use_debug_files(f->symbols);
	assert_true(compare_names(f) > 20);
	assert_int_equal(f->asked[0], 1);
	assert_int_equal(f->asked[1], 1);
	done(f);
}

static void find_with_packed_names_is_as_of_the_whole(void **state)
{
	struct fixture *f = open_two(state, PACKED, NOTHING);

	assert_true(compare_names(f) > 20);
	assert_int_equal(f->asked[0], 0);
	done(f);
}

static const char *name_at(struct fixture *f, uint64_t offset)
{
	struct symbol s;

	symbols_find(f->symbols, 0, offset, &s);
	return s.name ? s.name : "";
}

static void find_without_files_apart_asks_for_none(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);

	assert_string_equal(name_at(f, offset_of_function()), "");
	assert_int_equal(f->asked[0], 0);
	done(f);
	f = open_two(state, STRIPPED, DEBUG);
	symbols_use_debug_files(f->symbols);
	assert_string_equal(name_at(f, offset_of_function()), "symbols_apart_function");
	done(f);
}

static void find_asks_once_where_there_is_none(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, NOTHING);
	struct dwarf_frame frame;

	symbols_use_debug_files(f->symbols);
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(name_at(f, offset_of_function()), "");
		assert_int_equal(symbols_lines(f->symbols, 0, offset_of_function(), &frame, 1), 0);
	}
	assert_int_equal(f->asked[0], 1);
	done(f);
}

static void leave_out_asks_for_nothing(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);
	struct dwarf_frame frame;

	symbols_use_debug_files(f->symbols);
	symbols_leave_out(f->symbols);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(name_at(f, offset_of_function()), "");
		assert_int_equal(symbols_lines(f->symbols, i, offset_of_function(), &frame, 1), 0);
		assert_int_equal(symbols_dwarf(f->symbols, i), SYMBOLS_DWARF_UNASKED);
		assert_int_equal(f->asked[i], 0);
	}
	done(f);
}

/* The kernel's names come from elsewhere. */
static void files_apart_of_the_kernel_are_not_asked_for(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);
	struct dwarf_frame frame;
	struct symbol s;

	symbols_use_debug_files(f->symbols);
	symbols_find(f->symbols, 2, offset_of_function(), &s);
	assert_int_equal(symbols_lines(f->symbols, 2, offset_of_function(), &frame, 1), 0);
	assert_int_equal(symbols_dwarf(f->symbols, 2), SYMBOLS_DWARF_NONE);
	assert_int_equal(f->asked[2], 0);
	done(f);
}

/* Debug files are asked for by build id. */
static void files_apart_of_what_is_no_elf_file_are_not_asked_for(void **state)
{
	static const uint8_t script[] = "#!/bin/sh\n";
	const struct image_source source = {.path = "/s", .bytes = script, .size = sizeof(script)};
	struct fixture *f = *state;
	struct dwarf_frame frame;

	if (!f)
		skip();
	open_with(f, &source, 1);
	symbols_use_debug_files(f->symbols);
	assert_string_equal(name_at(f, 3), "");
	assert_int_equal(symbols_lines(f->symbols, 0, 3, &frame, 1), 0);
	assert_int_equal(symbols_dwarf(f->symbols, 0), SYMBOLS_DWARF_NONE);
	assert_int_equal(f->asked[0], 0);
	done(f);
}

static void files_apart_of_what_has_no_build_id_are_not_asked_for(void **state)
{
	struct fixture *f = *state;
	struct image_source source = {.path = "/n"};
	struct elf_file *elf;
	const uint8_t *id;
	uint8_t *copy, *note;
	size_t size;

	if (!f)
		skip();
	assert_int_equal(elf_file_new(f->apart.whole.bytes, f->apart.whole.size, &elf), 0);
	id = elf_file_build_id(elf, &size);
	copy = malloc(f->apart.whole.size);
	memcpy(copy, f->apart.whole.bytes, f->apart.whole.size);
	/* The note with the build id becomes one of another type. */
	note = copy + (id - f->apart.whole.bytes) - sizeof("GNU") - sizeof(Elf64_Nhdr);
	((Elf64_Nhdr *)(void *)note)->n_type = 77;
	elf_file_free(elf);
	source.bytes = copy;
	source.size = f->apart.whole.size;
	open_with(f, &source, 1);
	symbols_use_debug_files(f->symbols);
	assert_string_equal(name_at(f, offset_of_function()), "symbols_apart_function");
	assert_int_equal(f->asked[0], 0);
	done(f);
	free(copy);
}

/* --- Lines --- */

static void check_lines(struct fixture *f, uint32_t image)
{
	struct dwarf_frame frames[MAX_FRAMES];
	bool inlined = false;
	struct symbol s;
	size_t n;

	symbols_find(f->symbols, image, offset_of_function(), &s);
	n = symbols_lines(f->symbols, image, s.offset, frames, MAX_FRAMES);
	assert_int_equal(n, 1);
	assert_string_equal(frames[0].function, "symbols_apart_function");
	assert_in_range(frames[0].line, FUNCTION_LINE, FUNCTION_LINE + 4);
	assert_non_null(strstr(frames[0].file, "test_symbols_apart.c"));
	for (uint64_t at = s.offset; at < s.offset + s.size; at++) {
		n = symbols_lines(f->symbols, image, at, frames, MAX_FRAMES);
		inlined |= n == 2 && strcmp(frames[0].function, "symbols_apart_inlined") == 0;
	}
	assert_true(inlined);
}

static void lines_are_those_of_the_image_itself(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);

	assert_int_equal(symbols_dwarf(f->symbols, 1), SYMBOLS_DWARF_UNASKED);
	check_lines(f, 1);
	assert_int_equal(symbols_dwarf(f->symbols, 1), SYMBOLS_DWARF_OWN);
	done(f);
}

static void lines_are_those_of_the_file_apart(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);
	struct elf_file *elf;

	symbols_use_debug_files(f->symbols);
	check_lines(f, 0);
	assert_int_equal(symbols_dwarf(f->symbols, 0), SYMBOLS_DWARF_APART);
	assert_int_equal(image_open_elf(f->images, 3, &elf), ELF_NOT);
	done(f);
}

static void lines_of_a_stripped_image_are_not_there(void **state)
{
	struct fixture *f = open_two(state, STRIPPED, DEBUG);
	struct dwarf_frame frame;

	assert_int_equal(symbols_lines(f->symbols, 0, offset_of_function(), &frame, 1), 0);
	assert_int_equal(symbols_dwarf(f->symbols, 0), SYMBOLS_DWARF_NONE);
	assert_int_equal(symbols_lines(f->symbols, 7, 0, &frame, 1), 0);
	assert_int_equal(symbols_dwarf(f->symbols, 7), SYMBOLS_DWARF_UNASKED);
	done(f);
}

/* A bundle has only the pieces that were needed when it was made. */
static void lines_of_an_image_in_pieces_are_those_of_the_file_apart(void **state)
{
	struct fixture *f = *state;
	struct manifest_piece pieces[2] = {{0}};
	struct image_source source = {.path = "/0", .ino = 1, .n_pieces = 2, .pieces = pieces};
	uint64_t end = 0;
	struct dwarf_frame frame;
	struct elf_file *elf;
	const Elf64_Ehdr *h;
	const Elf64_Shdr *s;
	uint8_t *bytes;

	if (!f)
		skip();
	/* The pieces: what is mapped, and the headers of the sections. */
	h = (const void *)f->apart.whole.bytes;
	s = (const void *)(f->apart.whole.bytes + h->e_shoff);
	for (unsigned i = 0; i < h->e_shnum; i++)
		if ((s[i].sh_flags & SHF_ALLOC) && s[i].sh_type != SHT_NOBITS)
			end = MAX_OF(end, s[i].sh_offset + s[i].sh_size);
	pieces[0].size = end;
	pieces[1].offset = s[h->e_shstrndx].sh_offset;
	pieces[1].size = f->apart.whole.size - pieces[1].offset;
	bytes = malloc(pieces[0].size + pieces[1].size);
	memcpy(bytes, f->apart.whole.bytes, pieces[0].size);
	memcpy(bytes + pieces[0].size, f->apart.whole.bytes + pieces[1].offset, pieces[1].size);
	source.bytes = bytes;
	source.size = pieces[0].size + pieces[1].size;
	source.file_size = f->apart.whole.size;
	for (unsigned apart = 0; apart < 2; apart++) {
		f->debug[0] = DEBUG;
		/* Three images, so that the debug file has a number behind all of them. */
		open_with(f, (struct image_source[]){source, source, source}, 3);
		assert_int_equal(image_open_elf(f->images, 0, &elf), 0);
		elf_file_free(elf);
		if (apart) {
			symbols_use_debug_files(f->symbols);
			check_lines(f, 0);
			assert_int_equal(symbols_dwarf(f->symbols, 0), SYMBOLS_DWARF_APART);
		} else {
			assert_int_equal(
				symbols_lines(f->symbols, 0, offset_of_function(), &frame, 1), 0);
			assert_int_equal(symbols_dwarf(f->symbols, 0), SYMBOLS_DWARF_NONE);
		}
		done(f);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_with_files_apart_is_as_of_the_whole),
		cmocka_unit_test(find_with_packed_names_is_as_of_the_whole),
		cmocka_unit_test(find_without_files_apart_asks_for_none),
		cmocka_unit_test(find_asks_once_where_there_is_none),
		cmocka_unit_test(leave_out_asks_for_nothing),
		cmocka_unit_test(files_apart_of_the_kernel_are_not_asked_for),
		cmocka_unit_test(files_apart_of_what_is_no_elf_file_are_not_asked_for),
		cmocka_unit_test(files_apart_of_what_has_no_build_id_are_not_asked_for),
		cmocka_unit_test(lines_are_those_of_the_image_itself),
		cmocka_unit_test(lines_are_those_of_the_file_apart),
		cmocka_unit_test(lines_of_a_stripped_image_are_not_there),
		cmocka_unit_test(lines_of_an_image_in_pieces_are_those_of_the_file_apart),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
