/*
 * ptsnapd: from the command line to the exit status.
 *
 * COMMAND must find the signal mask and dispositions as we found them, so signals are blocked only
 * when COMMAND has been started. Until then handlers, which exec resets, remember a signal to end.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/perf/source_perf.h"
#include "daemon/base/log.h"
#include "daemon/check/check.h"
#include "daemon/config/config.h"
#include "daemon/config/names.h"
#include "daemon/control/server.h"
#include "daemon/manager.h"
#include "daemon/store/store.h"
#include "proto/base.h"
#include "proto/standard.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

#define WHY_SIZE 1024
#define PMU_TYPE "/sys/bus/event_source/devices/intel_pt/type"

/* docs/ptsnapd.8; the numbers mean the same as in ptsnapctl, 126 and 127 the same as in shells. */
enum exit_code {
	EXIT_CODE_FAILURE = 1,
	EXIT_CODE_USAGE = 2,
	EXIT_CODE_PERMISSION = 4,
	EXIT_CODE_NOT_TRACING = 6,
	EXIT_CODE_NOT_EXECUTABLE = 126,
	EXIT_CODE_NOT_FOUND = 127,
};

/* The signal that asked us to end before the loop could listen; 0: none. */
static volatile sig_atomic_t early_stop;

static void on_early_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	/* There is nothing to snapshot yet, and the files are being read anyway. */
	if (signal == SIGUSR2 || (signal == SIGHUP && info->si_code != SI_KERNEL))
		return;
	/* SIGHUP of the kernel is sent again as SIGTERM, as SIGHUP of a process means reload. */
	early_stop = signal == SIGHUP ? SIGTERM : signal;
}

static const int our_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};

/* Lets signals arrive by signalfd, and makes writing to a closed pipe an error. */
static void signals_block(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGPIPE);
	for (size_t i = 0; i < ARRAY_SIZE(our_signals); i++)
		sigaddset(&mask, our_signals[i]);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	if (early_stop)
		kill(getpid(), early_stop);
}

/* Logs WHY. Returns CODE. */
static int complain(const char *why, int code)
{
	log_error("%s", why);
	return code;
}

/* The exit status for a failed step: R is -errno, OTHERWISE the status if it is not permission. */
static int start_code(int r, int otherwise)
{
	return r == -EACCES || r == -EPERM ? EXIT_CODE_PERMISSION : otherwise;
}

static struct source_config common_config(const struct config *config)
{
	return (struct source_config){
		.data_size = config->data_size,
		.aux_size = config->aux_size,
		.pt_terms = config->pt_terms,
		.preset = config->preset,
		.trace = config->trace,
		.cpus = config->cpus,
		.ring_budget = config->ring_budget,
		.degrade = !config->require_pt,
	};
}

static int check_traced(const struct config *config, char *why, size_t why_size)
{
	/* Where auto chose the emulated source, Trace=both was meant for the host. Then user code
	 * is traced, and the trace says so. */
	if (config->trace == SOURCE_TRACE_KERNEL ||
	    (config->trace == SOURCE_TRACE_BOTH && config->source == CONFIG_EMULATED)) {
		snprintf(why, why_size,
			 "the emulated source has no kernel to trace: use --trace=user");
		return -EINVAL;
	}
	return 0;
}

static int open_emulated(const struct config *config, struct source **ret, struct command *command,
			 char *why, size_t why_size)
{
	const struct source_emu_config emu = {
		.common = common_config(config),
		.n_cpus = config->emu_cpus,
		.max_tasks = config->emu_max_tasks,
		.quantum = config->emu_quantum,
		.overflow_bytes = config->emu_overflow_bytes,
		.lose_every = config->emu_lose_every,
		.build_id = config->emu_build_id,
		.offline = config->emu_offline,
		.n_offline = config->n_emu_offline,
		.virtual_clock = config->emu_virtual_clock,
		.truth_path = config->emu_truth,
		.plugin_path = config->emu_plugin,
		.qemu_path = config->emu_qemu,
		.argv = config->command,
	};
	int r = check_traced(config, why, why_size);

	if (r < 0)
		return r;
	r = source_emu_open(&emu, ret, why, why_size);
	if (r == 0)
		command_adopt(command, config->command, *ret);
	return r;
}

