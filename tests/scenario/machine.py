"""Whole workloads on several virtual CPUs: threads, processes, programs that replace one another.

For each scenario: a workload runs under the emulated machine, and snapshots are taken while it runs
and at its end. In each bundle every thread's decoded instructions equal those that the thread
executed between the first PSB and the stop of each CPU, without a gap. The workload's output and
exit status are the same as without the emulator. Where a scenario removes records, packets or CPUs
on purpose, decoded instructions are a subset of the executed ones, and what is missing is a gap of
the provoked kind. Prints TAP. `machine.py NAME...` runs only those, `--full` the whole matrix,
`--soak=N` takes N snapshots of one workload and does nothing else (`--soak=N --emu-...`: with these
options).
"""
import os
import shutil
import subprocess
import sys

from common import (GUESTS, NORET, PYTHON, TIMING, Failed, Recording, Snapshot, Work, can_run,
                    enough, main, tap)

LEAST = 1000  # instructions that a scenario must compare
SMALL = "--emu-quantum=20000"
# An overflow shows that the end of a thread is missing if the thread was killed just between two
# blocks.
KILLED = ("overflow",)
SOAK_ROUND = 50  # snapshots in one recording, because bundles are large

PIPELINE = r"""
cd "$1" || exit 1
seq 1 400 | sed 's/7/seven/' | grep -c seven
n=$(seq 1 50 | awk '{s += $1} END {print s}')
echo "sum $n"
for j in 1 2 3 4; do
	(x=$(echo $j | tr 1-4 a-d); seq 1 $((j * 20)) | sort -r | head -n 3 >out.$j; echo $x >>out.$j) &
done
wait
cat out.1 out.2 out.3 out.4 | md5sum
echo "nested $(echo "$(echo in | tr a-z A-Z)" | wc -c)"
i=0
while [ $i -lt 300 ]; do i=$((i + 1)); done
no_such_command 2>/dev/null || echo "status $?"
sh -c 'kill -TERM $$; echo never'; echo "killed $?"
sort out.1 <<end | tee copy | wc -l
one
end
exec sh -c 'exit 3'
"""

SOAK = r"""
cd "$1" || exit 1
while [ ! -e stop ]; do
	seq 1 300 | sed s/1/one/ | sort | uniq | wc -l >count
	x=$(grep -c one /dev/null; echo $(($(cat count) + 1)))
	(i=0; while [ $i -lt 500 ]; do i=$((i + 1)); done) & (expr 6 \* 7 >product) & wait
done
"""

AWK_MAKE = r"""
all: result
	cat result
%.part: %.in
	awk '{ s = ($$1 * 31 + length(s)) % 1000003; for (i = 0; i < 50; i++) s = (s * 7 + i) % 1000003; print s }' $< > $@
result: $(patsubst %.in,%.part,$(wildcard *.in))
	cat $(sort $^) | sort -n | md5sum > $@
"""

CC_MAKE = r"""
CFLAGS = -O1
all: program
	./program
program: $(patsubst %.c,%.o,$(wildcard *.c))
	gcc -o $@ $(sort $^)
%.o: %.c
	gcc $(CFLAGS) -c -o $@ $<
"""

GIT = r"""
cd "$1" || exit 1
export HOME="$1" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' LC_ALL=C
export GIT_COMMITTER_DATE='1700000000 +0000' GIT_PAGER=cat
git init -q -b main repo && cd repo || exit 1
git config user.name tester && git config user.email tester@example.org
for i in 1 2 3; do
	seq $i 200 >file$i; echo "change $i" >>common
	git add . && git commit -q -m "commit $i"
done
git log --format='%H %s'
git diff --stat HEAD~1
git gc -q && git fsck --no-progress && git count-objects | cut -d, -f1
git rev-parse HEAD
"""

PYTHON_CODE = r"""
import hashlib, subprocess, sys, threading
found = []
def work(n):
    h = hashlib.sha256()
    for i in range(200):
        h.update(str(i * n).encode())
    found.append(h.hexdigest())
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
child = subprocess.Popen(["sed", "s/a/b/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.communicate(b"banana\n")[0])
print(subprocess.run(["sh", "-c", "echo $((6 * 7)); exit 4"], stdout=subprocess.PIPE).stdout)
try:
    subprocess.run(["/nonexistent/program"])
except FileNotFoundError as e:
    print("refused", e.errno)
for t in threads: t.join()
print(sorted(found))
sys.exit(subprocess.run([sys.executable, "-S", "-c", "import sys; sys.exit(11)"]).returncode)
"""

MANY = r"""
i=0
while [ $i -lt 40 ]; do (echo $((i * i))) & i=$((i + 1)); done | sort -n | tail -n 3
wait
"""

