/* The recorder's end of the daemon-emulator channel; the other end is a thread here. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "capture/emu/machine/emuring.h"
#include "capture/ring/source.h"
#include "proto/base.h"
#include "proto/channel.h"
#include "proto/memfd.h"
#include "tests/support/child.h"

#define N_CPUS 2

struct world {
	char dir[32], path[64], why[256];
	int listener, memory, peer;
	struct emuoffer offer;
	struct emuring_layout l;
	struct emuring ring;
	size_t n_send; /* bytes of the offer; 0: hang up */
	size_t n_fds;
	pthread_t thread;
	struct source *source;
};

static void make_offer(struct world *w)
{
	w->offer = (struct emuoffer){
		.magic = EMUOFFER_MAGIC,
		.version = EMUOFFER_VERSION | EMURING_VERSION << 16,
		.n_cpus = N_CPUS,
		.max_tasks = EMURING_MIN_TASKS,
		.data_size = 4096,
		.aux_size = 8192,
		.pt_config = 1u << 10 | 1u << 13,
		.tsc_hz = 2000000000,
		.tsc_art_num = 167,
		.tsc_art_den = 2,
		.max_nonturbo_ratio = 20,
		.time_shift = 10,
		.time_mult = 512,
		.pid = 4711,
		.preset = "light",
		.name = "sh",
		.qemu = "/usr/bin/qemu-x86_64",
	};
	w->n_send = sizeof(w->offer);
	w->n_fds = 1;
}

