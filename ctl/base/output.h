/*
 * Where data goes: stdout, or a file that is complete or not there at all (a new file beside it,
 * then rename). What is not a regular file (/dev/null, a FIFO) is written to directly.
 */
#pragma once

#include <stdbool.h>

struct output {
	int fd;		 /* to write to */
	char *path;	 /* owned; NULL: stdout or written directly */
	char *temporary; /* owned; NULL: the file has no name yet */
	bool is_stdout;
};

void output_init(struct output *o);
/* Gives the file up unless committed. */
void output_done(struct output *o);
/* PATH NULL or "-": stdout. A new file has mode 0600: reports tell other users' control flow.
 * 0 or -errno. */
int output_open(struct output *o, const char *path);
/* The file appears under its name. 0 or -errno. */
int output_commit(struct output *o);
/* Whether writing to PATH would replace the regular file INPUT. NULL and "-" replace nothing. */
bool output_replaces(const char *path, const char *input);
/* Whether people will see the bytes. */
bool output_is_terminal(const struct output *o);
