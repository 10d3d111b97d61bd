/*
 * Gathers what the loop knows: the request, the source, CPUs, processes, mapped files, regions of
 * code in memory, and sideband records.
 */
#include "daemon/gather/evidence.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

/* Names of decoder/packet/fault.h, for what the recorder knows that it did not see. */
#define NOTE_IMAGE     "image-missing"
#define NOTE_ANONYMOUS "anonymous"
#define NOTE_LOST      "sideband-lost"
#define NOTE_SILENT    "pt-silent"
/* How many processes a note names. */
#define MAX_NAMED 8

/* Copies S (NULL or "": absent) into *RET. */
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
	    copy_text(q->reason, &m->reason) < 0 || copy_text(q->unit, &m->unit) < 0 ||
	    copy_text(q->sender_unit, &m->sender_unit) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < q->labels.n; i++) {
		struct manifest_label *label = manifest_add_label(m);

		if (!label)
			return -ENOMEM;
		label->key = strdup(q->labels.list[i].key);
		label->value = strdup(q->labels.list[i].value);
		if (!label->key || !label->value)
			return -ENOMEM;
	}
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
	m->unrecorded_cpus = s->ops->unrecorded ? s->ops->unrecorded(s) : 0;
	m->clock_is_monotonic = !s->clock.valid && s->clock_is_monotonic;
	if (copy_text(s->ops->name, &m->source) < 0 || copy_text(s->pt_terms, &m->pt_terms) < 0 ||
	    copy_text(s->preset, &m->preset) < 0 || copy_text(s->pt_attr, &m->pt_attr) < 0 ||
	    copy_text(s->sideband_attr, &m->sideband_attr) < 0 ||
	    copy_text(s->sideband_missing, &m->sideband_missing) < 0 ||
	    copy_text(s->sizes_note, &m->sizes_note) < 0)
		return -ENOMEM;
	return s->ops->add_notes ? s->ops->add_notes(s, m) : 0;
}

/* Adds a note for each CPU whose trace unit wrote nothing up to the snapshot. */
static int note_silent(struct manifest *m, const struct intake *in)
{
	int r = cpunotes_add(in->source, m);

	for (size_t i = 0; i < in->source->n_cpus && r == 0; i++) {
		const struct silence *silence = &in->cpus[i].silence;
		struct manifest_note note = {
			.kind = (char *)NOTE_SILENT,
			.count = 1,
			.cpu = in->source->cpus[i].cpu,
			.since_ns = silence->since_ns,
			.until_ns = silence->until_ns,
		};
		char why[128];

		if (!silence->is || !in->source->cpus[i].pulse.stands)
			continue;
		snprintf(why, sizeof(why),
			 "threads had the CPU, user code ran for at least %" PRIu64
			 " ms, and the trace unit wrote nothing",
			 silence->user_ns / 1000000);
		note.why = why;
		r = manifest_add_note_at(m, &note);
	}
	/* A manifest that is full of notes says enough. */
	return r == -ENOSPC ? 0 : r;
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
		cpu->aux_flags = in->cpus[i].aux_flags;
		cpu->truncated_ns = in->cpus[i].truncated_ns;
		cpu->partial_ns = in->cpus[i].partial_ns;
		cpu->collision_ns = in->cpus[i].collision_ns;
		cpu->lost_records = in->cpus[i].lost;
		/* The time of the last stop; the job knows whether it is the snapshot's. */
		cpu->stop_ns = in->cpus[i].aux_ns;
		if (copy_text(source_cpu_state_name(from->state), &cpu->state) < 0 ||
		    copy_text(from->why, &cpu->why) < 0)
			return -ENOMEM;
	}
	return note_silent(m, in);
}

static int describe_process(void *userdata, const struct procs_told *told)
{
	const struct procinfo *info = told->info;
	struct manifest_process *p = manifest_add_process(userdata);

	if (!p)
		return -ENOMEM;
	p->pid = info->pid;
	p->ppid = info->ppid;
	p->start_ns = info->start_ns;
	p->uid = told->uid;
	p->uid_since_ns = told->uid_since;
	p->excluded = told->excluded;
	p->mount_ns = info->mount_ns;
	p->ns_pid = info->ns_pid;
	if (copy_text(info->cgroup, &p->cgroup) < 0)
		return -ENOMEM;
	if (told->excluded)
		return 0;
	return copy_text(info->exe, &p->exe) < 0 || copy_text(info->cmdline, &p->cmdline) < 0
		       ? -ENOMEM
		       : 0;
}

