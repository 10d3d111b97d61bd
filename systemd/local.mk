# The service: units, users, directories, and texts for the journal. This file replaces @path@, and not configure, because the
# name of a directory may contain other variables.
EXTRA_DIST += systemd/README.md systemd/ptsnapd.service.in systemd/ptsnap-decode@.service.in \
	systemd/ptsnap-snapshot@.service.in
SUFFIXES += .service.in .service
.service.in.service:
	$(AM_V_GEN)mkdir -p $(@D) && sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@bindir[@]|$(bindir)|g' \
		-e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' $< >$@.tmp && mv $@.tmp $@
$(nodist_systemdsystemunit_DATA): Makefile
nodist_systemdsystemunit_DATA = systemd/ptsnapd.service systemd/ptsnap-decode@.service \
	systemd/ptsnap-snapshot@.service
CLEANFILES += $(nodist_systemdsystemunit_DATA)
dist_systemdsystemunit_DATA = systemd/ptsnapd.socket systemd/ptsnapd-status.socket \
	systemd/ptsnap-decode.socket
dist_sysusers_DATA = systemd/sysusers.d/ptsnap.conf
dist_tmpfiles_DATA = systemd/tmpfiles.d/ptsnap.conf
dist_catalog_DATA = systemd/ptsnap.catalog

# A failure of our own units requests no snapshot, even if service.d/ has the drop-in.
maskrecorderdir = $(systemdsystemunitdir)/ptsnapd.service.d
dist_maskrecorder_DATA = systemd/no-snapshot/10-ptsnap-snapshot.conf
maskdecoderdir = $(systemdsystemunitdir)/ptsnap-decode@.service.d
dist_maskdecoder_DATA = systemd/no-snapshot/10-ptsnap-snapshot.conf
masksnapshotdir = $(systemdsystemunitdir)/ptsnap-snapshot@.service.d
dist_masksnapshot_DATA = systemd/no-snapshot/10-ptsnap-snapshot.conf

# Every line of this file is a comment: it shows the defaults and changes nothing.
vendorconfdir = $(prefix)/lib/ptsnap
dist_vendorconf_DATA = systemd/ptsnapd.conf
# Administrators copy these files; nothing reads them here.
dropindir = $(vendorconfdir)/drop-ins
dist_dropin_DATA = systemd/drop-ins/10-ptsnap-snapshot.conf systemd/drop-ins/bpf-text.conf \
	systemd/drop-ins/kernel-log.conf systemd/drop-ins/kernel-text.conf systemd/drop-ins/metrics.conf \
	systemd/drop-ins/paranoid3.conf systemd/drop-ins/pressure.conf
sysctlexampledir = $(vendorconfdir)/sysctl.d
dist_sysctlexample_DATA = systemd/sysctl.d/60-ptsnap-bpf.conf systemd/sysctl.d/60-ptsnap-paranoid.conf
