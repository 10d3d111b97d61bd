/*
 * capture/emu/system: which packets a virtual CPU's blocks of user and kernel code give. The
 * machine's registers and memory are the test's.
 */
#include "capture/emu/system/system.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "capture/emu/system/vm.h"
#include "tests/unit/capture/emu_ring.h"

#define RING_OS		  (1ull << 2)
#define RING_USER	  (1ull << 3)
#define BOTH		  (RING_BRANCH | RING_TSC | RING_OS | RING_USER)
#define PWR_EVT		  (1ull << 4)
#define EVENTS		  (1ull << 31)
#define ADDR_CFG(n, kind) ((uint64_t)(kind) << (32 + 4 * (n)))

#define USER   0x401000ull
#define KERNEL 0xffffffff81000000ull
#define PF     0xffffffff82000100ull /* the handler of page faults */
#define IRQ    0xffffffff82000200ull /* of an interrupt */
#define BP     0xffffffff82000300ull /* of INT3 */
#define USER64 0x33u
#define USER32 0x23u

/* The registers and the stack of the machine. */
static struct {
	uint64_t rsp, cr3, cr2, flags;
	uint16_t cs;
	uint64_t stack[8];
} vm;

uint64_t vm_stack_pointer(unsigned int vcpu)
{
	(void)vcpu;
	return vm.rsp;
}

uint64_t vm_cr3(unsigned int vcpu)
{
	(void)vcpu;
	return vm.cr3;
}

uint64_t vm_cr2(unsigned int vcpu)
{
	(void)vcpu;
	return vm.cr2;
}

uint64_t vm_tsc(void)
{
	return __rdtsc();
}

uint64_t vm_flags(unsigned int vcpu)
{
	(void)vcpu;
	return vm.flags;
}

uint16_t vm_cs(unsigned int vcpu)
{
	(void)vcpu;
	return vm.cs;
}

bool vm_read(unsigned int vcpu, uint64_t address, void *to, size_t size)
{
	(void)vcpu;
	assert_true(address - vm.rsp + size <= sizeof(vm.stack));
	memcpy(to, (const uint8_t *)vm.stack + (address - vm.rsp), size);
	return true;
}

struct fixture {
	struct emuring *ring;
	struct code *code;
	struct system_idt idt;
	struct system_cpu cpu;
	size_t said; /* length of what was said */
};

static struct block *block(struct fixture *f, uint64_t ip, unsigned int n, const char *bytes,
			   size_t size)
{
	struct code_block in = {.ip = ip, .n = n + 1, .last_bytes = (const uint8_t *)bytes};
	struct block *b;
	bool known;

	memset(in.length, 1, n);
	in.length[n] = (uint8_t)size;
	b = code_add(f->code, &in, &known);
	assert_non_null(b);
	assert_true(known);
	return b;
}
#define BLOCK(f, ip, n, bytes) block(f, ip, n, bytes, sizeof(bytes) - 1)

#define NOP	"\x90"
#define JE_UP	"\x74\xf0"
#define SYSCALL "\x0f\x05"
#define SYSRET	"\x48\x0f\x07"
#define IRET	"\x48\xcf"
#define INT3	"\xcc"
#define RET	"\xc3"
#define HLT	"\xf4"
#define CR3_RAX "\x0f\x22\xd8"

static int tear_down(void **state)
{
	struct fixture *f = *state;

	code_free(f->code);
	emu_ring_free(f->ring);
	free(f);
	return 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ring = emu_ring_new(BOTH);
	f->code = code_new();
	assert_non_null(f->code);
	f->idt.handler[14] = PF;
	f->idt.handler[32] = IRQ;
	f->idt.handler[3] = BP;
	code_add_handler(f->code, PF);
	code_add_handler(f->code, IRQ);
	code_add_handler(f->code, BP);
	*state = f;
	return 0;
}

/* Tracing starts in the kernel, as BELL says. */
static void begin_as(struct fixture *f, struct bell bell)
{
	bell.ratio = 10;
	bell.art_num = 4;
	bell.art_den = 1;
	bell.first = 1;
	memset(&vm, 0, sizeof(vm));
	vm.rsp = 0xffffc90000000000ull;
	vm.cr3 = 0x1000;
	vm.cs = USER64;
	assert_int_equal(system_cpu_init(&f->cpu, 0, &f->idt), 0);
	free(f->cpu.memory);
	f->cpu.memory = emuring_cpu_at(f->ring, 0);
	f->cpu.aux = emuring_aux_at(f->ring, 0);
	f->cpu.aux_size = RING_AUX;
	system_start(&f->cpu, &bell, KERNEL);
	f->cpu.pmu.budget = 1000000;
	f->said = strlen(emu_ring_text(f->ring, 0)) + 1;
}

