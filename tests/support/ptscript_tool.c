/*
 * Turns a script into files, for tests/scripts/run.py: ptscript_tool SCRIPT DIRECTORY. Writes
 * DIRECTORY/trace.pt, DIRECTORY/expect-N and, if there is a sideband section,
 * DIRECTORY/bundle.ptsnap. Prints what was written:
 *
 *   trace PATH
 *   image PATH OFFSET LENGTH ADDRESS
 *   bundle PATH
 *   options WORDS
 *   expect LINE VIEW PATH WORDS
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"
#include "tests/support/ptscript.h"
#include "tests/support/ptscript_program.h"

#define MAX_PATH 512

struct tool {
	struct ptscript script;
	struct ptscript_program program;
	const char *directory;
};

static void fail(const char *what, int r)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(2);
}

/* Prints the error that the script's parser left. */
static void check(const struct tool *t, int r)
{
	if (r == -EINVAL && t->script.error[0] != '\0') {
		fprintf(stderr, "%s\n", t->script.error);
		exit(1);
	}
	if (r != 0)
		fail(t->script.path, r);
}

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0, n = 0, got;

	if (f == NULL)
		fail(path, -errno);
	do {
		room += 65536;
		text = realloc(text, room);
		if (text == NULL)
			fail(path, -ENOMEM);
		got = fread(text + n, 1, room - n - 1, f);
		n += got;
	} while (got > 0);
	fclose(f);
	text[n] = '\0';
	return text;
}

static void write_out(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "we");

	if (f == NULL || (size > 0 && fwrite(data, size, 1, f) != 1) || fclose(f) != 0)
		fail(path, -errno);
}

static bool is_kernel(const struct tool *t, uint64_t address)
{
	return t->script.has_kernel && address >> 63 != 0;
}

/* Labels of the kernel's sections, in the form of /proc/kallsyms. */
static void list_symbols(const struct tool *t, struct bytes_out *out)
{
	for (size_t i = 0; i < t->script.n_labels; i++) {
		const struct ptscript_label *l = &t->script.labels[i];
		char line[256];
		int n = snprintf(line, sizeof(line), "%016" PRIx64 " T %s\n", l->value, l->name);

		if (is_kernel(t, l->value) && l->name[0] != '.')
			bytes_put_block(out, line, (size_t)n);
	}
}

/* Adds the kernel's sections as images behind the program's image, and its symbols. */
static int write_kernel(const struct tool *t, struct bundle_writer *w, struct manifest *m, int fd)
{
	struct bytes_out symbols;
	struct manifest_text *text;
	int r = 0;

	for (size_t i = 0; i < t->program.n_pieces && r == 0; i++) {
		const struct ptscript_piece *p = &t->program.pieces[i];
		struct manifest_image *image;
		uint64_t copied;
		char name[32];

		if (!is_kernel(t, p->address))
			continue;
		snprintf(name, sizeof(name), "images/%zu", m->n_images);
		image = manifest_add_image(m);
		if (image == NULL)
			return -ENOMEM;
		image->path = strdup("[kernel]");
		image->kind = strdup(MANIFEST_IMAGE_KERNEL);
		image->address = p->address;
		image->size = p->size;
		image->read_ns = t->script.kernel_time;
		r = bundle_write_file(w, name, fd, p->offset, p->size, &copied);
	}
	bytes_out_init(&symbols, 1u << 20);
	list_symbols(t, &symbols);
	text = r == 0 && t->script.has_kernel ? manifest_add_text(m) : NULL;
	if (text != NULL) {
		text->kind = strdup(MANIFEST_TEXT_KALLSYMS);
		text->size = symbols.size;
		r = bundle_write_member(w, "texts/0", symbols.data, symbols.size);
	}
	bytes_out_done(&symbols);
	return r;
}

static int describe(const struct tool *t, struct manifest *m, uint64_t image_size)
{
	struct manifest_cpu *cpu = manifest_add_cpu(m);
	struct manifest_image *image = image_size > 0 ? manifest_add_image(m) : NULL;

	if (cpu == NULL || (image_size > 0 && image == NULL))
		return -ENOMEM;
	m->id = strdup("script");
	m->version = strdup("0");
	m->trigger_kind = strdup("offline");
	/* A bundle of a recorder, not a raw trace: code of guests is not decoded. */
	m->source = strdup("intel_pt");
	m->unrecorded_cpus = 0;
	/* TSC ticks are ns. */
	m->have_clock = true;
	m->time_mult = 1;
	if (t->script.has_trigger)
		m->perf_ns = t->script.trigger_time;
	m->trace_user = m->trace_kernel = true;
	m->mtc_period = UINT32_MAX;
	cpu->cpu = 0;
	cpu->ring_bytes = cpu->bytes = t->script.trace.size;
	cpu->aux_flags = 0;
	cpu->lost_records = 0;
	if (image != NULL) {
		image->path = strdup("program");
		image->size = image_size;
	}
	for (size_t i = 0; i < t->script.n_seams; i++) {
		struct manifest_seam *seam = manifest_add_seam(m);

		if (seam == NULL)
			return -ENOMEM;
		seam->offset = t->script.seams[i].offset;
		seam->kind = strdup(t->script.seams[i].kind);
	}
	return 0;
}

