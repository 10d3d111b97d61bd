#include "decoder/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TSC(n)	     "\x19" n "\x00\x00\x00\x00\x00"
#define TMA(ctc, fc) "\x02\x73" ctc "\x00" fc "\x00"
#define CBR(r)	     "\x02\x03" r "\x00"
#define TNT	     "\x06"

struct expected {
	uint64_t offset, lo, hi;
};

static struct timing *new_timing(const char *bytes, size_t size, struct timing_config config)
{
	struct timing *t = malloc(sizeof(*t));

	timing_init(t, (const uint8_t *)bytes, size, 0, &config);
	return t;
}

static void check(struct timing *t, const struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t lo, hi;

		timing_at(t, e[i].offset, &lo, &hi);
		assert_int_equal(lo, e[i].lo);
		assert_int_equal(hi, e[i].hi);
	}
	free(t);
}

static void timing_at_without_packets_is_unknown(void **state)
{
	static const struct expected e[] = {{0, 0, UINT64_MAX}, {1, 0, UINT64_MAX}};

	(void)state;
	check(new_timing(TNT TNT, 2, (struct timing_config){.mtc_period = UINT32_MAX}), e, 2);
}

static void timing_at_between_two_tscs_is_their_interval(void **state)
{
	static const char bytes[] = TNT TSC("\x00\x10") TNT TNT TSC("\x00\x20") TNT;
	static const struct expected e[] = {{0, 0, 0x1000},
					    {9, 0x1000, 0x2000},
					    {10, 0x1000, 0x2000},
					    {19, 0x2000, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, (struct timing_config){UINT32_MAX, 0, 0, 0, 0}),
	      e, 4);
}

/* TSC 0x1000 lies 0x10 TSC ticks behind CTC 0x0013; MTCs come each 8 ticks of CTC, of 100 TSC. */
static void timing_at_mtc_counts_from_tma(void **state)
{
	static const char bytes[] =
		TSC("\x00\x10") TMA("\x13\x00", "\x10") TNT "\x59\x03" TNT "\x59\x04" TNT;
	/* CTC 0x18 is 5 ticks on: 0x1000 - 0x10 + 500; then 800 more. */
	static const struct expected e[] = {{15, 4096, 4096 - 16 + 502},
					    {18, 4096 - 16 + 499, 4096 - 16 + 1302},
					    {21, 4096 - 16 + 1299, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, (struct timing_config){3, 0, 100, 1, 0}), e, 3);
}

static void timing_at_mtc_wraps_at_256(void **state)
{
	static const char bytes[] =
		TSC("\x00\x10") TMA("\xf8\x07", "\x00") "\x59\x00" TNT "\x59\x02";
	/* CTC 0x7f8 to 0x800: 8 ticks; then 16. */
	static const struct expected e[] = {{17, 4096 + 799, 4096 + 2402}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, (struct timing_config){3, 0, 100, 1, 0}), e, 1);
}

static void timing_at_mtc_without_tma_or_ratio_gives_nothing(void **state)
{
	static const char bytes[] = TSC("\x00\x10") "\x59\x03" TNT "\x59\x04" TNT;
	static const struct expected e[] = {{10, 4096, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, (struct timing_config){3, 0, 100, 1, 0}), e, 1);
}

/* Ratio 31 of 64: a cycle takes 2 TSC ticks at least. CYC 8 (no bound forward: it may begin before
 * the TSC), CYC 16 behind it. */
static void timing_at_cyc_bounds_from_both_sides(void **state)
{
	static const char bytes[] =
		CBR("\x1f") TSC("\x00\x10") "\x43" TNT "\x83" TNT "\x83" TSC("\x00\x11") TNT;
	static const struct expected e[] = {
		{13, 4096, 4096 + 256 - 32},
		{15, 4096 + 32, 4096 + 256},
		{25, 4096 + 256, UINT64_MAX},
	};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, (struct timing_config){UINT32_MAX, 64, 0, 0, 0}),
	      e, 3);
}

static void timing_at_overflow_ends_the_mtc_chain(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TMA("\x13\x00", "\x10") "\x02\xf3\x59\x03" TNT;
	static const struct expected e[] = {{19, 4096, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, (struct timing_config){3, 0, 100, 1, 0}), e, 1);
}

static void timing_at_many_cycs_stays_within_its_memory(void **state)
{
	size_t n = 8 + 5000 + 8;
	char *bytes = malloc(n);
	uint64_t lo, hi;
	struct timing *t;

	(void)state;
	memset(bytes, 0x0b, n);
	memcpy(bytes, TSC("\x00\x10"), 8);
	memcpy(bytes + n - 8, TSC("\x00\x20"), 8);
	t = new_timing(bytes, n, (struct timing_config){UINT32_MAX, 64, 0, 0, 0});
	for (size_t i = 0; i < n; i += 7) {
		timing_at(t, i, &lo, &hi);
		assert_true(lo <= hi);
		if (i > 8 && i < n - 8)
			assert_true(lo >= 0x1000 && hi <= 0x2000);
	}
	free(t);
	free(bytes);
}

static void timing_at_behind_the_last_packet_ends_at_the_stop(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TNT TSC("\x00\x20") TNT;
	static const struct expected e[] = {{8, 0x1000, 0x2000}, {17, 0x2000, 0x2345}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1,
			 (struct timing_config){UINT32_MAX, 0, 0, 0, 0x2345}),
	      e, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timing_at_without_packets_is_unknown),
		cmocka_unit_test(timing_at_between_two_tscs_is_their_interval),
		cmocka_unit_test(timing_at_mtc_counts_from_tma),
		cmocka_unit_test(timing_at_mtc_wraps_at_256),
		cmocka_unit_test(timing_at_mtc_without_tma_or_ratio_gives_nothing),
		cmocka_unit_test(timing_at_cyc_bounds_from_both_sides),
		cmocka_unit_test(timing_at_overflow_ends_the_mtc_chain),
		cmocka_unit_test(timing_at_behind_the_last_packet_ends_at_the_stop),
		cmocka_unit_test(timing_at_many_cycs_stays_within_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
