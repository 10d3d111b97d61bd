/*
 * The other sections of a script: how it is cut, expectations, sideband, the program.
 */
#include "tests/support/ptscript.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/perf/perfrecord.h"
#include "tests/support/ptscript_program.h"

#define MAIN UINT64_C(0x401000)

struct bad {
	const char *text, *error;
};

static void parse_sections_have_their_lines_and_words(void **state)
{
	static const char text[] = "# About.\n\nprogram: 0x1000 \nmain:\tnop\n\ttrace:\n"
				   "options: --cpu=6/61\ntrace:\n\tpsb\nexpect insns: --ptxed\n"
				   "{main}\nexpect gaps:\n";
	struct ptscript s;

	(void)state;
	assert_int_equal(ptscript_parse(&s, "t.pts", text), 0);
	assert_int_equal(s.n_sections, 5);
	assert_int_equal(s.sections[0].line, 3);
	assert_string_equal(s.sections[0].words, "0x1000");
	assert_string_equal(s.sections[0].text, "main:\tnop\n\ttrace:\n");
	assert_null(s.sections[0].view);
	assert_string_equal(ptscript_find(&s, PTSCRIPT_OPTIONS)->words, "--cpu=6/61");
	assert_string_equal(ptscript_find(&s, PTSCRIPT_TRACE)->text, "\tpsb\n");
	assert_null(ptscript_find(&s, PTSCRIPT_SIDEBAND));
	assert_int_equal(s.sections[3].kind, PTSCRIPT_EXPECT);
	assert_int_equal(s.sections[3].line, 9);
	assert_string_equal(s.sections[3].view, "insns");
	assert_string_equal(s.sections[3].words, "--ptxed");
	assert_string_equal(s.sections[4].view, "gaps");
	assert_string_equal(s.sections[4].text, "");
	ptscript_done(&s);
}

static void parse_what_is_wrong_is_named_with_its_line(void **state)
{
	static const struct bad bads[] = {
		{"# a\nb", "t.pts:2: neither a section nor a remark"},
		{"trace\n", "t.pts:1: neither a section nor a remark"},
		{"trace:\npsb\ntrace:\n", "t.pts:3: a second section `trace'"},
		{"options:\noptions:\n", "t.pts:2: a second section `options'"},
		{"expect :\n", "t.pts:1: the name of a view is missing before the colon"},
		{"expect x\n", "t.pts:1: neither a section nor a remark"},
	};
	struct ptscript s;

	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		assert_int_equal(ptscript_parse(&s, "t.pts", bads[i].text), -EINVAL);
		assert_string_equal(s.error, bads[i].error);
		ptscript_done(&s);
	}
}

static int expand(const char *view, const char *lines, struct bytes_out *out, char *ret_error)
{
	char text[512];
	struct ptscript s;
	int r;

	snprintf(text, sizeof(text), "expect %s\n%s", view, lines);
	assert_int_equal(ptscript_parse(&s, "t.pts", text), 0);
	ptscript_add_label(&s, "main", MAIN);
	r = ptscript_expand(&s, &s.sections[0], out);
	strcpy(ret_error, s.error);
	ptscript_done(&s);
	return r;
}

static void expand_labels_become_addresses(void **state)
{
	static const char want[] = "0000000000401000\n[at 401002, ????1003]\n3\n";
	char error[512];
	struct bytes_out out;

	(void)state;
	bytes_out_init(&out, 4096);
	assert_int_equal(expand("insns: --ptxed",
				"{main}\n\n; why\n[at {main+2:x}, ????{ main + 3 :4}] \t\r\n"
				"{3:1}\n",
				&out, error),
			 0);
	assert_int_equal(out.size, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.size);
	bytes_out_done(&out);
}

static void expand_numbers_are_as_the_view_prints_them(void **state)
{
	static const char *const views[] = {"insns:", "branches:", "packets:", "insns: --ptxed"};
	static const char *const wants[] = {"401000\n", "401000\n", "0000000000401000\n",
					    "0000000000401000\n"};
	char error[512];
	struct bytes_out out;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		bytes_out_init(&out, 4096);
		assert_int_equal(expand(views[i], "{main}\n", &out, error), 0);
		assert_int_equal(out.size, strlen(wants[i]));
		assert_memory_equal(out.data, wants[i], out.size);
		bytes_out_done(&out);
	}
}

