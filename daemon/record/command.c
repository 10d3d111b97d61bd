/*
 * Starts, watches and ends the traced command.
 */
#include "daemon/record/command.h"

#include <assert.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "capture/emu/machine/emuring.h"
#include "proto/base.h"
#include "proto/channel.h"

/* The exit status of an attached command whose emulator is gone. */
#define EXIT_STATUS_LOST 255

extern char **environ;

/* Whether PATH can be executed: 0, -ENOENT or -EACCES. */
static int command_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

/* Looks for NAME in $PATH; results of command_check(). */
static int command_search(const char *name)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];
	int result = -ENOENT;

	if (!dirs)
		dirs = "/bin:/usr/bin"; /* confstr(_CS_PATH), as execvp(3) does */
	for (;; dirs++) {
		int n = (int)strcspn(dirs, ":");
		int r;

		snprintf(path, sizeof(path), "%.*s/%s", n ? n : 1, n ? dirs : ".", name);
		r = command_check(path);
		if (r == 0)
			return 0;
		if (r == -EACCES)
			result = r;
		dirs += n;
		if (!*dirs)
			return result;
	}
}

int command_find(const char *name, char *why, size_t why_size)
{
	int r = -ENOENT;

	if (*name)
		r = strchr(name, '/') ? command_check(name) : command_search(name);
	if (r == -ENOENT)
		snprintf(why, why_size, "%s: command not found", name);
	else if (r < 0)
		snprintf(why, why_size, "%s: not executable", name);
	return r;
}

void command_adopt(struct command *c, char *const *argv, struct source *emulated)
{
	*c = (struct command){
		.argv = argv,
		.emulated = emulated,
		.pid = source_emu_pid(emulated),
		.pidfd = source_emu_pidfd(emulated),
		.running = true,
	};
}

int command_spawn(struct command *c, char *const *argv, const sigset_t *mask)
{
	posix_spawnattr_t attr;
	int r;

	*c = (struct command){.argv = argv, .pidfd = -EBADF};
	r = posix_spawnattr_init(&attr);
	if (r)
		return -r;
	posix_spawnattr_setsigmask(&attr, mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawnp(&c->pid, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (r) {
		c->pid = 0;
		return -r;
	}
	c->running = true;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return c->pidfd < 0 ? -errno : 0;
}

void command_attach(struct command *c, struct source *emulated)
{
	*c = (struct command){
		.argv = source_emu_argv(emulated),
		.emulated = emulated,
		.attached = true,
		.pid = source_emu_pid(emulated),
		.pidfd = source_emu_channel(emulated),
		.running = true,
	};
}

/* Reads how an attached command ended from the process that keeps the machine. */
static bool command_hear(struct command *c)
{
	struct emuoffer_end end;
	size_t size, n_fds;
	int r = channel_receive(c->pidfd, &end, sizeof(end), &size, NULL, 0, &n_fds);

	if (r == -EAGAIN)
		return false;
	c->running = false;
	c->lost = r != 0 || emuoffer_read_end(&end, size, &end) < 0;
	c->killed_by = c->lost ? 0 : end.killed_by;
	c->exit_status = c->lost ? EXIT_STATUS_LOST : end.exit_status;
	source_emu_reaped(c->emulated);
	return true;
}

bool command_reap(struct command *c)
{
	siginfo_t info = {0};

	if (!c->running)
		return true;
	if (c->attached)
		return command_hear(c);
	if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return false;
	c->running = false;
	c->killed_by = info.si_code == CLD_EXITED ? 0 : info.si_status;
	c->exit_status = c->killed_by ? 128 + c->killed_by : info.si_status;
	if (c->emulated)
		source_emu_reaped(c->emulated);
	return true;
}

void command_tell_end(const struct command *c, char *ret, size_t size)
{
	assert(!c->running);
	if (c->lost)
		snprintf(ret, size, "the emulator has gone");
	else if (c->killed_by)
		snprintf(ret, size, "the command was killed by signal %d (%s)", c->killed_by,
			 strsignal(c->killed_by));
	else
		snprintf(ret, size, "the command ended with status %d", c->exit_status);
}

void command_kill(struct command *c, int signal)
{
	if (!c->running)
		return;
	if (c->attached)
		c->running = false;
	else if (c->emulated)
		source_emu_kill(c->emulated, signal);
	else
		kill(c->pid, signal);
}

void command_done(struct command *c)
{
	if (!c->emulated)
		c->pidfd = close_fd(c->pidfd);
	c->pid = 0;
}
