/*
 * Runs a command under the emulated source, without the daemon. Writes the trace (oldest bytes
 * first) and the sideband records of each CPU to files, and can take snapshots while the command
 * runs, each into its own files.
 *
 *   emu_run [-c CPUS] [-q QUANTUM] [-a AUX_KIB] [-d DATA_KIB] [-t TERMS] [-T TRUTH] [-v]
 *           [-s N -i MS] PLUGIN OUT -- COMMAND...
 *
 * Writes OUT.cpuC.pt and OUT.cpuC.data, and with -s: OUT.1.cpuC.pt ... OUT.N.cpuC.pt, one snapshot
 * every MS milliseconds as long as the command runs. TRUTH: an empty directory. Prints one line per
 * snapshot on stderr. Exits with the command's status.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/ring/source.h"

struct run {
	struct source_emu_config config;
	struct source *source;
	const char *out;
	int snapshots, interval;
	uint8_t *area;
	FILE *data[SOURCE_EMU_MAX_CPUS];
	uint64_t records;
};

static void fail(const char *what)
{
	fprintf(stderr, "emu_run: %s\n", what);
	exit(125);
}

static void drain_cpu(struct run *r, size_t cpu)
{
	struct ring *ring = &r->source->cpus[cpu].pt;
	const void *record;
	size_t size;

	while (ring_peek(ring, &record, &size) == 0) {
		fwrite(record, 1, size, r->data[cpu]);
		ring_consume(ring, size);
		r->records++;
	}
}

static void drain(struct run *r)
{
	for (size_t i = 0; i < r->source->n_cpus; i++)
		drain_cpu(r, i);
}

static void save(struct run *r, const char *name, uint64_t bytes)
{
	FILE *f = fopen(name, "we");

	if (f == NULL || fwrite(r->area, 1, bytes, f) != bytes || fclose(f) != 0)
		fail(name);
}

static void save_cpu(struct run *r, int n, size_t cpu)
{
	char name[4096], number[16] = "";
	uint64_t bytes = ring_copy_aux(&r->source->cpus[cpu].pt, 0, r->area);

	if (n > 0)
		snprintf(number, sizeof(number), ".%d", n);
	snprintf(name, sizeof(name), "%s%s.cpu%zu.pt", r->out, number, cpu);
	save(r, name, bytes);
}

static void snapshot(struct run *r, int n)
{
	uint32_t n_cpus = (uint32_t)r->source->n_cpus;
	int answers = 0;

	for (uint32_t i = 0; i < n_cpus; i++)
		answers += r->source->ops->disable(r->source, i);
	for (uint32_t i = 0; i < n_cpus; i++)
		save_cpu(r, n, i);
	for (uint32_t i = 0; n > 0 && i < n_cpus; i++)
		answers += r->source->ops->enable(r->source, i);
	drain(r);
	fprintf(stderr, "snapshot %d: %d did not answer\n", n, answers);
}

static int run(struct run *r)
{
	struct pollfd p = {.fd = source_emu_pidfd(r->source), .events = POLLIN};
	int status, taken = 0, since = 0;

	while (poll(&p, 1, 1) == 0) {
		drain(r);
		if (taken >= r->snapshots || ++since < r->interval)
			continue;
		since = 0;
		snapshot(r, ++taken);
	}
	if (waitpid(source_emu_pid(r->source), &status, 0) < 0)
		fail(strerror(errno));
	source_emu_reaped(r->source);
	snapshot(r, 0);
	fprintf(stderr, "records %llu\n", (unsigned long long)r->records);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void parse(struct run *r, int argc, char **argv)
{
	int option;

	r->config.common = (struct source_config){.data_size = 256 << 10, .aux_size = 4 << 20};
	r->config.n_cpus = 1;
	r->config.max_tasks = 256;
	r->config.quantum = 1000000;
	while ((option = getopt(argc, argv, "+c:q:a:d:t:T:vs:i:")) != -1) {
		switch (option) {
		case 'c': r->config.n_cpus = (uint32_t)atoi(optarg); break;
		case 'q': r->config.quantum = strtoull(optarg, NULL, 0); break;
		case 'a': r->config.common.aux_size = strtoull(optarg, NULL, 0) << 10; break;
		case 'd': r->config.common.data_size = strtoull(optarg, NULL, 0) << 10; break;
		case 't': r->config.common.pt_terms = optarg; break;
		case 'T': r->config.truth_path = optarg; break;
		case 'v': r->config.virtual_clock = true; break;
		case 's': r->snapshots = atoi(optarg); break;
		case 'i': r->interval = atoi(optarg); break;
		default: fail("unknown option");
		}
	}
	if (r->config.n_cpus < 1 || r->config.n_cpus > SOURCE_EMU_MAX_CPUS ||
	    r->config.quantum == 0)
		fail("no such machine");
	if (argc - optind < 3)
		fail("PLUGIN OUT -- COMMAND");
	r->config.plugin_path = argv[optind];
	r->out = argv[optind + 1];
	argv += optind + 2;
	r->config.argv = strcmp(*argv, "--") == 0 ? argv + 1 : argv;
}

static void open_data(struct run *r)
{
	char name[4096];

	for (size_t i = 0; i < r->source->n_cpus; i++) {
		snprintf(name, sizeof(name), "%s.cpu%zu.data", r->out, i);
		r->data[i] = fopen(name, "we");
		if (r->data[i] == NULL)
			fail(name);
	}
}

int main(int argc, char **argv)
{
	static struct run r;
	char why[512];
	int status;

	parse(&r, argc, argv);
	if (source_emu_open(&r.config, &r.source, why, sizeof(why)) < 0)
		fail(why);
	r.area = malloc(r.config.common.aux_size);
	if (r.area == NULL)
		fail("no memory");
	open_data(&r);
	status = run(&r);
	for (size_t i = 0; i < r.source->n_cpus; i++)
		if (fclose(r.data[i]) != 0)
			fail("data");
	free(r.area);
	source_free(r.source);
	return status;
}
