#!/usr/bin/env bats
# Source lines and separate debug files in reports: by the recorder, by ptsnapctl, and elsewhere when
# the programs are gone.

load recorder

setup() {
	recorder_setup
	DECODE=$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	needs_emulator
	command -v cc >/dev/null || skip "no C compiler"
	command -v objcopy >/dev/null || skip "no objcopy"
	cat >"$DIR/prog.c" <<-'EOF'
		volatile unsigned sum;

		static inline __attribute__((always_inline)) void small(unsigned i)
		{
			if (i % 3)
				sum += i;
		}

		static __attribute__((noinline)) void large(unsigned n)
		{
			for (unsigned i = 0; i < n; i++)
				small(i);
		}

		int main(void)
		{
			large(1000);
			large(2000);
			return 0;
		}
	EOF
	(cd "$DIR" && cc -g -O1 -Wl,--build-id=sha1 -o prog prog.c)
	ID=$(readelf -n "$DIR/prog" | awk '/Build ID:/ {print $3}')
	DEBUG=.build-id/${ID:0:2}/${ID:2}.debug
	LINE=$(addr2line -e "$DIR/prog" "$(nm "$DIR/prog" | awk '$3 == "large" {print $1}')")
	LINE=${LINE##*/}
	[[ $LINE == prog.c:1* ]]
}

teardown() {
	recorder_teardown
}

# decode [OPTIONS] BUNDLE: writes the report to $DIR/decoded.
decode() {
	rm -f "$DIR/decoded"
	timeout 60 "$CTL" decode --worker="$DECODE" --report-size=192K "$@" -o "$DIR/decoded"
}

# is FILTER TEXT: expects TEXT as jq's output for the report in $DIR/decoded.
is() {
	local got
	got=$(jq -r "$1" "$DIR/decoded")
	[ "$got" = "$2" ] || { echo "$1: $got, not $2" >&2; return 1; }
}

# For prog: whether a function has a line, the function's image, and the state of its DWARF.
lines_are() {
	is "[.images[] | select(.path | endswith(\"/prog\")) | .dwarf] | unique | join(\",\")" "$1"
	is "[.functions[] | select(.name == \"large\") | if .file then \"\\(.file):\\(.line)\" else \"\" end | sub(\".*/\"; \"\")] | join(\",\")" "$2"
}

no_lines() {
	is '[.images[] | select(has("dwarf"))] | length' 0
	is '[.functions[], .places[] | select(has("file") or has("line") or has("inlined"))] | length' 0
}

without_symbols() {
	mkdir -p "$DIR/sym/$(dirname "$DEBUG")"
	objcopy --only-keep-debug "$DIR/prog" "$DIR/sym/$DEBUG"
	strip "$DIR/prog"
}

@test "with SourceLines= the report has lines, also when its bundle is decoded elsewhere" {
	record --source-lines -- "$DIR/prog"
	local report
	report=$(newest json)
	cp "$report" "$DIR/decoded"
	lines_are own "$LINE"
	is .schemaVersion 2.0
	# Join the bundle with the kept images after program and source are gone.
	rm "$DIR/prog" "$DIR/prog.c"
	"$CTL" fetch --format=bundle "$(newest ptsnap)" -o "$DIR/joined"
	decode --lines "$(newest ptsnap)"
	cmp "$DIR/decoded" "$report"
	rm -rf "$STATE/images"
	(cd / && decode --lines "$DIR/joined")
	cmp "$DIR/decoded" "$report"
	# Without --lines there are no lines.
	decode "$DIR/joined"
	no_lines
}

# Prints the number of bytes that the newest snapshot needs of prog.
needed_of_prog() {
	local sum=0 piece
	for piece in $(awk -v size="$(stat -c %s "$DIR/prog")" '$3 == size {print $4}' "$(newest images)" | tr , ' '); do
		sum=$((sum + ${piece#*+}))
	done
	echo $sum
}

# Makes a program with much more DWARF.
make_large() {
	for n in $(seq 1500); do
		echo "unsigned f$n(unsigned a) { unsigned b = a * $n, c = b ^ a; return b - c; }"
	done >>"$DIR/prog.c"
	(cd "$DIR" && cc -g -O1 -Wl,--build-id=sha1 -o prog prog.c)
	ID=$(readelf -n "$DIR/prog" | awk '/Build ID:/ {print $3}')
	DEBUG=.build-id/${ID:0:2}/${ID:2}.debug
}

@test "DWARF that MaxUse= has no room for is reported as not kept, and the report is complete" {
	make_large
	head -c 4000000 /dev/zero >"$DIR/zeros"
	objcopy --add-section .debug_ranges="$DIR/zeros" "$DIR/prog"
	record --source-lines --max-use=3M --aux-size=64K -- "$DIR/prog"
	cp "$(newest json)" "$DIR/decoded"
	lines_are own "$LINE"
	jq -r .error "$(newest entry)" | grep -q 'images were not kept: no room is left for them (MaxUse=)'
	# The same holds for all programs that there is no room for; the report needs none of them.
	[ "$(du -sk "$STATE" | cut -f 1)" -lt 3072 ]
}

@test "without SourceLines= no DWARF is kept, and the bundle has none" {
	make_large
	record -- "$DIR/prog"
	cp "$(newest json)" "$DIR/decoded"
	no_lines
	is '[.functions[] | select(.name == "large")] | length' 1
	local less
	less=$(needed_of_prog)
	decode --lines "$(newest ptsnap)"
	lines_are none ""
	is '[.functions[] | select(.name == "large")] | length' 1
	# A separate file has the DWARF that the bundle lacks.
	mkdir -p "$DIR/sym/$(dirname "$DEBUG")"
	cp "$DIR/prog" "$DIR/sym/$DEBUG"
	decode --lines --symbols="$DIR/sym" "$(newest ptsnap)"
	lines_are apart "$LINE"
	# The program itself also has it, if it still exists.
	decode --lines --symbols=/ "$(newest ptsnap)"
	lines_are apart "$LINE"
	record --source-lines -- "$DIR/prog"
	cp "$(newest json)" "$DIR/decoded"
	lines_are own "$LINE"
	[ "$(needed_of_prog)" -gt $((less + 50000)) ]
}

@test "SourceLines= changes by a reload" {
	printf '[Service]\nSourceLines=no\n' >"$DIR/conf"
	start --config="$DIR/conf" -- sh -c "while :; do $DIR/prog; done"
	"$CTL" --socket="$SOCKET" snapshot -o "$DIR/decoded"
	is '[.images[] | select(has("dwarf"))] | length' 0
	printf '[Service]\nSourceLines=yes\n' >"$DIR/conf"
	"$CTL" --socket="$SOCKET" reload
	"$CTL" --socket="$SOCKET" snapshot -o "$DIR/decoded"
	is '[.images[] | select(has("dwarf"))] | length > 0' true
}

@test "names and lines of a stripped program are found in a directory by build id" {
	without_symbols
	record -- "$DIR/prog"
	decode "$(newest ptsnap)"
	is '[.functions[] | select(.name == "large")] | length' 0
	# Only names are read; the links of a debug package may lead anywhere.
	mv "$DIR/sym/$DEBUG" "$DIR/elsewhere"
	ln -s "$DIR/elsewhere" "$DIR/sym/$DEBUG"
	decode --symbols=/nonexistent/.. --symbols="$DIR/sym" "$(newest ptsnap)" || true
	[ ! -e "$DIR/decoded" ]
	mkdir "$DIR/empty"
	decode --symbols="$DIR/empty" --symbols="$DIR/sym" "$(newest ptsnap)"
	is '[.functions[] | select(.name == "large")] | length' 1
	no_lines
	decode --lines --symbols="$DIR/empty" --symbols="$DIR/sym" "$(newest ptsnap)"
	lines_are apart "$LINE"
	# The directory may be relative to the current one.
	(cd "$DIR" && decode --lines --symbols=sym "$(newest ptsnap)")
	lines_are apart "$LINE"
	decode --skim=tip --view=report --symbols="$DIR/sym" "$(newest ptsnap)"
	is '[.functions[] | select(.name == "large")] | length' 1
	decode --lines "$(newest ptsnap)"
	lines_are none ""
}

@test "names and lines are found by path, but not those of another build" {
	without_symbols
	record -- "$DIR/prog"
	mkdir -p "$DIR/root/$DIR"
	mv "$DIR/sym/$DEBUG" "$DIR/root/$DIR/prog.debug"
	decode --lines --symbols="$DIR/root" "$(newest ptsnap)"
	lines_are apart "$LINE"
	# Files of another build, at the same path and under a false build id.
	sed -i 's/sum += i/sum ^= i/' "$DIR/prog.c"
	(cd "$DIR" && cc -g -O1 -Wl,--build-id=sha1 -o "root/$DIR/prog.debug" prog.c)
	decode --lines --symbols="$DIR/root" "$(newest ptsnap)"
	lines_are none ""
	is '[.functions[] | select(.name == "large")] | length' 0
	cp "$DIR/root/$DIR/prog.debug" "$DIR/sym/$DEBUG"
	decode --lines --symbols="$DIR/sym" "$(newest ptsnap)"
	lines_are none ""
	# Links in the path do not lead out of the directory.
	rm "$DIR/root/$DIR/prog.debug"
	objcopy --only-keep-debug "$DIR/prog" "$DIR/outside"
	ln -s "$DIR/outside" "$DIR/root/$DIR/prog.debug"
	decode --lines --symbols="$DIR/root" "$(newest ptsnap)"
	lines_are none ""
}

@test "everything but a regular file is skipped" {
	without_symbols
	record -- "$DIR/prog"
	mkdir -p "$DIR/odd/$(dirname "$DEBUG")" "$DIR/odd/$DIR"
	mkfifo "$DIR/odd/$DEBUG"
	ln -s /dev/zero "$DIR/odd/${DEBUG%.debug}"
	ln -s prog "$DIR/odd/$DIR/prog"
	head -c 100000 /dev/urandom >"$DIR/odd/$DIR/prog.debug"
	decode --lines --symbols="$DIR/odd" "$(newest ptsnap)"
	lines_are none ""
	decode --lines --symbols="$DIR/odd" --symbols="$DIR/sym" "$(newest ptsnap)"
	lines_are apart "$LINE"
}

@test "names and lines come from debuginfod if --debuginfod is given" {
	without_symbols
	record -- "$DIR/prog"
	mkdir "$DIR/bin"
	# Like debuginfod-find(1), the program prints the path of a file in its cache, or nothing.
	cat >"$DIR/bin/debuginfod-find" <<-EOF
		#!/bin/sh
		echo "\$@" >>"$DIR/asked"
		[ "\$2" = "$ID" ] && echo "$DIR/sym/$DEBUG" && exit
		echo "Server query failed: No such file or directory" >&2
		exit 1
	EOF
	chmod +x "$DIR/bin/debuginfod-find"
	PATH=$DIR/bin:$PATH
	decode --lines "$(newest ptsnap)"
	[ ! -e "$DIR/asked" ]
	export DEBUGINFOD_URLS=http://nowhere.invalid/
	run -0 decode --lines --debuginfod "$(newest ptsnap)"
	[ -z "$output" ]
	lines_are apart "$LINE"
	[ "$(grep -c "^debuginfo $ID$" "$DIR/asked")" -eq 1 ]
	[ "$(sort "$DIR/asked" | uniq -d | wc -l)" -eq 0 ]
	# Whatever path the program prints, only regular files are read.
	mkfifo "$DIR/pipe"
	mv "$DIR/pipe" "$DIR/sym/$DEBUG"
	decode --lines --debuginfod "$(newest ptsnap)"
	lines_are none ""
	# Servers are not asked for files that are in a directory.
	objcopy --only-keep-debug "$DIR/prog" "$DIR/apart"
	mkdir -p "$DIR/local/$(dirname "$DEBUG")"
	mv "$DIR/apart" "$DIR/local/$DEBUG"
	rm "$DIR/asked"
	decode --debuginfod --symbols="$DIR/local" "$(newest ptsnap)"
	! grep -q "$ID" "$DIR/asked"
	rm "$DIR/bin/debuginfod-find"
	run -0 env PATH="$DIR/bin" "$CTL" decode --worker="$DECODE" --debuginfod "$(newest ptsnap)"
	[[ $output == *"debuginfod-find cannot be run: No such file"* ]]
}

@test "a stripped program in a recorder with SourceLines= is not looked for elsewhere" {
	without_symbols
	record --source-lines -- "$DIR/prog"
	cp "$(newest json)" "$DIR/decoded"
	lines_are none ""
}

# Sets the size that .debug_info of FILE unpacks to.
claim() {
	python3 - "$1" "$2" <<-'EOF'
		import struct, sys
		path, size = sys.argv[1], int(sys.argv[2])
		data = bytearray(open(path, "rb").read())
		shoff, = struct.unpack_from("<Q", data, 0x28)
		shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 0x3a)
		at = lambda i: struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shentsize)
		names = at(shstrndx)[4]
		for i in range(shnum):
		    s = at(i)
		    name = bytes(data[names + s[0]:data.index(b"\0", names + s[0])])
		    if name == b".debug_info":
		        assert s[2] & 0x800, "not packed"
		        struct.pack_into("<IIQ", data, s[4], 1, 0, size)
		open(path, "wb").write(data)
	EOF
}

@test "DWARF that is too large is reported, and the report is complete" {
	command -v python3 >/dev/null || skip "no python3"
	(cd "$DIR" && objcopy --compress-debug-sections=zlib prog packed && mv packed prog)
	record --source-lines -- "$DIR/prog"
	cp "$(newest json)" "$DIR/decoded"
	lines_are own "$LINE"
	for size in 268435457 1099511627776 18446744073709551615; do
		rm -rf "$STATE"
		claim "$DIR/prog" "$size"
		record --source-lines -- "$DIR/prog"
		cp "$(newest json)" "$DIR/decoded"
		lines_are too-large ""
		is '.namesLeftOut // false' false
		is '[.functions[] | select(.name == "large")] | length' 1
		decode --lines "$(newest ptsnap)"
		cmp "$DIR/decoded" "$(newest json)"
	done
}

@test "reading lines ends at the time limit" {
	record --source-lines -- "$DIR/prog"
	"$CTL" fetch --format=bundle "$(newest ptsnap)" -o "$DIR/joined"
	local count='[.functions[], .places[] | select(has("file"))] | length'
	"$PTSNAP_BUILDDIR/tests/support/run_worker" lines=1 "$DECODE" 0 "$DIR/joined" "$DIR/decoded"
	is "$count > 1" true
	# The first file takes longer than the limit.
	"$PTSNAP_BUILDDIR/tests/support/run_worker" lines=1 lines-ns=1 "$DECODE" 0 "$DIR/joined" "$DIR/decoded"
	is "$count <= 1" true
	is '[.functions[] | select(.name == "large")] | length' 1
}

@test "the report of a perf.data has lines, too" {
	record -- "$DIR/prog"
	"$CTL" export "$(newest ptsnap)" -o "$DIR/perf.data"
	decode --lines "$DIR/perf.data"
	lines_are own "$LINE"
}

@test "branches and insns of a program have lines, and are as many as the summary says" {
	record -- "$DIR/prog"
	local bundle summary
	bundle=$(newest ptsnap)
	timeout 60 "$CTL" insns -q --worker="$DECODE" --lines --function=large --json=short "$bundle" >"$DIR/insns"
	# The first instruction of large has the line of large; the inlined function has its own.
	[ "$(jq -r 'select(.offset == 0) | "\(.file | sub(".*/"; "")):\(.line)"' "$DIR/insns" | sort -u)" = "$LINE" ]
	jq -es 'map(.line) | unique | contains([5])' "$DIR/insns"
	summary=$(timeout 60 "$CTL" decode --worker="$DECODE" --view=summary --json=short "$bundle")
	timeout 60 "$CTL" insns -q --worker="$DECODE" --no-names --json=short "$bundle" >"$DIR/insns"
	[ "$(grep -c '"instruction"' "$DIR/insns")" -eq "$(jq .instructions <<<"$summary")" ]
	# Each has bytes and text.
	! grep -q '"bytes":null\|"instruction":null' "$DIR/insns"
	timeout 60 "$CTL" branches -q --worker="$DECODE" --json=short "$bundle" >"$DIR/branches"
	[ "$(grep -c '"kind"' "$DIR/branches")" -eq "$(jq .branches <<<"$summary")" ]
	[ "$(jq -c 'select(.kind == "call" and .to.function == "large" and .to.offset == 0)' "$DIR/branches" | wc -l)" -eq 2 ]
	[ "$(timeout 60 "$CTL" insns -q --worker="$DECODE" --lines --function=large --limit=1 "$bundle" | grep -c prog.c:)" -eq 1 ]
}
