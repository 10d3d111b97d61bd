# What the guest does while it traces itself: pipelines, processes, files, signals, threads' relatives.
for i in 1 2 3; do
	ls -l /usr/bin | sort -k5n | md5sum
	find /etc /usr/lib/systemd | xargs grep -l Service 2>/dev/null | wc -l
done
jq -n '[range(2000)] | map(. * .) | add'
mawk 'BEGIN { for (i = 0; i < 20000; i++) s += i % 7; print s }'
(sleep 0.2 & sleep 0.1 & wait)
sh -c 'kill -USR1 $$' || true
systemctl list-units --no-pager | wc -l
dd if=/dev/zero of=/tmp/zero bs=64k count=40 2>/dev/null && rm /tmp/zero
