#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/flow/flow.h"
#include "proto/base.h"

#define AT 0x1000ull

/* clang-format off */
static const uint8_t trace[] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, /* 0: PSB */
	0x99, 1,			/* 10: MODE.Exec 64 bit */
	0x19, 1, 0, 0, 0, 0, 0, 0,	/* 12: TSC 1 */
	0x7d, 0, 0x10, 0, 0, 0, 0,	/* 1a: FUP 1000 */
	2, 0x23,			/* 21: PSBEND */
	0x2d, 0, 0x10,			/* 23: TIP 1000 */
	0x19, 9, 0, 0, 0, 0, 0, 0,	/* 26: TSC 9 */
	0x2d, 0, 0x10,			/* 2e: TIP 1000 */
	0x2d, 0, 0x10,			/* 31: TIP 1000 */
};
/* clang-format on */

/* The code at AT depends on the context: from TSC 9 on it is other code. */
struct world {
	unsigned asked;
};

static uint64_t on_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct world *w = userdata;

	(void)tsc_hi;
	assert_int_equal(ip, AT);
	w->asked++;
	return tsc_lo < 9 ? 1 : 2;
}

static int on_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	static const uint8_t jump[] = {0xff, 0xe0}, later[] = {0x90, 0xff, 0xe0};

	(void)userdata;
	(void)ip;
	if (context == 1)
		*ret = (struct flow_code){.bytes = jump, .address = AT, .size = sizeof(jump)};
	else
		*ret = (struct flow_code){.bytes = later, .address = AT, .size = sizeof(later)};
	return 0;
}

static uint64_t walk(struct world *w, bool ticks, uint64_t *ret_contexts)
{
	const struct flow_config config = {.trace = trace,
					   .size = sizeof(trace),
					   .mtc_period = UINT32_MAX,
					   .code = on_code,
					   .context = on_context,
					   .userdata = w,
					   .cut = true,
					   .marks = true,
					   .ticks = ticks};
	struct flow_batch batch;
	struct flow *f;
	uint64_t insns;

	assert_int_equal(flow_new(&config, &f), 0);
	*ret_contexts = 0;
	while (flow_next(f, &batch) == 0)
		*ret_contexts = *ret_contexts * 10 + batch.context;
	insns = flow_get_stats(f)->instructions;
	flow_free(f);
	return insns;
}

static void flow_next_tick_asks_whose_code_it_is(void **state)
{
	struct world w = {0};
	uint64_t contexts;

	(void)state;
	/* jmp, jmp with the second TIP; from the tick on nop, jmp. */
	assert_int_equal(walk(&w, true, &contexts), 4);
	assert_int_equal(contexts, 12);
	assert_int_equal(w.asked, 2);
}

static void flow_next_without_ticks_it_stays(void **state)
{
	struct world w = {0};
	uint64_t contexts;

	(void)state;
	assert_int_equal(walk(&w, false, &contexts), 3);
	assert_int_equal(contexts, 1);
	assert_int_equal(w.asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_next_tick_asks_whose_code_it_is),
		cmocka_unit_test(flow_next_without_ticks_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
