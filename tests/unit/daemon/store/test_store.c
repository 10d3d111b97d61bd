/*
 * Ids, quotas, publishing, restart, and what happens when the disk does not take a snapshot.
 */
#include "daemon/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/child.h"
#include "tests/unit/daemon/store/store_fixture.h"

/* Keeps the image that the bundle of E needs: SIZE bytes FILL of a file that has inode INO. */
static void need_image(struct store *s, const struct entry *e, uint64_t ino, char fill, size_t size)
{
	CLEANUP(kept_done) struct kept kept;

	kept_init(&kept);
	keep_image(s, e, ino, fill, size, &kept);
	assert_int_equal(store_file_put_kept(store_dir_fd(s), e->id, &kept), 0);
}

static void store_new_id_grows_even_when_the_clock_does_not(void **state)
{
	static const uint64_t times[] = {1795241809231426, 1795241809231426, 1000, 1795241809231427,
					 1795241809999999};
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	char before[ENTRY_ID_SIZE] = "", id[ENTRY_ID_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		store_new_id(s, times[i], BOOT, id);
		assert_true(strcmp(id, before) > 0);
		assert_int_equal(strcspn(id, "-"), 11);
		assert_memory_equal(id + 12, "abcd-", 5);
		strcpy(before, id);
	}
}

static void store_find_takes_prefixes_and_latest(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	struct entry a = complete(s, 1ull << 50, 10), b = complete(s, (1ull << 50) + 1, 10);
	struct entry running = begin(s, (1ull << 50) + 2);
	const struct entry *found = NULL;
	char prefix[ENTRY_ID_SIZE];

	(void)state;
	assert_int_equal(store_find(s, a.id, &found), 0);
	assert_string_equal(found->id, a.id);
	assert_int_equal(store_find(s, running.id, &found), 0);
	assert_int_equal(found->state, ENTRY_QUEUED);
	assert_int_equal(store_find(s, "latest", &found), 0); /* the latest that has ended */
	assert_string_equal(found->id, b.id);
	snprintf(prefix, sizeof(prefix), "%.3s", a.id);
	assert_int_equal(store_find(s, prefix, &found), STORE_AMBIGUOUS);
	snprintf(prefix, sizeof(prefix), "%.11s", b.id);
	assert_int_equal(store_find(s, prefix, &found), 0);
	assert_string_equal(found->id, b.id);
	assert_int_equal(store_find(s, "zzz", &found), -ENOENT);
	assert_int_equal(store_find(s, "", &found), -ENOENT);
}

static void store_quota_removes_the_oldest_first(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(10000, 10);
	struct entry a = complete(s, 100, 4000), b = complete(s, 200, 4000);
	struct entry c = complete(s, 300, 4000);
	const struct entry *found;

	(void)state;
	assert_int_equal(store_find(s, a.id, &found), -ENOENT);
	assert_int_equal(store_find(s, b.id, &found), 0);
	assert_int_equal(store_find(s, c.id, &found), 0);
	assert_int_equal(store_get_stats(s)->evicted, 1);
	assert_true(store_get_stats(s)->bytes <= 10000);
	/* Two files of each snapshot, and the directory "images". */
	assert_int_equal(scratch_dir_count(dir), 4 + 1);
	assert_int_equal(store_make_room(s, c.id, 10001), -EFBIG);
	assert_int_equal(store_count(s), 2);
}

static void store_use_limits_of_much_less_removes_a_few_at_a_time(void **state)
{
	const struct store_limits less = {.max_use = 10000000, .max_entries = 3};
	struct store_limits small = {.max_entries = 100};
	CLEANUP(store_freep) struct store *s = open_store(10000000, 100);
	struct entry last = {0};
	size_t left = 50, turns = 1;
	const struct entry *found;
	bool more;

	(void)state;
	for (uint64_t i = 0; i < left; i++)
		last = complete(s, 100 + i, 50);
	more = store_use_limits(s, &less);
	for (; more; turns++) {
		assert_int_equal(store_count(s), left - STORE_TRIM);
		left -= STORE_TRIM;
		more = store_trim(s);
	}
	assert_int_equal(turns, 6);
	assert_int_equal(store_count(s), 3);
	assert_int_equal(store_find(s, last.id, &found), 0);
	small.max_use = store_use(s) - 1;
	assert_false(store_use_limits(s, &small));
	assert_int_equal(store_count(s), 2);
	assert_int_equal(store_find(s, last.id, &found), 0);
}

