# The PMU receives the configured settings (RTIT_CTL: bit 2 kernel, bit 3 user; otherwise attr.config).
load
got() { printf '%d' "$(($(pmu "${2:-0}" rtit_ctl) & $1))"; }
start --aux-size=64K --data-size=64K --trace=kernel --cpus=1
check "Trace=kernel" is "$(got 12 1)" 4
check "CPUs=1" is "$(pmu 0 on)$(pmu 1 on)" 01
start --aux-size=64K --data-size=64K --trace=both --pt=cyc,mtc_period=3,noretcomp
check "Trace=both" is "$(got 12)" 12
check "terms: cyc, mtc_period, noretcomp" is "$(got $((1 << 1 | 15 << 14 | 1 << 11)))" \
	$((1 << 1 | 3 << 14 | 1 << 11))
attr_as_used() {
	has "$(status .attrs.pt)" "config=$(printf '0x%x' $(($(pmu 0 rtit_ctl) & ~13)))" ||
		has "$(status .attrs.pt)" "config=$(printf '0x%x' $(($(pmu 0 rtit_ctl) & ~12)))"
}
check "the status shows the attr that was used" attr_as_used
invalid() { fails start --pt=mtc_period=5 && said "valid values: 0,3,6,9"; }
check "a value that the PMU lacks: refused, with the valid ones" invalid
