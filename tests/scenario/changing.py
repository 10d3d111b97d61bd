"""Code that changes in time, decoded by several threads, newest first, and by one thread alone.

The workloads: a process becomes another program again and again, with other code at the same
addresses; a process loads and unloads two libraries in turns at one address; programs with
different code at one address take turns on the same CPUs. Each is recorded under the emulated
machine. Checks for each bundle:

- every thread's decoded instructions equal those that it executed, without a gap;
- the output of `ptsnapctl decode' is identical for any number of threads, with the normal worker
and with one whose threads begin at every PSB (seams_worker), where other threads do much of the
work;
- a deadline that is not reached changes only what the report says of the deadline;
- a deadline that is reached gives the report of a bundle that begins at the report's window.

Prints TAP. `changing.py NAME...` runs only those.
"""
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from common import (BUILD, GUESTS, NORET, PTSNAPCTL, RARE, TIMING, Failed, Recording, Snapshot,
                    Work, decode, differences, main, run, threads_of)
from cut_bundle import cut_bundle

SEAMS = f"--worker={BUILD}/tests/support/seams_worker"
# The first two views are decoded by step; views of every branch are decoded by one thread.
BY_STEP = (("report",), ("summary",))
VIEWS = (*BY_STEP, ("summary", "--hash"), ("events",), ("branches", "--time"))
# By the clock of seams_worker, where each look takes a millisecond. The number of looks for a whole
# trace depends on what was executed.
NEVER, DEADLINES = "100000s", ("0s", "0.02s", "0.05s", "0.1s", "0.2s", "1s", "5s", "20s")
WORTH = 512 << 10  # bytes of a trace; one thread decodes smaller traces
PERF_RECORD_MMAP2 = 10
FIXED = 0x400000  # where the linker puts a program that is not position-independent

LIBRARIES = (
    "unsigned long piece(unsigned long v)\n"
    "{ return v % 3 == 0 ? v / 3 + 1 : v & 8 ? v * 5 + 7 : v * 7 + 1; }\n",
    "unsigned long piece(unsigned long v)\n"
    "{ while (v & 4) v = v / 2 + 1; if (v % 5 == 1) v = v * 3; return v + 11; }\n",
)


def guest(name):
    return os.path.abspath(f"{GUESTS}/{name}")


def becoming(_):
    return [guest("guest_fixed0"), "exec", "60", guest("guest_fixed1")]


def swapping(work):
    made = []
    for i, code in enumerate(LIBRARIES):
        source = f"{work}/lib{i}.c"
        with open(source, "w", encoding="utf-8") as f:
            f.write(code)
        made.append(f"{work}/lib{i}.so")
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", made[-1], source], check=True)
    return [guest("guest_swap"), "100", *made]


def sharing(_):
    """The programs do not wait for each other, so the output is sorted."""
    all_of_them = "".join(f"{guest(f'guest_fixed{i % 2}')} run 40 &\n" for i in range(4))
    return ["sh", "-c", f"({all_of_them}wait) | sort"]


def mappings(bundle):
    """Returns (file, first address, pid) of each executable mapping, in order of time."""
    with tarfile.open(bundle) as tar:
        data = tar.extractfile("sideband").read()
    found, at = [], 0
    while at + 8 <= len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == PERF_RECORD_MMAP2:
            pid, _, start, length, offset = struct.unpack_from("<IIQQQ", data, at + 8)
            path = data[at + 72:at + size].split(b"\0")[0].decode()
            found.append((os.path.basename(path), start - offset, pid))
        at += size
    return found


def count_loads(bundle, names, at=None):
    """Counts how often one of NAMES was mapped where the other one had been."""
    last, n = {}, 0
    for name, start, _ in mappings(bundle):
        if name in names and at in (None, start):
            n += last.get(start, name) != name
            last[start] = name
    return n


def count_switches(bundle, whole, names, at):
    """Counts how often one of NAMES got a CPU after the other one, which has code at the same
    address. WHOLE: the report."""
    if any(name in names and start != at for name, start, _ in mappings(bundle)):
        raise Failed(f"no mapping at {at:x}: {mappings(bundle)}")
    last, n = {}, 0
    for turn in whole["turns"]:
        if turn["comm"] in names:
            n += last.get(turn["cpu"], turn["comm"]) != turn["comm"]
            last[turn["cpu"]] = turn["comm"]
    return n


