/*
 * Lets jobs take turns: a new job captures at once, or when the job before it has copied its bytes;
 * jobs decode one at a time, the oldest first.
 */
#include "daemon/job/jobs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/ring/clock.h"
#include "capture/ring/freeze.h"
#include "daemon/base/log.h"
#include "daemon/job/attempt.h"
#include "proto/base.h"

enum slot_state {
	SLOT_FREE = 0,
	SLOT_QUEUED,	/* waits for the CPUs */
	SLOT_CAPTURING, /* has the CPUs */
	SLOT_BUNDLING,
	SLOT_READY, /* waits for its turn to decode */
	SLOT_DECODING,
};

struct slot {
	struct jobs *jobs;
	enum slot_state state;
	uint64_t order; /* smaller is older */
	struct job *job;
	sd_event_source *io;
	struct request request;
	char id[ENTRY_ID_SIZE];
};

struct jobs {
	sd_event *event;
	const struct config *config;
	struct source *source;
	struct store *store;
	struct jobs_handler handler;
	struct slot *slots;
	size_t n_slots;
	uint64_t orders;
	uint64_t previous_stop_ns, last_dark_ns;
	struct freezer *freezer;
	struct kernel *kernel; /* NULL: the kernel is not traced */
	struct area area;      /* memory for one copy, touched before; empty: no memory */
	struct slot *area_user;
	bool no_resume, cancelled;
};

void jobs_fit_area(struct jobs *j)
{
	if (area_holds(&j->area, j->source, 0)) {
		area_touch(&j->area, j->source);
	} else if (!j->area_user) {
		area_done(&j->area);
		area_make(j->source, 0, &j->area);
	}
}

int jobs_new(sd_event *event, const struct config *config, struct source *source,
	     struct store *store, const struct jobs_handler *handler, struct jobs **ret)
{
	struct jobs *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->event = event;
	j->config = config;
	j->source = source;
	j->store = store;
	j->handler = *handler;
	j->previous_stop_ns = j->last_dark_ns = ENTRY_ABSENT;
	j->n_slots = config->max_jobs_queued + 1;
	j->slots = calloc(j->n_slots, sizeof(*j->slots));
	if (!j->slots || freezer_new(source, 0, &j->freezer) < 0 ||
	    (source->trace_kernel && kernel_new(NULL, &j->kernel) < 0)) {
		jobs_free(j);
		return -ENOMEM;
	}
	jobs_fit_area(j);
	*ret = j;
	return 0;
}

void jobs_use(struct jobs *j, const struct config *config)
{
	j->config = config;
}

/* The oldest slot in STATE, NULL: none. */
static struct slot *jobs_oldest(const struct jobs *j, enum slot_state state)
{
	struct slot *oldest = NULL;

	for (size_t i = 0; i < j->n_slots; i++)
		if (j->slots[i].state == state && (!oldest || j->slots[i].order < oldest->order))
			oldest = &j->slots[i];
	return oldest;
}

bool jobs_full(const struct jobs *j)
{
	return !jobs_oldest(j, SLOT_FREE);
}

bool jobs_full_for_users(const struct jobs *j)
{
	return j->n_slots - jobs_running(j) <= j->n_slots / 2;
}

bool jobs_capturing(const struct jobs *j)
{
	return jobs_oldest(j, SLOT_CAPTURING);
}

size_t jobs_running(const struct jobs *j)
{
	size_t n = 0;

	for (size_t i = 0; i < j->n_slots; i++)
		n += j->slots[i].state != SLOT_FREE;
	return n;
}

uint64_t jobs_last_dark_ns(const struct jobs *j)
{
	return j->last_dark_ns;
}

void jobs_no_resume(struct jobs *j)
{
	j->no_resume = true;
}

void jobs_cancel(struct jobs *j)
{
	j->cancelled = true;
	for (size_t i = 0; i < j->n_slots; i++)
		if (j->slots[i].job)
			job_cancel(j->slots[i].job);
}

/* Whether a window of HAS bytes or ns, ENTRY_ABSENT being everything, has all of ASKED. */
static bool window_holds(uint64_t has, uint64_t asked)
{
	return has == ENTRY_ABSENT || (asked != ENTRY_ABSENT && has >= asked);
}

