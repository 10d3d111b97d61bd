/*
 * The view of events: a line for everything that the trace says besides which instructions and
 * branches executed.
 */
#pragma once

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/lines.h"

/*
 * "OFFSET TIME KIND NAME=VALUE...": the offset of the packet in the CPU's trace; the TSC at which
 * it happened, LO-HI or one number where they are equal, "?" for an end that is unknown; all
 * numbers but vectors and C-states in hex with 0x. "ip" is the address at which it happened, where
 * there is one. A gap is a line "# gap KIND" behind its event, when that is one.
 *
 * Kinds: enable; disable (how=branch, async, unknown); async (from, to); overflow; stop; end; mode
 * (bits); interrupts (on=0, 1); transaction (begin, commit, abort); paging (cr3, guest=1); vmcs
 * (base); ptwrite (value, bytes); frequency (ratio); exstop; mwait (hints, extensions); pwre
 * (state, sub, hardware=1); pwrx (last, deepest, reason); mnt (value); trigger (hits, multiple=1,
 * count); pebs (type, id, value, bytes); and those of control flow events by their names in the
 * SDM: intr, iret, smi, rsm, sipi, init, vmentry, vmexit, vmexit-intr, shutdown, uintr, uiret,
 * swintr, syscall, cfe-N (vector, cr2, qualification, reason).
 *
 * What a PSB only repeats is left out. 0 or the sticky error of L.
 */
int views_events(struct lines *l, const struct replay_stretch *s);
