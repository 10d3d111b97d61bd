noinst_LIBRARIES += decoder/libptdecoder.a
decoder_libptdecoder_a_CFLAGS = $(AM_CFLAGS) -Wconversion
decoder_libptdecoder_a_SOURCES = \
	decoder/errata.c \
	decoder/errata.h \
	decoder/estimate.c \
	decoder/estimate.h \
	decoder/event.c \
	decoder/event.h \
	decoder/event_ahead.c \
	decoder/event_mark.c \
	decoder/event_private.h \
	decoder/event_psb.c \
	decoder/fault.c \
	decoder/fault.h \
	decoder/flow.c \
	decoder/flow.h \
	decoder/flow_errata.c \
	decoder/flow_event.c \
	decoder/flow_gap.c \
	decoder/flow_kernel.c \
	decoder/flow_mark.c \
	decoder/flow_private.h \
	decoder/flow_try.c \
	decoder/flow_walk.c \
	decoder/graph.c \
	decoder/graph.h \
	decoder/insn.c \
	decoder/insn.h \
	decoder/mark.h \
	decoder/packet.c \
	decoder/packet.h \
	decoder/packet_text.c \
	decoder/retstack.h \
	decoder/sync.c \
	decoder/sync.h \
	decoder/timing.c \
	decoder/timing.h \
	decoder/timing_chain.c \
	decoder/timing_cycles.c \
	decoder/timing_private.h \
	decoder/timing_read.c \
	decoder/timing_swing.c
