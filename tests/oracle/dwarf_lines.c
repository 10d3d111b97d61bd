/*
 * Prints what sideband/dwarf says of addresses of a file, in the format of `addr2line -f -i -a'.
 * Reads addresses in hexadecimal from standard input, one per line. --sealed: opening or examining
 * any other file ends the program. --measure: prints only the time for opening the file and finding
 * all addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const uint8_t *map(const char *path, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return NULL;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	*ret_size = (size_t)st.st_size;
	return bytes == MAP_FAILED ? NULL : bytes;
}

static bool seal(void)
{
	static const int calls[] = {
		SCMP_SYS(open),	     SCMP_SYS(openat),	 SCMP_SYS(openat2),    SCMP_SYS(creat),
		SCMP_SYS(stat),	     SCMP_SYS(lstat),	 SCMP_SYS(statx),      SCMP_SYS(access),
		SCMP_SYS(faccessat), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(socket),
		SCMP_SYS(connect),   SCMP_SYS(execve),	 SCMP_SYS(getcwd),
	};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	bool ok = ctx && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;

	for (size_t i = 0; ok && i < ARRAY_SIZE(calls); i++)
		ok = seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, calls[i], 0) == 0;
	return ok && seccomp_load(ctx) == 0;
}

static void print(uint64_t address, const struct dwarf_frame *frames, size_t n)
{
	printf("0x%016" PRIx64 "\n", address);
	for (size_t i = 0; i < n; i++)
		printf("%s\n%s:%u:%u\n", frames[i].function ? frames[i].function : "??",
		       frames[i].file ? frames[i].file : "??", frames[i].line, frames[i].column);
	if (n == 0)
		printf("??\n??:0:0\n");
}

int main(int argc, char *argv[])
{
	bool measure = argc == 3 && strcmp(argv[1], "--measure") == 0;
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct elf_bytes bytes = {0};
	size_t found = 0, sum = 0;
	struct dwarf_file *f;
	double begin, opened;
	uint64_t address;
	int r;

	bytes.bytes = argc > 1 ? map(argv[argc - 1], &bytes.size) : NULL;
	if (!bytes.bytes || (argc == 3 && strcmp(argv[1], "--sealed") == 0 && !seal()))
		return 2;
	begin = now();
	r = dwarf_file_open(&bytes, &f);
	opened = now();
	if (r != 0) {
		printf("none: %d\n", r);
		return 1;
	}
	for (; scanf("%" SCNx64, &address) == 1; found++) {
		size_t n = dwarf_file_find(f, address, frames, ARRAY_SIZE(frames));

		sum += n;
		if (!measure)
			print(address, frames, n);
	}
	if (measure)
		printf("open %.6f s, %zu addresses in %.6f s, %zu frames\n", opened - begin, found,
		       now() - opened, sum);
	dwarf_file_free(f);
	return 0;
}
