"""The scripts beside this file (docs/PTSCRIPT.md): each is made into a trace by ptscript_tool, decoded
by ptsnapctl, and what comes out is compared with what the script expects. Prints TAP, a test for each
expectation. Names of scripts on the command line: only these."""
import difflib
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("PTSNAP_BUILDDIR", "build")
TOOL = f"{BUILD}/tests/support/ptscript_tool"
DECODE = [f"{BUILD}/ctl/ptsnapctl", "decode", f"--worker={BUILD}/decoder/worker/ptsnap-decode"]


class Script:
    """What the tool says of a script."""

    def __init__(self, path, directory):
        self.images, self.expects, self.options = [], [], []
        self.trace = self.bundle = None
        p = subprocess.run([TOOL, path, directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=60)
        if p.returncode != 0:
            raise ValueError(p.stderr.strip() or f"exit {p.returncode}")
        for line in p.stdout.splitlines():
            self.take(line.split())

    def take(self, words):
        if words[0] == "trace":
            self.trace = words[1]
        elif words[0] == "image":
            self.images.append(f"--raw-image={words[1]}:{words[2]}:{words[3]}@{words[4]}")
        elif words[0] == "bundle":
            self.bundle = words[1]
        elif words[0] == "options":
            self.options = words[1:]
        elif words[0] == "expect":
            todo = words.index("TODO") if "TODO" in words else len(words)
            self.expects.append({"line": int(words[1]), "view": words[2], "path": words[3],
                                 "options": words[4:todo], "todo": " ".join(words[todo:])})


def command(script, view, options):
    if script.bundle:
        return [*DECODE, view, *script.options, *options, script.bundle]
    return [*DECODE, view, *script.options, *options, f"--raw-pt={script.trace}", *script.images]


def run(args):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if p.returncode != 0:
        raise ValueError(f"exit {p.returncode}: {p.stderr.strip()[-300:]}")
    return p.stdout


def gaps(text):
    """A line a gap: its kind, and where in the trace it lies."""
    return "".join(f"{g['kind']} {g['offset']:x}\n" for g in json.loads(text)["gaps"])


def counters(text):
    """A line a number of the summary that is not 0."""
    s = json.loads(text)
    lines = [f"{k} {s[k]}\n" for k in ("instructions", "branches", "psbs", "returns",
                                       "compressedReturns") if s[k]]
    if s["coveragePercent"] is None:
        lines.append("coverage unknown\n")
    lines += [f"returnStack.{k} {v}\n" for k, v in s["returnStack"].items() if v and k != "rule"]
    return "".join(lines + [f"{k} {v}\n" for k, v in s["errors"].items()])


EVENTS = ("ptwrites", "frequencies", "power", "interrupts", "aborts")


def number(value):
    return value[2:] if isinstance(value, str) and value.startswith("0x") else value


def address(report, place):
    return number(report["places"][place]["address"])


def events(text):
    """A line an element of the lists of events, without what is null; of each thread its transactions and its stack; then a line a count."""
    r = json.loads(text)
    lines = [" ".join(["errata", *r["errata"]]) + "\n"]
    if r["configuration"]["filters"]:
        lines.append(" ".join(["filters", *r["configuration"]["filters"]]) + "\n")
    for name in EVENTS:
        for e in r[name]:
            e = {("address" if k == "place" else k): (address(r, v) if k == "place" else v)
                 for k, v in e.items() if v is not None}
            lines.append(" ".join([name, *(f"{k}={number(v)}" for k, v in e.items())]) + "\n")
    for t in r["threads"]:
        if t["transactions"]:
            lines.append(" ".join(["transactions", *(f"{k}={v}" for k, v in
                                                     t["transactions"].items())]) + "\n")
        if t["stack"]:
            lines.append(" ".join(["stack", *(address(r, f) for f in t["stack"])]) + "\n")
    return "".join(lines + [f"{k} {v}\n" for k, v in r["eventCounts"].items()])


# The views that are JSON, and what an expectation has of them.
FROM_JSON = {"gaps": ("report", gaps), "summary": ("summary", counters),
             "report": ("report", events)}


def check(script, expect):
    view, shape = FROM_JSON.get(expect["view"], (expect["view"], None))
    options = expect["options"] + (["--json=short"] if shape else [])
    got = run(command(script, f"--view={view}", options))
    got = shape(got) if shape else got
    with open(expect["path"], encoding="ascii") as f:
        want = f.read()
    got = "".join(line.rstrip() + "\n" for line in got.splitlines())
    if got != want:
        raise ValueError("\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(),
                                                        "expected", "decoded", lineterm="")))


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def say(self, name, error=None, todo=""):
        self.n += 1
        if error is None:
            print(f"ok {self.n} - {name}{' (no longer to do)' if todo else ''}")
            return
        self.failed += not todo
        print(f"not ok {self.n} - {name}{' # ' + todo if todo else ''}")
        for line in str(error).splitlines():
            print(f"#   {line}")


def check_script(tap, path, directory):
    name = os.path.basename(path)
    try:
        script = Script(path, directory)
    except (ValueError, subprocess.TimeoutExpired) as e:
        tap.say(name, e)
        return
    for expect in script.expects:
        title = " ".join([f"{name}:{expect['line']}:", expect["view"], *expect["options"]])
        try:
            check(script, expect)
            tap.say(title, None, expect["todo"])
        except (ValueError, KeyError, subprocess.TimeoutExpired) as e:
            tap.say(title, e, expect["todo"])
    if not script.expects:
        tap.say(name, "expects nothing")


def main():
    names = sys.argv[1:]
    tap = Tap()
    for path in sorted(glob.glob(f"{HERE}/*.pts")):
        if names and os.path.basename(path)[:-4] not in names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            check_script(tap, path, directory)
    if tap.n == 0:
        tap.say("there are scripts", f"none in {HERE}")
    print(f"1..{tap.n}")
    return 1 if tap.failed else 0


sys.exit(main())
