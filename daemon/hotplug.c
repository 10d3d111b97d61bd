/*
 * Has the source look after its events for three reasons: the kernel says that a CPU came or went
 * (a uevent), the host slept or its clock was set (a timer that the kernel cancels then), or time
 * has passed. The source is never asked while a job has its events.
 */
#include "daemon/manager_private.h"

#include <inttypes.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include "daemon/base/log.h"
#include "proto/base.h"

/* The time between two looks grows from SOON to LATEST while a CPU is not traced that could be;
 * otherwise it is CALM. */
#define SOON_USEC   1000000u
#define LATEST_USEC 30000000u
#define CALM_USEC   10000000u
/* Between the record of a stop and the look that it causes; several records cause one look. */
#define STOPPED_USEC 100000u
#define MESSAGE_MAX  8192u
#define KERNEL_GROUP 1u

struct hotplug {
	sd_event *event;
	struct source *source;
	struct jobs *jobs;
	sd_event_source *timer, *uevents, *clock;
	int uevent_fd, clock_fd;
	bool waits;   /* a job has the events: look when it has copied */
	bool hurries; /* an event was stopped: the timer is set for a look soon */
	uint64_t period_usec;
	/* For each CPU, what the log has: the newest state, and the end of the newest time in which
	 * the CPU was not traced. */
	struct told {
		enum source_cpu_state state;
		uint64_t dark_ns;
	} * told;
};

bool hotplug_is_cpu_event(const char *message, size_t size)
{
	const char *end = message + size, *at = message;
	bool cpu = false, action = false;

	if (size == 0 || end[-1] || !memchr(message, '@', strlen(message)))
		return false;
	for (at += strlen(at) + 1; at < end; at += strlen(at) + 1) {
		cpu |= strcmp(at, "SUBSYSTEM=cpu") == 0;
		action |= strcmp(at, "ACTION=online") == 0 || strcmp(at, "ACTION=offline") == 0 ||
			  strcmp(at, "ACTION=add") == 0 || strcmp(at, "ACTION=remove") == 0;
	}
	return cpu && action;
}

/* Logs the CPUs that are new in STATE, in one line with the reason of the first one. */
static void tell_state(struct hotplug *h, enum source_cpu_state state)
{
	const struct source *s = h->source;
	const struct source_cpu *first = NULL;
	const struct log_fields none = LOG_NO_FIELDS;
	const bool worse = state == SOURCE_CPU_BUSY || state == SOURCE_CPU_FAILED;
	size_t n = 0;

	for (size_t i = 0; i < s->n_cpus; i++) {
		if (s->cpus[i].state != state || h->told[i].state == state)
			continue;
		h->told[i].state = state;
		first = first ? first : &s->cpus[i];
		n++;
	}
	if (n == 0)
		return;
	log_event(worse ? LOG_WARNING : LOG_INFO, worse ? LOG_EVENT_RINGS_DEGRADED : NULL, &none,
		  "CPU %u%s: %s%s%s", first->cpu, n > 1 ? " and others" : "",
		  source_cpu_state_name(state), *first->why ? ": " : "", first->why);
}

/* Logs the times in which CPU INDEX was to be traced and was not. The log has no other line of
 * them: the CPU's state was the same before and after. */
static void tell_dark(struct hotplug *h, size_t index)
{
	const struct source_cpu *cpu = &h->source->cpus[index];
	const struct log_fields none = LOG_NO_FIELDS;

	for (size_t i = 0; i < cpu->dark.n; i++) {
		const struct dark_span *span = dark_at(&cpu->dark, i);

		if (span->open || span->since_ns == MANIFEST_ABSENT ||
		    span->until_ns == MANIFEST_ABSENT || span->until_ns <= h->told[index].dark_ns ||
		    strcmp(span->kind, source_cpu_state_fault(SOURCE_CPU_FAILED)) != 0)
			continue;
		h->told[index].dark_ns = span->until_ns;
		log_event(LOG_WARNING, LOG_EVENT_RINGS_DEGRADED, &none,
			  "CPU %u was not traced for %" PRIu64 ".%06" PRIu64 " s: %s", cpu->cpu,
			  (span->until_ns - span->since_ns) / 1000000000,
			  (span->until_ns - span->since_ns) / 1000 % 1000000, span->why);
	}
}

static void tell(struct hotplug *h)
{
	for (size_t i = 0; h->told && i < h->source->n_cpus; i++)
		tell_dark(h, i);
	for (int state = SOURCE_CPU_TRACING; h->told && state <= SOURCE_CPU_NO_PT; state++)
		tell_state(h, (enum source_cpu_state)state);
}

/* Whether a CPU that is not traced may be traced soon. */
static bool may_improve(const struct source *s)
{
	for (size_t i = 0; i < s->n_cpus; i++)
		if (s->cpus[i].state == SOURCE_CPU_BUSY || s->cpus[i].state == SOURCE_CPU_FAILED)
			return true;
	return false;
}

/* PATIENT: the time between looks may grow, as nothing has happened. */
static void look(struct hotplug *h, bool patient)
{
	size_t changed;

	h->waits = jobs_capturing(h->jobs);
	if (h->waits)
		return;
	h->hurries = false;
	changed = h->source->ops->tend(h->source);
	if (changed)
		jobs_fit_area(h->jobs);
	tell(h);
	if (!may_improve(h->source))
		h->period_usec = CALM_USEC;
	else if (changed || !patient || h->period_usec == CALM_USEC)
		h->period_usec = SOON_USEC;
	else
		h->period_usec = MIN_OF(2 * h->period_usec, (uint64_t)LATEST_USEC);
	sd_event_source_set_time_relative(h->timer, h->period_usec);
	sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
}

