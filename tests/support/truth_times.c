/*
 * Checks that each branch's interval of time contains the time of its execution:
 *
 *   truth_times DIR [--cpu=N:FROM:STOP ...] [--lossy] [--marks=FILE] < BRANCHES
 *
 * BRANCHES is the view "branches" of a snapshot with --time and --places: "FROM TO LO HI OFFSET",
 * "# cpu N pid P tid T" where another thread or CPU follows. DIR and --cpu are as
 * for truth_window.
 *
 * What a thread executed on a CPU is a list of ways from one address to another, each with its
 * DIR lists how each thread went from one address to another on each CPU, each way with its
 * time. The decoded branches must occur in that list in the same order. Ways that no branch shows
 * (repeated string instructions, interrupted blocks) are skipped. --lossy: some branches are
 * missing in the decoded stream, so a branch must match a way by time, too. --marks: packets that
 * give a time, one line "CPU OFFSET TICKS DIRECT LAST" each, in order for each CPU. DIRECT: the
 * next packet shows a branch at exactly that time. LAST: offset of the last packet that shows
 * branches before the next mark, 0: none.
 *
 * Prints {"branches","checked","meanWidth","told","meanTold","widest","unbounded"}; widths are in
 * TSC ticks. "Told" branches start at an address from which more than one way was seen to lead, so
 * that a packet shows them. "Unbounded" branches have an unknown end of their interval, and no
 * width. With --marks, adds {"between":{"branches","meanWidth","meanApart"},"betweenTold":...} for
 * branches between two marks: "apart" is the distance of the marks around the packet that decided
 * the branch, or for branches without a packet, of the marks around the previous packet and the
 * next one. Exits with 1 on a mismatch, after printing each thread's first wrong branch on stderr.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/plugin/truth.h"
#include "proto/base.h"
#include "tests/support/truth_walk.h"

#define MAX_SPANS 256
#define MAX_LANES 4096
#define ORIGINS	  (1u << 20)
#define MAX_CPUS  64

/* FROM 0: from the kernel. TO 0: to the kernel. TO ANYWHERE: tracing was stopped, or user code
 * left, before the target was seen. */
#define ANYWHERE UINT64_MAX
struct way {
	uint64_t from, to, tsc;
};

/* One thread on one CPU. */
struct lane {
	uint32_t pid, tid, cpu;
	struct way *ways;
	size_t n, room;
	size_t at; /* index of the next way to match */
	bool left; /* the last branch was the last one before leaving user code */
	bool wrong;
};

/* Where execution went from an address: only the first target, and whether there are others. */
struct origin {
	uint64_t from, to;
	bool many;
};

/* A CYC, or an MTC where there are no CYCs. */
struct mark {
	uint64_t offset, ticks;
	uint64_t last;	 /* offset of the last branch packet before the next one; 0: none */
	uint32_t direct; /* gives the time of the branch packet directly behind */
};

/* The marks of one CPU. */
struct marks {
	struct mark *list;
	size_t n, room;
};

struct mean {
	uint64_t n;
	double widths, aparts;
};

struct times {
	struct truth_span spans[MAX_SPANS];
	size_t n_spans;
	bool lossy;
	struct lane lanes[MAX_LANES];
	size_t n_lanes;
	/* of the truth file being read */
	struct truth_thread who;
	struct lane *lane;
	uint64_t tsc;
	uint64_t last;	/* address of the last executed instruction; 0: none in this stretch */
	uint64_t ended; /* when the last instruction was executed; before the first one: when the
			 * stretch began */
	bool fresh;	/* the stretch has just begun */
	struct origin origins[ORIGINS]; /* by a hash of from */
	struct marks marks[MAX_CPUS];
	bool with_marks;
	/* results */
	uint64_t branches, checked, unbounded, widest, told;
	double widths, told_widths;
	struct mean between, between_told;
	bool failed;
};

static struct lane *lane_of(struct times *t, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	struct lane *l;

	for (size_t i = 0; i < t->n_lanes; i++) {
		l = &t->lanes[i];
		if (l->pid == pid && l->tid == tid && l->cpu == cpu)
			return l;
	}
	if (t->n_lanes == MAX_LANES)
		return NULL;
	l = &t->lanes[t->n_lanes++];
	l->pid = pid;
	l->tid = tid;
	l->cpu = cpu;
	return l;
}

