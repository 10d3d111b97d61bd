/*
 * Chooses the programs that make a kind of probe, and attaches them.
 */
#include "capture/probe/attach.h"

#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "capture/probe/filter.h"
#include "capture/probe/place.h"
#include "capture/probe/probe.skel.h"

/* Programs and maps are found by name; a program of no kind in this table is never loaded. */
static const struct {
	const char *programs[4];
	const char *maps[2];
} recipes[_PROBE_KINDS] = {
	[PROBE_SIGNAL] = {{"signal_generate", "signal_deliver"}, {"ended"}},
	[PROBE_EXIT] = {{"sched_process_exit"}, {"exited"}},
	[PROBE_EXEC] = {{"sched_process_exec"}, {NULL}},
	[PROBE_ENTRY] = {{"user_place"}, {NULL}},
	[PROBE_RETURN] = {{"user_return"}, {NULL}},
	[PROBE_LATENCY] = {{"latency_return", "latency_entry"}, {"frames"}},
	[PROBE_SPAN] = {{"span_end", "span_begin"}, {"frames"}},
	[PROBE_OOM] = {{"oom_victim", "oom_kill"}, {"victims"}},
	[PROBE_SYSCALL] = {{"sys_exit", "sys_enter"}, {"calls"}},
	[PROBE_WAKEUP] = {{"wakeup_switch", "wakeup", "wakeup_new"}, {"waits"}},
	[PROBE_OFFCPU] = {{"offcpu_switch"}, {"waits"}},
	[PROBE_TRACEPOINT] = {{"at_tracepoint"}, {NULL}},
	[PROBE_USDT] = {{"user_place"}, {NULL}},
};

static bool among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_chosen(const struct probe *p, const struct bpf_program *program)
{
	return among(bpf_program__name(program), recipes[p->kind].programs,
		     ARRAY_SIZE(recipes[p->kind].programs));
}

/* Maps that every program uses. */
static bool is_common(const struct bpf_map *map)
{
	return bpf_map__is_internal(map) || strcmp(bpf_map__name(map), "events") == 0;
}

void attach_choose(struct probe *p)
{
	struct bpf_program *program;
	struct bpf_map *map;

	bpf_object__for_each_program(program, p->bpf->obj)
		bpf_program__set_autoload(program, is_chosen(p, program));
	bpf_object__for_each_map(map, p->bpf->obj)
	{
		bool wanted = is_common(map) || among(bpf_map__name(map), recipes[p->kind].maps,
						      ARRAY_SIZE(recipes[p->kind].maps));

		bpf_map__set_autocreate(map, wanted);
	}
}

static int keep_link(struct probe *p, struct bpf_link *link)
{
	if (!link)
		return -errno;
	p->links[p->n_links++] = link;
	return 0;
}

/* Programs whose section says where they are attached. */
static int attach_named(struct probe *p, char **ret_error)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, p->bpf->obj)
	{
		int r;

		if (!is_chosen(p, program))
			continue;
		r = keep_link(p, bpf_program__attach(program));
		if (r < 0)
			return probe_fail(ret_error, r, "The kernel does not attach %s: %s.",
					  bpf_program__section_name(program), strerror(-r));
	}
	return 0;
}

/* Attaches a program to an offset of P->file. The kernel gets the file by its descriptor, so that
 * it is the file in which the offset was found. */
static int attach_offset(struct probe *p, const struct probe_spec *spec, const char *name,
			 const struct place_usdt *at, char **ret_error)
{
	struct bpf_program *program = bpf_object__find_program_by_name(p->bpf->obj, name);
	bool is_return = strcmp(bpf_program__section_name(program), "uretprobe") == 0;
	LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = is_return,
		    .ref_ctr_offset = at->semaphore);
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->file.fd);
	r = keep_link(p, bpf_program__attach_uprobe_opts(program, spec->pid ? spec->pid : -1, path,
							 at->offset, &options));
	if (r == 0)
		return 0;
	return probe_fail(ret_error, r, "The kernel does not watch offset 0x%llx of %s: %s.",
			  (unsigned long long)at->offset, p->file.path, strerror(-r));
}

/* The programs of a recipe are attached in its order: ends before beginnings. The last one is at
 * spec.symbol; PROBE_SPAN has its first at spec.to. */
static int attach_symbols(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	const char *const *names = recipes[p->kind].programs;
	struct place_usdt first = {0}, last = {0};
	int r = place_symbol(p->file.fd, spec->symbol, &last.offset, ret_error);

	first = last;
	if (r == 0 && spec->to)
		r = place_symbol(p->file.fd, spec->to, &first.offset, ret_error);
	if (r == 0 && names[1])
		r = attach_offset(p, spec, names[0], &first, ret_error);
	if (r == 0)
		r = attach_offset(p, spec, names[1] ? names[1] : names[0], &last, ret_error);
	return r;
}

static int attach_usdt(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	struct place_usdt places[PROBE_PLACES];
	int n = place_usdt(p->file.fd, spec->symbol, places, ARRAY_SIZE(places), ret_error);
	int r = n < 0 ? n : 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = attach_offset(p, spec, recipes[p->kind].programs[0], &places[i], ret_error);
	return r;
}

static int attach_tracepoint(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	char category[PROBE_STRING];
	char *name;
	int r;

	snprintf(category, sizeof(category), "%s", spec->tracepoint);
	name = strchr(category, ':');
	*name++ = 0;
	r = keep_link(p,
		      bpf_program__attach_tracepoint(p->bpf->progs.at_tracepoint, category, name));
	if (r < 0)
		return probe_fail(ret_error, r, "The kernel does not attach to %s: %s.",
				  spec->tracepoint, strerror(-r));
	return 0;
}

int attach_all(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	switch (p->kind) {
	case PROBE_ENTRY:
	case PROBE_RETURN:
	case PROBE_LATENCY:
	case PROBE_SPAN: return attach_symbols(p, spec, ret_error);
	case PROBE_USDT: return attach_usdt(p, spec, ret_error);
	case PROBE_TRACEPOINT: return attach_tracepoint(p, spec, ret_error);
	default: return attach_named(p, ret_error);
	}
}

static int fill_tests(struct shared_params *to, const struct probe_spec *s, char **ret_error)
{
	CLEANUP_FREE char *format = NULL;
	int r = filter_read_format(s->tracepoint, &format, ret_error);

	if (r < 0)
		return r;
	r = filter_parse(format, s->filter, to->tests, ret_error);
	if (r < 0)
		return r;
	to->n_tests = (uint8_t)r;
	return 0;
}

int attach_fill(struct probe *p, const struct probe_spec *s, char **ret_error)
{
	struct shared_params *to = &p->bpf->rodata->params;

	*to = (struct shared_params){
		.kind = s->kind,
		.tgid = (uint32_t)s->pid,
		.has_uid = s->has_uid,
		.uid = s->uid,
		.status_min = s->status_min,
		.status_max = s->status_max,
		.cgroup = s->cgroup,
		.exe = p->exe.id,
		.file = p->file.id,
		.signals = s->signals,
		.limit_ns = s->limit_ns,
	};
	if (s->comm)
		memcpy(to->comm, s->comm, strlen(s->comm));
	memcpy(to->syscalls, s->syscalls, sizeof(to->syscalls));
	return s->tracepoint ? fill_tests(to, s, ret_error) : 0;
}
