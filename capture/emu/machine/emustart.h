/*
 * How the emulator is started with the software PMU: its command line and the environment, composed
 * by the recorder for COMMAND and by the software PMU for what that execs, and read back by the
 * software PMU.
 *
 * QEMU [-seed 1] -plugin file=PLUGIN,ring=PATH,comm=NAME[,truth=PATH] -0 ARGV0 -- PROGRAM ARGS
 *
 * In the option commas are doubled, as QEMU's parser wants it; NAME is escaped besides
 * (emustart_unescape).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* All paths absolute. */
struct emustart {
	const char *qemu, *plugin;
	const char *ring;  /* by which the emulator opens the shared memory */
	const char *truth; /* NULL: none */
	bool repeatable;   /* fix the guest's random numbers, too */
	const char *comm;
	const char *program;
	char *const *argv; /* at least argv[0] */
};

/* The command line; NULL: no memory. */
char **emustart_argv(const struct emustart *s);

/*
 * The environment for the emulator of a program that is to have ENVP (NULL: none). Its order is
 * turned round, as QEMU turns it round again. Variables that would act on the emulator itself (its
 * dynamic linker, its malloc) or that it would drop (two of one name, no "=") travel under a prefix
 * of EMUSTART_PREFIX_SIZE bytes: "\001pt", six hexadecimal digits that make it unique, "=". The
 * plugin takes it off before the program's first instruction. NULL: no memory.
 */
char **emustart_envp(char *const *envp);
#define EMUSTART_PREFIX_SIZE 10u
/* TEXT, EMUSTART_PREFIX_SIZE bytes that need no NUL, is such a prefix. */
bool emustart_is_prefix(const char *text);

void emustart_free(char **strings);

/* "%41" stands for "A". Cut to SIZE; what is not made by emustart_argv is taken as it is. */
void emustart_unescape(const char *text, char *ret, size_t size);

/* A command line of emustart_argv, taken apart. */
struct emustart_line {
	char *plugin, *ring, *truth; /* truth: NULL: none */
	char *program;
	bool repeatable;
};
/* TEXT: SIZE bytes of /proc/PID/cmdline. 0; -EINVAL: it is none; -ENOMEM. */
int emustart_read(const char *text, size_t size, struct emustart_line *ret);
void emustart_line_done(struct emustart_line *l);

/* The program called NAME (a file's name, no path) with the arguments ARGV is an emulator, or a
 * recorder that starts one; in the emulator they would be recorded as one another. */
bool emustart_is_nested(const char *name, char *const *argv);
#define EMUSTART_NESTED \
	"the emulated source does not run emulators inside of its own; start it outside of COMMAND"
