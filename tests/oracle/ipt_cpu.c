/*
 * Stops and continues libipt's instruction decoder or block decoder.
 */
#include "tests/oracle/ipt_cpu.h"

#include <stdlib.h>

#include <intel-pt.h>

#include "decoder/code/insn.h"

struct ipt_cpu {
	struct pt_insn_decoder *decoder; /* NULL: the block decoder is used */
	struct pt_block_decoder *blocks;
	struct pt_query_decoder *query; /* tells where execution is at a PSB */
	/* The instructions of the last block that were not returned yet. */
	struct insn_reader *insns;
	uint64_t at;
	unsigned int left;
	enum insn_mode mode;
	struct pt_image *image;
	ipt_read_fn *read;
	void *userdata;
	int status;   /* of the last call; negative: must synchronise again */
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

static int open_insns(struct ipt_cpu *c, const struct pt_config *config)
{
	c->decoder = pt_insn_alloc_decoder(config);
	return c->decoder != NULL ? pt_insn_set_image(c->decoder, c->image) : -pte_nomem;
}

static int open_blocks(struct ipt_cpu *c, const struct pt_config *config)
{
	c->blocks = pt_blk_alloc_decoder(config);
	c->insns = insn_reader_new();
	if (c->blocks == NULL || c->insns == NULL)
		return -pte_nomem;
	return pt_blk_set_image(c->blocks, c->image);
}

struct ipt_cpu *ipt_cpu_new(const struct manifest *m, const uint8_t *trace, size_t size,
			    bool blocks, ipt_read_fn *read, void *userdata)
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
	c->image = pt_image_alloc("bundle");
	c->query = pt_qry_alloc_decoder(&config);
	if (c->image == NULL || c->query == NULL ||
	    pt_image_set_callback(c->image, read_memory, c) < 0 ||
	    (blocks ? open_blocks(c, &config) : open_insns(c, &config)) < 0) {
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
	pt_blk_free_decoder(c->blocks);
	pt_qry_free_decoder(c->query);
	insn_reader_free(c->insns);
	pt_image_free(c->image);
	free(c);
}

static void failed(struct ipt_cpu *c)
{
	if (c->status == -pte_eos)
		return;
	c->errors++;
	c->error = c->status;
	if (c->decoder != NULL)
		pt_insn_get_offset(c->decoder, &c->error_offset);
	else
		pt_blk_get_offset(c->blocks, &c->error_offset);
}

/* Takes all events before the next instruction. False: no instruction follows. */
static bool ready(struct ipt_cpu *c)
{
	struct pt_event event;

	if (c->status < 0)
		return false;
	while (c->status >= 0 && (c->status & pts_event_pending)) {
		c->status = c->decoder != NULL ? pt_insn_event(c->decoder, &event, sizeof(event))
					       : pt_blk_event(c->blocks, &event, sizeof(event));
		if (c->status >= 0 && event.type == ptev_enabled)
			c->entered = true;
	}
	if (c->status < 0)
		failed(c);
	return c->status >= 0;
}

bool ipt_cpu_begin(struct ipt_cpu *c, uint64_t *ret_psb)
{
	c->left = 0;
	c->entered = true;
	c->status = c->decoder != NULL ? pt_insn_sync_forward(c->decoder)
				       : pt_blk_sync_forward(c->blocks);
	if (c->status < 0)
		return false;
	if (c->decoder != NULL)
		pt_insn_get_sync_offset(c->decoder, ret_psb);
	else
		pt_blk_get_sync_offset(c->blocks, ret_psb);
	return true;
}

bool ipt_cpu_sync(struct ipt_cpu *c, uint64_t from, uint64_t *ret_psb, uint64_t *ret_ip)
{
	int status = 0;

	do {
		if (!ipt_cpu_begin(c, ret_psb))
			return false;
		if (*ret_psb >= from)
			status = pt_qry_sync_set(c->query, ret_ip, *ret_psb);
	} while (*ret_psb < from || status < 0 || (status & pts_ip_suppressed));
	return true;
}

/* The block decoder follows direct jumps and calls within a block, and so must we. */
static uint64_t behind(struct ipt_cpu *c)
{
	uint8_t bytes[INSN_MAX_SIZE];
	size_t n = c->read(c->userdata, c->at, bytes, sizeof(bytes));
	struct insn insn;

	if (insn_read(c->insns, c->mode, c->at, bytes, n, &insn) != 0)
		return 0;
	if (insn.class == INSN_JUMP || insn.class == INSN_CALL)
		return insn.target;
	return c->at + insn.size;
}

/* False: no instruction at the moment. */
static bool next_in_block(struct ipt_cpu *c, uint64_t *ret_ip)
{
	struct pt_block block = {0};

	if (c->left == 0) {
		if (!ready(c))
			return false;
		c->status = pt_blk_next(c->blocks, &block, sizeof(block));
		c->at = block.ip;
		c->left = block.ninsn;
		c->mode = block.mode == ptem_64bit   ? INSN_MODE_64
			  : block.mode == ptem_32bit ? INSN_MODE_32
						     : INSN_MODE_16;
		if (c->status < 0)
			failed(c);
	}
	if (c->left == 0)
		return false;
	*ret_ip = c->at;
	if (--c->left > 0)
		c->at = behind(c);
	return true;
}

static bool next_insn(struct ipt_cpu *c, uint64_t *ret_ip)
{
	struct pt_insn insn = {.iclass = ptic_error};

	if (!ready(c))
		return false;
	c->status = pt_insn_next(c->decoder, &insn, sizeof(insn));
	if (c->status < 0)
		failed(c);
	*ret_ip = insn.ip;
	return insn.iclass != ptic_error;
}

int ipt_cpu_next(struct ipt_cpu *c, uint64_t *ret_ip, bool *ret_entered)
{
	while (c->left > 0 || c->status >= 0) {
		if (c->decoder != NULL ? next_insn(c, ret_ip) : next_in_block(c, ret_ip)) {
			*ret_entered = c->entered;
			c->entered = false;
			return 1;
		}
	}
	return c->status == -pte_eos ? 0 : -1;
}

uint64_t ipt_cpu_errors(const struct ipt_cpu *c, const char **ret_why, uint64_t *ret_offset)
{
	*ret_why = pt_errstr(pt_errcode(c->error));
	*ret_offset = c->error_offset;
	return c->errors;
}
