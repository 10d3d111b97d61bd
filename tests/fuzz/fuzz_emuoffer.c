/*
 * Fuzzes the parser of the daemon-emulator channel's offer. Invariant: an accepted offer is safe to
 * use.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/machine/emuring.h"
#include "capture/ring/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct emuoffer *o, const struct emuring_layout *l)
{
	const struct clock_params clock = {true, (uint16_t)o->time_shift, o->time_mult,
					   o->time_zero};
	struct emuring_head head;

	emuoffer_head(o, l, &head);
	if (emuring_check(&head, l->total) < 0)
		__builtin_trap();
	clock_ns_to_tsc(&clock, clock_tsc_to_ns(&clock, o->tsc_hz));
	if (strlen(o->name) + strlen(o->qemu) + strlen(o->preset) > sizeof(*o))
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct emuoffer offer;
	struct emuoffer_end end;
	struct emuring_layout l;
	const char *why;

	if (emuoffer_read(data, size, &offer, &l, &why) == 0)
		use(&offer, &l);
	if (emuoffer_read_end(data, size, &end) == 0 && end.exit_status > 255)
		__builtin_trap();
	return 0;
}
