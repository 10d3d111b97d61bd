/*
 * Users and groups by name. The host's lists may be on another host that does not answer. A thread
 * that can be left behind (aside.h) therefore asks them, and what was known before holds until it
 * has an answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum names_kind { NAMES_USER = 0, NAMES_GROUP };

/* Names that a configuration may have. Further names are never found. */
#define NAMES_MAX 8192u

struct config;
struct names;

/* Asks the lists, and may never return. 0; -ENOENT: there is certainly no such name; -errno: the
 * lists could not be asked. */
typedef int names_ask_fn(enum names_kind kind, const char *name, uint32_t *ret_id);
names_ask_fn names_ask_host;

/* ASK is names_ask_host(), or a test's. 0 or -errno. */
int names_new(names_ask_fn *ask, struct names **ret);
/* Does not wait for the thread. */
void names_free(struct names *n);
/* A descriptor that is readable when names_take() should be called. Borrowed. */
int names_fd(const struct names *n);

/* Asks for NAME, again if it was asked for before. WHAT (static) is the setting that has NAME.
 * Numbers need no asking. */
void names_want(struct names *n, enum names_kind kind, const char *name, const char *what);
/* Asks for the names in all settings of C, and wants no others from now on. */
void names_use(struct names *n, const struct config *c);
/* Takes over answers. Returns whether a name was found, or has another number than before. */
bool names_take(struct names *n);
/* The same, and waits at most NS until all names have been answered. A thread that hangs for all
 * that time is left behind. */
bool names_await(struct names *n, uint64_t ns);
/* Call it each minute: asks again for names that could not be looked up. */
void names_tidy(struct names *n);

/* 0; -ENOENT: there is no such name; -EAGAIN: not known yet. A NAME of digits is its number. N may
 * be NULL: then only numbers are known. */
int names_find(const struct names *n, enum names_kind kind, const char *name, uint32_t *ret_id);
/* Calls LINE with a line for each name whose state has changed since the last call; WARN: the state
 * is bad. */
void names_news(struct names *n, void (*line)(bool warn, const char *text));
/* Calls LINE with a line for each user who is not found. A missing group is usual and not told. */
void names_tell(const struct names *n, void (*line)(void *userdata, const char *text),
		void *userdata);
