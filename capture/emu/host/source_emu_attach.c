/*
 * Attaches a recorder that may not run COMMAND itself to a machine that another process keeps. The
 * other process offers its rings on the daemon-emulator channel (capture/emu/machine/emuring.h).
 * This code relies only on what it checked in the offer, and on what the kernel says about the peer
 * and the memory file.
 */
#include "capture/emu/host/source_emu_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "capture/perf/pmu.h"
#include "proto/base.h"
#include "proto/channel.h"
#include "proto/memfd.h"

#define OFFER_SECONDS 5

/* Buffer for the one line that the user reads. */
struct reason {
	const char *socket;
	char *text;
	size_t size;
};

static int refuse(const struct reason *why, int r, const char *text)
{
	snprintf(why->text, why->size, "%s: %s", why->socket, text);
	return r;
}

static int open_channel(const struct reason *why, int *ret_fd)
{
	const struct timeval patience = {.tv_sec = OFFER_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_CLOSE int fd = -EBADF;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int r;

	if (strlen(why->socket) >= sizeof(address.sun_path))
		return refuse(why, -ENAMETOOLONG, "too long for a socket's path");
	strcpy(address.sun_path, why->socket);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		r = -errno;
		snprintf(why->text, why->size, "%s: no emulator there: %s", why->socket,
			 strerror(-r));
		return r;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	/* Accept a peer that could control this process anyway: root or our own user. */
	if (peer.uid != 0 && peer.uid != geteuid())
		return refuse(why, -EACCES,
			      "the emulator there belongs neither to root nor to this user");
	/* Process IDs of the offer must mean the same here; the kernel gives 0 for a peer in a pid
	 * namespace that we cannot see. */
	if (peer.pid == 0)
		return refuse(why, -EACCES, "the emulator there is in another pid namespace");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int receive_offer(struct source_emu *e, struct emuring_layout *ret_l,
			 const struct reason *why)
{
	CLEANUP_FREE uint8_t *message = malloc(sizeof(*e->offer));
	const char *what;
	size_t size, n_fds;
	int r;

	e->offer = malloc(sizeof(*e->offer));
	if (!message || !e->offer)
		return -ENOMEM;
	r = channel_receive(e->channel, message, sizeof(*e->offer), &size, &e->ring_fd, 1, &n_fds);
	if (r == CHANNEL_END)
		return refuse(why, -EBUSY, "the emulator there has another recorder");
	if (r == -EAGAIN)
		return refuse(why, -ETIMEDOUT, "the process that listens there sent no offer");
	if (r < 0)
		return refuse(why, r, strerror(-r));
	fcntl(e->channel, F_SETFL, O_NONBLOCK);
	r = emuoffer_read(message, size, e->offer, ret_l, &what);
	if (r == 0 && n_fds != 1) {
		what = "its memory is missing";
		r = -EBADMSG;
	}
	if (r < 0)
		snprintf(why->text, why->size, "%s: the emulator's offer is refused: %s",
			 why->socket, what);
	return r;
}

static int map_rings(struct source_emu *e, const struct emuring_layout *l, uint64_t max_size,
		     const struct reason *why)
{
	int r = memfd_check_size(e->ring_fd, l->total);

	if (r < 0)
		return refuse(why, r, "the offered memory has the wrong size or is not sealed");
	if (max_size != 0 && l->total > max_size)
		return refuse(why, -EFBIG, "the offered rings are larger than RingBudget=");
	e->size = l->total;
	e->head = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_SHARED, e->ring_fd, 0);
	if (e->head == MAP_FAILED) {
		e->head = NULL;
		return -errno;
	}
	e->ring.shared = e->head;
	emuoffer_head(e->offer, l, &e->ring.fixed);
	return 0;
}

/* Takes CPU INDEX over and starts tracing, which an earlier recorder may have stopped. */
static int take_cpu(struct source_emu *e, uint32_t index)
{
	const struct ring *ring = &e->source.cpus[index].pt;
	struct emu_cpu *c = &e->cpus[index];
	int r;

	c->cpu = emuring_cpu_at(&e->ring, index);
	c->page = emuring_page_at(&e->ring, index);
	c->generation = atomic_load(&c->cpu->want);
	r = source_emu_use_rings(e, index);
	if (r < 0)
		return r;
	if (ring->data_size != e->ring.fixed.data_size || ring->aux_size != e->ring.fixed.aux_size)
		return -EBADMSG;
	/* Overwrite what an earlier recorder left in the AUX ring with zeros, which are PAD
	 * packets: the records that tell which thread this trace belongs to are gone. */
	if (__atomic_load_n(&ring->page->data_tail, __ATOMIC_RELAXED) != 0 &&
	    e->source.ops->disable(&e->source, index) == 0)
		memset((uint8_t *)(uintptr_t)ring->aux, 0, ring->aux_size);
	if ((c->generation & 1) == 0)
		e->source.ops->enable(&e->source, index);
	return 0;
}

/* Fills in the source from the offer. */
static int take_trace(struct source_emu *e)
{
	const struct emuoffer *o = e->offer;
	struct source *s = &e->source;

	e->pid = (pid_t)o->pid;
	e->tsc_hz = o->tsc_hz;
	e->virtual_clock = o->clock == EMURING_CLOCK_VIRTUAL;
	s->clock = (struct clock_params){true, (uint16_t)o->time_shift, o->time_mult, o->time_zero};
	s->max_nonturbo_ratio = o->max_nonturbo_ratio;
	s->tsc_art_num = o->tsc_art_num;
	s->tsc_art_den = o->tsc_art_den;
	s->pt_config = o->pt_config;
	s->preset = preset_known(o->preset);
	e->name_argv[0] = e->offer->name;
	e->qemu = strdup(o->qemu);
	return !e->qemu ? -ENOMEM : source_emu_describe_trace(e);
}

static int attach(struct source_emu *e, uint64_t max_size, const struct reason *why)
{
	struct emuring_layout l;
	int r = open_channel(why, &e->channel);

	if (r == 0)
		r = receive_offer(e, &l, why);
	if (r == 0)
		r = map_rings(e, &l, max_size, why);
	if (r == 0)
		r = take_trace(e);
	if (r == 0)
		r = source_emu_new_cpus(e, l.n_cpus);
	if (r < 0)
		return r;
	e->aux_size = e->ring.fixed.aux_size;
	/* All running processes repeat their names and mappings. */
	atomic_fetch_add(&e->head->resync, 1);
	for (uint32_t i = 0; r == 0 && i < l.n_cpus; i++)
		r = take_cpu(e, i);
	return r;
}

int source_emu_attach(const char *socket, uint64_t max_size, struct source **ret, char *why,
		      size_t why_size)
{
	const struct reason reason = {socket, why, why_size};
	CLEANUP(source_emu_freep) struct source_emu *e = source_emu_new();
	int r;

	if (!e)
		return -ENOMEM;
	why[0] = '\0';
	r = attach(e, max_size, &reason);
	if (r < 0) {
		if (why[0] == '\0')
			refuse(&reason, r, strerror(-r));
		return r;
	}
	*ret = &TAKE_PTR(e)->source;
	return 0;
}

int source_emu_channel(const struct source *s)
{
	return ((const struct source_emu *)s)->channel;
}

char *const *source_emu_argv(const struct source *s)
{
	return ((const struct source_emu *)s)->name_argv;
}
