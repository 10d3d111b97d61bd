/*
 * Whether snapshots can be stored and decoded: the state directory, the decoder and its sandbox,
 * the emulator, and the directories and programs that options name.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/emu/host/emu_qemu.h"
#include "daemon/check/check.h"
#include "daemon/check/check_private.h"
#include "proto/base.h"

/* Copies PATH, or the nearest directory above PATH that exists. */
static void nearest_existing(const char *path, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s", path);
	while (access(ret, F_OK) < 0) {
		char *slash = strrchr(ret, '/');

		if (!slash || slash == ret) {
			strcpy(ret, slash ? "/" : ".");
			return;
		}
		*slash = '\0';
	}
}

static void check_room(struct check *c)
{
	uint64_t n = MAX_OF(cpulist_count(&c->online), (size_t)1);
	uint64_t need = (c->emulated ? c->config->emu_cpus : n) * c->config->aux_size + (64u << 20);
	const char *dir = c->config->state_dir;
	char path[PATH_MAX];
	uint64_t have;
	int r;

	nearest_existing(dir, path);
	r = c->paths->calls.free_bytes(path, &have);
	if (r == -ENOTDIR || r == -EACCES || r == -EPERM || r == -EROFS) {
		c->emulated = false; /* a failure for the emulated source, too */
		check_say(c, FINDING_FAILURE, "state-dir",
			  "--state-dir=DIR (StateDirectory=) that can be written to",
			  "%s cannot be used as state directory: %s", dir, strerror(-r));
	} else if (r < 0)
		check_say(c, FINDING_WARNING, "state-dir", "--state-dir=DIR on a disk of this host",
			  "%s: %s", dir, strerror(-r));
	else if (have < need)
		check_say(
			c, FINDING_WARNING, "state-dir",
			"make room there, or --state-dir=DIR on another disk",
			"%s has %s free; a whole snapshot can take %s (the last two that found no "
			"room stay in memory)",
			dir, check_bytes(have).text, check_bytes(need).text);
	else
		check_say(c, FINDING_OK, "state-dir", "", "%s has %s free", dir,
			  check_bytes(have).text);
}

static void check_decoder(struct check *c)
{
	char why[PATH_MAX + 256], actions[256];
	int abi = c->paths->calls.landlock();

	if (check_worker(c->config->worker, why, sizeof(why)) < 0)
		check_say(
			c, FINDING_WARNING, "decoder",
			"install ptsnap-decode, or --worker=PATH; ptsnapctl decode works elsewhere",
			"snapshots cannot be decoded: %s", why);
	else
		check_say(c, FINDING_OK, "decoder", "", "%s", c->config->worker);
	/* decoder/worker/sandbox.c needs seccomp; Landlock is a second wall. */
	check_read(c->paths->proc, "sys/kernel/seccomp/actions_avail", actions, sizeof(actions));
	if (!check_word(actions, "kill_process"))
		check_say(c, FINDING_WARNING, "sandbox",
			  "run a kernel with CONFIG_SECCOMP_FILTER=y (4.14 or newer)",
			  "this kernel has no seccomp filters: snapshots are not decoded here");
	else if (abi < 0)
		check_say(c, FINDING_NOTE, "sandbox",
			  "lsm=landlock,... on the kernel's command line (5.13 or newer)",
			  "the decoder's sandbox has seccomp but no Landlock (%s)", strerror(-abi));
	else
		check_say(c, FINDING_OK, "sandbox", "",
			  "the decoder's sandbox has seccomp and Landlock (ABI %d)", abi);
}

/* What the emulated source needs. A missing part is a failure, as no other source traces then. */
static void check_emulator(struct check *c)
{
	const char *socket = c->config->emu_socket;
	CLEANUP_FREE char *path = NULL;
	struct stat st;
	char why[512];

	if (socket && stat(socket, &st) == 0 && S_ISSOCK(st.st_mode)) {
		/* Whether a program listens is not tried: the program would see a client. */
		check_say(c, FINDING_OK, "emulator", "", "a machine is offered at %s", socket);
	} else if (socket) {
		c->emulated = false;
		check_say(c, FINDING_FAILURE, "emulator", "ptsnapd --emulate=PATH -- COMMAND ARGS",
			  "no machine is offered at %s", socket);
	} else if (emu_qemu_find(c->config->emu_qemu, &path, why, sizeof(why)) == 0) {
		check_say(c, FINDING_OK, "emulator", "", "%s", path);
	} else {
		c->emulated = false;
		check_say(c, FINDING_FAILURE, "emulator",
			  "apt-get install qemu-user, or --emu-qemu=PATH", "%s", why);
	}
}

void check_storage(struct check *c)
{
	if (c->emulated)
		check_emulator(c);
	check_room(c);
	check_decoder(c);
}

int check_worker(const char *path, char *why, size_t why_size)
{
	struct stat st;
	int r = 0;

	if (stat(path, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (access(path, X_OK) < 0)
		r = -errno;
	if (r < 0)
		snprintf(why, why_size, "%s: cannot be run: %s; --worker=PATH names ptsnap-decode",
			 path, strerror(-r));
	return r;
}

static int make_empty_dir(const char *path)
{
	bool empty = true;
	DIR *dir;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return -errno;
	dir = opendir(path);
	if (!dir)
		return -errno;
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
		empty = empty && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0);
	closedir(dir);
	if (!empty)
		return -ENOTEMPTY;
	return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

int check_empty_dir(const char *option, const char *path, char *why, size_t why_size)
{
	int r = make_empty_dir(path);

	if (r == -ENOTEMPTY)
		snprintf(why, why_size,
			 "%s=%s: holds files of an earlier run or others; valid: a directory that "
			 "is empty or not there",
			 option, path);
	else if (r < 0)
		snprintf(why, why_size, "%s=%s: cannot be written: %s", option, path, strerror(-r));
	return r;
}