/* Writes trace, records, and the linked program as the image "program". */
static int write_members(const struct tool *t, struct bundle_writer *w, struct manifest *m)
{
	CLEANUP_CLOSE int program = -EBADF;
	uint64_t size = 0, copied;
	int r;

	if (t->program.file[0] != '\0') {
		program = open(t->program.file, O_RDONLY | O_CLOEXEC);
		size = program >= 0 ? (uint64_t)lseek(program, 0, SEEK_END) : 0;
	}
	r = describe(t, m, size);
	if (r == 0)
		r = bundle_write_member(w, "cpu0.pt", t->script.trace.data, t->script.trace.size);
	if (r == 0)
		r = bundle_write_member(w, "sideband", t->script.sideband.data,
					t->script.sideband.size);
	if (r == 0 && size > 0)
		r = bundle_write_file(w, "images/0", program, 0, size, &copied);
	if (r == 0 && size > 0)
		r = write_kernel(t, w, m, program);
	return r == 0 ? bundle_write_end(w, m) : r;
}

static void write_bundle(const struct tool *t)
{
	struct bundle_writer w;
	struct manifest m;
	char path[MAX_PATH];
	int fd, r;

	snprintf(path, sizeof(path), "%s/bundle.ptsnap", t->directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		fail(path, -errno);
	manifest_init(&m);
	bundle_writer_init(&w, fd);
	r = write_members(t, &w, &m);
	manifest_done(&m);
	close_fd(fd);
	if (r != 0)
		fail(path, r);
	printf("bundle %s\n", path);
}

static void write_expectations(struct tool *t)
{
	for (size_t i = 0; i < t->script.n_sections; i++) {
		const struct ptscript_section *section = &t->script.sections[i];
		struct bytes_out out;
		char path[MAX_PATH];

		if (section->kind != PTSCRIPT_EXPECT)
			continue;
		bytes_out_init(&out, 1u << 24);
		check(t, ptscript_expand(&t->script, section, &out));
		snprintf(path, sizeof(path), "%s/expect-%zu", t->directory, i);
		write_out(path, out.data, out.size);
		printf("expect %u %s %s %s\n", section->line, section->view, path, section->words);
		bytes_out_done(&out);
	}
}

static void write_trace(const struct tool *t)
{
	char path[MAX_PATH];

	snprintf(path, sizeof(path), "%s/trace.pt", t->directory);
	write_out(path, t->script.trace.data, t->script.trace.size);
	printf("trace %s\n", path);
	for (size_t i = 0; i < t->program.n_pieces; i++) {
		const struct ptscript_piece *p = &t->program.pieces[i];

		printf("image %s 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 "\n", t->program.file,
		       p->offset, p->size, p->address);
	}
}

/* Adds labels such as .text.offset: the section's offset in the file, for records. */
static void add_offsets(struct tool *t)
{
	for (size_t i = 0; i < t->program.n_pieces; i++) {
		const struct ptscript_piece *p = &t->program.pieces[i];
		char name[64];

		snprintf(name, sizeof(name), "%s.offset", p->name);
		ptscript_add_label(&t->script, name, p->offset);
		snprintf(name, sizeof(name), "%s.size", p->name);
		ptscript_add_label(&t->script, name, p->size);
		ptscript_add_label(&t->script, p->name, p->address);
	}
}

int main(int argc, char **argv)
{
	struct tool t = {0};
	CLEANUP_FREE char *text = NULL;
	const struct ptscript_section *options;

	if (argc != 3) {
		fprintf(stderr, "usage: ptscript_tool SCRIPT DIRECTORY\n");
		return 2;
	}
	text = read_text(argv[1]);
	t.directory = argv[2];
	check(&t, ptscript_parse(&t.script, argv[1], text));
	check(&t, ptscript_assemble(&t.script, t.directory, &t.program));
	add_offsets(&t);
	check(&t, ptscript_trace(&t.script));
	check(&t, ptscript_sideband(&t.script));
	write_trace(&t);
	if (ptscript_find(&t.script, PTSCRIPT_SIDEBAND) != NULL)
		write_bundle(&t);
	options = ptscript_find(&t.script, PTSCRIPT_OPTIONS);
	printf("options %s\n", options != NULL ? options->words : "");
	write_expectations(&t);
	ptscript_done(&t.script);
	return 0;
}
