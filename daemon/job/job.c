/*
 * The recipe of one snapshot and its steps, in the job's thread. Only job_capture() touches the
 * events of the source.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/gather/evidence.h"
#include "daemon/gather/memory_read.h"
#include "daemon/job/job_private.h"
#include "daemon/store/fdstore.h"
#include "daemon/store/store_file.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"
#include "proto/report.h"

int job_fail(struct job *job, int error, const char *format, ...)
{
	va_list args;

	job->entry.state = ENTRY_FAILED;
	job->error = error < 0 ? -error : 0;
	va_start(args, format);
	vsnprintf(job->entry.error, sizeof(job->entry.error), format, args);
	va_end(args);
	return error;
}

void job_remark(struct job *job, const char *format, ...)
{
	char *error = job->entry.error;
	size_t used = strlen(error);
	va_list args;

	if (used > 0)
		used += (size_t)snprintf(error + used, ENTRY_ERROR_SIZE - used, "; ");
	if (used >= ENTRY_ERROR_SIZE - 1)
		return;
	va_start(args, format);
	vsnprintf(error + used, ENTRY_ERROR_SIZE - used, format, args);
	va_end(args);
}

/* The later of two times, either of which may be MANIFEST_ABSENT. */
static uint64_t later(uint64_t a, uint64_t b)
{
	return a == MANIFEST_ABSENT || (b != MANIFEST_ABSENT && b > a) ? b : a;
}

/* Stops the CPUs, copies the newest bytes of their rings, and lets the CPUs run on. */
static int job_capture(struct job *job)
{
	struct freeze_wish wish = {
		.bytes = job->setup.last_bytes == ENTRY_ABSENT ? 0 : job->setup.last_bytes,
		.resume = job->resume,
		.cpu = job->setup.cpu,
	};
	struct source *s = job->setup.source;
	uint64_t stop_ns = MANIFEST_ABSENT;
	size_t traced = 0, stopped = 0;
	int r = -ENOMEM;

	job->frozen = calloc(s->n_cpus + 1, sizeof(*job->frozen));
	if (job->frozen)
		r = job->area_lent ? 0 : area_make(s, wish.bytes, &job->area);
	if (r < 0) {
		job_tell(job, JOB_CAPTURED, MANIFEST_ABSENT);
		return job_fail(job, r, "no memory for the copy: %s", strerror(-r));
	}
	job_tell_progress(job, JOB_FREEZE, JOB_NO_PERCENT);
	r = freeze_snapshot(job->setup.freezer, s, &wish, &job->area, job->frozen);
	for (size_t i = 0; i < s->n_cpus; i++) {
		job->entry.raw_bytes += job->frozen[i].bytes;
		traced += job->frozen[i].traced;
		stopped += job->frozen[i].traced && !job->frozen[i].not_stopped;
		stop_ns = later(stop_ns, job->frozen[i].stop_ns);
		job->dark_ns = later(job->dark_ns, job->frozen[i].dark_ns);
	}
	job_tell_progress(job, JOB_RESUME, JOB_NO_PERCENT);
	/* Before the sideband is drained, so that it tells who ran meanwhile. */
	if (asleep_read("/proc", job->pids, job->n_pids, &job->asleep) < 0)
		job_remark(job, "where threads sleep is not known: no memory");
	job_tell(job, JOB_CAPTURED, stop_ns);
	/* One stopped CPU is enough for a snapshot. Where no CPU is traced there is the sideband.
	 */
	if (traced > 0 && stopped == 0)
		return job_fail(job, r < 0 ? r : -EIO, "the CPUs could not be stopped: %s",
				strerror(r < 0 ? -r : EIO));
	return 0;
}

