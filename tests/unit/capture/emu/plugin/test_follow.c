/*
 * capture/emu/follow: what the kernel runs is started again by the emulator, what it refuses is
 * refused. The oracle is the kernel of this host (exec_oracle.h).
 */
#include "capture/emu/plugin/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/emu/machine/emuring.h"
#include "proto/base.h"
#include "tests/unit/capture/exec_files.h"
#include "tests/unit/capture/exec_oracle.h"

#define NOBODY 65534

/* The ways of this test's scratch directory and of the emulator, which is this program. */
static struct follow_self self;
static char why[512];

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static const char *const usual_argv[] = {"zero", "one", "", "-x", "t w o", NULL};
static const char *const usual_envp[] = {"A=1",
					 "LD_PRELOAD=",
					 "NOEQ",
					 "A=2",
					 "\001ptFF",
					 "GLIBC_TUNABLES=",
					 "",
					 "Z=\n",
					 "MALLOC_ARENA_MAX=2",
					 "QEMU_SET_ENV=F=1",
					 NULL};

static struct exec_try try_of(const char *path)
{
	return (struct exec_try){
		.self = &self,
		.call = {.dirfd = AT_FDCWD,
			 .path = address(path),
			 .argv = address(usual_argv),
			 .envp = address(usual_envp)},
	};
}

static enum follow_verdict compare(const struct exec_try *t)
{
	return exec_oracle_compare(t, why, sizeof(why));
}

static enum follow_verdict compare_path(const char *path)
{
	struct exec_try t = try_of(path);

	return compare(&t);
}

/* On a host with binfmt_misc nobody knows what else can be run. */
static bool has_binfmt_misc(void)
{
	return access("/proc/sys/fs/binfmt_misc/register", F_OK) == 0;
}

static void expect(const char *path, enum follow_verdict wanted)
{
	enum follow_verdict v = compare_path(path);

	if (v == FOLLOW_NATIVE && wanted == FOLLOW_FAILS && has_binfmt_misc())
		return;
	if (v != wanted)
		print_message("%s: %d instead of %d: %s\n", path, v, wanted, why);
	assert_int_equal(v, wanted);
}

static void put_self(void)
{
	static char qemu[PATH_MAX], plugin[PATH_MAX], ring[PATH_MAX], truth[PATH_MAX];
	static char prog[PATH_MAX];
	uint64_t magic = EMURING_MAGIC;
	ssize_t n = readlink("/proc/self/exe", qemu, sizeof(qemu) - 1);

	assert_true(n > 0);
	snprintf(plugin, sizeof(plugin), "%s", exec_file("pl,ug=in,,.so"));
	snprintf(ring, sizeof(ring), "%s", exec_file("ring,"));
	snprintf(truth, sizeof(truth), "%s", exec_file("truth,=,x=y"));
	snprintf(prog, sizeof(prog), "%s", exec_file("prog"));
	exec_file_put("pl,ug=in,,.so", "", 0, 0644);
	exec_file_put("ring,", &magic, sizeof(magic), 0600);
	assert_int_equal(mkdir(truth, 0777), 0);
	self = (struct follow_self){.qemu = qemu,
				    .plugin = plugin,
				    .ring = ring,
				    .truth = truth,
				    .exec_path = prog,
				    .repeatable = true};
}

static int make_files(void **state)
{
	(void)state;
	exec_files_make();
	put_self();
	exec_file_copy("prog", self.qemu);
	exec_file_elf("small", ELF_SOUND, NULL);
	exec_file_put("text", "exit 0\n", 7, 0755);
	exec_file_put("empty", "", 0, 0755);
	exec_file_put("plain", "#!/bin/sh\n", 10, 0644);
	assert_int_equal(mkdir(exec_file("sub"), 0755), 0);
	for (unsigned int i = 1; i <= 6; i++)
		exec_file_script_of_levels(i);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	exec_files_remove();
	return 0;
}

