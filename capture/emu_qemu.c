/*
 * The emulator: found, checked, started with our plugin. Called by source_emu.c in the recorder.
 *
 * QEMU 7.x and 8.x take plugins of API version 1; 9.0 and later refuse them ("unsupported API
 * version"), and Debian 13's is built without plugins. Both are told apart before COMMAND starts,
 * so that the user reads one line instead of an emulator's complaint.
 */
#include "capture/emu_qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/emuring.h"

#define ADVICE "install Debian 12's qemu-user (7.2) or name one with --emu-qemu"
/* --help is about 4 KiB. */
#define OUTPUT_MAX (64u * 1024)

extern char **environ;

/* Its dynamic linker, its malloc, glib, its own options. */
static bool acts_on_emulator(const char *variable)
{
	static const char *const names[] = {"LD_", "GLIBC_TUNABLES=", "MALLOC_", "QEMU_",
					    "G_",  "GCONV_PATH="};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void free_strings(char **strings)
{
	for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
		free(strings[i]);
	free(strings);
}

static char **prefixed_environment(void)
{
	size_t n = 0;
	char **result;

	while (environ[n] != NULL)
		n++;
	result = calloc(n + 1, sizeof(char *));
	for (size_t i = 0; result != NULL && i < n; i++)
		if (asprintf(&result[i], "%s%s",
			     acts_on_emulator(environ[i]) ? EMURING_ENV_PREFIX : "",
			     environ[i]) < 0) {
			result[i] = NULL;
			free_strings(result);
			return NULL;
		}
	return result;
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

/* What "QEMU OPTION" prints; "" when it could not be started. */
static int ask(const char *qemu, const char *option, char *text, size_t size)
{
	char *argv[] = {(char *)qemu, (char *)option, NULL};
	posix_spawn_file_actions_t actions;
	char **env = prefixed_environment();
	int pipe_fds[2], r;
	pid_t pid;

	text[0] = '\0';
	if (env == NULL)
		return -ENOMEM;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		r = -errno;
		free_strings(env);
		return r;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
	posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2);
	r = -posix_spawn(&pid, qemu, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	free_strings(env);
	close(pipe_fds[1]);
	if (r == 0) {
		r = read_all(pipe_fds[0], text, size);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(pipe_fds[0]);
	return r;
}

static int search(const char *name, char *ret_path, size_t size)
{
	const char *dirs = getenv("PATH");

	if (dirs == NULL)
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

/* Debian 12 calls them qemu-x86_64 and qemu-x86_64-static; the latter loads no plugins. */
static int locate(const char *path, char *ret_path, size_t size)
{
	if (path == NULL)
		return search("qemu-x86_64", ret_path, size);
	if (strchr(path, '/') == NULL)
		return search(path, ret_path, size);
	snprintf(ret_path, size, "%s", path);
	return access(ret_path, X_OK) < 0 ? -errno : 0;
}

static int check_version(const char *qemu, const char *text, char *why, size_t why_size)
{
	const char *at = strstr(text, "version ");
	unsigned int major, minor;

	if (strncmp(text, "qemu-x86_64", 11) != 0 || at == NULL ||
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
	int r = locate(path, found, sizeof(found));

	if (text == NULL)
		return -ENOMEM;
	if (r < 0) {
		snprintf(why, why_size, "%s: %s; %s", path != NULL ? path : "qemu-x86_64",
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
	return *ret_path == NULL ? -ENOMEM : 0;
}

/* A value in QEMU's comma-separated options: commas are doubled. */
static void put_value(FILE *f, const char *value)
{
	for (; *value != '\0'; value++) {
		if (*value == ',')
			fputc(',', f);
		fputc(*value, f);
	}
}

static char *plugin_option(const struct emu_start *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		return NULL;
	put_value(f, s->plugin);
	fputs(",ring=", f);
	put_value(f, s->ring);
	fputs(",comm=", f);
	put_value(f, s->command->comm);
	if (s->truth != NULL) {
		fputs(",truth=", f);
		put_value(f, s->truth);
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* QEMU [-seed 1] -plugin OPTION -0 ARGV0 -- PROGRAM ARGS */
static char **arguments(const struct emu_start *s, char *option)
{
	size_t n = 0, at = 0;
	char **argv;

	while (s->command->argv[n] != NULL)
		n++;
	argv = calloc(n + 10, sizeof(char *));
	if (argv == NULL)
		return NULL;
	argv[at++] = (char *)s->qemu;
	if (s->repeatable) {
		argv[at++] = (char *)"-seed";
		argv[at++] = (char *)"1";
	}
	argv[at++] = (char *)"-plugin";
	argv[at++] = option;
	argv[at++] = (char *)"-0";
	argv[at++] = s->command->argv[0];
	argv[at++] = (char *)"--";
	argv[at++] = s->command->program;
	for (size_t i = 1; i < n; i++)
		argv[at++] = s->command->argv[i];
	return argv;
}

int emu_qemu_start(const struct emu_start *s, pid_t *ret_pid)
{
	char *option = plugin_option(s);
	char **argv = option != NULL ? arguments(s, option) : NULL;
	char **env = prefixed_environment();
	int r = -ENOMEM;

	if (argv != NULL && env != NULL)
		r = -posix_spawn(ret_pid, s->qemu, NULL, NULL, argv, env);
	free_strings(env);
	free(argv);
	free(option);
	return r;
}