/* Adds what the loop must not wait for: files and memory. */
static int job_complete_evidence(struct job *job)
{
	struct entry *e = &job->entry;
	struct manifest *m = &job->evidence->manifest;
	int r;

	/* Usually there is no coredump. */
	if (coredump_find(COREDUMP_DIR, m, e->unit, e->pid, e->coredump) == 0 && *e->coredump)
		m->coredump = strdup(e->coredump);
	evidence_date_files(job->evidence);
	if (job->asleep && asleep_tell(job->asleep, job->evidence) == -ENOMEM)
		return job_fail(job, -ENOMEM, "no memory for the states of threads");
	/* Code in the memory of processes is gone when the processes end. */
	r = memory_read(job->setup.source, "/proc", &memory_default_limits, job->evidence);
	if (r < 0)
		return job_fail(job, r, "the memory of processes could not be read: %s",
				strerror(-r));
	/* Only records tell what was written to the memory before it was read. */
	if (evidence_has_unchanged(job->evidence)) {
		job_tell(job, JOB_LOOKED, 0);
		r = job_wait(job, false);
		if (r < 0)
			return job_fail(job, r, "the recorder was stopped");
	}
	/* Where the kernel is traced, its text is copied before it changes. */
	r = kernel_gather(job->setup.kernel, job->setup.source, job->evidence);
	if (r < 0)
		return job_fail(job, r, "the kernel's text could not be copied: %s", strerror(-r));
	return 0;
}

/* Completes the manifest's part about a CPU. */
static void job_describe_cpu(struct manifest_cpu *to, const struct freeze_cpu *from, uint64_t asked)
{
	to->bytes = from->bytes;
	to->asked_bytes = asked;
	to->stop_ns = freeze_stop_ns(from, to->stop_ns);
	/* When one call stopped several CPUs, only the kernel's records tell their order. */
	if (!from->together || to->stop_ns != from->stop_ns)
		to->stop_order = from->stop_order;
	to->dark_ns = from->dark_ns;
	to->copy_ns = from->copy_ns;
	to->stop_timeout = from->no_answer || from->not_stopped;
}

/* The bundle has no bytes of programs: the decoder asks for them (job_images.c). */
static int job_describe_images(struct job *job)
{
	struct manifest *m = &job->evidence->manifest;

	for (size_t i = 0; i < m->n_images; i++) {
		struct manifest_image *image = &m->images[i];

		if (job_image_size(job, i) > 0) {
			image->elsewhere = true;
			image->size = 0;
			image->file_size = job_image_size(job, i);
		} else if (!image->missing) {
			image->missing = strdup("it has no bytes");
			if (!image->missing)
				return -ENOMEM;
		}
	}
	return 0;
}

static int job_write_members(struct job *job, struct bundle_writer *w)
{
	struct evidence *e = job->evidence;
	struct manifest *m = &e->manifest;
	char name[32];
	int r = job_describe_images(job);

	if (r < 0)
		return r;
	for (size_t i = 0; i < m->n_cpus; i++) {
		job_describe_cpu(&m->cpus[i], &job->frozen[i], job->setup.last_bytes);
		snprintf(name, sizeof(name), "cpu%u.pt", m->cpus[i].cpu);
		bundle_write_member(w, name, job->area.base + job->frozen[i].offset,
				    job->frozen[i].bytes);
	}
	bundle_write_member(w, "sideband", e->sideband.data, e->sideband.size);
	for (size_t i = 0; i < m->n_texts; i++) {
		m->texts[i].size = e->texts[i].size;
		if (m->texts[i].missing)
			continue;
		snprintf(name, sizeof(name), "texts/%zu", i);
		bundle_write_member(w, name, e->texts[i].data, e->texts[i].size);
	}
	job->members_bytes = w->bytes;
	return bundle_write_end(w, m);
}

/* Puts trace, sideband, texts and manifest into one sealed memory file. */
static int job_write_bundle(struct job *job)
{
	struct bundle_writer w;
	int r = memfd_new("ptsnap-bundle", 0, &job->bundle_fd);

	job_tell_progress(job, JOB_BUNDLE, JOB_NO_PERCENT);
	if (r == 0) {
		bundle_writer_init(&w, job->bundle_fd);
		r = job_write_members(job, &w);
	}
	if (r == 0)
		r = memfd_seal(job->bundle_fd);
	if (r < 0) {
		job->bundle_fd = close_fd(job->bundle_fd);
		return job_fail(job, r, "the bundle could not be written: %s", strerror(-r));
	}
	job->entry.bundle_bytes = w.bytes;
	return 0;
}

/* Says that the disk did not take WHAT. The job goes on. There may be no room for all remarks: this
 * one comes first, but behind the reason of a failure. */
