/*
 * Finds the call that sent something and waits in vain for the answer.
 *
 * A server that waits for its next request sleeps in the same system calls. What differs is the
 * order: who asks sends first, who serves receives first. So the last branches must show all of the
 * call, from its begin to the wait, with a system call that sends in front of the only one that
 * waits. Waits for several things at once (poll, epoll_wait) are those of event loops, which write
 * out the last answer and then wait for the next request: they say nothing.
 */
#include <string.h>

#include "decoder/code/item.h"
#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define STUCK_NS    50000000u /* a call that is open this long */
#define STUCK_TIMES 10u	      /* and so many times as long as any that ended */
#define STUCK_CALLS 100u      /* so many calls that ended have a usual duration */
#define WAIT_PART   2u	      /* the wait is one of so many parts of it, or more */

#define SYSCALL_SIZE 2u

enum { CALL_READ = 0, CALL_WRITE = 1, CALL_READV = 19, CALL_WRITEV = 20 };
enum { CALL_SENDTO = 44, CALL_RECVFROM = 45, CALL_SENDMSG = 46, CALL_RECVMSG = 47 };
enum { CALL_RECVMMSG = 299, CALL_SENDMMSG = 307 };

/* The call that asks, as one finds it looking back from the wait. */
struct asking {
	size_t within; /* so many calls that have returned lie around the place */
	size_t left;   /* so many calls that have not returned lie behind it */
	bool found;    /* it sent; */
	size_t level;  /* so many calls that have not returned lie within it */
	uint64_t sent; /* when it sent at the latest, TSC */
	uint64_t from; /* where it was called */
};

static bool receives(uint64_t call)
{
	return call == CALL_READ || call == CALL_READV || call == CALL_RECVFROM ||
	       call == CALL_RECVMSG || call == CALL_RECVMMSG;
}

static bool sends(uint64_t call)
{
	return call == CALL_WRITE || call == CALL_WRITEV || call == CALL_SENDTO ||
	       call == CALL_SENDMSG || call == CALL_SENDMMSG;
}

/* Whether a thread that called CALL may have slept in it, waiting for others. */
static bool may_wait(uint64_t call)
{
	/* poll, select, pause, nanosleep, accept, wait4, rt_sigtimedwait, rt_sigsuspend, futex,
	 * clock_nanosleep, epoll_wait, waitid, pselect6, ppoll, epoll_pwait, accept4,
	 * io_uring_enter, epoll_pwait2, futex_waitv */
	static const uint16_t calls[] = {7,   23,  34,	35,  43,  61,  128, 130, 202, 230,
					 232, 247, 270, 271, 281, 288, 426, 441, 449};

	if (call == REPORT_NO_CALL || receives(call))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (call == calls[i])
			return true;
	return false;
}

/* The branch that lies BACK branches before the newest one, which is number 0. */
static const struct tally_branch *branch_at(const struct tally_counters *c, uint64_t back)
{
	return &c->last[(c->n_last - 1 - back) % REPORT_LAST_BRANCHES];
}

/* Whether execution went on behind branch B, which left user code, as if there had been none. NEXT
 * is the branch behind it. */
static bool came_back(const struct tally_branch *b, const struct tally_branch *next)
{
	return next->kind == FLOW_ENABLE && next->context == b->context &&
	       next->to == b->from + (b->kind == FLOW_SYSCALL ? SYSCALL_SIZE : 0);
}

/* Looks back over the system call that lies BACK branches before the newest. False: it may have
 * waited, or execution went on elsewhere. */
static bool take_system_call(const struct report *r, const struct tally_counters *c, uint64_t back,
			     struct asking *a)
{
	const struct tally_branch *b = branch_at(c, back);
	const uint64_t call = report_call_at(r, c, back);

	if (may_wait(call) || !came_back(b, branch_at(c, back - 1)))
		return false;
	if (!a->found && sends(call)) {
		a->found = true;
		a->level = a->left;
		a->sent = b->tsc_hi;
	}
	return true;
}

/* Looks back over the call at B. True: the call that asks began with it. */
static bool take_call(const struct tally_branch *b, struct asking *a)
{
	a->from = b->from;
	if (a->within > 0) {
		a->within--;
		return false;
	}
	/* The call that asks is the innermost one that has not returned. */
	if (a->found)
		return true;
	a->left++;
	return false;
}

