#!/bin/bash
# boot.sh CACHE IN OUT CPUS SECONDS: boots the VM and runs IN/run.sh there as root. The
# script's files in out/ are copied to OUT. OUT/console is the guest's console, OUT/tap the output of
# its second serial port. Status 0: the guest answered; OUT/status has the status of run.sh.
set -euo pipefail
cache=$1 in=$2 out=$3 cpus=$4 seconds=$5
# perf needs an Intel family and model; they also make the TSC constant.
cpu=qemu64,vendor=GenuineIntel,family=6,model=94,stepping=3,+rdtscp
append="console=ttyS0 quiet systemd.unit=vm.target systemd.show_status=0 mitigations=off nokaslr
 random.trust_cpu=on no_timer_check audit=0 apparmor=0 tsc=reliable panic=-1 softlockup_panic=1"

disks=$(mktemp -d)
trap 'rm -rf "$disks"' EXIT
mkdir -p "$out"
: >"$out/tap"
tar -cf "$disks/in" --format=ustar -C "$in" .
truncate -s 64M "$disks/out"
# One host thread runs all virtual CPUs: with a thread for each, some guests lock up on a busy host.
status=0
timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=single -cpu "$cpu" -smp "$cpus" -m 1536 \
	-M q35 -nodefaults -no-reboot -display none \
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
