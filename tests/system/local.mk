SYSTEM_TESTS += tests/scenario/exact.tap
EXTRA_DIST += tests/scenario/exact.py
