/*
 * The thread keeps what is found and says so by an eventfd, which orders the memory too. Called by
 * control_check.c.
 */
#include "daemon/check/check_job.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "proto/base.h"

#define MAX_FINDINGS 64

struct check_job {
	struct check_paths paths;
	const struct config *config;
	struct check_job_handler handler;
	pthread_t thread;
	bool started;
	int fd;
	sd_event_source *io;
	struct finding all[MAX_FINDINGS];
	size_t n;
};

static void keep(void *userdata, const struct finding *f)
{
	struct check_job *j = userdata;

	if (j->n < MAX_FINDINGS)
		j->all[j->n++] = *f;
}

static void *run(void *userdata)
{
	struct check_job *j = userdata;
	uint64_t one = 1;

	check_host(&j->paths, j->config, keep, j);
	while (write(j->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	return NULL;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct check_job *j = userdata;
	uint64_t times;

	(void)source;
	(void)revents;
	if (read(fd, &times, sizeof(times)) == sizeof(times))
		j->handler.on_done(j->handler.userdata, j->all, j->n);
	return 0;
}

/* Signals are the loop's. */
static int start(struct check_job *j)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&j->thread, NULL, run, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	j->started = r == 0;
	return -r;
}

int check_job_new(sd_event *event, const struct config *config,
		  const struct check_job_handler *handler, struct check_job **ret)
{
	struct check_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	check_paths_init(&j->paths);
	j->paths.leave_pt = true;
	j->config = config;
	j->handler = *handler;
	j->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = j->fd < 0 ? -errno : sd_event_add_io(event, &j->io, j->fd, EPOLLIN, on_io, j);
	if (r >= 0)
		r = start(j);
	if (r < 0) {
		check_job_free(j);
		return r;
	}
	*ret = j;
	return 0;
}

void check_job_free(struct check_job *j)
{
	if (!j)
		return;
	if (j->started)
		pthread_join(j->thread, NULL);
	sd_event_source_disable_unref(j->io);
	close_fd(j->fd);
	free(j);
}
