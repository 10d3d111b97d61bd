/*
 * Prints the functions that the decoder knows of ELF files, a line each: address, bytes, and "name"
 * or "bounds", for the bounds of a function without a name. In front of each file's functions comes
 * "file PATH", and a file that is not read has none.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"

static void print_functions(const struct elf_file *f)
{
	size_t n;
	const struct elf_symbol *symbols = elf_file_symbols(f, &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t address;

		if (elf_file_address(f, symbols[i].offset, &address))
			printf("%" PRIx64 " %" PRIu64 " %s\n", address, symbols[i].size,
			       symbols[i].name ? "name" : "bounds");
	}
}

static void read_file(const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *f = NULL;
	struct stat st;
	void *bytes;

	printf("file %s\n", path);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return;
	if (elf_file_new(bytes, (size_t)st.st_size, &f) == 0)
		print_functions(f);
	elf_file_free(f);
	munmap(bytes, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		read_file(argv[i]);
	return 0;
}