static void prepare_program_gives_it_the_same(void **state)
{
	static const char *const names[] = {"prog",
					    "small",
					    "link",
					    "sub/../prog",
					    "a,b=c%\n%41",
					    ",",
					    "0123456789abcdefghi",
					    "\xff\xfe",
					    "-x"};

	(void)state;
	assert_int_equal(symlink("prog", exec_file("link")), 0);
	for (size_t i = 4; i < ARRAY_SIZE(names); i++)
		assert_int_equal(link(exec_file("prog"), exec_file(names[i])), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect(exec_file(names[i]), FOLLOW_READY);
}

static void prepare_program_tells_the_next_emulator_how_it_was_started(void **state)
{
	struct exec_try t = try_of(exec_file("prog"));
	struct exec_followed f;
	char wanted[sizeof(f.self)];

	(void)state;
	exec_oracle_follow(&t, &f);
	assert_int_equal(f.verdict, FOLLOW_READY);
	snprintf(wanted, sizeof(wanted), "%s\n%s\n%s\n%s\n%s\n1\n", self.qemu, self.plugin,
		 self.ring, self.truth, exec_file("prog"));
	assert_string_equal(f.self, wanted);
	free(f.outcome.text);
	self.truth = NULL;
	self.repeatable = false;
	exec_oracle_follow(&t, &f);
	snprintf(wanted, sizeof(wanted), "%s\n%s\n%s\n-\n%s\n0\n", self.qemu, self.plugin,
		 self.ring, exec_file("prog"));
	assert_string_equal(f.self, wanted);
	free(f.outcome.text);
}

static void prepare_scripts_go_five_levels_deep(void **state)
{
	(void)state;
	expect(exec_file("level1"), FOLLOW_READY);
	expect(exec_file("level2"), FOLLOW_READY);
	expect(exec_file("level5"), FOLLOW_READY);
	expect(exec_file("level6"), FOLLOW_FAILS);
}

/* fs/binfmt_script.c is a text of many cases; so is this table. */
static void prepare_script_line_is_read_as_the_kernel_does(void **state)
{
	static const struct {
		const char *text;
		enum follow_verdict verdict;
	} cases[] = {
		{"#!@/prog", FOLLOW_READY},
		{"#!@/prog\n", FOLLOW_READY},
		{"#! \t@/prog \t one  two \t\nthree", FOLLOW_READY},
		{"#!@/prog\tone\n", FOLLOW_READY},
		{"#!@/prog one", FOLLOW_READY},
		{"#!@/prog one ", FOLLOW_READY},
		{"#!@/prog\r\n", FOLLOW_FAILS},
		{"#!@/nosuch\n", FOLLOW_FAILS},
		{"#!@/sub\n", FOLLOW_FAILS},
		{"#!@/plain\n", FOLLOW_FAILS},
		{"#!@/text\n", FOLLOW_FAILS},
		{"#!@/empty\n", FOLLOW_FAILS},
		{"#!prog-nowhere\n", FOLLOW_FAILS},
		{"#!\n@/prog", FOLLOW_FAILS},
		{"#! \t\n@/prog", FOLLOW_FAILS},
		{"#!", FOLLOW_FAILS},
		{"#! ", FOLLOW_FAILS},
		{"# !@/prog\n", FOLLOW_FAILS},
		{" #!@/prog\n", FOLLOW_FAILS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		exec_file_script("line", cases[i].text);
		expect(exec_file("line"), cases[i].verdict);
	}
}

/* Texts of the same with NULs in them: "~" stands for one. */
static void prepare_script_line_with_nul_is_read_as_the_kernel_does(void **state)
{
	static const struct {
		const char *rest;
		enum follow_verdict verdict;
	} cases[] = {
		{"~one\n", FOLLOW_READY},  {" one~two\n", FOLLOW_READY},
		{" ~two\n", FOLLOW_READY}, {"~", FOLLOW_READY},
		{"\n~", FOLLOW_READY},	   {" one two ~ \n", FOLLOW_READY},
	};
	char text[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = snprintf(text, sizeof(text), "#!%s%s", exec_file("prog"), cases[i].rest);

		for (int at = 0; at < n; at++)
			if (text[at] == '~')
				text[at] = '\0';
		exec_file_put("nul", text, (size_t)n, 0755);
		expect(exec_file("nul"), cases[i].verdict);
	}
	exec_file_put("nul", "#!\0\n", 4, 0755);
	expect(exec_file("nul"), FOLLOW_FAILS);
	exec_file_put("nul", "#! \0/bin/true\n", 14, 0755);
	expect(exec_file("nul"), FOLLOW_FAILS);
}

/* Around byte 256 of the file. */
static void prepare_script_line_too_long_is_cut_as_the_kernel_does(void **state)
{
	size_t n = 256 - strlen(exec_file("prog")) - 2;

	(void)state;
	/* A name that is cut must not be taken for this one. */
	assert_int_equal(link(exec_file("prog"), exec_file("pro")), 0);
	for (size_t slashes = n - 3; slashes < n + 4; slashes++) {
		static const char *const rests[] = {"", "\n", " a\n", "   \n", " abcdefgh i j k\n"};

		for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
			enum follow_verdict v;

			exec_file_long_script("long", slashes, rests[i]);
			v = compare_path(exec_file("long"));
			assert_true(v == FOLLOW_READY || v == FOLLOW_FAILS);
			/* Where the name is whole with something behind it there is no doubt. */
			if (slashes < n - 1 && i > 0)
				assert_int_equal(v, FOLLOW_READY);
			if (slashes >= n)
				assert_int_equal(v, FOLLOW_FAILS);
		}
	}
}

static void prepare_no_program_fails(void **state)
{
	static char long_path[PATH_MAX + 1], long_name[300];
	const char *paths[] = {exec_file("nosuch"),
			       exec_file("sub"),
			       exec_file("prog/"),
			       exec_file("prog/x"),
			       exec_file("plain"),
			       "",
			       "/",
			       long_path,
			       long_name};

	(void)state;
	memset(long_path, '/', PATH_MAX);
	memset(long_name, 'x', sizeof(long_name) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		expect(paths[i], FOLLOW_FAILS);
	assert_int_equal(symlink("circle", exec_file("circle")), 0);
	expect(exec_file("circle"), FOLLOW_FAILS);
	expect(exec_file("text"), FOLLOW_FAILS);
	expect(exec_file("empty"), FOLLOW_FAILS);
}

static void prepare_elf_of_all_kinds_is_judged(void **state)
{
	static const struct {
		enum exec_flaw flaw;
		enum follow_verdict verdict;
		const char *why;
	} cases[] = {
		{ELF_SOUND, FOLLOW_READY, ""},
		{ELF_I386, FOLLOW_NATIVE, "/elf: a 32-bit program"},
		{ELF_ARM, FOLLOW_FAILS, ""},
		{ELF_OBJECT, FOLLOW_FAILS, ""},
		{ELF_ODD_CLASS, FOLLOW_NATIVE, "/elf: its ELF headers"},
		{ELF_NO_HEADERS, FOLLOW_FAILS, ""},
		{ELF_ENTRY_SIZE, FOLLOW_FAILS, ""},
		{ELF_CUT_IN_HEAD, FOLLOW_FAILS, ""},
		{ELF_CUT_IN_TABLE, FOLLOW_FAILS, ""},
		{ELF_CUT_SEGMENT, FOLLOW_NATIVE, "/elf: its ELF headers"},
		{ELF_NO_LOAD, FOLLOW_NATIVE, "/elf: its ELF headers"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		exec_file_elf("elf", cases[i].flaw, NULL);
		expect(exec_file("elf"), cases[i].verdict);
		assert_non_null(strstr(why, cases[i].why));
	}
}

static void prepare_elf_interpreter_is_judged_too(void **state)
{
	static const struct {
		const char *name;
		enum follow_verdict verdict;
	} cases[] = {{"small", FOLLOW_READY},	{"nosuch", FOLLOW_FAILS},
		     {"sub", FOLLOW_FAILS},	{"plain", FOLLOW_FAILS},
		     {"text", FOLLOW_FAILS},	{"empty", FOLLOW_FAILS},
		     {"level1", FOLLOW_FAILS},	{"i386", FOLLOW_FAILS},
		     {"object", FOLLOW_NATIVE}, {"interpreted", FOLLOW_READY}};

	(void)state;
	exec_file_elf("i386", ELF_I386, NULL);
	exec_file_elf("object", ELF_OBJECT, NULL);
	exec_file_elf("interpreted", ELF_SOUND, "/nosuch");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		exec_file_elf("elf", ELF_SOUND, exec_file(cases[i].name));
		expect(exec_file("elf"), cases[i].verdict);
	}
	exec_file_elf("elf", ELF_SOUND, "");
	expect(exec_file("elf"), FOLLOW_FAILS);
	/* The name without its NUL, with it, and one that is too long. */
	for (int with_nul = 0; with_nul <= 1; with_nul++) {
		const char *small = exec_file("small");

		exec_file_elf_padded("elf", small, strlen(small) + (size_t)with_nul);
		expect(exec_file("elf"), with_nul ? FOLLOW_READY : FOLLOW_FAILS);
		exec_file_elf_padded("elf", small, 4096 + (size_t)with_nul);
		expect(exec_file("elf"), with_nul ? FOLLOW_FAILS : FOLLOW_READY);
	}
	exec_file_elf_padded("elf", exec_file("small"), 65536);
	expect(exec_file("elf"), FOLLOW_FAILS);
}

static void go_to_directory(void)
{
	if (chdir(exec_file("sub")) < 0)
		_exit(1);
}

static void go_to_deleted_directory(void)
{
	if (mkdir(exec_file("gone"), 0755) < 0 || chdir(exec_file("gone")) < 0 ||
	    rmdir(exec_file("gone")) < 0)
		_exit(1);
}

static void prepare_relative_path_begins_at_the_directory(void **state)
{
	static const struct {
		const char *path;
		void (*prepare)(void);
		enum follow_verdict verdict;
	} cases[] = {
		{"../prog", go_to_directory, FOLLOW_READY},
		{"./../level2", go_to_directory, FOLLOW_READY},
		{"../relative", go_to_directory, FOLLOW_READY},
		{"prog", go_to_directory, FOLLOW_FAILS},
		/* A directory that is gone still knows its parent. */
		{"../prog", go_to_deleted_directory, FOLLOW_READY},
		{"level1", go_to_deleted_directory, FOLLOW_FAILS},
	};

	(void)state;
	exec_file_script("relative", "#!../prog arg\n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct exec_try t = try_of(cases[i].path);

		t.prepare = cases[i].prepare;
		assert_int_equal(compare(&t), cases[i].verdict);
	}
	expect(exec_file("relative"), FOLLOW_FAILS);
}

static void prepare_own_exe_is_the_program(void **state)
{
	static const char *const paths[] = {"/proc/self/exe", "/proc/thread-self/exe"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct exec_try t = try_of(paths[i]);
		struct exec_followed f;

		t.without = EXEC_ORACLE_NO_INODE;
		assert_int_equal(compare(&t), FOLLOW_READY);
		exec_oracle_follow(&t, &f);
		assert_non_null(strstr(f.self, exec_file("prog")));
		free(f.outcome.text);
	}
}

/* Descriptor 100 is the file, when OPEN says so. */
static struct {
	const char *path;
	int flags;
	bool deleted;
} at_100;

static void open_at_100(void)
{
	int fd = open(at_100.path, at_100.flags);

	if (fd < 0 || dup3(fd, 100, at_100.flags & O_CLOEXEC) < 0 || close(fd) < 0)
		_exit(1);
	if (at_100.deleted && unlink(at_100.path) < 0)
		_exit(1);
}

static void make_memory_file(void)
{
	int fd = memfd_create("a program", MFD_CLOEXEC), from = open(exec_file("prog"), O_RDONLY);
	char bytes[65536];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(fd, bytes, (size_t)n) != n)
			_exit(1);
	/* As fexecve's users do: not open for writing. */
	snprintf(bytes, sizeof(bytes), "/proc/self/fd/%d", fd);
	n = open(bytes, O_RDONLY | O_CLOEXEC);
	if (close(fd) < 0 || close(from) < 0 || dup3((int)n, 100, O_CLOEXEC) < 0 ||
	    close((int)n) < 0)
		_exit(1);
}

static void prepare_path_of_descriptor_outlives_it(void **state)
{
	static const char *const paths[] = {"/proc/self/fd/100", "/dev/fd/100",
					    "/proc/thread-self/fd/100"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct exec_try t = try_of(paths[i]);

		t.prepare = open_at_100;
		at_100.deleted = false;
		at_100.path = exec_file("prog");
		at_100.flags = O_RDONLY;
		assert_int_equal(compare(&t), FOLLOW_READY);
		at_100.flags = O_RDONLY | O_CLOEXEC;
		assert_int_equal(compare(&t), FOLLOW_READY);
		at_100.path = exec_file("level1");
		assert_int_equal(compare(&t), FOLLOW_READY);
		t.prepare = NULL;
		assert_int_equal(compare(&t), FOLLOW_FAILS);
	}
}

static void prepare_file_without_a_path_outlives_its_descriptor(void **state)
{
	struct exec_try t = try_of("/proc/self/fd/100");
	struct exec_outcome native;
	struct exec_followed followed;

	(void)state;
	t.prepare = open_at_100;
	at_100.flags = O_RDONLY | O_CLOEXEC;
	at_100.deleted = true;
	at_100.path = exec_file("deleted");
	assert_int_equal(link(exec_file("prog"), at_100.path), 0);
	exec_oracle_native(&t, &native);
	assert_int_equal(link(exec_file("prog"), at_100.path), 0);
	exec_oracle_follow(&t, &followed);
	assert_int_equal(followed.verdict, FOLLOW_READY);
	assert_true(native.told);
	assert_int_equal(native.size, followed.outcome.size);
	assert_memory_equal(native.text, followed.outcome.text, native.size);
	free(native.text);
	free(followed.outcome.text);
	t.prepare = make_memory_file;
	t.without = EXEC_ORACLE_NO_INODE; /* one each */
	assert_int_equal(compare(&t), FOLLOW_READY);
}

static struct exec_try try_at(int dirfd, const char *path, int flags)
{
	struct exec_try t = try_of(path);

	t.call.at = true;
	t.call.dirfd = dirfd;
	t.call.flags = flags;
	return t;
}

static void prepare_execveat_begins_at_its_descriptor(void **state)
{
	static const struct {
		const char *file;
		int open_flags;
		const char *path;
		int flags;
		enum follow_verdict verdict;
	} cases[] = {
		{"sub", O_RDONLY | O_CLOEXEC, "../prog", 0, FOLLOW_READY},
		{"sub", O_PATH, "../level2", 0, FOLLOW_READY},
		{"sub", O_PATH | O_CLOEXEC, "../level2", 0, FOLLOW_FAILS},
		{"sub", O_PATH, "nosuch", 0, FOLLOW_FAILS},
		{"sub", O_PATH, "../slink", 0, FOLLOW_READY},
		{"sub", O_PATH, "../slink", AT_SYMLINK_NOFOLLOW, FOLLOW_FAILS},
		{"sub", O_PATH, "", AT_EMPTY_PATH, FOLLOW_FAILS},
		{"prog", O_PATH, "", AT_EMPTY_PATH, FOLLOW_READY},
		{"prog", O_RDONLY | O_CLOEXEC, "", AT_EMPTY_PATH, FOLLOW_READY},
		{"prog", O_RDONLY, "", 0, FOLLOW_FAILS},
		{"prog", O_RDONLY, "", AT_EMPTY_PATH | 0x8000000, FOLLOW_FAILS},
		{"prog", O_RDONLY, "x", 0, FOLLOW_FAILS},
		{"level1", O_RDONLY, "", AT_EMPTY_PATH, FOLLOW_READY},
		{"level1", O_RDONLY | O_CLOEXEC, "", AT_EMPTY_PATH, FOLLOW_FAILS},
		{"text", O_RDONLY | O_CLOEXEC, "", AT_EMPTY_PATH, FOLLOW_FAILS},
	};

	(void)state;
	assert_int_equal(symlink("prog", exec_file("slink")), 0);
	at_100.deleted = false;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct exec_try t = try_at(100, cases[i].path, cases[i].flags);

		t.prepare = open_at_100;
		/* Before 6.14 the kernel takes the descriptor's number. */
		t.without = cases[i].path[0] == '\0' ? EXEC_ORACLE_NO_COMM : 0;
		at_100.path = exec_file(cases[i].file);
		at_100.flags = cases[i].open_flags;
		assert_int_equal(compare(&t), cases[i].verdict);
	}
}

