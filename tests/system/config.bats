#!/usr/bin/env bats
# ptsnapd's configuration: files, drop-ins, the command line, and the output of --test-config; and
# whether the documents agree with the program.

setup() {
	bats_require_minimum_version 1.5.0
	PTSNAPD=$PTSNAP_BUILDDIR/daemon/ptsnapd
	DIR=$(mktemp -d /tmp/ptsnap-bats-XXXXXX)
	unset LISTEN_FDS LISTEN_PID NOTIFY_SOCKET JOURNAL_STREAM
}

teardown() {
	rm -rf "$DIR"
}

# config [OPTIONS]: prints the settings with $DIR/c as the only file.
config() {
	"$PTSNAPD" --config="$DIR/c" --test-config "$@"
}

# Prints the line of KEY in OUTPUT, and the line before it, which names the origin.
value() {
	printf '%s\n' "$output" | grep "^$1="
}

origin() {
	printf '%s\n' "$output" | grep -B1 "^$1=" | head -n 1
}

@test "without files every setting has its default" {
	run -0 --separate-stderr "$PTSNAPD" --config= --test-config
	[ -z "$stderr" ]
	[ "${lines[0]}" = "# no file was read" ]
	[ "$(value RingSize)" = "RingSize=8M" ]
	[ "$(origin RingSize)" = "# default" ]
	[ "$(origin RingBudget)" = "# default: a sixteenth of memory" ]
	[ "$(printf '%s\n' "$output" | grep -B1 '^[A-Z]' | grep -c '^# default')" -eq \
		"$(printf '%s\n' "$output" | grep -c '^[A-Z]')" ]
}

@test "the command line wins over the file, and both are printed" {
	printf '[Trace]\nCPUs=0-3\nTrace=both\n[Rings]\nRingSize=1M' >"$DIR/c"
	run -0 --separate-stderr config --aux-size=2M
	[ -z "$stderr" ]
	[ "$(value RingSize)" = "RingSize=2M" ]
	[ "$(origin RingSize)" = "# command line" ]
	[ "$(value CPUs)" = "CPUs=0-3" ]
	[ "$(origin CPUs)" = "# $DIR/c:2" ]
	[ "$(origin Trace)" = "# $DIR/c:3" ]
	[ "${lines[0]}" = "# read: $DIR/c" ]
}

@test "the output of --test-config is a configuration file with the same settings" {
	printf '[Trace]\nCPUs=0-3\nPreset=light\nTerms=cyc\nTerms=mtc\n[Service]\nDecodeTimeout=1min 5s\n' \
		>"$DIR/c"
	config >"$DIR/first"
	mv "$DIR/first" "$DIR/c"
	grep '^[A-Z[]' "$DIR/c" >"$DIR/first"
	config >"$DIR/second"
	grep '^[A-Z[]' "$DIR/second" | diff "$DIR/first" -
	grep -q '^Terms=cyc,mtc$' "$DIR/first"
}

@test "JSON has values as numbers, with their origin" {
	command -v jq >/dev/null || skip "no jq"
	printf '[Rings]\nRingSize=1M\n' >"$DIR/c"
	run -0 config --json --decode-timeout=2s
	[ "$(jq -r '.files[0]' <<<"$output")" = "$DIR/c" ]
	[ "$(jq -c '.settings[] | select(.key == "RingSize") | [.section, .option, .text, .value,
		.origin, .file, .line]' <<<"$output")" = \
		"[\"Rings\",\"aux-size\",\"1M\",1048576,\"file\",\"$DIR/c\",2]" ]
	[ "$(jq -c '.settings[] | select(.option == "decode-timeout") | [.value, .origin]' \
		<<<"$output")" = '[2000000,"command-line"]' ]
	[ "$(jq -c '.settings[] | select(.key == "CPUs") | [.value, .origin]' <<<"$output")" = \
		'[null,"default"]' ]
	[ "$("$PTSNAPD" --config= --test-config=json | jq '.settings | length')" -gt 20 ]
}

@test "a wrong value gives a warning with its line and exit code 1, and the default stays" {
	printf '[Rings]\nRingSize=3M\n[Trace]\nnonsense\n' >"$DIR/c"
	run -1 --separate-stderr config
	[ "$(value RingSize)" = "RingSize=8M" ]
	[ "$(origin RingSize)" = "# default" ]
	[ "${stderr_lines[0]}" = "ptsnapd: $DIR/c:2: RingSize=3M is not valid, ignored; valid: a power of two from 4K to 512M" ]
	[ "${stderr_lines[1]}" = "ptsnapd: $DIR/c:4: neither a [section] nor KEY=VALUE, ignored" ]
	[ "${#stderr_lines[@]}" -eq 2 ]
}

