/*
 * Facts about processes: asks another thread (procreader.c) for them when their time has come, and
 * takes over the answers.
 */
#include "daemon/record/procs_private.h"

#include <string.h>
#include <time.h>

#include "proto/base.h"

#define MSEC 1000000u
/* How long a snapshot waits for facts. */
#define WAIT_ALL_NS (1000u * MSEC)
/* How often, at most, all processes are looked at again because records were lost. */
#define LOOK_AGAIN_NS (1000u * MSEC)

/* Whether INFO, which /proc says of E's pid, is about E. If E had ended, its pid may be another
 * process's by now, unless E is a zombie. */
static bool procs_is_same(const struct procs_entry *e, const struct procinfo *info)
{
	if (e->info.start_ns != MANIFEST_ABSENT)
		return e->info.start_ns == info->start_ns;
	return !e->asked_ended || info->zombie;
}

/* Gives a process that never executed a program that of its parent, unless the parent has executed
 * another one since. */
static void procs_inherit_program(struct procs *p, struct procs_entry *e)
{
	const struct procs_entry *parent;

	if (e->info.exe || e->exec_at || e->info.ppid > UINT32_MAX || !e->forked_at)
		return;
	parent = procs_find(p, (uint32_t)e->info.ppid);
	if (!parent || parent->old_program || !parent->info.exe || parent->exec_at > e->forked_at ||
	    parent->forked_at > e->forked_at)
		return;
	e->info.exe = strdup(parent->info.exe);
}

/* Takes over an answer. If the process is gone, what is known of it stays. */
static void procs_learn(struct procs *p, struct procs_entry *e, struct procreader_answer *a)
{
	bool stale = e->asked_stale || a->request.tag != e->asked;
	struct procinfo *told = &a->info;
	uint64_t uid = e->info.uid;

	if (a->error == 0 && procs_is_same(e, told)) {
		/* The answer's program may be the one before an exec: the known one stays. */
		if (stale)
			procs_forget_program(told);
		/* A zombie has no program: the known one stays. */
		if (!told->exe && (stale || !e->old_program))
			told->exe = TAKE_PTR(e->info.exe);
		if (!told->cmdline && (stale || !e->old_program)) {
			told->cmdline = TAKE_PTR(e->info.cmdline);
			told->cmdline_cut = e->info.cmdline_cut;
		}
		if (told->ppid == MANIFEST_ABSENT)
			told->ppid = e->info.ppid;
		procinfo_done(&e->info);
		e->info = *told;
		*told = (struct procinfo){0};
		e->info.cmdline_unread =
			!a->request.cmdline && e->info.exe && !e->info.cmdline && !e->info.zombie;
		if (!stale)
			procs_uid_learn(p, e, uid);
	} else if (a->error == 0 && !e->ended && procs_is_doubted(p, e)) {
		procs_reuse(p, e); /* the records of its end and of the pid's reuse were lost */
	} else if (e->old_program && !stale) {
		procs_forget_program(&e->info);
	}
	e->old_program &= stale; /* if stale, the facts will be asked for again */
	procs_inherit_program(p, e);
	if (p->source && p->source->ops->describe)
		p->source->ops->describe(p->source, &e->info);
	procs_exclude_learn(p, e);
}

/* The process that request Q is about; NULL: its entry is gone or another process's. */
static struct procs_entry *procs_asker(struct procs *p, const struct procreader_request *q)
{
	struct procs_entry *e = procs_find(p, q->pid);

	return e && q->tag > e->before_asked ? e : NULL;
}

/* Asks for the facts of E, if they are pending. False: no room for a request now. */
static bool procs_ask(struct procs *p, struct procs_entry *e)
{
	const struct procreader_request q = {
		.pid = e->info.pid, .tag = ++p->tags, .cmdline = !e->no_cmdline};

	if (!e->pending)
		return true;
	if (procreader_ask(p->reader, &q) != 0)
		return false;
	e->pending = false;
	p->n_pending--;
	e->asked = q.tag;
	e->uid.asked = e->uid.execs;
	e->uid.asked_losses = p->losses;
	e->asked_ended = e->ended;
	e->asked_stale = false;
	return true;
}

