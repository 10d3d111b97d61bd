/*
 * sideband/elf: names that are not in the file's own tables but in a debug file apart, or packed
 * within the file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lzma.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "tests/unit/sideband/apart.h"
#include "tests/unit/sideband/elf/some_file.h"
#include "tests/unit/sideband/elf_maker.h"

__attribute__((noinline)) static int elf_apart_local_function(int x)
{
	__asm__ volatile("nop" : "+r"(x));
	return x + 2;
}

/* Another name of the local function; the global name is the better one. */
int elf_apart_global_function(int x) __attribute__((alias("elf_apart_local_function")));

static int make(void **state)
{
	struct apart *a = malloc(sizeof(*a));

	*state = apart_make(a) ? a : NULL;
	if (!*state)
		free(a);
	return 0;
}

static int drop(void **state)
{
	if (*state)
		apart_drop(*state);
	free(*state);
	return 0;
}

static const struct apart *made(void **state)
{
	if (!*state)
		skip();
	return *state;
}

static struct elf_file *new_of(const struct file *file)
{
	struct elf_file *f = NULL;

	assert_int_equal(elf_file_new(file->bytes, file->size, &f), 0);
	return f;
}

static struct elf_bytes bytes_of(const struct file *file)
{
	return (struct elf_bytes){.bytes = file->bytes, .size = file->size};
}

static bool has_name(const struct elf_file *f, const char *name)
{
	size_t n;
	const struct elf_symbol *s = elf_file_symbols(f, &n);

	for (size_t i = 0; i < n; i++)
		if (s[i].name && strcmp(s[i].name, name) == 0)
			return true;
	return false;
}

static size_t count_names(const struct elf_file *f)
{
	size_t n;

	elf_file_symbols(f, &n);
	return n;
}

/* --- A debug file apart --- */

static void add_names_gives_those_of_the_whole(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *whole = new_of(&a->whole), *f = new_of(&a->stripped);
	const struct elf_bytes debug = bytes_of(&a->debug);

	assert_int_equal(elf_apart_global_function(1), 3);
	assert_false(has_name(f, "elf_apart_global_function"));
	assert_int_equal(elf_file_add_names(f, &debug), 0);
	assert_true(has_name(f, "elf_apart_global_function"));
	assert_false(has_name(f, "elf_apart_local_function"));
	assert_same_names(f, whole);
	elf_file_free(f);
	elf_file_free(whole);
}

