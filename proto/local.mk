# proto: every byte layout that crosses a border. Includes none of the other rooms.

noinst_LIBRARIES += proto/libptproto.a
proto_libptproto_a_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) -Wconversion
proto_libptproto_a_SOURCES = \
	proto/asan.h \
	proto/base.h \
	proto/standard.h \
	proto/bundle/bundle.h proto/bundle/bundle_read.c proto/bundle/bundle_tar.h \
	proto/bundle/bundle_write.c \
	proto/bytes.c proto/bytes.h \
	proto/callstream.c proto/callstream.h \
	proto/channel.c proto/channel.h \
	proto/decode_options.c proto/decode_options.h \
	proto/execstream.c proto/execstream.h \
	proto/fields.c proto/fields.h \
	proto/json.c proto/json.h \
	proto/bundle/kept.c proto/bundle/kept.h \
	proto/bundle/label.c proto/bundle/label.h \
	proto/bundle/manifest.c proto/bundle/manifest.h proto/bundle/manifest_fields.c \
	proto/bundle/manifest_json.c proto/bundle/manifest_private.h \
	proto/memfd.c proto/memfd.h \
	proto/perf/perfdata.c proto/perf/perfdata.h proto/perf/perfdata_record.c \
	proto/perf/perfrecord.c proto/perf/perfrecord.h \
	proto/perf/ptpacket.h \
	proto/report.h \
	proto/varlink.c proto/varlink.h proto/varlink_message.c \
	proto/worker.h
nodist_proto_libptproto_a_SOURCES = proto/recorder_idl.c

# The interface description as a C string: one literal a line.
EXTRA_DIST += proto/io.ptsnap.recorder.varlink
BUILT_SOURCES += proto/recorder_idl.c
CLEANFILES += proto/recorder_idl.c
proto/recorder_idl.c: $(srcdir)/proto/io.ptsnap.recorder.varlink
	$(AM_V_GEN)$(MKDIR_P) proto && { \
		echo '#include "proto/varlink.h"'; \
		echo 'const char recorder_idl[] ='; \
		sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$$/\\n"/' \
			$(srcdir)/proto/io.ptsnap.recorder.varlink; \
		echo '	;'; \
	} >$@.tmp && mv $@.tmp $@
