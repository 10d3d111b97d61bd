/*
 * The guest's executable mappings. /proc/self/maps knows the files, but never says x (QEMU maps
 * guest code readable only) and also lists the emulator's own; QEMU's page flags say what the guest
 * asked for.
 */
#pragma once

#include <stdint.h>

#include "capture/emu/machine/sideband.h"

typedef void (*maps_fn)(void *userdata, const struct sideband_mapping *m);

/* One run of executable pages of one mapping at a time, in guest addresses, that lie in
 * [BEGIN, END). FLAGS: of the machine's head (EMURING_BUILD_ID). 0 or -errno. */
int maps_executable(uint64_t begin, uint64_t end, uint32_t flags, maps_fn fn, void *userdata);
