/*
 * The guest's memory, page flags and registers, by symbols of the emulator's program, and its
 * executable mappings, from /proc/self/maps and the page flags.
 */
#include "capture/emu/plugin/guest.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/emu/plugin/qemu.h"
#include "proto/base.h"

#define PAGE	    4096ull
#define HEADER_SIZE 4096u /* what the kernel searches for a build ID */

/* Functions and variables of the emulator's program. */
static struct {
	uintptr_t *guest_base;
	int (*page_get_flags)(uint64_t address);
	void (*vcpu_exit_hook)(void *cpu);
	void (*async_run)(void *cpu, void (*fn)(void *cpu, void *data), void *data);
	const char **exec_path;
	_Atomic(void *) cpus[GUEST_MAX_VCPUS];
} qemu;

const char *guest_bind(void)
{
	const struct qemu_symbol symbols[] = {
		{"guest_base", &qemu.guest_base},
		{"page_get_flags", &qemu.page_get_flags},
		{"qemu_plugin_vcpu_exit_hook", &qemu.vcpu_exit_hook},
		{"async_run_on_cpu", &qemu.async_run},
		{"exec_path", &qemu.exec_path},
	};

	return qemu_bind(symbols, ARRAY_SIZE(symbols));
}

uint64_t guest_to_host(uint64_t address)
{
	return address + *qemu.guest_base;
}

uint64_t guest_from_host(uint64_t address)
{
	return address - *qemu.guest_base;
}

bool guest_read(uint64_t address, void *to, size_t size)
{
	struct iovec local = {to, size};
	struct iovec remote = {(void *)guest_to_host(address), size};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool guest_write(uint64_t address, const void *from, size_t size)
{
	struct iovec local = {(void *)from, size};
	struct iovec remote = {(void *)guest_to_host(address), size};

	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

int guest_page_flags(uint64_t address)
{
	return qemu.page_get_flags(address);
}

uint64_t guest_stack_pointer(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_RSP);
}

uint64_t guest_instruction_pointer(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_RIP);
}

const char *guest_program(void)
{
	return *qemu.exec_path;
}

void guest_defer(unsigned int vcpu, void (*fn)(void *cpu, void *data), void *data)
{
	void *cpu = qemu_cpu(vcpu);

	if (cpu)
		qemu.async_run(cpu, fn, data);
}

void guest_cpu_began(unsigned int vcpu)
{
	if (vcpu < GUEST_MAX_VCPUS)
		qemu.cpus[vcpu] = qemu_cpu(vcpu);
}

void guest_cpu_ended(unsigned int vcpu)
{
	if (vcpu < GUEST_MAX_VCPUS)
		qemu.cpus[vcpu] = NULL;
}

void guest_forked(unsigned int self)
{
	for (unsigned int i = 0; i < GUEST_MAX_VCPUS; i++) {
		void *cpu = qemu.cpus[i];

		if (i == self || !cpu)
			continue;
		qemu.cpus[i] = NULL;
		qemu.vcpu_exit_hook(cpu);
	}
}

/* Returns the size of the build ID that it copies to RET, or 0. */
static uint8_t search_notes(const uint8_t *notes, uint64_t size, uint8_t ret[20])
{
	Elf64_Nhdr note;
	uint64_t at = 0;

	while (at + sizeof(note) < size) {
		memcpy(&note, notes + at, sizeof(note));
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    note.n_descsz > 0 && note.n_descsz <= 20 &&
		    at + sizeof(note) + 4 + note.n_descsz <= size &&
		    memcmp(notes + at + sizeof(note), "GNU", 4) == 0) {
			memcpy(ret, notes + at + sizeof(note) + 4, note.n_descsz);
			return (uint8_t)note.n_descsz;
		}
		at += sizeof(note) + ((note.n_namesz + 3ull) & ~3ull) +
		      ((note.n_descsz + 3ull) & ~3ull);
	}
	return 0;
}

/* Build ID of file PATH if its inode is still INO, by the kernel's rules (lib/buildid.c,
 * build_id_parse, 6.1): a 64-bit ELF file whose program headers and notes lie in its first page.
 * Returns the number of bytes, at most 20. 0: no build ID, or not where the kernel looks. */
