# Programs that tests run; nothing of it is installed.
noinst_PROGRAMS += tests/support/vl_cert_server
tests_support_vl_cert_server_SOURCES = tests/support/vl_cert_server.c
tests_support_vl_cert_server_LDADD = proto/libptproto.a $(JSONC_LIBS)