static void store_quota_spares_what_has_not_ended(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(10000, 2);
	struct entry running = begin(s, 100);
	CLEANUP_CLOSE int fd = memory_of('r', 9000);
	struct entry old, new;
	const struct entry *found;

	(void)state;
	/* The snapshot has written its bundle and is being decoded. */
	assert_int_equal(store_make_room(s, running.id, 9000), 0);
	assert_int_equal(store_file_put(store_dir_fd(s), running.id, STORE_BUNDLE, fd, 9000), 0);
	assert_int_equal(store_get_stats(s)->bytes, 9000);
	old = complete(s, 200, 10);
	new = complete(s, 300, 4000);
	assert_int_equal(store_find(s, running.id, &found), 0);
	assert_int_equal(store_find(s, old.id, &found), -ENOENT);
	assert_int_equal(store_find(s, new.id, &found), 0);
}

/* An image counts once, and is removed with the last snapshot that needs it. */
static void store_quota_counts_images_once(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(10000, 10);
	struct entry a = complete(s, 100, 1000), b = complete(s, 200, 1000), c;
	const struct entry *found;
	uint64_t use = store_get_stats(s)->bytes;

	(void)state;
	need_image(s, &a, 1, 'x', 3000);
	need_image(s, &b, 1, 'x', 3000);
	assert_int_equal(store_use(s), use + 3000);
	need_image(s, &a, 2, 'y', 2000);
	assert_int_equal(store_use(s), use + 5000);
	c = complete(s, 300, 4500); /* removing A and its own image is enough */
	assert_int_equal(store_find(s, a.id, &found), -ENOENT);
	assert_int_equal(store_find(s, b.id, &found), 0);
	assert_int_equal(imagestore_bytes(store_images(s)), 3000);
	need_image(s, &c, 3, 'z', 4000);
	assert_int_equal(store_find(s, b.id, &found), -ENOENT);
	assert_int_equal(imagestore_bytes(store_images(s)), 4000);
	assert_true(store_use(s) <= 10000);
}

/* An image larger than the quota is not kept, and only older snapshots are removed for it. */
static void store_images_beyond_the_quota_have_no_room(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(10000, 10);
	struct entry a = complete(s, 100, 4000);
	CLEANUP_CLOSE int fd = memory_of('x', 20000);
	const struct manifest_image image = {.ino = 1};
	struct manifest_piece piece = {0, 20000};
	struct imagestore_wish w = {.id = a.id,
				    .image = &image,
				    .fd = fd,
				    .file_size = 20000,
				    .pieces = &piece,
				    .n_pieces = 1};
	const struct entry *found;

	(void)state;
	store_make_room_for_images(s, a.id, 20000);
	assert_int_equal(imagestore_keep(store_images(s), &w), -EDQUOT);
	assert_int_equal(store_find(s, a.id, &found), 0);
	piece.size = 5000;
	assert_int_equal(imagestore_keep(store_images(s), &w), 0);
}

/* Images of a large program replace other snapshots in a quarter of the quota only. */
static void store_images_take_the_place_of_others_up_to_a_quarter(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(40000, 20);
	struct entry e = {0};

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		e = complete(s, 100 + i, 3000);
	assert_int_equal(store_count(s), 10);
	store_make_room_for_images(s, e.id, 35000);
	assert_in_range(store_use(s), 24000, 30000);
	assert_in_range(store_count(s), 6, 9);
	/* Free room may be used for images of any size. */
	while (store_count(s) > 1)
		assert_int_equal(store_delete(s, store_at(s, 0)->id), 0);
	need_image(s, &e, 1, 'x', 30000);
	assert_int_equal(store_count(s), 1);
}

static void store_new_knows_images_of_a_former_run(void **state)
{
	struct store *s = open_store(1 << 20, 10);
	struct entry e = complete(s, 100, 10), cut = begin(s, 200);
	CLEANUP_CLOSE int bundle = memory_of('b', 10), fd = -EBADF;
	const struct entry *found;
	uint64_t size;
	char byte;

	(void)state;
	need_image(s, &e, 1, 'x', 3000);
	/* The recorder was killed when the image was stored and its list was not. */
	cut.state = ENTRY_DECODING;
	assert_int_equal(store_file_put(store_dir_fd(s), cut.id, STORE_BUNDLE, bundle, 10), 0);
	assert_int_equal(store_file_put_entry(store_dir_fd(s), &cut), 0);
	need_image(s, &cut, 2, 'y', 3000);
	{
		char name[STORE_NAME_SIZE];

		store_file_name(cut.id, STORE_IMAGES, name);
		assert_int_equal(unlinkat(store_dir_fd(s), name, 0), 0);
	}
	store_free(s);
	s = open_store(1 << 20, 10);
	assert_int_equal(imagestore_bytes(store_images(s)), 3000);
	assert_int_equal(store_find(s, cut.id, &found), 0);
	assert_non_null(strstr(found->error, "before it kept what its bundle needs"));
	assert_int_equal(store_find(s, e.id, &found), 0);
	assert_int_equal(store_open_image(s, found, 7, &fd, &size), 0);
	assert_int_equal(size, 3000);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(store_open_image(s, found, 0, &fd, &size), -ENOENT);
	store_free(s);
}

