/*
 * Records and facts from a made-up /proc, and from that of this host.
 */
#include "capture/proc/procscan.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procmaps.h"
#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "tests/unit/capture/tree.h"

#define MAX_SEEN 64

/* The records that came, a line for each. */
struct seen {
	char lines[MAX_SEEN][PATH_MAX + 128];
	size_t n;
	size_t stop_at; /* the record at which the callback returns STOP */
	uint64_t time;	/* of all records */
};
#define STOP (-ESRCH) /* also the result of a vanished process */

static void describe(const struct perfrecord *p, char *ret, size_t size)
{
	if (p->type == PERF_RECORD_FORK)
		snprintf(ret, size, "FORK %u/%u from %u/%u%s", p->u.task.pid, p->u.task.tid,
			 p->u.task.ppid, p->u.task.ptid,
			 p->misc & PERF_RECORD_MISC_FORK_EXEC ? " no copy" : "");
	else if (p->type == PERF_RECORD_COMM)
		snprintf(ret, size, "COMM %u/%u %s%s", p->u.comm.pid, p->u.comm.tid, p->u.comm.comm,
			 p->misc & PERF_RECORD_MISC_COMM_EXEC ? " exec" : "");
	else if (p->type == PERF_RECORD_MMAP2)
		snprintf(ret, size, "MMAP2 %u/%u %llx+%llx @%llx %u:%u %llu p%u f%u %s",
			 p->u.mmap2.pid, p->u.mmap2.tid, (unsigned long long)p->u.mmap2.addr,
			 (unsigned long long)p->u.mmap2.len, (unsigned long long)p->u.mmap2.pgoff,
			 p->u.mmap2.maj, p->u.mmap2.min, (unsigned long long)p->u.mmap2.ino,
			 p->u.mmap2.prot, p->u.mmap2.flags, p->u.mmap2.filename);
	else
		fail_msg("type %u", p->type);
}

static int on_record(void *userdata, const void *record, size_t size)
{
	struct seen *seen = userdata;
	struct perfrecord p;

	assert_int_equal(perfrecord_parse(record, size, &p), 0);
	assert_int_equal(p.size, size);
	assert_int_equal(p.time, seen->time);
	assert_int_equal(p.cpu, seen->time ? UINT32_MAX : 0);
	assert_true(seen->n < MAX_SEEN);
	describe(&p, seen->lines[seen->n], sizeof(seen->lines[0]));
	return ++seen->n == seen->stop_at ? STOP : 0;
}

static const char user_stat[] =
	"100 (init) S 1 100 100 0 -1 4194560 9 0 0 0 5 6 -7 0 20 0 1 0 250 170000 100 "
	"18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
static const char kernel_stat[] =
	"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0 "
	"18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
static const char maps[] =
	"555555554000-555555556000 r--p 00000000 fe:01 1234                       /usr/bin/init\n"
	"555555556000-555555559000 r-xp 00002000 fe:01 1234                       /usr/bin/init\n"
	"7ffff7000000-7ffff7001000 rwxs 00000000 00:0e 77                         /dev/shm/a b "
	"(deleted)\n"
	"7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0 \n"
	"7ffff7fc1000-7ffff7fc2000 r-xp 00000000 00:00 0                          [vdso]\n"
	"7ffff7fc2000-7ffff7fc3000 r-xp 00000000 00:00 0                          [anon:JIT]\n";

static int set_up(void **state)
{
	char *root = tree_new();

	tree_write(root, "100/stat", user_stat);
	tree_write(root, "100/task/100/comm", "init\n");
	tree_write(root, "100/maps", maps);
	tree_write(root, "uptime", "1 1\n");
	tree_write(root, "self/stat", user_stat);
	*state = root;
	return 0;
}

static int tear_down(void **state)
{
	tree_free(*state);
	return 0;
}

