# Conditions in the kernel, a library of its own: a program that must not load BPF does not link it. clang compiles the
# programs, bpftool links them into one object and writes that object into a header.
noinst_LIBRARIES += capture/libptprobe.a
capture_libptprobe_a_CFLAGS = $(AM_CFLAGS) $(BPF_CFLAGS)
capture_libptprobe_a_SOURCES = capture/probe/probe.h capture/probe/probe_private.h capture/probe/check.c \
	capture/probe/filter.c capture/probe/filter.h \
	capture/probe/elffile.c capture/probe/elffile.h \
	capture/probe/place.c capture/probe/place.h capture/probe/place_usdt.c
PROBE_BPF_C = capture/probe/common.bpf.c capture/probe/signal.bpf.c capture/probe/process.bpf.c \
	capture/probe/user.bpf.c capture/probe/syscall.bpf.c capture/probe/sched.bpf.c capture/probe/oom.bpf.c \
	capture/probe/tracepoint.bpf.c
PROBE_BPF_H = capture/probe/common.bpf.h capture/probe/kernel.bpf.h capture/probe/shared.h
EXTRA_DIST += $(PROBE_BPF_C) $(PROBE_BPF_H)
if HAVE_BPF
PROBE_OBJECTS = $(PROBE_BPF_C:.c=.o)
capture_libptprobe_a_SOURCES += capture/probe/probe.c \
	capture/probe/attach.c capture/probe/attach.h \
	capture/probe/files.c capture/probe/files.h
nodist_capture_libptprobe_a_SOURCES = capture/probe/probe.skel.h
$(capture_libptprobe_a_OBJECTS): capture/probe/probe.skel.h
BUILT_SOURCES += capture/probe/probe.skel.h
CLEANFILES += capture/probe/probe.skel.h capture/probe/probe.bpf.o $(PROBE_OBJECTS)
SUFFIXES += .bpf.c .bpf.o
.bpf.c.bpf.o:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(BPF_CLANG) $(BPF_PROGRAM_CFLAGS) $(BPF_CFLAGS) -I$(top_srcdir) -c $< -o $@
$(PROBE_OBJECTS): $(PROBE_BPF_H)
capture/probe/probe.bpf.o: $(PROBE_OBJECTS)
	$(AM_V_GEN)$(BPFTOOL) gen object $@ $(PROBE_OBJECTS)
capture/probe/probe.skel.h: capture/probe/probe.bpf.o
	$(AM_V_GEN)$(BPFTOOL) gen skeleton $< name probe_bpf >$@.tmp && mv $@.tmp $@
else
capture_libptprobe_a_SOURCES += capture/probe/none.c
endif
