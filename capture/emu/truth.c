/*
 * The truth file. Called by walk.c and machine.c in the emulator's process, by whoever owns the
 * CPU's rings at that moment. When the disk is full the file ends there.
 */
#include "capture/emu/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW (1u << 20)

struct truth {
	int fd;
	uint8_t *map;	 /* NULL: given up */
	uint64_t offset; /* of map in the file */
	uint32_t pos;	 /* in map */
	uint32_t next_id;
	const struct block *last; /* for TRUTH_AGAIN */
	uint64_t again;
};

/* Allocated, not only extended: a full disk must fail here and not as SIGBUS later. */
static int map_window(struct truth *t)
{
	void *map;
	int r = posix_fallocate(t->fd, (off_t)t->offset, WINDOW);

	if (r != 0)
		return -r;
	map = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, (off_t)t->offset);
	if (map == MAP_FAILED)
		return -errno;
	t->map = map;
	t->pos = 0;
	return 0;
}

static void give_up(struct truth *t)
{
	if (t->map != NULL)
		munmap(t->map, WINDOW);
	t->map = NULL;
}

static void put(struct truth *t, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	while (t->map != NULL && size > 0) {
		size_t part = WINDOW - t->pos < size ? WINDOW - t->pos : size;

		memcpy(t->map + t->pos, from, part);
		t->pos += (uint32_t)part;
		from += part;
		size -= part;
		if (t->pos < WINDOW)
			continue;
		give_up(t);
		t->offset += WINDOW;
		map_window(t);
	}
}

static size_t varint(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

static void put_varint(struct truth *t, uint64_t v)
{
	uint8_t bytes[10];

	put(t, bytes, varint(bytes, v));
}

int truth_open(const char *path, struct truth **ret)
{
	struct truth *t = calloc(1, sizeof(*t));
	int r;

	if (t == NULL)
		return -ENOMEM;
	t->next_id = TRUTH_FIRST_ID;
	t->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	r = t->fd < 0 ? -errno : map_window(t);
	if (r < 0) {
		if (t->fd >= 0)
			close(t->fd);
		free(t);
		return r;
	}
	put(t, TRUTH_MAGIC, 8);
	*ret = t;
	return 0;
}

static void write_again(struct truth *t)
{
	if (t->again > 0) {
		put_varint(t, TRUTH_AGAIN);
		put_varint(t, t->again);
	}
	t->again = 0;
	t->last = NULL;
}

void truth_close(struct truth *t)
{
	if (t == NULL)
		return;
	write_again(t);
	if (t->map != NULL && ftruncate(t->fd, (off_t)(t->offset + t->pos)) < 0)
		t->pos = 0; /* it stays padded, which readers understand */
	give_up(t);
	close(t->fd);
	free(t);
}

static void define(struct truth *t, struct block *b)
{
	b->truth_id = t->next_id++;
	put_varint(t, TRUTH_BLOCK);
	put_varint(t, b->truth_id);
	put(t, &b->ip, 8);
	put(t, &b->n, 2);
	put(t, b->length, b->n);
}

void truth_block(struct truth *t, struct block *b, unsigned int n)
{
	uint16_t n16 = (uint16_t)n;

	if (t == NULL || t->map == NULL || n == 0)
		return;
	if (b == t->last && n == b->n) {
		t->again++;
		return;
	}
	write_again(t);
	if (b->truth_id == 0)
		define(t, b);
	if (n == b->n) {
		put_varint(t, b->truth_id);
		t->last = b;
		return;
	}
	put_varint(t, TRUTH_PARTIAL);
	put_varint(t, b->truth_id);
	put(t, &n16, 2);
}

void truth_psb(struct truth *t, uint64_t tsc, uint64_t pos, bool user)
{
	uint8_t flag = user;

	if (t == NULL)
		return;
	write_again(t);
	put_varint(t, TRUTH_PSB);
	put(t, &tsc, 8);
	put(t, &pos, 8);
	put(t, &flag, 1);
}

void truth_switch(struct truth *t, bool on, uint64_t tsc, uint64_t pos, uint32_t generation)
{
	if (t == NULL)
		return;
	write_again(t);
	put_varint(t, on ? TRUTH_START : TRUTH_STOP);
	put(t, &tsc, 8);
	put(t, &pos, 8);
	put(t, &generation, 4);
}

void truth_time(struct truth *t, uint64_t tsc)
{
	if (t == NULL)
		return;
	write_again(t);
	put_varint(t, TRUTH_TIME);
	put(t, &tsc, 8);
}

void truth_jump(struct truth *t, uint64_t ip)
{
	if (t == NULL)
		return;
	write_again(t);
	put_varint(t, TRUTH_JUMP);
	put(t, &ip, 8);
}
