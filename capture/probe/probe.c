/*
 * Arms a probe, and reads its events.
 */
#include "capture/probe/probe.h"

#include <string.h>

#include <bpf/libbpf.h>

#include "capture/probe/attach.h"
#include "capture/probe/probe.skel.h"

_Static_assert(SHARED_COMM == PROBE_COMM && SHARED_STACK == PROBE_STACK, "the layouts agree");

bool probe_built(void)
{
	return true;
}

/* libbpf's own messages: ours says the same in one sentence. */
static int no_message(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

static void read_event(const struct probe *p, const struct shared_event *from,
		       struct probe_event *ret)
{
	*ret = (struct probe_event){
		.kind = p->kind,
		.time_ns = from->time_ns,
		.duration_ns = from->duration_ns,
		.cpu = from->cpu,
		.pid = (pid_t)from->pid,
		.tid = (pid_t)from->tid,
		.by = (pid_t)from->by,
		.uid = from->uid,
		.address = from->address,
		.value = from->value,
		.data = from->data,
		.n_stack = from->stack_bytes / sizeof(ret->stack[0]),
	};
	memcpy(ret->comm, from->comm, sizeof(ret->comm));
	memcpy(ret->stack, from->stack, ret->n_stack * sizeof(ret->stack[0]));
}

static int on_record(void *userdata, void *record, size_t size)
{
	struct probe *p = userdata;
	struct probe_event event;

	if (size < sizeof(struct shared_event))
		return 0;
	read_event(p, record, &event);
	p->fn(&event, p->userdata);
	return 0;
}

static int open_files(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	int r = 0;

	if (spec->exe)
		r = probe_file_open(spec->exe, &p->exe, ret_error);
	if (r == 0 && spec->file)
		r = probe_file_open(spec->file, &p->file, ret_error);
	return r;
}

static int load_failed(int r, char **ret_error)
{
	if (r == -EPERM || r == -EACCES)
		return probe_fail(
			ret_error, -EPERM,
			"The kernel does not load BPF programs for this process: that needs "
			"CAP_BPF and CAP_PERFMON, and a kernel that is not locked down.");
	return probe_fail(
		ret_error, r,
		"The kernel does not load the BPF programs of this probe: %s. Linux 6.1 or "
		"newer with BTF (/sys/kernel/btf/vmlinux) is needed.",
		strerror(-r));
}

static int load(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	int r;

	p->bpf = probe_bpf__open();
	if (!p->bpf)
		return load_failed(-errno, ret_error);
	attach_choose(p);
	r = attach_fill(p, spec, ret_error);
	if (r < 0)
		return r;
	r = probe_bpf__load(p->bpf);
	return r < 0 ? load_failed(r, ret_error) : 0;
}

static int open_events(struct probe *p, char **ret_error)
{
	p->events = ring_buffer__new(bpf_map__fd(p->bpf->maps.events), on_record, p, NULL);
	if (p->events)
		return 0;
	return probe_fail(ret_error, -errno, "The ring of events cannot be mapped: %s.",
			  strerror(errno));
}

static int arm(struct probe *p, const struct probe_spec *spec, char **ret_error)
{
	int r = open_files(p, spec, ret_error);

	if (r == 0)
		r = load(p, spec, ret_error);
	if (r == 0)
		r = open_events(p, ret_error);
	if (r == 0)
		r = attach_all(p, spec, ret_error);
	return r;
}

int probe_arm(const struct probe_spec *spec, probe_fn fn, void *userdata, struct probe **ret,
	      char **ret_error)
{
	struct probe *p;
	int r;

	*ret_error = NULL;
	r = probe_check(spec, ret_error);
	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct probe){.kind = spec->kind,
			    .fn = fn,
			    .userdata = userdata,
			    .exe = PROBE_FILE_NONE,
			    .file = PROBE_FILE_NONE};
	libbpf_set_print(no_message);
	r = arm(p, spec, ret_error);
	if (r < 0)
		probe_free(p);
	else
		*ret = p;
	return r;
}

int probe_fd(const struct probe *p)
{
	return ring_buffer__epoll_fd(p->events);
}

int probe_dispatch(struct probe *p)
{
	return ring_buffer__consume(p->events);
}

void probe_set_on(struct probe *p, bool on)
{
	uint64_t since = on ? now_ns(CLOCK_MONOTONIC) : 0;

	__atomic_store_n(&p->bpf->data->on_since, since, __ATOMIC_RELAXED);
}

uint64_t probe_missed(const struct probe *p)
{
	return __atomic_load_n(&p->bpf->bss->missed, __ATOMIC_RELAXED);
}

bool probe_file_replaced(const struct probe *p)
{
	return probe_file_moved(&p->exe) || probe_file_moved(&p->file);
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n_links; i++)
		bpf_link__destroy(p->links[i]);
	ring_buffer__free(p->events);
	probe_bpf__destroy(p->bpf);
	probe_file_close(&p->exe);
	probe_file_close(&p->file);
	free(p);
}