static void procs_take_answers(struct procs *p)
{
	struct procreader_answer a;

	while (procreader_take(p->reader, &a) == 0) {
		struct procs_entry *e = procs_asker(p, &a.request);

		if (e)
			procs_learn(p, e, &a);
		procinfo_done(&a.info);
	}
}

/* Leaves a thread that hangs behind, and asks for all but the command line of its process. */
static void procs_give_up(struct procs *p, uint64_t patience_ns)
{
	struct procreader_answer none = {.error = -ETIMEDOUT};
	struct procs_entry *e;

	if (procreader_give_up(p->reader, patience_ns, &none.request) != 0)
		return;
	e = procs_asker(p, &none.request);
	if (!e)
		return;
	e->info.cmdline_unread = !e->info.cmdline;
	if (none.request.cmdline && !e->pending) {
		e->no_cmdline = true;
		procs_mark(p, e);
	} else {
		procs_learn(p, e, &none);
	}
}

void procs_set_delay(struct procs *p, uint64_t delay_ns)
{
	p->delay_ns = delay_ns;
	p->now_ns = now_ns(CLOCK_MONOTONIC_COARSE);
}

void procs_set_patience(struct procs *p, uint64_t ns, uint64_t snapshot_ns)
{
	p->patience_ns = ns;
	p->snapshot_patience_ns = snapshot_ns;
}

/* Asks for the facts of processes in the line whose time has come. A process that ended before its
 * turn is gone, or a zombie, and is asked for only if all are (BUDGET SIZE_MAX). */
static void procs_ask_line(struct procs *p, size_t budget)
{
	bool all = budget == SIZE_MAX;

	while (p->line.head < p->line.tail && budget) {
		struct procs_entry *e = &p->entries[p->line.items[p->line.head % p->max]];
		bool left_out = e->ended && p->delay_ns && !all;

		if (!all && p->now_ns < e->since_ns + p->delay_ns)
			break;
		budget -= e->pending && !left_out && !all;
		if (!left_out && !procs_ask(p, e))
			break;
		p->line.head++;
		e->in_line = false;
	}
}

/* After records were lost, has the facts of all live processes read again. The facts of ended
 * processes stay in doubt. */
static void procs_look_again(struct procs *p, bool at_once)
{
	uint64_t now;

	if (p->looked_losses == p->losses)
		return;
	now = now_ns(CLOCK_MONOTONIC_COARSE);
	if (!at_once && p->looked_ns > 0 && now < p->looked_ns + LOOK_AGAIN_NS)
		return;
	p->looked_losses = p->losses;
	p->looked_ns = now;
	for (uint32_t i = 0; i < p->n; i++)
		if (!p->entries[i].ended && procs_is_doubted(p, &p->entries[i]))
			procs_mark(p, &p->entries[i]);
}

/* Asks for all pending facts and waits for them. */
static void procs_refresh_all(struct procs *p)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC_COARSE), until = now + WAIT_ALL_NS;

	/* Processes that had ended before their turn come into the line again. */
	for (uint32_t i = 0; i < p->n && p->n_pending; i++)
		if (p->entries[i].pending)
			procs_mark(p, &p->entries[i]);
	for (; now < until; now = now_ns(CLOCK_MONOTONIC_COARSE)) {
		procs_ask_line(p, SIZE_MAX);
		if (procreader_pending(p->reader) == 0 ||
		    procreader_wait(p->reader, MIN_OF(p->snapshot_patience_ns, until - now)) < 0)
			break;
		procs_take_answers(p);
		procs_give_up(p, p->snapshot_patience_ns);
	}
}

void procs_refresh(struct procs *p, size_t budget)
{
	if (p->delay_ns)
		p->now_ns = now_ns(CLOCK_MONOTONIC_COARSE);
	procs_take_answers(p);
	procs_give_up(p, p->patience_ns);
	procs_look_again(p, budget == SIZE_MAX);
	if (budget == SIZE_MAX)
		procs_refresh_all(p);
	else
		procs_ask_line(p, budget);
}
