"""The call tree against what was executed, of ordinary programs.

ptsnapd records each program with a truth directory. tests/support/truth_calls makes a shadow stack
out of the instructions that executed, without the decoder, and compares with the call stream:
every near call and return, in order, nested alike, at its time; the instructions of each frame's
own; what each call enters; and when each thread had no CPU. Returns that go elsewhere than behind
their call are counted and bounded, and so are frames that were not compared. Programs end by _exit,
so that the last snapshot shows their work and not how they free memory. Prints TAP. `call_truth.py
NAME...` runs only those, `--full` all programs with larger rings and each timing, and without
return compression.
"""
import json
import shutil
import subprocess
import sys

from common import (CALLS, NORET, PYTHON, SRC, TIMING, Failed, Recording, Snapshot, Work, decode,
                    main, run)

PY = ("import json, os, re\n"
      "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"
      "d = {}\n"
      "for i in range(%d):\n"
      "    d[str(i)] = [f(8), sorted(range(i %% 50), key=lambda x: -x)]\n"
      "    try: d[str(i)].append(int('x' * i))\n"
      "    except ValueError as e: d[str(i)].append(re.sub('[a-m]', '.', str(e)[:40]))\n"
      "print(len(json.dumps(d)), flush=True)\n"
      "os._exit(0)\n")
THREADS = ("import os, threading, time\n"
           "def w(n):\n"
           "    s = 0\n"
           "    for i in range(%d):\n"
           "        s = (s * 31 + i * n) %% 1000003\n"
           "        if i %% 400 == 0: time.sleep(0)\n"
           "        if i %% 1000 == n: time.sleep(0.0002)\n"
           "    return s\n"
           "t = [threading.Thread(target=w, args=(i,)) for i in range(4)]\n"
           "for x in t: x.start()\n"
           "for x in t: x.join()\n"
           "os._exit(0)\n")
PERL = ("use POSIX; my %%h; sub f { my $n = shift; return $n < 2 ? $n : f($n - 1) + f($n - 2) } "
        "for my $i (1..%d) { $h{$i %% 97} .= chr(65 + f(6) + $i %% 26); "
        "eval { die qq(no\\n) if $i %% 5 == 0; }; "
        "my @a = sort { $a <=> $b } map { $_ * 7 %% 11 } 1..9; } print scalar(keys %%h), qq(\\n); "
        "POSIX::_exit(0);")
SQL = ("create table t(a integer primary key, b text); with recursive c(x) as (select 1 union all "
       "select x+1 from c where x<%d) insert into t select x, hex(x*7919) from c; "
       "select count(*), sum(length(b)) from t where b like '%%3%%'; "
       "select b, count(*) from t group by substr(b, 3) order by 2, 1 limit 3;")
NODE = ("function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } let m = new Map();\n"
        "for (let i = 0; i < %d; i++) { try {\n"
        "m.set('k' + i %% 99, JSON.stringify({a: f(9), b: [i]}));\n"
        "if (i %% 7 == 0) throw new Error('x') } catch (e) { m.delete('k3') } }\n"
        "console.log(m.size)\n")
