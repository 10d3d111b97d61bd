# The machine sleeps and wakes up (ACPI S3), twice.
for i in 1 2; do
	ls -l /usr/bin | sort -k5n | md5sum
	rtcwake -m mem -s 3 || exit 1
	ls -l /usr/bin | sort -k5n | md5sum
	sleep 1
done
