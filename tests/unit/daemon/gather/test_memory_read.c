/*
 * Reads the memory of a real child: which pages become images, and which file has the names.
 */
#include "daemon/gather/memory_read.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procscan.h"
#include "daemon/record/memory.h"
#include "proto/base.h"
#include "tests/support/child.h"
#include "tests/unit/daemon/scratch_dir.h"

#define PAGE  4096u
#define PAGES 6u

static char dir[SCRATCH_DIR_SIZE];
static const struct source_ops ops = {.name = "test"};
static struct source source = {.ops = &ops, .clock_is_monotonic = true};
static const struct memory_limits wide = {1u << 20, 1u << 20, 4096, 1u << 20};

struct child {
	pid_t pid;
	uint64_t at; /* PAGES pages, of which the third was never touched */
	char map[64];
};

static uid_t uid; /* of children; 0: ours */
/* The size of the jitdump that children write and map; 0: they write none. */
static size_t dump_size;

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
	return 0;
}

/* Byte I of the file is I / 64. */
static void write_dump(void)
{
	char path[SCRATCH_DIR_SIZE + 32];
	uint8_t byte;
	int fd;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, getpid());
	fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
	for (size_t i = 0; i < dump_size; i++) {
		byte = (uint8_t)(i / 64);
		if (write(fd, &byte, 1) != 1)
			_exit(1);
	}
	if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
}

