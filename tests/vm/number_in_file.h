/*
 * Numbers in the small text files of sysfs and debugfs.
 */
#pragma once

#include <stdint.h>

/* The number behind the first KEY in the file at PATH ("": at its beginning); 0: there is none. */
uint64_t number_in_file(const char *path, const char *key);