static void prepare_execveat_without_descriptor(void **state)
{
	struct exec_try t = try_at(-1, exec_file("prog"), 0);

	(void)state;
	assert_int_equal(compare(&t), FOLLOW_READY);
	t = try_at(-1, "prog", 0);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	t = try_at(-1, "", AT_EMPTY_PATH);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	t = try_at(AT_FDCWD, "../level1", 0);
	t.prepare = go_to_directory;
	assert_int_equal(compare(&t), FOLLOW_READY);
}

/* Two pages, of which the second cannot be read. */
static char *page_before_nothing(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	return pages;
}

static void prepare_bad_pointer_fails(void **state)
{
	const char *bad_element[] = {"zero", (const char *)1, NULL};
	char *page = page_before_nothing(), *end = page + 4096;
	const char **vector = (const char **)(void *)(end - 16);
	struct exec_try t = try_of(exec_file("prog"));
	const struct follow_call good = t.call;

	(void)state;
	memset(page, 'x', 4096);
	t.call.path = 1;
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	t.call.path = address(end - 100);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	t.call = good;
	t.call.argv = 8;
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	t.call.argv = address(bad_element);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	t.call = good;
	t.call.envp = UINT64_MAX - 7;
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	vector[0] = vector[1] = "s";
	t.call.envp = address(vector);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	/* A vector that just fits in before the bad page is good. */
	vector[1] = NULL;
	assert_int_equal(compare(&t), FOLLOW_READY);
	t.call = good;
	memcpy(end - 5, "end!", 5);
	vector = (const char **)(void *)page;
	vector[0] = end - 5;
	vector[1] = NULL;
	t.call.argv = address(page);
	assert_int_equal(compare(&t), FOLLOW_READY);
	munmap(page, 8192);
}