static void __attribute__((noreturn)) be_child(uint8_t *code)
{
	if (dump_size > 0)
		write_dump();
	for (unsigned int i = 0; i < PAGES; i++)
		if (i != 2)
			memset(code + i * PAGE, (int)(0xa0 + i), PAGE);
	/* The fifth page is a mapping of its own. */
	mprotect(code, PAGES * PAGE, PROT_READ | PROT_EXEC);
	mprotect(code + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	if (uid && setresuid(uid, uid, uid) < 0)
		_exit(1);
	raise(SIGSTOP);
	_exit(0);
}

static struct child start(void)
{
	uint8_t *code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct child c = {.at = (uint64_t)code};
	int status;

	c.pid = test_fork();
	if (c.pid == 0)
		be_child(code);
	assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
	assert_true(WIFSTOPPED(status));
	munmap(code, PAGES * PAGE);
	snprintf(c.map, sizeof(c.map), "/tmp/perf-%d.map", c.pid);
	return c;
}

static void stop(const struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	unlink(c->map);
}

/* Evidence as the loop would hand it over, with one region. */
static struct evidence *evidence_of(const struct child *c, uint64_t at, uint64_t size)
{
	struct evidence *e = calloc(1, sizeof(*e));

	manifest_init(&e->manifest);
	bytes_out_init(&e->sideband, 0);
	e->traced = true;
	e->regions = calloc(1, sizeof(*e->regions));
	e->regions[0] =
		(struct memory_region){.pid = (uint32_t)c->pid, .address = at, .size = size};
	e->n_regions = 1;
	return e;
}

static void check_image(const struct evidence *e, size_t i, uint64_t address, uint64_t size,
			uint8_t first)
{
	const struct manifest_image *image = &e->manifest.images[i];
	uint8_t byte;

	assert_true(i < e->manifest.n_images);
	assert_string_equal(image->kind, MANIFEST_IMAGE_MEMORY);
	assert_string_equal(image->path, "//anon");
	assert_int_equal(image->pid, e->regions[0].pid);
	assert_int_equal(image->address, address);
	assert_true(image->elsewhere);
	assert_int_equal(image->file_size, size);
	assert_true(image->read_ns > 0 && image->read_ns != MANIFEST_ABSENT);
	assert_int_equal(pread(e->images[i].fd, &byte, 1, 0), 1);
	assert_int_equal(byte, first);
	assert_int_equal(lseek(e->images[i].fd, 0, SEEK_END), (off_t)size);
}

static size_t read_it(struct evidence *e, const struct memory_limits *limits)
{
	assert_int_equal(memory_read(&source, "/proc", limits, e), 0);
	/* Our own vDSO comes first. */
	assert_string_equal(e->manifest.images[0].kind, MANIFEST_IMAGE_VDSO);
	return e->manifest.n_images - 1;
}

static void memory_read_pages_that_are_there_are_images_and_holes_are_not(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of(&c, c.at, PAGES * PAGE);

	(void)state;
	assert_int_equal(read_it(e, &wide), 2);
	check_image(e, 1, c.at, 2 * PAGE, 0xa0);
	check_image(e, 2, c.at + 3 * PAGE, 3 * PAGE, 0xa3);
	assert_int_equal(e->manifest.n_notes, 0);
	assert_int_equal(e->manifest.n_texts, 0);
	evidence_free(e);
	/* A region has any size in bytes and is read in whole pages. */
	e = evidence_of(&c, c.at + PAGE + 5, 10);
	assert_int_equal(read_it(e, &wide), 1);
	check_image(e, 1, c.at + PAGE, PAGE, 0xa1);
	evidence_free(e);
	stop(&c);
}

/* Two regions, of which nothing was written since 5 and 6, as records tell. */
static struct evidence *evidence_of_two(const struct child *c)
{
	struct evidence *e = evidence_of(c, c->at, 2 * PAGE);
	struct memory_region *both = calloc(2, sizeof(*both));

	both[0] = both[1] = e->regions[0];
	both[0].unchanged_ns = 5;
	both[1].address += 2 * PAGE;
	both[1].size = (PAGES - 2) * PAGE;
	both[1].unchanged_ns = 6;
	free(e->regions);
	e->regions = both;
	e->n_regions = 2;
	return e;
}

/* Memory that is writable when the mappings are looked at again may have been written to. */
static void memory_read_what_is_writable_now_may_have_changed(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of_two(&c);

	(void)state;
	assert_int_equal(read_it(e, &wide), 2);
	check_image(e, 1, c.at, 2 * PAGE, 0xa0);
	check_image(e, 2, c.at + 3 * PAGE, 3 * PAGE, 0xa3);
	assert_int_equal(e->manifest.images[1].unchanged_ns, 5);
	assert_true(e->manifest.images[2].unchanged_ns == MANIFEST_ABSENT);
	assert_true(evidence_has_unchanged(e));
	evidence_free(e);
	/* Nothing is said of what no record tells of. */
	e = evidence_of_two(&c);
	e->regions[0].unchanged_ns = MEMORY_UNKNOWN;
	assert_int_equal(read_it(e, &wide), 2);
	assert_true(e->manifest.images[1].unchanged_ns == MANIFEST_ABSENT);
	assert_false(evidence_has_unchanged(e));
	evidence_free(e);
	stop(&c);
}

/* Ranges that touch, of which different things are known, are images of their own. */
static void memory_read_what_is_unchanged_since_another_time_stays_apart(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of_two(&c);

	(void)state;
	e->regions[0].size = PAGE;
	e->regions[1].address = c.at + PAGE;
	e->regions[1].size = PAGE;
	assert_int_equal(read_it(e, &wide), 2);
	check_image(e, 1, c.at, PAGE, 0xa0);
	check_image(e, 2, c.at + PAGE, PAGE, 0xa1);
	assert_int_equal(e->manifest.images[1].unchanged_ns, 5);
	assert_int_equal(e->manifest.images[2].unchanged_ns, 6);
	evidence_free(e);
	stop(&c);
}

static void map_code(struct memory *m, const struct child *c, uint64_t time, uint64_t at)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .time = time};

	r.u.mmap2.pid = (uint32_t)c->pid;
	r.u.mmap2.addr = at;
	r.u.mmap2.len = PAGE;
	r.u.mmap2.prot = PROT_READ | PROT_EXEC;
	r.u.mmap2.flags = MAP_PRIVATE;
	r.u.mmap2.filename = "//anon";
	memory_see(m, &r, time);
}

