# Runs in the emulated machine: a process of alice's, one of bob's, one of root's; each works a little
# and waits, for ever; and a program with DWARF, if there is one.
loop='while :; do for ((i = 0; i < 20; i++)); do :; done; read -r -t 0.3 -u 9; done 9<> <(:)'
setpriv --reuid=alice --regid=alice --clear-groups bash -c "$loop" alice &
setpriv --reuid=bob --regid=bob --clear-groups bash -c "$loop" bob &
[ ! -x /opt/lines ] || /opt/lines &
eval "$loop"
