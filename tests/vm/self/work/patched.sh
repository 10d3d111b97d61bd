# Has the kernel patch the entries of some hundred functions for its function tracer, and back.
cd /sys/kernel/debug/tracing || exit 1
for functions in 'vfs_*' 'ksys_*' 'path_*' 'do_filp_*' 'ext4_file_*' 'ext4_da_*' 'wake_up_*' 'futex_*' 'pipe_*'; do
	echo "$functions" >>set_ftrace_filter || exit 1
done
wc -l <set_ftrace_filter
for i in 1 2 3 4; do
	echo function >current_tracer || exit 1
	ls -l /usr/lib >/dev/null
	echo nop >current_tracer
	ls -l /usr/lib >/dev/null
done
echo >set_ftrace_filter
