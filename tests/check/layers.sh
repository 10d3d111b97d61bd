# Who may include whom: one line a room, from docs/ARCHITECTURE.md. A room is the folder of the
# including file; what it includes in quotes must lie in one of the folders (or be a header) listed.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
rules='
proto:               proto
proto/perf: proto proto/perf
proto/bundle: proto proto/perf proto/bundle
decoder/run:         proto proto/perf proto/bundle decoder/run
capture/proc:        proto proto/perf proto/bundle capture/proc
capture/kernel:      proto proto/perf proto/bundle capture/proc capture/kernel
capture/ring:        proto proto/perf proto/bundle capture/proc capture/ring
capture/perf:        proto proto/perf proto/bundle capture/proc capture/ring capture/perf
capture/emu/machine: proto proto/perf proto/bundle capture/emu/machine
capture/emu/host:    proto proto/perf proto/bundle capture/proc capture/ring capture/perf capture/emu/machine capture/emu/host
capture/emu/plugin:  proto proto/perf proto/bundle capture/emu/machine capture/emu/plugin
sideband/timeline: proto proto/perf proto/bundle sideband/timeline
sideband/elf: proto proto/perf proto/bundle sideband/timeline sideband/elf
sideband/dwarf: proto proto/perf proto/bundle sideband/timeline sideband/elf sideband/dwarf
sideband/symbols: proto proto/perf proto/bundle sideband/timeline sideband/elf sideband/dwarf sideband/symbols
sideband/kernel: proto proto/perf proto/bundle sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel
decoder/packet: proto proto/perf proto/bundle decoder/packet
decoder/time: proto proto/perf proto/bundle decoder/packet decoder/time
decoder/code: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code
decoder/hot: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot
decoder/flow: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow
decoder/worker/turns: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns
decoder/worker/replay: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns decoder/worker/replay
decoder/worker/count: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns decoder/worker/replay decoder/worker/count
decoder/worker/report: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns decoder/worker/replay decoder/worker/count decoder/worker/report
decoder/worker/view: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns decoder/worker/replay decoder/worker/view
decoder/worker/skim: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns decoder/worker/replay decoder/worker/count decoder/worker/report decoder/worker/view decoder/worker/skim
decoder/worker: proto proto/perf proto/bundle decoder/packet decoder/time decoder/code decoder/hot decoder/flow sideband/timeline sideband/elf sideband/dwarf sideband/symbols sideband/kernel decoder/worker/turns decoder/worker/replay decoder/worker/count decoder/worker/report decoder/worker/view decoder/worker/skim decoder/worker
daemon/base: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base
daemon/config: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config
daemon/store: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store
daemon/record: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record
daemon/gather: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record daemon/gather
daemon/job: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record daemon/gather daemon/job
daemon/trigger: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record daemon/gather daemon/job daemon/trigger
daemon/check: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record daemon/gather daemon/job daemon/trigger daemon/check
daemon/control: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record daemon/gather daemon/job daemon/trigger daemon/check daemon/control
daemon: proto proto/perf proto/bundle decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/machine capture/emu/host sideband/timeline daemon/base daemon/config daemon/store daemon/record daemon/gather daemon/job daemon/trigger daemon/check daemon/control daemon
ctl/base: proto proto/perf proto/bundle decoder/run ctl/base
ctl/client: proto proto/perf proto/bundle decoder/run ctl/base ctl/client
ctl/perfdata: proto proto/perf proto/bundle decoder/run ctl/base ctl/client ctl/perfdata
ctl/show: proto proto/perf proto/bundle decoder/run ctl/base ctl/client ctl/perfdata ctl/show
ctl/decode: proto proto/perf proto/bundle decoder/run ctl/base ctl/client ctl/perfdata ctl/show ctl/decode
ctl/check: proto proto/perf proto/bundle decoder/run ctl/base ctl/client ctl/perfdata ctl/show ctl/decode ctl/check
ctl: proto proto/perf proto/bundle decoder/run ctl/base ctl/client ctl/perfdata ctl/show ctl/decode ctl/check ctl
'
status=0
n=0
for f in $(find proto capture sideband decoder daemon ctl -name '*.[ch]' | sort); do
	room=$(dirname "$f")
	allowed=$(printf '%s\n' "$rules" | sed -n "s,^$room: *,,p")
	[ -n "$allowed" ] || { echo "$f: room $room has no rule in tests/check/layers.sh"; status=1; continue; }
	for inc in $(sed -n 's/^#include "\(.*\)"/\1/p' "$f"); do
		n=$((n + 1))
		[ "$inc" != config.h ] || continue
		dir=$(dirname "$inc")
		ok=no
		for a in $allowed; do
			[ "$a" != "$dir" ] && [ "$a" != "$inc" ] || ok=yes
		done
		[ $ok = yes ] || { echo "$f includes $inc: $room may include only: $allowed"; status=1; }
	done
done
# Private libraries: what a program must not do, it is not linked with.
banned() { # HEADER-PATTERN ROOMS-THAT-MAY WHY
	hits=$(grep -rlE "^#include <($1)" proto capture sideband decoder daemon ctl --include='*.[ch]' | grep -vE "^($2)/")
	[ -z "$hits" ] || { echo "$3: $hits"; status=1; }
}
banned Zydis 'decoder/code|decoder/worker/view|capture/emu/plugin' 'instructions are decoded in decoder/code and capture/emu/plugin only'
banned 'libelf|gelf|elfutils' 'sideband/(elf|dwarf|symbols|kernel)|decoder/worker' 'ELF and DWARF are parsed in sideband/elf, dwarf, symbols, kernel only'
banned intel-pt none 'libipt is an oracle for tests'
[ $n -gt 100 ] || { echo "only $n includes seen: the check itself is broken"; status=1; }
exit $status
