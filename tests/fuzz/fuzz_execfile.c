/*
 * Fuzzes the reader of executed files: "#!" lines and ELF headers.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/emu/machine/execplan.h"
#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char head[EXECFILE_HEAD_SIZE];
	struct execfile_script script;
	struct execfile_elf elf;

	if (write(fd, data, size) != (ssize_t)size || execfile_read_head(fd, head) < 0)
		return 0;
	/* A name is one word; the name and its argument end within the head. */
	if (execfile_parse_script(head, &script) == 0 &&
	    (strpbrk(script.interpreter, " \t\n") != NULL ||
	     memchr(script.interpreter, 0, (size_t)(head + sizeof(head) - script.interpreter)) ==
		     NULL))
		__builtin_trap();
	for (int i = 0; i < 2; i++)
		if (execfile_read_elf(fd, i != 0, &elf) == 0 && elf.has_interpreter &&
		    strlen(elf.interpreter) >= PATH_MAX)
			__builtin_trap();
	return 0;
}
