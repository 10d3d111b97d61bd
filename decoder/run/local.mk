# For programs that have a ptsnap-decode decode for them. No decoder is linked in.
noinst_LIBRARIES += decoder/run/libptrun.a
decoder_run_libptrun_a_CFLAGS = $(AM_CFLAGS) -Wconversion
decoder_run_libptrun_a_SOURCES = \
	decoder/run/debug_files.c decoder/run/debug_files.h \
	decoder/run/worker_run.c decoder/run/worker_run.h \
	decoder/run/worker_start.c
