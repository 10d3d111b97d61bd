"""split_users.py FROM TO [PID=UID[:SINCE]]... [PID=excluded]...: copies a bundle with other owners.

The named processes of the manifest belong to the given users, since SINCE (perf ns; default: from
the beginning). The owners of all other processes are unknown.
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
    """Copies the bundle SOURCE; CHANGE modifies its manifest."""
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
