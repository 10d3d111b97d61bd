/*
 * Writes the structures and features of a perf.data file.
 *
 * Structures are written field by field, so that their sizes are those of the file format, whatever
 * headers this program is built with.
 */
#include "ctl/perfdata/export_layout.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define TEXT_MAX 255u
/* Limit of all features. The paths of images are most of that, and a manifest has at most
 * MANIFEST_MAX_TEXT bytes of text. */
#define CONTENT_MAX (2 * MANIFEST_MAX_TEXT)

/* attr.config of intel_pt, from /sys/bus/event_source/devices/intel_pt/format. */
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
	layout_section(out, &none); /* event types: obsolete */
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
	uint64_t flags = ATTR_DISABLED | ATTR_SAMPLE_ID_ALL | ATTR_EXCLUDE_HV;
	size_t begin = out->size;

	assert(event < LAYOUT_N_EVENTS);
	if (!pt || !m->trace_kernel)
		flags |= ATTR_EXCLUDE_KERNEL;
	if (pt && !m->trace_user)
		flags |= ATTR_EXCLUDE_USER;
	if (!pt)
		flags |= ATTR_OF_DUMMY;

	bytes_put_u32(out, pt ? LAYOUT_PT_TYPE : PERF_TYPE_SOFTWARE);
	bytes_put_u32(out, LAYOUT_ATTR_SIZE);
	bytes_put_u64(out, pt ? layout_pt_config(m) : PERF_COUNT_SW_DUMMY);
	bytes_put_u64(out, 1); /* sample_period */
	/* IP changes no record here, but perf script prints no addresses without this bit. */
	bytes_put_u64(out, PERFRECORD_SAMPLE_TYPE | PERF_SAMPLE_IP);
	bytes_put_u64(out, PERF_FORMAT_ID);
	bytes_put_u64(out, flags);
	/* wakeup_watermark to sig_data */
	put_zeros(out, LAYOUT_ATTR_SIZE - (out->size - begin));
}

void layout_auxtrace_info(struct bytes_out *out, const struct manifest *m, bool per_cpu)
{
	const uint64_t words[] = {
		LAYOUT_PT_TYPE,
		m->have_clock ? m->time_shift : 0,
		m->have_clock ? m->time_mult : 0,
		m->have_clock ? m->time_zero : 0,
		m->have_clock, /* cap_user_time_zero; 0: perf decodes without time */
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
	assert(size % 8 == 0);
	bytes_put_u32(out, PERFDATA_AUXTRACE);
	bytes_put_u16(out, 0);
	bytes_put_u16(out, LAYOUT_AUXTRACE_SIZE);
	bytes_put_u64(out, size);
	bytes_put_u64(out, 0); /* offset in the ring: unknown, and perf does not use it */
	bytes_put_u64(out, reference);
	bytes_put_u32(out, index);
	/* MANIFEST_ANY is the -1 that perf writes. */
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

/* The size of a name of SIZE bytes in the file. */
static size_t padded_name(size_t size)
{
	return (size + LAYOUT_NAME_ALIGN - 1) / LAYOUT_NAME_ALIGN * LAYOUT_NAME_ALIGN;
}

void layout_string(struct bytes_out *out, const char *text)
{
	size_t size = strnlen(text, TEXT_MAX), room = padded_name(size + 1);

	bytes_put_u32(out, (uint32_t)room);
	for (size_t i = 0; i < size; i++)
		bytes_put_u8(out,
			     (uint8_t)text[i] < 0x20 || text[i] == 0x7f ? '?' : (uint8_t)text[i]);
	put_zeros(out, room - size);
}

/* The value of a hexadecimal digit; any value below 16 for another character. */
static unsigned digit(char c)
{
	return (unsigned)(c >= 'a' ? c - 'a' + 10 : c - '0') & 0xf;
}

#define BUILD_ID_HEAD 36u
#define BUILD_ID_MAX  20u

void layout_build_id(struct bytes_out *out, const char *hex, const char *path)
{
	size_t length = strnlen(path, PATH_MAX - 1), room = padded_name(length + 1);
	size_t size = MIN_OF(strlen(hex) / 2, (size_t)BUILD_ID_MAX);

	bytes_put_u32(out, 0);					/* type: perf ignores it here */
	bytes_put_u16(out, PERF_RECORD_MISC_USER | (1u << 15)); /* ..._MISC_BUILD_ID_SIZE */
	bytes_put_u16(out, (uint16_t)(BUILD_ID_HEAD + room));
	bytes_put_u32(out, UINT32_MAX); /* pid: of the host, not of a guest machine */
	for (size_t i = 0; i < size; i++)
		bytes_put_u8(out, (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1])));
	put_zeros(out, BUILD_ID_MAX - size);
	bytes_put_u32(out, (uint32_t)size);
	/* Unchanged, also control characters: the path must be equal to the path in records. */
	bytes_put_block(out, path, length);
	put_zeros(out, room - length);
}

static void begin(struct features *f, unsigned int bit)
{
	f->bits |= 1ull << bit;
	f->sections[f->n].offset = f->content.size;
}

static void end(struct features *f)
{
	f->sections[f->n].size = f->content.size - f->sections[f->n].offset;
	f->n++;
}

