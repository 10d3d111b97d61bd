/*
 * Small pieces to a file, collected. Called by export_perfdata.c and export_records.c.
 */
#include "ctl/perfdata/export_sink.h"

#include "proto/memfd.h"

#define COLLECT (64u << 10)

void sink_init(struct sink *s, int fd)
{
	*s = (struct sink){.fd = fd};
	bytes_out_init(&s->pending, 2 * COLLECT);
}

void sink_done(struct sink *s)
{
	bytes_out_done(&s->pending);
}

static void write_out(struct sink *s, const void *data, size_t size)
{
	if (!s->error)
		s->error = memfd_write_all(s->fd, data, size);
}

int sink_flush(struct sink *s)
{
	if (!s->error)
		s->error = s->pending.error;
	write_out(s, s->pending.data, s->pending.size);
	bytes_out_reset(&s->pending);
	return s->error;
}

void sink_block(struct sink *s, const void *data, size_t size)
{
	s->bytes += size;
	if (size < COLLECT)
		bytes_put_block(&s->pending, data, size);
	if (size >= COLLECT || s->pending.size >= COLLECT)
		sink_flush(s);
	if (size >= COLLECT)
		write_out(s, data, size);
}