/* Adds a note about processes that keep their command line from being read. */
static int note_unread(struct manifest *m, const struct procs *procs)
{
	uint32_t pids[MAX_NAMED];
	uint64_t n = procs_unread(procs, pids, MAX_NAMED);
	char why[256] = "processes whose command line could not be read:";
	int r;

	for (size_t i = 0; i < MIN_OF(n, (uint64_t)MAX_NAMED); i++)
		snprintf(why + strlen(why), sizeof(why) - strlen(why), " %" PRIu32, pids[i]);
	if (n > MAX_NAMED)
		snprintf(why + strlen(why), sizeof(why) - strlen(why), " ...");
	r = n > 0 ? manifest_add_note(m, NOTE_LOST, n, why) : 0;
	return r == -ENOMEM ? r : 0;
}

/* A copy of the file's descriptor for the job; -1 and *ret_missing: there is none. */
static int image_fd(const struct evidence *e, const struct procs *procs,
		    const struct files_entry *file, const char **ret_missing)
{
	int fd;

	*ret_missing = file->missing;
	if (file->fd < 0)
		return -1;
	*ret_missing = !e->traced	 ? "nothing was traced that would need it"
		       : file->size == 0 ? "the file is empty"
		       : procs_is_excluded(procs, file->owner) ? FILES_WHY_EXCLUDED
							       : NULL;
	if (*ret_missing)
		return -1;
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		*ret_missing = "the recorder has no more file descriptors";
	return fd;
}

struct describe {
	struct evidence *e;
	const struct files *files;
	const struct procs *procs;
	bool *done; /* by place in files */
	uint64_t unlisted;
};

static int describe_file(struct describe *d, const struct files_entry *file)
{
	char build_id[2 * sizeof(file->build_id) + 1] = "";
	const char *missing;
	int fd = image_fd(d->e, d->procs, file, &missing);
	struct manifest_image *image = evidence_add_image(d->e, fd, fd < 0 ? 0 : file->size);

	if (!image)
		return -ENOMEM;
	image->maj = file->maj;
	image->min = file->min;
	image->ino = file->ino;
	image->ino_generation = file->ino_generation;
	/* Records have either a build id or device and inode. */
	for (size_t i = 0; i < file->build_id_size; i++)
		sprintf(build_id + 2 * i, "%02x", file->build_id[i]);
	if (copy_text(missing, &image->missing) < 0 || copy_text(build_id, &image->build_id) < 0)
		return -ENOMEM;
	return copy_text(file->path, &image->path);
}

/* Called for each file of the timeline. Two of them may be the same entry of files. */
static int describe_named(void *userdata, const struct space_file *named)
{
	struct describe *d = userdata;
	const struct files_entry *file;
	size_t index;

	if (named->path[0] != '/' || (named->ino == 0 && named->build_id_size == 0))
		return 0;
	file = files_find(d->files, named, &index);
	if (!file || d->e->manifest.n_images >= FILES_MAX) {
		d->unlisted++;
		return 0;
	}
	if (d->done[index])
		return 0;
	d->done[index] = true;
	return describe_file(d, file);
}

static int describe_images(struct evidence *e, const struct intake *in)
{
	struct describe d = {.e = e, .files = in->files, .procs = in->procs};
	int r;

	for (size_t i = 0; i < e->manifest.n_cpus; i++)
		e->traced |= e->manifest.cpus[i].ring_bytes > 0;
	d.done = calloc(files_places(in->files) + 1, sizeof(*d.done));
	if (!d.done)
		return -ENOMEM;
	r = timeline_foreach_file(in->timeline, describe_named, &d);
	free(d.done);
	if (r == 0 && d.unlisted)
		r = manifest_add_note(&e->manifest, NOTE_IMAGE, d.unlisted,
				      "more mapped files than the recorder lists");
	return r;
}

/* Lists the regions of code in memory, which the job reads. */
static int describe_memory(struct evidence *e, const struct intake *in)
{
	int r = memory_regions(in->memory, &e->regions, &e->n_regions);
	size_t n = 0;

	/* Memory of excluded processes is not read. */
	for (size_t i = 0; r == 0 && i < e->n_regions; i++)
		if (!procs_is_excluded(in->procs, e->regions[i].pid))
			e->regions[n++] = e->regions[i];
	if (r == 0)
		e->n_regions = n;
	if (r == 0 && memory_dropped(in->memory))
		r = manifest_add_note(&e->manifest, NOTE_ANONYMOUS, memory_dropped(in->memory),
				      "more regions of code in memory than the recorder lists");
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
	if (r == 0)
		r = faults_tell(&in->faults, &e->manifest);
	return r;
}

