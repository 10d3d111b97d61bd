/*
 * One look at the kernel: modules, symbols, and copies of its text. Called by kernel.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/kernel/kernel_thunks.h"
#include "daemon/gather/kernel_private.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* Modules that come or go while they are read. */
#define ATTEMPTS 3
/* Of BPF programs and trampolines; those that /proc/kallsyms has are known without records. */
#define MAX_MADE      4096u
#define MAX_MADE_SIZE (16u << 20)
#define MAX_RECORDS   65536u

void kernel_look_done(struct kernel_look *l)
{
	kernel_modules_done(&l->modules);
	kernel_symbols_done(&l->symbols);
	for (size_t i = 0; l->copies && i < l->n; i++)
		close_fd(l->copies[i].fd);
	free(l->regions);
	free(l->copies);
	free(l->errors);
	*l = (struct kernel_look){0};
}

int kernel_look_modules(const struct kernel *k, struct kernel_modules *ret)
{
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/modules", k->paths.proc);
	r = kernel_modules_read(path, ret);
	/* A kernel without modules has no such file. */
	return r == -ENOMEM ? r : 0;
}

static uint64_t now(void *userdata)
{
	return source_now_ns(userdata, 0);
}

/* Code that was made at run time, and is still there as far as records say. */
struct made {
	struct {
		uint64_t address;
		uint32_t size;
		bool bpf;
	} items[MAX_MADE];
	size_t n, records;
};

/* struct { u64 addr; u32 len; u16 type, flags; char name[]; }: PERF_RECORD_KSYMBOL. */
static void take_ksymbol(struct made *made, const struct perfrecord *record)
{
	struct bytes_in in;
	uint64_t address;
	uint32_t size;
	uint16_t type, flags;
	size_t i = 0;

	bytes_in_init(&in, record->u.raw.bytes, record->u.raw.size);
	address = bytes_get_u64(&in);
	size = bytes_get_u32(&in);
	type = bytes_get_u16(&in);
	flags = bytes_get_u16(&in);
	if (in.bad || size > MAX_MADE_SIZE)
		return;
	while (i < made->n && made->items[i].address != address)
		i++;
	if (i < made->n)
		made->items[i] = made->items[--made->n];
	if (made->n == MAX_MADE || (flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER))
		return;
	made->items[made->n].address = address;
	made->items[made->n].size = size;
	made->items[made->n++].bpf = type == PERF_RECORD_KSYMBOL_TYPE_BPF;
}

static void take_records(struct made *made, const struct bytes_out *sideband)
{
	struct perfrecord record;

	for (size_t at = 0; at < sideband->size && made->records < MAX_RECORDS; at += record.size) {
		int parsed = perfrecord_parse(sideband->data + at, sideband->size - at, &record);

		if (record.size == 0)
			return;
		if (parsed != PERFRECORD_UNKNOWN || record.type != PERF_RECORD_KSYMBOL)
			continue;
		made->records++;
		take_ksymbol(made, &record);
	}
}

static int look_at_records(struct kernel_look *l, const struct bytes_out *sideband)
{
	CLEANUP_FREE struct made *made = calloc(1, sizeof(*made));
	int r = made ? 0 : -ENOMEM;

	if (made)
		take_records(made, sideband);
	for (size_t i = 0; r == 0 && i < made->n; i++)
		r = kernel_symbols_add(&l->symbols, made->items[i].bpf ? "bpf" : "trampoline",
				       made->items[i].address, made->items[i].size);
	kernel_symbols_sort(&l->symbols);
	return r;
}

static int find_regions(struct kernel_look *l)
{
	free(TAKE_PTR(l->regions));
	l->n = 0;
	return kernel_text_regions(&l->symbols, &l->modules, &l->regions, &l->n);
}

static int look_at_symbols(struct kernel_look *l, const struct kernel *k,
			   const struct bytes_out *sideband)
{
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/kallsyms", k->paths.proc);
	r = kernel_symbols_read(path, &l->symbols);
	if (r == 0 && l->symbols.hidden)
		r = -EACCES;
	l->symbols_error = r;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = look_at_records(l, sideband);
	return r == 0 ? find_regions(l) : r;
}

/* The code that has no symbols, too. */
static int find_thunks(struct kernel_look *l, const struct kcore *kcore)
{
	int r = kernel_thunks_find(kcore, l->regions, l->n, &l->symbols);

	if (r <= 0)
		return r;
	kernel_symbols_sort(&l->symbols);
	return find_regions(l);
}

static int copy_regions(struct kernel_look *l, const struct kcore *kcore, struct source *source)
{
	l->copies = calloc(l->n + 1, sizeof(*l->copies));
	l->errors = calloc(l->n + 1, sizeof(*l->errors));
	for (size_t i = 0; l->copies && i < l->n; i++)
		l->copies[i].fd = -EBADF;
	if (!l->copies || !l->errors)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++)
		l->errors[i] = kernel_text_copy(kcore, &l->regions[i], now, source, &l->copies[i]);
	return 0;
}

static int look_at_memory(struct kernel_look *l, const struct kernel *k, struct source *source)
{
	struct kcore kcore;
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/kcore", k->paths.proc);
	l->kcore_error = kcore_open(path, &kcore);
	if (l->kcore_error < 0)
		return 0;
	r = find_thunks(l, &kcore);
	if (r == 0)
		r = copy_regions(l, &kcore, source);
	kcore_close(&kcore);
	return r;
}

/* Have modules come or gone since L was looked? */
static bool modules_changed(const struct kernel_look *l, const struct kernel *k)
{
	struct kernel_modules again;
	bool changed;

	if (kernel_look_modules(k, &again) < 0)
		return false;
	changed = again.n != l->modules.n;
	for (size_t i = 0; !changed && i < again.n; i++)
		changed = !kernel_modules_find(&l->modules, &again.items[i]);
	kernel_modules_done(&again);
	return changed;
}

int kernel_look_take(const struct kernel *k, struct source *source,
		     const struct bytes_out *sideband, struct kernel_look *ret)
{
	int r = 0;

	for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
		*ret = (struct kernel_look){0};
		r = kernel_look_modules(k, &ret->modules);
		if (r == 0)
			r = look_at_symbols(ret, k, sideband);
		if (r == 0 && ret->symbols_error == 0)
			r = look_at_memory(ret, k, source);
		if (r < 0 || attempt == ATTEMPTS || !modules_changed(ret, k))
			break;
		kernel_look_done(ret);
	}
	if (r < 0)
		kernel_look_done(ret);
	return r;
}
