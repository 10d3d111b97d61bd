/*
 * The data that all programs share.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

const volatile struct shared_params params = {0};
__u64 on_since = 1;
__u64 missed = 0;
struct events_map events SEC(".maps");

char LICENSE[] SEC("license") = "GPL";
