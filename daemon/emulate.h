/*
 * ptsnapd --emulate: an emulated machine kept for a recorder that is another process.
 */
#pragma once

#include "capture/ring/source.h"
#include "daemon/record/command.h"

/* Offers MACHINE (source_emu_open) to who connects to LISTENER (SOCK_SEQPACKET, non-blocking), one
 * at a time, until COMMAND ends. SIGTERM, SIGINT, SIGHUP, SIGUSR2 must be blocked; the first three
 * are passed on to COMMAND, which has two seconds. COMMAND's exit status, or 1 after a line to the
 * log. */
int emulate_run(struct source *machine, struct command *command, int listener);
