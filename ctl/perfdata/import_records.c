/*
 * The kernel's records of a perf.data, translated. Called by import_perfdata.c for each record as
 * it lies in the file; the worker puts them into the order of time.
 */
#include "ctl/perfdata/import_records.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "proto/base.h"

#define MAX_SIDEBAND ((size_t)1 << 30)
/* perf's own records begin here (enum perf_user_event_type). */
#define FIRST_OF_PERF 64u

int import_records_init(struct import_records *r, const struct perfdata *data, bool timeless,
			struct import_images *images)
{
	*r = (struct import_records){.data = data, .timeless = timeless, .images = images};
	bytes_out_init(&r->out, MAX_SIDEBAND);
	r->buffer = malloc(PERFRECORD_MAX_SIZE);
	return r->buffer ? 0 : -ENOMEM;
}

void import_records_done(struct import_records *r)
{
	bytes_out_done(&r->out);
	free(r->buffer);
	r->buffer = NULL;
}

/* Of a virtual machine, whose pids and addresses are its own. */
static bool is_guests(const struct perfdata_record *record)
{
	uint16_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

static int add_image(struct import_records *r, struct perfrecord *parsed)
{
	if (parsed->type != PERF_RECORD_MMAP2 || !(parsed->u.mmap2.prot & PROT_EXEC))
		return 0;
	/* The kernel itself. */
	if (parsed->u.mmap2.pid == UINT32_MAX)
		return 0;
	return import_images_add(r->images, parsed);
}

static int put(struct import_records *r, struct perfrecord *parsed)
{
	size_t size;

	if (r->timeless)
		parsed->time = r->n + 1;
	else
		r->last_ns = MAX_OF(r->last_ns, parsed->time);
	/* The trailer may have grown a record that is as large as one can be. */
	if (perfrecord_compose(parsed, r->buffer, PERFRECORD_MAX_SIZE, &size) < 0) {
		r->bad++;
		return 0;
	}
	r->n++;
	bytes_put_block(&r->out, r->buffer, size);
	return r->out.error;
}

int import_records_add(struct import_records *r, const struct perfdata_record *record)
{
	struct perfrecord parsed;
	int result;

	if (record->type >= FIRST_OF_PERF || record->type == PERF_RECORD_SAMPLE ||
	    is_guests(record))
		return 0;
	if (perfdata_parse(r->data, record, &parsed) < 0) {
		r->bad++;
		return 0;
	}
	result = add_image(r, &parsed);
	return result < 0 ? result : put(r, &parsed);
}
