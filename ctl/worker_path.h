/*
 * Where ptsnap-decode is.
 */
#pragma once

/* In this order: OPTION (--worker=), the environment's PTSNAP_DECODE, the installed program, the
 * build tree's. *ret is the caller's; the file need not exist. 0 or -ENOMEM. */
int worker_path_find(const char *option, char **ret);