LIBRARIES = (
    "unsigned long piece(unsigned long v)\n{ unsigned long s = 0; for (; v; v--) s += v * 3; return s; }\n",
    "unsigned long piece(unsigned long v)\n{ unsigned long s = 1; for (; v; v--) "
    "if (v & 1) s = s * 5 + v; else s ^= v << 3; return s; }\n",
)


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def script(text):
    return lambda d, w: ["sh", write(f"{w}/script", text), d]


def make_awk(d, _):
    for i in range(8):
        write(f"{d}/{i}.in", "".join(f"{i * 1000 + n}\n" for n in range(60)))
    write(f"{d}/Makefile", AWK_MAKE)
    return ["make", "-s", "-j4", "-C", d]


def make_cc(d, _):
    calls = []
    for i in range(8):
        write(f"{d}/f{i}.c", f"unsigned f{i}(unsigned v)\n{{\n\tfor (unsigned i = 0; i < {i + 5}; i++)\n\t\tv = v % "
              f"{i + 3} ? v * 3 + i : v / 2;\n\treturn v;\n}}\n")
        calls.append(i)
    write(f"{d}/main.c", "#include <stdio.h>\n" + "".join(f"unsigned f{i}(unsigned);\n" for i in calls) +
          "int main(void)\n{\n\tunsigned v = 27;\n" + "".join(f"\tv = f{i}(v);\n" for i in calls) +
          "\tprintf(\"%u\\n\", v);\n\treturn 0;\n}\n")
    write(f"{d}/Makefile", CC_MAKE)
    return ["make", "-s", "-j4", "-C", d]


def python(_, w):
    return [PYTHON, write(f"{w}/code.py", PYTHON_CODE)]


def guest(name, *arguments):
    return lambda d, _: [f"{os.path.abspath(GUESTS)}/{name}", *(a.replace("DIR", d) for a in arguments)]


def maps(d, w):
    libraries = []
    for i, code in enumerate(LIBRARIES if shutil.which("gcc") else ()):
        libraries.append(f"{w}/lib{i}.so")
        if not os.path.exists(libraries[-1]):
            subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", libraries[-1],
                            write(f"{w}/lib{i}.c", code)], check=True)
    return guest("guest_maps", d, *libraries)(d, w)


ODD = ("vfork", "clone", "close", "names", "stop", "forkthreads", "errors", "scripts",
       "fexecve")
WORKLOADS = {
    "pipeline": script(PIPELINE),
    "make": make_awk,
    "make cc": make_cc,
    "git": script(GIT),
    "python": python,
    "threads": guest("guest_threads", "100"),
    "forks": guest("guest_forks", "50", "10"),
    "maps": maps,
    "odd": guest("guest_odd", "DIR", *ODD),
    "killed": guest("guest_odd", "DIR", "kill", "killstop", "crash"),
    "many": script(MANY),
}


def once(name, workload, cpus, terms, options, aux):
    """OPTIONS: emu: options of ptsnapd; snapshots, pause; subset: gaps that may occur (otherwise
    everything must be equal); wanted: gaps that must be in one of the snapshots; allowed; libipt."""
    with Work(name) as work:
        scratch = f"{work}/scratch"

        def clean():
            shutil.rmtree(scratch, ignore_errors=True)
            os.mkdir(scratch)
            return WORKLOADS[workload](scratch, work)

        # Several switches can lie in one period of 21 us. If the threads then execute the same
        # code, they cannot be told apart, and the report must say so.
        options = {"coarse": "mtc_period=9" in terms, **options}
        r = Recording(work, clean(), terms, [f"--emu-cpus={cpus}", *options.get("emu", ())],
                      aux, cwd=scratch)
        status = r.record(options.get("snapshots", 3), options.get("pause", 0.2))
        r.same_as_native(status, clean)
        bundles = r.bundles()
        snapshots = [Snapshot(b, r.truth) for b in bundles]
        counts = [check(s, options) for s in snapshots]
        # A loss belongs to the snapshot in whose window it lies.
        for gap in options.get("wanted", ()):
            if not any(gap in s.errors for s in snapshots):
                raise Failed(f"no gap {gap}: {[s.errors for s in snapshots]}")
        return sum(counts), f"{len(counts)} snapshots, {sum(counts)} instructions"


def one(name, workload, cpus, terms, options):
    return enough(options.get("aux", ["1M", "4M", "16M"]), LEAST, "instructions",
                  lambda aux: once(name, workload, cpus, terms, options, aux))


def check(s, options):
    if "subset" in options:
        return s.check_subset(options["subset"])
    allowed = options.get("allowed", ())
    if "thread-uncertain" in s.errors and options.get("coarse"):
        return s.check_subset(("thread-uncertain", *allowed))
    n = s.check_equal(allowed)
    if options.get("libipt"):
        s.check_libipt()
    return n


