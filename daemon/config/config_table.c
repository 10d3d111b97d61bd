/*
 * The table of all settings, in the order in which they are shown. tests/system/config.bats
 * compares the table with ptsnapd.conf(5), ptsnapd(8) and the example file, which have more words.
 */
#include "daemon/config/config_setting.h"

#include <stdio.h>

#include "capture/emu/machine/emuring.h"
#include "proto/base.h"

_Static_assert(EMURING_MIN_TASKS == 16 && EMURING_MAX_TASKS == 4096,
	       "--emu-tasks says which numbers are valid");
_Static_assert(SOURCE_EMU_MAX_CPUS == 64 && SOURCE_EMU_MAX_CPUS <= EMURING_MAX_CPUS,
	       "--emu-cpus says which numbers are valid");
_Static_assert(SOURCE_EMU_MAX_OFFLINE == 16, "--emu-offline says how many are valid");

#define PAGE 4096u
/* A copy of a ring must fit into the store, and two copies into memory. */
#define MAX_RING (512ull << 20)

static const char *const source_words[] = {"auto", "intel_pt", "emulated", NULL};
static const char *const trace_words[] = {"user", "kernel", "both", NULL};
static const char *const preset_words[] = {"light", "std", "precise", "custom", NULL};
static const char *const clock_words[] = {"host", "virtual", NULL};

#define FIELD(f)  .offset = offsetof(struct config, f)
#define RING	  .valid = "a power of two from 4K to 512M", .min = PAGE, .max = MAX_RING
#define PATH	  .argument = "PATH", .type = &config_type_text, .valid = "a path"
#define DIRECTORY .argument = "DIR", .type = &config_type_text, .valid = "a path"
#define BURST \
	.valid = "a number from 1 to 1000000; 0: no limit", .min = 1, .max = 1000000, .zero = true
#define INTERVAL    .type = &config_type_time, .valid = TIME_VALID, .min = 1, .max = UINT64_MAX / 1000
#define TIME_VALID  "a time such as 10s, 500ms, 2min (without a unit: seconds)"
#define COUNT_VALID "a number of instructions from 1000 to 1000000000 (suffixes K, M, G: binary)"
#define OFFLINE_VALID                                                                           \
	"CPU:FROM:TO with FROM before TO, such as 1:200ms:500ms, up to 16 of them; without TO " \
	"(1:200ms:) the CPU stays away"

