"""Opens exports with their readers: protoc, callgrind_annotate, sqlite3, go tool pprof, llvm-profgen, speedscope,
and Python's json and csv.

A stream of calls is made at random, with the names of a hostile program. What each reader finds must be what
this file computes from the same stream: calls, instructions, time and time on a CPU of each function, turns,
gaps and marks.
"""
import csv
import gzip
import importlib
import io
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict

EXPORT = f"{os.environ.get('PTSNAP_BUILDDIR', '.')}/tests/support/export_stream"

NAMES = [b"main", b"operator<<", b"f(int, char)", b"a;b", b'quote"d', b"it's'); DROP TABLE calls; --",
         b"</script><script>alert(1)", b"esc\x1b[2J", b"line\nfeed", b"tab\tcr\r", b"bad\xff\xfe\x80utf", b"",
         b"\xe2\x80\xaereversed", b"\xc3\xa9t\xc3\xa9", b"=cmd|'/c calc'!A0", b"back\\slash", b"(3) fn=(2) x",
         b"long" * 2000, b"% s %n", b"calls=1 2"]

# Our own words for the few messages of the two formats that are looked at here; the numbers are those that
# Perfetto and pprof publish.
PERFETTO = """syntax = "proto2";
message Trace { repeated Packet packet = 1; }
message Packet {
  optional Bundle ftrace = 1; optional Clocks clocks = 6; optional uint64 timestamp = 8; optional uint32 sequence = 10;
  optional Event event = 11; optional Interned interned = 12; optional uint32 flags = 13; optional uint32 clock = 58;
  optional Track track = 60;
}
message Clocks { repeated Clock clock = 1; optional uint32 primary = 2; }
message Clock { optional uint32 id = 1; optional uint64 timestamp = 2; }
message Interned { repeated Name name = 2; }
message Name { optional uint64 iid = 1; optional string name = 2; }
message Track {
  optional uint64 uuid = 1; optional string name = 2; optional Process process = 3; optional Thread thread = 4;
  optional uint64 parent = 5; optional Counter counter = 8;
}
message Process { optional int32 pid = 1; optional string name = 6; }
message Counter { }
message Thread { optional int32 pid = 1; optional int32 tid = 2; optional string name = 5; }
message Event {
  repeated Note note = 4; optional uint32 type = 9; optional uint64 iid = 10; optional uint64 track = 11;
  optional string name = 23; optional int64 counter = 30;
}
message Note { optional uint64 uint = 3; optional string text = 6; optional string name = 10; }
message Bundle { optional uint32 cpu = 1; repeated Ftrace event = 2; }
message Ftrace { optional uint64 timestamp = 1; optional uint32 pid = 2; optional Switch switch = 4; }
message Switch {
  optional string prev_comm = 1; optional int32 prev = 2; optional int32 prev_prio = 3; optional int64 state = 4;
  optional string next_comm = 5; optional int32 next = 6; optional int32 next_prio = 7;
}
"""

PPROF = """syntax = "proto3";
message Profile {
  repeated Type type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3; repeated Location location = 4;
  repeated Function function = 5; repeated string string = 6; int64 duration = 10; int64 default = 14;
}
message Type { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 string = 2; int64 number = 3; }
message Mapping { uint64 id = 1; uint64 limit = 3; int64 file = 5; bool functions = 7; }
message Location { uint64 id = 1; uint64 mapping = 2; uint64 address = 3; repeated Line line = 4; }
message Line { uint64 function = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 file = 4; int64 line = 5; }
"""


class Failed(Exception):
    pass


def same(what, seen, expected):
    if seen != expected:
        different = [k for k in {**seen, **expected} if seen.get(k) != expected.get(k)] if isinstance(seen, dict) else ""
        raise Failed(f"{what}: {str(seen)[:300]} instead of {str(expected)[:300]} {str(different[:3])[:200]}")


def escaped(name):
    return "".join(chr(c) if 0x20 <= c < 0x7f and c != 0x5c else f"\\x{c:02x}" for c in name)


def clean(name):
    """As ptsnapctl shows a name: the same rules, from Python's own tables."""
    out = ""
    while name:
        for n in range(1, 5):
            try:
                c = name[:n].decode()
                break
            except UnicodeDecodeError:
                c = None
        if c is None:
            out, name = out + f"\\x{name[0]:02x}", name[1:]
        else:
            bad = ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0 or 0x202a <= ord(c) <= 0x202e
            out += (f"\\x{ord(c):02x}" if len(name[:n]) == 1 else f"\\u{{{ord(c):x}}}") if bad else c
            name = name[n:]
    return out if len(out) <= 4095 else out[:4095] + "~"


