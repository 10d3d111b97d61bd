/*
 * The virtual machine's registers, memory and clock.
 */
#include "capture/emu/system/vm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/emu/plugin/qemu.h"
#include "proto/base.h"

#define PAGE 4096u
/* How often the two clocks are compared; the closest comparison counts. */

static struct {
	int (*read_memory)(void *cpu, uint64_t address, void *to, size_t size, bool is_write);
	int64_t (*elapsed_ticks)(void);
	void *current_cpu; /* a variable of each thread, here of the one that looked it up */
} qemu;

static struct {
	int fd;
	uint8_t *base;
	size_t size;
} ram = {.fd = -EBADF};

const char *vm_bind(void)
{
	const struct qemu_symbol symbols[] = {
		{"cpu_memory_rw_debug", &qemu.read_memory},
		{"cpus_get_elapsed_ticks", &qemu.elapsed_ticks},
		{"current_cpu", &qemu.current_cpu},
	};

	return qemu_bind(symbols, ARRAY_SIZE(symbols));
}

int vm_map_ram(const char *path)
{
	struct stat st;
	int fd;

	if (ram.base)
		return 0;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ram.base = MAP_FAILED;
	if (fstat(fd, &st) == 0)
		ram.base =
			mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ram.base == MAP_FAILED) {
		int r = -errno;

		ram.base = NULL;
		close(fd);
		return r;
	}
	ram.size = (size_t)st.st_size;
	ram.fd = fd;
	return 0;
}

void *vm_ram(uint64_t physical, size_t size)
{
	if (physical > ram.size || size > ram.size - physical)
		return NULL;
	return ram.base + physical;
}

/* The number of pages from the first of N on that are neighbours in RAM. */
static size_t run_of(const uint64_t *pages, size_t n)
{
	size_t run = 1;

	while (run < n && pages[run] == pages[run - 1] + PAGE)
		run++;
	return run;
}

static bool map_run(uint8_t *at, uint64_t physical, size_t n)
{
	if (!vm_ram(physical, n * PAGE) || physical % PAGE != 0) {
		errno = EFAULT;
		return false;
	}
	return mmap(at, n * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ram.fd,
		    (off_t)physical) != MAP_FAILED;
}

uint8_t *vm_map_pages(const uint64_t *pages, size_t n)
{
	uint8_t *base = mmap(NULL, n * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < n;) {
		size_t run = run_of(pages + i, n - i);

		if (!map_run(base + i * PAGE, pages[i], run)) {
			int r = errno;

			munmap(base, n * PAGE);
			errno = r;
			return NULL;
		}
		i += run;
	}
	return base;
}

uint64_t vm_stack_pointer(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_RSP);
}

uint64_t vm_rdi(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_RDI);
}

uint64_t vm_cr2(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_CR2);
}

uint64_t vm_flags(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_EFLAGS);
}

uint64_t vm_cr3(unsigned int vcpu)
{
	return qemu_register(qemu_cpu(vcpu), QEMU_CR3);
}

uint16_t vm_cs(unsigned int vcpu)
{
	return (uint16_t)qemu_register(qemu_cpu(vcpu), QEMU_CS);
}

uint16_t vm_cs_here(void)
{
	/* A variable of each thread. */
	void **current = dlsym(RTLD_DEFAULT, "current_cpu");

	return (uint16_t)qemu_register(*current, QEMU_CS);
}

bool vm_read(unsigned int vcpu, uint64_t address, void *to, size_t size)
{
	void *cpu = qemu_cpu(vcpu);

	return cpu && qemu.read_memory(cpu, address, to, size, false) == 0;
}

uint64_t vm_tsc(void)
{
	return (uint64_t)qemu.elapsed_ticks();
}