/* The same with what CTL says alone. */
static void begin(struct fixture *f, uint64_t ctl)
{
	begin_as(f, (struct bell){.ctl = ctl});
}

/* The same with the address range [FROM, TO] of kind KIND. */
static void begin_range(struct fixture *f, uint64_t ctl, unsigned int kind, uint64_t from,
			uint64_t to)
{
	begin_as(f, (struct bell){.ctl = ctl | ADDR_CFG(0, kind), .ranges = {{from, to}}});
}

/* The packets since the last call, with what is pending. */
static const char *said(struct fixture *f)
{
	const size_t before = f->said;
	const char *text;

	encode_tnt(&f->cpu.pmu.encoder);
	emupmu_publish(&f->cpu.pmu);
	f->cpu.pmu.budget = 1000000;
	text = emu_ring_text(f->ring, 0);
	f->said = strlen(text) + 1;
	return f->said > before ? text + before : "";
}

static void run(struct fixture *f, struct block *b)
{
	system_before(&f->cpu, b);
}

/* The processor pushed IP, and below it an error code if there is CODE. */
static void push(uint64_t ip, uint64_t cs, bool code)
{
	memset(vm.stack, 0, sizeof(vm.stack));
	vm.stack[code ? 1 : 0] = ip;
	vm.stack[code ? 2 : 1] = cs;
}

static void start_in_the_kernel_begins_there_with_its_address_space(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	assert_non_null(strstr(emu_ring_text(f->ring, 0), "PSBEND MODE PGE(ffffffff81000000)"));
}

static void start_with_user_code_alone_begins_with_user_code(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH & ~RING_OS);
	assert_null(strstr(emu_ring_text(f->ring, 0), "PGE"));
	run(f, BLOCK(f, KERNEL, 1, IRET));
	run(f, BLOCK(f, USER, 1, NOP));
	assert_string_equal(said(f), "MODE PGE(401000)");
}

static void system_call_stays_traced_by_tip(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 1, SYSRET);
	run(f, BLOCK(f, USER, 1, SYSCALL));
	run(f, BLOCK(f, KERNEL + 0x100, 1, NOP));
	assert_string_equal(said(f), "TIP(401000) TIP(ffffffff81000100)");
}

static void system_call_with_user_code_alone_ends_by_pgd(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH & ~RING_OS);
	run(f, BLOCK(f, USER, 1, SYSCALL));
	said(f);
	run(f, BLOCK(f, KERNEL, 1, NOP));
	assert_string_equal(said(f), "PGD");
}

static void system_call_with_the_kernel_alone_begins_by_pge(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH & ~RING_USER);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 1, SYSRET);
	run(f, BLOCK(f, USER, 1, SYSCALL));
	assert_string_equal(said(f), "PGD");
	run(f, BLOCK(f, KERNEL, 1, NOP));
	assert_string_equal(said(f), "PGE(ffffffff81000000)");
}

static void interrupt_behind_a_branch_reports_the_branch_first(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, USER, 13, JE_UP);
	push(USER + 15 - 16, USER64, false);
	run(f, BLOCK(f, IRQ, 1, NOP));
	assert_string_equal(said(f), "TNT(1) FUP(400fff) TIP(ffffffff82000200)");
}

static void fault_within_a_block_reports_no_branch(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, USER, 13, JE_UP);
	push(USER + 3, USER64, true);
	run(f, BLOCK(f, PF, 1, NOP));
	assert_string_equal(said(f), "FUP(401003) TIP(ffffffff82000100)");
}

static void fault_of_the_next_instruction_reports_the_branch(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, USER, 13, JE_UP);
	push(USER + 15, USER64, true);
	run(f, BLOCK(f, PF, 1, NOP));
	assert_string_equal(said(f), "TNT(0) FUP(40100f) TIP(ffffffff82000100)");
}

static void int3_has_its_own_address(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, USER, 2, INT3);
	push(USER + 3, USER64, false);
	run(f, BLOCK(f, BP, 1, NOP));
	assert_string_equal(said(f), "FUP(401002) TIP(ffffffff82000300)");
}

static void return_into_an_interrupt_gives_both_transfers(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 1, IRET);
	push(USER, USER64, false);
	run(f, BLOCK(f, IRQ, 1, NOP));
	assert_string_equal(said(f), "TIP(401000) FUP(401000) TIP(ffffffff82000200)");
}

static void write_of_cr3_is_a_pip_behind_the_branches_before_it(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 13, JE_UP);
	run(f, BLOCK(f, KERNEL + 15, 1, CR3_RAX));
	vm.cr3 = 0x1234000;
	run(f, BLOCK(f, KERNEL + 19, 1, NOP));
	assert_string_equal(said(f), "TNT(0) PIP(1234000)");
}

