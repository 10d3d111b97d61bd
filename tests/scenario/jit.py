"""Code in memory that belongs to no file: the recorder reads it at the snapshot, and it decodes
like any other code, with names from the perf map. Where the code is gone or was rewritten, there is
a gap, and nothing else is lost or invented. Prints TAP. `jit.py NAME...` runs only those.
"""
import json
import os
import shutil
import sys
import time

from common import (GUESTS, PTSNAPCTL, TIMING, Failed, Recording, Snapshot, Work, decode, main,
                    run, threads_of)

# Compiled before the first snapshot; the same three functions run until the end, in one thread.
RECORDINGS = 3
FIBONACCI = ("const fs = require('fs');\n"
             "function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }\n"
             "function addAll(a) { let s = 0; for (const x of a) s += x % 7 ? x : 1; return s; }\n"
             "const list = Array.from({length: 500}, (_, i) => i);\n"
             "let s = 0;\n"
             "for (let round = 0; !fs.existsSync(process.argv[2]); round++) {\n"
             "  for (let i = 0; i < 40; i++) s += fibonacci(14) + addAll(list);\n"
             "  if (round == 12) fs.writeFileSync(process.argv[2] + '.ready', '');\n"
             "}\n"
             "fs.unlinkSync(`/tmp/perf-${process.pid}.map`);\n"
             "console.log(s > 0);\n")


def report_of(bundle):
    return json.loads(run(decode(bundle, "report", "--json=short")))


def shares(report):
    """Returns {function name: instructions}, bytes of gaps, and bytes altogether."""
    names = {f["name"]: f["selfInstructions"] for f in report["functions"]}
    gaps = sum(g["bytes"] or 0 for g in report["gaps"])
    return names, gaps, report["coverage"]["bytes"]


def named(report, wanted):
    names, _, _ = shares(report)
    for want in wanted:
        if not any(want in name and n > 0 for name, n in names.items()):
            raise Failed(f"no function {want}: {sorted(names, key=names.get)[-12:]}")


class ReadyRecording(Recording):
    """Takes the snapshot when COMMAND reports that its code is made."""

    def take(self, daemon, snapshots, pause):
        end = time.monotonic() + 120
        while not os.path.exists(f"{self.stop}.ready") and daemon.poll() is None:
            time.sleep(0.05)
            if time.monotonic() > end:
                raise Failed("the command made no code")
        super().take(daemon, snapshots, pause)


def live(work, command, options):
    """Records COMMAND. Returns a bundle of a snapshot while the command runs, and one of its
    end."""
    r = ReadyRecording(work, [*command, f"{work}/stop"], TIMING["mtc"], [f"--emu-cpus={options.get('cpus', 1)}"],
                  aux=options.get("aux", "256K"), stop=f"{work}/stop")
    status = r.record(1, 0.1)
    if status != 0:
        raise Failed(f"exit status {status}")
    return r, r.bundles()


class Changing(Failed):
    """The snapshot came while a program was writing code."""


def scenario(name, command, options):
    if "/" not in command[0] and not shutil.which(command[0]):
        return f"skipped: no {command[0]}"
    for attempt in range(RECORDINGS):
        try:
            return once(name, command, options)
        except Changing:
            if attempt + 1 == RECORDINGS:
                raise


def once(name, command, options):
    with Work(name) as work:
        r, bundles = live(work, command, options)
        s = Snapshot(bundles[0], r.truth)
        check = options["check"]
        said = check(s, bundles, options)
        return said


def check_reasons(report, reasons):
    """The code that may have changed is that in memory, for one of REASONS; without reasons, all
    code is exact."""
    changed = report["coverage"]["mayHaveChanged"]
    if set(changed) != set(reasons):
        raise Changing(f"code may have changed: {changed}")
    if not reasons and report["coverage"]["exactPercent"] != 100:
        raise Failed(f"exact {report['coverage']['exactPercent']} %")


def check_exact(s, bundles, options):
    """All instructions are decoded, and functions have their current names."""
    n = s.check_equal()
    report = report_of(s.bundle)
    named(report, options["names"])
    check_reasons(report, options["reasons"])
    for not_this in options.get("no_names", ()):
        if any(not_this in f["name"] for f in report["functions"]):
            raise Failed(f"the name {not_this} was replaced by a later name, but still appears")
    return f"{n} instructions"


def check_near(s, bundles, options):
    """Nearly all instructions are decoded, because the program may recompile code at any time."""
    allowed = ("code-changed", "anonymous")
    report = report_of(s.bundle)
    named(report, options["names"])
    _, gaps, whole = shares(report)
    if gaps * 20 > whole:
        raise Failed(f"{gaps} of {whole} bytes are gaps: {s.errors}")
    if s.errors:
        if s.unexpected(allowed):
            raise Failed(f"gaps {s.errors}")
        return f"{gaps} of {whole} bytes are gaps: {s.errors}"
    return f"{s.check_equal()} instructions"


def check_gone(s, bundles, options):
    """The code is missing: each call into it is a gap, and everything else is exact."""
    n = s.check_subset(("anonymous",))
    if "anonymous" not in s.errors:
        raise Failed(f"{s.name}: no gap anonymous: {s.errors}")
    named(report_of(s.bundle), ["ahead_of_time"])
    return f"{n} instructions, {s.errors['anonymous']} stays"


