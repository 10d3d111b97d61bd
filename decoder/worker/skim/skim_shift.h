/*
 * The shift of a trace's clock against the sideband's, as far as a glance shows it.
 */
#pragma once

#include "decoder/worker/replay/replay.h"

/* For replay_new_with(): shift_clocks() reads megabytes of packets for that. 0 or -ENOMEM. */
int skim_clocks(struct replay *r);
/* The same, by the newest few megabytes of each CPU. */
int skim_clocks_newest(struct replay *r);
