/*
 * Configuration files: which there are, and the settings in them, a line at a time.
 *
 * The rules are those of systemd's parser, so that nobody has to learn others. Where systemd gives
 * a whole file up (a broken section header, a line that is too long), the least that is safe is
 * left out. Nothing here waits for a writer or a device, as a reload runs in the daemon's loop.
 */
#include "daemon/config/conffile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "proto/base.h"

#define BLANKS	 " \t\n\r"
#define COMMENTS "#;"
#define BOM	 "\xef\xbb\xbf"
#define SUFFIX	 ".conf"

struct parser {
	const struct conffile_handler *handler;
	const char *file;
	unsigned line; /* in the file */
	char section[CONFFILE_MAX_SECTION];
	enum { SECTION_NONE, SECTION_WANTED, SECTION_LEFT_OUT } state;
	/* The line that is being read, with its continuations so far. */
	char text[CONFFILE_MAX_LINE + 1];
	size_t used;
	unsigned first; /* line where it began; 0: none is being read */
	bool overlong, no_text;
};

static void parser_warn(const struct parser *p, bool lost, const char *text)
{
	const struct conffile_warning warning = {p->file, p->first, text, lost};

	p->handler->warning(p->handler->userdata, &warning);
}

/* The bytes of the UTF-8 character at S, of LEFT bytes; 0: it is none (Unicode, table 3-7). */
static size_t character_length(const uint8_t *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (n == 0 || n > left || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Whether S is UTF-8 without control characters but tabs. */
static bool is_text(const char *s, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		uint8_t c = (uint8_t)s[i];

		n = character_length((const uint8_t *)s + i, size - i);
		if (n == 0 || (c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static void strip_end(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && strchr(BLANKS, s[n - 1]))
		s[--n] = '\0';
}

static void parser_section(struct parser *p, char *text)
{
	size_t n = strlen(text);
	char say[CONFFILE_MAX_SECTION + 64];

	p->state = SECTION_LEFT_OUT;
	if (n < 3 || text[n - 1] != ']' || n - 2 >= sizeof(p->section)) {
		parser_warn(p, true, "section header is not valid, the section is ignored");
		return;
	}
	text[n - 1] = '\0';
	memcpy(p->section, text + 1, n - 1);
	if (strncmp(p->section, "X-", 2) == 0)
		return;
	if (p->handler->section(p->handler->userdata, p->section)) {
		p->state = SECTION_WANTED;
		return;
	}
	snprintf(say, sizeof(say), "unknown section [%s], ignored", p->section);
	parser_warn(p, false, say);
}

static void parser_assignment(struct parser *p, char *text)
{
	char *value = strchr(text, '=');

	if (p->state == SECTION_LEFT_OUT)
		return;
	if (!value || value == text) {
		parser_warn(p, true, "neither a [section] nor KEY=VALUE, ignored");
		return;
	}
	if (p->state == SECTION_NONE) {
		parser_warn(p, true, "a setting before the first [section], ignored");
		return;
	}
	*value++ = '\0';
	strip_end(text);
	if (strncmp(text, "X-", 2) == 0)
		return;
	const struct conffile_setting setting = {
		p->section, text, value + strspn(value, BLANKS), p->file, p->first,
	};
	p->handler->setting(p->handler->userdata, &setting);
}

/* Handles a complete line. */
static void parser_finish(struct parser *p)
{
	char *text = p->text + strspn(p->text, BLANKS);

	strip_end(text);
	if (p->overlong)
		parser_warn(p, true, "line is too long, ignored");
	else if (p->no_text)
		parser_warn(p, true, "line holds bytes that are no text, ignored");
	else if (*text == '[')
		parser_section(p, text);
	else if (*text)
		parser_assignment(p, text);
	/* After a broken section header, it is unknown where the settings that follow belong. */
	if ((p->overlong || p->no_text) && *text == '[')
		p->state = SECTION_LEFT_OUT;
	p->used = 0;
	p->first = 0;
	p->overlong = p->no_text = false;
}

static bool ends_in_backslash(const char *s, size_t n)
{
	size_t backslashes = 0;

	while (backslashes < n && s[n - 1 - backslashes] == '\\')
		backslashes++;
	return backslashes % 2 == 1;
}

static bool is_comment(const char *s, size_t n)
{
	while (n > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	return n > 0 && memchr(COMMENTS, *s, strlen(COMMENTS));
}

/* Adds a line of N bytes at S, without its end. */
static void parser_line(struct parser *p, const char *s, size_t n)
{
	bool goes_on = ends_in_backslash(s, n);
	size_t room = CONFFILE_MAX_LINE - p->used;

	p->line++;
	if (is_comment(s, n))
		return;
	if (p->first == 0)
		p->first = p->line;
	p->no_text |= !is_text(s, n);
	p->overlong |= n > room;
	memcpy(p->text + p->used, s, MIN_OF(n, room));
	p->used += MIN_OF(n, room);
	if (goes_on && p->used > 0 && n <= room)
		p->text[p->used - 1] = ' ';
	p->text[p->used] = '\0';
	if (!goes_on)
		parser_finish(p);
}

void conffile_parse(const char *file, const void *text, size_t size,
		    const struct conffile_handler *handler)
{
	struct parser p = {.handler = handler, .file = file};
	const char *at = text, *end = at + size;

	if (size >= strlen(BOM) && memcmp(at, BOM, strlen(BOM)) == 0)
		at += strlen(BOM);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((newline ? newline : end) - at);
		bool cr = n > 0 && at[n - 1] == '\r';

		parser_line(&p, at, n - cr);
		at += n + (newline != NULL);
	}
	if (p.first)
		parser_finish(&p);
}

/* --- Files --- */

struct drop_in {
	char *name;	  /* owned */
	size_t directory; /* index */
};

struct drop_ins {
	struct drop_in all[CONFFILE_MAX_DROP_INS];
	size_t n;
};

static void find_warn(const struct conffile_handler *h, const char *path, const char *text,
		      const char *why)
{
	char say[256];
	const struct conffile_warning warning = {path, 0, say, true};

	snprintf(say, sizeof(say), "%s%s", text, why);
	h->warning(h->userdata, &warning);
}

static bool is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* Reads at most SIZE bytes. Returns their number or -errno. */
static ssize_t read_bytes(int fd, char *bytes, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = read(fd, bytes + used, size - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

int conffile_read(const char *path, const struct conffile_handler *h)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	CLEANUP_FREE char *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 && is_missing(errno))
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0) {
		find_warn(h, path, "cannot be read, ignored: ", strerror(errno));
		return 0;
	}
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) /* /dev/null: an empty file */
		return 0;
	if (!S_ISREG(st.st_mode)) {
		find_warn(h, path, "is not a regular file, ignored", "");
		return 0;
	}
	if (h->file)
		h->file(h->userdata, path);
	bytes = malloc(CONFFILE_MAX_FILE + 1);
	n = bytes ? read_bytes(fd, bytes, CONFFILE_MAX_FILE + 1) : -ENOMEM;
	if (n < 0)
		find_warn(h, path, "cannot be read, ignored: ", strerror((int)-n));
	else if (n > (ssize_t)CONFFILE_MAX_FILE)
		find_warn(h, path, "is larger than 1 MiB, ignored", "");
	else
		conffile_parse(path, bytes, (size_t)n, h);
	return 0;
}

static void drop_ins_scan(struct drop_ins *d, const char *path, size_t directory,
			  const struct conffile_handler *h)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool full = false;

	if (!dir) {
		if (!is_missing(errno))
			find_warn(h, path, "cannot be read, ignored: ", strerror(errno));
		return;
	}
	while ((e = readdir(dir))) {
		size_t i = 0, size = strlen(e->d_name), end = strlen(SUFFIX);
		char *name;

		/* Hidden files are copies of editors or package managers, or half written. */
		if (e->d_name[0] == '.' || size <= end ||
		    strcmp(e->d_name + size - end, SUFFIX) != 0)
			continue;
		/* A stronger directory may have one of that name. */
		while (i < d->n && strcmp(d->all[i].name, e->d_name) != 0)
			i++;
		if (i < d->n)
			continue;
		name = d->n < CONFFILE_MAX_DROP_INS ? strdup(e->d_name) : NULL;
		if (name)
			d->all[d->n++] = (struct drop_in){name, directory};
		else
			full = true;
	}
	closedir(dir);
	if (full)
		find_warn(h, path, "too many drop-ins, not all are read", "");
}

static int drop_in_compare(const void *a, const void *b)
{
	return strcmp(((const struct drop_in *)a)->name, ((const struct drop_in *)b)->name);
}

/* Joins DIR and NAME ("": just DIR). False: too long for a path. */
static bool drop_ins_path(const char *dir, const char *name, char ret[PATH_MAX])
{
	return snprintf(ret, PATH_MAX, "%s%s%s", dir, *name ? "/" : "", name) < PATH_MAX;
}

static void drop_ins_read(struct drop_ins *d, const char *const *directories, const char *name,
			  const struct conffile_handler *h)
{
	char path[PATH_MAX], dir[PATH_MAX];

	qsort(d->all, d->n, sizeof(d->all[0]), drop_in_compare);
	for (size_t i = 0; i < d->n; i++) {
		bool fits = drop_ins_path(directories[d->all[i].directory], name, dir) &&
			    snprintf(path, sizeof(path), "%s/%s", dir, d->all[i].name) <
				    (int)sizeof(path);

		if (fits && conffile_read(path, h) == -ENOENT)
			find_warn(h, path, "leads to a file that is not there, ignored", "");
		free(d->all[i].name);
	}
}

void conffile_read_drop_ins(const char *const *directories, const char *name,
			    const struct conffile_handler *h)
{
	struct drop_ins drop_ins = {.n = 0};
	char path[PATH_MAX];

	for (size_t i = 0; directories[i]; i++)
		if (drop_ins_path(directories[i], name, path))
			drop_ins_scan(&drop_ins, path, i, h);
	drop_ins_read(&drop_ins, directories, name, h);
}

void conffile_read_all(const char *const *directories, const char *name,
		       const struct conffile_handler *h)
{
	char path[PATH_MAX], drop_ins[NAME_MAX + 1];
	bool found = false;

	for (size_t i = 0; directories[i] && !found; i++)
		if (snprintf(path, sizeof(path), "%s/%s", directories[i], name) < (int)sizeof(path))
			found = conffile_read(path, h) == 0;
	snprintf(drop_ins, sizeof(drop_ins), "%s.d", name);
	conffile_read_drop_ins(directories, drop_ins, h);
}
