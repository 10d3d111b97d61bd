/*
 * The progress of a decode on standard error.
 */
#include "ctl/base/progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/base/say.h"
#include "proto/base.h"

static struct {
	pthread_mutex_t lock;
	const char *name; /* NULL: no decode, or nothing is to be shown */
	uint64_t from;	  /* the time from which on it is shown */
	unsigned percent;
	bool never, shown;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

void progress_begin(const char *name, uint64_t patience_nsec)
{
	pthread_mutex_lock(&progress.lock);
	progress.name = progress.never || !isatty(STDERR_FILENO) ? NULL : name;
	progress.from = now_ns(CLOCK_MONOTONIC) + patience_nsec;
	progress.percent = 0;
	progress.shown = false;
	pthread_mutex_unlock(&progress.lock);
}

void progress_tell(unsigned percent)
{
	pthread_mutex_lock(&progress.lock);
	if (progress.name && percent != progress.percent &&
	    now_ns(CLOCK_MONOTONIC) >= progress.from) {
		fputs("\r\033[Kdecoding ", stderr);
		text_puts(stderr, progress.name, 40);
		fprintf(stderr, ": %u %%", percent);
		fflush(stderr);
		progress.percent = percent;
		progress.shown = true;
	}
	pthread_mutex_unlock(&progress.lock);
}

void progress_end(void)
{
	pthread_mutex_lock(&progress.lock);
	if (progress.shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	progress.shown = false;
	progress.name = NULL;
	pthread_mutex_unlock(&progress.lock);
}

void progress_never(void)
{
	progress_end();
	pthread_mutex_lock(&progress.lock);
	progress.never = true;
	pthread_mutex_unlock(&progress.lock);
}
