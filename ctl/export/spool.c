/*
 * A temporary file without a name in which each thread has a strand of numbers: pieces of fixed
 * size, each of which says where the next piece of the strand is.
 */
#include "ctl/export/export_private.h"

#include <fcntl.h>

#include "proto/memfd.h"

#define PIECE	   4096u
#define MAX_NUMBER 10u /* bytes of a number */

struct piece {
	uint64_t next; /* where the next one is, if there is one */
	uint32_t used;
	uint32_t last; /* flag */
	uint8_t data[PIECE - 16];
};
_Static_assert(sizeof(struct piece) == PIECE, "has no padding");

struct spool {
	int fd;
	uint64_t end;
};

struct spool_strand {
	uint64_t first, at; /* places of the first piece and of PIECE */
	size_t read;	    /* bytes of PIECE */
	struct piece piece;
};

int spool_new(struct spool **ret)
{
	const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	struct spool *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->fd = -EBADF;
	for (size_t i = 0; i < ARRAY_SIZE(places) && s->fd < 0; i++)
		if (places[i] && *places[i])
			s->fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd < 0)
		r = memfd_new("ptsnap-export", 0, &s->fd);
	if (r < 0)
		spool_freep(&s);
	*ret = s;
	return r;
}

void spool_freep(struct spool **s)
{
	if (*s)
		close_fd((*s)->fd);
	free(*s);
	*s = NULL;
}

int spool_strand_new(struct spool *s, struct spool_strand **ret)
{
	struct spool_strand *strand = calloc(1, sizeof(*strand));

	if (!strand)
		return -ENOMEM;
	strand->first = strand->at = s->end;
	s->end += PIECE;
	*ret = strand;
	return 0;
}

void spool_strand_free(struct spool_strand *strand)
{
	free(strand);
}

static int write_piece(struct spool *s, struct spool_strand *strand)
{
	const char *from = (const char *)&strand->piece;

	for (size_t done = 0; done < PIECE;) {
		ssize_t n = pwrite(s->fd, from + done, PIECE - done, (off_t)(strand->at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int read_piece(struct spool *s, struct spool_strand *strand, uint64_t at)
{
	char *to = (char *)&strand->piece;

	for (size_t done = 0; done < PIECE;) {
		ssize_t n = pread(s->fd, to + done, PIECE - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	strand->at = at;
	strand->read = 0;
	return 0;
}

int spool_put(struct spool *s, struct spool_strand *strand, uint64_t v)
{
	struct piece *p = &strand->piece;
	int r;

	if (p->used > sizeof(p->data) - MAX_NUMBER) {
		p->next = s->end;
		r = write_piece(s, strand);
		if (r < 0)
			return r;
		strand->at = s->end;
		s->end += PIECE;
		p->used = 0;
	}
	for (; v > 127; v >>= 7)
		p->data[p->used++] = (uint8_t)(v | 128);
	p->data[p->used++] = (uint8_t)v;
	return 0;
}

int spool_rewind(struct spool *s, struct spool_strand *strand)
{
	int r;

	strand->piece.last = 1;
	r = write_piece(s, strand);
	return r < 0 ? r : read_piece(s, strand, strand->first);
}

int spool_get(struct spool *s, struct spool_strand *strand, uint64_t *ret)
{
	const struct piece *p = &strand->piece;
	uint64_t v = 0;
	uint8_t byte;
	int r;

	if (strand->read == p->used) {
		r = p->last ? -ENODATA : read_piece(s, strand, p->next);
		if (r < 0)
			return r;
	}
	/* The file has no name: nobody else wrote these bytes. */
	for (unsigned shift = 0;; shift += 7) {
		byte = p->data[strand->read++];
		v |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			break;
	}
	*ret = v;
	return 0;
}