class Stream:
    """A random stream of calls, and what is true of it."""

    def __init__(self, seed, threads=4, items=6000):
        self.random = random.Random(seed)
        self.lines, self.open, self.now, self.on = [], {}, {}, {}
        self.calls, self.insns, self.wall, self.cpu = Counter(), Counter(), Counter(), Counter()
        self.turns, self.gaps, self.marks, self.switches = [], [], [], 0
        self.paths = Counter()
        self.put("H", 1, 1000, 10**9, 5000)
        self.names = {0: "[unknown]", -1: "[system call]", -2: "[interrupt]"}
        for n, name in enumerate(NAMES, 1):
            self.put("F", n, hex(n * 16), escaped(name), escaped(b"/bin/" + name), escaped(name + b".c"), n)
            self.names[n] = clean(name) or "[unknown]"
        for t in range(1, threads + 1):
            self.put("T", t, 101, 100 + t, escaped(NAMES[-t]))
            self.open[t], self.now[t], self.on[t] = [], 1000, None
        for _ in range(items):
            self.step(self.random.randint(1, threads))
        self.close()

    def put(self, *fields):
        self.lines.append("\t".join(str(f) for f in fields))

    def pass_time(self, t, time):
        if self.open[t]:
            f = self.open[t][-1]
            self.wall[f] += time - self.now[t]
            self.cpu[f] += time - self.now[t] if self.on[t] is not False else 0
        self.now[t] = time

    def step(self, t):
        time = self.now[t] + self.random.choice([0, 1, 7, 1000])
        kind = self.random.choices("BERGM", [50, 45, 8, 2, 5])[0]
        self.pass_time(t, time)
        if kind == "R" or (self.on[t] is False and kind == "B"):
            self.switch(t, time)
        elif self.on[t] is False:
            return
        elif kind == "B" and len(self.open[t]) < 40:
            f = self.random.randint(0, len(NAMES))
            how = self.random.choice(["call", "jump", "signal", "inlined", "found", "syscall", "interrupt"])
            number, f = f, f or {"syscall": -1, "interrupt": -2}.get(how, 0)
            self.open[t].append(f)
            self.paths[(t, *self.open[t])] += 0
            self.put("B", t, time, 0, t, number, how)
        elif kind == "E" and self.open[t]:
            self.end(t, time, "return", self.random.randint(0, 50))
        elif kind == "G":
            # Frames are lost at some gaps, and stay open in others.
            while self.open[t] and len(self.gaps) % 2 == 0:
                self.end(t, time, "lost", 1)
            self.gaps.append((t, time, time + 5, "overflow"))
            self.put("G", t, time, 5, t, "overflow")
        elif kind == "M":
            name = self.random.choice(["ptwrite", "frequency"])
            value = self.random.randint(0, 2**63 - 1)
            self.marks.append((t, time, name, value))
            self.put("M", t, time, t, value, name)

    def switch(self, t, time):
        self.switches += 1
        if self.on[t] is False:
            self.put("R", t, time, t)
            self.on[t], self.since = True, {**getattr(self, "since", {}), t: time}
        else:
            self.put("S", t, time, t, "blocked")
            begun = self.since[t] if self.on[t] else 1000
            self.turns.append((t, begun, time, "blocked"))
            self.on[t] = False

    def end(self, t, time, how, insns):
        self.insns[self.open[t][-1]] += insns
        self.calls[self.open[t][-1]] += 1
        self.paths[(t, *self.open[t])] += insns
        self.open[t].pop()
        self.put("E", t, time, 0, t, how, insns)

    def close(self):
        for t in self.open:
            while self.open[t]:
                self.end(t, self.now[t], "open", 2)
            if self.on[t]:
                self.turns.append((t, self.since[t], 1000 + 10**9, "unknown"))
        self.put("Z", sum(self.calls.values()), 0)

    def gap_time(self):
        """How long the gaps of each thread are together, by the thread's title."""
        out, until = Counter(), Counter()
        for t, begin, end, _ in self.gaps:
            out[f"{clean(NAMES[-t])} ({100 + t})"] += max(end - max(begin, until[t]), 0)
            until[t] = max(until[t], end)
        return dict(out)

    def gap_slices(self):
        """The gaps as slices of a track for each thread, (thread, begin, end): what lies in an earlier one is cut."""
        out, until = [], Counter()
        for t, begin, end, _ in self.gaps:
            out.append((100 + t, max(begin, until[t]), max(end, until[t])))
            until[t] = max(until[t], end)
        return sorted(out)

    def by_name(self, counter):
        out = Counter()
        for f, v in counter.items():
            out[self.names[f]] += v
        return {k: v for k, v in out.items() if v}


