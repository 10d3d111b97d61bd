/*
 * The structures of perf.data, written field by field: their sizes are those of the file format and
 * not of the headers that this was built with. Called by export_perfdata.c and export_features.c.
 */
#include "ctl/perfdata/export_layout.h"

#include <limits.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define TEXT_MAX 255u

/* attr.config of intel_pt, as /sys/bus/event_source/devices/intel_pt/format gives its terms. */
#define CONFIG_PT	 (1ull << 0)
#define CONFIG_BRANCH	 (1ull << 13)
#define CONFIG_CYC	 (1ull << 1)
#define CONFIG_MTC	 (1ull << 9)
#define CONFIG_NORETCOMP (1ull << 11)
#define CONFIG_MTC_FREQ	 (0xfull << 14)

/* The flag bits of perf_event_attr, counted from "disabled" on. */
#define ATTR_DISABLED	    (1ull << 0)
#define ATTR_EXCLUDE_USER   (1ull << 4)
#define ATTR_EXCLUDE_KERNEL (1ull << 5)
#define ATTR_EXCLUDE_HV	    (1ull << 6)
#define ATTR_MMAP	    (1ull << 8)
#define ATTR_COMM	    (1ull << 9)
#define ATTR_TASK	    (1ull << 13)
#define ATTR_SAMPLE_ID_ALL  (1ull << 18)
#define ATTR_MMAP2	    (1ull << 23)
#define ATTR_COMM_EXEC	    (1ull << 24)
#define ATTR_CONTEXT_SWITCH (1ull << 26)
#define ATTR_NAMESPACES	    (1ull << 28)
#define ATTR_KSYMBOL	    (1ull << 29)
#define ATTR_BPF_EVENT	    (1ull << 30)
#define ATTR_TEXT_POKE	    (1ull << 33)
#define ATTR_BUILD_ID	    (1ull << 34)

#define ATTR_OF_DUMMY                                                                            \
	(ATTR_MMAP | ATTR_COMM | ATTR_TASK | ATTR_MMAP2 | ATTR_COMM_EXEC | ATTR_CONTEXT_SWITCH | \
	 ATTR_NAMESPACES | ATTR_KSYMBOL | ATTR_BPF_EVENT | ATTR_TEXT_POKE | ATTR_BUILD_ID)

void layout_section(struct bytes_out *out, const struct perfdata_section *s)
{
	bytes_put_u64(out, s->offset);
	bytes_put_u64(out, s->size);
}

void layout_header(struct bytes_out *out, const struct perfdata_section *attrs,
		   const struct perfdata_section *data, uint64_t features)
{
	static const struct perfdata_section none;

	bytes_put_block(out, "PERFILE2", 8);
	bytes_put_u64(out, LAYOUT_HEADER_SIZE);
	/* An attr and the section of its ids. */
	bytes_put_u64(out, LAYOUT_ATTR_SIZE + sizeof(struct perfdata_section));
	layout_section(out, attrs);
	layout_section(out, data);
	layout_section(out, &none); /* event types, not used any more */
	bytes_put_u64(out, features);
	for (int i = 0; i < 3; i++)
		bytes_put_u64(out, 0);
}

static void put_zeros(struct bytes_out *out, size_t size)
{
	uint8_t *at = size > 0 ? bytes_put_space(out, size) : NULL;

	if (at)
		memset(at, 0, size);
}

static uint64_t attr_flags(enum layout_event event, const struct manifest *m)
{
	uint64_t flags = ATTR_DISABLED | ATTR_SAMPLE_ID_ALL | ATTR_EXCLUDE_HV;

	if (event == LAYOUT_DUMMY)
		return flags | ATTR_OF_DUMMY | ATTR_EXCLUDE_KERNEL;
	flags |= m->trace_kernel ? 0 : ATTR_EXCLUDE_KERNEL;
	return flags | (m->trace_user ? 0 : ATTR_EXCLUDE_USER);
}

uint64_t layout_pt_config(const struct manifest *m)
{
	uint64_t config = CONFIG_PT | CONFIG_BRANCH;

	if (m->pt_config != MANIFEST_ABSENT)
		return m->pt_config;
	config |= m->have_clock ? LAYOUT_CONFIG_TSC : 0;
	config |= m->noretcomp ? CONFIG_NORETCOMP : 0;
	if (m->mtc_period <= 15)
		config |= CONFIG_MTC | (uint64_t)m->mtc_period << 14;
	return config;
}

void layout_attr(struct bytes_out *out, enum layout_event event, const struct manifest *m)
{
	bool pt = event == LAYOUT_PT;
	size_t begin = out->size;

	bytes_put_u32(out, pt ? LAYOUT_PT_TYPE : PERF_TYPE_SOFTWARE);
	bytes_put_u32(out, LAYOUT_ATTR_SIZE);
	bytes_put_u64(out, pt ? layout_pt_config(m) : PERF_COUNT_SW_DUMMY);
	bytes_put_u64(out, 1); /* sample_period */
	/* Without IP, which is no part of a trailer, perf script does not print addresses. */
	bytes_put_u64(out, PERFRECORD_SAMPLE_TYPE | PERF_SAMPLE_IP);
	bytes_put_u64(out, PERF_FORMAT_ID);
	bytes_put_u64(out, attr_flags(event, m));
	/* wakeup_watermark to sig_data: not asked for */
	put_zeros(out, LAYOUT_ATTR_SIZE - (out->size - begin));
}

