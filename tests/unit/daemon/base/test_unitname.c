/*
 * Units in paths of control groups that systemd and others make, and in paths on the bus.
 */
#include "daemon/base/unitname.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/daemon/scratch_dir.h"

static void expect(const char *cgroup, const char *unit)
{
	char name[ENTRY_UNIT_SIZE] = "old";
	int r = unitname_of_cgroup(cgroup, strlen(cgroup), name);

	assert_int_equal(r, *unit ? 0 : -ENOENT);
	assert_string_equal(name, unit);
}

static void unitname_of_cgroup_of_units_is_the_innermost(void **state)
{
	(void)state;
	expect("0::/system.slice/cron.service\n", "cron.service");
	expect("0::/system.slice/system-getty.slice/getty@tty1.service\n", "getty@tty1.service");
	expect("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.service\n",
	       "app-x.service");
	expect("0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope/sub\n",
	       "a.scope");
	expect("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope");
	expect("0::/init.scope\n", "init.scope");
	expect("0::/user.slice/user-1.slice/user@1.service/app.slice\n", "user@1.service");
	expect("0::/machine.slice/machine-web.scope/payload/system.slice/nginx.service\n",
	       "nginx.service");
	expect("0::/system.slice/docker-0123abcd.scope", "docker-0123abcd.scope");
	expect("0::/system.slice/run-r\\x2d1.service\n", "run-r\\x2d1.service");
	/* systemd puts "_" before names of the kernel's own files. */
	expect("0::/system.slice/_cpu.service\n", "cpu.service");
}

static void unitname_of_cgroup_of_slices_alone_is_the_last(void **state)
{
	(void)state;
	expect("0::/user.slice/user-0.slice\n", "user-0.slice");
	expect("0::/kubepods.slice/kubepods-pod1.slice/cri-abc\n", "kubepods-pod1.slice");
}

static void unitname_of_cgroup_of_nobodys_is_none(void **state)
{
	(void)state;
	expect("0::/\n", "");
	expect("0::/lxc/web\n", "");
	expect("", "");
	expect("0::", "");
	expect("0:", "");
	expect("12:cpu,cpuacct:/system.slice/cron.service\n", "");
	expect("1::/system.slice/cron.service\n", "");
	expect("0::/.service\n", "");
	expect("0::/@x.service\n", "");
	expect("0::/a b.service\n", "");
	expect("0::/a\x1b[31m.service\n", "");
	expect("0::/a@b@c.service\n", "");
}

static void unitname_of_cgroup_of_a_hybrid_is_that_of_systemds_hierarchy(void **state)
{
	(void)state;
	expect("13:memory:/other.service\n1:name=systemd:/system.slice/cron.service\n0::/\n",
	       "cron.service");
	expect("1:name=systemd:/\n0::/system.slice/cron.service\n", "cron.service");
	expect("1:name=systemd-x:/system.slice/cron.service\n0::/init.scope\n", "init.scope");
}

static void unitname_of_cgroup_of_a_long_name_is_none_or_the_one_above(void **state)
{
	char name[300], text[600];

	(void)state;
	snprintf(name, sizeof(name), "%0247d.service", 0); /* 255 bytes */
	snprintf(text, sizeof(text), "0::/a.scope/%s\n", name);
	expect(text, name);
	snprintf(text, sizeof(text), "0::/a.scope/0%s\n", name);
	expect(text, "a.scope");
}

static void unitname_of_cgroup_with_a_nul_inside_is_not_cut(void **state)
{
	static const char text[] = "0::/a.service\0.x/b\n";
	char name[ENTRY_UNIT_SIZE];

	(void)state;
	assert_int_equal(unitname_of_cgroup(text, sizeof(text) - 1, name), -ENOENT);
}

static void unitname_of_pid_reads_proc(void **state)
{
	char dir[SCRATCH_DIR_SIZE], path[SCRATCH_DIR_SIZE + 64], name[ENTRY_UNIT_SIZE];
	FILE *file;

	(void)state;
	scratch_dir_make(dir);
	snprintf(path, sizeof(path), "%s/77", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/77/cgroup", dir);
	file = fopen(path, "w");
	fputs("0::/system.slice/web.service\n", file);
	fclose(file);
	assert_int_equal(unitname_of_pid(dir, 77, name), 0);
	assert_string_equal(name, "web.service");
	assert_int_equal(unitname_of_pid(dir, 78, name), -ENOENT);
	assert_string_equal(name, "");
	assert_int_equal(unitname_of_pid(dir, 0, name), -ENOENT);
	assert_int_equal(unitname_of_pid(dir, ENTRY_ABSENT, name), -ENOENT);
	unlink(path);
	scratch_dir_remove(dir);
}

static void expect_path(const char *path, const char *unit)
{
	char name[ENTRY_UNIT_SIZE] = "";

	assert_int_equal(unitname_of_bus_path(path, name), *unit ? 0 : -EINVAL);
	assert_string_equal(name, unit);
}

static void unitname_of_bus_path_is_unescaped(void **state)
{
	(void)state;
	expect_path("/org/freedesktop/systemd1/unit/cron_2eservice", "cron.service");
	expect_path("/org/freedesktop/systemd1/unit/run_2dr_5cx2d1_40a_2escope",
		    "run-r\\x2d1@a.scope");
	expect_path("/org/freedesktop/systemd1/unit/cron_2e", "");
	expect_path("/org/freedesktop/systemd1/unit/a_00_2eservice", "");
	expect_path("/org/freedesktop/systemd1/unit/a_2", "");
	expect_path("/org/freedesktop/systemd1/unit/a_", "");
	expect_path("/org/freedesktop/systemd1/unit/a_1b_2eservice", "");
	expect_path("/org/freedesktop/systemd1/job/cron_2eservice", "");
	expect_path("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unitname_of_cgroup_of_units_is_the_innermost),
		cmocka_unit_test(unitname_of_cgroup_of_slices_alone_is_the_last),
		cmocka_unit_test(unitname_of_cgroup_of_nobodys_is_none),
		cmocka_unit_test(unitname_of_cgroup_of_a_hybrid_is_that_of_systemds_hierarchy),
		cmocka_unit_test(unitname_of_cgroup_of_a_long_name_is_none_or_the_one_above),
		cmocka_unit_test(unitname_of_cgroup_with_a_nul_inside_is_not_cut),
		cmocka_unit_test(unitname_of_pid_reads_proc),
		cmocka_unit_test(unitname_of_bus_path_is_unescaped),
	};

	return cmocka_run_group_tests_name("unitname", tests, NULL, NULL);
}