/* A file with a build id and one symbol, NAME, at address 0x1000. */
static uint8_t *make_named(const char *name, unsigned binding, size_t *ret_size)
{
	static const struct {
		Elf64_Nhdr header;
		char owner[4];
		uint8_t id[20];
	} note = {{4, 20, NT_GNU_BUILD_ID}, "GNU", "a build id like any"};
	const Elf64_Sym symbols[] = {{0},
				     {.st_name = 1,
				      .st_info = (unsigned char)ELF64_ST_INFO(binding, STT_FUNC),
				      .st_shndx = 1,
				      .st_value = 0x1000,
				      .st_size = 1}};
	struct elf_maker *m = malloc(sizeof(*m));
	char text[64] = "";
	size_t table, strings;
	uint8_t *file;

	strcpy(text + 1, name);
	elf_maker_init(m, ET_DYN);
	elf_maker_map(m, elf_maker_add(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, 0x1000, "x", 1));
	elf_maker_add(m, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0, &note, sizeof(note));
	table = elf_maker_add(m, ".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols));
	strings = elf_maker_add(m, ".strtab", SHT_STRTAB, 0, 0, text, sizeof(text));
	m->sections[table].sh_link = (Elf64_Word)strings;
	m->sections[table].sh_entsize = sizeof(Elf64_Sym);
	file = elf_maker_end(m, ret_size);
	free(m);
	return file;
}

static uint8_t *small_file(size_t *ret_size)
{
	return make_named("packed", STB_LOCAL, ret_size);
}

/* The best name wins, whichever file has it. */
static void add_names_leaves_the_best_of_each_place(void **state)
{
	static const struct {
		const char *own;
		unsigned own_binding;
		const char *other;
		unsigned other_binding;
		const char *best;
	} cases[] = {
		{"aaa", STB_LOCAL, "bbb", STB_GLOBAL, "bbb"},
		{"aaa", STB_GLOBAL, "bbb", STB_LOCAL, "aaa"},
		{"bbb", STB_LOCAL, "aaa", STB_GLOBAL, "aaa"},
		{"bbb", STB_GLOBAL, "aaa", STB_LOCAL, "bbb"},
		{"bbb", STB_LOCAL, "aaa", STB_LOCAL, "aaa"},
		{"aaa", STB_WEAK, "bbb", STB_GLOBAL, "bbb"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_bytes bytes = {0};
		size_t size;
		uint8_t *own = make_named(cases[i].own, cases[i].own_binding, &size);
		uint8_t *other = make_named(cases[i].other, cases[i].other_binding, &bytes.size);
		struct elf_file *f;

		bytes.bytes = other;
		assert_int_equal(elf_file_new(own, size, &f), 0);
		assert_int_equal(elf_file_add_names(f, &bytes), 0);
		assert_int_equal(count_names(f), 1);
		assert_true(has_name(f, cases[i].best));
		elf_file_free(f);
		free(own);
		free(other);
	}
}

/* A file that has all names itself does not change. */
static void add_names_to_the_whole_changes_nothing(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *whole = new_of(&a->whole), *f = new_of(&a->whole);
	const struct elf_bytes debug = bytes_of(&a->debug);

	assert_int_equal(elf_file_add_names(f, &debug), 0);
	assert_same_names(f, whole);
	elf_file_free(f);
	elf_file_free(whole);
}

/* A copy of FILE whose build id differs in the last bit, or is one byte SHORTER. */
static uint8_t *copy_with_other_build_id(const struct file *file, bool shorter)
{
	struct elf_file *f = new_of(file);
	uint8_t *copy = malloc(file->size), *at;
	const uint8_t *id;
	size_t size;

	id = elf_file_build_id(f, &size);
	assert_true(size > 0);
	memcpy(copy, file->bytes, file->size);
	at = memmem(copy, file->size, id, size);
	assert_non_null(at);
	if (shorter)
		((Elf64_Nhdr *)(void *)(at - sizeof("GNU") - sizeof(Elf64_Nhdr)))->n_descsz--;
	else
		at[size - 1] ^= 1;
	elf_file_free(f);
	return copy;
}

static void add_names_of_another_build_says_not(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *untouched = new_of(&a->stripped), *f = new_of(&a->stripped);

	for (unsigned i = 0; i < 2; i++) {
		uint8_t *other = copy_with_other_build_id(&a->debug, i == 1);
		const struct elf_bytes debug = {.bytes = other, .size = a->debug.size};

		assert_int_equal(elf_file_add_names(f, &debug), ELF_NOT);
		assert_same_names(f, untouched);
		free(other);
		assert_same_names(f, untouched);
	}
	elf_file_free(f);
	elf_file_free(untouched);
}

static void add_names_of_no_elf_file_says_not(void **state)
{
	static const uint8_t zeros[4096];
	const struct apart *a = made(state);
	struct elf_file *untouched = new_of(&a->stripped), *f = new_of(&a->stripped);

	for (size_t size = 0; size <= sizeof(zeros); size += 1024)
		assert_int_equal(
			elf_file_add_names(f, &(struct elf_bytes){.bytes = zeros, .size = size}),
			ELF_NOT);
	assert_same_names(f, untouched);
	elf_file_free(f);
	elf_file_free(untouched);
}

/* A file without a build id matches no other file. */
static void add_names_without_build_ids_says_not(void **state)
{
	struct elf_maker *m = malloc(sizeof(*m));
	struct elf_file *f;
	uint8_t *file;
	size_t size;

	(void)state;
	elf_maker_init(m, ET_DYN);
	elf_maker_map(m, elf_maker_add(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, 0x1000, "x", 1));
	file = elf_maker_end(m, &size);
	assert_int_equal(elf_file_new(file, size, &f), 0);
	assert_int_equal(elf_file_add_names(f, &(struct elf_bytes){.bytes = file, .size = size}),
			 ELF_NOT);
	elf_file_free(f);
	free(file);
	free(m);
}

/* The bytes of all sections of FILE named .debug_*. */
static uint64_t size_of_dwarf(const struct file *file)
{
	const Elf64_Ehdr *h = (const void *)file->bytes;
	const Elf64_Shdr *s = (const void *)(file->bytes + h->e_shoff);
	const char *names = (const char *)file->bytes + s[h->e_shstrndx].sh_offset;
	uint64_t size = 0;

	for (size_t i = 0; i < h->e_shnum; i++)
		if (strncmp(names + s[i].sh_name, ".debug_", 7) == 0)
			size += s[i].sh_size;
	return size;
}

static void add_names_asks_for_all_that_it_reads(void **state)
{
	const struct apart *a = made(state);
	struct some some = {a->debug, calloc(1, a->debug.size), 0, UINT64_MAX};
	struct elf_file *whole = new_of(&a->whole), *f = new_of(&a->stripped);
	const struct elf_bytes debug = bytes_of_some(&some);

	assert_int_equal(elf_file_add_names(f, &debug), 0);
	assert_same_names(f, whole);
	assert_true(some.bytes < a->debug.size - size_of_dwarf(&a->debug));
	assert_true(some.bytes < a->debug.size / 2);
	elf_file_free(f);
	elf_file_free(whole);
	free(some.copy);
}

/* Names whose bytes cannot be had are missing, and the other names stay. */
static void add_names_of_what_does_not_come_keeps_the_others(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *stripped = new_of(&a->stripped);

	for (uint64_t most = 0; most < a->debug.size; most += a->debug.size / 20) {
		struct some some = {a->debug, calloc(1, a->debug.size), 0, most};
		const struct elf_bytes debug = bytes_of_some(&some);
		struct elf_file *f = new_of(&a->stripped);

		elf_file_add_names(f, &debug);
		assert_true(count_names(f) >= count_names(stripped));
		elf_file_free(f);
		free(some.copy);
	}
	elf_file_free(stripped);
}

static void add_names_of_damaged_files_survives(void **state)
{
	const struct apart *a = made(state);
	const Elf64_Ehdr *h = (const void *)a->debug.bytes;
	size_t headers = h->e_shnum * sizeof(Elf64_Shdr);
	uint8_t *copy = malloc(a->debug.size);
	uint64_t seed = 7;

	memcpy(copy, a->debug.bytes, a->debug.size);
	for (size_t i = 0; i < 200; i++) {
		const struct elf_bytes debug = {.bytes = copy, .size = a->debug.size};
		struct elf_file *f = new_of(&a->stripped);
		size_t at;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = (seed >> 33) % (1024 + headers);
		at = at < 1024 ? at : h->e_shoff + at - 1024;
		copy[at] = (uint8_t)(seed >> 24);
		elf_file_add_names(f, &debug);
		elf_file_free(f);
		copy[at] = a->debug.bytes[at];
	}
	free(copy);
}

/* --- The file packed within --- */

static void names_that_are_packed_are_there(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *whole = new_of(&a->whole), *f = new_of(&a->packed);

	assert_true(has_name(f, "elf_apart_global_function"));
	assert_same_names(f, whole);
	elf_file_free(f);
	elf_file_free(whole);
}

static void names_that_are_packed_are_asked_for(void **state)
{
	const struct apart *a = made(state);
	struct some some = {a->packed, calloc(1, a->packed.size), 0, UINT64_MAX};
	const struct elf_bytes bytes = bytes_of_some(&some);
	struct elf_file *whole = new_of(&a->whole), *f;

	assert_int_equal(elf_file_open(&bytes, ELF_NAMES, &f), 0);
	assert_same_names(f, whole);
	elf_file_free(f);
	elf_file_free(whole);
	free(some.copy);
}

/* The bytes that the names take of a room of HAD bytes. */
static uint64_t room_taken(const struct apart *a, uint64_t had, const struct elf_file *wanted)
{
	uint64_t room = had, taken;
	struct elf_bytes bytes = bytes_of(&a->packed);
	struct elf_file *f;

	bytes.room = &room;
	assert_int_equal(elf_file_open(&bytes, ELF_NAMES, &f), 0);
	taken = had - room;
	assert_same_names(f, wanted);
	elf_file_free(f);
	assert_int_equal(room, had);
	return taken;
}

static void room_is_taken_and_given_back(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *stripped = new_of(&a->stripped), *whole = new_of(&a->whole);
	uint64_t all = room_taken(a, UINT64_MAX, whole);

	assert_true(all > 1000 && all < a->whole.size);
	assert_int_equal(room_taken(a, all, whole), all);
	assert_int_equal(room_taken(a, all - 1, stripped), 0);
	for (uint64_t had = 0; had < all; had += all / 8)
		assert_int_equal(room_taken(a, had, stripped), 0);
	elf_file_free(stripped);
	elf_file_free(whole);
}

/* A file with one byte of code at 0x1000, and PACKED as its .gnu_debugdata. */
static uint8_t *wrap_as(uint32_t type, const void *packed, size_t packed_size, size_t *ret_size)
{
	struct elf_maker *m = malloc(sizeof(*m));
	uint8_t *file;

	elf_maker_init(m, ET_DYN);
	elf_maker_map(m, elf_maker_add(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, 0x1000, "x", 1));
	elf_maker_add(m, ".gnu_debugdata", type, 0, 0, packed, packed_size);
	file = elf_maker_end(m, ret_size);
	free(m);
	return file;
}

static uint8_t *wrap(const void *packed, size_t packed_size, size_t *ret_size)
{
	return wrap_as(SHT_PROGBITS, packed, packed_size, ret_size);
}

/* Packs by xz with a dictionary of DICTIONARY bytes. */
static uint8_t *pack(const void *bytes, size_t size, uint32_t dictionary, size_t *ret_size)
{
	size_t room = lzma_stream_buffer_bound(size);
	uint8_t *packed = malloc(room);
	lzma_options_lzma options;
	lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};

	assert_false(lzma_lzma_preset(&options, 0));
	options.dict_size = dictionary;
	*ret_size = 0;
	assert_int_equal(lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, bytes, size,
						   packed, ret_size, room),
			 LZMA_OK);
	return packed;
}

