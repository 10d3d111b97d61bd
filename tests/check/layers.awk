# Called by layers.sh with rooms.txt and all sources. Prints every breach; exits 1 if there is one.
function complain(text) { print text; status = 1 }
function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
function base(path) { sub(/.*\//, "", path); return path }

# rooms.txt: ROOM DOOR: ROOM...
FILENAME ~ /rooms\.txt$/ {
	if ($0 ~ /^#/ || NF == 0) next
	door_name = $2; sub(/:$/, "", door_name)
	door[$1] = $1 "/" door_name
	n_rooms++
	may[$1, $1] = 1
	for (i = 3; i <= NF; i++) {
		if (!($i in door)) complain("rooms.txt: " $1 " may include " $i ", which is not to its left")
		may[$1, $i] = 1
	}
	next
}
FNR == 1 {
	room = folder(FILENAME)
	files[room]++
	seen[FILENAME] = 1
	if (!(room in door)) complain(FILENAME ": the room " room " has no line in tests/check/rooms.txt")
	if ($0 != "/*" && FILENAME !~ /\.S$/) complain(FILENAME ": the file does not begin with a comment that says what it is for")
	in_head = 1
}
in_head { if (FILENAME == door[room]) essay[room]++; if ($0 ~ /\*\/$/) in_head = 0 }
/^#[ \t]*include "/ {
	split($0, part, "\"")
	header = part[2]
	if (header == "config.h") next
	n_includes++
	from = folder(header)
	if (!((room, from) in may)) complain(FILENAME ": " room " may not include " header)
	if (from != room) {
		if (header ~ /_private\.h$/) complain(FILENAME ": " header " is private to " from)
		outside[header] = 1
	}
}
/^#[ \t]*include <Zydis/ && room !~ /^(decoder\/code|decoder\/worker\/view|capture\/emu\/plugin)$/ {
	complain(FILENAME ": instructions are decoded in decoder/code and capture/emu/plugin only")
}
/^#[ \t]*include <(libelf|gelf|elfutils|dwarf)/ && room !~ /^sideband\/(elf|dwarf|symbols|kernel)$/ {
	complain(FILENAME ": ELF and DWARF are parsed in sideband/elf, dwarf, symbols and kernel only")
}
/^#[ \t]*include <intel-pt/ { complain(FILENAME ": libipt is an oracle of tests") }
END {
	for (r in door) {
		if (!(door[r] in seen)) complain(r ": the door " door[r] " does not exist")
		else if (essay[r] < min_essay) complain(door[r] ": a door opens with an essay of at least " min_essay " lines")
		if (files[r] > max_files) complain(r ": " files[r] " files; a room has at most " max_files)
	}
	for (f in seen)
		if (f ~ /\.h$/ && !(f in outside) && f !~ /_private\.h$/ && f != door[folder(f)])
			complain(f ": no other room includes this header: name it NAME_private.h or join it to its user")
	if (n_rooms < 10 || n_includes < 100) complain("only " n_rooms " rooms and " n_includes " includes seen: the check itself is broken")
	exit status
}
