/*
 * The real ptsnap-decode, sandbox included, asks for images: for more of them than it may have
 * open, and from somebody who has not all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "decoder/run/worker_run.h"
#include "decoder/worker/ask.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_parts.h"

#define IMAGES	  (3 * ASK_MAX_OPEN)
#define FILE_SIZE 0x300000u
#define CODE_AT	  0x200000u /* far from the first bytes, which are read for names */
#define STEP	  0x1000000u
#define BASE	  UINT64_C(0x10000000)

/* One file is enough: each image is one page of code, a jump to that of the next. */
static int make_file(void)
{
	static const uint8_t jump[] = {0xe9, 0xfb, 0xff, 0xff, 0x00}; /* jmp STEP */
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, FILE_SIZE), 0);
	assert_int_equal(pwrite(fd, jump, sizeof(jump), CODE_AT), sizeof(jump));
	return fd;
}

static void put_sideband(struct bytes_out *out)
{
	struct perfrecord map = {.type = PERF_RECORD_MMAP2};

	for (uint64_t i = 0; i < IMAGES; i++) {
		map.u.mmap2.pid = MAKE_PID;
		map.u.mmap2.tid = MAKE_TID;
		map.u.mmap2.addr = BASE + i * STEP;
		map.u.mmap2.len = 0x1000;
		map.u.mmap2.pgoff = CODE_AT;
		map.u.mmap2.ino = 100 + i;
		map.u.mmap2.prot = PROT_READ | PROT_EXEC;
		map.u.mmap2.filename = "/bin/many";
		made_put_record(out, &map);
	}
	made_put_start(out, MAKE_TSC - 10);
}

static void put_ip(struct bytes_out *out, uint8_t opcode, uint64_t ip)
{
	bytes_put_u8(out, (uint8_t)(opcode | 3 << 5));
	for (int i = 0; i < 48; i += 8)
		bytes_put_u8(out, (uint8_t)(ip >> i));
}

/* From the first image to the last, where an interrupt comes. */
static void put_trace(struct bytes_out *out)
{
	const struct make_bundle psb = {.rounds = 0};

	make_trace(&psb, out);
	for (int i = 0; i < 8; i++)
		bytes_put_u16(out, 0x8202);
	bytes_put_u8(out, 0x19); /* TSC */
	for (int i = 0; i < 56; i += 8)
		bytes_put_u8(out, (uint8_t)(MAKE_TSC >> i));
	bytes_put_u16(out, 0x0199);		       /* MODE.Exec: 64 bits */
	bytes_put_u16(out, 0x2302);		       /* PSBEND */
	put_ip(out, 0x11, BASE);		       /* TIP.PGE */
	put_ip(out, 0x1d, BASE + (IMAGES - 1) * STEP); /* FUP */
	bytes_put_u8(out, 0x01);		       /* TIP.PGD */
}

static void describe(struct manifest *m, uint64_t trace)
{
	made_describe(m, "many", MAKE_TSC + MAKE_ROUND, trace);
	for (uint64_t i = 0; i < IMAGES; i++) {
		struct manifest_image *image = manifest_add_image(m);

		assert_non_null(image);
		image->path = strdup("/bin/many");
		image->ino = 100 + i;
		image->file_size = FILE_SIZE;
		image->elsewhere = true;
	}
}

static int make(void)
{
	CLEANUP(bytes_out_done) struct bytes_out trace, sideband;
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct bundle_writer w;
	struct manifest m;

	assert_true(fd >= 0);
	manifest_init(&m);
	bytes_out_init(&trace, 1 << 20);
	bytes_out_init(&sideband, 1 << 20);
	put_trace(&trace);
	put_sideband(&sideband);
	describe(&m, trace.size);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_member(&w, "cpu0.pt", trace.data, trace.size), 0);
	assert_int_equal(bundle_write_member(&w, "sideband", sideband.data, sideband.size), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	return fd;
}

struct user {
	int file;
	uint32_t refused; /* from this one on */
	unsigned asked;
	uint64_t kept[IMAGES]; /* bytes */
	uint64_t memory;       /* that the worker may use; 0: enough */
};

static int on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct user *u = userdata;

	assert_in_range(image, 0, IMAGES - 1);
	u->asked++;
	if (image >= u->refused)
		return -EACCES;
	*ret_fd = u->file;
	*ret_size = FILE_SIZE;
	return 0;
}

static void on_keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct user *u = userdata;

	assert_in_range(image, 0, IMAGES - 1);
	assert_true(offset == 0 || offset == CODE_AT);
	u->kept[image] += size;
}

/* The report of the worker that does what U says. */
static char *decode(struct user *u, bool keep, struct worker_outcome *ret)
{
	const char *build = getenv("PTSNAP_BUILDDIR");
	char program[4096];
	size_t size;
	struct worker_job job = {
		.program = program,
		.bundle_fd = make(),
		.output_fd = memfd_create("report", MFD_CLOEXEC),
		.request.cpu_seconds = 60,
		.request.options = {.view = WORKER_VIEW_REPORT,
				    .report_limit = 2u << 20,
				    .pretty = 1,
				    .memory_limit = u->memory != 0 ? u->memory : 512u << 20,
				    .keep = keep},
		.timeout_usec = 60000000,
		.image = on_image,
		.keep = on_keep,
		.userdata = u,
		.cancel_fd = -1,
	};
	int output = dup(job.output_fd);

	snprintf(program, sizeof(program), "%s/decoder/worker/ptsnap-decode",
		 build != NULL ? build : ".");
	u->file = make_file();
	assert_int_equal(worker_run(&job, ret), 0);
	close(u->file);
	close(job.bundle_fd);
	close(job.output_fd);
	return made_text(output, &size);
}

static void worker_run_asks_for_more_images_than_it_may_have_open(void **state)
{
	struct user u = {.refused = UINT32_MAX};
	struct worker_outcome outcome;
	char *text = decode(&u, true, &outcome), expected[64];

	(void)state;
	assert_int_equal(outcome.faults, 0);
	snprintf(expected, sizeof(expected), "\"instructions\": %u", IMAGES - 1);
	assert_non_null(strstr(text, expected));
	assert_null(strstr(text, "image-missing"));
	/* Once for the code, once for the first bytes. */
	assert_in_range(u.asked, IMAGES + 1, 2 * IMAGES);
	for (size_t i = 0; i + 1 < IMAGES; i++)
		assert_int_equal(u.kept[i], 2 * 0x4000);
	free(text);
}

static void worker_run_refused_images_are_gaps(void **state)
{
	struct user u = {.refused = IMAGES / 2};
	struct worker_outcome outcome;
	char *text = decode(&u, false, &outcome), expected[64];

	(void)state;
	assert_true(outcome.faults > 0);
	snprintf(expected, sizeof(expected), "\"instructions\": %u", IMAGES / 2);
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "\"kind\": \"image-missing\""));
	assert_int_equal(u.kept[0], 0);
	free(text);
}

/* A step of code is a MiB: there is memory for so many of them. */
static void worker_run_more_code_than_memory_is_gaps(void **state)
{
	struct user u = {.refused = UINT32_MAX, .memory = 64u << 20};
	struct worker_outcome outcome;
	char *text = decode(&u, false, &outcome), expected[64];

	(void)state;
	assert_true(outcome.faults > 0);
	snprintf(expected, sizeof(expected), "\"instructions\": %u", 32);
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "the limit was reached"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_run_asks_for_more_images_than_it_may_have_open),
		cmocka_unit_test(worker_run_refused_images_are_gaps),
		cmocka_unit_test(worker_run_more_code_than_memory_is_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
