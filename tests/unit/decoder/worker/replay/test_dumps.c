/*
 * Code that a just-in-time compiler wrote down: each time has its own bytes and names at one
 * address, and what the memory or the clock contradicts is not said to be certain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "decoder/worker/replay/replay_private.h"
#include "decoder/worker/replay/whose.h"
#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_parts.h"
#include "tests/unit/sideband/jitdump_maker.h"

#define ANON   UINT64_C(0x7f0000000000)
#define SECOND UINT64_C(1000000000)
#define AHEAD  UINT64_C(5000000000) /* CLOCK_MONOTONIC is ahead of the perf clock */
/* perf ns */
#define BEGIN (10 * SECOND)
#define FIRST (BEGIN + SECOND)
#define AGAIN (BEGIN + 2 * SECOND)
#define READ  (BEGIN + 3 * SECOND)

static const uint8_t old_code[] = {0x90, 0x90, 0xc3};
static const uint8_t new_code[] = {0x66, 0x90, 0xc3};

struct how {
	bool no_memory;
	bool no_clock;
	bool patched; /* the memory has other bytes than the dump */
	bool closed;
	bool tsc; /* the dump's times are TSCs, which are ns here */
};

struct fixture {
	struct bundle *bundle;
	struct replay *replay;
	const struct space *space;
};

static void put_dump(const struct how *how, struct bytes_out *out)
{
	static const struct jit_line lines[] = {{ANON + 16, 12, "new.js"}};
	const uint64_t ahead = how->tsc ? 0 : AHEAD;

	jit_put_header(out, how->tsc);
	jit_put_load(out, FIRST + ahead, ANON + 16, old_code, sizeof(old_code), 1, "old");
	jit_put_load(out, FIRST + ahead, ANON + 64, old_code, sizeof(old_code), 2, "quiet");
	jit_put_lines(out, AGAIN + ahead, ANON + 16, lines, 1);
	jit_put_load(out, AGAIN + ahead, ANON + 16, new_code, sizeof(new_code), 3, "new");
	if (how->closed)
		jit_put_other(out, AGAIN + ahead, 3);
}

static struct manifest_image *add_image(struct manifest *m, const char *kind, uint64_t size)
{
	struct manifest_image *image = manifest_add_image(m);

	assert_non_null(image);
	image->path = strdup(kind[0] == 'm' ? "//anon" : "/tmp/jit-77.dump");
	image->kind = strdup(kind);
	image->pid = MAKE_PID;
	image->read_ns = READ;
	image->size = size;
	return image;
}

static void put_sideband(struct bytes_out *out)
{
	struct perfrecord map = {.type = PERF_RECORD_MMAP2, .time = 10};

	map.u.mmap2.pid = MAKE_PID;
	map.u.mmap2.tid = MAKE_TID;
	map.u.mmap2.addr = ANON;
	map.u.mmap2.len = 0x1000;
	map.u.mmap2.prot = PROT_READ | PROT_EXEC;
	map.u.mmap2.filename = "//anon";
	made_put_record(out, &map);
}

static void begin(struct fixture *f, const struct how *how)
{
	CLEANUP(bytes_out_done) struct bytes_out sideband, dump;
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	uint8_t memory[0x1000] = {0};
	struct bundle_writer w;
	struct manifest m;

	assert_true(fd >= 0);
	bytes_out_init(&sideband, 1 << 20);
	bytes_out_init(&dump, 1 << 20);
	put_sideband(&sideband);
	put_dump(how, &dump);
	memcpy(memory + 16, how->patched ? old_code : new_code, sizeof(old_code));
	memcpy(memory + 64, old_code, sizeof(old_code));
	manifest_init(&m);
	m.id = strdup("dump");
	m.version = strdup("0");
	m.trigger_kind = strdup("offline");
	m.source = strdup("emulated");
	m.monotonic_ns = READ + AHEAD;
	m.perf_ns = how->no_clock ? MANIFEST_ABSENT : READ;
	m.have_clock = how->tsc && !how->no_clock;
	m.time_mult = 1;
	(void)add_image(&m, MANIFEST_IMAGE_JITDUMP, dump.size);
	if (!how->no_memory)
		add_image(&m, MANIFEST_IMAGE_MEMORY, sizeof(memory))->address = ANON;
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_member(&w, "sideband", sideband.data, sideband.size), 0);
	assert_int_equal(bundle_write_member(&w, "images/0", dump.data, dump.size), 0);
	if (!how->no_memory)
		assert_int_equal(bundle_write_member(&w, "images/1", memory, sizeof(memory)), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	assert_int_equal(bundle_open(fd, &f->bundle), 0);
	close(fd);
	assert_int_equal(replay_new(f->bundle, NULL, &f->replay), 0);
	f->space = timeline_space(f->replay->timeline, MAKE_PID, READ);
	assert_non_null(f->space);
}

