# The software PMU: a shared object that QEMU loads, so neither PIE nor sanitized, and with its own
# copies of what it needs of proto. Automake knows shared objects by libtool only; as a program
# linked with -shared it needs none.
emupmudir = $(pkglibdir)
emupmu_PROGRAMS = capture/emu/ptsnap-emupmu.so
capture_emu_ptsnap_emupmu_so_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden $(WARN_CFLAGS) \
	$(HARDEN_CFLAGS) $(ZYDIS_CFLAGS)
capture_emu_ptsnap_emupmu_so_LDFLAGS = -shared -Wl,-z,relro,-z,now
capture_emu_ptsnap_emupmu_so_LDADD = $(ZYDIS_LIBS)
capture_emu_ptsnap_emupmu_so_SOURCES = \
	capture/emu/arguments.c capture/emu/arguments.h \
	capture/emu/buildid.c capture/emu/buildid.h \
	capture/emu/calls.c capture/emu/calls.h \
	capture/emu/code.c capture/emu/code.h \
	capture/emu/disguise.c capture/emu/disguise.h \
	capture/emu/encode.c capture/emu/encode.h \
	capture/emu/environment.c capture/emu/environment.h \
	capture/emu/exec.c capture/emu/exec.h \
	capture/emu/follow.c capture/emu/follow.h capture/emu/follow_self.c \
	proto/emustart.c proto/execfile.c proto/execplan.c \
	capture/emu/guest.c capture/emu/guest.h \
	capture/emu/machine.c capture/emu/machine.h \
	capture/emu/maps.c capture/emu/maps.h \
	capture/emu/plugin.c \
	capture/emu/pmu.c capture/emu/pmu.h \
	capture/emu/qemu_api.h \
	capture/emu/sched.c capture/emu/sched.h \
	capture/emu/sideband.c capture/emu/sideband.h \
	capture/emu/sig.c capture/emu/sig.h \
	capture/emu/task.c capture/emu/task.h \
	capture/emu/truth.c capture/emu/truth.h \
	capture/emu/vcpu.c capture/emu/vcpu.h \
	capture/emu/waits.c capture/emu/waits.h \
	capture/emu/walk.c capture/emu/walk.h \
	proto/bytes.c proto/emuring.c proto/perfrecord.c
