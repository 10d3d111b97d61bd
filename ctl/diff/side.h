/*
 * One report as rows that can be compared: functions, threads and call stacks under names that a
 * report of another time has, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

/* Strings are borrowed from the report, or from the table's index. */
struct side_row {
	const char *name, *image;      /* image: a path; NULL: none, or of a thread */
	double n;		       /* calls; turns of a thread; threads with a stack */
	double parts;		       /* functions or threads in this row */
	double insns;		       /* own instructions */
	double nsec;		       /* own CPU time */
	struct json_object *durations; /* NULL also if the row has several functions */
	struct json_object *thread;    /* of a path: one that has it */
	size_t other;		       /* the row of the other report; SIZE_MAX: none */
	/* Set by the comparison: only this report has the function, by more than noise; and the
	 * difference of its cost, in percent. */
	bool alone;
	double cost;
};

struct side_table {
	struct side_row *rows;
	size_t n, capacity;
	struct json_object *index; /* {KEY: row} */
	bool cut;		   /* the report's list is cut */
};

struct side {
	struct json_object *report;
	double seconds;	       /* the mean window of the CPUs; 0: unknown */
	double step;	       /* ns of an MTC period, if only MTC packets tell the time; or 0 */
	double insns, nsec;    /* of all threads */
	double functions_nsec; /* of all functions that are listed */
	bool has_nsec;	       /* no function lacks its CPU time */
	bool turns_cut;
	double stacks;		    /* how many threads have one */
	double floor_insns;	    /* what a function that is not listed may have */
	struct json_object *builds; /* {BUILD-ID: image's short name} */
	struct side_table functions, threads, paths;
};

/* Reads REPORT, which is borrowed. 0 or -ENOMEM; SIDE is valid, and to be freed, in any case. */
int side_read(struct side *side, struct json_object *report);
/* Makes rows of functions. An image that NAMES has, too, gets its name there; code without names is
 * one row in images that OTHER does not have. Both are read, and may be SIDE. 0 or -ENOMEM. */
int side_functions(struct side *side, const struct side *names, const struct side *other);
/* The same for the call stacks of threads: a row is a stack of threads of one name. */
int side_paths(struct side *side, const struct side *names, const struct side *other);
/* The row of the function of the place FRAME, or NULL if the report's functions do not have it. 0
 * or -ENOMEM.
 */
int side_function_of(const struct side *side, const struct side *names, const struct side *other,
		     struct json_object *frame, const struct side_row **ret);
/* The path of the image of O, a function or a place; NULL: unknown. */
const char *side_image_path(const struct side *side, struct json_object *o);
void side_free(struct side *side);
/* Finds for each row of A the row of B of the same key, and the other way round. */
void side_match(struct side_table *a, struct side_table *b);