static void expand_what_is_wrong_is_named_with_its_line(void **state)
{
	static const struct bad bads[] = {
		{"{main\n}", "t.pts:2: no } behind {"},
		{"\n{none}", "t.pts:3: no label `none'"},
		{"{main:17}", "t.pts:2: 1 to 16 digits, not 17"},
		{"{main:0}", "t.pts:2: 1 to 16 digits, not 0"},
		{"{main:y}", "t.pts:2: no label `y'"},
	};
	char error[512];
	struct bytes_out out;

	(void)state;
	bytes_out_init(&out, 4096);
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		assert_int_equal(expand("insns:", bads[i].text, &out, error), -EINVAL);
		assert_string_equal(error, bads[i].error);
	}
	bytes_out_done(&out);
}

static void parse_sideband(struct ptscript *s, const char *lines)
{
	char text[4096];

	snprintf(text, sizeof(text), "sideband:\n%s\n", lines);
	assert_int_equal(ptscript_parse(s, "t.pts", text), 0);
	assert_int_equal(ptscript_add_label(s, "main", MAIN), 0);
}

/* The next record. */
static struct perfrecord next_record(const struct ptscript *s, size_t *at)
{
	struct perfrecord r;

	assert_int_equal(perfrecord_parse(s->sideband.data + *at, s->sideband.size - *at, &r), 0);
	*at += r.size;
	return r;
}

static void sideband_mappings_are_read_back(void **state)
{
	struct ptscript s;
	struct perfrecord r;
	size_t at = 0;

	(void)state;
	parse_sideband(&s, "mmap2(time=9, cpu=2, pid=3, tid=4, addr=main, len=0x1000, pgoff=0x2000,"
			   " maj=8, min=1, ino=5, gen=6, prot=7, flags=1, file=/bin/a b)\n"
			   "# a remark\nmmap2(addr=1)\ncomm(pid=3, comm=x, exec)");
	assert_int_equal(ptscript_sideband(&s), 0);
	r = next_record(&s, &at);
	assert_int_equal(r.type, PERF_RECORD_MMAP2);
	assert_true(r.time == 9 && r.cpu == 2 && r.pid == 3 && r.tid == 4);
	assert_true(r.u.mmap2.pid == 3 && r.u.mmap2.tid == 4 && r.u.mmap2.addr == MAIN);
	assert_true(r.u.mmap2.len == 0x1000 && r.u.mmap2.pgoff == 0x2000);
	assert_true(r.u.mmap2.maj == 8 && r.u.mmap2.min == 1 && r.u.mmap2.ino == 5);
	assert_true(r.u.mmap2.ino_generation == 6 && r.u.mmap2.prot == 7 && r.u.mmap2.flags == 1);
	assert_string_equal(r.u.mmap2.filename, "/bin/a b");
	r = next_record(&s, &at);
	assert_true(r.u.mmap2.prot == 5 && r.u.mmap2.flags == 2);
	assert_string_equal(r.u.mmap2.filename, "//anon");
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_COMM && r.misc == PERF_RECORD_MISC_COMM_EXEC);
	assert_true(r.pid == 3 && r.tid == 3 && r.u.comm.tid == 3);
	assert_string_equal(r.u.comm.comm, "x");
	assert_int_equal(at, s.sideband.size);
	ptscript_done(&s);
}

static void sideband_tasks_are_read_back(void **state)
{
	struct ptscript s;
	struct perfrecord r;
	size_t at = 0;

	(void)state;
	parse_sideband(&s,
		       "fork(time=1, pid=3, tid=4, ppid=1, ptid=2)\nexit(time=2, pid=3, ppid=1)\n"
		       "switch(out, pid=3)\nswitch_cpu_wide(in, pid=3, tid=4, ppid=5, ptid=6)\n"
		       "itrace_start(pid=3, tid=4)\naux(offset=1, size=2, flags=3)\n"
		       "lost(id=7, lost=8)");
	assert_int_equal(ptscript_sideband(&s), 0);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_FORK && r.pid == 1 && r.tid == 2 && r.time == 1);
	assert_true(r.u.task.pid == 3 && r.u.task.tid == 4 && r.u.task.ppid == 1);
	assert_true(r.u.task.ptid == 2 && r.u.task.time == 1);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_EXIT && r.pid == 3 && r.tid == 3 && r.u.task.ptid == 1);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_SWITCH && r.misc == PERF_RECORD_MISC_SWITCH_OUT);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_SWITCH_CPU_WIDE && r.misc == 0 && r.tid == 4);
	assert_true(r.u.context_switch.next_prev_pid == 5);
	assert_true(r.u.context_switch.next_prev_tid == 6);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_ITRACE_START && r.u.itrace_start.tid == 4);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_AUX && r.u.aux.offset == 1 && r.u.aux.size == 2);
	assert_true(r.u.aux.flags == 3);
	r = next_record(&s, &at);
	assert_true(r.type == PERF_RECORD_LOST && r.u.lost.id == 7 && r.u.lost.lost == 8);
	assert_int_equal(at, s.sideband.size);
	ptscript_done(&s);
}

