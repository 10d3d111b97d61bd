/*
 * argv -> struct config, with the default of every limit. Called once by main.c, before anything is
 * opened; a mistake of the user ends in one line that lists what would have been right.
 */
#include "daemon/config_private.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

#ifndef PTSNAP_LIBEXECDIR
#define PTSNAP_LIBEXECDIR "/usr/libexec/ptsnap"
#endif
#ifndef PTSNAP_PKGLIBDIR
#define PTSNAP_PKGLIBDIR "/usr/lib/ptsnap"
#endif

#define PAGE 4096u
/* A copy of a ring must fit into the store, and into memory twice. */
#define MAX_RING (512ull << 20)

enum option_code {
	OPTION_SOURCE = 256,
	OPTION_SOCKET,
	OPTION_STATE_DIR,
	OPTION_AUX_SIZE,
	OPTION_DATA_SIZE,
	OPTION_PT,
	OPTION_WORKER,
	OPTION_EXIT_WITH_COMMAND,
	OPTION_DECODE_TIMEOUT,
	OPTION_HELP,
	OPTION_VERSION,
};

/* clang-format off */
static const struct option config_options[] = {
	{"source", required_argument, NULL, OPTION_SOURCE},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"state-dir", required_argument, NULL, OPTION_STATE_DIR},
	{"aux-size", required_argument, NULL, OPTION_AUX_SIZE},
	{"data-size", required_argument, NULL, OPTION_DATA_SIZE},
	{"pt", required_argument, NULL, OPTION_PT},
	{"worker", required_argument, NULL, OPTION_WORKER},
	{"emu-plugin", required_argument, NULL, OPTION_EMU_PLUGIN},
	{"emu-qemu", required_argument, NULL, OPTION_EMU_QEMU},
	{"emu-truth", required_argument, NULL, OPTION_EMU_TRUTH},
	{"emu-clock", required_argument, NULL, OPTION_EMU_CLOCK},
	{"emu-cpus", required_argument, NULL, OPTION_EMU_CPUS},
	{"emu-quantum", required_argument, NULL, OPTION_EMU_QUANTUM},
	{"emu-overflow", required_argument, NULL, OPTION_EMU_OVERFLOW},
	{"emu-lose", required_argument, NULL, OPTION_EMU_LOSE},
	{"emu-offline", required_argument, NULL, OPTION_EMU_OFFLINE},
	{"emu-build-id", no_argument, NULL, OPTION_EMU_BUILD_ID},
	{"emu-tasks", required_argument, NULL, OPTION_EMU_TASKS},
	{"exit-with-command", no_argument, NULL, OPTION_EXIT_WITH_COMMAND},
	{"decode-timeout", required_argument, NULL, OPTION_DECODE_TIMEOUT},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};
/* clang-format on */

static const struct config config_defaults = {
	.source = CONFIG_AUTO,
	.socket = "/run/ptsnap/io.ptsnap.recorder",
	.state_dir = "/var/lib/ptsnap",
	.aux_size = 8u << 20,
	.data_size = 512u << 10,
	.emu_cpus = 2,
	.emu_max_tasks = 1024,
	.emu_quantum = 1000000,
	.decode_timeout_usec = 120000000,
	.intake_usec = 5000,
	.timeline_log_bytes = 16u << 20,
	.timeline_base_bytes = 64u << 20,
	.sideband_bytes = 256u << 20,
	.max_files = 4096,
	.max_processes = 4096,
	.max_image_bytes = 512u << 20,
	.max_images_bytes = 1u << 30,
	.max_jobs_queued = 4,
	.store_max_use = 1u << 30,
	.store_max_entries = 4096,
	.store_in_memory = 2,
	.decode_memory = 2ull << 30,
	.max_peers = 64,
	.max_peers_per_uid = 16,
	.peer_idle_usec = 45000000,
	.command_grace_usec = 2000000,
};

