/*
 * Which source the configuration means, opened; and COMMAND, started under it.
 */
#pragma once

#include <signal.h>
#include <stddef.h>

#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/record/command.h"

/* Opens the source and starts COMMAND (if there is one) with MASK as its signal mask, which must be
 * the calling thread's mask now: the emulated source starts it with what it finds. *ret_command is
 * filled in any case. 0, or -errno with one line in WHY. */
int source_choose(const struct config *config, const sigset_t *mask, struct source **ret,
		  struct command *ret_command, char *why, size_t why_size);