static void assert_lines(const struct seen *seen, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n && i < seen->n; i++)
		assert_string_equal(seen->lines[i], lines[i]);
	assert_int_equal(seen->n, n);
}

static const char *const process_100[] = {
	"FORK 100/100 from 1/1 no copy",
	"COMM 100/100 init exec",
	"MMAP2 100/100 555555556000+3000 @2000 254:1 1234 p5 f2 /usr/bin/init",
	"MMAP2 100/100 7ffff7000000+1000 @0 0:14 77 p7 f1 /dev/shm/a b (deleted)",
	"MMAP2 100/100 7ffff7fc0000+1000 @0 0:0 0 p5 f2 //anon",
	"MMAP2 100/100 7ffff7fc1000+1000 @0 0:0 0 p5 f2 [vdso]",
	"MMAP2 100/100 7ffff7fc2000+1000 @0 0:0 0 p5 f2 //anon",
};

static void procscan_process_gives_what_the_kernel_would_have(void **state)
{
	struct seen seen = {0};

	assert_int_equal(procscan_process(*state, 100, on_record, &seen), 0);
	assert_lines(&seen, process_100, ARRAY_SIZE(process_100));
}

static void procscan_process_threads_come_from_their_leader(void **state)
{
	static const char *const lines[] = {
		"FORK 100/100 from 1/1 no copy",
		"COMM 100/100 init exec",
		"FORK 100/105 from 100/100 no copy",
		"COMM 100/105 worker",
	};
	struct seen seen = {0};

	tree_write(*state, "100/task/105/comm", "worker\n");
	tree_write(*state, "100/task/106/stat", "it ended while we looked");
	tree_write(*state, "100/task/strange/comm", "no thread\n");
	tree_write(*state, "100/maps", "");
	assert_int_equal(procscan_process(*state, 100, on_record, &seen), 0);
	assert_lines(&seen, lines, ARRAY_SIZE(lines));
}

/* Bit 61: a page of the file; bit 63: present (pagemap.rst). */
#define FILE_PAGE (1ull << 63 | 1ull << 61)