static void write_of_cr3_with_user_code_alone_is_no_packet(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH & ~RING_OS);
	run(f, BLOCK(f, KERNEL, 1, CR3_RAX));
	run(f, BLOCK(f, KERNEL + 4, 1, NOP));
	assert_string_equal(said(f), "");
}

static void code_of_32_bits_changes_the_mode_and_back(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 1, IRET);
	vm.cs = USER32;
	run(f, BLOCK(f, USER, 2, NOP));
	push(USER + 1, USER32, false);
	run(f, BLOCK(f, IRQ, 1, NOP));
	assert_string_equal(said(f), "MODE32 TIP(401000) FUP(401001) MODE TIP(ffffffff82000200)");
}

static void stop_ends_with_fup_and_pgd_and_tells_the_offset(void **state)
{
	struct fixture *f = *state;
	struct bell bell = {0};

	begin(f, BOTH);
	system_stop(&f->cpu, &bell, KERNEL + 0x40);
	assert_string_equal(said(f), "FUP(ffffffff81000040) PGD");
	assert_int_equal(bell.offset, f->cpu.pmu.cpu->aux_pos);
	assert_false(f->cpu.on);
}

static void transfer_that_nothing_explains_is_counted(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH);
	f->cpu.retire.prev = BLOCK(f, USER, 2, NOP);
	run(f, BLOCK(f, USER + 0x500, 1, NOP));
	assert_int_equal(f->cpu.unexplained, 1);
	assert_int_equal(f->cpu.first_to, USER + 0x500);
}

#define IN  (KERNEL + 0x1000)
#define OUT (KERNEL + 0x2000)

static void range_code_outside_is_silent_until_a_branch_enters(void **state)
{
	struct fixture *f = *state;

	begin_range(f, BOTH, EMUPMU_FILTER, IN, IN + 0xfff);
	run(f, BLOCK(f, KERNEL, 1, NOP));
	run(f, BLOCK(f, KERNEL + 2, 13, JE_UP));
	run(f, BLOCK(f, KERNEL + 17, 0, RET));
	run(f, BLOCK(f, IN, 1, NOP));
	assert_string_equal(said(f), "MODE PGE(ffffffff81001000)");
}

static void range_left_by_a_return_names_the_target(void **state)
{
	struct fixture *f = *state;

	begin_range(f, BOTH, EMUPMU_FILTER, IN, IN + 0xfff);
	run(f, BLOCK(f, KERNEL, 0, RET));
	run(f, BLOCK(f, IN, 0, RET));
	said(f);
	run(f, BLOCK(f, OUT, 1, NOP));
	assert_string_equal(said(f), "PGD(ffffffff81002000)");
}

static void range_left_by_a_conditional_branch_names_none(void **state)
{
	struct fixture *f = *state;

	begin_range(f, BOTH, EMUPMU_FILTER, IN, IN + 0xfff);
	run(f, BLOCK(f, KERNEL, 0, RET));
	run(f, BLOCK(f, IN, 1, JE_UP));
	said(f);
	run(f, BLOCK(f, IN + 3 - 16, 1, NOP));
	assert_string_equal(said(f), "PGD");
}

static void range_left_by_sequential_code_is_not_left(void **state)
{
	struct fixture *f = *state;

	begin_range(f, BOTH, EMUPMU_FILTER, IN, IN + 1);
	run(f, BLOCK(f, KERNEL, 0, RET));
	run(f, BLOCK(f, IN, 1, NOP));
	said(f);
	run(f, BLOCK(f, IN + 2, 0, RET));
	run(f, BLOCK(f, IN, 1, NOP));
	assert_string_equal(said(f), "TIP(ffffffff81001000)");
}

static void range_interrupt_out_of_it_has_fup_and_the_handler(void **state)
{
	struct fixture *f = *state;

	begin_range(f, BOTH, EMUPMU_FILTER, IN, IN + 0xfff);
	run(f, BLOCK(f, KERNEL, 0, RET));
	run(f, BLOCK(f, IN, 4, NOP));
	said(f);
	push(IN + 5, 0x10, false);
	run(f, BLOCK(f, IRQ, 0, IRET));
	run(f, BLOCK(f, IN + 5, 1, NOP));
	assert_string_equal(said(f),
			    "FUP(ffffffff81001005) PGD(ffffffff82000200) PGE(ffffffff81001005)");
}

static void range_of_a_tracestop_ends_all_packets(void **state)
{
	struct fixture *f = *state;
	struct bell bell = {0};

	begin_range(f, BOTH, EMUPMU_TRACESTOP, OUT, OUT + 0xff);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 0, RET);
	run(f, BLOCK(f, OUT + 4, 0, RET));
	run(f, BLOCK(f, IN, 0, RET));
	run(f, BLOCK(f, KERNEL, 1, NOP));
	assert_string_equal(said(f), "PGD(ffffffff81002004) STOP");
	system_stop(&f->cpu, &bell, KERNEL);
	assert_string_equal(said(f), "");
	assert_int_equal(bell.status, BELL_STOPPED);
}

