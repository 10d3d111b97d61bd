/*
 * Why tracing does not work here, or works worse than it could, and what the user can do about it.
 *
 * This room looks at the host and at the recorder and tells what it sees. A result of a check is a
 * finding: one line with a level and, where something can be mended, the command or setting that
 * mends it. check.c runs all parts of the check, directly for `ptsnapd --check` and in a thread for
 * the method Check. check_read.c reads files, collects the facts that several parts need, and makes
 * findings. check_pmu.c, check_events.c with check_unit.c, check_cpus.c and check_needs.c are the
 * parts. check_live.c makes findings from the state of a running recorder. status.c tells the same
 * state as JSON for the method Status, metrics.c tells it to Prometheus, and metrics_writer.c
 * writes the file of metrics every 15 seconds.
 *
 * Decisions that govern the room:
 * - The parts run in an order in which causes come first: the first failure is the most likely
 *   cause of the failures behind it.
 * - What the kernel says to an attempt is worth more than any file: perf events are really opened
 *   and closed again, on one CPU, and Intel PT traces some milliseconds of the check itself. A
 * running recorder has Intel PT, so its own check leaves Intel PT alone.
 * - A missing feature of the hardware is a note, not a failure, when the emulated source traces.
 * - Names and messages in findings come from strangers and are made printable ASCII.
 * - The check may take long (files of /proc, a slow state directory), so the method Check runs in a
 *   thread of its own. The thread tells its end through an eventfd.
 * - Everybody with an account here may see how the recorder is (status_for_all()), and nothing that
 *   depends on users.
 * - The file of metrics may lie on a mount that hangs, so a thread that can be left behind
 *   (daemon/base/aside.h) writes the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "capture/perf/cpuid.h"
#include "daemon/check/status.h"
#include "daemon/config/config.h"

enum finding_level {
	FINDING_OK = 0,
	FINDING_NOTE,	 /* worth knowing, nothing to mend */
	FINDING_WARNING, /* tracing works, but not as well as it could */
	FINDING_FAILURE, /* tracing is not possible */
};

struct finding {
	enum finding_level level;
	char what[32];	/* a stable word: "pmu", "paranoid", "memlock", ... */
	char text[320]; /* what was found, one line */
	char fix[320];	/* the command or setting that mends it; "" where nothing is to do */
};

typedef void (*finding_fn)(void *userdata, const struct finding *finding);

/* Makes text and fix printable ASCII: names in them are strangers'. */
void finding_clean(struct finding *f);
/* "ok", "note", "warning", "failure". */
const char *finding_level_name(enum finding_level level);
/* {"level", "what", "text", "fix"}, fix null where nothing is to do; the caller's. NULL: no memory.
 */
struct json_object *finding_to_json(const struct finding *finding);

/* The functions by which the check asks the kernel and the CPU, besides files and perf events. */
struct check_calls {
	struct cpuid_reader cpuid;
	int (*landlock)(void); /* the version of Landlock's ABI, or -errno */
	int (*look_up)(void);  /* whether openat2(2) works: 0 or -errno */
	/* Bytes that users without privileges may still write in the directory PATH; -errno if PATH
	 * cannot be written to. */
	int (*free_bytes)(const char *path, uint64_t *ret);
};

struct check_paths {
	const char *proc, *sys, *dev, *boot; /* "/proc", "/sys", "/dev", "/boot" */
	const char *root;		     /* before the folders with files of kernels; "" */
	struct check_calls calls;
	bool leave_pt; /* do not open Intel PT: the caller has it, or has handed it back */
};

/* The paths and calls of this host. */
void check_paths_init(struct check_paths *ret);
/* Looks at everything that tracing as CONFIG wants it depends on, and tells FN of each result. May
 * take a while where there are many processes. Returns the number of failures; 0: tracing is
 * possible. */
int check_host(const struct check_paths *paths, const struct config *config, finding_fn fn,
	       void *userdata);
/* ptsnapd --check: prints the findings on standard output, as lines or as one JSON array. Returns
 * the exit status: 0; 1, standard output failed; 6, tracing is not possible. */
int check_main(const struct config *config, bool json);

/* check_host() in a thread of its own, for a recorder that must go on meanwhile. */
struct check_job;

struct check_job_handler {
	void *userdata;
	/* Called in the loop, once; ALL are the job's. The handler frees the job. */
	void (*on_done)(void *userdata, const struct finding *all, size_t n);
};

/* CONFIG is borrowed until check_job_free(). Does not open Intel PT: the recorder has it, has
 * handed it back, or tries to get it itself. 0 or -errno. */
int check_job_new(sd_event *event, const struct config *config,
		  const struct check_job_handler *handler, struct check_job **ret);
/* Waits for the end of the thread. */
void check_job_free(struct check_job *j);

/* Makes findings of what a running recorder knows of itself: CPUs that are not traced and why,
 * rings smaller than asked for, what was lost, and how much room pinned snapshots leave. */
void check_live(const struct status_from *from, finding_fn fn, void *userdata);

/* Whether the decoder at PATH can be run: 0, or -errno with one line in WHY. */
int check_worker(const char *path, char *why, size_t why_size);
/* Whether the directory PATH, which OPTION names, is empty and can be written to; makes the
 * directory if it is not there. 0, or -errno with one line in WHY. */
int check_empty_dir(const char *option, const char *path, char *why, size_t why_size);
