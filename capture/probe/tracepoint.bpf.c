/*
 * A tracepoint, with comparisons over its fields.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

static __always_inline bool compare(__u8 op, __u64 a, __u64 b, bool is_signed)
{
	bool less = is_signed ? (__s64)a < (__s64)b : a < b;

	switch (op) {
	case SHARED_EQ: return a == b;
	case SHARED_NE: return a != b;
	case SHARED_LT: return less;
	case SHARED_LE: return less || a == b;
	case SHARED_GT: return !less && a != b;
	case SHARED_GE: return !less;
	case SHARED_AND: return a & b;
	}
	return false;
}

static __always_inline bool number_holds(void *ctx, const volatile struct shared_test *test)
{
	unsigned shift = 64 - 8 * test->size;
	__u64 value = 0;

	bpf_probe_read_kernel(&value, test->size & 15, ctx + test->offset);
	if (test->is_signed)
		value = (__u64)((__s64)(value << shift) >> shift);
	return compare(test->op, value, test->value, test->is_signed);
}

static __always_inline bool text_holds(void *ctx, const volatile struct shared_test *test)
{
	__u32 offset = test->offset;
	char have[SHARED_TEXT] = {0};
	bool same = true;

	/* __data_loc: the low half is the offset of the text. */
	if (test->is_text == SHARED_TEXT_ELSEWHERE) {
		bpf_probe_read_kernel(&offset, sizeof(offset), ctx + test->offset);
		offset &= 0xffff;
	}
	bpf_probe_read_kernel(have, test->size <= SHARED_TEXT ? test->size : 0, ctx + offset);
	for (int i = 0; i < SHARED_TEXT; i++)
		if (i < test->size && have[i] != test->text[i])
			same = false;
	return same == (test->op == SHARED_EQ);
}

SEC("tracepoint")
int at_tracepoint(void *ctx)
{
	struct task_struct *t = current_task();
	struct shared_event *e;

	if (!matches(t))
		return 0;
	for (int i = 0; i < SHARED_TESTS; i++) {
		const volatile struct shared_test *test = &params.tests[i];

		if (i >= params.n_tests)
			break;
		if (test->is_text ? !text_holds(ctx, test) : !number_holds(ctx, test))
			return 0;
	}
	e = begin_event(ctx, t);
	if (e)
		end_event(e);
	return 0;
}
