/*
 * What a user who does not want to know config terms asks for: light, std, precise; and what a
 * configuration costs on a CPU that branches nowhere. Called by the sources when they open, and by
 * the check.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/perf/pmu.h"

/* An idle-in-kernel CPU writes MTCs all the same (SDM volume 3, 33.4.2, MTC: they depend on MTCEn
 * and TriggerEn, not on ContextEn). Presets but "precise" keep them below this. */
#define PRESET_MTC_BYTES_PER_SECOND 100000u
#define PRESET_DEFAULT		    "std"

/* Terms of PRESET ("light", "std", "precise") that PMU can do, into RET (SIZE bytes; 128 are
 * enough). "custom": -EINVAL when there are no terms of the user's; it is no preset for here.
 * 0; -EINVAL: no such preset, with the list of valid ones in WHY. */
int preset_terms(const struct pmu *pmu, const char *preset, char *ret, size_t size, char *why,
		 size_t why_size);
/* PRESET's terms with the user's TERMS (NULL: none) behind them, as perf adds terms, as a config.
 * "custom", or no PRESET but TERMS: TERMS alone; neither: PRESET_DEFAULT. *ret_preset is static
 * text: the preset that it was. 0; -EINVAL, with one line in WHY. */
int preset_config(const struct pmu *pmu, const char *preset, const char *terms,
		  uint64_t *ret_config, const char **ret_preset, char *why, size_t why_size);
/* PRESET as static text; "custom" when there is none of that name. */
const char *preset_known(const char *preset);
/* Bytes of MTC packets a second (2 bytes each, SDM volume 3, 33.4.2) that CONFIG costs a CPU while
 * nothing else is written; 0: no MTC, or the crystal's frequency is not known. */
uint64_t preset_mtc_cost(const struct pmu *pmu, uint64_t config);
