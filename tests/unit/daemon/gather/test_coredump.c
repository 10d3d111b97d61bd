/*
 * The core file that belongs to a snapshot is found by its name alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/gather/evidence.h"
#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

#define BOOT	  "0123456789abcdef0123456789abcdef"
#define BOOT_UUID "01234567-89ab-cdef-0123-456789abcdef"
#define OTHER	  "fedcba9876543210fedcba9876543210"
#define NOW	  1700000000000000ull /* us */

static void coredump_parse_names_of_systemd_gives_fields(void **state)
{
	static const char *const good[] = {
		"core.nginx.33." BOOT ".4711.1700000000000000",
		"core.nginx.33." BOOT ".4711.1700000000000000.zst",
		"core.a.b.33." BOOT ".4711.1700000000000000.lz4",
		"core.33.33." BOOT ".4711.1700000000000000.xz",
	};
	struct coredump_name name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(coredump_parse(good[i], &name));
		assert_int_equal(name.pid, 4711);
		assert_int_equal(name.uid, 33);
		assert_int_equal(name.realtime_usec, NOW);
		assert_string_equal(name.boot_id, BOOT);
	}
}

static void coredump_parse_other_names_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"core",
		"core.",
		"core.nginx",
		"nginx.33." BOOT ".4711.1700000000000000",
		"core.33." BOOT ".4711.1700000000000000",
		"core.nginx.33." BOOT ".4711.",
		"core.nginx.33." BOOT ".x.1700000000000000",
		"core.nginx.33." BOOT ".4711.99999999999999999999999",
		"core.nginx.33." BOOT "0.4711.1700000000000000",
		"core.nginx.33.0123456789ABCDEF0123456789ABCDEF.4711.1700000000000000",
		"core.nginx.x." BOOT ".4711.1700000000000000",
	};
	struct coredump_name name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(coredump_parse(bad[i], &name));
}

static void add_process(struct manifest *m, uint64_t pid, const char *cgroup)
{
	struct manifest_process *p = manifest_add_process(m);

	assert_non_null(p);
	p->pid = pid;
	p->cgroup = strdup(cgroup);
	assert_non_null(p->cgroup);
}

/* Looks for a core file of nginx.service, whose process 4711 was in CGROUP, or of process 99. */
static void find_in(const char *cgroup, const char *const *names, char ret[ENTRY_CORE_SIZE])
{
	char dir[SCRATCH_DIR_SIZE], path[SCRATCH_DIR_SIZE + 256];
	struct manifest m;

	scratch_dir_make(dir);
	manifest_init(&m);
	m.boot_id = strdup(BOOT_UUID);
	m.realtime_ns = NOW * 1000;
	add_process(&m, 4711, cgroup);
	for (; *names; names++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", dir, *names);
		f = fopen(path, "we");
		assert_non_null(f);
		fclose(f);
	}
	assert_int_equal(coredump_find(dir, &m, "nginx.service", 99, ret), 0);
	manifest_done(&m);
	scratch_dir_remove(dir);
}

static void find(const char *const *names, char ret[ENTRY_CORE_SIZE])
{
	find_in("/system.slice/nginx.service", names, ret);
}

static void coredump_find_of_the_units_process_is_found(void **state)
{
	static const char *const names[] = {
		"core.nginx.33." BOOT ".4711.1699999999000000.zst",
		"core.nginx.33." BOOT ".4711.1699999998000000.zst",
		"core.other.33." BOOT ".4712.1699999999500000.zst",
		NULL,
	};
	char ret[ENTRY_CORE_SIZE];

	(void)state;
	find(names, ret);
	assert_string_equal(ret, names[0]);
}

static void coredump_find_of_the_process_is_found(void **state)
{
	static const char *const names[] = {"core.x.0." BOOT ".99.1699999999000000", NULL};
	char ret[ENTRY_CORE_SIZE];

	(void)state;
	find(names, ret);
	assert_string_equal(ret, names[0]);
}

static void coredump_find_of_the_units_groups_is_found(void **state)
{
	static const char *const cgroups[] = {
		"/nginx.service",
		"/system.slice/nginx.service/worker/1",
		"/system.slice/system-nginx.slice/nginx.service/other.service",
	};
	static const char *const names[] = {"core.x.33." BOOT ".4711.1699999999000000", NULL};
	char ret[ENTRY_CORE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
		find_in(cgroups[i], names, ret);
		assert_string_equal(ret, names[0]);
	}
}

/* Any user can have a unit of the same name in a systemd of his own, or a cgroup of that name. */
static void coredump_find_of_anothers_unit_of_that_name_is_not(void **state)
{
	static const char *const cgroups[] = {
		"",
		"/",
		"/system.slice",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service",
		"/machine.slice/systemd-nspawn@x.service/payload/system.slice/nginx.service",
		"/system.slice/other.service/nginx.service",
		"/.slice/x/nginx.service",
	};
	static const char *const names[] = {"core.x.33." BOOT ".4711.1699999999000000", NULL};
	char ret[ENTRY_CORE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
		find_in(cgroups[i], names, ret);
		assert_string_equal(ret, "");
	}
}

static void coredump_find_of_other_boots_and_times_is_not(void **state)
{
	static const char *const names[] = {
		"core.nginx.33." OTHER ".4711.1699999999000000.zst",
		"core.nginx.33." BOOT ".4711.1699990000000000.zst",
		"core.nginx.33." BOOT ".4711.1700000010000000.zst",
		NULL,
	};
	char ret[ENTRY_CORE_SIZE];

	(void)state;
	find(names, ret);
	assert_string_equal(ret, "");
}

static void coredump_find_without_directory_is_an_error(void **state)
{
	char ret[ENTRY_CORE_SIZE];
	struct manifest m;

	(void)state;
	manifest_init(&m);
	assert_int_equal(coredump_find("/nonexistent", &m, "", 1, ret), -ENOENT);
	assert_string_equal(ret, "");
	manifest_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(coredump_parse_names_of_systemd_gives_fields),
		cmocka_unit_test(coredump_parse_other_names_refuses),
		cmocka_unit_test(coredump_find_of_the_units_process_is_found),
		cmocka_unit_test(coredump_find_of_the_process_is_found),
		cmocka_unit_test(coredump_find_of_the_units_groups_is_found),
		cmocka_unit_test(coredump_find_of_anothers_unit_of_that_name_is_not),
		cmocka_unit_test(coredump_find_of_other_boots_and_times_is_not),
		cmocka_unit_test(coredump_find_without_directory_is_an_error),
	};

	return cmocka_run_group_tests_name("coredump", tests, NULL, NULL);
}
