"""When each branch was executed: the interval that the decoder gives holds the emulator's time.

For each scenario: ptsnapd records COMMAND with a truth directory and some packets of time; of each
snapshot every branch's interval must hold the TSC at which it was executed. Its mean width must be
no more than an MTC period, or with CYC no more than what CYC packets are apart that a branch lies
between. Prints TAP.
`times.py NAME...` runs only those, `--full` the whole matrix.
"""
import json
import subprocess
import sys

from common import (GUESTS, NORET, PTSNAPCTL, PYTHON, SRC, TIMES, Failed, Recording, Snapshot, Work,
                    decode, main)

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
# An unconditional branch has no packet: where timing packets stand between those around it, it may
# be on either side of them.
NEAR = 1.25
ALONE = 4  # without MTC, when a CYC may come after a long sleep only
EXACT = 2  # ticks: how exactly it is known when an MTC was due
FEW = 20000  # branches of which no mean is worth comparing


def manifest(bundle):
    text = subprocess.run(["tar", "xOf", bundle, "manifest.json"], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)


def find(tree, key):
    """The value of KEY wherever it stands."""
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
    """In ticks of the TSC; None: there is no MTC."""
    m = manifest(bundle)
    period = find(m, "mtcPeriod")
    if period is None:
        return None
    return 2.0 ** period * find(m, "tscArtNumerator") / find(m, "tscArtDenominator")


def cyc_distance(bundle):
    """How far the CYCs are apart that a branch lies between, mean of all that packets tell of;
    cycles, which are ticks here. None: there are none."""
    total = branches = since = 0
    with subprocess.Popen(decode(bundle, "packets"), stdout=subprocess.PIPE, text=True) as view:
        for line in view.stdout:
            words = line.split()
            if len(words) < 3 or line.startswith("#"):
                continue
            if words[1].startswith("tnt"):
                since += len(words[2])
            elif words[1].startswith("tip"):
                since += 1
            elif words[1] == "cyc":
                total += since * int(words[2], 16)
                branches += since
                since = 0
    return total / branches if branches else None


def check(bundle, truth, lossy):
    """Each interval holds the truth. Returns what truth_times says."""
    s = Snapshot(bundle, truth)
    with subprocess.Popen(decode(bundle, "branches", "--time"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as view:
        args = [TIMES, truth, *s.spans, *(["--lossy"] if lossy else [])]
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


def scenario(name, command, terms, options):
    with Work(name) as work:
        r = Recording(work, command, terms, options.get("emu", ["--emu-cpus=1"]),
                      options.get("aux", "256K"))
        r.record(options.get("snapshots", 2), options.get("pause", 0.15))
        checked = 0
        said = []
        for bundle in r.bundles():
            t = check(bundle, r.truth, options.get("lossy", False))
            checked += t["checked"]
            period, apart = mtc_period(bundle), cyc_distance(bundle)
            bound = apart or period
            said.append(f"width {t['meanWidth']:.0f}, where a packet tells {t['meanTold']:.0f}"
                        + (f", MTC period {period:.0f}" if period else "")
                        + (f", CYCs {apart:.0f} apart" if apart else "")
                        + f", {t['unbounded']} without bound")
            bound = apart or period
            if not bound or options.get("lossy") or t["branches"] < FEW:
                continue
            near = NEAR if period else ALONE
            if t["meanWidth"] > near * bound or (not apart and t["meanTold"] > bound + EXACT):
                raise Failed(f"too wide: {'; '.join(said)}")
        return f"{checked} branches; {'; '.join(said)}"


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
    return [(f"{c} {t}{rname}", command, terms + ret, {"aux": "1M", **options})
            for c, (command, options) in commands.items()
            for t, terms in TERMS.items() for rname, ret in (("", ""), (" noretcomp", NORET))]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, scenario))