static void store_open_gives_read_only_bytes(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	struct entry e = complete(s, 100, 5000);
	const struct entry *found;
	CLEANUP_CLOSE int fd = -EBADF;
	uint64_t size;
	char byte;

	(void)state;
	assert_int_equal(store_find(s, e.id, &found), 0);
	assert_int_equal(store_open(s, found, STORE_BUNDLE, &fd, &size), 0);
	assert_int_equal(size, 5000);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'b');
	assert_int_equal(write(fd, &byte, 1), -1);
	close(fd);
	fd = -EBADF;
	assert_int_equal(store_open(s, found, STORE_REPORT, &fd, &size), -ENOENT);
}

static void store_full_disk_keeps_the_last_two_in_memory(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	struct entry e[3];
	const struct entry *found;
	CLEANUP_CLOSE int fd = -EBADF;
	uint64_t size;
	char byte;

	(void)state;
	for (int i = 0; i < 3; i++) {
		e[i] = begin(s, 100 + (uint64_t)i);
		e[i].state = ENTRY_DONE;
		strcpy(e[i].error, "kept in memory only");
		store_end(s, &e[i], memory_of((char)('0' + i), 100), memory_of('r', 10));
	}
	assert_int_equal(store_find(s, e[0].id, &found), -ENOENT);
	assert_int_equal(store_get_stats(s)->lost, 1);
	assert_int_equal(store_find(s, e[1].id, &found), 0);
	assert_int_equal(store_find(s, e[2].id, &found), 0);
	assert_string_equal(found->error, "kept in memory only");
	assert_int_equal(store_open(s, found, STORE_BUNDLE, &fd, &size), 0);
	assert_int_equal(size, 100);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, '2');
	assert_int_equal(scratch_dir_count(dir), 1); /* the directory "images" */
}

static void store_new_lists_what_a_former_run_left(void **state)
{
	struct store *s = open_store(1 << 20, 10);
	struct entry done = complete(s, 100, 10), cut = begin(s, 200);
	const struct entry *found;
	char next[ENTRY_ID_SIZE];
	int fd = memory_of('x', 20);

	(void)state;
	/* The recorder died after the bundle was stored. */
	cut.state = ENTRY_DECODING;
	assert_int_equal(store_file_put(store_dir_fd(s), cut.id, STORE_BUNDLE, fd, 20), 0);
	assert_int_equal(store_file_put_entry(store_dir_fd(s), &cut), 0);
	close(fd);
	fd = openat(store_dir_fd(s), ".00000000003-abcd-9.ptsnap.tmp", O_CREAT | O_WRONLY, 0600);
	close(fd);
	/* Files of other programs. */
	fd = openat(store_dir_fd(s), "package.json", O_CREAT | O_WRONLY, 0600);
	close(fd);
	fd = openat(store_dir_fd(s), "00000000003-kt-1.json", O_CREAT | O_WRONLY, 0600);
	close(fd);
	store_free(s);

	s = open_store(1 << 20, 10);
	assert_int_equal(store_count(s), 2);
	assert_int_equal(store_find(s, done.id, &found), 0);
	assert_int_equal(found->state, ENTRY_DONE);
	assert_string_equal(found->boot_id, BOOT);
	assert_int_equal(store_find(s, cut.id, &found), 0);
	assert_int_equal(found->state, ENTRY_FAILED);
	assert_int_equal(found->bundle_bytes, 20);
	assert_int_equal(store_get_stats(s)->recovered, 1);
	assert_int_equal(scratch_dir_count(dir), 6 + 1); /* the temporary file is removed */
	store_new_id(s, 50, BOOT, next);
	assert_true(strcmp(next, cut.id) > 0);
	store_free(s);
}