/* A record came while the memory was read. */
static void evidence_look_at_records_that_came_meanwhile_may_be_of_a_change(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of_two(&c);
	struct memory *m;

	(void)state;
	assert_int_equal(memory_new(8, &m), 0);
	e->regions[0].size = PAGE;
	e->regions[1].address = c.at + PAGE;
	e->regions[1].size = PAGE;
	map_code(m, &c, 5, c.at);
	map_code(m, &c, 6, c.at + PAGE);
	assert_int_equal(read_it(e, &wide), 2);
	evidence_look_at_records(e, m);
	assert_int_equal(e->manifest.images[1].unchanged_ns, 5);
	assert_int_equal(e->manifest.images[2].unchanged_ns, 6);
	map_code(m, &c, 90, c.at);
	evidence_look_at_records(e, m);
	assert_true(e->manifest.images[1].unchanged_ns == MANIFEST_ABSENT);
	assert_int_equal(e->manifest.images[2].unchanged_ns, 6);
	memory_lost(m, 91);
	evidence_look_at_records(e, m);
	assert_true(e->manifest.images[2].unchanged_ns == MANIFEST_ABSENT);
	memory_free(m);
	evidence_free(e);
	stop(&c);
}

/* A file is unchanged since its inode's last change, in the trigger's clocks. */
static void evidence_date_files_by_their_last_change(void **state)
{
	struct evidence *e = calloc(1, sizeof(*e));
	struct manifest *m = &e->manifest;
	char path[SCRATCH_DIR_SIZE + 16];
	uint64_t changed;
	struct stat st;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	changed = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
	manifest_init(m);
	assert_non_null(evidence_add_image(e, fd, 1));
	assert_non_null(evidence_add_image(e, -1, 0));
	evidence_date_files(e);
	assert_true(m->images[0].unchanged_ns == MANIFEST_ABSENT);
	/* The trigger came a minute later; a tick of the kernel's clock is added. */
	m->realtime_ns = changed + UINT64_C(60000000000);
	m->perf_ns = UINT64_C(100000000000);
	evidence_date_files(e);
	assert_int_equal(m->images[0].unchanged_ns, UINT64_C(40010000000));
	assert_true(m->images[1].unchanged_ns == MANIFEST_ABSENT);
	/* Files are no memory that the loop has to look at. */
	assert_false(evidence_has_unchanged(e));
	/* Before the perf clock began. */
	m->perf_ns = 1000;
	evidence_date_files(e);
	assert_int_equal(m->images[0].unchanged_ns, 0);
	/* The file changed at the trigger or later. */
	m->realtime_ns = changed;
	evidence_date_files(e);
	assert_int_equal(m->images[0].unchanged_ns, 1000);
	unlink(path);
	evidence_free(e);
}

/* The process has mapped more than is looked at. */
static void memory_read_of_endless_memory_ends(void **state)
{
	uint64_t size = (uint64_t)16 << 40;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct child c = {.pid = getpid(), .at = (uint64_t)at};
	struct evidence *e;

	(void)state;
	if (at == MAP_FAILED)
		skip();
	*(uint8_t *)at = 0xc3;
	e = evidence_of(&c, c.at, size);
	assert_int_equal(read_it(e, &wide), 1);
	assert_int_equal(e->images[1].size, PAGE);
	assert_int_equal(e->manifest.n_notes, 1);
	assert_true(e->manifest.notes[0].count > size / 2);
	evidence_free(e);
	munmap(at, size);
}

static void memory_read_own_vdso_is_an_image_of_all(void **state)
{
	struct child c = {.pid = INT32_MAX};
	struct evidence *e = evidence_of(&c, PAGE, PAGE);
	const struct manifest_image *image;
	uint64_t size;
	char magic[4];

	(void)state;
	assert_non_null(vdso_own(&size));
	assert_int_equal(read_it(e, &wide), 0);
	image = &e->manifest.images[0];
	assert_string_equal(image->path, "[vdso]");
	assert_true(image->pid == MANIFEST_ANY && image->address == MANIFEST_ABSENT);
	assert_int_equal(image->file_size, size);
	assert_int_equal(pread(e->images[0].fd, magic, 4, 0), 4);
	assert_memory_equal(magic, "\177ELF", 4);
	evidence_free(e);
}

