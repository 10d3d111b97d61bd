/*
 * Separate debug files, as ask.c asks for them. This test answers: its answers wait in the channel
 * before the question, and it looks at the question afterwards.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "decoder/worker/ask.h"
#include "proto/base.h"
#include "proto/channel.h"
#include "proto/memfd.h"
#include "proto/worker.h"
#include "tests/support/beside.h"

#define IMAGES 100u

static const uint8_t ID[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};

struct fixture {
	int theirs; /* nobody else answers */
	int file;
	struct ask ask;
	struct image_loader loader;
};

static void begin(struct fixture *f, bool with_debug)
{
	int pair[2];

	assert_int_equal(channel_pair(pair), 0);
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(memfd_new("file", 0, &f->file), 0);
	assert_int_equal(memfd_write_all(f->file, "apart", 5), 0);
	f->theirs = pair[1];
	ask_init(&f->ask, pair[0], IMAGES, with_debug);
	f->loader = ask_loader(&f->ask, 0);
}

static void end(struct fixture *f)
{
	ask_done(&f->ask);
	close(f->ask.channel);
	close(f->theirs);
	close(f->file);
}

static void put_answer(const struct fixture *f, uint32_t image, int error)
{
	const struct worker_image answer = {.image = image, .error = error, .size = 5};

	assert_int_equal(channel_send(f->theirs, &answer, sizeof(answer), &f->file, error == 0), 0);
}

/* The question that waits; kind 0: there is none. */
static struct worker_message take_question(const struct fixture *f)
{
	struct worker_message m = {0};
	size_t size = 0, n_fds;
	int r = channel_receive(f->theirs, &m, sizeof(m), &size, NULL, 0, &n_fds);

	if (r == -EAGAIN)
		return (struct worker_message){0};
	assert_int_equal(r, 0);
	assert_int_equal(size, sizeof(m));
	return m;
}

static void expect_question(const struct fixture *f, uint32_t image, size_t id_size)
{
	struct worker_message m = take_question(f);
	static const uint8_t zeros[20];

	assert_int_equal(m.kind, WORKER_DEBUG);
	assert_int_equal(m.image, image);
	assert_int_equal(m.build_id_size, id_size);
	assert_memory_equal(m.build_id, ID, id_size);
	assert_memory_equal(m.build_id + id_size, zeros, sizeof(ID) - id_size);
	assert_int_equal(take_question(f).kind, 0);
}

static int debug(struct fixture *f, uint32_t image, size_t id_size, uint64_t *ret_size)
{
	return f->loader.debug(f->loader.userdata, image, ID, id_size, ret_size);
}

static ssize_t read_some(struct fixture *f, uint32_t image, char *to)
{
	return f->loader.read(f->loader.userdata, image, 1, to, 3);
}

static void ask_debug_is_read_beyond_all_images(void **state)
{
	int before = count_open_fds();
	struct fixture f;
	uint64_t size = 0;
	char text[8] = "";

	(void)state;
	begin(&f, true);
	put_answer(&f, 7, 0);
	assert_int_equal(debug(&f, 7, 20, &size), 0);
	assert_int_equal(size, 5);
	expect_question(&f, 7, 20);
	assert_int_equal(read_some(&f, IMAGES + 7, text), 3);
	assert_string_equal(text, "par");
	assert_int_equal(take_question(&f).kind, 0);
	/* The image itself is another file. */
	put_answer(&f, 7, 0);
	assert_int_equal(f.loader.open(f.loader.userdata, 7, &size), 0);
	assert_int_equal(take_question(&f).kind, WORKER_IMAGE);
	end(&f);
	assert_int_equal(count_open_fds(), before);
}

static void ask_debug_refused_is_an_error(void **state)
{
	struct fixture f;
	uint64_t size = 0;

	(void)state;
	begin(&f, true);
	put_answer(&f, 0, -ENOENT);
	assert_int_equal(debug(&f, 0, 3, &size), -ENOENT);
	expect_question(&f, 0, 3);
	/* Answers to other questions are none. */
	put_answer(&f, IMAGES + 1, 0);
	assert_int_equal(debug(&f, 1, 3, &size), -EPROTO);
	expect_question(&f, 1, 3);
	end(&f);
}