void hotplug_look(struct hotplug *h)
{
	if (h->source->ops->tend)
		look(h, false);
}

uint64_t hotplug_period_usec(const struct hotplug *h)
{
	return h->period_usec;
}

/* Whether a CPU that is to trace does not. */
static bool is_dark(const struct source *s)
{
	for (size_t i = 0; i < s->n_cpus; i++)
		if (s->cpus[i].state == SOURCE_CPU_TRACING && dark_open(&s->cpus[i].dark))
			return true;
	return false;
}

void hotplug_on_captured(struct hotplug *h)
{
	if (!h->source->ops->tend || jobs_capturing(h->jobs))
		return;
	if (h->waits || is_dark(h->source))
		look(h, h->waits);
}

/* Whether the kernel stopped the CPU's event since the recorder saw it run again. */
static bool was_stopped(const struct source_cpu *cpu)
{
	const struct dark *d = &cpu->dark;

	return cpu->state == SOURCE_CPU_TRACING && d->n > 0 &&
	       dark_at(d, d->n - 1)->until_ns < cpu->aux_ns;
}

void hotplug_on_stop(struct hotplug *h)
{
	bool stopped = false;

	/* A job stops all events, and sees them run again. */
	if (!h->source->ops->tend || h->hurries || jobs_capturing(h->jobs))
		return;
	for (size_t i = 0; i < h->source->n_cpus && !stopped; i++)
		stopped = was_stopped(&h->source->cpus[i]);
	if (!stopped)
		return;
	h->hurries = true;
	sd_event_source_set_time_relative(h->timer, STOPPED_USEC);
	sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	look(userdata, true);
	return 0;
}

/* Receives one message. Returns whether it is about a CPU and from the kernel, as any process can
 * send to a netlink socket. */
static bool receive(int fd, bool *ret_more)
{
	char message[MESSAGE_MAX], control[CMSG_SPACE(sizeof(struct ucred))];
	struct sockaddr_nl from = {0};
	struct iovec iov = {message, sizeof(message)};
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *c;
	struct ucred who = {.pid = -1};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	*ret_more = n >= 0 || errno == EINTR;
	if (n < 0)
		return errno == ENOBUFS; /* lost messages may have been about CPUs */
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(&who, CMSG_DATA(c), sizeof(who));
	return from.nl_pid == 0 && from.nl_groups == KERNEL_GROUP && who.pid == 0 &&
	       !(m.msg_flags & MSG_TRUNC) && hotplug_is_cpu_event(message, (size_t)n);
}

static int on_uevent(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	bool more = true, news = false;

	(void)source;
	(void)revents;
	for (int i = 0; more && i < 256; i++)
		news |= receive(fd, &more);
	if (news)
		look(userdata, false);
	return 0;
}

/* Sets a timer that never expires. The kernel cancels it when CLOCK_REALTIME jumps, which also
 * happens at the end of each sleep: fs/timerfd.c, timerfd_clock_was_set, timerfd_resume. */
static int arm_clock(int fd)
{
	const struct itimerspec never = {.it_value.tv_sec = INT64_MAX / 1000000000 - 1};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0
		       ? -errno
		       : 0;
}

static int on_clock(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	uint64_t times;

	(void)source;
	(void)revents;
	if (read(fd, &times, sizeof(times)) >= 0 || errno != ECANCELED)
		return 0;
	log_debug("the clock was set, or the host slept");
	arm_clock(fd);
	look(userdata, false);
	return 0;
}

static void hotplug_freep(struct hotplug **h)
{
	hotplug_free(*h);
}

int hotplug_new(sd_event *event, struct source *source, struct jobs *jobs, struct hotplug **ret)
{
	static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK,
						  .nl_groups = KERNEL_GROUP};
	CLEANUP(hotplug_freep) struct hotplug *h = calloc(1, sizeof(*h));
	int r, on = 1;

	if (!h)
		return -ENOMEM;
	h->event = event;
	h->source = source;
	h->jobs = jobs;
	h->uevent_fd = h->clock_fd = -EBADF;
	h->told = calloc(source->n_cpus + 1, sizeof(*h->told));
	if (!h->told)
		return -ENOMEM;
	tell(h); /* CPUs that are not traced from the start */
	if (!source->ops->tend) {
		*ret = TAKE_PTR(h);
		return 0;
	}
	h->uevent_fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (h->uevent_fd < 0 ||
	    setsockopt(h->uevent_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(h->uevent_fd, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		r = -errno;
	else
		r = sd_event_add_io(event, &h->uevents, h->uevent_fd, EPOLLIN, on_uevent, h);
	if (r < 0)
		log_debug("no messages of the kernel about CPUs: %s", strerror(-r));
	h->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	r = h->clock_fd < 0 ? -errno : arm_clock(h->clock_fd);
	if (r == 0)
		r = sd_event_add_io(event, &h->clock, h->clock_fd, EPOLLIN, on_clock, h);
	if (r < 0)
		log_debug("no notice of sleep: %s", strerror(-r));
	h->period_usec = may_improve(source) ? SOON_USEC : CALM_USEC;
	r = sd_event_add_time_relative(event, &h->timer, CLOCK_MONOTONIC, h->period_usec, 0,
				       on_timer, h);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(h);
	return 0;
}

void hotplug_free(struct hotplug *h)
{
	if (!h)
		return;
	sd_event_source_disable_unref(h->timer);
	sd_event_source_disable_unref(h->uevents);
	sd_event_source_disable_unref(h->clock);
	close_fd(h->uevent_fd);
	close_fd(h->clock_fd);
	free(h->told);
	free(h);
}
