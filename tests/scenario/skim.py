"""A skim reports what the packets hold, and agrees with a full decode.

For each scenario, ptsnapd records COMMAND. For each snapshot, `decode --skim` is compared with the
packets one by one (--view=packets --lastip) and with the branches of a full decode: each address of
a TIP is the target of that packet's branch, at the same time, and of the same thread wherever the
skim names one. Both skims have the same PSBs, with the TSC of their PSB+. Where perf is installed,
its options q and qq give the same addresses. If the sideband has another clock, samples still have
the right thread. Prints TAP. `skim.py NAME...` runs only those; `skim.py BUNDLE...` (with a slash)
checks these bundles, which must have one CPU.
"""
import collections
import json
import os
import shutil
import subprocess
import sys

from common import PTSNAPCTL, PYTHON, TIMING, Failed, Recording, Work, decode, main, run, tap
from shifted import SHIFTS, WORKLOADS, found, shift_bundle
from times import MACHINE, PY, TERMS, THREADS

NAMES = {"tip", "tip.pge", "tip.pgd", "fup"}


def lines_of(args):
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        yield from p.stdout
        why = p.stderr.read()
    if p.returncode != 0:
        raise Failed(f"{' '.join(args)}: exit {p.returncode}: {why.strip()[-600:]}")


def skim(bundle, how, *options):
    """The samples; lines about gaps are not samples."""
    return (line for line in lines_of(decode(bundle, "branches", f"--skim={how}", *options))
            if " gap - - [" not in line)


class Packets:
    """The packets with an address, as (cpu, offset, name, ip, tsc); a PSB+ counts once, at its
    PSB."""

    def __init__(self, bundle, cpu):
        self.bundle, self.cpu = bundle, cpu
        self.psb = None  # offset, ip, tsc

    def __iter__(self):
        for line in lines_of(decode(self.bundle, "packets", "--lastip", "--no-pad", "--no-cyc")):
            if line.startswith("# cpu "):
                yield from self.end_psb()
                self.cpu = int(line.split()[2])
            elif line[0] not in "#[":
                yield from self.take(line.split())
        yield from self.end_psb()

    def end_psb(self):
        if self.psb is not None:
            offset, ip, tsc = self.psb
            yield (self.cpu, offset, "psb", ip, tsc)
        self.psb = None

    def take(self, words):
        offset, name = int(words[0], 16), words[1]
        ip = None
        if name in NAMES and not words[-1].startswith("<"):
            ip = int(words[-1], 16)
        if name == "psb":
            yield from self.end_psb()
            self.psb = (offset, None, None)
        elif name in ("psbend", "ovf"):
            yield from self.end_psb()
        elif self.psb is not None and name == "fup":
            self.psb = (self.psb[0], ip, self.psb[2])
        elif self.psb is not None and name == "tsc":
            self.psb = (self.psb[0], self.psb[1], int(words[2], 16))
        elif ip is not None:
            yield (self.cpu, offset, name, ip, None)


class Sample:
    """A line of a skim with --time --places."""

    def __init__(self, line):
        words = line.split()
        if len(words) != 9:
            raise Failed(f"not a line of a skim: {line!r}")
        self.lo, self.hi, self.offset = (int(w, 16) for w in words[:3])
        self.cpu = int(words[3])
        self.tid = words[4].split("/")[1]
        self.name = words[5].split("/")[0]
        self.ip = None if words[6] == "-" else int(words[6], 16)
        self.line = line


def check_packets(bundle, samples):
    n = 0
    packets = iter(Packets(bundle, samples[0].cpu if samples else 0))
    for s in samples:
        p = next(packets, None)
        if p is None or p[:4] != (s.cpu, s.offset, s.name, s.ip):
            raise Failed(f"sample {n}: {s.line.strip()}; the packets have {p}")
        if p[4] is not None and not s.lo == s.hi == p[4]:
            raise Failed(f"sample {n}: {s.line.strip()}; its PSB+ has the TSC {p[4]:x}")
        n += 1
    if next(packets, None) is not None:
        raise Failed(f"there are more packets than the {n} samples")