const char *jobs_join(struct jobs *j, const struct request *request)
{
	for (size_t i = 0; i < j->n_slots; i++) {
		struct slot *s = &j->slots[i];

		if ((s->state != SLOT_QUEUED && s->state != SLOT_CAPTURING) ||
		    !window_holds(s->request.last_bytes, request->last_bytes) ||
		    !window_holds(s->request.last_ns, request->last_ns))
			continue;
		/* A request without a report has no deadline that counts. */
		if (!s->request.decode)
			s->request.deadline_ns = request->deadline_ns;
		else if (request->decode)
			s->request.deadline_ns =
				MAX_OF(s->request.deadline_ns, request->deadline_ns);
		s->request.decode |= request->decode;
		return s->id;
	}
	return NULL;
}

static void slot_return_area(struct slot *s)
{
	if (s->jobs->area_user != s)
		return;
	s->jobs->area_user = NULL;
	/* Rings may have come meanwhile. */
	jobs_fit_area(s->jobs);
}

static void slot_tell_end(const struct jobs *j, const struct entry *e, int error)
{
	struct log_fields fields;
	struct clock_now now;
	char path[PATH_MAX], name[STORE_NAME_SIZE];

	clock_read(&now);
	entry_log_fields(e, &fields);
	/* The clock may have been set back. */
	fields.duration_usec = now.realtime_ns / 1000 >= e->realtime_usec
				       ? now.realtime_ns / 1000 - e->realtime_usec
				       : ENTRY_ABSENT;
	if (e->state == ENTRY_FAILED) {
		fields.bytes = e->bundle_bytes;
		fields.error = error;
		log_event(LOG_ERR, LOG_EVENT_DECODE_FAILED, &fields, "snapshot %s failed: %s",
			  e->id, e->error);
		return;
	}
	store_file_name(e->id, STORE_REPORT, name);
	snprintf(path, sizeof(path), "%s/%s", j->config->state_dir, name);
	if (e->report_bytes != ENTRY_ABSENT)
		fields.report_path = path;
	log_event(LOG_INFO, LOG_EVENT_SNAPSHOT_WRITTEN, &fields, "snapshot %s done%s%s", e->id,
		  *e->error ? "; " : "", e->error);
}

/* Ends the job of a thread that has ended or never began. */
static void slot_end(struct slot *s)
{
	struct jobs *j = s->jobs;
	struct job_result result;
	char id[ENTRY_ID_SIZE];

	sd_event_source_disable_unref(s->io);
	job_finish(s->job, &result);
	job_free(s->job);
	strcpy(id, s->id);
	slot_return_area(s);
	*s = (struct slot){.jobs = j};
	store_end(j->store, &result.entry, result.bundle_fd, result.report_fd);
	if (result.dark_ns != ENTRY_ABSENT)
		j->last_dark_ns = result.dark_ns;
	slot_tell_end(j, &result.entry, result.error);
	attempt_log_said(&result.said, id, result.said_failed);
	j->handler.on_ended(j->handler.userdata, id);
}

/* Gives the CPUs and the decoder to the oldest jobs that wait for them. */
static void jobs_schedule(struct jobs *j)
{
	struct slot *s = jobs_oldest(j, SLOT_QUEUED);

	if (s && !jobs_oldest(j, SLOT_CAPTURING)) {
		s->state = SLOT_CAPTURING;
		store_set_state(j->store, s->id, ENTRY_CAPTURING);
		if (j->area.base && !j->area_user) {
			j->area_user = s;
			job_lend_area(s->job, &j->area);
		}
		if (j->handler.processes) {
			uint32_t *pids = NULL;
			size_t n = j->handler.processes(j->handler.userdata, &pids);

			job_set_processes(s->job, pids, n);
		}
		if (job_start(s->job, !j->no_resume) < 0)
			slot_end(s);
	}
	s = jobs_oldest(j, SLOT_READY);
	/* A job that waits ends by itself when all are cancelled. */
	if (s && !j->cancelled && !jobs_oldest(j, SLOT_DECODING)) {
		s->state = SLOT_DECODING;
		job_set_deadline(s->job, s->request.deadline_ns);
		job_answer(s->job, s->request.decode);
	}
}

