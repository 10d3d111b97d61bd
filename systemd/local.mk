# Units, sysusers and tmpfiles come with the service's own version; the folder holds their place.
EXTRA_DIST += systemd/README.md
# Every line of it is a comment: it changes nothing and shows what can be changed.
vendorconfdir = $(prefix)/lib/ptsnap
dist_vendorconf_DATA = systemd/ptsnapd.conf
