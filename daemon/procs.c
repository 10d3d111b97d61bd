/*
 * pid -> struct procinfo, fed by intake.c from FORK, COMM, MMAP2 and EXIT records, read out by
 * evidence.c. Everything in the loop's thread. Seeing a process costs a look-up; /proc is read
 * later, a few processes a turn, and by another thread (procreader.c), so that neither a storm of
 * forks nor a process whose command line cannot be read holds up the loop.
 */
#include "daemon/procs.h"

#include <string.h>
#include <time.h>

#include "capture/clock.h"
#include "daemon/procreader.h"
#include "proto/base.h"

#define NONE UINT32_MAX
#define MSEC 1000000u
/* How long facts are waited for at a snapshot. */
#define WAIT_ALL_NS (1000u * MSEC)
/* After records were lost everybody is looked at again, but not more often. */
#define LOOK_AGAIN_NS (1000u * MSEC)
/* So far back it is looked for who forked whom. */
#define MAX_GENERATIONS 32u

struct procs_entry {
	struct procinfo info;
	uint32_t next;		      /* in its bucket */
	uint64_t forked_at, ended_at; /* perf ns; 0: not told */
	uint64_t exec_at;	      /* so, of the last one */
	bool pending;		      /* facts are to be read */
	bool ended;
	bool old_program; /* exe and cmdline are those from before an exec */
	bool awaits_exe;  /* no file was mapped since the exec */
	/* Answers to requests after one, up to the other, tell of it. */
	uint64_t before_asked, asked;
	bool asked_ended; /* it had ended by then */
	bool asked_stale; /* it has executed another program since */
	bool no_cmdline;  /* is given up */
	struct {
		uint64_t since;	    /* of what /proc has said: it held then, perf ns; ABSENT */
		bool since_birth;   /* and nothing speaks against its holding since the fork */
		uint32_t forked_by; /* 0: not known */
		uint32_t execs;	    /* of which /proc has not been asked yet */
		uint32_t asked;	    /* of them, with the request under way */
		uint32_t covered;   /* of them, with the last answer, */
		uint64_t learned;   /* which came then, perf ns */
		bool seen;	    /* /proc has said something */
		/* Of struct procs, when what is known held, and with the request under way. */
		uint64_t losses, asked_losses;
	} uid;
	bool excluded;
	/* Of the place, not of who has it now: */
	bool in_line, in_ended;
	uint64_t since_ns; /* when it came into the line */
};

/* Numbers of entries, each at most once; as many as there are entries. */
struct procs_line {
	uint32_t *items;
	uint64_t head, tail;
};

struct procs {
	struct procreader *reader;
	struct source *source; /* borrowed */
	const struct exclude *exclude;
	struct procs_entry *entries;
	uint32_t n, max;
	uint32_t *buckets;	 /* as many as entries */
	struct procs_line ended; /* first ended first; some of them live again */
	struct procs_line line;	 /* whose facts are to be read, first seen first */
	uint64_t delay_ns, now_ns;
	uint64_t patience_ns, snapshot_patience_ns;
	uint64_t tags; /* so far */
	/* How often records were lost, the last time, and up to which of these all were looked at
	 * again, and when. */
	uint64_t losses, lost_at, looked_losses, looked_ns;
	uint32_t n_pending;
	uint64_t dropped;
};

int procs_new(const char *proc, uint32_t max, struct source *source, struct procs **ret)
{
	struct procs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->source = source;
	p->max = max;
	procs_set_patience(p, 1000u * MSEC, 100u * MSEC);
	p->entries = calloc(max, sizeof(*p->entries));
	p->buckets = malloc(max * sizeof(*p->buckets));
	p->ended.items = malloc(max * sizeof(*p->ended.items));
	p->line.items = malloc(max * sizeof(*p->line.items));
	if (!p->entries || !p->buckets || !p->ended.items || !p->line.items ||
	    procreader_new(proc, &p->reader) < 0) {
		procs_free(p);
		return -ENOMEM;
	}
	memset(p->buckets, 0xff, max * sizeof(*p->buckets));
	*ret = p;
	return 0;
}

void procs_free(struct procs *p)
{
	if (!p)
		return;
	procreader_free(p->reader);
	for (uint32_t i = 0; i < p->n; i++)
		procinfo_done(&p->entries[i].info);
	free(p->entries);
	free(p->buckets);
	free(p->ended.items);
	free(p->line.items);
	free(p);
}

void procs_freep(struct procs **p)
{
	procs_free(*p);
}

static uint32_t *procs_bucket(struct procs *p, uint32_t pid)
{
	return &p->buckets[pid % p->max];
}

