#!/usr/bin/python3
"""Compares the bounds of functions of stripped files with the symbol tables that they lost.

Files: programs and libraries of this host and of the build that have a symbol table, and those whose
table a debug package has in /usr/lib/debug. Each file is stripped as Debian strips, and the functions
that the decoder finds in it are compared with those of its symbol table, byte by byte. A byte, or the
first byte of a function, is

    right    if the decoder has it in a function that begins where the function of the table begins;
    marked   if no function of the decoder has it: the report says boundsUnknown;
    wrong    if the decoder has it in a function that begins elsewhere.

function_bounds.py [--most=N] [--each] [FILE...]   prints the shares, and with --each those of files
PTSNAP_BUILDDIR names the build. The exit status is 1 if more than one byte in a thousand is wrong.
"""
import bisect
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ.get("PTSNAP_BUILDDIR", ".")
TOOL = f"{BUILD}/tests/oracle/elf_functions"
WHERE = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/local", "/opt")
DEBUG = "/usr/lib/debug/.build-id"
MOST_BYTES = 300 << 20
WRONG_PER_MILLE = 1


def is_program(path):
    """An executable or shared object for x86-64."""
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return False
    return head[:5] == b"\x7fELF\x02" and head[16] in (2, 3) and head[18:20] == b"\x3e\0"


def files():
    seen = set()
    for top in (*WHERE, BUILD):
        for directory, below, names in os.walk(top):
            below.sort()
            if directory.startswith("/usr/lib/debug"):
                below.clear()
                continue
            for name in sorted(names):
                path = f"{directory}/{name}"
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                st = os.stat(path)
                if (st.st_dev, st.st_ino) in seen or not 0 < st.st_size < MOST_BYTES:
                    continue
                seen.add((st.st_dev, st.st_ino))
                if is_program(path):
                    yield path


def read(args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace", check=False).stdout


def build_id(notes):
    found = re.search(r"Build ID: ([0-9a-f]{6,})", notes)
    return found[1] if found else None


def table_file(path):
    """The file with PATH's symbol table: itself or a debug file; None."""
    text = read(["readelf", "-nSW", path])
    if re.search(r"\] \.symtab ", text):
        return path
    i = build_id(text)
    debug = f"{DEBUG}/{i[:2]}/{i[2:]}.debug" if i else None
    return debug if debug and os.path.exists(debug) else None


def code_sections(path):
    out = []
    for line in read(["readelf", "-SW", path]).splitlines():
        m = re.match(r"\s*\[ *\d+\] (\S+)\s+PROGBITS\s+(\S+) \S+ (\S+) \S+\s+(\S*X\S*) ", line)
        if m and "A" in m[4]:
            out.append((int(m[2], 16), int(m[2], 16) + int(m[3], 16)))
    return sorted(out)


def truth(path, sections):
    """{begin: size} of the functions of the symbol table."""
    out = {}
    for line in read(["readelf", "-sW", path]).splitlines():
        f = line.split()
        if len(f) < 7 or f[3] not in ("FUNC", "IFUNC") or f[6] == "UND":
            continue
        begin, size = int(f[1], 16), int(f[2], 0)
        i = bisect.bisect(sections, (begin, 1 << 64)) - 1
        if size and i >= 0 and begin + size <= sections[i][1]:
            out[begin] = max(size, out.get(begin, 0))
    return out


def parts(functions):
    """Functions [(begin, size)] as parts [(begin, end, begin of the innermost function)]."""
    out, stack, at = [], [], 0

    def until(end):
        nonlocal at
        while stack and at < end:
            to = min(stack[-1][1], end)
            if to > at:
                out.append((at, to, stack[-1][0]))
                at = to
            if stack[-1][1] <= at:
                stack.pop()
        at = max(at, end)

    for begin, size in sorted(functions):
        until(begin)
        stack.append((begin, begin + size))
    until(1 << 64)
    return out


def ours(path):
    lines = read([TOOL, path]).splitlines()[1:]
    fields = [line.split() for line in lines]
    listed = [(int(f[0], 16), int(f[1])) for f in fields]
    begins = [begin for begin, _ in listed]
    # A symbol without a size ends at the next one.
    return [(b, s or (begins[i + 1] - b if i + 1 < len(begins) else 1))
            for i, (b, s) in enumerate(listed)]


def compare(table, found):
    entries, sums = [0, 0, 0], [0, 0, 0]
    have = parts(found)
    begins = [p[0] for p in have]
    for begin, end, function in parts(table.items()):
        at = begin
        i = max(bisect.bisect(begins, at) - 1, 0)
        while at < end:
            while i < len(have) and have[i][1] <= at:
                i += 1
            if i == len(have) or have[i][0] > at:
                to, kind = min(end, have[i][0] if i < len(have) else end), 1
            else:
                to, kind = min(end, have[i][1]), 0 if have[i][2] == function else 2
            sums[kind] += to - at
            if at == function:
                entries[kind] += 1
            at = to
    return entries, sums


def shares(n):
    all_of = max(sum(n), 1)
    return ", ".join(f"{w} {100 * c / all_of:.3f} %" for w, c in
                     zip(("right", "marked", "wrong"), n)) + f" of {sum(n)}"


def main(argv):
    most = next((int(a[7:]) for a in argv if a.startswith("--most=")), 300)
    named = [a for a in argv if not a.startswith("--")]
    entries, sums, n, worst = [0, 0, 0], [0, 0, 0], 0, []
    with tempfile.TemporaryDirectory() as work:
        stripped = f"{work}/stripped"
        for path in named or files():
            table = table_file(path)
            if not table:
                continue
            functions = truth(table, code_sections(path))
            if not functions or subprocess.run(
                    ["strip", "--strip-unneeded", "--remove-section=.comment",
                     "--remove-section=.note", "-o", stripped, path],
                    stderr=subprocess.DEVNULL, check=False).returncode:
                continue
            e, s = compare(functions, ours(stripped))
            entries, sums = [a + b for a, b in zip(entries, e)], [a + b for a, b in zip(sums, s)]
            worst.append((s[2], path, e, s))
            if "--each" in argv:
                print(f"{path}: entries {shares(e)}; bytes {shares(s)}", flush=True)
            n += 1
            if n == most:
                break
    print(f"{n} files\nentries: {shares(entries)}\nbytes: {shares(sums)}")
    for wrong, path, e, s in sorted(worst, reverse=True)[:5]:
        if wrong:
            print(f"most wrong: {path}: entries {shares(e)}; bytes {shares(s)}")
    return int(sums[2] * 1000 > WRONG_PER_MILLE * sum(sums))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
