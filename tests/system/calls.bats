#!/usr/bin/env bats
# ptsnapctl calls: the calls of a snapshot as lines, of a file and of a recorder's snapshot.

load recorder

setup() {
	recorder_setup
	export PTSNAP_DECODE=$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	needs_emulator
	command -v cc >/dev/null || skip "no C compiler"
	cat >"$DIR/prog.c" <<-'EOF'
		volatile unsigned sum;

		static __attribute__((noinline)) void inner(unsigned n)
		{
			for (unsigned i = 0; i < n; i++)
				sum += i;
		}

		static __attribute__((noinline)) void handle(unsigned n)
		{
			inner(n);
			sum++;
		}

		int main(void)
		{
			for (unsigned i = 0; i < 20; i++)
				handle(i == 13 ? 5000 : 10);
			return 0;
		}
	EOF
	(cd "$DIR" && cc -O1 -fno-optimize-sibling-calls -o prog prog.c)
}

teardown() {
	recorder_teardown
}

calls() {
	timeout 60 "$CTL" --socket="$SOCKET" calls "$@"
}

# count NAME OPTIONS...: how many of the calls that it prints are of NAME. Some may be interrupted.
count() {
	local name=$1
	shift
	calls --json=short "$@" | jq "select(.function == \"$name\").tid" | wc -l
}

