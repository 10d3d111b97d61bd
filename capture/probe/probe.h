/*
 * Waits in the kernel for one condition, and reports each time the condition is met.
 *
 * A probe is BPF programs (*.bpf.c) with the filters and limits of one specification in their
 * read-only data. The kernel evaluates the specification at each event, and an event that does not
 * match never leaves the kernel.
 *
 * check.c checks a specification, probe.c loads and attaches the programs and reads the events,
 * attach.c knows which programs make which kind, place.c finds a symbol or a USDT probe in an ELF
 * file, filter.c reads the format of a tracepoint and a filter over its fields. Each *.bpf.c has
 * the programs of related kinds. none.c stands in where the build has no libbpf.
 *
 * Decisions that govern the room:
 * - Everything that a probe holds is a descriptor: links, programs, maps. Closing them, or the end
 *   of the process by any signal, detaches everything. Nothing is pinned.
 * - A probe is armed as a whole or not at all. The caller gets one message.
 * - The kernel's types are a few structures in kernel.bpf.h, which libbpf relocates to the running
 *   kernel (CO-RE): a build does not depend on the kernel of the machine that builds.
 * - Entry times of a thread are in task storage, which the kernel frees with the thread, or in
 *   maps of fixed size whose overflow is counted.
 * - ELF files are hostile. place.c reads them with pread() in pieces, checks every number, and
 *   has limits. libbpf gets a descriptor and an offset and never opens such a file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum probe_kind {
	/* A signal that will end its process: seen when the signal is generated, in the context of
	 * its sender (for a fault, the thread itself), or when it is dequeued if only then it is
	 * certain to end the process (it was blocked, or the process is traced by ptrace). Once a
	 * process. Signals that are caught or ignored, and those that stop a process, are no
	 * events. */
	PROBE_SIGNAL,
	/* The last thread of a process ends, and the process was not ended by a signal. */
	PROBE_EXIT,
	/* A process has executed a file. */
	PROBE_EXEC,
	/* A function is entered, or an instruction is about to execute. */
	PROBE_ENTRY,
	/* A function returns. */
	PROBE_RETURN,
	/* A function returns later than limit_ns after its entry, in the same thread. */
	PROBE_LATENCY,
	/* A thread reaches the second place later than limit_ns after the first. */
	PROBE_SPAN,
	/* The kernel's OOM killer has killed a process. A process that was ending anyway is none.
	 */
	PROBE_OOM,
	/* A system call returns later than limit_ns after its entry. 64-bit calls only. */
	PROBE_SYSCALL,
	/* A thread gets a CPU later than limit_ns after it was woken up. A thread that loses its
	 * CPU and stays runnable is not woken up. */
	PROBE_WAKEUP,
	/* A thread gets a CPU later than limit_ns after it lost one, for whatever reason. */
	PROBE_OFFCPU,
	/* A tracepoint of the kernel. */
	PROBE_TRACEPOINT,
	/* A static probe (USDT) of a program or library, at each of its places. */
	PROBE_USDT,
	_PROBE_KINDS
};

#define PROBE_COMM     16
#define PROBE_STACK    32
#define PROBE_SYSCALLS 512
#define PROBE_STRING   256 /* of any string of a specification, with its end */

/* Strings are the caller's and are not kept. Zero or NULL: no such filter, unless said otherwise.
 */
struct probe_spec {
	enum probe_kind kind;

	/* Filters on processes: a process must pass all that are given. For PROBE_SIGNAL and
	 * PROBE_OOM, the filters are about the process
	 * that ends. Process ids are those of the initial PID namespace. */
	pid_t pid;
	const char *comm; /* exactly; at most 15 bytes */
	bool has_uid;
	uid_t uid;	 /* the real one, in the initial user namespace */
	uint64_t cgroup; /* inode number of a directory of cgroup v2: that group and those below it
			  */
	const char *exe; /* the file that the process executes. The kernel compares device and inode
			    of the file that is there when the probe is armed. */

