/*
 * Configurations from argv and files: defaults, every option and key, which value wins, and the
 * line for each mistake.
 */
#include "daemon/config/config_setting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

#define MAX_ARGS 32

static struct config config;
static char why[1024];

/* Parses ARGS, separated by blanks. */
static int parse(const char *args)
{
	static char text[1024];
	static char *argv[MAX_ARGS + 1];
	int argc = 0;

	snprintf(text, sizeof(text), "ptsnapd %s", args);
	for (char *at = strtok(text, " "); at && argc < MAX_ARGS; at = strtok(NULL, " "))
		argv[argc++] = at;
	argv[argc] = NULL;
	why[0] = '\0';
	config_done(&config);
	return config_parse(argc, argv, &config, why, sizeof(why));
}

static void config_parse_nothing_gives_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_int_equal(config.source, CONFIG_AUTO);
	assert_string_equal(config.socket, "/run/ptsnap/io.ptsnap.recorder");
	assert_string_equal(config.state_dir, "/var/lib/ptsnap");
	assert_int_equal(config.aux_size, 8 << 20);
	assert_int_equal(config.data_size, 512 << 10);
	assert_int_equal(config.decode_timeout_usec, 120000000);
	assert_int_equal(config.store_max_use, 1 << 30);
	assert_int_equal(config.emu_cpus, 2);
	assert_int_equal(config.emu_quantum, 1000000);
	assert_int_equal(config.emu_max_tasks, 1024);
	assert_int_equal(config.emu_overflow_bytes, 0);
	assert_int_equal(config.emu_lose_every, 0);
	assert_int_equal(config.n_emu_offline, 0);
	assert_false(config.emu_build_id);
	assert_null(config.command);
	assert_int_equal(config.trace, SOURCE_TRACE_USER);
	assert_null(config.cpus);
	assert_null(config.preset);
	assert_null(config.pt_terms);
	assert_false(config.require_pt);
	assert_int_equal(config.ring_budget, 0);
	assert_int_equal(config.store_max_entries, 4096);
	assert_int_equal(config.decode_memory, 2ull << 30);
	assert_false(config.source_lines);
	assert_string_equal(config.debug_directory, "/usr/lib/debug");
	assert_false(config.status_to_all);
	assert_int_equal(config.action, CONFIG_SERVE);
	assert_null(config.config_file);
	assert_true(strstr(config.worker, "ptsnap-decode") != NULL);
	assert_true(strstr(config.emu_plugin, "ptsnap-emupmu.so") != NULL);
}

static void config_parse_all_options_are_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("--source=emulated --socket=/s --state-dir /d --aux-size=64K "
			       "--data-size=4096 --pt=tsc,cyc --decode-timeout=500ms"),
			 -EINVAL); /* no command */
	assert_int_equal(parse("--source=emulated --socket=/s --state-dir /d --aux-size=64K "
			       "--data-size=4096 --pt=tsc,cyc --decode-timeout=500ms -- a -b"),
			 0);
	assert_int_equal(config.source, CONFIG_EMULATED);
	assert_string_equal(config.socket, "/s");
	assert_string_equal(config.state_dir, "/d");
	assert_int_equal(config.aux_size, 65536);
	assert_int_equal(config.data_size, 4096);
	assert_string_equal(config.pt_terms, "tsc,cyc");
	assert_int_equal(config.decode_timeout_usec, 500000);
	assert_string_equal(config.command[0], "a");
	assert_string_equal(config.command[1], "-b");
	assert_null(config.command[2]);
	assert_int_equal(parse("--worker=/w --emu-plugin=/p --emu-qemu=/q --emu-truth=/t "
			       "--emu-clock=virtual --exit-with-command -- a"),
			 0);
	assert_string_equal(config.worker, "/w");
	assert_string_equal(config.emu_plugin, "/p");
	assert_string_equal(config.emu_qemu, "/q");
	assert_string_equal(config.emu_truth, "/t");
	assert_true(config.emu_virtual_clock);
	assert_true(config.exit_with_command);
}