static uint8_t read_build_id(const char *path, uint64_t ino, uint8_t ret[20])
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t header[HEADER_SIZE] = {0}, size = 0;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != ino ||
	    pread(fd, header, HEADER_SIZE, 0) <= 0)
		return 0;
	memcpy(&ehdr, header, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_phoff != sizeof(ehdr) ||
	    ehdr.e_phnum > (HEADER_SIZE - sizeof(ehdr)) / sizeof(phdr))
		return 0;
	for (uint16_t i = 0; size == 0 && i < ehdr.e_phnum; i++) {
		memcpy(&phdr, header + sizeof(ehdr) + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_NOTE && phdr.p_offset < HEADER_SIZE &&
		    phdr.p_filesz <= HEADER_SIZE - phdr.p_offset)
			size = search_notes(header + phdr.p_offset, phdr.p_filesz, ret);
	}
	return size;
}

struct line {
	uint64_t begin, end, pgoff, ino;
	unsigned int maj, min;
	char perms[5];
	char *path; /* points into the line's buffer */
};

/* One line of /proc/self/maps. *RET points into TEXT, which is changed. */
static bool parse(char *text, struct line *ret)
{
	int path = 0;
	char *to;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %n", &ret->begin, &ret->end, ret->perms,
		   &ret->pgoff, &ret->maj, &ret->min, &ret->ino, &path) < 7 ||
	    path == 0)
		return false;
	ret->path = to = text + path;
	/* The kernel escapes only newlines in the paths of maps (fs/proc/task_mmu.c,
	 * seq_file_path). */
	for (const char *from = to; *from != '\0'; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return true;
}

struct scan {
	uint64_t begin, end;
	bool build_ids;
	guest_mapping_fn fn;
	void *userdata;
};

#define PERMISSIONS (GUEST_PAGE_READ | GUEST_PAGE_WRITE | GUEST_PAGE_EXEC)

static int permissions(uint64_t host)
{
	return guest_page_flags(guest_from_host(host)) & PERMISSIONS;
}

/* Reports the pages [BEGIN, END), host addresses, which have the same permissions FLAGS. */
static void give_range(const struct scan *s, const struct line *l, uint64_t begin, uint64_t end,
		       int flags)
{
	_Static_assert(GUEST_PAGE_READ == PROT_READ && GUEST_PAGE_WRITE == PROT_WRITE &&
			       GUEST_PAGE_EXEC == PROT_EXEC,
		       "QEMU's page flags are PROT_*");
	struct sideband_mapping m = {.addr = guest_from_host(begin),
				     .len = end - begin,
				     .pgoff = l->ino != 0 ? l->pgoff + begin - l->begin
							  : guest_from_host(begin),
				     .maj = l->maj,
				     .min = l->min,
				     .ino = l->ino,
				     .prot = (uint32_t)flags,
				     .flags = l->perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
				     /* For the kernel, the stack that QEMU made is plain
				      * anonymous memory. */
				     .name = l->path[0] != '\0' ? l->path : "//anon"};

	/* With a guest_base, the memory lies at another address for the host, and the recorder must
	 * not read it at the guest's address. */
	if (l->ino == 0 && guest_to_host(0) != 0)
		m.name = "[guest]";
	if (s->build_ids && l->ino != 0)
		m.build_id_size = read_build_id(l->path, l->ino, m.build_id);
	s->fn(s->userdata, &m);
}

static void give_ranges(const struct scan *s, const struct line *l)
{
	uint64_t at = MAX_OF(l->begin, guest_to_host(s->begin));
	uint64_t end = s->end == UINT64_MAX ? l->end : MIN_OF(l->end, guest_to_host(s->end));

	while (at < end) {
		int flags = permissions(at);
		uint64_t begin = at;

		while (at < end && permissions(at) == flags)
			at += PAGE;
		if (!(flags & GUEST_PAGE_EXEC))
			continue;
		give_range(s, l, begin, at, flags);
	}
}

int guest_mappings(uint64_t begin, uint64_t end, uint32_t flags, guest_mapping_fn fn,
		   void *userdata)
{
	struct scan s = {begin, end, (flags & EMURING_BUILD_ID) != 0, fn, userdata};
	char *text = NULL;
	size_t capacity = 0;
	struct line l;
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return -errno;
	while (getline(&text, &capacity, f) > 0) {
		/* Nothing executes in the vsyscall page, and the kernel writes no MMAP2 record for
		 * it. */
		if (!parse(text, &l) || l.begin >= guest_to_host(end) ||
		    strcmp(l.path, "[vsyscall]") == 0)
			continue;
		/* QEMU reserves large ranges without guest pages, which are not readable; looking
		 * at each of their pages would take too long. */
		if (l.perms[0] == 'r' || l.end - l.begin < (1ull << 30))
			give_ranges(&s, &l);
	}
	free(text);
	fclose(f);
	return 0;
}
