"""Single programs on one virtual CPU: what is decoded from each snapshot equals what was executed.

For each scenario: ptsnapd records COMMAND with a truth directory, and snapshots are taken while the
command runs and at its end. Each stored bundle is decoded. Each thread's instruction count and hash
must equal those of the truth between the first PSB and the stop, with no fault. libipt must agree
on the same bytes where its return stack allows. Prints TAP. `exact.py NAME...` runs only those;
`--full` runs the long list with rings of the real size.
"""
import os
import subprocess
import sys

from common import (GUESTS, NORET, PYTHON, SRC, TIMING, Failed, Recording, Snapshot, Work, enough,
                    main, run)

LEAST = 1000  # instructions that a scenario must compare


def repeats(work, command, terms):
    """Two runs on the virtual clock must leave identical traces."""
    traces = []
    for n in ("1", "2"):
        os.mkdir(f"{work}/run{n}")
        r = Recording(f"{work}/run{n}", command, terms, ["--emu-cpus=1", "--emu-clock=virtual"])
        r.record(0, 0)
        traces.append(subprocess.run(["tar", "xOf", r.bundles()[0], "cpu0.pt"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    if traces[0] != traces[1] or not traces[0]:
        raise Failed("two runs on the virtual clock differ")
    return f"{len(traces[0])} bytes twice"


def once(name, command, terms, options, aux):
    """Returns how many instructions were compared, and what is said about them."""
    with Work(name) as work:
        r = Recording(work, command, terms, ["--emu-cpus=1"], aux)
        status = r.record(options.get("snapshots", 2), options.get("pause", 0.15))
        r.same_as_native(status, lambda: None)
        counts = []
        for bundle in r.bundles():
            s = Snapshot(bundle, r.truth)
            counts.append(s.check_equal())
            if options.get("libipt", True):
                s.check_libipt()
        return sum(counts), f"{len(counts)} snapshots, {sum(counts)} instructions"


def scenario(name, command, terms, options):
    if options.get("clock") == "virtual":
        with Work(name) as work:
            return repeats(work, command, terms)
    return enough(options.get("aux", ["256K", "1M", "4M"]), LEAST, "instructions",
                  lambda aux: once(name, command, terms, options, aux))


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
        ("smallest rings", ["gzip", "-c", data], "tsc,mtc,mtc_period=9,psb_period=0", {"aux": ["4K"]}),
    ]


def full_list(work):
    data = f"{work}/data"
    with open(data, "wb") as f:
        f.write(os.urandom(1 << 20) + open("/usr/bin/python3.11", "rb").read())
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE,
                         text=True).stdout.strip()
    lines = f"{work}/lines"
    with open(lines, "w", encoding="utf-8") as f:
        f.writelines(f"{n * 7919 % 100003}\n" for n in range(100000))
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
                    ("awk", ["awk", "BEGIN { for (; i < 400000; i++) s += i % 7; print s }"]),
                    ("sort", ["sort", "-n", lines]),
                    ("grep", ["grep", "-c", "-E", "(1|22|333)+[5-9]4?$", lines]),
                    ("git", ["git", "hash-object", "--no-filters", data]),
                    ("signals", guest("guest_signals"))):
                libipt = cname != "signals" or ret != ""
                result.append((f"{cname} {tname}{rname}", command, timing + ret,
                               {"aux": ["4M"], "snapshots": 3, "pause": 0.3, "libipt": libipt}))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, scenario))
