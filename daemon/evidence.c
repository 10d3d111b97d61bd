/*
 * timeline, files, processes, source, request, host -> struct evidence. Called by the manager in
 * the loop's thread when a job has copied the rings and the DATA rings are drained up to that
 * moment.
 */
#include "daemon/evidence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cpunotes.h"
#include "daemon/host.h"
#include "proto/base.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

/* Names of decoder/fault.h: what the recorder itself knows it did not see. */
#define NOTE_SIDEBAND_BAD "sideband-bad"
#define NOTE_IMAGE	  "image-missing"

/* S (NULL or "": absent) into *RET. */
static int copy_text(const char *s, char **ret)
{
	*ret = s && *s ? strdup(s) : NULL;
	return s && *s && !*ret ? -ENOMEM : 0;
}

static int describe_request(struct manifest *m, const struct evidence_from *from)
{
	const struct request *q = from->request;

	m->sender_pid = q->pid;
	m->sender_uid = q->uid;
	m->realtime_ns = q->realtime_ns;
	m->monotonic_ns = q->monotonic_ns;
	m->perf_ns = q->perf_ns;
	m->tsc = q->tsc;
	m->last_bytes = q->last_bytes;
	m->last_ns = q->last_ns;
	m->previous_stop_ns = from->previous_stop_ns;
	if (copy_text(from->id, &m->id) < 0 || copy_text(PTSNAP_VERSION, &m->version) < 0 ||
	    copy_text(q->kind, &m->trigger_kind) < 0 || copy_text(q->name, &m->trigger_name) < 0 ||
	    copy_text(q->reason, &m->reason) < 0)
		return -ENOMEM;
	return 0;
}

static int describe_source(struct manifest *m, struct source *s)
{
	m->have_clock = s->clock.valid;
	m->time_shift = s->clock.time_shift;
	m->time_mult = s->clock.time_mult;
	m->time_zero = s->clock.time_zero;
	m->pt_config = s->pt_config;
	m->trace_user = s->trace_user;
	m->trace_kernel = s->trace_kernel;
	m->mtc_period = s->mtc_period;
	m->max_nonturbo_ratio = s->max_nonturbo_ratio;
	m->tsc_art_num = s->tsc_art_num;
	m->tsc_art_den = s->tsc_art_den;
	m->noretcomp = s->noretcomp;
	m->clock_is_monotonic = !s->clock.valid && s->clock_is_monotonic;
	if (copy_text(s->ops->name, &m->source) < 0 || copy_text(s->pt_terms, &m->pt_terms) < 0 ||
	    copy_text(s->preset, &m->preset) < 0 || copy_text(s->pt_attr, &m->pt_attr) < 0 ||
	    copy_text(s->sideband_attr, &m->sideband_attr) < 0 ||
	    copy_text(s->sideband_missing, &m->sideband_missing) < 0 ||
	    copy_text(s->sizes_note, &m->sizes_note) < 0)
		return -ENOMEM;
	return s->ops->add_notes ? s->ops->add_notes(s, m) : 0;
}

static int describe_cpus(struct manifest *m, struct intake *in)
{
	for (size_t i = 0; i < in->source->n_cpus; i++) {
		const struct source_cpu *from = &in->source->cpus[i];
		struct manifest_cpu *cpu = manifest_add_cpu(m);

		if (!cpu)
			return -ENOMEM;
		cpu->cpu = from->cpu;
		cpu->ring_bytes = from->pt.aux_size;
		cpu->aux_flags = intake_take_flags(in, i);
		cpu->lost_records = in->cpus[i].lost;
		/* Of the last stop; the job knows whether that was its own. */
		cpu->stop_ns = in->cpus[i].aux_ns;
		if (copy_text(source_cpu_state_name(from->state), &cpu->state) < 0 ||
		    copy_text(from->why, &cpu->why) < 0)
			return -ENOMEM;
	}
	return cpunotes_add(in->source, m);
}

static int describe_process(void *userdata, const struct procinfo *info)
{
	struct manifest_process *p = manifest_add_process(userdata);

	if (!p)
		return -ENOMEM;
	p->pid = info->pid;
	p->ppid = info->ppid;
	p->start_ns = info->start_ns;
	p->uid = info->uid;
	if (copy_text(info->exe, &p->exe) < 0 || copy_text(info->cmdline, &p->cmdline) < 0 ||
	    copy_text(info->cgroup, &p->cgroup) < 0)
		return -ENOMEM;
	return 0;
}

