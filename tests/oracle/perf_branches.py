"""Exports bundles as perf.data by `ptsnapctl export', and checks that perf finds the same branches.

Each program is recorded under the emulated machine. Every stored bundle is exported, decoded by
`perf script --itrace=be' and by `ptsnapctl decode --view=branches', and each thread's stream of
FROM TO must be the same. Where tracing begins and ends ("tr strt", "tr end"), perf and ptsnapctl
both print 0 for the side that is not traced. `ptsnapctl decode' of the exported file must print the
same as for the bundle. One exception: the file does not say when each CPU was stopped, so that the
thread of a CPU's last stretch may be uncertain.

Known differences from perf, which are no fault of the file:

- At the PSB where perf begins to decode a CPU's trace within user code, we print a line "0 IP" and
  perf prints none. One such line per CPU may be without counterpart.
- Perf does not accept 0 as an address. Where a program calls address 0 (guest_signals does, and
  survives), perf prints an error at ip 0 and we print "0 0", entered and left.
- Time alone tells which thread runs on a CPU. Perf uses its estimate at the TIP.PGE, which is the
  newest MTC's time (plus the cycles since, with CYC); we use the interval's upper end. When a
  switch (also one from idle) lies between the two, perf gives the first branches to the previous
  task and looks for their code there. With CYC all branches are equal. With an MTC each 8 crystal
  clocks ("mtc3", perf's own default), all branches of one thread are equal, and nearly all of
  several threads: a virtual CPU can switch threads faster than that. With an MTC each 512 ("mtc"),
  perf also loses some branches of a single thread when the CPU was idle; the list gives limits for
  a few programs. tests/scenario/ shows that our branches are the executed ones.

Prints TAP. `perf_branches.py NAME...` runs only those. `--full` runs the long list: twelve
programs, each with and without compressed returns, with CYC and with MTC; and four with several
threads or processes, on one CPU and on two.
"""
import collections
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

SRC = os.environ.get("PTSNAP_SRCDIR", ".")
sys.path.insert(0, f"{SRC}/tests/scenario")

# pylint: disable=wrong-import-position
from common import (GUESTS, NORET, PTSNAPCTL, PYTHON, TIMING, Failed, Recording, Work, can_run,
                    chosen, decode, run, tap)
from exact import PERL, PY, SQL

ENVIRONMENT = dict(os.environ, LC_ALL="C", PERF_CONFIG="/dev/null", DEBUGINFOD_URLS="")
FIELDS = ["-F", "pid,tid,event,ip,addr"]
LINE = re.compile(r"^\s*(-?\d+)/(-?\d+)\s+branches\S*\s+([0-9a-f]+) =>\s+([0-9a-f]+)\s*$")
NULL_ERROR = re.compile(r" ip 0 code 5: Failed to get instruction$")
WHOSE = re.compile(r"^# cpu \S+ pid (\S+) tid (\S+)$")
ATTEMPTS = 5
LAST_STRETCH = 0.02  # share of all branches, at most
NULL_CALLED = ("0", "0")


def perf(work, *args):
    """Returns perf's output lines. Messages of perf are failures."""
    with open(f"{work}/perf.err", "wb") as err:
        p = subprocess.Popen(["perf", *args], stdout=subprocess.PIPE, stderr=err, text=True,
                             errors="replace", cwd=work, env=dict(ENVIRONMENT, HOME=work))
        with p:
            yield from p.stdout
        if p.returncode != 0:
            with open(f"{work}/perf.err", encoding="utf-8", errors="replace") as f:
                raise Failed(f"perf {args[0]}: exit {p.returncode}: {f.read()[-400:]}")


def theirs(work, data, options):
    """Returns {(pid, tid): [branch, ...]}, and errors by their text."""
    streams, errors = collections.defaultdict(list), collections.Counter()
    for line in perf(work, "script", "-f", *options, "--itrace=be", *FIELDS, "-i", data):
        m = LINE.match(line)
        if m:
            streams[(m[1], m[2])].append((m[3], m[4]))
        elif "error" in line:
            errors[re.sub(r"^.*error type", "error type", line.strip())[:120]] += 1
        elif line.strip():
            raise Failed(f"perf script says: {line!r}")
    return streams, errors


def ours(bundle, *view):
    """Returns the same from ptsnapctl, and gaps by their names."""
    streams, gaps, who = collections.defaultdict(list), collections.Counter(), None
    p = subprocess.Popen(decode(bundle, "branches", *view), stdout=subprocess.PIPE,
                         text=True)
    with p:
        for line in p.stdout:
            if line[0] != "#":
                source, _, target = line.rstrip().partition(" ")
                streams[who].append((source, target))
            elif line.startswith("# gap "):
                gaps[line[6:].strip()] += 1
            elif not line.startswith("# recording "):
                who = tuple("-1" if w == "-" else w for w in WHOSE.match(line).groups())
    if p.returncode != 0:
        raise Failed(f"ptsnapctl decode: exit {p.returncode}")
    if list(streams) == [None]:  # one thread: no line names it
        streams = {(None, None): streams[None]}
    return streams, gaps


