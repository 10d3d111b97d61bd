/*
 * Serves org.varlink.certification, for tests only: an independent client
 * (varlink-go-certification) shows that proto/varlink speaks Varlink. Handles one connection at a
 * time, in one thread, with a plain poll loop. Runs until killed, or with --once until the first
 * client disconnects.
 *
 *   vl_cert_server [--once] SOCKET
 *
 * A table holds the methods' expected arguments as JSON texts. Each reply's parameters are the next
 * call's arguments, as the interface's description demands.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <json-c/json.h>

#include "proto/base.h"
#include "proto/varlink.h"

#define INTERFACE "org.varlink.certification"
#define CLIENT_ID "\"client_id\":\"the-only-one\""
#define REPLIES	  10

#define SCALARS \
	"\"bool\":false,\"int\":2,\"float\":3.141592653589793,\"string\":\"a lot of string\""
#define MYTYPE                                                                 \
	"{\"object\":{\"method\":\"" INTERFACE ".Test09\","                    \
	"\"parameters\":{\"map\":{\"foo\":\"Foo\",\"bar\":\"Bar\"}}},"         \
	"\"enum\":\"two\",\"struct\":{\"first\":1,\"second\":\"2\"},"          \
	"\"array\":[\"one\",\"two\",\"three\"],"                               \
	"\"dictionary\":{\"foo\":\"Foo\",\"bar\":\"Bar\"},"                    \
	"\"stringset\":{\"one\":{},\"two\":{},\"three\":{}},"                  \
	"\"nullable\":null,\"nullable_array_struct\":null,"                    \
	"\"interface\":{\"foo\":[null,{\"foo\":\"foo\",\"bar\":\"bar\"},null," \
	"{\"one\":\"foo\",\"two\":\"bar\"}],\"anon\":{\"foo\":true,\"bar\":false}}}"

static const char DESCRIPTION[] =
	"interface org.varlink.certification\n"
	"type Interface (foo: ?[]?[string](foo, bar, baz), anon: (foo: bool, bar: bool))\n"
	"type MyType (object: object, enum: (one, two, three),\n"
	"  struct: (first: int, second: string), array: []string, dictionary: [string]string,\n"
	"  stringset: [string](), nullable: ?string,\n"
	"  nullable_array_struct: ?[](first: int, second: string), interface: Interface)\n"
	"method Start() -> (client_id: string)\n"
	"method Test01(client_id: string) -> (bool: bool)\n"
	"method Test02(client_id: string, bool: bool) -> (int: int)\n"
	"method Test03(client_id: string, int: int) -> (float: float)\n"
	"method Test04(client_id: string, float: float) -> (string: string)\n"
	"method Test05(client_id: string, string: string) ->\n"
	"  (bool: bool, int: int, float: float, string: string)\n"
	"method Test06(client_id: string, bool: bool, int: int, float: float, string: string) ->\n"
	"  (struct: (bool: bool, int: int, float: float, string: string))\n"
	"method Test07(client_id: string,\n"
	"  struct: (bool: bool, int: int, float: float, string: string)) -> (map: [string]string)\n"
	"method Test08(client_id: string, map: [string]string) -> (set: [string]())\n"
	"method Test09(client_id: string, set: [string]()) -> (mytype: MyType)\n"
	"method Test10(client_id: string, mytype: MyType) -> (string: string)\n"
	"method Test11(client_id: string, last_more_replies: []string) -> ()\n"
	"method End(client_id: string) -> (all_ok: bool)\n"
	"error ClientIdError ()\n"
	"error CertificationError (wants: object, got: object)\n";

static const struct method {
	const char *name;
	const char *wants, *gives; /* parameters */
	bool more, oneway;
} METHODS[] = {
	{.name = "Start", .wants = "{}", .gives = "{" CLIENT_ID "}"},
	{.name = "Test01", .wants = "{" CLIENT_ID "}", .gives = "{\"bool\":true}"},
	{.name = "Test02", .wants = "{" CLIENT_ID ",\"bool\":true}", .gives = "{\"int\":1}"},
	{.name = "Test03", .wants = "{" CLIENT_ID ",\"int\":1}", .gives = "{\"float\":1.0}"},
	{.name = "Test04",
	 .wants = "{" CLIENT_ID ",\"float\":1.0}",
	 .gives = "{\"string\":\"ping\"}"},
	{.name = "Test05",
	 .wants = "{" CLIENT_ID ",\"string\":\"ping\"}",
	 .gives = "{" SCALARS "}"},
	{.name = "Test06",
	 .wants = "{" CLIENT_ID "," SCALARS "}",
	 .gives = "{\"struct\":{" SCALARS "}}"},
	{.name = "Test07",
	 .wants = "{" CLIENT_ID ",\"struct\":{" SCALARS "}}",
	 .gives = "{\"map\":{\"bar\":\"Bar\",\"foo\":\"Foo\"}}"},
	{.name = "Test08",
	 .wants = "{" CLIENT_ID ",\"map\":{\"bar\":\"Bar\",\"foo\":\"Foo\"}}",
	 .gives = "{\"set\":{\"one\":{},\"two\":{},\"three\":{}}}"},
	{.name = "Test09",
	 .wants = "{" CLIENT_ID ",\"set\":{\"one\":{},\"two\":{},\"three\":{}}}",
	 .gives = "{\"mytype\":" MYTYPE "}"},
	{.name = "Test10",
	 .wants = "{" CLIENT_ID ",\"mytype\":" MYTYPE "}",
	 .gives = NULL,
	 .more = true},
	{.name = "Test11",
	 .wants = "{" CLIENT_ID ",\"last_more_replies\":["
		  "\"Reply number 1\",\"Reply number 2\",\"Reply number 3\",\"Reply number 4\","
		  "\"Reply number 5\",\"Reply number 6\",\"Reply number 7\",\"Reply number 8\","
		  "\"Reply number 9\",\"Reply number 10\"]}",
	 .gives = "{}",
	 .oneway = true},
	{.name = "End", .wants = "{" CLIENT_ID "}", .gives = NULL},
};

