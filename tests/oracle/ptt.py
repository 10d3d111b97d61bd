"""Runs libipt's own test suite (compiled) against ptsnapctl: for each program, and for each
processor that a program is about, the views must print what ptdump and ptxed are expected to print.
As in libipt's script (diff -b), the amount of space does not matter. Packets of traces that others
recorded must be equal byte for byte. Prints TAP, one line per program.

Arguments: names of programs; default: all."""
import concurrent.futures
import glob
import gzip
import os
import re
import subprocess
import sys

BUILD = os.path.abspath(os.environ.get("PTSNAP_BUILDDIR", "build/check"))
CORPUS = os.path.abspath(os.environ.get("PTSNAP_CORPUS", "../shared/corpus"))
CTL = f"{BUILD}/ctl/ptsnapctl"
SUITE = f"{CORPUS}/libipt-ptt"


class Program:
    def __init__(self, line):
        self.name, *fields = line.rstrip("\n").split("\t")
        self.fields = dict(field.split("=", 1) for field in fields)

    def options(self, tool):
        return self.fields[tool].split()

    def expectations(self, tool):
        """Returns (suffix, file) pairs; the suffix of the file's name is "" or "cpu_F_M"."""
        found = []
        for path in sorted(glob.glob(glob.escape(f"{SUITE}/{self.name}-{tool}") + "*.exp")):
            m = re.fullmatch(rf"-{tool}(?:-cpu_(\d+)_(\d+))?\.exp", path[len(f"{SUITE}/{self.name}"):])
            if m:
                found.append((f"{m[1]}/{m[2]}" if m[1] else "", path))
        return found

    def sideband(self):
        """Returns the options in the names of the sideband files, as script/test.bash reads
        them."""
        args = []
        for path in sorted(glob.glob(glob.escape(f"{SUITE}/{self.name}-pevent-") + "*.sb")):
            file = os.path.basename(path)
            kind, *settings = file[len(self.name) + 1:-len(".sb")].split(",")
            for setting in settings:
                args.append("--pevent:" + setting)
            args += ["--" + kind.replace("-", ":"), file]
        return args


def ptdump(program):
    return ["--view=packets", *program.options("ptdump"), *program.sideband(),
            f"--raw-pt={program.name}.pt"]


def ptxed(program):
    """Ptxed's options are those of decode, except --raw, which --raw-image replaces."""
    options = program.options("ptxed")
    if "--raw" in options:
        at = options.index("--raw")
        del options[at:at + 2]
    return ["--view=insns", "--ptxed", *options, *program.sideband(), f"--raw-pt={program.name}.pt",
            f"--raw-image={program.name}.bin@{program.fields['org']}"]


# The arguments of ptsnapctl decode for each tool.
TOOLS = {"ptdump": ptdump, "ptxed": ptxed}
# (tool, program): reason why a difference is expected.
DIFFERENT = {}


def decode(args, folder):
    p = subprocess.run([CTL, "decode", *args], cwd=folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if p.returncode != 0:
        raise ValueError(f"exit {p.returncode}: {p.stderr.decode(errors='replace').strip()[-300:]}")
    return p.stdout.decode(errors="replace")


def lines(text):
    return [re.sub(r"[ \t]+", " ", line).rstrip() for line in text.splitlines()]


def difference(got, expected):
    at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
    return (f"line {at + 1} is {got[at] if at < len(got) else 'missing'!r}, "
            f"expected {expected[at] if at < len(expected) else 'none'!r}")


def check(tool, program, cpu, path):
    """Returns the error, or None."""
    args = TOOLS[tool](program) + ([f"--cpu={cpu}"] if cpu else [])
    with open(path, encoding="utf-8", errors="replace") as f:
        expected = lines(f.read())
    try:
        got = lines(decode(args, SUITE))
    except (ValueError, OSError, subprocess.TimeoutExpired) as e:
        return f"{tool} {cpu}: {e}"
    return None if got == expected else f"{tool} {cpu}: {difference(got, expected)}"


def recorded():
    """Returns traces recorded by others: (name, options, folder)."""
    found = []
    for path in sorted(glob.glob(f"{CORPUS}/**/expected/ptdump.txt.gz", recursive=True)):
        folder = os.path.dirname(os.path.dirname(path))
        with open(f"{folder}/NOTES.md", encoding="utf-8") as f:
            m = re.search(r"^ptdump options: `(.*)`$", f.read(), re.MULTILINE)
        if m and os.path.exists(f"{folder}/pt.bin"):
            found.append((os.path.relpath(folder, CORPUS), m[1].split(), folder))
    return found


def check_recorded(options, folder):
    with gzip.open(f"{folder}/expected/ptdump.txt.gz", "rt") as f:
        expected = f.read()
    try:
        got = decode(["--view=packets", *options, "--raw-pt=pt.bin"], folder)
    except (ValueError, OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    return None if got == expected else difference(got.splitlines(), expected.splitlines())


class Results:
    def __init__(self):
        self.n = self.failed = 0
        self.equal = {tool: 0 for tool in TOOLS}
        self.all = {tool: 0 for tool in TOOLS}

    def line(self, title, wrong):
        self.n += 1
        self.failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {self.n} - {title}")
        for text in wrong:
            print(f"# {text}")
        sys.stdout.flush()

    def program(self, program, answers):
        wrong, counts = [], []
        for tool, futures in answers.items():
            faults = [fault for fault in (f.result() for f in futures) if fault]
            self.equal[tool] += len(futures) - len(faults)
            self.all[tool] += len(futures)
            why = DIFFERENT.get((tool, program.name))
            if futures:
                counts.append(f"{tool} {len(futures) - len(faults)} of {len(futures)}"
                              + (f" ({why})" if why else ""))
            if not why:
                wrong += faults
        self.line(f"{program.name}: {', '.join(counts)}", wrong)


def main():
    if not os.path.exists(f"{SUITE}/INDEX.tsv"):
        print("1..0 # SKIP no corpus (environment PTSNAP_CORPUS)")
        return 0
    with open(f"{SUITE}/INDEX.tsv", encoding="utf-8") as f:
        programs = [Program(line) for line in f if line.strip()]
    traces = recorded()
    if len(sys.argv) > 1:
        programs = [p for p in programs if p.name in sys.argv[1:]]
        traces = []
    results = Results()
    print(f"1..{len(programs) + len(traces)}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        todo = [(p, {tool: [pool.submit(check, tool, p, cpu, path) for cpu, path in p.expectations(tool)]
                     for tool in TOOLS}) for p in programs]
        others = [(name, pool.submit(check_recorded, options, folder)) for name, options, folder in traces]
        for program, answers in todo:
            results.program(program, answers)
        for name, future in others:
            fault = future.result()
            results.line(f"packets of {name}", [fault] if fault else [])
    for tool in TOOLS:
        print(f"# {tool}: {results.equal[tool]} of {results.all[tool]} expectations equal")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
