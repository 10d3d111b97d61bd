/*
 * The program instead of its emulator. Called by source_emu.c for each process of a report. The
 * emulator's command line (emu_argv.c) ends in: -0 ARGV0 -- PROGRAM ARGS.
 */
#include "capture/emu/host/emu_describe.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

/* The emulator's own options come before the program's arguments. */
#define OPTIONS_MAX 8192u

static ssize_t read_cmdline(uint32_t pid, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, size - 1);
	close(fd);
	return n;
}

static const char *next(const char *at, const char *end)
{
	return at == NULL || at >= end ? NULL : at + strlen(at) + 1;
}

/* Behind the first "-0": its value, "--", the program and what follows. */
static bool find_program(const char *text, const char *end, const char **ret_argv0,
			 const char **ret_program)
{
	const char *at = text;

	while (at != NULL && at < end && strcmp(at, "-0") != 0)
		at = next(at, end);
	*ret_argv0 = next(at, end);
	at = next(*ret_argv0, end);
	if (at == NULL || at >= end || strcmp(at, "--") != 0)
		return false;
	*ret_program = next(at, end);
	return *ret_program != NULL && *ret_program < end;
}

static char *join(const char *argv0, const char *args, const char *end, bool *ret_cut)
{
	size_t n0 = strlen(argv0), rest = args < end ? (size_t)(end - args) : 0;
	char *text = malloc(n0 + rest + 2);

	if (text == NULL)
		return NULL;
	memcpy(text, argv0, n0);
	for (size_t i = 0; i < rest; i++)
		text[n0 + 1 + i] = args[i] == '\0' ? ' ' : args[i];
	text[n0] = rest > 0 ? ' ' : '\0';
	/* The last NUL ended an argument. */
	text[n0 + rest + (rest > 0 ? 0 : 1)] = '\0';
	*ret_cut = strlen(text) > PROCSCAN_CMDLINE_MAX;
	if (*ret_cut)
		text[PROCSCAN_CMDLINE_MAX] = '\0';
	return text;
}

void emu_describe_process(const char *qemu, struct procinfo *info)
{
	char text[OPTIONS_MAX + PROCSCAN_CMDLINE_MAX];
	const char *argv0, *program, *end;
	char *exe, *cmdline;
	ssize_t n;
	bool cut;

	if (info->exe == NULL || strcmp(info->exe, qemu) != 0)
		return;
	n = read_cmdline(info->pid, text, sizeof(text));
	if (n <= 0)
		return;
	text[n] = '\0';
	end = text + n;
	if (!find_program(text, end, &argv0, &program))
		return;
	exe = realpath(program, NULL);
	cmdline = join(argv0, next(program, end), end, &cut);
	if (exe != NULL) {
		free(info->exe);
		info->exe = exe;
	}
	if (cmdline != NULL) {
		free(info->cmdline);
		info->cmdline = cmdline;
		info->cmdline_cut = cut;
	}
}
