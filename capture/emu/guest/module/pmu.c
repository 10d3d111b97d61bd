// SPDX-License-Identifier: GPL-2.0
/*
 * fake_intel_pt: a perf PMU named "intel_pt" without Intel PT hardware, for a virtual machine. User
 * space sees the PMU, its sysfs files, its AUX area and its perf records through the running
 * kernel's own perf core, as on a machine with Intel PT (arch/x86/events/intel/pt.c), in overwrite
 * mode only. Where the emulator has a trace unit (ringer.h), the trace is what the CPUs execute.
 * Elsewhere debugfs files in fake_pt/cpuN replace the trace unit:
 *
 * feed    write: the bytes leave the trace unit and go into the AUX ring at the current output
 *         offset, with wrap-around, only while tracing is on. Returns how many bytes were traced;
 *         fewer than written: tracing was turned off meanwhile; ENODATA: tracing is off.
 * state   read: the trace unit's state as key=value lines
 * flags   PERF_AUX_FLAG_* for the AUX record of the next stop
 * refuse  this many attempts to put an event on this CPU will fail
 * mute    not 0: the trace unit is dead. Bytes are taken and written nowhere, and all else is as
 *         if nothing had been traced
 * break   write: removes the event that traces here and adds it again, as a reschedule would; with
 *         "refuse" set, the event enters the error state
 *
 * As on hardware, only stopping the event moves perf_event_mmap_page::aux_head, and the CPU that
 * stays online while the host sleeps traces nothing afterwards until its event is started.
 *
 * Parameter "mutant" (may change at any time) adds a bug to the PMU: "stale-head", "wrong-offset",
 * "swapped-halves", "lost-stop". Tests must detect each of them. "bytes-twice": the last 3000 bytes
 * of each page are written twice.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/syscore_ops.h>
#include <linux/uaccess.h>

#include "ringer.h"

/* The capabilities that CPUID leaf 0x14 and the platform would report. */

/* cr3_filtering, psb_cyc, ip_filtering, mtc, ptwrite, psb and pmi preservation */
static uint l0_ebx = 0x5f;
module_param(l0_ebx, uint, 0444);
MODULE_PARM_DESC(l0_ebx, "CPUID.14H.0:EBX");
/* topa_output, topa_multiple_entries, single_range_output */
static uint l0_ecx = 0x7;
module_param(l0_ecx, uint, 0444);
MODULE_PARM_DESC(l0_ecx, "CPUID.14H.0:ECX; 5: a single ToPA entry");
/* two address ranges; MTC periods 0, 3, 6, 9 */
static uint l1_eax = 0x02490002;
module_param(l1_eax, uint, 0444);
MODULE_PARM_DESC(l1_eax, "CPUID.14H.1:EAX");
/* PSB periods 0..5; CYC thresholds 0..13 */
static uint l1_ebx = 0x003f3fff;
module_param(l1_ebx, uint, 0444);
MODULE_PARM_DESC(l1_ebx, "CPUID.14H.1:EBX");
static char model[16];
module_param_string(model, model, sizeof(model), 0444);
MODULE_PARM_DESC(model, "with a trace unit: whose capabilities it has, as broadwell");
static uint nonturbo = 27;
module_param(nonturbo, uint, 0444);
MODULE_PARM_DESC(nonturbo, "max_nonturbo_ratio");
static uint art_num = 216, art_den = 2;
module_param(art_num, uint, 0444);
module_param(art_den, uint, 0444);
static uint max_subleaf = 1;
static uint addr_ranges = 2; /* of l1_eax, at load */
static bool has_unit;	     /* the emulator has a trace unit */

/* The trace unit has psb_cyc, ip_filtering, mtc, power_event_trace and event_trace. It lacks
 * cr3_filtering, ptwrite (the emulator has no such instruction) and tnt_disable. */
#define UNIT_EBX 0xaeu

/* CPUID leaf 0x14 of the processors that the trace unit can be. Skylake and Alder Lake (a P-core):
 * as such processors report; Broadwell: SDM volume 3, and pt_pmu_hw_init() in
 * arch/x86/events/intel/pt.c; Ice Lake like Skylake; Sapphire Rapids has the cores of Alder Lake;
 * Sierra Forest has small cores, with all that the SDM names. */
