"""Source lines, inlined functions and names as in the source: compiles programs in C++ and C, and
compares ptsnap-decode's own reading of their DWARF with addr2line. Prints TAP. `source.py NAME...`
runs only those; --full damages the DWARF more often.
"""
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

from common import (PTSNAPCTL, TIMING, Failed, Recording, Work, main, run)

# For an inlined function without a linkage name addr2line prints the symbol around it; therefore
# all functions here have one.
BASKET = """#pragma once
#define NOINLINE __attribute__((noinline, noclone))
#define INLINED inline __attribute__((always_inline))
namespace shop {
NOINLINE unsigned long leaf(unsigned long v);
template <typename T, unsigned N> struct Basket {
	T items[N];

	template <typename F> __attribute__((always_inline)) T each(F rate) const
	{
		T sum = 0;

		for (unsigned i = 0; i < N; i++)
			sum += rate(items[i]);
		return sum;
	}
	NOINLINE T total(T factor) const;
};
INLINED unsigned long twice(unsigned long v)
{
	return leaf(v) +
	       leaf(v + 1);
}
}
"""
BASKET_CC = """#include "lib/basket.h"
namespace shop {
unsigned long leaf(unsigned long v)
{
	for (unsigned i = 0; i < 4; i++)
		if (v >> i & 1)
			v = v * 5 + i;
	return v;
}
template <typename T, unsigned N> T Basket<T, N>::total(T factor) const
{
	return each([factor](T v) {
		return twice(v * factor);
	});
}
template struct Basket<unsigned long, 8>;
}
"""
MAIN_CC = """#include "lib/basket.h"
#include <fcntl.h>
#include <unistd.h>
using shop::Basket;
namespace tour {
struct Visitor {
	virtual NOINLINE unsigned long operator()(const Basket<unsigned long, 8> &b, unsigned long v)
	{
		return b.total(v) + b.total(v + 1);
	}
};
INLINED unsigned long visit(Visitor &by, const Basket<unsigned long, 8> &b, unsigned long n)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < n; i++)
		sum += by(b, i);
	return sum;
}
}
int main(int argc, char **argv)
{
	Basket<unsigned long, 8> b;
	tour::Visitor visitor;
	volatile unsigned long sum = 0;

	for (unsigned i = 0; i < 8; i++)
		b.items[i] = i * 7;
	for (unsigned long round = 0; argc < 3 || access(argv[1], F_OK) != 0; round++) {
		sum += tour::visit(visitor, b, 100);
		if (round == 5)
			close(creat(argv[2], 0600));
	}
	return sum == 0;
}
"""
MAIN_C = """#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static NOINLINE uint64_t leaf(uint64_t v)
{
	for (int i = 0; i < 4; i++)
		v = v & 1 ? v * 3 + 1 : v >> 1;
	return v;
}
static inline __attribute__((always_inline)) uint64_t inner(uint64_t v)
{
	return leaf(v) ^ leaf(v * 3);
}
static inline __attribute__((always_inline)) uint64_t outer(uint64_t v)
{
	return inner(v) +
	       inner(v + 1);
}
static NOINLINE uint64_t work(uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += outer(i);
	return sum;
}
int main(int argc, char **argv)
{
	volatile uint64_t sum = 0;

	for (uint64_t round = 0; argc < 3 || access(argv[1], F_OK) != 0; round++) {
		sum += work(300);
		if (round == 5)
			close(creat(argv[2], 0600));
	}
	return sum == 0;
}
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def compile_cc(work, flags):
    src = f"{work}/src"
    write(f"{src}/lib/basket.h", BASKET)
    write(f"{src}/lib/basket.cc", BASKET_CC)
    write(f"{src}/main.cc", MAIN_CC)
    run(["g++", "-O2", *flags, "-I.", "-o", f"{work}/program", "lib/basket.cc", "main.cc"], cwd=src)
    return f"{work}/program"


def compile_c(work, flags):
    src = f"{work}/src"
    write(f"{src}/main.c", MAIN_C)
    run(["gcc", "-O2", *flags, "-o", f"{work}/program", "main.c"], cwd=src)
    return f"{work}/program"


def build_id(program):
    notes = run(["readelf", "-n", program])
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


class Truth:
    """The answers of addr2line about a program with DWARF that was loaded at BASE."""

    def __init__(self, program, report):
        self.program, self.known = program, {}
        symbols = {}
        for line in run(["nm", "--defined-only", program]).splitlines():
            address, _, name = line.split(maxsplit=2)
            symbols[name] = int(address, 16)
        self.bases = {int(f["address"], 16) - symbols[f.get("linkage") or f["name"]]
                      for f in report["functions"] if self.is_ours(report, f)
                      and (f.get("linkage") or f["name"]) in symbols}
        if len(self.bases) != 1:
            raise Failed(f"the program was loaded at {sorted(map(hex, self.bases))}")
        self.base = self.bases.pop()
        self.end = max(symbols.values())

    @staticmethod
    def is_ours(report, what):
        i = what.get("image")
        return i is not None and report["images"][i]["path"].endswith("/program")

    def has(self, address):
        return self.base <= address < self.base + self.end

    def at(self, address):
        """[(function, (file, line) or None)], innermost first."""
        if address not in self.known:
            said = run(["addr2line", "-f", "-i", "-C", "-e", self.program,
                        hex(address - self.base)]).splitlines()
            self.known[address] = [(said[i], line_of(said[i + 1])) for i in range(0, len(said), 2)]
        found = self.known[address]
        return [] if found == [("??", None)] else found


def line_of(text):
    """"FILE:LINE (discriminator 3)" """
    if text is None:
        return None
    path, _, line = text.split(" (disc")[0].rpartition(":")
    return (os.path.realpath(path), int(line)) if line.isdigit() and int(line) > 0 else None


def differ(what, ours, truth):
    if ours != truth:
        raise Failed(f"{what}: {ours}, addr2line {truth}")


def line_at(what):
    return (os.path.realpath(what["file"]), what["line"]) if "line" in what else None


def check_place(truth, place):
    """Returns the number of functions that are inlined there."""
    address = int(place["address"], 16)
    wanted = truth.at(address)
    inlined = place.get("inlined", [])
    differ(f"inlined at {address:#x}", [(f["name"], line_at(f)) for f in inlined], wanted[:-1])
    differ(f"file's address of {address:#x}", int(place["fileAddress"], 16), address - truth.base)
    if wanted:
        differ(f"line at {address:#x}", line_at(place), wanted[-1][1])
        differ(f"name at {address:#x}", place["name"], wanted[-1][0])
    return len(inlined)


def check_report(truth, report):
    """Returns the numbers of frames, inlined functions, places with lines, and functions."""
    n = [0, 0, 0, 0]
    ours = {}
    for i, place in enumerate(report["places"]):
        if truth.has(int(place["address"], 16)):
            ours[i] = check_place(truth, place)
            n[2] += "line" in place
    for thread in report["threads"]:
        for frame in thread["stack"] or []:
            n[0] += frame in ours
            n[1] += ours.get(frame, 0)
    for f in report["functions"]:
        if truth.is_ours(report, f):
            wanted = truth.at(int(f["address"], 16))
            differ(f"function {f['name']}", line_at(f), wanted[-1][1] if wanted else None)
            n[3] += "line" in f
    return n


def check_version(report):
    if report["schemaVersion"] != "2.0":
        raise Failed(f"the report says it is of version {report['schemaVersion']}")


def check_linkage(report, wanted):
    if ('"linkage"' in json.dumps(report)) != wanted:
        raise Failed("the report has " + ("no linkage names" if wanted else "linkage names"))


def check_schema(path):
    schema = os.path.join(os.environ.get("PTSNAP_SRCDIR", "."), "docs/ptsnap-report-2.schema.json")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system/worker_schema.py")
    if subprocess.run([sys.executable, "-c", "import jsonschema"], stderr=subprocess.DEVNULL,
                      check=False).returncode == 0:
        run([sys.executable, script, schema, path])


def report_of(bundle, *options):
    path = f"{bundle}.json"
    run([PTSNAPCTL, "decode", "--json=short", "-o", path, *options, bundle])
    check_schema(path)
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def image_of(report):
    return next(i for i in report["images"] if i["path"].endswith("/program"))


def sum_up(counts):
    return [sum(c) for c in zip(*counts)]


def check_all(bundles, program, options, dwarf):
    """Compares all reports of BUNDLES with addr2line on PROGRAM."""
    counts = []
    for b in bundles:
        report = report_of(b, "--lines", *options)
        check_version(report)
        differ("dwarf", image_of(report).get("dwarf"), dwarf)
        counts.append(check_report(Truth(program, report), report))
    n = sum_up(counts)
    if min(n) == 0:
        raise Failed(f"nothing was compared: {n}")
    return f"{n[0]} frames, {n[1]} inlined, {n[2]} places, {n[3]} functions"


class ReadyRecording(Recording):
    """Records a program that signals when it works, and works until all snapshots are taken."""

    def __init__(self, work, program, options=()):
        self.ready = f"{work}/ready"
        super().__init__(work, [program, f"{work}/stop", self.ready], TIMING["mtc"], options,
                         stop=f"{work}/stop")

    def take(self, daemon, snapshots, pause):
        end = time.monotonic() + 120
        while not os.path.exists(self.ready) and daemon.poll() is None:
            time.sleep(0.02)
            if time.monotonic() > end:
                raise Failed("the program does not run")
        super().take(daemon, snapshots, pause)


def worked(bundles):
    """Returns the bundles with instructions: on a slow host a ring may hold only the time of idle
    CPUs."""
    found = [b for b in bundles
             if json.loads(run([PTSNAPCTL, "decode", "--view=summary", b]))["instructions"] > 0]
    if not found:
        raise Failed("nothing ran")
    return found


def record(work, program, n):
    r = ReadyRecording(work, program)
    status = r.record(n, 0.05)
    if status != 0:
        raise Failed(f"exit status {status}")
    return worked(r.bundles())


def split(program, symbols):
    """Strips PROGRAM to what running it needs; the rest goes into SYMBOLS, by build id."""
    ident = build_id(program)
    path = f"{symbols}/.build-id/{ident[:2]}/{ident[2:]}.debug"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    run(["objcopy", "--only-keep-debug", program, path])
    run(["strip", program])
    return path


def own(work, options):
    program = options["compile"](work, options["flags"])
    bundles = record(work, program, 3)
    said = check_all(bundles, program, (), "own")
    reports = [report_of(bundles[0], "--lines", f"--threads={n}") for n in (1, 4)]
    differ("report of four threads", reports[1], reports[0])
    # Names alone: without any option, C++ names read as in the source.
    report = report_of(bundles[0])
    check_version(report)
    check_linkage(report, "names" in options)
    names = {f["name"] for f in report["functions"]}
    for name in options.get("names", ()):
        if name not in names:
            raise Failed(f"no function {name}: {sorted(names)}")
    if any("line" in f for f in report["functions"]):
        raise Failed("lines that nobody asked for")
    return said


def no_dwarf(work, options):
    program = options["compile"](work, options["flags"])
    report = report_of(record(work, program, 1)[0], "--lines")
    differ("dwarf", image_of(report).get("dwarf"), "none")
    return "none"


def apart(work, options):
    """By build id and by path the report is the same. Without symbols there are no names."""
    program = options["compile"](work, options["flags"])
    whole = f"{work}/paths{program}"
    os.makedirs(os.path.dirname(whole))
    shutil.copy(program, whole)
    split(program, f"{work}/symbols")
    bundles = record(work, program, 3)
    said = check_all(bundles, whole, [f"--symbols={work}/symbols"], "apart")
    by_path = check_all(bundles, whole, [f"--symbols={work}/paths"], "apart")
    reports = [report_of(bundles[0], "--lines", f"--symbols={work}/{d}")
               for d in ("symbols", "paths")]
    differ("reports", reports[0]["threads"], reports[1]["threads"])
    differ("reports", reports[0]["functions"], reports[1]["functions"])
    bare = report_of(bundles[0], "--lines")
    differ("dwarf", image_of(bare).get("dwarf"), "none")
    if by_path != said or any(f["name"] == "main" for f in bare["functions"]):
        raise Failed(f"{by_path}; {bare['functions'][:3]}")
    return said


class DecodedRecording(ReadyRecording):
    """A recording in which the recorder decodes the snapshots."""

    def take(self, daemon, snapshots, pause):
        super().take(daemon, 0, pause)
        for i in range(snapshots):
            time.sleep(pause)
            run([PTSNAPCTL, f"--socket={self.socket}", "snapshot", "-o", f"{self.work}/{i}.json"])


def not_kept(work, options):
    """A recorder that decoded without lines keeps no DWARF."""
    program = options["compile"](work, options["flags"])
    os.makedirs(f"{work}/paths{work}")
    shutil.copy(program, f"{work}/paths{program}")
    r = DecodedRecording(work, program)
    r.record(2, 0.05)
    bundles = worked(r.bundles()[:2])
    differ("dwarf", image_of(report_of(bundles[0], "--lines"))["dwarf"], "none")
    return check_all(bundles, program, [f"--symbols={work}/paths"], "apart")


def by_daemon(work, options):
    """With SourceLines=yes, the bundle has what lines need even when the program is gone."""
    program = options["compile"](work, options["flags"])
    kept = shutil.copy(program, f"{work}/kept")
    r = DecodedRecording(work, program, ["--source-lines=yes"])
    r.record(2, 0.05)
    os.unlink(program)
    counts = []
    for path in sorted(glob.glob(f"{work}/[0-9].json")):
        with open(path, encoding="utf-8") as f:
            report = json.load(f)
        check_schema(path)
        if report["totals"]["instructions"] == 0:
            continue
        check_version(report)
        differ("dwarf", image_of(report)["dwarf"], "own")
        counts.append(check_report(Truth(kept, report), report))
        bundle = next(b for b in r.bundles() if report["id"] in b)
        whole = f"{work}/whole{len(counts)}"
        run([PTSNAPCTL, "fetch", "--format=bundle", "-o", whole, bundle])
        again = report_of(whole, "--lines")
        for key in ("threads", "functions"):
            differ(f"{key} of the bundle", again[key], report[key])
    n = sum_up(counts)
    if min(n) == 0:
        raise Failed(f"nothing was compared: {n}")
    return f"{n[0]} frames, {n[1]} inlined, {n[2]} places, {n[3]} functions"


def debug_sections(path):
    """Returns [(name, offset, size)]."""
    text = run(["readelf", "-SW", path])
    found = re.findall(r"\] (\.debug_\w+)\s+PROGBITS\s+\w+\s+(\w+)\s+(\w+)", text)
    return [(name, int(at, 16), int(size, 16)) for name, at, size in found if int(size, 16) > 0]


def mutate(data, sections, rng):
    """Damages another program's DWARF: bits, numbers, moved pieces, ends of sections."""
    name, at, size = rng.choice(sections)
    if rng.random() < 0.6:
        name, at, size = rng.choice([s for s in sections
                                     if s[0] in (".debug_info", ".debug_abbrev", ".debug_line")])
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        where = at + rng.randrange(size)
        kind = rng.randrange(5)
        if kind == 0:
            data[where] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[where] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        elif kind == 2:
            n = min(rng.choice((2, 4, 8)), at + size - where)
            data[where:where + n] = rng.choice((b"\xff", b"\x00", b"\x80")) * n
        elif kind == 3:
            n = min(rng.randrange(1, 64), at + size - where)
            source = at + rng.randrange(size - n + 1)
            data[where:where + n] = data[source:source + n]
        else:
            # a reference to anywhere in the unit, perhaps to itself
            n = min(4, at + size - where)
            data[where:where + n] = rng.randrange(size).to_bytes(4, "little")[:n]
    return name