const char *config_help(void)
{
	return "ptsnapd [OPTIONS] [-- COMMAND ARGS]\n"
	       "Records control flow (Intel Processor Trace) into rings and, on a trigger, has the\n"
	       "newest part of them decoded into a report.\n"
	       "\n"
	       "  --source=auto|intel_pt|emulated  where the trace comes from (auto)\n"
	       "  --socket=PATH          control socket (/run/ptsnap/io.ptsnap.recorder)\n"
	       "  --state-dir=DIR        where snapshots are stored (/var/lib/ptsnap)\n"
	       "  --aux-size=SIZE        trace ring of each CPU (8M)\n"
	       "  --data-size=SIZE       sideband ring of each CPU (512K)\n"
	       "  --pt=TERMS             trace configuration, such as tsc,mtc,mtc_period=3,cyc\n"
	       "  --decode-timeout=TIME  longest time to decode a snapshot (120s)\n"
	       "  --worker=PATH          ptsnap-decode\n"
	       "  --exit-with-command    when COMMAND ends: snapshot, then end with its status\n"
	       "  --emu-cpus=N           virtual CPUs of the emulated machine, 1 to 64 (2)\n"
	       "  --emu-quantum=N        instructions before another thread's turn (1000000)\n"
	       "  --emu-tasks=N          most threads at a time, 16 to 4096 (1024)\n"
	       "  --emu-clock=host|virtual  clock of the emulated trace (host)\n"
	       "  --emu-build-id         mappings are told with build ids, not device and inode\n"
	       "  --emu-overflow=SIZE    an internal overflow each SIZE bytes of trace (0: none)\n"
	       "  --emu-lose=N           every Nth sideband record is lost (0: none)\n"
	       "  --emu-offline=CPU:FROM:TO  takes a CPU away for that time, e.g. 1:200ms:500ms\n"
	       "  --emu-truth=DIR        write what was really executed (for tests)\n"
	       "  --emu-plugin=PATH      ptsnap-emupmu.so\n"
	       "  --emu-qemu=PATH        qemu-x86_64\n"
	       "  --help, --version\n"
	       "\n"
	       "Triggers: ptsnapctl snapshot, SIGUSR2. See ptsnapd(8).\n";
}

int config_parse_size(const char *text, uint64_t *ret)
{
	unsigned shift = 0;
	uint64_t v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	if (*end) {
		static const char suffixes[] = "KMG";
		const char *at = strchr(suffixes, *end);

		if (!at || end[1])
			return -EINVAL;
		shift = 10 * (unsigned)(at - suffixes + 1);
	}
	if (shift && v >> (64 - shift))
		return -EINVAL;
	*ret = v << shift;
	return 0;
}

int config_parse_time(const char *text, uint64_t *ret_usec)
{
	/* clang-format off */
	static const struct { const char *suffix; uint64_t usec; } units[] = {
		{"", 1000000}, {"us", 1}, {"ms", 1000}, {"s", 1000000},
		{"min", 60000000}, {"h", 3600000000ull},
	};
	/* clang-format on */
	uint64_t v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strcmp(end, units[i].suffix) == 0)
			return __builtin_mul_overflow(v, units[i].usec, ret_usec) ? -EINVAL : 0;
	return -EINVAL;
}

int config_bad_value(const char *option, const char *value, const char *valid,
		     const struct config_why *why)
{
	snprintf(why->text, why->size, "--%s=%s is not valid; valid: %s", option, value, valid);
	return -EINVAL;
}

static int config_ring_size(const char *option, const char *value, uint64_t *ret,
			    const struct config_why *why)
{
	uint64_t v;

	if (config_parse_size(value, &v) < 0 || v < PAGE || v > MAX_RING || (v & (v - 1)))
		return config_bad_value(option, value, "a power of two from 4K to 512M", why);
	*ret = v;
	return 0;
}

static int config_source(const char *value, struct config *c, const struct config_why *why)
{
	static const char *const names[] = {"auto", "intel_pt", "emulated"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(value, names[i]) == 0) {
			c->source = (enum config_source)i;
			return 0;
		}
	return config_bad_value("source", value, "auto, intel_pt, emulated", why);
}

static int config_timeout(const char *value, struct config *c, const struct config_why *why)
{
	if (config_parse_time(value, &c->decode_timeout_usec) == 0 && c->decode_timeout_usec > 0)
		return 0;
	return config_bad_value("decode-timeout", value,
				"a time such as 120s, 500ms, 2min (without a unit: seconds)", why);
}

