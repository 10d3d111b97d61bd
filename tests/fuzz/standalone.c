/*
 * The main() of a fuzz target in the ordinary build: replays every file of the directories given as
 * arguments, so that inputs a fuzzer once found stay fixed. Finding no file is a failure. With
 * --all, so is an input that the target turns away (replay.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "tests/fuzz/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((weak)) void fuzz_report(void)
{
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Reads FD into a block of exactly its size, so that the sanitizer detects a read beyond the end.
 */
static int read_whole(int fd, uint8_t **ret, size_t *ret_size)
{
	CLEANUP_FREE uint8_t *data = NULL;
	size_t got = 0;
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) < 0)
		return -errno;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	while (got < (size_t)st.st_size && n > 0) {
		n = read(fd, data + 1 + got, (size_t)st.st_size - got);
		if (n < 0)
			return -errno;
		got += (size_t)n;
	}
	*ret = TAKE_PTR(data);
	*ret_size = got;
	return 0;
}

/* Returns what the target returned, or -errno. */
static int replay_file(int directory, const char *name)
{
	CLEANUP_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	CLEANUP_FREE uint8_t *data = NULL;
	size_t size = 0;
	int r;

	if (fd < 0)
		return -errno;
	r = read_whole(fd, &data, &size);
	if (r == 0)
		r = LLVMFuzzerTestOneInput(data + 1, size);
	return r;
}

/* Returns the number of files, or -errno; adds to *N_REJECTED. */
static int replay_directory(const char *path, int *n_rejected)
{
	CLEANUP(closedirp) DIR *d = opendir(path);
	struct dirent *e;
	int n = 0, r;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		r = replay_file(dirfd(d), e->d_name);
		if (r < 0) {
			fprintf(stderr, "%s/%s: %s\n", path, e->d_name, strerror(-r));
			return r;
		}
		if (r > 0)
			fprintf(stderr, "%s/%s: turned away\n", path, e->d_name);
		*n_rejected += r > 0;
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	int files = 0, rejected = 0, first = 1;

	if (argc > 1 && strcmp(argv[1], "--all") == 0)
		first = 2;
	for (int i = first; i < argc; i++) {
		int n = replay_directory(argv[i], &rejected);

		if (n <= 0) {
			fprintf(stderr, "%s: %s\n", argv[i], n < 0 ? strerror(-n) : "no files");
			return 1;
		}
		files += n;
	}
	printf("%d files replayed, %d turned away\n", files, rejected);
	fuzz_report();
	return files > 0 && (first == 1 || rejected == 0) ? 0 : 1;
}