static void job_remark_in_memory(struct job *job, const char *what, const char *why)
{
	char before[ENTRY_ERROR_SIZE] = "";

	if (job->entry.state != ENTRY_FAILED) {
		strcpy(before, job->entry.error);
		*job->entry.error = '\0';
	}
	job_remark(job, "%s is kept in memory only, until the recorder ends: %s", what, why);
	if (*before)
		job_remark(job, "%s", before);
}

int job_store_bundle(struct job *job)
{
	int r;

	job_tell(job, JOB_BUNDLED, job->entry.bundle_bytes);
	r = job_wait(job, false);
	if (r <= 0) {
		job_remark_in_memory(job, "its bundle",
				     "it is larger than the store may be beside what is pinned");
		return r < 0 ? job_fail(job, r, "the recorder was stopped") : 0;
	}
	r = store_file_put(job->setup.store_fd, job->entry.id, STORE_BUNDLE, job->bundle_fd,
			   job->entry.bundle_bytes);
	job->bundle_stored = r == 0;
	if (r < 0) {
		job_remark_in_memory(job, "its bundle", strerror(-r));
		return 0;
	}
	/* From now on a crash of the recorder does not lose the snapshot. */
	job->entry.state = ENTRY_DECODING;
	store_file_put_entry(job->setup.store_fd, &job->entry);
	return 0;
}

/* Stores the report unread. */
static int job_store_report(struct job *job)
{
	struct stat st;
	int r = memfd_seal(job->report_fd);

	if (r == 0 && fstat(job->report_fd, &st) < 0)
		r = -errno;
	if (r == 0 && st.st_size == 0)
		r = -ENODATA;
	/* The decoder knows the limit, but a decoder that strangers control could fill the disk. */
	if (r == 0 && (uint64_t)st.st_size > REPORT_DEFAULT_LIMIT)
		r = -EFBIG;
	if (r < 0) {
		job->report_fd = close_fd(job->report_fd);
		return job_fail(job, r, "the decoder gave no report: %s", strerror(-r));
	}
	job->entry.report_bytes = (uint64_t)st.st_size;
	r = store_file_put(job->setup.store_fd, job->entry.id, STORE_REPORT, job->report_fd,
			   job->entry.report_bytes);
	job->report_stored = r == 0;
	if (r < 0)
		job_remark_in_memory(job, "its report", strerror(-r));
	return 0;
}

void job_store_entry(struct job *job)
{
	int r = store_file_put_entry(job->setup.store_fd, &job->entry);

	/* Where the disk does not even take the entry, the list in memory has it. */
	if (r < 0)
		job_remark_in_memory(job, "what is known of it", strerror(-r));
	r = store_file_sync(job->setup.store_fd);
	if (r < 0)
		job_remark(job, "it may be gone after a crash of the host: %s", strerror(-r));
}

static int job_gather(struct job *job)
{
	int r;

	r = job_capture(job);
	if (r < 0)
		return r;
	/* The loop drains the sideband up to the stop and says what it knows. */
	r = job_wait(job, false);
	if (r < 0)
		return job_fail(job, r, "the recorder was stopped");
	if (!job->evidence)
		return job_fail(job, job->evidence_error, "the sideband could not be gathered: %s",
				strerror(-job->evidence_error));
	r = job_complete_evidence(job);
	if (r < 0)
		return r;
	r = job_write_bundle(job);
	if (r < 0)
		return r;
	/* The bundle is saved from crashes of the recorder and the decoder. */
	job_keep_for_next(job);
	return job_store_bundle(job);
}

static int job_make_report(struct job *job)
{
	int r;

	/* One snapshot is decoded at a time; 0: no report is wanted. */
	job_tell(job, JOB_READY, 0);
	r = job_wait(job, true);
	if (r < 0)
		return job_fail(job, r, "the recorder was stopped before this was decoded");
	if (r == 0)
		return 0;
	r = job_decode(job);
	return r < 0 ? r : job_store_report(job);
}

void job_run(struct job *job)
{
	if ((job->recovers ? job_recover(job) : job_gather(job)) == 0) {
		if (job_make_report(job) == 0)
			job->entry.state = ENTRY_DONE;
		job_keep_images(job);
	}
	job_store_entry(job);
	fdstore_drop(job->entry.id, false);
	if (job->recovers)
		fdstore_drop(job->entry.id, true);
}
