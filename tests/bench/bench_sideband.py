#!/usr/bin/python3
"""Measures what a sideband record costs ptsnapd and perf, under the same load in the same run: CPU
time (user and system, of all threads) per record. The load runs for a while before the measurement
starts, so that files have been seen. Two figures are printed for perf. The first is the time that
"perf record" takes until it exits, minus the time that it takes when there is almost nothing to
record; this includes reading its records again to find build ids, which the kernel gives to
ptsnapd. The second is the time that perf takes while it writes records to a file in memory without
looking at them."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("PTSNAP_BUILDDIR", ".")
SECONDS = float(os.environ.get("PTSNAP_BENCH_SECONDS", "5"))
LOADS = [("starting programs", 2, 0), ("switching threads", 0, 2), ("both", 2, 1)]


def cpu_ns(pid):
    """CPU time of all threads, as the scheduler counts it."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def status(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b'{"method":"io.ptsnap.recorder.Status"}\0')
        data = b""
        while not data.endswith(b"\0"):
            data += s.recv(1 << 20)
    return json.loads(data[:-1])["parameters"]["status"]["timeline"]


def wait_for(what):
    for _ in range(200):
        if what():
            return
        time.sleep(0.05)
    sys.exit("bench_sideband: a program did not start")


def perf_records(path):
    out = subprocess.run(["perf", "report", "--stats", "-i", path], capture_output=True,
                         text=True, check=False).stdout
    return sum(int(n) for kind, n in re.findall(r"^\s+(\w+) events:\s+(\d+)", out, re.M)
               if kind in ("MMAP2", "COMM", "FORK", "EXIT", "SWITCH_CPU_WIDE"))


def start_perf(directory):
    data = os.path.join(directory, "perf.data")
    # Keep perf from writing its cache of binaries to the home directory.
    perf = subprocess.Popen(["perf", "record", "-q", "-N", "-a", "-e", "dummy", "--switch-events",
                             "-o", data, "--", "sleep", "1000"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists(data) and os.path.getsize(data) > 4096)
    return perf, data


def stop_perf(perf):
    """CPU time from start to exit, ns."""
    perf.send_signal(signal.SIGINT)
    _, _, usage = os.wait4(perf.pid, 0)
    perf.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1e9


def start_daemon(directory):
    path = os.path.join(directory, "socket")
    daemon = subprocess.Popen([os.path.join(BUILD, "daemon/ptsnapd"), f"--socket={path}",
                               f"--state-dir={directory}/state", "--worker=/bin/true"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists(path))
    return daemon, path


def idle_perf(directory):
    perf, data = start_perf(directory)
    time.sleep(0.2)
    ns = stop_perf(perf)
    os.unlink(data)
    return ns


def measure(name, spawners, pairs, directory):
    idle = idle_perf(directory)
    daemon, path = start_daemon(directory)
    perf, data = start_perf(directory)
    with subprocess.Popen([os.path.join(BUILD, "tests/bench/busy"), str(spawners), str(pairs)],
                          stdin=subprocess.PIPE) as busy:
        time.sleep(1.5)
        before, before_ns, before_perf = status(path), cpu_ns(daemon.pid), cpu_ns(perf.pid)
        size = os.path.getsize(data)
        time.sleep(SECONDS)
        after, after_ns, after_perf = status(path), cpu_ns(daemon.pid), cpu_ns(perf.pid)
        part = (os.path.getsize(data) - size) / os.path.getsize(data)
        busy.stdin.close()
    whole = stop_perf(perf) - idle
    daemon.terminate()
    daemon.wait()
    records, perfs = after["records"] - before["records"], max(perf_records(data), 1)
    ours, theirs = (after_ns - before_ns) / records, whole / perfs
    writing = (after_perf - before_perf) / (perfs * part)
    print(f"sideband, {name + ':':18} {records / SECONDS:8.0f} records/s, {after['lost']} lost; "
          f"ptsnapd {ours:4.0f} ns a record, perf record {theirs:4.0f} ns, ratio "
          f"{ours / theirs:.2f}; perf while it only writes {writing:4.0f} ns, ratio "
          f"{ours / writing:.1f}", flush=True)


def main():
    if os.geteuid() != 0 or not shutil.which("perf"):
        print("sideband: needs perf, and to be root: left out")
        return
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for name, spawners, pairs in LOADS:
        with tempfile.TemporaryDirectory(dir=place) as directory:
            measure(name, spawners, pairs, directory)


main()
