#!/usr/bin/env bats
# The bytes of programs that a snapshot needs: they are kept once a host, and joined with a bundle that
# is fetched.

load recorder

setup() {
	recorder_setup
	DECODE=$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	needs_emulator
	cp "$(command -v ls)" "$DIR/prog"
}

teardown() {
	recorder_teardown
}

ctl() {
	"$CTL" --socket="$SOCKET" "$@"
}

# Prints the number of files in the cache.
cached() {
	ls "$STATE/images" | grep -vc '\.ranges$' || true
}

# Expects a report FILE with instructions and without gaps, other than for the copy of an earlier snapshot.
complete() {
	[ "$(jq '.totals.gaps == (.gapCounts["snapshot-copy"] // 0) and .totals.instructions > 1000' "$1")" = true ]
}

# decode BUNDLE: writes the report to $DIR/decoded.
decode() {
	rm -f "$DIR/decoded"
	"$CTL" decode --worker="$DECODE" --report-size=192K "$@" -o "$DIR/decoded"
}

@test "two snapshots of one program share its file, and their bundles lack it" {
	record -- "$DIR/prog" /
	local n
	n=$(cached)
	[ "$n" -ge 2 ]
	record -- "$DIR/prog" /
	[ "$(cached)" -eq "$n" ]
	[ "$(ls "$STATE"/*.images | wc -l)" -eq 2 ]
	# Images without executed code are listed, and have no file.
	[ "$(awk '$4 != "-" {print $2}' "$(newest images)" | sort -u | wc -l)" -eq "$n" ]
	# The bundle has only trace, sideband and manifest.
	[ "$(tar tf "$(newest ptsnap)" | grep -c '^images/')" -eq 0 ]
	[ "$(stat -c %s "$(newest ptsnap)")" -lt $((2 * 1024 * 1024 + 64 * 1024)) ]
	complete "$(newest json)"
}

@test "a fetched bundle decodes without the files, to the report that the recorder made" {
	record -- "$DIR/prog" /
	local report id
	report=$(newest json)
	id=$(basename "$report" .json)
	complete "$report"
	rm "$DIR/prog"
	start -- sleep 60
	ctl fetch "$id" --format=bundle -o "$DIR/fetched"
	rm -rf "$STATE/images"
	decode "$DIR/fetched"
	cmp "$DIR/decoded" "$report"
	[ "$(stat -c %s "$DIR/fetched")" -lt $((4 * 1024 * 1024)) ]
	tar tf "$DIR/fetched" | grep -q '^images/0$'
}