@test "an unknown key or section gives a warning and exit code 0" {
	printf '[Rings]\nColour=red\nRingSize=1M\n[Colours]\nRed=1\n' >"$DIR/c"
	run -0 --separate-stderr config
	[ "$(value RingSize)" = "RingSize=1M" ]
	[ "${stderr_lines[0]}" = "ptsnapd: $DIR/c:2: unknown key Colour in section [Rings], ignored" ]
	[ "${stderr_lines[1]}" = "ptsnapd: $DIR/c:4: unknown section [Colours], ignored" ]
}

@test "text of a file is escaped before it reaches the terminal" {
	printf '[Rings]\nRingSize=\033[31m\n\033]0;x\007=1\n[\033[2J]\n' >"$DIR/c"
	run -1 config
	[[ $output != *$'\033'* ]]
}

@test "a FIFO and a directory give a warning, and nothing waits for them" {
	mkfifo "$DIR/c"
	run -1 timeout 10 "$PTSNAPD" --config="$DIR/c" --test-config
	[[ $output == *"$DIR/c: is not a regular file, ignored"* ]]
	run -1 timeout 10 "$PTSNAPD" --config="$DIR" --test-config
	[[ $output == *"$DIR: is not a regular file, ignored"* ]]
}

@test "a file that may not be read gives a warning" {
	echo >"$DIR/c"
	chmod 0 "$DIR/c"
	# In this user namespace, no user has rights over the file's owner.
	unshare -U true || skip "no user namespaces"
	run -1 unshare -U "$PTSNAPD" --config="$DIR/c" --test-config
	[[ $output == *"$DIR/c: cannot be read, ignored: Permission denied"* ]]
}

@test "a missing --config file gives one message and exit code 2" {
	run -2 config
	[ "$output" = "ptsnapd: --config=$DIR/c: there is no such file" ]
}

@test "a wrong value on the command line gives one message that lists the valid values, and exit code 2" {
	run -2 "$PTSNAPD" --config= --trace=all
	[ "$output" = "ptsnapd: --trace=all is not valid; valid: user, kernel, both" ]
	run -2 "$PTSNAPD" --config= --preset=fast --test-config
	[ "$output" = "ptsnapd: --preset=fast is not valid; valid: light, std, precise, custom" ]
	run -2 "$PTSNAPD" --config= --preset=custom --test-config
	[ "$output" = "ptsnapd: --preset=custom needs terms: --pt=TERMS or Terms=" ]
	run -2 "$PTSNAPD" --config= --cpus=3-1
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"such as 0-3,8" ]]
}

@test "the recorder warns about files and starts" {
	command -v qemu-x86_64 >/dev/null || skip "no qemu-x86_64"
	printf '[Service]\nSocket=%s/s\nStateDirectory=%s/state\nMaxUse=1\n[Trace]\nSource=emulated\n' \
		"$DIR" "$DIR" >"$DIR/c"
	run -0 "$PTSNAPD" --config="$DIR/c" --aux-size=1M --exit-with-command -- true
	[[ $output == *"ptsnapd: $DIR/c:4: MaxUse=1 is not valid, ignored; valid: a size of at least 1M"* ]]
	[ "$(ls "$DIR/state"/*.json | wc -l)" -eq 1 ]
}

# in_root COMMAND...: with $DIR/etc and $DIR/run as /etc/ptsnap and /run/ptsnap, of which there must
# be none yet; in a mount namespace of its own.
in_root() {
	unshare -rm bash -ec '
		dir=$1
		shift
		mount -t tmpfs none /run
		mkdir -p /run/ptsnap "$dir/root-etc/ptsnap"
		mount --bind "$dir/root-etc" /etc
		mount --bind "$dir/etc" /etc/ptsnap
		mount --bind "$dir/run" /run/ptsnap
		exec "$@"' - "$DIR" "$@"
}

