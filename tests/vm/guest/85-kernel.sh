# A trace of the kernel: compares the kernel's images in a snapshot with the kernel's memory.
load
release=$(uname -r)
# Puts files of this kernel where hosts have them.
mkdir -p /boot "/lib/modules/$release/kernel"
cp vmlinuz "/boot/vmlinuz-$release"
cp m/*.ko fake_intel_pt.ko "/lib/modules/$release/kernel/"
for file in "/lib/modules/$release"/kernel/*.ko; do
	echo "kernel/${file##*/}:"
done >"/lib/modules/$release/modules.dep"

manifest() { tar -xOf "$1" manifest.json >kernel.manifest; }
of_manifest() { jq -r "$1" kernel.manifest; }
symbol() { sed -n "s/^\([0-9a-f]*\) . $1\$/0x\1/p" /proc/kallsyms; }
# The shell's numbers have 63 bits, so this omits the highest digits.
low() { echo "0x$(symbol "$1" | cut -c11-)"; }
# NAME: takes a snapshot and stores the whole bundle as out/NAME.ptsnap.
kernel_snapshot() {
	snapshot --reason="$1" && ctl -q fetch --format=bundle -o "out/$1.ptsnap" "$SNAPSHOT" &&
		manifest "out/$1.ptsnap"
}

start --trace=both --aux-size=1M --data-size=64K
new_ring 0
new_ring 1
feed 0 20000
feed 1 20000
check "a snapshot of a trace of the kernel" kernel_snapshot kernel
kernels='.images[] | select(.kind == "kernel")'
check "has the kernel's text" is \
	"$(of_manifest "$kernels | select(.path == \"[kernel]\") | \"\(.address) \(.fileBytes)\"")" \
	"$(symbol _stext) $(($(low _etext) - $(low _stext)))"
check "that of each module" is \
	"$(of_manifest "$kernels.path" | grep -v -e kernel] -e bpf] -e __builtin -e thunks] | sort -u)" \
	"$(sed 's/ .*/]/; s/^/[/' /proc/modules | sort)"
check "all of it read at once" is \
	"$(of_manifest "[$kernels | select(.readNSec == null)] | length")" 0
equal_to_memory() { # NAME [leave]: leave code that the kernel makes and frees
	local n=0 index address path
	: >kernel.bytes
	of_manifest '.images | to_entries[] | select(.value.kind == "kernel") |
		"\(.key) \(.value.address)"' >kernel.images
	while read -r index address; do
		./kernel_see image "out/$1.ptsnap" "$index" "$address" >>kernel.bytes || {
			path=$(of_manifest ".images[$index].path")
			note "image $index, $path: differs from the kernel's memory"
			case ${2:-}$path in
			"leave[bpf]" | "leave[trampoline]" | "leave[thunks]" | "leave[__builtin__ftrace]") ;;
			*) return 1 ;;
			esac
		}
		n=$((n + 1))
	done <kernel.images
	[ $n -gt 5 ]
}
# The memory of BPF programs may change between the snapshot and the comparison: systemd loads and
# frees programs for its units. One of the next snapshots then equals, or all but such programs.
equal_or_again() { # NAME
	local n
	equal_to_memory "$1" && return
	for n in 1 2 3 4 5; do
		kernel_snapshot "$1" && equal_to_memory "$1" && return
	done
	equal_to_memory "$1" leave
}
check "and all bytes are those of the kernel's memory" equal_or_again kernel
# The stop of the processors and the time of the last piece use the same clock.
note "$(awk '{ n += $1 } END { print n }' kernel.bytes) bytes of $(wc -l <kernel.bytes) pieces," \
	"the last $(of_manifest "([$kernels.readNSec] | max) - ([.cpus[].stopNSec] | max) |
		. / 1000000 | floor") ms after the stop"
