/*
 * Makes reports for one user. The loop keeps requests and finished reports; a thread runs the
 * decoder on the stored bundle, as a job does with a new one, and gives it images from the host's
 * cache.
 */
#include "daemon/job/remake.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/job/attempt.h"
#include "daemon/store/imagestore.h"
#include "decoder/run/debug_files.h"
#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* Reports that wait or are being made. */
#define MAX_TASKS 8
/* Reports that are remembered, and their bytes. */
#define MAX_REMADE	 32
#define MAX_REMADE_BYTES (64ull << 20)

struct remake_task {
	char id[ENTRY_ID_SIZE]; /* "": free */
	uid_t uid;
	uint64_t order; /* smaller is older */
	int bundle_fd;	/* owned */
};

struct remade {
	char id[ENTRY_ID_SIZE]; /* "": free */
	uid_t uid;
	uint64_t used; /* larger is later */
	int fd;	       /* owned, sealed */
	uint64_t size;
};

/* The thread's, until done_fd is readable. */
struct remake_work {
	const struct config *config;
	struct imagestore *images;
	struct remake_task task;
	int done_fd, cancel_fd;		/* eventfds; borrowed */
	int image_fd;			/* the image that the decoder got last */
	struct debug_files debug_files; /* while a decoder runs */
	int report_fd;
	int result;
	struct worker_outcome outcome;
};

struct remake {
	const struct config *config;
	struct store *store;
	struct remake_handler handler;
	struct remake_task tasks[MAX_TASKS];
	struct remade remade[MAX_REMADE];
	uint64_t counter;
	bool running;
	pthread_t thread;
	struct remake_work work;
	int done_fd, cancel_fd;
	sd_event_source *io;
};

static int on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct remake_work *work = userdata;
	int r;

	work->image_fd = close_fd(work->image_fd);
	r = imagestore_open(work->images, work->task.id, image, &work->image_fd, ret_size);
	*ret_fd = work->image_fd;
	return r;
}

/* The path of IMAGE, which the bundle's manifest has, is not read here: only build ids count. */
static int on_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		    int *ret_fd, uint64_t *ret_size)
{
	struct remake_work *work = userdata;

	(void)image;
	return debug_files_find(&work->debug_files, build_id, id_size, NULL, ret_fd, ret_size);
}

/* Makes one attempt. The decoder has one thread, so that a user who asks for reports again and
 * again takes one CPU only. */
static int try(struct remake_work *work, const struct attempt *a)
{
	const struct config *c = work->config;
	struct worker_job job = {
		.program = c->worker,
		.socket = c->decoder_socket,
		.bundle_fd = work->task.bundle_fd,
		.request = {.cpu_seconds = a->timeout_usec / 1000000 + 1,
			    .options = attempt_options(c, a)},
		.timeout_usec = a->timeout_usec,
		.image = on_image,
		.debug = on_debug,
		.userdata = work,
		.cancel_fd = work->cancel_fd,
	};
	int r;

	job.request.options.threads = 1;
	job.request.options.has_only_uid = 1;
	job.request.options.only_uid = work->task.uid;
	work->report_fd = close_fd(work->report_fd);
	r = report_output_new(&work->report_fd);
	if (r < 0)
		return r;
	job.output_fd = work->report_fd;
	r = worker_run(&job, &work->outcome);
	if (r == 0)
		r = report_output_end(work->report_fd);
	return r == 0 ? memfd_seal(work->report_fd) : r;
}

/* The thread. A report for one user covers the whole trace, so there is no deadline. */
static void *remake_main(void *userdata)
{
	struct remake_work *work = userdata;
	uint64_t began = now_usec(CLOCK_MONOTONIC), one = 1;
	struct attempt a;

	debug_files_init(&work->debug_files);
	if (work->config->debug_directory)
		(void)debug_files_add(&work->debug_files, work->config->debug_directory);
	attempt_first(work->config, ENTRY_ABSENT, &a);
	do
		work->result = try(work, &a);
	while (attempt_next(work->config, &a, work->result, &work->outcome,
			    now_usec(CLOCK_MONOTONIC) - began, ENTRY_ABSENT, false, &a));
	work->image_fd = close_fd(work->image_fd);
	debug_files_done(&work->debug_files);
	(void)!write(work->done_fd, &one, sizeof(one));
	return NULL;
}