/* x86 reads pointers at any address. */
static void prepare_pointers_across_pages_are_read(void **state)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *vector[] = {"0", "1", "2", "3", NULL};
	struct exec_try t = try_of(exec_file("prog"));

	(void)state;
	memcpy(pages + 4096 - 13, vector, sizeof(vector));
	t.call.argv = address(pages + 4096 - 13);
	assert_int_equal(compare(&t), FOLLOW_READY);
	munmap(pages, 8192);
}

static void prepare_no_vectors_are_empty_ones(void **state)
{
	static const char *const empty[] = {NULL};
	const uint64_t addresses[] = {0, address(empty)};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct exec_try t = try_of(exec_file("level1"));

		t.call.argv = t.call.envp = addresses[i];
		assert_int_equal(compare(&t), FOLLOW_READY);
		t.call.path = address(exec_file("prog"));
		assert_int_equal(compare(&t), FOLLOW_READY);
	}
}

static char *string_of(size_t length)
{
	char *text = malloc(length + 1);

	assert_non_null(text);
	memset(text, 'a', length);
	text[length] = '\0';
	return text;
}

static void prepare_one_long_argument_is_limited(void **state)
{
	char *longest = string_of(ARGUMENTS_MAX_STRING - 1),
	     *longer = string_of(ARGUMENTS_MAX_STRING);
	const char *argv[] = {"0", longest, NULL};
	struct exec_try t = try_of(exec_file("prog"));

	(void)state;
	t.call.argv = address(argv);
	assert_int_equal(compare(&t), FOLLOW_READY);
	argv[1] = longer;
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	/* A variable that has no room for the prefix. */
	argv[0] = "LD_X=";
	argv[1] = longest;
	memcpy(longest, "LD_Y=", 5);
	t = try_of(exec_file("prog"));
	t.call.envp = address(argv);
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, "no room"));
	free(longest);
	free(longer);
}

