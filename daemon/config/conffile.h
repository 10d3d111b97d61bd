/*
 * Configuration files as systemd reads them (systemd.syntax(7), systemd-system.conf(5)): sections
 * of KEY=VALUE, the vendor's file, the administrator's, and drop-ins.
 *
 * Nothing here is fatal: what is wrong is told, with file and line, and left out. The caller's
 * handler knows what keys mean.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Limits; what is beyond them is told and left out. A line includes its continuations. */
#define CONFFILE_MAX_FILE     (1u << 20)
#define CONFFILE_MAX_LINE     8192u
#define CONFFILE_MAX_SECTION  64u
#define CONFFILE_MAX_DROP_INS 256u

/* KEY=VALUE. Both are UTF-8, without blanks at the ends and without control characters but tabs.
 * Valid during the call. */
struct conffile_setting {
	const char *section, *key, *value;
	const char *file;
	unsigned line; /* the first one */
};

struct conffile_warning {
	const char *file;
	unsigned line;	  /* 0: the file as a whole */
	const char *text; /* one line, without file and line; may quote the file */
	bool lost;	  /* something that was meant has no effect; else its name is unknown */
};

struct conffile_handler {
	void *userdata;
	/* A file was opened; what follows is in that file. May be NULL. */
	void (*file)(void *userdata, const char *file);
	/* Whether settings of section NAME are wanted. */
	bool (*section)(void *userdata, const char *name);
	void (*setting)(void *userdata, const struct conffile_setting *setting);
	void (*warning)(void *userdata, const struct conffile_warning *warning);
};

/* Parses SIZE bytes at TEXT, which came from FILE:
 * - Blank lines, and lines whose first character behind blanks is '#' or ';', are ignored.
 * - A line that ends in an odd number of backslashes continues in the next line that is no comment;
 *   the last backslash counts as a blank.
 * - CR LF ends a line as LF does. UTF-8's byte order mark may come before the first line.
 * - Sections and keys that begin with "X-" belong to other programs and are not told. */
void conffile_parse(const char *file, const void *text, size_t size,
		    const struct conffile_handler *handler);

/* Reads the file PATH and waits for nobody: anything but a regular file (a FIFO, a device, a
 * directory) is a warning, except /dev/null, which is an empty file. 0, also if PATH could not be
 * read, which is a warning; -ENOENT: there is no such file, and no warning. */
int conffile_read(const char *path, const struct conffile_handler *handler);

/* Reads NAME in the first of DIRECTORIES (NULL-terminated, the strongest first) that has it, then
 * the drop-ins NAME.d/ *.conf of all directories, in the order of their names. If several
 * directories have a drop-in of the same name, only that of the strongest is read. A setting that
 * comes later is stronger. */
void conffile_read_all(const char *const *directories, const char *name,
		       const struct conffile_handler *handler);
/* Reads only drop-ins: NAME/ *.conf of all DIRECTORIES; with NAME "", *.conf of them. */
void conffile_read_drop_ins(const char *const *directories, const char *name,
			    const struct conffile_handler *handler);