def printed(path, *options):
    """Returns a hash of what `ptsnapctl decode' prints."""
    digest = hashlib.sha256()
    with subprocess.Popen([*decode(path, "branches", *options)], stdout=subprocess.PIPE) as p:
        for chunk in iter(lambda: p.stdout.read(1 << 20), b""):
            digest.update(chunk)
    if p.returncode != 0:
        raise Failed(f"ptsnapctl decode {path}: exit {p.returncode}")
    return digest.hexdigest()


def first_difference(a, b):
    for i, (x, y) in enumerate(itertools.zip_longest(a, b)):
        if x != y:
            return f"at {i} of {len(a)}/{len(b)}: first {x}, second {y}"
    return "none"


def otherwise(a, gaps, b, gaps_b):
    said = [f"gaps {dict(gaps)} and {dict(gaps_b)}"] if gaps != gaps_b else []
    said += [f"thread {who}: {first_difference(a.get(who, []), b.get(who, []))}"
             for who in sorted(set(a) | set(b), key=str) if a.get(who) != b.get(who)]
    return "; ".join(said) or "the same in another order"


def without_starts(a, b, budget):
    """Returns A without those start lines that B lacks."""
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            if x[0] != "0" or budget[0] == 0:
                return a
            budget[0] -= 1
            return a[:i] + without_starts(a[i + 1:], b[i:], budget)
    return a


def compare(name, a, b, cpus):
    """Returns the number of branches, which must be equal in both; raises Failed."""
    a = {who: [branch for branch in s if branch != NULL_CALLED] for who, s in a.items()}
    if list(a) == [(None, None)]:
        if len(b) != 1:
            raise Failed(f"{name}: one thread, perf has {sorted(b)}")
        a = {who: a[(None, None)] for who in b}
    budget = [cpus]
    for who in sorted(set(a) | set(b)):
        x, y = without_starts(a.get(who, []), b.get(who, []), budget), b.get(who, [])
        if x != y:
            raise Failed(f"{name}: thread {who}: {first_difference(x, y)}")
    return sum(len(s) for s in a.values())


def moved(a, b):
    """Counts our branches that perf does not give to that thread."""
    if list(a) == [(None, None)]:
        whose = max(b, key=lambda who: len(b[who]), default=None)
        a = {whose: a[(None, None)]}
    return sum((collections.Counter(a[who]) - collections.Counter(b.get(who, []))).total()
               for who in a)


def export(work, bundle, images):
    """Exports the bundle as perf.data: (path, perf's options)."""
    data = f"{work}/perf.data"
    if not images:
        run([PTSNAPCTL, "export", "-q", "-o", data, bundle])
        return data, []
    shutil.rmtree(f"{work}/images", ignore_errors=True)
    run([PTSNAPCTL, "export", "-q", f"--images={work}/images", "-o", data, bundle])
    return data, ["--symfs", f"{work}/images"]


def of_thread(bundle, tid, to):
    """Turns the bundle of one CPU that ran one thread into a trace of that thread on any CPU."""
    with tarfile.open(bundle) as old, \
            tarfile.open(to, "w", format=tarfile.USTAR_FORMAT) as new:
        for member in old.getmembers():
            data = old.extractfile(member).read()
            if member.name == "manifest.json":
                manifest = json.loads(data)
                manifest["cpus"][0].update(cpu=None, tid=tid)
                data = json.dumps(manifest).encode()
            info = tarfile.TarInfo("trace/0" if member.name == "cpu0.pt" else member.name)
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))


def check_thread(work, bundle, stream):
    """Checks, for perf and ptsnapctl, that the branches of a thread's trace are those of the CPU
    that the thread had for itself."""
    (_, tid), = stream
    run([PTSNAPCTL, "fetch", "--format=bundle", "-o", f"{work}/whole", bundle])
    of_thread(f"{work}/whole", int(tid), f"{work}/thread.ptsnap")
    data, symfs = export(work, f"{work}/thread.ptsnap", False)
    again, errors = theirs(work, data, symfs)
    if again != stream or errors:
        raise Failed(f"as a thread's trace: {sorted(again)} {errors}")
    if not printed(bundle) == printed(f"{work}/thread.ptsnap") == printed(data):
        raise Failed("as a thread's trace we decode it otherwise")