def export(stream, form):
    run = subprocess.run([EXPORT, form], input="\n".join(stream.lines).encode() + b"\n", capture_output=True)
    if run.returncode:
        raise Failed(f"{form}: {run.stderr.decode()}")
    same("told", run.stderr.decode(), f"calls {sum(stream.calls.values())} cut 0 folded 0\n")
    return run.stdout


def decode(proto, message, data, work):
    """What protoc reads, as nested lists of (field, value)."""
    with open(f"{work}/it.proto", "w", encoding="ascii") as f:
        f.write(proto)
    run = subprocess.run(["protoc", f"-I{work}", f"--decode={message}", f"{work}/it.proto"], input=data,
                         capture_output=True)
    if run.returncode or run.stderr:
        raise Failed(f"protoc: {run.stderr.decode()[:300]}")
    top = []
    stack = [top]
    for line in run.stdout.decode().splitlines():
        line = line.strip()
        if line.endswith("{"):
            stack.append([])
            stack[-2].append((line[:-2], stack[-1]))
        elif line == "}":
            stack.pop()
        else:
            key, value = line.split(": ", 1)
            if re.fullmatch(r"\d+", key):
                raise Failed(f"field {key} is not known")
            stack[-1].append((key, unquoted(value) if value.startswith('"') else int(value) if value not in
                              ("true", "false") else value == "true"))
    return top


def unquoted(text):
    """A string of protobuf's text format."""
    simple = {"n": 10, "t": 9, "r": 13, '"': 34, "'": 39, "\\": 92}
    out, i = bytearray(), 1
    while i < len(text) - 1:
        if text[i] != "\\":
            out += text[i].encode()
            i += 1
        elif text[i + 1] in simple:
            out.append(simple[text[i + 1]])
            i += 2
        else:
            out.append(int(text[i + 1:i + 4], 8))
            i += 4
    return out.decode()


def speedscope(s, _work):
    doc = json.loads(export(s, "speedscope"))
    frames = [f["name"] for f in doc["shared"]["frames"]]
    calls, wall, gaps = Counter(), Counter(), Counter()
    for profile in doc["profiles"]:
        stack, last = [], 0
        for e in profile["events"]:
            inner = [f for f in stack if frames[f] not in ("[off CPU]", "[gap]")]
            if inner:
                wall[frames[inner[-1]]] += e["at"] - last
            if "[gap]" in [frames[f] for f in stack]:
                gaps[profile["name"]] += e["at"] - last
            if e["at"] < last or e["at"] > profile["endValue"]:
                raise Failed(f"{e} behind {last}")
            last = e["at"]
            if e["type"] == "O":
                stack.append(e["frame"])
                calls[frames[e["frame"]]] += 1
            elif stack.pop() != e["frame"]:
                raise Failed(f"{e} does not close the innermost frame")
        if stack:
            raise Failed("frames stay open")
    for own in ("[off CPU]", "[gap]"):
        calls.pop(own, 0)
    same("gaps", dict(gaps), s.gap_time())
    same("calls", dict(calls), s.by_name(s.calls))
    same("time", {k: v for k, v in wall.items() if v}, s.by_name(s.wall))


def slices_of(packets, names):
    """As trace_processor reads them: in the order of time, an end is of the innermost slice of its track.
    {track: [(name, begin, end, nanoseconds outside of inner slices)]}."""
    out, stacks, last = defaultdict(list), defaultdict(list), {}
    for p in sorted((p for p in packets if "event" in p), key=lambda p: p["timestamp"]):
        e, time = dict(p["event"]), p["timestamp"]
        stack = stacks[e["track"]]
        if stack:
            stack[-1][2] += time - last[e["track"]]
        last[e["track"]] = time
        if e["type"] == 1:
            stack.append([e.get("name") or names[e["iid"]], time, 0])
        elif e["type"] == 2:
            name, begin, own = stack.pop()
            out[e["track"]].append((name, begin, time, own))
    return out


def perfetto_slices(s, trace, tracks, names):
    slices = slices_of([dict(p) for _, p in trace], names)
    of_thread = {uuid: dict(t["thread"])["tid"] for uuid, t in tracks.items() if "thread" in t}
    wall, gaps = Counter(), []
    for uuid, found in slices.items():
        for name, begin, end, own in found:
            if uuid in of_thread:
                wall[name] += own
            elif tracks[uuid].get("parent") in of_thread:
                gaps.append((of_thread[tracks[uuid]["parent"]], begin, end))
    same("time", {k: v for k, v in wall.items() if v}, s.by_name(s.wall))
    same("slices of gaps", sorted(gaps), s.gap_slices())


