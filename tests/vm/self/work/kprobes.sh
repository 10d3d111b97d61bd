# Has the kernel set probes of functions and of returns from them, which programs run into, and remove them.
cd /sys/kernel/debug/tracing || exit 1
for i in 1 2 3 4 5 6; do
	echo 'p:entry do_sys_openat2' >kprobe_events && echo 'r:return vfs_read' >>kprobe_events || exit 1
	# Behind the NOP of the function tracer, with or without an ENDBR in front of that.
	echo 'p:inside vfs_write+5' >>kprobe_events || echo 'p:inside vfs_write+9' >>kprobe_events || exit 1
	echo 1 >events/kprobes/enable || exit 1
	ls -l /usr/lib >/dev/null
	cat kprobe_profile
	awk '$2 == 0 { missed++ } END { exit NR != 3 || missed }' kprobe_profile || exit 1
	echo 0 >events/kprobes/enable
	echo >kprobe_events
	ls -l /usr/lib >/dev/null
done
