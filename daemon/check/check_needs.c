/*
 * Whether the recorder has what it needs besides Intel PT: memory, priority and descriptors for the
 * rings, a state directory with room, the decoder and its sandbox, the emulator, and the
 * directories and programs that options name.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/emu/host/emu_qemu.h"
#include "capture/perf/perf_event.h"
#include "capture/proc/budget.h"
#include "capture/proc/number.h"
#include "daemon/check/check_private.h"
#include "proto/base.h"

#define FIX_MEMLOCK "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited"

/* Reads the soft or the hard limit NAME from /proc/self/limits, which has lines like
 * "Max locked memory         8388608              8388608              bytes".
 * UINT64_MAX: no limit. */
static bool own_limit(const struct check *c, const char *name, bool hard, uint64_t *ret)
{
	char text[4096];
	const char *at;

	check_read(c->paths->proc, "self/limits", text, sizeof(text));
	at = strstr(text, name);
	if (!at)
		return false;
	at += strlen(name);
	at += strspn(at, " ");
	if (hard) {
		at += strcspn(at, " \n");
		at += strspn(at, " ");
	}
	*ret = UINT64_MAX;
	return strncmp(at, "unlimited", 9) == 0 || number_parse(at, 10, UINT64_MAX, " ", NULL, ret);
}

/* The bytes of the rings of N CPUs, without the copy area, which is not locked. */
static uint64_t ring_bytes(const struct budget_sizes *sizes, size_t n)
{
	return budget_need(sizes, n) - n * sizes->aux;
}

/* kernel/events/core.c, perf_mmap: each user may lock perf_event_mlock_kb for each CPU of the host;
 * more counts against RLIMIT_MEMLOCK, unless the process has CAP_IPC_LOCK. */
static void check_memlock(struct check *c, const struct budget_sizes *sizes, size_t n)
{
	uint64_t need = ring_bytes(sizes, n), limit = UINT64_MAX, all, least;
	struct budget_sizes fitting = *sizes; /* with the largest trace rings that may be locked */
	bool some;
	int64_t kb = 516;
	char fix[160];

	check_number(c->paths->proc, "sys/kernel/perf_event_mlock_kb", &kb);
	own_limit(c, "Max locked memory", false, &limit);
	if (check_capable(c, CHECK_IPC_LOCK) || c->paranoid < 0 ||
	    __builtin_add_overflow(limit, (uint64_t)MAX_OF(kb, 0) * 1024 * c->n_online, &all) ||
	    all >= need) {
		check_say(c, FINDING_OK, "memlock", "", "%s of rings can be locked in memory",
			  check_bytes(need).text);
		return;
	}
	fitting.aux = 1u << 30;
	while (fitting.aux >= BUDGET_PAGE && ring_bytes(&fitting, n) > all)
		fitting.aux /= 2;
	snprintf(fix, sizeof(fix), FIX_MEMLOCK);
	if (fitting.aux >= BUDGET_PAGE)
		snprintf(fix, sizeof(fix), FIX_MEMLOCK "; or rings that fit: --aux-size=%lluK",
			 (unsigned long long)(fitting.aux >> 10));
	/* source_perf.c opens the sideband of all CPUs first, then trace rings as large as fit. */
	least = n * (sizes->data + BUDGET_PAGE) +
		MIN_OF(sizes->aux, (uint64_t)PERF_EVENT_LEAST_AUX) + BUDGET_PT_DATA + BUDGET_PAGE;
	some = all >= least;
	check_say(
		c, some ? FINDING_WARNING : FINDING_FAILURE, "memlock", fix,
		"the rings need %s of locked memory; %s are allowed without CAP_IPC_LOCK "
		"(RLIMIT_MEMLOCK %s, and kernel.perf_event_mlock_kb %lld for each of %zu CPUs): %s",
		check_bytes(need).text, check_bytes(all).text, check_bytes(limit).text,
		(long long)kb, c->n_online,
		some ? "trace rings will be smaller, or some CPUs not traced"
		     : "no CPU can be traced");
}

