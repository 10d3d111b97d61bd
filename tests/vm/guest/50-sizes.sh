# Rings that cannot have the requested size.
sizes() { status '[.cpus[].auxBytes] | unique | map(tostring) | join(",")'; }
some() { feed 0 $((5 * 1000 * 1000 + 7)) && feed 1 100003 && snapshot && both_exact; }
load l0_ecx=5
start --aux-size=8M --data-size=64K
new_ring 0
new_ring 1
check "a single ToPA entry: 4 MiB at most" is "$(sizes)" 4194304
check "a single ToPA entry: the status says so" has "$(status .attrs.sizesNote)" "one block"
check "a single ToPA entry: the bytes are exact" some
stop
unload
load
start --aux-size=8M --data-size=64K --ring-budget=8M
new_ring 0
new_ring 1
check "a small budget: smaller rings" is "$(sizes)" 1048576
check "a small budget: the status says so" has "$(status .attrs.sizesNote)" RingBudget=8M
check "a small budget: the bytes are exact" some
stop
