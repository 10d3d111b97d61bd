"""Compares lines and inlined functions with addr2line (binutils) and, where installed, eu-addr2line
(elfutils) and llvm-symbolizer. The programs are compiled here in every form of DWARF that the
compilers know. The reader may not open any file meanwhile (dwarf_lines --sealed). Prints TAP.

Known peculiarities of the other tools, which do not count as differences:
- For a function without a linkage name, addr2line prints the symbol (main for code inlined in it;
  NAME.cold, NAME.part.0); we print the DWARF's name.
- addr2line 2.40 counts the files of DWARF 5 from another number where the first two files differ
  (gcc -O0, -flto), reads neither 64-bit DWARF nor .zdebug of gcc 12, and loses inlined functions
  in clang's C++ where a function's ranges differ from its symbol's.
- Where the compilation directory is not absolute, the other tools print it twice."""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("PTSNAP_BUILDDIR", "build/check")
OURS = f"{BUILD}/tests/oracle/dwarf_lines"
STEP = 3
MOST = 3000  # addresses of a program, at most
CODE = "tTwW"

FILES = {
    "inc/twice.h": """#pragma once
static inline __attribute__((always_inline)) int leaf(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}
static inline int twice(int x)
{
	return leaf(x) + leaf(x + 1);
}
""",
    "one.c": """#include <stdio.h>
#include "twice.h"
int other(int, const char *);
static int middle(int x)
{
	int sum = 0;
	for (int i = 0; i < x; i++) {
		int y = twice(i);
		if (y & 1) {
			int z = leaf(y);
			sum += z;
		} else
			sum += twice(y);
	}
	return sum;
}
int unused(int x)
{
	return middle(x) * 7;
}
int main(int argc, char **argv)
{
	printf("%d\\n", middle(argc) + other(argc, argv[0]));
	return 0;
}
""",
    "two.c": """#include <stdlib.h>
#include <string.h>
#include "inc/twice.h"
static int compare(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}
__attribute__((noinline)) static int part(int n, const char *s)
{
	if (__builtin_expect(n > 1000, 0))
		abort();
	return twice(n) + (int)strlen(s);
}
int other(int n, const char *s)
{
	char b[64];
	strncpy(b, s, sizeof(b) - 1);
	b[63] = 0;
	qsort(b, strlen(b), 1, compare);
	return part(n, b) + leaf(n);
}
""",
    "three.cc": """#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
namespace space {
template <typename T> struct holder {
	std::vector<T> v;
	void add(T x) { v.push_back(x); }
	T total() const { T s{}; for (auto &x : v) s += x; return s; }
	static int helper(int i) { return i * 2; }
};
struct base { virtual ~base() {} virtual int go(int) = 0; };
struct derived : base {
	int go(int x) override { auto f = [x](int y) { return x + y; }; return f(x) + holder<int>::helper(x); }
};
}
int main(int argc, char **argv)
{
	space::holder<int> h;
	space::holder<std::string> s;
	std::map<std::string, int> m;
	for (int i = 0; i < argc * 10; i++) {
		h.add(i);
		s.add(argv[0]);
		m[s.total()]++;
	}
	std::sort(h.v.begin(), h.v.end(), [](int a, int b) { return a > b; });
	space::derived d;
	space::base *b = &d;
	try {
		if (argc > 3)
			throw std::runtime_error("x");
	} catch (std::exception &e) {
		std::cerr << e.what();
	}
	std::cout << h.total() << b->go(argc) << m.size() << "\\n";
}
""",
    "four.rs": """use std::collections::HashMap;
fn f(v: &[u32]) -> u32 { v.iter().map(|x| x * 3).filter(|x| x % 2 == 0).sum() }
fn main() {
    let mut m: HashMap<String, u32> = HashMap::new();
    for a in std::env::args() { let n = a.len() as u32; *m.entry(a).or_insert(0) += f(&[n, n + 1, 4]); }
    let mut k: Vec<_> = m.iter().collect();
    k.sort();
    println!("{:?}", k);
}
""",
}

