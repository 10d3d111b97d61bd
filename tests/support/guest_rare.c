/*
 * Enters the kernel in all the ways that programs rarely use, and runs 32-bit code: for a machine
 * that traces itself. Prints one line; status 0 if everything happened.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
#define ROUNDS	  200

static volatile sig_atomic_t traps, ills, fpes, segvs, alarms;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	traps++;
}

/* Skips the instruction, which has two bytes. */
static void on_skip(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)info;
	u->uc_mcontext.gregs[REG_RIP] += 2;
	if (signal == SIGILL)
		ills++;
	else
		fpes++;
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	/* A fault that mprotect() cannot mend comes again and again. */
	if (segvs++ > 100 * ROUNDS)
		_exit(2);
	mprotect((void *)((uintptr_t)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigaction(signal, &action, NULL);
}

static void single_steps(void)
{
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq; nop; incl %%eax; decl %%eax;"
			 "pushfq; andq %1, (%%rsp); popfq"
			 :
			 : "i"(TRAP_FLAG), "i"(~TRAP_FLAG)
			 : "rax", "memory", "cc");
}

static void exceptions(void)
{
	__asm__ volatile("int3" ::: "memory");
	__asm__ volatile("ud2" ::: "memory");
	/* div %ecx has two bytes. */
	__asm__ volatile("xorl %%edx, %%edx; xorl %%ecx, %%ecx; movl $1, %%eax; divl %%ecx" ::
				 : "eax", "ecx", "edx", "cc");
	single_steps();
}

/* Page faults in the middle of a repeated instruction, and writes to protected pages. */
static void faults(void)
{
	const size_t size = 16 * 4096;
	char *from = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *d = to, *s = from;
	size_t n = size;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)::"memory");
	for (size_t i = 0; i < size; i += 4096)
		to[i] = 1;
	munmap(from, size);
	munmap(to, size);
}

static void atomics(void)
{
	static _Alignas(16) unsigned __int128 v;

	for (int i = 0; i < 100; i++)
		__asm__ volatile("lock cmpxchg16b %0" : "+m"(v)::"rax", "rbx", "rcx", "rdx", "cc");
}

/* 32-bit code at a low address, with a system call and conditional branches. */
static int compat(void)
{
	static const uint8_t code[] = {
		0x31, 0xdb,				  /* xor %ebx, %ebx */
		0xb9, 0x64, 0x00, 0x00, 0x00,		  /* mov $100, %ecx */
		0xf6, 0xc1, 0x03,			  /* 1: test $3, %cl */
		0x75, 0x01,				  /* jne 2f */
		0x43,					  /* inc %ebx */
		0xe8, 0x17, 0x00, 0x00, 0x00,		  /* 2: call 4f */
		0x49,					  /* dec %ecx */
		0x75, 0xf2,				  /* jne 1b */
		0xb8, 0x14, 0x00, 0x00, 0x00,		  /* mov $20, %eax: getpid */
		0xcd, 0x80,				  /* int $0x80 */
		0xea, 0x00, 0x00, 0x00, 0x00, 0x33, 0x00, /* ljmp $0x33, 64-bit code */
		0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, /* 4: ret */
		0x48, 0xcb,				  /* 64-bit: lretq */
	};
	uint8_t *low = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT | MAP_FIXED, -1, 0);
	uint32_t back = 0x10000000 + sizeof(code) - 2, result = 0, pid = 0;

	if (low == MAP_FAILED)
		return 0;
	memcpy(low, code, sizeof(code));
	memcpy(low + 29, &back, 4);
	/* The stack of 32-bit code must lie low, too. */
	__asm__ volatile("movq %%rsp, %%r12; movq %3, %%rsp;"
			 "leaq 1f(%%rip), %%rax; pushq $0x33; pushq %%rax;"
			 "pushq $0x23; pushq %2; lretq;"
			 "1: movq %%r12, %%rsp"
			 : "=&b"(result), "=&a"(pid)
			 : "r"((uint64_t)0x10000000), "r"((uint64_t)0x10000000 + 8192)
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
	munmap(low, 8192);
	return result == 25 && pid == (uint32_t)getpid();
}

static void *spin(void *unused)
{
	volatile uint64_t n = 0;

	while (n < 3000000)
		n++;
	return unused;
}

/* Signals at a high rate, while several threads run. */
static void interruptions(void)
{
	const struct itimerval fast = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	pthread_t threads[3];

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &fast, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, spin, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &off, NULL);
}

/* A child that another process traces: system calls and single steps. */
static int traced(void)
{
	pid_t child = fork();
	int status = 0, steps = 0;

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit((int)syscall(SYS_getppid) == 0);
	}
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status) && steps < 300) {
		ptrace(steps % 3 ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, child, NULL, NULL);
		waitpid(child, &status, 0);
		steps++;
	}
	if (!WIFEXITED(status)) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	return steps > 3;
}

/* Copies on write after a fork. */
static void children(void)
{
	static char pages[64 * 4096];

	for (int i = 0; i < 3; i++) {
		pid_t child = i == 1 ? vfork() : fork();

		if (child == 0 && i != 1)
			for (size_t k = 0; k < sizeof(pages); k += 4096)
				pages[k]++;
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

int main(void)
{
	static char stack[65536];
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	int good = 1;

	sigaltstack(&alternate, NULL);
	handle(SIGTRAP, on_trap);
	handle(SIGILL, on_skip);
	handle(SIGFPE, on_skip);
	handle(SIGSEGV, on_segv);
	for (int i = 0; i < ROUNDS; i++) {
		exceptions();
		faults();
		atomics();
		if (i % 10 == 0)
			good &= compat() && traced();
		if (i % 50 == 0) {
			children();
			interruptions();
		}
	}
	printf("traps %d, ud2 %d, divisions %d, faults %d, alarms %d, 32-bit code and ptrace %s\n",
	       (int)traps, (int)ills, (int)fpes, (int)segvs, (int)alarms, good ? "yes" : "no");
	return good && traps > ROUNDS && ills == ROUNDS && fpes == ROUNDS && segvs > 0 ? 0 : 1;
}
