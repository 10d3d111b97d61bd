/*
 * Writes the sideband section of a script: each line, "mmap2(time=5, pid=1, addr=main, ...)",
 * becomes a perf record with our usual trailer (proto/perf/perfrecord.h). Every field is optional.
 * The default is 0, except: tid defaults to pid, and the trailer's task to the record's task.
 */
#include <stdio.h>
#include <string.h>

#include "proto/perf/perfrecord.h"
#include "tests/support/ptscript.h"
#include "tests/support/ptscript_line.h"

/* The fields of a line, by name; strings point into the line. */
struct fields {
	uint64_t time, cpu, pid, tid, ppid, ptid, addr, len, pgoff, maj, min, ino, gen, prot, flags,
		offset, size, id, lost;
	const char *comm, *file, *old, *new, *kind;
	bool exec, out;
	bool has_tid, has_ptid;
};

#define FIELD(name)                                  \
	{                                            \
#name, offsetof(struct fields, name) \
	}
static const struct {
	const char *name;
	size_t at;
} numbers[] = {
	FIELD(time),  FIELD(cpu),    FIELD(pid),  FIELD(tid), FIELD(ppid), FIELD(ptid), FIELD(addr),
	FIELD(len),   FIELD(pgoff),  FIELD(maj),  FIELD(min), FIELD(ino),  FIELD(gen),	FIELD(prot),
	FIELD(flags), FIELD(offset), FIELD(size), FIELD(id),  FIELD(lost),
};

struct composer {
	struct ptscript_line line;
	struct bytes_out *out;
	struct fields f;
};

static int wrong(struct composer *c, const char *why, const char *what)
{
	return ptscript_fail(c->line.script, c->line.number, "%s: %s `%s'", c->line.name, why,
			     what);
}

static int take_number(struct composer *c, const char *name, const char *value)
{
	size_t i = 0, n = sizeof(numbers) / sizeof(numbers[0]);
	uint64_t number;
	int r = ptscript_value(c->line.script, c->line.number, value, &number);

	while (i < n && strcmp(name, numbers[i].name) != 0)
		i++;
	if (i == n)
		return wrong(c, "no field", name);
	if (r != 0)
		return r;
	memcpy((char *)&c->f + numbers[i].at, &number, sizeof(number));
	c->f.has_tid |= strcmp(name, "tid") == 0;
	c->f.has_ptid |= strcmp(name, "ptid") == 0;
	return 0;
}

static int take_field(struct composer *c, char *text)
{
	char *equals = strchr(text, '=');

	if (strcmp(text, "exec") == 0) {
		c->f.exec = true;
		return 0;
	}
	if (strcmp(text, "out") == 0 || strcmp(text, "in") == 0) {
		c->f.out = *text == 'o';
		return 0;
	}
	if (equals == NULL)
		return wrong(c, "give FIELD=VALUE, not", text);
	*equals = '\0';
	if (strcmp(text, "comm") == 0)
		c->f.comm = equals + 1;
	else if (strcmp(text, "file") == 0)
		c->f.file = equals + 1;
	else if (strcmp(text, "old") == 0)
		c->f.old = equals + 1;
	else if (strcmp(text, "new") == 0)
		c->f.new = equals + 1;
	else if (strcmp(text, "kind") == 0)
		c->f.kind = equals + 1;
	else
		return take_number(c, text, equals + 1);
	return 0;
}

static void make_mmap2(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_MMAP2;
	r->misc = PERF_RECORD_MISC_USER;
	r->u.mmap2.pid = (uint32_t)f->pid;
	r->u.mmap2.tid = (uint32_t)f->tid;
	r->u.mmap2.addr = f->addr;
	r->u.mmap2.len = f->len;
	r->u.mmap2.pgoff = f->pgoff;
	r->u.mmap2.maj = (uint32_t)f->maj;
	r->u.mmap2.min = (uint32_t)f->min;
	r->u.mmap2.ino = f->ino;
	r->u.mmap2.ino_generation = f->gen;
	r->u.mmap2.prot = f->prot != 0 ? (uint32_t)f->prot : 5;	   /* readable, executable */
	r->u.mmap2.flags = f->flags != 0 ? (uint32_t)f->flags : 2; /* private */
	r->u.mmap2.filename = f->file != NULL ? f->file : "//anon";
}

