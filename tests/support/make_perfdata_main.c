/*
 * make_perfdata KIND FILE: writes one of several synthetic perf.data files; make_perfdata --program
 * FILE: writes the program that its processes mapped. Without arguments: prints the kinds, one per
 * line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/support/make_perfdata.h"

static int list(void)
{
	const char *name;

	for (size_t i = 0; (name = make_perfdata_name(i)) != NULL; i++)
		puts(name);
	return 0;
}

int main(int argc, char **argv)
{
	const struct make_perfdata *how = argc == 3 ? make_perfdata_kind(argv[1]) : NULL;
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = 0;

	bytes_out_init(&out, 64 << 20);
	if (argc == 1)
		return list();
	if (argc == 3 && strcmp(argv[1], "--program") == 0)
		make_program(&out);
	else if (how)
		r = make_perfdata(how, &out);
	else
		return 2;
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || r < 0 || memfd_write_all(fd, out.data, out.size) < 0) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
