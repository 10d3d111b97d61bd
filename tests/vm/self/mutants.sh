#!/bin/bash
# mutants.sh [NAME...]: self-traced machines whose software PMU is wrong on purpose, for `make
# check-mutants`. Each mutant is a change of the PMU's source. Prints a table: what the report says, and
# how many claims were wrong. Status 1: a mutant was not noticed as the list says.
#
# SYSPMU_CC: the command that compiles the sources SYSPMU_SOURCES to a shared object. PTSNAP_BUILDDIR.
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
top=$(cd "$src/../.." && pwd)
build=${PTSNAP_BUILDDIR:?}
work=$(mktemp -d -p /var/tmp) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# NAME EXPECTED FILE SED-EXPRESSION. Expected:
#   named    the report has gaps that say what is wrong, or the software PMU itself complains
#   same     nothing that the report claims is wrong
#   unknown  claims are wrong, and nothing in the trace tells: only the log does
list() {
	local n='static unsigned long n'
	cat <<-END
		lost-block named capture/emu/system/system.h s/^\tc->retire.prev = b;/\t$n;if(++n%50021==0)return;\n&/
		block-twice named capture/emu/system/system.h s/^\tif \(__builtin_expect\(\(p->flags/\t$n;if(++n%50021==0\&\&!p->flags)retire_usual(\&c->retire,p,b->ip);\n&/
		wrong-fup named capture/emu/system/system.c s/^\tfrom = f\.ip;/\t$n;from=f.ip+(++n%256==0);/
		no-fup named capture/emu/system/system.c s/c->pmu\.s->flowing \? &from : NULL/NULL/
		no-pip same capture/emu/system/system.c s/emupmu_cr3\(&c->pmu, vm_cr3\(c->vcpu\)\)/(void)0/
		late-mtc unknown capture/emu/machine/pmu.c s/(p->s->mtc_tsc = .*period\));/\1+30000000;/
		late-tsc unknown capture/emu/machine/pmu.c s/encode_tsc\(&p->encoder, tsc\)/encode_tsc(\&p->encoder,tsc+3000000)/
	END
}

make_unit() { # FILE SED-EXPRESSION
	rm -rf "$work/tree"
	mkdir "$work/tree"
	(cd "$top" && cp -r --parents capture/emu proto "$work/tree/") || return
	sed -E -i "$2" "$work/tree/$1"
	! cmp -s "$top/$1" "$work/tree/$1" || { echo "the mutant does not change $1" >&2; return 1; }
	# shellcheck disable=SC2086
	(cd "$work/tree" && $SYSPMU_CC -w -I"$work/tree" -o "$work/unit.so" \
		$(printf '%s\n' $SYSPMU_SOURCES | grep '\.c$') $SYSPMU_LIBS)
}

# What a run's output says: named, same or unknown.
judge() { # STATUS
	if grep -Eq 'not explained| in (packet|tip|tnt|event|status|ret-not-taken)[a-z-]*' "$work/said"; then
		echo named
	elif [ "$1" = 0 ]; then
		echo same
	else
		echo unknown
	fi
}

one() { # NAME EXPECTED FILE SED-EXPRESSION
	local r found
	make_unit "$3" "$4" || { echo "$1: cannot be made"; status=1; return; }
	bash "$src/selftrace" --aux-size=1M --unit="$work/unit.so" -- \
		sh -c 'ls -l /usr/bin | sort -k5n | md5sum; find /etc | wc -l; sleep 0.1' >"$work/said" 2>&1
	r=$?
	[ $r != 77 ] || { echo "$1: cannot be run here: $(tail -n 1 "$work/said")"; return; }
	found=$(judge $r)
	grep -q '^CPU .* equal' "$work/said" || found="no result"
	[ "$found" = "$2" ] || status=1
	printf '%s: %s\n' "$1" "$found$([ "$found" = "$2" ] || echo ", not $2")"
	grep -E '^CPU .*(equal|explained)|not explained' "$work/said" | sed 's/^/  /'
}

while read -r name expected file expression; do
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	one "$name" "$expected" "$file" "$expression" </dev/null
done < <(list)
exit $status