static struct procs_entry *procs_find(const struct procs *p, uint32_t pid)
{
	uint32_t at = p->buckets[pid % p->max];

	while (at != NONE && p->entries[at].info.pid != pid)
		at = p->entries[at].next;
	return at == NONE ? NULL : &p->entries[at];
}

static void procs_unlink(struct procs *p, uint32_t index)
{
	uint32_t *at = procs_bucket(p, p->entries[index].info.pid);

	while (*at != index)
		at = &p->entries[*at].next;
	*at = p->entries[index].next;
}

static void procs_queue(const struct procs *p, struct procs_line *l, uint32_t index)
{
	l->items[l->tail++ % p->max] = index;
}

/* A free slot: a new one, or that of the process that ended first. */
static uint32_t procs_slot(struct procs *p)
{
	if (p->n < p->max)
		return p->n++;
	while (p->ended.head < p->ended.tail) {
		uint32_t at = p->ended.items[p->ended.head++ % p->max];
		struct procs_entry *e = &p->entries[at];

		e->in_ended = false;
		if (!e->ended)
			continue;
		procs_unlink(p, at);
		p->n_pending -= e->pending;
		procinfo_done(&e->info);
		return at;
	}
	return NONE;
}

static void procs_mark(struct procs *p, struct procs_entry *e)
{
	p->n_pending += !e->pending;
	e->pending = true;
	if (e->in_line)
		return;
	e->in_line = true;
	e->since_ns = p->now_ns;
	procs_queue(p, &p->line, (uint32_t)(e - p->entries));
}

static struct procinfo procs_unknown(uint32_t pid)
{
	return (struct procinfo){.pid = pid,
				 .ppid = MANIFEST_ABSENT,
				 .start_ns = MANIFEST_ABSENT,
				 .uid = MANIFEST_ABSENT,
				 .mount_ns = MANIFEST_ABSENT,
				 .ns_pid = MANIFEST_ABSENT};
}

static struct procs_entry *procs_add(struct procs *p, uint32_t pid)
{
	uint32_t *bucket = procs_bucket(p, pid);
	uint32_t index = procs_slot(p);
	struct procs_entry *e;

	if (index == NONE) {
		p->dropped++;
		return NULL;
	}
	e = &p->entries[index];
	*e = (struct procs_entry){.info = procs_unknown(pid),
				  .next = *bucket,
				  .before_asked = p->tags,
				  .uid = {.since = MANIFEST_ABSENT, .losses = p->losses},
				  .in_line = e->in_line,
				  .since_ns = e->since_ns};
	*bucket = index;
	procs_mark(p, e);
	return e;
}

static struct procs_entry *procs_get(struct procs *p, uint32_t pid)
{
	struct procs_entry *e = procs_find(p, pid);

	return e ? e : procs_add(p, pid);
}

void procs_see(struct procs *p, uint32_t pid)
{
	procs_get(p, pid);
}

/* Another process: what is known of the one before it does not hold. */
static void procs_uid_forget(const struct procs *p, struct procs_entry *e)
{
	memset(&e->uid, 0, sizeof(e->uid));
	e->uid.since = MANIFEST_ABSENT;
	e->uid.losses = p->losses;
}

/* Whom E tells of has ended, and the pid is used again. */
static void procs_reuse(struct procs *p, struct procs_entry *e)
{
	uint32_t pid = e->info.pid;

	procinfo_done(&e->info);
	e->info = procs_unknown(pid);
	e->ended = e->old_program = e->awaits_exe = e->no_cmdline = false;
	e->exec_at = 0;
	procs_uid_forget(p, e);
	e->before_asked = p->tags;
	procs_mark(p, e);
}

/* Its first programs may have been told before its birth. */
static void procs_reuse_since(struct procs *p, struct procs_entry *e, uint64_t birth)
{
	uint64_t exec_at = e->exec_at > birth ? e->exec_at : 0;
	uint32_t execs = exec_at > 0 ? MAX_OF(e->uid.execs, 1u) : 0;

	procs_reuse(p, e);
	e->exec_at = exec_at;
	e->uid.execs = execs;
}

/* Also when its end was not told: nobody is forked twice. */
static bool procs_is_reused(const struct procs_entry *e, uint64_t time)
{
	return e->ended ? time > e->ended_at : e->forked_at && time > e->forked_at;
}

void procs_fork(struct procs *p, uint32_t pid, uint32_t ppid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e)
		return;
	if (procs_is_reused(e, time))
		procs_reuse_since(p, e, time);
	/* What it did next may be among what was lost. */
	if (p->losses > 0 && time <= p->lost_at)
		e->uid.losses = p->losses - 1;
	if (time >= e->forked_at) {
		e->forked_at = time;
		e->uid.forked_by = ppid;
	}
	if (e->info.ppid == MANIFEST_ABSENT)
		e->info.ppid = ppid;
}