	/* PROBE_SIGNAL: bit N - 1 for signal N; 0: every signal. */
	uint64_t signals;
	/* PROBE_EXIT: lowest and highest status, 0 to 255. */
	uint8_t status_min, status_max;
	/* PROBE_EXEC: the file (as for exe); NULL: any. Other kinds on files: the ELF file. */
	const char *file;
	/* Kinds on files: SYMBOL or SYMBOL+OFFSET (decimal, or hexadecimal with 0x), the offset in
	 * bytes; for PROBE_USDT, PROVIDER:NAME. An offset that is not the begin of an instruction
	 * breaks the program: neither this library nor the kernel notices. */
	const char *symbol;
	const char *to; /* PROBE_SPAN: the second place, in the same file */
	/* PROBE_LATENCY, _SPAN, _SYSCALL, _WAKEUP, _OFFCPU: events longer than this. Not 0. */
	uint64_t limit_ns;
	/* PROBE_SYSCALL: bit N % 64 of word N / 64 for system call N; all 0: every call. */
	uint64_t syscalls[PROBE_SYSCALLS / 64];
	/* PROBE_TRACEPOINT: CATEGORY:NAME, and comparisons FIELD OP VALUE joined by "&&". OP is one
	 * of == != < <= > >= &, VALUE a number or, with == and !=, a "string" for an array of char.
	 */
	const char *tracepoint;
	const char *filter;
};

/* An event. What a kind does not have is 0. */
struct probe_event {
	enum probe_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC. The records of intel_pt have the perf clock: pairs of
			     both clocks convert (capture/ring/clock.h). */
	uint64_t duration_ns; /* of the kinds with a limit: TIME_NS is its end */
	uint32_t cpu;	      /* where the thread runs or ran last */
	pid_t pid, tid;	      /* of the process that the filters describe */
	pid_t by; /* PROBE_SIGNAL, PROBE_OOM: the process in whose context it was caused */
	uid_t uid;
	char comm[PROBE_COMM]; /* a stranger's bytes, with an end */
	/* The user's instruction: where the thread entered the kernel, or the place of the probe.
	 * 0: unknown, because the thread runs on another CPU, has left its memory (PROBE_EXIT), or
	 * has none. PROBE_RETURN, PROBE_LATENCY: where the function returns to. */
	uint64_t address;
	/* PROBE_SIGNAL: the signal. PROBE_EXIT: the status. PROBE_SYSCALL: the call's number.
	 * PROBE_RETURN, PROBE_LATENCY: the function's return value. PROBE_OFFCPU: the state of the
	 * thread when it lost the CPU (include/linux/sched.h); 0: it was preempted. */
	int64_t value;
	/* PROBE_SIGNAL: si_addr of a fault. PROBE_SYSCALL: the call's return value. */
	uint64_t data;
	/* Return addresses of user frames by frame pointers, the newest first. None where the
	 * event is not in the thread's own context. */
	uint32_t n_stack;
	uint64_t stack[PROBE_STACK];
};

typedef void (*probe_fn)(const struct probe_event *event, void *userdata);
struct probe;

/* Whether this build has libbpf. */
bool probe_built(void);

/* A word for the kind ("signal", "latency"); NULL if there is no such kind. */
const char *probe_kind_name(enum probe_kind kind);

/* Checks what can be checked without the kernel and without files. 0 or -EINVAL, with a sentence in
 * *ret_error, which the caller frees (NULL if memory is short). */
int probe_check(const struct probe_spec *spec, char **ret_error);

/*
 * Arms a probe. When the function returns 0, every later event is seen. Needs CAP_BPF and
 * CAP_PERFMON (or root); kinds on files also read access to the file; PROBE_TRACEPOINT also
 * tracefs.
 *
 * 0, or an error with a sentence in *ret_error, which the caller frees (NULL if memory is short);
 * then nothing is armed. -EINVAL: the specification; -ENOENT: no such file, symbol or tracepoint;
 * -ENOTUNIQ: several symbols of that name; -EBADMSG: the file is no ELF file for this machine or is
 * malformed; -EOPNOTSUPP: this build, or this kernel, cannot; -EPERM; another -errno of the kernel.
 */
int probe_arm(const struct probe_spec *spec, probe_fn fn, void *userdata, struct probe **ret,
	      char **ret_error);
/* Readable when events wait. Belongs to the probe. */
int probe_fd(const struct probe *p);
/* Calls fn for the events that wait, in this thread. How many, or -errno. */
int probe_dispatch(struct probe *p);
/* While a probe is off its programs stay attached and do nothing. A probe is on after probe_arm().
 * A probe does not time what began before the probe was turned on. */
void probe_set_on(struct probe *p, bool on);
/* Events that matched and were lost, because too many waited, plus beginnings that could not be
 * kept because too many threads were waiting. */
uint64_t probe_missed(const struct probe *p);
/* Whether the path of spec.file or spec.exe now leads to another file than the one that the probe
 * watches, or to none. */
bool probe_file_replaced(const struct probe *p);
/* Detaches. Events that still wait are dropped. NULL is fine. */
void probe_free(struct probe *p);