static const struct fpt_model {
	const char *name;
	uint max_subleaf, l0_ebx, l0_ecx, l1_eax, l1_ebx;
} fpt_models[] = {
	{"skylake", 1, 0x0f, 7, 0x02490002, 0x003f3fff},
	{"broadwell", 0, 0x01, 1, 0, 0},
	{"icelake", 1, 0x0f, 7, 0x02490002, 0x003f3fff},
	{"sapphirerapids", 1, 0x5f, 7, 0x02490002, 0x003f003f},
	{"alderlake", 1, 0x5f, 7, 0x02490002, 0x003f003f},
	{"sierraforest", 1, 0x1ff, 7, 0x02490002, 0x003f003f},
};

#define FPT_TWICE 3000

static char mutant[24];
module_param_string(mutant, mutant, sizeof(mutant), 0644);
MODULE_PARM_DESC(mutant, "how the PMU is wrong");

enum fpt_cap {
	CAP_MAX_SUBLEAF,
	CAP_CR3_FILTERING,
	CAP_PSB_CYC,
	CAP_IP_FILTERING,
	CAP_MTC,
	CAP_PTWRITE,
	CAP_POWER_EVENT_TRACE,
	CAP_EVENT_TRACE,
	CAP_TNT_DISABLE,
	CAP_TOPA_OUTPUT,
	CAP_TOPA_MULTIPLE_ENTRIES,
	CAP_SINGLE_RANGE_OUTPUT,
	CAP_OUTPUT_SUBSYS,
	CAP_PAYLOADS_LIP,
	CAP_NUM_ADDRESS_RANGES,
	CAP_MTC_PERIODS,
	CAP_CYCLE_THRESHOLDS,
	CAP_PSB_PERIODS,
};

static uint fpt_cap(enum fpt_cap cap)
{
	switch (cap) {
	case CAP_MAX_SUBLEAF: return max_subleaf;
	case CAP_CR3_FILTERING: return !!(l0_ebx & BIT(0));
	case CAP_PSB_CYC: return !!(l0_ebx & BIT(1));
	case CAP_IP_FILTERING: return !!(l0_ebx & BIT(2));
	case CAP_MTC: return !!(l0_ebx & BIT(3));
	case CAP_PTWRITE: return !!(l0_ebx & BIT(4));
	case CAP_POWER_EVENT_TRACE: return !!(l0_ebx & BIT(5));
	case CAP_EVENT_TRACE: return !!(l0_ebx & BIT(7));
	case CAP_TNT_DISABLE: return !!(l0_ebx & BIT(8));
	case CAP_TOPA_OUTPUT: return !!(l0_ecx & BIT(0));
	case CAP_TOPA_MULTIPLE_ENTRIES: return !!(l0_ecx & BIT(1));
	case CAP_SINGLE_RANGE_OUTPUT: return !!(l0_ecx & BIT(2));
	case CAP_OUTPUT_SUBSYS: return !!(l0_ecx & BIT(3));
	case CAP_PAYLOADS_LIP: return !!(l0_ecx & BIT(31));
	case CAP_NUM_ADDRESS_RANGES: return l1_eax & 7;
	case CAP_MTC_PERIODS: return l1_eax >> 16;
	case CAP_CYCLE_THRESHOLDS: return l1_ebx & 0xffff;
	case CAP_PSB_PERIODS: return l1_ebx >> 16;
	}
	return 0;
}

/* The trace unit, one a CPU. */

struct fpt_buf { /* the result of setup_aux, for the perf core */
	void **pages;
	unsigned long size; /* bytes; a power of two */
	struct ringer_buf unit;
};

