/*
 * What source_emu.c (the source's operations), source_emu_open.c (a machine of our own) and
 * source_emu_attach.c (a machine that another process keeps) share.
 */
#pragma once

#include "capture/emu/host/emu_command.h"
#include "capture/emu/host/emu_keeper.h"
#include "capture/emu/machine/emuoffer.h"
#include "capture/emu/machine/emuring.h"
#include "capture/ring/source.h"

/* The crystal that the software PMU pretends to have. */
#define SOURCE_EMU_ART_HZ 24000000ull

struct emu_cpu {
	struct emuring_cpu *cpu;
	struct perf_event_mmap_page *page;
	uint32_t generation; /* of the last wish */
};

struct source_emu {
	struct source source;
	struct emuring_head *head;
	struct emuring ring;
	struct emu_keeper *keeper; /* NULL: in another process */
	uint64_t size, aux_size, tsc_hz;
	int ring_fd;
	struct emu_cpu *cpus;
	uint8_t *scratch;
	char *terms, *qemu;
	struct emu_command command;
	pid_t pid;
	int pidfd;
	bool reaped, virtual_clock;
	int channel;		/* to the keeper's process; -EBADF: it is this one */
	struct emuoffer *offer; /* as it came by the channel; NULL */
	char *name_argv[2];	/* offer->name */
};

/* All zero but for descriptors and operations. NULL: no memory. */
struct source_emu *source_emu_new(void);
void source_emu_freep(struct source_emu **e);
/* From e->source's clock ratios, config and preset: terms and all else that says what is traced.
 * 0 or -ENOMEM. */
struct pmu;
void source_emu_pmu(const struct source_emu *e, struct pmu *ret);
int source_emu_describe_trace(struct source_emu *e);
/* N CPUs, without their rings. 0 or -ENOMEM. */
int source_emu_new_cpus(struct source_emu *e, uint32_t n);
/* CPU INDEX reads the rings that the page announces. 0 or -EINVAL. */
int source_emu_use_rings(struct source_emu *e, uint32_t index);
