#!/bin/bash
# Runs in the guest of ptsnap-tryhost as root: installs the recorder, starts its service, and runs the
# COMMAND in the file "command", or a shell on the console. The file "settings" has MODEL, TERM, ROWS and
# COLUMNS. Ends with the status of COMMAND or of the shell.
here=$PWD
. ./install.sh
. ./settings
say() { printf '%s\n' "$*" >/dev/ttyS0; }
die() {
	say "ptsnap-tryhost: $*"
	journalctl -u ptsnapd --no-pager -n 10 >/dev/ttyS0 2>/dev/null
	exit 125
}

# Smaller rings than usual: an emulated machine decodes slowly.
configure() {
	cat >/etc/ptsnap/ptsnapd.conf <<-END
		[Trace]
		Source=intel_pt
		RequirePT=yes
		Trace=both
		[Rings]
		RingSize=1M
		[Service]
		MaxUse=200M
		DecodeTimeout=20min
		[Limits]
		UserBurst=0
	END
	be_patient ptsnapd && be_patient ptsnap-snapshot@ && allow_kernel && systemctl daemon-reload
}

greet() {
	cat <<-END

		This is a virtual machine with Intel PT and $(nproc) CPU(s). The recorder, ptsnapd.service, traces all that
		is executed, programs and the kernel. All of it is slower than on a processor. Try:

		  ptsnapctl status                        # is each CPU traced?
		  ptsnapctl snapshot --last=5ms           # what all CPUs did just now, on one page
		  ptsnapctl calls latest | less           # each call of it, with its duration

		$([ ! -e /share ] || echo "/share has the files of your folder; what you change there is copied back at the end.")
		"exit" ends the machine. So does Ctrl-A X, at once; Ctrl-A Ctrl-A is Ctrl-A.
	END
}

# Files that are new or changed since the start, for the host.
keep_share() {
	[ -e /share ] || return 0
	mkdir -p out/share
	(cd /share/. && find . -type f -newer "$here/started" -print0 | xargs -0r cp -p --parents -t "$here/out/share")
}

mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mkdir -p /var/lib/ptsnap
mount -t tmpfs -o size=50% tmpfs /var/lib/ptsnap
[ ! -d share ] || ln -s "$here/share" /share
insmod ./fake_intel_pt.ko model="$MODEL" || die "the kernel does not load the module"
install_recorder && configure || die "the recorder cannot be installed"
systemctl start ptsnapd.service || die "the recorder does not start"
touch started
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin TERM
cd /root || exit 125
if [ -e "$here/command" ]; then
	# A pipe: COMMAND must not believe that it has a terminal.
	stty -F /dev/ttyS1 raw
	bash "$here/command" </dev/null 2>&1 | cat >/dev/ttyS1
	status=${PIPESTATUS[0]}
else
	[ -e "/lib/terminfo/${TERM:0:1}/$TERM" ] || TERM=vt220
	stty -F /dev/ttyS0 rows "$ROWS" cols "$COLUMNS"
	greet >/dev/ttyS0
	setsid -cw bash -l </dev/ttyS0 >/dev/ttyS0 2>&1
	status=$?
fi
cd "$here" && keep_share
exit $status