/* The disk was full when the last entry was to be written, or the recorder died just then. */
static void store_new_takes_a_published_report_for_done(void **state)
{
	struct store *s = open_store(1 << 20, 10);
	CLEANUP_CLOSE int report = memory_of('r', 10);
	struct entry cut = begin(s, 100), bare = begin(s, 200);
	const struct entry *found;

	(void)state;
	cut.state = ENTRY_DECODING;
	strcpy(cut.reason, "why");
	assert_int_equal(store_file_put_entry(store_dir_fd(s), &cut), 0);
	assert_int_equal(store_file_put(store_dir_fd(s), cut.id, STORE_REPORT, report, 10), 0);
	assert_int_equal(store_file_put(store_dir_fd(s), bare.id, STORE_REPORT, report, 10), 0);
	store_free(s);
	s = open_store(1 << 20, 10);
	assert_int_equal(store_find(s, cut.id, &found), 0);
	assert_int_equal(found->state, ENTRY_DONE);
	assert_int_equal(found->report_bytes, 10);
	assert_string_equal(found->reason, "why");
	assert_non_null(strstr(found->error, "before all that is known of it was stored"));
	assert_int_equal(store_find(s, bare.id, &found), 0);
	assert_int_equal(found->state, ENTRY_DONE);
	assert_string_equal(found->trigger, STORE_SCAN_NO_TRIGGER);
	assert_int_equal(store_get_stats(s)->recovered, 0);
	store_free(s);
}

/* A later run does not list bytes that were in the memory of an earlier one. */
static void store_new_tells_what_was_in_memory_only(void **state)
{
	struct store *s = open_store(1 << 20, 100);
	CLEANUP_CLOSE int report = memory_of('r', 10);
	struct entry e = begin(s, 1000000);
	const struct entry *found;
	int fd;
	uint64_t size;

	(void)state;
	e.state = ENTRY_DONE;
	e.bundle_bytes = 100;
	e.report_bytes = 10;
	strcpy(e.error, "kept in memory only");
	assert_int_equal(store_file_put(store_dir_fd(s), e.id, STORE_REPORT, report, 10), 0);
	assert_int_equal(store_file_put_entry(store_dir_fd(s), &e), 0);
	store_end(s, &e, memory_of('b', 100), -EBADF);
	store_free(s);
	s = open_store(1 << 20, 100);
	assert_int_equal(store_find(s, e.id, &found), 0);
	assert_int_equal(found->state, ENTRY_DONE);
	assert_true(found->bundle_bytes == ENTRY_ABSENT);
	assert_int_equal(found->report_bytes, 10);
	assert_string_equal(found->error, "the bundle was kept in memory only and is gone");
	assert_int_equal(store_open(s, found, STORE_REPORT, &fd, &size), 0);
	close(fd);
	store_free(s);
}

static void store_new_survives_damaged_entries(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"id\":1}",
		"{\"id\":\"other\"}",
		"{\"id\":\"00000000003-abcd-1\",\"state\":\"dancing\"}"};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct store *s = open_store(1 << 20, 10);
		int fd = openat(store_dir_fd(s), "00000000003-abcd-1.entry",
				O_CREAT | O_TRUNC | O_WRONLY, 0600);

		assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(fd);
		store_free(s);
		s = open_store(1 << 20, 10);
		assert_int_equal(store_count(s), 1);
		assert_int_equal(store_at(s, 0)->state, ENTRY_FAILED);
		assert_string_equal(store_at(s, 0)->id, "00000000003-abcd-1");
		assert_int_equal(store_at(s, 0)->realtime_usec, 3);
		store_free(s);
	}
}

static void store_new_refuses_a_directory_in_use(void **state)
{
	const struct store_limits limits = {1 << 20, 10, 2};
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	struct store *second = NULL;

	(void)state;
	assert_int_equal(store_new(dir, &limits, &second, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, dir));
	assert_non_null(strstr(why, "in use"));
	assert_null(second);
}

/* Waits until process PID sleeps. */
static void await_sleep(pid_t pid)
{
	char name[32], text[512], *end;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	do {
		f = fopen(name, "re");
		if (!f || !fgets(text, sizeof(text), f))
			_exit(1);
		fclose(f);
		end = strrchr(text, ')');
	} while (end[2] != 'S' && sched_yield() == 0);
}

/* As of a recorder that was killed while its child had not come to execve(2): the child has the
 * lock, and gives it up when this process waits for it. */
