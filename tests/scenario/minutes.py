"""Two real runs through `ptsnapctl diff': the same program twice in its ordinary state, and once with
a slowed function, and once on a way that it does not take ordinarily (guest_minute.c). The clock of
the emulated trace is virtual, so nothing depends on how fast the host is. Prints TAP.
`minutes.py NAME...` runs only those.
"""
import json
import sys

from common import GUESTS, PTSNAPCTL, Failed, Work, main, run
from incidents import record

CLOCK = {"ptsnapd": ["--emu-clock=virtual", "--pt=tsc,mtc,mtc_period=3"], "cpus": 1, "aux": "16M"}
LISTS = ("functions", "durations", "threads", "paths", "gaps")


def report_of(work, name, mode):
    with Work(name) as own:
        bundle = record(own, [f"{GUESTS}/guest_minute", *mode], CLOCK)
        report = f"{work}/{name}.json"
        run([PTSNAPCTL, "decode", "-o", report, bundle])
    with open(report, encoding="utf-8") as f:
        calls = {f["name"]: f["calls"] for f in json.load(f)["functions"]}
    if calls.get("look_up", 0) < 1000:
        raise Failed(f"the trace has {calls.get('look_up')} lookups")
    return report


def differences(a, b):
    found = json.loads(run([PTSNAPCTL, "diff", "--json=short", a, b]))
    if found["notes"]:
        raise Failed(f"the runs are not alike: {found['notes']}")
    return found


def first(found, kind, name):
    """Returns the row of the function that costs most, which must be NAME."""
    if not found["functions"]:
        raise Failed(f"no function differs: {found}")
    row = found["functions"][0]
    if row["name"] != name or row["kind"] != kind:
        raise Failed(f"first is {row}, not {name} ({kind})")
    return row


def ordinary(a, b):
    found = differences(a, b)
    if any(found[f"{key}Total"] for key in LISTS):
        raise Failed(f"something differs: { {key: found[key] for key in LISTS} }")
    return "nothing differs"


def slow(a, b):
    found = differences(a, b)
    row = first(found, "more", "look_up")
    # 60 rounds of its loop become 220, of 140 rounds of a request: from 43 to 73 %.
    if not 20 < row["costPercent"] < 45 or row["fewCounts"]:
        raise Failed(f"its cost: {row}")
    slower = [d["name"] for d in found["durations"] if d["kind"] == "slower"]
    if "look_up" not in slower:
        raise Failed(f"slower: {slower}")
    page = run([PTSNAPCTL, "info", f"--baseline={a}", b])
    end = page[page.index("Different from the baseline"):]
    if "look_up in guest_minute" not in end:
        raise Failed(end)
    return f"look_up() {row['costPercent']:+.1f} % of a CPU"


def detour(a, b):
    found = differences(a, b)
    row = first(found, "new", "read_archive")
    paths = [p for p in found["paths"] if p["kind"] == "new" and p["function"] == "read_archive"]
    names = [frame["name"] for frame in paths[0]["frames"]] if paths else []
    if "read_archive" not in names or "handle" not in names:
        raise Failed(f"no way to read_archive(): {found['paths']}")
    return f"read_archive() {row['costPercent']:+.1f} % of a CPU, by {' <- '.join(names[:4])}"


def scenario(name, compare, mode):
    with Work(f"minutes-{name}") as work:
        return compare(report_of(work, "a", []), report_of(work, "b", mode))


def short_list(_):
    return [("ordinary", ordinary, []), ("slow", slow, ["slow"]), ("detour", detour, ["detour"])]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, short_list, scenario))