def read_tree(path):
    """Returns the offsets of DIEs in .debug_info (in the file, in the unit), and of some
    references."""
    dies, refs, base = [], [], next(at for name, at, _ in debug_sections(path)
                                    if name == ".debug_info")
    unit = 0
    for line in run(["readelf", "-wi", "-wN", path]).splitlines():
        if m := re.search(r"Unit @ offset (0x)?([0-9a-f]+)", line):
            unit = int(m.group(2), 16)
        elif m := re.match(r"\s*<[0-9a-f]+><([0-9a-f]+)>: Abbrev Number: [1-9]", line):
            dies.append((unit, int(m.group(1), 16) - unit))
        elif m := re.match(r"\s*<([0-9a-f]+)>\s+DW_AT_(\w+)\s*:.*<0x[0-9a-f]+>", line):
            if m.group(2) in ("abstract_origin", "specification", "type", "sibling", "import"):
                refs.append((unit, base + int(m.group(1), 16)))
    return dies, refs


def tangle(data, tree, rng):
    """References lead anywhere: to themselves, upwards, in circles."""
    dies, refs = tree
    share = rng.choice((0.01, 0.1, 0.5, 1))
    for unit, at in refs:
        if rng.random() < share:
            to = rng.choice([d for u, d in dies if u == unit])
            data[at:at + 4] = to.to_bytes(4, "little")


