/*
 * A program for the emulated PMU with every kind of control flow: signals (interrupting, nested, on
 * another stack, from faults, left by siglongjmp), setjmp/longjmp, swapcontext, recursion deeper
 * than the hardware's return stack, calls of the next instruction, returns without a matching call,
 * repeated string instructions, self-modifying code. Prints a sum that is the same on every
 * machine. guest_signals [ROUNDS]
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile uint64_t sum;
static volatile sig_atomic_t ticks;
static sigjmp_buf again;
static volatile int never = -1;
static uint8_t *volatile page;
static ucontext_t context_main, context_a, context_b;

static __attribute__((noinline)) uint64_t recurse(unsigned int depth)
{
	return depth == 0 ? 1 : recurse(depth - 1) * 3 + depth;
}

static void on_tick(int signo)
{
	(void)signo;
	ticks++;
	recurse(10);
}

static void on_usr1(int signo)
{
	sum += 5;
	if (signo == SIGUSR1)
		raise(SIGUSR2);
	sum += recurse(70) & 1;
}

static void on_fault_mend(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	mprotect((void *)((uintptr_t)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
	sum += 7;
}

static void on_fault_jump(int signo)
{
	(void)signo;
	sum += 11;
	siglongjmp(again, 1);
}

static void on_skip(int signo, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const uint8_t *ip = (const uint8_t *)uc->uc_mcontext.gregs[REG_RIP];

	(void)info;
	sum += (unsigned int)signo;
	/* UD2 is a fault: IP is at the instruction. INT3 is a trap: IP is already behind. */
	if (ip[0] == 0x0f && ip[1] == 0x0b)
		uc->uc_mcontext.gregs[REG_RIP] += 2;
}

static void handle(int signo, void (*plain)(int), void (*full)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_flags = flags | (full != NULL ? SA_SIGINFO : 0)};

	if (full != NULL)
		action.sa_sigaction = full;
	else
		action.sa_handler = plain;
	sigemptyset(&action.sa_mask);
	sigaction(signo, &action, NULL);
}

