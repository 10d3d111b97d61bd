/*
 * argv -> struct config: defaults, every option, and the one line for each mistake.
 */
#include "daemon/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

#define MAX_ARGS 32

static struct config config;
static char why[1024];

/* ARGS separated by blanks, after the program's name. */
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
	assert_null(config.pt_terms);
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
		/* One is back when the other goes; the same one again. */
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

/* Each mistake ends in one line that names it and what would be right. */
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
		{"--emu-clock=sun", "--emu-clock=sun", "host, virtual"},
		{"--decode-timeout=0", "--decode-timeout=0", "120s"},
		{"--decode-timeout=1y", "--decode-timeout=1y", "120s"},
		{"--socket=", "--socket=", "valid"},
		{"--socket", "--socket", "value"},
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
		{"2min", 0, 120000000}, {"1h", 0, 3600000000ull},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_parse_nothing_gives_defaults),
		cmocka_unit_test(config_parse_all_options_are_taken),
		cmocka_unit_test(config_parse_machine_is_described),
		cmocka_unit_test(config_parse_machine_takes_the_ends_of_ranges),
		cmocka_unit_test(config_parse_more_cpus_away_than_can_be_told_is_refused),
		cmocka_unit_test(config_parse_help_and_version_are_told),
		cmocka_unit_test(config_parse_mistake_is_explained),
		cmocka_unit_test(config_parse_size_reads_binary_suffixes),
		cmocka_unit_test(config_parse_time_reads_units),
	};

	return cmocka_run_group_tests_name("daemon/config", tests, NULL, NULL);
}
