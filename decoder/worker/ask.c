/*
 * The worker's end of WORKER_IMAGE, WORKER_DEBUG and WORKER_KEEP.
 *
 * An answer brings a file that may be a stranger's. The file is read with pread(2) alone: if it
 * were mapped and then became shorter, the process would be killed.
 */
#include "decoder/worker/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/channel.h"
#include "proto/worker.h"

void ask_init(struct ask *a, int channel, uint32_t n_images, bool with_debug)
{
	*a = (struct ask){.channel = channel, .n_images = n_images, .debug = with_debug};
	for (size_t i = 0; i < ASK_MAX_OPEN; i++)
		a->files[i].fd = -1;
}

void ask_done(struct ask *a)
{
	for (size_t i = 0; i < ASK_MAX_OPEN; i++)
		a->files[i].fd = close_fd(a->files[i].fd);
	free(a->build_ids);
	a->build_ids = NULL;
}

static int send(const struct ask *a, const struct worker_message *m)
{
	return channel_send(a->channel, m, sizeof(*m), NULL, 0);
}

/* Receives the answer to a question for IMAGE. After an invalid answer the decode must end: a later
 * question could get the answer of an earlier one. */
static int receive(const struct ask *a, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct worker_image answer;
	size_t size, n_fds;
	int fd = -1;
	int r = channel_receive(a->channel, &answer, sizeof(answer), &size, &fd, 1, &n_fds);

	if (r != 0)
		return r < 0 ? r : -EPIPE;
	if (size != sizeof(answer) || answer.image != image || answer.error > 0 ||
	    (answer.error == 0) != (n_fds == 1)) {
		close_fd(fd);
		return -EPROTO;
	}
	*ret_fd = fd;
	*ret_size = answer.size;
	return answer.error;
}

/* Makes the question for IMAGE. A debug file is known only by the build id of an earlier question.
 */
static int make_question(struct ask *a, uint32_t image, struct worker_message *ret)
{
	const struct ask_build_id *id;

	*ret = (struct worker_message){.kind = WORKER_IMAGE, .image = image};
	if (image < a->n_images)
		return 0;
	ret->kind = WORKER_DEBUG;
	ret->image = image - a->n_images;
	if (!a->build_ids || ret->image >= a->n_images)
		return -ENOENT;
	id = &a->build_ids[ret->image];
	if (id->size == 0 || a->n_debug >= WORKER_MAX_DEBUG)
		return -ENOENT;
	a->n_debug++;
	ret->build_id_size = id->size;
	memcpy(ret->build_id, id->bytes, id->size);
	return 0;
}

static int find(struct ask *a, uint32_t image, struct ask_file **ret)
{
	struct worker_message question;
	struct ask_file *place = &a->files[0];
	int r;

	a->now++;
	for (size_t i = 0; i < ASK_MAX_OPEN; i++) {
		struct ask_file *f = &a->files[i];

		if (f->fd >= 0 && f->image == image) {
			f->used = a->now;
			*ret = f;
			return 0;
		}
		/* A free place, or else the place of the file that was used longest ago. */
		if (place->fd >= 0 && (f->fd < 0 || f->used < place->used))
			place = f;
	}
	r = make_question(a, image, &question);
	if (r < 0)
		return r;
	place->fd = close_fd(place->fd);
	r = send(a, &question);
	if (r == 0)
		r = receive(a, question.image, &place->fd, &place->size);
	if (r < 0)
		return r;
	place->image = image;
	place->used = a->now;
	*ret = place;
	return 0;
}

static int open_image(void *userdata, uint32_t image, uint64_t *ret_size)
{
	struct ask_file *f;
	int r = find(userdata, image, &f);

	if (r == 0)
		*ret_size = f->size;
	return r;
}

static int open_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		      uint64_t *ret_size)
{
	struct ask *a = userdata;
	struct ask_build_id *id;

	if (image >= a->n_images || id_size > sizeof(id->bytes))
		return -ENOENT;
	if (!a->build_ids)
		a->build_ids = calloc(a->n_images, sizeof(*a->build_ids));
	if (!a->build_ids)
		return -ENOMEM;
	id = &a->build_ids[image];
	id->size = (uint8_t)id_size;
	memcpy(id->bytes, build_id, id_size);
	return open_image(a, a->n_images + image, ret_size);
}

static ssize_t read_image(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	struct ask_file *f;
	ssize_t n;
	int r = find(userdata, image, &f);

	if (r < 0)
		return r;
	if (offset > INT64_MAX)
		return 0;
	do
		n = pread(f->fd, to, size, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

struct image_loader ask_loader(struct ask *a, uint64_t max_filled)
{
	return (struct image_loader){.open = open_image,
				     .read = read_image,
				     .userdata = a,
				     .max_filled = max_filled,
				     .debug = a->debug ? open_debug : NULL};
}

int ask_keep(struct ask *a, uint32_t image, uint64_t offset, uint64_t size)
{
	const struct worker_message m = {
		.kind = WORKER_KEEP, .image = image, .offset = offset, .size = size};

	return image < a->n_images ? send(a, &m) : 0;
}
