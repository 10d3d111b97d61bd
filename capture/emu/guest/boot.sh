#!/bin/bash
# boot.sh CACHE IN OUT CPUS SECONDS: boots the VM and runs IN/run.sh there as root. The
# script's files in out/ are copied to OUT. OUT/console is the guest's console, OUT/tap the output of
# its second serial port. Status 0: the guest answered; OUT/status has the status of run.sh.
# SECONDS: 0: the guest may take as long as it likes.
# VM_MODEL: FAMILY/MODEL/STEPPING of the CPUs. VM_KERNEL: arguments of the kernel. VM_PLUGINS: what
# QEMU loads, as "FILE,ARGUMENT=VALUE ..."; @ram@ stands for the file of the guest's memory. VM_MEMORY: MiB.
# VM_CONSOLE: "terminal", the guest's console is this terminal and not a file; "output", its second serial
# port is standard output. VM_SHARE: a folder that the guest gets a copy of, as share/ beside run.sh.
# VM_PACKAGES: as for build.sh.
set -euo pipefail
. "$(dirname "$0")/pack.sh"
cache=$1 in=$2 out=$3 cpus=$4 seconds=$5
IFS=/ read -r family model stepping <<<"${VM_MODEL:-6/94/3}"
# perf needs an Intel family and model; they also make the TSC constant.
cpu=qemu64,vendor=GenuineIntel,family=$family,model=$model,stepping=$stepping,+rdtscp
append="console=ttyS0 quiet systemd.unit=vm.target systemd.show_status=0
 ${VM_KERNEL:-mitigations=off nokaslr}
 random.trust_cpu=on no_timer_check audit=0 apparmor=0 tsc=reliable panic=-1"
# A test ends when a CPU is stuck; a person waits until a busy host has time again.
[ "$seconds" = 0 ] || append+=" softlockup_panic=1"
memory=${VM_MEMORY:-1536}M

disks=$(mktemp -d)
trap 'rm -rf "$disks" "${ram:-}"' EXIT
mkdir -p "$out"
: >"$out/tap"
tar -cf "$disks/in" -C "$in" .
[ -z "${VM_SHARE:-}" ] || tar -rf "$disks/in" -C "$VM_SHARE" --transform 's,^\.,./share,S' .
truncate -s 1G "$disks/out"
# One host thread runs all virtual CPUs: with a thread for each, some guests lock up on a busy host.
thread=single machine=(-M q35)
if [ -n "${VM_PLUGINS:-}" ]; then
	thread=multi
	# In containers, /dev/shm is often too small.
	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
	folder=$disks
	[ "${free:-0}" -lt $((${VM_MEMORY:-1536} * 1024 + 400000)) ] || folder=/dev/shm
	ram=$(mktemp -p "$folder" ptsnap-vm.XXXXXX)
	machine=(-M q35,memory-backend=m
		-object "memory-backend-file,id=m,size=$memory,mem-path=$ram,share=on")
	for plugin in $VM_PLUGINS; do
		machine+=(-plugin "file=${plugin//@ram@/$ram}")
	done
fi
serial=(-serial "file:$out/console" -serial "file:$out/tap")
run=(timeout "$seconds")
[ "$seconds" != 0 ] || run=()
exec 8</dev/null
case ${VM_CONSOLE:-} in
terminal)
	exec 8<&0
	serial=(-chardev stdio,id=c,mux=on,signal=off -serial chardev:c -mon chardev=c -serial "file:$out/tap")
	;;
output) serial=(-serial "file:$out/console" -chardev stdio,id=c -serial chardev:c) ;;
esac
status=0
"${run[@]}" qemu-system-x86_64 -accel tcg,thread=$thread -cpu "$cpu" -smp "$cpus" -m $memory \
	"${machine[@]}" -nodefaults -no-reboot -display none \
	"${serial[@]}" \
	-kernel "$cache/vmlinuz" -initrd "$cache/initramfs" \
	-drive "if=none,id=r,file=$(root_image_in "$cache"),format=raw,snapshot=on" \
	-device virtio-blk-pci,drive=r \
	-drive "if=none,id=i,file=$disks/in,format=raw,readonly=on" -device virtio-blk-pci,drive=i \
	-drive "if=none,id=o,file=$disks/out,format=raw" -device virtio-blk-pci,drive=o \
	-append "$(echo $append)" <&8 || status=$?
[ $status = 0 ] || { echo "the guest did not end by itself ($status)" >&2; exit 1; }
tar -xf "$disks/out" -C "$out" 2>/dev/null && [ -s "$out/status" ] ||
	{ echo "no answer from the guest" >&2; exit 1; }