class Output:
    """The output of a decode as a digest, and how many steps of its walk came from other
    threads."""

    def __init__(self, bundle, view, *options):
        args = decode(bundle, *view, *options)
        digest = hashlib.sha256()
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            while data := p.stdout.read(1 << 20):
                digest.update(data)
            said = p.stderr.read().decode(errors="replace")
        if p.returncode != 0:
            raise Failed(f"{' '.join(args)}: exit {p.returncode}: {said[-600:]}")
        self.digest = digest.hexdigest()
        before, found, n = "ptsnapctl: ptsnap-decode says: ", "steps of other threads:", 0
        for line in said.splitlines():
            if line.startswith(before + found):
                n += int(line.removeprefix(before + found))
        self.steps = n


def check_threads(bundle):
    """Returns how many steps came from other threads, with two threads."""
    taken = 0
    for view in VIEWS:
        one = Output(bundle, view, "--threads=1")
        walked = view in BY_STEP
        for worker in ([], [SEAMS]):
            for n in (2, 3, 8) if walked else (2,):
                other = Output(bundle, view, f"--threads={n}", *worker)
                if other.digest != one.digest:
                    raise Failed(f"--view={' '.join(view)} --threads={n} {' '.join(worker)} gives "
                                 "something else than one thread")
                taken = other.steps if n == 2 and view[0] == "report" else taken
    return taken


def report(bundle, *options):
    return json.loads(run(decode(bundle, "report", SEAMS, *options)))


def check_totals(whole, snapshot):
    """Decoding by step must count the same as decoding by branch, which was compared with the
    truth."""
    for key in ("instructions", "branches"):
        n, said = snapshot.summary[key], whole["totals"][key]
        if n != said:
            raise Failed(f"{n} {key} in the summary with hashes, {said} in the report")


def but(o, *keys):
    return {key: value for key, value in o.items() if key not in keys}


def joined(r):
    """Returns the report with each place where its index was. Threads outside of the window mention
    places of their own, so the same place may have another index."""
    def place(index):
        return index if index is None else r["places"][index]

    def join(o):
        if isinstance(o, list):
            return [join(e) for e in o]
        if not isinstance(o, dict):
            return o
        o = {key: place(v) if key in ("place", "from", "to") else join(v) for key, v in o.items()}
        return {**o, "stack": [place(i) for i in o["stack"]]} if o.get("stack") else o

    return join(but(r, "places"))


def without_window(r):
    """Returns the report without what it says of a deadline, and of bytes outside of the window. A
    thread that executed nothing in the window has its last stretch, or its state alone."""
    threads = [t for t in r["threads"] if t.get("window") != "last-stretch" and t["instructions"]]
    outside = {t["tid"] for t in r["threads"]} - {t["tid"] for t in threads}
    return {**but(r, "decoded"),
            "suspects": [s for s in r["suspects"] if s.get("tid") not in outside],
            "threads": [but(t, "window", "olderFrames") for t in threads],
            "cpus": [but(cpu, "gotBytes", "copyBytesPerSec") for cpu in r["cpus"]]}


def check_same(name, a, b):
    a, b = without_window(joined(a)), without_window(joined(b))
    differ = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    if differ:
        raise Failed(f"{name}: differs in {', '.join(differ)}")


def with_code(r):
    """Returns the images with executed instructions. A thread's last stretch lists its images
    although they executed nothing in the window."""
    return {**r, "images": [i for i in r["images"] if i["instructions"]]}


def at_the_end(r):
    """Returns what the report says of the ends of threads: the window makes no difference."""
    return {(s["kind"], s["tid"]) for s in r["suspects"] if s["kind"] in ("crash", "deadlock")}


class Cuts:
    """The reports of the bundle's ends. Many deadlines leave the same end."""

    def __init__(self, bundle, work):
        self.bundle, self.work = bundle, work
        self.reports = {}

    def report(self, sizes):
        """Returns the report, by one thread, of a bundle with the last SIZES bytes of its CPUs."""
        if sizes not in self.reports:
            cut = f"{self.work}/cut.ptsnap"
            cut_bundle(self.bundle, cut, sizes)
            self.reports[sizes] = with_code(report(cut, "--threads=1"))
        return self.reports[sizes]


def check_window(bundle, cuts, deadline, threads, whole):
    """Returns whether the window was only a part of the trace, with code in it."""
    r = report(bundle, f"--deadline={deadline}", f"--threads={threads}")
    if not at_the_end(r) <= at_the_end(whole):
        raise Failed(f"--deadline={deadline}: {at_the_end(r)}, but {at_the_end(whole)} without it")
    check_same(f"--deadline={deadline} --threads={threads}", with_code(r),
               cuts.report(tuple(cpu["bytesDecoded"] for cpu in r["cpus"])))
    return not r["decoded"]["complete"] and r["totals"]["instructions"] > 0