static void put_pagemap(const char *root, uint64_t address, const uint64_t *words, size_t n)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/100/pagemap", root);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fseeko(f, (off_t)(address / 4096 * 8), SEEK_SET), 0);
	assert_int_equal(fwrite(words, 8, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void procscan_again_tells_of_pages_that_were_written_to(void **state)
{
	static const struct {
		uint64_t words[3];
		uint32_t prot;
	} cases[] = {
		{{FILE_PAGE, 0, FILE_PAGE}, PROT_READ | PROT_EXEC},
		{{FILE_PAGE, FILE_PAGE, 1ull << 63}, PROT_READ | PROT_WRITE | PROT_EXEC},
		{{1ull << 62, 0, 0}, PROT_READ | PROT_WRITE | PROT_EXEC},
	};

	tree_write(*state, "100/task/105/comm", "worker\n");
	tree_write(*state, "100/maps",
		   "555555556000-555555559000 r-xp 00002000 fe:01 1234 /usr/bin/init\n"
		   "7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0 \n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct seen seen = {.time = 77};
		char line[128];
		const char *lines[] = {"FORK 100/100 from 1/1 no copy", "COMM 100/100 init",
				       "COMM 100/105 worker", line,
				       "MMAP2 100/100 7ffff7fc0000+1000 @0 0:0 0 p5 f2 //anon"};

		snprintf(line, sizeof(line),
			 "MMAP2 100/100 555555556000+3000 @2000 254:1 1234 p%u f2 /usr/bin/init",
			 cases[i].prot);
		put_pagemap(*state, 0x555555556000, cases[i].words, 3);
		assert_int_equal(procscan_again(*state, 100, 77, on_record, &seen), 0);
		assert_lines(&seen, lines, ARRAY_SIZE(lines));
	}
}

static void procscan_again_without_pagemap_trusts_no_page(void **state)
{
	struct seen seen = {.time = 77};

	assert_int_equal(procscan_again(*state, 100, 77, on_record, &seen), 0);
	assert_string_equal(seen.lines[2],
			    "MMAP2 100/100 555555556000+3000 @2000 254:1 1234 p7 f2 /usr/bin/init");
}

static void procscan_again_of_a_kernel_thread_gives_nothing(void **state)
{
	struct seen seen = {.time = 77};

	tree_write(*state, "2/stat", kernel_stat);
	assert_int_equal(procscan_again(*state, 2, 77, on_record, &seen), 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(procscan_again(*state, 3, 77, on_record, &seen), -ESRCH);
}

static void procscan_process_kernel_thread_has_no_mappings(void **state)
{
	static const char *const lines[] = {
		"FORK 2/2 from 0/0 no copy",
		"COMM 2/2 kworker/u8:2-ev exec", /* cut as in records of the kernel */
	};
	struct seen seen = {0};

	tree_write(*state, "2/stat", kernel_stat);
	tree_write(*state, "2/task/2/comm", "kworker/u8:2-events_unbound\n");
	tree_write(*state, "2/maps", maps);
	assert_int_equal(procscan_process(*state, 2, on_record, &seen), 0);
	assert_lines(&seen, lines, ARRAY_SIZE(lines));
}

static void procscan_process_hostile_names_do_no_harm(void **state)
{
	static const char *const lines[] = {
		"FORK 100/100 from 31/31 no copy",
		"COMM 100/100 ) R 9 (\n(x exec",
		"MMAP2 100/100 1000+1000 @0 8:1 5 p5 f2 /tmp/two\nlines\\134 %s (deleted)",
		"MMAP2 100/100 3000+1000 @0 8:1 6 p5 f2 /tmp/\x01\xff",
	};
	struct seen seen = {0};

	tree_write(*state, "100/stat",
		   "100 () R 9 (\n(x) S 31 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 "
		   "0 1 0 77 0 0\n");
	tree_write(*state, "100/task/100/comm", ") R 9 (\n(x\n");
	tree_write(*state, "100/maps",
		   "1000-2000 r-xp 00000000 08:01 5 /tmp/two\\012lines\\134 %s (deleted)\n"
		   "3000-4000 r-xp 00000000 08:01 6 /tmp/\x01\xff\n");
	assert_int_equal(procscan_process(*state, 100, on_record, &seen), 0);
	assert_lines(&seen, lines, ARRAY_SIZE(lines));
}

static void procscan_process_unintelligible_and_endless_lines_are_left_out(void **state)
{
	size_t size = 3 * PROCMAPS_MAX_LINE, used;
	char *text = malloc(size + 256);
	struct seen seen = {0};

	assert_non_null(text);
	used = (size_t)sprintf(text, "1000-2000 r-xp 00000000 08:01 5 /");
	memset(text + used, 'p', size - used);
	sprintf(text + size, "\n\ngarbage\n5000-4000 r-xp 0 0:0 0 /backwards\n"
			     "8000-9000 r-xp 00000000 08:01 6 /after");
	tree_write(*state, "100/maps", text);
	free(text);
	assert_int_equal(procscan_process(*state, 100, on_record, &seen), 0);
	assert_int_equal(seen.n, 4);
	/* The path is cut at PATH_MAX, as in records of the kernel. */
	assert_in_range(strlen(seen.lines[2]), PATH_MAX - 2, PATH_MAX + 60);
	assert_string_equal(seen.lines[3], "MMAP2 100/100 8000+1000 @0 8:1 6 p5 f2 /after");
}

static void procscan_process_gone_is_esrch(void **state)
{
	struct seen seen = {0};

	assert_int_equal(procscan_process(*state, 101, on_record, &seen), -ESRCH);
	tree_write(*state, "101/cmdline", "");
	assert_int_equal(procscan_process(*state, 101, on_record, &seen), -ESRCH);
	tree_write(*state, "101/stat", user_stat);
	assert_int_equal(procscan_process(*state, 101, on_record, &seen), -ESRCH);
	assert_int_equal(seen.n, 0);
}

static void procscan_process_unintelligible_stat_is_ebadmsg(void **state)
{
	static const char *const bad[] = {
		"",
		"100 (x",
		"100 (x)",
		"100 (x) S",
		"100 (x) S 1 2 3",
		"100 (x)S 1",
		"100 (x) S a 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0",
		"100 (x) S 99999999999 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0",
		"100 (x) S 1 0 0 0 -1 99999999999999999999 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0",
	};
	struct seen seen = {0};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		tree_write(*state, "100/stat", bad[i]);
		assert_int_equal(procscan_process(*state, 100, on_record, &seen), -EBADMSG);
	}
	assert_int_equal(seen.n, 0);
}

static void procscan_process_stops_at_the_callers_result(void **state)
{
	for (size_t at = 1; at <= ARRAY_SIZE(process_100); at++) {
		struct seen seen = {.stop_at = at};

		assert_int_equal(procscan_process(*state, 100, on_record, &seen), STOP);
		assert_int_equal(seen.n, at);
	}
}

static void procscan_all_leaves_out_what_vanished(void **state)
{
	struct seen seen = {0};

	tree_write(*state, "99/cmdline", "gone\n");
	tree_write(*state, "101/stat", user_stat);
	tree_write(*state, "0/stat", user_stat);
	tree_write(*state, "99999999999/stat", user_stat);
	assert_int_equal(procscan_all(*state, on_record, &seen), 0);
	assert_lines(&seen, process_100, ARRAY_SIZE(process_100));
}

static void procscan_all_stops_at_the_callers_result(void **state)
{
	struct seen seen = {.stop_at = 3};

	tree_write(*state, "200/stat", user_stat);
	tree_write(*state, "200/task/200/comm", "other\n");
	tree_write(*state, "200/maps", maps);
	assert_int_equal(procscan_all(*state, on_record, &seen), STOP);
	assert_int_equal(seen.n, 3);
}

static int count_record(void *userdata, const void *record, size_t size)
{
	unsigned long *counts = userdata;
	struct perfrecord p;

	assert_int_equal(perfrecord_parse(record, size, &p), 0);
	if (p.u.comm.pid == (uint32_t)getpid() && p.type < 32)
		counts[p.type]++;
	return 0;
}

static void procscan_all_this_system_includes_ourselves(void **state)
{
	unsigned long counts[32] = {0};

	(void)state;
	assert_int_equal(procscan_all("/proc", count_record, counts), 0);
	assert_true(counts[PERF_RECORD_FORK] >= 1);
	assert_true(counts[PERF_RECORD_COMM] >= 1);
	/* At least the program, libc and the vDSO. */
	assert_true(counts[PERF_RECORD_MMAP2] >= 3);
}

static void procscan_info_gives_all_facts(void **state)
{
	struct procinfo info;

	tree_symlink(*state, "100/exe", "/usr/bin/init (deleted)");
	tree_write_bytes(*state, "100/cmdline", "init\0--flag\0a b\0\0\0", 18);
	tree_write(*state, "100/status",
		   "Name:\tUid:\\n\nPid:\t100\nUid:\t33\t34\t35\t36\nNSpid:\t100\t7\t1\n");
	tree_symlink(*state, "100/ns/mnt", "mnt:[4026532345]");
	tree_write(*state, "100/cgroup",
		   "12:pids:/v1/path\n1:name=systemd:/v1/other\n0::/system.slice/x.service\n");
	assert_int_equal(procscan_info(*state, 100, &info), 0);
	assert_int_equal(info.pid, 100);
	assert_int_equal(info.ppid, 1);
	assert_int_equal(info.start_ns, 250 * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK)));
	assert_int_equal(info.uid, 33);
	assert_string_equal(info.exe, "/usr/bin/init (deleted)");
	assert_string_equal(info.cmdline, "init --flag a b");
	assert_false(info.cmdline_cut);
	assert_string_equal(info.cgroup, "/system.slice/x.service");
	assert_int_equal(info.mount_ns, 4026532345u);
	assert_int_equal(info.ns_pid, 1);
	assert_false(info.zombie);
	procinfo_done(&info);
	assert_null(info.exe);
}

