"""The decoders that the bench compares: ptsnap-decode, libipt's block decoder, perf. Each gives the
reason if it is missing."""
import json
import os
import shutil
import subprocess

from measure import BUILD, Failed, run_measured

PTSNAPCTL = f"{BUILD}/ctl/ptsnapctl"
BENCH_IPT = f"{BUILD}/tests/bench/bench_ipt"


class Libipt:
    def __init__(self):
        self.missing = None if os.path.exists(BENCH_IPT) else "no libipt"

    def command(self, bundle, passes):
        return [BENCH_IPT, bundle, str(passes)]

    def run(self, bundle, passes):
        """Returns (usage, output). Fails unless everything was decoded."""
        usage = run_measured(self.command(bundle, passes))
        said = json.loads(usage.out)
        if said["errors"] or not said["instructions"]:
            raise Failed(f"libipt: {said['errors']} errors in {os.path.basename(bundle)}")
        return usage, said


class Walk:
    """The bare walk over nodes: no decoder, but a lower bound of the time."""

    def run(self, bundle, passes):
        usage = run_measured([f"{BUILD}/tests/bench/bench_walk", bundle, str(passes)])
        said = json.loads(usage.out)
        if said["wrong"]:
            raise Failed(f"bench_walk is lost in {os.path.basename(bundle)}")
        return usage, said


class Ours:
    """Ptsnap-decode. Tries options with a bundle, because older workers lack some."""
    missing = None

    def __init__(self, bundle):
        self.threaded = self.knows("--threads=1", bundle)
        self.repeats = self.knows("--repeat=1", bundle)
        self.hurries = self.knows("--deadline=1s", bundle) and self.knows("--skim=psb", bundle)

    def knows(self, option, bundle):
        args = [PTSNAPCTL, "decode", "--view=summary", option]
        if getattr(self, "threaded", False) and not option.startswith("--skim"):
            args.append("--threads=1")
        p = subprocess.run([*args, bundle],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return p.returncode == 0

    def command(self, bundle, view, passes=None, threads=1):
        args = [PTSNAPCTL, "decode", "--json=short", f"--view={view}"]
        if passes and self.repeats:
            args.append(f"--repeat={passes}")
        if threads and self.threaded:
            args.append(f"--threads={threads}")
        return [*args, bundle]

    def run(self, bundle, passes, threads=1):
        """(usage, summary). Without --repeat each pass is a whole process."""
        usage = run_measured(self.command(bundle, "summary", passes, threads))
        said = json.loads(usage.out)
        if not self.repeats:
            said["passes"] = [usage.cpu]
        return usage, said

    def newest(self, bundle, *options):
        """A report with OPTIONS, of all CPUs."""
        usage = run_measured([PTSNAPCTL, "decode", "--json=short", *options, bundle])
        return usage, json.loads(usage.out)

    def report(self, bundle, threads=1):
        return run_measured(self.command(bundle, "report", None, threads))


class Perf:
    def __init__(self):
        self.missing = None if shutil.which("perf") else "no perf"
        self.data, self.symfs = None, None

    def prepare(self, bundle, work):
        """Exports BUNDLE with its code. Marks perf as missing if perf cannot read the result."""
        shutil.rmtree(f"{work}/images", ignore_errors=True)
        self.data, self.symfs = f"{work}/perf.data", f"{work}/images"
        run_measured([PTSNAPCTL, "export", "-q", f"--images={self.symfs}", "-o", self.data, bundle])

    def run(self, verb, *options):
        home = os.path.dirname(self.data)
        env = dict(os.environ, LC_ALL="C", PERF_CONFIG="/dev/null", DEBUGINFOD_URLS="", HOME=home)
        return run_measured(["perf", verb, "-f", "--symfs", self.symfs, *options, "-i", self.data],
                            out=subprocess.DEVNULL, env=env)

    def script(self):
        """The cheapest form that prints each branch."""
        return self.run("script", "--itrace=b", "-F", "ip,addr")

    def report(self):
        return self.run("report", "--stdio")
