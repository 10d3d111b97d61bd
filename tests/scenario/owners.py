"""A thread is named only where no other is possible: threads and processes of the same code on few
virtual CPUs, with signals left by siglongjmp, forks, coarse and fine time.

In each bundle the thread that the decode names for a stretch is compared with the thread that
executed it. No stretch may have a wrong one. Prints TAP, with the share of uncertain stretches.
`owners.py --full` runs the whole matrix. The cases "unseen" take a CPU's trace and records out of
the bundle first, as if that CPU were not recorded. The cases "untraced" take the trace alone.
"""
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile

from common import (BUILD, GUESTS, PTSNAPCTL, TIMING, Failed, Recording, Snapshot, Work, can_run, decode,
                    main, run)

OWNERS = f"{BUILD}/tests/support/truth_owners"
TERMS = {**TIMING, "mtc6": "tsc,mtc,mtc_period=6,psb_period=1"}
SWITCH, SWITCH_CPU_WIDE = 14, 15  # PERF_RECORD_*
COMMANDS = {
    "jumps": ["guest_jumps", "300"],
    "long jumps": ["guest_jumps", "1000", "8", "2000"],
    "threads": ["guest_threads", "60"],
    "signals": ["guest_signals", "2"],
    "forks": ["guest_forks", "60", "12", "500"],
}


def owners(s):
    """Returns stretches, and how many of them are uncertain or not compared."""
    with subprocess.Popen(decode(s.bundle, "insns"), stdout=subprocess.PIPE) as view:
        p = subprocess.run([OWNERS, s.truth, *s.spans], stdin=view.stdout, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    if not p.stdout:
        raise Failed(f"{s.name}: {p.stderr}")
    found = json.loads(p.stdout)
    if p.returncode != 0 or view.returncode != 0:
        raise Failed(f"{s.name}: {found}; gaps {s.errors} {p.stderr}")
    return found


def check_candidates(s):
    """Each gap of an uncertain thread names at least two threads, unless they are too many."""
    report = json.loads(run(decode(s.bundle, "report")))
    named = 0
    for gap in report["gaps"]:
        if gap["kind"] == "thread-uncertain":
            found = set(re.findall(r"\d+/\d+", gap["why"]))
            if len(found) == 1:
                raise Failed(f"{s.name}: {gap}")
            named += len(found) > 1
    return named


def records_without(sideband, cpu):
    """Leaves out CPU's records. The base, whose records have time 0, keeps its processes."""
    kept, at = [], 0
    while at < len(sideband):
        kind, _, size = struct.unpack_from("<IHH", sideband, at)
        time, of_cpu = struct.unpack_from("<QI", sideband, at + size - 24)
        if of_cpu != cpu or (time == 0 and kind not in (SWITCH, SWITCH_CPU_WIDE)):
            kept.append(sideband[at:at + size])
        at += size
    return b"".join(kept)


def without_cpu(bundle, cpu, seen):
    """Makes a bundle without CPU's trace; and, unless SEEN, of a host where CPU was not recorded."""
    whole, cut = f"{bundle}.whole", f"{bundle}.cut.ptsnap"
    run([PTSNAPCTL, "fetch", "--format=bundle", "-o", whole, bundle])
    with tarfile.open(whole) as old, tarfile.open(cut, "w", format=tarfile.USTAR_FORMAT) as new:
        for member in old:
            data = old.extractfile(member).read()
            if member.name == f"cpu{cpu}.pt":
                continue
            if member.name == "sideband" and not seen:
                data = records_without(data, cpu)
            if member.name == "manifest.json":
                manifest = json.loads(data)
                manifest["cpus"] = [c for c in manifest["cpus"] if c["cpu"] != cpu]
                manifest["trace"]["source"] = "intel_pt"
                manifest["sideband"]["unrecordedCPUs"] = 0 if seen else 1
                data = json.dumps(manifest).encode()
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    os.unlink(whole)
    return cut


def one(name, command, cpus, terms, quantum, without=None):
    with Work(name) as work:
        args = [f"{os.path.abspath(GUESTS)}/{COMMANDS[command][0]}", *COMMANDS[command][1:]]
        r = Recording(work, args, TERMS[terms], [f"--emu-cpus={cpus}", f"--emu-quantum={quantum}"],
                      "4M", cwd=work)
        if r.record(0, 0) != 0:
            raise Failed("the command failed")
        sums = {"stretches": 0, "wrong": 0, "uncertain": 0, "unchecked": 0, "named": 0}
        for bundle in r.bundles():
            if without:
                bundle = without_cpu(bundle, cpus - 1, without == "untraced")
            s = Snapshot(bundle, r.truth)
            found = owners(s)
            if found["unchecked"]:
                # A process that was made on a CPU that is not recorded has no known mappings.
                s.check_subset(("thread-uncertain", "no-space") if without == "unseen" else
                               ("thread-uncertain",))
            sums["named"] += check_candidates(s) if "thread-uncertain" in s.errors else 0
            for key in found:
                sums[key] += found[key]
        if sums["uncertain"] > 0 and sums["named"] == 0:
            raise Failed(f"no gap names its candidates: {sums}")
        share = (sums["uncertain"] + sums["unchecked"]) / max(sums["stretches"], 1)
        return f"{sums['stretches']} stretches, {100 * share:.3f} % uncertain or not compared, " \
            f"{sums['named']} gaps name candidates"


def listed(commands, cpus, terms, quanta):
    return [(f"{c} {n} {t} {q}", c, n, t, q) for c in commands for n in cpus for t in terms
            for q in quanta]


def without_one(how, commands, cpus, quanta):
    return [(f"{name}, a CPU {how}", *rest, how) for name, *rest in listed(commands, cpus, ["mtc"], quanta)]


def short_list(_):
    return (listed(["jumps"], [2], ["mtc", "mtc3"], [2000]) + listed(["forks"], [2], ["mtc"], [2000]) +
            listed(["threads"], [2], ["mtc"], [1000000]) + without_one("unseen", ["jumps", "threads"], [2], [20000]) +
            without_one("untraced", ["jumps"], [2], [20000]))


def full_list(_):
    return (listed(COMMANDS, [1, 2, 4, 8], TERMS, [500, 2000, 20000, 1000000]) +
            without_one("unseen", COMMANDS, [2, 4], [2000, 20000]) +
            without_one("untraced", COMMANDS, [2, 4], [2000, 20000]))


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, one))
