/*
 * Images that lie elsewhere: what is decoded with them asked for one by one, and then from nothing
 * but what was needed of them, is what is decoded from the whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/replay/replay_private.h"
#include "decoder/worker/replay/whose.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_parts.h"

#define FILE_SIZE 0x60000u
#define BLOCK	  0x4000u
#define CODE_AT	  0x1ffdu /* a jump that reaches into the next page begins there */

/* A file with the made program at its beginning, and code all over the rest of it: jumps from place
 * to place, each crossing the end of a page, or of a block. */
static const uint32_t places[] = {CODE_AT, 0x7ffe, 0x23fff, 0x2bffc, 0x3ffff, 0x40ffe, 0x5fff0};

static uint8_t *make_file(void)
{
	CLEANUP(bytes_out_done) struct bytes_out program;
	uint8_t *file = malloc(FILE_SIZE);
	size_t i;

	assert_non_null(file);
	memset(file, 0x06, FILE_SIZE); /* no instruction */
	bytes_out_init(&program, 1 << 20);
	make_program(&program);
	memcpy(file, program.data, program.size);
	for (i = 0; i + 1 < ARRAY_SIZE(places); i++) {
		uint32_t far = places[i + 1] - (places[i] + 5);

		file[places[i]] = 0xe9; /* jmp */
		memcpy(file + places[i] + 1, &far, sizeof(far));
	}
	memcpy(file + places[i], "\x0f\x05", 2); /* syscall */
	return file;
}

/* Where the image is. */
enum where { WHOLE, ELSEWHERE, PIECES, GONE };

struct kept {
	struct manifest_piece pieces[64];
	size_t n;
	uint64_t bytes;
};

static void put_sideband(struct bytes_out *out)
{
	struct perfrecord map = {.type = PERF_RECORD_MMAP2};

	map.u.mmap2.pid = MAKE_PID;
	map.u.mmap2.tid = MAKE_TID;
	map.u.mmap2.addr = MAKE_BASE;
	map.u.mmap2.len = FILE_SIZE;
	map.u.mmap2.ino = 99;
	map.u.mmap2.prot = PROT_READ | PROT_EXEC;
	map.u.mmap2.filename = "/bin/far";
	made_put_record(out, &map);
	made_put_start(out, MAKE_TSC - 10);
}

static void put_trace(struct bytes_out *out)
{
	const struct make_bundle how = {.rounds = 3};
	uint64_t ip = MAKE_BASE + CODE_AT;
	int i;

	make_trace(&how, out);
	bytes_put_u8(out, 0x11 | 3 << 5); /* TIP.PGE */
	for (i = 0; i < 48; i += 8)
		bytes_put_u8(out, (uint8_t)(ip >> i));
	bytes_put_u8(out, 0x01); /* TIP.PGD */
}

static void describe(struct manifest *m, enum where where, const struct kept *kept,
		     const char *build_id, uint64_t trace)
{
	struct manifest_image *image = manifest_add_image(m);

	assert_non_null(image);
	made_describe(m, "far", MAKE_TSC + 10 * MAKE_ROUND, trace);
	image->path = strdup("/bin/far");
	image->ino = 99;
	image->build_id = build_id != NULL ? strdup(build_id) : NULL;
	image->file_size = where == GONE ? MANIFEST_ABSENT : FILE_SIZE;
	image->missing = where == GONE ? strdup("gone: nobody has it") : NULL;
	image->elsewhere = where == ELSEWHERE;
	image->size = where == WHOLE ? FILE_SIZE : where == PIECES ? kept->bytes : 0;
	if (where == PIECES)
		assert_int_equal(manifest_pieces_format(kept->pieces, kept->n, &image->pieces), 0);
}

static void put_image(struct bytes_out *out, enum where where, const struct kept *kept,
		      const uint8_t *file)
{
	size_t i;

	if (where == WHOLE)
		bytes_put_block(out, file, FILE_SIZE);
	for (i = 0; where == PIECES && i < kept->n; i++)
		bytes_put_block(out, file + kept->pieces[i].offset, kept->pieces[i].size);
}

