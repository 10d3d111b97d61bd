# libipt, and traces recorded by others on real hardware (PTSNAP_CORPUS).
ORACLE_TESTS += tests/oracle/corpus.tap
EXTRA_DIST += tests/oracle/corpus.py

if HAVE_LIBIPT
if HAVE_CMOCKA
check_PROGRAMS += tests/oracle/flow_check
endif
noinst_PROGRAMS += tests/oracle/bundle_ipt tests/oracle/libipt_insns
endif
tests_oracle_flow_check_SOURCES = tests/oracle/flow_check.c
tests_oracle_flow_check_LDADD = decoder/libptdecoder.a $(ZYDIS_LIBS) $(LIBIPT_LIBS)
tests_oracle_bundle_ipt_SOURCES = tests/oracle/bundle_ipt.c tests/oracle/ipt_cpu.c \
	tests/oracle/ipt_cpu.h
tests_oracle_bundle_ipt_LDADD = $(WORKER_LIBS) $(LIBIPT_LIBS)
tests_oracle_libipt_insns_SOURCES = tests/oracle/libipt_insns.c
tests_oracle_libipt_insns_LDADD = $(LIBIPT_LIBS)