/* Closed for others that were needed since, and asked for again by the same build id. */
static void ask_debug_closed_is_asked_for_again(void **state)
{
	struct fixture f;
	uint64_t size = 0;
	char text[8] = "";

	(void)state;
	begin(&f, true);
	put_answer(&f, 99, 0);
	assert_int_equal(debug(&f, 99, 19, &size), 0);
	expect_question(&f, 99, 19);
	for (uint32_t i = 0; i < ASK_MAX_OPEN; i++) {
		put_answer(&f, i, 0);
		assert_int_equal(f.loader.open(f.loader.userdata, i, &size), 0);
		assert_int_equal(take_question(&f).kind, WORKER_IMAGE);
	}
	put_answer(&f, 99, 0);
	assert_int_equal(read_some(&f, IMAGES + 99, text), 3);
	assert_string_equal(text, "par");
	expect_question(&f, 99, 19);
	end(&f);
}

static void ask_debug_of_no_image_is_not_asked(void **state)
{
	struct fixture f;
	uint64_t size = 0;
	char text[8] = "";

	(void)state;
	begin(&f, true);
	assert_int_equal(debug(&f, IMAGES, 20, &size), -ENOENT);
	assert_int_equal(debug(&f, UINT32_MAX, 20, &size), -ENOENT);
	assert_int_equal(debug(&f, 0, 0, &size), -ENOENT);
	assert_int_equal(debug(&f, 0, 21, &size), -ENOENT);
	/* An image that was never asked for has no build id. */
	assert_int_equal(read_some(&f, IMAGES + 1, text), -ENOENT);
	put_answer(&f, 2, 0);
	assert_int_equal(debug(&f, 2, 20, &size), 0);
	expect_question(&f, 2, 20);
	assert_int_equal(read_some(&f, IMAGES + 1, text), -ENOENT);
	assert_int_equal(read_some(&f, 2 * IMAGES, text), -ENOENT);
	assert_int_equal(read_some(&f, UINT32_MAX, text), -ENOENT);
	assert_int_equal(take_question(&f).kind, 0);
	end(&f);
}

/* Beyond it, whoever started us would take us for a liar. */
static void ask_debug_too_often_is_not_asked(void **state)
{
	struct fixture f;
	uint64_t size = 0;

	(void)state;
	begin(&f, true);
	f.ask.n_debug = WORKER_MAX_DEBUG - 1;
	put_answer(&f, 3, 0);
	assert_int_equal(debug(&f, 3, 20, &size), 0);
	expect_question(&f, 3, 20);
	assert_int_equal(debug(&f, 4, 20, &size), -ENOENT);
	assert_int_equal(take_question(&f).kind, 0);
	end(&f);
}

static void ask_debug_unanswered_is_not_there(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, false);
	assert_null(f.loader.debug);
	assert_non_null(f.loader.open);
	end(&f);
}

static void ask_keep_of_a_file_apart_is_not_told(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(ask_keep(&f.ask, IMAGES, 0, 1), 0);
	assert_int_equal(take_question(&f).kind, 0);
	assert_int_equal(ask_keep(&f.ask, IMAGES - 1, 0, 1), 0);
	assert_int_equal(take_question(&f).kind, WORKER_KEEP);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask_debug_is_read_beyond_all_images),
		cmocka_unit_test(ask_debug_refused_is_an_error),
		cmocka_unit_test(ask_debug_closed_is_asked_for_again),
		cmocka_unit_test(ask_debug_of_no_image_is_not_asked),
		cmocka_unit_test(ask_debug_too_often_is_not_asked),
		cmocka_unit_test(ask_debug_unanswered_is_not_there),
		cmocka_unit_test(ask_keep_of_a_file_apart_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
