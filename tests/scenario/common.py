"""Shared by all scenarios: record a command under the emulated machine, decode its snapshots,
compare the result with what was executed."""
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
SUBSET = f"{BUILD}/tests/support/truth_subset"
TIMES = f"{BUILD}/tests/support/truth_times"
CALLS = f"{BUILD}/tests/support/truth_calls"
LIBIPT = f"{BUILD}/tests/oracle/bundle_ipt"
GUESTS = f"{BUILD}/tests/support"

PYTHON = "/usr/bin/python3"  # not a version manager's script
NORET = ",noretcomp"
TIMING = {
    "mtc": "tsc,mtc,mtc_period=9,psb_period=1",
    "mtc3": "tsc,mtc,mtc_period=3,psb_period=0",
    "cyc": "tsc,mtc,mtc_period=6,cyc,cyc_thresh=1,psb_period=2",
    "none": "tsc,psb_period=1",
}
# MTC packets every 2.7 us, for two CPUs. With mtc3, a host under load fills a ring with them before
# the programs have done much. With mtc, too many switches between threads lie in one period.
RARE = "tsc,mtc,mtc_period=6,psb_period=0"


class Failed(Exception):
    pass


def run(args, **kw):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
    if p.returncode != 0:
        raise Failed(f"{' '.join(args)}: exit {p.returncode}: {p.stderr.strip()[-600:]}")
    return p.stdout


def tail(path, n=600):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()[-n:]


# The most extra snapshots, for a host under load on which the command has not begun.
MORE_SNAPSHOTS = 20


