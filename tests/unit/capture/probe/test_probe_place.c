/*
 * capture/probe/place: symbols and static probes in files of this host, in made ones, and in
 * malformed ones.
 */
#include "capture/probe/place.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "proto/base.h"

/* --- Files of this host, with the dynamic linker as the oracle --- */

/* The offset in its file of ADDRESS of this process. */
static uint64_t offset_of(const void *address)
{
	uint64_t begin, end, offset, at = (uintptr_t)address;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4352];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && at >= begin &&
		    at < end) {
			fclose(maps);
			return at - begin + offset;
		}
	fail_msg("%p is not mapped", address);
	return 0;
}

static void place_of_this_program_is_where_it_is_mapped(void **state)
{
	CLEANUP_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *error = NULL;
	uint64_t offset;

	(void)state;
	assert_int_equal(place_symbol(fd, "place_symbol", &offset, &error), 0);
	assert_int_equal(offset, offset_of((void *)place_symbol));
	assert_int_equal(place_symbol(fd, "place_symbol+4", &offset, &error), 0);
	assert_int_equal(offset, offset_of((void *)place_symbol) + 4);
	assert_int_equal(place_symbol(fd, "place_usdt+0x10", &offset, &error), 0);
	assert_int_equal(offset, offset_of((void *)place_usdt) + 16);
	assert_null(error);
}

static void place_in_libc_is_what_dlsym_says(void **state)
{
	/* regexec and posix_spawn have an old version beside the default one. */
	static const char *const names[] = {"malloc", "free",	 "regexec", "posix_spawn", "qsort",
					    "getenv", "fopen64", "execve",  "write"};
	char *error = NULL;
	Dl_info info;
	int fd;

	(void)state;
	assert_true(dladdr((void *)getenv, &info) != 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* Sanitizers put functions of their own before those of libc. */
		void *libc = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
		void *address = dlsym(libc, names[i]);
		uint64_t offset = 0;

		if (place_symbol(fd, names[i], &offset, &error) < 0)
			fail_msg("%s: %s", names[i], error);
		assert_int_equal(offset, offset_of(address));
		dlclose(libc);
	}
	close(fd);
}

static void place_of_an_ifunc_is_refused(void **state)
{
	uint64_t offset = 77;
	char *error = NULL;
	Dl_info info;
	int fd;

	(void)state;
	assert_true(dladdr((void *)getenv, &info) != 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_int_equal(place_symbol(fd, "memcpy", &offset, &error), -EOPNOTSUPP);
	assert_int_equal(offset, 77);
	assert_non_null(strstr(error, "memcpy is an IFUNC"));
	free(error);
	close(fd);
}

/* --- Files that are made: one segment, .symtab, .strtab --- */

#define N_SYMBOLS 8

struct made {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	Elf64_Sym symbols[N_SYMBOLS];
	char names[64];
	char code[64];
};

static Elf64_Sym symbol(unsigned name, int bind, int type, uint64_t address, uint64_t size)
{
	return (Elf64_Sym){.st_name = name,
			   .st_info = ELF64_ST_INFO(bind, type),
			   .st_shndx = 1,
			   .st_value = address,
			   .st_size = size};
}

#define BASE 0x400000u
#define CODE (BASE + offsetof(struct made, code))

/* Names: "one" at 1, "two" at 5, "and_two" at 9, whose end at 13 is "two" as well. */
static struct made make(void)
{
	struct made m = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
			   .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_phoff = offsetof(struct made, segment),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shoff = offsetof(struct made, sections),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3},
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_vaddr = BASE,
			    .p_filesz = sizeof(struct made),
			    .p_memsz = sizeof(struct made)},
		.sections = {{0},
			     {.sh_type = SHT_SYMTAB,
			      .sh_link = 2,
			      .sh_offset = offsetof(struct made, symbols),
			      .sh_size = N_SYMBOLS * sizeof(Elf64_Sym)},
			     {.sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct made, names),
			      .sh_size = 64}},
		.names = "\0one\0two\0and_two",
	};

	m.symbols[1] = symbol(1, STB_LOCAL, STT_FUNC, CODE, 8);
	m.symbols[2] = symbol(13, STB_LOCAL, STT_FUNC, CODE + 8, 4);
	return m;
}

