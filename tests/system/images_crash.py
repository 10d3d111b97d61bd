"""The recorder killed again and again while it keeps images: no list names what is not there, what is
stored decodes to the report that lies beside it, and what nobody needs goes.

Prints TAP.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("PTSNAP_BUILDDIR", ".")
CTL = f"{BUILD}/ctl/ptsnapctl"
ROUNDS = 6
PROGRAMS = 3


class Failed(Exception):
    """What was found wrong."""


class Recorder:
    def __init__(self, work):
        self.work, self.state, self.socket = work, f"{work}/state", f"{work}/s"
        programs = [self.program(i) for i in range(PROGRAMS)]
        self.command = "while :; do " + "; ".join(f"{p} / >/dev/null" for p in programs) + "; done"
        self.process = None

    def program(self, number):
        """One of its own inode and content, as upgrades make them."""
        path = shutil.copy(shutil.which("ls"), f"{self.work}/prog{number}")
        with open(path, "r+b") as f:
            f.seek(-1 - number, os.SEEK_END)
            f.write(b"\1")
        return path

    def ctl(self, *args):
        return subprocess.run([CTL, f"--socket={self.socket}", *args], capture_output=True,
                              check=False).returncode

    def start(self):
        with open(f"{self.work}/log", "ab") as log:
            self.process = subprocess.Popen(
                [f"{BUILD}/daemon/ptsnapd", "--config=", "--source=emulated",
                 f"--socket={self.socket}", f"--state-dir={self.state}", "--aux-size=1M",
                 "--max-snapshots=12", "--", "sh", "-c", self.command],
                stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        for _ in range(200):
            if self.ctl("status") == 0:
                return
            time.sleep(0.1)
        raise Failed("the recorder does not answer")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def pieces(text):
    return [tuple(int(n, 16) for n in piece.split("+")) for piece in text.strip().split(",")]


def covers(have, offset, size):
    return any(at <= offset and offset + size <= at + n for at, n in have)


def check_line(state, line):
    _, name, size, wanted = line.split()
    if wanted == "-":
        return None
    path = f"{state}/images/{name}"
    if not os.path.exists(path) or os.path.getsize(path) != int(size):
        raise Failed(f"{name} is not there, or of another size")
    with open(f"{path}.ranges", encoding="ascii") as f:
        have = pieces(f.read())
    missing = [p for p in pieces(wanted) if not covers(have, *p)]
    if missing:
        raise Failed(f"{name} has no {missing}, but {have}")
    return name


def check_lists(state):
    """The files that are needed, all of which are there."""
    needed = set()
    for path in glob.glob(f"{state}/*.images"):
        with open(path, encoding="ascii") as f:
            needed |= {check_line(state, line) for line in f}
    return needed - {None}


def check_reports(work, state):
    n = 0
    for report in glob.glob(f"{state}/*.json"):
        stem = report.removesuffix(".json")
        if not os.path.exists(f"{stem}.images"):
            continue
        p = subprocess.run([CTL, "decode", "--report-size=192K", "-o", f"{work}/decoded", f"{stem}.ptsnap"],
                           capture_output=True, text=True, check=False)
        with open(report, "rb") as a, open(f"{work}/decoded", "rb") as b:
            if p.returncode != 0 or a.read() != b.read():
                raise Failed(f"{stem} decodes otherwise: {p.stderr}")
        n += 1
    return n


def check_rounds(work):
    recorder, lists = Recorder(work), 0
    for number in range(ROUNDS):
        recorder.start()
        try:
            recorder.ctl("snapshot")
            recorder.ctl("snapshot", "--no-decode")
            for i in range(2 + number):
                recorder.ctl("snapshot", "--no-wait", *(["--no-decode"] if i % 3 == 1 else []))
        finally:
            recorder.kill()
        check_lists(recorder.state)
        lists += check_reports(work, recorder.state)
    # Once more, and orderly.
    recorder.start()
    recorder.ctl("snapshot")
    recorder.process.send_signal(signal.SIGTERM)
    recorder.process.wait()
    needed = check_lists(recorder.state)
    there = {name.removesuffix(".ranges") for name in os.listdir(f"{recorder.state}/images")}
    if needed != there:
        raise Failed(f"nobody needs {there - needed}")
    lists += check_reports(work, recorder.state)
    if lists == 0:
        raise Failed("nothing was ever stored")
    return f"{lists} reports compared, {len(needed)} files left"


def main():
    if not shutil.which("qemu-x86_64"):
        print("1..0 # SKIP no qemu-x86_64")
        return 0
    print("1..1")
    with tempfile.TemporaryDirectory(prefix="ptsnap-crash-", dir="/tmp") as work:
        try:
            print(f"ok 1 - {ROUNDS} crashes: {check_rounds(work)}")
        except (Failed, OSError, ValueError) as e:
            print(f"not ok 1\n# {e}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