static void memory_read_where_nothing_was_traced_reads_nothing(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of(&c, c.at, PAGES * PAGE);

	(void)state;
	e->traced = false;
	assert_int_equal(memory_read(&source, "/proc", &wide, e), 0);
	assert_int_equal(e->manifest.n_images, 0);
	evidence_free(e);
	stop(&c);
}

static void memory_read_another_process_or_none_gives_nothing(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of(&c, c.at, PAGES * PAGE);
	struct manifest_process *p = manifest_add_process(&e->manifest);

	(void)state;
	p->pid = (uint32_t)c.pid;
	p->start_ns = 12345; /* another process had the pid */
	assert_int_equal(read_it(e, &wide), 0);
	evidence_free(e);
	stop(&c);
	e = evidence_of(&c, c.at, PAGES * PAGE);
	assert_int_equal(read_it(e, &wide), 0);
	assert_int_equal(e->manifest.n_notes, 0);
	evidence_free(e);
}

/* The code of our own program is a file's, not memory's. */
static void memory_read_where_a_file_is_mapped_now_gives_nothing(void **state)
{
	struct child c = start();
	uint64_t here = (uint64_t)(uintptr_t)start & ~(uint64_t)(PAGE - 1);
	struct evidence *e = evidence_of(&c, here, PAGE);

	(void)state;
	assert_int_equal(read_it(e, &wide), 0);
	evidence_free(e);
	stop(&c);
}

static void memory_read_beyond_the_limits_is_noted(void **state)
{
	const struct memory_limits process = {PAGE, 1u << 20, 0, 0};
	const struct memory_limits all = {1u << 20, 4 * PAGE, 0, 0};
	struct child c = start();
	struct evidence *e = evidence_of(&c, c.at, PAGES * PAGE);

	(void)state;
	assert_int_equal(read_it(e, &process), 1);
	check_image(e, 1, c.at, PAGE, 0xa0);
	assert_int_equal(e->manifest.n_notes, 1);
	assert_string_equal(e->manifest.notes[0].kind, "anonymous");
	assert_int_equal(e->manifest.notes[0].count, 4 * PAGE);
	evidence_free(e);
	e = evidence_of(&c, c.at, PAGES * PAGE);
	assert_int_equal(read_it(e, &all), 2);
	check_image(e, 2, c.at + 3 * PAGE, 2 * PAGE, 0xa3);
	assert_int_equal(e->manifest.notes[0].count, PAGE);
	evidence_free(e);
	stop(&c);
}

