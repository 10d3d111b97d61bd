/*
 * A line of /proc/PID/maps into numbers and a path. The path is a stranger's. Called by procscan.c.
 */
#include "capture/proc/procmaps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/proc/number.h"

/* A number followed by STOP; *text moves behind STOP. */
static bool take_number(const char **text, int base, uint64_t max, char stop, uint64_t *ret)
{
	const char *end;

	if (!number_parse(*text, base, max, (const char[]){stop, '\0'}, &end, ret) || *end != stop)
		return false;
	*text = end + 1;
	return true;
}

/* "r-xp " */
static bool take_permissions(const char **text, struct procmaps_entry *ret)
{
	static const char letters[] = "rwx";
	static const uint32_t bits[] = {PROT_READ, PROT_WRITE, PROT_EXEC};
	const char *t = *text;

	for (size_t i = 0; i < 3; i++) {
		if (t[i] == letters[i])
			ret->prot |= bits[i];
		else if (t[i] != '-')
			return false;
	}
	if ((t[3] != 'p' && t[3] != 's') || t[4] != ' ')
		return false;
	ret->flags = t[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	*text = t + 5;
	return true;
}

/* Only the newline is escaped, the backslash is not (seq_file_path with "\n"): any other escape is
 * part of the name. */
static void undo_escapes(char *path)
{
	char *to = path;

	while (*path != '\0') {
		if (strncmp(path, "\\012", 4) == 0) {
			*to++ = '\n';
			path += 4;
		} else {
			*to++ = *path++;
		}
	}
	*to = '\0';
}

int procmaps_parse(char *line, struct procmaps_entry *ret)
{
	const char *text = line, *path;
	uint64_t maj, min;

	*ret = (struct procmaps_entry){0};
	if (!take_number(&text, 16, UINT64_MAX, '-', &ret->begin) ||
	    !take_number(&text, 16, UINT64_MAX, ' ', &ret->end) || ret->begin >= ret->end ||
	    !take_permissions(&text, ret) ||
	    !take_number(&text, 16, UINT64_MAX, ' ', &ret->pgoff) ||
	    !take_number(&text, 16, UINT32_MAX, ':', &maj) ||
	    !take_number(&text, 16, UINT32_MAX, ' ', &min) ||
	    !number_parse(text, 10, UINT64_MAX, " ", &path, &ret->ino))
		return -EBADMSG;
	ret->maj = (uint32_t)maj;
	ret->min = (uint32_t)min;
	path += strspn(path, " ");
	ret->path = path;
	undo_escapes(line + (path - line));
	return 0;
}
