/*
 * How the emulator starts with the software PMU: its command line and its environment. The recorder
 * composes them for COMMAND, and the software PMU composes them for each exec and reads its own
 * command line.
 *
 * QEMU [-seed 1] -plugin file=PLUGIN,ring=PATH,comm=NAME[,truth=PATH] -0 ARGV0 -- PROGRAM ARGS
 *
 * Commas in the option are doubled, for QEMU's parser. NAME is escaped besides
 * (emustart_unescape()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* All paths are absolute. */
struct emustart {
	const char *qemu, *plugin;
	const char *ring;  /* path by which the emulator opens the shared memory */
	const char *truth; /* directory of truth files; NULL: none */
	bool repeatable;   /* gives the guest the same random numbers in each execution */
	const char *comm;
	const char *program;
	char *const *argv; /* at least argv[0] */
};

/* Composes the command line. NULL: no memory. Free the result with emustart_free(). */
char **emustart_argv(const struct emustart *s);

/*
 * Composes the emulator's environment for a program that is to have ENVP (NULL: an empty one). The
 * order is reversed, because QEMU reverses it again. A variable that would act on the emulator
 * itself (on its dynamic linker or its malloc), or that QEMU would drop (two of one name, no "="),
 * gets a prefix of EMUSTART_PREFIX_SIZE bytes: "\001pt", six hexadecimal digits that make the name
 * unique, "=". The plugin removes the prefix before the program's first instruction. NULL: no
 * memory. Free the result with emustart_free().
 */
char **emustart_envp(char *const *envp);
#define EMUSTART_PREFIX_SIZE 10u
/* Whether TEXT, EMUSTART_PREFIX_SIZE bytes without a NUL, is such a prefix. */
bool emustart_is_prefix(const char *text);

/* NULL is allowed. */
void emustart_free(char **strings);

/* Replaces "%41" by "A" and so on. The result is cut to SIZE bytes including the NUL. A "%" without
 * two hexadecimal digits stays. */
void emustart_unescape(const char *text, char *ret, size_t size);

/* The parts of a command line that emustart_argv() composed. */
struct emustart_line {
	char *plugin, *ring, *truth; /* truth: NULL: none */
	char *program;
	bool repeatable;
};
/* Reads SIZE bytes of /proc/PID/cmdline. 0: free *RET with emustart_line_done(); -EINVAL: not such
 * a command line; -ENOMEM. */
int emustart_read(const char *text, size_t size, struct emustart_line *ret);
void emustart_line_done(struct emustart_line *l);

/* Whether the program with file name NAME (no path) and arguments ARGV is an emulator, or a
 * recorder that starts an emulator. Inside the emulator, it would be traced instead of the program
 * that it runs. */
bool emustart_is_nested(const char *name, char *const *argv);
#define EMUSTART_NESTED \
	"the emulated source does not run emulators inside of its own; start it outside of COMMAND"
