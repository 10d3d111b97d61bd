#!/bin/sh
# Debian's varlink-go-certification (package varlink-go) against our framing. The tool exits 0 even
# when a test failed, so its last line decides.
set -u

tool=$(command -v varlink-go-certification) || {
	echo "varlink-go-certification (package varlink-go) is not installed: skipped"
	exit 77
}
server=${VL_CERT_SERVER:-${PTSNAP_BUILDDIR:-$(pwd)}/tests/support/vl_cert_server}
[ -x "$server" ] || {
	echo "$server is not built"
	exit 1
}

dir=$(mktemp -d) || exit 1
trap 'kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
"$server" --once "$dir/socket" &
pid=$!
tries=0
while [ ! -S "$dir/socket" ]; do
	tries=$((tries + 1))
	[ "$tries" -le 100 ] || {
		echo "the server did not open its socket"
		exit 1
	}
	sleep 0.05
done

out=$(timeout 30 "$tool" -client -varlink "unix:$dir/socket")
echo "$out"
[ "$(echo "$out" | tail -n 1)" = "End: 'true'" ] || {
	echo "certification failed"
	exit 1
}
# With --once the server leaves by itself; its status tells what a sanitizer found.
wait "$pid"