def perfetto(s, work):
    names, stacks, counts = {}, defaultdict(list), Counter()
    calls, insns, gaps, marks, types = Counter(), Counter(), 0, [], Counter()
    trace = decode(PERFETTO, "Trace", export(s, "perfetto"), work)
    tracks = {}
    for _, p in trace:
        p = dict(p)
        for _, n in p.get("interned", []):
            names[dict(n)["iid"]] = dict(n)["name"]
        if "track" in p:
            tracks[dict(p["track"])["uuid"]] = dict(p["track"])
        counts["switch"] += len(p.get("ftrace", [0])) - 1
        if "event" not in p:
            continue
        e, notes = dict(p["event"]), {dict(n)["name"]: dict(n) for k, n in p["event"] if k == "note"}
        if e["track"] not in tracks:
            raise Failed("an event without a track")
        types[e["type"]] += 1
        if e["type"] == 1:
            stacks[e["track"]].append(e.get("iid"))
            gaps += e.get("name") == "overflow"
            if "iid" in e:
                calls[names[e["iid"]]] += 1
        elif e["type"] == 2:
            stacks[e["track"]].pop()
        elif e.get("name") != "trigger":
            marks.append(notes["value"]["uint"] if "value" in notes else e["counter"])
    if any(stacks.values()):
        raise Failed("slices stay open")
    same("calls", dict(calls), s.by_name(s.calls))
    same("gaps", gaps, len(s.gaps))
    same("marks", Counter(marks), Counter(v for *_, v in s.marks))
    same("threads", {t["thread"][1][1] for t in tracks.values() if "thread" in t}, {101, 102, 103, 104})
    same("processes", {dict(t["process"])["pid"]: dict(t["process"])["name"] for t in tracks.values() if "process" in t},
         {101: clean(NAMES[-1])})
    perfetto_slices(s, trace, tracks, names)
    same("switches", counts["switch"], s.switches)
    same("begins and ends", types[1], types[2])


def pprof(s, work):
    profile = decode(PPROF, "Profile", gzip.decompress(export(s, "pprof")), work)
    strings = [v for k, v in profile if k == "string"]
    functions = {dict(f)["id"]: strings[dict(f).get("name", 0)] for k, f in profile if k == "function"}
    locations = {dict(f)["id"]: dict(dict(f)["line"])["function"] for k, f in profile if k == "location"}
    mappings = {dict(f)["id"] for k, f in profile if k == "mapping"}
    sums = [Counter() for _ in range(4)]
    same("first string", strings[0], "")
    for f in (dict(f) for k, f in profile if k == "location"):
        if f.get("mapping", 0) and f["mapping"] not in mappings:
            raise Failed("no such mapping")
    for sample in (v for k, v in profile if k == "sample"):
        leaf = next(v for k, v in sample if k == "location")
        for i, v in enumerate([v for k, v in sample if k == "value"]):
            sums[i][functions[locations[leaf]]] += v
    for what, seen, truth in zip(("calls", "insns", "cpu", "wall"), sums, (s.calls, s.insns, s.cpu, s.wall)):
        same(what, {k: v for k, v in seen.items() if v}, s.by_name(truth))


def go_pprof(s, work):
    """pprof itself, which must find the same numbers without our words for its format."""
    with open(f"{work}/it.pb.gz", "wb") as f:
        f.write(export(s, "pprof"))
    for index, unit, truth in (("calls", "count", s.calls), ("instructions", "count", s.insns), ("cpu", "ns", s.cpu),
                               ("wall", "ns", s.wall)):
        run = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", "-edgefraction=0",
                              f"-sample_index={index}", f"-unit={unit}", f"{work}/it.pb.gz"], capture_output=True,
                             env={**os.environ, "HOME": work, "PPROF_TMPDIR": work})
        if run.returncode:
            raise Failed(f"go tool pprof: {run.stderr.decode()[:300]}")
        seen = Counter()
        for line in run.stdout.decode().split("flat%   sum%", 1)[1].splitlines()[1:]:
            flat, *_, name = line.split(maxsplit=5)
            seen[name.removesuffix(" (inline)")] += int(re.sub("[^0-9]", "", flat))
        same(index, {k: v for k, v in seen.items() if v}, s.by_name(truth))