static void sideband_what_is_wrong_is_named_with_its_line(void **state)
{
	static const struct bad bads[] = {
		{"mmap(pid=1)", "t.pts:2: no record `mmap'"},
		{"mmap2(pid=1, pdi=2)", "t.pts:2: mmap2: no field `pdi'"},
		{"mmap2(1)", "t.pts:2: mmap2: give FIELD=VALUE, not `1'"},
		{"\nmmap2(pid=x)", "t.pts:3: no label `x'"},
		{"a: mmap2(pid=1)", "t.pts:2: records have no labels"},
		{"mmap2(pid=1", "t.pts:2: no ) at the end"},
	};
	struct ptscript s;

	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		parse_sideband(&s, bads[i].text);
		assert_int_equal(ptscript_sideband(&s), -EINVAL);
		assert_string_equal(s.error, bads[i].error);
		ptscript_done(&s);
	}
}

/* A directory of its own for what as and ld write; SCRIPT is assembled there. */
static int assemble(struct ptscript *s, const char *script, struct ptscript_program *ret)
{
	static const char *const names[] = {"program.s", "program.o", "program"};
	char directory[] = "/tmp/test_ptscript_XXXXXX", path[64];
	int r;

	if (system("command -v as >/dev/null && command -v ld >/dev/null") != 0)
		skip();
	assert_non_null(mkdtemp(directory));
	assert_int_equal(ptscript_parse(s, "t.pts", script), 0);
	r = ptscript_assemble(s, directory, ret);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
	return r;
}

static uint64_t value_of(const struct ptscript *s, const char *name)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return s->labels[i].value;
	return 0;
}

static void assemble_sections_lie_where_the_header_says(void **state)
{
	struct ptscript_program program;
	struct ptscript s;

	(void)state;
	assert_int_equal(assemble(&s,
				  "program: 0x401000 .high=0xffffffff81000000\nmain: nop\n"
				  "end: hlt\n.section .high, \"ax\"\nnop\nup: hlt\n",
				  &program),
			 0);
	assert_int_equal(program.n_pieces, 2);
	assert_string_equal(program.pieces[0].name, ".text");
	assert_true(program.pieces[0].address == MAIN && program.pieces[0].size == 2);
	assert_true(program.pieces[1].address == UINT64_C(0xffffffff81000000));
	assert_true(value_of(&s, "main") == MAIN && value_of(&s, "end") == MAIN + 1);
	assert_true(value_of(&s, "up") == UINT64_C(0xffffffff81000001));
	ptscript_done(&s);
}

static void assemble_no_program_is_none(void **state)
{
	struct ptscript_program program;
	struct ptscript s;

	(void)state;
	assert_int_equal(assemble(&s, "trace:\n", &program), 0);
	assert_int_equal(program.n_pieces, 0);
	assert_string_equal(program.file, "");
	ptscript_done(&s);
}

static void assemble_what_is_wrong_is_named_with_its_line(void **state)
{
	static const struct bad bads[] = {
		{"\nprogram:\nnoop\n", "t.pts:2: as failed"},
		{"program:\ncall nowhere\n", "t.pts:1: ld failed"},
		{"program: none\nnop\n", "t.pts:1: no label `none'"},
		{"program: 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7\nnop\n", "t.pts:1: too many words"},
	};
	struct ptscript_program program;
	struct ptscript s;

	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		assert_int_equal(assemble(&s, bads[i].text, &program), -EINVAL);
		assert_string_equal(s.error, bads[i].error);
		ptscript_done(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_sections_have_their_lines_and_words),
		cmocka_unit_test(parse_what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(expand_labels_become_addresses),
		cmocka_unit_test(expand_numbers_are_as_the_view_prints_them),
		cmocka_unit_test(expand_what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(sideband_mappings_are_read_back),
		cmocka_unit_test(sideband_tasks_are_read_back),
		cmocka_unit_test(sideband_what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(assemble_sections_lie_where_the_header_says),
		cmocka_unit_test(assemble_no_program_is_none),
		cmocka_unit_test(assemble_what_is_wrong_is_named_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