/* NULL: the table is full. */
static struct origin *origin_of(struct times *t, uint64_t from)
{
	size_t i = (size_t)(from * 0x9e3779b97f4a7c15ull >> 44);

	for (size_t n = 0; n < 64; n++, i = (i + 1) % ORIGINS)
		if (t->origins[i].from == from || t->origins[i].from == 0)
			return &t->origins[i];
	return NULL;
}

static void note_origin(struct times *t, uint64_t from, uint64_t to)
{
	struct origin *o = from == 0 || to == 0 || to == ANYWHERE ? NULL : origin_of(t, from);

	if (o == NULL)
		return;
	o->many = o->many || (o->from != 0 && o->to != to);
	o->from = from;
	o->to = to;
}

static void add(struct times *t, uint64_t from, uint64_t to, uint64_t tsc)
{
	struct lane *l = t->lane;

	if (l == NULL)
		return;
	note_origin(t, from, to);
	if (l->n == l->room) {
		l->room = 2 * l->room + 4096;
		l->ways = realloc(l->ways, l->room * sizeof(*l->ways));
		if (l->ways == NULL)
			exit(3);
	}
	l->ways[l->n++] = (struct way){from, to, tsc};
}

/* User code was left behind the last instruction, towards TO. */
static void leave(struct times *t, uint64_t to)
{
	if (t->fresh)
		add(t, 0, ANYWHERE, t->ended);
	else if (t->last != 0)
		add(t, t->last, to, t->ended);
	t->last = 0;
	t->fresh = false;
}

static void on_begin(void *userdata, struct truth_thread who)
{
	struct times *t = userdata;

	t->who = who;
	t->lane = NULL;
	t->last = t->tsc = 0;
	t->fresh = false;
}

static void on_end(void *userdata)
{
	leave(userdata, 0);
}

static void on_stretch(void *userdata, uint32_t cpu, uint64_t tsc)
{
	struct times *t = userdata;

	leave(t, 0);
	t->lane = lane_of(t, t->who.pid, t->who.tid, cpu);
	t->ended = tsc;
	t->fresh = true;
}

static void on_mark(void *userdata, const struct truth_event *e)
{
	struct times *t = userdata;

	if (e->item == TRUTH_ENTER || e->item == TRUTH_STOP)
		leave(t, e->item == TRUTH_STOP ? ANYWHERE : 0);
	if (e->item == TRUTH_TIME)
		t->tsc = e->tsc;
}

static void on_run(void *userdata, const struct truth_event *e)
{
	struct times *t = userdata;
	uint64_t last = e->block->ip, end = e->block->ip;

	for (unsigned int i = 0; i < e->n; i++) {
		last = end;
		end += e->block->length[i];
	}
	for (uint64_t i = 0; i < e->times; i++) {
		if (t->fresh)
			add(t, 0, e->block->ip, t->ended);
		else if (t->last != 0)
			add(t, t->last, e->block->ip, t->ended);
		t->fresh = false;
		t->last = last;
		t->ended = t->tsc;
	}
}

struct branch {
	uint64_t from, to, lo, hi, offset;
};

static bool holds(const struct branch *b, const struct way *w)
{
	return b->lo <= w->tsc && w->tsc <= b->hi;
}

static bool complain(struct times *t, struct lane *l, const struct branch *b, const char *what,
		     const struct way *w)
{
	t->failed = true;
	if (!l->wrong)
		fprintf(stderr,
			"pid %" PRIu32 " tid %" PRIu32 " cpu %" PRIu32 ": %" PRIx64 " %" PRIx64
			" %" PRIu64 "..%" PRIu64 ": %s, %" PRIu64 ", way %zu of %zu\n",
			l->pid, l->tid, l->cpu, b->from, b->to, b->lo, b->hi, what,
			w != NULL ? w->tsc : 0, l->at, l->n);
	l->wrong = true;
	return false;
}

