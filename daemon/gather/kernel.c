/*
 * The kernel's part of a snapshot. Called by the job's thread (job.c), a few milliseconds after the
 * freeze: the sooner the text is copied, the less was patched since.
 *
 * Text comes out of /proc/kcore: exact at a known time, from which the worker goes back and forth
 * by TEXT_POKE records. Where that is closed, vmlinux and the modules' files are handed on; the
 * worker masks what the kernel patches in them. Modules that went away within the window took their
 * text along, which is said in a note.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/gather/kernel_private.h"
#include "proto/base.h"

#define NOTE_GONE "image-missing"

int kernel_new(const struct kernel_paths *paths, struct kernel **ret)
{
	static const struct kernel_paths host = {.proc = "/proc", .sys = "/sys", .root = ""};
	struct kernel *k = calloc(1, sizeof(*k));
	struct utsname u;

	if (!k)
		return -ENOMEM;
	k->paths = paths ? *paths : host;
	if (k->paths.release)
		snprintf(k->release, sizeof(k->release), "%s", k->paths.release);
	else if (uname(&u) == 0)
		snprintf(k->release, sizeof(k->release), "%s", u.release);
	if (kernel_look_modules(k, &k->known) < 0) {
		free(k);
		return -ENOMEM;
	}
	pthread_mutex_init(&k->lock, NULL);
	*ret = k;
	return 0;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	pthread_mutex_destroy(&k->lock);
	kernel_modules_done(&k->known);
	free(k);
}

static int note_gone(struct evidence *e, const struct kernel_modules *before,
		     const struct kernel_modules *after)
{
	char why[256] = "modules that were unloaded:";
	size_t used = strlen(why), n = 0;

	for (size_t i = 0; i < before->n; i++) {
		const char *name = before->items[i].name;

		if (kernel_modules_find(after, &before->items[i]))
			continue;
		n++;
		if (used + strlen(name) + 2 < sizeof(why))
			used += (size_t)snprintf(why + used, sizeof(why) - used, " %s", name);
	}
	return n > 0 ? manifest_add_note(&e->manifest, NOTE_GONE, n, why) : 0;
}

/* Takes the list over; the text goes to the bundle. */
static int compare_modules(struct kernel *k, struct evidence *e, struct kernel_modules *modules)
{
	struct kernel_modules before;
	int r;

	pthread_mutex_lock(&k->lock);
	before = k->known;
	k->known = *modules;
	*modules = (struct kernel_modules){0};
	r = note_gone(e, &before, &k->known);
	pthread_mutex_unlock(&k->lock);
	kernel_modules_done(&before);
	return r;
}

int kernel_gather(struct kernel *k, struct source *source, struct evidence *e)
{
	struct kernel_look look;
	int r;

	if (!k || !e->traced || !source->trace_kernel)
		return 0;
	r = kernel_look_take(k, source, &e->sideband, &look);
	if (r < 0)
		return r;
	r = kernel_add_look(e, k, &look);
	if (r == 0)
		r = compare_modules(k, e, &look.modules);
	kernel_look_done(&look);
	return r;
}