/* TEXT NULL: the file does not have the feature. */
static void put_text(struct features *f, unsigned int bit, const char *text)
{
	if (!text)
		return;
	begin(f, bit);
	layout_string(&f->content, text);
	end(f);
}

static void put_build_ids(struct features *f, const struct manifest *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_images; i++)
		n += !!m->images[i].build_id;
	if (n == 0)
		return;
	begin(f, PERFDATA_BUILD_ID);
	for (size_t i = 0; i < m->n_images; i++)
		if (m->images[i].build_id)
			layout_build_id(&f->content, m->images[i].build_id, m->images[i].path);
	end(f);
}

static void put_host(struct features *f, const struct manifest *m, uint32_t n_cpus)
{
	char cpuid[80];

	put_text(f, PERFDATA_HOSTNAME, m->hostname);
	put_text(f, PERFDATA_OSRELEASE, m->kernel_release);
	put_text(f, LAYOUT_VERSION, m->version);
	put_text(f, PERFDATA_ARCH, m->machine);

	n_cpus = MAX_OF(n_cpus, 1u);
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu != MANIFEST_ANY)
			n_cpus = MAX_OF(n_cpus, m->cpus[i].cpu + 1);
	/* Where it is not known how many CPUs there were, there may have been more. */
	n_cpus += m->unrecorded_cpus == MANIFEST_ABSENT
			  ? 1
			  : (uint32_t)MIN_OF(m->unrecorded_cpus, (uint64_t)MANIFEST_MAX_CPUS);
	begin(f, LAYOUT_NRCPUS);
	bytes_put_u32(&f->content, n_cpus); /* available */
	bytes_put_u32(&f->content, n_cpus); /* online */
	end(f);

	put_text(f, PERFDATA_CPUDESC, m->cpu_model_name);
	/* arch/x86/util/header.c, get_cpuid() */
	snprintf(cpuid, sizeof(cpuid), "%s,%u,%u,%u", m->cpu_intel ? "GenuineIntel" : "unknown",
		 m->cpu_family, m->cpu_model, m->cpu_stepping);
	put_text(f, PERFDATA_CPUID, m->have_cpu ? cpuid : NULL);
}

/* The options of ptsnapd that decide what is in the file. */
static void put_command(struct features *f, const struct manifest *m)
{
	char source[64], terms[256];

	snprintf(source, sizeof(source), "--source=%.48s", m->source);
	snprintf(terms, sizeof(terms), "--pt=%.240s", m->pt_terms ? m->pt_terms : "");
	begin(f, LAYOUT_CMDLINE);
	bytes_put_u32(&f->content, m->pt_terms ? 3 : 2);
	layout_string(&f->content, "ptsnapd");
	layout_string(&f->content, source);
	if (m->pt_terms)
		layout_string(&f->content, terms);
	end(f);
}

static void put_events(struct features *f, const struct manifest *m, enum layout_event first)
{
	const char *pt_name = !m->trace_kernel ? "intel_pt//u"
			      : m->trace_user  ? "intel_pt//"
					       : "intel_pt//k";

	begin(f, LAYOUT_EVENT_DESC);
	bytes_put_u32(&f->content, LAYOUT_N_EVENTS - first);
	bytes_put_u32(&f->content, LAYOUT_ATTR_SIZE);
	for (enum layout_event e = first; e < LAYOUT_N_EVENTS; e++) {
		layout_attr(&f->content, e, m);
		bytes_put_u32(&f->content, (uint32_t)m->n_cpus);
		layout_string(&f->content, e == LAYOUT_PT ? pt_name : "dummy:u");
		for (uint32_t i = 0; i < m->n_cpus; i++)
			bytes_put_u64(&f->content, layout_id(m, e, i));
	}
	end(f);

	if (first != LAYOUT_PT)
		return;
	begin(f, LAYOUT_PMU_MAPPINGS);
	bytes_put_u32(&f->content, 1);
	bytes_put_u32(&f->content, LAYOUT_PT_TYPE);
	layout_string(&f->content, "intel_pt");
	end(f);
}

void features_compose(struct features *f, const struct manifest *m, enum layout_event first,
		      uint32_t n_cpus, const struct perfdata_section *index)
{
	*f = (struct features){0};
	bytes_out_init(&f->content, CONTENT_MAX);
	/* In the order of their bits: perf tells the sections apart by nothing else. */
	put_build_ids(f, m);
	put_host(f, m, n_cpus);
	put_command(f, m);
	put_events(f, m, first);
	if (first != LAYOUT_PT)
		return;
	begin(f, LAYOUT_AUXTRACE_INDEX);
	bytes_put_u64(&f->content, m->n_cpus);
	for (size_t i = 0; i < m->n_cpus; i++)
		layout_section(&f->content, &index[i]);
	end(f);
}

void features_table(const struct features *f, uint64_t at, struct bytes_out *out)
{
	assert(f->n <= LAYOUT_MAX_FEATURES);
	at += f->n * sizeof(struct perfdata_section);
	for (size_t i = 0; i < f->n; i++) {
		struct perfdata_section s = f->sections[i];

		s.offset += at;
		layout_section(out, &s);
	}
}