void procs_exit(struct procs *p, uint32_t pid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e || time < e->forked_at) /* of who had the pid before */
		return;
	e->ended = true;
	e->ended_at = time;
	if (e->in_ended)
		return;
	e->in_ended = true;
	procs_queue(p, &p->ended, (uint32_t)(e - p->entries));
}

/* One that is told late, after what /proc said was taken for that of the program before, was it
 * that /proc told of: of the one before nothing is known. */
static void procs_uid_exec(struct procs_entry *e, uint64_t time)
{
	uint32_t more = 1;

	if (e->uid.seen && time <= e->uid.learned)
		more += MIN_OF(e->uid.covered, 1u);
	e->uid.execs += e->uid.execs < UINT32_MAX - 1 ? more : 0;
}

void procs_exec(struct procs *p, uint32_t pid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e)
		return;
	e->old_program = e->awaits_exe = e->asked_stale = true;
	e->no_cmdline = e->info.cmdline_unread = false;
	e->exec_at = time;
	procs_uid_exec(e, time);
	procs_mark(p, e);
}

void procs_lost(struct procs *p, uint64_t time)
{
	p->losses++;
	p->lost_at = MAX_OF(p->lost_at, time);
}

static void procs_forget_program(struct procinfo *info)
{
	free(TAKE_PTR(info->exe));
	free(TAKE_PTR(info->cmdline));
	info->cmdline_cut = false;
}

void procs_map(struct procs *p, uint32_t pid, const char *path)
{
	struct procs_entry *e = procs_find(p, pid);

	if (!e || !e->awaits_exe || path[0] != '/')
		return;
	e->awaits_exe = false;
	/* What /proc has said since is better. */
	if (e->info.exe && !e->old_program)
		return;
	procs_forget_program(&e->info);
	e->info.exe = strdup(path);
	e->old_program = false;
}

uint32_t procs_parent(const struct procs *p, uint32_t pid)
{
	const struct procs_entry *e = procs_find(p, pid);

	return e && e->info.ppid <= UINT32_MAX ? (uint32_t)e->info.ppid : 0;
}

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

/* Now, on the clock of the records. */
static uint64_t procs_perf_now(const struct procs *p)
{
	const struct source *s = p->source;
	struct clock_now now;
	uint64_t tsc = 0;

	clock_read(&now);
	if (!s || (!s->clock.valid && s->clock_is_monotonic))
		return now.monotonic_ns;
	if (!s->clock.valid)
		return MANIFEST_ABSENT;
	if (!s->ops->read_tsc)
		return clock_tsc_to_ns(&s->clock, now.tsc);
	for (uint32_t i = 0; i < s->n_cpus; i++)
		tsc = MAX_OF(tsc, source_tsc((struct source *)(uintptr_t)s, i));
	return clock_tsc_to_ns(&s->clock, tsc);
}

/* /proc has said whose E is, of whom /proc has said BEFORE. A process without rights to change its
 * user gets another one by executing a program that gives it: so each program must have been looked
 * at, and of several in a row only the last one can be. */
static void procs_uid_learn(const struct procs *p, struct procs_entry *e, uint64_t before)
{
	bool none_lost = e->uid.losses == e->uid.asked_losses;
	bool all_seen =
		none_lost && (e->uid.asked == 0 || (e->uid.asked == 1 && e->info.program_is_plain));
	bool same = !e->uid.seen || (e->uid.since != MANIFEST_ABSENT && before == e->info.uid);

	e->uid.execs -= e->uid.asked;
	e->uid.covered = e->uid.asked;
	e->uid.asked = 0;
	e->uid.learned = procs_perf_now(p);
	e->uid.losses = e->uid.asked_losses;
	if (!e->info.uid_is_only || (!e->info.program_is_plain && !e->info.zombie)) {
		e->uid.since = MANIFEST_ABSENT;
		e->uid.since_birth = false;
	} else if (!all_seen || !same) {
		e->uid.since = e->info.program_is_plain ? e->uid.learned : MANIFEST_ABSENT;
		e->uid.since_birth = false;
	} else if (!e->uid.seen) {
		e->uid.since = e->uid.learned;
		e->uid.since_birth = true;
	}
	e->uid.seen = true;
}

static void procs_exclude_learn(const struct procs *p, struct procs_entry *e)
{
	e->excluded |= exclude_has_uid(p->exclude, e->info.uid) ||
		       exclude_has_cgroup(p->exclude, e->info.cgroup);
	if (!e->excluded)
		return;
	procs_forget_program(&e->info);
}