/* Limits the stack so that 128 KiB are left for the strings, the pointers and the path. */
static void limit_stack(void)
{
	struct rlimit stack = {512 * 1024, RLIM_INFINITY};

	if (setrlimit(RLIMIT_STACK, &stack) < 0)
		_exit(1);
}

static void prepare_all_arguments_are_limited(void **state)
{
	size_t most = 128 * 1024 - 4 * 8 - strlen(exec_file("small")) - 1;
	char *first = string_of(65535), *second = string_of(most - 65536 - 4 - 1);
	char *longer = string_of(128 * 1024 + 1 - 2 * 8 - 1 - strlen(second) - 1);
	const char *argv[] = {first, second, NULL}, *envp[] = {"", "E=", NULL};
	struct exec_try t = try_of(exec_file("small"));
	struct exec_outcome native;

	(void)state;
	t.prepare = limit_stack;
	t.call.argv = address(argv);
	t.call.envp = address(envp);
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, "no room"));
	exec_oracle_native(&t, &native);
	assert_int_equal(native.error, 0);
	free(native.text);
	/* One byte more than the kernel takes. */
	envp[0] = "x";
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	/* Passed by one byte in the arguments already. */
	argv[0] = longer;
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	argv[0] = first;
	envp[0] = "";
	second[strlen(second) - 2000] = '\0';
	assert_int_equal(compare(&t), FOLLOW_READY);
	free(first);
	free(second);
	free(longer);
}

