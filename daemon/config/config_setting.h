/*
 * The one table of what can be set, and how a text becomes a value: the command line, ptsnapd.conf,
 * --help and --test-config all read it, so nothing is said twice. Private to config*.c.
 */
#pragma once

#include "daemon/config/config.h"

struct config_setting;

struct config_type {
	/* TEXT into the setting's field of C; "" only as a default: the field's zero. Texts are
	 * borrowed. 0 or -EINVAL, and then C is as it was. */
	int (*take)(const struct config_setting *s, const char *text, struct config *c);
	/* What JSON says besides the text: a number, a boolean, or nothing. */
	enum { CONFIG_JSON_TEXT, CONFIG_JSON_U32, CONFIG_JSON_U64, CONFIG_JSON_BOOL } json;
	bool list;    /* said again it adds to what is there, behind a comma */
	bool is_flag; /* the option alone says yes */
};

struct config_setting {
	const char *section, *key; /* in ptsnapd.conf; key NULL: on the command line only */
	const char *option;
	const char *argument;  /* in --help; NULL: none */
	const char *initial;   /* the default; "": see initially */
	const char *initially; /* the default in words, where initial is "" */
	const char *valid;     /* for messages */
	const char *help;
	const struct config_type *type;
	size_t offset;		  /* of the field in struct config */
	const char *const *words; /* NULL-terminated */
	uint64_t min, max;	  /* of numbers; min: of the first word, too */
	bool zero;		  /* 0 is valid besides */
	bool emulated;		  /* of the emulated machine */
	bool live;		  /* a reload changes it while the recorder runs */
	bool grows;		  /* so, but only what is added to the list */
};

extern const struct config_setting config_settings[];
extern const size_t config_n_settings;

extern const struct config_type config_type_word, config_type_either, config_type_preset,
	config_type_ring, config_type_size, config_type_number, config_type_budget,
	config_type_time, config_type_flag, config_type_text, config_type_texts, config_type_cpus,
	config_type_terms, config_type_offline;

enum config_origin { CONFIG_BY_DEFAULT = 0, CONFIG_BY_FILE, CONFIG_BY_COMMAND_LINE };

/* A setting as it was said last. */
struct config_value {
	char *text; /* owned */
	enum config_origin origin;
	char *file; /* owned; NULL unless BY_FILE */
	unsigned line;
};

/* Setting INDEX of C is TEXT (not empty), as ORIGIN said. A list that ORIGIN has said before grows.
 * What a weaker ORIGIN says than one before is checked and forgotten. 0, -EINVAL (and then nothing
 * has changed) or -ENOMEM. FILE is copied. */
int config_set(struct config *c, size_t index, const char *text, enum config_origin origin,
	       const char *file, unsigned line);
/* Setting INDEX as if nothing had been said. 0 or -ENOMEM. */
int config_reset(struct config *c, size_t index);

/* "8M" -> bytes, "120s" -> microseconds (us, ms, s, min, h; several of them add up; a bare number:
 * seconds). Numbers are decimal, suffixes of sizes K, M, G, binary. 0 or -EINVAL (not a number,
 * overflow). */
int config_parse_size(const char *text, uint64_t *ret);
int config_parse_time(const char *text, uint64_t *ret_usec);
/* A boolean as systemd knows them. 0 or -EINVAL. */
int config_parse_flag(const char *text, bool *ret);

/* Where the one line for the user goes. */
struct config_why {
	char *text;
	size_t size;
};

/* The words of S with BETWEEN between them; S without words: its valid values in words. */
#define CONFIG_WORDS_SIZE 192
void config_words(const struct config_setting *s, const char *between, char ret[CONFIG_WORDS_SIZE]);

/* What settings mean together: known only when all are there. 0 or -EINVAL with WHY. */
int config_check(const struct config *c, const struct config_why *why);
/* The same for the emulated machine (config_emu.c). 0 or -EINVAL with WHY. */
int config_emu_check(const struct config *c, const struct config_why *why);
/* CPU:FROM:TO,... into C. 0 or -EINVAL. */
int config_emu_offline(const struct config_setting *s, const char *text, struct config *c);

/* The index of the setting with FIELD's offset. */
size_t config_index(size_t offset);
