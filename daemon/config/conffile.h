/*
 * Configuration files as systemd reads them (systemd.syntax(7), systemd-system.conf(5)): sections
 * of KEY=VALUE, a vendor's file, the administrator's, and drop-ins. Nothing here is fatal: what is
 * wrong is told, with file and line, and left out. What keys mean is the handler's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A line is what its continuations make together. What is larger is told and left out. */
#define CONFFILE_MAX_FILE     (1u << 20)
#define CONFFILE_MAX_LINE     8192u
#define CONFFILE_MAX_SECTION  64u
#define CONFFILE_MAX_DROP_INS 256u

/* KEY=VALUE. Both are stripped of blanks, UTF-8, and hold no control character but tabs; they live
 * as long as the call. */
struct conffile_setting {
	const char *section, *key, *value;
	const char *file;
	unsigned line; /* where it begins */
};

struct conffile_warning {
	const char *file;
	unsigned line;	  /* 0: the file as a whole */
	const char *text; /* one line, without file and line; may quote the file */
	bool lost;	  /* something that was meant has no effect; else: nobody knows its name */
};

struct conffile_handler {
	void *userdata;
	/* A file that could be opened, before anything of it is told. NULL: not interested. */
	void (*file)(void *userdata, const char *file);
	/* Whether settings of section NAME are wanted. */
	bool (*section)(void *userdata, const char *name);
	void (*setting)(void *userdata, const struct conffile_setting *setting);
	void (*warning)(void *userdata, const struct conffile_warning *warning);
};

/* Reads SIZE bytes at TEXT, which came from FILE:
 * - blank lines, and lines whose first character behind blanks is '#' or ';', mean nothing;
 * - a line that ends in an odd number of backslashes goes on in the next line that is no comment;
 *   the last backslash counts as a blank;
 * - CR LF ends a line as LF does; UTF-8's byte order mark may stand before the first line;
 * - sections and keys that begin with "X-" are somebody else's and not told. */
void conffile_parse(const char *file, const void *text, size_t size,
		    const struct conffile_handler *handler);

/* Reads the file PATH. Waits for nobody: what is not a regular file (a FIFO, a device, a directory)
 * is told as a warning, but for /dev/null, which is an empty file. 0, also when PATH could not be
 * read and that was told; -ENOENT: there is no such file, and nothing was told. */
int conffile_read(const char *path, const struct conffile_handler *handler);

/* Reads DIR/NAME of the first of DIRECTORIES (NULL-terminated, the strongest first) that has it,
 * then DIR/NAME.d/ *.conf of all of them in the order of their names; of those with the same name
 * only the one in the strongest directory. So what is told later is stronger. */
void conffile_read_all(const char *const *directories, const char *name,
		       const struct conffile_handler *handler);
/* Only the second half of that: DIR/NAME/ *.conf of all DIRECTORIES; NAME "": DIR/ *.conf. */
void conffile_read_drop_ins(const char *const *directories, const char *name,
			    const struct conffile_handler *handler);
