/*
 * A realpath(3) that always fails, for libdw inside the sandbox.
 *
 * libdw asks where each file lies, even a file in memory (__libdw_elfpath()), to look for other
 * files beside it, which are never wanted here. In the sandbox the question alone would kill the
 * process. Shared libraries find this function in the program ptsnap-decode first.
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