/* The number of names of a file that has PACKED within. */
static size_t names_of(const uint8_t *packed, size_t size)
{
	struct elf_file *f;
	size_t file_size, n;
	uint8_t *file = wrap(packed, size, &file_size);

	assert_int_equal(elf_file_new(file, file_size, &f), 0);
	n = count_names(f);
	assert_true(n == 0 || has_name(f, "packed"));
	elf_file_free(f);
	free(file);
	return n;
}

static size_t names_when_packed(const uint8_t *bytes, size_t size, uint32_t dictionary)
{
	size_t packed_size, n;
	uint8_t *packed = pack(bytes, size, dictionary, &packed_size);

	n = names_of(packed, packed_size);
	free(packed);
	return n;
}

static void unpacking_ends_where_memory_or_patience_would(void **state)
{
	size_t size, large = 512 << 10;
	uint8_t *small = small_file(&size), *bomb = calloc(1, large);
	uint64_t seed = 3;

	(void)state;
	assert_int_equal(names_when_packed(small, size, 1 << 20), 1);
	assert_int_equal(names_when_packed(small, size, 64 << 20), 1);
	assert_int_equal(names_when_packed(small, size, 96 << 20), 0);
	/* Zeros behind the file are packed better than any symbol table, and are refused. Bytes
	 * that cannot be packed well are not. */
	memcpy(bomb, small, size);
	assert_int_equal(names_when_packed(bomb, large, 1 << 20), 0);
	for (size_t i = size; i < large; i += 32) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bomb[i] = (uint8_t)(seed >> 56);
	}
	assert_int_equal(names_when_packed(bomb, large, 1 << 20), 1);
	free(bomb);
	free(small);
}

