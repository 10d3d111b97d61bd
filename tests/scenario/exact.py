"""Scenarios under the emulated PMU: what is decoded from each snapshot equals what was executed.

For each scenario: ptsnapd records COMMAND with a truth file, snapshots are taken while it runs and at
its end, each stored bundle is decoded, and its instruction count and hash must equal those of the
truth file between the first PSB of the window and the stop; with no fault. libipt must agree on the
same bytes, where its return stack allows. Prints TAP. `exact.py NAME...` runs only those; `--full` runs
the long list with rings of the real size.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("PTSNAP_BUILDDIR", "build/check")
SRC = os.environ.get("PTSNAP_SRCDIR", ".")
PTSNAPD = f"{BUILD}/daemon/ptsnapd"
PTSNAPCTL = f"{BUILD}/ctl/ptsnapctl"
TRUTH = f"{BUILD}/tests/support/truth_window"
LIBIPT = f"{BUILD}/tests/oracle/bundle_ipt"
GUESTS = f"{BUILD}/tests/support"

PYTHON = "/usr/bin/python3"  # not a version manager's script, which would exec
NORET = ",noretcomp"
TIMING = {
    "mtc": "tsc,mtc,mtc_period=9,psb_period=1",
    "mtc3": "tsc,mtc,mtc_period=3,psb_period=0",
    "cyc": "tsc,mtc,mtc_period=6,cyc,cyc_thresh=1,psb_period=2",
    "none": "tsc,psb_period=1",
}


class Failed(Exception):
    pass


def run(args, **kw):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
    if p.returncode != 0:
        raise Failed(f"{' '.join(args)}: exit {p.returncode}: {p.stderr.strip()[-600:]}")
    return p.stdout


class Recording:
    def __init__(self, work, command, terms, aux, clock="host"):
        self.work = work
        self.socket = f"{work}/socket"
        self.state = f"{work}/state"
        self.truth = f"{work}/truth"
        self.args = [PTSNAPD, "--source=emulated", f"--socket={self.socket}",
                     f"--state-dir={self.state}", f"--aux-size={aux}", f"--pt={terms}",
                     f"--emu-truth={self.truth}", f"--emu-clock={clock}", "--exit-with-command",
                     "--", *command]

    def record(self, snapshots, pause, status=0):
        with open(f"{self.work}/err", "w", encoding="utf-8") as err, \
                open(f"{self.work}/out", "wb") as out:
            daemon = subprocess.Popen(self.args, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            try:
                self.take(daemon, snapshots, pause)
                got = daemon.wait(timeout=300)
            finally:
                if daemon.poll() is None:
                    daemon.kill()
                    daemon.wait()
        if got != status:
            with open(f"{self.work}/err", encoding="utf-8", errors="replace") as f:
                raise Failed(f"ptsnapd ended with {got}, not {status}: {f.read()[-600:]}")

    def take(self, daemon, snapshots, pause):
        while not os.path.exists(self.socket) and daemon.poll() is None:
            time.sleep(0.01)
        for _ in range(snapshots):
            time.sleep(pause)
            p = subprocess.run([PTSNAPCTL, f"--socket={self.socket}", "snapshot", "--no-decode"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if p.returncode != 0 and daemon.poll() is None:
                time.sleep(1)
                if daemon.poll() is None:
                    raise Failed(f"snapshot: exit {p.returncode}: {p.stderr}")

    def bundles(self):
        return sorted(os.path.join(d, f) for d, _, files in os.walk(self.state)
                      for f in files if f.endswith(".ptsnap"))


def executed(truth, tsc, stop):
    until = [] if stop == "last" else [f"--stop={stop}"]
    try:
        t = json.loads(run([TRUTH, truth, f"--from-tsc={tsc}", *until, "--hash"]))
    except Failed as e:
        return str(e)
    return t["instructions"], t["ipHash"]


def compare(bundle, truth, stops, libipt):
    name = os.path.basename(bundle)
    s = json.loads(run([PTSNAPCTL, "decode", "--view=summary", "--hash", "--json=short", bundle]))
    if s["errors"] == {"no-psb": 1} and s["instructions"] == 0 and stops != ["last"]:
        return 0  # the command had not come to its first instruction
    if s["errors"] or not s.get("tscFirst"):
        raise Failed(f"{name}: {s}")
    ours = (s["instructions"], s["ipHash"])
    truths = [executed(truth, s["tscFirst"], stop) for stop in stops]
    if ours not in truths:
        raise Failed(f"{name} stop {stops}: decoded {ours}, executed {truths}")
    if libipt and os.path.exists(LIBIPT):
        o = json.loads(run([LIBIPT, bundle]).splitlines()[0])
        if (*ours, 0) != (o["instructions"], o["ipHash"], o["errors"]):
            raise Failed(f"{name}: ours {ours}, libipt {o}")
    return s["instructions"]


def same_output(command, work):
    native = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            stdin=subprocess.DEVNULL)
    with open(f"{work}/out", "rb") as f:
        if f.read() != native.stdout:
            raise Failed("the command's output differs from what it says without the emulator")


def repeats(work, command, terms):
    """Two runs on the virtual clock leave the same trace, byte for byte."""
    traces = []
    for n in ("1", "2"):
        os.mkdir(f"{work}/run{n}")
        r = Recording(f"{work}/run{n}", command, terms, "256K", clock="virtual")
        r.record(0, 0)
        traces.append(subprocess.run(["tar", "xOf", r.bundles()[0], "cpu0.pt"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    if traces[0] != traces[1]:
        raise Failed("two runs on the virtual clock differ")
    return f"{len(traces[0])} bytes twice"


def scenario(name, command, terms, aux="256K", snapshots=2, pause=0.15, libipt=True, status=0):
    work = tempfile.mkdtemp(prefix="ptsnap-scenario-")
    try:
        r = Recording(work, command, terms, aux)
        r.record(snapshots, pause, status)
        same_output(command, work)
        bundles = r.bundles()
        if not bundles:
            raise Failed("no snapshot was stored")
        counts = []
        early = 0  # stopped before the first instruction: the truth file may not know of the stop
        for i, b in enumerate(bundles):
            last = i == len(bundles) - 1
            stops = ["last"] if last else [str(n) for n in range(max(1, i + 1 - early), i + 2)]
            counts.append(compare(b, r.truth, stops, libipt))
            early += counts[-1] == 0
        return f"{len(bundles)} snapshots, {sum(counts)} instructions"
    finally:
        if not os.environ.get("PTSNAP_KEEP"):
            shutil.rmtree(work, ignore_errors=True)
        else:
            print(f"# {name}: kept {work}")


def guest(name):
    return [f"{GUESTS}/{name}"]


PY = ("import hashlib,json\n"
      "def f(n): return n if n < 2 else f(n-1)+f(n-2)\n"
      "d={}\n"
      "for i in range(%d):\n"
      "    d[i]=hashlib.sha256(str(f(11)+i).encode()).hexdigest()\n"
      "print(len(json.dumps(d)))\n")
PERL = "my %%h; for my $i (1..%d) { $h{$i %% 997} .= chr(65+$i %% 26); } print scalar(keys %%h), qq(\\n);"
SQL = ("create table t(a integer primary key, b text); with recursive c(x) as (select 1 union all "
       "select x+1 from c where x<%d) insert into t select x, hex(x*7919) from c; "
       "select count(*), sum(length(b)) from t where b like '%%3%%';")


def short_list(work):
    data = f"{work}/data"
    with open(data, "wb") as f:
        f.write((b"the quick brown fox %d " % 7) * 20000 + bytes(range(256)) * 800)
    return [
        ("true", ["true"], TIMING["mtc"], {"snapshots": 0}),
        ("gzip", ["gzip", "-c", data], TIMING["mtc"], {}),
        ("gzip noretcomp", ["gzip", "-c", data], TIMING["mtc"] + NORET, {}),
        ("gzip cyc", ["gzip", "-c", data], TIMING["cyc"], {}),
        ("gzip no timing", ["gzip", "-c", data], TIMING["none"], {}),
        ("xz", ["xz", "-1", "-T1", "-c", data], TIMING["mtc"], {}),
        ("ls", ["ls", "-lR", SRC + "/docs"], TIMING["mtc3"], {"snapshots": 1, "pause": 0}),
        ("python3", [PYTHON, "-c", PY % 2500], TIMING["mtc"], {"snapshots": 3}),
        ("python3 cyc", [PYTHON, "-c", PY % 300], TIMING["cyc"], {}),
        ("perl", ["perl", "-e", PERL % 200000], TIMING["mtc"], {}),
        ("sqlite3", ["sqlite3", ":memory:", SQL % 30000], TIMING["mtc3"] + NORET, {}),
        ("signals", guest("guest_signals"), TIMING["mtc"], {"libipt": False}),
        ("signals noretcomp", guest("guest_signals"), TIMING["mtc"] + NORET, {}),
        ("signals cyc", guest("guest_signals"), TIMING["cyc"], {"libipt": False}),
        ("two in a row", [PYTHON, "-c", PY % 1500], TIMING["mtc"],
         {"snapshots": 6, "pause": 0}),
        ("virtual clock", ["gzip", "-c", data], TIMING["mtc"], {"clock": "virtual"}),
        ("smallest rings", ["gzip", "-c", data], "tsc,mtc,psb_period=0", {"aux": "4K"}),
    ]


def full_list(work):
    data = f"{work}/data"
    with open(data, "wb") as f:
        f.write(os.urandom(1 << 20) + open("/usr/bin/python3.11", "rb").read())
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE,
                         text=True).stdout.strip()
    source = f"{work}/source.i"
    with open(source, "w", encoding="utf-8") as f:
        f.write(run(["gcc", "-E", "-D_GNU_SOURCE", f"-I{SRC}", f"{SRC}/proto/json.c"]))
    result = []
    for tname, timing in TIMING.items():
        for rname, ret in (("", ""), (" noretcomp", NORET)):
            for cname, command in (
                    ("ls", ["ls", "-lR", "/usr/share"]),
                    ("gzip", ["gzip", "-c", data]),
                    ("xz", ["xz", "-3", "-T1", "-c", data]),
                    ("cc1", [cc1, "-O2", "-quiet", source, "-o", "/dev/null"]),
                    ("sqlite3", ["sqlite3", ":memory:", SQL % 300000]),
                    ("perl", ["perl", "-e", PERL % 3000000]),
                    ("python3", [PYTHON, "-c", PY % 12000]),
                    ("signals", guest("guest_signals"))):
                libipt = cname != "signals" or ret != ""
                result.append((f"{cname} {tname}{rname}", command, timing + ret,
                               {"aux": "4M", "snapshots": 3, "pause": 0.3, "libipt": libipt}))
    return result


def main():
    if not shutil.which("qemu-x86_64"):
        print("1..0 # SKIP no qemu-x86_64 (Debian package qemu-user)")
        return 0
    full = "--full" in sys.argv
    names = [a for a in sys.argv[1:] if a != "--full"]
    work = tempfile.mkdtemp(prefix="ptsnap-scenario-data-")
    failed = 0
    try:
        todo = [s for s in (full_list(work) if full else short_list(work))
                if not names or s[0] in names]
        print(f"1..{len(todo)}", flush=True)
        for i, (name, command, terms, kw) in enumerate(todo, 1):
            try:
                if kw.get("clock") == "virtual":
                    said = repeats(work, command, terms)
                else:
                    said = scenario(name, command, terms, **kw)
                print(f"ok {i} - {name}: {said}", flush=True)
            except (Failed, subprocess.TimeoutExpired, ValueError, KeyError) as e:
                failed += 1
                print(f"not ok {i} - {name}\n# {e}", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
