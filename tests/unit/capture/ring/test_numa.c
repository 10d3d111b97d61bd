/*
 * NUMA nodes from a sysfs tree, and memory from one node.
 */
#include "capture/ring/freeze.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/capture/tree.h"

#define SIZE (1u << 20)

static void add_node(const char *root, const char *node)
{
	char path[128];

	snprintf(path, sizeof(path), "devices/system/node/%s/cpulist", node);
	tree_write(root, path, "\n");
}

static void add_cpu(const char *root, unsigned cpu, const char *node)
{
	char path[128], target[128];

	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/topology/core_id", cpu);
	tree_write(root, path, "0\n");
	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/%s", cpu, node);
	snprintf(target, sizeof(target), "../../node/%s", node);
	tree_symlink(root, path, target);
}

static void source_node_of_cpu_two_nodes_are_told_apart(void **state)
{
	char *root = tree_new();

	(void)state;
	add_node(root, "node0");
	add_node(root, "node12");
	add_cpu(root, 0, "node0");
	add_cpu(root, 5, "node12");
	add_cpu(root, 6, "nodes");
	add_cpu(root, 7, "node1024");
	add_cpu(root, 8, "node99999999999");
	assert_int_equal(source_node_of_cpu(root, 0), 0);
	assert_int_equal(source_node_of_cpu(root, 5), 12);
	/* Links with names that are not a node's, and a CPU that does not exist. */
	assert_int_equal(source_node_of_cpu(root, 6), -1);
	assert_int_equal(source_node_of_cpu(root, 7), -1);
	assert_int_equal(source_node_of_cpu(root, 8), -1);
	assert_int_equal(source_node_of_cpu(root, 9), -1);
	tree_free(root);
}

static void source_node_of_cpu_one_node_is_none(void **state)
{
	char *root = tree_new();

	(void)state;
	add_node(root, "node0");
	add_cpu(root, 0, "node0");
	assert_int_equal(source_node_of_cpu(root, 0), -1);
	assert_int_equal(source_node_of_cpu("/nowhere", 0), -1);
	tree_free(root);
}

static void area_prefer_node_memory_is_there_in_any_case(void **state)
{
	uint8_t *memory =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(area_prefer_node(memory, SIZE, -1), 0);
	assert_int_equal(area_prefer_node(memory, 0, 0), 0);
	assert_int_equal(area_prefer_node(memory, SIZE, 1024), -EINVAL);
	/* The kernel may lack NUMA, or may not permit the call. */
	r = area_prefer_node(memory, SIZE, 0);
	assert_true(r == 0 || r == -ENOSYS || r == -EPERM);
	memset(memory, 1, SIZE);
	munmap(memory, SIZE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_node_of_cpu_two_nodes_are_told_apart),
		cmocka_unit_test(source_node_of_cpu_one_node_is_none),
		cmocka_unit_test(area_prefer_node_memory_is_there_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
