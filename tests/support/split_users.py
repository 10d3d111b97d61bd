"""split_users.py FROM TO [PID=UID[:SINCE]]... [PID=excluded]...: a bundle with other owners.

The manifest's processes become those of the users that are named, since SINCE (perf ns; from the
beginning); of all others it is not known whose they are.
"""
import io
import json
import sys
import tarfile


def split(manifest, owners):
    for process in manifest["processes"]:
        process.pop("uidSinceNSec", None)
        process.pop("excluded", None)
        owner = owners.pop(str(process["pid"]), None)
        if owner == "excluded":
            process.update(excluded=True, exe=None, cmdline=None)
        elif owner:
            uid, _, since = owner.partition(":")
            process.update(uid=int(uid), uidSinceNSec=int(since or 1))
    assert not owners, owners


def rewrite(source, target, change):
    """A copy of the bundle SOURCE whose manifest is as CHANGE leaves it."""
    with tarfile.open(source) as old, tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as new:
        for member in old:
            data = old.extractfile(member).read()
            if member.name == "manifest.json":
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest, indent=2).encode()
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    rewrite(sys.argv[1], sys.argv[2],
            lambda manifest: split(manifest, dict(one.split("=") for one in sys.argv[3:])))
