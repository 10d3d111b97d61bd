"""Shows where the time of a whole report goes, by the source file of each function, from perf's
samples of cycles or, without counters, of time."""
import collections
import glob
import os
import re
import subprocess

from measure import BUILD, Failed, run

ROOMS = ("decoder", "sideband", "proto")
# Parts of a report: a file belongs to the first part whose pattern matches its name.
PARTS = (
    ("decode", r"decoder/(?!worker/)"),
    ("who ran", r"worker/(replay|turns)/"),
    ("counts", r"worker/count/"),
    ("report, JSON", r"worker/report/|proto/json"),
    ("names", r"sideband/"),
)
OTHER = "other, libc, kernel"
NAMES = [name for name, _ in PARTS] + [OTHER]


def files_of():
    """{function: set of the files that define it}."""
    found = collections.defaultdict(set)
    for room in ROOMS:
        objects = glob.glob(f"{BUILD}/{room}/**/*.o", recursive=True)
        for line in run(["nm", "-A", "--defined-only", *objects]).splitlines():
            m = re.match(r"(.*)\.o:[0-9a-f]+ [tT] (\S+)$", line)
            if m:
                # libptdecoder_a-flow.o comes from flow.c
                path = re.sub(r"[^/]*-", "", os.path.relpath(m[1], BUILD))
                found[m[2].split(".")[0]].add(path)
    return found


def part_of(symbol, files):
    """The part of SYMBOL. A name that several files define counts only if all of them belong to one
    part."""
    parts = {name for path in files.get(symbol.split(".")[0], ())
             for name, pattern in PARTS if re.search(pattern, path)}
    return parts.pop() if len(parts) == 1 else OTHER


class Parts:
    def __init__(self, work):
        self.data = f"{work}/parts.data"
        self.files = files_of()

    def record(self, args):
        for event in ("cycles:u", "cpu-clock:u"):
            p = subprocess.run(["perf", "record", "-q", "-e", event, "-F", "4000", "-o", self.data,
                                "--", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, check=False)
            if p.returncode == 0:
                return
        raise Failed(f"perf record: exit {p.returncode}: {p.stderr.strip()[-200:]}")

    def shares(self, args):
        """{part: percent} of the time of the worker that ARGS start."""
        self.record(args)
        shares = collections.Counter()
        text = run(["perf", "report", "-f", "-i", self.data, "--stdio", "--percent-limit", "0",
                    "--comm", "ptsnap-decode", "--sort", "sym", "-F", "overhead,sym"])
        for line in text.splitlines():
            m = re.match(r"\s+([0-9.]+)%\s+\[.\] (\S+)", line)
            if m:
                shares[part_of(m[2], self.files)] += float(m[1])
        os.unlink(self.data)
        if not shares:
            raise Failed("perf report says nothing of ptsnap-decode")
        return shares