static struct remake_task *find_task(struct remake *m, const char *id, uid_t uid)
{
	for (size_t i = 0; i < MAX_TASKS; i++)
		if (m->tasks[i].uid == uid && strcmp(m->tasks[i].id, id) == 0)
			return &m->tasks[i];
	return NULL;
}

static void forget_remade(struct remade *k)
{
	close_fd(k->fd);
	*k = (struct remade){.fd = -EBADF};
}

/* The report that was not used for longest; with FREE_TOO a free place, if there is one. */
static struct remade *oldest_remade(struct remake *m, bool free_too)
{
	struct remade *oldest = NULL;

	for (size_t i = 0; i < MAX_REMADE; i++)
		if ((free_too || *m->remade[i].id) && (!oldest || m->remade[i].used < oldest->used))
			oldest = &m->remade[i];
	return oldest;
}

/* Remembers a report, however large it is, so that it can be handed out once. */
static void remember(struct remake *m, const struct remake_task *task, int fd, uint64_t size)
{
	struct remade *k;
	uint64_t sum = size;

	for (size_t i = 0; i < MAX_REMADE; i++)
		sum += m->remade[i].size;
	while (sum > MAX_REMADE_BYTES && (k = oldest_remade(m, false))) {
		sum -= k->size;
		forget_remade(k);
	}
	k = oldest_remade(m, true);
	forget_remade(k);
	strcpy(k->id, task->id);
	k->uid = task->uid;
	k->used = ++m->counter;
	k->fd = fd;
	k->size = size;
}

static void start(struct remake *m);

