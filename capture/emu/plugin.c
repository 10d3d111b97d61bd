/*
 * The software PMU as a TCG plugin: what QEMU's user-mode emulator calls. It runs inside the
 * emulator's process, which is the traced process to everybody else; nothing here may change what
 * the program does. Arguments: ring=PATH (of the shared memory), comm=NAME,
 * truth=PATH.
 *
 * Traced is the thread on QEMU's CPU 0. Other threads and forked children run untraced and are
 * counted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/calls.h"
#include "capture/emu/code.h"
#include "capture/emu/disguise.h"
#include "capture/emu/environment.h"
#include "capture/emu/guest.h"
#include "capture/emu/machine.h"
#include "capture/emu/qemu_api.h"
#include "capture/emu/sig.h"
#include "capture/emu/walk.h"

#define TRACED_VCPU 0u
#define NO_VCPU	    UINT32_MAX

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* The program's only global state, as a main.c has it: QEMU's callbacks carry no pointer of ours.
 */
static struct {
	struct walk walk;
	struct machine machine;
	struct code *code;
	struct sig *sig;
	uint32_t traced; /* QEMU's number of the traced CPU; NO_VCPU: nothing is traced any more */
	bool child;	 /* a forked child: the rings are its parent's */
	bool child_mended;
	bool begun;
	char comm[16]; /* the program's name as execve would have set it */
	bool ended;    /* the traced thread's last system call has begun */
	bool in_call;  /* the traced thread is in a system call */
} plugin;

static __thread struct call current_call;

static struct walk_signal look(void *userdata)
{
	struct walk_signal s = {0};
	struct sig_frame frame;

	(void)userdata;
	s.entered = sig_entered(plugin.sig, guest_stack_pointer(TRACED_VCPU), &frame);
	if (s.entered) {
		s.rsp = frame.rsp;
		s.ip = frame.ip;
		s.fault = frame.fault;
	}
	return s;
}

static void service(void *userdata, uint64_t ip)
{
	(void)userdata;
	machine_service(&plugin.machine, ip);
}

static void on_jump(void *userdata)
{
	(void)userdata;
	atomic_fetch_add(&plugin.machine.head->decode_failures, 1);
}

/* The first block of all runs on CPU 0. */
static void begin(void)
{
	plugin.traced = TRACED_VCPU;
	environment_restore(guest_stack_pointer(TRACED_VCPU));
	disguise_begin(plugin.comm);
	machine_begin(&plugin.machine, plugin.comm);
	machine_start_helper(&plugin.machine);
}

/* What no traced block comes to: the very first one, and all that are not traced. */
static bool on_other_block(void)
{
	if (plugin.begun)
		return false;
	plugin.begun = true;
	begin();
	return true;
}

static void on_block(unsigned int vcpu, void *userdata)
{
	if (__builtin_expect(vcpu != plugin.traced, 0) && !on_other_block())
		return;
	walk_step(&plugin.walk, userdata, false);
}

static void on_block_with_truth(unsigned int vcpu, void *userdata)
{
	if (__builtin_expect(vcpu != plugin.traced, 0) && !on_other_block())
		return;
	walk_step(&plugin.walk, userdata, true);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct code_block in = {.n = qemu_plugin_tb_n_insns(tb)};
	struct qemu_plugin_insn *insn = NULL;
	struct block *b;
	bool known;

	(void)id;
	if (plugin.child || in.n == 0)
		return;
	if (in.n > CODE_MAX_BLOCK)
		in.n = CODE_MAX_BLOCK;
	in.ip = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	for (size_t i = 0; i < in.n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		in.length[i] = (uint8_t)qemu_plugin_insn_size(insn);
	}
	in.last_bytes = qemu_plugin_insn_data(insn);
	b = code_add(plugin.code, &in, &known);
	if (b == NULL || !known)
		atomic_fetch_add(&plugin.machine.head->decode_failures, 1);
	if (b == NULL)
		return;
	qemu_plugin_register_vcpu_tb_exec_cb(
		tb, plugin.machine.truth != NULL ? on_block_with_truth : on_block,
		QEMU_PLUGIN_CB_NO_REGS, b);
}

