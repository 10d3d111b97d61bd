"""Measurements of the decoder's bench: what a process takes, medians, tables."""
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from typing import NamedTuple

BUILD = os.environ.get("PTSNAP_BUILDDIR", ".")
USAGE = f"{BUILD}/tests/bench/usage"
TIMEOUT = 900


class Failed(Exception):
    pass


class Usage(NamedTuple):
    """What a process and the children that it waited for took."""
    wall: float  # s
    cpu: float  # s
    rss: int  # bytes, of the largest process
    out: str


def run(args):
    """Returns the output."""
    p = subprocess.run(args, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
    if p.returncode != 0:
        raise Failed(f"{os.path.basename(args[0])}: exit {p.returncode}: {p.stderr.strip()[-200:]}")
    return p.stdout


def run_measured(args, out=subprocess.PIPE, env=None):
    """Runs ARGS and measures. OUT: where the output goes."""
    with tempfile.NamedTemporaryFile("r") as f:
        p = subprocess.run([USAGE, f.name, *args], stdout=out, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, env=env, text=True, check=False)
        if p.returncode != 0:
            raise Failed(f"{os.path.basename(args[0])}: exit {p.returncode}: "
                         f"{p.stderr.strip()[-200:]}")
        return Usage(**json.load(f), out=p.stdout)


def is_sanitized():
    with open(f"{BUILD}/Makefile", encoding="utf-8") as f:
        return re.search(r"^SAN_FLAGS = .*-fsanitize", f.read(), re.M) is not None


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2


def geomean(values):
    values = [v for v in values if isinstance(v, (int, float)) and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


class Counter:
    """Counts instructions in user mode: by the processor's counters, else by valgrind."""

    def __init__(self, work, how=None):
        self.work, self.how = work, how
        if how is None and shutil.which("perf"):
            p = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"],
                               capture_output=True, text=True, check=False)
            if re.match(r"\d+,", p.stderr):
                self.how = "perf stat"
        if self.how is None and shutil.which("valgrind"):
            self.how = "callgrind"

    def count(self, args, worker=False):
        """Counts ARGS and all children. WORKER: callgrind counts only the worker that ptsnapctl
        starts, without its sandbox."""
        if self.how == "perf stat":
            command = ["perf", "stat", "-x,", "-e", "instructions:u", *args]
            pattern = r"^(\d+),.*instructions:u"
        else:
            command = [*self.callgrind(), *args]
            if worker:
                command = [*args, f"--worker={self.wrapper()}"]
            pattern = r"Collected : (\d+)"
        p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           timeout=TIMEOUT, check=False)
        said = p.stderr
        if p.returncode == 0 and self.how == "callgrind":
            with open(f"{self.work}/callgrind.log", encoding="utf-8") as f:
                said = f.read()
        counts = [int(n) for n in re.findall(pattern, said, re.M)]
        if p.returncode != 0 or not counts:
            raise Failed(f"{self.how} {os.path.basename(args[0])}: exit {p.returncode}: "
                         f"{said.strip()[-200:]}")
        return sum(counts)

    def callgrind(self):
        return ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                f"--log-file={self.work}/callgrind.log"]

    def wrapper(self):
        path = os.path.abspath(f"{self.work}/callgrind.sh")
        worker = os.path.abspath(f"{BUILD}/tests/bench/bench_worker")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {' '.join(self.callgrind())} {worker} \"$@\"\n")
        os.chmod(path, 0o755)
        return path


def text(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.{0 if value >= 1000 else 1 if value >= 20 else 2 if value >= 1 else 3}f}"
    return str(value)


def table(title, head, rows, mean=()):
    """Prints a table. MEAN: columns whose geometric mean a last line gives."""
    rows = [list(row) for row in rows]
    if mean and len(rows) > 1:
        last = [None] * len(head)
        last[0] = "geometric mean"
        for i in mean:
            last[i] = geomean([row[i] for row in rows])
        rows.append(["" if v is None else v for v in last])
    cells = [[text(v) for v in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    print(f"\n{title}\n")
    for row in cells:
        line = "  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                         for i, (c, w) in enumerate(zip(row, widths)))
        print(line.rstrip(), flush=True)
