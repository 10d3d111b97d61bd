# Units, sysusers and tmpfiles come with the service's own version; the folder holds their place.
EXTRA_DIST += systemd/README.md
