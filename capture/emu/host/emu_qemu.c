/*
 * The emulator: found, checked, started.
 *
 * QEMU 7.x and 8.x load plugins of API version 1; 9.0 and later refuse them ("unsupported API
 * version"), and Debian 13's QEMU is built without plugins. Both are recognised before COMMAND
 * starts, so that the user reads one line instead of the emulator's message.
 */
#include "capture/emu/host/emu_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/emu/host/emu_command_private.h"
#include "capture/emu/machine/emustart.h"
#include "proto/base.h"

#define ADVICE "install qemu-user (7.2) of Debian 12, or name a QEMU with --emu-qemu"
/* --help is about 4 KiB. */
#define OUTPUT_MAX (64u * 1024)

extern char **environ;

static int read_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n;

	for (;;) {
		n = read(fd, text + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	text[used] = '\0';
	return n < 0 ? -errno : 0;
}

/* Runs "QEMU OPTION" and copies its output to TEXT. 0 or -errno. */
static int ask(const char *qemu, const char *option, char *text, size_t size)
{
	char *argv[] = {(char *)qemu, (char *)option, NULL};
	posix_spawn_file_actions_t actions;
	char **env = emustart_envp(environ);
	int pipe_fds[2], r;
	pid_t pid;

	text[0] = '\0';
	if (!env)
		return -ENOMEM;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		r = -errno;
		emustart_free(env);
		return r;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2);
	r = -posix_spawn(&pid, qemu, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	emustart_free(env);
	close(pipe_fds[1]);
	if (r == 0) {
		r = read_all(pipe_fds[0], text, size);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(pipe_fds[0]);
	return r;
}

/* Searches NAME in $PATH. */
static int search(const char *name, char *ret_path, size_t size)
{
	const char *dirs = getenv("PATH");

	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;; dirs++) {
		int n = (int)strcspn(dirs, ":");

		snprintf(ret_path, size, "%.*s/%s", n > 0 ? n : 1, n > 0 ? dirs : ".", name);
		if (access(ret_path, X_OK) == 0)
			return 0;
		dirs += n;
		if (*dirs == '\0')
			return -ENOENT;
	}
}

static int check_version(const char *qemu, const char *text, char *why, size_t why_size)
{
	const char *at = strstr(text, "version ");
	unsigned int major, minor;

	if (strncmp(text, "qemu-x86_64", 11) != 0 || !at ||
	    sscanf(at, "version %u.%u", &major, &minor) != 2) {
		snprintf(why, why_size, "%s: not a qemu-x86_64; %s", qemu, ADVICE);
		return -EOPNOTSUPP;
	}
	if (major >= 7 && major <= 8)
		return 0;
	snprintf(why, why_size,
		 "%s: QEMU %u.%u is too %s for the plugin, 7.0 to 8.x are supported; %s", qemu,
		 major, minor, major < 7 ? "old" : "new", ADVICE);
	return -EOPNOTSUPP;
}

int emu_qemu_find(const char *path, char **ret_path, char *why, size_t why_size)
{
	char found[PATH_MAX];
	CLEANUP_FREE char *text = malloc(OUTPUT_MAX);
	int r;

	if (!text)
		return -ENOMEM;
	/* Debian 12 also has qemu-x86_64-static, which loads no plugins. */
	if (!path)
		path = "qemu-x86_64";
	if (!strchr(path, '/')) {
		r = search(path, found, sizeof(found));
	} else {
		snprintf(found, sizeof(found), "%s", path);
		r = access(found, X_OK) < 0 ? -errno : 0;
	}
	if (r < 0) {
		snprintf(why, why_size, "%s: %s; %s", path,
			 r == -ENOENT ? "not found" : strerror(-r), ADVICE);
		return r;
	}
	r = ask(found, "--version", text, OUTPUT_MAX);
	if (r < 0) {
		snprintf(why, why_size, "%s: %s; %s", found, strerror(-r), ADVICE);
		return r;
	}
	r = check_version(found, text, why, why_size);
	if (r < 0)
		return r;
	if (ask(found, "--help", text, OUTPUT_MAX) < 0 || strstr(text, "-plugin") == NULL) {
		snprintf(why, why_size, "%s: built without plugins; %s", found, ADVICE);
		return -EOPNOTSUPP;
	}
	*ret_path = strdup(found);
	return !*ret_path ? -ENOMEM : 0;
}

int emu_qemu_start(const struct emu_start *s, pid_t *ret_pid)
{
	const struct emustart start = {
		.qemu = s->qemu,
		.plugin = s->plugin,
		.ring = s->ring,
		.truth = s->truth,
		.repeatable = s->repeatable != 0,
		.comm = s->command->comm,
		.program = s->command->program,
		.argv = s->command->argv,
	};
	char **argv = emustart_argv(&start);
	char **env = emustart_envp(environ);
	int r = -ENOMEM;

	if (argv && env)
		r = -posix_spawn(ret_pid, s->qemu, NULL, NULL, argv, env);
	emustart_free(env);
	emustart_free(argv);
	return r;
}
