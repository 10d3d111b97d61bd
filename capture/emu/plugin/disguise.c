/*
 * What the emulator's process must not show of itself. Called by plugin.c, in the emulator's
 * process and in its forked children.
 */
#include "capture/emu/plugin/disguise.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

/* linux-user/signal.c, dump_core_and_abort: said of every fatal signal, with no core file too. */
#define CHATTER "qemu: uncaught target signal "

/* The limit as the program was given it: one process, one limit. */
static struct rlimit core_limit;

static ssize_t write_stderr(void *cookie, const char *text, size_t size)
{
	size_t done = 0;

	(void)cookie;
	if (size >= strlen(CHATTER) && memcmp(text, CHATTER, strlen(CHATTER)) == 0)
		return (ssize_t)size;
	while (done < size) {
		ssize_t n = write(STDERR_FILENO, text + done, size - done);

		if (n < 0 && errno != EINTR)
			return 0;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)size;
}

/* The emulator prints through the C library's stderr; the program writes to the descriptor. */
static void filter_stderr(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stderr});

	if (f == NULL)
		return;
	setvbuf(f, NULL, _IOLBF, 0);
	stderr = f;
}

void disguise_begin(const char *comm)
{
	prctl(PR_SET_NAME, comm);
	filter_stderr();
	getrlimit(RLIMIT_CORE, &core_limit);
	disguise_native(false);
}

/* The emulator's core file is not one of the program's, so there is none. */
void disguise_native(bool native)
{
	struct rlimit limit = core_limit;

	if (!native)
		limit.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &limit);
}
