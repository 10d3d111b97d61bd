/*
 * Says what code tells of the thread of a stretch, where time leaves a choice: whether the code of
 * a context fits the packets, and where it leads.
 */
#include <string.h>
#include <sys/mman.h>

#include "decoder/worker/replay/whose.h"
#include "proto/base.h"

#define SYSCALL_SIZE 2u

static enum fault fault_of(int found)
{
	switch (found) {
	case IMAGE_ANONYMOUS: return FAULT_ANONYMOUS;
	case IMAGE_MISSING: return FAULT_IMAGE_MISSING;
	case IMAGE_SHORT: return FAULT_IMAGE_SHORT;
	case IMAGE_MISMATCH: return FAULT_IMAGE_MISMATCH;
	case IMAGE_GONE: return FAULT_IMAGE_GONE;
	default: return FAULT_UNMAPPED;
	}
}

/* Another thread may have mapped the code while this one ran: before the packet in hand. */
static int find_late(const struct replay *r, const struct context *c, uint64_t ip,
		     struct image_code *ret)
{
	const struct replay_late *late = r->late;
	uint64_t tsc, time;

	if (!late)
		return IMAGE_UNMAPPED;
	tsc = late->flow ? flow_not_after(late->flow) : UINT64_MAX;
	time = tsc != UINT64_MAX ? tscmap_ns(late->clock, tsc) : MANIFEST_ABSENT;
	time = MIN_OF(time, late->until);
	if (!c->space || time <= c->time)
		return IMAGE_UNMAPPED;
	return image_find(r->images, c->space, time, ip, ret);
}

/* Whether the bytes of a file are those that ran where M (NULL: unknown) shows them. */
static enum code_change change_of_file(const struct replay *r, const struct image_source *source,
				       const struct space_mapping *m)
{
	bool shared = m && (m->flags & MAP_TYPE) == MAP_SHARED;

	if (m && (m->prot & PROT_WRITE))
		return shared ? CODE_FILE : CODE_MAPPING;
	if (source->unverified)
		return CODE_UNVERIFIED;
	/* Bundles of older recorders do not say when files changed. */
	if (source->vdso || source->unchanged == MANIFEST_ABSENT ||
	    source->unchanged <= MAX_OF(r->begin_ns, m ? m->begin : 0))
		return CODE_SAME;
	return CODE_FILE;
}

/* Code in memory was read at the trigger, after it had run: other code may have been there then,
 * unless the recorder knows that the memory was not changed since before. A dump's code is the
 * right one if it held all the time. */
static enum code_change change_of(const struct replay *r, const struct context *c,
				  const struct image_source *source, const struct image_code *code,
				  uint64_t ip)
{
	const struct space_mapping *m = c->space ? space_find(c->space, c->time, ip) : NULL;

	if (!source)
		return CODE_SAME;
	if (source->dump)
		return code->jit_since <= c->versions.first && c->versions.last < code->jit_until
			       ? CODE_SAME
			       : CODE_MEMORY;
	if (strncmp(source->path, "/memfd:", 7) == 0 ||
	    (source->memory && m && (m->flags & MAP_TYPE) == MAP_SHARED))
		return CODE_SHARED;
	if (!source->memory)
		return change_of_file(r, source, m);
	return c->since != 0 && source->unchanged <= c->since ? CODE_SAME : CODE_MEMORY;
}

int whose_code(const struct replay *r, uint32_t context, uint64_t ip, struct flow_code *ret)
{
	const struct image_source *source;
	struct image_code code;
	int found;

	/* Whichever thread it was, the kernel's code is not at hand. */
	if (scan_is_kernel(ip) && (context == 0 || context == CONTEXTS_THREAD_UNCERTAIN))
		return FAULT_UNMAPPED;
	switch (context) {
	case 0: return FAULT_NO_SPACE;
	case CONTEXTS_THREAD_UNCERTAIN: return FAULT_THREAD_UNCERTAIN;
	case CONTEXTS_IMAGE_UNCERTAIN: return FAULT_IMAGE_UNCERTAIN;
	case CONTEXTS_EXCLUDED: return FAULT_EXCLUDED;
	default: break;
	}
	found = replay_find(r, context, ip, &code);
	if (found == IMAGE_UNMAPPED)
		found = find_late(r, &r->contexts.list[context], ip, &code);
	if (found != 0)
		return fault_of(found);
	source = image_source(r->images, code.image);
	*ret = (struct flow_code){
		.bytes = code.bytes,
		.address = code.address,
		.size = code.size,
		.map_address = code.map_begin,
		.map_size = code.map_end - code.map_begin,
		.touched = code.touched,
		.changing = (uint8_t)change_of(r, &r->contexts.list[context], source, &code, ip),
	};
	return 0;
}