/* Unpacking ends at 64 MiB. */
static void unpacking_ends_at_its_limit(void **state)
{
	size_t size, packed_size = 0, file_size, large = (64u << 20) + 1;
	uint8_t *small = small_file(&size), *bytes = calloc(1, large), *packed, *file, *at;
	lzma_options_lzma options;
	lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	uint64_t seed = 3;
	struct elf_file *f;

	(void)state;
	memcpy(bytes, small, size);
	for (size_t i = size; i < large; i += 64) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> 56);
	}
	packed = malloc(large / 8);
	assert_false(lzma_lzma_preset(&options, 0));
	assert_int_equal(lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, NULL, bytes, large,
						   packed, &packed_size, large / 8),
			 LZMA_OK);
	/* The maker makes only small files: the packed bytes are put behind a file that was made
	 * for others. */
	file = wrap("PACKED", 7, &file_size);
	file = realloc(file, file_size + packed_size);
	memcpy(file + file_size, packed, packed_size);
	at = memmem(file, file_size, "PACKED", 7);
	assert_non_null(at);
	for (unsigned beyond = 0; beyond < 2; beyond++) {
		Elf64_Ehdr *h = (void *)file;
		Elf64_Shdr *sections = (void *)(file + h->e_shoff);

		sections[2].sh_offset = file_size;
		sections[2].sh_size = packed_size;
		assert_int_equal(elf_file_new(file, file_size + packed_size, &f), 0);
		assert_int_equal(count_names(f), beyond ? 1 : 0);
		elf_file_free(f);
		/* One byte less is allowed. */
		packed_size = 0;
		assert_int_equal(lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, NULL, bytes,
							   large - 1, packed, &packed_size,
							   large / 8),
				 LZMA_OK);
		file = realloc(file, file_size + packed_size);
		memcpy(file + file_size, packed, packed_size);
	}
	free(file);
	free(packed);
	free(bytes);
	free(small);
}

