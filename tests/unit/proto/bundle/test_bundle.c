#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/bundle/bundle_tar.h"
#include "proto/memfd.h"

#define CPU_BYTES   700u
#define IMAGE_BYTES 1024u

static const uint8_t sideband[24] = "sideband records";

#define PEVENT_BYTES 5u

/* Two CPUs out of order, an image, an image that is missing, foreign sideband. */
static void fill(struct manifest *m)
{
	manifest_init(m);
	m->id = strdup("id");
	m->version = strdup("0");
	m->trigger_kind = strdup("control");
	m->source = strdup("emulated");
	for (unsigned i = 0; i < 2; i++) {
		struct manifest_cpu *cpu = manifest_add_cpu(m);

		cpu->cpu = 13 - i;
		cpu->bytes = CPU_BYTES * i;
	}
	*manifest_add_image(m) =
		(struct manifest_image){.path = strdup("/gone"), .missing = strdup("gone")};
	*manifest_add_image(m) =
		(struct manifest_image){.path = strdup("/bin/x"), .size = IMAGE_BYTES};
	*manifest_add_pevent(m) =
		(struct manifest_pevent){.name = strdup("x.sb"), .size = PEVENT_BYTES};
}

static int new_file(void)
{
	int fd;

	assert_int_equal(memfd_new("bundle", 0, &fd), 0);
	return fd;
}

/* A whole bundle in a memfd. */
static int sample(void)
{
	uint8_t pt[CPU_BYTES], image[IMAGE_BYTES];
	struct bundle_writer w;
	struct manifest m;
	int fd = new_file();

	memset(pt, 0x02, sizeof(pt));
	memset(image, 0x90, sizeof(image));
	fill(&m);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_member(&w, "cpu13.pt", NULL, 0), 0);
	assert_int_equal(bundle_write_member(&w, "cpu12.pt", pt, sizeof(pt)), 0);
	assert_int_equal(bundle_write_member(&w, "sideband", sideband, sizeof(sideband)), 0);
	assert_int_equal(bundle_write_member(&w, "images/1", image, sizeof(image)), 0);
	assert_int_equal(bundle_write_member(&w, "pevent/0", "pevts", PEVENT_BYTES), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), w.bytes);
	manifest_done(&m);
	return fd;
}

static int try_open(int fd)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;

	return bundle_open(fd, &b);
}

static void check_sample(const struct bundle *b)
{
	const uint8_t *data;
	size_t size;

	assert_string_equal(bundle_manifest(b)->source, "emulated");
	assert_int_equal(bundle_manifest(b)->n_cpus, 2);
	assert_non_null(bundle_cpu(b, 0, &size));
	assert_int_equal(size, 0);
	data = bundle_cpu(b, 1, &size);
	assert_int_equal(size, CPU_BYTES);
	assert_int_equal(data[0], 0x02);
	assert_int_equal(data[size - 1], 0x02);
	data = bundle_sideband(b, &size);
	assert_int_equal(size, sizeof(sideband));
	assert_memory_equal(data, sideband, size);
	assert_null(bundle_image(b, 0, &size));
	assert_int_equal(size, 0);
	data = bundle_image(b, 1, &size);
	assert_int_equal(size, IMAGE_BYTES);
	assert_int_equal(data[IMAGE_BYTES - 1], 0x90);
	data = bundle_pevent(b, 0, &size);
	assert_int_equal(size, PEVENT_BYTES);
	assert_memory_equal(data, "pevts", size);
	assert_null(bundle_pevent(b, 1, &size));
	assert_null(bundle_pevent(b, SIZE_MAX, &size));
	assert_null(bundle_cpu(b, 2, &size));
	assert_null(bundle_image(b, SIZE_MAX, &size));
}

static void bundle_write_then_open_gives_the_same(void **state)
{
	CLEANUP_CLOSE int fd = sample();
	CLEANUP(bundle_freep) struct bundle *b = NULL;

	(void)state;
	assert_int_equal(bundle_open(fd, &b), 0);
	fd = close_fd(fd);
	check_sample(b);
}