/* Faults that say: this is not the code that ran. */
static bool is_misfit(enum fault fault)
{
	switch (fault) {
	case FAULT_UNMAPPED:
	case FAULT_BAD_INSN:
	case FAULT_TNT_UNEXPECTED:
	case FAULT_TIP_UNEXPECTED:
	case FAULT_TIP_NO_IP:
	case FAULT_RET_EMPTY:
	case FAULT_RET_NOT_TAKEN:
	case FAULT_EVENT_UNREACHABLE:
	case FAULT_PACKET_UNEXPECTED:
	case FAULT_LOOP: return true;
	default: return false;
	}
}

/* Tries the code of CONTEXT on LOOK's packets, or returns the result of an earlier try. The code
 * may be mapped up to LATE (perf ns). NULL: too many contexts were tried. */
static const struct flow_trial *try(struct whose *w, struct whose_look *look, uint32_t context,
				    uint64_t late)
{
	const struct replay_late trial_late = {.until = late};
	struct flow_trial *result;
	size_t i;

	for (i = 0; i < look->n_trials; i++)
		if (look->trials[i].context == context)
			return &look->trials[i].result;
	if (i == WHOSE_TRIALS)
		return NULL;
	w->replay->late = &trial_late;
	result = &look->trials[i].result;
	if (flow_try(w->flow, &look->reader, look->seen.ip, context, result) < 0)
		w->error = -ENOMEM;
	w->replay->late = &w->late;
	/* Where packets were lost or the trace ends, a wrong end says nothing about the context. */
	if (look->seen.end == SCAN_END_UNKNOWN && result->fault == FAULT_PACKET_UNEXPECTED)
		result->fault = FAULT_NONE;
	look->trials[i].context = context;
	look->n_trials = i + 1;
	return result;
}

/* User code is left by system calls and other far transfers, or else asynchronously. A near branch
 * only leaves what is traced, and then its packet says where it goes (SDM volume 3, "Target IP
 * (TIP) Packet", TIP.PGD). */
static bool is_odd(const struct whose_look *look, const struct flow_trial *trial)
{
	return trial->whole && trial->fault == FAULT_NONE && look->seen.end == SCAN_END_BRANCH &&
	       look->seen.left == 0 && trial->kind != FLOW_SYSCALL && trial->kind != FLOW_FAR &&
	       trial->kind != FLOW_ASYNC;
}

static bool fits(struct whose *w, uint32_t context)
{
	struct whose_look *look = whose_look_at(w, 0);
	const struct flow_trial *trial;

	if (!look)
		return true;
	trial = try(w, look, context, MIN_OF(look->times.leave_hi, w->late.until));
	return trial && !is_misfit(trial->fault) && !is_odd(look, trial);
}

/* Contexts A and B both fit: whether the packets lead through the same code in both of them. */
static bool are_alike(struct whose *w, uint32_t a, uint32_t b)
{
	struct whose_look *look = whose_look_at(w, 0);
	const struct flow_trial *x, *y;

	if (!look)
		return true;
	x = try(w, look, a, MIN_OF(look->times.leave_hi, w->late.until));
	y = try(w, look, b, MIN_OF(look->times.leave_hi, w->late.until));
	return !x || !y || x->hash == y->hash;
}

/* The context at TIME, for a stretch that lies within [SINCE, UNTIL] (perf ns). Number 0: no space
 * is known. */
static uint32_t intern(struct whose *w, const struct timeline_thread *thread, uint64_t time,
		       uint64_t since, uint64_t until)
{
	const struct space *space = timeline_space(w->replay->timeline, thread->pid, time);
	uint32_t context = 0;

	if (space && replay_context(w->replay, space, time, since, until, &context) < 0)
		w->error = -ENOMEM;
	return context;
}

/* When the stretch of THREAD that begins now ends at the latest. Nobody looks ahead for that unless
 * a dump's code depends on it. */
