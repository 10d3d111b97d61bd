"""one_user.py FULL LIMITED BUNDLE UID: what a report for one user may hold.

FULL is the report of all, LIMITED that for UID, BUNDLE what both were made from. Of each thread of
the user it says what the full one does, unless the thread was not his from the beginning; of nobody
else it has a name, a number, a path or an address.
"""
import json
import sys
import tarfile

full = json.load(open(sys.argv[1]))
text = open(sys.argv[2]).read()
limited = json.loads(text)
manifest = json.load(tarfile.open(sys.argv[3]).extractfile("manifest.json"))
uid = int(sys.argv[4])

# Are they his from the beginning, as tests/support/split_users.py has it?
exact = all(p.get("uidSinceNSec", 1) == 1 for p in manifest["processes"])
own = {p["pid"] for p in manifest["processes"]
       if p["uid"] == uid and "uidSinceNSec" in p and not p.get("excluded")}


def strings(value):
    """Every string and number in VALUE, with the key it has."""
    if isinstance(value, dict):
        for key, v in value.items():
            for inner in strings(v):
                yield (key, inner[1]) if inner[0] is None else inner
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)
    else:
        yield (None, value)


def thread_of(report, tid):
    found = [t for t in report["threads"] if t["tid"] == tid]
    assert len(found) == 1, tid
    return found[0]


def places_of(report, thread):
    """The places of THREAD: its stack, and where its branches went."""
    numbers = [*(thread["stack"] or []), *(b["to"] for b in thread["lastBranches"])]
    return [None if n is None else report["places"][n] for n in numbers]


assert limited["onlyUid"] == uid
assert limited["cpus"] == []
assert limited["trigger"]["sender"] is None or limited["trigger"]["sender"]["uid"] == uid

# Everything in the limited report is of the user's processes.
for kind in ("threads", "turns", "processes", "ptwrites", "power", "interrupts", "aborts"):
    for one in limited[kind]:
        assert one["pid"] in own, (kind, one)
for p in limited["processes"]:
    assert p["uid"] == uid and (p["ppid"] is None or p["ppid"] in own), p

# All of it, and as it is in the report of all.
wanted = [t for t in full["threads"] if t["pid"] in own]
assert {t["tid"] for t in limited["threads"]} <= {t["tid"] for t in wanted}
if exact:
    assert {t["tid"] for t in limited["threads"]} == {t["tid"] for t in wanted}
for t in wanted if exact else []:
    mine = thread_of(limited, t["tid"])
    for key in ("pid", "comm", "instructions", "branches", "cpuNSec"):
        assert mine[key] == t[key], (t["tid"], key, mine[key], t[key])
    for here, there in zip(places_of(limited, mine), places_of(full, t), strict=True):
        assert here == there or here["address"] == there["address"], (t["tid"], here, there)
assert limited["totals"]["instructions"] == sum(t["instructions"] for t in limited["threads"])

# Nothing else.
assert [g["kind"] for g in limited["gaps"]].count("not-permitted") == 1
for g in limited["gaps"]:
    assert g["offset"] is None
    if g["kind"] == "not-permitted":
        assert all(g[k] is None for k in ("cpu", "atNSec", "tsc", "bytes", "place")), g

# No string that only the others have: names, command lines, paths, addresses, symbols.
theirs, mine = set(), set()
for kind in ("threads", "processes", "turns"):
    for one in full[kind]:
        (mine if one["pid"] in own else theirs).update(
            v for _, v in strings(one) if isinstance(v, str))
for t in full["threads"]:
    (mine if t["pid"] in own else theirs).update(
        v for _, v in strings(places_of(full, t)) if isinstance(v, str))
for p in manifest["processes"]:
    (mine if p["pid"] in own else theirs).update(
        v for v in (p["exe"], p["cmdline"], p["cgroup"]) if v)
if limited["trigger"]["sender"] is None:
    assert limited["trigger"]["name"] is None and limited["trigger"]["reason"] is None
# Its head tells of the host and of the recorder.
tail = {k: v for k, v in limited.items()
        if k not in ("generator", "host", "trigger", "configuration", "trace")}
here = {v for _, v in strings(tail) if isinstance(v, str)}
for one in full["functions"]:
    if one.get("name") and one["name"] not in here:
        theirs.add(one["name"])
# Two programs may lie at the same address: those of threads were compared above.
secret = {v for v in theirs - mine if len(v) > 2 and not v.startswith("0x")}
keys = set(limited) | {k for k, _ in strings(limited) if k}
leaked = {v for v in secret if v in here and v not in keys}
# Functions and images that both use are the user's, too.
shared = {f.get("name") for f in limited["functions"]} | {i["path"] for i in limited["images"]}
assert not leaked - shared, sorted(leaked - shared)[:20]
for marker in sys.argv[5:]:
    assert marker not in text, marker
numbers = {v for k, v in strings(tail) if k in ("pid", "tid", "ppid") and v is not None}
foreign = {t["tid"] for t in full["threads"] if t["pid"] not in own}
foreign |= {p["pid"] for p in manifest["processes"] if p["pid"] not in own}
assert not numbers & foreign, numbers & foreign
print(f"{len(wanted)} threads of uid {uid}, {len(full['threads']) - len(wanted)} of others, "
      f"{len(secret)} strings that are not told")