static void bundle_open_sealed_and_readonly_works(void **state)
{
	CLEANUP_CLOSE int fd = sample();
	CLEANUP_CLOSE int reader = -EBADF;
	CLEANUP(bundle_freep) struct bundle *b = NULL;

	(void)state;
	assert_int_equal(memfd_seal(fd), 0);
	assert_int_equal(memfd_reopen_readonly(fd, &reader), 0);
	assert_int_equal(try_open(fd), 0);
	assert_int_equal(bundle_open(reader, &b), 0);
	check_sample(b);
}

/* Checks what tar itself would check: names, sums, sizes, two zero blocks. */
static void bundle_write_makes_an_archive(void **state)
{
	static const char *const names[] = {"cpu13.pt", "cpu12.pt", "sideband",
					    "images/1", "pevent/0", "manifest.json"};
	CLEANUP_CLOSE int fd = sample();
	uint8_t h[512];
	off_t at = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		unsigned sum = 0;
		char *end;

		assert_int_equal(pread(fd, h, 512, at), 512);
		assert_string_equal((char *)h, names[i]);
		assert_string_equal((char *)h + 257, "ustar");
		for (size_t j = 0; j < 512; j++)
			sum += j < 148 || j > 155 ? h[j] : 32u;
		assert_int_equal(strtoul((char *)h + 148, NULL, 8), sum);
		at += 512 + ((off_t)strtoul((char *)h + 124, &end, 8) + 511) / 512 * 512;
		assert_int_equal(*end, 0);
	}
	for (unsigned i = 0; i < 2; i++, at += 512) {
		assert_int_equal(pread(fd, h, 512, at), 512);
		assert_int_equal(h[0] | memcmp(h, h + 1, 511), 0);
	}
	assert_int_equal(lseek(fd, 0, SEEK_END), at);
}

static void bundle_open_truncated_anywhere_is_refused(void **state)
{
	CLEANUP_CLOSE int fd = sample();
	off_t size = lseek(fd, 0, SEEK_END);

	(void)state;
	while (size > 0) {
		size -= size % 512 == 0 ? 1 : size % 512 == 511 ? 254 : size % 512;
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(try_open(fd), -EBADMSG);
	}
}

static void bundle_open_flipped_header_is_refused(void **state)
{
	CLEANUP_CLOSE int fd = sample();
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	for (size_t i = 0; i < 512; i++) {
		CLEANUP(bundle_freep) struct bundle *b = NULL;

		map[512 + i] ^= 0xff; /* cpu12.pt, after the empty cpu13.pt */
		assert_int_equal(bundle_open(fd, &b), -EBADMSG);
		map[512 + i] ^= 0xff;
	}
	assert_int_equal(try_open(fd), 0);
	munmap(map, (size_t)size);
}

static void bundle_open_padded_by_tar_works(void **state)
{
	CLEANUP_CLOSE int fd = sample();
	off_t size = lseek(fd, 0, SEEK_END);

	(void)state;
	assert_int_equal(ftruncate(fd, (size + 10239) / 10240 * 10240), 0);
	assert_int_equal(try_open(fd), 0);
	assert_int_equal(ftruncate(fd, size + 20480), 0);
	assert_int_equal(try_open(fd), -EBADMSG);
	assert_int_equal(ftruncate(fd, size + 512), 0);
	assert_int_equal(pwrite(fd, "x", 1, size + 511), 1);
	assert_int_equal(try_open(fd), -EBADMSG);
}

/* A valid bundle with one member more, or with one member replaced. Returns the result of
 * bundle_open(). */
static int altered(const char *instead_of, const char *name, size_t size)
{
	static const char *const names[] = {"cpu13.pt", "cpu12.pt", "sideband",
					    "images/1", "pevent/0", ""};
	static const size_t sizes[] = {0, CPU_BYTES, 24, IMAGE_BYTES, PEVENT_BYTES, 0};
	static const uint8_t bytes[4096];
	CLEANUP_CLOSE int fd = new_file();
	struct bundle_writer w;
	struct manifest m;
	int r;

	fill(&m);
	bundle_writer_init(&w, fd);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool this = strcmp(names[i], instead_of) == 0;

		if (this ? *name : *names[i])
			bundle_write_member(&w, this ? name : names[i], bytes,
					    this ? size : sizes[i]);
	}
	assert_int_equal(bundle_write_end(&w, &m), 0);
	r = try_open(fd);
	manifest_done(&m);
	return r;
}

