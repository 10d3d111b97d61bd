/*
 * The mapped files that are opened, and the reasons given for those that are not.
 */
#include "daemon/record/files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procmaps.h"
#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"
#include "tests/unit/daemon/small_elf.h"

static char dir[SCRATCH_DIR_SIZE];

static int setup(void **state)
{
	char *real;

	(void)state;
	scratch_dir_make(dir);
	real = realpath(dir, NULL); /* records name files without symlinks */
	if (strlen(real) < sizeof(dir))
		strcpy(dir, real);
	free(real);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_dir_remove(dir);
	return 0;
}

#define GONE 0x7ffffff0u /* beyond any pid_max */

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make_file(const char *name, const char *content)
{
	CLEANUP_CLOSE int fd = open(path_of(name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

/* Makes an ELF file whose build id is all ones except the last byte, ID. */
static void make_elf(const char *name, uint8_t id)
{
	uint8_t bytes[20];

	memset(bytes, 1, sizeof(bytes));
	bytes[19] = id;
	assert_int_equal(small_elf_write(path_of(name), bytes), 0);
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0700), 0);
}

/* In a tree in place of /proc: process PID has the device of PATH mounted. */
static void make_mountinfo_of(const char *pid, const char *path)
{
	char name[32], line[128];
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	snprintf(name, sizeof(name), "%s/mountinfo", pid);
	snprintf(line, sizeof(line), "20 1 %u:%u / / rw - ext4 /dev/x rw\n", major(st.st_dev),
		 minor(st.st_dev));
	make_file(name, line);
}

/* The record of this process mapping PATH, as the kernel writes it. */
static struct perfrecord mapped(const char *path)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2};
	struct stat st = {0};

	if (lstat(path, &st) == 0) {
		r.u.mmap2.maj = major(st.st_dev);
		r.u.mmap2.min = minor(st.st_dev);
		r.u.mmap2.ino = st.st_ino;
	}
	r.u.mmap2.pid = r.u.mmap2.tid = (uint32_t)getpid();
	r.u.mmap2.addr = 0x1000;
	r.u.mmap2.len = 0x1000;
	r.u.mmap2.prot = PROT_READ | PROT_EXEC;
	r.u.mmap2.filename = path;
	return r;
}

static struct files *new_files(uint32_t max)
{
	struct files *f = NULL;

	assert_int_equal(files_new("/proc", max, &f), 0);
	return f;
}

