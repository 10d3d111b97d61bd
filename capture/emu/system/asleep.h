/*
 * A plugin of a virtual machine sleeps until the guest's module rings the bell (bell.h) for the
 * first time: blocks have no callbacks, and the guest boots faster.
 */
#pragma once

#include <stdbool.h>

#include "capture/emu/plugin/qemu_api.h"

/* Whether INSN is the bell's NOP. */
bool asleep_is_bell(const struct qemu_plugin_insn *insn);
/* Call once, when the plugin is loaded. ON_BELL is called in front of each bell, with NULL. */
void asleep_begin(qemu_plugin_id_t id, void (*on_bell)(unsigned int vcpu, void *userdata));
/* Ends the sleep; later calls do nothing. QEMU calls WAKE_UP when no CPU executes, and translates
 * all code again. WAKE_UP registers the plugin's callbacks. */
void asleep_end(void (*wake_up)(qemu_plugin_id_t id));