static uint64_t end_of(struct whose *w, const struct timeline_thread *thread, uint64_t time)
{
	const struct space *space = timeline_space(w->replay->timeline, thread->pid, time);
	const struct whose_look *look;

	if (!space || !image_jitcode(w->replay->images, space))
		return UINT64_MAX;
	look = whose_look_at(w, 0);
	return look ? look->times.leave_hi : UINT64_MAX;
}

/* A fitting state between EARLIEST and LATEST, looked for by halving: few stretches have more than
 * one state between them, and the number of trials is limited. 0: none fits. */
static uint32_t state_between(struct whose *w, const struct timeline_thread *thread,
			      struct whose_time when, uint32_t earliest, uint32_t latest)
{
	const uint64_t since = when.lo, until = end_of(w, thread, when.hi);

	while (when.hi - when.lo > 1) {
		uint64_t middle = when.lo + (when.hi - when.lo) / 2;
		uint32_t context = intern(w, thread, middle, since, until);

		if (context == latest) {
			when.hi = middle;
			continue;
		}
		if (context != earliest && context != 0 && fits(w, context))
			return context;
		when.lo = middle;
	}
	return 0;
}

/* Mappings change in system calls, so the change came before the stretch: the latest state is tried
 * first, then the earliest, then the states between. Where both of the first two fit and lead to
 * different places, the state is not known. */
uint32_t whose_context(struct whose *w, const struct timeline_thread *thread,
		       struct whose_time when)
{
	const uint64_t until = end_of(w, thread, when.hi);
	uint32_t latest = intern(w, thread, when.hi, when.lo, until), earliest, between, fitting;

	if (latest == w->known.context && thread == w->known.thread && when.lo >= w->known.time)
		return latest;
	earliest = intern(w, thread, when.lo, when.lo, until);
	if (latest == earliest) {
		w->known.context = latest;
		w->known.thread = thread;
		w->known.time = when.lo;
		return latest;
	}
	fitting = latest != 0 && fits(w, latest) ? latest : 0;
	if (earliest != 0 && fits(w, earliest)) {
		if (fitting != 0 && !are_alike(w, latest, earliest))
			return CONTEXTS_IMAGE_UNCERTAIN;
		return fitting != 0 ? fitting : earliest;
	}
	if (fitting != 0)
		return fitting;
	between = state_between(w, thread, when, earliest, latest);
	return between != 0 ? between : latest;
}

/* arch/x86/entry/syscalls/syscall_64.tbl */
static enum turns_call call_by_number(uint32_t number)
{
	switch (number) {
	case 56: /* clone */
	case 57: /* fork */
	case 58: /* vfork */
	case 435: /* clone3 */ return TURNS_CALL_FORK;
	case 15: /* rt_sigreturn */
	case 60: /* exit */
	case 231: /* exit_group */ return TURNS_CALL_LAST;
	default: return TURNS_CALL_OTHER;
	}
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* The system call that ends at IP. Its number often is set directly before it, and always where it
 * ends a signal's handler: mov $NUMBER,%rax (glibc, musl), mov $NUMBER,%eax (Go), or xor %eax,%eax.
 */
static enum turns_call find_call(const struct replay *r, uint32_t context, uint64_t ip)
{
	uint8_t code[9] = {0};
	const size_t size = sizeof(code);

	if (replay_read(r, context, ip - size, code, size) != size &&
	    replay_read(r, context, ip - SYSCALL_SIZE, code + 7, SYSCALL_SIZE) != SYSCALL_SIZE)
		return TURNS_CALL_NONE;
	if (code[7] != 0x0f || code[8] != 0x05)
		return TURNS_CALL_NONE;
	if (code[2] == 0xb8)
		return call_by_number(get_u32(code + 3));
	if (code[0] == 0x48 && code[1] == 0xc7 && code[2] == 0xc0)
		return call_by_number(get_u32(code + 3));
	if (code[5] == 0x31 && code[6] == 0xc0)
		return TURNS_CALL_OTHER;
	return TURNS_CALL_UNKNOWN;
}

/* Behind sysenter and int n it is the kernel's choice where user code goes on. */
struct turns_left whose_left(const struct replay *r, uint32_t context, uint64_t ip)
{
	const enum turns_call call =
		context != 0 ? find_call(r, context, ip + SYSCALL_SIZE) : TURNS_CALL_NONE;

