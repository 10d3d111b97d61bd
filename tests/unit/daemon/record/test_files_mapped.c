/*
 * Files that processes really map, with the kernel's own MMAP2 records: on mounts that only the
 * process sees, deleted, replaced, unmapped, and on file systems that do not answer. Needs root.
 */
#include "daemon/record/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>

#include "capture/proc/procfile.h"
#include "capture/proc/procmaps.h"
#include "proto/base.h"
#include "tests/support/child.h"
#include "tests/unit/daemon/scratch_dir.h"
#include "tests/unit/daemon/small_elf.h"

#define PAGE	    4096u
#define RECORD_SIZE 1024u

static char dir[SCRATCH_DIR_SIZE];

static const char *path_of(const char *name)
{
	static char path[8][128];
	static unsigned n;

	snprintf(path[++n % 8], sizeof(path[0]), "%s/%s", dir, name);
	return path[n % 8];
}

static int make_elf(const char *path, uint8_t id)
{
	uint8_t bytes[20];

	memset(bytes, 3, sizeof(bytes));
	bytes[19] = id;
	return small_elf_write(path, bytes);
}

/* --- A process that maps --- */

/* The mapper's answer: its record of the mapping, as the kernel wrote it. */
struct told {
	int error; /* errno of the step that failed */
	size_t size;
	uint8_t record[RECORD_SIZE];
};

struct mapper {
	pid_t pid;
	int answer, order; /* pipes */
	struct told told;
	struct perfrecord record;
};

/* Where another event of this host wants build ids, the kernel leaves that bit in our record, too
 * (kernel/events/core.c, perf_event_mmap_output), whose body is right. */
static void mend_record(uint8_t *record, bool build_id)
{
	struct perf_event_header h;

	memcpy(&h, record, sizeof(h));
	if (!build_id)
		h.misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	memcpy(record, &h, sizeof(h));
}

/* In the mapper: the record of the mapping at ADDRESS. */
static int take_record(const struct perf_event_mmap_page *page, const void *address, bool build_id,
		       struct told *ret)
{
	const uint8_t *data = (const uint8_t *)page + PAGE;
	struct perfrecord r;

	for (uint64_t at = 0; at < page->data_head; at += ret->size) {
		ret->size = ((const struct perf_event_header *)(const void *)(data + at))->size;
		if (ret->size == 0 || ret->size > sizeof(ret->record))
			break;
		memcpy(ret->record, data + at, ret->size);
		mend_record(ret->record, build_id);
		if (perfrecord_parse(ret->record, ret->size, &r) == 0 &&
		    r.type == PERF_RECORD_MMAP2 && r.u.mmap2.addr == (uintptr_t)address)
			return 0;
	}
	errno = ENODATA;
	return -1;
}

static void *give_up(struct told *t)
{
	t->error = errno ? errno : EIO;
	return NULL;
}

/* Maps PATH executable while an event watches. */
static void *map_watched(const char *path, bool build_id, struct told *ret)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.build_id = build_id,
		.exclude_kernel = 1,
	};
	int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *ring, *at;

	if (event < 0 || fd < 0)
		return give_up(ret);
	ring = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (ring == MAP_FAILED || at == MAP_FAILED || take_record(ring, at, build_id, ret) < 0)
		return give_up(ret);
	munmap(ring, 9 * PAGE);
	close(event);
	close(fd);
	return at;
}

struct plan {
	/* In the mapper, before and after the mapping; 0 or -1 and errno. May be NULL. */
	int (*before)(void);
	int (*after)(void *mapped);
	const char *name; /* in the test's directory; NULL: "mapped" */
	bool build_id;
};

