# ptsnapd: conducts. Everything but main.c is a library, so that tests can link it.
noinst_LIBRARIES += daemon/libptdaemon.a
PTSNAPD_CPPFLAGS = $(AM_CPPFLAGS) -DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\" \
	-DPTSNAP_LIBEXECDIR=\"$(pkglibexecdir)\" -DPTSNAP_PKGLIBDIR=\"$(pkglibdir)\" \
	-DPTSNAP_VENDORDIR=\"$(vendorconfdir)\"
daemon_libptdaemon_a_CPPFLAGS = $(PTSNAPD_CPPFLAGS)
daemon_libptdaemon_a_SOURCES = \
	daemon/base/aside.c daemon/base/aside.h \
	daemon/job/attempt.c daemon/job/attempt.h \
	daemon/base/bucket.c daemon/base/bucket.h \
	daemon/base/metric.c daemon/base/metric.h \
	daemon/check/check.c daemon/check/check.h daemon/check/check_private.h \
	daemon/check/check_cpus.c \
	daemon/check/check_events.c \
	daemon/check/check_live.c \
	daemon/check/check_needs.c \
	daemon/check/check_pmu.c \
	daemon/check/check_read.c daemon/check/check_unit.c \
	daemon/record/command.c daemon/record/command.h \
	daemon/condition/condition.c daemon/condition/condition.h daemon/condition/condition_kind.h \
	daemon/condition/fifo.c daemon/condition/path.c daemon/condition/pressure.c \
	daemon/condition/kernel_log.c daemon/condition/kernel_text.c daemon/condition/kernel_text.h \
	daemon/condition/metric_file.c \
	daemon/config/conffile.c daemon/config/conffile.h \
	daemon/config/config.c daemon/config/config.h daemon/config/config_setting.h \
	daemon/config/config_file.c \
	daemon/config/config_show.c \
	daemon/config/config_table.c \
	daemon/config/config_types.c \
	daemon/control/control.c daemon/control/control.h daemon/control/control_private.h \
	daemon/control/control_later.c \
	daemon/control/control_snapshot.c \
	daemon/control/control_store.c \
	daemon/control/control_trigger.c \
	daemon/control/control_user.c \
	daemon/gather/asleep.c daemon/gather/asleep.h \
	daemon/gather/coredump.c \
	daemon/emulate.c \
	daemon/store/entry.c daemon/store/entry.h \
	daemon/gather/evidence.c daemon/gather/evidence.h \
	daemon/store/fdstore.c daemon/store/fdstore.h \
	daemon/config/exclude.c daemon/config/exclude.h \
	daemon/record/files_list.c daemon/record/files_private.h \
	daemon/record/files_open.c \
	daemon/record/files.c daemon/record/files.h \
	daemon/trigger/gate.c daemon/trigger/gate.h \
	daemon/gather/host.c \
	daemon/hotplug.c \
	daemon/store/imagefile.c \
	daemon/store/imagestore.c daemon/store/imagestore.h \
	daemon/record/faults.c daemon/record/faults.h \
	daemon/record/intake.c daemon/record/intake.h \
	daemon/job/job.c daemon/job/job.h daemon/job/job_private.h \
	daemon/job/job_decode.c \
	daemon/job/job_images.c \
	daemon/job/job_recover.c \
	daemon/job/job_thread.c \
	daemon/job/jobs.c daemon/job/jobs.h \
	daemon/gather/kernel.c \
	daemon/job/lease.c daemon/job/lease.h \
	daemon/base/log.c daemon/base/log.h \
	daemon/manager.c daemon/manager.h daemon/manager_private.h \
	daemon/manager_settings.c \
	daemon/record/memory.c daemon/record/memory.h \
	daemon/gather/memory_copy.c \
	daemon/gather/memory_names.c \
	daemon/gather/memory_read.c daemon/gather/memory_read.h \
	daemon/check/metrics.c \
	daemon/config/names.c daemon/config/names.h \
	daemon/control/peer.c daemon/control/peer.h \
	daemon/record/procreader.c \
	daemon/record/reread.c daemon/record/reread.h \
	daemon/record/procs.c daemon/record/procs.h daemon/record/procs_private.h \
	daemon/record/procs_facts.c daemon/record/procs_uid.c daemon/record/silence.c \
	daemon/job/remake.c daemon/job/remake.h \
	daemon/control/server.c daemon/control/server.h \
	daemon/check/status.c daemon/check/status.h \
	daemon/store/store.c daemon/store/store.h daemon/store/store_private.h \
	daemon/store/store_file.c daemon/store/store_file.h \
	daemon/store/store_room.c \
	daemon/trigger/armed.c daemon/trigger/armed.h \
	daemon/trigger/trigger.c daemon/trigger/trigger.h \
	daemon/trigger/trigger_conditions.c daemon/trigger/trigger_json.c \
	daemon/config/trigger_condition.c daemon/config/trigger_condition.h \
	daemon/config/trigger_object.c \
	daemon/config/trigger_set.c daemon/config/trigger_set.h \
	daemon/trigger/trigger_events.c \
	daemon/base/unitname.c daemon/base/unitname.h \
	daemon/trigger/unitwatch.c daemon/trigger/unitwatch.h \
	daemon/trigger/unitwatch_news.c \
	daemon/config/unit_limits.c \
	daemon/check/metrics_writer.c daemon/check/metrics_writer.h

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
