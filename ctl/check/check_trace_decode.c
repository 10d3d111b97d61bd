/*
 * Decodes the bundle and compares its branches with the model. The bundle of a running recorder is
 * cut first into a small bundle for each CPU with a walk, with the trace of this CPU and the image
 * of ptsnap-walk: a host with many CPUs and programs then takes no longer than a small one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/perf/ptpacket.h"
#include "proto/report.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

#define DECODE_USEC 120000000ull

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Chooses the images of ptsnap-walk by their file name: where the recorder is, the path may be
 * another. IMAGES has room for all images. */
static size_t choose_images(const struct check *c, struct manifest_image *images, size_t *indices)
{
	const struct manifest *m = bundle_manifest(c->bundle);
	const char *walk = last_part(c->walk_path), *name;
	size_t i, n = 0;

	for (i = 0; i < m->n_images; i++) {
		name = last_part(m->images[i].path);
		if (!name || (strcmp(name, walk) != 0 && strcmp(name, CHECK_WALK_NAME) != 0))
			continue;
		images[n] = m->images[i];
		indices[n++] = i;
	}
	return n;
}

static void write_members(struct bundle_writer *w, const struct bundle *b, size_t cpu,
			  const struct manifest *m, const size_t *images)
{
	const uint8_t *data;
	char name[32];
	size_t size, i;

	snprintf(name, sizeof(name), "cpu%u.pt", m->cpus[0].cpu);
	data = bundle_cpu(b, cpu, &size);
	bundle_write_member(w, name, data, size);
	data = bundle_sideband(b, &size);
	bundle_write_member(w, "sideband", data, size);
	for (i = 0; i < m->n_images; i++) {
		data = bundle_image(b, images[i], &size);
		if (!data)
			continue;
		snprintf(name, sizeof(name), "images/%zu", i);
		bundle_write_member(w, name, data, size);
	}
}

static int write_cut(const struct check *c, size_t cpu, int fd)
{
	struct manifest m = *bundle_manifest(c->bundle);
	CLEANUP_FREE struct manifest_image *images = calloc(m.n_images + 1, sizeof(*images));
	CLEANUP_FREE size_t *indices = calloc(m.n_images + 1, sizeof(*indices));
	struct bundle_writer w;

	if (!images || !indices)
		return -ENOMEM;
	m.cpus += cpu;
	m.n_cpus = 1;
	m.n_images = choose_images(c, images, indices);
	m.images = images;
	/* The branches of a walk need no texts, which are not copied. */
	m.n_texts = 0;
	m.n_pevents = 0;
	bundle_writer_init(&w, fd);
	write_members(&w, c->bundle, cpu, &m, indices);
	return bundle_write_end(&w, &m);
}

/* Copies one CPU of the bundle to a new bundle in memory. */
static int cut(const struct check *c, size_t cpu, int *ret_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;
	int r = memfd_new("ptsnap-cut", 0, &fd);

	if (r == 0)
		r = write_cut(c, cpu, fd);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a bundle of one CPU: %s",
				 strerror(-r));
	*ret_fd = take_fd(&fd);
	return 0;
}

/* --- The lines that the worker writes for --view=branches. Each branch belongs to a walk; other
 * lines are skipped. --- */

/* One thread that runs, or may run, a walk. */
struct thread {
	uint32_t tid;
	struct walk_match match;
};

struct reader {
	struct check *check;
	struct thread *threads[CHECK_WALKS_MAX]; /* owned */
	size_t n_threads;
	/* The lines being read belong to: */
	struct thread *thread; /* NULL: no walk, as far as is known */
	size_t cpu;	       /* index in the manifest; its number of CPUs: unknown */
	uint32_t tid;	       /* 0: unknown */
	bool may_jump;
};

static void reader_done(struct reader *r)
{
	for (size_t i = 0; i < r->n_threads; i++)
		free(r->threads[i]);
}

static int add_thread(struct reader *r)
{
	const struct check_walk *walk = check_walks_find(r->check, r->tid);
	struct thread *t;

	if (r->n_threads == CHECK_WALKS_MAX)
		return 0;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->tid = r->tid;
	walk_match_init(&t->match, r->check->seed, walk ? (int)(walk - r->check->walks) : -1);
	t->match.may_jump = r->may_jump;
	r->threads[r->n_threads++] = t;
	r->thread = t;
	return 0;
}

/* Reads a number of BASE, and moves *TEXT behind the number and one blank. */
static bool take_number(const char **text, unsigned base, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;

	for (;; p++) {
		unsigned digit = *p >= '0' && *p <= '9'	  ? (unsigned)(*p - '0')
				 : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
							  : 16;

		if (digit >= base)
			break;
		v = v * base + digit;
	}
	if (p == *text)
		return false;
	*text = *p == ' ' ? p + 1 : p;
	*ret = v;
	return true;
}

static bool take_word(const char **text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*text, word, n) != 0)
		return false;
	*text += n;
	return true;
}

