/*
 * kernel_walk [-1] [-s SEED] [-n BRANCHES] [-p POKES] [-o TRACE] ELF | -a ADDRESS MEMORY: a
 * simulated processor takes a random walk through a kernel's code (vmlinux, or any x86-64 file with
 * real code, placed at kernel addresses), with system calls, interrupts and switches between two
 * processes, while the kernel toggles 5-byte NOPs and jumps in its own text. The walk writes the
 * packets that a processor would write, and copies the text half-way. Decoding the copy, the
 * records and the packets must give the executed branches, one for one.
 *
 * The walk (kernel_world.h) is independent of the decoder: Zydis decodes instructions, and the
 * software PMU's encoder writes packets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/flow/flow.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "sideband/kernel/kernel.h"
#include "tests/oracle/kernel_world.h"

struct check {
	const struct world *world;
	struct kernel *kernel;
	struct flow *flow;
	size_t n_asked;	  /* entries into user code */
	uint64_t context; /* the last answer */
	size_t at;	  /* index into the truth */
	uint64_t ambiguous;
};

static int on_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct check *c = userdata;
	const struct text *t = &c->world->user[context];

	if (ip - t->address >= t->size)
		return FAULT_UNMAPPED;
	*ret = (struct flow_code){.bytes = t->bytes, .address = t->address, .size = t->size};
	return 0;
}

static int on_kernel_code(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	const struct check *c = userdata;
	struct kernel_code code;
	int r = kernel_find(c->kernel, ip, version, &code);

	if (r != 0)
		return r == KERNEL_UNRELIABLE ? FAULT_KERNEL_TEXT : FAULT_UNMAPPED;
	*ret = (struct flow_code){
		.bytes = code.bytes, .address = code.address, .size = code.size, .ends = code.ends};
	return 0;
}

/* TSC ticks are ns. */
static uint32_t on_version(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi,
			   uint32_t *ret_last)
{
	struct check *c = userdata;
	uint32_t first = kernel_version(c->kernel, ip, lo, hi, ret_last);

	c->ambiguous += first != *ret_last;
	return first;
}

static uint64_t on_context(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi)
{
	struct check *c = userdata;

	(void)ip;
	(void)lo;
	(void)hi;
	if (flow_asked_return(c->flow) && c->n_asked < c->world->n_entered)
		c->context = c->world->entered[c->n_asked++];
	return c->context;
}

static struct image_set *make_images(const struct world *w)
{
	const struct image_source source = {.path = "[kernel]",
					    .bytes = w->copy,
					    .size = (size_t)w->kernel.size,
					    .memory = true,
					    .pid = IMAGE_ANY_PID,
					    .address = w->kernel.address};
	struct image_set *images;

	if (image_set_new(&source, 1, NULL, &images) != 0)
		world_die("no memory");
	return images;
}

static struct kernel *make_kernel(const struct world *w, struct image_set *images)
{
	const struct kernel_piece piece = {
		.address = w->kernel.address, .size = w->kernel.size, .read_ns = w->copy_time};
	struct kernel *k;

	if (kernel_new(images, &k) != 0 || kernel_add_piece(k, &piece) != 0)
		world_die("no memory");
	for (size_t i = 0; i < w->n_pokes; i++) {
		struct perfrecord record = {.type = PERF_RECORD_TEXT_POKE,
					    .time = w->pokes[i].time};

		record.u.raw.bytes = w->pokes[i].body;
		record.u.raw.size = sizeof(w->pokes[i].body);
		if (kernel_add_record(k, &record) != 0)
			world_die("a record is refused");
	}
	if (kernel_ready(k) != 0)
		world_die("no memory");
	return k;
}

static void check_gap(const struct check *c, const struct flow_gap *gap)
{
	const struct branch *b = &c->world->truth[MIN_OF(c->at, c->world->n_truth - 1)];

	world_die("gap %s at %#lx, offset %#lx, in front of branch %zu, %#lx -> %#lx",
		  fault_name(gap->fault), gap->address, gap->offset, c->at, b->from, b->to);
}

static void check_item(struct check *c, const struct flow_item *item)
{
	const struct branch *b = &c->world->truth[c->at];

	if (c->at == c->world->n_truth)
		world_die("branch %#lx -> %#lx behind the last executed branch", item->from,
			  item->to);
	if (item->from != b->from || item->to != b->to)
		world_die("branch %zu is %#lx -> %#lx, not %#lx -> %#lx", c->at, b->from, b->to,
			  item->from, item->to);
	c->at++;
}

