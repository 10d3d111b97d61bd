/*
 * Runs a command under the emulated source, without the daemon: its trace (oldest first) and
 * sideband records go to files. Snapshots can be taken meanwhile, each into a file of its own.
 *
 *   emu_run [-a AUX_KIB] [-d DATA_KIB] [-t TERMS] [-T TRUTH] [-v] [-s N -i MS] PLUGIN OUT --
 * COMMAND...
 *
 * Writes OUT.pt and OUT.data, and with -s: OUT.1.pt ... OUT.N.pt, one every MS milliseconds, as
 * long as the command runs. One line a snapshot on stderr. Exits with the command's status.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/source.h"

struct run {
	struct source_emu_config config;
	struct source *source;
	const char *out;
	int snapshots, interval;
	uint8_t *area;
	FILE *data;
	uint64_t records;
};

static void fail(const char *what)
{
	fprintf(stderr, "emu_run: %s\n", what);
	exit(125);
}

static void drain(struct run *r)
{
	struct ring *ring = &r->source->cpus[0].pt;
	const void *record;
	size_t size;

	while (ring_peek(ring, &record, &size) == 0) {
		fwrite(record, 1, size, r->data);
		ring_consume(ring, size);
		r->records++;
	}
}

static void save(struct run *r, const char *name, uint64_t bytes)
{
	FILE *f = fopen(name, "we");

	if (f == NULL || fwrite(r->area, 1, bytes, f) != bytes || fclose(f) != 0)
		fail(name);
}

static void snapshot(struct run *r, int n)
{
	char name[4096];
	int answer = r->source->ops->disable(r->source, 0);
	uint64_t bytes = ring_copy_aux(&r->source->cpus[0].pt, 0, r->area);
	int again = n > 0 ? r->source->ops->enable(r->source, 0) : 0;

	if (n > 0)
		snprintf(name, sizeof(name), "%s.%d.pt", r->out, n);
	else
		snprintf(name, sizeof(name), "%s.pt", r->out);
	save(r, name, bytes);
	drain(r);
	fprintf(stderr, "snapshot %d: disable %d enable %d\n", n, answer, again);
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
	while ((option = getopt(argc, argv, "+a:d:t:T:vs:i:")) != -1) {
		switch (option) {
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
	if (argc - optind < 3)
		fail("PLUGIN OUT -- COMMAND");
	r->config.plugin_path = argv[optind];
	r->out = argv[optind + 1];
	argv += optind + 2;
	r->config.argv = strcmp(*argv, "--") == 0 ? argv + 1 : argv;
}

int main(int argc, char **argv)
{
	struct run r = {0};
	char why[512], name[4096];
	int status;

	parse(&r, argc, argv);
	if (source_emu_open(&r.config, &r.source, why, sizeof(why)) < 0)
		fail(why);
	r.area = malloc(r.config.common.aux_size);
	snprintf(name, sizeof(name), "%s.data", r.out);
	r.data = fopen(name, "we");
	if (r.area == NULL || r.data == NULL)
		fail("no memory or no file");
	status = run(&r);
	if (fclose(r.data) != 0)
		fail(name);
	free(r.area);
	source_free(r.source);
	return status;
}
