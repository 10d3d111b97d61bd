/*
 * The snapshots that are being taken: one captures at a time, one decodes at a time, a few wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/config/config.h"
#include "daemon/job/job.h"
#include "daemon/store/store.h"

struct jobs;

/* How the manager hears of what happens; all in the loop's thread. */
struct jobs_handler {
	void *userdata;
	void (*on_progress)(void *userdata, const char *id, enum job_phase phase, uint32_t percent);
	/* The rings were copied: gather the evidence. 0 or -errno. */
	int (*on_captured)(void *userdata, const struct request *request, const char *id,
			   uint64_t previous_stop_ns, struct evidence **ret);
	/* It has ended and is in the store. */
	void (*on_ended)(void *userdata, const char *id);
};

/* All borrowed. */
int jobs_new(sd_event *event, const struct config *config, struct source *source,
	     struct store *store, const struct jobs_handler *handler, struct jobs **ret);
/* Cancels what still runs and waits for it. */
void jobs_free(struct jobs *j);

/* A snapshot that is not yet copied and will hold all that REQUEST asks for, which it then serves
 * too: its id; NULL: none. */
const char *jobs_join(struct jobs *j, const struct request *request);
bool jobs_full(const struct jobs *j);
/* So for users: some places are left for units that fail, for signals and for administrators. */
bool jobs_full_for_users(const struct jobs *j);
/* Begins a snapshot, which is in the store as E from now on. 0 or -errno. */
int jobs_add(struct jobs *j, const struct request *request, const struct entry *e);
/* Decodes what a recorder before us left undecoded, E in the list or new to it. FOUND is taken
 * over. 0; -EBUSY: too many are under way, as one place is left for new snapshots; -errno. */
int jobs_take_up(struct jobs *j, const struct entry *e, struct job_found *found);
/* Snapshots that begin from now on go by CONFIG, borrowed while any job runs; others by the one
 * before. */
void jobs_use(struct jobs *j, const struct config *config);
/* Rings came or went: memory for their copy is at hand again before the next snapshot, or, where a
 * snapshot has it now, when that has given it back. */
void jobs_fit_area(struct jobs *j);
/* Is a job at the source's events right now? */
bool jobs_capturing(const struct jobs *j);
size_t jobs_running(const struct jobs *j);
/* The longest time that a CPU was not traced for the last snapshot that has ended, ns;
 * ENTRY_ABSENT: there was none. */
uint64_t jobs_last_dark_ns(const struct jobs *j);
/* From now on the CPUs stay stopped after a copy: it is the last one. */
void jobs_no_resume(struct jobs *j);
/* Ends decoding soon, keeping bundles. */
void jobs_cancel(struct jobs *j);
