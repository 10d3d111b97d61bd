/*
 * A scratch directory with things to exec, for test_follow and test_emu_command.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Makes it, empty; and removes it with all that is in it. */
void exec_files_make(void);
void exec_files_remove(void);
const char *exec_files_directory(void);
/* Absolute path in it; good until the 64th call from now. */
const char *exec_file(const char *name);

void exec_file_put(const char *name, const void *bytes, size_t size, mode_t mode);
/* Executable text; "@" in it stands for the directory. */
void exec_file_script(const char *name, const char *text);
/* "levelN", whose interpreter is "level(N - 1)", and that of the first the program "prog". */
void exec_file_script_of_levels(unsigned int levels);
/* A first line of "prog" behind SLASHES more slashes, then REST. */
void exec_file_long_script(const char *name, size_t slashes, const char *rest);
void exec_file_copy(const char *name, const char *from);

/* A small ELF program that ends at once with status 0 and what is wrong with it. */
enum exec_flaw {
	ELF_SOUND,
	ELF_I386,	  /* sound, 32 bits */
	ELF_ARM,	  /* e_machine is another's */
	ELF_OBJECT,	  /* ET_REL */
	ELF_ODD_CLASS,	  /* EI_CLASS says 32 bits of an x86-64 program */
	ELF_NO_HEADERS,	  /* e_phnum 0 */
	ELF_ENTRY_SIZE,	  /* e_phentsize */
	ELF_CUT_IN_HEAD,  /* the file ends in the ELF header */
	ELF_CUT_IN_TABLE, /* ... in the program headers */
	ELF_CUT_SEGMENT,  /* ... in a segment */
	ELF_NO_LOAD,	  /* no PT_LOAD */
};
/* INTERPRETER: PT_INTERP; NULL: none. */
void exec_file_elf(const char *name, enum exec_flaw flaw, const char *interpreter);
/* A sound one with a PT_INTERP of SIZE bytes: INTERPRETER, cut or filled up with NULs. */
void exec_file_elf_padded(const char *name, const char *interpreter, size_t size);