static void config_parse_what_is_traced_is_taken(void **state)
{
	(void)state;
	assert_int_equal(
		parse("--trace=both --cpus=0-3,8 --preset=light --pt=cyc,config=0x1f "
		      "--ring-budget=64M --timeline-max=4M --require-pt --max-use=2G --max-snapshots=1 "
		      "--decode-memory=256M --source-lines"),
		0);
	assert_int_equal(config.trace, SOURCE_TRACE_BOTH);
	assert_string_equal(config.cpus, "0-3,8");
	assert_string_equal(config.preset, "light");
	assert_string_equal(config.pt_terms, "cyc,config=0x1f");
	assert_int_equal(config.ring_budget, 64 << 20);
	assert_int_equal(config.timeline_max, 4 << 20);
	assert_true(config.require_pt);
	assert_int_equal(config.store_max_use, 2ull << 30);
	assert_int_equal(config.store_max_entries, 1);
	assert_int_equal(config.decode_memory, 256 << 20);
	assert_true(config.source_lines);
	/* Lists grow, a flag can be taken back. */
	assert_int_equal(parse("--trace=kernel --cpus=1 --pt=tsc --cpus=4095 --pt=cyc --require-pt "
			       "--require-pt=no"),
			 0);
	assert_int_equal(config.trace, SOURCE_TRACE_KERNEL);
	assert_string_equal(config.cpus, "1,4095");
	assert_string_equal(config.pt_terms, "tsc,cyc");
	assert_false(config.require_pt);
}

static void config_parse_budget_can_be_a_part_of_memory(void **state)
{
	uint64_t one;

	(void)state;
	assert_int_equal(parse("--ring-budget=1%"), 0);
	one = config.ring_budget;
	assert_true(one > 0 && one % 4096 == 0);
	assert_int_equal(parse("--ring-budget=100%"), 0);
	assert_int_equal(config.ring_budget, 100 * one);
}

static void config_parse_other_actions_are_told(void **state)
{
	(void)state;
	assert_int_equal(parse("--check --source=emulated"), 0);
	assert_int_equal(config.action, CONFIG_CHECK);
	assert_false(config.json);
	assert_int_equal(parse("--check --json --config=/c"), 0);
	assert_true(config.json);
	assert_string_equal(config.config_file, "/c");
	assert_int_equal(parse("--test-config --config="), 0);
	assert_int_equal(config.action, CONFIG_TEST);
	assert_false(config.json);
	assert_string_equal(config.config_file, "");
	assert_int_equal(parse("--test-config=json"), 0);
	assert_int_equal(config.action, CONFIG_TEST);
	assert_true(config.json);
}

static void config_parse_machine_is_described(void **state)
{
	(void)state;
	assert_int_equal(parse("--emu-offline=7:200ms:1 --emu-cpus=8 --emu-quantum=5000 "
			       "--emu-overflow=64K --emu-lose=10 --emu-offline=0:3s: "
			       "--emu-build-id --emu-tasks=16 -- a"),
			 0);
	assert_int_equal(config.emu_cpus, 8);
	assert_int_equal(config.emu_quantum, 5000);
	assert_int_equal(config.emu_overflow_bytes, 65536);
	assert_int_equal(config.emu_lose_every, 10);
	assert_int_equal(config.emu_max_tasks, 16);
	assert_true(config.emu_build_id);
	assert_int_equal(config.n_emu_offline, 2);
	assert_int_equal(config.emu_offline[0].cpu, 7);
	assert_int_equal(config.emu_offline[0].from_usec, 200000);
	assert_int_equal(config.emu_offline[0].to_usec, 1000000);
	assert_int_equal(config.emu_offline[1].cpu, 0);
	assert_int_equal(config.emu_offline[1].from_usec, 3000000);
	assert_true(config.emu_offline[1].to_usec == UINT64_MAX);
}