static void bundle_open_members_unlike_the_manifest_are_refused(void **state)
{
	static const struct {
		const char *instead_of, *name;
		size_t size;
		int expected;
	} cases[] = {
		{"", "", 0, 0},				  /* as it should be */
		{"", "cpu12.pt", CPU_BYTES, -EBADMSG},	  /* twice */
		{"", "cpu13.pt", 0, -EBADMSG},		  /* twice, empty */
		{"", "sideband", 24, -EBADMSG},		  /* twice */
		{"", "images/1", IMAGE_BYTES, -EBADMSG},  /* twice */
		{"", "manifest.json", 4, -EBADMSG},	  /* twice */
		{"", "cpu5.pt", 1, -EBADMSG},		  /* too many */
		{"", "images/2", 1, -EBADMSG},		  /* too many */
		{"", "images/0", 0, -EBADMSG},		  /* said to be missing */
		{"", "pevent/0", PEVENT_BYTES, -EBADMSG}, /* twice */
		{"", "pevent/1", 1, -EBADMSG},		  /* too many */
		{"pevent/0", "", 0, -EBADMSG},		  /* not there */
		{"pevent/0", "pevent/0", PEVENT_BYTES - 1, -EBADMSG},
		{"pevent/0", "pevent/64", PEVENT_BYTES, -EBADMSG},
		{"", "passwd", 1, -EBADMSG},   /* unknown */
		{"cpu12.pt", "", 0, -EBADMSG}, /* not there */
		{"cpu13.pt", "", 0, -EBADMSG}, /* not there, empty */
		{"images/1", "", 0, -EBADMSG}, /* not there */
		{"sideband", "", 0, -EBADMSG}, /* not there */
		{"cpu12.pt", "cpu12.pt", CPU_BYTES - 1, -EBADMSG},
		{"cpu13.pt", "cpu13.pt", 1, -EBADMSG},
		{"images/1", "images/1", IMAGE_BYTES + 1, -EBADMSG},
		{"cpu12.pt", "cpu012.pt", CPU_BYTES, -EBADMSG},
		{"cpu12.pt", "cpu12.ptx", CPU_BYTES, -EBADMSG},
		{"cpu12.pt", "cpu4096.pt", CPU_BYTES, -EBADMSG},
		{"cpu12.pt", "cpu18446744073709551628.pt", CPU_BYTES, -EBADMSG},
		{"images/1", "images/", IMAGE_BYTES, -EBADMSG},
		{"images/1", "images/1/", IMAGE_BYTES, -EBADMSG},
		{"images/1", "./images/1", IMAGE_BYTES, -EBADMSG},
		{"images/1", "images/65536", IMAGE_BYTES, -EBADMSG},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = altered(cases[i].instead_of, cases[i].name, cases[i].size);

		if (r != cases[i].expected)
			fail_msg("%s for %s: %d", cases[i].name, cases[i].instead_of, r);
	}
}

/* A bundle with one image of SIZE bytes in PIECES (NULL: elsewhere) and one text of 3 bytes. */
static int pieced(const char *pieces, uint64_t file_size, size_t size, size_t text_size,
		  struct bundle **ret)
{
	static const uint8_t bytes[64] = {1, 2, 3, 4, 5, 6, 7, 8};
	CLEANUP_CLOSE int fd = new_file();
	struct manifest_image *image;
	struct manifest_text *text;
	struct bundle_writer w;
	struct manifest m;
	int r;

