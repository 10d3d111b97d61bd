"""Programs whose files moved, or were never where the recorder looks: in a mount namespace of their
own, deleted or replaced while they run, on a tmpfs, unloaded with another library loaded at the
same place, on a FUSE file system that does not answer the recorder.

Each runs under the emulated machine. Then its files are removed, and each snapshot is decoded
twice: as the recorder stored it, and from the self-contained bundle without the recorder's state
directory. The first time every thread's decoded instructions equal those that the thread executed;
the second time they are the same as the first time, with the same gaps. Prints TAP.
"""
import functools
import json
import os
import shutil
import signal
import subprocess
import sys

from common import (GUESTS, PTSNAPCTL, RARE, Failed, Recording, Snapshot, Work, main, run)

SPIN = os.path.abspath(f"{GUESTS}/guest_spin")
MAPS = os.path.abspath(f"{GUESTS}/guest_maps")
FUSE = os.path.abspath(f"{GUESTS}/fuse_file")
# An overflow shows that the end of a thread is missing if the thread was killed just between two
# blocks.
KILLED = ("overflow",)

OWN_MOUNTS = f"""
mkdir "$1/private"
unshare -m sh -c 'mount -t tmpfs t "$1/private" && cp {SPIN} "$1/private/p" &&
	while [ ! -e "$1/stop" ]; do "$1/private/p" 30000; done' - "$1"
"""
BIND = f"""
mkdir "$1/here" "$1/there"
cp {SPIN} "$1/there/p"
cp /bin/true "$1/here/p"
unshare -m sh -c 'mount --bind "$1/there" "$1/here" &&
	while [ ! -e "$1/stop" ]; do "$1/here/p" 30000; done' - "$1"
"""
DELETED = f"""
cp {SPIN} "$1/p"
"$1/p" 150000 &
sleep 0.1
rm "$1/p"
wait
"""
# The second file has another build id, and is shorter.
REPLACED = f"""
cp {SPIN} "$1/p"
"$1/p" 150000 &
sleep 0.1
strip -o "$1/new" {MAPS}
mv "$1/new" "$1/p"
mkdir "$1/d"
"$1/p" "$1/d"
wait
"""
TMPFS = f"""
cp {SPIN} "$2/p"
while [ ! -e "$1/stop" ]; do "$2/p" 30000; done
rm "$2/p"
"""
# Most of these files are deleted before the recorder hears of them.
GONE = f"""
for i in 1 2 3 4 5 6; do
	cp {SPIN} "$1/p$i"
	"$1/p$i" 10
	rm "$1/p$i"
done
while [ ! -e "$1/stop" ]; do {SPIN} 5000; done
"""
FUSED = f"""
"$1/fuse/p" 20000
while [ ! -e "$1/stop" ]; do {SPIN} 20000; done
"""

LIBRARIES = (
    "unsigned long piece(unsigned long v)\n{ unsigned long s = 0; for (; v; v--) s += v * 3; return s; }\n",
    "unsigned long piece(unsigned long v)\n{ unsigned long s = 1; for (; v; v--) "
    "if (v & 1) s = s * 5 + v; else s ^= v << 3; return s; }\n",
)


def shell(text):
    def command(work, scratch):
        with open(f"{work}/script", "w", encoding="utf-8") as f:
            f.write(text)
        return ["sh", f"{work}/script", scratch, f"{work}/tmpfs"]
    return command


def libraries(_, scratch):
    """Loads and unloads libraries in turns; maps files over one another."""
    made = []
    for i, code in enumerate(LIBRARIES):
        with open(f"{scratch}/lib.c", "w", encoding="utf-8") as f:
            f.write(code)
        made.append(f"{scratch}/lib{i}.so")
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", made[-1], f"{scratch}/lib.c"],
                       check=True)
    return [MAPS, scratch, *made]


@functools.cache
def has_run(bundle, name):
    """Whether instructions of program NAME were decoded."""
    if name is None:
        return True
    report = json.loads(run([PTSNAPCTL, "decode", "--json=short", bundle]))
    return any(i["path"].endswith(name) and i["instructions"] > 0 and not i["missing"]
               for i in report["images"])


def until_run(scratch, options):
    """Records a script that runs until the file `stop' exists, until its program is in a snapshot.
    On a host under load, packets of time push everything else out of the rings."""
    if not options.get("until"):
        return {}
    name = options.get("runs", "/p")
    return {"stop": f"{scratch}/stop",
            "enough": lambda bundles: any(has_run(b, name) for b in bundles)}


def whole_of(bundle, to):
    run([PTSNAPCTL, "fetch", "--format=bundle", "-o", to, bundle])
    return to


