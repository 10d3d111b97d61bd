# Without Intel PT the recorder records the sideband alone.
start
check "no PMU: the recorder starts all the same" is "$(status .state)" degraded
check "no PMU: and says why" has "$(why 0)" "Intel PT"
timeline() {
	sleep 0.3
	snapshot_report || return 1
	has "$(turns | jq -r '[.[].comm] | unique | join(" ")')" "systemd" || return 1
	is "$(jq -r .totals.branches "$REPORT")" 0
}
check "no PMU: a report of who ran when" timeline
load
picked_up() { cpu_is 0 tracing && cpu_is 1 tracing; }
start --aux-size=64K --data-size=64K
check "with the PMU, after a restart: traces" picked_up
stop