static void evidence_freep(struct evidence **e)
{
	evidence_free(*e);
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
	e->manifest.excluding = procs_excludes(in->procs);
	if (r == 0)
		r = procs_foreach(in->procs, describe_process, &e->manifest);
	if (r == 0)
		r = note_unread(&e->manifest, in->procs);
	if (r == 0)
		r = describe_images(e, in);
	if (r == 0)
		r = describe_memory(e, in);
	if (r == 0)
		r = describe_sideband(e, in);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

struct manifest_image *evidence_add_image(struct evidence *e, int fd, uint64_t size)
{
	size_t n = e->manifest.n_images;
	struct manifest_image *image = NULL;

	if (ARRAY_RESERVE(e->images, e->images_capacity, n + 1) == 0)
		image = manifest_add_image(&e->manifest);
	if (!image) {
		close_fd(fd);
		return NULL;
	}
	e->images[n] = (struct evidence_image){.fd = fd < 0 ? -1 : fd, .size = fd < 0 ? 0 : size};
	image->elsewhere = fd >= 0;
	if (fd >= 0)
		image->file_size = size;
	return image;
}

/* The kernel's time for inodes is that of the last tick of its clock
 * (ktime_get_coarse_real_ts64()), of which there are at least 100 a second (CONFIG_HZ). */
#define CTIME_TICK_NS UINT64_C(10000000)

/* The perf time of REALTIME (ns), at most that of the trigger; MANIFEST_ABSENT: not known. */
static uint64_t perf_time(const struct manifest *m, uint64_t realtime)
{
	uint64_t before;

	if (m->realtime_ns == MANIFEST_ABSENT || m->perf_ns == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	before = m->realtime_ns - MIN_OF(realtime, m->realtime_ns);
	return m->perf_ns - MIN_OF(before, m->perf_ns);
}

void evidence_date_files(struct evidence *e)
{
	for (size_t i = 0; i < e->manifest.n_images; i++) {
		struct manifest_image *image = &e->manifest.images[i];
		struct stat st;

		if (image->kind || e->images[i].fd < 0 || fstat(e->images[i].fd, &st) < 0)
			continue;
		image->unchanged_ns = perf_time(
			&e->manifest, (uint64_t)st.st_ctim.tv_sec * 1000000000u +
					      (uint64_t)st.st_ctim.tv_nsec + CTIME_TICK_NS);
	}
}

bool evidence_has_unchanged(const struct evidence *e)
{
	for (size_t i = 0; i < e->manifest.n_images; i++)
		if (e->manifest.images[i].kind &&
		    e->manifest.images[i].unchanged_ns != MANIFEST_ABSENT)
			return true;
	return false;
}

void evidence_look_at_records(struct evidence *e, const struct memory *memory)
{
	for (size_t i = 0; i < e->manifest.n_images; i++) {
		struct manifest_image *image = &e->manifest.images[i];

		if (image->kind && image->unchanged_ns != MANIFEST_ABSENT &&
		    memory_unchanged(memory, image->pid, image->address, image->file_size) >
			    image->unchanged_ns)
			image->unchanged_ns = MANIFEST_ABSENT;
	}
}

struct manifest_text *evidence_add_text(struct evidence *e, struct bytes_out *bytes)
{
	size_t n = e->manifest.n_texts;
	struct manifest_text *text = NULL;

	if (ARRAY_RESERVE(e->texts, e->texts_capacity, n + 1) == 0)
		text = manifest_add_text(&e->manifest);
	if (!text) {
		bytes_out_done(bytes);
		return NULL;
	}
	e->texts[n] = *bytes;
	text->size = bytes->size;
	bytes_out_init(bytes, 0);
	return text;
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->manifest.n_images; i++)
		close_fd(e->images[i].fd);
	for (size_t i = 0; i < e->manifest.n_texts; i++)
		bytes_out_done(&e->texts[i]);
	manifest_done(&e->manifest);
	bytes_out_done(&e->sideband);
	free(e->images);
	free(e->texts);
	free(e->regions);
	free(e);
}
