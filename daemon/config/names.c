/*
 * A table of names, and a thread that asks the host's lists for them (aside.h). A name that is
 * being asked for is not asked for again before there is an answer, so a list that does not answer
 * costs one or two threads.
 */
#include "daemon/config/names.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/aside.h"
#include "daemon/config/config.h"
#include "daemon/config/trigger_set.h"
#include "proto/base.h"

/* For one entry of a list: a group may have many members. */
#define ENTRY_BUFFER (1u << 20)
#define NAME_SIZE    256u
#define LINE_SIZE    512u
#define SEPARATORS   ", \t"
#define NSEC_PER_SEC 1000000000u

struct name {
	enum names_kind kind;
	const char *what;
	char text[NAME_SIZE];
	uint32_t id;
	int r;	   /* result of names_find() */
	int error; /* why the lists could not be asked the last time; 0: they could */
	int told;  /* the state_of() that names_news() told */
	bool wanted, asked, slow;
};

struct names {
	names_ask_fn *ask;
	struct aside *aside;
	struct name *all; /* NAMES_MAX */
	size_t n;
	size_t refused, told_refused; /* names that found no room */
};

/* A task for the thread. */
struct question {
	struct aside_task task; /* first; its tag is the index of the name */
	names_ask_fn *ask;
	enum names_kind kind;
	char text[NAME_SIZE];
	uint32_t id;
	int r;
};

static void question_run(void *context, struct aside_task *task)
{
	struct question *q = (struct question *)(void *)task;

	(void)context;
	q->r = q->ask(q->kind, q->text, &q->id);
}

static void question_free(struct aside_task *task)
{
	free(task);
}

static const struct aside_ops ops = {
	.run = question_run,
	.task_free = question_free,
};

int names_ask_host(enum names_kind kind, const char *name, uint32_t *ret_id)
{
	CLEANUP_FREE char *buffer = malloc(ENTRY_BUFFER);
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;
	int r;

	if (!buffer)
		return -ENOMEM;
	if (kind == NAMES_USER) {
		r = getpwnam_r(name, &user, buffer, ENTRY_BUFFER, &found_user);
		*ret_id = found_user ? found_user->pw_uid : 0;
	} else {
		r = getgrnam_r(name, &group, buffer, ENTRY_BUFFER, &found_group);
		*ret_id = found_group ? found_group->gr_gid : 0;
	}
	if (found_user || found_group)
		return 0;
	/* getpwnam(3): all of these mean that there is no such name. */
	if (r == 0 || r == ENOENT || r == ESRCH || r == EBADF || r == EPERM)
		return -ENOENT;
	return -r;
}

int names_new(names_ask_fn *ask, struct names **ret)
{
	struct names *n = calloc(1, sizeof(*n));
	int r = -ENOMEM;

	if (n) {
		n->ask = ask;
		n->all = calloc(NAMES_MAX, sizeof(*n->all));
	}
	if (n && n->all)
		r = aside_new(&ops, "", &n->aside);
	if (r < 0) {
		names_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	aside_free(n->aside);
	free(n->all);
	free(n);
}

int names_fd(const struct names *n)
{
	return aside_fd(n->aside);
}

/* Parses a number of a user or group. 0; -ENOENT: not a valid one; -EINVAL: TEXT is a name. */
static int number_of(const char *text, uint32_t *ret)
{
	unsigned long long id;

	if (!*text || text[strspn(text, "0123456789")] != '\0')
		return -EINVAL;
	id = strtoull(text, NULL, 10);
	*ret = (uint32_t)id;
	return strlen(text) <= 10 && id < UINT32_MAX ? 0 : -ENOENT;
}

static struct name *find(const struct names *n, enum names_kind kind, const char *text)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->all[i].kind == kind && strcmp(n->all[i].text, text) == 0)
			return &n->all[i];
	return NULL;
}

int names_find(const struct names *n, enum names_kind kind, const char *text, uint32_t *ret_id)
{
	int r = number_of(text, ret_id);
	const struct name *name;

	if (r != -EINVAL)
		return r;
	name = n ? find(n, kind, text) : NULL;
	/* A name that is too long or beyond the limit is not asked for. */
	if (!name)
		return strlen(text) >= NAME_SIZE || (n && n->n == NAMES_MAX) ? -ENOENT : -EAGAIN;
	*ret_id = name->id;
	return name->r;
}

/* Has the thread ask for NAME, unless that is under way. */
static void ask(struct names *n, struct name *name)
{
	struct question *q;

	if (name->asked)
		return;
	q = calloc(1, sizeof(*q));
	if (!q)
		return;
	q->task.tag = (uint64_t)(name - n->all);
	q->ask = n->ask;
	q->kind = name->kind;
	memcpy(q->text, name->text, sizeof(q->text));
	name->asked = aside_ask(n->aside, &q->task) == 0;
	if (!name->asked)
		free(q);
}

/* A new entry, or one that is no longer wanted and not being asked for; NULL: no room. */
static struct name *spare(struct names *n)
{
	if (n->n < NAMES_MAX)
		return &n->all[n->n++];
	for (size_t i = 0; i < n->n; i++)
		if (!n->all[i].wanted && !n->all[i].asked)
			return &n->all[i];
	return NULL;
}

