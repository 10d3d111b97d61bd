/*
 * The probe of a build without libbpf: no probe can be armed.
 */

#include "capture/probe/probe_private.h"

bool probe_built(void)
{
	return false;
}

int probe_arm(const struct probe_spec *spec, probe_fn fn, void *userdata, struct probe **ret,
	      char **ret_error)
{
	int r = probe_check(spec, ret_error);

	(void)fn, (void)userdata, (void)ret;
	if (r < 0)
		return r;
	return probe_fail(ret_error, -EOPNOTSUPP,
			  "This build of ptsnap has no BPF: libbpf, bpftool or clang was missing.");
}

/* No probe exists that these functions could be given. */

int probe_fd(const struct probe *p)
{
	(void)p;
	return -EBADF;
}

int probe_dispatch(struct probe *p)
{
	(void)p;
	return -EBADF;
}

void probe_set_on(struct probe *p, bool on)
{
	(void)p, (void)on;
}

uint64_t probe_missed(const struct probe *p)
{
	(void)p;
	return 0;
}

bool probe_file_replaced(const struct probe *p)
{
	(void)p;
	return false;
}

void probe_free(struct probe *p)
{
	(void)p;
}
