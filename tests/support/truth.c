/*
 * Reads a truth file; capture/emu/plugin/truth.c writes it.
 */
#include "tests/support/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/emu/plugin/truth.h"

#define MAX_ID (1u << 28)

int truth_reader_open(struct truth_reader *r, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	memset(r, 0, sizeof(*r));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_size < 8) {
		close(fd);
		return -EBADMSG;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return -errno;
	r->bytes = map;
	r->pos = r->bytes + 8;
	r->end = r->bytes + st.st_size;
	return memcmp(map, TRUTH_MAGIC, 8) == 0 ? 0 : -EBADMSG;
}

void truth_reader_done(struct truth_reader *r)
{
	if (r->bytes != NULL)
		munmap((void *)r->bytes, (size_t)(r->end - r->bytes));
	free(r->blocks);
	memset(r, 0, sizeof(*r));
}

/* False at the end of the file; then *ret is 0, and so is everything read afterwards. */
static bool get(struct truth_reader *r, void *ret, size_t size)
{
	memset(ret, 0, size);
	if ((size_t)(r->end - r->pos) < size) {
		r->pos = r->end;
		return false;
	}
	memcpy(ret, r->pos, size);
	r->pos += size;
	return true;
}

static uint64_t get_varint(struct truth_reader *r)
{
	uint64_t v = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 64 && get(r, &byte, 1); shift += 7) {
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return v;
}

static int make_room(struct truth_reader *r, uint64_t id)
{
	size_t n = (size_t)id * 2 + 64;
	void *blocks;

	if (id < r->n_blocks)
		return 0;
	blocks = realloc(r->blocks, n * sizeof(*r->blocks));
	if (blocks == NULL)
		return -ENOMEM;
	r->blocks = blocks;
	memset(r->blocks + r->n_blocks, 0, (n - r->n_blocks) * sizeof(*r->blocks));
	r->n_blocks = n;
	return 0;
}

static int define(struct truth_reader *r)
{
	uint64_t id = get_varint(r);
	struct truth_block_def def;
	int result;

	get(r, &def.ip, 8);
	if (!get(r, &def.n, 2) || (size_t)(r->end - r->pos) < def.n || id > MAX_ID)
		return -EBADMSG;
	def.length = r->pos;
	r->pos += def.n;
	if (!get(r, &def.last_size, 1) || (size_t)(r->end - r->pos) < def.last_size)
		return -EBADMSG;
	def.last = r->pos;
	r->pos += def.last_size;
	result = make_room(r, id);
	if (result == 0)
		r->blocks[id] = def;
	return result;
}

static int executed(struct truth_reader *r, uint64_t id, int n, uint64_t times,
		    struct truth_event *ret)
{
	if (id >= r->n_blocks || r->blocks[id].length == NULL)
		return -EBADMSG;
	ret->item = TRUTH_FIRST_ID;
	ret->block = &r->blocks[id];
	ret->n = n < 0 ? ret->block->n : (unsigned int)n;
	ret->times = times;
	r->last_id = id;
	return ret->n > ret->block->n ? -EBADMSG : 1;
}

static int mark(struct truth_reader *r, int item, struct truth_event *ret)
{
	uint8_t flag = 0;

	ret->item = item;
	if (item == TRUTH_ENTER)
		get(r, &ret->cpu, 4);
	if (item == TRUTH_JUMP)
		get(r, &ret->ip, 8);
	else
		get(r, &ret->tsc, 8);
	if (item != TRUTH_JUMP && item != TRUTH_TIME)
		get(r, &ret->pos, 8);
	if (item == TRUTH_PSB || item == TRUTH_OVERFLOW)
		get(r, &flag, 1);
	if (item == TRUTH_STOP)
		get(r, &ret->generation, 4);
	ret->flag = flag != 0;
	return 1;
}

static int next(struct truth_reader *r, struct truth_event *ret)
{
	memset(ret, 0, sizeof(*ret));
	while (r->pos < r->end) {
		uint64_t id, v = get_varint(r);
		uint16_t n;
		int result;

		switch (v) {
		case TRUTH_END: return 0;
		case TRUTH_BLOCK:
			result = define(r);
			if (result < 0)
				return result;
			continue;
		case TRUTH_AGAIN: return executed(r, r->last_id, -1, get_varint(r), ret);
		case TRUTH_PARTIAL:
			id = get_varint(r);
			get(r, &n, 2);
			return executed(r, id, n, 1, ret);
		case TRUTH_PSB:
		case TRUTH_STOP:
		case TRUTH_TIME:
		case TRUTH_JUMP:
		case TRUTH_ENTER:
		case TRUTH_OVERFLOW: return mark(r, (int)v, ret);
		default: return v >= TRUTH_FIRST_ID ? executed(r, v, -1, 1, ret) : -EBADMSG;
		}
	}
	return 0;
}

#define UNUSED_MIN 4096 /* bytes; files grow by much larger steps */

/* A killed process may leave its last item half written. The rest of the mapped file is then zero.
 */
static bool is_torn(const struct truth_reader *r)
{
	if (r->end - r->pos < UNUSED_MIN)
		return false;
	for (const uint8_t *p = r->pos; p < r->end; p++)
		if (*p != 0)
			return false;
	return true;
}

int truth_reader_next(struct truth_reader *r, struct truth_event *ret)
{
	int result = next(r, ret);

	if (result != -EBADMSG || !is_torn(r))
		return result;
	r->pos = r->end;
	return 0;
}