/* The ends of each range are in it. */
static void config_parse_machine_takes_the_ends_of_ranges(void **state)
{
	static const char *const args[] = {
		"--emu-cpus=1",
		"--emu-cpus=64",
		"--emu-quantum=1000",
		"--emu-quantum=1000000000",
		"--emu-overflow=0",
		"--emu-overflow=256",
		"--emu-overflow=1G",
		"--emu-lose=0",
		"--emu-lose=1",
		"--emu-lose=4294967295",
		"--emu-tasks=16",
		"--emu-tasks=4096",
		"--emu-offline=1:0:1us",
		/* A CPU goes when the other one is back; the same CPU goes twice. */
		"--emu-offline=1:1:2 --emu-offline=0:2:3 --emu-offline=1:3:",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		if (parse(args[i]) != 0)
			fail_msg("%s: %s", args[i], why);
}

static void config_parse_help_and_version_are_told(void **state)
{
	(void)state;
	assert_int_equal(parse("--help"), CONFIG_HELP);
	assert_int_equal(parse("--version"), CONFIG_VERSION);
}

/* Each mistake gives one line that names it and what is valid. */
static void config_parse_mistake_is_explained(void **state)
{
	/* clang-format off */
	static const struct { const char *args, *names, *lists; } cases[] = {
		{"--nonsense", "--nonsense", "--state-dir"},
		{"-x", "-x", "--socket"},
		{"--source=magic", "--source=magic", "auto, intel_pt, emulated"},
		{"--aux-size=3M", "--aux-size=3M", "power of two"},
		{"--aux-size=2048", "--aux-size=2048", "4K"},
		{"--aux-size=1G", "--aux-size=1G", "512M"},
		{"--data-size=1024G", "--data-size=1024G", "512M"},
		{"--aux-size=", "--aux-size=", "power of two"},
		{"--data-size=1Q", "--data-size=1Q", "power of two"},
		{"--aux-size=99999999999999999999G", "--aux-size", "power of two"},
		{"--trace=all", "--trace=all", "user, kernel, both"},
		{"--preset=fast", "--preset=fast", "light, std, precise, custom"},
		{"--preset=", "--preset=", "light, std"},
		{"--cpus=", "--cpus=", "0-3,8"},
		{"--cpus=3-1", "--cpus=3-1", "0-3,8"},
		{"--cpus=4096", "--cpus=4096", "0-3,8"},
		{"--cpus=1,,2", "--cpus=1,,2", "0-3,8"},
		{"--cpus=1 --cpus=x", "--cpus=x", "0-3,8"},
		{"--pt=", "--pt=", "mtc_period"},
		{"--pt=tsc,", "--pt=tsc,", "mtc_period"},
		{"--pt=mtc_period=", "--pt=mtc_period=", "mtc_period=9"},
		{"--pt=TSC", "--pt=TSC", "mtc_period"},
		{"--ring-budget=0%", "--ring-budget=0%", "5%"},
		{"--ring-budget=101%", "--ring-budget=101%", "5%"},
		{"--ring-budget=5%%", "--ring-budget=5%%", "5%"},
		{"--ring-budget=1023K", "--ring-budget=1023K", "1M"},
		{"--ring-budget=0", "--ring-budget=0", "1M"},
		{"--require-pt=maybe", "--require-pt=maybe", "yes, no"},
		{"--max-use=1K", "--max-use=1K", "1M"},
		{"--max-snapshots=0", "--max-snapshots=0", "65536"},
		{"--max-snapshots=65537", "--max-snapshots=65537", "65536"},
		{"--decode-memory=1M", "--decode-memory=1M", "256M"},
		{"--test-config=xml", "--test-config=xml", "json"},
		{"--config", "--config", "value"},
		{"--emu-clock=sun", "--emu-clock=sun", "host, virtual"},
		{"--decode-timeout=0", "--decode-timeout=0", "120s"},
		{"--decode-timeout=1y", "--decode-timeout=1y", "120s"},
		{"--socket=", "--socket=", "valid"},
		{"--socket", "--socket", "value"},
		{"--emulate=/e", "--emulate", "COMMAND"},
		{"--emulate=/e --emu-socket=/s -- a", "--emu-socket", "not both"},
		{"--source=intel_pt --emu-socket=/s", "--emu-socket", "intel_pt"},
		{"--emu-socket=/s -- a", "--emu-socket", "no COMMAND"},
		{"--emu-cpus=0", "--emu-cpus=0", "1 to 64"},
		{"--emu-cpus=65", "--emu-cpus=65", "1 to 64"},
		{"--emu-cpus=all", "--emu-cpus=all", "1 to 64"},
		{"--emu-cpus=4294967297", "--emu-cpus", "1 to 64"},
		{"--emu-quantum=999", "--emu-quantum=999", "1000 to"},
		{"--emu-quantum=1000000001", "--emu-quantum", "1000000000"},
		{"--emu-overflow=255", "--emu-overflow=255", "256 to 1G"},
		{"--emu-overflow=2G", "--emu-overflow=2G", "0 (none)"},
		{"--emu-lose=-1", "--emu-lose=-1", "0 (none)"},
		{"--emu-lose=4294967296", "--emu-lose", "0 (none)"},
		{"--emu-tasks=15", "--emu-tasks=15", "16 to 4096"},
		{"--emu-tasks=4097", "--emu-tasks=4097", "16 to 4096"},
		{"--emu-offline=1", "--emu-offline=1", "CPU:FROM:TO"},
		{"--emu-offline=1:2", "--emu-offline=1:2", "CPU:FROM:TO"},
		{"--emu-offline=1::2", "--emu-offline=1::2", "CPU:FROM:TO"},
		{"--emu-offline=1:2:2", "--emu-offline=1:2:2", "FROM before TO"},
		{"--emu-offline=1:2:3:4", "--emu-offline=1:2:3:4", "CPU:FROM:TO"},
		{"--emu-offline=x:1:2", "--emu-offline=x:1:2", "CPU:FROM:TO"},
		{"--emu-offline=64:1:2", "--emu-offline=64:1:2", "CPU:FROM:TO"},
		{"--emu-offline=1:1:99999999999999999999s", "--emu-offline", "CPU:FROM:TO"},
		{"--emu-offline=2:1:2", "CPU 2", "only 2 (--emu-cpus)"},
		{"--emu-offline=2:1:2 --emu-cpus=2", "CPU 2", "only 2 (--emu-cpus)"},
		{"--emu-offline=1:1:3 --emu-offline=1:2:4", "CPU 1", "away already"},
		{"--emu-offline=1:2:4 --emu-offline=1:1:3", "CPU 1", "away already"},
		{"--emu-offline=0:1: --emu-offline=1:2:3", "CPU 1", "at least one"},
		{"--emu-offline=0:1:2 --emu-cpus=1", "CPU 0", "at least one"},
		{"--emu-offline", "--emu-offline", "value"},
		{"--source=emulated", "--source=emulated", "COMMAND"},
		{"--exit-with-command", "--exit-with-command", "COMMAND"},
	};
	/* clang-format on */
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(cases[i].args), -EINVAL);
		assert_non_null(strstr(why, cases[i].names));
		assert_non_null(strstr(why, cases[i].lists));
		assert_null(strchr(why, '\n'));
	}
}

