/*
 * perfdata_bundle PERF.DATA SYSROOT TO: writes the bundle that `ptsnapctl decode --sysroot=SYSROOT
 * PERF.DATA' decodes to the file TO, for the programs that compare bundles.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/perfdata/import_perfdata.h"

static int copy(int from, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	off_t at = 0;
	struct stat st;

	if (to < 0 || fstat(from, &st) < 0) {
		perror(path);
		return 1;
	}
	while (at < st.st_size) {
		if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0) {
			perror(path);
			return 1;
		}
	}
	return close(to) < 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, bundle;

	if (fd < 0) {
		fprintf(stderr, "usage: perfdata_bundle PERF.DATA SYSROOT TO\n");
		return 2;
	}
	if (import_perfdata(fd, argv[1], argv[2], false, &bundle) != 0)
		return 1;
	return copy(bundle, argv[3]);
}
