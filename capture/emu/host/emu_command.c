/*
 * COMMAND as execvp(3) would find and start it. The emulator needs an ELF file by a path that stays
 * valid when the program changes its directory; capture/emu/machine/execplan.h does what the kernel
 * does with a path.
 */
#include "capture/emu/host/emu_command_private.h"

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
	char path[PATH_MAX]; /* the last path that was tried */
	struct execplan plan;
	char reason[256]; /* of execplan_make() */
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

/* Searches the directories of PATH. */
static int search_path(struct search *s)
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

static int find_file(struct search *s)
{
	const char *name = s->argv[0];

	if (name[0] == '\0')
		return -ENOENT;
	if (!strchr(name, '/'))
		return search_path(s);
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s", name) >= sizeof(s->path))
		return -ENAMETOOLONG;
	return try_path(s);
}

/* Writes the line for the user. */
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

/* Checks a file that execve(2) would run. R: result of the search. */
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
	if (r == 0 && !s->plan.program) {
		snprintf(s->reason, sizeof(s->reason),
			 "no path leads to the file: the emulated source cannot run it");
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
