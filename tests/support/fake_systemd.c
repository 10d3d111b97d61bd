/*
 * Plays org.freedesktop.systemd1 on a test's own bus ($DBUS_SYSTEM_BUS_ADDRESS): takes the name,
 * answers Subscribe and prints "subscribed", and for each line "UNIT RESULT SIGNAL" on stdin
 * announces that this service failed, with systemd's signals in systemd's order and number.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define NAME "org.freedesktop.systemd1"
#define PATH "/org/freedesktop/systemd1"

static uint8_t invocation[16];

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "fake_systemd: %s: %s\n", what, strerror(-r));
	exit(1);
}

static uint64_t monotonic_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

static int on_subscribe(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	puts("subscribed");
	fflush(stdout);
	return sd_bus_reply_method_return(m, "");
}

static sd_bus_message *begin(sd_bus *bus, const char *path, const char *interface)
{
	sd_bus_message *m;

	must(sd_bus_message_new_signal(bus, &m, path, "org.freedesktop.DBus.Properties",
				       "PropertiesChanged"),
	     "signal");
	must(sd_bus_message_append(m, "s", interface), "interface");
	must(sd_bus_message_open_container(m, 'a', "{sv}"), "properties");
	return m;
}

static void end(sd_bus *bus, sd_bus_message *m)
{
	must(sd_bus_message_close_container(m), "properties");
	must(sd_bus_message_append(m, "as", 0), "invalidated");
	must(sd_bus_send(bus, m, NULL), "send");
	sd_bus_message_unref(m);
}

static void say_service(sd_bus *bus, const char *path, const char *result, int status)
{
	sd_bus_message *m = begin(bus, path, NAME ".Service");

	sd_bus_message_append(m, "{sv}", "Result", "s", result);
	sd_bus_message_append(m, "{sv}", "NRestarts", "u", 0);
	sd_bus_message_append(m, "{sv}", "ExecMainExitTimestampMonotonic", "t", monotonic_usec());
	sd_bus_message_append(m, "{sv}", "ExecMainPID", "u", 4711);
	sd_bus_message_append(m, "{sv}", "ExecMainCode", "i", CLD_KILLED);
	sd_bus_message_append(m, "{sv}", "ExecMainStatus", "i", status);
	end(bus, m);
}

static void say_unit(sd_bus *bus, const char *path, const char *active)
{
	sd_bus_message *m = begin(bus, path, NAME ".Unit");

	sd_bus_message_append(m, "{sv}", "ActiveState", "s", active);
	sd_bus_message_append(m, "{sv}", "StateChangeTimestampMonotonic", "t", monotonic_usec());
	sd_bus_message_open_container(m, 'e', "sv");
	sd_bus_message_append(m, "s", "InvocationID");
	sd_bus_message_open_container(m, 'v', "ay");
	sd_bus_message_append_array(m, 'y', invocation, sizeof(invocation));
	sd_bus_message_close_container(m);
	sd_bus_message_close_container(m);
	end(bus, m);
}

static void fail(sd_bus *bus, const char *unit, const char *result, int status)
{
	char *path;

	must(sd_bus_path_encode(PATH "/unit", unit, &path), "path");
	invocation[0]++;
	say_service(bus, path, "success", 0);
	say_unit(bus, path, "active");
	for (int i = 0; i < 2; i++) {
		say_service(bus, path, result, status);
		say_unit(bus, path, "failed");
	}
	free(path);
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	char line[512], unit[300], result[64];
	int status;

	(void)fd;
	(void)revents;
	if (!fgets(line, sizeof(line), stdin))
		return sd_event_exit(sd_event_source_get_event(source), 0);
	if (sscanf(line, "%299s %63s %d", unit, result, &status) == 3)
		fail(userdata, unit, result, status);
	return 0;
}

static const sd_bus_vtable manager[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Subscribe", "", "", on_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

int main(void)
{
	sd_event *event;
	sd_bus *bus;

	setvbuf(stdin, NULL, _IONBF, 0);
	must(sd_event_new(&event), "event");
	must(sd_bus_open_system(&bus), "bus");
	must(sd_bus_add_object_vtable(bus, NULL, PATH, NAME ".Manager", manager, NULL), "object");
	must(sd_bus_request_name(bus, NAME, 0), "name");
	must(sd_bus_attach_event(bus, event, 0), "attach");
	must(sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, bus), "stdin");
	puts("ready");
	fflush(stdout);
	must(sd_event_loop(event), "loop");
	return 0;
}