static void config_parse_more_cpus_away_than_can_be_told_is_refused(void **state)
{
	char args[1024] = "--emu-cpus=2";

	(void)state;
	for (unsigned i = 0; i <= SOURCE_EMU_MAX_OFFLINE; i++) {
		size_t used = strlen(args);

		assert_int_equal(parse(args), 0);
		assert_int_equal(config.n_emu_offline, i);
		snprintf(args + used, sizeof(args) - used, " --emu-offline=1:%u:%u", 2 * i,
			 2 * i + 1);
	}
	assert_int_equal(parse(args), -EINVAL);
	assert_non_null(strstr(why, "up to 16"));
}

static void config_parse_size_reads_binary_suffixes(void **state)
{
	/* clang-format off */
	static const struct { const char *text; int r; uint64_t v; } cases[] = {
		{"0", 0, 0}, {"1", 0, 1}, {"4K", 0, 4096}, {"8M", 0, 8 << 20}, {"2G", 0, 2ull << 30},
		{"", -EINVAL, 0}, {"K", -EINVAL, 0}, {"-1", -EINVAL, 0}, {"1KK", -EINVAL, 0},
		{"18446744073709551616", -EINVAL, 0}, {"17179869184G", -EINVAL, 0},
		{"0x10", -EINVAL, 0}, {" 1", -EINVAL, 0},
	};
	/* clang-format on */
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t v = 0;

		assert_int_equal(config_parse_size(cases[i].text, &v), cases[i].r);
		assert_int_equal(v, cases[i].v);
	}
}

