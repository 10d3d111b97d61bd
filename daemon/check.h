/*
 * Why tracing is not possible here, with the fix.
 */
#pragma once

#include <stddef.h>

/* Looks for intel_pt below SYSFS ("/sys/bus/event_source/devices") and, when it is not there, in
 * CPUINFO ("/proc/cpuinfo") for the reason. 0, or -ENODEV with one line in WHY. */
int check_intel_pt(const char *sysfs, const char *cpuinfo, char *why, size_t why_size);

/* The decoder at PATH can be run. 0 or -errno with one line in WHY. */
int check_worker(const char *path, char *why, size_t why_size);
/* The directory at PATH, which OPTION names, is empty and can be written; it is made when it is not
 * there. 0 or -errno with one line in WHY. */
int check_empty_dir(const char *option, const char *path, char *why, size_t why_size);
