/*
 * Tables: CSV (RFC 4180), one kind of rows in a file, and SQL text that sqlite3(1) reads, with all
 * kinds.
 */
#include "ctl/export/export_private.h"

/* Rows of one INSERT: SQLite's parser takes a batch much faster than single statements. */
#define ROWS_MAX 200u

/* --- Cells --- */

struct row {
	struct out *out;
	bool sql, filled;
};

static void row_next(struct row *row)
{
	if (row->filled)
		out_block(row->out, ",", 1);
	row->filled = true;
}

static void row_number(struct row *row, uint64_t v)
{
	row_next(row);
	/* An integer of SQLite is signed; a larger number would lose digits as a float. */
	if (row->sql && v > INT64_MAX)
		out_block(row->out, "-", 1);
	out_number(row->out, row->sql && v > INT64_MAX ? -v : v);
}

static void row_hex(struct row *row, uint64_t v)
{
	row_next(row);
	if (row->sql)
		out_block(row->out, "'", 1);
	out_hex(row->out, v);
	if (row->sql)
		out_block(row->out, "'", 1);
}

/* A spreadsheet takes a cell that begins with one of these characters for a formula. */
static bool is_formula(char c)
{
	return c == '=' || c == '+' || c == '-' || c == '@';
}

static void row_text(struct row *row, const char *text)
{
	char first[] = {*text, '\0'};

	row_next(row);
	if (row->sql) {
		out_quoted(row->out, text, '\'');
	} else if (is_formula(*text)) {
		out_block(row->out, "\"", 1);
		out_escaped(row->out, first, first);
		for (text++; *text; text++) {
			out_block(row->out, text, 1);
			if (*text == '"')
				out_block(row->out, text, 1);
		}
		out_block(row->out, "\"", 1);
	} else {
		out_quoted(row->out, text, '"');
	}
}

/* --- Rows, the same for both --- */

static void of_thread(const struct exporter *e, struct row *row, const struct export_thread *t)
{
	if (row->sql) {
		row_number(row, t ? t->number : 0);
		return;
	}
	row_number(row, t ? t->pid : 0);
	row_number(row, t ? t->tid : 0);
	row_text(row, t ? name_text(e, t->name) : "");
}

static void of_function(const struct exporter *e, struct row *row, uint32_t function)
{
	const struct export_function *f = &e->functions[function];

	if (row->sql) {
		row_number(row, function);
		return;
	}
	row_text(row, function_name(e, function));
	row_text(row, name_text(e, f->image));
	row_hex(row, f->address);
	row_text(row, name_text(e, f->file));
	row_number(row, f->line);
}

#define CALL_NUMBERS                                                                \
	"begin_ns,end_ns,wall_ns,cpu_ns,self_wall_ns,self_cpu_ns,insns,self_insns," \
	"begin_cpu,end_cpu,began,ended"

static void of_call(const struct exporter *e, struct row *row, const struct export_thread *t,
		    const struct export_call *c)
{
	const struct export_frame *f = c->frame;

	row_number(row, f->id);
	row_number(row, c->parent);
	row_number(row, c->depth);
	of_thread(e, row, t);
	of_function(e, row, f->function);
	row_number(row, f->begin);
	row_number(row, c->end);
	row_number(row, c->end - f->begin);
	row_number(row, c->cpu_ns);
	row_number(row, f->self_ns);
	row_number(row, f->self_cpu);
	row_number(row, c->insns);
	row_number(row, c->self_insns);
	row_number(row, f->cpu);
	row_number(row, c->cpu);
	row_text(row, callstream_begin_name(f->how));
	row_text(row, callstream_end_name(c->how));
}

static void of_turn(const struct exporter *e, struct row *row, const struct export_thread *t,
		    const struct export_turn *turn)
{
	of_thread(e, row, t);
	row_number(row, turn->cpu);
	row_number(row, turn->begin);
	row_number(row, turn->end);
	row_text(row, callstream_why_name(turn->why));
}

