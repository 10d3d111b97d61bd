"""The recorder killed while a snapshot waits for its decoder: the next one decodes it, once.

We are the service manager: what is sent to $NOTIFY_SOCKET is kept and handed to the next start, as
systemd does (FDSTORE=1). Prints TAP.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("PTSNAP_BUILDDIR", ".")
CTL = f"{BUILD}/ctl/ptsnapctl"
DECODER = f"{BUILD}/decoder/worker/ptsnap-decode"


class Failed(Exception):
    """What was found wrong."""


class Manager:
    """What systemd does with descriptors of a service."""

    def __init__(self, work):
        self.path = f"{work}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.kept = {}  # name: fd
        self.seen = []

    def read(self):
        """Takes what has come."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.socket, 4096, 8)
            except BlockingIOError:
                return
            self.take(dict(l.partition("=")[::2] for l in data.decode().splitlines()), fds)

    def take(self, said, fds):
        name = said.get("FDNAME")
        if "FDSTORE" in said:
            if said.get("FDPOLL") != "0" or len(fds) != 1 or name in self.kept:
                raise Failed(f"stored: {said}, {len(fds)} fds")
            self.seen.append(name)
            self.kept[name] = fds[0]
        elif "FDSTOREREMOVE" in said and name in self.kept:
            os.close(self.kept.pop(name))


