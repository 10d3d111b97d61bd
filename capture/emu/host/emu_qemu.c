/*
 * Finds COMMAND and the emulator, and starts COMMAND under the emulator.
 *
 * The emulator needs an ELF file by a path that stays valid when the program changes its directory;
 * capture/emu/machine/execplan.h does what the kernel does with a path.
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

#include "capture/emu/machine/emustart.h"
#include "capture/emu/machine/execplan.h"
#include "proto/base.h"

#define ADVICE "install qemu-user (7.2) of Debian 12, or name a QEMU with --emu-qemu"
/* --help is about 4 KiB. */
#define OUTPUT_MAX (64u * 1024)

extern char **environ;

struct command_search {
	char *const *argv;
	char path[PATH_MAX]; /* the last path that was tried */
	struct execplan plan;
	char reason[256]; /* of execplan_make() */
};

static int try_path(struct command_search *s)
{
	const struct execplan_request request = {
		.dirfd = AT_FDCWD,
		.path = s->path,
		.argv = s->argv,
	};

	return execplan_make(&request, &s->plan, s->reason, sizeof(s->reason));
}

/* Searches the directories of PATH. */
static int search_command(struct command_search *s)
{
	const char *dirs = getenv("PATH");
	int result = -ENOENT;

	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;; dirs++) {
		int n = (int)strcspn(dirs, ":");
		int r = snprintf(s->path, sizeof(s->path), "%.*s/%s", n > 0 ? n : 1,
				 n > 0 ? dirs : ".", s->argv[0]);

		r = r < 0 || (size_t)r >= sizeof(s->path) ? -ENOENT : try_path(s);
		/* glibc's execvp continues after these errors, and remembers EACCES. */
		if (r == -EACCES)
			result = r;
		else if (r != -ENOENT && r != -ENOTDIR && r != -ESTALE && r != -ENODEV &&
			 r != -ETIMEDOUT)
			return r;
		dirs += n;
		if (*dirs == '\0')
			return result;
	}
}

/* Writes the line for the user. */
static void explain(int error, const struct command_search *s, char *why, size_t why_size)
{
	const char *name = s->argv[0];

	switch (error) {
	case -ENOENT:
		if (s->reason[0] != '\0')
			snprintf(why, why_size, "%s: its interpreter was not found: %s", name,
				 s->reason);
		else
			snprintf(why, why_size, "%s: command not found", name);
		break;
	case -EACCES: snprintf(why, why_size, "%s: not executable", name); break;
	case -ENOEXEC:
		snprintf(why, why_size,
			 "%s: neither an x86-64 ELF program nor a script (\"#!\"): the emulated "
			 "source cannot run it",
			 s->path);
		break;
	case -EOPNOTSUPP: snprintf(why, why_size, "%s: %s", s->path, s->reason); break;
	default: snprintf(why, why_size, "%s: %s", name, strerror(-error)); break;
	}
}

/* Checks a file that execve(2) would run. R: result of the search. */
static int check_emulator(struct command_search *s, int r)
{
	if (r == EXECPLAN_NATIVE) {
		char reason[sizeof(s->reason)];

		snprintf(reason, sizeof(reason), "%s", s->reason);
		snprintf(s->reason, sizeof(s->reason), "%.200s: the emulated source cannot run it",
			 reason);
		return -EOPNOTSUPP;
	}
	if (r == 0 && emustart_is_nested(s->plan.name, s->plan.argv)) {
		snprintf(s->reason, sizeof(s->reason), "%s", EMUSTART_NESTED);
		return -EOPNOTSUPP;
	}
	if (r == 0 && !s->plan.program) {
		snprintf(s->reason, sizeof(s->reason),
			 "no path leads to the file: the emulated source cannot run it");
		return -EOPNOTSUPP;
	}
	return r;
}

int emu_command_find(char *const *argv, struct emu_command *ret, char *why, size_t why_size)
{
	struct command_search s = {.argv = argv, .plan.fd = -EBADF};
	int r;

	*ret = (struct emu_command){0};
	if (argv[0][0] == '\0')
		r = -ENOENT;
	else if (!strchr(argv[0], '/'))
		r = search_command(&s);
	else if ((size_t)snprintf(s.path, sizeof(s.path), "%s", argv[0]) >= sizeof(s.path))
		r = -ENAMETOOLONG;
	else
		r = try_path(&s);
	r = check_emulator(&s, r);
	if (r == 0) {
		ret->comm = strdup(s.plan.comm);
		r = !ret->comm ? -ENOMEM : 0;
	}
	if (r == 0) {
		ret->program = TAKE_PTR(s.plan.program);
		ret->argv = TAKE_PTR(s.plan.argv);
	} else {
		explain(r, &s, why, why_size);
	}
	execplan_done(&s.plan);
	return r;
}

void emu_command_done(struct emu_command *c)
{
	free(c->program);
	free(c->comm);
	emustart_free(c->argv);
	*c = (struct emu_command){0};
}

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
static int search_qemu(const char *name, char *ret_path, size_t size)
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
		r = search_qemu(path, found, sizeof(found));
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
	if (ask(found, "--help", text, OUTPUT_MAX) < 0 || !strstr(text, "-plugin")) {
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
