/*
 * What the emulator's process must not show of itself while it plays the program: its name, its
 * core files, its words on the program's stderr.
 */
#pragma once

#include <stdbool.h>

/* At the program's first block; COMM is its name as execve would have set it. */
void disguise_begin(const char *comm);
/* Whatever is exec'ed next runs without the emulator, with the limits that the program was given;
 * false: it was not exec'ed after all. */
void disguise_native(bool native);
