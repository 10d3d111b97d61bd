ORACLE_TESTS +=

if HAVE_LIBIPT
check_PROGRAMS += tests/oracle/flow_check
endif
tests_oracle_flow_check_SOURCES = tests/oracle/flow_check.c
tests_oracle_flow_check_LDADD = decoder/libptdecoder.a $(ZYDIS_LIBS) $(LIBIPT_LIBS)