/* A vector without end, and one that has it just where the limit is passed. */
static void prepare_endless_vector_fails(void **state)
{
	size_t size = 8 * 1024 * 1024;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct exec_try t = try_of(exec_file("small"));

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(memory, 1, size - 8);
	memset(memory + size - 8, 0, 8);
	for (size_t i = 0; i < size - 8; i += 8)
		memcpy(memory + i, &(const char *){""}, 8);
	t.call.argv = address(memory);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
	munmap(memory, size);
}

static void use_up_descriptors(void)
{
	struct rlimit files = {0, 0};
	int fd = dup(0);

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		_exit(1);
	files.rlim_cur = (rlim_t)fd;
	if (close(fd) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		_exit(1);
}

static void prepare_without_free_descriptors_goes_native(void **state)
{
	struct exec_try t = try_of(exec_file("small"));

	(void)state;
	t.prepare = use_up_descriptors;
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, strerror(EMFILE)));
}

/* The kernel's opinion can be asked since 6.14 only. */
static bool kernel_answers_checks(void)
{
	int fd = open(exec_file("small"), O_PATH | O_CLOEXEC);
	char *argv[] = {(char *)"x", NULL};
	long r = syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH | 0x10000);

	close(fd);
	return r == 0;
}

static void prepare_file_open_for_writing_fails(void **state)
{
	int fd;

	(void)state;
	if (!kernel_answers_checks())
		skip();
	exec_file_elf("busy", ELF_SOUND, NULL);
	exec_file_script("busy-script", "#!@/busy\n");
	fd = open(exec_file("busy"), O_WRONLY | O_CLOEXEC);
	expect(exec_file("busy"), FOLLOW_FAILS);
	expect(exec_file("busy-script"), FOLLOW_FAILS);
	exec_file_elf("elf", ELF_SOUND, exec_file("busy"));
	expect(exec_file("elf"), FOLLOW_FAILS);
	close(fd);
	expect(exec_file("busy"), FOLLOW_READY);
}