C, CC = ["-Iinc", "one.c", "two.c"], ["three.cc"]
GC = ["-ffunction-sections", "-Wl,--gc-sections"]
PROGRAMS = {  # name: compiler, options
    f"{cc} {' '.join(o)}": (cc, o + C)
    for cc in ("gcc", "clang")
    for o in (["-O2", "-g"], ["-O0", "-g"], ["-O2", "-gdwarf-4"], ["-O2", "-gdwarf-3"], ["-O2", "-gdwarf-2"],
              ["-O2", "-g1"], ["-O2", "-g", "-gz"], ["-O2", "-g", "-flto"], ["-O2", "-g", "-gdwarf64"],
              ["-O2", "-g"] + GC)}
PROGRAMS |= {
    "gcc -gz=zlib-gnu": ("gcc", ["-O2", "-g", "-gz=zlib-gnu"] + C),
    "clang, ld.lld": ("clang", ["-O2", "-g", "-fuse-ld=lld"] + GC + C),
    "g++ -O2": ("g++", ["-O2", "-g"] + CC), "g++ -O0": ("g++", ["-O0", "-g"] + CC),
    "g++ with type units": ("g++", ["-O2", "-gdwarf-4", "-fdebug-types-section"] + CC),
    "clang++ -O2": ("clang++", ["-O2", "-g"] + CC), "clang++ -O0": ("clang++", ["-O0", "-g"] + CC),
    "clang++ with lines only": ("clang++", ["-O2", "-gline-tables-only"] + CC),
    "rustc": ("rustc", ["-O", "-g", "four.rs"]),
}
SPLIT = {  # the same code with missing parts; only lines of the outermost place remain
    "gcc -gsplit-dwarf": ("gcc", ["-O2", "-g", "-gsplit-dwarf"] + C, "gcc -O2 -g"),
    "gcc -gdwarf-4 -gsplit-dwarf": ("gcc", ["-O2", "-gdwarf-4", "-gsplit-dwarf"] + C, "gcc -O2 -gdwarf-4"),
    "clang -gsplit-dwarf": ("clang", ["-O2", "-g", "-gsplit-dwarf"] + C, "clang -O2 -g"),
}


def path_of(name):
    return "".join(c if c.isalnum() else "_" for c in name) + ".out"


