/*
 * Assembles the program section to bytes and labels. Messages of as and ld go to standard error
 * unchanged.
 */
#include "tests/support/ptscript_program.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/support/child.h"
#include "tests/support/ptscript_line.h"

#define MAX_PATH  512
#define MAX_PLACE 16 /* sections that the header gives an address */

static int run(char *const *argv)
{
	pid_t child = test_fork();
	int status;

	if (child < 0)
		return -errno;
	if (child == 0) {
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int write_source(struct ptscript *s, const struct ptscript_section *section,
			const char *path)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return -errno;
	/* Makes as report the script's name and line numbers. */
	fprintf(f, "# %u \"%s\"\n", section->line + 1, s->path);
	fputs("\t.text\n", f);
	fprintf(f, "# %u \"%s\"\n", section->line + 1, s->path);
	fputs(section->text, f);
	return fclose(f) == 0 ? 0 : -errno;
}

static int assemble(struct ptscript *s, unsigned line, char *source, char *object)
{
	char *argv[] = {"as", "--64", "--fatal-warnings", "-o", object, source, NULL};
	int r = run(argv);

	return r > 0 ? ptscript_fail(s, line, "as failed") : r;
}

/* Turns the words of the header into options of ld. */
static int link_pieces(struct ptscript *s, const struct ptscript_section *section, char *object,
		       char *file)
{
	char options[MAX_PLACE][128];
	char *argv[MAX_PLACE + 10] = {"ld", "-n", "-e", "0", "-o", file, object};
	CLEANUP_FREE char *words = strdup(section->words);
	char *rest = words, *word;
	size_t n = 0, argc = 7;
	bool placed = false;
	uint64_t value;
	int r = 0;

	while (r == 0 && (word = strsep(&rest, " \t")) != NULL) {
		char *equals = strchr(word, '=');

		if (*word == '\0')
			continue;
		if (n == MAX_PLACE - 1)
			return ptscript_fail(s, section->line, "too many words");
		r = ptscript_value(s, section->line, equals != NULL ? equals + 1 : word, &value);
		if (r != 0)
			return r;
		placed |= equals == NULL;
		snprintf(options[n], sizeof(options[n]), "--section-start=%.*s=0x%" PRIx64,
			 equals != NULL ? (int)MIN_OF(equals - word, 64) : 5,
			 equals != NULL ? word : ".text", value);
		argv[argc++] = options[n++];
	}
	if (!placed) {
		snprintf(options[n], sizeof(options[n]), "--section-start=.text=0x100000");
		argv[argc++] = options[n];
	}
	r = run(argv);
	return r > 0 ? ptscript_fail(s, section->line, "ld failed") : r;
}

/* Reads a whole file. NULL: the file cannot be read. */
static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "re");
	uint8_t *bytes = NULL;
	long size = -1;

	if (f != NULL && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size > 0 && fseek(f, 0, SEEK_SET) == 0)
		bytes = malloc((size_t)size);
	if (bytes != NULL && fread(bytes, (size_t)size, 1, f) != 1) {
		free(bytes);
		bytes = NULL;
	}
	if (f != NULL)
		fclose(f);
	*ret_size = bytes != NULL ? (size_t)size : 0;
	return bytes;
}

static void take_symbols(struct ptscript *s, const uint8_t *file, const Elf64_Shdr *table,
			 const Elf64_Shdr *strings)
{
	const Elf64_Sym *symbols = (const Elf64_Sym *)(const void *)(file + table->sh_offset);

	for (size_t i = 1; i < table->sh_size / sizeof(*symbols); i++) {
		const char *name = (const char *)file + strings->sh_offset + symbols[i].st_name;

		if (ELF64_ST_TYPE(symbols[i].st_info) <= STT_FUNC && *name != '\0')
			ptscript_add_label(s, name, symbols[i].st_value);
	}
}

static void take_piece(struct ptscript_program *program, const Elf64_Shdr *section,
		       const char *name)
{
	struct ptscript_piece *piece = &program->pieces[program->n_pieces++];

	snprintf(piece->name, sizeof(piece->name), "%s", name);
	piece->address = section->sh_addr;
	piece->size = section->sh_size;
	piece->offset = section->sh_offset;
}

/* Reads the file that ld wrote, which is trusted. */
static void take_sections(struct ptscript *s, const uint8_t *file, struct ptscript_program *program)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(file + header->e_shoff);
	const char *names = (const char *)file + sections[header->e_shstrndx].sh_offset;

	for (size_t i = 0; i < header->e_shnum; i++) {
		const Elf64_Shdr *section = &sections[i];

		if (section->sh_type == SHT_SYMTAB)
			take_symbols(s, file, section, &sections[section->sh_link]);
		if (section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_EXECINSTR) != 0 &&
		    section->sh_size > 0 && program->n_pieces < PTSCRIPT_MAX_PIECES)
			take_piece(program, section, names + section->sh_name);
	}
}

int ptscript_assemble(struct ptscript *s, const char *directory, struct ptscript_program *ret)
{
	const struct ptscript_section *section = ptscript_find(s, PTSCRIPT_PROGRAM);
	char source[MAX_PATH], object[MAX_PATH];
	CLEANUP_FREE uint8_t *file = NULL;
	size_t size;
	int r;

	*ret = (struct ptscript_program){0};
	if (section == NULL)
		return 0;
	snprintf(source, sizeof(source), "%s/program.s", directory);
	snprintf(object, sizeof(object), "%s/program.o", directory);
	snprintf(ret->file, sizeof(ret->file), "%s/program", directory);
	r = write_source(s, section, source);
	if (r == 0)
		r = assemble(s, section->line, source, object);
	if (r == 0)
		r = link_pieces(s, section, object, ret->file);
	if (r != 0)
		return r;
	file = read_file(ret->file, &size);
	if (file == NULL || size < sizeof(Elf64_Ehdr))
		return -EIO;
	take_sections(s, file, ret);
	return 0;
}