/* Looks TEXT up in M; MESSAGE is part of the sentence, NULL: expects OFFSET. */
static void expect_in(const struct made *m, size_t size, const char *text, int r, uint64_t offset,
		      const char *message)
{
	CLEANUP_CLOSE int fd = memfd_create("made", MFD_CLOEXEC);
	uint64_t found = 0;
	char *error = NULL;

	assert_int_equal(write(fd, m, size), size);
	assert_int_equal(place_symbol(fd, text, &found, &error), r);
	assert_int_equal(found, offset);
	if (message && (!error || !strstr(error, message)))
		fail_msg("\"%s\" is not in \"%s\"", message, error ? error : "");
	free(error);
}

#define EXPECT(m, text, offset)		expect_in((m), sizeof(*(m)), text, 0, offset, NULL)
#define EXPECT_NOT(m, text, r, message) expect_in((m), sizeof(*(m)), text, r, 0, message)
#define AT(n)				(offsetof(struct made, code) + (n))

static void place_is_found_by_whole_names_only(void **state)
{
	struct made m = make();

	(void)state;
	EXPECT(&m, "one", AT(0));
	EXPECT(&m, "two", AT(8));
	EXPECT(&m, "two+3", AT(11));
	EXPECT_NOT(&m, "wo", -ENOENT, "no function wo");
	EXPECT_NOT(&m, "and_two", -ENOENT, "no function and_two");
	EXPECT_NOT(&m, "on", -ENOENT, "no function on");
}

/* The table of names is read in pieces of 64 KiB. */
static void place_is_found_wherever_its_name_lies(void **state)
{
	struct {
		struct made m;
		char names[70000];
	} *file = calloc(1, sizeof(*file));

	(void)state;
	for (unsigned at = 65530; at < 65540; at++) {
		file->m = make();
		memset(file->names, 'x', sizeof(file->names));
		memcpy(file->names + at, "\0one", 5);
		file->m.sections[2].sh_offset = sizeof(file->m);
		file->m.sections[2].sh_size = sizeof(file->names);
		file->m.symbols[1].st_name = at + 1;
		expect_in(&file->m, sizeof(*file), "one", 0, AT(0), NULL);
	}
	free(file);
}

static void place_prefers_global_to_weak_to_local(void **state)
{
	struct made m = make();

	(void)state;
	m.symbols[3] = symbol(1, STB_WEAK, STT_FUNC, CODE + 16, 8);
	EXPECT(&m, "one", AT(16));
	m.symbols[0] = symbol(1, STB_GLOBAL, STT_FUNC, CODE + 24, 8);
	EXPECT(&m, "one", AT(24));
}

static void place_of_several_functions_is_refused(void **state)
{
	struct made m = make();

	(void)state;
	m.symbols[3] = symbol(1, STB_LOCAL, STT_FUNC, CODE + 16, 8);
	EXPECT_NOT(&m, "one", -ENOTUNIQ, "several functions one");
	m.symbols[3].st_value = CODE;
	EXPECT(&m, "one", AT(0));
}

static void place_of_data_or_undefined_symbols_is_refused(void **state)
{
	struct made m = make();

	(void)state;
	m.symbols[1] = symbol(1, STB_GLOBAL, STT_OBJECT, CODE, 8);
	EXPECT_NOT(&m, "one", -ENOENT, "no function");
	m.symbols[1] = symbol(1, STB_GLOBAL, STT_FUNC, 0, 0);
	m.symbols[1].st_shndx = SHN_UNDEF;
	EXPECT_NOT(&m, "one", -ENOENT, "no function");
	m = make();
	m.segment.p_flags = PF_R | PF_W;
	EXPECT_NOT(&m, "one", -EBADMSG, "in no executable part");
}

