/*
 * How this emulator was started. Called by plugin.c when it is loaded. The command line is the one
 * that emu_qemu.c or follow.c composed: QEMU leaves it as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/emu/machine/emustart.h"
#include "capture/emu/plugin/follow.h"
#include "proto/base.h"

/* What precedes the program's arguments: an option and argv[0] of at most 128 KiB each, paths. */
#define LINE_MAX_SIZE (512u * 1024)

static int read_line(char *to, size_t size, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 1;

	*ret_size = 0;
	while (n > 0 && *ret_size < size) {
		n = read(fd, to + *ret_size, size - *ret_size);
		*ret_size += n > 0 ? (size_t)n : 0;
	}
	return n < 0 ? -errno : 0;
}

/* What inherited the ring began where its emulator could be started. */
static void note_root(struct follow_self *self)
{
	struct stat root;

	if (strncmp(self->ring, "/proc/self/", 11) != 0 || stat("/", &root) < 0)
		return;
	self->root[0] = root.st_dev;
	self->root[1] = root.st_ino;
}

static void follow_self_done(struct follow_self *self)
{
	free((char *)self->qemu);
	free((char *)self->plugin);
	free((char *)self->ring);
	free((char *)self->truth);
	free((char *)self->exec_path);
	*self = (struct follow_self){0};
}

int follow_self_read(struct follow_self *ret)
{
	CLEANUP_FREE char *text = malloc(LINE_MAX_SIZE);
	struct emustart_line line;
	char qemu[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", qemu, sizeof(qemu) - 1);
	size_t size;
	int r;

	*ret = (struct follow_self){0};
	if (text == NULL || n < 0)
		return n < 0 ? -errno : -ENOMEM;
	qemu[n] = '\0';
	r = read_line(text, LINE_MAX_SIZE, &size);
	if (r == 0)
		r = emustart_read(text, size, &line);
	if (r < 0)
		return r;
	*ret = (struct follow_self){.qemu = strdup(qemu),
				    .plugin = line.plugin,
				    .ring = line.ring,
				    .truth = line.truth,
				    .exec_path = line.program,
				    .repeatable = line.repeatable};
	note_root(ret);
	if (ret->qemu != NULL)
		return 0;
	follow_self_done(ret);
	return -ENOMEM;
}
