/*
 * What a worker asks, answered offline. Where a program lay, the bundle's manifest says, which is
 * opened for the first question. Nothing here reads what is in a file.
 */
#include "ctl/decode/answers.h"

#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"

#include "ctl/base/say.h"

int answers_init(struct answers *a, const struct decode_request *q, int bundle_fd)
{
	int r = 0;

	*a = (struct answers){.bundle_fd = bundle_fd, .by_net = q->debuginfod};
	debug_files_init(&a->files);
	debuginfod_init(&a->servers);
	for (size_t i = 0; i < q->n_symbols && r == 0; i++) {
		r = debug_files_add(&a->files, q->symbols[i]);
		if (r < 0)
			say("--symbols=%s: %s", q->symbols[i], strerror(-r));
	}
	return r < 0 ? EXIT_CODE_FAILURE : 0;
}

void answers_done(struct answers *a)
{
	debug_files_done(&a->files);
	debuginfod_done(&a->servers);
	bundle_free(a->bundle);
}

/* An image that is elsewhere, and not beside the bundle either. */
static int count_absent(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct answers *a = userdata;

	(void)image;
	(void)ret_fd;
	(void)ret_size;
	a->absent++;
	return -ENOENT;
}

/* NULL: there is no such image. */
static const char *path_of(struct answers *a, uint32_t image)
{
	const struct manifest *m;

	if (!a->opened && bundle_open(a->bundle_fd, &a->bundle) < 0)
		a->bundle = NULL;
	a->opened = true;
	m = a->bundle ? bundle_manifest(a->bundle) : NULL;
	return m && image < m->n_images ? m->images[image].path : NULL;
}

static int find_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		      int *ret_fd, uint64_t *ret_size)
{
	struct answers *a = userdata;
	const char *path = path_of(a, image);
	int r = debug_files_find(&a->files, build_id, id_size, path, ret_fd, ret_size);

	if (r == 0 || !a->by_net)
		return r;
	path = debuginfod_find(&a->servers, build_id, id_size);
	return path ? debug_files_open(&a->files, path, ret_fd, ret_size) : -ENOENT;
}

void answers_use(struct answers *a, struct worker_job *job)
{
	job->image = count_absent;
	job->debug = find_debug;
	job->userdata = a;
}

void answers_remark(const struct answers *a, const char *name)
{
	if (a->absent > 0)
		say("%s: %ju of the images that it needs are not in it; on the host where it was "
		    "taken, `ptsnapctl fetch --format=bundle' gives one that has them",
		    name, (uintmax_t)a->absent);
	if (a->files.without_path)
		say("--symbols: this kernel cannot look for a path below a directory (openat2, "
		    "Linux 5.6); files were only found by build id");
	if (a->servers.error)
		say("--debuginfod: debuginfod-find cannot be run: %s", strerror(-a->servers.error));
}
