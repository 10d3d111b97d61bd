/*
 * The software PMU as a TCG plugin: the callbacks of QEMU's user-mode emulator. Arguments of the
 * plugin: ring=PATH (of the shared memory), comm=NAME, truth=DIRECTORY.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/emu/machine/emustart.h"
#include "capture/emu/plugin/calls.h"
#include "capture/emu/plugin/code.h"
#include "capture/emu/plugin/exec.h"
#include "capture/emu/plugin/guest.h"
#include "capture/emu/plugin/qemu.h"
#include "capture/emu/plugin/qemu_api.h"
#include "capture/emu/plugin/task.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* The plugin's only global state. QEMU's callbacks have no argument for it. */
static struct {
	struct task *tasks[GUEST_MAX_VCPUS]; /* by QEMU's CPU number; NULL: untraced */
	uint32_t
		creators[GUEST_MAX_VCPUS]; /* index of the creating thread in the machine's table */
	struct machine machine;
	struct task_group group;
	struct code *code;
	struct exec exec;
	bool begun;	       /* the first thread has begun */
	bool child;	       /* a forked child before its first return from a system call */
	bool untraced;	       /* the whole process is untraced */
	_Atomic bool new_pids; /* children will be in another pid namespace */
} plugin;

/* The calling thread's task. NULL: untraced. */
static __thread struct task *self;

static struct emuring_head *head(void)
{
	return plugin.machine.head;
}

static inline struct task *task_of(unsigned int vcpu)
{
	return __builtin_expect(vcpu < GUEST_MAX_VCPUS, 1) ? plugin.tasks[vcpu] : NULL;
}

static void on_block(unsigned int vcpu, void *userdata)
{
	struct task *t = task_of(vcpu);

	if (__builtin_expect(t != NULL, 1))
		retire_before(&t->retire, userdata, false);
}

static void on_block_with_truth(unsigned int vcpu, void *userdata)
{
	struct task *t = task_of(vcpu);

	if (__builtin_expect(t != NULL, 1))
		retire_before(&t->retire, userdata, true);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct code_block in = {.n = qemu_plugin_tb_n_insns(tb)};
	struct qemu_plugin_insn *insn = NULL;
	struct block *b;
	bool known;

	(void)id;
	if (plugin.untraced || in.n == 0)
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
	if (!b || !known)
		atomic_fetch_add(&head()->decode_failures, 1);
	if (!b)
		return;
	qemu_plugin_register_vcpu_tb_exec_cb(
		tb, plugin.group.truth ? on_block_with_truth : on_block, QEMU_PLUGIN_CB_NO_REGS, b);
}

/* The thread continues without a virtual CPU, and its slot in the machine becomes free. */
static void leave_machine(struct task *t)
{
	plugin.tasks[t->vcpu] = NULL;
	self = NULL;
	task_free(t);
}

static void on_yield(void *cpu, void *data)
{
	(void)cpu;
	(void)data;
	if (self && !task_yield(self, guest_instruction_pointer(self->vcpu)))
		leave_machine(self);
}

static void run_task(struct task *t)
{
	self = t;
	plugin.tasks[t->vcpu] = t;
	task_wait_announced(t);
	if (!task_run(t))
		leave_machine(t);
}

static void on_cpu_begins(void *cpu, void *data)
{
	unsigned int vcpu = (unsigned int)(uintptr_t)data;
	bool first = !plugin.begun;
	struct task *t;

	(void)cpu;
	if (first) {
		plugin.begun = true;
		exec_begin(plugin.group.comm, guest_stack_pointer(vcpu));
	}
	if (plugin.untraced || self)
		return;
	t = task_new(&plugin.group, vcpu, plugin.creators[vcpu]);
	if (!t) {
		atomic_fetch_add(&head()->untraced_threads, 1);
		return;
	}
	run_task(t);
	if (first && self)
		task_begin_program(t);
}

/* A forked child gets a task of its own. */
static void begin_child(unsigned int vcpu)
{
	struct task *t;

	plugin.child = false;
	guest_forked(vcpu);
	t = plugin.untraced ? NULL : task_new(&plugin.group, vcpu, plugin.exec.parent);
	if (t) {
		run_task(t);
		return;
	}
	plugin.untraced = true;
	atomic_fetch_add(&head()->untraced_children, 1);
}

