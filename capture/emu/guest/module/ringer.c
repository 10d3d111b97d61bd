// SPDX-License-Identifier: GPL-2.0
/*
 * Rings the bell of the emulator's trace unit.
 */
#include <asm/desc.h>
#include <asm/io.h>
#include <asm/tsc.h>
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "ringer.h"

struct ringer {
	struct bell bell;
};

static atomic64_t buffers = ATOMIC64_INIT(0);

struct ringer *ringer_new(void)
{
	return kzalloc(sizeof(struct ringer), GFP_KERNEL);
}

void ringer_free(struct ringer *r)
{
	kfree(r);
}

/* Where this CPU has the pointer to its current task (arch/x86/include/asm/current.h). */
static u64 current_here(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	return (u64)this_cpu_ptr(&current_task);
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
	return (u64)this_cpu_ptr(&pcpu_hot.current_task);
#else
	return (u64)this_cpu_ptr(&current_task);
#endif
}

static u32 ring(struct bell *b, enum bell_op op)
{
	b->op = op;
	b->result = BELL_NONE;
	asm volatile(BELL_RING : : "D"(virt_to_phys(b)) : "memory");
	return READ_ONCE(b->result);
}

bool ringer_has_unit(struct ringer *r)
{
	return ring(&r->bell, BELL_HELLO) == BELL_OK;
}

int ringer_buf_init(struct ringer_buf *b, void **pages, int n)
{
	int i;

	b->pages = kmalloc_array(n, sizeof(*b->pages), GFP_KERNEL);
	if (!b->pages)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		b->pages[i] = virt_to_phys(pages[i]);
	b->n_pages = n;
	b->number = atomic64_inc_return(&buffers);
	return 0;
}

void ringer_buf_done(struct ringer_buf *b)
{
	kfree(b->pages);
}

bool ringer_start(struct ringer *r, const struct ringer_buf *b, u64 ctl,
		  const struct bell_range *ranges, u64 offset, bool first)
{
	struct desc_ptr idt;

	store_idt(&idt);
	r->bell = (struct bell){
		.ctl = ctl,
		.pages = virt_to_phys(b->pages),
		.n_pages = b->n_pages,
		.buffer = b->number,
		.offset = offset,
		.idt = idt.address,
		.ratio = ringer_ratio(),
		.art_num = RINGER_ART_NUM,
		.art_den = RINGER_ART_DEN,
		.first = first,
		.current_task = current_here(),
		.direct_map = PAGE_OFFSET,
		.tid_offset = offsetof(struct task_struct, pid),
		.family = boot_cpu_data.x86,
		.model = boot_cpu_data.x86_model,
	};
	memcpy(r->bell.ranges, ranges, sizeof(r->bell.ranges));
	return ring(&r->bell, BELL_START) == BELL_OK;
}

u64 ringer_stop(struct ringer *r, u64 *total, bool *stopped)
{
	ring(&r->bell, BELL_STOP);
	*total = r->bell.total;
	if (stopped)
		*stopped = r->bell.status & BELL_STOPPED;
	return r->bell.offset;
}

u32 ringer_ratio(void)
{
	return tsc_khz / 100000;
}