static void procscan_info_unknown_facts_are_absent(void **state)
{
	struct procinfo info;

	tree_write(*state, "100/stat", "garbage");
	tree_write(*state, "100/cmdline", "");
	tree_write(*state, "100/status", "Name:\tx\nUid:\t-1\n");
	tree_write(*state, "100/cgroup", "\n:\nnothing\n");
	assert_int_equal(procscan_info(*state, 100, &info), 0);
	assert_int_equal(info.ppid, MANIFEST_ABSENT);
	assert_int_equal(info.start_ns, MANIFEST_ABSENT);
	assert_int_equal(info.uid, MANIFEST_ABSENT);
	assert_int_equal(info.mount_ns, MANIFEST_ABSENT);
	assert_int_equal(info.ns_pid, MANIFEST_ABSENT);
	assert_null(info.exe);
	assert_null(info.cmdline);
	assert_null(info.cgroup);
	procinfo_done(&info);
}

static void procscan_info_cgroup_line_is_chosen(void **state)
{
	static const struct {
		const char *file, *path;
	} cases[] = {
		{"0::/\n", "/"},
		{"0::/no/newline", "/no/newline"},
		{"4:memory:/a:b\n3:cpu:/c\n", "/a:b"},
		{"broken\n4:memory:/a\n", "/a"},
		{"4:memory:/a\n0::/b\n", "/b"},
		/* Units and containers, with cgroups version 1 and with both versions. */
		{"9:cpu:/\n1:name=systemd:/system.slice/x.service\n", "/system.slice/x.service"},
		{"9:cpu:/user.slice\n1:name=systemd:/user.slice/user-0.slice/a.scope\n0::/\n",
		 "/user.slice/user-0.slice/a.scope"},
		{"9:cpu:/docker/abc\n1:name=systemd:/\n0::/\n", "/docker/abc"},
		{"9:cpu:/\n1:name=systemd:/\n0::/\n", "/"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct procinfo info;

		tree_write(*state, "100/cgroup", cases[i].file);
		assert_int_equal(procscan_info(*state, 100, &info), 0);
		assert_string_equal(info.cgroup, cases[i].path);
		procinfo_done(&info);
	}
}

static void procscan_info_long_cmdline_is_cut(void **state)
{
	static const size_t sizes[] = {PROCSCAN_CMDLINE_MAX - 1, PROCSCAN_CMDLINE_MAX,
				       PROCSCAN_CMDLINE_MAX + 1, 100000};
	char *text = malloc(100000);

	assert_non_null(text);
	memset(text, 'x', 100000);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct procinfo info;

		tree_write_bytes(*state, "100/cmdline", text, sizes[i]);
		assert_int_equal(procscan_info(*state, 100, &info), 0);
		assert_int_equal(strlen(info.cmdline), MIN_OF(sizes[i], PROCSCAN_CMDLINE_MAX));
		assert_int_equal(info.cmdline_cut, sizes[i] > PROCSCAN_CMDLINE_MAX);
		procinfo_done(&info);
	}
	free(text);
}

