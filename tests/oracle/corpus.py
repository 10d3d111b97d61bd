"""Decodes traces that others recorded on real hardware, through ptsnapctl's --raw-pt form. In every
view, the instructions must equal those recorded in expected/ips.txt.gz. Prints TAP."""
import gzip
import json
import os
import struct
import subprocess
import sys

BUILD = os.environ.get("PTSNAP_BUILDDIR", "build/check")
CORPUS = os.environ.get("PTSNAP_CORPUS", "../shared/corpus")
CTL = f"{BUILD}/ctl/ptsnapctl"

FOLDERS = [
    ("dynamorio-hello", ["--cpu=6/85/4", "--mtc-freq=3", "--nom-freq=37", "--cpuid-0x15=2,308"],
     ["hello:0x1000:0x27@0x401000"]),
    ("hase-control_flow-0404", ["--cpu=6/94/3", "--mtc-freq=3", "--nom-freq=32",
                                "--cpuid-0x15=2,266"], ["binary:0:0x1000@0x400000"]),
    ("hase-loopy-0514-snapshot", ["--cpu=6/61/4", "--nom-freq=26"], ["binary:0:0x6c0@0x400000"]),
    ("libxdc-foo", ["--cpu=6/94/3"], None),
    ("libxdc-foo", [], None),
    ("arcus/hello", ["--cpu=6/94/3"], None),
    ("arcus/cve-2004-0597-poc", ["--cpu=6/94/3"], None),
    ("arcus/ovf-01-poc", ["--cpu=6/94/3"], None),
    ("arcus/ovf-02-ben", ["--cpu=6/94/3"], None),
    ("arcus/ovf-02-poc", ["--cpu=6/94/3"], None),
]


def pages(folder):
    with open(f"{folder}/pages.addr", "rb") as f:
        data = f.read()
    addresses = struct.unpack(f"<{len(data) // 8}Q", data)
    return [f"pages.dump:{i * 4096:#x}:0x1000@{a:#x}" for i, a in enumerate(addresses) if not a & 0xfff]


def decode(folder, options, images, *view):
    args = [CTL, "decode", *view, *options, f"--raw-pt={folder}/pt.bin"]
    args += [f"--raw-image={folder}/{i}" for i in images]
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        raise ValueError(f"exit {p.returncode}: {p.stderr.strip()[-300:]}")
    # Lines about gaps are none of instructions or branches.
    return "".join(line for line in p.stdout.splitlines(True) if not line.startswith("# "))


def fnv(ips):
    value = 0xcbf29ce484222325
    for ip in ips:
        for byte in int(ip, 16).to_bytes(8, "little"):
            value = ((value ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    return f"{value:016x}"


def check(name, options, images):
    folder = f"{CORPUS}/{name}"
    images = images or pages(folder)
    with gzip.open(f"{folder}/expected/ips.txt.gz", "rt") as f:
        expected = f.read().split()
    got = decode(folder, options, images, "--view=insns").split()
    if got != expected:
        at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b),
                  min(len(got), len(expected)))
        raise ValueError(f"{len(got)} instructions, expected {len(expected)}, first difference at {at}")
    text = decode(folder, options, images, "--view=summary", "--hash", "--json=short")
    s = json.loads(text)
    if s["instructions"] != len(expected) or s["ipHash"] != fnv(expected) or s["errors"]:
        raise ValueError(f"summary: {text}")
    for key in ("instructions", "branches", "bytes"):
        if text.split('"cpus"')[0].count(f'"{key}"') != 1:
            raise ValueError(f"summary says {key} more than once: {text}")
    lines = decode(folder, options, images, "--view=branches").splitlines()
    if len(lines) != s["branches"]:
        raise ValueError(f"{len(lines)} lines of branches, the summary says {s['branches']}")
    published = f"{folder}/published-branches.trace"
    if os.path.exists(published):
        with open(published, encoding="ascii") as f:
            if [line.split() for line in lines] != [line.split() for line in f]:
                raise ValueError("branches differ from the published ones")
    return f"{len(expected)} instructions, {len(lines)} branches"


def main():
    todo = [f for f in FOLDERS if os.path.isdir(f"{CORPUS}/{f[0]}")]
    if not todo:
        print("1..0 # SKIP no corpus (environment PTSNAP_CORPUS)")
        return 0
    failed = 0
    print(f"1..{len(FOLDERS)}")
    for i, (name, options, images) in enumerate(FOLDERS, 1):
        title = f"{name} {' '.join(options)}"
        if not os.path.isdir(f"{CORPUS}/{name}"):
            print(f"ok {i} - {title} # SKIP not in the corpus")
            continue
        try:
            print(f"ok {i} - {title}: {check(name, options, images)}", flush=True)
        except (ValueError, OSError) as e:
            failed += 1
            print(f"not ok {i} - {title}\n# {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