class Recording:
    """One run of ptsnapd with COMMAND. STOP: a file to make when all snapshots are taken. ENOUGH: a
    function that says whether the bundles show what the scenario needs."""

    def __init__(self, work, command, terms, options=(), aux="256K", cwd=None, stop=None,
                 enough=None):
        self.work, self.command, self.cwd, self.stop = work, command, cwd, stop
        self.enough = enough
        self.socket = f"{work}/socket"
        self.state = f"{work}/state"
        self.truth = f"{work}/truth"
        self.out = f"{work}/out"
        os.mkdir(self.truth)
        self.args = [os.path.abspath(PTSNAPD), "--config=", "--source=emulated", f"--socket={self.socket}",
                     f"--state-dir={self.state}", f"--aux-size={aux}", f"--pt={terms}",
                     f"--emu-truth={self.truth}", *options, "--exit-with-command", "--", *command]

    def record(self, snapshots, pause, timeout=300):
        """Returns the command's exit status."""
        with open(f"{self.work}/err", "wb") as err, open(self.out, "wb") as out:
            daemon = subprocess.Popen(self.args, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                      cwd=self.cwd)
            try:
                self.take(daemon, snapshots, pause)
                for _ in range(MORE_SNAPSHOTS):
                    if not self.enough or daemon.poll() is not None or self.enough(self.bundles()):
                        break
                    self.take(daemon, 1, pause)
                if self.stop:
                    with open(self.stop, "wb"):
                        pass
                return daemon.wait(timeout=timeout)
            finally:
                if daemon.poll() is None:
                    daemon.kill()
                    daemon.wait()

    def take(self, daemon, snapshots, pause):
        while not os.path.exists(self.socket) and daemon.poll() is None:
            time.sleep(0.01)
        for _ in range(snapshots):
            time.sleep(pause)
            if daemon.poll() is not None:
                return
            p = subprocess.run([PTSNAPCTL, f"--socket={self.socket}", "snapshot", "--no-decode"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if p.returncode != 0 and daemon.poll() is None:
                time.sleep(1)
                if daemon.poll() is None:
                    raise Failed(f"snapshot: exit {p.returncode}: {p.stderr}")

    def same_as_native(self, status, clean):
        """Checks that output and exit status are the same as without the emulator. CLEAN undoes the
        first run."""
        clean()
        native = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                stdin=subprocess.DEVNULL, cwd=self.cwd)
        if status != native.returncode % 256:
            raise Failed(f"exit status {status}, without the emulator {native.returncode}: "
                         f"{tail(f'{self.work}/err')}")
        with open(self.out, "rb") as f:
            got = f.read()
        if got != native.stdout:
            raise Failed(f"output {got[-300:]!r}, without the emulator {native.stdout[-300:]!r}; "
                         f"{tail(f'{self.work}/err', 300)}")

    def bundles(self):
        found = sorted(os.path.join(d, f) for d, _, files in os.walk(self.state)
                       for f in files if f.endswith(".ptsnap"))
        if not found:
            raise Failed("no snapshot was stored")
        return found


def decode(bundle, view, *options):
    return [PTSNAPCTL, "decode", f"--view={view}", *options, bundle]


class Snapshot:
    """One decoded bundle, and what was executed in its window."""

    def __init__(self, bundle, truth):
        self.bundle, self.truth = bundle, truth
        self.name = os.path.basename(bundle)
        self.summary = json.loads(run(decode(bundle, "summary", "--hash", "--json=short")))
        self.errors = dict(self.summary["errors"])
        # While an earlier snapshot copied the ring, the CPU was not traced: the truth knows that, too.
        self.errors.pop("snapshot-copy", None)
        self.spans = []
        for cpu in self.summary["cpus"]:
            stop = cpu["tscStop"] or "0xffffffffffffffff"
            if cpu["tscFirst"]:
                self.spans.append(f"--cpu={cpu['cpu']}:{cpu['tscFirst']}:{stop}")
            else:
                raise Failed(f"{self.name}: no PSB on CPU {cpu['cpu']}")

    def executed(self, spans):
        """Returns {(pid, tid): (instructions, hash)}; empty without spans."""
        if not spans:
            return {}
        lines = run([TRUTH, self.truth, *spans]).splitlines()[:-1]
        return threads_of(json.loads(line) for line in lines)

    def unexpected(self, allowed):
        """Returns gaps that the scenario does not allow."""
        return {e: n for e, n in self.errors.items() if e not in allowed}

    def check_equal(self, allowed=()):
        """Checks that each thread's instructions are those executed. Returns their number."""
        if self.unexpected(allowed):
            raise Failed(f"{self.name}: gaps {self.errors}")
        ours = threads_of(self.summary["threads"])
        truth = self.executed(self.spans)
        if ours != truth:
            raise Failed(f"{self.name}: {differences(ours, truth)}; gaps {self.errors}; "
                         f"{' '.join(self.spans)}")
        return sum(n for n, _ in ours.values())

    def check_subset(self, allowed):
        """Checks that only executed instructions were decoded, and that what is missing is a gap of
        ALLOWED."""
        if self.unexpected(allowed):
            raise Failed(f"{self.name}: gaps {self.errors}")
        if not self.spans:
            return 0
        command = decode(self.bundle, "insns")
        if len(self.spans) == 1 and len(self.summary["threads"]) == 1:
            # The lines of a single thread on a single CPU do not name the thread.
            t, cpu = self.summary["threads"][0], self.summary["cpus"][0]["cpu"]
            command = ["sh", "-c", 'echo "$0"; exec "$@"',
                       f"# cpu {cpu} pid {t['pid']} tid {t['tid']}", *command]
        with subprocess.Popen(command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as view:
            p = subprocess.run([SUBSET, self.truth, *self.spans], stdin=view.stdout,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            view.stdout.close()  # truth_subset may have exited, and then nobody reads the pipe
            why = view.stderr.read().decode(errors="replace")
        if p.returncode != 0 or view.returncode != 0:
            raise Failed(f"{self.name}: {p.stderr.strip()[-700:]} {why[-200:]}; "
                         f"gaps {self.errors}; {' '.join(self.spans)}")
        total = json.loads(p.stdout.splitlines()[-1])
        # The thread of the process is unknown: only a gap may cause that.
        if total["unattributed"] and "thread-uncertain" not in self.errors:
            raise Failed(f"{self.name}: {total['unattributed']} instructions of no thread")
        return total["decoded"]

    def check_same(self, other):
        """Checks that OTHER has the same instructions of each thread, in the same order, and the same
        gaps."""
        ours, theirs = (threads_of(s.summary["threads"]) for s in (self, other))
        if ours != theirs or self.errors != other.errors:
            raise Failed(f"{self.name}: {differences(ours, theirs, 'the other')}; gaps {self.errors}, "
                         f"the other {other.errors}")

    def check_libipt(self):
        """Checks that both decoders of libipt find the same in the same bytes, given the
        threads."""
        if os.path.exists(LIBIPT):
            whole = f"{self.bundle}.whole"
            run([PTSNAPCTL, "fetch", "--format=bundle", "-o", whole, self.bundle])
            self.check_with([LIBIPT, whole])
            self.check_with([LIBIPT, "--blocks", whole])
            os.unlink(whole)

    def check_with(self, command):
        lines = [json.loads(line) for line in run(command).splitlines()]
        ours, theirs = threads_of(self.summary["threads"]), threads_of(lines[:-1])
        if lines[-1]["errors"] or ours != theirs:
            raise Failed(f"{self.name}: libipt: {differences(ours, theirs, 'libipt')}, "
                         f"{lines[-1]}")


def threads_of(objects):
    """Returns objects by pid, tid and life. When a thread that is not the first execs, its tid
    passes to another thread."""
    found = {}
    for t in objects:
        if t["instructions"]:
            life = sum(who[:2] == (t["pid"], t["tid"]) for who in found)
            found[(t["pid"], t["tid"], life)] = (t["instructions"], t["ipHash"])
    return found


def differences(ours, truth, name="executed"):
    said = []
    for who in sorted(set(ours) | set(truth), key=str):
        if ours.get(who) != truth.get(who):
            said.append(f"thread {who}: decoded {ours.get(who)}, {name} {truth.get(who)}")
    return "; ".join(said[:4]) + (f"; {len(said) - 4} more" if len(said) > 4 else "")


def tap(todo, one):
    """Prints TAP. ONE(name, *rest) returns a note or raises Failed; each element of TODO is its
    arguments."""
    failed = 0
    print(f"1..{len(todo)}", flush=True)
    for i, (name, *rest) in enumerate(todo, 1):
        began = time.monotonic()
        try:
            said = one(name, *rest)
            print(f"ok {i} - {name}: {said} ({time.monotonic() - began:.1f} s)", flush=True)
        except (Failed, subprocess.TimeoutExpired, ValueError, KeyError, OSError) as e:
            failed += 1
            lines = str(e).splitlines() or [""]
            text = "\n".join(f"# {line}" for line in lines)
            # The TAP line itself shows the reason, because a summary shows only that line.
            print(f"not ok {i} - {name}: {lines[0][:300].replace('#', '')}\n"
                  f"# {type(e).__name__}:\n{text}", flush=True)
    return 1 if failed else 0


class Work:
    """A directory for one scenario; PTSNAP_KEEP=1 keeps the directory."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="ptsnap-scenario-")
        return self.path

    def __exit__(self, *_):
        if os.environ.get("PTSNAP_KEEP"):
            print(f"# {self.name}: kept {self.path}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def enough(sizes, least, what, one):
    """Calls ONE with a size of the rings, which returns a number of WHAT that were compared, and a
    note, and returns the note. While a busy host does not run the program, packets of time alone may
    fill a ring: where fewer than LEAST were compared, the next size is tried."""
    for size in sizes:
        n, said = one(size)
        if n >= least:
            return f"{said}; rings of {size}"
    return f"# SKIP only {n} {what} were compared: {said}"


def can_run():
    if not shutil.which("qemu-x86_64"):
        print("1..0 # SKIP no qemu-x86_64 (Debian package qemu-user)")
        return False
    return True


def chosen(todo, argv):
    names = [a for a in argv[1:] if not a.startswith("--")]
    return [s for s in todo if not names or s[0] in names]


def main(argv, short, full, one):
    if not can_run():
        return 0
    with Work("data") as work:
        return tap(chosen((full if "--full" in argv else short)(work), argv), one)
