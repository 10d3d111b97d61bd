# Scripts: what the decoder must make of a program and a trace, in one text each (docs/PTSCRIPT.md).
SYSTEM_TESTS += tests/scripts/run.tap
EXTRA_DIST += tests/scripts