void names_want(struct names *n, enum names_kind kind, const char *text, const char *what)
{
	struct name *name = find(n, kind, text);
	uint32_t id;

	if (!*text || strlen(text) >= NAME_SIZE || number_of(text, &id) == 0)
		return;
	if (!name) {
		name = spare(n);
		n->refused += !name;
		if (!name)
			return;
		*name = (struct name){.kind = kind, .r = -EAGAIN};
		strcpy(name->text, text);
	}
	name->what = what;
	name->wanted = true;
	if (number_of(text, &id) == -ENOENT)
		name->r = -ENOENT;
	else
		ask(n, name);
}

/* The line that tells the state R of NAME. */
static void describe(const struct name *name, int r, char ret[LINE_SIZE])
{
	const char *kind = name->kind == NAMES_USER ? "user" : "group";

	if (r == 0)
		snprintf(ret, LINE_SIZE, "%s=%s: the host has that %s now: %u", name->what,
			 name->text, kind, name->id);
	else if (r == -ENOENT)
		snprintf(ret, LINE_SIZE, "%s=%s: this host has no such %s%s", name->what,
			 name->text, kind,
			 name->kind == NAMES_GROUP
				 ? ", so only root is an administrator of the recorder"
				 : "");
	else if (r == -EAGAIN)
		snprintf(ret, LINE_SIZE,
			 "%s=%s: the host's list of %ss does not answer; until it does, what was "
			 "known before holds",
			 name->what, name->text, kind);
	else
		snprintf(ret, LINE_SIZE,
			 "%s=%s: the host's list of %ss cannot be read: %s; it is tried again",
			 name->what, name->text, kind, strerror(-r));
}

/* The state of NAME to tell: the result of looking it up, or -EAGAIN if that takes long. */
static int state_of(const struct name *name)
{
	return name->slow ? -EAGAIN : name->error < 0 ? name->error : name->r;
}

bool names_take(struct names *n)
{
	struct aside_task *task;
	bool changed = false;

	aside_clear(n->aside);
	while ((task = aside_take(n->aside))) {
		const struct question *q = (const struct question *)(const void *)task;
		struct name *name = &n->all[task->tag];
		bool known = q->r == 0 || q->r == -ENOENT;

		name->asked = name->slow = false;
		/* If the lists could not be asked, what was known stays. */
		name->error = known ? 0 : q->r;
		if (known) {
			changed |= q->r != name->r || q->id != name->id;
			name->r = q->r;
			name->id = q->id;
		}
		free(task);
	}
	return changed;
}

void names_news(struct names *n, void (*line)(bool warn, const char *text))
{
	char text[LINE_SIZE];

	if (n->refused != n->told_refused) {
		snprintf(text, sizeof(text),
			 "more than %u users and groups are configured: %zu are ignored", NAMES_MAX,
			 n->refused);
		line(true, text);
		n->told_refused = n->refused;
	}
	for (size_t i = 0; i < n->n; i++) {
		struct name *name = &n->all[i];
		int r = state_of(name);

		if (!name->wanted || r == name->told)
			continue;
		describe(name, r, text);
		line(r != 0 && name->kind == NAMES_USER, text);
		name->told = r;
	}
}

bool names_await(struct names *n, uint64_t ns)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + ns, now;
	bool changed = names_take(n);

	while (aside_pending(n->aside) > 0 && (now = now_ns(CLOCK_MONOTONIC)) < until) {
		if (aside_wait(n->aside, until - now) < 0)
			break;
		changed |= names_take(n);
	}
	if (aside_pending(n->aside) > 0)
		(void)aside_give_up(n->aside, ns / 2);
	for (size_t i = 0; i < n->n; i++)
		n->all[i].slow = n->all[i].asked;
	return changed;
}

void names_tidy(struct names *n)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->all[i].wanted && (n->all[i].error < 0 || n->all[i].r == -EAGAIN))
			ask(n, &n->all[i]);
	if (aside_pending(n->aside) > 0)
		(void)aside_give_up(n->aside, NSEC_PER_SEC);
}

/* Wants all users in a list. */
static void want_words(struct names *n, const char *words, const char *what)
{
	char text[NAME_SIZE];

	for (words += strspn(words, SEPARATORS); *words; words += strspn(words, SEPARATORS)) {
		size_t size = strcspn(words, SEPARATORS);

		snprintf(text, sizeof(text), "%.*s", (int)size, words);
		if (size < sizeof(text))
			names_want(n, NAMES_USER, text, what);
		words += size;
	}
}

void names_use(struct names *n, const struct config *c)
{
	for (size_t i = 0; i < n->n; i++)
		n->all[i].wanted = false;
	if (c->admin_group)
		names_want(n, NAMES_GROUP, c->admin_group, "AdminGroup");
	if (c->exclude_users)
		want_words(n, c->exclude_users, "ExcludeUsers");
	for (size_t i = 0; i < c->triggers->n; i++) {
		const char *users = c->triggers->all[i].values[TRIGGER_SIGNAL_USERS].text;

		want_words(n, users ? users : "", "SignalUsers");
	}
}

void names_tell(const struct names *n, void (*line)(void *userdata, const char *text),
		void *userdata)
{
	char text[LINE_SIZE];

	for (size_t i = 0; i < n->n; i++) {
		if (!n->all[i].wanted || n->all[i].kind != NAMES_USER || state_of(&n->all[i]) == 0)
			continue;
		describe(&n->all[i], state_of(&n->all[i]), text);
		line(userdata, text);
	}
}
