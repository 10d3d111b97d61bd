"""When each branch was executed: the decoder's interval contains the emulator's time.

For each scenario, ptsnapd records COMMAND with a truth directory and some packets of time. In each
snapshot, every branch's interval must contain the TSC at which the branch was executed. The mean
width of the intervals may not exceed the distance of the MTCs (with CYC: the CYCs) that surround
the same branches. An unconditional branch, which no packet shows, lies between the marks around the
packets before and behind it: the trace does not show on which side of an MTC in between. Prints
TAP. `times.py NAME...` runs only those, `--full` the whole matrix.
"""
import json
import subprocess
import sys

from common import (GUESTS, NORET, PTSNAPCTL, PYTHON, SRC, TIMES, Failed, Recording, Snapshot, Work,
                    decode, enough,
                    main)

PY = ("import hashlib\n"
      "def f(n): return n if n < 2 else f(n-1)+f(n-2)\n"
      "h=hashlib.sha256()\n"
      "for i in range(%d):\n"
      "    h.update(str(f(11)+i).encode())\n"
      "print(h.hexdigest())\n")
THREADS = ("import threading, subprocess\n"
           "def w(n):\n"
           "    s = 0\n"
           "    for i in range(%d): s = (s * 31 + i * n) %% 1000003\n"
           "    return s\n"
           "t = [threading.Thread(target=w, args=(i,)) for i in range(4)]\n"
           "for x in t: x.start()\n"
           "print(subprocess.run(['echo', 'child'], stdout=subprocess.PIPE).stdout)\n"
           "for x in t: x.join()\n")
EXACT = 2  # ticks: uncertainty of the time at which an MTC was due
# Ticks: uncertainty of the time at which a CYC was written while the clock was not known to be
# steady: 25 ns before and behind. With MTCs in between, the uncertainty is smaller.
SWING = 220
SWING_MTC = 80
ROUGH = 1.01  # allows for a few branches where no speed is known yet
FEW = 20000  # branches; with fewer, the mean is not compared
SLOW = 60000  # the same with CYCs, where a speed has to be measured
LEAST = 1000  # branches that a scenario must compare


def manifest(bundle):
    text = subprocess.run(["tar", "xOf", bundle, "manifest.json"], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)


def find(tree, key):
    """Returns the value of KEY anywhere in the tree."""
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]
        tree = list(tree.values())
    if isinstance(tree, list):
        for t in tree:
            v = find(t, key)
            if v is not None:
                return v
    return None


def mtc_period(bundle):
    """Returns the period in TSC ticks; None: no MTC."""
    m = manifest(bundle)
    period = find(m, "mtcPeriod")
    if period is None:
        return None
    return 2.0 ** period * find(m, "tscArtNumerator") / find(m, "tscArtDenominator")


class Marks:
    """Writes the CYCs (or without CYCs the MTCs) between which branches of one CPU lie, one line
    "CPU OFFSET TICKS DIRECT LAST" each. DIRECT: gives the time of the branch packet directly
    behind. LAST: offset of the last branch packet before the next mark, 0: none."""

    def __init__(self, out, cpu, period):
        self.out, self.cpu, self.period = out, cpu, period
        self.mark = None  # offset, ticks, direct, last
        self.ticks = 0
        self.ctc = None
        self.word = ""  # the previous packet
        self.psb = self.anchored = False

    def write(self):
        if self.mark and self.anchored:
            offset, ticks, direct, last = self.mark
            self.out.write(f"{self.cpu} {offset} {ticks} {direct} {last}\n")

    def put(self, offset):
        self.write()
        self.mark = [offset, self.ticks, 0, 0]

    def take(self, offset, word, value):
        if word == "psb":
            self.psb = True
            # The start of the first CYC's cycle count is unknown.
            self.anchored = self.anchored or self.word == "cyc"
        elif word in ("psbend", "ovf"):
            self.psb = False
        elif word == "cyc":
            self.ticks += int(value, 16)  # a cycle is a tick here
            self.put(offset)
        elif word == "mtc" and self.period:
            ctc = int(value, 16)
            if self.ctc is not None:
                self.ticks += round(((ctc - self.ctc) & 255) * self.period)
            self.ctc = ctc
            self.anchored = True
            self.put(offset)
        elif self.mark and not self.psb and word.startswith(("tnt", "tip", "fup")):
            self.mark[2] = self.mark[2] or int(self.word == "cyc")
            self.mark[3] = offset
        self.word = word


def write_marks(bundle, path, period):
    """PERIOD: of MTCs, in ticks; None: use CYCs."""
    with open(path, "w", encoding="ascii") as out, \
            subprocess.Popen(decode(bundle, "packets"), stdout=subprocess.PIPE,
                             text=True) as view:
        marks = Marks(out, int(find(manifest(bundle), "cpus")[0]["cpu"]), period)
        for line in view.stdout:
            words = line.split()
            if line.startswith("# cpu "):
                marks.write()
                marks = Marks(out, int(words[2]), period)
            elif len(words) > 1 and not line.startswith("#"):
                marks.take(int(words[0], 16), words[1], words[2] if len(words) > 2 else "")
        marks.write()