static void on_syscall(qemu_plugin_id_t id, unsigned int vcpu, int64_t num, uint64_t a1,
		       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
		       uint64_t a8)
{
	struct task *t = task_of(vcpu);

	(void)id;
	(void)a7;
	(void)a8;
	if (!t) {
		if (num == SYS_execve || num == SYS_execveat)
			exec_native(true);
		return;
	}
	t->call = (struct call){.number = num, .args = {a1, a2, a3, a4, a5, a6}};
	calls_enter(&t->call);
	retire_leave(&t->retire);
	if (calls_is_new_pid_namespace(&t->call))
		plugin.new_pids = true;
	if (calls_is_change_of_user(&t->call))
		follow_keep_ring(&plugin.exec.self);
	if (calls_is_end(&t->call)) {
		task_exit(t);
		if (num == SYS_exit_group || t->who.pid == t->who.tid)
			exec_tell_parent(&plugin.exec);
		leave_machine(t);
	} else if (calls_is_exec(&t->call)) {
		exec_enter(&plugin.exec, t);
	} else {
		task_enter_kernel(t);
	}
}

static void on_syscall_ret(qemu_plugin_id_t id, unsigned int vcpu, int64_t num, int64_t ret)
{
	struct task *t;

	(void)id;
	if (plugin.child)
		return begin_child(vcpu);
	t = task_of(vcpu);
	if (num == SYS_execve || num == SYS_execveat)
		exec_failed(&plugin.exec);
	if (!t || t->call.number != num || t->cpu)
		return;
	calls_leave_any(&t->call, ret, plugin.group.sig);
	if (!task_run(t))
		return leave_machine(t);
	calls_leave(t, ret);
	if (num == SYS_rt_sigreturn)
		retire_frame_gone(&t->retire);
	if (!calls_is_vfork(&t->call) || ret <= 0)
		return;
	task_enter_kernel(t);
	task_wait_vfork(t, (uint32_t)ret);
	if (!task_run(t))
		leave_machine(t);
}

/* QEMU calls this in the thread that creates the CPU's thread. */
static void on_vcpu_init(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	guest_cpu_began(vcpu);
	if (vcpu >= GUEST_MAX_VCPUS) {
		atomic_fetch_add(&head()->untraced_threads, 1);
		return;
	}
	plugin.creators[vcpu] = self ? self->index : EMURING_NO_TASK;
	guest_defer(vcpu, on_cpu_begins, (void *)(uintptr_t)vcpu);
}

/* QEMU reuses the numbers of CPUs that ended. */
static void on_vcpu_exit(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	guest_cpu_ended(vcpu);
}

/* Runs in the child at the end of fork(). QEMU is not ready yet for deferred work or a new task;
 * begin_child() does the rest. */
static void on_fork_child(void)
{
	plugin.child = true;
	plugin.exec.parent = self ? self->index : EMURING_NO_TASK;
	plugin.untraced = plugin.untraced || !self || plugin.new_pids;
	memset(plugin.tasks, 0, sizeof(plugin.tasks));
	task_forget(self);
	self = NULL;
	code_forked(plugin.code);
	sig_forked(plugin.group.sig);
}

static int refuse(const char *what, const char *why)
{
	fprintf(stderr, "ptsnap-emupmu: %s: %s\n", what, why);
	return -1;
}

static int set_up(int argc, char **argv)
{
	const char *ring = qemu_argument(argc, argv, "ring");
	const char *comm = qemu_argument(argc, argv, "comm");
	const char *truth = qemu_argument(argc, argv, "truth");
	int r;

	if (!ring || !comm)
		return refuse("ring=PATH,comm=NAME", "missing argument");
	emustart_unescape(comm, plugin.group.comm, sizeof(plugin.group.comm));
	r = machine_open(&plugin.machine, ring);
	if (r < 0)
		return refuse(ring, strerror(-r));
	plugin.code = code_new();
	plugin.group.sig = plugin.code ? sig_new(plugin.code) : NULL;
	plugin.group.truth = truth ? strdup(truth) : NULL;
	if (!plugin.group.sig || (truth && !plugin.group.truth))
		return refuse("start", strerror(ENOMEM));
	plugin.group.machine = &plugin.machine;
	plugin.exec.ring = &plugin.machine.ring;
	plugin.group.yield = on_yield;
	plugin.exec.parent = EMURING_NO_TASK;
	r = follow_self_read(&plugin.exec.self);
	return r < 0 ? refuse("exec", strerror(-r)) : 0;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *missing = guest_bind();

	if (missing)
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
	return 0;
}