def check_report(work, data, options):
    """Checks that perf report finds functions: three, or as many as it has samples. The last snapshot
    may hold hardly more than the end of the program."""
    lines = list(perf(work, "report", "-f", "--stdio", *options, "--itrace=i1000i", "-i", data))
    rows = [line.split() for line in lines if re.match(r"^\s+\d+\.\d+%", line)]
    named = [row for row in rows if not row[-1].startswith("0x")]
    count = next(int(line.split()[-1]) for line in lines if "Event count" in line)
    if len(named) < min(3, count // 1000):
        raise Failed(f"perf report names {len(named)} functions: {lines[-20:]}")
    return f"perf report: {len(rows)} functions, first {named[0][-1]}"


def check_bundle(work, bundle, options):
    data, symfs = export(work, bundle, options.get("images"))
    a, gaps = ours(bundle)
    b, errors = theirs(work, data, symfs)
    name = os.path.basename(bundle)
    unexpected = {g: n for g, n in gaps.items() if g != "head"}
    sysroot = [f"--sysroot={symfs[1]}"] if symfs else []
    if printed(bundle) != printed(data, *sysroot):
        again, gaps_again = ours(data, *sysroot)
        if moved(a, again) > LAST_STRETCH * sum(len(s) for s in a.values()):
            raise Failed(f"{name}: exported, {otherwise(a, gaps, again, gaps_again)}")
    if options.get("moved"):
        return len(a), sum(len(s) for s in a.values()), moved(a, b), sum(errors.values())
    if options.get("thread") and list(a) == [(None, None)]:
        check_thread(work, bundle, b)
    null = sum(s.count(NULL_CALLED) for s in a.values())
    null -= sum(n for e, n in errors.items() if NULL_ERROR.search(e))
    if unexpected or null != 0 or any(not NULL_ERROR.search(e) for e in errors):
        raise Failed(f"{name}: perf's errors {dict(errors)}, our gaps {unexpected}")
    return len(a), compare(name, a, b, options.get("cpus", 1)), 0, 0


def untraced(work):
    """Checks that perf shows the times of a bundle in which nothing was traced."""
    run([f"{os.path.abspath(GUESTS)}/make_bundle", "degraded", f"{work}/degraded.ptsnap"])
    data, _ = export(work, f"{work}/degraded.ptsnap", False)
    lines = list(perf(work, "script", "-f", "--itrace=b", "--ns", "-F", "comm,tid,cpu,time",
                      "--show-switch-events", "-i", data))
    timed = [line for line in lines if re.search(r" \[00[01]\] +0\.00[01]\d{6}: .*SWITCH", line)]
    if len(timed) != len(lines) or len(timed) < 20:
        raise Failed(f"perf script: {len(timed)} of {len(lines)} switches have times: {lines[:3]}")
    return f"{len(timed)} switches, each with its time"


def scenario(*what):
    """Tries several recordings: on a slow host a ring may hold only time before or after the
    program."""
    if what[0] == "untraced":
        with Work("untraced") as work:
            return untraced(work)
    for _ in range(ATTEMPTS):
        said = recorded(*what)
        if said:
            return said
    raise Failed("no branch in any recording")


def recorded(name, command, terms, options):
    with Work(name) as work:
        os.makedirs(f"{work}/cwd")
        cpus = [f"--emu-cpus={options.get('cpus', 1)}", *options.get("emu", ())]
        r = Recording(work, command, terms, cpus, options.get("aux", "256K"), cwd=f"{work}/cwd")
        r.record(options.get("snapshots", 1), options.get("pause", 0.15))
        threads = total = away = errors = most = 0
        bundles = r.bundles()
        fullest = bundles[-1]
        for bundle in bundles:
            t, n, m, e = check_bundle(work, bundle, options)
            if n > most:
                most, fullest = n, bundle
            threads, total, away, errors = max(threads, t), total + n, away + m, errors + e
        said = f"{len(bundles)} snapshots, {threads} threads, {total} branches"
        if options.get("moved"):
            said += f", {away} of them not perf's, which has {errors} errors"
            if away > options["moved"] * total:
                raise Failed(said)
        if total == 0:
            return None
        if options.get("report"):
            data, symfs = export(work, fullest, options.get("images"))
            said += "; " + check_report(work, data, symfs)
        return said


THREADS = ("import threading, hashlib, os\n"
           "def w(k):\n"
           "    h = b'x%%d' %% k\n"
           "    for i in range(%d):\n"
           "        h = hashlib.md5(h).digest()\n"
           "        if i %% 16 == 0: os.sched_yield()\n"
           "    print(k, h.hex()[:4])\n"
           "ts = [threading.Thread(target=w, args=(k,)) for k in range(4)]\n"
           "[t.start() for t in ts]; [t.join() for t in ts]\n")
AWK = ("BEGIN { for (i = 0; i < %d; i++) {"
       " a[i %% 97] = a[i %% 89] i; n += length(a[i %% 97]) %% 7 } print n }")
PIPE = ("i=0; while [ $i -lt %d ]; do echo $i $((i * 7919 %% 1000)); i=$((i+1)); done |"
        " sort -k2 -n | tail -n 3 | cat")


def text_file(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        for i in range(lines):
            f.write(f"{i * 7919 % 100003} the quick brown fox {i}\n")
    return path


def short_list(work):
    data = text_file(f"{work}/text", 20000)
    return [
        ("ls", ["ls", "-lR", f"{os.path.abspath(SRC)}/docs"], TIMING["mtc3"],
         {"report": True, "thread": True}),
        ("untraced", None, None, {}),
        ("signals", [os.path.abspath(f"{GUESTS}/guest_signals")], TIMING["cyc"], {}),
        ("gzip noretcomp", ["gzip", "-c", data], TIMING["mtc3"] + NORET, {"images": True}),
        ("pipe on 2 CPUs", ["sh", "-c", PIPE % 200], TIMING["cyc"],
         {"cpus": 2, "images": True, "emu": ["--emu-build-id"], "report": True}),
        ("threads on 2 CPUs", [PYTHON, "-c", THREADS % 300], TIMING["cyc"], {"cpus": 2}),
    ]


def full_list(work):
    data = text_file(f"{work}/text", 200000)
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE,
                         text=True).stdout.strip()
    source = f"{work}/source.i"
    with open(source, "w", encoding="utf-8") as f:
        f.write(run(["gcc", "-E", "-D_GNU_SOURCE", f"-I{SRC}", f"{SRC}/proto/bytes.c"]))
    repository = f"{work}/repository"
    run(["git", "init", "-q", repository])
    shutil.copy(data, repository)
    run(["git", "-C", repository, "add", "."])
    single = [
        ("ls", ["ls", "-lR", "/usr/share/doc"]),
        ("gzip", ["gzip", "-c", data]),
        ("xz", ["xz", "-3", "-T1", "-c", data]),
        ("cc1", [cc1, "-O2", "-quiet", source, "-o", "/dev/null"]),
        ("sqlite3", ["sqlite3", ":memory:", SQL % 100000]),
        ("perl", ["perl", "-e", PERL % 1000000]),
        ("python3", [PYTHON, "-c", PY % 5000]),
        ("awk", ["awk", AWK % 20000]),
        ("git", ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b",
                 "-c", "gc.auto=0", "diff", "--no-index", "--stat", "/dev/null", data]),
        ("sort", ["sort", "--parallel=1", "-n", data]),
        ("grep", ["grep", "-cE", "(quick|lazy) +[a-z]+.*(7|9)1", data]),
        ("signals", [os.path.abspath(f"{GUESTS}/guest_signals")]),
    ]
    several = [
        ("threads", [PYTHON, "-c", THREADS % 2000]),
        ("pipe", ["sh", "-c", PIPE % 1000]),
        ("xz -T2", ["xz", "-1", "-T2", "--block-size=1MiB", "-c", data]),
        ("guest_threads", [os.path.abspath(f"{GUESTS}/guest_threads")]),
    ]
    result = []
    for timing, ret in itertools.product(("cyc", "mtc3"), ("", NORET)):
        for name, command in single:
            result.append((f"{name} {timing}{ret.replace(',', ' ')}", command, TIMING[timing] + ret,
                           {"aux": "1M", "images": ret != "", "thread": name == "sqlite3"}))
    for timing, ret, cpus in itertools.product(("cyc", "mtc3"), ("", NORET), (1, 2)):
        for name, command in several:
            result.append((f"{name} {timing}{ret.replace(',', ' ')} {cpus} CPUs", command,
                           TIMING[timing] + ret,
                           {"aux": "1M", "cpus": cpus, "images": ret != "",
                            "emu": ["--emu-build-id"] if ret else [],
                            "moved": 0.05 if timing != "cyc" else None}))
    for name, command in single[:2] + several:
        result.append((f"{name} mtc", command, TIMING["mtc"], {"cpus": 2, "moved": 1}))
    return result


def main(argv):
    if not shutil.which("perf"):
        print("1..0 # SKIP no perf (Debian package linux-perf)")
        return 0
    if not can_run():
        return 0
    with Work("data") as work:
        return tap(chosen((full_list if "--full" in argv else short_list)(work), argv), scenario)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
