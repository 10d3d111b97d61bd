/*
 * The truth file of one thread; the thread itself writes it. When the disk is full, the file ends
 * there. No file descriptor stays open, because a guest may close all descriptors.
 */
#include "capture/emu/plugin/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

#define WINDOW (1u << 20)

struct truth {
	char *path;
	uint8_t *map;		  /* NULL: an error occurred, nothing more is written */
	uint64_t offset;	  /* of the mapping in the file */
	uint32_t pos;		  /* of the next byte in the mapping */
	const struct block *last; /* the last item is a complete execution of this block */
	uint64_t again;
	uint8_t *again_at; /* the count in the mapping; NULL: no TRUTH_AGAIN yet */
	uint64_t tsc;	   /* of the last TRUTH_TIME; 0: none */
	/* Bit set by block number: the file has its definition. */
	uint64_t *known;
	size_t n_known; /* words */
};

static int map_window(struct truth *t)
{
	CLEANUP_CLOSE int fd = open(t->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	void *map;
	int r;

	if (fd < 0)
		return -errno;
	/* Allocate the blocks: a full disk must fail here, and not as SIGBUS later. */
	r = posix_fallocate(fd, (off_t)t->offset, WINDOW);
	if (r != 0)
		return -r;
	map = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)t->offset);
	if (map == MAP_FAILED)
		return -errno;
	t->map = map;
	return 0;
}

static void unmap_window(struct truth *t)
{
	if (t->map)
		munmap(t->map, WINDOW);
	t->map = NULL;
}

static void put(struct truth *t, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	while (t->map && size > 0) {
		size_t part = WINDOW - t->pos < size ? WINDOW - t->pos : size;

		memcpy(t->map + t->pos, from, part);
		t->pos += (uint32_t)part;
		from += part;
		size -= part;
		if (t->pos < WINDOW)
			continue;
		unmap_window(t);
		t->offset += WINDOW;
		t->pos = 0;
		map_window(t);
	}
}

static void put_varint(struct truth *t, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	put(t, bytes, n);
}

static void free_truth(struct truth *t)
{
	free(t->path);
	free(t->known);
	free(t);
}

int truth_open(const char *dir, uint32_t pid, uint32_t tid, struct truth **ret)
{
	struct truth *t = calloc(1, sizeof(*t));
	struct stat st;
	int r;

	if (!t)
		return -ENOMEM;
	if (asprintf(&t->path, "%s/%u.%u", dir, pid, tid) < 0) {
		t->path = NULL;
		free_truth(t);
		return -ENOMEM;
	}
	if (stat(t->path, &st) == 0) {
		t->offset = (uint64_t)st.st_size & ~(uint64_t)(WINDOW - 1);
		t->pos = (uint32_t)((uint64_t)st.st_size & (WINDOW - 1));
	}
	r = map_window(t);
	if (r < 0) {
		free_truth(t);
		return r;
	}
	if (t->offset + t->pos == 0)
		put(t, TRUTH_MAGIC, 8);
	*ret = t;
	return 0;
}

/* The next item is no repetition of the last block. */
static void end_again(struct truth *t)
{
	t->again = 0;
	t->again_at = NULL;
	t->last = NULL;
}

/* Counts a repetition of the last block. The count is in the file from the first repetition on, as
 * a varint of eight bytes, so that it survives when the thread is killed. False: the mapped window
 * has too little room for the item. */
static bool count_again(struct truth *t)
{
	if (!t->again_at) {
		if (WINDOW - t->pos <= 1 + 8)
			return false;
		t->map[t->pos] = TRUTH_AGAIN;
		t->again_at = t->map + t->pos + 1;
		t->pos += 1 + 8;
	}
	t->again++;
	for (unsigned int i = 0; i < 8; i++)
		t->again_at[i] = (uint8_t)(t->again >> (7 * i) & 0x7f) | (i < 7 ? 0x80 : 0);
	return true;
}

