/*
 * Runs all parts of the check: for the method Check in a thread, and for `ptsnapd --check`.
 */
#include "daemon/check/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "capture/proc/procfile.h"
#include "daemon/check/check_private.h"
#include "proto/base.h"

/* include/uapi/linux/landlock.h; the headers may be older than the kernel. */
#define LANDLOCK_VERSION 1u

#define JOB_MAX_FINDINGS 64

#define EXIT_CODE_FAILURE     1
#define EXIT_CODE_NOT_TRACING 6

static int call_landlock(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	return r < 0 ? -errno : (int)r;
}

static int call_look_up(void)
{
	CLEANUP_CLOSE int dir = -EBADF;
	int r = procfile_process("/proc", (uint32_t)getpid(), &dir), at;

	at = r < 0 ? r : procfile_beneath(dir, "/", 0);
	close_fd(at);
	return MIN_OF(at, 0);
}

static int call_free_bytes(const char *path, uint64_t *ret)
{
	struct statvfs st;
	CLEANUP_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || access(path, W_OK | X_OK) < 0)
		return -errno;
	if (statvfs(path, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.f_bavail * st.f_frsize;
	return 0;
}

void check_paths_init(struct check_paths *ret)
{
	*ret = (struct check_paths){
		.proc = "/proc",
		.sys = "/sys",
		.dev = "/dev",
		.boot = "/boot",
		.root = "",
		.calls = {cpuid_host, call_landlock, call_look_up, call_free_bytes},
	};
}

int check_host(const struct check_paths *paths, const struct config *config, finding_fn fn,
	       void *userdata)
{
	struct check c = {
		.paths = paths,
		.config = config,
		.fn = fn,
		.userdata = userdata,
	};

	check_look(&c);
	check_pmu(&c);
	check_rights(&c);
	check_kernel(&c);
	check_events(&c);
	check_memory(&c);
	check_cpus(&c);
	check_clock(&c);
	check_storage(&c);
	free(c.cpuids);
	return c.failures;
}

struct check_job {
	struct check_paths paths;
	const struct config *config;
	struct check_job_handler handler;
	pthread_t thread;
	bool started;
	int fd; /* an eventfd: the thread has ended, and its findings can be read */
	sd_event_source *io;
	struct finding all[JOB_MAX_FINDINGS];
	size_t n;
};

static void keep_finding(void *userdata, const struct finding *f)
{
	struct check_job *j = userdata;

	if (j->n < JOB_MAX_FINDINGS)
		j->all[j->n++] = *f;
}

static void *run_check(void *userdata)
{
	struct check_job *j = userdata;
	uint64_t one = 1;

	check_host(&j->paths, j->config, keep_finding, j);
	while (write(j->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	return NULL;
}

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct check_job *j = userdata;
	uint64_t times;

	(void)source;
	(void)revents;
	if (read(fd, &times, sizeof(times)) == sizeof(times))
		j->handler.on_done(j->handler.userdata, j->all, j->n);
	return 0;
}

int check_job_new(sd_event *event, const struct config *config,
		  const struct check_job_handler *handler, struct check_job **ret)
{
	struct check_job *j = calloc(1, sizeof(*j));
	sigset_t all, old;
	int r;

	if (!j)
		return -ENOMEM;
	check_paths_init(&j->paths);
	j->paths.leave_pt = true;
	j->config = config;
	j->handler = *handler;
	j->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = j->fd < 0 ? -errno : sd_event_add_io(event, &j->io, j->fd, EPOLLIN, on_end, j);
	if (r >= 0) {
		/* Only the loop handles signals. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		r = -pthread_create(&j->thread, NULL, run_check, j);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		j->started = r == 0;
	}
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

static void print_line(void *userdata, const struct finding *f)
{
	(void)userdata;
	printf("%-8s %s: %s%s%s\n", finding_level_name(f->level), f->what, f->text,
	       *f->fix ? "; fix: " : "", f->fix);
}

static void add_json(void *userdata, const struct finding *f)
{
	json_object_array_add(userdata, finding_to_json(f));
}

int check_main(const struct config *config, bool json)
{
	struct json_object *all = json ? json_object_new_array() : NULL;
	struct check_paths paths;
	int failures;

	check_paths_init(&paths);
	failures = check_host(&paths, config, all ? add_json : print_line, all);
	if (all)
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(all);
	if (fflush(stdout) < 0)
		return EXIT_CODE_FAILURE;
	return failures ? EXIT_CODE_NOT_TRACING : 0;
}