/*
 * Opens the source that --source=auto|intel_pt|emulated means, and starts COMMAND (if there is one)
 * with MASK as its signal mask. MASK must be the calling thread's mask now, as the emulated source
 * starts COMMAND with the mask that it finds. Sets *ret_command in any case. 0, or -errno with one
 * line in WHY.
 *
 * The hardware traces all that runs, so there COMMAND is an ordinary child. The emulated PMU traces
 * COMMAND alone; with EmulatorSocket= another process (emulate.c) has started COMMAND. auto takes
 * the hardware where there is a PMU, else the emulated PMU if there is a COMMAND, else the
 * hardware's sideband alone.
 */
static int open_source(const struct config *config, const sigset_t *mask, struct source **ret,
		       struct command *ret_command, char *why, size_t why_size)
{
	bool automatic = config->source == CONFIG_AUTO && config->command && !config->require_pt;
	struct source_config common;
	int r;

	*ret_command = (struct command){.pidfd = -EBADF};
	*why = '\0';
	if (config->emu_socket) {
		r = check_traced(config, why, why_size);
		if (r == 0)
			r = source_emu_attach(config->emu_socket, config->ring_budget, ret, why,
					      why_size);
		if (r == 0)
			command_attach(ret_command, *ret);
		return r;
	}
	if (config->source == CONFIG_EMULATED || config->emulate ||
	    (automatic && access(PMU_TYPE, F_OK) < 0))
		return open_emulated(config, ret, ret_command, why, why_size);
	common = common_config(config);
	r = source_perf_open(&common, ret, why, why_size);
	if (r < 0 || !config->command)
		return r;
	r = command_spawn(ret_command, config->command, mask);
	if (r < 0) {
		snprintf(why, why_size, "%s cannot be started: %s", config->command[0],
			 strerror(-r));
		source_free(TAKE_PTR(*ret));
	}
	return r;
}

static int serve(struct manager_parts *parts)
{
	CLEANUP(manager_freep) struct manager *m = NULL;
	int r = manager_new(parts, &m);

	if (r == 0) {
		parts->source = NULL;
		parts->store = NULL;
		r = manager_run(m);
	}
	if (r == -EINTR) {
		log_info("ended before the recording began");
		command_kill(parts->command, SIGKILL);
		return 0;
	}
	if (r < 0) {
		log_error("the recorder cannot go on: %s", strerror(-r));
		command_kill(parts->command, SIGKILL);
		return EXIT_CODE_FAILURE;
	}
	return r;
}

