"""The six programs of the decoder's bench, and bundles of their traces.

Ptsnapd records each with the emulated machine: one thread, one CPU, user code only, TSC, MTC and a
PSB every 16 KiB, compressed returns. The machine uses the virtual clock, so that a program leaves
the same trace each time. The ring keeps the newest bytes, so that a long run loses its beginning.

`programs.py DIRECTORY [NAME...]` only makes the bundles.
"""
import io
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tarfile

from measure import BUILD, Failed, run

SRC = os.environ.get("PTSNAP_SRCDIR", ".")
PTSNAPD = f"{BUILD}/daemon/ptsnapd"
PTSNAPCTL = f"{BUILD}/ctl/ptsnapctl"

NAMES = ("cc1", "python3", "sqlite3", "xz", "gzip", "perl")
WORST = ("bits", "indirect", "once")  # see worst.c
TERMS = "tsc,mtc,mtc_period=3,psb_period=3"
RING = 8 << 20
TIMEOUT = 600

PYTHON_PROGRAM = """
import hashlib, json, re, sys
class Shape:
    def __init__(self, w, h): self.w, self.h = w, h
    def area(self): return self.w * self.h
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
words = {}
for i in range(int(sys.argv[1])):
    text = ' '.join(str(i * k % 977) for k in range(40))
    for w in re.findall(r'[0-9]+7', text): words[w] = words.get(w, 0) + 1
    shapes = sorted((Shape(i % 13, k) for k in range(20)), key=Shape.area)
    words[hashlib.md5(text.encode()).hexdigest()[:3]] = fib(i % 11) + shapes[3].area()
    if i % 50 == 0: json.loads(json.dumps(words))
print(len(words))
"""
SQL_PROGRAM = """
create table t(a integer primary key, b text, c integer); create index i on t(c, b);
with recursive n(x) as (select 1 union all select x + 1 from n where x < {count})
 insert into t select x, hex(x * 7919), x * 31 % 1009 from n;
select c % 10, count(*), sum(length(b)), max(b) from t where b like '%3%' group by 1 order by 2;
select count(*) from t as x join t as y on y.c = x.c + 1 where x.a < {count} / 20;
update t set b = b || 'x' where c between 10 and 200; delete from t where c > 900;
select count(distinct b) from t;
"""
PERL_PROGRAM = """
my (%h, @a);
for my $i (1 .. $ARGV[0]) {
    my $s = join ',', map { ($i * $_) % 91 } 1 .. 12;
    $h{$1}++ while $s =~ /(\\d*[37])\\b/g;
    $s =~ tr/0-9/a-j/;
    push @a, substr($s, $i % 7, 5);
    @a = sort { $a cmp $b || length $a <=> length $b } @a if $i % 200 == 0;
    splice @a, 100 if @a > 300;
}
print scalar(keys %h), "\\n";
"""


def text_file(path, lines):
    """Writes words with some regularity, the same each time."""
    r = random.Random(7)
    words = [bytes(r.choice(b"etaoinshrdlu") for _ in range(r.randint(2, 9))) for _ in range(3000)]
    with open(path, "wb") as f:
        for i in range(lines):
            line = b" ".join(r.choice(words[:50 + i % 2950]) for _ in range(r.randint(4, 14)))
            f.write(b"%d %s\n" % (i, line))
    return path


def c_file(path):
    with open(path, "w", encoding="utf-8") as f:
        f.write(run(["gcc", "-E", "-D_GNU_SOURCE", f"-I{SRC}",
                     f"{SRC}/decoder/worker/replay/whose.c"]))
    return path


def command(name, work, times=1):
    """The command of NAME. TIMES: factor of its length; with 1, the trace overflows an 8 MiB
    ring."""
    if name in WORST:
        return [os.path.abspath(f"{BUILD}/tests/bench/worst"), name]
    if name == "cc1":
        cc1 = run(["gcc", "-print-prog-name=cc1"]).strip()
        return [cc1, "-O2", "-quiet", c_file(f"{work}/source.i"), "-o", "/dev/null"]
    if name in ("xz", "gzip"):
        options = ["-6", "-T1"] if name == "xz" else ["-6"]
        return [name, *options, "-c", text_file(f"{work}/text", 30000 * times)]
    return {
        "python3": ["/usr/bin/python3", "-c", PYTHON_PROGRAM, str(1000 * times)],
        "sqlite3": ["sqlite3", ":memory:", SQL_PROGRAM.format(count=20000 * times)],
        "perl": ["perl", "-e", PERL_PROGRAM, str(20000 * times)],
    }[name]


