# ptsnapd: conducts. Everything but main.c is a library, so that tests can link it.
noinst_LIBRARIES += daemon/libptdaemon.a
PTSNAPD_CPPFLAGS = $(AM_CPPFLAGS) -DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\" \
	-DPTSNAP_LIBEXECDIR=\"$(pkglibexecdir)\" -DPTSNAP_PKGLIBDIR=\"$(pkglibdir)\" \
	-DPTSNAP_VENDORDIR=\"$(vendorconfdir)\"
daemon_libptdaemon_a_CPPFLAGS = $(PTSNAPD_CPPFLAGS)
daemon_libptdaemon_a_SOURCES = \
	daemon/access.c daemon/access.h \
	daemon/aside.c daemon/aside.h \
	daemon/attempt.c daemon/attempt.h \
	daemon/bucket.c daemon/bucket.h \
	daemon/check.c daemon/check.h daemon/check_private.h \
	daemon/check_clock.c \
	daemon/check_cpus.c \
	daemon/check_events.c \
	daemon/check_job.c daemon/check_job.h \
	daemon/check_kernel.c \
	daemon/check_live.c daemon/check_live.h \
	daemon/check_look.c \
	daemon/check_main.c \
	daemon/check_memory.c \
	daemon/check_options.c \
	daemon/check_pmu.c \
	daemon/check_read.c \
	daemon/check_rights.c \
	daemon/check_storage.c \
	daemon/check_virtual.c \
	daemon/command.c daemon/command.h \
	daemon/conffile.c daemon/conffile.h \
	daemon/conffile_find.c \
	daemon/config.c daemon/config.h daemon/config_setting.h \
	daemon/config_emu.c \
	daemon/config_file.c \
	daemon/config_reload.c \
	daemon/config_show.c \
	daemon/config_table.c \
	daemon/config_types.c \
	daemon/config_value.c \
	daemon/control.c daemon/control.h daemon/control_private.h \
	daemon/control_check.c \
	daemon/control_lease.c \
	daemon/control_monitor.c \
	daemon/control_snapshot.c \
	daemon/control_store.c \
	daemon/control_user.c \
	daemon/coredump.c daemon/coredump.h \
	daemon/cpunotes.c daemon/cpunotes.h \
	daemon/emulate.c daemon/emulate.h \
	daemon/entry.c daemon/entry.h \
	daemon/evidence.c daemon/evidence.h \
	daemon/fdstore.c daemon/fdstore.h \
	daemon/exclude.c daemon/exclude.h \
	daemon/filelist.c daemon/filelist.h \
	daemon/fileopen.c daemon/fileopen.h \
	daemon/finding.c daemon/finding.h \
	daemon/files.c daemon/files.h \
	daemon/fill.c daemon/fill.h \
	daemon/gate.c daemon/gate.h \
	daemon/host.c daemon/host.h \
	daemon/hotplug.c daemon/hotplug.h \
	daemon/imagefile.c daemon/imagefile.h \
	daemon/imagestore.c daemon/imagestore.h \
	daemon/intake.c daemon/intake.h \
	daemon/job.c daemon/job.h daemon/job_private.h \
	daemon/job_decode.c \
	daemon/job_images.c \
	daemon/job_recover.c \
	daemon/job_steps.c \
	daemon/job_thread.c \
	daemon/job_whole.c \
	daemon/jobs.c daemon/jobs.h \
	daemon/kernel.c daemon/kernel.h daemon/kernel_private.h \
	daemon/kernel_add.c \
	daemon/kernel_look.c \
	daemon/lease.c daemon/lease.h \
	daemon/listener.c daemon/listener.h \
	daemon/log.c daemon/log.h daemon/log_events.h \
	daemon/manager.c daemon/manager.h daemon/manager_private.h \
	daemon/manager_build.c \
	daemon/manager_settings.c \
	daemon/memory.c daemon/memory.h \
	daemon/memory_copy.c daemon/memory_copy.h \
	daemon/memory_names.c daemon/memory_names.h \
	daemon/memory_read.c daemon/memory_read.h \
	daemon/metrics.c daemon/metrics.h \
	daemon/names.c daemon/names.h \
	daemon/opentask.c daemon/opentask.h \
	daemon/peer.c daemon/peer.h \
	daemon/procreader.c daemon/procreader.h \
	daemon/procs.c daemon/procs.h daemon/procs_private.h \
	daemon/procs_facts.c daemon/procs_uid.c \
	daemon/recover.c daemon/recover.h \
	daemon/remake.c daemon/remake.h \
	daemon/reload.c daemon/reload.h \
	daemon/report_output.c daemon/report_output.h \
	daemon/request.h \
	daemon/selfstat.c daemon/selfstat.h \
	daemon/sender.c daemon/sender.h \
	daemon/server.c daemon/server.h \
	daemon/source_choice.c daemon/source_choice.h \
	daemon/status.c daemon/status.h \
	daemon/store.c daemon/store.h daemon/store_private.h \
	daemon/store_file.c daemon/store_file.h \
	daemon/store_pin.c \
	daemon/store_scan.c daemon/store_scan.h \
	daemon/trigger.c daemon/trigger.h \
	daemon/trigger_file.c \
	daemon/trigger_json.c \
	daemon/trigger_object.c daemon/trigger_object.h \
	daemon/trigger_set.c daemon/trigger_set.h \
	daemon/trigger_show.c \
	daemon/trigger_signal.c \
	daemon/trigger_unit.c \
	daemon/unitname.c daemon/unitname.h \
	daemon/unitwatch.c daemon/unitwatch.h \
	daemon/unitwatch_news.c \
	daemon/unit_limits.c daemon/unit_limits.h \
	daemon/vdso.c daemon/vdso.h \
	daemon/watch.c daemon/watch.h

sbin_PROGRAMS += daemon/ptsnapd
daemon_ptsnapd_CPPFLAGS = $(PTSNAPD_CPPFLAGS)
daemon_ptsnapd_SOURCES = daemon/main.c
daemon_ptsnapd_LDADD = daemon/libptdaemon.a capture/libptcapture.a sideband/libptsideband.a \
	decoder/run/libptrun.a proto/libptproto.a $(SYSTEMD_LIBS) $(JSONC_LIBS)

# Run by systemd itself, at boot: it links as little as it can.
systemdsystemgenerator_PROGRAMS = daemon/ptsnap-generator
daemon_ptsnap_generator_CPPFLAGS = $(PTSNAPD_CPPFLAGS)
daemon_ptsnap_generator_SOURCES = daemon/generator.c
daemon_ptsnap_generator_LDADD = daemon/libptdaemon.a capture/libptcapture.a sideband/libptsideband.a \
	decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS)
