#!/usr/bin/python3
"""Measures how fast traces are decoded, in one run: by ptsnap-decode, by libipt's block decoder and
by perf.

The traces are those of programs.py. Missing ones are made in PTSNAP_BENCH_DIR, or in a temporary
directory. Speeds are MB (10^6 bytes) of trace per second of CPU time. Decoders take turns, and a
figure is the median of its measurements. "cold" is the first decode in a process, over code that
the decoder has not seen; "warm" is every later one. Ptsnap-decode uses one thread unless the table
says otherwise.

--rounds=N        how often each decoder has its turn (3)
--passes=N        decodes in each turn (3)
--programs=A,B    only these
--sizes=A,B       MiB of the traces for growth (1,4,16,64,256)
--count-by=TOOL   count instructions by "perf stat" or "callgrind" (default: the first that works)
--tables=A,B      only these: decode, perf, whole, instructions, report, parts, threads,
                  first, worst, growth
"""
import argparse
import os
import shutil
import sys
import tempfile

import programs
from measure import Counter, Failed, is_sanitized, median, table
from parts import NAMES as PARTS, Parts
from peers import Libipt, Ours, Perf, Walk

MB = 1e6
TABLES = ("decode", "perf", "whole", "instructions", "report", "parts", "threads", "first", "worst",
          "growth")
GROWING = "python3"
CROWD = 64 << 20
CALLGRIND_BYTES = 256 << 10