/* Matches an entry or exit with the next one in the list, if the place is the same. The truth does
 * not say where an interrupt happened: an exit in front of the next entry may have no way of its
 * own, even if the instruction that was interrupted leaves user code itself behind that entry
 * (INT3). With losses, the entry may be the place where decoding resumed, and the next entry in the
 * list may be much later. */
static bool check_edge(struct times *t, struct lane *l, const struct branch *b)
{
	bool left = l->left;

	l->left = false;
	if (t->lossy || (b->to == 0 && left))
		return false;
	for (size_t i = l->at; i < l->n; i++) {
		const struct way *w = &l->ways[i];

		if (b->to == 0 && w->from == 0)
			return false;
		if ((w->from != 0 || b->from != 0) && (w->to != 0 || b->to != 0))
			continue;
		if (w->from != b->from || (w->to != b->to && w->to != ANYWHERE))
			return false;
		if (!holds(b, w))
			return t->lossy ? false : complain(t, l, b, "executed at", w);
		l->at = i + 1;
		return true;
	}
	return false;
}

/* An interrupt or a fault may come before the branch's target executes anything. */
static bool check_branch(struct times *t, struct lane *l, const struct branch *b)
{
	for (size_t i = l->at; i < l->n; i++) {
		const struct way *w = &l->ways[i];

		if (w->from != b->from || (w->to != b->to && w->to != 0 && w->to != ANYWHERE) ||
		    (t->lossy && !holds(b, w)))
			continue;
		if (!holds(b, w))
			return complain(t, l, b, "executed at", w);
		l->at = i + 1;
		l->left = w->to == 0;
		return true;
	}
	return complain(t, l, b, "not executed", NULL);
}

static bool is_told(struct times *t, const struct branch *b)
{
	const struct origin *o = b->from == 0 || b->to == 0 ? NULL : origin_of(t, b->from);

	return o != NULL && o->many;
}

static bool is_bounded(const struct branch *b)
{
	return b->lo != 0 && b->hi != UINT64_MAX;
}

static void measure(struct times *t, const struct branch *b)
{
	uint64_t width = b->hi - b->lo;

	if (!is_bounded(b)) {
		t->unbounded++;
		return;
	}
	t->widths += (double)width;
	t->widest = MAX_OF(t->widest, width);
	if (!is_told(t, b))
		return;
	t->told++;
	t->told_widths += (double)width;
}

static void add_mean(struct mean *m, const struct branch *b, uint64_t apart)
{
	m->n++;
	m->widths += (double)(b->hi - b->lo);
	m->aparts += (double)apart;
}

/* A branch without a packet of its own, whose previous packet is at OFFSET behind mark I: returns
 * the first mark that the branch certainly precedes. The branch may lie behind marks in between. */
static size_t end_of_untold(const struct marks *c, size_t i, uint64_t offset)
{
	size_t j = i + 1;

	if (offset < c->list[i].last)
		return j;
	while (j < c->n && c->list[j].last == 0)
		j++;
	return j < c->n && c->list[j].direct ? j : j + 1;
}

/* Measures the distance of the marks around the branch's packet. */
static void measure_apart(struct times *t, const struct lane *l, const struct branch *b)
{
	const struct marks *c = &t->marks[l->cpu % MAX_CPUS];
	bool told = is_told(t, b);
	size_t lo = 0, hi = c->n;
	uint64_t apart;

	if (l->cpu >= MAX_CPUS || !is_bounded(b))
		return;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->list[mid].offset <= b->offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return;
	hi = told || b->to == 0 || b->from == 0 ? lo : end_of_untold(c, lo - 1, b->offset);
	if (hi >= c->n)
		return;
	apart = c->list[hi].ticks - c->list[lo - 1].ticks;
	add_mean(&t->between, b, apart);
	if (told)
		add_mean(&t->between_told, b, apart);
}

static void take(struct times *t, struct lane *l, const struct branch *b)
{
	bool known;

	t->branches++;
	if (l == NULL || l->wrong)
		return;
	known = b->from == 0 || b->to == 0 ? check_edge(t, l, b) : check_branch(t, l, b);
	t->checked += known;
	measure(t, b);
	if (t->with_marks)
		measure_apart(t, l, b);
}

