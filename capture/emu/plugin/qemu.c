/*
 * Symbols and registers of the emulator's program.
 */
#include "capture/emu/plugin/qemu.h"

#include <dlfcn.h>
#include <string.h>

#include "proto/base.h"

/* GByteArray of glib. */
struct byte_array {
	uint8_t *data;
	unsigned int len;
};

static __thread struct byte_array *scratch;

static struct {
	void *(*get_cpu)(int index);
	int (*read_register)(void *cpu, struct byte_array *to, int n);
	struct byte_array *(*array_new)(void);
	struct byte_array *(*array_set_size)(struct byte_array *a, unsigned int n);
} qemu;

static const char *bind_all(const struct qemu_symbol *symbols, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *address = dlsym(RTLD_DEFAULT, symbols[i].name);

		if (!address)
			return symbols[i].name;
		*(void **)symbols[i].to = address;
	}
	return NULL;
}

const char *qemu_bind(const struct qemu_symbol *symbols, size_t n)
{
	const struct qemu_symbol own[] = {
		{"qemu_get_cpu", &qemu.get_cpu},
		{"x86_cpu_gdb_read_register", &qemu.read_register},
		{"g_byte_array_new", &qemu.array_new},
		{"g_byte_array_set_size", &qemu.array_set_size},
	};
	const char *missing = bind_all(own, ARRAY_SIZE(own));

	return missing ? missing : bind_all(symbols, n);
}

void *qemu_cpu(unsigned int index)
{
	return qemu.get_cpu((int)index);
}

uint64_t qemu_register(void *cpu, int number)
{
	uint64_t value = 0;
	int size;

	if (!scratch)
		scratch = qemu.array_new();
	qemu.array_set_size(scratch, 0);
	size = cpu ? qemu.read_register(cpu, scratch, number) : 0;
	if (size > 0)
		memcpy(&value, scratch->data, MIN_OF((size_t)size, sizeof(value)));
	return value;
}

const char *qemu_argument(int argc, char **argv, const char *name)
{
	const size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
			return argv[i] + length + 1;
	return NULL;
}
