/*
 * The times of a snapshot's bundle, compared with the log of when each CPU was traced (truthlog.h).
 */
#pragma once

#include "proto/bundle/manifest.h"

/* Compares what M says of its trigger and its CPUs with the log in DIR, and with the event that was
 * the trigger: the file EVENT has its TSC. STOPS has, for each CPU of M, the number of the
 * snapshot's stop among all stops of that CPU, from 0; -1: nothing of that CPU was decoded. Prints
 * a line for each CPU, and what is wrong on standard error.
 *
 * - The trigger is not earlier than the event.
 * - A CPU was traced beyond the event, and no longer than the stop that M has for it.
 * - What M calls dark is not shorter than the time from the first stop of all CPUs to the CPU's
 *   restart, and not longer than the time from the trigger to the CPU's next stop.
 *
 * Returns the number of what is wrong, or -errno. */
int times_compare(const struct manifest *m, const char *dir, const char *event, const int *stops);
