/*
 * Decodes the bundle and compares its branches. The bundle of a running recorder is cut first into
 * a small bundle for each CPU with a walk, with the trace of this CPU and the image of ptsnap-walk:
 * a host with many CPUs and programs then takes no longer than a small one.
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
				    .report_limit = REPORT_DEFAULT_LIMIT},
		.timeout_usec = DECODE_USEC,
		.cancel_fd = -1,
	};
	int r = worker_run(&job, &outcome);

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

struct lines {
	struct check *check;
	FILE *from;
	int code;
};

static void *read_lines(void *userdata)
{
	struct lines *lines = userdata;

	lines->code = check_lines_read(lines->check, lines->from);
	return NULL;
}

/* Compares lines while the worker writes them: all lines may be more than fits in memory. */
static int compare(struct check *c, int bundle_fd)
{
	struct lines lines = {.check = c};
	CLEANUP_CLOSE int to = -EBADF;
	pthread_t thread;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a pipe: %m");
	to = ends[1];
	lines.from = fdopen(ends[0], "re");
	if (!lines.from) {
		close_fd(ends[0]);
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	r = pthread_create(&thread, NULL, read_lines, &lines);
	if (r == 0) {
		r = run_worker(c, bundle_fd, to, WORKER_VIEW_BRANCHES);
		to = close_fd(to);
		pthread_join(thread, NULL);
	} else {
		r = say_error(EXIT_CODE_FAILURE, "cannot start a thread: %s", strerror(r));
	}
	fclose(lines.from);
	return r != 0 ? r : lines.code;
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

/* Notes which CPUs must show a walk. With a recorder of our own, those that have a trace. */
static void find_walked(struct check *c)
{
	const struct manifest *m = bundle_manifest(c->bundle);

	for (size_t i = 0; i < m->n_cpus; i++) {
		measure_psbs(c->bundle, i, &c->cpus[i]);
		for (size_t k = 0; k < c->n_walks; k++)
			c->cpus[i].walked |= c->walks[k].cpu == m->cpus[i].cpu;
		c->cpus[i].walked |= !c->live && c->cpus[i].psbs > 0;
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
	c->cpus = calloc(bundle_manifest(c->bundle)->n_cpus + 1, sizeof(*c->cpus));
	if (!c->cpus)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	find_walked(c);
	return c->live ? decode_each(c) : decode_one(c, c->bundle_fd);
}