/* Why the bytes of a file that is open do not go into the bundle; NULL: they do. */
static const char *image_refused(const struct evidence *e, const struct config *c, uint64_t size,
				 uint64_t sum)
{
	if (!e->traced)
		return "nothing was traced that would need it";
	if (size == 0)
		return "the file is empty";
	if (size > c->max_image_bytes)
		return "the file is larger than the limit of one image";
	if (size > c->max_images_bytes - sum)
		return "the snapshot's limit for images is used up";
	return NULL;
}

/* In hex; *RET stays NULL where the records named device and inode. */
static int copy_build_id(const struct files_entry *file, char **ret)
{
	char text[2 * sizeof(file->build_id) + 1];

	for (size_t i = 0; i < file->build_id_size; i++)
		sprintf(text + 2 * i, "%02x", file->build_id[i]);
	return file->build_id_size > 0 ? copy_text(text, ret) : 0;
}

static int describe_image(struct evidence *e, const struct files_entry *file,
			  const struct config *config, uint64_t *sum)
{
	struct evidence_image *to = &e->images[e->manifest.n_images];
	struct manifest_image *image = manifest_add_image(&e->manifest);
	const char *missing = file->missing;

	if (!image)
		return -ENOMEM;
	image->maj = file->maj;
	image->min = file->min;
	image->ino = file->ino;
	image->ino_generation = file->ino_generation;
	*to = (struct evidence_image){.fd = -1};
	if (file->fd >= 0)
		missing = image_refused(e, config, file->size, *sum);
	if (file->fd >= 0 && !missing) {
		*to = (struct evidence_image){.fd = file->fd, .size = file->size};
		*sum += file->size;
	}
	if (copy_text(missing, &image->missing) < 0 || copy_build_id(file, &image->build_id) < 0)
		return -ENOMEM;
	return copy_text(file->path, &image->path);
}

static int describe_images(struct evidence *e, const struct files *files,
			   const struct config *config)
{
	const struct manifest *m = &e->manifest;
	size_t n = files_count(files);
	uint64_t sum = 0;
	int r = 0;

	e->images = calloc(n + 1, sizeof(*e->images));
	if (!e->images)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_cpus; i++)
		e->traced |= m->cpus[i].ring_bytes > 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = describe_image(e, files_at(files, i), config, &sum);
	if (r == 0 && files_dropped(files))
		r = manifest_add_note(&e->manifest, NOTE_IMAGE, files_dropped(files),
				      "more mapped files than the recorder lists");
	return r;
}

static int describe_sideband(struct evidence *e, const struct intake *in)
{
	struct timeline_stats stats;
	int r;

	timeline_get_stats(in->timeline, &stats);
	e->manifest.horizon_ns = stats.horizon_ns;
	e->manifest.dropped_records = stats.dropped;
	r = timeline_write(in->timeline, &e->sideband);
	if (r == 0 && in->bad_records)
		r = manifest_add_note(&e->manifest, NOTE_SIDEBAND_BAD, in->bad_records,
				      "records that contradicted themselves");
	if (r == 0 && in->bad_bytes)
		r = manifest_add_note(&e->manifest, NOTE_SIDEBAND_BAD, in->bad_bytes,
				      "bytes of a ring that contradicted itself");
	return r;
}

int evidence_new(const struct evidence_from *from, struct evidence **ret)
{
	CLEANUP(evidence_freep) struct evidence *e = calloc(1, sizeof(*e));
	struct intake *in = from->intake;
	bool hardware = strcmp(in->source->ops->name, "emulated") != 0;
	int r;

	if (!e)
		return -ENOMEM;
	manifest_init(&e->manifest);
	bytes_out_init(&e->sideband, from->config->sideband_bytes);
	/* An emulated trace is not this processor's. */
	r = host_describe(&e->manifest, "/proc/cpuinfo", hardware);
	if (r == 0)
		r = describe_request(&e->manifest, from);
	if (r == 0)
		r = describe_source(&e->manifest, in->source);
	if (r == 0)
		r = describe_cpus(&e->manifest, in);
	if (r == 0)
		r = procs_foreach(in->procs, describe_process, &e->manifest);
	if (r == 0)
		r = describe_images(e, in->files, from->config);
	if (r == 0)
		r = describe_sideband(e, in);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	manifest_done(&e->manifest);
	bytes_out_done(&e->sideband);
	free(e->images);
	free(e);
}

void evidence_freep(struct evidence **e)
{
	evidence_free(*e);
}