static void run_mapper(const struct plan *plan, int answer, int order)
{
	struct told told = {0};
	void *at = NULL;
	char byte;

	prctl(PR_SET_NAME, "mapper");
	if (plan->before && plan->before() < 0)
		give_up(&told);
	if (!told.error)
		at = map_watched(path_of(plan->name ? plan->name : "mapped"), plan->build_id,
				 &told);
	if (!told.error && plan->after && plan->after(at) < 0)
		give_up(&told);
	if (write(answer, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	_exit(read(order, &byte, 1) < 0);
}

/* False: this host does not allow it. */
static bool mapper_start(struct mapper *m, const struct plan *plan)
{
	int answer[2], order[2];

	*m = (struct mapper){.pid = -1};
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	assert_int_equal(pipe2(order, O_CLOEXEC), 0);
	m->pid = test_fork();
	assert_true(m->pid >= 0);
	if (m->pid == 0) {
		close(order[1]);
		run_mapper(plan, answer[1], order[0]);
	}
	close(answer[1]);
	close(order[0]);
	m->answer = answer[0];
	m->order = order[1];
	assert_int_equal(read(m->answer, &m->told, sizeof(m->told)), sizeof(m->told));
	if (m->told.error) {
		print_message("not here: %s\n", strerror(m->told.error));
		return false;
	}
	assert_int_equal(perfrecord_parse(m->told.record, m->told.size, &m->record), 0);
	return true;
}

static void mapper_end(struct mapper *m)
{
	close(m->order);
	close(m->answer);
	assert_int_equal(waitpid(m->pid, NULL, 0), m->pid);
}

/* --- What is expected --- */

static struct files *new_files(void)
{
	struct files *f = NULL;

	assert_int_equal(files_new("/proc", 100, &f), 0);
	return f;
}

/* skip() leaves the test at once, so everything is freed first. */
static void start_or_skip(struct mapper *m, const struct plan *plan, struct files *f)
{
	if (mapper_start(m, plan))
		return;
	mapper_end(m);
	files_free(f);
	skip();
}

static void expect_build(const struct files_entry *e, uint8_t id)
{
	uint8_t bytes[256];
	ssize_t n;

	assert_non_null(e);
	if (e->missing)
		fail_msg("%s", e->missing);
	n = pread(e->fd, bytes, sizeof(bytes), 0);
	assert_true(n > 0 && (uint64_t)n == e->size);
	assert_int_equal(bytes[n - 1], id);
}

/* The record that a scan of /proc would make. */
static struct perfrecord by_maps(const struct mapper *m)
{
	CLEANUP_CLOSE int proc = -EBADF;
	struct perfrecord r = m->record;
	static struct mapquery q;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", m->pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mapquery_at(proc, r.u.mmap2.addr, &q), 0);
	r.misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	r.u.mmap2.build_id_size = 0;
	r.u.mmap2.maj = q.maj;
	r.u.mmap2.min = q.min;
	r.u.mmap2.ino = q.ino;
	r.u.mmap2.ino_generation = 0;
	r.u.mmap2.filename = q.path;
	return r;
}

/* Seen by inode and by build id, live and in /proc: always the mapped file, and listed once. */
static void expect_found(struct plan plan, uint8_t id)
{
	for (int i = 0; i < 2; i++) {
		CLEANUP(files_freep) struct files *f = new_files();
		struct perfrecord maps;
		struct mapper m;

		plan.build_id = i;
		start_or_skip(&m, &plan, f);
		assert_int_equal(!!(m.record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID), i);
		files_see(f, &m.record);
		expect_build(files_at(f, 0), id);
		maps = by_maps(&m);
		if (strcmp(maps.u.mmap2.filename, m.record.u.mmap2.filename) == 0) {
			files_see(f, &maps);
			assert_int_equal(files_count(f), 1);
			assert_int_equal(files_at(f, 0)->build_id_size, i ? 20 : 0);
		}
		mapper_end(&m);
	}
}

/* --- Mounts that only the mapper sees --- */

static int own_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -1;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int tmpfs_with_file(void)
{
	if (own_mounts() < 0 || mount("t", path_of("mnt"), "tmpfs", 0, NULL) < 0)
		return -1;
	return make_elf(path_of("mnt/f"), 1);
}

/* The layers are on two file systems, so stat(2) has device numbers that no mount has. */
static int overlay_mount(void)
{
	char options[512];

	if (own_mounts() < 0 || mount("t", path_of("upper"), "tmpfs", 0, NULL) < 0 ||
	    mkdir(path_of("upper/u"), 0700) < 0 || mkdir(path_of("upper/w"), 0700) < 0)
		return -1;
	snprintf(options, sizeof(options),
		 "lowerdir=%s/lower,upperdir=%s/upper/u,workdir=%s/upper/w", dir, dir, dir);
	return mount("o", path_of("mnt"), "overlay", 0, options);
}

static int overlay_upper(void)
{
	if (overlay_mount() < 0)
		return -1;
	return make_elf(path_of("mnt/f"), 1);
}

static int remove_file(void *mapped)
{
	(void)mapped;
	return unlink(path_of("mnt/f"));
}

static int unmount(void *mapped)
{
	(void)mapped;
	return umount2(path_of("mnt"), MNT_DETACH);
}

static void files_see_of_a_private_tmpfs_finds_the_file(void **state)
{
	(void)state;
	expect_found((struct plan){.before = tmpfs_with_file, .name = "mnt/f"}, 1);
}

static void files_see_of_a_private_tmpfs_finds_a_deleted_file(void **state)
{
	(void)state;
	expect_found(
		(struct plan){.before = tmpfs_with_file, .after = remove_file, .name = "mnt/f"}, 1);
}

static void files_see_of_an_overlay_finds_a_file_of_the_lower_layer(void **state)
{
	(void)state;
	assert_int_equal(make_elf(path_of("lower/f"), 1), 0);
	expect_found((struct plan){.before = overlay_mount, .name = "mnt/f"}, 1);
}

static void files_see_of_an_overlay_finds_a_file_of_the_upper_layer(void **state)
{
	(void)state;
	assert_int_equal(make_elf(path_of("lower/f"), 2), 0);
	expect_found((struct plan){.before = overlay_upper, .name = "mnt/f"}, 1);
}

static int unmap(void *mapped)
{
	return munmap(mapped, PAGE);
}

/* The process that mapped the file is gone, but not its container. */
static void files_see_of_a_gone_process_asks_its_living_parent(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files();
	CLEANUP(procs_freep) struct procs *procs = NULL;
	struct plan plan = {.before = tmpfs_with_file, .name = "mnt/f", .build_id = true};
	struct mapper m;

	(void)state;
	start_or_skip(&m, &plan, f);
	assert_int_equal(procs_new("/proc", 8, NULL, &procs), 0);
	files_use(f, NULL, procs);
	m.record.u.mmap2.pid = 0x7ffffff0u; /* beyond any pid_max */
	files_see(f, &m.record);
	assert_int_equal(strncmp(files_at(f, 0)->missing, "gone:", 5), 0);
	procs_fork(procs, m.record.u.mmap2.pid, (uint32_t)m.pid, 1);
	files_see(f, &m.record);
	expect_build(files_at(f, 0), 1);
	mapper_end(&m);
}

/* As systemd's RestrictSUIDSGID=yes does. */
static int deny_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(filter), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
		       ? -1
		       : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Sees R, of a process that is gone, from where its file is hidden, as by ProtectHome=yes. Returns
 * the exit status: 0, if the file was found. */
static int see_from_aside(const struct perfrecord *r)
{
	CLEANUP(files_freep) struct files *f = new_files();

	if (own_mounts() < 0 || mount("t", path_of("lower"), "tmpfs", 0, NULL) < 0)
		return 77;
	files_see(f, r);
	return files_at(f, 0)->fd >= 0 ? 0 : 1;
}

/* Has a child see R of a process that is gone by SEE. */
static void expect_seen(const struct perfrecord *r, int (*see)(const struct perfrecord *r))
{
	int status;
	pid_t pid = test_fork();

	if (pid == 0)
		_exit(see(r));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void files_see_of_a_gone_process_asks_process_1(void **state)
{
	struct plan plan = {.name = "lower/f"};
	struct mapper m;

	(void)state;
	/* In a container, process 1 may be out of reach. */
	if (access("/proc/1/root/", F_OK) < 0)
		skip();
	assert_int_equal(make_elf(path_of("lower/f"), 1), 0);
	start_or_skip(&m, &plan, NULL);
	mapper_end(&m);
	m.record.u.mmap2.pid = 0x7ffffff0u; /* beyond any pid_max */
	expect_seen(&m.record, see_from_aside);
}

/* Sees R, of a process that is gone, where openat2(2) is denied. Returns the exit status: 0, if the
 * reason says so. */
static int see_without_openat2(const struct perfrecord *r)
{
	CLEANUP(files_freep) struct files *f = new_files();

	if (deny_openat2() < 0)
		return 77;
	files_see(f, r);
	return files_at(f, 0)->missing && strstr(files_at(f, 0)->missing, "openat2(2)") ? 0 : 1;
}

/* The file is still there: nobody may say that it is gone. */
static void files_see_of_a_gone_process_without_openat2_says_so(void **state)
{
	struct plan plan = {.name = "lower/f"};
	struct mapper m;

	(void)state;
	assert_int_equal(make_elf(path_of("lower/f"), 1), 0);
	start_or_skip(&m, &plan, NULL);
	mapper_end(&m);
	m.record.u.mmap2.pid = 0x7ffffff0u; /* beyond any pid_max */
	expect_seen(&m.record, see_without_openat2);
	CLEANUP(files_freep) struct files *f = new_files();
	files_see(f, &m.record);
	expect_build(files_at(f, 0), 1);
}

/* The file is found by path, although stat(2) and the record have different devices. */
static void files_see_of_an_overlay_finds_a_file_that_is_mapped_no_more(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		CLEANUP(files_freep) struct files *f = new_files();
		struct plan plan = {
			.before = overlay_upper, .after = unmap, .name = "mnt/f", .build_id = i};
		struct mapper m;

		start_or_skip(&m, &plan, f);
		files_see(f, &m.record);
		expect_build(files_at(f, 0), 1);
		mapper_end(&m);
	}
}

static int write_to(const char *path, const char *text)
{
	CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int become_other_user_root(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    write_to("/proc/self/uid_map", "0 0 1") < 0 ||
	    write_to("/proc/self/setgroups", "deny") < 0)
		return -1;
	return write_to("/proc/self/gid_map", "0 0 1");
}

static int tmpfs_of_other_user(void)
{
	return become_other_user_root() < 0 ? -1 : tmpfs_with_file();
}

static int overlay_of_other_user(void)
{
	return become_other_user_root() < 0 ? -1 : overlay_upper();
}

static void files_see_in_another_user_namespace_finds_the_file(void **state)
{
	(void)state;
	expect_found((struct plan){.before = tmpfs_of_other_user, .name = "mnt/f"}, 1);
}

/* The overlay's layers may be on FUSE. */
static void files_see_of_an_overlay_of_another_user_does_not_touch_it(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files();
	struct plan plan = {.before = overlay_of_other_user, .name = "mnt/f"};
	struct mapper m;

	(void)state;
	start_or_skip(&m, &plan, f);
	files_see(f, &m.record);
	assert_non_null(strstr(files_at(f, 0)->missing, "another user's overlay"));
	mapper_end(&m);
}

/* A detached mount is in no table, so its file system is unknown. */
static void files_see_of_a_detached_mount_does_not_touch_it(void **state)
{
	CLEANUP(files_freep) struct files *f = new_files();
	struct plan plan = {.before = tmpfs_with_file, .after = unmount, .name = "mnt/f"};
	struct mapper m;

	(void)state;
	start_or_skip(&m, &plan, f);
	files_see(f, &m.record);
	assert_non_null(files_at(f, 0)->missing);
	mapper_end(&m);
}

/* --- Files that come and go --- */

static int replace(void *mapped)
{
	(void)mapped;
	if (make_elf(path_of("new"), 2) < 0)
		return -1;
	return rename(path_of("new"), path_of("mapped"));
}

static int delete (void *mapped)
{
	(void)mapped;
	return unlink(path_of("mapped"));
}

static int map_other(void *mapped)
{
	int fd;

	if (make_elf(path_of("other"), 9) < 0)
		return -1;
	fd = open(path_of("other"), O_RDONLY | O_CLOEXEC);
	return mmap(mapped, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == mapped
		       ? 0
		       : -1;
}

static int map_other_and_delete(void *mapped)
{
	return map_other(mapped) < 0 ? -1 : delete (mapped);
}

static int map_other_and_replace(void *mapped)
{
	return map_other(mapped) < 0 ? -1 : replace(mapped);
}

static int make_mapped(void)
{
	return make_elf(path_of("mapped"), 1);
}

static void files_see_of_a_deleted_file_finds_it(void **state)
{
	(void)state;
	expect_found((struct plan){.before = make_mapped, .after = delete}, 1);
}

static void files_see_of_a_replaced_file_finds_the_old_one(void **state)
{
	(void)state;
	expect_found((struct plan){.before = make_mapped, .after = replace}, 1);
}

static void files_see_of_a_mapping_that_was_replaced(void **state)
{
	/* clang-format off */
	static const struct { int (*after)(void *mapped); const char *why; } cases[] = {
		{map_other, NULL},
		{map_other_and_delete, "gone: process and file"},
		{map_other_and_replace, "gone: its path names another"},
	};
	/* clang-format on */
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		CLEANUP(files_freep) struct files *f = new_files();
		struct plan plan = {
			.before = make_mapped, .after = cases[i / 2].after, .build_id = i % 2};
		struct mapper m;

		start_or_skip(&m, &plan, f);
		files_see(f, &m.record);
		if (!cases[i / 2].why)
			expect_build(files_at(f, 0), 1);
		else
			assert_non_null(strstr(files_at(f, 0)->missing, cases[i / 2].why));
		mapper_end(&m);
	}
}

/* --- File systems that do not answer --- */

static pid_t fuse_start(void)
{
	const char *build = getenv("PTSNAP_BUILDDIR");
	char program[256], ready[8] = "";
	int answer[2];
	pid_t pid;

	assert_int_equal(make_elf(path_of("source"), 1), 0);
	snprintf(program, sizeof(program), "%s/tests/support/fuse_file", build ? build : ".");
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	pid = test_fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(answer[1], STDOUT_FILENO);
		execl(program, "fuse_file", path_of("mnt"), "f", path_of("source"), path_of("log"),
		      "test_files_mapp", (char *)NULL);
		_exit(127);
	}
	close(answer[1]);
	if (read(answer[0], ready, sizeof(ready) - 1) <= 0) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(answer[0]);
	return pid;
}

static void fuse_end(pid_t pid)
{
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

/* The FUSE file system is mounted after the record was looked at. */
static void expect_not_asked(void)
{
	int process;

	assert_int_equal(procfile_process("/proc", (uint32_t)getpid(), &process), 0);
	assert_int_equal(procfile_beneath(process, path_of("mnt/f"), 0), -EAGAIN);
	close(process);
}

/* Touching the file would hang for ever. */
static void files_see_of_fuse_touches_nothing(void **state)
{
	int (*const after[])(void *mapped) = {NULL, unmap, map_other};
	pid_t server = fuse_start();
	struct stat st;

	(void)state;
	if (server < 0)
		skip();
	expect_not_asked();
	for (size_t i = 0; i < 2 * ARRAY_SIZE(after); i++) {
		CLEANUP(files_freep) struct files *f = new_files();
		struct plan plan = {.name = "mnt/f", .after = after[i / 2], .build_id = i % 2};
		struct mapper m;

		assert_true(mapper_start(&m, &plan));
		files_see(f, &m.record);
		files_see(f, &m.record);
		assert_non_null(strstr(files_at(f, 0)->missing, "FUSE"));
		mapper_end(&m);
		/* The same when the process is gone. */
		files_see(f, &m.record);
		assert_true(files_at(f, 0)->fd < 0);
	}
	fuse_end(server);
	assert_int_equal(stat(path_of("log"), &st), 0);
	assert_int_equal(st.st_size, 0);
}

static int setup(void **state)
{
	static const char *const dirs[] = {"mnt", "lower", "upper"};
	char *real;

	(void)state;
	prctl(PR_SET_NAME, "test_files_mapp");
	scratch_dir_make(dir);
	real = realpath(dir, NULL); /* records name files without symlinks */
	if (strlen(real) < sizeof(dir))
		strcpy(dir, real);
	free(real);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(mkdir(path_of(dirs[i]), 0700), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_dir_remove(path_of("mnt"));
	scratch_dir_remove(path_of("lower"));
	scratch_dir_remove(path_of("upper"));
	scratch_dir_remove(dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(files_see_of_a_private_tmpfs_finds_the_file),
		CASE(files_see_of_a_private_tmpfs_finds_a_deleted_file),
		CASE(files_see_of_an_overlay_finds_a_file_of_the_lower_layer),
		CASE(files_see_of_an_overlay_finds_a_file_of_the_upper_layer),
		CASE(files_see_of_a_gone_process_asks_its_living_parent),
		CASE(files_see_of_a_gone_process_asks_process_1),
		CASE(files_see_of_a_gone_process_without_openat2_says_so),
		CASE(files_see_of_an_overlay_finds_a_file_that_is_mapped_no_more),
		CASE(files_see_in_another_user_namespace_finds_the_file),
		CASE(files_see_of_an_overlay_of_another_user_does_not_touch_it),
		CASE(files_see_of_a_detached_mount_does_not_touch_it),
		CASE(files_see_of_a_deleted_file_finds_it),
		CASE(files_see_of_a_replaced_file_finds_the_old_one),
		CASE(files_see_of_a_mapping_that_was_replaced),
		CASE(files_see_of_fuse_touches_nothing),
	};

	return cmocka_run_group_tests_name("daemon/files_mapped", tests, NULL, NULL);
}
