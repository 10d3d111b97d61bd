"""Checks the reader of perf.data files. For files recorded by others (PTSNAP_CORPUS), ptsnapctl
decodes the same as libipt does from their trace. For a recording made here, the reader sees the
same sideband records as perf script. Prints TAP."""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("PTSNAP_BUILDDIR", "build/check")
CORPUS = os.environ.get("PTSNAP_CORPUS", "../shared/corpus")
CTL = f"{BUILD}/ctl/ptsnapctl"
MAKE = f"{BUILD}/tests/support/make_perfdata"
DUMP = f"{BUILD}/tests/oracle/perfdata_dump"

# Folder, original path of the binary, options for decoding the raw trace.
FOLDERS = [
    ("hase-control_flow-0404", "home/joerg/git/angr/hase/tests/bin/control_flow/control_flow",
     ["--cpu=6/94/3", "--mtc-freq=3", "--nom-freq=32", "--cpuid-0x15=2,266",
      "--raw-image=FOLDER/binary:0:0x1000@0x400000"]),
    ("hase-loopy-0514-snapshot", "home/joerg/git/hase/tests/bin/loopy/loopy",
     ["--cpu=6/61/4", "--nom-freq=26", "--raw-image=FOLDER/binary:0:0x6c0@0x400000"]),
]
PACKETS = ["quipper-file-cpu0", "quipper-file-cpu3"]

# Expected results of each synthetic file: instructions, gaps. A round has 8 or 6 instructions, and
# each but the first also has the jump back.
def insns(rounds):
    return sum((8 if i % 2 == 0 else 6) + (i > 0) for i in range(rounds))


SYNTHETIC = {
    "plain": (insns(20), []), "tasks": (2 * insns(20), []), "cpus": (3 * insns(20), []), "mixed": (insns(5), []),
    "ids": (insns(5), []), "nocpu": (insns(5), []), "notime": (insns(5), []),
    "nosampleid": (insns(5), []), "notsc": (insns(5), []), "thread": (insns(20), []),
    "pieces": (2 * insns(20), []), "overlap": (insns(40), ["snapshot-copy"]), "compressed": (insns(5), []),
    "compressed2": (insns(5), ["aux-truncated"]), "old": (insns(5), []), "unfinished": (insns(5), []),
    "buildid": (insns(5), []), "mapbuildid": (insns(5), []),
    "mismatch": (0, ["image-mismatch"]), "mapmismatch": (0, ["image-mismatch"]),
    "kernel": (2 * insns(20), ["unmapped"]),
    # Without times, each round may belong to each of two threads, which execute the same.
    "notsctasks": (0, ["thread-uncertain"]),
    "noswitches": (insns(20), ["thread-uncertain"]),
    "every": (None, ["aux-truncated", "sideband-lost", "thread-uncertain"]),
    "filter": (insns(5), ["filtered"]), "paused": (insns(5), ["filtered"]),
    "hole": (None, ["head", "trace-missing"]),
}

RECORDINGS = [
    ["-e", "dummy:u", "-a", "--switch-events"],
    ["-z", "-e", "dummy:u", "-a", "--switch-events"],
    ["--per-thread", "-e", "dummy:u", "--switch-events"],
    ["--buildid-mmap", "--namespaces", "-e", "cpu-clock", "-e", "dummy:u", "--switch-events"],
    ["--all-cgroups", "-e", "cpu-clock", "-e", "context-switches", "-d"],
    ["-a", "-B", "-T", "-e", "cpu-clock:u", "-c", "1000000"],
]


class Died(Exception):
    """A program was killed by a signal."""


def run(args, **kwargs):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    if p.returncode < 0 and args[0] == "perf":
        raise Died(f"perf was killed by signal {-p.returncode}: {p.stderr[-100:]}")
    if p.returncode != 0:
        raise ValueError(f"{args[0]}: exit {p.returncode}: {p.stderr[-300:]}")
    return p.stdout


def decode(view, *args):
    lines = run([CTL, "decode", f"--view={view}", *args], text=True).splitlines()
    return [line for line in lines if not line.startswith("#")]


def summary(*args):
    import json
    return json.loads(run([CTL, "decode", "--view=summary", "--hash", "--json=short", *args]))


def place(root, path, source):
    os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
    shutil.copyfile(source, f"{root}/{path}")