def make_bundle(work, to, args, ring, cpus=1):
    """Records ARGS in the directory WORK. TO becomes the bundle taken at the end, with all code."""
    clock = "virtual" if cpus == 1 else "host"
    state = f"{work}/state"
    p = subprocess.run(
        [os.path.abspath(PTSNAPD), "--config=", "--source=emulated", f"--socket={work}/socket",
         f"--state-dir={state}", f"--aux-size={ring}", f"--ring-budget={4 * ring * cpus}",
         f"--pt={TERMS}", f"--emu-cpus={cpus}", f"--emu-clock={clock}", "--decode-memory=16G",
         "--exit-with-command", "--", *args],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        timeout=TIMEOUT, check=False)
    stored = [f for f in os.listdir(state) if f.endswith(".ptsnap")] if p.returncode == 0 else []
    if len(stored) != 1:
        raise Failed(f"{args[0]}: exit {p.returncode}: {p.stderr[-400:]}")
    run([PTSNAPCTL, "fetch", "--format=bundle", "-o", f"{to}.new", f"{state}/{stored[0]}"])
    os.rename(f"{to}.new", to)


def made(path, args_in, ring, cpus=1):
    """Returns PATH, made first if missing. ARGS_IN(directory) gives the command."""
    if not os.path.exists(path):
        work = f"{path}.work"
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        make_bundle(work, path, args_in(work), ring, cpus)
        shutil.rmtree(work)
    return path


def bundle(directory, name, ring=RING, times=1):
    """The path of NAME's bundle below DIRECTORY."""
    path = f"{directory}/{name}{'' if ring == RING else f'-{ring >> 20}M'}.ptsnap"
    return made(path, lambda work: command(name, work, times), ring)


def crowd(directory, ring):
    """Several programs at the same time on two CPUs, plus one that sleeps for long: its last branch
    is far back in the trace."""
    times = max(1, ring // RING)

    def args(work):
        others = [shlex.join(command(name, work)) for name in ("perl", "gzip")]
        others = [f"while [ -e {work}/on ]; do {c} >{work}/out; done &" for c in others]
        main = shlex.join(command("python3", work, times))
        return ["sh", "-c", "\n".join([f": >{work}/on", "sleep 1 &", *others, main,
                                       f"rm {work}/on", "wait"])]

    return made(f"{directory}/crowd-{ring >> 20}M.ptsnap", args, ring, 2)


def cut(old, new, size):
    for member in old.getmembers():
        data = old.extractfile(member).read()
        if member.name == "manifest.json":
            manifest = json.loads(data)
            cpu = manifest["cpus"][0]
            cpu["bytes"] = min(cpu["bytes"], size)
            data = json.dumps(manifest).encode()
        elif member.name == "cpu0.pt":
            data = data[-size:]
        info = tarfile.TarInfo(member.name)
        info.size = len(data)
        new.addfile(info, io.BytesIO(data))


def tail(path, size):
    """Writes a copy of the bundle at PATH with only the newest SIZE bytes of the trace, beside
    PATH."""
    if os.path.getsize(path) <= size:
        return path
    to = f"{path.removesuffix('.ptsnap')}-newest-{size}.ptsnap"
    if not os.path.exists(to):
        with tarfile.open(path) as old, \
                tarfile.open(f"{to}.new", "w", format=tarfile.USTAR_FORMAT) as new:
            cut(old, new, size)
        os.rename(f"{to}.new", to)
    return to


def main(argv):
    os.makedirs(argv[1], exist_ok=True)
    for name in argv[2:] or NAMES:
        path = bundle(argv[1], name)
        print(name, os.path.getsize(path), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
