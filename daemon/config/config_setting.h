/*
 * One setting, its type and its value. Private to this room and its tests.
 */
#pragma once

#include "daemon/config/config.h"

struct config_setting;

struct config_type {
	/* Parses TEXT into the setting's field of C. TEXT "" is valid only as a default, and makes
	 * the field zero. Text fields borrow TEXT. 0; -EINVAL: C is as it was. */
	int (*take)(const struct config_setting *s, const char *text, struct config *c);
	/* How JSON shows the value besides its text. */
	enum { CONFIG_JSON_TEXT, CONFIG_JSON_U32, CONFIG_JSON_U64, CONFIG_JSON_BOOL } json;
	bool list;    /* a second value is appended to the first, with a comma */
	bool is_flag; /* the option without a value means yes */
};

struct config_setting {
	const char *section, *key; /* in ptsnapd.conf; key NULL: on the command line only */
	const char *option;
	const char *argument;  /* in --help; NULL: none */
	const char *initial;   /* the default; "": see initially */
	const char *initially; /* the default in words, if initial is "" */
	const char *valid;     /* for messages */
	const char *help;
	const struct config_type *type;
	size_t offset;		  /* of the field in struct config */
	const char *const *words; /* valid values, NULL-terminated; NULL: no such list */
	uint64_t min, max;	  /* of numbers; min is also the number of the first word */
	bool zero;		  /* 0 is valid besides */
	bool emulated;		  /* of the emulated machine */
	bool live;		  /* a reload changes it while the recorder runs */
	bool grows;		  /* a reload adds to the list but takes nothing away */
};

extern const struct config_setting config_settings[];
extern const size_t config_n_settings;

extern const struct config_type config_type_word, config_type_either, config_type_preset,
	config_type_ring, config_type_size, config_type_number, config_type_budget,
	config_type_time, config_type_flag, config_type_text, config_type_or_none,
	config_type_texts, config_type_cpus, config_type_terms, config_type_offline;

/* The strongest last. */
enum config_origin { CONFIG_BY_DEFAULT = 0, CONFIG_BY_FILE, CONFIG_BY_COMMAND_LINE };

/* A setting's text, and who said it. */
struct config_value {
	char *text; /* owned */
	enum config_origin origin;
	char *file; /* owned; NULL unless BY_FILE */
	unsigned line;
};

/* Sets setting INDEX of C to TEXT, as ORIGIN says. A list that ORIGIN has set before grows. If a
 * stronger origin has set the setting, TEXT is checked only. 0; -EINVAL: TEXT is not valid (nor is
 * ""), and nothing has changed; -ENOMEM. FILE (may be NULL) is copied. */
int config_set(struct config *c, size_t index, const char *text, enum config_origin origin,
	       const char *file, unsigned line);
/* Sets setting INDEX to its default. 0 or -ENOMEM. */
int config_reset(struct config *c, size_t index);

/* "8M" -> bytes; "120s" -> microseconds. Numbers are decimal. The suffixes of sizes are K, M, G,
 * binary. The suffixes of times are us, ms, s, min (or m), h; several times add up ("1min 30s"),
 * and a number without a suffix is seconds. 0, or -EINVAL also for an overflow. */
int config_parse_size(const char *text, uint64_t *ret);
int config_parse_time(const char *text, uint64_t *ret_usec);
/* Parses a boolean as systemd does. 0 or -EINVAL. */
int config_parse_flag(const char *text, bool *ret);

/* Receives the one line for the user. */
struct config_why {
	char *text;
	size_t size;
};

/* Joins the words of S with BETWEEN; if S has no words, copies its valid values. */
#define CONFIG_WORDS_SIZE 192
void config_words(const struct config_setting *s, const char *between, char ret[CONFIG_WORDS_SIZE]);

/* Checks what can be told only when all settings are known. 0 or -EINVAL with WHY. */
int config_check(const struct config *c, const struct config_why *why);

/* The index of the setting whose field has OFFSET. */
size_t config_index(size_t offset);