static void slot_on_message(struct slot *s, const struct job_message *m)
{
	struct evidence *evidence = NULL;
	struct jobs *j = s->jobs;
	int r;

	switch ((enum job_news)m->news) {
	case JOB_PROGRESS:
		j->handler.on_progress(j->handler.userdata, s->id, (enum job_phase)m->phase,
				       m->percent);
		break;
	case JOB_CAPTURED:
		s->state = SLOT_BUNDLING;
		store_set_state(j->store, s->id, ENTRY_DECODING);
		r = j->handler.on_captured(j->handler.userdata, &s->request, s->id,
					   j->previous_stop_ns, &evidence);
		if (m->value != ENTRY_ABSENT)
			j->previous_stop_ns = m->value;
		job_give_evidence(s->job, evidence, r);
		break;
	case JOB_LOOKED:
		j->handler.on_looked(j->handler.userdata, job_lent_evidence(s->job));
		job_answer(s->job, true);
		break;
	case JOB_BUNDLED:
		slot_return_area(s);
		job_answer(s->job, store_make_room(j->store, s->id, m->value) == 0);
		break;
	case JOB_READY: s->state = SLOT_READY; break;
	case JOB_KEEPING:
		store_make_room_for_images(j->store, s->id, m->value);
		job_answer(s->job, true);
		break;
	case JOB_ENDED: slot_end(s); break;
	}
}

static int slot_on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct slot *s = userdata;
	struct jobs *j = s->jobs;
	struct job_message m;

	(void)source;
	(void)fd;
	(void)revents;
	if (job_read(s->job, &m) == 0)
		slot_on_message(s, &m);
	jobs_schedule(j);
	return 0;
}

/* Makes a job in slot S, which is free. 0, or -errno with nothing changed. */
static int slot_fill(struct slot *s, struct jobs *j, const struct request *request,
		     const struct entry *e)
{
	struct job_setup setup = {
		.config = j->config,
		.source = j->source,
		.freezer = j->freezer,
		.kernel = j->kernel,
		.store_fd = store_dir_fd(j->store),
		.images = store_images(j->store),
		.entry = *e,
		.last_bytes = request->last_bytes,
		.cpu = request->cpu,
	};
	const struct entry *listed = NULL;
	int r = job_new(&setup, &s->job);

	if (r < 0)
		return r;
	r = sd_event_add_io(j->event, &s->io, job_fd(s->job), EPOLLIN, slot_on_io, s);
	if (r == 0 && (store_find(j->store, e->id, &listed) != 0 || strcmp(listed->id, e->id) != 0))
		r = store_add(j->store, e);
	if (r < 0) {
		sd_event_source_disable_unref(s->io);
		job_free(s->job);
		*s = (struct slot){.jobs = j};
		return r;
	}
	s->jobs = j;
	s->order = j->orders++;
	s->request = *request;
	strcpy(s->id, e->id);
	return 0;
}

int jobs_add(struct jobs *j, const struct request *request, const struct entry *e)
{
	struct slot *s = jobs_oldest(j, SLOT_FREE);
	int r = s ? slot_fill(s, j, request, e) : -EBUSY;

	if (r < 0)
		return r;
	s->state = SLOT_QUEUED;
	jobs_schedule(j);
	return 0;
}

int jobs_take_up(struct jobs *j, const struct entry *e, struct job_found *found)
{
	const struct request whole = {.decode = true,
				      .last_bytes = ENTRY_ABSENT,
				      .last_ns = ENTRY_ABSENT,
				      .deadline_ns = ENTRY_ABSENT,
				      .cpu = ENTRY_NO_CPU};
	/* One place is left for new snapshots. */
	struct slot *s = jobs_running(j) + 1 < j->n_slots ? jobs_oldest(j, SLOT_FREE) : NULL;
	int r = s ? slot_fill(s, j, &whole, e) : -EBUSY;

	if (r < 0)
		return r;
	job_take_over(s->job, found);
	s->state = SLOT_BUNDLING;
	store_set_state(j->store, s->id, ENTRY_DECODING);
	if (job_start(s->job, true) < 0)
		slot_end(s);
	return 0;
}

void jobs_free(struct jobs *j)
{
	struct job_result result;

	if (!j)
		return;
	if (j->slots)
		jobs_cancel(j);
	for (size_t i = 0; j->slots && i < j->n_slots; i++) {
		if (!j->slots[i].job)
			continue;
		sd_event_source_disable_unref(j->slots[i].io);
		job_finish(j->slots[i].job, &result);
		close_fd(result.bundle_fd);
		close_fd(result.report_fd);
		job_free(j->slots[i].job);
	}
	freezer_free(j->freezer);
	kernel_free(j->kernel);
	area_done(&j->area);
	free(j->slots);
	free(j);
}