def check_both(bundles, truth, work, state, options):
    """Checks bundles as stored, and that whole bundles alone give the same: instructions of each
    thread, and gaps. Returns the number of instructions."""
    stored = [Snapshot(b, truth) for b in bundles]
    n = sum(s.check_subset(options["subset"]) if "subset" in options else s.check_equal()
            for s in stored)
    wholes = [whole_of(b, f"{work}/{os.path.basename(b)}") for b in bundles]
    shutil.rmtree(state)
    for s, whole in zip(stored, wholes):
        s.check_same(Snapshot(whole, truth))
    if not any(has_run(b, options.get("runs", "/p")) for b in wholes):
        raise Failed("no snapshot contains the program")
    return n


def fuse_start(work, scratch):
    os.mkdir(f"{scratch}/fuse")
    server = subprocess.Popen([FUSE, f"{scratch}/fuse", "p", SPIN, f"{work}/fuse.log", "ptsnapd"],
                              stdout=subprocess.PIPE, text=True)
    if server.stdout.readline() != "ready\n":
        server.wait()
        return None
    return server


def fuse_check(work, bundles):
    with open(f"{work}/fuse.log", encoding="utf-8") as f:
        touched = f.read()
    if touched:
        raise Failed(f"the recorder touched the FUSE mount: {touched[:200]}")
    for bundle in bundles:
        report = json.loads(run([PTSNAPCTL, "decode", "--json=short", bundle]))
        if not report["gapCounts"].get("image-missing"):
            continue
        why = [i["missing"] for i in report["images"] if i["path"].endswith("/fuse/p")]
        if len(why) != 1 or "FUSE" not in why[0]:
            raise Failed(f"the report does not mention FUSE: {why}")


def one(_, command, options):
    if "needs" in options and not options["needs"]():
        return "# SKIP cannot be done on this host"
    with Work("images") as work:
        scratch = f"{work}/scratch"
        os.mkdir(scratch)
        server = None
        try:
            if options.get("fuse"):
                server = fuse_start(work, scratch)
                if not server:
                    return "# SKIP no FUSE on this host"
            if options.get("tmpfs"):
                os.mkdir(f"{work}/tmpfs")
                subprocess.run(["mount", "-t", "tmpfs", "t", f"{work}/tmpfs"], check=True)
            r = Recording(work, command(work, scratch), RARE,
                          ["--emu-cpus=2", *options.get("emu", ())], "1M", cwd=scratch,
                          **until_run(scratch, options))
            status = r.record(2, 0.4)
            if status != options.get("status", 0):
                raise Failed(f"exit status {status}")
            if server:
                fuse_check(work, r.bundles())
        finally:
            if server:
                server.send_signal(signal.SIGTERM)
                server.wait()
            if os.path.ismount(f"{work}/tmpfs"):
                subprocess.run(["umount", "-l", f"{work}/tmpfs"], check=True)
        shutil.rmtree(scratch)
        n = check_both(r.bundles(), r.truth, work, r.state, options)
        return f"{n} instructions"


def root():
    return os.geteuid() == 0


def binutils():
    return shutil.which("strip") is not None


def gcc():
    return shutil.which("gcc") is not None


WORKLOADS = (
    ("own mounts", shell(OWN_MOUNTS), {"needs": root, "until": True}),
    ("another file bound over it", shell(BIND), {"needs": root, "until": True}),
    ("deleted", shell(DELETED), {}),
    ("replaced", shell(REPLACED), {"needs": binutils, "subset": KILLED}),
    ("on a tmpfs", shell(TMPFS), {"needs": root, "tmpfs": True, "until": True}),
    # The program ends by exec of itself; the last exec exits with this status.
    ("unloaded", libraries, {"needs": gcc, "subset": KILLED, "status": 3,
                              "runs": "/lib1.so"}),
    ("gone at once", shell(GONE), {"subset": ("image-gone",), "runs": "/guest_spin", "until": True}),
    ("FUSE", shell(FUSED), {"needs": root, "fuse": True, "subset": ("image-missing",),
                           "runs": "/guest_spin", "until": True}),
)


def with_build_ids(name, command, options):
    return (f"{name}, build ids", command, {**options, "emu": ["--emu-build-id"]})


def short_list(_):
    """Each scenario by inode or by build id, as most kernels provide; those where the kind matters
    by both."""
    both = ("replaced", "gone at once", "FUSE")
    return [w for w in WORKLOADS if w[0] in both] + [with_build_ids(*w) for w in WORKLOADS]


def full_list(_):
    return list(WORKLOADS) + [with_build_ids(*w) for w in WORKLOADS]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, full_list, one))