def build(folder, name, compiler, options):
    """Returns the program's path; None: the program cannot be built here."""
    path = f"{folder}/{path_of(name)}"
    if not shutil.which(compiler):
        return None
    try:
        done = subprocess.run([compiler, *options, "-o", path], cwd=folder, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None
    return path if done.returncode == 0 else None


def addresses_of(path):
    found = set()
    out = subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        field = line.split()
        if len(field) == 4 and field[2] in CODE:
            begin, size = int(field[0], 16), int(field[1], 16)
            found.update(range(begin, begin + size, STEP))
    return sorted(found)[::len(found) // MOST + 1]


def parse(text, columns):
    """{address: [(function, file, line)]}, innermost first."""
    found, frames, lines = {}, None, [line for line in text.split("\n") if line]
    i = 0
    while i < len(lines):
        if lines[i].startswith("0x"):
            frames = found.setdefault(int(lines[i], 16), [])
            i += 1
            continue
        place = lines[i + 1].split(" (discriminator")[0]
        file, line = place.rsplit(":", 2 if columns and place.count(":") > 1 else 1)[:2]
        frames.append((lines[i].split(" inlined at ")[0], os.path.normpath(file) if file != "??" else file,
                       line.replace("?", "0")))
        i += 2
    return found


# The leak sanitizer opens files at exit, and waits for ever where it may not.
SEALABLE = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


def ask(tool, options, path, addresses, columns):
    lines = "".join(f"0x{a:x}\n" for a in addresses)
    try:
        done = subprocess.run([tool, *options, path], input=lines, capture_output=True, text=True, errors="replace",
                              timeout=60, env=SEALABLE)
    except subprocess.TimeoutExpired:
        return None
    return parse(done.stdout, columns) if done.returncode == 0 else None


OTHERS = {  # options, whether the tool gives columns
    "addr2line": (["-f", "-i", "-a", "-e"], False),
    "eu-addr2line": (["-f", "-i", "-a", "-e"], True),
    "llvm-symbolizer": (["--no-demangle", "--addresses", "--functions=linkage", "--inlines", "-e"], True),
}


def places(frames):
    return [frame[1:] for frame in frames]


def names_agree(name, mine, theirs):
    """Compares names of inlined functions. For the outermost one the tool may print the symbol, and
    addr2line the first of several."""
    first = name == "addr2line"
    return all(a[0] == b[0] for a, b in zip(mine[first:-1], theirs[first:-1]))


def compare(path, addresses):
    """Returns our frames, the errors, and how many frames equal each other tool's."""
    ours = ask(OURS, ["--sealed"], path, addresses, True)
    if ours is None:
        return None, ["dwarf_lines failed: a file was opened, or no DWARF was found"], {}
    others = {name: ask(name, *OTHERS[name][:1], path, addresses, OTHERS[name][1])
              for name in OTHERS if shutil.which(name)}
    others = {name: answer for name, answer in others.items() if answer}
    same, wrong = collections.Counter(), []
    for a in addresses:
        mine = ours[a]
        if not mine[0][2].strip("0") and mine[0][0] == "??":
            nothing = all(not places(answer.get(a, []))[:1] or places(answer[a])[0][1] == "0"
                          for answer in others.values())
            same["nothing known"] += nothing
            agree = nothing
        else:
            by = [name for name, answer in others.items() if places(answer.get(a, [])) == places(mine)]
            same.update(by)
            agree = any(names_agree(name, mine, others[name][a]) for name in by)
            same["outermost named by the symbol"] += all(mine[-1][0] != others[name][a][-1][0] for name in by)
        if not agree:
            wrong.append(f"{a:#x}: {mine}, but " + "; ".join(f"{n} {o.get(a)}" for n, o in others.items()))
    return ours, wrong, same


def report(number, name, wrong, note):
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}: {note}")
    for line in wrong[:5]:
        print(f"# {line}"[:1000])
    return not wrong


def check_program(number, name, path, known):
    addresses = addresses_of(path)
    ours, wrong, same = compare(path, addresses)
    known[name] = ours
    note = f"{len(addresses)} addresses; " + ", ".join(f"{n} {same[n]}" for n in sorted(same))
    return report(number, name, wrong, note)


def check_less(number, name, path, known, frames):
    """Checks a program of the same code with less DWARF: places of all frames, or of the innermost.
    Names may differ."""
    ours = ask(OURS, ["--sealed"], path, sorted(known), True)
    wrong = ["dwarf_lines failed: a file was opened, or no DWARF was found"] if ours is None else []
    for a in sorted(known) if ours else []:
        if places(ours[a])[:frames] != places(known[a])[:frames]:
            wrong.append(f"{a:#x}: {ours[a]}, but {known[a]}")
    return report(number, name, wrong, f"{len(known)} addresses")


def check_common(number, folder, known):
    paths = {name: f"{folder}/{path_of(name)}" for name in ("g++ -O2", "g++ -O0")}
    copies = {name: path + ".dwz" for name, path in paths.items()}
    if not shutil.which("dwz") or not all(known.get(name) for name in paths):
        print(f"ok {number} - a common file # SKIP no dwz, or no g++")
        return True
    for name in paths:
        shutil.copy(paths[name], copies[name])
    subprocess.run(["dwz", "-m", f"{folder}/common", *copies.values()], capture_output=True, check=False)
    return check_less(number, "a common file (dwz -m)", copies["g++ -O2"], known["g++ -O2"], 100)


def can_be_judged(name, compiler):
    """Whether a reliable tool is there: addr2line has errors, and eu-addr2line cannot read clang's
    DWARF."""
    if shutil.which("llvm-symbolizer") or name == "gcc -O2 -g":
        return True
    return bool(shutil.which("eu-addr2line")) and compiler in ("gcc", "g++") and "-flto" not in name


def main():
    ok, number, known = True, 0, {}
    if not shutil.which("addr2line") or not shutil.which("nm"):
        print("1..0 # SKIP no binutils")
        return 0
    print(f"1..{len(PROGRAMS) + len(SPLIT) + 1}")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/inc")
        for name, text in FILES.items():
            with open(f"{folder}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        for name, (compiler, options) in PROGRAMS.items():
            number += 1
            path = build(folder, name, compiler, options)
            if not path or not can_be_judged(name, compiler):
                print(f"ok {number} - {name} # SKIP {'no reliable tool' if path else 'cannot be built here'}")
            else:
                ok &= check_program(number, name, path, known)
        for name, (compiler, options, whole) in SPLIT.items():
            number += 1
            path = build(folder, name, compiler, options)
            if not path or not known.get(whole):
                print(f"ok {number} - {name} # SKIP cannot be built here")
            else:
                ok &= check_less(number, name, path, known[whole], 1)
        ok &= check_common(number + 1, folder, known)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