def speedscope_itself(_s, work):
    """speedscope's own importer: its table of functions for a stream of one thread."""
    s = Stream(1, threads=1, items=2000)
    with open(f"{work}/it.json", "wb") as f:
        f.write(export(s, "speedscope"))
    here = os.path.dirname(os.path.abspath(__file__))
    run = subprocess.run(["node", f"{here}/speedscope_reader.mjs", browser(), speedscope_directory(), f"{work}/it.json", work],
                         capture_output=True, text=True)
    if run.returncode:
        raise Failed(f"speedscope: {run.stderr[:500]}")
    seen, gap, truth = Counter(), s.gap_time(), s.by_name(s.wall)
    for r in json.loads(run.stdout):
        seen[r["name"]] += r["self"]
    if "[gap]" not in seen or "[off CPU]" not in seen:
        raise Failed(f"no gap or time without a CPU in {list(seen)}")
    # speedscope takes the time of our own frames from the functions around them; its figures have two decimals.
    if not gap or abs(sum(seen.values()) - sum(truth.values())) > sum(gap.values()) + 10 * len(seen):
        raise Failed(f"{sum(seen.values())} ns instead of {sum(truth.values())}")
    for name, ns in truth.items():
        if seen[name] > ns + 20:
            raise Failed(f"{name}: {seen[name]} ns of {ns}")
    same("functions", set(seen) - {"[gap]", "[off CPU]"}, set(s.by_name(s.calls)))


def browser():
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def speedscope_directory():
    """The npm package: $PTSNAP_SPEEDSCOPE, or where npm has it for all."""
    places = [os.environ.get("PTSNAP_SPEEDSCOPE"), "/usr/local/lib/node_modules/speedscope", "/usr/lib/node_modules/speedscope"]
    return next((p for p in places if p and os.path.exists(f"{p}/dist/release/index.html")), None)


def llvm_profgen():
    return next(filter(None, map(shutil.which, ["llvm-profgen"] + [f"llvm-profgen-{n}" for n in range(30, 13, -1)])), None)


def collapsed(s, _work):
    for form, truth in (("collapsed", s.cpu), ("collapsed=wall", s.wall), ("collapsed=insns", s.insns)):
        seen = Counter()
        for line in export(s, form).decode().splitlines():
            stack, weight = re.fullmatch(r"(.*)\s+?(\d+)", line).groups()
            if any(ord(c) < 0x20 for c in line):
                raise Failed("a control character")
            seen[stack.split(";")[-1].replace("\\x3b", ";")] += int(weight)
        same(form, dict(seen), s.by_name(truth))


def callgrind(s, work):
    with open(f"{work}/callgrind.out", "wb") as f:
        f.write(export(s, "callgrind"))
    seen = [Counter() for _ in range(3)]
    run = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", f"{work}/callgrind.out"],
                         capture_output=True)
    if run.returncode:
        raise Failed(f"callgrind_annotate: {run.stderr.decode()[:300]}")
    total = None
    for line in run.stdout.decode().splitlines():
        m = re.match(r" *([\d,]+) *(?:\([ \d.]+%\))? +([\d,]+) *(?:\([ \d.]+%\))? +([\d,]+) *(?:\([ \d.]+%\))? +(.*)", line)
        if not m:
            continue
        values = [int(v.replace(",", "")) for v in m.groups()[:3]]
        if "PROGRAM TOTALS" in line:
            total = values
            continue
        for counter, v in zip(seen, values):
            counter[m.group(4)] += v
    same("totals", total, [sum(c.values()) for c in (s.insns, s.cpu, s.wall)])
    for i, truth in enumerate((s.insns, s.cpu, s.wall)):
        same(f"functions' sum of event {i}", sum(seen[i].values()), total[i])
        mains = sum(v for k, v in seen[i].items() if re.match(r"main\.c:main(?: |$)", k))
        same(f"event {i} of main", mains, s.by_name(truth)["main"])


def tables_of_sql(s, work):
    with open(f"{work}/it.sql", "wb") as f:
        f.write(export(s, "sql"))
    def ask(query):
        run = subprocess.run(["sqlite3", "-json", f"{work}/it.db", query], capture_output=True)
        return json.loads(run.stdout or b"[]")
    with open(f"{work}/it.sql", "rb") as f:
        run = subprocess.run(["sqlite3", "-bail", f"{work}/it.db"], stdin=f, capture_output=True)
    if run.returncode or run.stderr or run.stdout:
        raise Failed(f"sqlite3: {run.stderr.decode()[:300]}")
    rows = ask("SELECT name, count(*) n, sum(self_insns) i, sum(self_wall_ns) w, sum(self_cpu_ns) c"
               " FROM calls JOIN functions USING(function) GROUP BY name")
    for key, truth in (("n", s.calls), ("i", s.insns), ("w", s.wall), ("c", s.cpu)):
        same(key, {r["name"]: r[key] for r in rows if r[key]}, s.by_name(truth))
    same("insns of all", ask("SELECT sum(insns) n FROM calls WHERE parent = 0")[0]["n"], sum(s.insns.values()))
    same("orphans", ask("SELECT count(*) n FROM calls c LEFT JOIN calls p ON p.id = c.parent WHERE c.parent > 0 AND"
                        " (p.id IS NULL OR p.begin_ns > c.begin_ns OR p.end_ns < c.end_ns"
                        " OR p.depth + 1 <> c.depth)")[0]["n"], 0)
    same("turns", sorted((r["thread"], r["begin_ns"], r["end_ns"], r["why"]) for r in ask("SELECT * FROM turns")),
         sorted(s.turns))
    same("gaps", [(r["thread"], r["begin_ns"], r["end_ns"], r["kind"]) for r in ask("SELECT * FROM gaps")], s.gaps)
    same("marks", [(r["thread"], r["time_ns"], r["kind"], r["value"]) for r in ask("SELECT * FROM marks")], s.marks)


