/*
 * The beginning of an executable file, as execve(2) reads it.
 */
#include "capture/emu/machine/execplan.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

/* fs/binfmt_elf.c, load_elf_phdrs */
#define MAX_PHDRS_SIZE 65536u
/* arch/x86/include/asm/processor.h, TASK_SIZE of four-level paging */
#define USER_END 0x7ffffffff000ull
#define PAGE	 4096u

#define DAMAGED "its ELF headers are damaged or not supported by the emulator"

static ssize_t read_at(int fd, void *to, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int execfile_read_head(int fd, char ret_head[EXECFILE_HEAD_SIZE])
{
	ssize_t n;

	memset(ret_head, 0, EXECFILE_HEAD_SIZE);
	n = read_at(fd, ret_head, EXECFILE_HEAD_SIZE, 0);
	return n < 0 ? (int)n : 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The first byte from AT to LAST (inclusive) that is no blank, or NULL. */
static char *skip_blanks(char *at, char *last)
{
	for (; at <= last; at++)
		if (!is_blank(*at))
			return at;
	return NULL;
}

static char *find_end_of_word(char *at, char *last)
{
	for (; at <= last; at++)
		if (is_blank(*at) || *at == '\0')
			return at;
	return NULL;
}

/* End of the first line. NULL: the interpreter's name may be incomplete. */
static char *find_end_of_line(char *head)
{
	char *last = head + EXECFILE_HEAD_SIZE - 1, *end, *name;

	/* The kernel's strnchr stops at a NUL. */
	for (end = head; end <= last && *end != '\0'; end++)
		if (*end == '\n')
			return end;
	name = skip_blanks(head + 2, last);
	return name && find_end_of_word(name, last) ? last : NULL;
}

/* Follows load_script step by step, with the kernel's treatment of NULs and blanks. */
int execfile_parse_script(char head[EXECFILE_HEAD_SIZE], struct execfile_script *ret)
{
	char *end, *name, *gap, *argument = NULL;

	if (head[0] != '#' || head[1] != '!')
		return EXECFILE_NO_SCRIPT;
	end = find_end_of_line(head);
	if (!end)
		return -ENOEXEC;
	while (is_blank(end[-1]))
		end--;
	name = skip_blanks(head + 2, end);
	if (!name || name == end)
		return -ENOEXEC;
	gap = find_end_of_word(name, end);
	if (gap && *gap != '\0')
		argument = skip_blanks(gap, end);
	*end = '\0';
	if (argument)
		*gap = '\0';
	*ret = (struct execfile_script){.interpreter = name, .argument = argument};
	return 0;
}

static bool is_type_of_program(uint16_t type)
{
	return type == ET_EXEC || type == ET_DYN;
}

/* Whether the kernel and QEMU both map the segments without an error. After this point, the kernel
 * kills the program for an error, and the emulator prints a message. */
static bool are_sound_segments(const Elf64_Phdr *phdrs, size_t n, uint64_t file_size)
{
	size_t loads = 0, interpreters = 0;

	for (size_t i = 0; i < n; i++) {
		const Elf64_Phdr *p = &phdrs[i];
		uint64_t end;

		if (p->p_type == PT_INTERP)
			interpreters++;
		if (p->p_type != PT_LOAD)
			continue;
		loads++;
		if (__builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) || end > USER_END)
			return false;
		if (p->p_filesz != 0 &&
		    (p->p_filesz > p->p_memsz || (p->p_vaddr - p->p_offset) % PAGE != 0 ||
		     __builtin_add_overflow(p->p_offset, p->p_filesz, &end) || end > file_size))
			return false;
	}
	return loads > 0 && interpreters <= 1;
}

static int read_interpreter(int fd, const Elf64_Phdr *phdrs, size_t n, struct execfile_elf *ret)
{
	const Elf64_Phdr *p = NULL;
	ssize_t size;

	for (size_t i = 0; !p && i < n; i++)
		if (phdrs[i].p_type == PT_INTERP)
			p = &phdrs[i];
	if (!p)
		return 0;
	if (p->p_filesz < 2 || p->p_filesz > PATH_MAX)
		return -ENOEXEC;
	if (p->p_offset > INT64_MAX - PATH_MAX)
		return -EINVAL;
	size = read_at(fd, ret->interpreter, p->p_filesz, p->p_offset);
	if (size < 0 || (uint64_t)size != p->p_filesz)
		return size < 0 ? (int)size : -EIO;
	if (ret->interpreter[size - 1] != '\0')
		return -ENOEXEC;
	ret->has_interpreter = true;
	return 0;
}

static int foreign(struct execfile_elf *ret, const char *reason)
{
	ret->reason = reason;
	return EXECFILE_FOREIGN;
}

static int read_segments(int fd, const Elf64_Ehdr *h, bool as_interpreter, struct execfile_elf *ret)
{
	int refusal = as_interpreter ? -ELIBBAD : -ENOEXEC, r = 0;
	size_t size = h->e_phnum * sizeof(Elf64_Phdr);
	CLEANUP_FREE Elf64_Phdr *phdrs = malloc(size);
	struct stat st;

	if (!phdrs)
		return -ENOMEM;
	if (h->e_phoff > INT64_MAX - MAX_PHDRS_SIZE ||
	    read_at(fd, phdrs, size, h->e_phoff) != (ssize_t)size)
		return refusal;
	if (!as_interpreter)
		r = read_interpreter(fd, phdrs, h->e_phnum, ret);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* QEMU's elf_check_ident and elf_check_ehdr check more than the kernel. */
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_ident[EI_VERSION] != EV_CURRENT || h->e_ehsize != sizeof(*h) ||
	    !is_type_of_program(h->e_type) ||
	    !are_sound_segments(phdrs, h->e_phnum, (uint64_t)st.st_size))
		return foreign(ret, DAMAGED);
	return 0;
}

int execfile_read_elf(int fd, bool as_interpreter, struct execfile_elf *ret)
{
	union {
		Elf64_Ehdr of64;
		Elf32_Ehdr of32;
	} h = {0};
	ssize_t n = read_at(fd, &h, sizeof(h), 0);
	int refusal = as_interpreter ? -ELIBBAD : -ENOEXEC;

	*ret = (struct execfile_elf){0};
	if (n < 0)
		return (int)n;
	if (memcmp(h.of64.e_ident, ELFMAG, SELFMAG) != 0)
		return refusal;
	/* The kernel does not check EI_CLASS, but the machine and the size of a program header. */
	if (h.of64.e_machine == EM_X86_64 && h.of64.e_phentsize == sizeof(Elf64_Phdr) &&
	    h.of64.e_phnum > 0 && h.of64.e_phnum * sizeof(Elf64_Phdr) <= MAX_PHDRS_SIZE &&
	    (as_interpreter || is_type_of_program(h.of64.e_type)))
		return read_segments(fd, &h.of64, as_interpreter, ret);
	/* The kernel's 32-bit loader takes i386, and x32 if the kernel has it. */
	if (!as_interpreter &&
	    (h.of32.e_machine == EM_386 || h.of32.e_machine == 6 /* EM_486 */ ||
	     h.of32.e_machine == EM_X86_64) &&
	    is_type_of_program(h.of32.e_type) && h.of32.e_phentsize == sizeof(Elf32_Phdr) &&
	    h.of32.e_phnum > 0)
		return foreign(ret, h.of32.e_machine == EM_X86_64 ? "an x32 program"
								  : "a 32-bit program");
	return refusal;
}