static bool read_branches(struct times *t, FILE *f)
{
	struct lane *l = t->n_lanes == 1 ? t->lanes : NULL;
	char *line = NULL;
	size_t room = 0;
	bool fine = true;

	while (fine && getline(&line, &room, f) > 0) {
		struct branch b;
		uint32_t cpu, pid, tid;

		if (sscanf(line, "# cpu %" SCNu32 " pid %" SCNu32 " tid %" SCNu32, &cpu, &pid,
			   &tid) == 3)
			l = lane_of(t, pid, tid, cpu);
		else if (strncmp(line, "# cpu ", 6) == 0)
			l = NULL;
		else if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
				&b.from, &b.to, &b.lo, &b.hi, &b.offset) == 5)
			take(t, l, &b);
		else
			fine = *line == '#';
	}
	if (!fine)
		fprintf(stderr, "invalid line: %s", line);
	free(line);
	return fine;
}

static void add_mark(struct marks *c, const struct mark *m)
{
	if (c->n == c->room) {
		c->room = 2 * c->room + 4096;
		c->list = realloc(c->list, c->room * sizeof(*c->list));
		if (c->list == NULL)
			exit(3);
	}
	c->list[c->n++] = *m;
}

static bool read_marks(struct times *t, const char *path)
{
	FILE *f = fopen(path, "r");
	struct mark m;
	uint32_t cpu;

	if (f == NULL)
		return false;
	while (fscanf(f, "%" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64, &cpu,
		      &m.offset, &m.ticks, &m.direct, &m.last) == 5)
		if (cpu < MAX_CPUS)
			add_mark(&t->marks[cpu], &m);
	fclose(f);
	t->with_marks = true;
	return true;
}

static bool parse(struct times *t, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (strncmp(argv[i], "--marks=", 8) == 0) {
			if (!read_marks(t, argv[i] + 8))
				return false;
		} else if (strcmp(argv[i], "--lossy") == 0)
			t->lossy = true;
		else if (t->n_spans == MAX_SPANS || strncmp(argv[i], "--cpu=", 6) != 0 ||
			 truth_span_parse(argv[i] + 6, &t->spans[t->n_spans++]) < 0)
			return false;
	}
	return argc >= 2 && argv[1][0] != '-';
}

static void print_mean(const char *name, const struct mean *m)
{
	double n = (double)MAX_OF(m->n, UINT64_C(1));

	printf(",\"%s\":{\"branches\":%" PRIu64 ",\"meanWidth\":%.2f,\"meanApart\":%.2f}", name,
	       m->n, m->widths / n, m->aparts / n);
}

static void print(const struct times *t)
{
	uint64_t bounded = t->branches - t->unbounded;

	printf("{\"branches\":%" PRIu64 ",\"checked\":%" PRIu64
	       ",\"meanWidth\":%.2f,\"told\":%" PRIu64 ",\"meanTold\":%.2f,\"widest\":%" PRIu64
	       ",\"unbounded\":%" PRIu64,
	       t->branches, t->checked, t->widths / (double)MAX_OF(bounded, UINT64_C(1)), t->told,
	       t->told_widths / (double)MAX_OF(t->told, UINT64_C(1)), t->widest, t->unbounded);
	if (t->with_marks) {
		print_mean("between", &t->between);
		print_mean("betweenTold", &t->between_told);
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	static struct times t;
	const struct truth_visitor v = {.begin = on_begin,
					.stretch = on_stretch,
					.run = on_run,
					.mark = on_mark,
					.end = on_end,
					.userdata = &t};
	char *bad;
	int r;

	if (!parse(&t, argc, argv)) {
		fprintf(stderr,
			"usage: truth_times DIR [--cpu=N:FROM:STOP ...] [--lossy] [--marks=FILE]"
			" < BRANCHES\n");
		return 2;
	}
	r = truth_walk(argv[1], t.spans, t.n_spans, &v, &bad);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", bad ? bad : argv[1], strerror(-r));
		free(bad);
		return 1;
	}
	if (!read_branches(&t, stdin))
		return 1;
	print(&t);
	for (size_t i = 0; i < t.n_lanes; i++)
		free(t.lanes[i].ways);
	for (size_t i = 0; i < MAX_CPUS; i++)
		free(t.marks[i].list);
	return t.failed ? 1 : 0;
}