static void truncated_and_damaged_packs_are_not_there(void **state)
{
	size_t size, packed_size;
	uint8_t *small = small_file(&size);
	uint8_t *packed = pack(small, size, 1 << 20, &packed_size);

	(void)state;
	assert_int_equal(names_of(packed, packed_size), 1);
	for (size_t i = 0; i < packed_size; i++)
		assert_int_equal(names_of(packed, i), 0);
	/* Checksums cover all bytes of an xz file behind its header of 12 bytes. */
	for (size_t i = 12; i < packed_size; i++) {
		packed[i] ^= 0x10;
		assert_int_equal(names_of(packed, packed_size), 0);
		packed[i] ^= 0x10;
	}
	assert_int_equal(names_of(small, size), 0);
	assert_int_equal(names_of(packed, 0), 0);
	free(packed);
	free(small);
}

static void packs_within_a_pack_are_left(void **state)
{
	size_t size, inner_size, middle_size, packed_size;
	uint8_t *small = small_file(&size);
	uint8_t *inner = pack(small, size, 1 << 20, &inner_size);
	uint8_t *middle = wrap(inner, inner_size, &middle_size);
	uint8_t *packed = pack(middle, middle_size, 1 << 20, &packed_size);

	(void)state;
	assert_int_equal(names_of(inner, inner_size), 1);
	assert_int_equal(names_of(packed, packed_size), 0);
	free(packed);
	free(middle);
	free(inner);
	free(small);
}

/* In a debug file apart the section has no bytes, and other bytes are at its offset. */
static void packs_without_bytes_are_left(void **state)
{
	size_t size, packed_size, file_size;
	uint8_t *small = small_file(&size), *packed = pack(small, size, 1 << 20, &packed_size),
		*file;
	struct elf_file *f;

	(void)state;
	file = wrap_as(SHT_NOBITS, packed, packed_size, &file_size);
	assert_int_equal(elf_file_new(file, file_size, &f), 0);
	assert_int_equal(count_names(f), 0);
	elf_file_free(f);
	free(file);
	free(packed);
	free(small);
}

/* --- Addresses --- */

static void addresses_lead_to_offsets_and_back(void **state)
{
	const struct apart *a = made(state);
	struct elf_file *f = new_of(&a->whole);
	const Elf64_Ehdr *h = (const void *)a->whole.bytes;
	const Elf64_Phdr *p = (const void *)(a->whole.bytes + h->e_phoff);
	uint64_t address, end = 0;
	unsigned n = 0;

	for (size_t i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type != PT_LOAD || p[i].p_filesz == 0)
			continue;
		n++;
		assert_true(elf_file_address(f, p[i].p_offset, &address));
		assert_int_equal(address, p[i].p_vaddr);
		assert_true(elf_file_address(f, p[i].p_offset + p[i].p_filesz - 1, &address));
		assert_int_equal(address, p[i].p_vaddr + p[i].p_filesz - 1);
		end = MAX_OF(end, p[i].p_offset + p[i].p_filesz);
	}
	assert_true(n > 1);
	assert_false(elf_file_address(f, end, &address));
	assert_false(elf_file_address(f, a->whole.size - 1, &address));
	assert_false(elf_file_address(f, a->whole.size, &address));
	assert_false(elf_file_address(f, UINT64_MAX, &address));
	elf_file_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_names_gives_those_of_the_whole),
		cmocka_unit_test(add_names_leaves_the_best_of_each_place),
		cmocka_unit_test(add_names_to_the_whole_changes_nothing),
		cmocka_unit_test(add_names_of_another_build_says_not),
		cmocka_unit_test(add_names_of_no_elf_file_says_not),
		cmocka_unit_test(add_names_without_build_ids_says_not),
		cmocka_unit_test(add_names_asks_for_all_that_it_reads),
		cmocka_unit_test(add_names_of_what_does_not_come_keeps_the_others),
		cmocka_unit_test(add_names_of_damaged_files_survives),
		cmocka_unit_test(names_that_are_packed_are_there),
		cmocka_unit_test(names_that_are_packed_are_asked_for),
		cmocka_unit_test(room_is_taken_and_given_back),
		cmocka_unit_test(unpacking_ends_where_memory_or_patience_would),
		cmocka_unit_test(unpacking_ends_at_its_limit),
		cmocka_unit_test(truncated_and_damaged_packs_are_not_there),
		cmocka_unit_test(packs_within_a_pack_are_left),
		cmocka_unit_test(packs_without_bytes_are_left),
		cmocka_unit_test(addresses_lead_to_offsets_and_back),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
