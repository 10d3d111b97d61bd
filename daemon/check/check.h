/*
 * Why tracing is not possible here, or worse than it could be, with the fix.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "capture/perf/cpuid.h"
#include "daemon/check/finding.h"
#include "daemon/config/config.h"

/* What is asked of the kernel and the CPU besides files and perf events. */
struct check_calls {
	struct cpuid_reader cpuid;
	int (*landlock)(void); /* its ABI, or -errno */
	/* In the directory PATH, which we may write to, for whoever may use it; -errno. */
	int (*free_bytes)(const char *path, uint64_t *ret);
};

struct check_paths {
	const char *proc, *sys, *dev, *boot; /* "/proc", "/sys", "/dev", "/boot" */
	const char *root;		     /* before the folders with files of kernels; "" */
	struct check_calls calls;
	/* The caller has Intel PT or has handed it back: it is not opened to try. */
	bool leave_pt;
};

/* Those of this host. */
void check_paths_init(struct check_paths *ret);
/* Looks at everything that tracing as CONFIG wants it depends on, and tells FN of each result; the
 * first failure is the most likely cause of those behind it. Opens and closes perf events on one
 * CPU, disabled. May take a while where there are many processes. Returns how many failures there
 * were: 0, tracing is possible. */
int check_host(const struct check_paths *paths, const struct config *config, finding_fn fn,
	       void *userdata);
/* ptsnapd --check: the findings on standard output, as lines or as one JSON array. The exit status:
 * 0; 1, standard output failed; 6, tracing is not possible. */
int check_main(const struct config *config, bool json);
/* {"level", "what", "text", "fix"}, fix null where nothing is to do; the caller's. NULL: no memory.
 */
struct json_object *check_finding_to_json(const struct finding *finding);

/* The decoder at PATH can be run. 0 or -errno with one line in WHY. */
int check_worker(const char *path, char *why, size_t why_size);
/* The directory at PATH, which OPTION names, is empty and can be written; it is made when it is not
 * there. 0 or -errno with one line in WHY. */
int check_empty_dir(const char *option, const char *path, char *why, size_t why_size);