@test "calls shows each call of a function, its callees indented" {
	record -- "$DIR/prog"
	bundle=$(echo "$STATE"/*.ptsnap)
	[ "$(count handle --function=handle "$bundle")" -eq 20 ]
	[ "$(count inner --function=handle "$bundle")" -eq 20 ]
	[ "$(count handle --function=handle --depth=1 "$bundle")" -eq 20 ]
	[ "$(count inner --function=handle --depth=1 "$bundle")" -eq 0 ]
	calls --function=handle --limit=4 "$bundle" >"$DIR/out"
	[ "$(wc -l <"$DIR/out")" -eq 5 ]
	[[ $(sed -n 1p "$DIR/out") == *"TRIGGER +ms"*CALL ]]
	grep -q "  handle$" "$DIR/out"
	grep -q "    inner$" "$DIR/out"
	# The calls are those of the report.
	timeout 60 "$CTL" decode -o "$DIR/report" "$bundle"
	[ "$(jq '.functions[] | select(.name == "inner") | .calls' "$DIR/report")" -eq 20 ]
	# handle itself executes the same instructions each time.
	[ "$(calls --json=short --function=handle --depth=1 "$bundle" | jq .selfInstructions | sort -u | wc -l)" -eq 1 ]
	# One call of inner executes most.
	[ "$(calls --json=short --function=inner --depth=1 "$bundle" | jq 'select(.selfInstructions > 5000).end')" = '"return"' ]
}

@test "calls shows inlined functions around calls, without a duration" {
	cat >"$DIR/inline.c" <<-'EOF'
		volatile unsigned sum;
		static __attribute__((noinline)) void leaf(void) { sum++; }
		static inline __attribute__((always_inline)) void inner(void)
		{
			leaf();
			sum++;
		}
		static inline __attribute__((always_inline)) void outer(void) { inner(); sum++; }
		static __attribute__((noinline)) void handle(void) { outer(); sum++; }
		int main(void)
		{
			for (int i = 0; i < 5; i++)
				handle();
			return 0;
		}
	EOF
	(cd "$DIR" && cc -g -O1 -fno-optimize-sibling-calls -o inline inline.c)
	record -- "$DIR/inline"
	bundle=$(echo "$STATE"/*.ptsnap)
	LC_ALL=C calls --lines --function=handle --limit=4 "$bundle" >"$DIR/out"
	sed -n '2,$s/^.\{73\} *//p' "$DIR/out" >"$DIR/names"
	cat "$DIR/out"
	printf '%s\n' handle "outer (inlined)" "inner (inlined)" leaf | diff - "$DIR/names"
	[ "$(count handle --function=handle "$bundle")" -eq 5 ]
	[ "$(count "inner (inlined)" --function=handle "$bundle")" -eq 0 ]
	[ "$(count "inner (inlined)" --lines --function=handle "$bundle")" -eq 5 ]
	calls --lines --function=handle --json=short "$bundle" | jq -e -s 'map(select(.begin == "inlined")) |
		length == 10 and all(.durationNSec == null and .selfInstructions == null)'
	timeout 60 "$CTL" export --format=collapsed --weight=instructions --lines -o - "$bundle" |
		grep ';handle;outer (inlined);inner (inlined);leaf '
	run calls --lines --no-names "$bundle"
	[ "$status" -eq 2 ]
}

@test "calls selects threads, times, and long or last calls" {
	record -- "$DIR/prog"
	bundle=$(echo "$STATE"/*.ptsnap)
	tid=$(calls --json=short --function=main --limit=1 "$bundle" | jq .tid)
	[ "$(count inner --thread="$tid" --function=inner "$bundle")" -eq 20 ]
	run -0 --separate-stderr calls --thread=999999999 --function=inner --json=short "$bundle"
	[ -z "$output" ]
	[[ $stderr == *"no calls"* ]]
	[ "$(count inner --function=inner --depth=1 --last=3 "$bundle")" -eq 3 ]
	[ "$(calls --json=short --function=inner --depth=1 --last=20 "$bundle" | jq -s 'map(.atNSec) | . == sort')" = true ]
	[ -z "$(calls -q --longer-than=10h --function=inner --json=short "$bundle")" ]
	[ "$(calls --json=pretty --function=inner --depth=1 "$bundle" | jq length)" -eq 20 ]
	run -0 calls --json=pretty --comm=no-such "$bundle"
	run -2 calls --last=3 --limit=3 "$bundle"
	[[ $output == *"either --last"* ]]
	run -2 calls --depth=0 "$bundle"
	run -2 calls --from=-1us --to=-2us "$bundle"
	[[ $output == *"nothing lies between"* ]]
	run -1 calls "$DIR/prog.c"
	[[ $output == *"not a ptsnap bundle"* ]]
}

@test "calls asks a recorder for a snapshot, and says what is missing" {
	has_calls() {
		"$CTL" --socket="$SOCKET" snapshot --no-decode >/dev/null
		calls -q --json=short latest >"$DIR/out"
		[ -s "$DIR/out" ]
	}
	start --trigger-burst=0 --user-burst=0 -- sleep 1000
	# The recorder answers before sleep has begun.
	eventually has_calls
	run -3 calls no-such-snapshot
	stop
}

@test "view: the page has the report's suspects, each with its place" {
	command -v node >/dev/null || skip "no node"
	sed 's/sum++;/sum++; if (n == 5000) *(volatile int *)8 = 1;/' "$DIR/prog.c" >"$DIR/bad.c"
	(cd "$DIR" && cc -O1 -fno-optimize-sibling-calls -o bad bad.c)
	record -- "$DIR/bad" || [ $? = 139 ]
	bundle=$(echo "$STATE"/*.ptsnap)
	cat >"$DIR/suspects.mjs" <<-END
		import { readFileSync } from "node:fs";
		import { parse, unpack } from "$PTSNAP_SRCDIR/ctl/page/web/data.js";
		import { placeOf } from "$PTSNAP_SRCDIR/ctl/page/web/suspects.js";

		const trace = parse(await unpack(/id="data">([^<]*)</.exec(readFileSync(process.argv[2], "utf8"))[1]));
		const nameOf = ({ thread, frame }) => trace.functions[thread.frames.func[frame]].name;

		console.log(JSON.stringify(trace.suspects && trace.suspects.map((s) => {
			const place = placeOf(trace, s);

			return [s.kind, place?.thread?.tid, place?.frame >= 0 ? nameOf(place) : null];
		})));
	END
	timeout 60 "$CTL" decode -o "$DIR/report" "$bundle"
	timeout 60 "$CTL" view -o "$DIR/page.html" "$bundle"
	node "$DIR/suspects.mjs" "$DIR/page.html" >"$DIR/suspects"
	[ "$(jq -c 'map(.[0])' "$DIR/suspects")" = "$(jq -c '.suspects | map(.kind)' "$DIR/report")" ]
	[ "$(jq -c '.[] | select(.[0] == "crash") | .[2]' "$DIR/suspects")" = '"handle"' ]
	[ "$(jq '.[] | select(.[0] == "crash") | .[1]' "$DIR/suspects")" = "$(jq '.suspects[] | select(.kind == "crash").tid' "$DIR/report")" ]
	timeout 60 "$CTL" view --no-suspects -o "$DIR/page.html" "$bundle"
	[ "$(node "$DIR/suspects.mjs" "$DIR/page.html")" = null ]
}

@test "calls tell the instructions per cycle where the trace has cycles" {
	sed 's/i < 20;/i < 20000;/' "$DIR/prog.c" >"$DIR/more.c"
	(cd "$DIR" && cc -O1 -fno-optimize-sibling-calls -o more more.c)
	record --pt=cyc,tsc,mtc,mtc_period=9 -- "$DIR/more"
	bundle=$(echo "$STATE"/*.ptsnap)
	timeout 60 "$CTL" decode --view=calls "$bundle" >"$DIR/stream"
	timeout 60 "$CTL" decode -o "$DIR/report" "$bundle"
	grep -P '^M\t[1-9].*\tipc$' "$DIR/stream" >"$DIR/ipc"
	[ "$(wc -l <"$DIR/ipc")" -gt 1 ]
	# The report has the average of all of them.
	average=$(awk -F'\t' '{ n += $5 } END { print n / NR / 100 }' "$DIR/ipc")
	jq -e --argjson average "$average" '.threads | max_by(.instructions).instructionsPerCycle as $all |
		$average > $all / 3 and $average < $all * 3' "$DIR/report"
	timeout 60 "$CTL" export --format=perfetto -o "$DIR/perfetto" "$bundle"
	grep -qa "instructions per cycle" "$DIR/perfetto"
	# Without cycles nothing is claimed.
	rm -rf "$STATE"
	record -- "$DIR/prog"
	timeout 60 "$CTL" decode --view=calls "$STATE"/*.ptsnap >"$DIR/stream"
	[ "$(grep -cP '\tipc$' "$DIR/stream" || true)" -eq 0 ]
}
