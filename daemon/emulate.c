/*
 * ptsnapd --emulate: keeps an emulated machine for a recorder in another process, which may not run
 * COMMAND.
 *
 * This process starts COMMAND and has the machine's keeper. A recorder gets the shared memory over
 * a channel (capture/emu/machine/emuring.h), and may come and go. A process that can connect can
 * write to the rings, so the owner and group of the socket's file decide who can.
 */
#include "daemon/manager.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <systemd/sd-daemon.h>

#include "capture/emu/machine/emuring.h"
#include "daemon/base/log.h"
#include "daemon/control/server.h"
#include "proto/base.h"
#include "proto/channel.h"

#define GRACE_MS 2000

/* PEER_PROCESS: a pidfd. The channel of a recorder that was killed may live on in a child until the
 * child's execve(2). */
enum { SIGNALS = 0, COMMAND, LISTENER, PEER, PEER_PROCESS, N_FDS };

struct emulate {
	struct source *machine;
	struct command *command;
	struct pollfd fds[N_FDS];
	bool stopping;
};

static void take_peer(struct emulate *e, int fd)
{
	struct emuoffer offer;
	int memory = source_emu_offer(e->machine, &offer);
	int r = memory < 0 ? memory : channel_send(fd, &offer, sizeof(offer), &memory, 1);

	if (r < 0) {
		log_warning("a recorder cannot be served: %s", strerror(-r));
		close_fd(fd);
		return;
	}
	e->fds[PEER].fd = fd;
	e->fds[PEER_PROCESS].fd = listener_process(fd);
	log_info("a recorder has the rings");
	sd_notify(0, "STATUS=a recorder has the rings");
}

/* Waits for an event and handles it. */
static void run_once(struct emulate *e)
{
	struct signalfd_siginfo si;
	int n = poll(e->fds, N_FDS, e->stopping ? GRACE_MS : -1), fd;

	if (n == 0)
		command_kill(e->command, SIGKILL);
	if (n <= 0)
		return;
	if (e->fds[SIGNALS].revents && read(e->fds[SIGNALS].fd, &si, sizeof(si)) == sizeof(si) &&
	    si.ssi_signo != SIGUSR2) {
		if (!e->stopping)
			sd_notify(0, "STOPPING=1");
		command_kill(e->command, e->stopping ? SIGKILL : (int)si.ssi_signo);
		e->stopping = true;
	}
	/* A recorder sends nothing, so any event is its end. */
	if (e->fds[PEER].revents || e->fds[PEER_PROCESS].revents) {
		e->fds[PEER].fd = close_fd(e->fds[PEER].fd);
		e->fds[PEER_PROCESS].fd = close_fd(e->fds[PEER_PROCESS].fd);
		log_info("the recorder has gone");
		sd_notify(0, "STATUS=no recorder");
	}
	if (!e->fds[LISTENER].revents)
		return;
	/* The rings have one reader, so a second recorder is hung up on. */
	fd = accept4(e->fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0 && e->fds[PEER].fd >= 0)
		close_fd(fd);
	else if (fd >= 0)
		take_peer(e, fd);
}

int emulate_run(struct source *machine, struct command *command, int listener)
{
	struct emulate e = {.machine = machine,
			    .command = command,
			    .fds = {{-EBADF, POLLIN, 0},
				    {command->pidfd, POLLIN, 0},
				    {listener, POLLIN, 0},
				    {-EBADF, POLLIN, 0},
				    {-EBADF, POLLIN, 0}}};
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};
	struct emuoffer_end end = {.magic = EMUOFFER_END_MAGIC};
	char how[128];
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	e.fds[SIGNALS].fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (e.fds[SIGNALS].fd < 0) {
		log_error("no descriptor for signals: %s", strerror(errno));
		command_kill(command, SIGKILL);
		return 1;
	}
	log_info("%s runs; waiting for a recorder", command->argv[0]);
	sd_notify(0, "READY=1\nSTATUS=no recorder");
	while (!command_reap(command))
		run_once(&e);
	command_tell_end(command, how, sizeof(how));
	log_info("%s", how);
	/* The recorder keeps the rings, which nobody writes to any more. */
	source_emu_stop(machine);
	end.exit_status = command->exit_status;
	end.killed_by = command->killed_by;
	if (e.fds[PEER].fd >= 0)
		channel_send(e.fds[PEER].fd, &end, sizeof(end), NULL, 0);
	close_fd(e.fds[PEER].fd);
	close_fd(e.fds[PEER_PROCESS].fd);
	close_fd(e.fds[SIGNALS].fd);
	return command->exit_status;
}
