# Fifty services, started together.
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/test -d /proc\n' \
	>/run/systemd/system/fifty@.service
for i in $(seq 50); do
	wants="$wants fifty@$i.service"
done
printf '[Unit]\nRequires=%s\n' "$wants" >/run/systemd/system/fifty.target
systemctl daemon-reload && systemctl start fifty.target || exit 1
[ "$(systemctl list-units --state=active --plain --no-legend --no-pager 'fifty@*' | wc -l)" = 50 ]
