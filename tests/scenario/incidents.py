"""Planted incidents: the first screen of `ptsnapctl info' names the culprit.

Each program works as it should for a while, and then does not (guest_incidents.c, guest_crowd.c,
a regular expression in Python, and the collector of node). Where the program notices that itself,
it triggers the snapshot; else this script takes one when the program says that the incident has
happened. Prints TAP, with the line of the page that names the culprit. `incidents.py NAME...` runs
only those.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

from common import GUESTS, PTSNAPCTL, PTSNAPD, PYTHON, Failed, Work, main, run, tail

SCREEN = 24  # lines
PAGE = 60  # lines: a busy host adds suspects of its own
CROWD = {"contention", "cpu-wait"}  # kinds that only some incidents have
RECORDINGS = 3
REGEX = r"""
import os, re, signal, time
recorder = os.getppid()
pattern = re.compile(r"(a+)+$")
def is_word(line):
    return pattern.match(line) is not None
for i in range(300):
    is_word("aaaa" if i % 2 else "aaab")
    time.sleep(0.001)
if os.fork() == 0:
    time.sleep(0.25)
    os.kill(recorder, signal.SIGUSR2)
    os._exit(0)
is_word("a" * 40 + "b")
"""

NODE = shutil.which("node") or "node"
COLLECTOR = r"""
const cache = [];
function remember(n) { for (let i = 0; i < n; i++) cache.push({key: "k" + i, value: [i, i + 1]}); }
function handleRequest(i) { return JSON.stringify({i, at: Date.now()}).length; }
function serve(n) { let sum = 0; for (let i = 0; i < n; i++) sum += handleRequest(i); return sum; }
serve(2000);
remember(50000);
for (let k = 0; k < 4; k++) {
  serve(200);
  gc();
}
process.kill(process.ppid, "SIGUSR2");
setTimeout(() => {}, 1e8);
"""


def node_is_missing():
    """Returns why node cannot show its collector here, or None."""
    try:
        p = subprocess.run(["qemu-x86_64", NODE, "--single-threaded", "-e", "0"], timeout=300,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"no node here runs under the emulator: {e}"
    return None if p.returncode == 0 else f"{NODE} does not run under the emulator"


def bundles(work):
    """Returns the stored snapshots that are complete: each has its entry."""
    return [entry[:-len("entry")] + "ptsnap" for entry in glob.glob(f"{work}/state/*.entry")
            if '"done"' in open(entry, encoding="utf-8").read()]


def take(work, daemon, options):
    """Waits until the program has triggered a snapshot, or takes one when the program says so."""
    asked = False
    while not bundles(work):
        if daemon.poll() is not None:
            break
        with open(f"{work}/out", encoding="utf-8", errors="replace") as f:
            told = "incident" in f.read()
        if told and not asked:
            run([PTSNAPCTL, f"--socket={work}/socket", "snapshot", "--no-decode",
                 *options.get("snapshot", [])])
            asked = True
        time.sleep(0.02)


def record(work, command, options):
    args = [PTSNAPD, "--config=", "--source=emulated", f"--socket={work}/socket",
            f"--state-dir={work}/state", f"--aux-size={options.get('aux', '8M')}",
            f"--emu-cpus={options.get('cpus', 2)}", *options.get("ptsnapd", []), "--", *command]
    with open(f"{work}/err", "wb") as err, open(f"{work}/out", "wb") as out:
        daemon = subprocess.Popen(args, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        try:
            take(work, daemon, options)
        finally:
            if daemon.poll() is None:
                daemon.terminate()
            daemon.wait()
    found = bundles(work)
    if not found:
        raise Failed(f"no snapshot: {tail(f'{work}/err')}")
    return found[0]


def python_culprit(report):
    """Returns the function with most instructions of its own: the matcher."""
    return report["functions"][0]["name"]


def endless_loop(report):
    """Returns what the endless main loop of a server calls; the loop itself is no suspect."""
    if [s for s in report["suspects"] if s["kind"] == "long-call"]:
        raise Failed(f"a call does not return: {report['suspects']}")
    if "serve" not in [f["name"] for f in report["functions"]]:
        raise Failed("serve() did not run")
    return "look_up_in_index"


def nobody_asks(report):
    """Returns the loop of a server that waits for its next request: its call is not stuck."""
    if [s for s in report["suspects"] if s["kind"] in ("stuck-call", "long-call")]:
        raise Failed(f"a call does not return: {report['suspects']}")
    if "process_events" not in [f["name"] for f in report["functions"]]:
        raise Failed("process_events() did not run")
    return "process_events"


def scenario(name, command, wanted, options):
    """A busy host adds stalls of its own, which may hide what was planted: three recordings."""
    missing = options["skip"]() if "skip" in options else None
    if missing:
        return f"# SKIP {missing}"
    for attempt in range(RECORDINGS):
        try:
            return once(name, command, wanted, options)
        except Failed:
            if attempt + 1 == RECORDINGS:
                raise


def once(name, command, wanted, options):
    """WANTED: patterns that must be found among the suspects, in this order, or a function of the
    report that returns one; empty: there is no suspect."""
    with Work(name) as work:
        command = [word.replace("WORK", work) for word in command]
        bundle = record(work, command, options)
        report = f"{work}/report.json"
        run([PTSNAPCTL, "decode", "-o", report, bundle])
        page = run([PTSNAPCTL, "info", report], env={**os.environ, "LC_ALL": "C"}).splitlines()
        with open(report, encoding="utf-8") as f:
            parsed = json.load(f)
        shown = "\n".join(page)
        if len(page) > PAGE or max(map(len, page)) > 80:
            raise Failed(f"{len(page)} lines of up to {max(map(len, page))} columns:\n{shown}")
        odd = {s["kind"] for s in parsed["suspects"]} & CROWD - options.get("kinds", set())
        if odd:
            raise Failed(f"{odd} where nothing of the kind was planted:\n{shown}")
        if not wanted:
            if parsed["suspects"]:
                raise Failed(f"something stands out:\n{shown}")
            return "nothing stands out"
        said = []
        for pattern in wanted:
            pattern = re.escape(pattern(parsed)) if callable(pattern) else pattern
            lines = [i for i, line in enumerate(page[:SCREEN], 1) if re.search(pattern, line)]
            if not lines:
                raise Failed(f"no {pattern} in the first {SCREEN} lines:\n{shown}")
            said.append(f"{pattern} in line {lines[0]}")
        return ", ".join(said)


def short_list(work):
    guest = f"{GUESTS}/guest_incidents"
    crowd = f"{GUESTS}/guest_crowd"
    early = {"snapshot": ["--last=50ms"]}
    return [
        ("lock", [guest, "lock"], [r"^! handle\(\): [0-9,]+ calls", r"write_audit\(\)"], {}),
        ("deadlock", [guest, "deadlock"],
         [r"^! deadlock: 2 threads of process \d+ wait for each other.s locks", r"pay_rent", r"pay_wages", r"no traced thread ran|Threads at"], early),
        ("livelock", [guest, "livelock"], [r"^! enter_politely\(\) has not returned"], {}),
        ("crash", [guest, "crash"], [r"^! crash: .*ended by a signal", r"parse_record"],
         {"ptsnapd": ["--exit-with-command"]}),
        ("killed", [guest, "killed"], [r"^! crash: .*killed by a signal from outside", r"compute"], {}),
        ("config", [guest, "config"], [r"^! look_up_in_log\(\) ran for the first time"], {}),
        ("retry", [guest, "retry"], [r"^! fetch\(\) has not returned", r"connect_backend"], {}),
        ("pipeline", [guest, "pipeline", "WORK/held"],
         [r"has waited .* for the lock of a", r"flock <- filter"], early),
        ("regex", [PYTHON, "-c", REGEX], [python_culprit], {"aux": "32M"}),
        ("starved", [crowd, "starved"],
         [r"^! thread \d+ \(reports\) lost CPU 0", r"\(sensor\)", r"poll_sensor"],
         {"ptsnapd": ["--emu-cpus=1", "--emu-quantum=1000000000"]}),
        ("neighbour", [crowd, "neighbour"],
         [r"^! thread \d+ \(server\) could have run, and waited", r"\(encoder\)", r"encode_video"],
         {"ptsnapd": ["--emu-cpus=1"], "kinds": {"cpu-wait"}}),
        ("safepoint", [crowd, "safepoint"],
         [r"^! serve_client\(\): [0-9,]+ calls", r"wait_for_collector", r"collect_garbage\(\)"],
         {"ptsnapd": ["--pt=tsc,mtc,mtc_period=6"]}),
        ("allocator", [crowd, "allocator"],
         [r"^! contention: [0-9,]+ calls waited for a lock", r"__lll_lock_wait_private", r"malloc|free"],
         {"kinds": CROWD}),
        ("node", [NODE, "--single-threaded", "--expose-gc", "--max-semi-space-size=1", "-e",
                  COLLECTOR],
         [r"^! ", r"v8::internal::\S*(Garbage|MarkCompact)"],
         {"aux": "16M", "skip": node_is_missing}),
        ("unanswered", [guest, "unanswered"], [r"^! query\(\) has not returned", r"recvfrom"], {}),
        ("idle", [guest, "idle"], [nobody_asks], {}),
        ("quiet", [guest, "quiet"], [], {}),
        ("serve", [guest, "serve"], [endless_loop], {}),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short_list, short_list, scenario))