class Program:
    """One trace and its measurements so far."""

    def __init__(self, name, bundle):
        self.name, self.bundle = name, bundle
        self.bytes = 0
        self.tnt = 0
        self.cold, self.warm = {}, {}  # by decoder, in s
        self.instructions = set()  # the instruction counts that the decoders found

    def add(self, who, passes):
        self.cold.setdefault(who, []).append(passes[0])
        self.warm.setdefault(who, []).extend(passes[1:])

    def check(self, said):
        self.instructions.add(said["instructions"])
        if len(self.instructions) > 1:
            raise Failed(f"{self.name}: not the same instructions: {self.instructions}")

    def seconds(self, who, warm):
        found = (self.warm if warm else self.cold).get(who)
        return median(found) if found else None

    def speed(self, who, warm):
        s = self.seconds(who, warm)
        return self.bytes / MB / s if s else None

    def ratio(self, warm):
        ours, theirs = self.speed("ours", warm), self.speed("libipt", warm)
        return ours / theirs if ours and theirs else None


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.programs = [Program(n, programs.bundle(directory, n)) for n in options.programs]
        self.libipt, self.perf, self.walk = Libipt(), Perf(), Walk()
        self.ours = Ours(self.programs[0].bundle)

    def passes(self, of, rounds):
        """Measures everything that the decoders time themselves, in turns."""
        for p in of:
            for _ in range(rounds):
                if not self.libipt.missing:
                    _, said = self.libipt.run(p.bundle, self.options.passes)
                    p.add("libipt", said["passes"])
                    p.check(said)
                _, said = self.ours.run(p.bundle, self.options.passes)
                p.add("ours", said["passes"])
                p.check(said)
                p.bytes = said["bytesDecoded"]
                _, said = self.walk.run(p.bundle, self.options.passes)
                p.add("walk", said["passes"])
                p.tnt = said["bits"]

    def decode(self):
        self.passes(self.programs, self.options.rounds)
        self.speeds()
        self.bits()
        if not self.ours.repeats:
            print("ours: the worker has no --repeat; cold is a whole process")

    def speeds(self):
        rows = []
        for p in self.programs:
            theirs = [self.libipt.missing or p.speed("libipt", w) for w in (False, True)]
            rows.append([p.name, p.bytes / MB, *theirs, p.speed("ours", False),
                         p.speed("ours", True), p.ratio(False), p.ratio(True)])
        table("Packets to branches in memory, one thread, MB of trace a second",
              ["", "MB", "libipt cold", "warm", "ours cold", "warm", "ratio cold", "warm"], rows,
              mean=range(2, 8))

    def bits(self):
        """Compares with the bare walk."""
        rows = []
        for p in self.programs:
            walk, ours = p.speed("walk", True), p.speed("ours", True)
            each = [p.seconds(who, True) for who in ("libipt", "ours", "walk")]
            rows.append([p.name, p.bytes * 8 / p.tnt, walk, ours / walk if ours else None,
                         *[s * 1e9 / p.tnt if s else None for s in each]])
        table("The bare walk over nodes (one dependent load a TNT bit; no time, gaps, threads, "
              "output), MB of trace a second; and warm decodes in ns a TNT bit",
              ["", "bits a TNT bit", "bare walk", "ours/walk", "ns: libipt", "ours", "bare walk"],
              rows, mean=range(1, 7))

    def perf_table(self):
        rows = []
        for p in self.programs:
            if self.perf.missing:
                rows.append([p.name, *[self.perf.missing] * 4, None, None])
                continue
            self.perf.prepare(p.bundle, self.directory)
            script, report = self.perf.script(), self.perf.report()
            ours, size = self.ours.report(p.bundle), self.size(p)
            rows.append([p.name, size / script.cpu, size / report.cpu, script.wall, report.wall,
                         size / ours.cpu, ours.wall])
        table("perf script --itrace=b -F ip,addr and perf report against our whole report: MB of "
              "trace a second of CPU time, and wall time in s",
              ["", "script", "report", "script s", "report s", "ours", "ours s"], rows,
              mean=range(1, 7))

    def size(self, p):
        if not p.bytes:
            p.bytes = self.ours.run(p.bundle, 1)[1]["bytesDecoded"]
        return p.bytes / MB

    def whole(self):
        """Measures whole processes, from exec to exit, reading of files included."""
        rows = []
        for p in self.programs:
            theirs = [self.libipt.missing] * 2
            if not self.libipt.missing:
                u = self.libipt.run(p.bundle, 1)[0]
                theirs = [u.wall, u.cpu]
            summary = self.ours.run(p.bundle, 1)[0]
            report = self.ours.report(p.bundle)
            rows.append([p.name, *theirs, summary.wall, summary.cpu, report.wall, report.cpu])
        table("Whole processes, s: libipt's decodes to memory, ours says a summary or a report",
              ["", "libipt wall", "CPU", "summary wall", "CPU", "report wall", "CPU"], rows,
              mean=range(1, 7))

    def instructions(self):
        counter = Counter(self.directory, self.options.count_by)
        if counter.how is None:
            print("\nInstruction counts: neither perf's counters nor valgrind")
            return
        rows = []
        for p in self.programs:
            # Callgrind is fifty times slower.
            bundle = p.bundle
            if counter.how == "callgrind":
                bundle = programs.tail(p.bundle, CALLGRIND_BYTES)
            size = self.ours.run(bundle, 1)[1]["bytes"]
            rows.append([p.name, *self.count(counter, bundle, size)])
        table(f"Instructions for a byte of trace ({counter.how}): a first decode with all around "
              "it, one more decode, a whole report",
              ["", "libipt first", "more", "ours first", "more", "report", "ratio of more"], rows,
              mean=range(1, 7))

    def count(self, counter, bundle, size):
        """Two more passes, halved: what one more decode takes."""
        theirs = [self.libipt.missing] * 2
        if not self.libipt.missing:
            one, three = (counter.count(self.libipt.command(bundle, n)) for n in (1, 3))
            theirs = [one / size, (three - one) / 2 / size]
        one = counter.count(self.ours.command(bundle, "summary", 1), True)
        more = None
        if self.ours.repeats:
            more = (counter.count(self.ours.command(bundle, "summary", 3), True) - one) / 2 / size
        report = counter.count(self.ours.command(bundle, "report"), True) / size
        ratio = theirs[1] / more if more and not self.libipt.missing else None
        return [*theirs, one / size, more, report, ratio]

    def report(self):
        """Measures what a whole report costs besides decoding."""
        rows = []
        for p in self.programs:
            if not p.cold:
                for _ in range(self.options.rounds):
                    p.add("ours", self.ours.run(p.bundle, self.options.passes)[1]["passes"])
            decode = p.seconds("ours", False)
            uses = [self.ours.report(p.bundle) for _ in range(self.options.rounds)]
            report = median([u.cpu for u in uses])
            rows.append([p.name, decode, report, max(report - decode, 0.0),
                         max(report - decode, 0.0) / decode, len(uses[0].out) / MB])
        table("A whole report, s of CPU time: call stacks, counts, symbols, JSON and the process "
              "itself against the first decode",
              ["", "decode", "report", "the rest", "rest/decode", "MB of JSON"], rows,
              mean=[1, 2, 4])

    def parts(self):
        if self.perf.missing:
            print(f"\nParts of a report: {self.perf.missing}")
            return
        parts = Parts(self.directory)
        rows = []
        for p in self.programs:
            shares = parts.shares(self.ours.command(p.bundle, "report"))
            rows.append([p.name, *[shares[name] for name in PARTS]])
        table("Where a whole report's time goes, percent", ["", *PARTS], rows)

    def threads(self):
        if not self.ours.threaded:
            print("\nThreads: the worker has no --threads")
            return
        rows = [self.thread_row(p.name, p.bundle) for p in self.programs]
        if "growth" in self.options.tables:
            rows.append(self.thread_row(f"{GROWING} {max(self.options.sizes)}M", self.longest()))
        table(f"Threads on {os.cpu_count()} CPUs: elapsed time of decodes (warm) and of whole "
              "processes that write a summary or a report, s",
              ["", "decode: 1", "2", "ratio", "summary: 1", "2", "ratio", "report: 1", "2",
               "ratio"], rows, mean=range(1, 10))

    def thread_row(self, name, bundle):
        found = {n: ([], [], []) for n in (1, 2)}
        for _ in range(self.options.rounds):
            for n, (decodes, summaries, reports) in found.items():
                said = self.ours.run(bundle, self.options.passes, n)[1]
                decodes.extend(said.get("passesElapsed", [])[1:])
                summaries.append(self.ours.run(bundle, None, n)[0].wall)
                reports.append(self.ours.report(bundle, n).wall)
        row = [name]
        for one, two in zip(*found.values()):
            one, two = (median(v) if v else None for v in (one, two))
            row += [one, two, one / two if one and two else None]
        return row

    def first(self):
        """Measures the time from exec to the report, for rings of two CPUs."""
        if not self.ours.hurries:
            print("\nFirst answers: the worker has no --deadline and --skim")
            return
        bundle = programs.crowd(self.directory, CROWD)
        rows = []
        for options in (["--skim=psb"], ["--skim=tip"], ["--deadline=0"], ["--deadline=50ms"],
                        ["--deadline=500ms"], ["--deadline=1s"], []):
            usage, said = self.ours.newest(bundle, *options)
            window = said.get("decoded") or {}
            rows.append([" ".join(options) or "all", usage.wall, usage.cpu, usage.rss / MB,
                         (window.get("bytes") or 0) / MB or None,
                         len(said.get("threads", [])) or None])
        table(f"First answers: reports of 2 x {CROWD >> 20} MiB of several programs, s",
              ["", "wall", "CPU", "resident MB", "MB decoded", "threads"], rows)

    def worst(self):
        rows = []
        for name in programs.WORST:
            p = Program(name, programs.bundle(self.directory, name))
            self.passes([p], 1)
            usage = self.ours.report(p.bundle)
            theirs = [self.libipt.missing or p.speed("libipt", w) for w in (False, True)]
            rows.append([name, p.bytes / MB, p.tnt / MB, *theirs, p.speed("ours", False),
                         p.speed("ours", True), p.ratio(False), p.ratio(True), usage.wall,
                         usage.rss / MB])
        table("Worst cases: a node for each TNT bit, nothing but indirect jumps, no code twice; "
              "MB of trace a second", ["", "MB", "M bits", "libipt cold", "warm", "ours cold",
                                       "warm", "ratio cold", "warm", "report s", "resident MB"],
              rows)

    def longest(self):
        mb = max(self.options.sizes)
        return programs.bundle(self.directory, GROWING, mb << 20, max(1, mb // 8))

    def growth(self):
        sizes = self.options.sizes
        whole, rows = self.longest(), []
        for mb in sizes:
            bundle = programs.tail(whole, mb << 20)
            usage, said = self.ours.run(bundle, 1)
            report = self.ours.report(bundle)
            theirs = self.libipt.missing
            if not theirs:
                theirs = said["bytes"] / MB / self.libipt.run(bundle, 1)[1]["passes"][0]
            size = said["bytes"]
            rows.append([f"{mb} MiB", theirs, size / MB / said["passes"][0], size / MB / usage.cpu,
                         size / MB / report.cpu, report.wall, usage.rss / MB, usage.rss / size,
                         report.rss / MB, report.rss / size])
        table(f"Growth: the newest so many MiB of {GROWING}; first decode, whole processes (MB of "
              "trace a second of CPU time), and the worker's most resident memory, with the bundle",
              ["", "libipt", "ours", "summary", "report", "report s", "summary MB", "/trace",
               "report MB", "/trace"], rows)

    def run(self, name):
        """Prints a table. If the table cannot be made, prints the reason; the next tables
        follow."""
        try:
            getattr(self, "perf_table" if name == "perf" else name)()
        except Failed as e:
            print(f"\n{name}: {e}", flush=True)
            return 1
        return 0


def parse(argv):
    def names(of):
        return lambda s: [n for n in of if n in s.split(",")]

    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--programs", type=names(programs.NAMES), default=programs.NAMES)
    parser.add_argument("--sizes", type=lambda s: sorted(int(n) for n in s.split(",")),
                        default=[1, 4, 16, 64, 256])
    parser.add_argument("--count-by", choices=("perf stat", "callgrind"))
    parser.add_argument("--tables", type=names(TABLES), default=TABLES)
    return parser.parse_args(argv[1:])


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return names[0] if names else "?"


def main(argv):
    options = parse(argv)
    if not shutil.which("qemu-x86_64"):
        print("bench_decode: no qemu-x86_64 (Debian package qemu-user), no traces")
        return 0
    directory = os.environ.get("PTSNAP_BENCH_DIR")
    temporary = None if directory else tempfile.mkdtemp(prefix="ptsnap-bench-")
    os.makedirs(directory or temporary, exist_ok=True)
    try:
        print(f"Decoding on {cpu_name()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
        if is_sanitized():
            print("# built with sanitizers: these figures mean nothing")
        bench = Bench(options, directory or temporary)
        return max(bench.run(name) for name in options.tables)
    except Failed as e:
        print(f"bench_decode: {e}", file=sys.stderr)
        return 1
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
