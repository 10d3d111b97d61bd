#!/usr/bin/env bats
# Names of functions: demangled, from the compressed symbols of a stripped program, and without symbols.

load recorder

setup() {
	recorder_setup
	DECODE=$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	needs_emulator
	command -v c++ >/dev/null || skip "no C++ compiler"
	for tool in objcopy strip nm xz; do
		command -v "$tool" >/dev/null || skip "no $tool"
	done
	cat >"$DIR/prog.cc" <<-'EOF'
		static volatile unsigned sum;

		namespace shop {
		struct goods { unsigned n; };

		static __attribute__((noinline)) void sell(goods g, const char *)
		{
			for (unsigned i = 0; i < g.n; i++)
				sum += i;
		}
		}

		extern "C" __attribute__((noinline)) void _Do_it(unsigned n)
		{
			shop::sell({n}, "");
		}

		int main()
		{
			_Do_it(1000);
			_Do_it(2000);
		}
	EOF
	(cd "$DIR" && c++ -O1 -Wl,--build-id=sha1 -o prog prog.cc)
}

teardown() {
	recorder_teardown
}

# names_are REPORT TEXT: expects TEXT as the names of the program's own functions.
names_are() {
	local got
	got=$(jq -r '[.functions[] | select(.name | test("sell|_Do_it")) |
		.name + "=" + (.linkage // "")] | sort | unique | join(" ")' "$1")
	[ "$got" = "$2" ] || { echo "$got, not $2" >&2; return 1; }
}

BOTH='_Do_it= shop::sell(shop::goods, char const*)=_ZN4shopL4sellENS_5goodsEPKc'

@test "a report has demangled C++ names, and C names unchanged" {
	record -- "$DIR/prog"
	names_are "$(newest json)" "$BOTH"
}

@test "names from the compressed symbols (.gnu_debugdata) of a stripped program are in its report and its bundle" {
	(
		cd "$DIR"
		strip -o stripped prog
		record -- "$DIR/stripped"
		names_are "$(newest json)" ""
		nm prog --format=posix --defined-only | awk '$2 == "T" || $2 == "t" {print $1}' >keep
		objcopy --only-keep-debug prog debug
		objcopy -S --remove-section .comment --keep-symbols=keep debug mini
		xz mini
		objcopy --add-section .gnu_debugdata=mini.xz stripped packed
	)
	record -- "$DIR/packed"
	names_are "$(newest json)" "$BOTH"
	# Join the bundle with the kept images after the program is gone.
	"$CTL" fetch --format=bundle "$(newest ptsnap)" -o "$DIR/joined"
	rm -rf "$STATE/images" "$DIR/packed" "$DIR/prog"
	timeout 60 "$CTL" decode --worker="$DECODE" --report-size=192K "$DIR/joined" -o "$DIR/decoded"
	cmp "$DIR/decoded" "$(newest json)"
}

@test "functions of a stripped program are told apart, and named by the addresses that nm has" {
	local sell do_it
	strip -o "$DIR/stripped" "$DIR/prog"
	sell=$(nm "$DIR/prog" | awk '/4sell/ {sub("^0*", "", $1); print $1}')
	do_it=$(nm "$DIR/prog" | awk '/ _Do_it$/ {sub("^0*", "", $1); print $1}')
	record -- "$DIR/stripped"
	jq -e --arg sell "stripped@0x$sell" --arg do_it "stripped@0x$do_it" \
		'.functions | map({(.name): .}) | add | .[$sell].calls == 2 and .[$do_it].calls == 2 and
		(.[$sell] | has("boundsUnknown") | not) and .[$sell].selfInstructions > 3000' "$(newest json)"
}