static void done(struct fixture *f)
{
	replay_free(f->replay);
	bundle_free(f->bundle);
}

/* What is at ADDRESS for code that ran within [LO, HI], most likely at LO. */
static uint8_t code_at(const struct fixture *f, uint64_t lo, uint64_t hi, uint64_t address,
		       const uint8_t *want)
{
	struct flow_code code;
	uint32_t context;

	assert_int_equal(replay_context(f->replay, f->space, lo, lo, hi, &context), 0);
	assert_int_equal(whose_code(f->replay, context, address, &code), 0);
	assert_true(code.size > address - code.address);
	assert_memory_equal(code.bytes + (address - code.address), want, sizeof(old_code));
	return code.changing;
}

static const char *name_at(const struct fixture *f, uint64_t time, uint64_t address)
{
	struct image_code code;
	struct symbol symbol;
	uint32_t context;

	assert_int_equal(replay_context(f->replay, f->space, time, time, time, &context), 0);
	assert_int_equal(replay_find(f->replay, context, address, &code), 0);
	replay_symbol(f->replay, address, &code, &symbol);
	return symbol.name;
}

static void replay_find_code_written_over_is_that_of_its_time(void **state)
{
	const struct how how = {0};
	const uint64_t before = FIRST + SECOND / 2, behind = AGAIN + SECOND / 2;
	struct dwarf_frame frame;
	struct image_code code;
	struct fixture f;
	uint32_t context;

	(void)state;
	begin(&f, &how);
	assert_int_equal(code_at(&f, before, before + 1000, ANON + 16, old_code), CODE_SAME);
	assert_int_equal(code_at(&f, behind, behind + 1000, ANON + 16, new_code), CODE_SAME);
	assert_string_equal(name_at(&f, before, ANON + 17), "old");
	assert_string_equal(name_at(&f, behind, ANON + 17), "new");
	/* While the one becomes the other. */
	assert_int_equal(code_at(&f, before, behind, ANON + 16, old_code), CODE_MEMORY);
	assert_int_equal(code_at(&f, AGAIN, AGAIN + 1000, ANON + 16, new_code), CODE_MEMORY);
	assert_int_equal(code_at(&f, before, behind, ANON + 64, old_code), CODE_SAME);
	/* Memory around it is still memory. */
	assert_int_equal(code_at(&f, behind, behind, ANON + 80, (const uint8_t[3]){0}),
			 CODE_MEMORY);
	assert_int_equal(replay_context(f.replay, f.space, behind, behind, behind, &context), 0);
	assert_int_equal(replay_find(f.replay, context, ANON + 16, &code), 0);
	assert_int_equal(symbols_lines(f.replay->symbols, code.image, code.offset, &frame, 1), 1);
	assert_string_equal(frame.file, "new.js");
	assert_string_equal(frame.function, "new");
	assert_int_equal(frame.line, 12);
	done(&f);
}

/* The bytes [*RET, *RET_END) of which the code at ADDRESS is a part. */
static void piece_at(const struct fixture *f, uint64_t time, uint64_t address, uint64_t *ret,
		     uint64_t *ret_end)
{
	struct flow_code code;
	uint32_t context;

	assert_int_equal(replay_context(f->replay, f->space, time, time, time, &context), 0);
	assert_int_equal(whose_code(f->replay, context, address, &code), 0);
	assert_true(code.map_address == code.address && code.map_size == code.size);
	*ret = code.address;
	*ret_end = code.address + code.size;
}