	if (call == TURNS_CALL_NONE || call == TURNS_CALL_LAST)
		return (struct turns_left){0};
	return (struct turns_left){
		.ip = ip + SYSCALL_SIZE, .again = ip, .context = context, .inside = true};
}

bool whose_alike(void *userdata, uint32_t a, uint32_t b, uint64_t ip)
{
	const struct whose *w = userdata;
	struct image_code x, y;

	return replay_find(w->replay, a, ip, &x) == 0 && replay_find(w->replay, b, ip, &y) == 0 &&
	       x.image == y.image && ip - x.address + x.offset == ip - y.address + y.offset;
}

/* Whether SPACE began after the thread of TURN was last seen elsewhere, or in this turn. */
static bool is_fresh(const struct whose *w, const struct turns_turn *turn,
		     const struct space *space)
{
	const struct turns_turn *before;

	if (timeline_space(w->replay->timeline, turn->thread->pid, turn->since) != space)
		return true;
	if (turn->before == TURNS_NONE)
		return false;
	before = &w->replay->turns.cpus[turn->before_cpu].list[turn->before];
	return timeline_space(w->replay->timeline, turn->thread->pid, before->until - 1) != space;
}

/* Whether the code that THREAD has at TIME is certainly not what LOOK's packets went through.
 * SINCE: LOOK's stretch begins no earlier. */
static bool is_impossible(struct whose *w, struct whose_look *look,
			  const struct timeline_thread *thread, const struct space *space,
			  uint64_t since, uint64_t time, uint64_t late)
{
	const struct space_mapping *mapping = space_find(space, time, look->seen.ip);
	const struct flow_trial *trial;
	uint32_t context;

	if (!mapping || (mapping->prot & PROT_EXEC) == 0)
		return true;
	context = intern(w, thread, time, since, late);
	trial = context != 0 ? try(w, look, context, late) : NULL;
	return trial && (is_misfit(trial->fault) || is_odd(look, trial));
}

/* What LOOK's packets tell if the code of CONTEXT is what they went through. */
static struct turns_left left_by(struct whose *w, struct whose_look *look, uint32_t context,
				 uint64_t late)
{
	const struct flow_trial *trial = try(w, look, context, late);
	struct turns_left left = look->times.left;

	if (!trial || !trial->whole || trial->fault != FAULT_NONE || trial->doubt)
		return left;
	if (trial->kind == FLOW_SYSCALL)
		return whose_left(w->replay, context, trial->from);
	if (left.ip != 0 && trial->from == left.ip) {
		left.context = context;
		left.inside = trial->inside;
	}
	return left;
}

void whose_proof(void *userdata, size_t i, uint32_t number, struct turns_proof *ret)
{
	struct whose *w = userdata;
	const struct timeline *timeline = w->replay->timeline;
	struct whose_look *look = whose_look_at(w, i);
	const struct turns_turn *turn = &w->replay->turns.cpus[w->index].list[number];
	const struct timeline_thread *thread = turn->thread;
	const struct space *space;
	struct whose_time when;
	uint64_t late, changes;

	if (!look || !thread || turn->uncertain)
		return;
	when = whose_enter_time(w, &look->seen, number, number);
	late = MIN_OF(MAX_OF(look->times.leave_hi, when.hi), turn->until - 1);
	if (w->replay->partial || timeline_space_uncertain(timeline, thread->pid, late))
		return;
	space = timeline_space(timeline, thread->pid, late);
	/* Before the thread began another program, or after? */
	if (!space || timeline_space(timeline, thread->pid, when.lo) != space) {
		ret->fresh = true;
		return;
	}
	ret->fresh = is_fresh(w, turn, space);
	/* Mappings may change meanwhile, and more than once. */
	changes = space_generation(space, late) - space_generation(space, when.lo);
	if (changes <= 1 && is_impossible(w, look, thread, space, when.lo, late, late) &&
	    (changes == 0 || is_impossible(w, look, thread, space, when.lo, when.lo, late))) {
		ret->impossible = true;
		return;
	}
	ret->left = look->times.left;
	ret->context = intern(w, thread, when.hi, when.lo, late);
	ret->behind = (uint8_t)find_call(w->replay, ret->context, look->seen.ip);
	if (ret->context != 0 && changes == 0)
		ret->left = left_by(w, look, ret->context, late);
}