def check_folder(tmp, name, path, options):
    """Compares the decoded perf.data with libipt's list and with the raw form."""
    folder = f"{CORPUS}/{name}"
    root = f"{tmp}/{name}"
    place(root, path, f"{folder}/binary")
    data = [f"--sysroot={root}", f"{folder}/perf.data"]
    raw = [f"--raw-pt={folder}/pt.bin"] + [o.replace("FOLDER", folder) for o in options]
    with gzip.open(f"{folder}/expected/ips.txt.gz", "rt") as f:
        expected = f.read().split()
    if decode("insns", *data) != expected:
        raise ValueError("instructions differ from the expected ones")
    for view in "branches", "packets":
        if decode(view, *data) != decode(view, *raw):
            raise ValueError(f"--view={view} differs from that of the raw trace")
    a, b = summary(*data), summary(*raw)
    for key in "instructions", "branches", "bytes", "errors", "ipHash", "packets":
        if a[key] != b[key]:
            raise ValueError(f"{key}: {a[key]}, of the raw trace {b[key]}")
    # Without the sysroot the file is missing, and no other file takes its place.
    if set(summary(f"--sysroot={tmp}", data[1])["errors"]) != {"image-missing"}:
        raise ValueError("a file that is not below --sysroot is not missing")
    return f"{len(expected)} instructions"


def check_packets(name):
    """Compares the packets of one CPU, without images, with those of the raw trace."""
    folder, cpu = f"{CORPUS}/{name}", name[-1]
    text = run([CTL, "decode", "--view=packets", f"{folder}/perf.data"], text=True)
    parts = re.split(r"^# cpu (\d+).*\n", text, flags=re.M)
    got = dict(zip(parts[1::2], parts[2::2]))[cpu].splitlines()
    got = [line for line in got if not line.startswith("#")]
    raw = decode("packets", f"--raw-pt={folder}/pt.bin")
    if got != raw:
        raise ValueError(f"{len(got)} packets, of the raw trace {len(raw)}")
    s = summary(f"{folder}/perf.data")
    if s["instructions"] != 0 or not s["errors"]:
        raise ValueError(f"without images: {s['instructions']} instructions")
    return f"{len(got)} packets"


def check_synthetic(tmp, kind):
    file, root = f"{tmp}/{kind}.data", f"{tmp}/synthetic"
    path = os.fsencode(f"{root}/usr/bin/") + b'loop\xff"x'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    run([MAKE, "--program", path])
    run([MAKE, kind, file])
    count, gaps = SYNTHETIC[kind]
    s = summary(f"--sysroot={root}", file)
    if sorted(s["errors"]) != gaps:
        raise ValueError(f"errors: {s['errors']}")
    if count is not None and s["instructions"] != count:
        raise ValueError(f"{s['instructions']} instructions, expected {count}")
    # Without a build id, nothing shows that the file is the one that ran.
    changed = {} if "buildid" in kind or not s["instructions"] else {"unverified-file": s["instructions"]}
    if s["mayHaveChanged"] != changed:
        raise ValueError(f"mayHaveChanged: {s['mayHaveChanged']}, expected {changed}")
    run([CTL, "decode", f"--sysroot={root}", "--json=short", file])
    if kind == "kernel":
        # the same without the kernel in the trace
        run([MAKE, "tasks", file])
        if s["threads"] != summary(f"--sysroot={root}", file)["threads"]:
            raise ValueError(f"threads: {s['threads']}")
    return f"{s['instructions']} instructions"