static void prepare_emulator_is_nested(void **state)
{
	static const struct {
		const char *name;
		const char *argument;
		enum follow_verdict verdict;
	} cases[] = {
		{"qemu-arm-static", "x", FOLLOW_NESTED},
		{"qemu-system-x86_64", "x", FOLLOW_NESTED},
		{"qemu-img", "x", FOLLOW_READY},
		{"qemuish", "x", FOLLOW_READY},
		{"ptsnapd", "--source=emulated", FOLLOW_NESTED},
		{"ptsnapd", "--source=intel_pt", FOLLOW_READY},
	};
	const char *argv[] = {"x", NULL, NULL};

	(void)state;
	expect(self.qemu, FOLLOW_NESTED);
	assert_non_null(strstr(why, "start it outside of COMMAND"));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct exec_try t = try_of(exec_file(cases[i].name));

		exec_file_elf(cases[i].name, ELF_SOUND, NULL);
		argv[1] = cases[i].argument;
		t.call.argv = address(argv);
		assert_int_equal(compare(&t), cases[i].verdict);
	}
	assert_int_equal(symlink("qemu-arm-static", exec_file("arm")), 0);
	expect(exec_file("arm"), FOLLOW_NESTED);
	exec_file_script("in-arm", "#!@/arm\n");
	expect(exec_file("in-arm"), FOLLOW_NESTED);
}

static void prepare_out_of_reach_goes_native(void **state)
{
	const struct follow_self good = self;
	const char *nosuch = exec_file("nosuch"), *text = exec_file("text");
	const struct {
		const char **field;
		const char *value, *why;
	} cases[] = {
		{&self.ring, nosuch, "its rings cannot be opened"},
		{&self.ring, self.exec_path, "its rings cannot be opened"},
		{&self.qemu, nosuch, "the emulator is out of reach"},
		{&self.qemu, text, "the emulator is out of reach"},
		{&self.plugin, nosuch, "the software PMU is out of reach"},
		{&self.truth, nosuch, "the truth directory is out of reach"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		*cases[i].field = cases[i].value;
		expect(exec_file("small"), FOLLOW_NATIVE);
		assert_non_null(strstr(why, cases[i].why));
		/* A file that cannot be executed still fails for its own reason. */
		expect(exec_file("text"), FOLLOW_FAILS);
		self = good;
	}
	self = good;
}

static void become_nobody(void)
{
	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(1);
}

static void prepare_as_another_user_goes_native(void **state)
{
	struct exec_try t = try_of(exec_file("small"));

	(void)state;
	if (geteuid() != 0)
		skip();
	t.prepare = become_nobody;
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, "out of reach"));
	exec_file_elf("unreadable", ELF_SOUND, NULL);
	assert_int_equal(chmod(exec_file("unreadable"), 0711), 0);
	t.call.path = address(exec_file("unreadable"));
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, "executed but not read"));
	assert_int_equal(chmod(exec_file("unreadable"), 0744), 0);
	assert_int_equal(compare(&t), FOLLOW_FAILS);
}