int config_path(const char *option, const char *value, char *ret, const struct config_why *why)
{
	if (*value && snprintf(ret, PATH_MAX, "%s", value) < PATH_MAX)
		return 0;
	return config_bad_value(option, value, "a path", why);
}

int config_text(const char *option, const char *value, const char **ret,
		const struct config_why *why)
{
	if (!*value)
		return config_bad_value(option, value, "anything but an empty value", why);
	*ret = value;
	return 0;
}

/* One flat switch: which field an option fills. */
static int config_option(int code, const char *v, struct config *c, const struct config_why *why)
{
	switch (code) {
	case OPTION_SOURCE: return config_source(v, c, why);
	case OPTION_SOCKET: return config_text("socket", v, &c->socket, why);
	case OPTION_STATE_DIR: return config_text("state-dir", v, &c->state_dir, why);
	case OPTION_AUX_SIZE: return config_ring_size("aux-size", v, &c->aux_size, why);
	case OPTION_DATA_SIZE: return config_ring_size("data-size", v, &c->data_size, why);
	case OPTION_PT: return config_text("pt", v, &c->pt_terms, why);
	case OPTION_WORKER: return config_path("worker", v, c->worker, why);
	case OPTION_EXIT_WITH_COMMAND: c->exit_with_command = true; return 0;
	case OPTION_DECODE_TIMEOUT: return config_timeout(v, c, why);
	default: return config_emu_option(code, v, c, why);
	}
}

/* What getopt_long stumbled over, in words. */
static int config_refuse(int code, const char *arg, char *why, size_t why_size)
{
	size_t used;

	if (code == ':') {
		snprintf(why, why_size, "%s needs a value", arg);
		return -EINVAL;
	}
	used = (size_t)snprintf(why, why_size, "unknown option %s; valid:", arg);
	for (const struct option *o = config_options; o->name && used < why_size; o++)
		used += (size_t)snprintf(why + used, why_size - used, " --%s", o->name);
	return -EINVAL;
}

/* PATH_IN_TREE when this program runs from a build tree that holds it, else INSTALLED. */
static void config_find(const char *in_tree, const char *installed, char ret[PATH_MAX])
{
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	snprintf(ret, PATH_MAX, "%s", installed);
	if (n <= 0)
		return;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash || (size_t)(slash - self) + strlen(in_tree) + 2 > sizeof(self))
		return;
	strcpy(slash + 1, in_tree);
	CLEANUP_FREE char *real = realpath(self, NULL);
	if (real && strlen(real) < PATH_MAX)
		strcpy(ret, real);
}

static int config_check(const struct config *c, const struct config_why *why)
{
	if (c->source == CONFIG_EMULATED && !c->command) {
		snprintf(why->text, why->size,
			 "--source=emulated needs a command to run: ptsnapd --source=emulated -- "
			 "COMMAND ARGS");
		return -EINVAL;
	}
	if (c->exit_with_command && !c->command) {
		snprintf(why->text, why->size,
			 "--exit-with-command needs a command: -- COMMAND ARGS");
		return -EINVAL;
	}
	return config_emu_check(c, why);
}

int config_parse(int argc, char *const *argv, struct config *ret, char *why, size_t why_size)
{
	const struct config_why because = {why, why_size};
	int code, r;

	*ret = config_defaults;
	config_find("../decoder/worker/ptsnap-decode", PTSNAP_LIBEXECDIR "/ptsnap-decode",
		    ret->worker);
	config_find("../capture/emu/ptsnap-emupmu.so", PTSNAP_PKGLIBDIR "/ptsnap-emupmu.so",
		    ret->emu_plugin);
	optind = 0; /* glibc: start afresh, also within one process */
	opterr = 0;
	for (;;) {
		int at = optind ? optind : 1;

		code = getopt_long(argc, argv, "+:", config_options, NULL);
		if (code < 0)
			break;
		if (code == OPTION_HELP || code == OPTION_VERSION)
			return code == OPTION_HELP ? CONFIG_HELP : CONFIG_VERSION;
		if (code < OPTION_SOURCE)
			return config_refuse(code, argv[at], why, why_size);
		r = config_option(code, optarg, ret, &because);
		if (r < 0)
			return r;
	}
	if (optind < argc)
		ret->command = argv + optind;
	return config_check(ret, &because);
}