struct fpt_cpu {
	raw_spinlock_t lock;
	struct perf_output_handle handle;
	/* The "registers", valid while `on` is set. */
	bool on; /* TraceEn */
	struct fpt_buf *buf;
	unsigned long off; /* output offset, 0 .. size - 1 */
	struct ringer *ringer;
	/* For the state file. */
	u64 total, wraps, dropped, starts, stops, refused, stopped;
	u64 config, n_filters;
	struct bell_range filter[BELL_RANGES];
	u32 filter_cfg[BELL_RANGES]; /* ADDRn_CFG: 1 filter, 2 TraceStop */
	/* Faults that a test requests. */
	u64 flags;
	u32 refuse;
	u32 mute;
};

static DEFINE_PER_CPU(struct fpt_cpu, fpt_cpus);
static struct pmu fpt_pmu;
static struct dentry *fpt_dir;

/* Takes packets out of the trace unit. Runs on any CPU with interrupts on. */
static size_t fpt_emit(struct fpt_cpu *c, const u8 *p, size_t n)
{
	bool swapped = sysfs_streq(mutant, "swapped-halves");
	unsigned long flags;
	size_t done = 0;

	raw_spin_lock_irqsave(&c->lock, flags);
	if (!c->on) {
		c->dropped += n;
		raw_spin_unlock_irqrestore(&c->lock, flags);
		return 0;
	}
	if (c->mute)
		done = n;
	while (done < n) {
		unsigned long at = swapped ? c->off ^ (c->buf->size / 2) : c->off;
		size_t k = min_t(size_t, n - done, PAGE_SIZE - offset_in_page(at));

		memcpy(c->buf->pages[at >> PAGE_SHIFT] + offset_in_page(at), p + done, k);
		done += k;
		c->off += k;
		if (c->off == c->buf->size) {
			c->off = 0;
			c->wraps++;
		}
	}
	c->total += c->mute ? 0 : done;
	raw_spin_unlock_irqrestore(&c->lock, flags);
	return done;
}

/* Start and stop run on the event's own CPU with interrupts off. */

static u64 fpt_filters_ctl(const struct fpt_cpu *c)
{
	u64 ctl = 0;
	int i;

	for (i = 0; i < c->n_filters; i++)
		ctl |= (u64)c->filter_cfg[i] << (32 + 4 * i);
	return ctl;
}

static void fpt_unit_on(struct fpt_cpu *c, struct perf_event *event, struct fpt_buf *buf)
{
	const bool first = !event->hw.config;

	/* Only a first start makes the PMU write AUX records by itself. */
	if (first)
		event->attach_state |= PERF_ATTACH_ITRACE;
	event->hw.config = event->attr.config | BIT(0) | (event->attr.exclude_kernel ? 0 : BIT(2)) |
			   (event->attr.exclude_user ? 0 : BIT(3)) | fpt_filters_ctl(c);

	raw_spin_lock(&c->lock);
	c->buf = buf;
	c->off = c->handle.head & (buf->size - 1);
	c->config = event->hw.config;
	c->starts++;
	c->on = true;
	raw_spin_unlock(&c->lock);
	if (has_unit && !ringer_start(c->ringer, &buf->unit, c->config, c->filter, c->off, first))
		pr_err_once("the emulator refuses to trace\n");
}

static void fpt_unit_off(struct fpt_cpu *c)
{
	/* The perf core also stops what is not started. */
	const bool tracing = has_unit && c->on && !sysfs_streq(mutant, "lost-stop");
	bool stopped = false;

	raw_spin_lock(&c->lock);
	if (tracing)
		c->off = ringer_stop(c->ringer, &c->total, &stopped);
	c->stopped += stopped;
	c->on = false;
	c->stops++;
	raw_spin_unlock(&c->lock);
	smp_wmb(); /* trace bytes before aux_head */
}

static void fpt_start(struct perf_event *event, int flags)
{
	struct fpt_cpu *c = this_cpu_ptr(&fpt_cpus);
	struct fpt_buf *buf = perf_aux_output_begin(&c->handle, event);

	if (!buf) {
		event->hw.state = PERF_HES_STOPPED;
		return;
	}
	perf_event_addr_filters_sync(event);
	event->hw.state = 0;
	fpt_unit_on(c, event, buf);
}

