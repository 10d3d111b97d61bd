# Installs the recorder in the guest, from what pack_recorder() of pack.sh packed, in the current
# directory. Sourced, by root. The administrator's part of systemd/README.md: users, rights.

install_recorder() {
	local library
	mkdir -p /usr/local/lib
	for library in lib/*; do
		[ -e "/usr/lib/x86_64-linux-gnu/${library##*/}" ] || cp "$library" /usr/local/lib/ || return 1
	done
	ldconfig
	cp -r recorder/. / && systemd-sysusers && systemd-tmpfiles --create ptsnap.conf || return 1
	mkdir -p /etc/ptsnap /etc/sysctl.d /etc/systemd/system/ptsnapd.service.d
}

# What the recorder needs beyond its unit where it traces the kernel of a Debian: the kernel's text,
# and the rights that Debian's kernel.perf_event_paranoid=3 denies.
allow_kernel() {
	cp /usr/lib/ptsnap/drop-ins/kernel-text.conf /etc/systemd/system/ptsnapd.service.d/ || return 1
	cp /usr/lib/ptsnap/sysctl.d/*.conf /etc/sysctl.d/ &&
		/lib/systemd/systemd-sysctl /etc/sysctl.d/60-ptsnap-*.conf
}

# UNIT: takes longer than usual here, with an emulated processor on a busy host.
be_patient() {
	mkdir -p "/etc/systemd/system/$1.service.d"
	printf '[Service]\nTimeoutStartSec=5min\nWatchdogSec=5min\n' >"/etc/systemd/system/$1.service.d/70-patient.conf"
}