/* Looks back from the wait that is the newest branch to the innermost call that sent something
 * before. False: there is none, or it waited before, or the last branches do not show all of it. */
static bool find_asking(const struct report *r, const struct tally_counters *c, struct asking *ret)
{
	const uint64_t n = MIN_OF(c->n_last, (uint64_t)REPORT_LAST_BRANCHES);
	bool known = true;

	*ret = (struct asking){0};
	for (uint64_t i = 1; i < n && known; i++) {
		const struct tally_branch *b = branch_at(c, i);

		switch (b->kind) {
		case FLOW_RET: ret->within++; break;
		case FLOW_CALL:
		case FLOW_CALL_IND:
			if (take_call(b, ret))
				return true;
			break;
		case FLOW_SYSCALL: known = take_system_call(r, c, i, ret); break;
		case FLOW_DISABLE: known = came_back(b, branch_at(c, i - 1)); break;
		case FLOW_COND:
		case FLOW_JUMP:
		case FLOW_JUMP_IND:
		case FLOW_ENABLE: break;
		default: known = false;
		}
	}
	return false;
}

/* The C library writes out what a program printed before it waits for the program's next input, and
 * the C++ library does so, too. */
static bool is_of_library(const struct report *r, const struct tally_counters *c,
			  const struct function *f)
{
	const struct functions *all = &r->d->tally.functions;
	static const char *const prefixes[] = {"_ZSt",	"_ZNSt", "_ZNKSt", "_ZNSi",
					       "_ZNSs", "_ZNSo", "std::"};

	/* The running function makes the system call. */
	if (c->function >= all->n || f->image == all->list[c->function].image)
		return true;
	for (size_t i = 0; f->name && i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(f->name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Whether the instance of FUNCTION that began at TSC has lasted for very long. */
static bool is_stuck(const struct report *r, uint32_t function, uint64_t tsc, uint64_t waited,
		     struct report_suspect *ret)
{
	const struct function *f = &r->d->tally.functions.list[function];
	const struct durations *d = suspects_durations(r, function);
	const uint64_t since = tscmap_ns(&r->d->replay->clock, tsc);
	const uint64_t longest = d ? suspects_span(r, d->max) : 0, ended = f->calls - f->unended;

	if (since >= r->now || r->now - since < STUCK_NS ||
	    (r->now - since) / STUCK_TIMES < longest || waited < (r->now - since) / WAIT_PART ||
	    ended < STUCK_CALLS)
		return false;
	ret->function = function;
	ret->since = since;
	ret->calls = ended;
	ret->longest_ns = longest;
	return true;
}

/* The instance that ASKING means. Of several that jumped to one another it is the one that ran when
 * the thread sent. 0: it is not known. */
static uint32_t find_instance(const struct tally_counters *c, const struct asking *asking,
			      uint64_t *ret_begin)
{
	uint32_t function = c->function, found = 0;
	struct calls_begin begin = c->begin;
	size_t level = 0;

	for (size_t i = 0; i < calls_depth(&c->calls); i++) {
		const struct calls_frame *frame = calls_at(&c->calls, i);

		if (level == asking->level && found == 0 && function != TALLY_NO_FUNCTION &&
		    begin.tsc != 0 && begin.tsc <= asking->sent) {
			found = function;
			*ret_begin = begin.tsc;
		}
		if (frame->signal)
			return 0;
		if (frame->from != CALLS_JUMP && level++ == asking->level)
			return frame->from == asking->from ? found : 0;
		function = frame->function;
		begin = frame->begin;
	}
	return 0;
}

int suspects_stuck(struct report *r, const struct report_state *state,
		   const struct tally_counters *c, uint64_t call)
{
	struct report_suspect s = {.kind = SUSPECT_STUCK_CALL,
				   .thread = state->thread,
				   .cpu = state->cpu,
				   .context = c->context,
				   .count = call};
	struct asking asking;
	uint32_t function;
	uint64_t begin = 0;

	if (state->kind != REPORT_STATE_BLOCKED || !state->certain || state->left == 0 ||
	    state->left >= r->now || !receives(call) || !find_asking(r, c, &asking))
		return 0;
	function = find_instance(c, &asking, &begin);
	if (function == 0 || is_of_library(r, c, &r->d->tally.functions.list[function]) ||
	    !is_stuck(r, function, begin, r->now - state->left, &s))
		return 0;
	return suspects_add(r, &s);
}