# Prints the kinds of texts, and how many lines of "kallsyms" are functions.
texts() {
	tar -xOf "out/$1.ptsnap" texts/"$(of_manifest "[.texts[].kind] | index(\"$2\")")"
}
check "the names of all functions are there" is \
	"$(texts kernel kallsyms | grep -c '^[0-9a-f]* [tTwW] ')" \
	"$(grep -c '^[0-9a-f]* [tTwW] ' /proc/kallsyms)"
check "the list of modules, too" is "$(texts kernel modules | cut -d' ' -f1 | sort)" \
	"$(cut -d' ' -f1 /proc/modules | sort)"
check "and where the kernel begins" is "$(of_manifest .trace.kernelStart)" "$(symbol _text)"
decoded() {
	ctl decode --worker="$PWD/ptsnap-decode" --view=summary "out/$1.ptsnap" >"out/$1.json"
}
check "it can be decoded" decoded kernel
stop

# The kernel is patched during recording: a probe behind a function's entry creates code.
events=/sys/kernel/debug/tracing
probe() { echo "$1" >$events/kprobe_events && echo "$2" >$events/events/kprobes/enable; }
unprobe() { echo 0 >$events/events/kprobes/enable; echo >$events/kprobe_events; }
start --trace=both --aux-size=1M --data-size=64K
check "a probe is set" probe 'p:there do_sys_openat2+5' 1
sleep 0.5
check "a snapshot of a kernel with a probe" kernel_snapshot probed
check "has the code that the probe made" has "$(of_manifest "$kernels.path")" "[__builtin__kprobes]"
check "and all bytes are those of the kernel's memory" equal_or_again probed
rm -f out/probed.ptsnap
unprobe
stop

# Where memory cannot be read, the recorder uses files.
PROPERTIES="InaccessiblePaths=/proc/kcore" start --trace=both --aux-size=1M --data-size=64K
check "a probe is set again" probe 'p:there do_sys_openat2+5' 1
sleep 0.5
check "a snapshot without /proc/kcore" kernel_snapshot files
check "has files" is "$(of_manifest '[.images[] | select(.kind == "kernel-file" and
	.missing == null).path] | sort | join(" ")')" \
	"$(sed 's/ .*/]/; s/^/[/' /proc/modules | (cat; echo '[kernel]') | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')"
check "and says so" has "$(of_manifest '[.notes[].why] | join(";")')" "/proc/kcore"
check "it can be decoded, too" decoded files
texts files kallsyms >files.kallsyms
texts files kernel-sections >files.sections
seen() { ./kernel_see file files.kallsyms files.sections "$@" >kernel.seen; }
check "of the kernel's file all is true but what is masked" seen vmlinuz
note "vmlinuz: $(cat kernel.seen)"
for file in m/*.ko fake_intel_pt.ko; do
	module=${file##*/}
	module=${module%.ko}
	check "so of $module" seen "$file" "$module"
	note "$module: $(cat kernel.seen)"
done
rm -f out/files.ptsnap
unprobe
stop

# The kernel hides its addresses.
restrict=$(cat /proc/sys/kernel/kptr_restrict)
echo 2 >/proc/sys/kernel/kptr_restrict
start --trace=both --aux-size=1M --data-size=64K
check "a snapshot where addresses are hidden" kernel_snapshot hidden
check "says that they are" has \
	"$(of_manifest '.texts[] | select(.kind == "kallsyms").missing')" "hidden"
echo "$restrict" >/proc/sys/kernel/kptr_restrict
stop
rm -f out/hidden.ptsnap

# A trace of user code only: the snapshot has nothing of the kernel.
start --aux-size=1M --data-size=64K
check "a snapshot of user code" kernel_snapshot user
check "has nothing of the kernel" is "$(of_manifest \
	'[.images[], (.texts // [])[] | .kind // "" | select(. != "vdso" and . != "perf-map" and
		. != "threads" and . != "")] | join(" ")')" ""
rm -f out/user.ptsnap
stop
