/*
 * Files of a verb: output files, small input files, and the programs that ptsnapctl starts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where a verb writes data: stdout, or a file that is complete or not there at all. A regular file
 * is written under another name and then renamed. Other files (/dev/null, a FIFO) of root or of our
 * own are written to directly.
 */
struct output {
	int fd;		 /* to write to */
	char *path;	 /* owned; NULL: stdout, or a file that is written to directly */
	char *temporary; /* owned; NULL: the file has no name yet */
	bool is_stdout;
};

void output_init(struct output *o);
/* Closes the file, and removes it unless output_commit() succeeded. */
void output_done(struct output *o);
/* PATH NULL or "-": stdout. The file is new and has mode 0600, as reports tell the control flow of
 * other users' processes. It gets the mode of the regular file that it replaces if that file is our
 * own and has no other name. Whatever else a stranger put at PATH (a file, a link, a FIFO) is
 * replaced, never followed or written to; links and special files of root and of ourselves are. 0;
 * -EAGAIN: a special file was exchanged meanwhile; or -errno. */
int output_open(struct output *o, const char *path);
/* Closes the file and gives it its name. 0 or -errno. */
int output_commit(struct output *o);
/* Whether writing to PATH would replace the regular file INPUT. Both may be NULL. */
bool output_replaces(const char *path, const char *input);
bool output_is_terminal(const struct output *o);

/* Reads the whole regular file FD and leaves the file's position alone. *ret is the caller's and
 * has room for one byte more. 0; -EBADMSG: not a regular file; -EFBIG: more than MAX bytes; or
 * -errno. */
int file_read_whole(int fd, uint64_t max, char **ret, size_t *ret_size);

/* The path of ptsnap-decode: OPTION (--worker=) or $PTSNAP_DECODE if given, else the installed
 * program, else the program of the build tree that we run from. *ret is the caller's; the file need
 * not exist. 0 or -ENOMEM. */
int worker_find(const char *option, char **ret);
/* The memory that a decoder may take where nothing else is asked for: half of this host's, and no
 * less than WORKER_MEMORY_MIN. */
#define WORKER_MEMORY_MIN (UINT64_C(64) << 20)
uint64_t worker_memory(void);
/* The path of another program: OPTION if given, else INSTALLED, else BUILD_TREE, a path from the
 * directory of our own program. *ret is the caller's; the file need not exist. 0 or -ENOMEM. */
int program_find(const char *option, const char *installed, const char *build_tree, char **ret);