def check_truncated(tmp):
    """Truncates at many offsets: each gives an error and no signal."""
    file = f"{tmp}/cut.data"
    run([MAKE, "compressed2", file])
    with open(file, "rb") as f:
        whole = f.read()
    for cut in range(8, len(whole), 101):
        with open(file, "wb") as f:
            f.write(whole[:cut])
        p = subprocess.run([CTL, "decode", file], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
        if p.returncode != 1 or "damaged at byte 0x" not in p.stderr:
            raise ValueError(f"cut at {cut}: exit {p.returncode}: {p.stderr}")
    return f"{len(whole)} bytes"


def check_refused(tmp):
    file = f"{tmp}/refused.data"
    cases = [(b"PERFILE2\x10" + bytes(7), "perf record -o FILE"),
             (b"2ELIFREP" + bytes(96), "big-endian"), (b"PERFFILE" + bytes(96), "too old"),
             (b"PERFILE2" + bytes(8), "damaged at byte 0x10")]
    for content, word in cases:
        with open(file, "wb") as f:
            f.write(content)
        p = subprocess.run([CTL, "decode", file], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
        if p.returncode != 1 or word not in p.stderr:
            raise ValueError(f"{content[:9]}: exit {p.returncode}: {p.stderr}")
    p = subprocess.run([CTL, "decode", f"--sysroot={tmp}", CTL], stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, text=True)
    if p.returncode != 2 or "--sysroot" not in p.stderr:
        raise ValueError(f"--sysroot with another file: exit {p.returncode}: {p.stderr}")
    return f"{len(cases)} kinds"


def check_directory(tmp):
    """Decodes the file in a directory as perf record --kcore makes it."""
    folder, root = f"{tmp}/directory", f"{tmp}/synthetic"
    os.makedirs(folder)
    p = subprocess.run([CTL, "decode", folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       text=True)
    if p.returncode != 1 or "--kcore" not in p.stderr:
        raise ValueError(f"an empty one: exit {p.returncode}: {p.stderr}")
    run([MAKE, "plain", f"{folder}/data"])
    whole, file = summary(f"--sysroot={root}", folder), summary(f"--sysroot={root}", f"{folder}/data")
    if whole["instructions"] != SYNTHETIC["plain"][0] or whole["threads"] != file["threads"]:
        raise ValueError(f"{whole['instructions']} instructions, of the file {file['instructions']}")
    with open(f"{folder}/data.0", "wb"):
        pass
    p = subprocess.run([CTL, "decode", folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       text=True)
    if p.returncode != 1 or "--threads" not in p.stderr:
        raise ValueError(f"with threads: exit {p.returncode}: {p.stderr}")
    return f"{whole['instructions']} instructions"


KNOWN = ("COMM", "FORK", "EXIT", "MMAP2", "SWITCH", "SWITCH_CPU_WIDE")
LINE = re.compile(r"^(?:(?:(-?\d+) )?(\d+) )?0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_([A-Z_0-9]+)(.*)$")
PERFS = {"FINISHED_ROUND", "FINISHED_INIT", "ID_INDEX", "THREAD_MAP", "CPU_MAP", "TIME_CONV",
         "EVENT_UPDATE", "SAMPLE", "STAT_CONFIG", "FEATURE", "COMPRESSED", "AUXTRACE_INFO",
         "AUXTRACE"}


def see_by_perf(file):
    seen = []
    for line in run(["perf", "script", "-D", "-i", file]).decode(errors="replace").splitlines():
        match = LINE.match(line)
        if not match or match[3] in PERFS:
            continue
        cpu, time, kind, rest = match.groups()
        rest = " ".join(rest.split()) if kind in KNOWN else ""
        if cpu == "-1":
            cpu = None
        seen.append(" ".join(x for x in (cpu, time or "0", kind, rest) if x))
    return sorted(seen)


def see_by_us(file):
    seen = []
    for line in run([DUMP, file]).decode(errors="replace").splitlines():
        head, _, rest = line.partition(" PERF_RECORD_")
        match = re.match(r"([A-Z_0-9?]+)(.*)", rest)
        if not match:
            raise ValueError(line)
        rest = " ".join(match[2].split()) if match[1] in KNOWN else ""
        seen.append(" ".join(x for x in (head, match[1], rest) if x))
    return sorted(seen)


def compare(file):
    perfs, ours = see_by_perf(file), see_by_us(file)
    if perfs != ours:
        only_perf = sorted(set(perfs) - set(ours))[:3]
        only_us = sorted(set(ours) - set(perfs))[:3]
        raise ValueError(f"perf sees {len(perfs)} records, we {len(ours)}: only perf {only_perf},"
                         f" only we {only_us}")
    return f"{len(ours)} records"


def check_recording(tmp, options):
    file = f"{tmp}/recorded.data"
    work = "for i in 1 2 3; do ls / >/dev/null; done"
    p = subprocess.run(["perf", "record", "-q", "-o", file, *options, "--", "sh", "-c", work],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if p.returncode != 0:
        return "# SKIP perf record does not work here: " + " ".join(p.stdout.split())[:100]
    # The file also records other programs of the host: perf 6.1 crashes on some long paths.
    try:
        return compare(file)
    except Died as e:
        return f"# SKIP {e}"


def cases(tmp):
    for kind in SYNTHETIC:
        yield f"synthetic {kind}", lambda kind=kind: check_synthetic(tmp, kind)
    yield "truncated", lambda: check_truncated(tmp)
    yield "refused", lambda: check_refused(tmp)
    yield "directory", lambda: check_directory(tmp)
    for name, path, options in FOLDERS:
        if os.path.isdir(f"{CORPUS}/{name}"):
            yield name, lambda a=(name, path, options): check_folder(tmp, *a)
    for name in PACKETS:
        if os.path.isdir(f"{CORPUS}/{name}"):
            yield name, lambda name=name: check_packets(name)
    if shutil.which("perf"):
        for name in [f[0] for f in FOLDERS] + PACKETS[:1]:
            if os.path.isdir(f"{CORPUS}/{name}"):
                yield f"records of {name}", lambda n=name: compare(f"{CORPUS}/{n}/perf.data")
        for options in RECORDINGS:
            yield "perf record " + " ".join(options), lambda o=options: check_recording(tmp, o)


def main():
    failed = n = 0
    with tempfile.TemporaryDirectory() as tmp:
        # perf keeps copies of binaries below HOME, and ptsnapctl looks for them there.
        os.environ.update(HOME=tmp, LC_ALL="C", PERF_CONFIG="/dev/null", DEBUGINFOD_URLS="")
        for title, check in cases(tmp):
            n += 1
            try:
                result = check()
                result = f" {result}" if result.startswith("#") else f": {result}"
                print(f"ok {n} - {title}{result}", flush=True)
            except (ValueError, OSError, KeyError) as e:
                failed += 1
                print(f"not ok {n} - {title}\n# {e}", flush=True)
    print(f"1..{n}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