def branches_of(bundle, wanted):
    """Returns {(cpu, offset): [(from, to, lo, hi, tid)]} of the packets WANTED."""
    found, cpu, tid = {}, 0, "-"
    for line in lines_of(decode(bundle, "branches", "--time", "--places")):
        words = line.split()
        if line.startswith("# cpu "):
            cpu, tid = int(words[2]), words[6]
        elif line[0] != "#":
            came, to, lo, hi, offset = (int(w, 16) for w in words)
            if (cpu, offset) in wanted:
                found.setdefault((cpu, offset), []).append((came, to, lo, hi, tid))
    return found


def check_branches(bundle, samples, lossy):
    """Returns how many TIPs are targets of branches, and how many of these have a thread."""
    branches = branches_of(bundle, {(s.cpu, s.offset) for s in samples})
    fup, n, missing, named = None, 0, 0, 0
    for s in samples:
        if s.name == "fup":
            fup = s
        if s.name not in ("tip", "tip.pge"):
            continue
        # An asynchronous branch has the place of its FUP.
        places = [s] + ([fup] if fup is not None and fup.cpu == s.cpu else [])
        at = [(b, p) for p in places for b in branches.get((p.cpu, p.offset), ())
              if b[1] == s.ip]
        if not at:
            missing += 1
            if not lossy:
                raise Failed(f"no branch of {s.line.strip()}")
            continue
        n += 1
        named += s.tid != "-"
        (_, _, lo, hi, tid), place = at[0]
        if (lo, hi) != (place.lo, place.hi):
            raise Failed(f"{s.line.strip()}: a decode says {lo:x} to {hi:x}")
        if s.tid != "-" and tid not in ("-", s.tid):
            raise Failed(f"{s.line.strip()}: a decode says it is {tid}")
    if missing > n:
        raise Failed(f"{missing} of {n + missing} TIPs have no branch")
    return n, named


def check_map(bundle, how, samples):
    """The report counts these samples, and each of its lists that is not cut adds up to all of
    them."""
    report = json.loads(run(decode(bundle, "report", f"--skim={how}", "--json=short")))
    summary = json.loads(run(decode(bundle, "summary", f"--skim={how}", "--json=short")))
    want = sum(s.ip is not None for s in samples)
    cut = {c["what"] for c in report["cut"]}
    counts = {"report": report["samples"], "summary": summary["samples"]}
    for part in ("functions", "threads", "cpus", "slices"):
        if part not in cut:
            counts[part] = sum(o["samples"] for o in report[part])
    if set(counts.values()) != {want}:
        raise Failed(f"--skim={how}: {want} samples, the map has {counts}")
    of_threads = collections.Counter(s.tid for s in samples if s.ip is not None)
    theirs = collections.Counter()
    for t in report["threads"]:
        theirs["-" if t["tid"] is None else str(t["tid"])] += t["samples"]
    if "threads" not in cut and of_threads != theirs:
        raise Failed(f"--skim={how}: the lines' threads {of_threads}, the map's {theirs}")


def check_perf(bundle, work, how, samples):
    """Compares with perf script --itrace=q or qq, which prints an instruction event for each
    address."""
    if not shutil.which("perf"):
        return
    data, images = f"{work}/perf.data", f"{work}/images"
    run([PTSNAPCTL, "-q", "export", f"--images={images}", "-o", data, bundle])
    text = run(["perf", "script", "-f", f"--symfs={images}", f"--itrace=i1i{how}", "-F", "ip",
                "-i", data], cwd=work,
               env={**os.environ, "HOME": work, "PERF_CONFIG": "/dev/null", "LC_ALL": "C"})
    theirs = [int(line, 16) for line in text.split()]
    ours = [s.ip for s in samples if s.ip is not None]
    shutil.rmtree(images)
    if ours != theirs:
        raise Failed(f"{len(ours)} addresses, perf's --itrace={how} has {len(theirs)}, or others")


