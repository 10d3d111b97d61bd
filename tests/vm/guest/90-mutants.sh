# A PMU with one bug: the assertions of 10-bytes.sh detect it.
load
mutate() { # MUTANT: two snapshots with it
	echo "$1" >/sys/module/fake_intel_pt/parameters/mutant
	start --aux-size=64K --data-size=64K || return 1
	new_ring 0
	new_ring 1
	feed 0 10001 && feed 1 90001 && snapshot && feed 0 70001 && feed 1 5 && snapshot
}
# The trace exists and differs from the fed bytes: "exact" complains of a byte or of the end.
not_exact() {
	local said
	said=$(both_exact) && { echo "exact"; return 1; }
	case $said in
	*"is wrong"* | *"no end"* | *"should be"*) ;;
	*) echo "$said"; return 1 ;;
	esac
}
check "no mutant: snapshots are taken" mutate none
check "no mutant: the bytes are exact" both_exact
check "no mutant: AUX records are there" aux_records 65536
stop
for mutant in stale-head wrong-offset swapped-halves; do
	check "mutant $mutant: snapshots are taken" mutate $mutant
	check "mutant $mutant: the bytes are not exact" not_exact
	stop
done
check "mutant lost-stop: snapshots are taken" mutate lost-stop
check "mutant lost-stop: the bytes are exact" both_exact
check "mutant lost-stop: no AUX records" fails aux_records 65536
stop
echo none >/sys/module/fake_intel_pt/parameters/mutant
