/*
 * Strips and packs this program with binutils and xz, as package builders do (find-debuginfo of
 * rpm, and "MiniDebugInfo" in GDB's manual).
 */
#include "tests/unit/sideband/apart.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

static const char script[] =
	"set -e; exec 2> errors\n"
	/* More bytes than there are names, also where the build has no DWARF. */
	"cat whole whole > more; objcopy --only-keep-debug whole debug\n"
	"objcopy --add-section .debug_more=more debug; strip -o stripped whole\n"
	"nm -D whole --format=posix --defined-only | awk '{ print $1 }' | LC_ALL=C sort > dynamic\n"
	"nm whole --format=posix --defined-only |\n"
	"	awk '$2 == \"T\" || $2 == \"t\" || $2 == \"D\" { print $1 }' | LC_ALL=C sort > functions\n"
	"LC_ALL=C comm -13 dynamic functions > keep\n"
	"objcopy -S --remove-section .comment --keep-symbols=keep debug mini\n"
	"xz -k mini; objcopy --add-section .gnu_debugdata=mini.xz stripped packed\n";

static struct file map_in(const struct apart *a, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", a->directory, name);
	return file_map(path);
}

bool apart_make(struct apart *ret)
{
	char command[2048];

	*ret = (struct apart){.directory = "/tmp/ptsnap-apart-XXXXXX"};
	if (system("for t in objcopy strip nm awk comm xz; do command -v $t; done > /dev/null") !=
	    0)
		return false;
	if (!mkdtemp(ret->directory))
		return false;
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s/whole && cd %s && %s", getpid(),
		 ret->directory, ret->directory, script);
	assert(system(command) == 0);
	ret->whole = map_in(ret, "whole");
	ret->stripped = map_in(ret, "stripped");
	ret->debug = map_in(ret, "debug");
	ret->packed = map_in(ret, "packed");
	return true;
}

void apart_drop(struct apart *a)
{
	char command[128];

	if (!a->whole.bytes)
		return;
	snprintf(command, sizeof(command), "rm -rf %s", a->directory);
	assert(system(command) == 0);
	file_unmap(&a->whole);
	file_unmap(&a->stripped);
	file_unmap(&a->debug);
	file_unmap(&a->packed);
}
