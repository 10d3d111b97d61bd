/*
 * What an emulated process looks like to /proc, undone.
 */
#pragma once

#include "capture/proc/procscan.h"

/* INFO as /proc gave it: if it runs the emulator QEMU, exe and cmdline become those of the program
 * that it emulates. Any failure leaves INFO as it is. */
void emu_describe_process(const char *qemu, struct procinfo *info);
