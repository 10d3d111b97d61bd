/*
 * Whether a snapshot can be stored and decoded: room in the state directory, the decoder, its
 * sandbox. Called by check.c.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/emu/host/emu_qemu.h"
#include "daemon/check/check_private.h"

/* PATH, or the nearest directory above it that is there. */
static void existing(const char *path, char ret[PATH_MAX])
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

	existing(dir, path);
	r = c->paths->calls.free_bytes(path, &have);
	if (r == -ENOTDIR || r == -EACCES || r == -EPERM || r == -EROFS) {
		c->emulated = false; /* no source starts without one */
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
	char why[PATH_MAX + 256];

	if (check_worker(c->config->worker, why, sizeof(why)) < 0)
		check_say(
			c, FINDING_WARNING, "decoder",
			"install ptsnap-decode, or --worker=PATH; ptsnapctl decode works elsewhere",
			"snapshots cannot be decoded: %s", why);
	else
		check_say(c, FINDING_OK, "decoder", "", "%s", c->config->worker);
}

/* decoder/worker/sandbox.c: seccomp is the wall, Landlock one more. */
static void check_sandbox(struct check *c)
{
	char actions[256];
	int abi = c->paths->calls.landlock();

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

/* Whether somebody listens there only he would learn who comes. */
static void check_attached(struct check *c)
{
	const char *path = c->config->emu_socket;
	struct stat st;

	if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		check_say(c, FINDING_OK, "emulator", "", "a machine is offered at %s", path);
		return;
	}
	c->emulated = false;
	check_say(c, FINDING_FAILURE, "emulator", "ptsnapd --emulate=PATH -- COMMAND ARGS",
		  "no machine is offered at %s", path);
}

/* What the emulated source needs. Said as failures of its own: here nothing else traces. */
static void check_emulator(struct check *c)
{
	CLEANUP_FREE char *path = NULL;
	char why[512];

	if (emu_qemu_find(c->config->emu_qemu, &path, why, sizeof(why)) == 0) {
		check_say(c, FINDING_OK, "emulator", "", "%s", path);
		return;
	}
	c->emulated = false;
	check_say(c, FINDING_FAILURE, "emulator", "apt-get install qemu-user, or --emu-qemu=PATH",
		  "%s", why);
}

void check_storage(struct check *c)
{
	if (c->config->emu_socket)
		check_attached(c);
	else if (c->emulated)
		check_emulator(c);
	check_room(c);
	check_decoder(c);
	check_sandbox(c);
}
