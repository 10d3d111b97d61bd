"""set_ratio.py PERF.DATA NUM DEN: writes the ratio of TSC and crystal clock into a perf.data, TSC =
crystal clock * NUM / DEN. perf asks CPUID leaf 15H for the ratio, which QEMU's processors lack, and
writes zeros; sysfs of the guest's PMU has the ratio."""
import mmap
import struct
import sys

AUXTRACE_INFO = 70
# struct perf_record_header_auxtrace, include/perf/event.h in tools/lib/perf; the words' numbers:
# tools/perf/util/intel-pt.h
WORDS = 16
TSC_CTC_N = 12


def main(path, num, den):
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        at, size = struct.unpack_from("<QQ", m, 40)  # section of data in struct perf_file_header
        end = at + size
        while at < end:
            kind, _, length = struct.unpack_from("<IHH", m, at)
            if kind == AUXTRACE_INFO:
                struct.pack_into("<QQ", m, at + WORDS + 8 * TSC_CTC_N, num, den)
                return 0
            at += length
    return "no description of the trace"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