def check(bundle, lossy, perf=False):
    samples = [Sample(line) for line in skim(bundle, "tip", "--time", "--places")]
    psbs = [s.line for s in samples if s.name == "psb"]
    alone = list(skim(bundle, "psb", "--time", "--places"))
    if psbs != alone:
        raise Failed(f"{len(psbs)} PSBs in the one skim, {len(alone)} in the other, or other ones")
    check_packets(bundle, samples)
    n, named = check_branches(bundle, samples, lossy)
    check_map(bundle, "tip", samples)
    check_map(bundle, "psb", [s for s in samples if s.name == "psb"])
    if perf:
        with Work("perf") as work:
            check_perf(bundle, work, "q", samples)
            check_perf(bundle, work, "qq", [s for s in samples if s.name == "psb"])
    return f"{len(psbs)} PSBs, {n} TIPs, {named} with their thread"


def check_shifted(bundle, work):
    """Makes all sideband times later or earlier. Nearly all samples must keep their thread, if the
    trace has enough switches to find the shift."""
    samples = [Sample(line) for line in skim(bundle, "tip", "--time", "--places")]
    said = []
    for nsec in SHIFTS:
        shifted = f"{work}/shifted.ptsnap"
        shift_bundle(bundle, shifted, nsec)
        if found(shifted) is None:
            said.append("shift not found")
            continue
        now = [Sample(line) for line in skim(shifted, "tip", "--time", "--places")]
        if [s.offset for s in now] != [s.offset for s in samples]:
            raise Failed(f"{nsec} ns: other samples")
        others = [(a.tid, b.tid) for a, b in zip(samples, now) if a.tid != b.tid]
        wrong = sum("-" not in tids for tids in others)
        if wrong > 0.01 * len(samples) or len(others) > 0.1 * len(samples):
            raise Failed(f"{nsec} ns: of {len(samples)} samples {len(others)} are another's, "
                         f"{wrong} of them wrong")
        said.append(str(len(others)))
    return f"{len(samples)} samples, {', '.join(said)} with a wrong thread"


def scenario_shifted(name, cpus):
    with Work(name) as work:
        scratch = f"{work}/scratch"
        os.mkdir(scratch)
        r = Recording(work, WORKLOADS["pipeline"](scratch, work), TIMING["mtc3"],
                      [f"--emu-cpus={cpus}"], "4M", cwd=scratch)
        r.record(1, 0.2)
        return check_shifted(r.bundles()[-1], work)


def scenario(name, command, terms, options):
    if command is None:
        return scenario_shifted(name, options["cpus"])
    with Work(name) as work:
        r = Recording(work, command, terms, options.get("emu", ["--emu-cpus=1"]))
        r.record(2, 0.15)
        return "; ".join(check(b, options.get("lossy", False), options.get("perf", False))
                         for b in r.bundles())


def short_list(work):
    py = [PYTHON, "-c", PY % 400]
    threads = [PYTHON, "-c", THREADS % 4000]
    return [
        ("python3 mtc3", py, TERMS["mtc3"], {"perf": True}),
        ("python3 mtc6 cyc", py, TERMS["mtc6 cyc"], {"perf": True}),
        ("threads tsc", threads, TERMS["tsc"], {"emu": MACHINE, "lossy": True}),
        ("threads mtc3", threads, TERMS["mtc3"], {"emu": MACHINE}),
        ("threads mtc6 cyc", threads, TERMS["mtc6 cyc"], {"emu": MACHINE}),
        ("overflow mtc3", py, TERMS["mtc3"],
         {"emu": ["--emu-cpus=1", "--emu-overflow=9000"], "lossy": True}),
        ("shifted, 1 CPU", None, None, {"cpus": 1}),
        ("shifted, 2 CPUs", None, None, {"cpus": 2}),
    ]


def bundles(argv):
    return [(a, False, True) for a in argv[1:] if "/" in a]


if __name__ == "__main__":
    given = bundles(sys.argv)
    sys.exit(tap(given, check) if given else main(sys.argv, short_list, short_list, scenario))