/* Whether the threads that drain rings, stop CPUs and copy rings get the priority that they ask for
 * (capture/ring/realtime.h). */
static void check_priority(struct check *c)
{
	uint64_t limit = 0;

	if (!own_limit(c, "Max realtime priority", false, &limit))
		return;
	if (limit > 0 || check_capable(c, CHECK_SYS_NICE))
		check_say(c, FINDING_OK, "priority", "",
			  "the threads that drain and copy rings may have real-time priority");
	else
		check_say(
			c, FINDING_WARNING, "priority", "LimitRTPRIO=1 in the unit, or ulimit -r 1",
			"no real-time priority is permitted (RLIMIT_RTPRIO 0, and no CAP_SYS_NICE): "
			"beside busy programs, CPUs are dark for longer at a snapshot, and sideband "
			"records may be lost");
}

/* Sets *RET to the sizes that the source will take. */
static void check_budget(struct check *c, const struct budget_sizes *sizes, size_t n,
			 struct budget_sizes *ret)
{
	char path[PATH_MAX], text[4096], value[32], note[256];
	uint64_t budget = c->config->ring_budget, need = budget_need(sizes, n), total = 0;

	snprintf(path, sizeof(path), "%s/meminfo", c->paths->proc);
	if (!budget)
		budget = budget_default(path);
	check_read(c->paths->proc, "meminfo", text, sizeof(text));
	if (check_value(text, "MemTotal", value, sizeof(value)))
		number_parse(value, 10, UINT64_MAX >> 10, " ", NULL, &total);
	budget_fit(sizes, n, budget, c->have_pmu && !c->pmu.topa_multiple_entries, ret, note,
		   sizeof(note));
	if (*note)
		check_say(c, FINDING_WARNING, "budget",
			  "RingBudget= in ptsnapd.conf, or smaller rings: --aux-size=",
			  "%s (%s wanted, of %s of memory)", note, check_bytes(need).text,
			  check_bytes(total << 10).text);
	else if (total && need > (total << 10) / 4)
		check_say(c, FINDING_WARNING, "budget", "smaller rings: --aux-size=, RingBudget=",
			  "rings and the area for copies take %s of %s of memory",
			  check_bytes(need).text, check_bytes(total << 10).text);
	else
		check_say(c, FINDING_OK, "budget", "",
			  "rings and the area for copies take %s on %zu CPUs",
			  check_bytes(need).text, n);
}

void check_memory(struct check *c)
{
	const struct budget_sizes sizes = {c->have_pmu ? c->config->aux_size : BUDGET_MIN_RING,
					   c->config->data_size};
	struct budget_sizes fitting;
	size_t n = MAX_OF(cpulist_count(&c->online), (size_t)1);
	uint64_t need = config_other_fds(c->config, n), limit;

	if (c->emulated)
		return;
	check_budget(c, &sizes, n, &fitting);
	check_memlock(c, &fitting, n);
	check_priority(c);
	/* With fewer descriptors not even clients can be served; with few more, mapped files are
	 * missing in reports. The recorder raises the soft limit by itself. */
	if (own_limit(c, "Max open files", true, &limit) && limit < need)
		check_say(c, FINDING_WARNING, "files", "LimitNOFILE=65536 in the unit",
			  "%llu open files are allowed; %zu CPUs need %llu",
			  (unsigned long long)limit, n, (unsigned long long)need);
}

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

/* Whether files of programs that have exited can be looked up (daemon/record/files_open.c). */
static void check_look_up(struct check *c)
{
	int r = c->paths->calls.look_up();

	if (r < 0)
		check_say(
			c, FINDING_WARNING, "lookup",
			"no RestrictSUIDSGID=yes in the unit; permit openat2(2) in the "
			"container's seccomp profile; Linux 5.6 or newer",
			"openat2(2) fails (%s): the code of programs that exit at once is missing "
			"in reports",
			strerror(-r));
	else
		check_say(c, FINDING_OK, "lookup", "",
			  "files of programs that have exited can be looked up");
}

/* Checks what the emulated source needs. A missing part is a failure, as no other source traces
 * then. */
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
	check_look_up(c);
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
