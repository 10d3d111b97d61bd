/*
 * Which system calls may block. Called by task.c when a guest thread enters the kernel.
 */
#include "capture/emu/plugin/waits.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "capture/emu/plugin/guest.h"

static bool not_ready(uint64_t fd, short events)
{
	struct pollfd p = {.fd = (int)fd, .events = events};

	return poll(&p, 1, 0) == 0;
}

static bool futex_blocks(const uint64_t args[6])
{
	uint32_t value;

	switch (args[1] & (uint64_t)FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return guest_read(args[0], &value, sizeof(value)) && value == (uint32_t)args[2];
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_WAIT_REQUEUE_PI: return true;
	default: return false;
	}
}

bool waits_would_block(int64_t number, const uint64_t args[6])
{
	switch (number) {
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4: return not_ready(args[0], POLLIN);
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg: return not_ready(args[0], POLLOUT);
	case SYS_futex: return futex_blocks(args);
	case SYS_poll: return args[2] != 0;
	case SYS_epoll_wait:
	case SYS_epoll_pwait: return args[3] != 0;
	case SYS_fcntl: return args[1] == F_SETLKW || args[1] == F_OFD_SETLKW;
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_pause:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_connect:
	case SYS_flock:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync:
	case SYS_fork:
	case SYS_vfork:
	case SYS_clone:
	case SYS_execve:
	case SYS_execveat: return true;
	default: return false;
	}
}