CXX = r"""
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <unistd.h>
struct Shape { virtual ~Shape() {} virtual double area(int n) const = 0; };
struct Square : Shape { double area(int n) const override { return n * n; } };
struct Odd : Shape {
    double area(int n) const override
    {
        if (n % 3 == 0)
            throw std::runtime_error("no area of " + std::to_string(n));
        return n;
    }
};
struct Cleaned { std::string s; ~Cleaned() { if (s.size() > 3) s += std::to_string(s.size()); } };
static inline double twice(double x) { return x * 2; }
static double deep(const Shape &s, int n, int depth)
{
    Cleaned c{std::string(depth % 7, 'x')};
    return depth == 0 ? twice(s.area(n)) : deep(s, n, depth - 1) + 1;
}
__attribute__((noinline)) static double safe(const Shape &s, int n)
{
    try {
        return deep(s, n, n % 5);
    } catch (const std::exception &e) {
        return e.what()[0];
    }
}
int main(int, char **argv)
{
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.emplace_back(new Square);
    shapes.emplace_back(new Odd);
    std::map<std::string, double> sums;
    for (int i = 0; i < atoi(argv[1]); i++)
        for (auto &s : shapes) {
            sums[std::to_string(i % 50)] += safe(*s, i);
            std::vector<int> v{5, 3, i, 1, 4};
            std::sort(v.begin(), v.end(), [](int a, int b) { return a % 7 < b % 7; });
            sums["sorted"] += v[0];
        }
    printf("%zu %.0f\n", sums.size(), sums["7"]);
    fflush(stdout);
    _exit(0);
}
"""
RUST = r"""
use std::collections::BTreeMap;
trait Shape { fn area(&self, n: u64) -> u64; }
struct Square;
struct Odd;
impl Shape for Square { fn area(&self, n: u64) -> u64 { n * n } }
impl Shape for Odd {
    fn area(&self, n: u64) -> u64 { if n % 3 == 0 { panic!("no area of {}", n) } else { n } }
}
struct Cleaned(String);
impl Drop for Cleaned {
    fn drop(&mut self) { if self.0.len() > 3 { self.0.push_str(&self.0.len().to_string()) } }
}
fn deep(s: &dyn Shape, n: u64, depth: u64) -> u64 {
    let _c = Cleaned("x".repeat((depth % 7) as usize));
    if depth == 0 { s.area(n) } else { deep(s, n, depth - 1) + 1 }
}
#[inline(never)]
fn safe(s: &dyn Shape, n: u64) -> u64 {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| deep(s, n, n % 5))).unwrap_or(7)
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square), Box::new(Odd)];
    let mut sums = BTreeMap::new();
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    for i in 0..n {
        for s in &shapes {
            *sums.entry((i % 50).to_string()).or_insert(0) += safe(&**s, i);
            let mut v = vec![5, 3, i, 1, 4];
            v.sort_by_key(|a| a % 7);
            *sums.entry("sorted".to_string()).or_insert(0) += v[0];
        }
    }
    println!("{} {}", sums.len(), sums["7"]);
    std::process::exit(0);
}
"""
ODD = 0.003  # of all calls and returns, so many may be odd
LEFT = 0.002  # of all frames, so many may end without a return, or by a gap
INSIDE = 0.03  # of all calls, so many may enter a function elsewhere than at its begin
FEW = 1500  # frames; fewer are not enough


def clock(bundle):
    """Returns what truth_calls has to know of the clocks."""
    m = json.loads(run(["tar", "xOf", bundle, "manifest.json"]))
    found = {}

    def look(tree):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if isinstance(value, (dict, list)):
                look(value)
            else:
                found.setdefault(key, value)
    look(m)
    offset = (int(found["monotonicNSec"]) - int(found["perfNSec"])) % 2 ** 64
    return (f"--clock={found['timeShift']}:{found['timeMult']}:{found['timeZero']}:{offset}")


