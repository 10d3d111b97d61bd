/*
 * The report: version of the schema, keys, shape. The formal schema is
 * docs/ptsnap-report-2.schema.json.
 *
 * A value that is not known is null, never 0. Addresses and TSC values are "0x..." strings.
 *`atNSec` is a time of the perf clock relative to the trigger (negative: before it).
 *
 * { "schemaVersion": "2.0", "generator": {"name": "ptsnap-decode", "version": ""}, "id": "",
 *   "host": {"hostname","kernel","machine","bootId",
 *            "cpu": {"vendor","family","model","stepping","name"} | null},
 *   "trigger": {"kind","name","reason","sender": {"pid","uid"} | null,
 *               "realtimeUSec","monotonicUSec","tsc",
 *               "unit","senderUnit","coredump","labels": {KEY: VALUE}: each only if there is
 *               one},
 *   "configuration": {"source", "contents", "withoutPackets": ["tnt", ...] | null,
 *       "filters": ["user", ...] | null,
 *       "attr": {"config": "0x", "terms", "excludeUser", "excludeKernel"},
 *       "mtcPeriod", "maxNonturboRatio", "tscArtRatio": {"numerator","denominator"} | null,
 *       "returnCompression", "clock": {"timeZero","timeMult","timeShift"} | null},
 *   "trace": {"degraded","why","preset",
 *             "attrs": {"pt","sideband","sidebandMissing": [""]},
 *             "sizesNote","clockIsMonotonic",
 *             "sidebandShift": {"shiftNSec","uncertainNSec",
 *                               "cpus": [{"cpu","shiftNSec"}] | null,"samples",
 *                               "contradictions","contradictionsLeft"} | null},
 *   "errata": ["BDM70", ...],
 *   "window": {"askedBytes","askedNSec","overlapsPrevious",
 *              "ringsSinceNSec","lastStretchesLeft": only of a window of time},
 *   "namesLeftOut": true: only if the decode read no symbol tables and perf maps,
 *   "onlyUid": only in a report that was made for one user,
 *   "decoded": {"deadlineNSec","complete","sinceNSec","traceSinceNSec","untilNSec",
 *               "bytes","traceBytes","rounds","lastStretches",
 *               "lastStretchesLeft"}: only with a deadline,
 *   "slice": {"fromNSec","toNSec","cpu","pid","tid","comm"}: only of a part of the snapshot,
 *   "suspects": [{"kind","sinceNSec","place", and what the kind has: ptsnap-report(5), SUSPECTS}],
 *   "cpus": [{"cpu","tid","state","why",
 *             "ringBytes","askedBytes","gotBytes","askedNSec","gotNSec",
 *             "begin": {"tsc","atNSec"} | null, "end": same,
 *             "stopOrder","skewNSec","darkNSec","untracedNSec","copyNSec",
 *             "copyBytesPerSec",
 *             "psbs","packets","instructions","branches","bytesDecoded",
 *             "coveragePercent","exactPercent","lostRecords",
 *             "frequency": {"lowestRatio","highestRatio","lowestMhz","highestMhz",
 *                           "changes"} | null}],
 *   "coverage": {"percent","bytes","bytesDecoded","nsec","nsecDecoded","nsecUntraced",
 *                "exactPercent","instructionsExact","mayHaveChanged": {CHANGE: COUNT}: not in a
 *                report for one user},
 *   "totals": {"instructions","branches","gaps",
 *              "kernelInstructions": only if the kernel's code was walked},
 *   "returnStack": {"rule","every","compressedOnly","undecided","undecidedBranches"}:
 *                  not in a report for one user,
 *   "eventCounts": {KIND: COUNT},
 *   "gapCounts": {KIND: COUNT},
 *   "gapCountsOutside": {KIND: COUNT},
 *   "gaps": [{"n","kind","cpu","atNSec","untilNSec","tsc","offset","bytes","place",
 *             "count","why"}],
 *   "processes": [{"pid","ppid","startNSec","exe","cmdline","uid","cgroup","unit","containerId",
 *		    "mountNamespace","nsPid"}],
 *   "threads": [{"pid","tid","comm","instructions","branches","cpuNSec",
 *                "transactions": {"begun","committed","aborted"} | null,
 *                "lastBranches": [{"from","to","kind","atNSec","uncertainNSec","gap"}],
 *                "stack": [PLACE, ...] | null,
 *                "state": {"kind","sinceNSec","cpu","certain","codeKnown",
 *                          "systemCall": {"number","name"}: only if known} | null,
 *                "window","olderFrames": only with a deadline, or of a window of time}],
 *   "turns": [{"cpu","pid","tid","comm","atNSec","untilNSec","certain"}],
 *   "ptwrites": [{EVENT,"payload","size"}],
 *   "frequencies": [{"cpu","atNSec","uncertainNSec","tsc","ratio","mhz",
 *                    "percentOfNominal"}],
 *   "power": [{"kind",EVENT, and of "exstop" nothing more,
 *              of "mwait" "hints","extensions","targetCState","targetSubCState",
 *              of "pwre" "resolvedThreadCState","resolvedThreadSubCState","hw",
 *              of "pwrx" "lastCoreCState","deepestCoreCState","wakeReason"}],
 *   "interrupts": [{"kind","type",EVENT,"vector","cr2","vmExitQualification","vmExitReason"}],
 *   "aborts": [{EVENT}],
 *   "functions": [{"address","name","linkage","image","fileAddress","file","line",
 *                  "boundsUnknown","calls","selfInstructions","totalInstructions",
 *                  "selfNSec","totalNSec","instructionsPerCycle",
 *                  "durations": {"ended","p50NSec","p90NSec","p99NSec","maxNSec","untracedNSec",
 *                                "slowest","histogram": {"firstNSec","counts"}}}],
 *   "images": [{"path","buildId","bytes","missing","instructions","unnamedInstructions",
 *               "dwarf","jitdump":{"times","whole","dropped"}}],
 *   "places": [{"address","name","linkage","offset","function","image","fileAddress",
 *               "file","line","inlined": [{"name","linkage","file","line"}]}],
 *   "cut": [{"what","kept","total"}] }
 *
 * EVENT: "cpu","pid","tid","atNSec","uncertainNSec","tsc","place". Lists of events begin
 *with the oldest event; a list that is cut keeps the newest. KIND of eventCounts: marks_event_name
 * (decoder/worker/count/marks.h). n: the gap's place in the list, from 1, as for --gap.
 *
 * CHANGE: why instructions were decoded from code that may have been other code when it ran:
 * "memory", "shared-memory", "file-mapping", "file", "unverified-file" (enum code_change,
 *decoder/code/code.h).
 *
 * PLACE, from, to, place: an index into places, or null. Of a place and of a function, all keys but
 * address exist only if they are known; linkage, only if it differs from the name. function, image:
 * indexes into functions and images. fileAddress: as addr2line counts. The line of a function is
 * that of its first instruction; the line of a place is that of the call or instruction in the
 * place's function; inlined: innermost first. dwarf: "own", "apart", "none" or "too-large", only if
 * the decoder looked for it.
 *
 * stack: innermost frame first; stack[0] is where the thread was.
 * lastBranches: oldest first. turns: which thread ran on which CPU, oldest first, within the CPU's
 * [begin, end], without idle turns; certain false: the thread is not known (pid, tid and comm are
 * null). functions: most self instructions first. kind of a branch: "cond", "jump", "call",
 * "jump-ind", "call-ind", "ret", "far", "syscall", "async", "enable", "disable"; "gap" (with the
 * gap's kind) is no branch: the branches before and behind do not continue one another.
 */
#pragma once

#define REPORT_SCHEMA_VERSION "2.0"
/* Bytes of a report that the recorder makes: it is stored and read often. */
#define REPORT_DEFAULT_LIMIT (192u << 10)
/* Of one that `ptsnapctl decode' makes of a file. */
#define REPORT_DECODE_LIMIT (2u << 20)
/* Of one from which ptsnapctl takes a single list. */
#define REPORT_LIST_LIMIT    (16u << 20)
#define REPORT_LAST_BRANCHES 64
