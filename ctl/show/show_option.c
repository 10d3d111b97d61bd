/*
 * The table of options that choose how lines look: name, bits, and the views that take the option.
 */
#include "ctl/show/show_option.h"

#include "ctl/base/say.h"
#include "proto/base.h"

/* A set of views, and ptxed's form of the view of instructions. */
enum target {
	PACKETS = 1,  /* --view=packets */
	PTXED = 2,    /* --view=insns --ptxed */
	INSNS = 4,    /* --view=insns */
	BRANCHES = 8, /* --view=branches */
};

#define SB_FORMS (WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_VERBOSE)

/* clang-format off */
static const struct show_option {
	const char *name;
	uint64_t sets, clears; /* bits of WORKER_SHOW_* */
	unsigned int targets;
} OPTIONS[] = {
	{"no-pad", WORKER_SHOW_NO_PAD, 0, PACKETS},
	{"no-timing", WORKER_SHOW_NO_TIMING, 0, PACKETS},
	{"no-cyc", WORKER_SHOW_NO_CYC, 0, PACKETS},
	{"no-offset", WORKER_SHOW_NO_OFFSET, 0, PACKETS},
	{"no-sync", WORKER_SHOW_NO_SYNC, 0, PACKETS},
	{"raw", WORKER_SHOW_RAW, 0, PACKETS},
	{"lastip", WORKER_SHOW_LASTIP, 0, PACKETS},
	{"exec-mode", WORKER_SHOW_EXEC_MODE, 0, PACKETS},
	{"time", WORKER_SHOW_TIME, 0, PACKETS | BRANCHES},
	{"places", WORKER_SHOW_TIME | WORKER_SHOW_PLACES, 0, BRANCHES},
	{"time-delta", WORKER_SHOW_TIME_DELTA, 0, PACKETS},
	{"tcal", WORKER_SHOW_TCAL, 0, PACKETS},
	{"no-tcal", WORKER_SHOW_NO_TCAL, 0, PACKETS},
	{"no-wall-clock", WORKER_SHOW_NO_WALL_CLOCK, 0, PACKETS},
	{"keep-tcal-on-ovf", WORKER_SHOW_KEEP_TCAL, 0, PACKETS},
	{"block:keep-tcal-on-ovf", WORKER_SHOW_KEEP_TCAL, 0, PTXED},
	{"insn:keep-tcal-on-ovf", WORKER_SHOW_KEEP_TCAL, 0, PTXED},
	{"sb", WORKER_SHOW_SB_COMPACT, SB_FORMS, PACKETS | PTXED},
	{"sb:compact", WORKER_SHOW_SB_COMPACT, SB_FORMS, PACKETS | PTXED},
	{"sb:verbose", WORKER_SHOW_SB_VERBOSE, SB_FORMS, PACKETS | PTXED},
	{"sb:filename", WORKER_SHOW_SB_FILENAME, 0, PACKETS | PTXED},
	{"sb:offset", WORKER_SHOW_SB_OFFSET, 0, PACKETS | PTXED},
	{"sb:time", WORKER_SHOW_SB_TIME, 0, PACKETS | PTXED},
	{"sb:switch", WORKER_SHOW_SB_SWITCH, 0, PTXED},
	{"sb:warn", WORKER_SHOW_SB_WARN, 0, PACKETS | PTXED},
	{"ptxed", WORKER_SHOW_PTXED, 0, INSNS},
	{"event:time", WORKER_SHOW_EVENT_TIME, 0, PTXED},
	{"event:ip", WORKER_SHOW_EVENT_IP, 0, PTXED},
	{"event:tick", WORKER_SHOW_EVENT_TICK, 0, PTXED},
	{"event:iflags", WORKER_SHOW_EVENT_IFLAGS, 0, PTXED},
	{"resync-on-error", WORKER_SHOW_RESYNC_ON_ERROR, 0, PTXED},
	{"stat", WORKER_SHOW_STAT, 0, PTXED},
	{"stat:insn", WORKER_SHOW_STAT | WORKER_SHOW_STAT_INSN, 0, PTXED},
	{"stat:blocks", WORKER_SHOW_STAT | WORKER_SHOW_STAT_BLOCKS, 0, PTXED},
	{"insn-decoder", WORKER_SHOW_INSN_DECODER, 0, PTXED},
	{"block-decoder", 0, WORKER_SHOW_INSN_DECODER, PTXED},
	{"block:show-blocks", WORKER_SHOW_BLOCKS, 0, PTXED},
	{"block:end-on-call", WORKER_SHOW_END_ON_CALL, 0, PTXED},
	{"block:end-on-jump", WORKER_SHOW_END_ON_JUMP, 0, PTXED},
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(OPTIONS) <= SHOW_OPTIONS_MAX, "SHOW_OPTIONS_MAX is too small");

size_t show_option_table(struct option to[static SHOW_OPTIONS_MAX], int first)
{
	for (size_t i = 0; i < ARRAY_SIZE(OPTIONS); i++)
		to[i] = (struct option){OPTIONS[i].name, no_argument, NULL, first + (int)i};
	return ARRAY_SIZE(OPTIONS);
}

void show_option_take(struct show_options *s, size_t index)
{
	s->given |= UINT64_C(1) << index;
	s->show &= ~OPTIONS[index].clears;
	s->show |= OPTIONS[index].sets;
}

static unsigned int targets_of(const struct show_options *s, enum worker_view view)
{
	if (view == WORKER_VIEW_PACKETS)
		return PACKETS;
	if (view == WORKER_VIEW_BRANCHES)
		return BRANCHES;
	if (view != WORKER_VIEW_INSNS)
		return 0;
	return s->show & WORKER_SHOW_PTXED ? INSNS | PTXED : INSNS;
}

static const char *target_text(unsigned int targets)
{
	switch (targets) {
	case PACKETS: return "--view=packets";
	case PTXED: return "--view=insns --ptxed";
	case INSNS: return "--view=insns";
	case PACKETS | BRANCHES: return "--view=packets or --view=branches";
	default: return "--view=packets or --view=insns --ptxed";
	}
}

bool show_option_check(const struct show_options *s, enum worker_view view)
{
	unsigned int targets = targets_of(s, view);

	for (size_t i = 0; i < ARRAY_SIZE(OPTIONS); i++) {
		if (!(s->given >> i & 1) || (OPTIONS[i].targets & targets))
			continue;
		say("--%s needs %s", OPTIONS[i].name, target_text(OPTIONS[i].targets));
		return false;
	}
	if ((s->show & WORKER_SHOW_TIME) && (s->show & WORKER_SHOW_TCAL)) {
		say("--time and --tcal exclude each other");
		return false;
	}
	return true;
}