/* Whether there is a command line that could not be read. */
static bool procs_is_unread(const struct procs_entry *e, const struct procreader_answer *a)
{
	return !a->request.cmdline && e->info.exe && !e->info.cmdline && !e->info.zombie;
}

/* Have records been lost since it was looked at? */
static bool procs_is_doubted(const struct procs *p, const struct procs_entry *e)
{
	return e->uid.losses != p->losses;
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

static uint64_t procs_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void procs_set_delay(struct procs *p, uint64_t delay_ns)
{
	p->delay_ns = delay_ns;
	p->now_ns = procs_now();
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
	now = procs_now();
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
	uint64_t now = procs_now(), until = now + WAIT_ALL_NS;

	procs_line_up(p);
	for (; now < until; now = procs_now()) {
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
		p->now_ns = procs_now();
	procs_take_answers(p);
	procs_give_up(p, p->patience_ns);
	procs_look_again(p, budget == SIZE_MAX);
	if (budget == SIZE_MAX)
		procs_refresh_all(p);
	else
		procs_ask_line(p, budget);
}

void procs_set_exclude(struct procs *p, const struct exclude *x)
{
	p->exclude = x;
}

bool procs_excludes(const struct procs *p)
{
	return p->exclude;
}

/* Who forked E, if the entry still tells of him. */
static const struct procs_entry *procs_forker(const struct procs *p, const struct procs_entry *e)
{
	const struct procs_entry *by;

	if (!e->forked_at || e->uid.forked_by == 0)
		return NULL;
	by = procs_find(p, e->uid.forked_by);
	return by && by != e && by->forked_at < e->forked_at ? by : NULL;
}

bool procs_is_excluded(const struct procs *p, uint32_t pid)
{
	const struct procs_entry *e = p->exclude ? procs_find(p, pid) : NULL;

	for (unsigned int i = 0; e && i < MAX_GENERATIONS; i++) {
		if (e->excluded)
			return true;
		if (e->uid.seen)
			return false;
		e = procs_forker(p, e);
	}
	return false;
}

/* Since when E has the rights of UID alone: what was born to such a process was so from its birth,
 * as long as each program since has been looked at. */
static uint64_t procs_uid_since(const struct procs *p, const struct procs_entry *e, uint64_t uid,
				unsigned int generations)
{
	const struct procs_entry *by;
	bool since_birth = e->uid.seen ? e->uid.since_birth : e->exec_at == 0;

	if (e->uid.execs > 0 || procs_is_doubted(p, e) ||
	    (e->uid.seen && (e->uid.since == MANIFEST_ABSENT || e->info.uid != uid)))
		return MANIFEST_ABSENT;
	by = since_birth && generations > 0 ? procs_forker(p, e) : NULL;
	if (by && procs_uid_since(p, by, uid, generations - 1) <= e->forked_at)
		return e->forked_at;
	return e->uid.since;
}

/* Of one that was gone too soon: that of who forked it. */
static uint64_t procs_uid(const struct procs *p, const struct procs_entry *e)
{
	for (unsigned int i = 0; e && i < MAX_GENERATIONS; i++) {
		if (e->info.uid != MANIFEST_ABSENT)
			return e->info.uid;
		e = procs_forker(p, e);
	}
	return MANIFEST_ABSENT;
}

int procs_foreach(const struct procs *p, int (*fn)(void *userdata, const struct procs_told *told),
		  void *userdata)
{
	int r = 0;

	for (uint32_t i = 0; i < p->n && r == 0; i++) {
		const struct procs_entry *e = &p->entries[i];
		struct procs_told told = {
			.info = &e->info,
			.uid = procs_uid(p, e),
			.excluded = procs_is_excluded(p, e->info.pid),
		};

		told.uid_since = procs_uid_since(p, e, told.uid, MAX_GENERATIONS);
		if (e->info.uid == MANIFEST_ABSENT && told.uid_since == MANIFEST_ABSENT)
			told.uid = MANIFEST_ABSENT;
		/* It may have become one of those before it was gone. */
		if (p->exclude && !e->uid.seen && told.uid_since == MANIFEST_ABSENT)
			told.excluded = true;
		r = fn(userdata, &told);
	}
	return r;
}

uint64_t procs_unread(const struct procs *p, uint32_t *ret_pids, size_t n)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct procinfo *info = &p->entries[i].info;

		if (!info->cmdline_unread)
			continue;
		if (found < n)
			ret_pids[found] = info->pid;
		found++;
	}
	return found;
}

uint64_t procs_alive(const struct procs *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += !p->entries[i].ended;
	return n;
}

uint64_t procs_dropped(const struct procs *p)
{
	return p->dropped;
}
