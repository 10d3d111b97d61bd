/*
 * What was found out about this host: one line each, with what to do. Made by the check and by the
 * sources, shown by ptsnapd --check and ptsnapctl check.
 */
#pragma once

#include <stddef.h>

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
	char fix[320];	/* the exact command or setting that mends it; "" where nothing is to do */
};

typedef void (*finding_fn)(void *userdata, const struct finding *finding);

/* Makes text and fix printable ASCII: names in them are strangers'. */
void finding_clean(struct finding *f);
/* "ok", "note", "warning", "failure". */
const char *finding_level_name(enum finding_level level);