static void config_parse_time_reads_units(void **state)
{
	/* clang-format off */
	static const struct { const char *text; int r; uint64_t v; } cases[] = {
		{"7", 0, 7000000}, {"7us", 0, 7}, {"7ms", 0, 7000}, {"7s", 0, 7000000},
		{"2min", 0, 120000000}, {"1h", 0, 3600000000ull}, {"1min 30s", 0, 90000000},
		{"1h  1", 0, 3601000000ull}, {"1min ", -EINVAL, 0}, {" 1s", -EINVAL, 0},
		{"5124095576h 5124095576h", -EINVAL, 0},
		{"", -EINVAL, 0}, {"s", -EINVAL, 0}, {"1 s", -EINVAL, 0},
		{"99999999999999999h", -EINVAL, 0},
	};
	/* clang-format on */
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t v = 0;

		assert_int_equal(config_parse_time(cases[i].text, &v), cases[i].r);
		if (cases[i].r == 0)
			assert_int_equal(v, cases[i].v);
	}
}

/* Warnings, a line each; directories' names are left out. */
static char warned[4096];
static char dir[SCRATCH_DIR_SIZE];

static void on_line(void *userdata, const char *text)
{
	size_t used = strlen(warned);

	(void)userdata;
	if (strncmp(text, dir, strlen(dir)) == 0)
		text += strlen(dir);
	snprintf(warned + used, sizeof(warned) - used, "%s\n", text);
}

