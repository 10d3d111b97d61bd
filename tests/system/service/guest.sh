# Runs in the container as root, a service of systemd; test lines go to /out/tap.
export PATH=$PREFIX/sbin:$PREFIX/bin:/usr/sbin:/usr/bin:/sbin:/bin
export ASAN_OPTIONS=detect_leaks=0
OUT=/out
n_tests=0
mkdir -p /run/cases
cd /run/cases || exit 1
touch /out/began

tap() { printf '%s\n' "$*" >>/out/tap; }
up() { cut -d' ' -f1 /proc/uptime; }
note() { tap "# $(up) $*"; }
show() { tail -n 20 "$1" | cut -c1-300 | sed 's/^/# /' >>/out/tap; }

. /t/lib.sh
. /t/cases.sh

# The settings say what is traced here, and how the recorder comes to it.
write_settings() {
	printf '[Trace]\nSource=emulated\nEmulatorSocket=/run/emulated/rings\n'
}
begin_trace() { systemctl start emulated.service; }
end_trace() { systemctl stop emulated.service; }
# The machine works all the time.
before_client() { :; }
before_reload() { :; }
before_users() { :; }

ldconfig 2>/dev/null
note "$(systemctl --version | head -n 1), kernel $(uname -r), $(nproc) CPUs"
prepare_host
for case in ${ONLY:-$CASES}; do
	t0=$(up)
	"case_$case"
	note "$case took from $t0 to $(up)"
done
journalctl -o short-monotonic --no-hostname >/out/journal 2>&1
check "no program of ours complained of its memory" \
	fails grep -E "AddressSanitizer|runtime error|LeakSanitizer" /out/journal
tap "1..$n_tests"
