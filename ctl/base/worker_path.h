/*
 * Where ptsnap-decode and our other programs are.
 */
#pragma once

/* In this order: OPTION (--worker=), the environment's PTSNAP_DECODE, the installed program, the
 * build tree's. *ret is the caller's; the file need not exist. 0 or -ENOMEM. */
int worker_path_find(const char *option, char **ret);
/* The same for another program: OPTION, INSTALLED, BUILD_TREE from the folder that we lie in. */
int program_path_find(const char *option, const char *installed, const char *build_tree,
		      char **ret);
