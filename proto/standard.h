/*
 * The standard files that a program begins with.
 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* Opens /dev/null in place of each standard file that is closed, so that a file that is opened
 * later does not get its number, and with it our messages. Standard output then cannot be written.
 * False: there is no /dev/null. */
static inline bool standard_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return false;
	return true;
}