static void procscan_info_gone_is_esrch(void **state)
{
	struct procinfo info;

	assert_int_equal(procscan_info(*state, 101, &info), -ESRCH);
	procinfo_done(&info);
	tree_write(*state, "101/cmdline", "x");
	assert_int_equal(procscan_info(*state, 101, &info), -ESRCH);
	procinfo_done(&info);
}

static void procscan_info_ourselves_are_known(void **state)
{
	struct procinfo info;

	(void)state;
	assert_int_equal(procscan_info("/proc", (uint32_t)getpid(), &info), 0);
	assert_int_equal(info.ppid, getppid());
	assert_int_equal(info.uid, getuid());
	assert_non_null(strstr(info.exe, "test_procscan"));
	assert_non_null(strstr(info.cmdline, "test_procscan"));
	procinfo_done(&info);
}

static void procmaps_parse_bad_lines_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"1000",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 08",
		"1000-2000 r-xp 0 08:01",
		"1000-2000 r-xp 0 08:01 ",
		"1000-2000 r-xp 0 08:01 5x",
		"1000-1000 r-xp 0 08:01 5 /x",
		"2000-1000 r-xp 0 08:01 5 /x",
		"-1000-2000 r-xp 0 08:01 5 /x",
		" 1000-2000 r-xp 0 08:01 5 /x",
		"0x1000-2000 r-xp 0 08:01 5 /x",
		"1000-2000 x-rp 0 08:01 5 /x",
		"1000-2000 r-xq 0 08:01 5 /x",
		"1000-2000 r-xp 0 100000000:01 5 /x",
		"10000000000000000-20000000000000000 r-xp 0 08:01 5 /x",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct procmaps_entry entry;
		char *line = strdup(bad[i]);

		assert_int_equal(procmaps_parse(line, &entry), -EBADMSG);
		free(line);
	}
}