static void place_with_a_bad_offset_is_refused(void **state)
{
	struct made m = make();

	(void)state;
	EXPECT_NOT(&m, "one+8", -EINVAL, "one has 8 bytes only");
	EXPECT_NOT(&m, "one+", -EINVAL, "no offset");
	EXPECT_NOT(&m, "one+-1", -EINVAL, "no offset");
	EXPECT_NOT(&m, "one+1x", -EINVAL, "no offset");
	EXPECT_NOT(&m, "one+99999999999999999999", -EINVAL, "no offset");
	EXPECT_NOT(&m, "+1", -EINVAL, "no symbol");
	m.symbols[1].st_size = UINT64_MAX;
	EXPECT_NOT(&m, "one+0xfffffffffffffffe", -EBADMSG, "in no executable part");
}

static void place_in_a_malformed_file_is_refused(void **state)
{
	struct made m = make();

	(void)state;
	for (size_t size = 0; size < sizeof(struct made) - sizeof(m.code); size++)
		expect_in(&m, size, "one", -EBADMSG, 0, NULL);
	m.header.e_machine = EM_AARCH64;
	EXPECT_NOT(&m, "one", -EBADMSG, "no ELF file for x86-64");
	m = make();
	m.sections[1].sh_link = 3;
	EXPECT_NOT(&m, "one", -EBADMSG, "symbols");
	m = make();
	m.sections[1].sh_size = UINT64_MAX;
	EXPECT_NOT(&m, "one", -E2BIG, "symbols");
	m = make();
	m.sections[2].sh_offset = UINT64_MAX - 10;
	EXPECT_NOT(&m, "one", -EBADMSG, "symbols");
	m = make();
	m.sections[2].sh_type = SHT_NOBITS;
	EXPECT_NOT(&m, "one", -EBADMSG, "symbols");
	m = make();
	m.segment.p_offset = UINT64_MAX - 4;
	EXPECT_NOT(&m, "one", -EBADMSG, "in no executable part");
	m = make();
	m.header.e_phnum = 129;
	EXPECT_NOT(&m, "one", -EBADMSG, "no ELF file");
}

/* Whatever the bytes are, the result is an error or an offset in the file. */
static void place_in_damaged_files_stays_in_the_file(void **state)
{
	unsigned found = 0;

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		CLEANUP_CLOSE int fd = memfd_create("damaged", MFD_CLOEXEC);
		struct made m = make();
		uint64_t offset = 0;
		char *error = NULL;

		srand(n);
		for (unsigned i = 0; i < 1 + n % 4; i++)
			((uint8_t *)&m)[(unsigned)rand() % offsetof(struct made, code)] =
				(uint8_t)rand();
		assert_int_equal(write(fd, &m, sizeof(m)), sizeof(m));
		if (place_symbol(fd, "one", &offset, &error) == 0) {
			assert_true(offset < sizeof(m));
			found++;
		} else {
			assert_non_null(error);
		}
		free(error);
	}
	assert_in_range(found, 2000, 19000);
}

/* --- Static probes --- */

struct noted {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[4];
	char names[64];
	struct {
		Elf64_Nhdr header;
		char owner[8];
		uint64_t place, base, semaphore;
		char text[16];
	} __attribute__((packed)) notes[3];
	char code[64];
};

static struct noted make_notes(void)
{
	struct noted m = {
		.header = make().header,
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_W | PF_X,
			    .p_vaddr = BASE,
			    .p_filesz = sizeof(struct noted)},
		.sections = {{0},
			     {.sh_type = SHT_NOTE,
			      .sh_name = 1,
			      .sh_offset = offsetof(struct noted, notes),
			      .sh_size = sizeof(m.notes)},
			     {.sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct noted, names),
			      .sh_size = 64},
			     {.sh_type = SHT_PROGBITS, .sh_name = 15, .sh_addr = 0x1000}},
		.names = "\0.note.stapsdt\0.stapsdt.base",
	};

	m.header.e_shnum = 4;
	m.header.e_shstrndx = 2;
	m.header.e_shoff = offsetof(struct noted, sections);
	m.header.e_phoff = offsetof(struct noted, segment);
	for (unsigned i = 0; i < 3; i++) {
		m.notes[i].header = (Elf64_Nhdr){8, 24 + 16, 3};
		memcpy(m.notes[i].owner, "stapsdt", 8);
		m.notes[i].place = BASE + offsetof(struct noted, code) + i;
		m.notes[i].base = 0x1000;
		memcpy(m.notes[i].text, "app\0hit\0-4@%ax\0", 16);
	}
	memcpy(m.notes[1].text, "app\0hat\0", 8);
	m.notes[2].semaphore = BASE + offsetof(struct noted, code) + 32;
	return m;
}

