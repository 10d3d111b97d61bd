/*
 * The feature sections of perf.data, in the order of their bits: perf finds them only by that.
 * Called by export_perfdata.c.
 */
#include "ctl/perfdata/export_features.h"

#include <stdio.h>
#include <string.h>

#include "proto/base.h"

/* Paths of images, the bulk, come out of a manifest of at most MANIFEST_MAX_TEXT. */
#define CONTENT_MAX (2 * MANIFEST_MAX_TEXT)

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

/* NULL: absent. */
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
		n += m->images[i].build_id != NULL;
	if (n == 0)
		return;
	begin(f, PERFDATA_BUILD_ID);
	for (size_t i = 0; i < m->n_images; i++)
		if (m->images[i].build_id)
			layout_build_id(&f->content, m->images[i].build_id, m->images[i].path);
	end(f);
}

static void put_cpus(struct features *f, const struct manifest *m, const struct records *records)
{
	uint32_t n = MAX_OF(records->n_cpus, 1u);

	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu != MANIFEST_ANY)
			n = MAX_OF(n, m->cpus[i].cpu + 1);
	begin(f, LAYOUT_NRCPUS);
	bytes_put_u32(&f->content, n); /* available */
	bytes_put_u32(&f->content, n); /* online */
	end(f);
}

/* As perf's get_cpuid() on x86. */
static void put_cpuid(struct features *f, const struct manifest *m)
{
	char text[80];

	if (!m->have_cpu)
		return;
	snprintf(text, sizeof(text), "%s,%u,%u,%u", m->cpu_intel ? "GenuineIntel" : "unknown",
		 m->cpu_family, m->cpu_model, m->cpu_stepping);
	put_text(f, PERFDATA_CPUID, text);
}

/* The recorder's, as far as it decides what is in the file. */
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

static void put_events(struct features *f, const struct manifest *m, const struct records *records)
{
	begin(f, LAYOUT_EVENT_DESC);
	bytes_put_u32(&f->content, LAYOUT_N_EVENTS);
	bytes_put_u32(&f->content, LAYOUT_ATTR_SIZE);
	for (enum layout_event e = LAYOUT_PT; e < LAYOUT_N_EVENTS; e++) {
		layout_attr(&f->content, e, m);
		bytes_put_u32(&f->content, records->n_traces);
		layout_string(&f->content, layout_event_name(e, m));
		for (uint32_t i = 0; i < records->n_traces; i++)
			bytes_put_u64(&f->content, e == LAYOUT_PT ? records_pt_id(records, i)
								  : records_dummy_id(records, i));
	}
	end(f);
}

static void put_pmu(struct features *f)
{
	begin(f, LAYOUT_PMU_MAPPINGS);
	bytes_put_u32(&f->content, 1);
	bytes_put_u32(&f->content, LAYOUT_PT_TYPE);
	layout_string(&f->content, "intel_pt");
	end(f);
}

static void put_index(struct features *f, const struct manifest *m,
		      const struct perfdata_section *index)
{
	begin(f, LAYOUT_AUXTRACE_INDEX);
	bytes_put_u64(&f->content, m->n_cpus);
	for (size_t i = 0; i < m->n_cpus; i++)
		layout_section(&f->content, &index[i]);
	end(f);
}

void features_compose(struct features *f, const struct manifest *m, const struct records *records,
		      const struct perfdata_section *index)
{
	*f = (struct features){0};
	bytes_out_init(&f->content, CONTENT_MAX);
	put_build_ids(f, m);
	put_text(f, PERFDATA_HOSTNAME, m->hostname);
	put_text(f, PERFDATA_OSRELEASE, m->kernel_release);
	put_text(f, LAYOUT_VERSION, m->version);
	put_text(f, PERFDATA_ARCH, m->machine);
	put_cpus(f, m, records);
	put_text(f, PERFDATA_CPUDESC, m->cpu_model_name);
	put_cpuid(f, m);
	put_command(f, m);
	put_events(f, m, records);
	put_pmu(f);
	put_index(f, m, index);
}

void features_done(struct features *f)
{
	bytes_out_done(&f->content);
}

void features_table(const struct features *f, uint64_t at, struct bytes_out *out)
{
	at += f->n * sizeof(struct perfdata_section);
	for (size_t i = 0; i < f->n; i++) {
		struct perfdata_section s = f->sections[i];

		s.offset += at;
		layout_section(out, &s);
	}
}
