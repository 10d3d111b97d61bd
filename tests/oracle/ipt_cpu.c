/*
 * libipt's instruction decoder, stopped and continued. Used by bundle_ipt.
 */
#include "tests/oracle/ipt_cpu.h"

#include <stdlib.h>

#include <intel-pt.h>

#define FNV_PRIME 0x100000001b3ull

struct ipt_cpu {
	struct pt_insn_decoder *decoder;
	struct pt_image *image;
	ipt_read_fn *read;
	void *userdata;
	int status; /* of the last call; negative: to be synchronised again */
	bool ended;
	bool entered; /* tracing was enabled since the last instruction */
	uint64_t errors, error_offset;
	int error;
};

static int read_memory(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		       void *context)
{
	struct ipt_cpu *c = context;
	size_t n = c->read(c->userdata, ip, buffer, size);

	(void)asid;
	return n > 0 ? (int)n : -pte_nomap;
}

struct ipt_cpu *ipt_cpu_new(const struct manifest *m, const uint8_t *trace, size_t size,
			    ipt_read_fn *read, void *userdata)
{
	struct ipt_cpu *c = calloc(1, sizeof(*c));
	struct pt_config config;

	if (c == NULL)
		return NULL;
	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)trace;
	config.end = (uint8_t *)(uintptr_t)trace + size;
	if (m->mtc_period != UINT32_MAX)
		config.mtc_freq = (uint8_t)m->mtc_period;
	config.nom_freq = (uint8_t)m->max_nonturbo_ratio;
	config.cpuid_0x15_eax = m->tsc_art_den;
	config.cpuid_0x15_ebx = m->tsc_art_num;
	c->read = read;
	c->userdata = userdata;
	c->status = -pte_nosync;
	c->decoder = pt_insn_alloc_decoder(&config);
	c->image = pt_image_alloc("bundle");
	if (c->decoder == NULL || c->image == NULL ||
	    pt_image_set_callback(c->image, read_memory, c) < 0 ||
	    pt_insn_set_image(c->decoder, c->image) < 0) {
		ipt_cpu_free(c);
		return NULL;
	}
	return c;
}

void ipt_cpu_free(struct ipt_cpu *c)
{
	if (c == NULL)
		return;
	pt_insn_free_decoder(c->decoder);
	pt_image_free(c->image);
	free(c);
}

static void failed(struct ipt_cpu *c)
{
	if (c->status == -pte_eos)
		return;
	c->errors++;
	c->error = c->status;
	pt_insn_get_offset(c->decoder, &c->error_offset);
}

/* Takes all events before the next instruction. False: there is no next one yet. */
static bool ready(struct ipt_cpu *c)
{
	struct pt_event event;

	if (c->status < 0) {
		c->status = pt_insn_sync_forward(c->decoder);
		c->ended = c->status < 0;
		c->entered = true;
	}
	while (c->status >= 0 && (c->status & pts_event_pending)) {
		c->status = pt_insn_event(c->decoder, &event, sizeof(event));
		if (c->status >= 0 && event.type == ptev_enabled)
			c->entered = true;
	}
	if (c->status < 0 && !c->ended)
		failed(c);
	return c->status >= 0;
}

static uint64_t hash_ip(uint64_t hash, uint64_t ip)
{
	for (unsigned int shift = 0; shift < 64; shift += 8)
		hash = (hash ^ (ip >> shift & 0xff)) * FNV_PRIME;
	return hash;
}

void ipt_cpu_step(struct ipt_cpu *c, uint64_t n, struct ipt_step *ret, uint64_t *thread_hash)
{
	*ret = (struct ipt_step){.hash = IPT_HASH_BASIS};
	while (n > 0 && !c->ended) {
		struct pt_insn insn = {.iclass = ptic_error};

		if (!ready(c))
			continue;
		c->status = pt_insn_next(c->decoder, &insn, sizeof(insn));
		if (insn.iclass != ptic_error) {
			ret->entered |= ret->instructions == 0 && c->entered;
			ret->hash = hash_ip(ret->hash, insn.ip);
			*thread_hash = hash_ip(*thread_hash, insn.ip);
			ret->instructions++;
			c->entered = false;
			n--;
		}
		if (c->status < 0)
			failed(c);
	}
}

uint64_t ipt_cpu_errors(const struct ipt_cpu *c, const char **ret_why, uint64_t *ret_offset)
{
	*ret_why = pt_errstr(pt_errcode(c->error));
	*ret_offset = c->error_offset;
	return c->errors;
}