static int find_probe(const struct noted *m, const char *text, struct place_usdt ret[2], size_t max)
{
	CLEANUP_CLOSE int fd = memfd_create("noted", MFD_CLOEXEC);
	char *error = NULL;
	int r;

	assert_int_equal(write(fd, m, sizeof(*m)), sizeof(*m));
	r = place_usdt(fd, text, ret, max, &error);
	assert_true((r < 0) == (error != NULL));
	free(error);
	return r;
}

static void usdt_places_are_those_of_the_name(void **state)
{
	const uint64_t code = offsetof(struct noted, code);
	struct noted m = make_notes();
	struct place_usdt places[2];

	(void)state;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), 2);
	assert_int_equal(places[0].offset, code);
	assert_int_equal(places[0].semaphore, 0);
	assert_int_equal(places[1].offset, code + 2);
	assert_int_equal(places[1].semaphore, code + 32);
	assert_int_equal(find_probe(&m, "app:hat", places, 2), 1);
	assert_int_equal(places[0].offset, code + 1);
	assert_int_equal(find_probe(&m, "app:ha", places, 2), -ENOENT);
	assert_int_equal(find_probe(&m, "ap:hit", places, 2), -ENOENT);
	assert_int_equal(find_probe(&m, "app:hit", places, 1), -E2BIG);
	/* A prelink has moved the file by 16 bytes. */
	m.sections[3].sh_addr = 0x1010;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), 2);
	assert_int_equal(places[0].offset, code + 16);
}

static void usdt_in_malformed_notes_is_refused(void **state)
{
	struct noted m = make_notes();
	struct place_usdt places[2];

	(void)state;
	m.notes[0].header.n_descsz = 8;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), -EBADMSG);
	m = make_notes();
	m.notes[2].header.n_descsz = 0xfffffff0;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), -EBADMSG);
	m = make_notes();
	m.notes[0].header.n_namesz = 0xffffffff;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), -EBADMSG);
	m = make_notes();
	memset(m.notes[0].text, 'a', 16);
	assert_int_equal(find_probe(&m, "app:hit", places, 2), -EBADMSG);
	m = make_notes();
	m.notes[0].place = 0;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), -EBADMSG);
	m = make_notes();
	m.sections[1].sh_size = PLACE_MAX_NOTES + 1;
	assert_int_equal(find_probe(&m, "app:hit", places, 2), -EBADMSG);
	assert_int_equal(find_probe(&m, "app:", places, 2), -EINVAL);
	assert_int_equal(find_probe(&m, ":hit", places, 2), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place_of_this_program_is_where_it_is_mapped),
		cmocka_unit_test(place_in_libc_is_what_dlsym_says),
		cmocka_unit_test(place_of_an_ifunc_is_refused),
		cmocka_unit_test(place_is_found_by_whole_names_only),
		cmocka_unit_test(place_is_found_wherever_its_name_lies),
		cmocka_unit_test(place_prefers_global_to_weak_to_local),
		cmocka_unit_test(place_of_several_functions_is_refused),
		cmocka_unit_test(place_of_data_or_undefined_symbols_is_refused),
		cmocka_unit_test(place_with_a_bad_offset_is_refused),
		cmocka_unit_test(place_in_a_malformed_file_is_refused),
		cmocka_unit_test(place_in_damaged_files_stays_in_the_file),
		cmocka_unit_test(usdt_places_are_those_of_the_name),
		cmocka_unit_test(usdt_in_malformed_notes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