/* Memory has only the newest code, so none of it is taken where the dump has code. */
static void replay_find_memory_ends_where_the_dump_has_code(void **state)
{
	static const struct {
		uint64_t at, begin, end;
	} wanted[] = {{8, 0, 16}, {17, 16, 19}, {19, 19, 64}, {63, 19, 64}, {67, 67, 0x1000}};
	const uint64_t times[] = {FIRST + SECOND / 2, AGAIN + SECOND / 2};
	struct how how = {.patched = false};
	struct fixture f;
	uint64_t from, end;

	(void)state;
	for (unsigned patched = 0; patched < 2; patched++) {
		how.patched = patched;
		begin(&f, &how);
		for (size_t i = 0; i < 2 * ARRAY_SIZE(wanted); i++) {
			piece_at(&f, times[i % 2], ANON + wanted[i / 2].at, &from, &end);
			assert_int_equal(from, ANON + wanted[i / 2].begin);
			assert_int_equal(end, ANON + wanted[i / 2].end);
		}
		done(&f);
	}
}

/* The compiler patched its newest code: the memory has it, and the dump only has its name. */
static void replay_find_code_that_was_patched_is_that_in_memory(void **state)
{
	const struct how how = {.patched = true};
	const uint64_t behind = AGAIN + SECOND / 2;
	struct fixture f;

	(void)state;
	begin(&f, &how);
	assert_int_equal(code_at(&f, behind, behind, ANON + 16, old_code), CODE_MEMORY);
	assert_string_equal(name_at(&f, behind, ANON + 17), "new");
	assert_int_equal(code_at(&f, FIRST, FIRST, ANON + 16, old_code), CODE_SAME);
	done(&f);
}

/* What the compiler has not written to its file yet is not known. */
static void replay_find_without_memory_holds_to_the_end_of_the_dump(void **state)
{
	const struct how open = {.no_memory = true}, closed = {.no_memory = true, .closed = true};
	const uint64_t before = FIRST + SECOND / 2, behind = AGAIN + SECOND / 2;
	struct fixture f;

	(void)state;
	begin(&f, &open);
	assert_int_equal(code_at(&f, before, before, ANON + 64, old_code), CODE_SAME);
	assert_int_equal(code_at(&f, behind, behind, ANON + 64, old_code), CODE_MEMORY);
	done(&f);
	begin(&f, &closed);
	assert_int_equal(code_at(&f, behind, behind, ANON + 64, old_code), CODE_SAME);
	done(&f);
}

static void replay_find_without_a_common_clock_has_names_only(void **state)
{
	const struct how how = {.no_clock = true};
	struct fixture f;

	(void)state;
	begin(&f, &how);
	assert_int_equal(code_at(&f, FIRST, FIRST, ANON + 16, new_code), CODE_MEMORY);
	assert_string_equal(name_at(&f, FIRST, ANON + 17), "new");
	assert_string_equal(name_at(&f, FIRST, ANON + 64), "quiet");
	done(&f);
}

/* As of a perf.data, which relates only the TSC to the perf clock. */
static void replay_find_by_tsc_is_exact_to_the_ns(void **state)
{
	const struct how how = {.tsc = true}, no_clock = {.tsc = true, .no_clock = true};
	struct fixture f;

	(void)state;
	begin(&f, &how);
	assert_int_equal(code_at(&f, FIRST + 2, AGAIN - 2, ANON + 16, old_code), CODE_SAME);
	assert_int_equal(code_at(&f, FIRST + 2, AGAIN, ANON + 16, old_code), CODE_MEMORY);
	assert_int_equal(code_at(&f, AGAIN + 2, AGAIN + 3, ANON + 16, new_code), CODE_SAME);
	done(&f);
	begin(&f, &no_clock);
	assert_int_equal(code_at(&f, FIRST, FIRST, ANON + 16, new_code), CODE_MEMORY);
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_find_code_written_over_is_that_of_its_time),
		cmocka_unit_test(replay_find_memory_ends_where_the_dump_has_code),
		cmocka_unit_test(replay_find_code_that_was_patched_is_that_in_memory),
		cmocka_unit_test(replay_find_without_memory_holds_to_the_end_of_the_dump),
		cmocka_unit_test(replay_find_without_a_common_clock_has_names_only),
		cmocka_unit_test(replay_find_by_tsc_is_exact_to_the_ns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
