#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/kept.h"

static void kept_write_then_read_gives_the_same(void **state)
{
	const struct manifest_piece pieces[] = {{0, 0x40}, {0x4000, 0x8000}};
	struct kept k, back;
	struct bytes_out text;

	(void)state;
	kept_init(&k);
	kept_init(&back);
	assert_int_equal(kept_add(&k, 2, "00ff.1", 0xc000, pieces, 2), 0);
	assert_int_equal(kept_add(&k, 7, "f8-1-22", 5, NULL, 0), 0);
	bytes_out_init(&text, SIZE_MAX);
	assert_int_equal(kept_write(&k, &text), 0);
	bytes_put_u8(&text, 0);
	assert_string_equal((char *)text.data,
			    "2 00ff.1 49152 0x0+0x40,0x4000+0x8000\n7 f8-1-22 5 -\n");
	assert_int_equal(kept_read(text.data, text.size - 1, &back), 0);
	assert_int_equal(back.n, 2);
	assert_null(kept_find(&back, 3));
	assert_null(kept_find(&back, 8));
	assert_string_equal(kept_find(&back, 7)->name, "f8-1-22");
	assert_int_equal(kept_find(&back, 7)->n_pieces, 0);
	assert_memory_equal(kept_find(&back, 2)->pieces, pieces, sizeof(pieces));
	bytes_out_done(&text);
	kept_done(&k);
	kept_done(&back);
}

static void kept_add_what_cannot_be_is_refused(void **state)
{
	const struct manifest_piece beyond = {10, 10}, touching[] = {{0, 4}, {4, 4}};
	struct kept k;

	(void)state;
	kept_init(&k);
	assert_int_equal(kept_add(&k, 5, "a", 20, &beyond, 1), 0);
	assert_int_equal(kept_add(&k, 5, "b", 20, NULL, 0), -EINVAL);
	assert_int_equal(kept_add(&k, 6, "b", 19, &beyond, 1), -EINVAL);
	assert_int_equal(kept_add(&k, 6, "b", 20, touching, 2), -EINVAL);
	assert_int_equal(kept_add(&k, 6, "../b", 20, NULL, 0), -EINVAL);
	assert_int_equal(kept_add(&k, 6, ".b", 20, NULL, 0), -EINVAL);
	assert_int_equal(kept_add(&k, 6, "", 20, NULL, 0), -EINVAL);
	assert_int_equal(kept_add(&k, 6, "B", 20, NULL, 0), -EINVAL);
	assert_int_equal(kept_add(&k, MANIFEST_MAX_IMAGES, "b", 20, NULL, 0), -EINVAL);
	assert_int_equal(kept_add(&k, 6, "b", 20, NULL, 0), 0);
	kept_done(&k);
}

static void kept_read_what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {
		"\n",
		"0",
		"0 a 5 -", /* no end of the line */
		"0 a 5\n",
		"0 a -\n",
		"00 a 5 -\n",
		"0 a 05 -\n",
		"65536 a 5 -\n",
		"0 a/b 5 -\n",
		"0 .. 5 -\n",
		"0 a 5 0x0+0x6\n",
		"0 a 5 \n",
		"0 a 5 - \n",
		"0 a 9223372036854775808 -\n",
		"0 a 18446744073709551617 -\n",
		"1 a 5 -\n0 b 5 -\n",
		"1 a 5 -\n1 b 5 -\n",
		"0 a 5 -\n\n",
	};
	struct kept k;

	(void)state;
	kept_init(&k);
	assert_int_equal(kept_read("", 0, &k), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (kept_read(bad[i], strlen(bad[i]), &k) != -EBADMSG)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_int_equal(k.n, 0);
	}
	assert_int_equal(kept_read("0 a 5 -\n\0", 9, &k), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_write_then_read_gives_the_same),
		cmocka_unit_test(kept_add_what_cannot_be_is_refused),
		cmocka_unit_test(kept_read_what_is_no_list_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
