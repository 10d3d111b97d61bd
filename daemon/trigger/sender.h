/*
 * Where who asks for a snapshot ran last: that CPU is stopped first, as it has most to lose.
 */
#pragma once

#include <stdint.h>

/* The CPU that process PID ran on last, as PROC ("/proc") tells; ENTRY_NO_CPU
 * (daemon/store/entry.h): not known. */
uint32_t sender_last_cpu(const char *proc, uint64_t pid);
