/*
 * The guest's executable mappings.
 *
 * /proc/self/maps has the files, but no mapping in it is executable (QEMU maps guest code as
 * readable data), and it also lists the emulator's own memory. QEMU's page flags have the
 * permissions that the guest asked for.
 */
#pragma once

#include <stdint.h>

#include "capture/emu/machine/sideband.h"

typedef void (*maps_fn)(void *userdata, const struct sideband_mapping *m);

/* Calls FN for each range of executable pages of one mapping with the same permissions in [BEGIN,
 * END), all in guest addresses. FLAGS: of the machine's head (EMURING_BUILD_ID). 0 or -errno. */
int maps_executable(uint64_t begin, uint64_t end, uint32_t flags, maps_fn fn, void *userdata);