static void make_comm(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_COMM;
	r->misc = f->exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
	r->u.comm.pid = (uint32_t)f->pid;
	r->u.comm.tid = (uint32_t)f->tid;
	r->u.comm.comm = f->comm != NULL ? f->comm : "";
}

/* A fork's trailer names the parent; an exit's trailer names the task that ends. */
static void make_fork(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_FORK;
	r->pid = r->u.task.ppid = (uint32_t)f->ppid;
	r->tid = r->u.task.ptid = (uint32_t)f->ptid;
	r->u.task.pid = (uint32_t)f->pid;
	r->u.task.tid = (uint32_t)f->tid;
	r->u.task.time = f->time;
}

static void make_exit(const struct fields *f, struct perfrecord *r)
{
	make_fork(f, r);
	r->type = PERF_RECORD_EXIT;
	r->pid = (uint32_t)f->pid;
	r->tid = (uint32_t)f->tid;
}

static void make_switch(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_SWITCH;
	r->misc = f->out ? PERF_RECORD_MISC_SWITCH_OUT : 0;
}

/* ppid and ptid name the other task. */
static void make_switch_cpu_wide(const struct fields *f, struct perfrecord *r)
{
	make_switch(f, r);
	r->type = PERF_RECORD_SWITCH_CPU_WIDE;
	r->u.context_switch.next_prev_pid = (uint32_t)f->ppid;
	r->u.context_switch.next_prev_tid = (uint32_t)f->ptid;
}

static void make_itrace_start(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_ITRACE_START;
	r->u.itrace_start.pid = (uint32_t)f->pid;
	r->u.itrace_start.tid = (uint32_t)f->tid;
}

static void make_aux(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_AUX;
	r->u.aux.offset = f->offset;
	r->u.aux.size = f->size;
	r->u.aux.flags = f->flags;
}

static void make_lost(const struct fields *f, struct perfrecord *r)
{
	r->type = PERF_RECORD_LOST;
	r->u.lost.id = f->id;
	r->u.lost.lost = f->lost;
}

/* The body of a record that has no struct; valid until the record is composed. */
static uint8_t raw_body[512];

static void put_number(size_t *at, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		raw_body[(*at)++] = (uint8_t)(value >> 8 * i);
}

/* Parses bytes given as hexadecimal digits. */
static void put_hex(size_t *at, const char *text)
{
	unsigned byte;

	for (; text != NULL && sscanf(text, "%2x", &byte) == 1 && *at < 256; text += 2)
		raw_body[(*at)++] = (uint8_t)byte;
}

static void make_raw(struct perfrecord *r, uint32_t type, size_t size)
{
	r->type = type;
	r->u.raw.bytes = raw_body;
	r->u.raw.size = (size + 7) & ~(size_t)7;
}

/* include/uapi/linux/perf_event.h, PERF_RECORD_TEXT_POKE. */
static void make_text_poke(const struct fields *f, struct perfrecord *r)
{
	size_t at = 0;

	memset(raw_body, 0, sizeof(raw_body));
	put_number(&at, f->addr, 8);
	put_number(&at, f->old != NULL ? strlen(f->old) / 2 : 0, 2);
	put_number(&at, f->new != NULL ? strlen(f->new) / 2 : 0, 2);
	put_hex(&at, f->old);
	put_hex(&at, f->new);
	make_raw(r, PERF_RECORD_TEXT_POKE, at);
}

