SYSTEM_TESTS += tests/scenario/exact.tap tests/scenario/machine.tap tests/scenario/times.tap
EXTRA_DIST += tests/scenario/common.py tests/scenario/exact.py tests/scenario/machine.py \
	tests/scenario/times.py

# proto/varlink against a stranger's client; ptsnapctl against a recorder that misbehaves.
SYSTEM_TESTS += tests/system/varlink_certification.sh
if HAVE_BATS
SYSTEM_TESTS += tests/system/ctl.bats tests/system/daemon.bats
endif
EXTRA_DIST += tests/system/ctl.bats tests/system/daemon.bats tests/system/hostile_client.py \
	tests/system/fake_decoder.py tests/system/fake_recorder.py
