/*
 * What the last run of the recorder left undecoded, taken up: the snapshots that systemd kept for
 * us (fdstore.h), and those whose bundle lies on the disk.
 */
#pragma once

#include <stddef.h>

#include "daemon/job/jobs.h"
#include "daemon/store/fdstore.h"
#include "daemon/store/store.h"

/* Once, at the start, in the loop's thread. What FOUND (N of them) has is taken over, item by item.
 * Returns how many are decoded now; where there are too many, or one is nothing, that is logged. */
size_t recover_all(struct jobs *jobs, struct store *store, struct fdstore_item *found, size_t n);