def tables(s, _work):
    def rows(form):
        text = export(s, form).decode()
        if re.search(r"(?:^|,|\n)\"?[=+@-]", text):
            raise Failed("a cell that is a formula")
        return list(csv.DictReader(io.StringIO(text, newline="")))
    calls, cpu = Counter(), Counter()
    for r in rows("csv"):
        name = r["function"].replace("\\x3d", "=")
        calls[name] += 1
        cpu[name] += int(r["self_cpu_ns"])
        same("span", int(r["end_ns"]) - int(r["begin_ns"]), int(r["wall_ns"]))
    same("calls", dict(calls), s.by_name(s.calls))
    same("cpu", {k: v for k, v in cpu.items() if v}, s.by_name(s.cpu))
    same("turns", sorted((int(r["tid"]) - 100, int(r["begin_ns"]), int(r["end_ns"]), r["why"]) for r in
                         rows("csv-turns")), sorted(s.turns))
    same("gaps", [(int(r["begin_ns"]), r["kind"]) for r in rows("csv-gaps")], [(g[1], g[3]) for g in s.gaps])
    same("marks", [(int(r["time_ns"]), r["kind"], int(r["value"])) for r in rows("csv-marks")],
         [m[1:] for m in s.marks])


def export_slice(s, form, options):
    run = subprocess.run([EXPORT, form, *options], input="\n".join(s.lines).encode() + b"\n", capture_output=True)
    if run.returncode:
        raise Failed(f"{form} {options}: {run.stderr.decode()}")
    return run.stdout


def pprof_calls(data, work):
    profile = decode(PPROF, "Profile", gzip.decompress(data), work)
    return sum(next(v for k, v in sample if k == "value") for key, sample in profile if key == "sample")


def sql_calls(data, _work):
    db = sqlite3.connect(":memory:")
    db.executescript(data.decode())
    return db.execute("SELECT count(*) FROM calls").fetchone()[0]


# How many calls are in a file of each format.
CALLS_IN = {
    "csv": lambda data, _: sum(1 for _ in csv.DictReader(io.StringIO(data.decode(), newline=""))),
    "sql": sql_calls,
    "speedscope": lambda data, _: sum(e["type"] == "O" and e["frame"] > 1 for p in json.loads(data)["profiles"]
                                      for e in p["events"]),
    "perfetto": lambda data, work: sum("iid" in dict(dict(p).get("event", [])) for _, p in
                                       decode(PERFETTO, "Trace", data, work)),
    "pprof": pprof_calls,
}


def slices(s, work):
    """What three spans have together is what the whole has; the same for the four threads."""
    def sums(form, *options):
        run = subprocess.run([EXPORT, form, *options], input="\n".join(s.lines).encode() + b"\n", capture_output=True)
        if run.returncode:
            raise Failed(f"{form} {options}: {run.stderr.decode()}")
        total = Counter()
        if form == "csv-turns":
            for r in csv.DictReader(io.StringIO(run.stdout.decode(), newline="")):
                total[r["tid"]] += int(r["end_ns"]) - int(r["begin_ns"])
            return total
        for line in run.stdout.decode().splitlines():
            stack, weight = line.rsplit(" ", 1)
            total[stack] += int(weight)
        return total
    spans = [["to=100us"], ["from=100us", "to=301us"], ["from=301us"]]
    threads = [[f"tid={t}"] for t in range(101, 105)]
    for form in ("collapsed", "collapsed=wall", "csv-turns"):
        whole = dict(sums(form))
        same(f"{form} of spans", dict(sum((sums(form, *o) for o in spans), Counter())), whole)
        same(f"{form} of threads", dict(sum((sums(form, *o) for o in threads), Counter())), whole)
    same("calls of main", {k.split(";")[1] for k in sums("collapsed", "function=main")}, {"main"})
    for options in (["tid=101"], ["from=100us", "to=301us"], ["function=main"], ["cpu=3", "to=500us"]):
        counts = {form: count(export_slice(s, form, options), work) for form, count in CALLS_IN.items()}
        if len(set(counts.values())) != 1 or not 10 < counts["csv"] < sum(s.calls.values()):
            raise Failed(f"calls with {options}: {counts} of {sum(s.calls.values())}")