/* "# cpu N pid P tid T" */
static void take_owner(struct reader *r, const char *text)
{
	const struct manifest *m = bundle_manifest(r->check->bundle);
	uint64_t cpu = UINT64_MAX, pid, tid = 0;

	if (!take_number(&text, 10, &cpu))
		take_word(&text, "- ");
	if (!take_word(&text, "pid ") ||
	    (!take_number(&text, 10, &pid) && !take_word(&text, "- ")) ||
	    !take_word(&text, "tid ") || !take_number(&text, 10, &tid))
		tid = 0;
	for (r->cpu = 0; r->cpu < m->n_cpus && m->cpus[r->cpu].cpu != cpu; r->cpu++)
		;
	r->tid = (uint32_t)tid;
	r->thread = NULL;
	for (size_t i = 0; i < r->n_threads && !r->thread; i++)
		if (r->threads[i]->tid == r->tid)
			r->thread = r->threads[i];
}

static void count_gap(struct check *c, const char *kind)
{
	size_t i;

	for (i = 0; i < c->n_gaps; i++)
		if (strcmp(c->gaps[i].kind, kind) == 0)
			break;
	if (i == CHECK_GAPS_MAX)
		return;
	if (i == c->n_gaps) {
		snprintf(c->gaps[i].kind, sizeof(c->gaps[i].kind), "%.31s", kind);
		c->n_gaps++;
	}
	c->gaps[i].n++;
}

/* A gap whose thread is not known may be in the trace of any thread. */
static void take_gap(struct reader *r, const char *kind)
{
	if (r->thread) {
		walk_match_gap(&r->thread->match);
		count_gap(r->check, kind);
		return;
	}
	for (size_t i = 0; r->tid == 0 && i < r->n_threads; i++)
		walk_match_gap(&r->threads[i]->match);
}

/* Under the running recorder, walks are known by their threads. Under the test's own recorder, only
 * walks have code at the addresses of ptsnap-walk. */
static bool may_be_walk(const struct reader *r, const struct walk_line *line)
{
	if (r->tid == 0)
		return false;
	if (r->check->live)
		return check_walks_find(r->check, r->tid) != NULL;
	return walk_model_has(line->from) || walk_model_has(line->to);
}

static int take_branch(struct reader *r, const struct walk_line *line)
{
	struct check_cpu *cpu;
	bool differed;

	if (r->cpu == bundle_manifest(r->check->bundle)->n_cpus)
		return 0;
	cpu = &r->check->cpus[r->cpu];
	if (line->lo != 0 && (cpu->tsc_first == 0 || line->lo < cpu->tsc_first))
		cpu->tsc_first = line->lo;
	if (line->hi != UINT64_MAX && line->hi > cpu->tsc_last)
		cpu->tsc_last = line->hi;
	if (!r->thread && (!may_be_walk(r, line) || add_thread(r) < 0 || !r->thread))
		return 0;
	differed = r->thread->match.first.known;
	walk_match_line(&r->thread->match, line, &cpu->tally);
	if (!differed && r->thread->match.first.known && !cpu->difference.known)
		cpu->difference = r->thread->match.first;
	return 0;
}

static int take_line(struct reader *r, char *text)
{
	struct walk_line line;
	const char *p = text;

	text[strcspn(text, "\n")] = '\0';
	if (take_word(&p, "# cpu "))
		take_owner(r, p);
	else if (take_word(&p, "# gap "))
		take_gap(r, p);
	else if (take_number(&p, 16, &line.from) && take_number(&p, 16, &line.to) &&
		 take_number(&p, 16, &line.lo) && take_number(&p, 16, &line.hi) &&
		 take_number(&p, 16, &line.offset))
		return take_branch(r, &line);
	return 0;
}

/* Whether a walk may have executed code that no ring has: it moved between CPUs, and a ring was
 * overwritten. Walks under the running recorder are bound to one CPU. */
static bool may_jump(const struct check *c)
{
	const struct manifest *m = bundle_manifest(c->bundle);
	bool full = false;

	for (size_t i = 0; i < m->n_cpus; i++)
		full |= m->cpus[i].bytes >= m->cpus[i].ring_bytes;
	return full && !c->live;
}

struct comparison {
	struct check *check;
	FILE *lines;
	int code;
};

/* The thread that reads the lines to their end, or the worker would wait for it. */
static void *compare_lines(void *userdata)
{
	struct comparison *comparison = userdata;
	struct check *c = comparison->check;
	CLEANUP(reader_done) struct reader r = {.check = c};
	char text[256];
	int error = 0;

	r.may_jump = may_jump(c);
	r.cpu = bundle_manifest(c->bundle)->n_cpus;
	while (fgets(text, sizeof(text), comparison->lines))
		if (error == 0)
			error = take_line(&r, text);
	comparison->code = error == 0 ? 0 : say_error(EXIT_CODE_FAILURE, "out of memory");
	return NULL;
}

/* --- The worker --- */