def check_changed(s, bundles, options):
    """Packets contradict rewritten code: the gaps say so, and no other kind appears."""
    if s.unexpected(("code-changed",)) or "code-changed" not in s.errors:
        raise Failed(f"gaps {s.errors}")
    report = report_of(s.bundle)
    named(report, options["names"])
    check_reasons(report, ["memory"])
    return f"{s.errors}, exact {report['coverage']['exactPercent']} %"


def memory_of(report):
    """Returns the instructions of code in memory of no file."""
    return sum(i["instructions"] for i in report["images"] if i["path"] == "//anon")


def check_self(s, bundles, options):
    """No packet contradicts code that was written over, so other instructions were decoded than
    were executed. The report counts all of them apart, and the terminal shows no plain 100 %."""
    if s.errors:
        raise Failed(f"gaps {s.errors}")
    ours = sum(n for n, _ in threads_of(s.summary["threads"]).values())
    truth = sum(n for n, _ in s.executed(s.spans).values())
    report = report_of(s.bundle)
    c, total, memory = report["coverage"], report["totals"]["instructions"], memory_of(report)
    if ours == truth or memory == 0:
        raise Failed(f"{ours} instructions decoded, {truth} executed, {memory} in memory")
    for o in (c, s.summary):
        if o["mayHaveChanged"] != {"memory": memory} or o["instructionsExact"] != total - memory:
            raise Failed(f"{memory} of {total} instructions in memory: {o}")
        if not 0 < o["exactPercent"] < 100:
            raise Failed(f"exact {o['exactPercent']} %")
    if total - memory > truth:
        raise Failed(f"{total - memory} instructions are exact, but {truth} were executed")
    said = run([PTSNAPCTL, "decode", "--json=off", s.bundle])
    for part in (f"Coverage  100.00 %, exact {c['exactPercent']:.2f} %", "Not exact memory "):
        if part not in said:
            raise Failed(f"not on the terminal: {part}: {said[:900]}")
    return (f"{ours} instructions decoded, {truth} executed; {memory} are not exact, "
            f"{c['exactPercent']} % are")


def check_dump(s, bundles, options):
    """Code was written over again and again, and a dump says when: all instructions are decoded as
    they were executed, each with the name of its time."""
    n = s.check_equal()
    report = report_of(s.bundle)
    named(report, options["names"])
    c, dumped = report["coverage"], 0
    for i in report["images"]:
        if i.get("jitdump") == {"times": True, "whole": True, "dropped": 0}:
            dumped += i["instructions"]
    doubted = sum(c["mayHaveChanged"].values())
    if set(c["mayHaveChanged"]) - {"memory"} or dumped == 0:
        raise Failed(f"{dumped} instructions in dumped code, not exact: {c['mayHaveChanged']}")
    # The longer before the trigger, the less exactly the dump's times are known.
    if doubted * 5 > dumped:
        raise Changing(f"{dumped} instructions in dumped code, {doubted} not exact")
    return f"{n} instructions, {dumped} of them in dumped code, {doubted} of them not exact"


def check_file(s, bundles, options):
    """The code of a file that was written over in memory, or whose file changed meanwhile, is
    counted apart; the program's own is exact."""
    if s.errors:
        raise Failed(f"gaps {s.errors}")
    report = report_of(s.bundle)
    c = report["coverage"]
    code = sum(i["instructions"] for i in report["images"] if i["path"].endswith("/stop.code"))
    if code == 0 or c["mayHaveChanged"] != {options["reason"]: code}:
        raise Failed(f"{code} instructions of the file: {c}")
    return f"{code} instructions are not exact, {c['exactPercent']} % are"


def check_after(s, bundles, options):
    """Memory of a process that has exited cannot be read."""
    last = Snapshot(bundles[-1], s.truth)
    if len(bundles) < 2:
        raise Failed("no snapshot at the command's end")
    return check_gone(last, bundles, options)


def short_list(work):
    script = f"{work}/fibonacci.js"
    with open(script, "w", encoding="utf-8") as f:
        f.write(FIBONACCI)
    guest = f"{GUESTS}/guest_jit"
    names = ["jit_loop", "jit_odd", "jit_caller"]
    return [
        ("made once", [guest, "once"],
         {"check": check_exact, "names": names, "no_names": ["jit_old_name"], "reasons": []}),
        ("written anew", [guest, "rewrite"], {"check": check_changed, "names": ["jit_odd"]}),
        ("unmapped", [guest, "gone"], {"check": check_gone, "cpus": 2}),
        ("ended", [guest, "once"], {"check": check_after, "cpus": 2}),
        ("two processes", ["sh", "-c", f"{guest} once $0 & {guest} once $0 & wait"],
         {"check": check_exact, "names": names, "cpus": 2, "reasons": []}),
        ("forked", [guest, "fork"],
         {"check": check_exact, "names": names, "cpus": 2, "reasons": []}),
        ("memory file", [guest, "memfd"],
         {"check": check_exact, "names": names, "reasons": ["shared-memory"]}),
        ("writes itself", [guest, "self"], {"check": check_self}),
        ("dumps what it writes", [guest, "dump"],
         {"check": check_dump, "names": ["jit_many", "jit_ones"]}),
        ("file written over in memory", [guest, "file"],
         {"check": check_file, "reason": "file-mapping"}),
        ("file touched", [guest, "touched"], {"check": check_file, "reason": "file"}),
        ("node", ["node", "--single-threaded", "--perf-basic-prof", script],
         {"check": check_near, "names": ["fibonacci", "addAll"], "aux": "1M"}),
    ]


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    sys.exit(main(sys.argv, short_list, short_list, scenario))