	manifest_init(&m);
	m.source = strdup("raw");
	image = manifest_add_image(&m);
	image->path = strdup("/x");
	image->pieces = pieces ? strdup(pieces) : NULL;
	image->elsewhere = !pieces;
	image->size = size;
	image->file_size = file_size;
	text = manifest_add_text(&m);
	text->kind = strdup("kallsyms");
	text->size = 3;
	manifest_add_text(&m)->missing = strdup("not permitted");
	bundle_writer_init(&w, fd);
	if (pieces)
		bundle_write_member(&w, "images/0", bytes, size);
	bundle_write_member(&w, "texts/0", "abc", text_size);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	r = bundle_open(fd, ret);
	manifest_done(&m);
	return r;
}

static void bundle_open_image_in_pieces_gives_them(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	const struct manifest_piece *pieces;
	size_t size, n;

	(void)state;
	assert_int_equal(pieced("0x0+0x3,0x100+0x5", 0x105, 8, 3, &b), 0);
	pieces = bundle_image_pieces(b, 0, &n);
	assert_int_equal(n, 2);
	assert_true(pieces[1].offset == 0x100 && pieces[1].size == 5);
	assert_int_equal(bundle_image(b, 0, &size)[3], 4);
	assert_int_equal(size, 8);
	assert_memory_equal(bundle_text(b, 0, &size), "abc", 3);
	assert_int_equal(size, 3);
	assert_null(bundle_text(b, 1, &size));
	assert_null(bundle_text(b, SIZE_MAX, &size));
	assert_null(bundle_image_pieces(b, 1, &n));
	bundle_free(TAKE_PTR(b));
	assert_int_equal(pieced(NULL, 0x105, 0, 3, &b), 0);
	assert_null(bundle_image(b, 0, &size));
	assert_null(bundle_image_pieces(b, 0, &n));
	assert_int_equal(n, 0);
}

static void bundle_open_whole_image_is_one_piece(void **state)
{
	CLEANUP_CLOSE int fd = sample();
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	const struct manifest_piece *pieces;
	size_t n;

	(void)state;
	assert_int_equal(bundle_open(fd, &b), 0);
	assert_null(bundle_image_pieces(b, 0, &n));
	pieces = bundle_image_pieces(b, 1, &n);
	assert_int_equal(n, 1);
	assert_true(pieces->offset == 0 && pieces->size == IMAGE_BYTES);
}

static void bundle_open_pieces_unlike_the_member_are_refused(void **state)
{
	struct bundle *b;

	(void)state;
	assert_int_equal(pieced("0x0+0x3,0x100+0x5", 0x105, 9, 3, &b), -EBADMSG);
	assert_int_equal(pieced("0x0+0x3,0x100+0x5", 0x104, 8, 3, &b), -EBADMSG);
	assert_int_equal(pieced("0x0+0x3,0x100+", 0x105, 8, 3, &b), -EBADMSG);
	assert_int_equal(pieced("0x0+0x8", 8, 8, 4, &b), -EBADMSG);
}

static void bundle_open_raw_without_sideband_works(void **state)
{
	CLEANUP_CLOSE int fd = new_file();
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct bundle_writer w;
	struct manifest m;
	size_t size;

	(void)state;
	manifest_init(&m);
	m.source = strdup("raw");
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(fd, &b), 0);
	assert_null(bundle_sideband(b, &size));
	assert_int_equal(size, 0);
	manifest_done(&m);
}

/* One CPU and two threads; FIRST is the name of the CPU's trace. Returns the result of
 * bundle_open(). */
