/*
 * Signal frames, in the layout of arch/x86/include/asm/sigframe.h (struct rt_sigframe, x86-64):
 * pretcode, ucontext, siginfo.
 */
#include "capture/emu/plugin/sig.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture/emu/plugin/guest.h"

#define MAX_KNOWN 256u

#define FRAME_RSP   168
#define FRAME_RIP   176
#define FRAME_SIGNO 312
#define FRAME_CODE  320
#define FRAME_SIZE  324

struct set {
	uint64_t values[MAX_KNOWN];
	_Atomic uint32_t n;
};

struct sig {
	struct code *code;
	pthread_mutex_t lock; /* writers take it; readers need no lock */
	struct set handlers, restorers;
};

struct sig *sig_new(struct code *code)
{
	struct sig *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->code = code;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void sig_forked(struct sig *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

/* A writer stores a value before it increments n, so that a reader needs no lock. */
static bool has(struct set *set, uint64_t value)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->values[i] == value)
			return true;
	return false;
}

static void add(struct set *set, uint64_t value)
{
	if (has(set, value) || set->n >= MAX_KNOWN)
		return;
	set->values[set->n] = value;
	set->n++;
}

void sig_add(struct sig *s, uint64_t handler, uint64_t restorer)
{
	if (handler <= 1)
		return;
	pthread_mutex_lock(&s->lock);
	add(&s->handlers, handler);
	add(&s->restorers, restorer);
	pthread_mutex_unlock(&s->lock);
	code_add_handler(s->code, handler);
}

static bool is_fault(int32_t signo, int32_t code)
{
	/* SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV. A code above 0: the CPU, not kill(2). */
	static const uint32_t faults = 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 11;

	return signo > 0 && signo < 32 && code > 0 && (faults >> signo & 1) != 0;
}

/* Reads the frame at RSP. *RET_BELOW: the stack pointer of the interrupted code. */
static bool read_frame(struct sig *s, uint64_t rsp, struct sig_frame *ret, uint64_t *ret_below)
{
	uint8_t bytes[FRAME_SIZE];
	uint64_t restorer;
	int32_t signo, code;

	if (!guest_read(rsp, &restorer, sizeof(restorer)) || !has(&s->restorers, restorer) ||
	    !guest_read(rsp, bytes, sizeof(bytes)))
		return false;
	__builtin_memcpy(&ret->ip, bytes + FRAME_RIP, 8);
	__builtin_memcpy(ret_below, bytes + FRAME_RSP, 8);
	__builtin_memcpy(&signo, bytes + FRAME_SIGNO, 4);
	__builtin_memcpy(&code, bytes + FRAME_CODE, 4);
	ret->rsp = rsp;
	ret->fault = is_fault(signo, code);
	return true;
}

bool sig_entered(struct sig *s, uint64_t rsp, struct sig_frame *ret)
{
	struct sig_frame below;
	uint64_t below_rsp;

	if (!read_frame(s, rsp, ret, &below_rsp))
		return false;
	/* Several signals were delivered at once: the frame below belongs to a handler that has not
	 * executed any instruction yet. */
	for (int i = 0; i < 64 && has(&s->handlers, ret->ip); i++) {
		uint64_t next_rsp;

		if (!read_frame(s, below_rsp, &below, &next_rsp))
			break;
		ret->ip = below.ip;
		ret->fault = below.fault;
		below_rsp = next_rsp;
	}
	return true;
}
