/*
 * Which programs make which kind of probe, and where they are attached.
 */
#include "capture/probe/attach.h"

#include <string.h>

#include <bpf/libbpf.h>

#include "capture/probe/probe.skel.h"

/* Programs and maps are found by name; a program of no kind in this table is never loaded. */
static const struct {
	const char *programs[4];
	const char *maps[2];
} recipes[_PROBE_KINDS] = {
	[PROBE_SIGNAL] = {{"signal_generate", "signal_deliver"}, {"ended"}},
	[PROBE_EXIT] = {{"sched_process_exit"}, {"exited"}},
	[PROBE_EXEC] = {{"sched_process_exec"}, {NULL}},
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

int attach_all(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	(void)spec;
	return attach_named(p, ret_error);
}

int attach_fill(struct probe *p, const struct probe_spec *s, char **ret_error)
{
	struct shared_params *to = &p->bpf->rodata->params;

	(void)ret_error;
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
	return 0;
}