def check(bundle, truth, lossy, terms):
    """Checks that each interval contains the true time. Returns what truth_times prints."""
    s = Snapshot(bundle, truth)
    more = ["--lossy"] if lossy else []
    if "cyc," in terms or "mtc," in terms:
        write_marks(bundle, f"{truth}.marks", None if "cyc," in terms else mtc_period(bundle))
        more.append(f"--marks={truth}.marks")
    with subprocess.Popen(decode(bundle, "branches", "--time", "--places"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as view:
        args = [TIMES, truth, *s.spans, *more]
        p = subprocess.run(args, stdin=view.stdout, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
        why = view.stderr.read().decode(errors="replace")
    if p.returncode != 0 or view.returncode != 0:
        raise Failed(f"{s.name}: {p.stderr.strip()[-900:]} {why[-200:]}; {s.errors}; "
                     f"{' '.join(s.spans)}")
    if not lossy and s.errors:
        raise Failed(f"{s.name}: gaps {s.errors}")
    said = json.loads(p.stdout)
    if said["checked"] < 0.9 * said["branches"] - 100:
        raise Failed(f"{s.name}: only {said['checked']} of {said['branches']} were checked")
    return said


def is_too_wide(said, terms):
    """Checks the mean widths that truth_times SAID."""
    if said["branches"] < (SLOW if "cyc," in terms else FEW) or "between" not in said:
        return False
    both, told = said["between"], said["betweenTold"]
    swing = SWING_MTC if "mtc," in terms else SWING
    if "cyc," not in terms:
        return any(m["meanWidth"] > m["meanApart"] + EXACT for m in (both, told))
    return (both["meanWidth"] > both["meanApart"]
            or told["meanWidth"] > ROUGH * told["meanApart"] + swing)


def describe(said):
    if "between" not in said:
        return f"width {said['meanWidth']:.0f}"
    return ", ".join(f"{name} {m['meanWidth']:.0f} of {m['meanApart']:.0f}"
                     for name, m in (("width", said["between"]),
                                     ("where a packet tells", said["betweenTold"])))


def once(name, command, terms, options, aux):
    """Returns how many branches were checked, and what is said about their times."""
    with Work(name) as work:
        r = Recording(work, command, terms, options.get("emu", ["--emu-cpus=1"]), aux)
        r.record(options.get("snapshots", 2), options.get("pause", 0.15))
        checked = 0
        said = []
        for bundle in r.bundles():
            lossy = options.get("lossy", False)
            t = check(bundle, r.truth, lossy, terms)
            checked += t["checked"]
            said.append(f"{describe(t)}, {t['unbounded']} without bound")
            if not lossy and is_too_wide(t, terms):
                raise Failed(f"too wide: {'; '.join(said)}")
        return checked, f"{checked} branches; {'; '.join(said)}"


def scenario(name, command, terms, options):
    return enough(options.get("aux", ["256K", "1M", "4M"]), LEAST, "branches",
                  lambda aux: once(name, command, terms, options, aux))


TERMS = {
    "tsc": "tsc,psb_period=1",
    "mtc3": "tsc,mtc,mtc_period=3,psb_period=1",
    "mtc9": "tsc,mtc,mtc_period=9,psb_period=1",
    "cyc": "tsc,cyc,cyc_thresh=0,psb_period=1",
    "mtc3 cyc": "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=2",
    "mtc6 cyc": "tsc,mtc,mtc_period=6,cyc,cyc_thresh=0,psb_period=2",
    "mtc9 cyc": "tsc,mtc,mtc_period=9,cyc,cyc_thresh=1,psb_period=2",
    "mtc6 cyc128": "tsc,mtc,mtc_period=6,cyc,cyc_thresh=8,psb_period=2",
    "mtc9 cyc1024": "tsc,mtc,mtc_period=9,cyc,cyc_thresh=11,psb_period=2",
}
MACHINE = ["--emu-cpus=2", "--emu-quantum=20000"]


def short_list(work):
    py = [PYTHON, "-c", PY % 400]
    threads = [PYTHON, "-c", THREADS % 4000]
    return [(f"python3 {n}", py, TERMS[n], {})
            for n in ("tsc", "mtc3", "mtc9", "mtc6 cyc", "mtc6 cyc128")] + [
        ("python3 mtc3 noretcomp", py, TERMS["mtc3"] + NORET, {}),
        ("signals mtc6 cyc", [f"{GUESTS}/guest_signals"], TERMS["mtc6 cyc"], {}),
        ("threads mtc3", threads, TERMS["mtc3"], {"emu": MACHINE}),
        ("threads mtc6 cyc", threads, TERMS["mtc6 cyc"], {"emu": MACHINE}),
        ("overflow mtc3", py, TERMS["mtc3"],
         {"emu": ["--emu-cpus=1", "--emu-overflow=9000"], "lossy": True}),
        ("offline mtc6 cyc", threads, TERMS["mtc6 cyc"],
         {"emu": MACHINE + ["--emu-offline=1:50ms:250ms"], "lossy": True}),
    ]


def full_list(work):
    commands = {
        "python3": ([PYTHON, "-c", PY % 4000], {}),
        "ls": (["ls", "-lR", SRC], {"snapshots": 1}),
        "signals": ([f"{GUESTS}/guest_signals"], {}),
        "threads": ([PYTHON, "-c", THREADS % 40000], {"emu": MACHINE}),
        "threads8": ([PYTHON, "-c", THREADS % 40000],
                     {"emu": ["--emu-cpus=8", "--emu-quantum=5000"]}),
        "overflow": ([PYTHON, "-c", PY % 4000],
                     {"emu": ["--emu-cpus=1", "--emu-overflow=20000"], "lossy": True}),
        "offline": ([PYTHON, "-c", THREADS % 40000],
                    {"emu": MACHINE + ["--emu-offline=1:100ms:600ms"], "lossy": True}),
    }
    return [(f"{c} {t}{rname}", command, terms + ret, {"aux": ["1M", "4M"], **options})
            for c, (command, options) in commands.items()
            for t, terms in TERMS.items() for rname, ret in (("", ""), (" noretcomp", NORET))]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, scenario))
