/*
 * Says which processes a report may tell of, from the manifest and the options of the decode.
 */
#include "decoder/worker/replay/permit.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"

static bool is_theirs(const struct manifest_process *process, uint32_t uid)
{
	return process->uid == uid && process->uid_since_ns != MANIFEST_ABSENT &&
	       !process->excluded;
}

static int by_pid(const void *a, const void *b)
{
	const struct permit_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* A pid that is there twice is no user's, and excluded if one of the two is. */
static void join_same(struct permit *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (n == 0 || p->processes[n - 1].pid != p->processes[i].pid) {
			p->processes[n++] = p->processes[i];
			continue;
		}
		p->processes[n - 1].since = MANIFEST_ABSENT;
		p->processes[n - 1].excluded |= p->processes[i].excluded;
	}
	p->n = n;
}

int permit_init(struct permit *p, const struct manifest *m, const struct decode_options *options)
{
	*p = (struct permit){
		.only = options->has_only_uid, .uid = options->only_uid, .excluding = m->excluding};
	p->processes = calloc(m->n_processes + 1, sizeof(*p->processes));
	if (!p->processes)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_processes; i++) {
		const struct manifest_process *from = &m->processes[i];

		p->processes[p->n++] = (struct permit_process){
			.pid = from->pid,
			.since = p->only && is_theirs(from, p->uid) ? from->uid_since_ns
								    : MANIFEST_ABSENT,
			.excluded = from->excluded,
		};
	}
	qsort(p->processes, p->n, sizeof(*p->processes), by_pid);
	join_same(p);
	return 0;
}

void permit_done(struct permit *p)
{
	free(p->processes);
	*p = (struct permit){0};
}

bool permit_is_limited(const struct permit *p)
{
	return p && p->only;
}

static const struct permit_process *find(const struct permit *p, uint32_t pid)
{
	const struct permit_process key = {.pid = pid};

	if (p->n == 0)
		return NULL;
	return bsearch(&key, p->processes, p->n, sizeof(key), by_pid);
}

enum permit_answer permit_thread(const struct permit *p, const struct timeline_thread *thread,
				 uint64_t time)
{
	const struct permit_process *of;

	if (!p)
		return PERMIT_YES;
	of = thread ? find(p, thread->pid) : NULL;
	if (of ? of->excluded : p->excluding && thread)
		return PERMIT_EXCLUDED;
	if (!p->only)
		return PERMIT_YES;
	if (!of || of->since == MANIFEST_ABSENT)
		return PERMIT_NOT;
	/* Certainly the user's for all of the thread's life, or from TIME on. */
	if (thread->begin >= of->since || (time != MANIFEST_ABSENT && time >= of->since))
		return PERMIT_YES;
	return PERMIT_NOT;
}

bool permit_process(const struct permit *p, const struct manifest_process *process)
{
	const struct permit_process *of;

	if (!permit_is_limited(p))
		return true;
	of = find(p, process->pid);
	return of && of->since != MANIFEST_ABSENT && is_theirs(process, p->uid);
}

bool permit_pid(const struct permit *p, uint64_t pid)
{
	const struct permit_process *of;

	if (!permit_is_limited(p))
		return true;
	of = pid <= UINT32_MAX ? find(p, (uint32_t)pid) : NULL;
	return of && of->since != MANIFEST_ABSENT;
}

bool permit_address(const struct permit *p, uint64_t address)
{
	return !permit_is_limited(p) || address >> 63 == 0;
}
