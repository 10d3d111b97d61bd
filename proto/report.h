/*
 * The report: schema version, keys, shape; the only place a key is spelled. The formal schema is
 * docs/ptsnap-report-1.schema.json.
 *
 * Absent is null, never 0. Addresses and TSC values are "0x..." strings. `atNSec` is perf-clock
 * time relative to the trigger (negative: before it).
 *
 * { "schemaVersion": "1.9", "generator": {"name": "ptsnap-decode", "version": ""}, "id": "",
 *   "host": {"hostname","kernel","machine","bootId",
 *            "cpu": {"vendor","family","model","stepping","name"} | null},
 *   "trigger": {"kind","name","reason","sender": {"pid","uid"} | null,
 *               "realtimeUSec","monotonicUSec","tsc",
 *               "unit","senderUnit","coredump","labels": {KEY: VALUE}: each only where there is
 *               one},
 *   "configuration": {"source",
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
 *   "window": {"askedBytes","askedNSec","overlapsPrevious"},
 *   "namesLeftOut": true: only of a decode that read no symbol tables and perf maps,
 *   "onlyUid": only of one that was made for that user alone,
 *   "decoded": {"deadlineNSec","complete","sinceNSec","traceSinceNSec","untilNSec",
 *               "bytes","traceBytes","rounds","lastStretches",
 *               "lastStretchesLeft"}: only where there was a deadline,
 *   "cpus": [{"cpu","tid","state","why",
 *             "ringBytes","askedBytes","gotBytes","askedNSec","gotNSec",
 *             "begin": {"tsc","atNSec"} | null, "end": same,
 *             "stopOrder","skewNSec","darkNSec","copyNSec","copyBytesPerSec",
 *             "psbs","packets","instructions","branches","bytesDecoded",
 *             "coveragePercent","lostRecords",
 *             "frequency": {"lowestRatio","highestRatio","lowestMhz","highestMhz",
 *                           "changes"} | null}],
 *   "coverage": {"percent","bytes","bytesDecoded","nsec","nsecDecoded"},
 *   "totals": {"instructions","branches","gaps",
 *              "kernelInstructions": only where the kernel's code was walked},
 *   "eventCounts": {KIND: COUNT},
 *   "gapCounts": {KIND: COUNT},
 *   "gaps": [{"n","kind","cpu","atNSec","tsc","offset","bytes","address","count","why"}],
 *   "processes": [{"pid","ppid","startNSec","exe","cmdline","uid","cgroup","unit","containerId",
 *		    "mountNamespace","nsPid"}],
 *   "threads": [{"pid","tid","comm","instructions","branches","cpuNSec",
 *                "transactions": {"begun","committed","aborted"} | null,
 *                "lastBranches": [{"from","to","kind","fromName","toName",
 *                                  "atNSec","uncertainNSec","fromSource","toSource"}],
 *                "stack": [{"address","name","linkage","image","offset","source",
 *                           "inlined": [{"name","linkage","source"}]}],
 *                "window","olderFrames": only where there was a deadline}],
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
 *   "functions": [{"name","linkage","image","address","calls","selfInstructions",
 *                  "totalInstructions","selfNSec","totalNSec","source"}],
 *   "images": [{"path","buildId","bytes","missing","instructions","dwarf"}],
 *   "cut": [{"what","kept","total"}] }
 *
 * EVENT: "cpu","pid","tid","atNSec","uncertainNSec","tsc","address","name". Lists of events are
 * oldest first, and when they are cut the newest are kept. KIND of eventCounts: marks_event_name
 * (decoder/worker/count/marks.h). n: the gap's place in the list, from 1, as --gap names it.
 *
 * linkage: only where it is not the name; fromName and toName are as names are. source, fromSource,
 * toSource ("FILE:LINE"), inlined (innermost first): only where known; dwarf, only where somebody
 * looked for it, is one of "own", "apart", "none", "too-large". Of a function the line is that of
 * its first instruction, of a frame that of the call or instruction in the function that the frame
 * is of, of a branch the instruction's own.
 *
 * stack: innermost first; stack[0] is where the thread was. image: index into images. lastBranches:
 * oldest first. turns: who ran on which CPU from when until when, oldest first, within that CPU's
 * [begin, end]; idle ones are left out; certain false: nobody knows who (pid, tid and comm are
 * null). functions: most self instructions first. kind of a branch: "cond", "jump", "call",
 * "jump-ind", "call-ind", "ret", "far", "syscall", "async", "enable", "disable".
 */
#pragma once

#define REPORT_SCHEMA_VERSION "1.9"
#define REPORT_DEFAULT_LIMIT  (2u << 20) /* bytes */
#define REPORT_LAST_BRANCHES  64