def check(bundle, truth):
    """Returns what truth_calls says."""
    s = Snapshot(bundle, truth)
    if s.errors:
        raise Failed(f"{s.name}: gaps {s.errors}")
    with subprocess.Popen(decode(bundle, "calls"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as view:
        p = subprocess.run([CALLS, truth, *s.spans, clock(bundle)], stdin=view.stdout,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        view.stdout.close()  # truth_calls may have exited, and then nobody reads the pipe
        why = view.stderr.read().decode(errors="replace")
    if p.returncode != 0 or view.returncode != 0:
        raise Failed(f"{s.name}: {p.stderr.strip()[:3000]} {why[-200:]}; {' '.join(s.spans)}")
    return json.loads(p.stdout)


def compile_with(work, compiler, text, suffix, *options):
    """Returns the program; None: no such compiler."""
    if not shutil.which(compiler):
        return None
    with open(f"{work}/prog{suffix}", "w", encoding="ascii") as f:
        f.write(text)
    run([compiler, *options, "-o", f"{work}/prog", f"{work}/prog{suffix}"])
    return f"{work}/prog"


def command_of(work, command):
    """Returns what to run; None: the host lacks it."""
    if command[0] == "C++":
        command = [compile_with(work, "c++", CXX, ".cc", "-O2", "-g"), *command[1:]]
    elif command[0] == "Rust":
        command = [compile_with(work, "rustc", RUST, ".rs", "-O", "-g"), *command[1:]]
    return command if command[0] and shutil.which(command[0]) else None


def add(sums, said):
    """Adds the numbers of SAID to SUMS."""
    for key, value in said.items():
        if isinstance(value, dict):
            add(sums.setdefault(key, {}), value)
        elif key in ("wide", "error"):  # means of frames
            sums[key] = sums.get(key, 0) + value * said["frames"]
        else:
            sums[key] = sums.get(key, 0) + value


def judge(s, options):
    """Returns what is wrong with the sums S; empty: nothing."""
    ended = s["frames"] + s["left"] + s["lost"]
    steps = s["calls"] + s["returns"]
    left = options.get("left", LEFT)
    wrong = []
    if s["frames"] < FEW:
        wrong.append(f"only {s['frames']} frames")
    if s["odd"] > ODD * steps + 2:
        wrong.append(f"{s['odd']} of {steps} calls and returns are odd")
    if s["left"] + s["lost"] > left * ended or (left > LEFT and not s["left"]):
        wrong.append(f"{s['left']} of {ended} frames were left, {s['lost']} lost")
    if s["returned"] or s["cut"] or s["mixed"] > s["left"]:
        wrong.append(f"{s['returned']} of {s['left']} frames that were left returned, "
                     f"{s['mixed']} are mixed, {s['cut']} cut")
    if s["inside"] > INSIDE * s["calls"] or s["unnamed"] > options.get("unnamed", 0) * s["calls"]:
        wrong.append(f"{s['inside']} of {s['calls']} calls do not enter a function at its begin, "
                     f"{s['unnamed']} enter none")
    if s["off"]["certain"] < options.get("off", 0):
        wrong.append(f"only {s['off']['certain']} times without a CPU are certain")
    return wrong


def scenario(name, command, terms, options):
    with Work(name) as work:
        command = command_of(work, command)
        if not command:
            return "SKIP not installed"
        r = Recording(work, command, terms, options.get("emu", ["--emu-cpus=1"]),
                      options.get("aux", "512K"))
        # The last snapshot alone: where a window has the copy of an earlier snapshot, the stream has
        # lost its stacks, and the truth has not.
        status = r.record(0, 0)
        if status != 0:
            raise Failed(f"exit status {status}")
        sums = {}
        for bundle in r.bundles():
            add(sums, check(bundle, r.truth))
        wrong = judge(sums, options)
        if wrong:
            raise Failed(f"{'; '.join(wrong)}; {sums}")
        off = sums["off"]
        return (f"{sums['threads']} threads, {sums['calls']} calls, {sums['frames']} frames alike, "
                f"{sums['left']} left, {sums['lost']} lost, {sums['open']} open, "
                f"{sums['odd']} odd; durations within {sums['wide'] / sums['frames']:.0f} ns, "
                f"{sums['error'] / sums['frames']:.0f} ns wrong; off the CPU {off['checked']} "
                f"times, {off['certain']} certainly, {off['moved']} moved")


MACHINE = ["--emu-cpus=2", "--emu-quantum=20000"]
UNWINDS = 0.06  # frames that exceptions and panics leave


def programs(n):
    """Returns commands and options; N: how much longer they run."""
    return {
        "python3": ([PYTHON, "-c", PY % (150 * n)], {}),
        "perl": (["perl", "-e", PERL % (1500 * n)], {}),
        "sqlite3": (["sqlite3", ":memory:", SQL % (4000 * n)], {}),
        "git": (["git", "-C", SRC, "grep", "-c", "-I", "-e", "static.*(void)"], {}),
        "node": (["node", "--jitless", "-e", NODE % (300 * n)], {"emu": MACHINE, "aux": "2M", "unnamed": 1}),
        "C++": (["C++", str(400 * n)], {"left": UNWINDS}),
        "Rust": (["Rust", str(300 * n)], {"left": UNWINDS}),
        "threads": ([PYTHON, "-c", THREADS % (2500 * n)],
                    {"emu": MACHINE, "aux": "2M", "off": 1}),
    }


def short_list(work):
    del work
    timings = {"python3": "mtc", "perl": "mtc", "sqlite3": "cyc", "git": "cyc", "node": "cyc",
               "C++": "cyc", "Rust": "mtc", "threads": "cyc"}
    return [(f"{name} {timings[name]}", command, TIMING[timings[name]], options)
            for name, (command, options) in programs(1).items()]


def full_list(work):
    del work
    return [(f"{name} {timing}{rname}", command, TIMING[timing] + ret, {**options, "aux": "4M"})
            for name, (command, options) in programs(10).items()
            for timing in ("mtc", "mtc3", "cyc")
            for rname, ret in (("", ""), (" noretcomp", NORET))]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, scenario))