/* Hands the bytes traced since the start to the perf core. The head is the trace unit's offset in
 * the buffer, not a running count. The size in PERF_RECORD_AUX is the size of the whole buffer. */
static void fpt_commit(struct fpt_cpu *c)
{
	struct fpt_buf *buf = perf_get_aux(&c->handle);

	if (!buf)
		return;
	if (c->flags) {
		perf_aux_output_flag(&c->handle, c->flags);
		c->flags = 0;
	}
	if (!sysfs_streq(mutant, "stale-head"))
		c->handle.head = c->off;
	if (sysfs_streq(mutant, "wrong-offset"))
		c->handle.head = (c->off + 64) & (buf->size - 1);
	/* The perf core writes no record for zero bytes. */
	perf_aux_output_end(&c->handle, sysfs_streq(mutant, "lost-stop") ? 0 : buf->size);
}

static void fpt_stop(struct perf_event *event, int flags)
{
	struct fpt_cpu *c = this_cpu_ptr(&fpt_cpus);

	fpt_unit_off(c);
	if (event->hw.state == PERF_HES_STOPPED)
		return;
	event->hw.state = PERF_HES_STOPPED;
	if (flags & PERF_EF_UPDATE) {
		if (WARN_ON_ONCE(c->handle.event && c->handle.event != event))
			return;
		fpt_commit(c);
	}
}

static int fpt_add(struct perf_event *event, int flags)
{
	struct fpt_cpu *c = this_cpu_ptr(&fpt_cpus);

	if (c->handle.event)
		return -EBUSY;
	if (c->refuse) {
		c->refuse--;
		c->refused++;
		return -EBUSY;
	}
	if (!(flags & PERF_EF_START)) {
		event->hw.state = PERF_HES_STOPPED;
		return 0;
	}
	fpt_start(event, 0);
	return event->hw.state == PERF_HES_STOPPED ? -EINVAL : 0;
}

static void fpt_del(struct perf_event *event, int flags)
{
	fpt_stop(event, PERF_EF_UPDATE);
}

static void fpt_read(struct perf_event *event)
{
}

static void *fpt_setup_aux(struct perf_event *event, void **pages, int nr_pages, bool snapshot)
{
	struct fpt_buf *buf;

	if (!nr_pages || !snapshot)
		return NULL;
	buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	if (!buf)
		return NULL;
	buf->pages = pages;
	buf->size = (unsigned long)nr_pages << PAGE_SHIFT;
	if (has_unit && ringer_buf_init(&buf->unit, pages, nr_pages)) {
		kfree(buf);
		return NULL;
	}
	return buf;
}

static void fpt_free_aux(void *aux)
{
	struct fpt_buf *buf = aux;

	ringer_buf_done(&buf->unit);
	kfree(buf);
}

/* attr.config and address filters. */

#define F_PT	     BIT_ULL(0)
#define F_CYC	     BIT_ULL(1)
#define F_PWR	     BIT_ULL(4)
#define F_FUP_ON_PTW BIT_ULL(5)
#define F_MTC	     BIT_ULL(9)
#define F_TSC	     BIT_ULL(10)
#define F_NORETCOMP  BIT_ULL(11)
#define F_PTW	     BIT_ULL(12)
#define F_BRANCH     BIT_ULL(13)
#define F_MTC_PERIOD GENMASK_ULL(17, 14)
#define F_CYC_THRESH GENMASK_ULL(22, 19)
#define F_PSB_PERIOD GENMASK_ULL(27, 24)
#define F_EVENT	     BIT_ULL(31)
#define F_NOTNT	     BIT_ULL(55)
#define F_ALL                                                                                   \
	(F_PT | F_CYC | F_PWR | F_FUP_ON_PTW | F_MTC | F_TSC | F_NORETCOMP | F_PTW | F_BRANCH | \
	 F_MTC_PERIOD | F_CYC_THRESH | F_PSB_PERIOD | F_EVENT | F_NOTNT)

