# ptsnapd: conducts. Everything but main.c is a library, so that tests can link it.
noinst_LIBRARIES += daemon/libptdaemon.a
PTSNAPD_CPPFLAGS = $(AM_CPPFLAGS) -DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\" \
	-DPTSNAP_LIBEXECDIR=\"$(pkglibexecdir)\" -DPTSNAP_PKGLIBDIR=\"$(pkglibdir)\"
daemon_libptdaemon_a_CPPFLAGS = $(PTSNAPD_CPPFLAGS)
daemon_libptdaemon_a_SOURCES = \
	daemon/check.c daemon/check.h \
	daemon/command.c daemon/command.h \
	daemon/config.c daemon/config.h daemon/config_private.h \
	daemon/config_emu.c \
	daemon/control.c daemon/control.h \
	daemon/entry.c daemon/entry.h \
	daemon/evidence.c daemon/evidence.h \
	daemon/files.c daemon/files.h \
	daemon/host.c daemon/host.h \
	daemon/intake.c daemon/intake.h \
	daemon/job.c daemon/job.h daemon/job_private.h \
	daemon/job_steps.c \
	daemon/job_thread.c \
	daemon/jobs.c daemon/jobs.h \
	daemon/listener.c daemon/listener.h \
	daemon/log.c daemon/log.h \
	daemon/manager.c daemon/manager.h \
	daemon/peer.c daemon/peer.h \
	daemon/procs.c daemon/procs.h \
	daemon/request.h \
	daemon/server.c daemon/server.h \
	daemon/source_choice.c daemon/source_choice.h \
	daemon/status.c daemon/status.h \
	daemon/store.c daemon/store.h \
	daemon/store_file.c daemon/store_file.h \
	daemon/store_scan.c daemon/store_scan.h \
	daemon/trigger.c daemon/trigger.h \
	daemon/trigger_signal.c

sbin_PROGRAMS += daemon/ptsnapd
daemon_ptsnapd_CPPFLAGS = $(PTSNAPD_CPPFLAGS)
daemon_ptsnapd_SOURCES = daemon/main.c
daemon_ptsnapd_LDADD = daemon/libptdaemon.a capture/libptcapture.a sideband/libptsideband.a \
	proto/libptproto.a $(SYSTEMD_LIBS) $(JSONC_LIBS)