static void on_syscall(qemu_plugin_id_t id, unsigned int vcpu, int64_t num, uint64_t a1,
		       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
		       uint64_t a8)
{
	struct call *c = &current_call;

	(void)id;
	(void)a7;
	(void)a8;
	if (plugin.child)
		return;
	*c = (struct call){.number = num, .args = {a1, a2, a3, a4, a5, a6}};
	calls_enter(c);
	if (calls_is_exec(c))
		disguise_native(true);
	if (vcpu != plugin.traced)
		return calls_enter_untraced(c, &plugin.machine);
	walk_leave(&plugin.walk);
	calls_enter_traced(c, &plugin.machine);
	plugin.ended = calls_is_end(c);
	machine_enter_kernel(&plugin.machine);
	plugin.in_call = true;
}

static void on_syscall_ret(qemu_plugin_id_t id, unsigned int vcpu, int64_t num, int64_t ret)
{
	const struct call *c = &current_call;

	(void)id;
	if (plugin.child) {
		if (!plugin.child_mended)
			guest_forked(vcpu);
		plugin.child_mended = true;
		return;
	}
	if (c->number != num)
		return;
	calls_leave_any(c, ret, plugin.sig);
	if (calls_is_exec(c))
		disguise_native(false);
	if (vcpu != plugin.traced)
		return calls_leave_untraced(c, ret, &plugin.machine);
	if (!plugin.in_call)
		return;
	plugin.in_call = false;
	machine_leave_kernel(&plugin.machine);
	calls_leave_traced(c, ret, &plugin.machine);
	if (num == 15) /* rt_sigreturn */
		walk_frame_gone(&plugin.walk);
}

static void on_vcpu_init(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	guest_cpu_began(vcpu);
}

/* QEMU gives the numbers of CPUs that are gone to new threads. */
static void on_vcpu_exit(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	guest_cpu_ended(vcpu);
	if (vcpu == plugin.traced)
		plugin.traced = NO_VCPU;
}

static void on_fork_child(void)
{
	plugin.child = true;
	plugin.traced = NO_VCPU;
	disguise_native(true);
}

static void on_exit_process(qemu_plugin_id_t id, void *userdata)
{
	(void)id;
	(void)userdata;
	/* Other threads may still be in callbacks, so nothing is freed but what only the traced one
	 * uses, after it made its last system call. */
	if (!plugin.child && plugin.ended)
		machine_close_truth(&plugin.machine);
}

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "ptsnap-emupmu: %s: %s\n", what, why);
	return -1;
}

static const char *argument(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
			return argv[i] + length + 1;
	return NULL;
}

static int set_up(int argc, char **argv)
{
	const char *ring = argument(argc, argv, "ring");
	const char *comm = argument(argc, argv, "comm");
	const char *truth = argument(argc, argv, "truth");
	int r;

	if (ring == NULL || comm == NULL)
		return refuse("ring=PATH,comm=NAME", "missing argument");
	snprintf(plugin.comm, sizeof(plugin.comm), "%s", comm);
	r = machine_open(&plugin.machine, ring);
	if (r < 0)
		return refuse(ring, strerror(-r));
	r = truth == NULL ? 0 : truth_open(truth, &plugin.machine.truth);
	if (r < 0)
		return refuse(truth, strerror(-r));
	plugin.code = code_new();
	plugin.sig = plugin.code != NULL ? sig_new(plugin.code) : NULL;
	if (plugin.sig == NULL)
		return refuse("start", strerror(ENOMEM));
	walk_init(&plugin.walk, &plugin.machine.pmu, plugin.machine.truth);
	plugin.walk.look = look;
	plugin.walk.service = service;
	plugin.walk.on_jump = on_jump;
	plugin.traced = NO_VCPU;
	return 0;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *missing = guest_bind();

	if (missing != NULL)
		return refuse("this QEMU does not export a symbol that is needed", missing);
	if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0)
		return refuse(info->target_name, "only qemu-x86_64 in user mode is supported");
	if (set_up(argc, argv) < 0)
		return -1;
	pthread_atfork(NULL, NULL, on_fork_child);
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
	qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
	qemu_plugin_register_atexit_cb(id, on_exit_process, NULL);
	return 0;
}