static int open_threads(const char *first, uint32_t cpu, uint32_t tid)
{
	static const struct iovec parts[] = {
		{(void *)(uintptr_t) "ab", 2}, {NULL, 0}, {(void *)(uintptr_t) "c", 1}};
	CLEANUP_CLOSE int fd = new_file();
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct bundle_writer w;
	struct manifest m;
	size_t size;
	int r;

	manifest_init(&m);
	m.source = strdup("raw");
	bundle_writer_init(&w, fd);
	for (uint32_t i = 0; i < 3; i++) {
		struct manifest_cpu *c = manifest_add_cpu(&m);

		c->cpu = i == 0 ? 5 : i == 1 ? MANIFEST_ANY : cpu;
		c->tid = i == 0 ? MANIFEST_ANY : i == 1 ? 99 : tid;
		c->bytes = i == 1 ? 3 : 1;
	}
	assert_int_equal(bundle_write_member(&w, first, "x", 1), 0);
	assert_int_equal(bundle_write_parts(&w, "trace/1", parts, 3), 0);
	assert_int_equal(bundle_write_member(&w, "trace/2", "y", 1), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	r = bundle_open(fd, &b);
	if (r == 0) {
		assert_memory_equal(bundle_cpu(b, 0, &size), "x", 1);
		assert_memory_equal(bundle_cpu(b, 1, &size), "abc", 3);
		assert_int_equal(size, 3);
		assert_memory_equal(bundle_cpu(b, 2, &size), "y", 1);
		assert_null(bundle_cpu(b, 3, &size));
		assert_true(bundle_manifest(b)->cpus[1].cpu == MANIFEST_ANY);
		assert_int_equal(bundle_manifest(b)->cpus[1].tid, 99);
	}
	return r;
}

static void bundle_open_threads_have_traces_by_index(void **state)
{
	(void)state;
	assert_int_equal(open_threads("cpu5.pt", MANIFEST_ANY, 7), 0);
	assert_int_equal(open_threads("trace/0", MANIFEST_ANY, 7), 0);
	/* A trace of another CPU, of no CPU, of both kinds, of neither kind, of a CPU twice. */
	assert_int_equal(open_threads("cpu4.pt", MANIFEST_ANY, 7), -EBADMSG);
	assert_int_equal(open_threads("trace/3", MANIFEST_ANY, 7), -EBADMSG);
	assert_int_equal(open_threads("trace/0", 6, 7), -EBADMSG);
	assert_int_equal(open_threads("trace/0", MANIFEST_ANY, MANIFEST_ANY), -EBADMSG);
	assert_int_equal(open_threads("trace/0", 5, MANIFEST_ANY), -EBADMSG);
	assert_int_equal(open_threads("trace/0", 6, MANIFEST_ANY), 0);
}

/* A size beyond the end of the file, or beyond 64 bits. */
static void bundle_open_huge_member_is_refused(void **state)
{
	static const uint64_t sizes[] = {1025,	    1 << 20,	      UINT64_C(1) << 40,
					 INT64_MAX, UINT64_MAX - 511, UINT64_MAX};
	static const uint8_t zeros[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP_CLOSE int fd = new_file();
		uint8_t block[BUNDLE_BLOCK];

		assert_int_equal(bundle_tar_compose("sideband", sizes[i], block), 0);
		assert_int_equal(memfd_write_all(fd, block, sizeof(block)), 0);
		assert_int_equal(memfd_write_all(fd, zeros, sizeof(zeros)), 0);
		assert_int_equal(try_open(fd), -EBADMSG);
	}
}

/* The file ends within the padding of its last member and at the end of a page; the next page is
 * not mapped. */
static void bundle_open_cut_in_the_padding_is_refused(void **state)
{
	CLEANUP_CLOSE int fd = new_file();
	uint8_t block[BUNDLE_BLOCK];

	(void)state;
	assert_int_equal(bundle_tar_compose("sideband", 3500, block), 0);
	assert_int_equal(memfd_write_all(fd, block, sizeof(block)), 0);
	assert_int_equal(ftruncate(fd, 512 + 3500), 0);
	assert_int_equal(try_open(fd), -EBADMSG);
}

static void bundle_open_not_a_bundle_is_refused(void **state)
{
	CLEANUP_CLOSE int fd = new_file();
	CLEANUP_CLOSE int directory = open("/", O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(try_open(fd), -EBADMSG);
	assert_int_equal(try_open(directory), -EBADMSG);
	assert_int_equal(try_open(null), -EBADMSG);
	assert_int_equal(try_open(-1), -EBADF);
	assert_int_equal(ftruncate(fd, 4096), 0); /* an empty archive */
	assert_int_equal(try_open(fd), -EBADMSG);
	assert_int_equal(ftruncate(fd, (off_t)BUNDLE_MAX_BYTES + 1), 0);
	assert_int_equal(try_open(fd), -EFBIG);
}

static void bundle_write_file_that_ends_early_is_filled_up(void **state)
{
	CLEANUP_CLOSE int fd = new_file();
	CLEANUP_CLOSE int from = new_file();
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct bundle_writer w;
	struct manifest m;
	const uint8_t *data;
	uint64_t copied;
	size_t size;

	(void)state;
	manifest_init(&m);
	m.source = strdup("raw");
	*manifest_add_image(&m) = (struct manifest_image){.path = strdup("/x"), .size = 40000};
	assert_int_equal(memfd_write_all(from, "0123456789", 10), 0);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_file(&w, "images/0", from, 4, 40000, &copied), 0);
	assert_int_equal(copied, 6);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(fd, &b), 0);
	data = bundle_image(b, 0, &size);
	assert_int_equal(size, 40000);
	assert_memory_equal(data, "456789\0\0", 8);
	manifest_done(&m);
}

