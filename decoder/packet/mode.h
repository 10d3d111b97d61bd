/*
 * The processor's execution modes. MODE.Exec packets name them (SDM volume 3, edition
 * 083, 33.4.2.8), and the length and meaning of an instruction depend on them.
 */
#pragma once

enum insn_mode { INSN_MODE_64, INSN_MODE_32, INSN_MODE_16 };
