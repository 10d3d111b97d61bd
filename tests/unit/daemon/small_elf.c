/*
 * An ELF header, one program header, one note.
 */
#include "tests/unit/daemon/small_elf.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

int small_elf_write(const char *path, const uint8_t id[20])
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr note;
		Elf64_Nhdr head;
		char vendor[4];
		uint8_t id[20];
	} elf = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1},
		.note = {.p_type = PT_NOTE,
			 .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			 .p_filesz = sizeof(Elf64_Nhdr) + 24,
			 .p_memsz = sizeof(Elf64_Nhdr) + 24,
			 .p_align = 4},
		.head = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
		.vendor = "GNU",
	};
	const size_t size = offsetof(__typeof__(elf), id) + sizeof(elf.id); /* no padding */
	CLEANUP_CLOSE int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0700);

	memcpy(elf.id, id, sizeof(elf.id));
	return write(fd, &elf, size) == (ssize_t)size ? 0 : -1;
}
