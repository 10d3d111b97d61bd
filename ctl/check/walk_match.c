/*
 * Compares the branches of a trace with those of the model.
 */
#include "ctl/check/walk_match.h"

#include <string.h>

void walk_match_init(struct walk_match *m, uint64_t seed, int own)
{
	memset(m, 0, sizeof(*m));
	m->seed = seed & ~UINT64_C(0xff);
	m->own = own;
}

void walk_match_gap(struct walk_match *m)
{
	m->state = WALK_MATCH_LOST;
	m->away = false;
}

static void differs(struct walk_match *m, const struct walk_branch *expected,
		    const struct walk_line *got, struct walk_tally *tally)
{
	tally->differences++;
	if (!m->first.known)
		m->first = (struct walk_difference){true, *expected, *got, m->model.seed,
						    m->model.round};
	m->state = WALK_MATCH_LOST;
}

/* Gives the model's next taken branch. Branches that are not taken have no lines; the next taken
 * branch implies them. *ret_n counts both. */
static void next_taken(struct walk_match *m, struct walk_branch *ret, uint64_t *ret_n)
{
	*ret_n = 0;
	do {
		walk_model_next(&m->model, ret);
		++*ret_n;
	} while (ret->kind == WALK_KIND_NOT_TAKEN);
}

/* LEFT: the thread left the program and came back. In the model, only system calls leave. */
static void compare(struct walk_match *m, const struct walk_line *line, bool left,
		    struct walk_tally *tally)
{
	struct walk_branch expected;
	uint64_t n;

	next_taken(m, &expected, &n);
	if (expected.from != line->from || expected.to != line->to ||
	    (expected.kind == WALK_KIND_SYSCALL) != left) {
		differs(m, &expected, line, tally);
		return;
	}
	m->at = line->to;
	tally->branches += n;
	tally->rounds += line->from == WALK_AGAIN_AT;
	if (line->lo == 0 || line->hi == UINT64_MAX || line->hi < line->lo)
		return;
	tally->widths++;
	tally->width_sum += line->hi - line->lo;
}

/* The head shows seed and round: compares its branches, from the first, with the model. The head of
 * another walk differs. */
static void begin_round(struct walk_match *m, struct walk_tally *tally)
{
	if (m->own < 0)
		m->own = (int)(m->shown >> WALK_ROUND_BITS & 0xff);
	walk_model_init(&m->model, m->seed | (unsigned)m->own, (uint32_t)m->shown);
	m->state = WALK_MATCH_ON;
	m->at = WALK_ROUND;
	for (unsigned i = 0; i < m->n_head && m->state == WALK_MATCH_ON; i++)
		compare(m, &m->head[i], false, tally);
}

static void head_bit(struct walk_match *m)
{
	m->shown = m->shown << 1 | !m->zero;
	m->zero = false;
	m->n_bits++;
}

/* Takes a branch of a round's head. A branch that no head can have is a difference: the round
 * began, and nothing is missing since then. */
static void head(struct walk_match *m, const struct walk_line *line, struct walk_tally *tally)
{
	const struct walk_branch bit = {WALK_KIND_TAKEN, 2, WALK_BIT_AT, WALK_ZERO};
	const struct walk_branch loop = {WALK_KIND_TAKEN, 2, WALK_BIT_LOOP_AT, WALK_BIT};
	bool last = m->n_bits == WALK_SHOWN_BITS - 1;

	m->head[m->n_head++] = *line;
	if (line->from == WALK_BIT_AT && line->to == WALK_ZERO && !m->zero) {
		m->zero = true;
	} else if (line->from == WALK_BIT_LOOP_AT && line->to == WALK_BIT && !last) {
		head_bit(m);
	} else if (line->from == WALK_DISPATCH_AT && last) {
		head_bit(m);
		begin_round(m, tally);
	} else {
		m->model.round = 0;
		differs(m, m->zero || last ? &loop : &bit, line, tally);
	}
}

static void take(struct walk_match *m, const struct walk_line *line, bool left,
		 struct walk_tally *tally)
{
	switch (m->state) {
	case WALK_MATCH_LOST:
		tally->skipped++;
		if (line->to != WALK_ROUND)
			break;
		m->state = WALK_MATCH_HEADING;
		m->n_head = m->n_bits = 0;
		m->zero = false;
		m->shown = 0;
		break;
	case WALK_MATCH_HEADING: head(m, line, tally); break;
	case WALK_MATCH_ON: compare(m, line, left, tally); break;
	}
}

/* Checks that an interrupt lies between the last branch and the next one. */
static void interrupted(struct walk_match *m, const struct walk_line *line,
			struct walk_tally *tally)
{
	struct walk_model *model = &m->model;
	struct walk_branch expected;
	size_t next = model->next;
	uint32_t round = model->round;
	uint64_t n;

	tally->interrupts++;
	if (m->state != WALK_MATCH_ON)
		return;
	next_taken(m, &expected, &n);
	if (line->from < m->at || line->from > expected.from) {
		differs(m, &expected, line, tally);
		return;
	}
	if (model->round != round)
		walk_model_init(model, model->seed, round);
	model->next = next;
}

/* Takes leaving and coming back as one branch. */
static void came_back(struct walk_match *m, const struct walk_line *line, struct walk_tally *tally)
{
	struct walk_line whole = *line;
	bool unknown = !m->away;

	m->away = false;
	if (unknown && m->state == WALK_MATCH_LOST)
		return;
	if (!unknown)
		whole.from = m->left.from;
	if (whole.from == whole.to)
		interrupted(m, &whole, tally);
	else if (m->may_jump && (unknown || whole.from != WALK_SYSCALL_AT))
		walk_match_gap(m);
	else
		take(m, &whole, true, tally);
}

void walk_match_line(struct walk_match *m, const struct walk_line *line, struct walk_tally *tally)
{
	bool from = walk_model_has(line->from), to = walk_model_has(line->to);

	if (from && to && !m->away) {
		take(m, line, false, tally);
	} else if (to) {
		came_back(m, line, tally);
	} else if (from) {
		m->away = true;
		m->left = *line;
	}
}