@test "a bundle in the state directory is decoded with the images beside it" {
	record -- "$DIR/prog" /
	rm "$DIR/prog"
	decode "$(newest ptsnap)"
	cmp "$DIR/decoded" "$(newest json)"
	(cd "$STATE" && decode ./*.ptsnap)
	cmp "$DIR/decoded" "$(newest json)"
	# Join without a recorder, and to a pipe.
	"$CTL" fetch --format=bundle "$(newest ptsnap)" | cat >"$DIR/joined"
	decode "$DIR/joined"
	cmp "$DIR/decoded" "$(newest json)"
	run -2 "$CTL" fetch --format=bundle "$(newest ptsnap)" -o "$(newest ptsnap)"
	run -1 "$CTL" fetch --format=bundle "$(newest json)" -o "$DIR/none"
	[[ $output == *"not a ptsnap bundle"* ]]
	[ ! -e "$DIR/none" ]
	"$CTL" export "$(newest ptsnap)" --images="$DIR/symfs" -o "$DIR/perf.data"
	[ -s "$DIR/symfs/$DIR/prog" ]
}

@test "decoding a bundle without its images says what to do" {
	record -- "$DIR/prog" /
	cp "$(newest ptsnap)" "$DIR/away.ptsnap"
	run -0 decode "$DIR/away.ptsnap"
	[[ $output == *"fetch --format=bundle"* ]]
	[ "$(jq '.gapCounts["image-missing"] > 0' "$DIR/decoded")" = true ]
}

@test "images that the user may not read are not reported as lost" {
	[ "$(id -u)" -eq 0 ] || skip "not root"
	setpriv --reuid=12345 --regid=12345 --clear-groups "$CTL" --version ||
		skip "what is built is not for others to run"
	record -- /bin/true
	chmod 755 "$DIR" "$STATE"
	chmod 644 "$STATE"/*.ptsnap "$STATE"/*.images
	chmod 700 "$STATE/images"
	run setpriv --reuid=12345 --regid=12345 --clear-groups "$CTL" decode --worker="$DECODE" "$STATE"/*.ptsnap
	[ "$status" -eq 1 ]
	[[ "$output" == *"Permission denied"* ]]
	[[ "$output" != *"could not keep"* ]]
}

@test "a damaged list of images is refused" {
	record -- "$DIR/prog" /
	echo "nonsense" >"$(newest images)"
	run -1 decode "$(newest ptsnap)"
	[[ $output == *damaged* ]]
	[ ! -e "$DIR/decoded" ]
	echo "999 name 100 0x0+0x10" >"$(newest images)"
	run -1 decode "$(newest ptsnap)"
	[[ $output == *damaged* ]]
	start -- sleep 60
	run -1 ctl fetch "$(basename "$(newest ptsnap)" .ptsnap)" --format=bundle -o "$DIR/fetched"
	[[ $output == *damaged* ]]
	[ ! -e "$DIR/fetched" ]
}

@test "a bundle says that a cache file is gone" {
	record -- "$DIR/prog" /
	rm "$STATE"/images/*
	run -0 decode "$(newest ptsnap)"
	[[ $output == *"could not keep"* ]]
	[ "$(jq '.gapCounts["image-missing"] > 0' "$DIR/decoded")" = true ]
}

@test "without decoding, all images are kept whole" {
	start -- sh -c "while :; do '$DIR/prog' / >'$DIR/out'; done"
	ran() { [ -s "$DIR/out" ]; }
	eventually ran
	ctl snapshot --no-decode
	stop
	rm "$DIR/prog"
	local name size
	name=$(awk '{print $2; exit}' "$(newest images)")
	[ -n "$name" ]
	# The image is one piece, as large as the file.
	while read -r _ name size pieces; do
		[ "$pieces" = "$(printf '0x0+0x%x' "$size")" ]
		[ "$(stat -c %s "$STATE/images/$name")" -eq "$size" ]
	done <"$(newest images)"
	decode "$(newest ptsnap)"
	[ "$(jq '.gapCounts["image-missing"]' "$DIR/decoded")" = null ]
	[ "$(jq '.totals.instructions > 1000' "$DIR/decoded")" = true ]
}

@test "if the decoder dies, all images are kept" {
	printf '#!/bin/sh\nkill -KILL $$\n' >"$DIR/dies"
	chmod +x "$DIR/dies"
	record --worker="$DIR/dies" -- "$DIR/prog" / || true
	rm "$DIR/prog"
	grep -q '"state": *"failed"' "$(newest entry)"
	decode "$(newest ptsnap)"
	complete "$DIR/decoded"
}

@test "a cache file is deleted with the last snapshot that needs it" {
	record -- "$DIR/prog" /
	local own
	own=$(awk 'NR == 1 {print $2}' "$(newest images)")
	[ -e "$STATE/images/$own" ]
	record -- sh -c :
	[ -e "$STATE/images/$own" ]
	record --max-snapshots=2 -- sh -c :
	[ ! -e "$STATE/images/$own" ]
	[ ! -e "$STATE/images/$own.ranges" ]
	[ "$(cached)" -ge 2 ]
	decode "$(newest ptsnap)"
	complete "$DIR/decoded"
}

@test "files that a crash left in the cache are deleted at the next start" {
	record -- "$DIR/prog" /
	local n
	n=$(cached)
	: >"$STATE/images/0123456789abcdef"
	: >"$STATE/images/.0123456789abcdef.ranges.tmp"
	echo 0x0+0x10 >"$STATE/images/fedcba9876543210.ranges"
	record -- "$DIR/prog" /
	[ "$(cached)" -eq "$n" ]
	[ "$(ls -A "$STATE/images" | wc -l)" -eq $((2 * n)) ]
}

@test "a snapshot says that the recorder was killed before it kept images" {
	printf '#!/bin/sh\nexec sleep 60\n' >"$DIR/hangs"
	chmod +x "$DIR/hangs"
	start --worker="$DIR/hangs" -- sleep 60
	kill -USR2 "$PID"
	stored() { ls "$STATE"/*.entry >/dev/null 2>&1; }
	eventually stored
	kill -KILL "$PID"
	wait "$PID" || true
	start -- sleep 60
	told() { ctl list --json=short | grep -q "before it kept what its bundle needs of programs"; }
	eventually told
	run -0 ctl fetch latest --format=bundle -o "$DIR/fetched"
	[[ $output == *"could not keep"* ]]
	decode "$DIR/fetched"
}

@test "a snapshot in memory contains its images" {
	[ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
	mkdir "$STATE"
	mount -t tmpfs -o size=64k tmpfs "$STATE" 2>/dev/null || skip "no tmpfs here"
	start -- sh -c "while :; do '$DIR/prog' / >'$DIR/out'; done"
	ran() { [ -s "$DIR/out" ]; }
	eventually ran
	ctl snapshot -o "$DIR/report"
	ctl fetch latest --format=bundle -o "$DIR/fetched"
	ctl list --json=short | grep -q "kept in memory only"
	tar tf "$DIR/fetched" | grep -q '^images/'
	decode "$DIR/fetched"
	cmp "$DIR/decoded" "$DIR/report"
	ctl snapshot --no-decode
	ctl fetch latest --format=bundle -o "$DIR/fetched"
	decode "$DIR/fetched"
	[ "$(jq '.gapCounts["image-missing"]' "$DIR/decoded")" = null ]
}

@test "a disk that is full when images are kept is reported, and the report is complete" {
	[ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
	mkdir "$STATE"
	mount -t tmpfs -o size=2400k tmpfs "$STATE" 2>/dev/null || skip "no tmpfs here"
	# Until the rings are full, as the size of the disk assumes.
	start -- sh -c "for i in 1 2 3 4 5; do '$DIR/prog' /; done >'$DIR/new' && mv '$DIR/new' '$DIR/out'; exec sleep 60"
	ran() { [ -s "$DIR/out" ]; }
	eventually ran
	ctl snapshot -o "$DIR/report"
	[ "$(jq '.totals.instructions > 1000' "$DIR/report")" = true ]
	ctl list --json=short | grep -q "images were not kept: No space left on device"
	answers
}

@test "MaxUse= limits images, too" {
	record --max-use=2200K -- "$DIR/prog" /
	grep -q "images were not kept: no room is left for them" "$(newest entry)"
	[ -s "$(newest json)" ]
	[ "$(du -s -B1 "$STATE" | cut -f1)" -lt $((2400 * 1024)) ]
}

@test "a program that is changed in place is kept as another file" {
	record -- "$DIR/prog" /
	local first
	first=$(awk 'NR == 1 {print $2}' "$(newest images)")
	# The file keeps its inode and size, but has other bytes at its end, in the section headers.
	printf '\1' | dd of="$DIR/prog" bs=1 seek=$(($(stat -c %s "$DIR/prog") - 1)) conv=notrunc 2>/dev/null
	record -- "$DIR/prog" /
	[ "$(awk 'NR == 1 {print $2}' "$(newest images)")" = "$first.1" ]
	for bundle in "$STATE"/*.ptsnap; do
		decode "$bundle"
		cmp "$DIR/decoded" "${bundle%.ptsnap}.json"
	done
}

@test "a program that is gone before it can be kept is reported" {
	cat >"$DIR/slow" <<-SLOW
		#!/bin/sh
		: >'$DIR/prog'
		exec '$DECODE'
	SLOW
	chmod +x "$DIR/slow"
	record --worker="$DIR/slow" -- "$DIR/prog" /
	# The decoder asked for the file and it was gone, or the decoder did not ask.
	[ -s "$(newest json)" ]
	decode "$(newest ptsnap)"
	[ "$(jq '.gapCounts["image-missing"] > 0 or .gapCounts["image-short"] > 0' "$DIR/decoded")" = true ]
}

# Prints the answer to Get of the newest snapshot in FORMAT: the name of an error, or a size.
get() {
	python3 - "$SOCKET" "$1" <<-'GET'
		import json, socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		call = {"method": "io.ptsnap.recorder.Get", "parameters": {"id": "latest", "format": sys.argv[2]}}
		s.sendall(json.dumps(call).encode() + b"\0")
		data, fds, _, _ = socket.recv_fds(s, 65536, 4)
		reply = json.loads(data.rstrip(b"\0"))
		print(reply.get("error", reply["parameters"].get("sizeBytes")), len(fds))
	GET
}

@test "each part of a snapshot can be fetched, and nothing else" {
	record -- "$DIR/prog" /
	local size
	size=$(awk 'NR == 1 {print $3}' "$(newest images)")
	start -- sleep 60
	[ "$(get images)" = "$(stat -c %s "$(newest images)") 1" ]
	[ "$(get bundle)" = "$(stat -c %s "$(newest ptsnap)") 1" ]
	[ "$(get image:0)" = "$size 1" ]
	for format in image:999 image:65535 image:999999999; do
		[ "$(get $format)" = "io.ptsnap.recorder.NoSuchImage 0" ]
	done
	for format in image: image:x image:-1 image:0x0 'image: 0' image:0/../entry image:4294967296 entry; do
		[ "$(get "$format")" = "io.ptsnap.recorder.UnsupportedFormat 0" ]
	done
	rm "$(newest images)" "$STATE"/images/*
	[ "$(get images)" = "io.ptsnap.recorder.NoSuchImage 0" ]
	[ "$(get image:0)" = "io.ptsnap.recorder.NoSuchImage 0" ]
}

@test "a hostile decoder that asks for anything and says anything does no harm" {
	cat >"$DIR/hostile" <<-HOSTILE
		#!$(command -v python3)
		import os, random, socket, struct
		channel = socket.socket(fileno=3)
		_, fds, _, _ = socket.recv_fds(channel, 4096, 8)
		def say(kind, image=0, offset=0, size=0):
		    channel.send(struct.pack("=IIIiQIIQQ24x", kind, 0, 0, 0, 0, image, 0, offset, size))
		random.seed(1)
		numbers = [0, 1, 7, 4096, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
		for image in [*range(16), 65535, (1 << 32) - 1]:
		    say(3, image)
		    answer, got, _, _ = socket.recv_fds(channel, 4096, 8)
		    for fd in got:
		        try:
		            os.write(fd, b"poison")
		            os._exit(9)
		        except OSError:
		            os.close(fd)
		for image in [0, 1, 2, 65535, (1 << 32) - 1]:
		    for offset in numbers:
		        for size in numbers:
		            say(4, image, offset, size)
		for i in range(200000):
		    say(4, 0, 2 * random.randrange(1 << 30), 1)
		os.write(fds[1], b"{}")
		say(2)
	HOSTILE
	chmod +x "$DIR/hostile"
	record --worker="$DIR/hostile" -- "$DIR/prog" /
	[ "$(cat "$(newest json)")" = "{}" ]
	grep -q "the decoder asked for [0-9]* pieces that no image has" "$(newest entry)"
	# The list is valid.
	decode "$(newest ptsnap)"
	record -- "$DIR/prog" /
	complete "$(newest json)"
}

@test "a report that is larger than the limit is not written to the disk" {
	cat >"$DIR/hostile" <<-HOSTILE
		#!$(command -v python3)
		import os, socket, struct
		channel = socket.socket(fileno=3)
		_, fds, _, _ = socket.recv_fds(channel, 4096, 8)
		try:
		    os.ftruncate(fds[1], 1 << 40)
		except OSError:
		    os.lseek(fds[1], 1 << 40, os.SEEK_SET)
		channel.send(struct.pack("=IIIiQIIQQ24x", 2, 0, 100, 0, 0, 0, 0, 0, 0))
	HOSTILE
	chmod +x "$DIR/hostile"
	record --worker="$DIR/hostile" -- "$DIR/prog" /
	grep -q "the decoder gave no report" "$(newest entry)"
	run -2 ls "$STATE"/*.json
	[ -e "$(newest ptsnap)" ]
}