@test "drop-ins of /etc and /run are merged by name, and a link to /dev/null masks one" {
	mkdir -p "$DIR/etc/ptsnapd.conf.d" "$DIR/run/ptsnapd.conf.d"
	in_root true || skip "no user namespaces"
	printf '[Rings]\nRingSize=1M\nSidebandRingSize=4K\n[Trace]\nTrace=both\nCPUs=0\n' \
		>"$DIR/etc/ptsnapd.conf"
	printf '[Rings]\nRingSize=2M\n[Trace]\nCPUs=1\n' >"$DIR/etc/ptsnapd.conf.d/50-a.conf"
	printf '[Rings]\nRingSize=4M\n' >"$DIR/run/ptsnapd.conf.d/40-b.conf"
	run -0 in_root "$PTSNAPD" --test-config
	[ "$(value RingSize)" = "RingSize=2M" ]
	[ "$(origin RingSize)" = "# /etc/ptsnap/ptsnapd.conf.d/50-a.conf:2" ]
	[ "$(value CPUs)" = "CPUs=0,1" ]
	[ "$(value SidebandRingSize)" = "SidebandRingSize=4K" ]
	# The vendor may have drop-ins of its own.
	[ "$(printf '%s\n' "$output" | sed -n 's,^# read: \(/etc\|/run\),\1,p' | tr '\n' ' ')" = \
		"/etc/ptsnap/ptsnapd.conf /run/ptsnap/ptsnapd.conf.d/40-b.conf /etc/ptsnap/ptsnapd.conf.d/50-a.conf " ]
	# In /run, a drop-in of the same name masks, and a main file replaces.
	ln -s /dev/null "$DIR/run/ptsnapd.conf.d/50-a.conf"
	printf '[Trace]\nTrace=kernel\n' >"$DIR/run/ptsnapd.conf"
	run -0 in_root "$PTSNAPD" --test-config
	[ "$(value RingSize)" = "RingSize=4M" ]
	[ "$(value CPUs)" = "CPUs=" ]
	[ "$(value Trace)" = "Trace=kernel" ]
	[ "$(value SidebandRingSize)" = "SidebandRingSize=512K" ]
	run -0 in_root "$PTSNAPD" --test-config --config=
	[ "$(value RingSize)" = "RingSize=8M" ]
}

@test "each key is in ptsnapd.conf(5) with its default, and in the example" {
	page=$PTSNAP_SRCDIR/docs/ptsnapd.conf.5.scd
	example=$PTSNAP_SRCDIR/systemd/ptsnapd.conf
	"$PTSNAPD" --config= --test-config >"$DIR/all"
	[ "$(grep -c '^[A-Z]' "$DIR/all")" -gt 10 ]
	while read -r line; do
		key=${line%%=*}
		text=${line#*=}
		# Read up to the next key: presets have paragraphs of their own.
		entry=$(awk -v key="*$key=*" '$0 == key {on = 1; print; next}
			/^\*[A-Z][A-Za-z]*=\*$/ || /^#/ {on = 0} on' "$page")
		[ -n "$entry" ] || { echo "$key is not in $page"; false; }
		[[ $entry == *"Default: "* ]] || { echo "$key has no default in $page"; false; }
		[ -z "$text" ] || [[ $(tr -s '\n\t' '  ' <<<"$entry") == *"Default: *$text*"* ]] || {
			echo "$key is $text, not as in $page"; false; }
		grep -qx "#$line" "$example" || { echo "#$line is not in $example"; false; }
	done < <(grep '^[A-Z]' "$DIR/all")
	# The page has no other keys, and the same sections.
	for key in $(sed -n 's/^\*\([A-Za-z]*\)=\*$/\1/p' "$page") \
		$(sed -n 's/^#\([A-Za-z]*\)=.*/\1/p' "$example"); do
		grep -q "^$key=" "$DIR/all" || { echo "there is no $key"; false; }
	done
	diff <(sed -n 's/^#\([A-Z][A-Za-z]*=\)/\1/p; /^\[/p' "$example") <(grep '^[A-Z[]' "$DIR/all")
	! grep -v '^#\|^\[\|^$' "$example"
}

@test "each option is in --help and in ptsnapd(8)" {
	command -v jq >/dev/null || skip "no jq"
	page=$PTSNAP_SRCDIR/docs/ptsnapd.8.scd
	conf=$PTSNAP_SRCDIR/docs/ptsnapd.conf.5.scd
	"$PTSNAPD" --help >"$DIR/help"
	options=$("$PTSNAPD" --config= --test-config=json | jq -r '.settings[].option')
	[ "$(wc -w <<<"$options")" -gt 20 ]
	for option in $options config test-config check json help version; do
		grep -q -- "^  .*--$option\b" "$DIR/help" || { echo "--help lacks $option"; false; }
		grep -q -- "^\*.*--$option\(=\?\*\|=\)" "$page" || { echo "$page lacks $option"; false; }
	done
	# ptsnapd.conf(5) names the option of each key, and ptsnapd(8) the key of each option.
	while read -r key option; do
		grep -q -- "\*--$option=\?\*" "$conf" || { echo "$conf lacks $option"; false; }
		grep -q "\*$key=\*" "$page" || { echo "$page lacks $key"; false; }
	done < <("$PTSNAPD" --config= --test-config=json |
		jq -r '.settings[] | select(.key) | .key + " " + .option')
	# The program accepts each option of the page.
	for option in $(grep -o '^\*--[a-z].*' "$page" | grep -o -- '\*--[a-z-]*[a-z]' | tr -d '*'); do
		grep -q -- "$option" "$DIR/help" || { echo "there is no $option"; false; }
	done
}
