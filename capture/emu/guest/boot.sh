#!/bin/bash
# boot.sh CACHE IN OUT CPUS SECONDS: boots the VM and runs IN/run.sh there as root. The
# script's files in out/ are copied to OUT. OUT/console is the guest's console, OUT/tap the output of
# its second serial port. Status 0: the guest answered; OUT/status has the status of run.sh.
# VM_MODEL: FAMILY/MODEL/STEPPING of the CPUs. VM_KERNEL: arguments of the kernel. VM_PLUGINS: what
# QEMU loads, as "FILE,ARGUMENT=VALUE ..."; @ram@ stands for the file of the guest's memory.
set -euo pipefail
cache=$1 in=$2 out=$3 cpus=$4 seconds=$5
IFS=/ read -r family model stepping <<<"${VM_MODEL:-6/94/3}"
# perf needs an Intel family and model; they also make the TSC constant.
cpu=qemu64,vendor=GenuineIntel,family=$family,model=$model,stepping=$stepping,+rdtscp
append="console=ttyS0 quiet systemd.unit=vm.target systemd.show_status=0
 ${VM_KERNEL:-mitigations=off nokaslr}
 random.trust_cpu=on no_timer_check audit=0 apparmor=0 tsc=reliable panic=-1 softlockup_panic=1"
memory=1536M

disks=$(mktemp -d)
trap 'rm -rf "$disks" "${ram:-}"' EXIT
mkdir -p "$out"
: >"$out/tap"
tar -cf "$disks/in" --format=ustar -C "$in" .
truncate -s 1G "$disks/out"
# One host thread runs all virtual CPUs: with a thread for each, some guests lock up on a busy host.
thread=single machine=(-M q35)
if [ -n "${VM_PLUGINS:-}" ]; then
	thread=multi
	# In containers, /dev/shm is often too small.
	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
	folder=$disks
	[ "${free:-0}" -lt 2000000 ] || folder=/dev/shm
	ram=$(mktemp -p "$folder" ptsnap-vm.XXXXXX)
	machine=(-M q35,memory-backend=m
		-object "memory-backend-file,id=m,size=$memory,mem-path=$ram,share=on")
	for plugin in $VM_PLUGINS; do
		machine+=(-plugin "file=${plugin//@ram@/$ram}")
	done
fi
status=0
timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=$thread -cpu "$cpu" -smp "$cpus" -m $memory \
	"${machine[@]}" -nodefaults -no-reboot -display none \
	-serial "file:$out/console" -serial "file:$out/tap" \
	-kernel "$cache/vmlinuz" -initrd "$cache/initramfs" \
	-drive "if=none,id=r,file=$cache/root.img,format=raw,snapshot=on" \
	-device virtio-blk-pci,drive=r \
	-drive "if=none,id=i,file=$disks/in,format=raw,readonly=on" -device virtio-blk-pci,drive=i \
	-drive "if=none,id=o,file=$disks/out,format=raw" -device virtio-blk-pci,drive=o \
	-append "$(echo $append)" </dev/null || status=$?
[ $status = 0 ] || { echo "the guest did not end by itself ($status)" >&2; exit 1; }
tar -xf "$disks/out" -C "$out" 2>/dev/null && [ -s "$out/status" ] ||
	{ echo "no answer from the guest" >&2; exit 1; }