static int run_worker(const struct check *c, int bundle_fd, int output_fd, enum worker_view view)
{
	struct worker_outcome outcome;
	const struct worker_job job = {
		.program = c->worker_path,
		.bundle_fd = bundle_fd,
		.output_fd = output_fd,
		.request.options = {.view = view,
				    .show = view == WORKER_VIEW_BRANCHES
						    ? WORKER_SHOW_TIME | WORKER_SHOW_PLACES
						    : 0,
				    .report_limit = REPORT_DECODE_LIMIT,
				    .memory_limit = worker_memory()},
		.timeout_usec = DECODE_USEC,
		.cancel_fd = -1,
	};
	int r = worker_run(&job, &outcome);

	say_worker(&outcome.said);
	if (r == 0)
		return 0;
	if (r == WORKER_TIMEOUT)
		return say_error(EXIT_CODE_TIMEOUT, "not decoded in time");
	if (r == WORKER_CRASHED)
		return say_error(EXIT_CODE_FAILURE, "%s was killed by signal %d (%s)",
				 c->worker_path, outcome.signal, strsignal(outcome.signal));
	return say_error(EXIT_CODE_FAILURE, "%s: %s", c->worker_path,
			 r < 0		      ? strerror(-r)
			 : outcome.error != 0 ? strerror(-outcome.error)
					      : "ended without a result");
}

/* Compares lines while the worker writes them: all lines may be more than fits in memory. */
static int compare(struct check *c, int bundle_fd)
{
	struct comparison comparison = {.check = c};
	CLEANUP_CLOSE int to = -EBADF;
	pthread_t thread;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a pipe: %m");
	to = ends[1];
	comparison.lines = fdopen(ends[0], "re");
	if (!comparison.lines) {
		close_fd(ends[0]);
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	r = pthread_create(&thread, NULL, compare_lines, &comparison);
	if (r == 0) {
		r = run_worker(c, bundle_fd, to, WORKER_VIEW_BRANCHES);
		to = close_fd(to);
		pthread_join(thread, NULL);
	} else {
		r = say_error(EXIT_CODE_FAILURE, "cannot start a thread: %s", strerror(r));
	}
	fclose(comparison.lines);
	return r != 0 ? r : comparison.code;
}

/* Compares the branches of a bundle; the first bundle also gives the report. */
static int decode_one(struct check *c, int bundle_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;
	int r = compare(c, bundle_fd);

	if (r != 0 || c->report)
		return r;
	if (memfd_new("ptsnap-report", 0, &fd) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a memory file: %m");
	r = run_worker(c, bundle_fd, fd, WORKER_VIEW_REPORT);
	if (r != 0)
		return r;
	lseek(fd, 0, SEEK_SET);
	c->report = json_object_from_fd(fd);
	return 0;
}

/* SDM volume 3, 33.4.2.17: a PSB is eight times the bytes 02 82. */
static bool is_psb(const uint8_t *p)
{
	for (size_t i = 0; i < PT_PSB_SIZE; i += 2)
		if (p[i] != PT_OPC_EXT || p[i + 1] != PT_EXT_PSB)
			return false;
	return true;
}

static void measure_psbs(const struct bundle *b, size_t index, struct check_cpu *cpu)
{
	size_t size, i = 0, before = 0;
	const uint8_t *trace = bundle_cpu(b, index, &size);

	while (size >= PT_PSB_SIZE && i <= size - PT_PSB_SIZE) {
		if (!is_psb(trace + i)) {
			i++;
			continue;
		}
		if (cpu->psbs++ > 0) {
			cpu->psb_sum += i - before;
			cpu->psb_max = MAX_OF(cpu->psb_max, i - before);
		}
		if (cpu->psbs == 1)
			cpu->bytes = size - i;
		before = i;
		i += PT_PSB_SIZE;
	}
}

static int decode_each(struct check *c)
{
	size_t n = bundle_manifest(c->bundle)->n_cpus;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		CLEANUP_CLOSE int fd = -EBADF;

		if (!c->cpus[i].walked || c->cpus[i].psbs == 0)
			continue;
		r = cut(c, i, &fd);
		if (r == 0)
			r = decode_one(c, fd);
	}
	return r;
}

int check_decode(struct check *c)
{
	const struct manifest *m = bundle_manifest(c->bundle);

	c->cpus = calloc(m->n_cpus + 1, sizeof(*c->cpus));
	if (!c->cpus)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	/* A CPU must show a walk if a walk ran on it. With a recorder of our own, each CPU that has
	 * a trace must show one. */
	for (size_t i = 0; i < m->n_cpus; i++) {
		measure_psbs(c->bundle, i, &c->cpus[i]);
		for (size_t k = 0; k < c->n_walks; k++)
			c->cpus[i].walked |= c->walks[k].cpu == m->cpus[i].cpu;
		c->cpus[i].walked |= !c->live && c->cpus[i].psbs > 0;
	}
	return c->live ? decode_each(c) : decode_one(c, c->bundle_fd);
}
