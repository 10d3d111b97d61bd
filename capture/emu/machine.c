/*
 * One virtual CPU in the shared memory. Called by plugin.c and calls.c (guest thread); the helper
 * thread lives here. All in the emulator's process.
 */
#include "capture/emu/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/emu/maps.h"

#define HELPER_STACK (256u * 1024)
/* A system call that took longer is taken for one that blocked. */
#define BLOCKED_NS 50000u

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void on_psb(void *userdata, uint64_t tsc, uint64_t pos, bool user)
{
	struct machine *m = userdata;

	truth_psb(m->truth, tsc, pos, user);
}

static int check_head(const struct emuring_head *head, uint64_t size)
{
	uint64_t stride, total;

	if (head->magic != EMURING_MAGIC || head->version != EMURING_VERSION)
		return -EBADMSG;
	if (emuring_layout(head->n_cpus, head->data_size, head->aux_size, &stride, &total) < 0 ||
	    stride != head->cpu_stride || total > size)
		return -EBADMSG;
	return 0;
}

static int map_file(struct machine *m, const char *path)
{
	struct stat st;
	void *map;
	int r, fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && st.st_size < EMURING_HEAD_SIZE)
		r = -EBADMSG;
	if (r == 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = map == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (r < 0)
		return r;
	m->head = map;
	m->size = (uint64_t)st.st_size;
	return 0;
}

int machine_open(struct machine *m, const char *path)
{
	int r;

	memset(m, 0, sizeof(*m));
	r = map_file(m, path);
	if (r < 0)
		return r;
	r = check_head(m->head, m->size);
	if (r < 0) {
		machine_close(m);
		return r;
	}
	m->cpu = emuring_cpu_at(m->head, 0);
	emupmu_init(&m->pmu, m->head, 0);
	m->pmu.on_psb = on_psb;
	m->pmu.userdata = m;
	m->sideband = (struct sideband){.head = m->head,
					.pid = (uint32_t)getpid(),
					.tid = (uint32_t)gettid(),
					.ppid = (uint32_t)getppid()};
	return 0;
}

void machine_close(struct machine *m)
{
	truth_close(m->truth);
	if (m->head != NULL)
		munmap(m->head, m->size);
	memset(m, 0, sizeof(*m));
}

static void start_tracing(struct machine *m, uint32_t generation)
{
	emupmu_start(&m->pmu);
	truth_switch(m->truth, true, m->pmu.s->now, m->pmu.s->encode.pos, generation);
	if (!m->itrace_started)
		sideband_itrace_start(&m->sideband, m->pmu.s->now);
	m->itrace_started = true;
}

/* As pt_event_stop and perf_aux_output_end: aux_head becomes an offset, an AUX record is posted. */
static void stop_tracing(struct machine *m, uint64_t ip, uint32_t generation)
{
	struct perf_event_mmap_page *page = emuring_page_at(m->head, 0);
	uint64_t head;

	emupmu_stop(&m->pmu, ip);
	truth_switch(m->truth, false, m->pmu.s->now, m->pmu.s->encode.pos, generation);
	head = m->pmu.s->encode.pos & (m->head->aux_size - 1);
	sideband_aux(&m->sideband, m->pmu.s->now, head);
	__atomic_store_n(&page->aux_head, head, __ATOMIC_RELEASE);
}

static void give_mapping(void *userdata, const struct sideband_mapping *mapping)
{
	struct machine *m = userdata;

	sideband_mmap(&m->sideband, m->pmu.s->now, mapping);
}

/* The task has been asleep since it entered the kernel; told when it is known, with its time. */
static void tell_switch_out(struct machine *m)
{
	uint64_t since = sideband_time(m->head, m->kernel_since);

	if (!m->task_known || m->switched_out ||
	    sideband_time(m->head, emupmu_now(&m->pmu)) - since < BLOCKED_NS)
		return;
	sideband_switch(&m->sideband, m->kernel_since, true);
	m->switched_out = true;
}

/* The caller owns the rings. IP: of the next user instruction, if the guest is between two. */
static void serve(struct machine *m, bool in_kernel, uint64_t ip)
{
	uint32_t want = atomic_load(&m->cpu->want);

	if (want == atomic_load_explicit(&m->cpu->is, memory_order_relaxed))
		return;
	if (in_kernel)
		tell_switch_out(m);
	if ((want & 1) != 0 && !m->pmu.s->enabled)
		start_tracing(m, want);
	if ((want & 1) == 0 && m->pmu.s->enabled)
		stop_tracing(m, ip, want);
	/* Records are in the order of their times. */
	if (in_kernel && !m->switched_out)
		m->kernel_since = m->pmu.s->now;
	atomic_store(&m->cpu->is, want);
	futex_wake(&m->cpu->is);
}