static void check_batch(struct check *c, const struct flow_batch *batch)
{
	for (size_t i = 0; i < batch->n_items; i++) {
		const struct flow_item *item = &batch->items[i];

		switch (item->kind) {
		case FLOW_GAP: check_gap(c, &batch->gaps[item->gap]); break;
		case FLOW_ENABLE:
		case FLOW_DISABLE:
			/* Another process is in user code at a PSB. */
			if (i > 0 && i + 1 < batch->n_items)
				world_die("tracing goes %s at branch %zu",
					  item->kind == FLOW_ENABLE ? "on" : "off", c->at);
			break;
		case FLOW_END: break;
		default: check_item(c, item); break;
		}
	}
}

static void check(const struct world *w)
{
	struct check c = {.world = w};
	const struct flow_config config = {.trace = w->encoder.aux,
					   .size = (size_t)w->state.pos,
					   .mtc_period = UINT32_MAX,
					   .code = on_code,
					   .context = on_context,
					   .kernel_start = KERNEL_START,
					   .kernel_code = on_kernel_code,
					   .kernel_version = on_version,
					   .userdata = &c};
	struct image_set *images = make_images(w);
	struct flow_batch batch;
	struct flow *f;
	int r;

	c.kernel = make_kernel(w, images);
	if (flow_new(&config, &f) != 0)
		world_die("no memory");
	c.flow = f;
	while ((r = flow_next(f, &batch)) == 0)
		check_batch(&c, &batch);
	if (r != FLOW_DONE || c.at != w->n_truth || c.n_asked != w->n_entered)
		world_die("%zu of %zu branches, %zu of %zu entries into user code", c.at,
			  w->n_truth, c.n_asked, w->n_entered);
	printf("%zu branches in %lu bytes, %lu instructions; %zu entries into user code, %lu system "
	       "calls, %lu interrupts; %zu pokes of %zu sites, %lu INT3s, %lu jumps that were "
	       "poked, %lu times in doubt; %lu compressed returns\n",
	       c.at, w->state.pos, flow_get_stats(f)->instructions, w->n_entered, w->syscalls,
	       w->interrupts, w->n_pokes, w->n_sites, w->int3s, w->patched, c.ambiguous,
	       flow_get_stats(f)->compressed_returns);
	flow_free(f);
	kernel_free(c.kernel);
	image_set_free(images);
}

static void write_file(const char *path, const char *suffix, const void *bytes, size_t size)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	f = fopen(name, "we");
	if (f == NULL || fwrite(bytes, size, 1, f) != 1 || fclose(f) != 0)
		world_die("%s: cannot be written", name);
}

/* Writes the trace and, for other decoders, the final text and its address. */
static void dump(const struct world *w, const char *path)
{
	char address[32];
	int n = snprintf(address, sizeof(address), "0x%lx\n", w->kernel.address);

	write_file(path, "", w->encoder.aux, (size_t)w->state.pos);
	write_file(path, ".kernel", w->kernel.bytes, (size_t)w->kernel.size);
	write_file(path, ".user", w->user[0].bytes, (size_t)w->user[0].size);
	write_file(path, ".address", address, (size_t)n);
}

int main(int argc, char **argv)
{
	struct world *w = world_must(calloc(1, sizeof(*w)));
	size_t branches = 1000000, pokes = 2000;
	const char *trace = NULL;
	uint64_t address = 0;
	int option;

	w->random = 1;
	while ((option = getopt(argc, argv, "1s:n:p:o:a:")) != -1) {
		switch (option) {
		case '1': w->alone = true; break;
		case 's': w->random = strtoull(optarg, NULL, 0) * 2 + 1; break;
		case 'n': branches = strtoull(optarg, NULL, 0); break;
		case 'p': pokes = strtoull(optarg, NULL, 0); break;
		case 'o': trace = optarg; break;
		case 'a': address = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (optind + 1 != argc)
		world_die("usage: kernel_walk [-1] [-s SEED] [-n BRANCHES] [-p POKES] [-o TRACE] "
			  "ELF | -a ADDRESS MEMORY");
	if (address != 0)
		world_load_memory(w, argv[optind], address);
	else
		world_load(w, argv[optind]);
	world_run(w, branches, pokes);
	if (trace != NULL)
		dump(w, trace);
	check(w);
	world_free(w);
	return 0;
}
