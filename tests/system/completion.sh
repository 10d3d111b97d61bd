#!/bin/bash
# Completion of ptsnapctl for bash (and for zsh, where there is one): verbs, options, values, files.
set -u
src=${PTSNAP_SRCDIR:?} dir=${PTSNAP_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && cat >"$work/bin/ptsnapctl" <<EOF
#!/bin/sh
case "\$1 \$2" in "list --timeout"*) echo "ID   CREATED"; echo "1j0v41leilb-5065-1  today"; exit ;; esac
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
expect ptsnapctl list x -- '  '
cd "$work" && touch some.bundle
expect ptsnapctl decode so -- ' some.bundle '

if command -v zsh >/dev/null; then
	zsh -n "$src/ctl/completion/_ptsnapctl" || failed=1
fi
exit $failed