/* pt_event_valid, in arch/x86/events/intel/pt.c. */
static bool fpt_config_ok(u64 c)
{
	uint psb = (c & F_PSB_PERIOD) >> 24, thresh = (c & F_CYC_THRESH) >> 19;
	uint mtc = (c & F_MTC_PERIOD) >> 14;

	if (c & ~F_ALL)
		return false;
	if ((c & (F_CYC | F_CYC_THRESH | F_PSB_PERIOD)) &&
	    (!fpt_cap(CAP_PSB_CYC) || (psb && !(fpt_cap(CAP_PSB_PERIODS) & BIT(psb))) ||
	     (thresh && !(fpt_cap(CAP_CYCLE_THRESHOLDS) & BIT(thresh)))))
		return false;
	if ((c & (F_MTC | F_MTC_PERIOD)) &&
	    (!fpt_cap(CAP_MTC) || !(fpt_cap(CAP_MTC_PERIODS) & BIT(mtc))))
		return false;
	if ((c & F_PWR) && !fpt_cap(CAP_POWER_EVENT_TRACE))
		return false;
	if ((c & F_EVENT) && !fpt_cap(CAP_EVENT_TRACE))
		return false;
	if ((c & F_NOTNT) && !fpt_cap(CAP_TNT_DISABLE))
		return false;
	if ((c & (F_PTW | F_FUP_ON_PTW)) && (!fpt_cap(CAP_PTWRITE) || !(c & F_PTW)))
		return false;
	/* "branch" may be named only together with "pt". */
	return (c & F_PT) || !(c & F_BRANCH);
}

static int fpt_event_init(struct perf_event *event)
{
	if (event->attr.type != fpt_pmu.type)
		return -ENOENT;
	return fpt_config_ok(event->attr.config) ? 0 : -EINVAL;
}

static int fpt_filters_validate(struct list_head *filters)
{
	struct perf_addr_filter *f;
	int n = 0;

	list_for_each_entry(f, filters, entry)
	{
		if (!f->size || f->action == PERF_ADDR_FILTER_ACTION_START)
			return -EOPNOTSUPP;
		if (!f->path.dentry && (s64)f->offset >= 0)
			return -EINVAL; /* not a kernel address */
		if (++n > addr_ranges)
			return -EOPNOTSUPP;
	}
	return 0;
}

static void fpt_filters_sync(struct perf_event *event)
{
	struct perf_addr_filters_head *head = perf_event_addr_filters(event);
	struct fpt_cpu *c = this_cpu_ptr(&fpt_cpus);
	struct perf_addr_filter *f;
	int i = 0;

	list_for_each_entry(f, &head->list, entry)
	{
		struct perf_addr_filter_range *r;

		if (i == BELL_RANGES)
			break;
		r = event->addr_filter_ranges + i;
		/* An object that nobody maps yet is an all-zero range. */
		c->filter[i].from = f->path.dentry && !r->start ? 0 : r->start;
		c->filter[i].to = c->filter[i].from ? r->start + r->size - 1 : 0;
		c->filter_cfg[i] = f->action == PERF_ADDR_FILTER_ACTION_FILTER ? 1 : 2;
		i++;
	}
	c->n_filters = i;
}

/* sysfs. */

static ssize_t fpt_cap_show(struct device *dev, struct device_attribute *attr, char *page)
{
	struct dev_ext_attribute *ea = container_of(attr, struct dev_ext_attribute, attr);

	return sysfs_emit(page, "%x\n", fpt_cap((long)ea->var));
}

#define CAP_ATTR(_name, _cap)                                    \
	static struct dev_ext_attribute cap_##_name = {          \
		.attr = __ATTR(_name, 0444, fpt_cap_show, NULL), \
		.var = (void *)(long)(_cap),                     \
	}