static void procmaps_parse_path_escapes_are_undone(void **state)
{
	static const struct {
		const char *written, *path;
	} cases[] = {
		{"", ""},
		{" ", ""},
		{" /a", "/a"},
		{" /\\012", "/\n"},
		{" \\012\\012", "\n\n"},
		{" /\\01", "/\\01"},
		{" /\\0123", "/\n3"},
		{" /\\\\012", "/\\\n"},
		{" /a  ", "/a  "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct procmaps_entry entry;
		char line[128];

		snprintf(line, sizeof(line), "0-ffffffffffffffff rw-s ff 08:01 5%s",
			 cases[i].written);
		assert_int_equal(procmaps_parse(line, &entry), 0);
		assert_string_equal(entry.path, cases[i].path);
		assert_int_equal(entry.begin, 0);
		assert_int_equal(entry.end, UINT64_MAX);
		assert_int_equal(entry.pgoff, 0xff);
		assert_int_equal(entry.prot, PROT_READ | PROT_WRITE);
		assert_int_equal(entry.flags, MAP_SHARED);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(procscan_process_gives_what_the_kernel_would_have),
		CASE(procscan_process_threads_come_from_their_leader),
		CASE(procscan_again_tells_of_pages_that_were_written_to),
		CASE(procscan_again_without_pagemap_trusts_no_page),
		CASE(procscan_again_of_a_kernel_thread_gives_nothing),
		CASE(procscan_process_kernel_thread_has_no_mappings),
		CASE(procscan_process_hostile_names_do_no_harm),
		CASE(procscan_process_unintelligible_and_endless_lines_are_left_out),
		CASE(procscan_process_gone_is_esrch),
		CASE(procscan_process_unintelligible_stat_is_ebadmsg),
		CASE(procscan_process_stops_at_the_callers_result),
		CASE(procscan_all_leaves_out_what_vanished),
		CASE(procscan_all_stops_at_the_callers_result),
		CASE(procscan_all_this_system_includes_ourselves),
		CASE(procscan_info_gives_all_facts),
		CASE(procscan_info_unknown_facts_are_absent),
		CASE(procscan_info_cgroup_line_is_chosen),
		CASE(procscan_info_long_cmdline_is_cut),
		CASE(procscan_info_gone_is_esrch),
		CASE(procscan_info_ourselves_are_known),
		CASE(procmaps_parse_bad_lines_are_refused),
		CASE(procmaps_parse_path_escapes_are_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
