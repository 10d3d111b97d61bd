# The recorder as another user with some capabilities, under perf_event_paranoid 2 and 3.
load
paranoid() { echo "$1" >/proc/sys/kernel/perf_event_paranoid; }
mkdir -p /run/ptsnap-nobody
chown 65534:65534 /run/ptsnap-nobody $STATE
# CAPABILITIES [PROPERTY]
as_nobody() { PROPERTIES="User=65534;Group=65534;AmbientCapabilities=$1;CapabilityBoundingSet=$1;${2:-}"; }
start_nobody() {
	start --socket=/run/ptsnap-nobody/socket --aux-size=4M --data-size=64K "$@"
}
traces() {
	as_nobody "$@"
	start_nobody --require-pt && is "$(pmu 0 on)$(pmu 1 on)" 11
}
# WORD ...: the recorder does not start, and logs WORD.
refused() {
	local word=$1
	shift
	as_nobody "$@"
	cat "$LOG" >>"$LOG.old"
	: >"$LOG"
	fails start_nobody --require-pt && said "$word"
}
# WORD ...: --check exits with 6, and prints WORD.
check_says() {
	local word=$1 said r=0
	shift
	said=$(systemd-run -q --collect --wait --pipe -p User=65534 -p Group=65534 \
		-p "AmbientCapabilities=$1" -p "CapabilityBoundingSet=$1" -p "LimitMEMLOCK=infinity" \
		-E ASAN_OPTIONS=detect_leaks=0 "$PWD/ptsnapd" --check --source=intel_pt) || r=$?
	is $r 6 && has "$said" "$word"
}
MEMLOCK=LimitMEMLOCK=infinity
paranoid 2
check "paranoid 2, CAP_PERFMON and LimitMEMLOCK: traces" traces CAP_PERFMON $MEMLOCK
check "paranoid 2, CAP_PERFMON and CAP_IPC_LOCK: traces" traces "CAP_PERFMON CAP_IPC_LOCK"
# The kernel lets every user lock some memory (kernel.perf_event_mlock_kb).
smaller() {
	traces CAP_PERFMON LimitMEMLOCK=64K || return 1
	ctl --json=short --socket=/run/ptsnap-nobody/socket status >status.json
	has "$(jq -r .attrs.sizesNote status.json)" "instead of 4096 KiB" &&
		[ "$(jq '[.cpus[].auxBytes] | min' status.json)" -lt 4194304 ]
}
check "paranoid 2, little memory to lock: smaller rings, and the status says so" smaller
check "paranoid 2, no capability: refused, and why" refused CAP_PERFMON "" $MEMLOCK
check "paranoid 2, no capability: --check says what to do" check_says CAP_PERFMON ""
paranoid 3
check "paranoid 3, CAP_PERFMON: refused, and why" refused paranoid CAP_PERFMON $MEMLOCK
check "paranoid 3, CAP_PERFMON: --check says what to do" check_says paranoid CAP_PERFMON
check "paranoid 3, CAP_SYS_ADMIN: traces" traces CAP_SYS_ADMIN $MEMLOCK
PROPERTIES=
chown 0:0 $STATE