CAP_ATTR(max_subleaf, CAP_MAX_SUBLEAF);
CAP_ATTR(cr3_filtering, CAP_CR3_FILTERING);
CAP_ATTR(psb_cyc, CAP_PSB_CYC);
CAP_ATTR(ip_filtering, CAP_IP_FILTERING);
CAP_ATTR(mtc, CAP_MTC);
CAP_ATTR(ptwrite, CAP_PTWRITE);
CAP_ATTR(power_event_trace, CAP_POWER_EVENT_TRACE);
CAP_ATTR(event_trace, CAP_EVENT_TRACE);
CAP_ATTR(tnt_disable, CAP_TNT_DISABLE);
CAP_ATTR(topa_output, CAP_TOPA_OUTPUT);
CAP_ATTR(topa_multiple_entries, CAP_TOPA_MULTIPLE_ENTRIES);
CAP_ATTR(single_range_output, CAP_SINGLE_RANGE_OUTPUT);
CAP_ATTR(output_subsys, CAP_OUTPUT_SUBSYS);
CAP_ATTR(payloads_lip, CAP_PAYLOADS_LIP);
CAP_ATTR(num_address_ranges, CAP_NUM_ADDRESS_RANGES);
CAP_ATTR(mtc_periods, CAP_MTC_PERIODS);
CAP_ATTR(cycle_thresholds, CAP_CYCLE_THRESHOLDS);
CAP_ATTR(psb_periods, CAP_PSB_PERIODS);

static struct attribute *fpt_caps_attrs[] = {
	&cap_max_subleaf.attr.attr,
	&cap_cr3_filtering.attr.attr,
	&cap_psb_cyc.attr.attr,
	&cap_ip_filtering.attr.attr,
	&cap_mtc.attr.attr,
	&cap_ptwrite.attr.attr,
	&cap_power_event_trace.attr.attr,
	&cap_event_trace.attr.attr,
	&cap_tnt_disable.attr.attr,
	&cap_topa_output.attr.attr,
	&cap_topa_multiple_entries.attr.attr,
	&cap_single_range_output.attr.attr,
	&cap_output_subsys.attr.attr,
	&cap_payloads_lip.attr.attr,
	&cap_num_address_ranges.attr.attr,
	&cap_mtc_periods.attr.attr,
	&cap_cycle_thresholds.attr.attr,
	&cap_psb_periods.attr.attr,
	NULL,
};

PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(cyc, "config:1");
PMU_FORMAT_ATTR(pwr_evt, "config:4");
PMU_FORMAT_ATTR(fup_on_ptw, "config:5");
PMU_FORMAT_ATTR(mtc, "config:9");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(noretcomp, "config:11");
PMU_FORMAT_ATTR(ptw, "config:12");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(mtc_period, "config:14-17");
PMU_FORMAT_ATTR(cyc_thresh, "config:19-22");
PMU_FORMAT_ATTR(psb_period, "config:24-27");
PMU_FORMAT_ATTR(event, "config:31");
PMU_FORMAT_ATTR(notnt, "config:55");

static struct attribute *fpt_format_attrs[] = {
	&format_attr_pt.attr,	      &format_attr_cyc.attr,	    &format_attr_pwr_evt.attr,
	&format_attr_fup_on_ptw.attr, &format_attr_mtc.attr,	    &format_attr_tsc.attr,
	&format_attr_noretcomp.attr,  &format_attr_ptw.attr,	    &format_attr_branch.attr,
	&format_attr_mtc_period.attr, &format_attr_cyc_thresh.attr, &format_attr_psb_period.attr,
	&format_attr_event.attr,      &format_attr_notnt.attr,	    NULL,
};

static ssize_t max_nonturbo_ratio_show(struct device *dev, struct device_attribute *a, char *page)
{
	return sysfs_emit(page, "%u\n", nonturbo);
}
static DEVICE_ATTR_RO(max_nonturbo_ratio);

static ssize_t tsc_art_ratio_show(struct device *dev, struct device_attribute *a, char *page)
{
	return sysfs_emit(page, "%u:%u\n", art_num, art_den);
}
static DEVICE_ATTR_RO(tsc_art_ratio);

static struct attribute *fpt_timing_attrs[] = {
	&dev_attr_max_nonturbo_ratio.attr,
	&dev_attr_tsc_art_ratio.attr,
	NULL,
};

