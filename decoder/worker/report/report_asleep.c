/*
 * Where threads slept behind the trigger, as the recorder read it from /proc: the text "threads".
 *
 * It holds for the trigger where the thread has had no CPU since. A thread that sleeps changes
 * nothing, so a lock that it holds is one that it held at the trigger.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

#define MAX_LINE 160u

static int by_thread(const void *a, const void *b)
{
	const struct report_asleep *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* False: not a line about a thread. */
static bool parse_line(const char *line, struct report_asleep *ret)
{
	char state, number[24];

	if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %c %23s 0x%" SCNx64 " %" SCNu32,
		   &ret->pid, &ret->tid, &ret->ns_tid, &state, number, &ret->futex,
		   &ret->owner) != 7)
		return false;
	ret->uninterruptible = state == 'D';
	ret->call = REPORT_NO_CALL;
	return strcmp(number, "-") == 0 || sscanf(number, "%" SCNu64, &ret->call) == 1;
}

static int parse(struct report *r, const char *text, size_t size)
{
	size_t capacity = 0;

	while (size > 0) {
		const char *newline = memchr(text, '\n', size);
		const size_t n = newline ? (size_t)(newline - text) : size;
		char line[MAX_LINE];
		struct report_asleep a;

		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = '\0';
			if (parse_line(line, &a)) {
				if (ARRAY_RESERVE(r->asleep, capacity, r->n_asleep + 1) < 0)
					return -ENOMEM;
				r->asleep[r->n_asleep++] = a;
			}
		}
		text += MIN_OF(n + 1, size);
		size -= MIN_OF(n + 1, size);
	}
	return 0;
}

int report_prepare_asleep(struct report *r)
{
	int result = 0;

	for (size_t i = 0; i < r->m->n_texts && result == 0; i++) {
		size_t size;
		const void *text;

		if (!r->m->texts[i].kind || strcmp(r->m->texts[i].kind, MANIFEST_TEXT_THREADS) != 0)
			continue;
		text = bundle_text(r->d->replay->bundle, i, &size);
		if (text)
			result = parse(r, text, size);
	}
	if (r->n_asleep > 0)
		qsort(r->asleep, r->n_asleep, sizeof(*r->asleep), by_thread);
	return result;
}

static bool is_emulated(const struct report *r)
{
	return r->m->source && strcmp(r->m->source, "emulated") == 0;
}

const struct report_asleep *report_asleep(const struct report *r, const struct report_state *s,
					  uint64_t call)
{
	const struct report_asleep key = {.pid = s ? s->thread->pid : 0,
					  .tid = s ? s->thread->tid : 0};
	const struct report_asleep *a;

	if (!s || s->kind != REPORT_STATE_BLOCKED || !s->certain || s->again || r->doubt_behind ||
	    r->n_asleep == 0)
		return NULL;
	a = bsearch(&key, r->asleep, r->n_asleep, sizeof(key), by_thread);
	/* Under the emulator, a thread may also wait for the emulator. */
	if (!a || (call == REPORT_NO_CALL && is_emulated(r)))
		return NULL;
	return call == REPORT_NO_CALL || call == a->call ? a : NULL;
}

const struct report_state *report_lock_owner(const struct report *r, const struct report_asleep *a)
{
	for (size_t i = 0; i < r->n_asleep && a->owner != 0; i++) {
		const struct report_asleep *owner = &r->asleep[i];

		if (owner->pid != a->pid || owner->ns_tid != a->owner)
			continue;
		for (size_t k = 0; k < r->n_states; k++) {
			const struct report_state *s = &r->states[k];

			if (s->thread->pid == owner->pid && s->thread->tid == owner->tid &&
			    s->kind == REPORT_STATE_BLOCKED && s->certain && !s->again &&
			    !r->doubt_behind)
				return s;
		}
	}
	return NULL;
}
