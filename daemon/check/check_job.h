/*
 * check_host in a thread of its own, for a recorder that must go on meanwhile.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/check/check.h"

struct check_job;

struct check_job_handler {
	void *userdata;
	/* Called in the loop, once; ALL are the job's. The handler frees the job. */
	void (*on_done)(void *userdata, const struct finding *all, size_t n);
};

/* CONFIG is borrowed until check_job_free. Intel PT is left alone: the recorder has it, has handed
 * it back, or tries to get it itself. 0 or -errno. */
int check_job_new(sd_event *event, const struct config *config,
		  const struct check_job_handler *handler, struct check_job **ret);
/* Waits for its end. */
void check_job_free(struct check_job *j);
