/*
 * Messages of the daemon-emulator channel, checked number by number: the recorder does not trust
 * its peer.
 */
#include "capture/emu/machine/emuoffer.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "proto/base.h"

static bool is_text(const char *text, size_t size)
{
	return text[0] != '\0' && memchr(text, '\0', size);
}

static const char *what_is_wrong(const struct emuoffer *o, struct emuring_layout *ret_l)
{
	*ret_l = (struct emuring_layout){.n_cpus = o->n_cpus,
					 .max_tasks = o->max_tasks,
					 .data_size = o->data_size,
					 .aux_size = o->aux_size};
	if ((o->flags & ~EMURING_BUILD_ID) != 0 || o->n_cpus > EMUOFFER_MAX_CPUS ||
	    o->data_size > EMUOFFER_MAX_RING || o->aux_size > EMUOFFER_MAX_RING || o->pid == 0 ||
	    o->pid > INT_MAX || emuring_layout(ret_l) < 0)
		return "its layout is not valid";
	/* clock_tsc_to_ns() and clock_ns_to_tsc() divide by these. */
	if (o->clock > EMURING_CLOCK_VIRTUAL || o->tsc_hz == 0 || o->tsc_art_num == 0 ||
	    o->tsc_art_den == 0 || o->max_nonturbo_ratio == 0 ||
	    o->max_nonturbo_ratio > UINT8_MAX || o->time_shift >= 32 || o->time_mult == 0)
		return "its clock is not valid";
	if (!is_text(o->preset, sizeof(o->preset)) || !is_text(o->name, sizeof(o->name)) ||
	    !is_text(o->qemu, sizeof(o->qemu)) || o->qemu[0] != '/')
		return "its names are not valid";
	return NULL;
}

int emuoffer_read(const void *data, size_t size, struct emuoffer *ret, struct emuring_layout *ret_l,
		  const char **ret_why)
{
	*ret_why = "it is not an offer of an emulated machine";
	if (size != sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, data, sizeof(*ret));
	if (ret->magic != EMUOFFER_MAGIC)
		return -EBADMSG;
	*ret_why = "it is from another version of ptsnapd";
	if (ret->version != (EMUOFFER_VERSION | EMURING_VERSION << 16))
		return -EBADMSG;
	*ret_why = what_is_wrong(ret, ret_l);
	return *ret_why ? -EBADMSG : 0;
}

int emuoffer_read_end(const void *data, size_t size, struct emuoffer_end *ret)
{
	if (size != sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, data, sizeof(*ret));
	if (ret->magic != EMUOFFER_END_MAGIC || ret->exit_status < 0 || ret->exit_status > 255 ||
	    ret->killed_by < 0 || ret->killed_by > 127)
		return -EBADMSG;
	return 0;
}

void emuoffer_head(const struct emuoffer *o, const struct emuring_layout *l,
		   struct emuring_head *ret)
{
	*ret = (struct emuring_head){
		.magic = EMURING_MAGIC,
		.version = EMURING_VERSION,
		.n_cpus = l->n_cpus,
		.data_size = l->data_size,
		.aux_size = l->aux_size,
		.cpu_stride = l->cpu_stride,
		.cpus_at = l->cpus_at,
		.tasks_at = l->tasks_at,
		.max_tasks = l->max_tasks,
		.flags = o->flags,
		.clock = o->clock,
		.pt_config = o->pt_config,
		.tsc_hz = o->tsc_hz,
		.tsc_art_num = o->tsc_art_num,
		.tsc_art_den = o->tsc_art_den,
		.max_nonturbo_ratio = o->max_nonturbo_ratio,
		.time_shift = (uint16_t)o->time_shift,
		.time_mult = o->time_mult,
		.time_zero = o->time_zero,
	};
}
