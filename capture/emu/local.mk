# The software PMU is a shared object that QEMU loads: it is neither PIE nor sanitized, and compiles what it
# needs of proto itself. Automake builds shared objects only with libtool; a program that is linked with
# -shared needs no libtool.
emupmudir = $(pkglibdir)
emupmu_PROGRAMS = capture/emu/ptsnap-emupmu.so
capture_emu_ptsnap_emupmu_so_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden $(WARN_CFLAGS) \
	$(HARDEN_CFLAGS) $(ZYDIS_CFLAGS)
capture_emu_ptsnap_emupmu_so_LDFLAGS = -shared -Wl,-z,relro,-z,now
capture_emu_ptsnap_emupmu_so_LDADD = $(ZYDIS_LIBS)
capture_emu_ptsnap_emupmu_so_SOURCES = \
	capture/emu/plugin/calls.c capture/emu/plugin/calls.h \
	capture/emu/plugin/code.c capture/emu/plugin/code.h \
	capture/emu/machine/encode.c capture/emu/machine/encode.h \
	capture/emu/plugin/exec.c capture/emu/plugin/exec.h \
	capture/emu/plugin/follow.c capture/emu/plugin/follow.h \
	capture/emu/machine/emustart.c capture/emu/machine/emustart.h \
	capture/emu/machine/execfile.c \
	capture/emu/machine/execplan.c capture/emu/machine/execplan.h \
	capture/emu/plugin/guest.c capture/emu/plugin/guest.h \
	capture/emu/plugin/plugin.c \
	capture/emu/plugin/qemu.c capture/emu/plugin/qemu.h \
	capture/emu/machine/pmu.c capture/emu/machine/pmu.h capture/emu/machine/pmu_private.h \
	capture/emu/plugin/qemu_api.h \
	capture/emu/machine/sched.c \
	capture/emu/plugin/task.c capture/emu/plugin/task.h \
	capture/emu/plugin/truth.c capture/emu/plugin/truth.h \
	capture/emu/machine/vcpu.c capture/emu/machine/vcpu.h \
	capture/emu/plugin/retire.c capture/emu/plugin/retire.h \
	proto/bytes.c capture/emu/machine/emuring.c proto/perf/perfrecord.c

# The software PMU of a whole virtual machine, likewise.
emupmu_PROGRAMS += capture/emu/ptsnap-syspmu.so
capture_emu_ptsnap_syspmu_so_CFLAGS = $(capture_emu_ptsnap_emupmu_so_CFLAGS)
capture_emu_ptsnap_syspmu_so_LDFLAGS = -shared -Wl,-z,relro,-z,now
capture_emu_ptsnap_syspmu_so_LDADD = $(ZYDIS_LIBS)
capture_emu_ptsnap_syspmu_so_SOURCES = \
	capture/emu/plugin/code.c capture/emu/plugin/code.h \
	capture/emu/machine/encode.c capture/emu/machine/encode.h \
	capture/emu/machine/pmu.c capture/emu/machine/pmu.h capture/emu/machine/pmu_private.h \
	capture/emu/machine/pmu_system.c \
	capture/emu/plugin/qemu.c capture/emu/plugin/qemu.h \
	capture/emu/plugin/qemu_api.h \
	capture/emu/plugin/retire.c capture/emu/plugin/retire.h \
	capture/emu/plugin/truth.c capture/emu/plugin/truth.h \
	capture/emu/system/asleep.c capture/emu/system/asleep.h \
	capture/emu/system/bell.h \
	capture/emu/system/models.c capture/emu/system/models.h \
	capture/emu/system/plugin.c \
	capture/emu/system/system.c capture/emu/system/system.h \
	capture/emu/system/vm.c capture/emu/system/vm.h \
	proto/bytes.c capture/emu/machine/emuring.c proto/perf/perfrecord.c

# A guest for it: the kernel module, scripts that make and boot a virtual machine, and the program that
# does so for people.
guestdir = $(pkgdatadir)/guest
dist_guest_DATA = capture/emu/guest/build.sh capture/emu/guest/boot.sh capture/emu/guest/initramfs.sh \
	capture/emu/guest/pack.sh capture/emu/guest/install.sh capture/emu/guest/tryhost.sh \
	capture/emu/guest/vm.target capture/emu/guest/vm.service
nodist_guest_DATA = capture/emu/guest/places.sh
guestmoduledir = $(guestdir)/module
dist_guestmodule_DATA = capture/emu/guest/module/Kbuild capture/emu/guest/module/pmu.c \
	capture/emu/guest/module/ringer.c capture/emu/guest/module/ringer.h capture/emu/system/bell.h
bin_SCRIPTS = capture/emu/guest/ptsnap-tryhost
EXTRA_DIST += capture/emu/guest/ptsnap-tryhost.in
CLEANFILES += $(nodist_guest_DATA) $(bin_SCRIPTS)
capture/emu/guest/ptsnap-tryhost: $(srcdir)/capture/emu/guest/ptsnap-tryhost.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@guestdir[@]|$(guestdir)|g' \
		-e 's|@VERSION[@]|$(PACKAGE_VERSION)|g' $< >$@.tmp && chmod 755 $@.tmp && mv $@.tmp $@
# Where the recorder's parts are installed, for the scripts that pack them for the guest.
capture/emu/guest/places.sh: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && printf "%s='%s'\\n" bindir '$(bindir)' sbindir '$(sbindir)' \
		pkglibdir '$(pkglibdir)' pkglibexecdir '$(pkglibexecdir)' \
		systemdsystemunitdir '$(systemdsystemunitdir)' \
		systemdsystemgeneratordir '$(systemdsystemgeneratordir)' sysusersdir '$(sysusersdir)' \
		tmpfilesdir '$(tmpfilesdir)' vendorconfdir '$(vendorconfdir)' >$@.tmp && mv $@.tmp $@
