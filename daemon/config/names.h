/*
 * Numbers of users and groups by name, as the host's lists say. These may be on another host that
 * does not answer, so a thread that can be left behind asks; what was known before holds until it
 * has an answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum names_kind { NAMES_USER = 0, NAMES_GROUP };

/* So many names of a configuration; what is beyond is never known. */
#define NAMES_MAX 8192u

struct config;
struct names;

/* Asks the lists; may take for ever. 0; -ENOENT: they have no such name, for certain; -errno: they
 * could not be asked. */
typedef int names_ask_fn(enum names_kind kind, const char *name, uint32_t *ret_id);
names_ask_fn names_ask_host;

/* ASK is names_ask_host, or a test's. 0 or -errno. */
int names_new(names_ask_fn *ask, struct names **ret);
/* Waits for nobody. */
void names_free(struct names *n);
/* Readable when names_take should be called; borrowed. */
int names_fd(const struct names *n);

/* NAME of setting WHAT (a static text) is wanted, and asked for (again). Numbers need not be. */
void names_want(struct names *n, enum names_kind kind, const char *name, const char *what);
/* Those of all settings of C, and no others. */
void names_use(struct names *n, const struct config *c);
/* Takes answers over. True: something is known that was not, or is another. */
bool names_take(struct names *n);
/* names_take, and waits until all have been answered, at most NS. Those who keep a thread for all
 * that time are left to it. */
bool names_await(struct names *n, uint64_t ns);
/* Each minute: who could not be asked for is asked for again. */
void names_tidy(struct names *n);

/* 0; -ENOENT: there is none; -EAGAIN: not known (yet). A number stands for itself. N may be NULL:
 * only numbers are known. */
int names_find(const struct names *n, enum names_kind kind, const char *name, uint32_t *ret_id);
/* What is the matter with names, as one line each, once until it changes. */
void names_news(struct names *n, void (*line)(bool warn, const char *text));
/* What is the matter with users, as one line each. That there is no such group is usual. */
void names_tell(const struct names *n, void (*line)(void *userdata, const char *text),
		void *userdata);
