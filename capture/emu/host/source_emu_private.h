/*
 * Shared by source_emu.c (operations), source_emu_open.c (a machine of our own) and
 * source_emu_attach.c (a machine of another process).
 */
#pragma once

#include "capture/emu/host/emu_keeper.h"
#include "capture/emu/host/emu_qemu.h"
#include "capture/emu/machine/emuring.h"
#include "capture/ring/source.h"

/* Frequency of the core crystal clock in the CPUID of the software PMU. */
#define SOURCE_EMU_ART_HZ 24000000ull

struct emu_cpu {
	struct emuring_cpu *cpu;
	struct perf_event_mmap_page *page;
	uint32_t generation; /* of the last request (emuring_cpu.want) */
};

struct source_emu {
	struct source source;
	struct emuring_head *head;
	struct emuring ring;
	struct emu_keeper *keeper; /* NULL: the keeper is in another process */
	uint64_t size, aux_size, tsc_hz;
	int ring_fd;
	struct emu_cpu *cpus;
	uint8_t *scratch;
	char *terms, *qemu;
	struct emu_command command;
	pid_t pid;
	int pidfd;
	bool reaped, virtual_clock;
	int channel;		/* to the process with the keeper; -EBADF: this process */
	struct emuoffer *offer; /* from the channel; NULL: the machine is our own */
	char *name_argv[2];	/* offer->name, NULL */
};

/* A source with its operations and without descriptors. NULL: no memory. Free it with
 * source->ops->free() or source_emu_freep(). */
struct source_emu *source_emu_new(void);
void source_emu_freep(struct source_emu **e);
struct pmu;
/* Describes the software PMU with the clock ratios of E. */
void source_emu_pmu(const struct source_emu *e, struct pmu *ret);
/* Fills in the terms and the other members of e->source that follow from its configuration and
 * clock ratios. 0 or -ENOMEM. */
int source_emu_describe_trace(struct source_emu *e);
/* Allocates N CPUs, without rings. 0 or -ENOMEM. */
int source_emu_new_cpus(struct source_emu *e, uint32_t n);
/* CPU INDEX uses the rings that its perf_event_mmap_page describes. 0 or -EINVAL. */
int source_emu_use_rings(struct source_emu *e, uint32_t index);
