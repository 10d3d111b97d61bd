#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/emu/machine/emuring.h"
#include "proto/base.h"

static void make(struct emuoffer *o)
{
	*o = (struct emuoffer){
		.magic = EMUOFFER_MAGIC,
		.version = EMUOFFER_VERSION | EMURING_VERSION << 16,
		.n_cpus = 2,
		.max_tasks = EMURING_MIN_TASKS,
		.data_size = 4096,
		.aux_size = 8192,
		.tsc_hz = 2000000000,
		.tsc_art_num = 250,
		.tsc_art_den = 2,
		.max_nonturbo_ratio = 20,
		.time_shift = 10,
		.time_mult = 512,
		.pid = 7,
		.preset = "std",
		.name = "sh",
		.qemu = "/usr/bin/qemu-x86_64",
	};
}

/* O with SIZE bytes of VALUE at OFFSET: is it refused? */
static bool refused(size_t offset, size_t size, uint64_t value)
{
	struct emuring_layout l;
	struct emuoffer o, got;
	const char *why;

	make(&o);
	memcpy((char *)&o + offset, &value, size);
	return emuoffer_read(&o, sizeof(o), &got, &l, &why) == -EBADMSG && why != NULL;
}

#define REFUSED(field, value) \
	refused(offsetof(struct emuoffer, field), sizeof(((struct emuoffer *)0)->field), value)

static void emuoffer_read_good_gives_layout(void **state)
{
	struct emuring_head head;
	struct emuring_layout l;
	struct emuoffer o, got;
	const char *why;

	(void)state;
	make(&o);
	assert_int_equal(emuoffer_read(&o, sizeof(o), &got, &l, &why), 0);
	assert_memory_equal(&o, &got, sizeof(o));
	assert_int_equal(l.total, l.cpus_at + 2 * (4096 + 4096 + 4096 + 8192));
	emuoffer_head(&got, &l, &head);
	assert_int_equal(emuring_check(&head, l.total), 0);
	assert_int_equal(head.tsc_hz, o.tsc_hz);
}

static void emuoffer_read_other_size_is_refused(void **state)
{
	struct emuring_layout l;
	struct emuoffer o, got;
	const char *why;

	(void)state;
	make(&o);
	assert_int_equal(emuoffer_read(&o, 0, &got, &l, &why), -EBADMSG);
	assert_int_equal(emuoffer_read(&o, sizeof(o) - 1, &got, &l, &why), -EBADMSG);
	assert_int_equal(emuoffer_read(&o, sizeof(o) + 1, &got, &l, &why), -EBADMSG);
}

static void emuoffer_read_wrong_number_is_refused(void **state)
{
	(void)state;
	assert_true(REFUSED(magic, 0));
	assert_true(REFUSED(version, EMUOFFER_VERSION));
	assert_true(REFUSED(flags, 2));
	assert_true(REFUSED(n_cpus, 0));
	assert_true(REFUSED(n_cpus, EMUOFFER_MAX_CPUS + 1));
	assert_true(REFUSED(max_tasks, EMURING_MAX_TASKS + 1));
	assert_true(REFUSED(data_size, 4095));
	assert_true(REFUSED(data_size, EMUOFFER_MAX_RING * 2));
	assert_true(REFUSED(aux_size, 0));
	assert_true(REFUSED(aux_size, EMUOFFER_MAX_RING * 2));
	assert_true(REFUSED(pid, 0));
	assert_true(REFUSED(pid, (uint64_t)INT_MAX + 1));
}

/* Each would be a division by zero, or a shift by more than there is. */
static void emuoffer_read_wrong_clock_is_refused(void **state)
{
	(void)state;
	assert_true(REFUSED(clock, 2));
	assert_true(REFUSED(tsc_hz, 0));
	assert_true(REFUSED(tsc_art_num, 0));
	assert_true(REFUSED(tsc_art_den, 0));
	assert_true(REFUSED(max_nonturbo_ratio, 0));
	assert_true(REFUSED(max_nonturbo_ratio, 256));
	assert_true(REFUSED(time_shift, 32));
	assert_true(REFUSED(time_mult, 0));
}

static void emuoffer_read_text_without_end_is_refused(void **state)
{
	struct emuring_layout l;
	struct emuoffer o, got;
	const char *why;

	(void)state;
	make(&o);
	memset(o.qemu, '/', sizeof(o.qemu));
	assert_int_equal(emuoffer_read(&o, sizeof(o), &got, &l, &why), -EBADMSG);
	make(&o);
	memset(o.name, 'n', sizeof(o.name));
	assert_int_equal(emuoffer_read(&o, sizeof(o), &got, &l, &why), -EBADMSG);
	make(&o);
	memset(o.preset, 'p', sizeof(o.preset));
	assert_int_equal(emuoffer_read(&o, sizeof(o), &got, &l, &why), -EBADMSG);
	make(&o);
	o.qemu[0] = 'q';
	assert_int_equal(emuoffer_read(&o, sizeof(o), &got, &l, &why), -EBADMSG);
}

static void emuoffer_read_end_checks_numbers(void **state)
{
	struct emuoffer_end end = {EMUOFFER_END_MAGIC, 143, 15}, got;

	(void)state;
	assert_int_equal(emuoffer_read_end(&end, sizeof(end), &got), 0);
	assert_int_equal(got.exit_status, 143);
	assert_int_equal(got.killed_by, 15);
	assert_int_equal(emuoffer_read_end(&end, sizeof(end) - 1, &got), -EBADMSG);
	end.exit_status = 256;
	assert_int_equal(emuoffer_read_end(&end, sizeof(end), &got), -EBADMSG);
	end.exit_status = -1;
	assert_int_equal(emuoffer_read_end(&end, sizeof(end), &got), -EBADMSG);
	end = (struct emuoffer_end){EMUOFFER_END_MAGIC, 0, 128};
	assert_int_equal(emuoffer_read_end(&end, sizeof(end), &got), -EBADMSG);
	end = (struct emuoffer_end){EMUOFFER_MAGIC, 0, 0};
	assert_int_equal(emuoffer_read_end(&end, sizeof(end), &got), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(emuoffer_read_good_gives_layout),
		cmocka_unit_test(emuoffer_read_other_size_is_refused),
		cmocka_unit_test(emuoffer_read_wrong_number_is_refused),
		cmocka_unit_test(emuoffer_read_wrong_clock_is_refused),
		cmocka_unit_test(emuoffer_read_text_without_end_is_refused),
		cmocka_unit_test(emuoffer_read_end_checks_numbers),
	};

	return cmocka_run_group_tests_name("emuoffer", tests, NULL, NULL);
}
