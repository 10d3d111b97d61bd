# A process with known branches; its packets have TSCs of this machine.
load
start --aux-size=1M --data-size=64K
walk=$(./feeder walk 1 "${SEED:-5}" 400 "$PWD/ptsnap-walk" walk.expected)
pid=${walk% *} branches=${walk#* }
# Other processes use the CPU afterwards: an error in time would give them the branches.
kill "$pid"
sleep 0.5
decoded() { snapshot_report --reason=walk && is "$(of_pid .branches)" "$branches"; }
check "the report gives the process its branches" decoded
check "and nobody else any" is \
	"$(jq '[.threads[] | select(.branches > 0)] | length' "$REPORT")" 1
# The other CPU received no packets.
check "without a gap" is "$(jq -c '[.gaps[] | [.cpu, .kind]]' "$REPORT")" '[[0,"no-psb"]]'
equal() {
	ctl decode --worker="$PWD/ptsnap-decode" --view=branches "$STATE"/*.ptsnap |
		grep -v '^#' >walk.decoded
	is "$(cksum <walk.decoded)" "$(cksum <walk.expected)"
}
check "each branch is one that the process takes, in its order" equal
check "their times lie within the process's turns" in_turn
# The same for a part of the ring.
window() {
	snapshot_report --reason=window --last=16K && [ "$(of_pid .branches)" -gt 1000 ] &&
		[ "$(of_pid .branches)" -lt "$branches" ]
}
check "a part of it: fewer of them" window
stop
