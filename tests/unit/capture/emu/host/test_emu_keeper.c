/*
 * capture/emu_keeper: guests that are killed or stopped with a CPU in their hands. The guests are
 * children of this test, whose own program stands for the emulator's.
 */
#include "capture/emu/host/emu_keeper.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/emu/machine/vcpu.h"
#include "tests/support/child.h"
#include "tests/unit/capture/emu_ring.h"

#define ME 3u /* the guest's place */

static struct emuring *ring, shared_ring;
static struct vcpu cpu;
static struct emu_keeper *keeper;

/* The machine in memory that children share. */
static int set_up(void **state)
{
	struct emuring_head *head;
	struct emuring *made = emu_ring_new(RING_BRANCH | RING_TSC);
	size_t size = made->fixed.cpus_at + made->fixed.cpu_stride;

	(void)state;
	head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(head != MAP_FAILED);
	memcpy(head, made->shared, size);
	emu_ring_free(made);
	head->recorder_pid = (uint32_t)getpid();
	emuring_attach(&shared_ring, head);
	ring = &shared_ring;
	assert_int_equal(emu_keeper_new(head, "/proc/self/exe", NULL, 0, &keeper), 0);
	vcpu_attach(&cpu, ring, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	emu_keeper_free(keeper);
	munmap(ring->shared, ring->fixed.cpus_at + ring->fixed.cpu_stride);
	return 0;
}

/* A guest that is on the CPU in user code at 0x1000 and traced; when it is to give the CPU away it
 * does, and waits. */
static void guest(bool inside)
{
	struct emuring_task *t = emuring_task_at(ring, ME);
	struct vcpu *v;

	t->tid = t->pid = (uint32_t)getpid();
	v = sched_acquire(&cpu, 1, ME);
	vcpu_serve(v, NULL);
	emupmu_enter(&v->pmu, 0x1000);
	encode_branch(v->pmu.encoder.tnt, true);
	v->cpu->ip = inside ? 0 : 0x1000;
	sched_put(v->cpu, EMURING_USER, ME);
	while (t->expelled == 0)
		;
	emupmu_interrupt(&v->pmu, 0x1000);
	sched_release(v, ME, true);
	for (;;)
		pause();
}

static pid_t start_guest(bool inside)
{
	pid_t pid;

	cpu.cpu->want = 1;
	pid = test_fork();
	if (pid == 0)
		guest(inside);
	while (emuring_hold_of(atomic_load(&cpu.cpu->hold)) != EMURING_USER)
		;
	return pid;
}

static void end_guest(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool has_record(uint32_t type, uint32_t tid)
{
	struct perf_event_mmap_page *page = emuring_page_at(ring, 0);
	struct perfrecord r;

	for (uint64_t at = 0; at < page->data_head; at += r.size) {
		assert_int_equal(
			perfrecord_parse(emuring_data_at(ring, 0) + at, page->data_head - at, &r),
			0);
		if (r.type == type && r.tid == tid)
			return true;
	}
	return false;
}

static void assert_idle(void)
{
	assert_int_equal(emuring_hold_of(atomic_load(&cpu.cpu->hold)), EMURING_IDLE);
}

static void mend_living_owner_changes_nothing(void **state)
{
	pid_t pid = start_guest(false);
	uint64_t hold = atomic_load(&cpu.cpu->hold);

	(void)state;
	emu_keeper_mend(keeper, 0);
	assert_int_equal(atomic_load(&cpu.cpu->hold), hold);
	end_guest(pid);
}

static void mend_killed_in_a_block_ends_its_stretch_there(void **state)
{
	pid_t pid = start_guest(false);

	(void)state;
	end_guest(pid);
	emu_keeper_mend(keeper, 0);
	assert_idle();
	assert_non_null(strstr(emu_ring_text(ring, 0), "MODE PGE(1000) TNT(1) FUP("));
	assert_true(has_record(PERF_RECORD_EXIT, (uint32_t)pid));
	assert_int_equal(emuring_task_at(ring, ME)->tid, 0);
	assert_int_equal(cpu.cpu->tid, 0);
}

/* The last events of the killed guest are uncertain: an overflow says so. */
static void mend_killed_between_blocks_writes_an_overflow(void **state)
{
	pid_t pid = start_guest(true);

	(void)state;
	end_guest(pid);
	emu_keeper_mend(keeper, 0);
	assert_idle();
	assert_non_null(strstr(emu_ring_text(ring, 0), "MODE PGE(1000) TNT(1) OVF TSC("));
	assert_null(strstr(emu_ring_text(ring, 0), "FUP"));
}

static void mend_killed_at_work_frees_the_cpu(void **state)
{
	pid_t pid = start_guest(false);

	(void)state;
	end_guest(pid);
	sched_put(cpu.cpu, EMURING_BUSY, ME);
	emu_keeper_mend(keeper, 0);
	/* Work is short: only who is at it at two looks is looked at. */
	assert_int_equal(emuring_hold_of(atomic_load(&cpu.cpu->hold)), EMURING_BUSY);
	emu_keeper_mend(keeper, 0);
	assert_idle();
}

static void mend_stopped_owner_lets_it_give_the_cpu_away(void **state)
{
	pid_t pid = start_guest(false);
	int status;

	(void)state;
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	emu_keeper_mend(keeper, 0);
	assert_idle();
	assert_int_equal(emuring_task_at(ring, ME)->expelled, 0);
	assert_int_equal(emuring_task_at(ring, ME)->stopped, 1);
	/* Still stopped, and nobody was told of anything. */
	assert_int_equal(waitpid(pid, &status, WUNTRACED | WCONTINUED | WNOHANG), 0);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	assert_true(WIFCONTINUED(status));
	end_guest(pid);
}

/* The stopped owner gets the signal that it was sent, and its parent is told of its end. */
static void mend_stopped_owner_with_a_signal_passes_it_on(void **state)
{
	pid_t pid = start_guest(false);
	int status;

	(void)state;
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	kill(pid, SIGTERM);
	emu_keeper_mend(keeper, 0);
	kill(pid, SIGCONT);
	alarm(10);
	do
		assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status));
	alarm(0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void mend_given_to_who_does_not_wait_takes_it_back(void **state)
{
	pid_t pid = start_guest(false);

	(void)state;
	sched_put(cpu.cpu, EMURING_GIVEN, ME);
	emu_keeper_mend(keeper, 0);
	assert_int_equal(emuring_hold_of(atomic_load(&cpu.cpu->hold)), EMURING_GIVEN);
	emu_keeper_mend(keeper, 0);
	assert_idle();
	end_guest(pid);
}

static void mend_given_to_a_dead_task_takes_it_back(void **state)
{
	pid_t pid = start_guest(false);

	(void)state;
	end_guest(pid);
	sched_put(cpu.cpu, EMURING_GIVEN, ME);
	emu_keeper_mend(keeper, 0);
	assert_idle();
}

static void serve_idle_cpu_stops_and_starts_it(void **state)
{
	(void)state;
	cpu.cpu->want = 1;
	emu_keeper_serve(keeper, 0);
	assert_int_equal(cpu.cpu->is, 1);
	cpu.cpu->want = 2;
	emu_keeper_serve(keeper, 0);
	assert_int_equal(cpu.cpu->is, 2);
	assert_idle();
}

static void serve_cpu_that_is_away_grants_all(void **state)
{
	(void)state;
	sched_put(cpu.cpu, EMURING_OFF, EMURING_NO_TASK);
	cpu.cpu->want = 1;
	emu_keeper_serve(keeper, 0);
	assert_int_equal(cpu.cpu->is, 1);
	assert_false(cpu.pmu.s->enabled);
	assert_int_equal(emuring_hold_of(atomic_load(&cpu.cpu->hold)), EMURING_OFF);
}

/* Whether anybody ever runs there or not. */
static void new_starts_what_is_wanted_from_the_start(void **state)
{
	struct emu_keeper *second;

	(void)state;
	cpu.cpu->want = 1;
	assert_int_equal(emu_keeper_new(ring->shared, "/proc/self/exe", NULL, 0, &second), 0);
	assert_int_equal(cpu.cpu->is, 1);
	assert_true(strncmp(emu_ring_text(ring, 0), "PSB TSC(", 8) == 0);
	emu_keeper_free(second);
	ring->shared->closing = 0;
}

static void *live_on(void *userdata)
{
	pause();
	return userdata;
}

static char state_of(pid_t pid)
{
	char path[64], text[256] = "", *after;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	after = strrchr(text, ')');
	assert_non_null(after);
	return after[2];
}

/* An exec of another thread takes the number over. */
static void life_of_a_dead_first_thread_lasts_while_others_live(void **state)
{
	pid_t pid = test_fork();

	(void)state;
	if (pid == 0) {
		pthread_t t;

		pthread_create(&t, NULL, live_on, NULL);
		syscall(SYS_exit, 0);
	}
	while (state_of(pid) != 'Z')
		;
	assert_int_equal(emu_task_life((uint32_t)pid), EMU_LIVES);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(emu_task_life((uint32_t)pid), EMU_GONE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(emu_task_life((uint32_t)pid), EMU_GONE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(mend_living_owner_changes_nothing),
		CASE(mend_killed_in_a_block_ends_its_stretch_there),
		CASE(mend_killed_between_blocks_writes_an_overflow),
		CASE(mend_killed_at_work_frees_the_cpu),
		CASE(mend_stopped_owner_lets_it_give_the_cpu_away),
		CASE(mend_stopped_owner_with_a_signal_passes_it_on),
		CASE(mend_given_to_a_dead_task_takes_it_back),
		CASE(mend_given_to_who_does_not_wait_takes_it_back),
		CASE(serve_idle_cpu_stops_and_starts_it),
		CASE(serve_cpu_that_is_away_grants_all),
		CASE(new_starts_what_is_wanted_from_the_start),
		CASE(life_of_a_dead_first_thread_lasts_while_others_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
