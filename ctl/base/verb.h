/*
 * The verbs of ptsnapctl, one file each; main.c has their table.
 */
#pragma once

#include "ctl/base/option.h"

/* ARGV[0] is the verb; options are read with option_next. Gives an exit code (exit_code.h). */
typedef int (*verb_fn)(struct settings *s, int argc, char **argv);

int cmd_snapshot(struct settings *s, int argc, char **argv);
int cmd_list(struct settings *s, int argc, char **argv);
int cmd_fetch(struct settings *s, int argc, char **argv);
int cmd_pin(struct settings *s, int argc, char **argv);
int cmd_unpin(struct settings *s, int argc, char **argv);
int cmd_delete(struct settings *s, int argc, char **argv);
int cmd_check(struct settings *s, int argc, char **argv);
int cmd_reload(struct settings *s, int argc, char **argv);
int cmd_monitor(struct settings *s, int argc, char **argv);
int cmd_yield(struct settings *s, int argc, char **argv);
int cmd_status(struct settings *s, int argc, char **argv);
int cmd_decode(struct settings *s, int argc, char **argv);
int cmd_export(struct settings *s, int argc, char **argv);