/* Reads ARGS and the file TEXT, and expects WARNINGS and WHY_TEXT. */
static void expect_file(const char *args, const char *text, int r, unsigned n_lost,
			const char *warnings)
{
	const char *const directories[] = {dir, NULL};
	struct config_warn warn = {.line = on_line};
	char path[SCRATCH_DIR_SIZE + 16];
	FILE *file;

	snprintf(path, sizeof(path), "%s/ptsnapd.conf", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	warned[0] = '\0';
	assert_int_equal(parse(args), 0);
	assert_int_equal(config_read_files(&config, directories, &warn, why, sizeof(why)), r);
	assert_string_equal(warned, warnings);
	assert_int_equal(warn.n_lost, n_lost);
}

static int setup(void **state)
{
	(void)state;
	scratch_dir_make(dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_dir_remove(dir);
	config_done(&config);
	return 0;
}

static void config_read_files_every_key_is_taken(void **state)
{
	(void)state;
	expect_file(
		"-- a",
		"[Trace]\nSource=emulated\nRequirePT=on\nTrace=kernel\nCPUs=1\n"
		"Preset=precise\nTerms=cyc\n"
		"[Rings]\nRingSize=64K\nSidebandRingSize=4K\nRingBudget=1G\n"
		"TimelineMax=5M\n"
		"[Service]\nSocket=/s\nStateDirectory=/d\nMaxUse=2G\nMaxSnapshots=7\n"
		"DecodeTimeout=1min 5s\nDecodeMemoryMax=1G\nSourceLines=yes\nDecoderSocket=/w\n"
		"MetricsFile=/m\nDebugDirectory=none\n"
		"[Access]\nAdminGroup=a\nAllowStatusToAll=yes\nExcludeUnits=u\n"
		"ExcludeUsers=1\n[Limits]\nTriggerBurst=0\nTriggerInterval=2s\nUserBurst=3\nUserInterval=1h\n",
		0, 0, "");
	assert_int_equal(config.source, CONFIG_EMULATED);
	assert_true(config.require_pt);
	assert_int_equal(config.trace, SOURCE_TRACE_KERNEL);
	assert_string_equal(config.cpus, "1");
	assert_string_equal(config.preset, "precise");
	assert_string_equal(config.pt_terms, "cyc");
	assert_int_equal(config.aux_size, 65536);
	assert_int_equal(config.data_size, 4096);
	assert_int_equal(config.ring_budget, 1 << 30);
	assert_string_equal(config.socket, "/s");
	assert_string_equal(config.state_dir, "/d");
	assert_int_equal(config.store_max_use, 2ull << 30);
	assert_int_equal(config.store_max_entries, 7);
	assert_int_equal(config.decode_timeout_usec, 65000000);
	assert_int_equal(config.decode_memory, 1 << 30);
	assert_true(config.source_lines);
	assert_string_equal(config.decoder_socket, "/w");
	assert_null(config.debug_directory);
	assert_string_equal(config.admin_group, "a");
	assert_true(config.status_to_all);
	assert_string_equal(config.exclude_units, "u");
	assert_string_equal(config.exclude_users, "1");
	assert_int_equal(config.trigger_burst, 0);
	assert_int_equal(config.trigger_interval_usec, 2000000);
	assert_int_equal(config.user_burst, 3);
	assert_int_equal(config.user_interval_usec, 3600000000);
	/* These were all settings, except the one that a COMMAND rules out. */
	for (size_t i = 0; i < config_n_settings; i++)
		if (i != config_index(offsetof(struct config, emu_socket)))
			assert_int_equal(config.values[i].origin, config_settings[i].key
									  ? CONFIG_BY_FILE
									  : CONFIG_BY_DEFAULT);
}

static void config_read_files_command_line_wins(void **state)
{
	(void)state;
	expect_file(
		"--aux-size=1M --cpus=2 --pt=tsc",
		"[Rings]\nRingSize=2M\nRingSize=3M\nSidebandRingSize=64K\n"
		"[Trace]\nCPUs=0\nCPUs=\nTerms=cyc\n",
		0, 1,
		"/ptsnapd.conf:3: RingSize=3M is not valid, ignored; valid: a power of two from "
		"4K to 512M\n");
	assert_int_equal(config.aux_size, 1 << 20);
	assert_int_equal(config.data_size, 64 << 10);
	assert_string_equal(config.cpus, "2");
	assert_string_equal(config.pt_terms, "tsc");
}

static void config_read_files_lists_grow_until_they_are_emptied(void **state)
{
	(void)state;
	expect_file("", "[Trace]\nCPUs=0-3\nTerms=tsc\nCPUs=8\nTerms=cyc,mtc\nTerms=mtc_period=3\n",
		    0, 0, "");
	assert_string_equal(config.cpus, "0-3,8");
	assert_string_equal(config.pt_terms, "tsc,cyc,mtc,mtc_period=3");
	expect_file("",
		    "[Trace]\nCPUs=0-3\nTerms=tsc\nCPUs=\nTerms=\nCPUs=8\n[Rings]\n"
		    "RingSize=1M\nRingSize=\n",
		    0, 0, "");
	assert_string_equal(config.cpus, "8");
	assert_null(config.pt_terms);
	assert_int_equal(config.aux_size, 8 << 20);
}

static void config_read_files_wrong_values_leave_what_was(void **state)
{
	(void)state;
	expect_file("",
		    "[Trace]\nTrace=both\nTrace=all\nCPUs=1\nCPUs=x\nRequirePT=2\nColour=red\n"
		    "[Service]\nTrace=user\ndecodetimeout=1s\nSource=auto\n[Colours]\nA=1\n",
		    0, 3,
		    "/ptsnapd.conf:3: Trace=all is not valid, ignored; valid: user, kernel, both\n"
		    "/ptsnapd.conf:5: CPUs=x is not valid, ignored; valid: a list of CPUs as the "
		    "kernel writes it, such as 0-3,8\n"
		    "/ptsnapd.conf:6: RequirePT=2 is not valid, ignored; valid: yes, no\n"
		    "/ptsnapd.conf:7: unknown key Colour in section [Trace], ignored\n"
		    "/ptsnapd.conf:9: unknown key Trace in section [Service], ignored\n"
		    "/ptsnapd.conf:10: unknown key decodetimeout in section [Service], ignored\n"
		    "/ptsnapd.conf:11: unknown key Source in section [Service], ignored\n"
		    "/ptsnapd.conf:12: unknown section [Colours], ignored\n");
	assert_int_equal(config.trace, SOURCE_TRACE_BOTH);
	assert_string_equal(config.cpus, "1");
	assert_false(config.require_pt);
}

/* Settings that are valid, but not together. */
static void config_read_files_what_does_not_go_together_is_dropped(void **state)
{
	(void)state;
	expect_file(
		"", "[Trace]\nSource=emulated\nPreset=custom\n", 0, 2,
		"/ptsnapd.conf:2: Source=emulated needs EmulatorSocket= or a COMMAND on the command line, ignored\n"
		"/ptsnapd.conf:3: Preset=custom needs Terms=, ignored\n");
	assert_int_equal(config.source, CONFIG_AUTO);
	assert_null(config.preset);
	expect_file("--test-config", "[Trace]\nSource=emulated\n", 0, 0, "");
	expect_file("", "[Trace]\nSource=emulated\nEmulatorSocket=/s\n", 0, 0, "");
	expect_file("--emulate=/e -- a", "[Trace]\nSource=emulated\nEmulatorSocket=/s\n", 0, 0, "");
	expect_file("-- a", "[Trace]\nEmulatorSocket=/s\n", 0, 0, "");
	expect_file("--pt=cyc -- a", "[Trace]\nSource=emulated\nPreset=custom\n", 0, 0, "");
	expect_file("--preset=custom", "[Trace]\nTerms=cyc\n", 0, 0, "");
	expect_file("--preset=custom", "", -EINVAL, 0, "");
	assert_non_null(strstr(why, "--pt"));
}

static void config_read_files_origin_is_kept(void **state)
{
	const struct config_value *v;

	(void)state;
	expect_file("--trace=both", "[Trace]\nCPUs=1\nTrace=user\n", 0, 0, "");
	v = &config.values[config_index(offsetof(struct config, cpus))];
	assert_int_equal(v->origin, CONFIG_BY_FILE);
	assert_int_equal(v->line, 2);
	assert_string_equal(v->file + strlen(dir), "/ptsnapd.conf");
	v = &config.values[config_index(offsetof(struct config, trace))];
	assert_int_equal(v->origin, CONFIG_BY_COMMAND_LINE);
	assert_null(v->file);
	assert_int_equal(config.n_files, 1);
	assert_string_equal(config.files[0] + strlen(dir), "/ptsnapd.conf");
}

static void config_read_files_config_option_is_the_only_file(void **state)
{
	const char *const directories[] = {dir, NULL};
	struct config_warn warn = {.line = on_line};
	char args[SCRATCH_DIR_SIZE + 32];

	(void)state;
	expect_file("--config=", "[Trace]\nTrace=both\n", 0, 0, "");
	assert_int_equal(config.trace, SOURCE_TRACE_USER);
	assert_int_equal(config.n_files, 0);
	expect_file("--config=/no/such/file", "[Trace]\nTrace=both\n", -EINVAL, 0, "");
	assert_string_equal(why, "--config=/no/such/file: there is no such file");
	snprintf(args, sizeof(args), "--config=%s/ptsnapd.conf", dir);
	assert_int_equal(parse(args), 0);
	assert_int_equal(config_read_files(&config, directories + 1, &warn, why, sizeof(why)), 0);
	assert_int_equal(config.trace, SOURCE_TRACE_BOTH);
}

/* getopt_long() would accept an abbreviation of one name for the other. */
static void config_settings_are_named_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < config_n_settings; i++) {
		const struct config_setting *s = &config_settings[i];

		assert_int_equal(config_index(s->offset), i);
		assert_true(*s->initial || s->initially);
		assert_true(s->valid || s->words);
		for (size_t j = 0; j < i; j++) {
			const struct config_setting *other = &config_settings[j];

			assert_string_not_equal(s->option, other->option);
			if (s->key && other->key)
				assert_string_not_equal(s->key, other->key);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_parse_nothing_gives_defaults),
		cmocka_unit_test(config_parse_all_options_are_taken),
		cmocka_unit_test(config_parse_what_is_traced_is_taken),
		cmocka_unit_test(config_parse_budget_can_be_a_part_of_memory),
		cmocka_unit_test(config_parse_other_actions_are_told),
		cmocka_unit_test(config_parse_machine_is_described),
		cmocka_unit_test(config_parse_machine_takes_the_ends_of_ranges),
		cmocka_unit_test(config_parse_more_cpus_away_than_can_be_told_is_refused),
		cmocka_unit_test(config_parse_help_and_version_are_told),
		cmocka_unit_test(config_parse_mistake_is_explained),
		cmocka_unit_test(config_parse_size_reads_binary_suffixes),
		cmocka_unit_test(config_parse_time_reads_units),
		cmocka_unit_test(config_read_files_every_key_is_taken),
		cmocka_unit_test(config_read_files_command_line_wins),
		cmocka_unit_test(config_read_files_lists_grow_until_they_are_emptied),
		cmocka_unit_test(config_read_files_wrong_values_leave_what_was),
		cmocka_unit_test(config_read_files_what_does_not_go_together_is_dropped),
		cmocka_unit_test(config_read_files_origin_is_kept),
		cmocka_unit_test(config_read_files_config_option_is_the_only_file),
		cmocka_unit_test(config_settings_are_named_once),
	};

	return cmocka_run_group_tests_name("daemon/config", tests, setup, teardown);
}
