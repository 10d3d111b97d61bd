#!/usr/bin/env python3
"""A ptsnap-decode for tests of ptsnapctl: speaks proto/worker.h on fd 3 and parses nothing.

FAKE_DECODER in the environment: ERROR:FAULTS, two numbers of the result. The output is a report
whose reason tells view, hash, pretty and the bundle's members.
"""

import io
import json
import os
import socket
import struct
import tarfile

channel = socket.socket(fileno=3)
data, fds, _, _ = socket.recv_fds(channel, 4096, 8)
# struct worker_request: the options (proto/decode_options.h) begin behind 16 bytes.
(view,) = struct.unpack_from("=I", data, 16)
want_hash, pretty = struct.unpack_from("=II", data, 16 + 64)
bundle, output = fds
size = os.fstat(bundle).st_size
archive = tarfile.open(fileobj=io.BytesIO(os.pread(bundle, size, 0)))
names = ",".join(sorted(archive.getnames()))
text = f"view={view} hash={want_hash} pretty={pretty} {names}"
os.write(output, json.dumps({"id": "fake", "trigger": {"reason": text}}).encode())
error, faults = (int(n) for n in os.environ.get("FAKE_DECODER", "0:0").split(":"))
channel.send(struct.pack("=IIIiQIIQQ24x", 2, 0, 100, error, faults, 0, 0, 0, 0))