static void of_gap(const struct exporter *e, struct row *row, const struct export_thread *t,
		   const struct callstream_item *i)
{
	of_thread(e, row, t);
	row_number(row, i->cpu);
	row_number(row, i->time);
	row_number(row, i->time + i->width);
	row_text(row, i->name);
}

static void of_mark(const struct exporter *e, struct row *row, const struct export_thread *t,
		    const struct callstream_item *i)
{
	of_thread(e, row, t);
	row_number(row, i->cpu);
	row_number(row, i->time);
	row_text(row, i->name);
	row_number(row, i->value);
}

/* --- CSV --- */

#define CSV_THREAD "pid,tid,thread"

static struct row csv_row(struct exporter *e)
{
	return (struct row){.out = &e->out};
}

static int csv_end(struct exporter *e)
{
	out_text(&e->out, "\r\n");
	return 0;
}

static int csv_calls_start(struct exporter *e)
{
	out_text(&e->out, "id,parent,depth," CSV_THREAD
			  ",function,image,address,file,line," CALL_NUMBERS "\r\n");
	return 0;
}

static int csv_call(struct exporter *e, struct export_thread *t, const struct export_call *c)
{
	struct row row = csv_row(e);

	of_call(e, &row, t, c);
	return csv_end(e);
}

static int csv_turns_start(struct exporter *e)
{
	out_text(&e->out, CSV_THREAD ",cpu,begin_ns,end_ns,why\r\n");
	return 0;
}

static int csv_turn(struct exporter *e, struct export_thread *t, const struct export_turn *turn)
{
	struct row row = csv_row(e);

	of_turn(e, &row, t, turn);
	return csv_end(e);
}

static int csv_gaps_start(struct exporter *e)
{
	out_text(&e->out, CSV_THREAD ",cpu,begin_ns,end_ns,kind\r\n");
	return 0;
}

static int csv_gap(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct row row = csv_row(e);

	of_gap(e, &row, t, i);
	return csv_end(e);
}

static int csv_marks_start(struct exporter *e)
{
	out_text(&e->out, CSV_THREAD ",cpu,time_ns,kind,value\r\n");
	return 0;
}

static int csv_mark(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct row row = csv_row(e);

	of_mark(e, &row, t, i);
	return csv_end(e);
}

const struct export_ops csv_calls_ops = {.start = csv_calls_start, .end = csv_call};
const struct export_ops csv_turns_ops = {.start = csv_turns_start, .turn = csv_turn};
const struct export_ops csv_gaps_ops = {.start = csv_gaps_start, .gap = csv_gap};
const struct export_ops csv_marks_ops = {.start = csv_marks_start, .mark = csv_mark};

/* --- SQL --- */

static const char SQL_TABLES[] =
	"CREATE TABLE trace(first_ns INTEGER,last_ns INTEGER,trigger_ns INTEGER);\n"
	"CREATE TABLE threads(thread INTEGER PRIMARY KEY,pid INTEGER,tid INTEGER,name TEXT);\n"
	"CREATE TABLE functions(function INTEGER PRIMARY KEY,name TEXT,image TEXT,address TEXT,"
	"file TEXT,line INTEGER);\n"
	"CREATE TABLE calls(id INTEGER PRIMARY KEY,parent INTEGER,depth INTEGER,thread INTEGER,"
	"function INTEGER,begin_ns INTEGER,end_ns INTEGER,wall_ns INTEGER,cpu_ns INTEGER,"
	"self_wall_ns INTEGER,self_cpu_ns INTEGER,insns INTEGER,self_insns INTEGER,"
	"begin_cpu INTEGER,end_cpu INTEGER,began TEXT,ended TEXT);\n"
	"CREATE TABLE turns(thread INTEGER,cpu INTEGER,begin_ns INTEGER,end_ns INTEGER,"
	"why TEXT);\n"
	"CREATE TABLE gaps(thread INTEGER,cpu INTEGER,begin_ns INTEGER,end_ns INTEGER,"
	"kind TEXT);\n"
	"CREATE TABLE marks(thread INTEGER,cpu INTEGER,time_ns INTEGER,kind TEXT,"
	"value INTEGER);\n";

