/*
 * COMMAND as execvp(3) would find and start it. Called by source_emu.c in the recorder. The
 * emulator wants an ELF file by a path that stays good when the program changes its directory; what
 * the kernel does from a path on is thought through by capture/emu/machine/execplan.c.
 */
#include "capture/emu/host/emu_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/emu/machine/emustart.h"
#include "capture/emu/machine/execplan.h"
#include "proto/base.h"

struct search {
	char *const *argv;
	char path[PATH_MAX]; /* that was tried last */
	struct execplan plan;
	char reason[256]; /* execplan_make's */
};

static int try_path(struct search *s)
{
	const struct execplan_request request = {
		.dirfd = AT_FDCWD,
		.path = s->path,
		.argv = s->argv,
	};

	return execplan_make(&request, &s->plan, s->reason, sizeof(s->reason));
}

/* glibc's execvp: these do not end the search. */
static bool goes_on(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ESTALE || r == -ENODEV || r == -ETIMEDOUT ||
	       r == -EACCES;
}

/* An entry that may not be used does not end the search, but is remembered. */
static int search_path(struct search *s)
{
	const char *dirs = getenv("PATH");
	int result = -ENOENT;

	if (dirs == NULL)
		dirs = "/bin:/usr/bin";
	for (;; dirs++) {
		int n = (int)strcspn(dirs, ":");
		int r = snprintf(s->path, sizeof(s->path), "%.*s/%s", n > 0 ? n : 1,
				 n > 0 ? dirs : ".", s->argv[0]);

		r = r < 0 || (size_t)r >= sizeof(s->path) ? -ENOENT : try_path(s);
		if (!goes_on(r))
			return r;
		if (r == -EACCES)
			result = r;
		dirs += n;
		if (*dirs == '\0')
			return result;
	}
}

static int find_file(struct search *s)
{
	const char *name = s->argv[0];

	if (name[0] == '\0')
		return -ENOENT;
	if (strchr(name, '/') == NULL)
		return search_path(s);
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s", name) >= sizeof(s->path))
		return -ENAMETOOLONG;
	return try_path(s);
}

static void explain(int error, const struct search *s, char *why, size_t why_size)
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

/* What the kernel would run, but not the emulator. */
static int check_emulator(struct search *s, int r)
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
	if (r == 0 && s->plan.program == NULL) {
		snprintf(s->reason, sizeof(s->reason),
			 "no path leads to it: the emulated source cannot run it");
		return -EOPNOTSUPP;
	}
	return r;
}

int emu_command_find(char *const *argv, struct emu_command *ret, char *why, size_t why_size)
{
	struct search s = {.argv = argv, .plan.fd = -EBADF};
	int r = check_emulator(&s, find_file(&s));

	*ret = (struct emu_command){0};
	if (r == 0) {
		ret->comm = strdup(s.plan.comm);
		r = ret->comm == NULL ? -ENOMEM : 0;
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
