# docs/ARCHITECTURE.md names every source file, and no other.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
status=0
for f in $(find proto capture sideband decoder daemon ctl -name '*.c' | sort); do
	base=$(basename "$f" .c)
	grep -qE "\`$base(\.\[ch\]|\.c)?\`" docs/ARCHITECTURE.md || { echo "docs/ARCHITECTURE.md does not name $f"; status=1; }
done
for name in $(grep -oE '`[a-z_0-9]+\.(\[ch\]|c|h)`' docs/ARCHITECTURE.md | tr -d '`' | sort -u); do
	stem=${name%%.*}
	[ -n "$(find . -name "$stem.[ch]" -not -path './build*' | head -n 1)" ] || { echo "docs/ARCHITECTURE.md names $name, which is not there"; status=1; }
done
exit $status
