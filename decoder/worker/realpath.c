/*
 * realpath(3) for libdw, which asks of every file where it lies (__libdw_elfpath()), of those in
 * memory, too, though we never want what it would look for beside it. In the sandbox the question
 * alone would be the end. Linked into ptsnap-decode; shared libraries find it there first.
 */
#include <errno.h>
#include <stdlib.h>

char *realpath(const char *restrict path, char *restrict resolved)
{
	(void)path;
	(void)resolved;
	errno = EACCES;
	return NULL;
}
