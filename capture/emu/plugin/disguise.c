/*
 * What the program must not see of the emulator.
 */
#include "capture/emu/plugin/disguise.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "capture/emu/machine/emustart.h"
#include "capture/emu/plugin/guest.h"

/* linux-user/signal.c, dump_core_and_abort, prints this for every fatal signal, even without a core
 * file. */
#define CHATTER "qemu: uncaught target signal "

/* The limit that the program was given. A process has one limit. */
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

/* Removes the prefix that emustart_envp() put before some variables. Each string stays where it is;
 * the guest's pointer moves behind the prefix. Layout of the stack: System V ABI for x86-64,
 * "Initial Stack and Register State": argc, argv, NULL, envp, NULL. */
static void restore_environment(uint64_t rsp)
{
	char begin[EMUSTART_PREFIX_SIZE];
	uint64_t argc, text;

	if (!guest_read(rsp, &argc, sizeof(argc)))
		return;
	for (uint64_t slot = rsp + 8 * (argc + 2);
	     guest_read(slot, &text, sizeof(text)) && text != 0; slot += 8) {
		if (!guest_read(text, begin, sizeof(begin)) || !emustart_is_prefix(begin))
			continue;
		text += EMUSTART_PREFIX_SIZE;
		guest_write(slot, &text, sizeof(text));
	}
}

void disguise_begin(const char *comm, uint64_t rsp)
{
	FILE *f;
	int fd;

	/* A program without a path is executed by a descriptor, which only the emulator needs. */
	if (sscanf(guest_program(), "/proc/self/fd/%d", &fd) == 1)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	restore_environment(rsp);
	prctl(PR_SET_NAME, comm);
	/* The emulator prints through the C library's stderr; the program writes to descriptor 2.
	 */
	f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stderr});
	if (f) {
		setvbuf(f, NULL, _IOLBF, 0);
		stderr = f;
	}
	getrlimit(RLIMIT_CORE, &core_limit);
	disguise_native(false);
}

void disguise_native(bool native)
{
	struct rlimit limit = core_limit;

	/* A core file of the emulator would not be one of the program. */
	if (!native)
		limit.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &limit);
}