static void store_new_waits_for_the_lock_of_a_dead_recorder(void **state)
{
	int *locked = mmap(NULL, sizeof(*locked), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid(), child = test_fork();
	struct store *s;
	int fd, status;

	(void)state;
	if (child == 0) {
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (flock(fd, LOCK_EX) < 0)
			_exit(1);
		__atomic_store_n(locked, 1, __ATOMIC_RELEASE);
		await_sleep(parent);
		_exit(0);
	}
	/* Does not sleep. */
	while (!__atomic_load_n(locked, __ATOMIC_ACQUIRE))
		sched_yield();
	s = open_store(1 << 20, 10);
	store_free(s);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	munmap(locked, sizeof(*locked));
}

static void store_file_put_leaves_nothing_behind_on_failure(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	CLEANUP_CLOSE int fd = memory_of('x', 100);

	(void)state;
	/* The source file ends early: no half file may appear. */
	assert_int_not_equal(
		store_file_put(store_dir_fd(s), "00000000003-abcd-1", STORE_BUNDLE, fd, 200), 0);
	assert_int_equal(scratch_dir_count(dir), 1);
}

static void entry_json_round_trip_is_equal(void **state)
{
	struct entry a, b;
	struct json_object *o;

	(void)state;
	entry_init(&a);
	strcpy(a.id, "x");
	a.state = ENTRY_FAILED;
	strcpy(a.trigger, "signal");
	strcpy(a.reason, "quoted \" and \xc3\xa4");
	strcpy(a.boot_id, BOOT);
	strcpy(a.error, "why");
	a.pid = 7;
	a.raw_bytes = 1ull << 40;
	o = entry_to_json(&a);
	memset(&b, 0, sizeof(b));
	assert_int_equal(entry_from_json(o, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	json_object_put(o);
}

static void remove_and_make(struct store *s, const char *name, bool fifo)
{
	unlinkat(store_dir_fd(s), name, 0);
	if (fifo)
		assert_int_equal(mkfifoat(store_dir_fd(s), name, 0600), 0);
	else
		assert_int_equal(mkdirat(store_dir_fd(s), name, 0700), 0);
}

/* An open that waits for a FIFO's other end would hang here. */
static void store_opens_no_fifo_and_no_directory(void **state)
{
	struct store *s = open_store(10000, 10);
	struct entry a = complete(s, 100, 10);
	const struct entry *found;
	char name[STORE_NAME_SIZE];
	uint64_t size;
	int fd;

	(void)state;
	for (int fifo = 0; fifo < 2; fifo++)
		for (int part = 0; part < STORE_PINNED; part++) {
			store_file_name(a.id, (enum store_part)part, name);
			remove_and_make(s, name, fifo);
			assert_int_equal(store_find(s, a.id, &found), 0);
			assert_int_equal(store_open(s, found, (enum store_part)part, &fd, &size),
					 -EBADMSG);
			assert_int_equal(unlinkat(store_dir_fd(s), name, fifo ? 0 : AT_REMOVEDIR),
					 0);
		}
	store_free(s);
}

/* They are no snapshots, and nothing could remove them: they would come back at every start. */
static void store_lists_no_fifo_and_no_directory(void **state)
{
	struct store *s = open_store(10000, 10);
	struct entry kept = complete(s, 100, 10), e;
	char name[STORE_NAME_SIZE];

	(void)state;
	for (int part = 0; part < STORE_N_PARTS; part++) {
		entry_init(&e);
		store_new_id(s, 200, BOOT, e.id);
		store_file_name(e.id, (enum store_part)part, name);
		remove_and_make(s, name, part % 2);
	}
	store_file_name(kept.id, STORE_PINNED, name);
	remove_and_make(s, name, true);
	store_free(s);
	s = open_store(10000, 10);
	assert_int_equal(store_count(s), 1);
	assert_string_equal(store_at(s, 0)->id, kept.id);
	assert_false(store_at(s, 0)->pinned);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(store_new_id_grows_even_when_the_clock_does_not),
		CASE(store_find_takes_prefixes_and_latest),
		CASE(store_quota_removes_the_oldest_first),
		CASE(store_use_limits_of_much_less_removes_a_few_at_a_time),
		CASE(store_quota_spares_what_has_not_ended),
		CASE(store_quota_counts_images_once),
		CASE(store_images_beyond_the_quota_have_no_room),
		CASE(store_images_take_the_place_of_others_up_to_a_quarter),
		CASE(store_new_knows_images_of_a_former_run),
		CASE(store_open_gives_read_only_bytes),
		CASE(store_full_disk_keeps_the_last_two_in_memory),
		CASE(store_new_lists_what_a_former_run_left),
		CASE(store_new_takes_a_published_report_for_done),
		CASE(store_new_tells_what_was_in_memory_only),
		CASE(store_new_survives_damaged_entries),
		CASE(store_new_refuses_a_directory_in_use),
		CASE(store_opens_no_fifo_and_no_directory),
		CASE(store_lists_no_fifo_and_no_directory),
		CASE(store_new_waits_for_the_lock_of_a_dead_recorder),
		CASE(store_file_put_leaves_nothing_behind_on_failure),
		cmocka_unit_test(entry_json_round_trip_is_equal),
	};

	return cmocka_run_group_tests_name("daemon/store", tests, NULL, NULL);
}