/* The memory itself is anybody's who has it. */
static void prepare_as_another_user_with_the_ring_kept_is_ready(void **state)
{
	struct exec_try t = try_of(exec_file("small"));
	const struct follow_self good = self;
	const char *before = self.ring;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(self.ring, 0666), 0); /* as a memory file has it */
	follow_keep_ring(&self);
	assert_string_not_equal(self.ring, before);
	t.prepare = become_nobody;
	assert_int_equal(compare(&t), FOLLOW_READY);
	/* Once is enough. */
	before = self.ring;
	follow_keep_ring(&self);
	assert_ptr_equal(self.ring, before);
	/* Another root directory is one where the emulator may be missing. */
	self.root[1]++;
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	free((char *)(uintptr_t)self.ring);
	self = good;
}

static void give_up_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(1);
}

static void prepare_set_id_program_goes_native(void **state)
{
	struct exec_try t = try_of(exec_file("set-id"));
	struct statvfs fs;

	(void)state;
	if (geteuid() != 0 || statvfs(exec_file("small"), &fs) < 0 || (fs.f_flag & ST_NOSUID) != 0)
		skip();
	exec_file_elf("set-id", ELF_SOUND, NULL);
	assert_int_equal(chown(exec_file("set-id"), NOBODY, NOBODY), 0);
	assert_int_equal(chmod(exec_file("set-id"), 04755), 0);
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, "set-id: set-user-ID program"));
	assert_int_equal(chmod(exec_file("set-id"), 02755), 0);
	assert_int_equal(compare(&t), FOLLOW_NATIVE);
	assert_non_null(strstr(why, "set-id: set-group-ID program"));
	/* Mandatory locking once; no set-group-ID. */
	assert_int_equal(chmod(exec_file("set-id"), 02745), 0);
	assert_int_equal(compare(&t), FOLLOW_READY);
	assert_int_equal(chmod(exec_file("set-id"), 06755), 0);
	t.prepare = give_up_privileges;
	assert_int_equal(compare(&t), FOLLOW_READY);
	/* A script's own bit counts for nothing. */
	assert_int_equal(chown(exec_file("level1"), NOBODY, NOBODY), 0);
	assert_int_equal(chmod(exec_file("level1"), 04755), 0);
	expect(exec_file("level1"), FOLLOW_READY);
}

static void prepare_own_set_id_program_is_followed(void **state)
{
	(void)state;
	exec_file_elf("own", ELF_SOUND, NULL);
	assert_int_equal(chmod(exec_file("own"), 04755), 0);
	expect(exec_file("own"), FOLLOW_READY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepare_program_gives_it_the_same),
		cmocka_unit_test(prepare_program_tells_the_next_emulator_how_it_was_started),
		cmocka_unit_test(prepare_scripts_go_five_levels_deep),
		cmocka_unit_test(prepare_script_line_is_read_as_the_kernel_does),
		cmocka_unit_test(prepare_script_line_with_nul_is_read_as_the_kernel_does),
		cmocka_unit_test(prepare_script_line_too_long_is_cut_as_the_kernel_does),
		cmocka_unit_test(prepare_no_program_fails),
		cmocka_unit_test(prepare_elf_of_all_kinds_is_judged),
		cmocka_unit_test(prepare_elf_interpreter_is_judged_too),
		cmocka_unit_test(prepare_relative_path_begins_at_the_directory),
		cmocka_unit_test(prepare_own_exe_is_the_program),
		cmocka_unit_test(prepare_path_of_descriptor_outlives_it),
		cmocka_unit_test(prepare_file_without_a_path_outlives_its_descriptor),
		cmocka_unit_test(prepare_execveat_begins_at_its_descriptor),
		cmocka_unit_test(prepare_execveat_without_descriptor),
		cmocka_unit_test(prepare_bad_pointer_fails),
		cmocka_unit_test(prepare_pointers_across_pages_are_read),
		cmocka_unit_test(prepare_no_vectors_are_empty_ones),
		cmocka_unit_test(prepare_one_long_argument_is_limited),
		cmocka_unit_test(prepare_all_arguments_are_limited),
		cmocka_unit_test(prepare_endless_vector_fails),
		cmocka_unit_test(prepare_without_free_descriptors_goes_native),
		cmocka_unit_test(prepare_file_open_for_writing_fails),
		cmocka_unit_test(prepare_emulator_is_nested),
		cmocka_unit_test(prepare_out_of_reach_goes_native),
		cmocka_unit_test(prepare_as_another_user_goes_native),
		cmocka_unit_test(prepare_as_another_user_with_the_ring_kept_is_ready),
		cmocka_unit_test(prepare_set_id_program_goes_native),
		cmocka_unit_test(prepare_own_set_id_program_is_followed),
	};

	exec_oracle_serve(argc, argv);
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