static struct bundle *make(enum where where, const struct kept *kept, const char *build_id,
			   const uint8_t *file)
{
	CLEANUP(bytes_out_done) struct bytes_out trace, sideband, image;
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct bundle *bundle = NULL;
	struct bundle_writer w;
	struct manifest m;

	assert_true(fd >= 0);
	manifest_init(&m);
	bytes_out_init(&trace, 1 << 20);
	bytes_out_init(&sideband, 1 << 20);
	bytes_out_init(&image, 1 << 20);
	put_trace(&trace);
	put_sideband(&sideband);
	put_image(&image, where, kept, file);
	describe(&m, where, kept, build_id, trace.size);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_member(&w, "cpu0.pt", trace.data, trace.size), 0);
	assert_int_equal(bundle_write_member(&w, "sideband", sideband.data, sideband.size), 0);
	if (where == WHOLE || where == PIECES)
		assert_int_equal(bundle_write_member(&w, "images/0", image.data, image.size), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	assert_int_equal(bundle_open(fd, &bundle), 0);
	close(fd);
	return bundle;
}

struct user {
	const uint8_t *file;
	struct kept kept;
	unsigned opened;
	uint64_t read; /* bytes */
};

static int open_file(void *userdata, uint32_t image, uint64_t *ret_size)
{
	struct user *u = userdata;

	assert_int_equal(image, 0);
	u->opened++;
	*ret_size = FILE_SIZE;
	return 0;
}

static ssize_t read_file(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	struct user *u = userdata;

	assert_int_equal(image, 0);
	assert_true(offset <= FILE_SIZE && size <= FILE_SIZE - offset);
	memcpy(to, u->file + offset, size);
	u->read += size;
	return (ssize_t)size;
}

static int keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct user *u = userdata;

	assert_int_equal(image, 0);
	assert_true(u->kept.n < ARRAY_SIZE(u->kept.pieces));
	u->kept.pieces[u->kept.n++] = (struct manifest_piece){offset, size};
	u->kept.bytes += size;
	return 0;
}

/* The report, and in *U what was asked for and is needed. Frees BUNDLE. */
static char *report(struct bundle *bundle, struct user *u, uint64_t *ret_faults)
{
	const struct image_loader loader = {
		.open = open_file, .read = read_file, .userdata = u, .max_filled = 1 << 30};
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .report_limit = 2u << 20, .pretty = 1, .keep = 1};
	int fd = memfd_create("report", MFD_CLOEXEC);
	const struct decode_sink sink = {
		.fd = fd, .version = "0", .keep = keep, .userdata = u, .loader = &loader};
	size_t size;

	assert_true(fd >= 0);
	assert_int_equal(decode_run(bundle, &options, &sink, ret_faults), 0);
	bundle_free(bundle);
	return made_text(fd, &size);
}

static void decode_run_needs_only_what_it_says(void **state)
{
	uint8_t *file = make_file();
	struct user u = {.file = file}, none = {.file = file};
	uint64_t faults;
	char *whole = report(make(WHOLE, NULL, NULL, file), &none, &faults);
	char *asked, *kept;
	size_t i;

	(void)state;
	assert_int_equal(faults, 0);
	assert_int_equal(none.kept.n, 0);
	assert_int_equal(none.opened, 0);
	asked = report(make(ELSEWHERE, NULL, NULL, file), &u, &faults);
	assert_string_equal(asked, whole);
	assert_int_equal(u.opened, 1);
	assert_true(u.read <= FILE_SIZE);
	/* The kept pieces are those of the places, and the first one for the program's own code. */
	assert_true(u.kept.bytes < FILE_SIZE / 2);
	assert_int_equal(u.kept.pieces[0].offset, 0);
	assert_int_equal(u.kept.pieces[u.kept.n - 1].offset, FILE_SIZE - BLOCK);
	none.kept = (struct kept){0};
	kept = report(make(PIECES, &u.kept, NULL, file), &none, &faults);
	assert_string_equal(kept, whole);
	assert_int_equal(none.kept.n, 0);
	free(kept);
	/* Each of them was. */
	for (i = 0; i < u.kept.n; i++) {
		struct kept less = u.kept;

		less.n--;
		less.bytes -= less.pieces[i].size;
		memmove(&less.pieces[i], &less.pieces[i + 1],
			(less.n - i) * sizeof(less.pieces[0]));
		kept = report(make(PIECES, &less, NULL, file), &none, &faults);
		assert_true(faults > 0);
		assert_non_null(strstr(kept, "\"kind\": \"image-missing\""));
		free(kept);
	}
	free(whole);
	free(asked);
	free(file);
}

#define OWN_ID "abababababababababababababababababababab"

