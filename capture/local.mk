noinst_LIBRARIES += capture/libptcapture.a
capture_libptcapture_a_SOURCES = \
	capture/clock.c \
	capture/clock.h \
	capture/emu_command.c \
	capture/emu_command.h \
	capture/emu_qemu.c \
	capture/emu_qemu.h \
	capture/freeze.c \
	capture/freeze.h \
	capture/number.c \
	capture/number.h \
	capture/pmu.c \
	capture/pmu.h \
	capture/pmu_sysfs.c \
	capture/procfile.c \
	capture/procfile.h \
	capture/procinfo.c \
	capture/procmaps.c \
	capture/procmaps.h \
	capture/procscan.c \
	capture/procscan.h \
	capture/ring.c \
	capture/ring.h \
	capture/source.c \
	capture/source.h \
	capture/source_emu.c \
	capture/source_perf.c \
	capture/source_perf.h