static const struct attribute_group fpt_caps_group = {
	.name = "caps",
	.attrs = fpt_caps_attrs,
};
static const struct attribute_group fpt_format_group = {
	.name = "format",
	.attrs = fpt_format_attrs,
};
static const struct attribute_group fpt_timing_group = {
	.attrs = fpt_timing_attrs,
};
static const struct attribute_group *fpt_groups[] = {
	&fpt_caps_group,
	&fpt_format_group,
	&fpt_timing_group,
	NULL,
};

/* debugfs. */

static ssize_t fpt_feed_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct fpt_cpu *c = file->private_data;
	size_t done = 0;
	u8 *p = kmalloc(PAGE_SIZE, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	while (done < len) {
		size_t n = min_t(size_t, len - done, PAGE_SIZE), traced;

		if (copy_from_user(p, from + done, n)) {
			kfree(p);
			return done ? done : -EFAULT;
		}
		traced = fpt_emit(c, p, n);
		if (sysfs_streq(mutant, "bytes-twice") && traced >= FPT_TWICE)
			fpt_emit(c, p + traced - FPT_TWICE, FPT_TWICE);
		done += traced;
		if (traced < n || signal_pending(current))
			break;
		cond_resched();
	}
	kfree(p);
	return done || !len ? done : -ENODATA;
}

static const struct file_operations fpt_feed_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = fpt_feed_write,
};

/* Tests make sure that nobody closes the event meanwhile. */
static ssize_t fpt_break_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct fpt_cpu *c = file->private_data;
	struct perf_event *event = READ_ONCE(c->handle.event);

	if (!event)
		return -ENODATA;
	perf_event_disable(event);
	perf_event_enable(event);
	return len;
}

static const struct file_operations fpt_break_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = fpt_break_write,
};