/* Which INSERT is open. */
struct sql {
	const char *table;
	unsigned rows;
};

static void sql_close(struct exporter *e)
{
	struct sql *s = e->own;

	if (s->table)
		out_text(&e->out, ");\n");
	s->table = NULL;
}

static struct row sql_row(struct exporter *e, const char *table)
{
	struct sql *s = e->own;

	if (s->table != table || s->rows == ROWS_MAX) {
		sql_close(e);
		out_text(&e->out, "INSERT INTO ");
		out_text(&e->out, table);
		out_text(&e->out, " VALUES\n(");
		s->table = table;
		s->rows = 0;
	} else {
		out_text(&e->out, "),\n(");
	}
	s->rows++;
	return (struct row){.out = &e->out, .sql = true};
}

static const char T_TRACE[] = "trace", T_CALLS[] = "calls", T_TURNS[] = "turns", T_GAPS[] = "gaps",
		  T_MARKS[] = "marks", T_THREADS[] = "threads", T_FUNCTIONS[] = "functions";

static int sql_start(struct exporter *e)
{
	struct row row;

	e->own = calloc(1, sizeof(struct sql));
	if (!e->own)
		return -ENOMEM;
	out_text(&e->out, "BEGIN;\n");
	out_text(&e->out, SQL_TABLES);
	row = sql_row(e, T_TRACE);
	row_number(&row, e->first);
	row_number(&row, e->until);
	row_number(&row, e->trigger);
	return 0;
}

static int sql_call(struct exporter *e, struct export_thread *t, const struct export_call *c)
{
	struct row row = sql_row(e, T_CALLS);

	of_call(e, &row, t, c);
	return 0;
}

static int sql_turn(struct exporter *e, struct export_thread *t, const struct export_turn *turn)
{
	struct row row = sql_row(e, T_TURNS);

	of_turn(e, &row, t, turn);
	return 0;
}

static int sql_gap(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct row row = sql_row(e, T_GAPS);

	of_gap(e, &row, t, i);
	return 0;
}

static int sql_mark(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct row row = sql_row(e, T_MARKS);

	of_mark(e, &row, t, i);
	return 0;
}

static void sql_functions(struct exporter *e)
{
	for (uint32_t i = 0; i < e->n_functions; i++) {
		const struct export_function *f = &e->functions[i];
		struct row row;

		if (!f->defined)
			continue;
		row = sql_row(e, T_FUNCTIONS);
		row_number(&row, i);
		row_text(&row, function_name(e, i));
		row_text(&row, name_text(e, f->image));
		row_hex(&row, f->address);
		row_text(&row, name_text(e, f->file));
		row_number(&row, f->line);
	}
}

static int sql_finish(struct exporter *e)
{
	for (uint32_t i = 0; i < e->n_threads; i++) {
		const struct export_thread *t = e->threads[i];
		struct row row;

		if (!t)
			continue;
		row = sql_row(e, T_THREADS);
		row_number(&row, t->number);
		row_number(&row, t->pid);
		row_number(&row, t->tid);
		row_text(&row, name_text(e, t->name));
	}
	sql_functions(e);
	sql_close(e);
	out_text(&e->out, "CREATE INDEX calls_by_function ON calls(function);\n"
			  "CREATE INDEX calls_by_parent ON calls(parent);\n"
			  "COMMIT;\n");
	return 0;
}

static void sql_done(struct exporter *e)
{
	free(e->own);
}

const struct export_ops sql_ops = {
	.start = sql_start,
	.end = sql_call,
	.turn = sql_turn,
	.gap = sql_gap,
	.mark = sql_mark,
	.finish = sql_finish,
	.done = sql_done,
};