LOSSES = [
    ("overflow", "forks", 2, TIMING["mtc3"],
     {"emu": ["--emu-overflow=20000"], "subset": ["overflow"], "wanted": ["overflow"]}),
    ("lost records", "forks", 2, TIMING["mtc3"],
     {"emu": ["--emu-lose=40"], "wanted": ["sideband-lost"],
      # Behind a gap within a stretch, a compressed return may belong to a call in the gap.
      "subset": ["sideband-lost", "thread-uncertain", "image-uncertain", "no-space", "unmapped",
                 "ret-empty"]}),
    ("CPU away", "threads", 2, TIMING["mtc3"],
     {"emu": ["--emu-offline=1:50ms:250ms"], "allowed": ["cpu-offline"], "aux": ["8M"],
      "wanted": ["cpu-offline"]}),
    ("CPU away for good", "forks", 3, TIMING["mtc"],
     {"emu": ["--emu-offline=2:100ms:"], "allowed": ["cpu-offline"], "wanted": ["cpu-offline"]}),
    ("killed", "killed", 2, TIMING["mtc"], {"subset": KILLED}),
]


def short_list(_):
    small = {"emu": [SMALL]}
    return [
        # With a coarse MTC, several switches between a shell and its children, which execute the
        # same code, may lie in one period. Then the thread is not always known.
        ("pipeline", "pipeline", 2, TIMING["mtc3"], {"libipt": True}),
        ("pipeline on one CPU", "pipeline", 1, TIMING["mtc3"] + NORET,
         {"emu": [SMALL], "libipt": True}),
        ("make", "make", 8, TIMING["mtc3"], {}),
        ("git", "git", 2, TIMING["mtc3"], small),
        ("python", "python", 2, TIMING["mtc3"], {"libipt": True}),
        ("threads", "threads", 2, TIMING["mtc3"], small),
        ("threads on 8 CPUs", "threads", 8, TIMING["mtc"], {}),
        ("forks", "forks", 2, TIMING["mtc3"], {"emu": [SMALL], "libipt": True}),
        # An exec kills the other threads.
        ("maps", "maps", 2, TIMING["mtc3"], {"subset": KILLED}),
        ("odd", "odd", 2, TIMING["mtc3"], {}),
        ("build ids", "forks", 2, TIMING["mtc3"], {"emu": ["--emu-build-id"]}),
        *LOSSES,
    ]


def maps_gaps(timing):
    """An exec kills the other threads. With a coarse MTC, two files are mapped at one place within
    one period, and both explain the packets."""
    return (*KILLED, "thread-uncertain", *(("image-uncertain",) if timing == "mtc" else ()))


def full_list(_):
    result = list(LOSSES)
    for workload in (w for w in WORKLOADS if w != "killed"):
        for cpus in (1, 2, 8):
            for qname, quantum in (("", []), (" small quanta", [SMALL])):
                for tname in ("mtc", "mtc3"):
                    for rname, ret in (("", ""), (" noretcomp", NORET)):
                        result.append((f"{workload} {cpus} {tname}{rname}{qname}", workload, cpus,
                                       TIMING[tname] + ret,
                                       {"emu": quantum, "aux": ["1M"], "snapshots": 5, "pause": 0.15,
                                        "libipt": not quantum and cpus == 2,
                                        **({"subset": maps_gaps(tname)}
                                           if workload == "maps" else {})}))
    for workload in ("pipeline", "forks", "threads", "make"):
        for cpus in (2, 8):
            for emu, gaps in LOSS_OPTIONS:
                result.append((f"{workload} {cpus} {emu}", workload, cpus, TIMING["mtc3"],
                               {"emu": [emu], "subset": gaps}))
    return result


LOSS_OPTIONS = (
    ("--emu-overflow=3000", ["overflow"]),
    ("--emu-overflow=100000", ["overflow"]),
    ("--emu-lose=7", LOSSES[1][4]["subset"]),
    ("--emu-lose=200", LOSSES[1][4]["subset"]),
)


def soak_round(_, snapshots, options):
    with Work("soak") as work:
        scratch = f"{work}/scratch"
        os.mkdir(scratch)
        r = Recording(work, script(SOAK)(scratch, work), TIMING["mtc3"],
                      options or ["--emu-cpus=2"], cwd=scratch, stop=f"{scratch}/stop")
        if r.record(snapshots, 0.05) != 0:
            raise Failed("the workload failed")
        counts = []
        for bundle in r.bundles():
            counts.append(Snapshot(bundle, r.truth).check_equal())
            os.unlink(bundle)
        return f"{len(counts)} snapshots, {sum(counts)} instructions"


def soak(n, options):
    rounds = [min(SOAK_ROUND, n - i) for i in range(0, n, SOAK_ROUND)]
    return tap([(f"soak {i + 1}", size, options) for i, size in enumerate(rounds)], soak_round)


if __name__ == "__main__":
    soaks = [int(a.split("=")[1]) for a in sys.argv if a.startswith("--soak=")]
    if soaks:
        extra = [a for a in sys.argv if a.startswith("--emu-")]
        sys.exit(soak(soaks[0], extra) if can_run() else 0)
    sys.exit(main(sys.argv, short_list, full_list, one))
