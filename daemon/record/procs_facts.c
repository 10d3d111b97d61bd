/*
 * Facts about processes: asked of another thread (procreader.c) when their time has come, and taken
 * over when it answers. Called by procs.c and, by way of procs.h, by intake.c and the manager.
 */
#include "daemon/record/procs_private.h"

#include <string.h>
#include <time.h>

#include "proto/base.h"

#define MSEC 1000000u
/* How long facts are waited for at a snapshot. */
#define WAIT_ALL_NS (1000u * MSEC)
/* After records were lost everybody is looked at again, but not more often. */
#define LOOK_AGAIN_NS (1000u * MSEC)

/* Is what /proc says of this number said of E? A process that has ended may have left its number to
 * another: only of one that waits to be reaped is it the same for sure. */
static bool procs_is_same(const struct procs_entry *e, const struct procinfo *info)
{
	if (e->info.start_ns != MANIFEST_ABSENT)
		return e->info.start_ns == info->start_ns;
	return !e->asked_ended || info->zombie;
}

/* The program of a process that never executed one: its parent's, if that has not executed another
 * since. */
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

/* A zombie has no program any more: what is known of it stays. */
static void procs_take(struct procs_entry *e, struct procinfo *info)
{
	if (info->ppid == MANIFEST_ABSENT)
		info->ppid = e->info.ppid;
	if (!info->exe && !e->old_program)
		info->exe = TAKE_PTR(e->info.exe);
	if (!info->cmdline && !e->old_program) {
		info->cmdline = TAKE_PTR(e->info.cmdline);
		info->cmdline_cut = e->info.cmdline_cut;
	}
	procinfo_done(&e->info);
	e->info = *info;
	*info = (struct procinfo){0};
}

/* What was read may be of the program before. */
static void procs_keep_program(struct procs_entry *e, struct procinfo *info)
{
	procs_forget_program(info);
	info->exe = TAKE_PTR(e->info.exe);
	info->cmdline = TAKE_PTR(e->info.cmdline);
	info->cmdline_cut = e->info.cmdline_cut;
}

/* Whether there is a command line that could not be read. */
static bool procs_is_unread(const struct procs_entry *e, const struct procreader_answer *a)
{
	return !a->request.cmdline && e->info.exe && !e->info.cmdline && !e->info.zombie;
}

/* What /proc says; when the process is gone, what is known already stays. */
static void procs_learn(struct procs *p, struct procs_entry *e, struct procreader_answer *a)
{
	bool stale = e->asked_stale || a->request.tag != e->asked;
	uint64_t uid = e->info.uid;

	if (a->error == 0 && procs_is_same(e, &a->info)) {
		if (stale)
			procs_keep_program(e, &a->info);
		procs_take(e, &a->info);
		e->info.cmdline_unread = procs_is_unread(e, a);
		if (!stale)
			procs_uid_learn(p, e, uid);
	} else if (a->error == 0 && !e->ended && procs_is_doubted(p, e)) {
		procs_reuse(p, e); /* neither its end was told nor who has its number now */
	} else if (e->old_program && !stale) {
		procs_forget_program(&e->info);
	}
	e->old_program &= stale; /* it is asked for again */
	procs_inherit_program(p, e);
	if (p->source && p->source->ops->describe)
		p->source->ops->describe(p->source, &e->info);
	procs_exclude_learn(p, e);
}

/* Whom a request was about; NULL: nobody whom its answer could tell of any more. */
static struct procs_entry *procs_asker(struct procs *p, const struct procreader_request *q)
{
	struct procs_entry *e = procs_find(p, q->pid);

	return e && q->tag > e->before_asked ? e : NULL;
}

/* False: nobody has room for it now. */
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

/* The thread that stands is left alone; of the process everything else is asked for. */
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

/* Who has ended before its turn is gone by now, or as good as: whether it has left a zombie to be
 * asked is found out only when all are. */
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

/* Those who were left out come into the line again. */
static void procs_line_up(struct procs *p)
{
	for (uint32_t i = 0; i < p->n && p->n_pending; i++)
		if (p->entries[i].pending)
			procs_mark(p, &p->entries[i]);
}

/* Of those who live; what others had said of them before their end is nobody's. */
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

static void procs_refresh_all(struct procs *p)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC_COARSE), until = now + WAIT_ALL_NS;

	procs_line_up(p);
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
