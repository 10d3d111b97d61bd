#!/bin/bash
# Completion of ptsnapctl for bash (and for zsh, where there is one): verbs, options, values, files.
set -u
src=${PTSNAP_SRCDIR:?} dir=${PTSNAP_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && cat >"$work/bin/ptsnapctl" <<EOF
#!/bin/sh
case "\$1 \$2" in "list --timeout"*) echo "ID   CREATED"; 
	[ "\$3" != --socket=/other ] || { echo "1other-1-1  today"; exit; }
	echo "1j0v41leilb-5065-1  today"; exit ;;
"trigger list") echo "NAME  ON"; echo "slow  fifo"; exit ;; esac
exec "$dir/ctl/ptsnapctl" "\$@"
EOF
chmod +x "$work/bin/ptsnapctl"
PATH=$work/bin:$PATH
# shellcheck source=/dev/null
. "$src/ctl/completion/ptsnapctl.bash"
failed=0

# expect WORD... -- PATTERN: completing the words gives the answers PATTERN, in one line.
expect() {
	COMP_WORDS=()
	while [ "$1" != -- ]; do
		COMP_WORDS+=("$1")
		shift
	done
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_ptsnapctl
	# shellcheck disable=SC2053
	if [[ " ${COMPREPLY[*]} " != $2 ]]; then
		echo "not as expected: ${COMP_WORDS[*]}: ${COMPREPLY[*]}" >&2
		failed=1
	fi
}

expect ptsnapctl st -- ' status '
expect ptsnapctl '' -- '* decode *snapshot *'
expect ptsnapctl help fe -- ' fetch '
expect ptsnapctl fun -- ' functions '
expect ptsnapctl gaps --c -- ' --cpu= '
expect ptsnapctl list --l -- ' --limit= '
expect ptsnapctl list --js -- ' --json --json= '
expect ptsnapctl --json = s -- ' short '
expect ptsnapctl decode --view = pac -- ' packets '
expect ptsnapctl export --format = csv-m -- ' csv-marks '
expect ptsnapctl export --format = perf -- ' perf.data perfetto '
expect ptsnapctl export --weight = w -- ' wall '
expect ptsnapctl fetch --format = -- ' report bundle '
expect ptsnapctl fetch l -- ' latest '
expect ptsnapctl pin latest 1j -- ' 1j0v41leilb-5065-1 '
expect ptsnapctl --socket = /other info 1 -- ' 1other-1-1 '
expect ptsnapctl --socket /other info 1 -- ' 1other-1-1 '
expect ptsnapctl --socket /other in -- ' info insns '
expect ptsnapctl info --baseline = 1 -- ' 1j0v41leilb-5065-1 '
expect ptsnapctl list --before = '' -- ' 1j0v41leilb-5065-1 '
expect ptsnapctl list --limit = '' -- '  '
expect ptsnapctl delete l -- '  '
expect ptsnapctl decode 1 -- ' 1j0v41leilb-5065-1 '
expect ptsnapctl delete 1 -- ' 1j0v41leilb-5065-1 '
expect ptsnapctl list x -- '  '
cd "$work" && touch some.bundle
expect ptsnapctl decode so -- ' some.bundle '
expect ptsnapctl fetch latest -o so -- ' some.bundle '
expect ptsnapctl snapshot -o so -- ' some.bundle '
expect ptsnapctl info --baseline so -- ' some.bundle '
expect ptsnapctl info --json so -- ' some.bundle '

expect ptsnapctl gaps --max -- '  '
expect ptsnapctl trigger '' -- ' list add remove test '
expect ptsnapctl trigger add '' -- '  '
expect ptsnapctl trigger remove s -- ' slow '
expect ptsnapctl trigger test --json s -- ' slow '
expect ptsnapctl trigger add x --pressure-s -- ' --pressure-stall= '
expect ptsnapctl trigger add x --pressure = m -- ' memory '

# The same for zsh, whose functions answer what they are given.
if command -v zsh >/dev/null; then
	zsh -n "$src/ctl/completion/_ptsnapctl" || failed=1
	sed '$d' "$src/ctl/completion/_ptsnapctl" >"$work/completion.zsh"
	cat >"$work/test.zsh" <<-'EOF'
		compadd() { local a; for a in "$@"; do [[ $a == -- || $a == -S || -z $a ]] || got+=($a); done }
		compset() { : }
		_files() { got+=(FILES) }
		_call_program() { shift; "$@" }
		source $1
		expect() {
			local -a words got
			local PREFIX=$@[-2] CURRENT
			words=($@[1,-2]) CURRENT=$(($# - 1))
			_ptsnapctl
			[[ "$got" == ${~@[-1]} ]] || { print -ru2 "zsh: not as expected: $words: $got"; failed=1 }
		}
		failed=0
		expect ptsnapctl '' '*check*snapshot*'
		expect ptsnapctl --socket=/other info '' 'latest 1other-1-1 FILES'
		expect ptsnapctl --socket /other info '' 'latest 1other-1-1 FILES'
		expect ptsnapctl fetch latest -o '' FILES
		expect ptsnapctl info --baseline= 'latest 1j0v41leilb-5065-1 FILES'
		expect ptsnapctl info --baseline '' 'latest 1j0v41leilb-5065-1 FILES'
		expect ptsnapctl list --before= 1j0v41leilb-5065-1
		expect ptsnapctl list --limit= ''
		expect ptsnapctl delete '' 1j0v41leilb-5065-1
		expect ptsnapctl decode --view= 'report summary packets branches insns events calls'
		expect ptsnapctl info --json '' 'latest 1j0v41leilb-5065-1 FILES'
		expect ptsnapctl trigger '' 'list add remove test'
		expect ptsnapctl trigger remove '' slow
		expect ptsnapctl trigger add '' ''
		exit $failed
	EOF
	zsh -f "$work/test.zsh" "$work/completion.zsh" || failed=1
fi
exit $failed