/* Compared when the image is first needed: from the file and from its pieces alike. */
static void decode_run_another_build_id_is_a_mismatch(void **state)
{
	uint8_t *file = make_file();
	struct user u = {.file = file}, none = {.file = file};
	uint64_t faults;
	char *whole, *asked, *kept;

	(void)state;
	asked = report(make(ELSEWHERE, NULL, OWN_ID, file), &u, &faults);
	assert_int_equal(faults, 0);
	free(asked);
	u = (struct user){.file = file};
	whole = report(make(WHOLE, NULL, "cd", file), &none, &faults);
	assert_non_null(strstr(whole, "\"kind\": \"image-mismatch\""));
	asked = report(make(ELSEWHERE, NULL, "cd", file), &u, &faults);
	assert_non_null(strstr(asked, "\"kind\": \"image-mismatch\""));
	assert_non_null(strstr(asked, "another build id"));
	assert_int_equal(u.kept.n, 1);
	kept = report(make(PIECES, &u.kept, "cd", file), &none, &faults);
	assert_non_null(strstr(kept, "\"kind\": \"image-mismatch\""));
	free(whole);
	free(asked);
	free(kept);
	free(file);
}

static int refuse(void *userdata, uint32_t image, uint64_t *ret_size)
{
	(void)userdata;
	(void)image;
	(void)ret_size;
	return -EIO;
}

static void decode_run_image_that_cannot_be_had_is_a_gap(void **state)
{
	const struct image_loader loader = {.open = refuse, .read = read_file};
	const struct image_loader *loaders[] = {NULL, &loader};
	uint8_t *file = make_file();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(loaders); i++) {
		struct bundle *bundle = make(ELSEWHERE, NULL, NULL, file);
		const struct decode_options options = {.view = WORKER_VIEW_REPORT, .pretty = 1};
		int fd = memfd_create("report", MFD_CLOEXEC);
		const struct decode_sink sink = {.fd = fd, .version = "0", .loader = loaders[i]};
		uint64_t faults;
		size_t size;
		char *text;

		assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
		text = made_text(fd, &size);
		assert_true(faults > 0);
		assert_non_null(strstr(text, "\"kind\": \"image-missing\""));
		assert_non_null(strstr(text, i == 0 ? "not at hand" : "could not be opened"));
		free(text);
		bundle_free(bundle);
	}
	free(file);
}

static void decode_run_image_that_was_gone_is_said(void **state)
{
	uint8_t *file = make_file();
	struct user none = {.file = file};
	uint64_t faults;
	char *text = report(make(GONE, NULL, NULL, file), &none, &faults);

	(void)state;
	assert_true(faults > 0);
	assert_non_null(strstr(text, "\"kind\": \"image-gone\""));
	assert_non_null(strstr(text, "gone: nobody has it"));
	free(text);
	free(file);
}

#define ANON UINT64_C(0x7f0000000000)

static void put_anonymous(struct bytes_out *out, uint64_t time)
{
	struct perfrecord map = {.type = PERF_RECORD_MMAP2, .time = time};

	map.u.mmap2.pid = MAKE_PID;
	map.u.mmap2.tid = MAKE_TID;
	map.u.mmap2.addr = ANON;
	map.u.mmap2.len = 0x1000;
	map.u.mmap2.prot = PROT_READ | PROT_EXEC;
	map.u.mmap2.filename = "//anon";
	made_put_record(out, &map);
}

/* Memory is mapped, the process becomes another program by exec, which maps memory there, too. */
static void put_exec(struct bytes_out *out)
{
	struct perfrecord comm = {
		.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC, .time = 100};

	comm.u.comm.pid = comm.u.comm.tid = MAKE_PID;
	comm.u.comm.comm = "new";
	put_anonymous(out, 10);
	made_put_record(out, &comm);
	put_anonymous(out, 110);
}

static void add_memory(struct manifest *m, const char *kind, uint32_t pid, uint64_t address)
{
	struct manifest_image *image = manifest_add_image(m);

	assert_non_null(image);
	image->path = strdup("//anon");
	image->kind = strdup(kind);
	image->pid = pid;
	image->address = address;
	image->read_ns = 200;
	image->unchanged_ns = kind[0] == 'm' ? 150 : MANIFEST_ABSENT;
	image->size = 0x1000;
}

static struct bundle *make_memory(void)
{
	static const uint8_t bytes[0x1000];
	CLEANUP(bytes_out_done) struct bytes_out sideband;
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct bundle *bundle = NULL;
	struct bundle_writer w;
	struct manifest m;

