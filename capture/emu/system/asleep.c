/*
 * No callbacks until the bell rings.
 */
#include "capture/emu/system/asleep.h"

#include <stdatomic.h>
#include <string.h>

#include "capture/emu/system/bell.h"

/* QEMU's callbacks have no argument for it. */
static struct {
	qemu_plugin_id_t id;
	void (*on_bell)(unsigned int vcpu, void *userdata);
	atomic_flag ended;
} sleeper = {.ended = ATOMIC_FLAG_INIT};

bool asleep_is_bell(const struct qemu_plugin_insn *insn)
{
	static const uint8_t nop[BELL_SIZE] = {0x0f, 0x1f, 0x84, 0x00, 0x62, 0x65, 0x6c, 0x6c};

	return qemu_plugin_insn_size(insn) == BELL_SIZE &&
	       memcmp(qemu_plugin_insn_data(insn), nop, BELL_SIZE) == 0;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	if (qemu_plugin_tb_n_insns(tb) > 0 && asleep_is_bell(qemu_plugin_tb_get_insn(tb, 0)))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, sleeper.on_bell, QEMU_PLUGIN_CB_NO_REGS,
						     NULL);
}

void asleep_begin(qemu_plugin_id_t id, void (*on_bell)(unsigned int vcpu, void *userdata))
{
	sleeper.id = id;
	sleeper.on_bell = on_bell;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
}

void asleep_end(void (*wake_up)(qemu_plugin_id_t id))
{
	if (!atomic_flag_test_and_set(&sleeper.ended))
		qemu_plugin_reset(sleeper.id, wake_up);
}
