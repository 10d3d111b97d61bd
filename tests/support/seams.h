/*
 * What wraps functions of the decoder so that other threads take part in small traces, too: the
 * linker puts these functions before the real ones (local.mk).
 */
#pragma once

#include "decoder/flow/flow.h"
#include "decoder/hot/ahead.h"

int __real_flow_new(const struct flow_config *config, struct flow **ret);
int __wrap_flow_new(const struct flow_config *config, struct flow **ret);
void __real_flow_free(struct flow *f);
void __wrap_flow_free(struct flow *f);
const struct ahead_piece *__real_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit);
const struct ahead_piece *__wrap_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit);
