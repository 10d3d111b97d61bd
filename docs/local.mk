man_sources = docs/ptsnapd.8.scd docs/ptsnapd.conf.5.scd docs/ptsnapctl.1.scd docs/ptsnap-report.5.scd \
	docs/ptsnap-bundle.5.scd docs/ptsnap-triggers.5.scd docs/ptsnap-tryhost.1.scd \
	docs/ptsnap-tutorial.7.scd docs/io.ptsnap.recorder.7.scd
EXTRA_DIST += $(man_sources) docs/ARCHITECTURE.md docs/GLOSSARY.md docs/HACKING.md docs/map.sh docs/DIFFERENCES.md docs/EMULATOR.md docs/PERFORMANCE.md docs/PTSCRIPT.md docs/ptsnap-report-2.schema.json

if HAVE_SCDOC
man_MANS = docs/ptsnapd.8 docs/ptsnapd.conf.5 docs/ptsnapctl.1 docs/ptsnap-report.5 docs/ptsnap-bundle.5 \
	docs/ptsnap-triggers.5 docs/ptsnap-tryhost.1 docs/ptsnap-tutorial.7 \
	docs/io.ptsnap.recorder.7
CLEANFILES += $(man_MANS)

.scd:
	$(AM_V_GEN)mkdir -p docs && scdoc <$< >$@.tmp && mv $@.tmp $@
SUFFIXES += .scd
endif

schemadir = $(pkgdatadir)
dist_schema_DATA = docs/ptsnap-report-2.schema.json

.PHONY: map
map:
	@PTSNAP_SRCDIR=$(srcdir) $(SHELL) $(srcdir)/docs/map.sh

# The program of ptsnap-tutorial(7).
pkglibexec_PROGRAMS += docs/ptsnap-example
docs_ptsnap_example_SOURCES = docs/example/ptsnap_example.c
# Without sanitizers, whose shadow memory the emulator cannot hold.
docs_ptsnap_example_CFLAGS = -std=gnu11 -O2 -Wall -Wextra -fPIE
docs_ptsnap_example_LDFLAGS = -pie -pthread