class Recorder:
    def __init__(self, work, state, manager, worker=DECODER):
        self.work, self.state, self.manager, self.worker = work, state, manager, worker
        self.socket = f"{work}/s"
        self.process = None

    def ctl(self, *args):
        p = subprocess.run([CTL, f"--socket={self.socket}", *args], capture_output=True, text=True,
                           check=False)
        return p.returncode, p.stdout or p.stderr

    def start(self):
        command = [f"{BUILD}/daemon/ptsnapd", "--config=", "--source=emulated", f"--socket={self.socket}",
                   f"--state-dir={self.state}", "--aux-size=1M", f"--worker={self.worker}", "--", "sh",
                   "-c", f"while :; do {self.work}/program / >/dev/null; done"]
        kept = self.manager.kept if self.manager else {}
        fds = [os.dup(fd) for fd in kept.values()]
        env = {k: v for k, v in os.environ.items() if not k.startswith("LISTEN_")}
        # $LISTEN_PID is that of the program which takes the shell's place.
        if self.manager:
            env |= {"NOTIFY_SOCKET": self.manager.path}
        if fds:
            env |= {"LISTEN_FDS": str(len(fds)), "LISTEN_FDNAMES": ":".join(kept)}

        def move():
            high = [os.dup2(fd, 200 + i) for i, fd in enumerate(fds)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
                os.close(fd)

        with open(f"{self.work}/log", "ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", "export LISTEN_PID=$$; exec \"$@\"", "sh", *command], env=env,
                stdout=subprocess.DEVNULL, stderr=log, start_new_session=True, close_fds=False,
                preexec_fn=move)
        for fd in fds:
            os.close(fd)
        self.eventually(lambda: self.ctl("status")[0] == 0, "the recorder answers")

    def eventually(self, test, what):
        for _ in range(300):
            if self.manager:
                self.manager.read()
            if test():
                return
            time.sleep(0.1)
        with open(f"{self.work}/log", encoding="utf-8", errors="replace") as f:
            raise Failed(f"never: {what}: {self.ctl('list')} {f.read()[-600:]}")

    def kill(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def entries(self):
        status, text = self.ctl("list", "--json=short")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")] if status == 0 else []

    def ended(self):
        return [e for e in self.entries() if e["state"] in ("done", "failed")]


def gaps(recorder):
    status, text = recorder.ctl("fetch", "latest")
    if status != 0:
        raise Failed(text)
    return {g["kind"] for g in json.loads(text)["gaps"]}


def interrupted(work, manager, state):
    """A snapshot whose decoder sleeps, and whose recorder is killed."""
    shutil.copy(shutil.which("ls"), f"{work}/program")
    sleeper = f"{work}/sleeper"
    with open(sleeper, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexec sleep 1000\n")
    os.chmod(sleeper, 0o755)
    recorder = Recorder(work, state, manager, sleeper)
    recorder.start()
    try:
        time.sleep(0.5)
        status, text = recorder.ctl("snapshot", "--no-wait", "--reason=before")
        if status != 0:
            raise Failed(text)
        recorder.eventually(lambda: any(f.endswith(".entry") for f in os.listdir(state)), "stored")
        if manager:
            recorder.eventually(lambda: manager.kept, "handed to the service manager")
    finally:
        recorder.kill()
    # Only what was kept open has its bytes now.
    os.unlink(f"{work}/program")
    shutil.copy(shutil.which("cat"), f"{work}/program")


def taken_up(work, manager, state):
    """The entry of the next recorder, and the gaps of its report."""
    recorder = Recorder(work, state, manager)
    recorder.start()
    try:
        recorder.eventually(recorder.ended, "ended")
        entries = recorder.ended()
        if len(entries) != 1:
            raise Failed(f"{entries}")
        found = gaps(recorder) if entries[0]["state"] == "done" else None
        if manager:
            recorder.eventually(lambda: not manager.kept, "dropped by the service manager")
        return entries[0], found
    finally:
        recorder.kill()


def expect(entry, state, *words):
    for word in words:
        if word not in (entry["error"] or ""):
            raise Failed(f"{word!r} is not in {entry}")
    if entry["state"] != state or entry["reason"] != "before":
        raise Failed(f"{entry}")


def kept_by_systemd(work):
    manager, state = Manager(work), f"{work}/state"
    interrupted(work, manager, state)
    entry, found = taken_up(work, manager, state)
    expect(entry, "done", "came after")
    if "image-missing" in found or [n[:5] for n in manager.seen] != ["snap-", "last-"]:
        raise Failed(f"{found} {manager.seen}")


def memory_alone(work):
    """The disk has nothing of it."""
    manager, state = Manager(work), f"{work}/state"
    interrupted(work, manager, state)
    shutil.rmtree(state)
    entry, found = taken_up(work, manager, state)
    expect(entry, "done", "came after")
    if "image-missing" in found or not entry["bundleBytes"] or not os.listdir(f"{state}/images"):
        raise Failed(f"{entry} {found}")
    if abs(entry["realtimeUSec"] / 1e6 - time.time()) > 3600 or not entry["bootId"] or entry["uid"] != os.getuid():
        raise Failed(f"{entry}")


def disk_alone(work):
    """Programs that were not kept are gone; what is left is decoded."""
    state = f"{work}/state"
    interrupted(work, None, state)
    entry, found = taken_up(work, None, state)
    expect(entry, "done", "came after")
    if "image-missing" not in found:
        raise Failed(f"{entry} {found}")


def only_twice(work):
    """A snapshot that ends the recorder again and again is only stored."""
    manager, state = Manager(work), f"{work}/state"
    interrupted(work, manager, state)
    second = Recorder(work, state, manager, f"{work}/sleeper")
    second.start()
    try:
        second.eventually(lambda: any(n.startswith("last-") for n in manager.kept), "taken up")
        second.eventually(lambda: len(manager.kept) == 1, "known by one name")
    finally:
        second.kill()
    entry, _ = taken_up(work, manager, state)
    expect(entry, "failed", "twice")
    # A user who decodes it by hand needs the programs, too.
    if not entry["bundleBytes"] or not os.listdir(f"{state}/images"):
        raise Failed(f"{entry}")


def packed(message, *fds):
    """A socket in whose queue MESSAGE waits."""
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(a, [message], fds)
    a.close()
    return b.detach()


def garbage(work):
    """Whatever systemd may hand over is no snapshot, and keeps no place in its store."""
    manager, ident = Manager(work), "00000000001-abcd-1"
    null = os.open("/dev/null", os.O_RDONLY)
    one = struct.pack("=II", 0x70747331, 1) + bytes(128 * 16)
    others = {"last-": null, "other": os.dup(null), "snap-" + "y" * 60: os.dup(null)}
    manager.kept = {"snap-x": packed(b"nothing"), "snap-../evil": packed(one, null),
                    "last-/evil": packed(one, null), f"snap-{ident}": packed(one, null)} | others
    shutil.copy(shutil.which("ls"), f"{work}/program")
    recorder = Recorder(work, f"{work}/state", manager)
    recorder.start()
    try:
        recorder.eventually(lambda: manager.kept.keys() == others.keys(), "dropped by the service manager")
        if [(e["id"], e["state"]) for e in recorder.entries()] != [(ident, "failed")]:
            raise Failed(f"{recorder.entries()}")
        if "evil" in " ".join(os.listdir(work)) or recorder.ctl("snapshot")[0] != 0:
            raise Failed("it does not serve")
    finally:
        recorder.kill()


def main():
    if not shutil.which("qemu-x86_64"):
        print("1..0 # SKIP no qemu-x86_64")
        return 0
    cases = [kept_by_systemd, memory_alone, disk_alone, only_twice, garbage]
    print(f"1..{len(cases)}")
    failed = 0
    for number, case in enumerate(cases, 1):
        work = tempfile.mkdtemp(prefix="ptsnap-recover-", dir="/tmp")
        name = case.__name__.replace("_", " ")
        try:
            case(work)
            print(f"ok {number} - {name}", flush=True)
        except Failed as e:
            failed += 1
            print(f"not ok {number} - {name}\n# {e}", flush=True)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