def brstack(_s, _work):
    lines, expected = ["# cpu 0 pid 1 tid 1"], []
    for i in range(1, 200):
        if i % 50 == 0:
            lines.append("# gap overflow")
        if i % 70 == 0:
            lines.append(f"{i:x} 0")
            continue
        lines.append(f"{i:x} {i + 4096:x}")
        expected.append((i, i + 4096))
    run = subprocess.run([EXPORT, "brstack"], input="\n".join(lines).encode() + b"\n", capture_output=True)
    seen = []
    for line in run.stdout.decode().splitlines():
        m = re.fullmatch(r" +([0-9a-f]+)((?: 0x[0-9a-f]+/0x[0-9a-f]+/-/-/-/0){1,32})", line)
        if not m:
            raise Failed(line)
        stack = [tuple(int(v, 16) for v in b.split("/")[:2]) for b in m.group(2).split()]
        same("address", int(m.group(1), 16), stack[0][1])
        seen += reversed(stack)
    same("branches", seen, expected)


def record(work):
    """Records a program with threads: the module that did it, the program and the bundle."""
    sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../scenario")
    common = importlib.import_module("common")
    program = f"{common.GUESTS}/guest_threads"
    run = common.Recording(work, [program], common.TIMING["cyc"], ["--emu-cpus=2"], aux="4M")
    run.record(0, 0)
    return common, program, run.bundles()[-1]


def profgen(work):
    """llvm-profgen finds branches of the program where it has the program's mapping; it leaves out those next to other files."""
    common, program, bundle = record(work)
    text = common.run([common.PTSNAPCTL, "export", "--format=brstack", bundle])
    with open(f"{work}/it.perfscript", "w", encoding="utf-8") as f:
        f.write(text)
    run = subprocess.run([llvm_profgen(), f"--perfscript={work}/it.perfscript", f"--binary={program}", f"--output={work}/it.prof",
                          "--format=text", "--skip-symbolization"], capture_output=True, text=True)
    if run.returncode or "error" in run.stderr:
        raise Failed(f"llvm-profgen: {run.stderr[:300]}")
    maps = [(int(b, 16), int(b, 16) + int(n, 16), int(o, 16)) for b, n, o, path in
            re.findall(r"^PERF_RECORD_MMAP2 .*\[0x([0-9a-f]+)\((?:0x)?([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) .*: r-xp (.*)$", text, re.M)
            if os.path.basename(path) == os.path.basename(program)]
    truth = Counter()
    for pair in re.findall(r"0x([0-9a-f]+)/0x([0-9a-f]+)/-/-/-/0", text):
        a, b = (next((int(v, 16) - begin + offset for begin, end, offset in maps if begin <= int(v, 16) < end), None) for v in pair)
        if a is not None and b is not None:
            truth[(a, b)] += 1
    with open(f"{work}/it.prof", encoding="utf-8") as f:
        seen = {(int(a, 16), int(b, 16)): int(n) for a, b, n in re.findall(r"^([0-9a-f]+)->([0-9a-f]+):(\d+)$", f.read(), re.M)}
    # Some versions count from the beginning of the first executable segment.
    ways = [{(a + base, b + base): n for (a, b), n in seen.items()} for base in sorted({0, *(offset for _, _, offset in maps)})]
    wrong = [[b for b in way if way[b] > truth[b]] for way in ways]
    if all(wrong):
        raise Failed(f"branches that are not in the file: {wrong[0][:3]} of {truth.most_common(3)}")
    if 10 * sum(seen.values()) < 9 * sum(truth.values()) or len(seen) < 5:
        raise Failed(f"only {sum(seen.values())} of {sum(truth.values())} branches, {len(seen)} different ones")


def branch_slices(common, bundle, report):
    """Branch stacks of a slice are those of the whole, and no stack goes over what the slice leaves out."""
    def stacks(*options):
        text = common.run([common.PTSNAPCTL, "export", "-q", "--format=brstack", *options, bundle])
        return [[tuple(int(v, 16) for v in b.split("/")[:2]) for b in reversed(line.split()[1:])]
                for line in text.splitlines() if line.startswith(" ")]
    def together(lists):
        return sum((Counter(b for s in stacks for b in s) for stacks in lists), Counter())
    whole = stacks()
    follows = {pair for s in whole for pair in zip(s, s[1:])} | {(a[-1], b[0]) for a, b in zip(whole, whole[1:])}
    tids = sorted({t["tid"] for t in report["threads"]})
    for what, slices in (("threads", [[f"--tid={t}"] for t in tids]), ("CPUs", [["--cpu=0"], ["--cpu=1"]])):
        parts = [stacks(*s) for s in slices]
        same(f"branches of {what}", together(parts), together([whole]))
        if sum(map(bool, parts)) < 2:
            raise Failed(f"the branches are not of two {what}")
    name = max(report["functions"], key=lambda f: f["calls"])["name"]
    some = stacks(f"--function={name}")
    if not some or not together([some]) < together([whole]):
        raise Failed(f"branches of {name}: {len(some)} stacks")
    wrong = [p for s in some for p in zip(s, s[1:]) if p not in follows]
    if wrong:
        raise Failed(f"{wrong[0]} do not follow one another")