static void event_trace_tells_a_page_fault_and_the_return(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH | EVENTS);
	vm.flags = 0x200;
	run(f, BLOCK(f, KERNEL, 0, IRET));
	run(f, BLOCK(f, USER, 4, NOP));
	said(f);
	push(USER + 2, USER64, true);
	vm.stack[3] = 0x200;
	vm.flags = 0;
	vm.cr2 = 0xabc000;
	run(f, BLOCK(f, PF, 0, IRET));
	assert_string_equal(said(f),
			    "CR2(abc000) CFE(1,14) FUP(401002) MODE TIP(ffffffff82000100)");
	vm.flags = 0x200;
	run(f, BLOCK(f, USER + 2, 1, NOP));
	assert_string_equal(said(f), "CFE(2,0) MODEIF TIP(401002)");
}

static void event_trace_tells_sti_where_it_is(void **state)
{
	struct fixture *f = *state;
	struct code_block in = {
		.ip = KERNEL, .n = 3, .iflag = 2, .last_bytes = (const uint8_t *)NOP};
	bool known;

	begin(f, BOTH | EVENTS);
	memset(in.length, 1, 3);
	f->cpu.retire.prev = code_add(f->code, &in, &known);
	vm.flags = 0x200;
	run(f, BLOCK(f, KERNEL + 3, 1, NOP));
	assert_string_equal(said(f), "MODEIF FUP(ffffffff81000002)");
}

static void power_events_tell_halt_and_wake_up(void **state)
{
	struct fixture *f = *state;

	begin(f, BOTH | PWR_EVT);
	f->cpu.retire.prev = BLOCK(f, KERNEL, 1, HLT);
	system_idle(&f->cpu);
	assert_string_equal(said(f), "PWRE(1000) EXSTOPIP FUP(ffffffff81000002)");
	system_awake(&f->cpu);
	assert_non_null(strstr(said(f), "PWRX(111) TSC("));
}

static void model_with_bdm70_has_a_fup_in_the_psb_before_pge(void **state)
{
	struct fixture *f = *state;

	begin_as(f, (struct bell){.ctl = BOTH & ~RING_OS, .family = 6, .model = 0x3d});
	f->cpu.pmu.s->psb_at = 0;
	run(f, BLOCK(f, USER, 1, NOP));
	assert_non_null(strstr(said(f), "MODE TSX FUP(401000) PSBEND PGE(401000)"));
}

static void model_without_errata_has_a_psb_in_the_kernel_without_fup(void **state)
{
	struct fixture *f = *state;
	size_t before;

	begin_as(f, (struct bell){.ctl = BOTH & ~RING_OS, .family = 6, .model = 0xaf});
	f->cpu.pmu.s->psb_at = 0;
	before = f->said;
	run(f, BLOCK(f, USER, 1, NOP));
	assert_ptr_equal(strstr(said(f), "MODE PGE(401000)"), emu_ring_text(f->ring, 0) + before);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(start_in_the_kernel_begins_there_with_its_address_space),
		CASE(start_with_user_code_alone_begins_with_user_code),
		CASE(system_call_stays_traced_by_tip),
		CASE(system_call_with_user_code_alone_ends_by_pgd),
		CASE(system_call_with_the_kernel_alone_begins_by_pge),
		CASE(interrupt_behind_a_branch_reports_the_branch_first),
		CASE(fault_within_a_block_reports_no_branch),
		CASE(fault_of_the_next_instruction_reports_the_branch),
		CASE(int3_has_its_own_address),
		CASE(return_into_an_interrupt_gives_both_transfers),
		CASE(write_of_cr3_is_a_pip_behind_the_branches_before_it),
		CASE(write_of_cr3_with_user_code_alone_is_no_packet),
		CASE(code_of_32_bits_changes_the_mode_and_back),
		CASE(stop_ends_with_fup_and_pgd_and_tells_the_offset),
		CASE(transfer_that_nothing_explains_is_counted),
		CASE(range_code_outside_is_silent_until_a_branch_enters),
		CASE(range_left_by_a_return_names_the_target),
		CASE(range_left_by_a_conditional_branch_names_none),
		CASE(range_left_by_sequential_code_is_not_left),
		CASE(range_interrupt_out_of_it_has_fup_and_the_handler),
		CASE(range_of_a_tracestop_ends_all_packets),
		CASE(event_trace_tells_a_page_fault_and_the_return),
		CASE(event_trace_tells_sti_where_it_is),
		CASE(power_events_tell_halt_and_wake_up),
		CASE(model_with_bdm70_has_a_fup_in_the_psb_before_pge),
		CASE(model_without_errata_has_a_psb_in_the_kernel_without_fup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
