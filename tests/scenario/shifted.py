"""A sideband whose times do not match the trace: the decoder finds the shift and reports it.

A workload of programs that replace one another is recorded; then the times of all records in its
bundles are made later or earlier. Each thread's decoded instructions must equal those of the bundle
as recorded, except for instructions reported as uncertain, and the report must name the shift.
Prints TAP.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from common import PTSNAPCTL, TIMING, Failed, Recording, Work, can_run, decode, run, tap
from machine import WORKLOADS
from shift_bundle import shift_bundle

SHIFTS = (150000, -200000, 1000000, -5000000)
EXACT = 15000  # ns: switches and user code are at least this far apart
# Turns of threads on CPUs, at least: a few are not enough to find the shift, and a slow host has few
# in its first snapshot.
TURNS = 60


def summary(bundle):
    s = json.loads(run(decode(bundle, "summary", "--hash", "--json=short")))
    return s["threads"], s["errors"]


def found(bundle):
    return json.loads(run(decode(bundle, "report")))["trace"]["sidebandShift"]


def turns(bundle):
    return len(json.loads(run(decode(bundle, "report")))["turns"])


def enough(bundles):
    return bundles and turns(bundles[-1]) >= TURNS


def differs(recorded, shifted):
    """Returns the difference in words, or None. Uncertain instructions belong at least to a
    process, or are a gap."""
    if set(shifted[1]) - set(recorded[1]) - {"thread-uncertain"}:
        return f"gaps {shifted[1]} instead of {recorded[1]}"
    before = {(t["pid"], t["tid"]): t for t in recorded[0]}
    now = {(t["pid"], t["tid"]): t for t in shifted[0]}
    for key, t in now.items():
        was = before.get(key, {"instructions": 0})
        if t["instructions"] > was["instructions"]:
            return f"{t}, as recorded {was}"
        if t["instructions"] == was["instructions"] and t["ipHash"] != was["ipHash"]:
            return f"{t}, as recorded {was}"
    if "thread-uncertain" not in shifted[1] and before != now:
        return "threads are missing, and nothing says that any are uncertain"
    total = sum(t["instructions"] for t in recorded[0])
    lost = total - sum(t["instructions"] for t in shifted[0])
    return f"{lost} of {total} instructions lost" if lost * 20 > total else None


def check(stored, work):
    bundle = f"{work}/{os.path.basename(stored)}"
    run([PTSNAPCTL, "fetch", "--format=bundle", "-o", bundle, stored])
    if found(bundle) is not None:
        raise Failed(f"{os.path.basename(bundle)}: shifted as it was recorded: {found(bundle)}")
    as_recorded = summary(bundle)
    said = []
    for nsec in SHIFTS:
        shifted = f"{work}/shifted.ptsnap"
        shift_bundle(bundle, shifted, nsec)
        s = found(shifted)
        if s is None or abs(s["shiftNSec"] - nsec) > EXACT or s["cpus"] is not None:
            raise Failed(f"{os.path.basename(bundle)}: {nsec} ns: found {s}")
        if s["contradictions"] == 0 or s["contradictionsLeft"] != 0:
            raise Failed(f"{os.path.basename(bundle)}: {nsec} ns: {s}")
        why = differs(as_recorded, summary(shifted))
        if why:
            raise Failed(f"{os.path.basename(bundle)}: {nsec} ns, found {s}: {why}")
        if abs(s["shiftNSec"] - nsec) > s["uncertainNSec"]:
            raise Failed(f"{os.path.basename(bundle)}: {nsec} ns is not within {s}")
        said.append(s["shiftNSec"] - nsec)
    return said


def scenario(name, workload, cpus, terms):
    with Work(name) as work:
        scratch = f"{work}/scratch"
        os.mkdir(scratch)
        options = [f"--emu-cpus={cpus}", "--emu-quantum=50000"]
        r = Recording(work, WORKLOADS[workload](scratch, work), terms, options, "4M", cwd=scratch,
                      enough=enough)
        r.record(1, 0.2)
        best = max(r.bundles(), key=turns, default=None)
        if best is None:
            raise Failed("no snapshot was stored")
        return f"off by {check(best, work)} ns"


if __name__ == "__main__":
    sys.exit(tap([("pipeline on 2 CPUs", "pipeline", 2, TIMING["mtc3"]),
                  ("pipeline on 1 CPU", "pipeline", 1, TIMING["mtc3"])], scenario)
             if can_run() else 0)
