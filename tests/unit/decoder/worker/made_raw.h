/*
 * A bundle of a raw trace, as ptsnapctl makes it, opened.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/bundle/bundle.h"

struct made_file {
	const void *data;
	size_t size;
};

/* M (initialised; done with afterwards) gets one CPU with TRACE; FILES are the members of its
 * pevents. */
static inline struct bundle *made_raw(struct manifest *m, const void *trace, size_t size,
				      const struct made_file *files)
{
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct manifest_cpu *cpu = manifest_add_cpu(m);
	struct bundle *bundle = NULL;
	struct bundle_writer w;
	char name[32];

	assert_true(fd >= 0 && cpu != NULL);
	cpu->ring_bytes = cpu->bytes = size;
	cpu->aux_flags = cpu->lost_records = 0;
	m->id = strdup("raw");
	m->version = strdup("0");
	m->trigger_kind = strdup("offline");
	if (m->source == NULL)
		m->source = strdup("raw");
	bundle_writer_init(&w, fd);
	bundle_write_member(&w, "cpu0.pt", trace, size);
	for (size_t i = 0; i < m->n_pevents; i++) {
		snprintf(name, sizeof(name), "pevent/%zu", i);
		m->pevents[i].size = files[i].size;
		bundle_write_member(&w, name, files[i].data, files[i].size);
	}
	if (strcmp(m->source, "raw") != 0)
		bundle_write_member(&w, "sideband", "", 0);
	assert_int_equal(bundle_write_end(&w, m), 0);
	manifest_done(m);
	assert_int_equal(bundle_open(fd, &bundle), 0);
	close(fd);
	return bundle;
}