	assert_true(fd >= 0);
	manifest_init(&m);
	m.id = strdup("memory");
	m.version = strdup("0");
	m.trigger_kind = strdup("offline");
	m.source = strdup("emulated");
	add_memory(&m, MANIFEST_IMAGE_KERNEL, MANIFEST_ANY, ANON);
	add_memory(&m, MANIFEST_IMAGE_MEMORY, MAKE_PID + 5, ANON);
	add_memory(&m, MANIFEST_IMAGE_MEMORY, MAKE_PID, ANON);
	bytes_out_init(&sideband, 1 << 20);
	put_exec(&sideband);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_member(&w, "sideband", sideband.data, sideband.size), 0);
	assert_int_equal(bundle_write_member(&w, "images/0", bytes, sizeof(bytes)), 0);
	assert_int_equal(bundle_write_member(&w, "images/1", bytes, sizeof(bytes)), 0);
	assert_int_equal(bundle_write_member(&w, "images/2", bytes, sizeof(bytes)), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	assert_int_equal(bundle_open(fd, &bundle), 0);
	close(fd);
	return bundle;
}

static int find_at(struct image_set *images, const struct timeline *timeline, uint64_t time,
		   struct image_code *ret)
{
	return image_find(images, timeline_space(timeline, MAKE_PID, time), time, ANON + 8, ret);
}

static void replay_images_memory_is_that_of_the_program_it_was_read_from(void **state)
{
	struct bundle *bundle = make_memory();
	struct timeline *timeline;
	struct image_set *images;
	struct image_code code;
	const uint8_t *records;
	uint64_t bad;
	size_t size;

	(void)state;
	records = bundle_sideband(bundle, &size);
	assert_int_equal(timeline_load(records, size, &timeline, &bad), 0);
	assert_int_equal(replay_images(bundle, timeline, NULL, &images), 0);
	assert_int_equal(find_at(images, timeline, 50, &code), IMAGE_ANONYMOUS);
	assert_int_equal(find_at(images, timeline, 150, &code), 0);
	assert_int_equal(code.image, 2);
	/* The kernel's image does not change this, although it is asked for by its number. */
	assert_int_equal(image_at(images, 0, 8, &code), 0);
	image_set_free(images);
	timeline_free(timeline);
	bundle_free(bundle);
}

static uint8_t change_at(struct replay *r, uint64_t no_earlier)
{
	const struct space *space = timeline_space(r->timeline, MAKE_PID, 180);
	struct flow_code code;
	uint32_t context;

	assert_int_equal(replay_context(r, space, 180, no_earlier, UINT64_MAX, &context), 0);
	assert_int_equal(whose_code(r, context, ANON + 8, &code), 0);
	return code.changing;
}

/* The recorder knows that the memory was not written to since 150. */
static void whose_code_memory_may_have_changed_until_it_was_unchanged(void **state)
{
	struct bundle *bundle = make_memory();
	uint32_t before, at, behind;
	const struct space *space;
	struct replay *r;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &r), 0);
	assert_int_equal(change_at(r, 0), CODE_MEMORY);
	assert_int_equal(change_at(r, 149), CODE_MEMORY);
	assert_int_equal(change_at(r, 150), CODE_SAME);
	assert_int_equal(change_at(r, UINT64_MAX), CODE_SAME);
	/* There is one context before and one behind. */
	space = timeline_space(r->timeline, MAKE_PID, 180);
	assert_int_equal(replay_context(r, space, 180, 120, UINT64_MAX, &before), 0);
	assert_int_equal(replay_context(r, space, 180, 150, UINT64_MAX, &at), 0);
	assert_int_equal(replay_context(r, space, 180, 170, UINT64_MAX, &behind), 0);
	assert_int_not_equal(before, at);
	assert_int_equal(at, behind);
	replay_free(r);
	bundle_free(bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_run_needs_only_what_it_says),
		cmocka_unit_test(decode_run_another_build_id_is_a_mismatch),
		cmocka_unit_test(decode_run_image_that_cannot_be_had_is_a_gap),
		cmocka_unit_test(decode_run_image_that_was_gone_is_said),
		cmocka_unit_test(replay_images_memory_is_that_of_the_program_it_was_read_from),
		cmocka_unit_test(whose_code_memory_may_have_changed_until_it_was_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
