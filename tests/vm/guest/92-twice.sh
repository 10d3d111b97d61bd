# A PMU that writes bytes twice: time runs backwards in the trace. The report says so, and claims no
# branch twice.
load
echo bytes-twice >/sys/module/fake_intel_pt/parameters/mutant
start --aux-size=1M --data-size=64K
walk=$(./feeder walk 1 "${SEED:-5}" 100 "$PWD/ptsnap-walk" walk.expected)
pid=${walk% *} branches=${walk#* }
kill "$pid"
check "mutant bytes-twice: a report is made" snapshot_report --reason=twice
backwards() {
	local n
	n=$(jq '[.gaps[] | select(.cpu == 1 and .kind == "time-backwards" and .bytes > 0)] | length' \
		"$REPORT")
	[ "$n" -ge 1 ] || { echo "$n gaps"; return 1; }
}
check "mutant bytes-twice: time runs backwards" backwards
# Behind each gap one line more says where decoding goes on.
not_more() {
	local n gaps
	n=$(jq '[.threads[].branches] | add' "$REPORT")
	gaps=$(jq '.gapCounts["time-backwards"]' "$REPORT")
	[ "$n" -gt 0 ] && [ "$n" -le $((branches + gaps)) ] || { echo "$n of $branches"; return 1; }
}
check "mutant bytes-twice: no more branches than were executed" not_more
# Lines that begin with 0 say where decoding goes on. The others are a part of what was executed, in its
# order: each is found behind the place of the one before.
none_twice() {
	ctl decode --worker="$PWD/ptsnap-decode" --view=branches "$STATE"/*.ptsnap |
		grep -v -e '^#' -e '^0 ' >walk.decoded
	awk 'BEGIN { at = 0 }
		NR == FNR { all[n++] = $0; next }
		{ while (at < n && all[at] != $0) at++; if (at++ >= n) { print FNR ": " $0; exit 1 } }' \
		walk.expected walk.decoded
}
check "mutant bytes-twice: no branch is claimed twice" none_twice
stop
echo none >/sys/module/fake_intel_pt/parameters/mutant