/* PERF_RECORD_KSYMBOL of a BPF program; out: the program was removed. */
static void make_ksymbol(const struct fields *f, struct perfrecord *r)
{
	size_t at = 0;

	memset(raw_body, 0, sizeof(raw_body));
	put_number(&at, f->addr, 8);
	put_number(&at, f->len, 4);
	put_number(&at, PERF_RECORD_KSYMBOL_TYPE_BPF, 2);
	put_number(&at, f->out ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0, 2);
	snprintf((char *)raw_body + at, 64, "%s", f->comm != NULL ? f->comm : "");
	make_raw(r, PERF_RECORD_KSYMBOL, at + strlen((char *)raw_body + at) + 1);
}

static const struct {
	const char *name;
	void (*make)(const struct fields *f, struct perfrecord *r);
} kinds[] = {
	{"mmap2", make_mmap2},
	{"comm", make_comm},
	{"fork", make_fork},
	{"exit", make_exit},
	{"switch", make_switch},
	{"switch_cpu_wide", make_switch_cpu_wide},
	{"itrace_start", make_itrace_start},
	{"aux", make_aux},
	{"lost", make_lost},
	{"text_poke", make_text_poke},
	{"ksymbol", make_ksymbol},
};

static int put_record(struct composer *c, size_t kind)
{
	uint8_t buffer[8192];
	size_t size;
	struct perfrecord r = {.pid = (uint32_t)c->f.pid,
			       .tid = (uint32_t)c->f.tid,
			       .time = c->f.time,
			       .cpu = (uint32_t)c->f.cpu,
			       .id = c->f.id};

	kinds[kind].make(&c->f, &r);
	if (perfrecord_compose(&r, buffer, sizeof(buffer), &size) != 0)
		return wrong(c, "cannot be composed:", c->line.name);
	bytes_put_block(c->out, buffer, size);
	return 0;
}

/* What is no record, but says something of the bundle. False: C's line is a record. */
static bool take_other(struct composer *c)
{
	struct ptscript *s = c->line.script;

	if (strcmp(c->line.name, "kernel") == 0) {
		s->has_kernel = true;
		s->kernel_time = c->f.time;
		return true;
	}
	if (strcmp(c->line.name, "trigger") == 0) {
		s->has_trigger = true;
		s->trigger_time = c->f.time;
		return true;
	}
	if (strcmp(c->line.name, "seam") == 0 && s->n_seams < PTSCRIPT_SEAMS) {
		struct ptscript_seam *seam = &s->seams[s->n_seams++];

		seam->offset = c->f.offset;
		snprintf(seam->kind, sizeof(seam->kind), "%s",
			 c->f.kind != NULL ? c->f.kind : "trace-missing");
		return true;
	}
	return false;
}

static int compose(struct composer *c)
{
	size_t i = 0, n = sizeof(kinds) / sizeof(kinds[0]);
	int r = 0;

	while (i < n && strcmp(c->line.name, kinds[i].name) != 0)
		i++;
	c->f = (struct fields){0};
	for (size_t k = 0; k < c->line.n_args && r == 0; k++)
		r = take_field(c, c->line.args[k]);
	if (!c->f.has_tid)
		c->f.tid = c->f.pid;
	if (!c->f.has_ptid)
		c->f.ptid = c->f.ppid;
	if (r != 0 || take_other(c))
		return r;
	if (i == n)
		return ptscript_fail(c->line.script, c->line.number, "no record `%s'",
				     c->line.name);
	return put_record(c, i);
}

int ptscript_sideband(struct ptscript *s)
{
	const struct ptscript_section *section = ptscript_find(s, PTSCRIPT_SIDEBAND);
	struct composer c = {.line.script = s, .out = &s->sideband};
	const char *text = section != NULL ? section->text : "";
	int r = 0;

	bytes_out_reset(&s->sideband);
	c.line.number = section != NULL ? section->line + 1 : 0;
	for (; *text != '\0' && r == 0; c.line.number++) {
		r = ptscript_line_read(&c.line, text, &text);
		if (r == 0 && c.line.label != NULL)
			r = ptscript_fail(s, c.line.number, "records have no labels");
		if (r == 0 && c.line.name != NULL)
			r = compose(&c);
	}
	return r;
}