def recorded(work):
    """A recorded program with threads: what the tables have is what the report has, and every format can be made."""
    common, _, bundle = record(work)
    report = json.loads(common.run([common.PTSNAPCTL, "decode", "--json=short", bundle]))
    db = sqlite3.connect(":memory:")
    db.executescript(common.run([common.PTSNAPCTL, "export", "--format=sql", bundle]))
    insns, calls = Counter(), Counter()
    for f in report["functions"]:
        insns[f["name"]] += f["selfInstructions"]
        calls[f["name"]] += f["calls"]
    rows = db.execute("SELECT name, sum(self_insns), count(*), sum(began = 'call') FROM calls JOIN functions"
                      " USING(function) GROUP BY name").fetchall()
    same("instructions", {r[0]: r[1] for r in rows if r[1]}, {k: v for k, v in insns.items() if v})
    # A report does not count all jumps to a function as calls.
    only = {r[0]: r[3] for r in rows if r[2] == r[3]}
    same("calls", only, {k: calls[k] for k in only})
    if len(only) < 100:
        raise Failed(f"only {len(only)} functions")
    same("turns", db.execute("SELECT count(*) FROM turns").fetchone()[0], len(report["turns"]))
    same("gaps", db.execute("SELECT count(*) FROM gaps").fetchone()[0], len(report["gaps"]))
    branch_slices(common, bundle, report)
    total = db.execute("SELECT count(*) FROM calls").fetchone()[0]
    for name in ("x.speedscope.json", "x.pftrace", "x.pb.gz", "x.collapsed", "x.callgrind", "x.csv"):
        common.run([common.PTSNAPCTL, "export", "-o", f"{work}/{name}", bundle])
    with open(f"{work}/x.csv", encoding="utf-8", newline="") as f:
        same("rows", sum(1 for _ in csv.DictReader(f)), total)
    with open(f"{work}/x.speedscope.json", encoding="utf-8") as f:
        doc = json.load(f)
    same("begins", sum(e["type"] == "O" and e["frame"] > 1 for p in doc["profiles"] for e in p["events"]), total)


def main():
    if not os.path.exists(EXPORT):
        print("1..0 # SKIP no export_stream")
        return 0
    speedscope_needs = ("node" if not shutil.which("node") else None if browser() and speedscope_directory() else
                        "Chromium, or no npm package speedscope")
    profgen_needs = "qemu-x86_64" if not shutil.which("qemu-x86_64") else None if llvm_profgen() else "llvm-profgen"
    needs = lambda program: None if shutil.which(program) else program
    cases = [(speedscope, None), (perfetto, needs("protoc")), (pprof, needs("protoc")), (collapsed, None),
             (callgrind, needs("callgrind_annotate")), (tables_of_sql, needs("sqlite3")), (tables, None), (slices, None),
             (brstack, None), (recorded, needs("qemu-x86_64")), (go_pprof, needs("go")),
             (speedscope_itself, speedscope_needs), (profgen, profgen_needs)]
    # As arguments: the names of some cases.
    cases = [c for c in cases if len(sys.argv) == 1 or c[0].__name__ in sys.argv[1:]]
    print(f"1..{len(cases)}")
    failed = 0
    for number, (case, missing) in enumerate(cases, 1):
        if missing:
            print(f"ok {number} - {case.__name__} # SKIP no {missing}")
            continue
        work = subprocess.check_output(["mktemp", "-d", "/tmp/ptsnap-export.XXXXXX"], text=True).strip()
        try:
            if case in (recorded, profgen):
                case(work)
            for seed in range(0 if case in (recorded, profgen) else 1 if case is speedscope_itself else 3):
                shutil.rmtree(work)
                os.mkdir(work)
                case(Stream(seed), work)
            print(f"ok {number} - {case.__name__}", flush=True)
        except Exception as e:  # also common.Failed
            failed += 1
            print(f"not ok {number} - {case.__name__}\n# {e}", flush=True)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