struct connection {
	int fd;
	struct varlink *varlink;
	unsigned passed; /* number of methods called with correct arguments, in the table's order */
};

static int queue(struct connection *c, struct json_object *message)
{
	int r = message ? varlink_queue(c->varlink, message, -1) : -ENOMEM;

	json_object_put(message);
	return r;
}

static bool is_number(struct json_object *o)
{
	return json_object_is_type(o, json_type_int) || json_object_is_type(o, json_type_double);
}

static bool same(struct json_object *wants, struct json_object *got);

/* A client may leave out nullable fields (Go's omitempty). */
static bool same_object(struct json_object *wants, struct json_object *got)
{
	struct json_object *other;

	json_object_object_foreach(wants, key, value)
	{
		other = NULL;
		json_object_object_get_ex(got, key, &other);
		if (!same(value, other))
			return false;
	}
	json_object_object_foreach(got, name, unexpected)
	{
		if (unexpected && !json_object_object_get_ex(wants, name, NULL))
			return false;
	}
	return true;
}

static bool same_array(struct json_object *wants, struct json_object *got)
{
	size_t n = json_object_array_length(wants);

	if (json_object_array_length(got) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!same(json_object_array_get_idx(wants, i), json_object_array_get_idx(got, i)))
			return false;
	return true;
}

/* Like json_object_equal, but 1 equals 1.0. */
static bool same(struct json_object *wants, struct json_object *got)
{
	if (is_number(wants) && is_number(got))
		return !(json_object_get_double(wants) < json_object_get_double(got)) &&
		       !(json_object_get_double(wants) > json_object_get_double(got));
	if (json_object_get_type(wants) != json_object_get_type(got))
		return false;
	if (json_object_is_type(wants, json_type_object))
		return same_object(wants, got);
	if (json_object_is_type(wants, json_type_array))
		return same_array(wants, got);
	return json_object_equal(wants, got);
}

static int answer_more(struct connection *c)
{
	char text[64];
	int r = 0;

	for (int i = 1; i <= REPLIES && r == 0; i++) {
		snprintf(text, sizeof(text), "{\"string\":\"Reply number %d\"}", i);
		r = queue(c, varlink_make_reply(json_tokener_parse(text), i < REPLIES));
	}
	return r;
}

static int answer_end(struct connection *c)
{
	struct json_object *parameters = json_object_new_object();
	bool all = c->passed == ARRAY_SIZE(METHODS);

	json_object_object_add(parameters, "all_ok", json_object_new_boolean(all));
	return queue(c, varlink_make_reply(parameters, false));
}