const char *layout_event_name(enum layout_event event, const struct manifest *m)
{
	if (event == LAYOUT_DUMMY)
		return "dummy:u";
	if (m->trace_user && m->trace_kernel)
		return "intel_pt//";
	return m->trace_kernel ? "intel_pt//k" : "intel_pt//u";
}

void layout_auxtrace_info(struct bytes_out *out, const struct manifest *m, bool per_cpu)
{
	const uint64_t words[] = {
		LAYOUT_PT_TYPE,
		m->have_clock ? m->time_shift : 0,
		m->have_clock ? m->time_mult : 0,
		m->have_clock ? m->time_zero : 0,
		m->have_clock, /* cap_user_time_zero; without it perf decodes without time */
		LAYOUT_CONFIG_TSC,
		CONFIG_NORETCOMP,
		per_cpu ? 3 : 0, /* have_sched_switch: by SWITCH_CPU_WIDE records */
		1,		 /* snapshot_mode */
		per_cpu,	 /* per_cpu_mmaps */
		CONFIG_MTC,
		CONFIG_MTC_FREQ,
		m->tsc_art_num,
		m->tsc_art_den,
		CONFIG_CYC,
		m->max_nonturbo_ratio,
		0, /* length of an address filter */
	};

	bytes_put_u32(out, PERFDATA_AUXTRACE_INFO);
	bytes_put_u16(out, 0);
	bytes_put_u16(out, LAYOUT_AUXTRACE_INFO_SIZE);
	bytes_put_u32(out, 1); /* PERF_AUXTRACE_INTEL_PT */
	bytes_put_u32(out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		bytes_put_u64(out, words[i]);
}

void layout_auxtrace(struct bytes_out *out, uint32_t index, const struct manifest_cpu *cpu,
		     uint64_t size, uint64_t reference)
{
	bytes_put_u32(out, PERFDATA_AUXTRACE);
	bytes_put_u16(out, 0);
	bytes_put_u16(out, LAYOUT_AUXTRACE_SIZE);
	bytes_put_u64(out, size);
	bytes_put_u64(out, 0); /* offset in the ring: unknown, and of use to nobody */
	bytes_put_u64(out, reference);
	bytes_put_u32(out, index);
	/* MANIFEST_ANY is perf's -1. */
	bytes_put_u32(out, cpu->tid);
	bytes_put_u32(out, cpu->cpu);
	bytes_put_u32(out, 0);
}

void layout_finished_round(struct bytes_out *out)
{
	bytes_put_u32(out, LAYOUT_FINISHED_ROUND);
	bytes_put_u16(out, 0);
	bytes_put_u16(out, LAYOUT_FINISHED_ROUND_SIZE);
}

static void put_text(struct bytes_out *out, const char *text, size_t size)
{
	uint8_t *at = size > 0 ? bytes_put_space(out, size) : NULL;

	for (size_t i = 0; at && i < size; i++)
		at[i] = (uint8_t)text[i] < 0x20 || text[i] == 0x7f ? '?' : (uint8_t)text[i];
}

static size_t padded(size_t size)
{
	return (size + LAYOUT_NAME_ALIGN - 1) / LAYOUT_NAME_ALIGN * LAYOUT_NAME_ALIGN;
}

void layout_string(struct bytes_out *out, const char *text)
{
	size_t size = strnlen(text, TEXT_MAX), room = padded(size + 1);

	bytes_put_u32(out, (uint32_t)room);
	put_text(out, text, size);
	put_zeros(out, room - size);
}

static unsigned digit(char c)
{
	return (unsigned)(c >= 'a' ? c - 'a' + 10 : c - '0') & 0xf;
}

#define BUILD_ID_HEAD 36u
#define BUILD_ID_MAX  20u

void layout_build_id(struct bytes_out *out, const char *hex, const char *path)
{
	size_t length = strnlen(path, PATH_MAX - 1), room = padded(length + 1);
	size_t size = MIN_OF(strlen(hex) / 2, (size_t)BUILD_ID_MAX);

	bytes_put_u32(out, 0); /* perf goes by the section, not by the type */
	bytes_put_u16(out, PERF_RECORD_MISC_USER | (1u << 15)); /* ..._MISC_BUILD_ID_SIZE */
	bytes_put_u16(out, (uint16_t)(BUILD_ID_HEAD + room));
	bytes_put_u32(out, UINT32_MAX); /* pid: the host, not a guest machine */
	for (size_t i = 0; i < size; i++)
		bytes_put_u8(out, (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1])));
	put_zeros(out, BUILD_ID_MAX - size);
	bytes_put_u32(out, (uint32_t)size);
	/* As in the records: a name that differs would be another file. */
	bytes_put_block(out, path, length);
	put_zeros(out, room - length);
}