def check_deadlines(bundle, work, whole):
    cuts = Cuts(bundle, work)
    parts = 0
    for threads in (1, 2, 3):
        r = report(bundle, f"--deadline={NEVER}", f"--threads={threads}")
        if not r["decoded"]["complete"]:
            raise Failed(f"--deadline={NEVER}: not all was decoded: {r['decoded']}")
        check_same(f"--deadline={NEVER} --threads={threads}", r, whole)
        parts += sum(check_window(bundle, cuts, d, threads, whole) for d in DEADLINES)
    return parts


def check_doubtful(s, gaps):
    """Nearly everything was decoded, only executed instructions were, and what is missing is a gap
    of GAPS."""
    ours, truth = threads_of(s.summary["threads"]), s.executed(s.spans)
    if s.unexpected(gaps) or set(ours) != set(truth):
        raise Failed(f"{s.name}: {differences(ours, truth)}; gaps {s.errors}")
    for who, (n, _) in truth.items():
        if ours[who] != truth[who] and (not s.errors or not n * 0.99 < ours[who][0] < n):
            raise Failed(f"{s.name}: {differences(ours, truth)}; gaps {s.errors}")
    return sum(n for n, _ in ours.values())


def one(name, workload, options):
    if workload is swapping and not shutil.which("gcc"):
        return "# SKIP no gcc"
    with Work(name) as work:
        # With the host's clock, a slow host fills the rings with packets of time.
        clock = ["--emu-clock=virtual"] if options["cpus"] == 1 else []
        r = Recording(work, workload(work), options.get("terms", TIMING["mtc3"]),
                      [f"--emu-cpus={options['cpus']}", *clock, *options.get("emu", ())], "2M")
        r.same_as_native(r.record(1, 0.15), lambda: None)
        insns = taken = parts = changes = size = 0
        for stored in r.bundles():
            s = Snapshot(stored, r.truth)
            if "doubt" in options:
                insns += check_doubtful(s, options["doubt"])
            else:
                insns += s.check_equal()
            bundle = f"{work}/{os.path.basename(stored)}"
            run([PTSNAPCTL, "fetch", "--format=bundle", "-o", bundle, stored])
            whole = report(bundle, "--threads=1")
            changes = max(changes, options["count"](bundle, whole))
            size = max(size, *(cpu["bytesDecoded"] for cpu in whole["cpus"]))
            if "doubt" not in options:
                check_totals(whole, s)
            taken += check_threads(bundle)
            # Without time, the beginning of a window is unknown.
            parts += 1 if "doubt" in options else check_deadlines(bundle, work, whole)
        if changes < 20 or parts == 0 or size < WORTH or (taken == 0 and not options.get("far")):
            raise Failed(f"{changes} changes of code, {parts} partial windows, {size} bytes, "
                         f"{taken} steps of other threads")
        return (f"{len(r.bundles())} snapshots, {insns} instructions, {taken} steps of other "
                f"threads, {changes} changes of code at an address, {parts} partial windows")


PROGRAMS = (("guest_fixed0", "guest_fixed1"), FIXED)
PIECES = ("lib0.so", "lib1.so")
SMALL = ["--emu-quantum=20000"]


def short_list(_):
    becomes = {"cpus": 2, "count": lambda bundle, _: count_loads(bundle, *PROGRAMS)}
    swaps = {"cpus": 1, "count": lambda bundle, _: count_loads(bundle, PIECES)}
    shares = {"cpus": 2, "emu": SMALL,
              "count": lambda bundle, whole: count_switches(bundle, whole, *PROGRAMS)}
    return [
        ("exec", becoming, becomes),
        ("dlopen", swapping, swaps),
        # Without time the order is unknown: where both libraries fit, the decoder takes neither.
        ("dlopen without time", swapping,
         {**swaps, "terms": TIMING["none"], "doubt": ("image-uncertain",), "far": True}),
        ("two programs on one CPU", sharing, {**shares, "cpus": 1}),
        # With the host's clock, a host under load fills the rings with MTC packets: few turns are
        # left of many. These MTC packets are eight times as far apart.
        ("two programs on 2 CPUs", sharing, {**shares, "terms": RARE}),
    ]


def full_list(work):
    """PSBs are farther apart: if mappings change between two PSBs, no thread that decodes ahead
    guesses right."""
    result = short_list(work)
    for name, workload, options in short_list(work):
        for tname in ("mtc", "cyc"):
            if workload is not sharing or tname == "cyc":
                result.append((f"{name} {tname}", workload,
                               {**options, "terms": TIMING[tname], "far": True}))
        result.append((f"{name} noretcomp", workload, {**options, "terms": TIMING["mtc3"] + NORET}))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, one))