static void test_signals(void)
{
	handle(SIGUSR1, on_usr1, NULL, SA_ONSTACK);
	handle(SIGUSR2, on_usr1, NULL, 0);
	raise(SIGUSR1);
	on_usr1(SIGUSR2); /* call the handler as an ordinary function */
	/* Raise both at once: two signal frames exist before either handler begins. */
	sigset_t both, old;
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	sigprocmask(SIG_BLOCK, &both, &old);
	raise(SIGUSR1);
	raise(SIGUSR2);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void test_faults(void)
{
	uint8_t *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page = p;
	handle(SIGSEGV, NULL, on_fault_mend, SA_NODEFER);
	for (int i = 0; i < 3; i++) {
		mprotect(p, 4096, PROT_NONE);
		page[i] = (uint8_t)i; /* faults; the handler maps the page and the store repeats */
		sum += page[i];
	}
	mprotect(p, 4096, PROT_NONE);
	memset((void *)page, 1, 4096);
	mprotect(p, 4096, PROT_NONE);
	__asm__ volatile("rep stosb" : : "D"(page), "c"(100L), "a"(3) : "memory");
	handle(SIGSEGV, on_fault_jump, NULL, SA_NODEFER);
	mprotect(p, 4096, PROT_NONE);
	for (volatile int i = 0; i < 3; i++)
		if (sigsetjmp(again, 1) == 0)
			page[i] = 1;
	if (sigsetjmp(again, 1) == 0)
		((void (*)(void))(uintptr_t)p)(); /* a call of an unmapped address */
	if (sigsetjmp(again, 1) == 0)
		((void (*)(void))0)();
	munmap(p, 4096);
	handle(SIGILL, NULL, on_skip, 0);
	handle(SIGTRAP, NULL, on_skip, 0);
	__asm__ volatile("ud2");
	__asm__ volatile("int3");
	handle(SIGFPE, on_fault_jump, NULL, SA_NODEFER);
	volatile int zero = 0;
	if (sigsetjmp(again, 1) == 0)
		sum += (uint64_t)(1 / zero);
}

/* Signals arrive anywhere: in a loop of one block, in a repeated instruction, after a return. */
static void test_ticks(int wanted)
{
	static uint8_t from[65536], to[65536];
	struct itimerval every = {{0, 700}, {0, 700}}, none = {0};
	int begin = ticks;

	handle(SIGALRM, on_tick, NULL, SA_RESTART);
	setitimer(ITIMER_REAL, &every, NULL);
	while (ticks - begin < wanted) {
		for (volatile int i = 0; i < 3000; i++)
			;
		__asm__ volatile("rep movsb" : : "S"(from), "D"(to), "c"(sizeof(to)) : "memory");
		recurse(90);
		__asm__ volatile("mov $1000, %%ecx\n1: dec %%ecx\n jnz 1b" : : : "ecx");
	}
	setitimer(ITIMER_REAL, &none, NULL);
}

static void walk(int n)
{
	for (int i = 0; i < 20; i++) {
		sum += (uint64_t)n * recurse(3);
		swapcontext(n == 1 ? &context_a : &context_b, n == 1 ? &context_b : &context_a);
	}
}

static void test_contexts(void)
{
	static uint8_t stack_a[65536], stack_b[65536];

	getcontext(&context_a);
	context_a.uc_stack.ss_sp = stack_a;
	context_a.uc_stack.ss_size = sizeof(stack_a);
	context_a.uc_link = &context_main;
	makecontext(&context_a, (void (*)(void))walk, 1, 1);
	getcontext(&context_b);
	context_b.uc_stack.ss_sp = stack_b;
	context_b.uc_stack.ss_size = sizeof(stack_b);
	context_b.uc_link = &context_main;
	makecontext(&context_b, (void (*)(void))walk, 1, 2);
	swapcontext(&context_main, &context_a);
}

static __attribute__((noinline)) void down(jmp_buf where, int depth)
{
	if (depth == 0)
		longjmp(where, 1);
	if (depth != never)
		down(where, depth - 1);
	sum += 1;
}

static void test_jumps(void)
{
	jmp_buf where;

	for (volatile int i = 0; i < 100; i++)
		if (setjmp(where) == 0)
			down(where, i);
	/* Reads the IP, and returns to an address that no call pushed. */
	__asm__ volatile("call 1f\n1: pop %%rax\n"
			 "lea 2f(%%rip), %%rax\n push %%rax\n ret\n2:"
			 :
			 :
			 : "rax", "memory");
}

/* The block modifies itself: an instruction changes the mov $imm32, %eax behind it. */
static void test_self_change(void)
{
	static const uint8_t code[] = {
		0x89, 0x3d, 0x01, 0x00, 0x00, 0x00, /* mov %edi, 1(%rip) */
		0xb8, 0x00, 0x00, 0x00, 0x00,	    /* mov $0, %eax */
		0xc3,				    /* ret */
	};
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(p, code, sizeof(code));
	for (uint32_t i = 0; i < 50; i++)
		sum += ((uint32_t(*)(uint32_t))(uintptr_t)p)(i);
	munmap(p, 4096);
}

int main(int argc, char **argv)
{
	static uint8_t other_stack[65536];
	int rounds = argc > 1 ? atoi(argv[1]) : 3;

	sigaltstack(&(stack_t){.ss_sp = other_stack, .ss_size = sizeof(other_stack)}, NULL);
	for (int i = 0; i < rounds; i++) {
		test_signals();
		test_faults();
		test_ticks(20);
		test_contexts();
		test_jumps();
		/* Code without a file cannot be decoded afterwards, so this runs last, and only on
		 * request. */
		if (argc > 2)
			test_self_change();
		sum += recurse(300) & 0xff;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
