/*
 * The snapshots under way: one captures at a time, one decodes at a time, a few wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/config/config.h"
#include "daemon/job/job.h"
#include "daemon/store/fdstore.h"
#include "daemon/store/store.h"

struct jobs;

/* Called in the loop's thread. */
struct jobs_handler {
	void *userdata;
	void (*on_progress)(void *userdata, const char *id, enum job_phase phase, uint32_t percent);
	/* A snapshot begins: returns the number of processes that are known, and *ret their
	 * numbers, the caller's to free. May be NULL. */
	size_t (*processes)(void *userdata, uint32_t **ret);
	/* The rings were copied: gather the evidence. 0 or -errno. */
	int (*on_captured)(void *userdata, const struct request *request, const char *id,
			   uint64_t previous_stop_ns, struct evidence **ret);
	/* Code in memory was read: evidence_look_at_records(). */
	void (*on_looked)(void *userdata, struct evidence *e);
	/* The snapshot has ended and is in the store. */
	void (*on_ended)(void *userdata, const char *id);
};

/* All borrowed. */
int jobs_new(sd_event *event, const struct config *config, struct source *source,
	     struct store *store, const struct jobs_handler *handler, struct jobs **ret);
/* Cancels all jobs and waits for them. */
void jobs_free(struct jobs *j);

/* Adds REQUEST to a snapshot that is not yet copied and will have all that REQUEST asks for.
 * Returns the id of that snapshot; NULL: there is none. */
const char *jobs_join(struct jobs *j, const struct request *request);
/* Whether no place is free. */
bool jobs_full(const struct jobs *j);
/* Whether no place is free for users. Half of the places are left to units that fail, signals and
 * administrators. */
bool jobs_full_for_users(const struct jobs *j);
/* Begins a snapshot and adds it to the store as E. 0 or -errno. */
int jobs_add(struct jobs *j, const struct request *request, const struct entry *e);
/* Decodes snapshot E of an earlier run, which may be in the store. FOUND is taken over. 0; -EBUSY:
 * too many snapshots are under way, as one place is left for new ones; -errno. */
int jobs_take_up(struct jobs *j, const struct entry *e, struct job_found *found);
/* Takes up all snapshots that the last run left undecoded: the N items in FOUND, which systemd
 * kept, and those whose bundle is on the disk. Takes the descriptors of each item that is used.
 * Call once, at the start, in the loop's thread. Returns how many are decoded now; the others are
 * logged. */
size_t recover_all(struct jobs *j, struct store *store, struct fdstore_item *found, size_t n);
/* Uses CONFIG, borrowed while any job runs, for snapshots that begin from now on. */
void jobs_use(struct jobs *j, const struct config *config);
/* Makes the memory for the next copy fit the rings, at once, or when the snapshot that has the
 * memory now gives it back. Call when rings came or went. */
void jobs_fit_area(struct jobs *j);
/* Whether a job has the events of the source now. */
bool jobs_capturing(const struct jobs *j);
size_t jobs_running(const struct jobs *j);
/* The longest time that a CPU was not traced for the last snapshot that has ended, ns;
 * ENTRY_ABSENT: there was none. */
uint64_t jobs_last_dark_ns(const struct jobs *j);
/* Leaves the CPUs stopped after the next copy, which is the last one. */
void jobs_no_resume(struct jobs *j);
/* Ends decoding soon; bundles are kept. */
void jobs_cancel(struct jobs *j);
