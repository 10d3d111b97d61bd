/*
 * A virtual machine without Intel PT: whose, and what can be done there.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/check/check_private.h"

#define FIX_ELSEWHERE "run ptsnapd on the host, or on a machine that is not virtual"
#define FIX_HYPERV                                                                        \
	"on the Hyper-V host, the machine off: Set-VMProcessor NAME -Perfmon @(\"ipt\", " \
	"\"pmu\"); Azure does not offer it"
/* KVM: arch/x86/kvm/vmx/vmx.c, pt_mode; Linux 6.12 put what is not 0 behind CONFIG_BROKEN. */
#define FIX_KVM                                                                        \
	FIX_ELSEWHERE "; hosts before Linux 6.12 could load kvm_intel with pt_mode=1 " \
		      "and give the guest -cpu host,+intel-pt"

/* SDM volume 2, CPUID: 0x40000000 and up are the hypervisor's; EBX, ECX, EDX spell its name. */
static const struct {
	const char *signature, *name, *fix;
} hypervisors[] = {
	{"KVMKVMKVM", "KVM", FIX_KVM},
	{"Linux KVM Hv", "KVM", FIX_KVM},
	{"TCGTCGTCGTCG", "QEMU without KVM", FIX_ELSEWHERE},
	{"Microsoft Hv", "Hyper-V", FIX_HYPERV},
	{"VMwareVMware", "VMware", FIX_ELSEWHERE},
	{"XenVMMXenVMM", "Xen", FIX_ELSEWHERE},
	{"VBoxVBoxVBox", "VirtualBox", FIX_ELSEWHERE},
	{"ACRNACRNACRN", "ACRN", FIX_ELSEWHERE},
	{"bhyve bhyve ", "bhyve", FIX_ELSEWHERE},
	{" lrpepyh  vr", "Parallels", FIX_ELSEWHERE},
};

/* Who sells this machine by the hour, by what its firmware calls itself. */
static const struct {
	const char *vendor, *fix;
} clouds[] = {
	{"Amazon EC2", "use a bare metal instance (its type ends in .metal)"},
	{"Google", "use a bare metal machine type (its name ends in -metal)"},
	{"OpenStack Foundation", "use a flavour of bare metal (Ironic)"},
	{"Hetzner", "use a dedicated server"},
	{"DigitalOcean", "use a bare metal machine"},
};

static void hypervisor_signature(const struct check *c, char ret[13])
{
	const struct cpuid_reader *reader = &c->paths->calls.cpuid;
	struct cpuid_leaf leaf = {.leaf = 0x40000000};

	if (reader->read(reader->userdata, check_first_cpu(c), &leaf, 1) < 0)
		leaf = (struct cpuid_leaf){0};
	memcpy(ret, &leaf.ebx, 4);
	memcpy(ret + 4, &leaf.ecx, 4);
	memcpy(ret + 8, &leaf.edx, 4);
	ret[12] = '\0';
}

static const char *cloud_fix(const char *vendor)
{
	for (size_t i = 0; i < ARRAY_SIZE(clouds); i++)
		if (*vendor && strcmp(vendor, clouds[i].vendor) == 0)
			return clouds[i].fix;
	return NULL;
}

void check_virtual(struct check *c)
{
	char signature[13], vendor[64], product[64];
	const char *name = signature, *fix = FIX_ELSEWHERE;

	hypervisor_signature(c, signature);
	check_read(c->paths->sys, "class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	check_read(c->paths->sys, "class/dmi/id/product_name", product, sizeof(product));
	for (size_t i = 0; i < ARRAY_SIZE(hypervisors); i++)
		if (strncmp(signature, hypervisors[i].signature, 12) == 0) {
			name = hypervisors[i].name;
			fix = hypervisors[i].fix;
		}
	if (cloud_fix(vendor))
		fix = cloud_fix(vendor);
	check_say(c, FINDING_FAILURE, "pmu", fix,
		  "no Intel PT: this is a virtual machine (%s%s%s%s%s) that is not given it",
		  *name ? name : "of an unknown hypervisor", *vendor ? "; " : "", vendor,
		  *product ? " " : "", product);
}