/* Opens the source and records; without a store, emulates for a recorder in another process. */
static int trace(struct manager_parts *parts)
{
	struct sigaction remember = {.sa_sigaction = on_early_signal,
				     .sa_flags = SA_RESTART | SA_SIGINFO};
	struct command command;
	struct rlimit limit;
	char why[WHY_SIZE];
	sigset_t mask;
	int r;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (size_t i = 0; i < ARRAY_SIZE(our_signals); i++)
		sigaction(our_signals[i], &remember, NULL);
	r = open_source(parts->config, &mask, &parts->source, &command, why, sizeof(why));
	signals_block();
	if (r == -EINVAL)
		return complain(why, EXIT_CODE_USAGE);
	if (r < 0)
		return complain(why, start_code(r, EXIT_CODE_NOT_TRACING));
	/* Each mapped file takes a descriptor. COMMAND has been started with the old limit. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	parts->command = &command;
	r = parts->store ? serve(parts) : emulate_run(parts->source, &command, parts->listener->fd);
	source_free(parts->source);
	command_done(&command);
	return r;
}

/* Opens the socket for everybody, after the control socket, and takes what systemd kept. */
static int open_status_and_trace(struct manager_parts *parts)
{
	const struct config *config = parts->config;
	struct listener listener;
	char why[WHY_SIZE];
	int r = listener_open_status(config->socket, parts->listener, config->status_to_all,
				     &listener, why, sizeof(why));

	if (r < 0)
		return complain(why, start_code(r, EXIT_CODE_FAILURE));
	if (config->status_to_all && listener.fd < 0)
		log_warning("AllowStatusToAll=yes: systemd gave no socket for it; enable "
			    "ptsnapd-status.socket");
	parts->status_listener = &listener;
	r = fdstore_take(&parts->kept, &parts->n_kept);
	r = r < 0 ? complain(strerror(-r), EXIT_CODE_FAILURE) : trace(parts);
	fdstore_free(parts->kept, parts->n_kept);
	listener_done(&listener);
	return r;
}

static int open_and_trace(const struct config *config)
{
	const struct store_limits limits = {config->store_max_use, config->store_max_entries,
					    config->store_in_memory};
	struct manager_parts parts = {.config = config};
	struct listener listener;
	char why[WHY_SIZE] = "no memory";
	int r = store_new(config->state_dir, &limits, &parts.store, why, sizeof(why));

	if (r < 0)
		return complain(why, start_code(r, EXIT_CODE_FAILURE));
	r = listener_open(config->socket, &listener, why, sizeof(why));
	if (r < 0) {
		store_free(parts.store);
		return complain(why, start_code(r, EXIT_CODE_FAILURE));
	}
	parts.listener = &listener;
	r = open_status_and_trace(&parts);
	listener_done(&listener);
	store_free(parts.store);
	return r;
}

static int open_and_emulate(const struct config *config)
{
	struct manager_parts parts = {.config = config};
	struct listener listener;
	char why[WHY_SIZE];
	int r = listener_open_channel(config->emulate, &listener, why, sizeof(why));

	if (r < 0)
		return complain(why, start_code(r, EXIT_CODE_FAILURE));
	parts.listener = &listener;
	r = trace(&parts);
	listener_done(&listener);
	return r;
}

/* Checks the files and directories that options name, and goes on. */
static int check_and_trace(const struct config *config)
{
	char why[WHY_SIZE];
	int r = config->emulate ? 0 : check_worker(config->worker, why, sizeof(why));

	if (r == 0 && config->emu_truth)
		r = check_empty_dir("--emu-truth", config->emu_truth, why, sizeof(why));
	if (r < 0)
		return complain(why, start_code(r, EXIT_CODE_FAILURE));
	if (config->command) {
		r = command_find(config->command[0], why, sizeof(why));
		if (r < 0)
			return complain(why, r == -ENOENT ? EXIT_CODE_NOT_FOUND
							  : EXIT_CODE_NOT_EXECUTABLE);
	}
	return config->emulate ? open_and_emulate(config) : open_and_trace(config);
}

/* How long --test-config waits for names. The host's own lists of users and groups answer at once.
 */
#define NAMES_NS 5000000000u

static void on_name_line(void *userdata, const char *text)
{
	unsigned *n_lost = userdata;

	log_warning("%s", text);
	(*n_lost)++;
}

/* --test-config. Here wrong values in files, and users that the host does not have, are failures.
 */
static int show(const struct config *config, unsigned n_lost)
{
	int r = config_show(config, STDOUT_FILENO);
	struct names *names;

	if (names_new(names_ask_host, &names) == 0) {
		names_use(names, config);
		(void)names_await(names, NAMES_NS);
		names_tell(names, on_name_line, &n_lost);
		names_free(names);
	}
	if (r < 0)
		return complain(strerror(-r), EXIT_CODE_FAILURE);
	return n_lost > 0 ? EXIT_CODE_FAILURE : 0;
}

static void on_config_line(void *userdata, const char *text)
{
	(void)userdata;
	log_warning("%s", text);
}

static int configure_and_run(struct config *config)
{
	struct config_warn warn = {.line = on_config_line};
	char why[WHY_SIZE];
	int r = config_read_files(config, config_directories, &warn, why, sizeof(why));

	if (r < 0)
		return complain(why, r == -EINVAL ? EXIT_CODE_USAGE : EXIT_CODE_FAILURE);
	switch (config->action) {
	case CONFIG_TEST: return show(config, warn.n_lost);
	case CONFIG_CHECK: return check_main(config, config->json);
	case CONFIG_SERVE: break;
	}
	return check_and_trace(config);
}

int main(int argc, char **argv)
{
	struct config config;
	char why[WHY_SIZE];
	int r;

	if (!standard_fill())
		return EXIT_CODE_FAILURE;
	log_open();
	r = config_parse(argc, argv, &config, why, sizeof(why));
	if (r == CONFIG_HELP || r == CONFIG_VERSION) {
		if (r == CONFIG_HELP)
			config_help(stdout);
		else
			fputs("ptsnapd " PTSNAP_VERSION "\n", stdout);
		return fflush(stdout) < 0 ? EXIT_CODE_FAILURE : 0;
	}
	if (r < 0)
		return complain(why, EXIT_CODE_USAGE);
	r = configure_and_run(&config);
	config_done(&config);
	return r;
}