void truth_close(struct truth *t)
{
	if (!t)
		return;
	end_again(t);
	/* If truncate fails, zeros remain at the end; readers take them as TRUTH_END. */
	if (t->map && truncate(t->path, (off_t)(t->offset + t->pos)) < 0)
		t->pos = 0;
	unmap_window(t);
	free_truth(t);
}

void truth_inherit(const char *dir, uint32_t pid)
{
	char first[PATH_MAX], old[PATH_MAX];
	unsigned int n = 0;

	snprintf(first, sizeof(first), "%s/%u.%u", dir, pid, pid);
	do {
		n++;
		snprintf(old, sizeof(old), "%s/%u.%u.%u", dir, pid, pid, n);
	} while (access(old, F_OK) == 0);
	/* If rename fails, two threads write to one file, and the test that compares them fails. */
	if (rename(first, old) < 0)
		return;
}

void truth_abandon(struct truth *t)
{
	if (!t)
		return;
	unmap_window(t);
	free_truth(t);
}

static uint64_t id_of(const struct block *b)
{
	return TRUTH_FIRST_ID + b->number;
}

/* Describes block B, unless the file has its description already. Without memory, nothing more is
 * written. */
static void define(struct truth *t, const struct block *b)
{
	size_t word = b->number / 64, n = t->n_known;

	if (ARRAY_RESERVE(t->known, t->n_known, word + 1) < 0) {
		unmap_window(t);
		return;
	}
	memset(t->known + n, 0, (t->n_known - n) * sizeof(*t->known));
	if (t->known[word] >> b->number % 64 & 1)
		return;
	t->known[word] |= 1ull << b->number % 64;
	put_varint(t, TRUTH_BLOCK);
	put_varint(t, id_of(b));
	put(t, &b->ip, 8);
	put(t, &b->n, 2);
	put(t, b->length, b->n);
	put(t, &b->last_size, 1);
	put(t, b->length + b->n, b->last_size);
}

void truth_block(struct truth *t, uint64_t tsc, const struct block *b, unsigned int n)
{
	uint16_t n16 = (uint16_t)n;

	if (!t || !t->map || n == 0)
		return;
	if (tsc != t->tsc) {
		end_again(t);
		put_varint(t, TRUTH_TIME);
		put(t, &tsc, 8);
		t->tsc = tsc;
	}
	if (b == t->last && n == b->n && count_again(t))
		return;
	end_again(t);
	define(t, b);
	if (n == b->n) {
		put_varint(t, id_of(b));
		t->last = b;
		return;
	}
	put_varint(t, TRUTH_PARTIAL);
	put_varint(t, id_of(b));
	put(t, &n16, 2);
}

static void put_mark(struct truth *t, enum truth_item item, uint64_t tsc, uint64_t pos)
{
	end_again(t);
	put_varint(t, item);
	put(t, &tsc, 8);
	put(t, &pos, 8);
}

void truth_enter(struct truth *t, uint32_t cpu, uint64_t tsc, uint64_t pos)
{
	if (!t)
		return;
	end_again(t);
	put_varint(t, TRUTH_ENTER);
	put(t, &cpu, 4);
	put(t, &tsc, 8);
	put(t, &pos, 8);
}

void truth_psb(struct truth *t, uint64_t tsc, uint64_t pos)
{
	if (!t)
		return;
	put_mark(t, TRUTH_PSB, tsc, pos);
	put(t, "\1", 1);
}

void truth_stop(struct truth *t, uint64_t tsc, uint64_t pos, uint32_t generation)
{
	if (!t)
		return;
	put_mark(t, TRUTH_STOP, tsc, pos);
	put(t, &generation, 4);
}

void truth_overflow(struct truth *t, uint64_t tsc, uint64_t pos, bool resolved)
{
	uint8_t flag = resolved;

	if (!t)
		return;
	put_mark(t, TRUTH_OVERFLOW, tsc, pos);
	put(t, &flag, 1);
}

void truth_jump(struct truth *t, uint64_t ip)
{
	if (!t)
		return;
	end_again(t);
	put_varint(t, TRUTH_JUMP);
	put(t, &ip, 8);
}