void machine_service(struct machine *m, uint64_t ip)
{
	if (atomic_load_explicit(&m->rescan, memory_order_relaxed) != 0 &&
	    atomic_exchange(&m->rescan, 0) != 0)
		maps_executable(0, UINT64_MAX, give_mapping, m);
	serve(m, false, ip);
}

/* On the CPU's behalf while the guest is in the kernel; false: it is not. */
static bool borrow(struct machine *m)
{
	uint32_t where = EMURING_KERNEL;

	return atomic_compare_exchange_strong(&m->cpu->where, &where, EMURING_BUSY);
}

static void give_back(struct machine *m)
{
	atomic_store(&m->cpu->where, EMURING_KERNEL);
	futex_wake(&m->cpu->where);
}

/* Serves what is wanted if the guest is in the kernel; false: it is not, and will see itself. */
static bool serve_in_kernel(struct machine *m)
{
	if (!borrow(m))
		return false;
	serve(m, true, 0);
	give_back(m);
	return true;
}

static void *helper(void *userdata)
{
	struct machine *m = userdata;

	prctl(PR_SET_NAME, "ptsnap-emupmu");
	atomic_store(&m->head->helper_tid, (uint32_t)gettid());
	for (;;) {
		uint32_t want = atomic_load(&m->cpu->want);

		if (want != atomic_load(&m->cpu->is) && serve_in_kernel(m))
			continue;
		futex_wait(&m->cpu->want, want);
	}
	return NULL;
}

int machine_start_helper(struct machine *m)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, HELPER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, helper, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

static void acquire(struct machine *m)
{
	for (;;) {
		uint32_t where = EMURING_KERNEL;

		if (atomic_compare_exchange_strong(&m->cpu->where, &where, EMURING_USER))
			return;
		if (where == EMURING_USER)
			return;
		futex_wait(&m->cpu->where, where);
	}
}

void machine_begin(struct machine *m, const char *comm)
{
	uint64_t tsc;

	acquire(m);
	tsc = emupmu_now(&m->pmu);
	sideband_comm(&m->sideband, tsc, comm, true);
	maps_executable(0, UINT64_MAX, give_mapping, m);
	sideband_switch(&m->sideband, tsc, false);
	atomic_store(&m->cpu->owner_tid, m->sideband.tid);
	atomic_store(&m->head->guest_pid, m->sideband.pid);
	atomic_store(&m->head->attached, 1);
	serve(m, true, 0);
	m->task_known = true;
}

void machine_enter_kernel(struct machine *m)
{
	m->kernel_since = emupmu_now(&m->pmu);
	m->switched_out = false;
	emupmu_publish(&m->pmu);
	atomic_store(&m->cpu->where, EMURING_KERNEL);
	if (atomic_load(&m->cpu->want) != atomic_load_explicit(&m->cpu->is, memory_order_relaxed))
		serve_in_kernel(m);
}

void machine_leave_kernel(struct machine *m)
{
	acquire(m);
	if (m->pmu.virtual_clock)
		m->pmu.s->extra_ticks += EMUPMU_VIRTUAL_SYSCALL;
	tell_switch_out(m);
	if (m->switched_out)
		sideband_switch(&m->sideband, m->pmu.s->now, false);
	emupmu_service(&m->pmu, 0);
	serve(m, true, 0);
	m->pmu.budget = 0;
}

void machine_exit(struct machine *m)
{
	uint64_t tsc = emupmu_now(&m->pmu);

	sideband_exit(&m->sideband, tsc);
	sideband_switch(&m->sideband, tsc, true);
	m->task_known = false;
	atomic_store(&m->head->exited, 1);
}

void machine_exit_by_other(struct machine *m)
{
	if (!borrow(m))
		return;
	if (m->task_known) {
		tell_switch_out(m);
		machine_exit(m);
	}
	give_back(m);
}

void machine_mapped(struct machine *m, uint64_t begin, uint64_t size)
{
	uint64_t end;

	if (size > 0 && !__builtin_add_overflow(begin, size + 4095, &end))
		maps_executable(begin, end & ~4095ull, give_mapping, m);
}

/* While the traced thread runs user code the rings are its own: it looks itself, soon. */
void machine_mapped_by_other(struct machine *m, uint64_t begin, uint64_t size)
{
	if (!borrow(m)) {
		atomic_store(&m->rescan, 1);
		return;
	}
	tell_switch_out(m);
	emupmu_now(&m->pmu);
	machine_mapped(m, begin, size);
	if (!m->switched_out)
		m->kernel_since = m->pmu.s->now;
	give_back(m);
}

void machine_close_truth(struct machine *m)
{
	if (!borrow(m))
		return;
	truth_close(m->truth);
	m->truth = NULL;
	give_back(m);
}