/* clang-format off */
const struct config_setting config_settings[] = {
	{.section = "Trace", .key = "Source", .option = "source", .initial = "auto",
	 .type = &config_type_word, .words = source_words, FIELD(source),
	 .help = "where the trace comes from"},
	{.section = "Trace", .key = "EmulatorSocket", .option = "emu-socket", .initial = "",
	 .initially = "none: run COMMAND here", PATH, FIELD(emu_socket),
	 .help = "socket of a machine that ptsnapd --emulate keeps"},
	{.section = "Trace", .key = "RequirePT", .option = "require-pt", .initial = "no",
	 .type = &config_type_flag, .valid = "yes, no", FIELD(require_pt),
	 .help = "fail if this host has no Intel PT"},
	{.section = "Trace", .key = "Trace", .option = "trace", .initial = "user",
	 .type = &config_type_word, .words = trace_words, .min = SOURCE_TRACE_USER, FIELD(trace),
	 .help = "which code to trace"},
	{.section = "Trace", .key = "CPUs", .option = "cpus", .argument = "LIST", .initial = "",
	 .initially = "all", .type = &config_type_cpus,
	 .valid = "a list of CPUs as the kernel writes it, such as 0-3,8", FIELD(cpus),
	 .help = "CPUs to trace, such as 0-3,8"},
	{.section = "Trace", .key = "Preset", .option = "preset", .initial = "",
	 .initially = "std; custom with --pt", .type = &config_type_preset, .words = preset_words,
	 FIELD(preset), .help = "how much to trace"},
	{.section = "Trace", .key = "Terms", .option = "pt", .argument = "TERMS", .initial = "",
	 .initially = "those of the preset", .type = &config_type_terms,
	 .valid = "trace terms as perf names them, such as tsc,mtc,mtc_period=9", FIELD(pt_terms),
	 .help = "trace terms as perf names them: tsc,mtc,mtc_period=3,cyc"},

	{.section = "Rings", .key = "RingSize", .option = "aux-size", .argument = "SIZE",
	 .initial = "8M", .type = &config_type_ring, RING, FIELD(aux_size),
	 .help = "size of each CPU's trace ring"},
	{.section = "Rings", .key = "SidebandRingSize", .option = "data-size", .argument = "SIZE",
	 .initial = "512K", .type = &config_type_ring, RING, FIELD(data_size),
	 .help = "size of each CPU's sideband ring"},
	{.section = "Rings", .key = "RingBudget", .option = "ring-budget", .argument = "SIZE|N%",
	 .initial = "", .initially = "a sixteenth of memory", .type = &config_type_budget,
	 .valid = "a size of at least 1M or a part of memory such as 5%", .min = 1u << 20,
	 .max = UINT64_MAX, FIELD(ring_budget), .help = "memory for all rings and one copy of them"},
	{.section = "Rings", .key = "TimelineMax", .option = "timeline-max", .argument = "SIZE",
	 .initial = "64M", .type = &config_type_size, .valid = "a size from 4M to 16G",
	 .min = 4u << 20, .max = 16ull << 30, FIELD(timeline_max),
	 .help = "memory for the history of processes and mappings"},

	{.section = "Service", .key = "Socket", .option = "socket",
	 .initial = "/run/ptsnap/io.ptsnap.recorder", PATH, FIELD(socket),
	 .help = "control socket"},
	{.section = "Service", .key = "StateDirectory", .option = "state-dir",
	 .initial = "/var/lib/ptsnap", DIRECTORY, FIELD(state_dir),
	 .help = "directory for stored snapshots"},
	{.section = "Service", .key = "MaxUse", .option = "max-use", .argument = "SIZE",
	 .initial = "1G", .type = &config_type_size, .valid = "a size of at least 1M",
	 .min = 1u << 20, .max = UINT64_MAX, FIELD(store_max_use), .live = true,
	 .help = "disk space for all snapshots"},
	{.section = "Service", .key = "MaxSnapshots", .option = "max-snapshots", .argument = "N",
	 .initial = "4096", .type = &config_type_number, .valid = "a number from 1 to 65536",
	 .min = 1, .max = 65536, FIELD(store_max_entries), .live = true, .help = "number of snapshots to keep"},
	{.section = "Service", .key = "DecodeTimeout", .option = "decode-timeout",
	 .argument = "TIME", .initial = "120s", .type = &config_type_time,
	 .valid = "a time such as 120s, 500ms, 2min (without a unit: seconds)", .min = 1,
	 .max = UINT64_MAX / 1000, FIELD(decode_timeout_usec), .live = true,
	 .help = "time limit for decoding a snapshot"},
	{.section = "Service", .key = "DecodeMemoryMax", .option = "decode-memory",
	 .argument = "SIZE", .initial = "2G", .type = &config_type_size,
	 .valid = "a size from 256M to 1024G", .min = 256u << 20, .max = 1ull << 40,
	 FIELD(decode_memory), .live = true, .help = "memory limit of the decoder"},
	{.section = "Service", .key = "SourceLines", .option = "source-lines", .initial = "no",
	 .type = &config_type_flag, .valid = "yes, no", FIELD(source_lines), .live = true,
	 .help = "add source lines and inlined functions to reports"},
	{.section = "Service", .key = "DebugDirectory", .option = "debug-directory",
	 .initial = "/usr/lib/debug", .argument = "DIR", .type = &config_type_or_none,
	 .valid = "a path, or none", FIELD(debug_directory),
	 .help = "directory with symbols of stripped programs, or none"},
	{.section = "Service", .key = "MetricsFile", .option = "metrics-file",
	 .initial = "", .initially = "none", PATH, FIELD(metrics_file), .live = true,
	 .help = "file for Prometheus metrics, written every 15 s"},
	{.section = "Service", .key = "DecoderSocket", .option = "decoder-socket", .initial = "",
	 .initially = "none", PATH, FIELD(decoder_socket),
	 .help = "socket at which systemd starts a decoder"},

	{.section = "Access", .key = "AdminGroup", .option = "admin-group", .argument = "GROUP",
	 .initial = "ptsnap-admin", .type = &config_type_text, .valid = "a group's name or number",
	 FIELD(admin_group), .live = true, .help = "group whose members may see and do everything"},
	{.section = "Access", .key = "AllowStatusToAll", .option = "allow-status-to-all",
	 .initial = "no", .type = &config_type_flag, .valid = "yes, no", FIELD(status_to_all),
	 .help = "let everybody ask for the status, at SOCKET.status"},
	{.section = "Access", .key = "ExcludeUnits", .option = "exclude-units",
	 .argument = "GLOB,...", .initial = "", .initially = "none", .type = &config_type_texts,
	 .valid = "names of units, or globs of them", FIELD(exclude_units), .grows = true,
	 .help = "units whose processes are never decoded"},
	{.section = "Access", .key = "ExcludeUsers", .option = "exclude-users",
	 .argument = "USER,...", .initial = "", .initially = "none", .type = &config_type_texts,
	 .valid = "names or numbers of users", FIELD(exclude_users), .grows = true,
	 .help = "users whose processes are never decoded"},

	{.section = "Limits", .key = "TriggerBurst", .option = "trigger-burst", .argument = "N",
	 .initial = "10", .type = &config_type_number, BURST, FIELD(trigger_burst), .live = true,
	 .help = "most snapshots of a trigger per --trigger-interval; 0: no limit"},
	{.section = "Limits", .key = "TriggerInterval", .option = "trigger-interval",
	 .argument = "TIME", .initial = "1min", INTERVAL, FIELD(trigger_interval_usec),
	 .live = true, .help = "interval of --trigger-burst"},
	{.section = "Limits", .key = "UserBurst", .option = "user-burst", .argument = "N",
	 .initial = "5", .type = &config_type_number, BURST, FIELD(user_burst), .live = true,
	 .help = "most snapshots of a user per --user-interval; 0: no limit"},
	{.section = "Limits", .key = "UserInterval", .option = "user-interval",
	 .argument = "TIME", .initial = "1min", INTERVAL, FIELD(user_interval_usec),
	 .live = true, .help = "interval of --user-burst"},

	{.option = "worker", .initial = "", .initially = "the installed one", PATH,
	 FIELD(worker), .help = "path of the program ptsnap-decode"},
	{.option = "exit-with-command", .initial = "no", .type = &config_type_flag,
	 .valid = "yes, no", FIELD(exit_with_command),
	 .help = "when COMMAND ends, take a snapshot and exit with its status"},

	{.option = "emulate", .initial = "", .initially = "no: record", PATH, FIELD(emulate),
	 .emulated = true, .help = "keep the machine for a recorder that attaches at PATH"},
	{.option = "emu-cpus", .argument = "N", .initial = "2", .type = &config_type_number,
	 .valid = "a number from 1 to 64", .min = 1, .max = SOURCE_EMU_MAX_CPUS, FIELD(emu_cpus),
	 .emulated = true, .help = "number of virtual CPUs, 1 to 64"},
	{.option = "emu-quantum", .argument = "N", .initial = "1000000",
	 .type = &config_type_size, .valid = COUNT_VALID, .min = 1000, .max = 1000000000,
	 FIELD(emu_quantum), .emulated = true,
	 .help = "instructions that a thread runs before the next one"},
	{.option = "emu-tasks", .argument = "N", .initial = "1024", .type = &config_type_number,
	 .valid = "a number from 16 to 4096", .min = EMURING_MIN_TASKS, .max = EMURING_MAX_TASKS,
	 FIELD(emu_max_tasks), .emulated = true, .help = "most threads at a time, 16 to 4096"},
	{.option = "emu-clock", .initial = "host", .type = &config_type_word,
	 .words = clock_words, FIELD(emu_virtual_clock), .emulated = true,
	 .help = "clock of the emulated trace"},
	{.option = "emu-build-id", .initial = "no", .type = &config_type_flag, .valid = "yes, no",
	 FIELD(emu_build_id), .emulated = true,
	 .help = "mapping records have build ids, not device and inode"},
	{.option = "emu-overflow", .argument = "SIZE", .initial = "0",
	 .type = &config_type_size, .valid = "0 (none) or a size from 256 to 1G", .min = 256,
	 .max = 1u << 30, .zero = true, FIELD(emu_overflow_bytes), .emulated = true,
	 .help = "cause an internal overflow every SIZE bytes; 0: never"},
	{.option = "emu-lose", .argument = "N", .initial = "0", .type = &config_type_number,
	 .valid = "0 (none) or a number up to 4294967295", .min = 1, .max = UINT32_MAX,
	 .zero = true, FIELD(emu_lose_every), .emulated = true,
	 .help = "lose every Nth sideband record; 0: none"},
	{.option = "emu-offline", .argument = "CPU:FROM:TO", .initial = "", .initially = "none",
	 .type = &config_type_offline, .valid = OFFLINE_VALID, .emulated = true,
	 FIELD(emu_offline), .help = "take a CPU away for that time, e.g. 1:200ms:500ms"},
	{.option = "emu-truth", .initial = "", .initially = "none", DIRECTORY, FIELD(emu_truth),
	 .emulated = true, .help = "directory for logs of what was executed, for tests"},
	{.option = "emu-plugin", .initial = "", .initially = "the installed one", PATH,
	 FIELD(emu_plugin), .emulated = true, .help = "path of the plugin ptsnap-emupmu.so"},
	{.option = "emu-qemu", .initial = "", .initially = "by PATH", PATH,
	 FIELD(emu_qemu), .emulated = true, .help = "path of the program qemu-x86_64"},
};
/* clang-format on */

const size_t config_n_settings = ARRAY_SIZE(config_settings);

void config_words(const struct config_setting *s, const char *between, char ret[CONFIG_WORDS_SIZE])
{
	size_t used = 0;

	if (!s->words)
		snprintf(ret, CONFIG_WORDS_SIZE, "%s", s->valid);
	for (size_t i = 0; s->words && s->words[i] && used < CONFIG_WORDS_SIZE; i++)
		used += (size_t)snprintf(ret + used, CONFIG_WORDS_SIZE - used, "%s%s",
					 i > 0 ? between : "", s->words[i]);
}

size_t config_index(size_t offset)
{
	size_t i = 0;

	while (i < config_n_settings && config_settings[i].offset != offset)
		i++;
	return i;
}