static void write_map(const struct child *c, const char *text)
{
	CLEANUP_CLOSE int fd = open(c->map, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Returns why there are no names; NULL: there is no text at all. */
static void check_no_names(const struct child *c, const char *why)
{
	struct evidence *e = evidence_of(c, c->at, PAGE);

	read_it(e, &wide);
	assert_int_equal(e->manifest.n_texts, why ? 1 : 0);
	if (why) {
		assert_int_equal(e->manifest.texts[0].size, 0);
		assert_non_null(strstr(e->manifest.texts[0].missing, why));
	}
	evidence_free(e);
}

static void memory_read_names_are_a_text(void **state)
{
	struct child c = start();
	struct evidence *e = evidence_of(&c, c.at, PAGE);

	(void)state;
	write_map(&c, "1000 10 name\n");
	read_it(e, &wide);
	assert_int_equal(e->manifest.n_texts, 1);
	assert_string_equal(e->manifest.texts[0].kind, MANIFEST_TEXT_PERF_MAP);
	assert_int_equal(e->manifest.texts[0].pid, c.pid);
	assert_int_equal(e->manifest.texts[0].size, 13);
	assert_null(e->manifest.texts[0].missing);
	assert_memory_equal(e->texts[0].data, "1000 10 name\n", 13);
	evidence_free(e);
	stop(&c);
}

static void memory_read_names_that_are_not_to_be_trusted_are_not_read(void **state)
{
	static char large[5000];
	struct child c = start();
	char other[SCRATCH_DIR_SIZE + 16];

	(void)state;
	check_no_names(&c, NULL);
	write_map(&c, "");
	check_no_names(&c, NULL);
	memset(large, 'x', sizeof(large) - 1);
	write_map(&c, large);
	check_no_names(&c, "larger");
	unlink(c.map);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(symlink(other, c.map), 0);
	check_no_names(&c, "regular");
	unlink(c.map);
	assert_int_equal(mkfifo(c.map, 0666), 0);
	check_no_names(&c, "regular");
	unlink(c.map);
	write_map(&c, "1000 10 name\n");
	if (chown(c.map, 12345, 12345) == 0)
		check_no_names(&c, "neither");
	stop(&c);
}

/* A bind mount or a hard link can lead to any file of root. */
static void memory_read_names_in_a_file_that_the_process_may_not_read_are_not_read(void **state)
{
	struct evidence *e;
	struct child c;

	(void)state;
	if (geteuid() != 0)
		skip();
	uid = 12345;
	c = start();
	uid = 0;
	write_map(&c, "1000 10 name\n");
	e = evidence_of(&c, c.at, PAGE);
	read_it(e, &wide);
	assert_int_equal(e->manifest.n_texts, 1);
	assert_null(e->manifest.texts[0].missing);
	evidence_free(e);
	assert_int_equal(chmod(c.map, 0640), 0);
	check_no_names(&c, "neither");
	stop(&c);
}

static struct child start_with_dump(size_t size)
{
	struct child c;

	dump_size = size;
	c = start();
	dump_size = 0;
	return c;
}

/* The jitdump is the last image. */
static const struct manifest_image *the_dump(const struct evidence *e, const struct child *c)
{
	const struct manifest_image *image = &e->manifest.images[e->manifest.n_images - 1];
	char path[SCRATCH_DIR_SIZE + 32];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, c->pid);
	assert_string_equal(image->kind, MANIFEST_IMAGE_JITDUMP);
	assert_string_equal(image->path, path);
	assert_int_equal(image->pid, c->pid);
	assert_int_not_equal(image->read_ns, MANIFEST_ABSENT);
	assert_int_equal(image->unchanged_ns, MANIFEST_ABSENT);
	return image;
}

static uint8_t byte_at(const struct evidence *e, off_t at)
{
	uint8_t byte;

	assert_int_equal(pread(e->images[e->manifest.n_images - 1].fd, &byte, 1, at), 1);
	return byte;
}

static void memory_read_jitdump_that_is_mapped_is_an_image(void **state)
{
	struct child c = start_with_dump(3000);
	struct evidence *e = evidence_of(&c, c.at, PAGE);

	(void)state;
	read_it(e, &wide);
	assert_true(the_dump(e, &c)->elsewhere);
	assert_null(the_dump(e, &c)->missing);
	assert_int_equal(the_dump(e, &c)->file_size, 3000);
	assert_int_equal(byte_at(e, 0), 0);
	assert_int_equal(byte_at(e, 2999), 2999 / 64);
	assert_int_equal(e->manifest.n_notes, 0);
	evidence_free(e);
	stop(&c);
}

static void memory_read_jitdump_beyond_the_limit_has_its_newest_part(void **state)
{
	const struct memory_limits limits = {1u << 20, 1u << 20, 1u << 16, 1u << 20};
	const struct memory_limits none = {1u << 20, 1u << 20, 4096, 1u << 20};
	struct child c = start_with_dump((1u << 16) + 640);
	struct evidence *e = evidence_of(&c, c.at, PAGE);

	(void)state;
	read_it(e, &limits);
	assert_null(the_dump(e, &c)->missing);
	assert_int_equal(the_dump(e, &c)->file_size, 1u << 16);
	assert_int_equal(byte_at(e, 39), 0);
	assert_int_equal(byte_at(e, 40), (640 + 40) / 64);
	assert_int_equal(byte_at(e, (1u << 16) - 1), (uint8_t)(((1u << 16) + 639) / 64));
	assert_int_equal(e->manifest.n_notes, 1);
	assert_int_equal(e->manifest.notes[0].count, 640);
	assert_non_null(strstr(e->manifest.notes[0].why, "jitdump"));
	evidence_free(e);
	e = evidence_of(&c, c.at, PAGE);
	read_it(e, &none);
	assert_non_null(strstr(the_dump(e, &c)->missing, "larger"));
	evidence_free(e);
	stop(&c);
}

static void memory_read_jitdump_that_is_not_to_be_trusted_is_not_read(void **state)
{
	struct child c = start_with_dump(3000);
	struct evidence *e = evidence_of(&c, c.at, PAGE);
	char path[SCRATCH_DIR_SIZE + 32], other[SCRATCH_DIR_SIZE + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, c.pid);
	snprintf(other, sizeof(other), "%s/other", dir);
	if (chown(path, 12345, 12345) == 0) {
		read_it(e, &wide);
		assert_non_null(strstr(the_dump(e, &c)->missing, "neither"));
		assert_int_equal(the_dump(e, &c)->size, 0);
	}
	evidence_free(e);
	/* Another file of that name: the mapping's name then says that its own was deleted. */
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	e = evidence_of(&c, c.at, PAGE);
	read_it(e, &wide);
	assert_string_equal(e->manifest.images[e->manifest.n_images - 1].kind,
			    MANIFEST_IMAGE_MEMORY);
	evidence_free(e);
	unlink(path);
	stop(&c);
}

/* Starts a child with a pid namespace and a /tmp of its own. The child between us waits, too. 0:
 * not possible here. */
static pid_t start_in_container(void)
{
	int news[2], n;
	pid_t pid = 0;

	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	if (test_fork() == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("none", "/tmp", "tmpfs", 0, NULL) != 0)
			_exit(1);
		pid = test_fork();
		if (pid > 0) {
			n = (int)write(news[1], &pid, sizeof(pid));
			_exit(n != sizeof(pid) || wait(NULL) != pid);
		}
		n = open("/tmp/perf-1.map", O_CREAT | O_WRONLY, 0644);
		if (getpid() != 1 || write(n, "1 2 x\n", 6) != 6)
			_exit(1);
		sleep(60);
		_exit(0);
	}
	close(news[1]);
	n = (int)read(news[0], &pid, sizeof(pid));
	close(news[0]);
	if (n == sizeof(pid))
		return pid;
	wait(NULL);
	return 0;
}

