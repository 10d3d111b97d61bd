#!/bin/sh
# Runs the walk of `ptsnapctl check --trace' (75-check.sh) on CPU 1, and feeds its packets.
cd "$(dirname "$0")" || exit 1
./feeder accompany 1 $$ "$1" 400 "$PWD/ptsnap-walk" 2>>out/fed-walk.log &
exec "$PWD/ptsnap-walk" "$1"