static void bundle_write_file_unreadable_is_filled_up(void **state)
{
	CLEANUP_CLOSE int fd = new_file();
	CLEANUP_CLOSE int directory = open("/", O_RDONLY | O_CLOEXEC);
	struct bundle_writer w;
	uint64_t copied;

	(void)state;
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_file(&w, "images/0", directory, 0, 100, &copied), 0);
	assert_int_equal(copied, 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 1024);
}

static void bundle_write_error_is_sticky(void **state)
{
	CLEANUP_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct bundle_writer w;
	struct manifest m;
	uint64_t copied;

	(void)state;
	if (full < 0)
		skip();
	manifest_init(&m);
	bundle_writer_init(&w, full);
	assert_int_equal(bundle_write_member(&w, "cpu0.pt", "x", 1), -ENOSPC);
	w.fd = new_file();
	assert_int_equal(bundle_write_member(&w, "cpu0.pt", "x", 1), -ENOSPC);
	assert_int_equal(bundle_write_file(&w, "cpu0.pt", w.fd, 0, 1, &copied), -ENOSPC);
	assert_int_equal(bundle_write_end(&w, &m), -ENOSPC);
	assert_int_equal(lseek(w.fd, 0, SEEK_END), 0);
	close_fd(w.fd);
}

static void bundle_write_too_large_is_refused(void **state)
{
	CLEANUP_CLOSE int fd = new_file();
	struct bundle_writer w;
	uint64_t copied;

	(void)state;
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_file(&w, "cpu0.pt", fd, 0, UINT64_MAX, &copied), -EFBIG);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_file(&w, "cpu0.pt", fd, 0, BUNDLE_MAX_BYTES - 1024, &copied),
			 -EFBIG);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bundle_write_then_open_gives_the_same),
		cmocka_unit_test(bundle_open_sealed_and_readonly_works),
		cmocka_unit_test(bundle_write_makes_an_archive),
		cmocka_unit_test(bundle_open_truncated_anywhere_is_refused),
		cmocka_unit_test(bundle_open_flipped_header_is_refused),
		cmocka_unit_test(bundle_open_padded_by_tar_works),
		cmocka_unit_test(bundle_open_members_unlike_the_manifest_are_refused),
		cmocka_unit_test(bundle_open_image_in_pieces_gives_them),
		cmocka_unit_test(bundle_open_whole_image_is_one_piece),
		cmocka_unit_test(bundle_open_pieces_unlike_the_member_are_refused),
		cmocka_unit_test(bundle_open_raw_without_sideband_works),
		cmocka_unit_test(bundle_open_threads_have_traces_by_index),
		cmocka_unit_test(bundle_open_huge_member_is_refused),
		cmocka_unit_test(bundle_open_cut_in_the_padding_is_refused),
		cmocka_unit_test(bundle_open_not_a_bundle_is_refused),
		cmocka_unit_test(bundle_write_file_that_ends_early_is_filled_up),
		cmocka_unit_test(bundle_write_file_unreadable_is_filled_up),
		cmocka_unit_test(bundle_write_error_is_sticky),
		cmocka_unit_test(bundle_write_too_large_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
