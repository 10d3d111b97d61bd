/*
 * A pager for text on a terminal: which one, and how it is started.
 *
 * As in systemd: $PTSNAP_PAGER, else $PAGER, else less; "" and "cat" mean none. less gets the
 * options of $PTSNAP_LESS, else FRSXMK: it ends at once where the text fits the screen.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The pager's command line, for sh -c; NULL: no pager is wanted. OWN and PAGER are the values of
 * $PTSNAP_PAGER and $PAGER (NULL: unset). */
const char *pager_choose(const char *own, const char *pager);
/* Shows the SIZE bytes of TEXT with the pager, and waits for the pager's end. False: there is no
 * pager, or it could not be started, and nothing was shown. */
bool pager_show(const char *text, size_t size);

/* A pager for text that is not known yet. */
struct pager {
	pid_t pid;  /* 0: there is none */
	int before; /* stdout as it was */
	struct sigaction interrupt, pipe;
};

/* Starts the pager; what is written to stdout goes to it from here on. Nothing, if no pager is
 * wanted, or if it cannot be started. */
void pager_begin(struct pager *p);
/* Waits for the pager's end; stdout is as it was. What the pager did not want is no error. */
void pager_end(struct pager *p);