class Damage:
    """The results of decoders on programs whose DWARF was damaged."""

    def __init__(self, work, program, symbols):
        self.work, self.symbols = work, symbols
        self.path = split(program, symbols)
        self.bundle = record(work, program, 1)[0]
        self.plain = report_of(self.bundle, "--lines", f"--symbols={symbols}")
        with open(self.path, "rb") as f:
            self.sane = f.read()
        self.n, self.same, self.crashed = 0, 0, []

    def try_with(self, data, what):
        with open(self.path, "wb") as f:
            f.write(data)
        out = f"{self.work}/out.json"
        p = subprocess.run([PTSNAPCTL, "decode", "--json=short", "--lines",
                            f"--symbols={self.symbols}", "-o", out, self.bundle],
                           stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        if p.returncode != 0:
            if os.environ.get("PTSNAP_KEEP"):
                shutil.copy(self.path, f"{self.work}/crash{self.n}.debug")
            self.crashed.append((self.n, what, p.stderr.strip()[-120:]))
        else:
            self.judge(out)
        self.n += 1

    def judge(self, out):
        with open(out, encoding="utf-8") as f:
            report = json.load(f)
        if self.n % 20 == 0:
            check_schema(out)
        differ("totals", report["totals"], self.plain["totals"])
        self.same += image_of(report).get("dwarf") == "apart"

    def said(self):
        """No decoder may crash: libdw receives only DWARF that it can handle."""
        if self.crashed:
            raise Failed(f"{len(self.crashed)} of {self.n} decoders died: {self.crashed[:5]}")
        return f"{self.same} of {self.n} read on"


def damaged(work, options):
    """The report exists, with everything that could be read."""
    damage = Damage(work, options["compile"](work, options["flags"]), f"{work}/symbols")
    sections = debug_sections(damage.path)
    rng = random.Random(20)
    for _ in range(2000 if "--full" in sys.argv else 100):
        data = bytearray(damage.sane)
        name = mutate(data, sections, rng)
        damage.try_with(data, name)
    return damage.said()


def bombs(work, options):
    """Compressed sections claim to unpack to much more."""
    damage = Damage(work, options["compile"](work, options["flags"]), f"{work}/symbols")
    for name, at, _ in debug_sections(damage.path):
        if damage.sane[at:at + 4] != b"\x01\0\0\0":  # ELFCOMPRESS_ZLIB; small ones are not packed
            continue
        for size in (255 << 20, 257 << 20, 1 << 40, (1 << 64) - 1):
            data = bytearray(damage.sane)
            data[at + 8:at + 16] = size.to_bytes(8, "little")
            damage.try_with(data, f"{name} of {size:#x}")
    if damage.n == 0:
        raise Failed("nothing is packed")
    return damage.said()


def tangled(work, options):
    damage = Damage(work, options["compile"](work, options["flags"]), f"{work}/symbols")
    tree = read_tree(damage.path)
    if not tree[1]:
        raise Failed("readelf shows no references")
    rng = random.Random(21)
    for _ in range(500 if "--full" in sys.argv else 40):
        data = bytearray(damage.sane)
        tangle(data, tree, rng)
        damage.try_with(data, "references")
    return f"{damage.said()}, {len(tree[1])} references"


def scenario(name, check, options):
    for tool in ("gcc", "g++", "addr2line", "objcopy"):
        if not shutil.which(tool):
            return f"skipped: no {tool}"
    with Work(name) as work:
        return check(work, options)


def todo(work):
    cc = {"compile": compile_cc, "flags": ["-g"], "names": [
        "shop::leaf(unsigned long)", "shop::Basket<unsigned long, 8u>::total(unsigned long) const"]}
    c = {"compile": compile_c, "flags": ["-g"]}
    return [
        ("C++", own, cc),
        ("C", own, c),
        ("C++, fixed address, DWARF 4", own, {**cc, "flags": ["-gdwarf-4", "-no-pie"]}),
        ("C++, packed sections", own, {**cc, "flags": ["-g", "-gz=zlib"]}),
        ("C, packed sections", own, {**c, "flags": ["-g", "-gz=zlib"]}),
        ("no DWARF", no_dwarf, {**cc, "flags": []}),
        ("C++, symbols apart", apart, cc),
        ("C, symbols apart", apart, c),
        ("not kept", not_kept, {**cc, "flags": ["-g3"]}),
        ("by the recorder", by_daemon, {**cc, "flags": ["-g3"]}),
        ("damaged", damaged, cc),
        ("damaged, C, packed", damaged, {**c, "flags": ["-g", "-gz=zlib"]}),
        ("bombs", bombs, {**cc, "flags": ["-g", "-gz=zlib"]}),
        ("tangled", tangled, cc),
    ]


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    sys.exit(main(sys.argv, todo, todo, scenario))
