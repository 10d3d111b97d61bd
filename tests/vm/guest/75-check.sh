# `ptsnapctl check --trace' with a running recorder; the packets of its walks are fed.
load
start --aux-size=1M --data-size=64K --cpus=1
trace_check() {
	ctl check --trace --source=intel_pt --worker="$PWD/ptsnap-decode" "$@" >out/check.page
}
check "every branch of a walk under the running recorder is equal" \
	trace_check --for=6s --walk="$PWD/fed-walk.sh"
check "and the page says so" grep -E "^equal: [0-9,]{6,} branches on 1 CPUs$" out/check.page
note "$(tail -n 4 out/check.page | head -n 2 | tail -n 1)"
check "a walk that is not traced is not equal" fails trace_check --walk="$PWD/ptsnap-walk"
check "and the page says so, too" grep "^DIFFERENT: no round of its walk is in the trace of CPU 1$" \
	out/check.page
check "no walk is left behind" fails pgrep -x ptsnap-walk
stop