static void memory_read_names_of_a_process_in_a_container_are_found_there(void **state)
{
	struct child c = {.pid = start_in_container()};
	struct evidence *e = evidence_of(&c, PAGE, PAGE);

	(void)state;
	if (c.pid == 0) {
		evidence_free(e);
		skip();
	}
	for (int i = 0; i < 500 && e->manifest.n_texts == 0; i++) {
		evidence_free(e);
		usleep(10000);
		e = evidence_of(&c, PAGE, PAGE);
		read_it(e, &wide);
	}
	assert_int_equal(e->manifest.n_texts, 1);
	assert_null(e->manifest.texts[0].missing);
	assert_memory_equal(e->texts[0].data, "1 2 x\n", 6);
	evidence_free(e);
	kill(c.pid, SIGKILL);
	wait(NULL);
}

/* pause(), by int $0x80, for ever. ELF for i386, at 0x8048000, one segment. */
static const uint8_t program32[] = {
	0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0, 0x54, 0x80,
	0x04, 0x08, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0,
	/* the segment */
	1, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x80, 0x04, 0x08, 0x00, 0x80, 0x04, 0x08, 0x5d, 0, 0, 0, 0x5d,
	0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
	/* mov $29,%eax; int $0x80; jmp */
	0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};

/* Starts the i386 program. 0: this kernel does not run i386 programs. */
static pid_t start32(void)
{
	char path[SCRATCH_DIR_SIZE + 16], *argv[] = {path, NULL};
	int news[2], fd;
	char byte;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/program32", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, program32, sizeof(program32)), sizeof(program32));
	close(fd);
	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	pid = test_fork();
	if (pid == 0) {
		execv(path, argv);
		if (write(news[1], "x", 1) != 1)
			_exit(2);
		_exit(1);
	}
	close(news[1]);
	fd = (int)read(news[0], &byte, 1); /* exec closes the other end */
	close(news[0]);
	if (fd == 0)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

static int on_record(void *userdata, const void *record, size_t size)
{
	struct perfrecord r;

	if (perfrecord_parse(record, size, &r) == 0 && r.type == PERF_RECORD_MMAP2)
		memory_see(userdata, &r, 1);
	return 0;
}

static void memory_read_vdso_of_a_32_bit_process_is_its_own(void **state)
{
	struct child c = {.pid = start32()};
	const struct manifest_image *image;
	struct evidence *e;
	struct memory *m;
	char magic[5];

	(void)state;
	if (c.pid == 0)
		skip();
	assert_int_equal(memory_new(8, &m), 0);
	assert_int_equal(procscan_process("/proc", (uint32_t)c.pid, on_record, m), 0);
	e = evidence_of(&c, 0, 0);
	free(e->regions);
	assert_int_equal(memory_regions(m, &e->regions, &e->n_regions), 0);
	memory_free(m);
	/* Behind the vDSO comes the stack, which is executable as the program does not say
	 * otherwise. There is a hole between them or none, as the kernel places the stack at
	 * random. */
	assert_in_range(read_it(e, &wide), 2, 3);
	image = &e->manifest.images[1];
	assert_string_equal(image->kind, MANIFEST_IMAGE_VDSO);
	assert_int_equal(image->pid, c.pid);
	assert_true(image->address < UINT32_MAX);
	assert_int_equal(pread(e->images[1].fd, magic, 5, 0), 5);
	assert_memory_equal(magic, "\177ELF\1", 5);
	assert_string_equal(e->manifest.images[2].kind, MANIFEST_IMAGE_MEMORY);
	assert_int_equal(e->manifest.n_texts, 0);
	evidence_free(e);
	stop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_read_pages_that_are_there_are_images_and_holes_are_not),
		cmocka_unit_test(memory_read_what_is_writable_now_may_have_changed),
		cmocka_unit_test(memory_read_what_is_unchanged_since_another_time_stays_apart),
		cmocka_unit_test(evidence_look_at_records_that_came_meanwhile_may_be_of_a_change),
		cmocka_unit_test(evidence_date_files_by_their_last_change),
		cmocka_unit_test(memory_read_of_endless_memory_ends),
		cmocka_unit_test(memory_read_own_vdso_is_an_image_of_all),
		cmocka_unit_test(memory_read_where_nothing_was_traced_reads_nothing),
		cmocka_unit_test(memory_read_another_process_or_none_gives_nothing),
		cmocka_unit_test(memory_read_where_a_file_is_mapped_now_gives_nothing),
		cmocka_unit_test(memory_read_beyond_the_limits_is_noted),
		cmocka_unit_test(memory_read_names_are_a_text),
		cmocka_unit_test(memory_read_jitdump_that_is_mapped_is_an_image),
		cmocka_unit_test(memory_read_jitdump_beyond_the_limit_has_its_newest_part),
		cmocka_unit_test(memory_read_jitdump_that_is_not_to_be_trusted_is_not_read),
		cmocka_unit_test(memory_read_names_that_are_not_to_be_trusted_are_not_read),
		cmocka_unit_test(
			memory_read_names_in_a_file_that_the_process_may_not_read_are_not_read),
		cmocka_unit_test(memory_read_names_of_a_process_in_a_container_are_found_there),
		cmocka_unit_test(memory_read_vdso_of_a_32_bit_process_is_its_own),
	};

	/* memory_copy() forks. */
	pthread_atfork(NULL, NULL, test_leave_cmocka);
	return cmocka_run_group_tests(tests, setup, teardown);
}
