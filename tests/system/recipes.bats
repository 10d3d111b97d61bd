#!/usr/bin/env bats
# The recipes of ptsnap-report(5), EXAMPLES: each is taken from the manual page and run.

setup() {
	src=${PTSNAP_SRCDIR:-$BATS_TEST_DIRNAME/../..}
	build=${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}
	ctl=${PTSNAPCTL:-$build/ctl/ptsnapctl}
	[ -x "$ctl" ] || skip "$ctl is not built"
	command -v jq >/dev/null || skip "no jq"
	dir=$(mktemp -d)
	cd "$dir"
}

teardown() {
	[ -z "$dir" ] || rm -rf "$dir"
}

# report KIND: writes the report and the calls of a made bundle.
report() {
	"$build/tests/support/make_bundle" "$1" made.ptsnap
	"$ctl" decode --worker="$build/decoder/worker/ptsnap-decode" --json=short made.ptsnap >report.json
	"$ctl" calls --worker="$build/decoder/worker/ptsnap-decode" --json made.ptsnap >calls.json
}

# recipes: runs all recipes of the manual page; their output goes to out.N, N counting from 1.
recipes() {
	awk '/^# / {examples = $0 == "# EXAMPLES"}
		examples && /^```/ {inside = !inside; n += inside; next}
		examples && inside {print >("recipe." n)}' "$src/docs/ptsnap-report.5.scd"
	count=$(ls recipe.* | wc -l)
	for i in $(seq "$count"); do
		sh "recipe.$i" >"out.$i" || { cat "recipe.$i"; return 1; }
	done
}

# recipe TEXT: the output of the recipe whose text contains TEXT.
recipe() {
	local file
	file=$(grep -lF -- "$1" recipe.*)
	cat "out.${file#recipe.}"
}

@test "each recipe of ptsnap-report(5) runs on all kinds of reports" {
	for kind in plain turns halves leaf degraded many noimage empty; do
		report "$kind"
		recipes
		[ "$count" -ge 10 ]
	done
}

@test "the recipes say what is in a report" {
	report leaf
	recipes
	[ "$(recipe '\(.pid)/\(.tid)' | sed -n 2p)" = "  leaf+2" ]
	[ "$(recipe '\(.pid)/\(.tid)' | sed -n 3p)" = "  main+0" ]
	[ "$(recipe '(.from | place)' | tail -n1 | cut -f2,3)" = "$(printf 'disable\tleaf+2')" ]
	# A place leads to its function and its file, and joined places are those of the list.
	[ "$(recipe '$f.calls' | cut -f2,4)" = "$(printf 'leaf\t%s' "$(jq '.functions[] | select(.name == "leaf").calls' report.json)")" ]
	[ "$(recipe .fileAddress | wc -l)" -eq 2 ]
	[ "$(recipe '|= place' | jq -r '.stack[0].name, .lastBranches[-1].from.name')" = "$(printf 'leaf\nleaf')" ]
	[ "$(recipe .coverage.percent)" = "100 % decoded, 100 % exact" ]
	[ "$(recipe .trigger)" = "$(printf 'offline\t-')" ]
	# main is the outermost function.
	[ "$(recipe group_by | sort -k3,3nr | head -n1 | cut -f1,2)" = "$(printf '4712\tmain')" ]
	report halves
	recipes
	[ "$(recipe '"blocked"' | cut -f1,2,3,5)" = "$(printf '250\t4713\tsecond\ttail')" ]
	[ "$(recipe .turns | cut -f3,4 | sort -u)" = "$(printf '0\t4712\n0\t4713')" ]
	[ "$(recipe '.selfNSec, .calls' | cut -f3 | head -n1)" = tail ]
}