static int fpt_state_show(struct seq_file *s, void *unused)
{
	struct fpt_cpu *c = s->private, v;
	unsigned long flags, size;
	int i;

	raw_spin_lock_irqsave(&c->lock, flags);
	v = *c;
	size = v.on ? c->buf->size : 0;
	raw_spin_unlock_irqrestore(&c->lock, flags);
	seq_printf(s, "on=%d\noffset=%lu\ntotal=%llu\nwraps=%llu\ndropped=%llu\n", v.on, v.off,
		   v.total, v.wraps, v.dropped);
	seq_printf(s, "starts=%llu\nstops=%llu\nrefused=%llu\nrtit_ctl=%#llx\nsize=%lu\n", v.starts,
		   v.stops, v.refused, v.config, size);
	seq_printf(s, "tracestops=%llu\n", v.stopped);
	for (i = 0; i < v.n_filters; i++)
		seq_printf(s, "filter%d=%#llx..%#llx cfg=%d\n", i, v.filter[i].from, v.filter[i].to,
			   v.filter_cfg[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(fpt_state);

/* Load and unload. */

static struct pmu fpt_pmu = {
	.module = THIS_MODULE,
	.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
	.attr_groups = fpt_groups,
	.task_ctx_nr = perf_sw_context,
	.event_init = fpt_event_init,
	.add = fpt_add,
	.del = fpt_del,
	.start = fpt_start,
	.stop = fpt_stop,
	.read = fpt_read,
	.setup_aux = fpt_setup_aux,
	.free_aux = fpt_free_aux,
	.addr_filters_sync = fpt_filters_sync,
	.addr_filters_validate = fpt_filters_validate,
};

/* Asks for the emulator's trace unit. 0 or -ENOMEM. */
static int fpt_find_unit(void)
{
	const struct fpt_model *m = fpt_models;
	int cpu, i;

	for_each_possible_cpu(cpu)
	{
		struct fpt_cpu *c = per_cpu_ptr(&fpt_cpus, cpu);

		c->ringer = ringer_new();
		if (!c->ringer)
			return -ENOMEM;
		has_unit = ringer_has_unit(c->ringer);
	}
	if (!has_unit)
		return 0;
	for (i = 0; i < ARRAY_SIZE(fpt_models); i++)
		if (sysfs_streq(model, fpt_models[i].name))
			m = fpt_models + i;
	max_subleaf = m->max_subleaf;
	l0_ebx = m->l0_ebx & UNIT_EBX;
	l0_ecx = m->l0_ecx;
	l1_eax = m->l1_eax;
	l1_ebx = m->l1_ebx;
	nonturbo = ringer_ratio();
	art_num = RINGER_ART_NUM;
	art_den = RINGER_ART_DEN;
	return 0;
}

static void fpt_forget_unit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) ringer_free(per_cpu_ptr(&fpt_cpus, cpu)->ringer);
}

static void fpt_add_files(int cpu, struct fpt_cpu *c)
{
	struct dentry *d;
	char name[16];

	snprintf(name, sizeof(name), "cpu%d", cpu);
	d = debugfs_create_dir(name, fpt_dir);
	debugfs_create_file("feed", 0200, d, c, &fpt_feed_fops);
	debugfs_create_file("break", 0200, d, c, &fpt_break_fops);
	debugfs_create_file("state", 0400, d, c, &fpt_state_fops);
	debugfs_create_x64("flags", 0600, d, &c->flags);
	debugfs_create_u32("refuse", 0600, d, &c->refuse);
	debugfs_create_u32("mute", 0600, d, &c->mute);
}

/* A CPU without power forgets its registers, and the kernel does not restore them. Both functions
 * run on the one online CPU with interrupts off. */
static int fpt_suspend(void)
{
	struct fpt_cpu *c = this_cpu_ptr(&fpt_cpus);
	u64 total;

	if (has_unit && c->on)
		ringer_stop(c->ringer, &total, NULL);
	return 0;
}

static void fpt_resume(void)
{
	struct fpt_cpu *c = this_cpu_ptr(&fpt_cpus);

	raw_spin_lock(&c->lock);
	c->on = false;
	c->off = 0;
	raw_spin_unlock(&c->lock);
}

#ifdef FPT_SYSCORE_HAS_DATA
static int fpt_suspend_data(void *unused)
{
	return fpt_suspend();
}

static void fpt_resume_data(void *unused)
{
	fpt_resume();
}

static const struct syscore_ops fpt_syscore_ops = {
	.suspend = fpt_suspend_data,
	.resume = fpt_resume_data,
};
static struct syscore fpt_syscore = {.ops = &fpt_syscore_ops};
#else
static struct syscore_ops fpt_syscore = {.suspend = fpt_suspend, .resume = fpt_resume};
#define register_syscore   register_syscore_ops
#define unregister_syscore unregister_syscore_ops
#endif

static int __init fpt_init(void)
{
	int cpu, ret = fpt_find_unit();

	if (ret) {
		fpt_forget_unit();
		return ret;
	}
	addr_ranges = fpt_cap(CAP_NUM_ADDRESS_RANGES);
	fpt_pmu.nr_addr_filters = addr_ranges;
	if (!fpt_cap(CAP_TOPA_MULTIPLE_ENTRIES))
		fpt_pmu.capabilities |= PERF_PMU_CAP_AUX_NO_SG;

	fpt_dir = debugfs_create_dir("fake_pt", NULL);
	for_each_possible_cpu(cpu)
	{
		struct fpt_cpu *c = per_cpu_ptr(&fpt_cpus, cpu);

		raw_spin_lock_init(&c->lock);
		if (cpu_online(cpu))
			fpt_add_files(cpu, c);
	}
	ret = perf_pmu_register(&fpt_pmu, "intel_pt", -1);
	if (ret) {
		debugfs_remove_recursive(fpt_dir);
		fpt_forget_unit();
		return ret;
	}
	register_syscore(&fpt_syscore);
	pr_info("registered PMU intel_pt, type %d, %s\n", fpt_pmu.type,
		has_unit ? "with the emulator's trace unit" : "fed by debugfs");
	return 0;
}

static void __exit fpt_exit(void)
{
	unregister_syscore(&fpt_syscore);
	perf_pmu_unregister(&fpt_pmu);
	debugfs_remove_recursive(fpt_dir);
	fpt_forget_unit();
}

module_init(fpt_init);
module_exit(fpt_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A perf PMU named intel_pt that is fed from user space");