/* As source_emu_open.c lays it out; CPU 0 traces, CPU 1 was left stopped. */
static void make_memory(struct world *w)
{
	struct emuring_head fixed;
	void *map;

	w->l = (struct emuring_layout){.n_cpus = N_CPUS,
				       .max_tasks = EMURING_MIN_TASKS,
				       .data_size = 4096,
				       .aux_size = 8192};
	assert_int_equal(emuring_layout(&w->l), 0);
	assert_int_equal(memfd_new("rings", w->l.total, &w->memory), 0);
	map = mmap(NULL, w->l.total, PROT_READ | PROT_WRITE, MAP_SHARED, w->memory, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	emuoffer_head(&w->offer, &w->l, &fixed);
	*(struct emuring_head *)map = fixed;
	emuring_attach(&w->ring, map);
	for (uint32_t i = 0; i < N_CPUS; i++) {
		struct perf_event_mmap_page *page = emuring_page_at(&w->ring, i);
		struct emuring_cpu *c = emuring_cpu_at(&w->ring, i);

		page->data_offset = 4096;
		page->data_size = 4096;
		page->aux_offset = 8192;
		page->aux_size = 8192;
		c->want = c->is = i == 0 ? 1 : 4;
	}
}

static int setup(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	strcpy(w->dir, "/tmp/ptsnap-attach-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/s", w->dir);
	strcpy(address.sun_path, w->path);
	w->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	w->peer = -EBADF;
	assert_int_equal(bind(w->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(w->listener, 1), 0);
	make_offer(w);
	make_memory(w);
	assert_int_equal(memfd_seal_size(w->memory), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	source_free(w->source);
	munmap(w->ring.shared, w->l.total);
	close_fd(w->memory);
	close_fd(w->listener);
	close_fd(w->peer);
	unlink(w->path);
	rmdir(w->dir);
	free(w);
	return 0;
}

static void answer_wishes(struct world *w)
{
	for (uint32_t i = 0; i < N_CPUS; i++) {
		struct emuring_cpu *c = emuring_cpu_at(&w->ring, i);

		atomic_store(&c->is, atomic_load(&c->want));
	}
}

/* Offers, and grants every wish that is rung for, until the recorder goes or the bell is torn off.
 */
static void *emulate(void *userdata)
{
	struct world *w = userdata;
	uint32_t bell = 0;

	w->peer = accept(w->listener, NULL, NULL);
	if (w->n_send == 0) {
		w->peer = close_fd(w->peer);
		return NULL;
	}
	channel_send(w->peer, &w->offer, w->n_send, &w->memory, w->n_fds);
	while (bell != UINT32_MAX) {
		char byte;

		if (recv(w->peer, &byte, 1, MSG_DONTWAIT) == 0)
			return NULL;
		if (atomic_load(&w->ring.shared->bell) != bell) {
			bell = atomic_load(&w->ring.shared->bell);
			answer_wishes(w);
		}
		usleep(200);
	}
	return NULL;
}

static int attach(struct world *w, uint64_t max_size)
{
	int r;

	assert_int_equal(pthread_create(&w->thread, NULL, emulate, w), 0);
	r = source_emu_attach(w->path, max_size, &w->source, w->why, sizeof(w->why));
	if (r < 0) {
		assert_null(w->source);
		assert_memory_equal(w->why, w->path, strlen(w->path));
		pthread_join(w->thread, NULL);
	}
	return r;
}

static void detach(struct world *w)
{
	source_free(w->source);
	w->source = NULL;
	pthread_join(w->thread, NULL);
}

/* The emulator goes, the recorder stays. */
static void hang_up(struct world *w)
{
	atomic_store(&w->ring.shared->bell, UINT32_MAX);
	pthread_join(w->thread, NULL);
	w->peer = close_fd(w->peer);
}

static void attach_good_offer_gives_cpus(void **state)
{
	struct world *w = *state;

	assert_int_equal(attach(w, 0), 0);
	assert_int_equal(w->source->n_cpus, N_CPUS);
	assert_string_equal(w->source->pt_terms, "tsc,branch");
	assert_string_equal(w->source->preset, "light");
	assert_int_equal(w->source->cpus[1].pt.aux_size, 8192);
	assert_int_equal(w->source->cpus[1].cpu, 1);
	assert_true(w->source->clock.valid);
	assert_int_equal(source_emu_pid(w->source), 4711);
	assert_string_equal(source_emu_argv(w->source)[0], "sh");
	/* Programs that run already are asked to tell what they have mapped. */
	assert_int_equal(w->ring.shared->resync, 1);
	detach(w);
}

static void attach_stopped_cpu_is_started(void **state)
{
	struct world *w = *state;

	assert_int_equal(attach(w, 0), 0);
	assert_int_equal(emuring_cpu_at(&w->ring, 0)->is, 1);
	assert_int_equal(emuring_cpu_at(&w->ring, 1)->is, 5);
	detach(w);
}

static void attach_after_another_forgets_what_was_traced(void **state)
{
	struct world *w = *state;

	emuring_page_at(&w->ring, 1)->data_tail = 8;
	emuring_aux_at(&w->ring, 0)[100] = 7;
	emuring_aux_at(&w->ring, 1)[100] = 7;
	assert_int_equal(attach(w, 0), 0);
	assert_int_equal(emuring_aux_at(&w->ring, 0)[100], 7);
	assert_int_equal(emuring_aux_at(&w->ring, 1)[100], 0);
	assert_int_equal(emuring_cpu_at(&w->ring, 1)->is & 1, 1);
	detach(w);
}

static void disable_and_enable_are_asked_for(void **state)
{
	struct world *w = *state;

	assert_int_equal(attach(w, 0), 0);
	assert_int_equal(w->source->ops->disable(w->source, 0), 0);
	assert_int_equal(emuring_cpu_at(&w->ring, 0)->is & 1, 0);
	assert_int_equal(w->source->ops->enable(w->source, 0), 0);
	assert_int_equal(emuring_cpu_at(&w->ring, 0)->is & 1, 1);
	detach(w);
}

static void disable_after_hangup_does_not_wait(void **state)
{
	struct world *w = *state;

	assert_int_equal(attach(w, 0), 0);
	assert_int_equal(w->source->ops->disable(w->source, 1), 0);
	hang_up(w);
	/* CPU 0 was told to go on, and nobody stops it; CPU 1 stands. */
	assert_int_equal(w->source->ops->disable(w->source, 0), SOURCE_NO_ANSWER);
	assert_int_equal(w->source->ops->disable(w->source, 1), 0);
	assert_int_equal(w->source->ops->enable(w->source, 1), 0);
	assert_int_equal(emuring_cpu_at(&w->ring, 1)->want & 1, 0);
}

static void attach_hangup_says_that_it_is_taken(void **state)
{
	struct world *w = *state;

	w->n_send = 0;
	assert_int_equal(attach(w, 0), -EBUSY);
	assert_non_null(strstr(w->why, "has another recorder"));
}

static void attach_wrong_offer_is_refused(void **state)
{
	struct world *w = *state;

	w->offer.n_cpus = 0;
	assert_int_equal(attach(w, 0), -EBADMSG);
	assert_non_null(strstr(w->why, "its layout is not valid"));
}

static void attach_short_offer_is_refused(void **state)
{
	struct world *w = *state;

	w->n_send = 8;
	assert_int_equal(attach(w, 0), -EBADMSG);
}

static void attach_offer_without_memory_is_refused(void **state)
{
	struct world *w = *state;

	w->n_fds = 0;
	assert_int_equal(attach(w, 0), -EBADMSG);
	assert_non_null(strstr(w->why, "its memory is missing"));
}

static void attach_memory_that_can_shrink_is_refused(void **state)
{
	struct world *w = *state;

	close_fd(w->memory);
	assert_int_equal(memfd_new("rings", w->l.total, &w->memory), 0);
	assert_int_equal(attach(w, 0), -EPERM);
}

static void attach_memory_of_other_size_is_refused(void **state)
{
	struct world *w = *state;

	close_fd(w->memory);
	assert_int_equal(memfd_new("rings", w->l.total - 4096, &w->memory), 0);
	assert_int_equal(memfd_seal_size(w->memory), 0);
	assert_int_equal(attach(w, 0), -EFBIG);
}

static void attach_other_file_is_refused(void **state)
{
	struct world *w = *state;
	int fds[2];

	close_fd(w->memory);
	assert_int_equal(pipe(fds), 0);
	w->memory = fds[0];
	assert_int_equal(attach(w, 0), -EBADF);
	close_fd(fds[1]);
}

static void attach_rings_over_budget_are_refused(void **state)
{
	struct world *w = *state;

	assert_int_equal(attach(w, w->l.total - 1), -EFBIG);
	assert_int_equal(attach(w, w->l.total), 0);
	detach(w);
}

static void attach_page_that_contradicts_the_offer_is_refused(void **state)
{
	struct world *w = *state;

	emuring_page_at(&w->ring, 1)->aux_size = 4096;
	assert_int_equal(attach(w, 0), -EBADMSG);
}

static void attach_head_is_not_believed(void **state)
{
	struct world *w = *state;

	w->ring.shared->cpus_at = UINT64_MAX / 2;
	w->ring.shared->data_size = 1ull << 40;
	assert_int_equal(attach(w, 0), 0);
	detach(w);
}

static void attach_nobody_there_is_told(void **state)
{
	struct world *w = *state;

	unlink(w->path);
	assert_int_equal(source_emu_attach(w->path, 0, &w->source, w->why, sizeof(w->why)),
			 -ENOENT);
	assert_non_null(strstr(w->why, "no emulator there"));
}

/* The kernel remembers who called listen(2). */
static void attach_stranger_is_refused(void **state)
{
	struct world *w = *state;
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	pid = test_fork();
	if (pid == 0) {
		if (setuid(65534) < 0 || listen(w->listener, 2) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(attach(w, 0), -EACCES);
	assert_non_null(strstr(w->why, "neither to root nor to this user"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(attach_good_offer_gives_cpus),
		T(attach_stopped_cpu_is_started),
		T(attach_after_another_forgets_what_was_traced),
		T(disable_and_enable_are_asked_for),
		T(disable_after_hangup_does_not_wait),
		T(attach_hangup_says_that_it_is_taken),
		T(attach_wrong_offer_is_refused),
		T(attach_short_offer_is_refused),
		T(attach_offer_without_memory_is_refused),
		T(attach_memory_that_can_shrink_is_refused),
		T(attach_memory_of_other_size_is_refused),
		T(attach_other_file_is_refused),
		T(attach_rings_over_budget_are_refused),
		T(attach_page_that_contradicts_the_offer_is_refused),
		T(attach_head_is_not_believed),
		T(attach_nobody_there_is_told),
		T(attach_stranger_is_refused),
	};

	return cmocka_run_group_tests_name("source_emu_attach", tests, NULL, NULL);
}
