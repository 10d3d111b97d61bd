/*
 * The report: schema version, keys, shape; the only place a key is spelled. The formal schema is
 * docs/ptsnap-report-1.schema.json.
 *
 * Absent is null, never 0. Addresses and TSC values are "0x..." strings. `atNSec` is perf-clock
 * time relative to the trigger (negative: before it).
 *
 * { "schemaVersion": "1.1", "generator": {"name": "ptsnap-decode", "version": ""}, "id": "",
 *   "host": {"hostname","kernel","machine","bootId",
 *            "cpu": {"vendor","family","model","stepping","name"} | null},
 *   "trigger": {"kind","name","reason","sender": {"pid","uid"} | null,
 *               "realtimeUSec","monotonicUSec","tsc"},
 *   "configuration": {"source",
 *       "attr": {"config": "0x", "terms", "excludeUser", "excludeKernel"},
 *       "mtcPeriod", "maxNonturboRatio", "tscArtRatio": {"numerator","denominator"} | null,
 *       "returnCompression", "clock": {"timeZero","timeMult","timeShift"} | null},
 *   "window": {"askedBytes","askedNSec","overlapsPrevious"},
 *   "cpus": [{"cpu","ringBytes","askedBytes","gotBytes","askedNSec","gotNSec",
 *             "begin": {"tsc","atNSec"} | null, "end": same,
 *             "darkNSec","copyNSec","psbs","packets","instructions","branches",
 *             "bytesDecoded","coveragePercent","lostRecords"}],
 *   "coverage": {"percent","bytes","bytesDecoded","nsec","nsecDecoded"},
 *   "totals": {"instructions","branches","gaps"},
 *   "gapCounts": {KIND: COUNT},
 *   "gaps": [{"kind","cpu","atNSec","tsc","offset","bytes","address","count","why"}],
 *   "processes": [{"pid","ppid","startNSec","exe","cmdline","uid","cgroup","unit","containerId"}],
 *   "threads": [{"pid","tid","comm","instructions","branches","cpuNSec",
 *                "lastBranches":
 * [{"from","to","kind","fromName","toName","atNSec","uncertainNSec"}], "stack":
 * [{"address","name","image","offset"}]}],
 *   "turns": [{"cpu","pid","tid","comm","atNSec","untilNSec","certain"}],
 *   "functions": [{"name","image","address","calls","selfInstructions","totalInstructions",
 *                  "selfNSec","totalNSec"}],
 *   "images": [{"path","buildId","bytes","missing","instructions"}],
 *   "cut": [{"what","kept","total"}] }
 *
 * stack: innermost first; stack[0] is where the thread was. image: index into images. lastBranches:
 * oldest first. turns: who ran on which CPU from when until when, oldest first, within that CPU's
 * [begin, end]; idle ones are left out; certain false: nobody knows who (pid, tid and comm are
 * null). functions: most self instructions first. kind of a branch: "cond", "jump", "call",
 * "jump-ind", "call-ind", "ret", "far", "syscall", "async", "enable", "disable".
 */
#pragma once

#define REPORT_SCHEMA_VERSION "1.1"
#define REPORT_DEFAULT_LIMIT  (2u << 20) /* bytes */
#define REPORT_LAST_BRANCHES  64
