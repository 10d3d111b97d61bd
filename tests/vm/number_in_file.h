/*
 * Reads numbers from small text files of sysfs and debugfs.
 */
#pragma once

#include <stdint.h>

/* The number behind the first KEY in the file at PATH ("": at the file's beginning); 0: none. */
uint64_t number_in_file(const char *path, const char *key);
