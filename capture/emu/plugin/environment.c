/*
 * Takes the prefix off the guest's environment. Called by plugin.c at the first block. Stack
 * layout: System V ABI for x86-64, "Initial Stack and Register State".
 */
#include "capture/emu/plugin/environment.h"

#include "capture/emu/machine/emustart.h"
#include "capture/emu/plugin/guest.h"

/* The string stays where it is; the guest's pointer is moved behind the prefix. */
static void restore_one(uint64_t slot, uint64_t text)
{
	char begin[EMUSTART_PREFIX_SIZE];

	if (!guest_read(text, begin, sizeof(begin)) || !emustart_is_prefix(begin))
		return;
	text += EMUSTART_PREFIX_SIZE;
	guest_write(slot, &text, sizeof(text));
}

void environment_restore(uint64_t rsp)
{
	uint64_t argc, text, slot;

	if (!guest_read(rsp, &argc, sizeof(argc)))
		return;
	for (slot = rsp + 8 * (argc + 2); guest_read(slot, &text, sizeof(text)); slot += 8) {
		if (text == 0)
			return;
		restore_one(slot, text);
	}
}