static void files_see_opens_a_mapped_file_once(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	const struct files_entry *e;
	char text[8] = "";

	(void)state;
	make_file("a", "hello");
	struct perfrecord r = mapped(path_of("a"));
	files_see(f, &r);
	files_see(f, &r);
	assert_int_equal(files_count(f), 1);
	e = files_at(f, 0);
	assert_string_equal(e->path, path_of("a"));
	assert_null(e->missing);
	assert_int_equal(e->size, 5);
	assert_int_equal(read(e->fd, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	assert_true(fcntl(e->fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(e->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
}

static void files_see_keeps_a_file_that_is_deleted_later(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	char text[8] = "";

	(void)state;
	make_file("a", "first");
	struct perfrecord r = mapped(path_of("a"));
	files_see(f, &r);
	unlink(path_of("a"));
	assert_int_equal(read(files_at(f, 0)->fd, text, sizeof(text)), 5);
	assert_string_equal(text, "first");
}

static void files_see_ignores_what_is_no_code_of_a_file(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord r;

	(void)state;
	make_file("a", "x");
	r = mapped(path_of("a"));
	r.u.mmap2.prot = PROT_READ;
	files_see(f, &r);
	r = mapped("[vdso]");
	files_see(f, &r);
	r = mapped("//anon");
	files_see(f, &r);
	r = mapped("");
	r.u.mmap2.ino = 5;
	files_see(f, &r);
	assert_int_equal(files_count(f), 0);
}

static void expect_missing(const struct perfrecord *r, const char *why)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	const struct files_entry *e;

	files_see(f, r);
	assert_int_equal(files_count(f), 1);
	e = files_at(f, 0);
	assert_true(e->fd < 0);
	assert_non_null(e->missing);
	assert_non_null(strstr(e->missing, why));
}

static void files_see_refuses_another_file_at_the_path(void **state)
{
	struct perfrecord r;

	(void)state;
	make_file("a", "x");
	r = mapped(path_of("a"));
	r.u.mmap2.ino++;
	expect_missing(&r, "another file");
	r = mapped(path_of("a"));
	r.u.mmap2.min++;
	expect_missing(&r, "another file");
}

static void files_see_does_not_follow_symlinks(void **state)
{
	char target[128];
	struct perfrecord r;

	(void)state;
	make_file("a", "x");
	strcpy(target, path_of("a"));
	assert_int_equal(symlink(target, path_of("link")), 0);
	r = mapped(target);
	r.u.mmap2.filename = path_of("link"); /* the link has the right device and inode */
	expect_missing(&r, "gone");
}

static void files_see_neither_hangs_on_nor_accepts_a_fifo(void **state)
{
	struct perfrecord r;

	(void)state;
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	r = mapped(path_of("fifo"));
	expect_missing(&r, "regular");
}

static void files_see_tells_that_a_file_is_gone(void **state)
{
	struct perfrecord r;

	(void)state;
	make_file("a", "x");
	r = mapped(path_of("a"));
	unlink(path_of("a"));
	expect_missing(&r, "gone");
}

static void files_see_of_an_ended_process_finds_the_file_in_our_root(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord r;

	(void)state;
	make_file("a", "x");
	r = mapped(path_of("a"));
	r.u.mmap2.pid = GONE;
	files_see(f, &r);
	assert_true(files_at(f, 0)->fd >= 0);
}

static void files_see_opens_a_deleted_file_by_its_mapping(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	char link[128], byte;
	struct perfrecord r;
	void *at;

	(void)state;
	make_file("a", "x");
	CLEANUP_CLOSE int fd = open(path_of("a"), O_RDONLY);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	r = mapped(path_of("a"));
	r.u.mmap2.addr = (uint64_t)(uintptr_t)at;
	r.u.mmap2.len = 4096;
	unlink(path_of("a"));
	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", (unsigned long)(uintptr_t)at,
		 (unsigned long)(uintptr_t)at + 4096);
	CLEANUP_CLOSE int probe = open(link, O_RDONLY);
	files_see(f, &r);
	/* Needs CAP_CHECKPOINT_RESTORE. */
	if (probe >= 0)
		assert_int_equal(read(files_at(f, 0)->fd, &byte, 1), 1);
	else
		assert_non_null(files_at(f, 0)->missing);
	munmap(at, 4096);
}

/* The same record with a build id, which is in the place of device and inode. */
static struct perfrecord mapped_by_build_id(const char *path, uint8_t id)
{
	struct perfrecord r = mapped(path);

	r.misc = PERF_RECORD_MISC_MMAP_BUILD_ID;
	r.u.mmap2.maj = r.u.mmap2.min = 0;
	r.u.mmap2.ino = r.u.mmap2.ino_generation = 0;
	r.u.mmap2.build_id_size = 20;
	memset(r.u.mmap2.build_id, 1, 20);
	r.u.mmap2.build_id[19] = id;
	return r;
}

/* Whether the kernel can read build ids (PROCMAP_QUERY). */
static bool kernel_reads_build_ids(void)
{
	uint8_t id[MAPQUERY_BUILD_ID];
	int r;

	make_elf("probe", 9);
	CLEANUP_CLOSE int fd = open(path_of("probe"), O_RDONLY);
	r = mapquery_file_build_id(fd, id);
	unlink(path_of("probe"));
	assert_true(r == 20 || r == -EOPNOTSUPP);
	return r == 20;
}

static void files_see_with_build_id_takes_the_identity_of_the_file(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	const struct files_entry *e;
	struct stat st;

	(void)state;
	make_elf("a", 7);
	struct perfrecord r = mapped_by_build_id(path_of("a"), 7);
	files_see(f, &r);
	r.u.mmap2.pid = 1; /* another process maps the same */
	files_see(f, &r);
	assert_int_equal(files_count(f), 1);
	e = files_at(f, 0);
	assert_null(e->missing);
	assert_true(e->fd >= 0);
	assert_int_equal(e->build_id_size, 20);
	assert_int_equal(e->build_id[19], 7);
	assert_int_equal(lstat(path_of("a"), &st), 0);
	assert_true(e->ino == st.st_ino && e->maj == major(st.st_dev));
}

/* A file that was replaced, and a copy elsewhere. */
static void files_see_other_build_id_or_path_is_another_file(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord r;

	(void)state;
	make_elf("a", 7);
	r = mapped_by_build_id(path_of("a"), 7);
	files_see(f, &r);
	unlink(path_of("a"));
	make_elf("a", 8);
	r = mapped_by_build_id(path_of("a"), 8);
	files_see(f, &r);
	make_elf("b", 7);
	r = mapped_by_build_id(path_of("b"), 7);
	files_see(f, &r);
	assert_int_equal(files_count(f), 3);
	assert_true(files_at(f, 0)->fd >= 0);
	assert_true(files_at(f, 1)->fd >= 0);
	assert_true(files_at(f, 0)->ino != files_at(f, 1)->ino);
	assert_string_equal(files_at(f, 2)->path, path_of("b"));
}

static void files_see_build_id_of_an_ended_process_finds_the_path(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord r;

	(void)state;
	make_elf("a", 7);
	r = mapped_by_build_id(path_of("a"), 7);
	r.u.mmap2.pid = GONE;
	files_see(f, &r);
	assert_true(files_at(f, 0)->fd >= 0);
}

static void files_see_build_id_refuses_another_build_at_the_path(void **state)
{
	struct perfrecord r;

	(void)state;
	if (!kernel_reads_build_ids())
		skip();
	make_elf("a", 8);
	r = mapped_by_build_id(path_of("a"), 7);
	expect_missing(&r, "gone: its path names another file");
	make_file("a", "no build id at all");
	expect_missing(&r, "gone: its path names another file");
}

static void files_see_build_id_of_no_file_is_told(void **state)
{
	struct perfrecord r;

	(void)state;
	r = mapped_by_build_id("/no/such/file", 7);
	expect_missing(&r, "gone:");
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	r = mapped_by_build_id(path_of("fifo"), 7);
	expect_missing(&r, "regular");
}

/* The file is gone, but the same build is open under another name. */
static void files_see_gone_file_is_had_of_another_of_the_same_build(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	const struct files_entry *e;
	struct perfrecord r;
	char magic[4];

	(void)state;
	make_elf("a", 7);
	r = mapped_by_build_id(path_of("a"), 7);
	files_see(f, &r);
	r = mapped_by_build_id("/gone/b", 7);
	r.u.mmap2.pid = GONE;
	files_see(f, &r);
	e = files_at(f, 1);
	assert_string_equal(e->path, "/gone/b");
	assert_int_equal(pread(e->fd, magic, 4, 0), 4);
	assert_memory_equal(magic, ELFMAG, 4);
	assert_int_not_equal(e->fd, files_at(f, 0)->fd);
	r = mapped_by_build_id("/gone/b", 8);
	files_see(f, &r);
	assert_int_equal(strncmp(files_at(f, 2)->missing, "gone:", 5), 0);
}

static void files_see_gone_file_is_tried_again_with_the_next_mapper(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord r;

	(void)state;
	r = mapped_by_build_id(path_of("a"), 7);
	files_see(f, &r);
	assert_true(files_at(f, 0)->fd < 0);
	make_elf("a", 7);
	files_see(f, &r);
	assert_int_equal(files_count(f), 1);
	assert_true(files_at(f, 0)->fd >= 0);
	assert_null(files_at(f, 0)->missing);
}

/* A file seen by its inode in the scan of /proc, then by its build id; and the other way round. */
static void files_see_by_inode_and_by_build_id_is_one_file(void **state)
{
	struct space_file by_inode = {0}, by_build = {.build_id_size = 20};
	size_t first = 9, second = 9;

	(void)state;
	make_elf("a", 7);
	for (int order = 0; order < 2; order++) {
		CLEANUP(files_freep) struct files *f = new_files(10);
		struct perfrecord a = mapped(path_of("a")), b = mapped_by_build_id(path_of("a"), 7);

		files_see(f, order ? &b : &a);
		files_see(f, order ? &a : &b);
		assert_int_equal(files_count(f), 1);
		by_inode.maj = a.u.mmap2.maj;
		by_inode.min = a.u.mmap2.min;
		by_inode.ino = a.u.mmap2.ino;
		by_inode.path = by_build.path = path_of("a");
		memcpy(by_build.build_id, b.u.mmap2.build_id, 20);
		assert_non_null(files_find(f, &by_inode, &first));
		assert_non_null(files_find(f, &by_build, &second));
		assert_int_equal(first, second);
		assert_int_equal(files_at(f, first)->build_id_size, 20);
	}
}

/* A file of a process that is gone, below a root that only its parent has. */
static void files_see_of_an_ended_process_asks_its_parents(void **state)
{
	CLEANUP(files_freep) struct files *f = NULL;
	CLEANUP(procs_freep) struct procs *procs = NULL;
	struct perfrecord r;
	char root[160];

	(void)state;
	make_dir("50");
	make_dir("root");
	make_file("root/a", "x");
	snprintf(root, sizeof(root), "%s/root", dir);
	assert_int_equal(symlink(root, path_of("50/root")), 0);
	make_mountinfo_of("50", root);
	assert_int_equal(files_new(dir, 10, &f), 0);
	assert_int_equal(procs_new(dir, 8, NULL, &procs), 0);
	files_use(f, NULL, procs);
	r = mapped(path_of("root/a"));
	r.u.mmap2.filename = "/a";
	r.u.mmap2.pid = 60;
	procs_fork(procs, 55, 50, 1);
	procs_fork(procs, 60, 55, 2);
	files_see(f, &r);
	assert_true(files_at(f, 0)->fd >= 0);
	scratch_dir_remove(path_of("50"));
	scratch_dir_remove(path_of("root"));
}

static int is_listed(void *userdata, const struct space_file *file)
{
	size_t index;

	return files_find(userdata, file, &index) ? 0 : -ENOENT;
}

static void expect_all_named(const struct timeline *t, struct files *f)
{
	assert_int_equal(timeline_foreach_file(t, is_listed, f), 0);
}

static const struct files_entry *files_find_record(const struct files *f,
						   const struct perfrecord *r)
{
	struct space_file file = {.build_id_size = 20, .path = r->u.mmap2.filename};
	size_t index;

	memcpy(file.build_id, r->u.mmap2.build_id, sizeof(file.build_id));
	return files_find(f, &file, &index);
}

/* Many files, each of a process that is gone: files that the timeline has forgotten make room. */
static void files_see_of_very_many_files_keeps_those_that_the_timeline_names(void **state)
{
	const char *wish = getenv("PTSNAP_FILES_LOAD");
	uint32_t n = wish ? (uint32_t)atoi(wish) : 60000;
	CLEANUP(timeline_freep) struct timeline *t = NULL;
	CLEANUP(files_freep) struct files *f = new_files(2048);
	uint32_t opened = 0;
	uint8_t bytes[512];
	char name[64];
	size_t size;

	(void)state;
	assert_int_equal(timeline_new(1 << 20, 1 << 20, &t), 0);
	files_use(f, t, NULL);
	for (uint32_t i = 0; i < n; i++) {
		struct perfrecord r;

		snprintf(name, sizeof(name), "load%u", i);
		r = mapped_by_build_id(path_of(name), (uint8_t)i);
		memcpy(r.u.mmap2.build_id, &i, sizeof(i));
		if (i % 8 == 0) /* every eighth file exists */
			assert_int_equal(small_elf_write(path_of(name), r.u.mmap2.build_id), 0);
		r.u.mmap2.pid = r.u.mmap2.tid = r.pid = r.tid = GONE - i % 1000;
		r.time = 1000 * (i + 1);
		assert_int_equal(perfrecord_compose(&r, bytes, sizeof(bytes), &size), 0);
		assert_int_equal(perfrecord_parse(bytes, size, &r), 0);
		assert_int_equal(timeline_push(t, &r, bytes, size), 0);
		files_see(f, &r);
		unlink(path_of(name));
		opened += i % 8 == 0 && files_find_record(f, &r)->fd >= 0;
	}
	assert_int_equal(opened, (n + 7) / 8);
	assert_int_equal(files_dropped(f), 0);
	assert_true(files_count(f) <= FILES_MAX);
	assert_true(files_places(f) <= FILES_MAX);
	expect_all_named(t, f);
}

/* The timeline has the record of one file and never heard of the other. */
static void files_tidy_closes_what_nothing_names(void **state)
{
	CLEANUP(timeline_freep) struct timeline *t = NULL;
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord named, other;
	uint8_t bytes[512];
	size_t size;

	(void)state;
	make_file("named", "x");
	make_file("other", "y");
	assert_int_equal(timeline_new(1 << 20, 1 << 20, &t), 0);
	named = mapped(path_of("named"));
	named.time = 1;
	assert_int_equal(perfrecord_compose(&named, bytes, sizeof(bytes), &size), 0);
	assert_int_equal(perfrecord_parse(bytes, size, &named), 0);
	assert_int_equal(timeline_push(t, &named, bytes, size), 0);
	files_see(f, &named);
	other = mapped(path_of("other"));
	files_see(f, &other);
	assert_int_equal(files_count(f), 2);
	files_tidy(f); /* without a timeline, all files stay */
	assert_int_equal(files_count(f), 2);
	files_use(f, t, NULL);
	files_tidy(f);
	assert_int_equal(files_count(f), 1);
	expect_all_named(t, f);
	files_see(f, &other);
	assert_int_equal(files_count(f), 2);
}

static void files_see_of_many_processes_opens_once(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(10);
	struct perfrecord r;
	int fd;

	(void)state;
	make_file("a", "x");
	r = mapped(path_of("a"));
	files_see(f, &r);
	fd = files_at(f, 0)->fd;
	for (uint32_t pid = 1; pid < 50; pid++) {
		r.u.mmap2.pid = r.u.mmap2.tid = pid;
		r.u.mmap2.addr += 0x1000;
		files_see(f, &r);
	}
	assert_int_equal(files_count(f), 1);
	assert_int_equal(files_at(f, 0)->fd, fd);
}

static void files_see_beyond_the_limit_says_so(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files(2);
	static const char *const names[] = {"a", "b", "c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		make_file(names[i], "x");
		struct perfrecord r = mapped(path_of(names[i]));
		files_see(f, &r);
	}
	assert_int_equal(files_count(f), 3);
	assert_true(files_at(f, 1)->fd >= 0);
	assert_true(files_at(f, 2)->fd < 0);
	assert_non_null(strstr(files_at(f, 2)->missing, "more files"));
}

static void make_link(const char *to, const char *name)
{
	char path[128];

	strcpy(path, path_of(to));
	assert_int_equal(symlink(path, path_of(name)), 0);
}

/* With a tree in place of /proc, which has no PROCMAP_QUERY. The record has the path in the layer.
 */
static void files_see_of_an_overlay_takes_what_is_mapped_at_that_place(void **state)
{
	static const char overlay[] = "20 1 0:99 / / rw - overlay overlay rw,lowerdir=/a\n";
	CLEANUP(files_freep) struct files *f = NULL;

	(void)state;
	make_dir("1");
	make_dir("self");
	make_dir("50");
	make_dir("50/map_files");
	make_elf("a", 7);
	make_file("1/mountinfo", overlay);
	make_mountinfo_of("self", dir); /* the device to which the link leads */
	make_file("50/mountinfo", overlay);
	make_file("50/maps", "5000-7000 r-xp 00003000 00:63 5 /mnt/merged/bin/a\n");
	make_link("a", "50/map_files/5000-7000");
	assert_int_equal(files_new(dir, 10, &f), 0);
	struct perfrecord r = mapped_by_build_id("/bin/a", 7);
	r.u.mmap2.pid = 50;
	r.u.mmap2.addr = 0x6000;
	r.u.mmap2.pgoff = 0x3000;
	files_see(f, &r);
	/* A kernel that cannot read build ids compares the offset in the file. */
	assert_int_equal(files_at(f, 0)->fd >= 0, kernel_reads_build_ids());
	r.u.mmap2.pgoff = 0x4000;
	files_see(f, &r);
	assert_true(files_at(f, 0)->fd >= 0);
}

/* A tree in place of /proc: PID 1's mountinfo says that its file lies on FUSE. */
static void files_see_does_not_touch_a_fuse_mount(void **state)
{
	static const char mountinfo[] =
		"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"21 20 0:50 / /mnt/my\\040fuse rw,nosuid shared:1 - fuse.sshfs host: rw\n";
	/* clang-format off */
	static const struct { const char *path; bool blocked; } cases[] = {
		{"/mnt/my fuse/lib.so", true}, {"/mnt/my fuse/a/b", true},
		{"/mnt/my fuses/lib.so", false}, {"/usr/lib.so", false},
	};
	/* clang-format on */
	char path[160], pid_dir[SCRATCH_DIR_SIZE + 8];

	(void)state;
	snprintf(pid_dir, sizeof(pid_dir), "%s/1", dir);
	assert_int_equal(mkdir(pid_dir, 0700), 0);
	make_file("1/mountinfo", mountinfo);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perfrecord r = mapped("/nowhere");
		struct files *f = NULL;

		assert_int_equal(files_new(dir, 10, &f), 0);
		r.u.mmap2.pid = 1;
		r.u.mmap2.ino = 5;
		r.u.mmap2.filename = cases[i].path;
		files_see(f, &r);
		assert_int_equal(strstr(files_at(f, 0)->missing, "FUSE") != NULL, cases[i].blocked);
		files_free(f);
	}
	snprintf(path, sizeof(path), "%s/mountinfo", pid_dir);
	unlink(path);
	rmdir(pid_dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(files_see_opens_a_mapped_file_once),
		CASE(files_see_keeps_a_file_that_is_deleted_later),
		CASE(files_see_ignores_what_is_no_code_of_a_file),
		CASE(files_see_refuses_another_file_at_the_path),
		CASE(files_see_does_not_follow_symlinks),
		CASE(files_see_neither_hangs_on_nor_accepts_a_fifo),
		CASE(files_see_tells_that_a_file_is_gone),
		CASE(files_see_of_an_ended_process_finds_the_file_in_our_root),
		CASE(files_see_opens_a_deleted_file_by_its_mapping),
		CASE(files_see_with_build_id_takes_the_identity_of_the_file),
		CASE(files_see_other_build_id_or_path_is_another_file),
		CASE(files_see_build_id_of_an_ended_process_finds_the_path),
		CASE(files_see_build_id_of_no_file_is_told),
		CASE(files_see_build_id_refuses_another_build_at_the_path),
		CASE(files_see_gone_file_is_had_of_another_of_the_same_build),
		CASE(files_see_gone_file_is_tried_again_with_the_next_mapper),
		CASE(files_see_by_inode_and_by_build_id_is_one_file),
		CASE(files_see_of_an_ended_process_asks_its_parents),
		CASE(files_see_of_many_processes_opens_once),
		CASE(files_see_of_very_many_files_keeps_those_that_the_timeline_names),
		CASE(files_see_beyond_the_limit_says_so),
		CASE(files_tidy_closes_what_nothing_names),
		CASE(files_see_of_an_overlay_takes_what_is_mapped_at_that_place),
		CASE(files_see_does_not_touch_a_fuse_mount),
	};

	return cmocka_run_group_tests_name("daemon/files", tests, NULL, NULL);
}