static int certify(struct connection *c, const struct method *m, const struct varlink_call *call)
{
	struct json_object *wants = json_tokener_parse(m->wants);
	struct json_object *none = json_object_new_object();
	bool good = same(wants, call->parameters ? call->parameters : none) &&
		    call->more == m->more && call->oneway == m->oneway;

	json_object_put(wants);
	json_object_put(none);
	if (good && (size_t)(m - METHODS) == c->passed)
		c->passed++;
	if (call->oneway)
		return 0;
	if (!good)
		return queue(c, varlink_make_error(INTERFACE ".CertificationError", NULL));
	if (m->more)
		return answer_more(c);
	if (!m->gives)
		return answer_end(c);
	return queue(c, varlink_make_reply(json_tokener_parse(m->gives), false));
}

static int get_info(struct connection *c)
{
	return queue(c, varlink_make_reply(
				json_tokener_parse(
					"{\"vendor\":\"ptsnap\",\"product\":\"certification\","
					"\"version\":\"1\",\"url\":\"\",\"interfaces\":["
					"\"org.varlink.service\",\"" INTERFACE "\"]}"),
				false));
}

static int get_description(struct connection *c, const struct varlink_call *call)
{
	struct json_object *parameters;
	const char *name = "";

	if (varlink_get_string(call->parameters, "interface", &name) < 0)
		return queue(c, varlink_make_service_error("InvalidParameter", "parameter",
							   "interface"));
	if (strcmp(name, INTERFACE) != 0)
		return queue(c, varlink_make_service_error("InterfaceNotFound", "interface", name));
	parameters = json_object_new_object();
	json_object_object_add(parameters, "description", json_object_new_string(DESCRIPTION));
	return queue(c, varlink_make_reply(parameters, false));
}

static int dispatch(struct connection *c, const struct varlink_call *call)
{
	if (strcmp(call->method, "org.varlink.service.GetInfo") == 0)
		return get_info(c);
	if (strcmp(call->method, "org.varlink.service.GetInterfaceDescription") == 0)
		return get_description(c, call);
	if (strcmp(call->interface, INTERFACE) != 0)
		return queue(c, varlink_make_service_error("InterfaceNotFound", "interface",
							   call->interface));
	for (size_t i = 0; i < ARRAY_SIZE(METHODS); i++)
		if (strcmp(call->name, METHODS[i].name) == 0)
			return certify(c, &METHODS[i], call);
	return queue(c, varlink_make_service_error("MethodNotFound", "method", call->method));
}

/* Returns 0, VARLINK_AGAIN, or a negative number, which closes the connection. */
static int take_call(struct connection *c)
{
	struct json_object *message = NULL;
	struct varlink_call call;
	int r = varlink_next(c->varlink, &message);

	if (r != 0)
		return r;
	r = varlink_parse_call(message, &call);
	if (r == 0)
		r = dispatch(c, &call);
	json_object_put(message);
	return r;
}

static void serve(struct connection *c)
{
	struct pollfd p = {.fd = c->fd};
	int r = 0;

	while (r >= 0) {
		while ((r = take_call(c)) == 0)
			;
		if (r < 0 || varlink_send(c->varlink, c->fd) < 0)
			return;
		p.events = varlink_has_output(c->varlink) ? POLLIN | POLLOUT : POLLIN;
		if (poll(&p, 1, -1) < 0)
			return;
		r = varlink_receive(c->varlink, c->fd, false);
		if (r == VARLINK_END)
			return;
	}
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 8) < 0)
		return close_fd(fd);
	return fd;
}

int main(int argc, char **argv)
{
	bool once = argc == 3 && strcmp(argv[1], "--once") == 0;
	int listener = argc == 2 || once ? listen_at(argv[argc - 1]) : -1;

	if (listener < 0) {
		fprintf(stderr, "usage: vl_cert_server [--once] SOCKET (%s)\n", strerror(errno));
		return 2;
	}
	do {
		struct connection c = {.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)};

		if (c.fd < 0 || varlink_new(&c.varlink) < 0)
			return 1;
		serve(&c);
		varlink_free(c.varlink);
		close_fd(c.fd);
	} while (!once);
	close_fd(listener);
	return 0;
}