static void take_result(struct remake *m)
{
	struct remake_work *work = &m->work;
	struct stat st;

	attempt_log_said(&work->outcome.said, work->task.id, work->result != 0);
	if (work->result == 0 && fstat(work->report_fd, &st) == 0 && st.st_size > 0 &&
	    (uint64_t)st.st_size <= REPORT_DEFAULT_LIMIT) {
		remember(m, &work->task, take_fd(&work->report_fd), (uint64_t)st.st_size);
		return;
	}
	work->report_fd = close_fd(work->report_fd);
	log_line(LOG_WARNING, work->task.id,
		 "the report of snapshot %s for uid %u could not be made: %s", work->task.id,
		 (unsigned)work->task.uid,
		 work->result < 0		  ? strerror(-work->result)
		 : work->result == WORKER_CRASHED ? "the decoder died"
		 : work->result == WORKER_TIMEOUT ? "the decoder took too long"
						  : "the decoder failed");
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct remake *m = userdata;
	struct remake_task *task = find_task(m, m->work.task.id, m->work.task.uid);
	char id[ENTRY_ID_SIZE];
	uid_t uid = m->work.task.uid;
	uint64_t n;

	(void)source;
	(void)revents;
	if (!m->running || read(fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	pthread_join(m->thread, NULL);
	m->running = false;
	strcpy(id, m->work.task.id);
	take_result(m);
	close_fd(m->work.task.bundle_fd);
	if (task)
		*task->id = '\0';
	m->handler.on_done(m->handler.userdata, id, uid);
	start(m);
	return 0;
}

static struct remake_task *oldest_task(struct remake *m)
{
	struct remake_task *oldest = NULL;

	for (size_t i = 0; i < MAX_TASKS; i++)
		if (*m->tasks[i].id && (!oldest || m->tasks[i].order < oldest->order))
			oldest = &m->tasks[i];
	return oldest;
}

/* Runs the oldest task, if none runs. */
static void start(struct remake *m)
{
	struct remake_task *task;
	sigset_t all, before;

	while (!m->running && (task = oldest_task(m))) {
		m->work = (struct remake_work){
			.config = m->config,
			.images = store_images(m->store),
			.task = *task,
			.done_fd = m->done_fd,
			.cancel_fd = m->cancel_fd,
			.image_fd = -EBADF,
			.report_fd = -EBADF,
		};
		task->bundle_fd = -EBADF; /* the work's now */
		/* Only the loop handles signals. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		m->running = pthread_create(&m->thread, NULL, remake_main, &m->work) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (m->running)
			return;
		close_fd(m->work.task.bundle_fd);
		*task->id = '\0';
		m->handler.on_done(m->handler.userdata, m->work.task.id, m->work.task.uid);
	}
}

int remake_new(sd_event *event, const struct config *config, struct store *store,
	       const struct remake_handler *handler, struct remake **ret)
{
	struct remake *m = calloc(1, sizeof(*m));
	int r = 0;

	if (!m)
		return -ENOMEM;
	m->config = config;
	m->store = store;
	m->handler = *handler;
	for (size_t i = 0; i < MAX_REMADE; i++)
		m->remade[i].fd = -EBADF;
	for (size_t i = 0; i < MAX_TASKS; i++)
		m->tasks[i].bundle_fd = -EBADF;
	m->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->done_fd < 0 || m->cancel_fd < 0)
		r = -errno;
	if (r == 0)
		r = sd_event_add_io(event, &m->io, m->done_fd, EPOLLIN, on_done, m);
	if (r < 0) {
		remake_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void remake_use(struct remake *m, const struct config *config)
{
	m->config = config;
}

bool remake_is_running(const struct remake *m)
{
	return m->running;
}

void remake_free(struct remake *m)
{
	uint64_t one = 1;

	if (!m)
		return;
	sd_event_source_disable_unref(m->io);
	if (m->running) {
		(void)!write(m->cancel_fd, &one, sizeof(one));
		pthread_join(m->thread, NULL);
		close_fd(m->work.task.bundle_fd);
		close_fd(m->work.report_fd);
	}
	for (size_t i = 0; i < MAX_TASKS; i++)
		close_fd(m->tasks[i].bundle_fd);
	for (size_t i = 0; i < MAX_REMADE; i++)
		close_fd(m->remade[i].fd);
	close_fd(m->done_fd);
	close_fd(m->cancel_fd);
	free(m);
}

int remake_find(struct remake *m, const char *id, uid_t uid, int *ret_fd, uint64_t *ret_size)
{
	for (size_t i = 0; i < MAX_REMADE; i++) {
		struct remade *k = &m->remade[i];

		if (k->uid != uid || strcmp(k->id, id) != 0)
			continue;
		k->used = ++m->counter;
		*ret_size = k->size;
		return memfd_reopen_readonly(k->fd, ret_fd);
	}
	return -ENOENT;
}

int remake_begin(struct remake *m, const struct entry *e, uid_t uid)
{
	struct remake_task *task = NULL;
	uint64_t size;
	int fd;

	assert(*e->id); /* "" is a free place */
	if (find_task(m, e->id, uid))
		return 0;
	for (size_t i = 0; i < MAX_TASKS; i++) {
		if (*m->tasks[i].id && m->tasks[i].uid == uid)
			return -EBUSY;
		if (!*m->tasks[i].id && !task)
			task = &m->tasks[i];
	}
	if (!task)
		return -EBUSY;
	if (store_open(m->store, e, STORE_BUNDLE, &fd, &size) < 0)
		return -ENOENT;
	strcpy(task->id, e->id);
	task->uid = uid;
	task->order = ++m->counter;
	task->bundle_fd = fd;
	start(m);
	return find_task(m, e->id, uid) ? 0 : -EAGAIN;
}
