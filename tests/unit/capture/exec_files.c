/*
 * Things to exec in a scratch directory. Called by test_follow.c and test_emu_command.c.
 */
#include "tests/unit/capture/exec_files.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"

#define TEMPLATE "/tmp/ptsnap.exec.XXXXXX"
#define BASE	 0x400000u

static char directory[sizeof(TEMPLATE)];

void exec_files_make(void)
{
	strcpy(directory, TEMPLATE);
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0755), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void exec_files_remove(void)
{
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *exec_files_directory(void)
{
	return directory;
}

const char *exec_file(const char *name)
{
	static char paths[64][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 64];

	snprintf(path, PATH_MAX, "%s/%s", directory, name);
	return path;
}

void exec_file_put(const char *name, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(exec_file(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

void exec_file_script(const char *name, const char *text)
{
	char *whole = NULL;
	size_t size;
	FILE *f = open_memstream(&whole, &size);

	assert_non_null(f);
	for (; *text != '\0'; text++)
		if (*text == '@')
			fputs(directory, f);
		else
			fputc(*text, f);
	fclose(f);
	exec_file_put(name, whole, size, 0755);
	free(whole);
}

void exec_file_copy(const char *name, const char *from)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(exec_file(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	char bytes[65536];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	close(in);
	close(out);
}

struct program {
	Elf64_Ehdr head;
	Elf64_Phdr load, interp;
	uint8_t code[16];
	char name[256];
};

/* mov $231, %eax (exit_group); xor %edi, %edi; syscall */
static const uint8_t end_code[] = {0xb8, 231, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05};

static struct program sound_program(void)
{
	struct program p = {
		.head = {.e_ident = ELFMAG,
			 .e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_entry = BASE + offsetof(struct program, code),
			 .e_phoff = offsetof(struct program, load),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1},
		.load = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = BASE,
			 .p_paddr = BASE,
			 .p_filesz = sizeof(struct program),
			 .p_memsz = sizeof(struct program),
			 .p_align = 4096},
	};

	p.head.e_ident[EI_CLASS] = ELFCLASS64;
	p.head.e_ident[EI_DATA] = ELFDATA2LSB;
	p.head.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(p.code, end_code, sizeof(end_code));
	return p;
}

/* mov $1, %eax (exit); xor %ebx, %ebx; int $0x80 */
static const uint8_t end_code_32[] = {0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80};

static void put_i386(const char *name)
{
	struct {
		Elf32_Ehdr head;
		Elf32_Phdr load;
		uint8_t code[16];
	} p = {
		.head = {.e_ident = ELFMAG,
			 .e_type = ET_EXEC,
			 .e_machine = EM_386,
			 .e_version = EV_CURRENT,
			 .e_entry = BASE + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
			 .e_phoff = sizeof(Elf32_Ehdr),
			 .e_ehsize = sizeof(Elf32_Ehdr),
			 .e_phentsize = sizeof(Elf32_Phdr),
			 .e_phnum = 1},
		.load = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = BASE,
			 .p_filesz = sizeof(p),
			 .p_memsz = sizeof(p),
			 .p_align = 4096},
	};

	p.head.e_ident[EI_CLASS] = ELFCLASS32;
	p.head.e_ident[EI_DATA] = ELFDATA2LSB;
	p.head.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(p.code, end_code_32, sizeof(end_code_32));
	exec_file_put(name, &p, sizeof(p), 0755);
}

static size_t spoil(struct program *p, enum exec_flaw flaw)
{
	switch (flaw) {
	case ELF_ARM: p->head.e_machine = EM_AARCH64; break;
	case ELF_OBJECT: p->head.e_type = ET_REL; break;
	case ELF_ODD_CLASS: p->head.e_ident[EI_CLASS] = ELFCLASS32; break;
	case ELF_NO_HEADERS: p->head.e_phnum = 0; break;
	case ELF_ENTRY_SIZE: p->head.e_phentsize = 32; break;
	case ELF_CUT_IN_HEAD: return sizeof(p->head) - 20;
	case ELF_CUT_IN_TABLE: return sizeof(p->head) + 8;
	case ELF_CUT_SEGMENT: p->load.p_filesz = p->load.p_memsz = 65536; break;
	case ELF_NO_LOAD: p->load.p_type = PT_NOTE; break;
	default: break;
	}
	return sizeof(*p);
}

static void ask_for_interpreter(struct program *p, size_t size)
{
	p->head.e_phnum = 2;
	p->interp = (Elf64_Phdr){.p_type = PT_INTERP,
				 .p_flags = PF_R,
				 .p_offset = offsetof(struct program, name),
				 .p_filesz = size,
				 .p_memsz = size};
}

void exec_file_elf(const char *name, enum exec_flaw flaw, const char *interpreter)
{
	struct program p = sound_program();

	if (flaw == ELF_I386) {
		put_i386(name);
		return;
	}
	if (interpreter != NULL) {
		snprintf(p.name, sizeof(p.name), "%s", interpreter);
		ask_for_interpreter(&p, strlen(interpreter) + 1);
	}
	exec_file_put(name, &p, spoil(&p, flaw), 0755);
}

void exec_file_elf_padded(const char *name, const char *interpreter, size_t size)
{
	struct {
		struct program program;
		char name[65536];
	} file = {.program = sound_program()};

	assert_true(size <= sizeof(file.name));
	memcpy(file.name, interpreter, MIN_OF(strlen(interpreter), size));
	/* No NUL comes by chance. */
	if (size < sizeof(file.name))
		memset(file.name + size, 'x', sizeof(file.name) - size);
	ask_for_interpreter(&file.program, size);
	file.program.interp.p_offset = sizeof(file.program);
	exec_file_put(name, &file, sizeof(file), 0755);
}

void exec_file_script_of_levels(unsigned int levels)
{
	char name[16], text[64];

	snprintf(name, sizeof(name), "level%u", levels);
	if (levels == 1)
		snprintf(text, sizeof(text), "#!@/prog first\n");
	else
		snprintf(text, sizeof(text), "#!@/level%u a%u\n", levels - 1, levels);
	exec_file_script(name, text);
}

void exec_file_long_script(const char *name, size_t slashes, const char *rest)
{
	char text[PATH_MAX] = "#!";

	memset(text + 2, '/', slashes);
	snprintf(text + 2 + slashes, sizeof(text) - 2 - slashes, "@/prog%s", rest);
	exec_file_script(name, text);
}
