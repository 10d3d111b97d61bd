# Nobody empties the sideband rings for a while: records are lost, but no trace.
load
start --aux-size=256K --data-size=64K
new_ring 0
new_ring 1
stalled() {
	local pid i=0
	pid=$(systemctl show -p MainPID --value ptsnapd)
	kill -STOP "$pid"
	while [ $i -lt 200 ]; do
		/bin/true
		i=$((i + 1))
	done
	feed 0 300007 && feed 1 100003
	kill -CONT "$pid"
}
check "a recorder that stands still while many programs run" stalled
check "full sideband rings do not harm the trace" eval "snapshot && both_exact"
check "the status counts what was lost" [ "$(status '[.cpus[].lost] | add')" -gt 0 ]
check "and each report names it" eval "snapshot_report && jq -e '.gaps[] | select(.kind == \"sideband-lost\")' $PWD/out/report.json"
stop
