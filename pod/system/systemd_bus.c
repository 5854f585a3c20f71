#include "pod/system/systemd_bus.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/model/unit_map.h"
#include "pod/system/interrupt.h"
#include "pod/system/library.h"

#define DESTINATION "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNITS_PATH "/org/freedesktop/systemd1/unit"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"
#define PROPERTIES_INTERFACE "org.freedesktop.DBus.Properties"

#define CALL_USEC (BUS_CALL_MS * UINT64_C(1000))
/* Answers under way at once; the manager drops a peer that lets its queue grow. */
#define PIPELINE 256

#define FUNCTIONS(F) F(bus_call_async) F(bus_call_method_async) F(bus_close) F(bus_creds_get_euid) \
	F(bus_creds_unref) F(bus_error_get_errno) F(bus_error_has_name) F(bus_get_owner_creds) \
	F(bus_is_ready) F(bus_match_signal) F(bus_message_append) F(bus_message_enter_container) F(bus_message_exit_container) \
	F(bus_message_get_error) F(bus_message_get_path) F(bus_message_new_method_call) F(bus_message_read) \
	F(bus_message_read_array) F(bus_message_read_basic) F(bus_message_ref) F(bus_message_skip) F(bus_message_unref) F(bus_new) \
	F(bus_path_decode) F(bus_path_encode) F(bus_process) F(bus_set_address) F(bus_set_bus_client) F(bus_set_fd) \
	F(bus_set_method_call_timeout) F(bus_slot_unref) F(bus_start) F(bus_unref) F(bus_wait) F(bus_add_match) F(bus_get_fd) F(bus_message_append_strv) F(bus_message_close_container) F(bus_message_open_container)
#define SLOT(name) __typeof__(sd_##name) *name;
#define NAMED(name) {"sd_" #name, &sd.name},

static struct {
	FUNCTIONS(SLOT)
} sd;

static int sd_load(struct err *err)
{
	static const struct library_function functions[] = {FUNCTIONS(NAMED)};
	return sd.bus_new ? 0 : library_load(LIBRARY_FILE("systemd", "0"), functions, sizeof functions / sizeof *functions, err);
}

#define AUTO_SD_BUS CLEANUP(sd_bus_close_free)
#define AUTO_MESSAGE CLEANUP(message_free)
#define AUTO_CREDS CLEANUP(creds_free)

/* Flushing would wait for a peer that is silent. */
static void sd_bus_close_free(sd_bus **bus)
{
	if (*bus)
		sd.bus_close(*bus);
	if (*bus)
		sd.bus_unref(*bus);
}

static void message_free(sd_bus_message **message)
{
	if (*message)
		(void)sd.bus_message_unref(*message);
}

static void creds_free(sd_bus_creds **creds)
{
	if (*creds)
		(void)sd.bus_creds_unref(*creds);
}

struct bus {
	sd_bus *bus;
	const char *sender; /* for matches; NULL on the manager's own socket, where messages carry none */
	bus_listener listener;
	void *listener_data;
	bool hears_jobs, subscribed;
};

bool bus_lost(int code)
{
	return code == -ENOTCONN || code == -ECONNRESET || code == -EPIPE || code == -ESHUTDOWN || code == -ECONNABORTED;
}

static bool says_not_loaded(const sd_bus_error *error)
{
	return sd.bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit") ||
	       sd.bus_error_has_name(error, "org.freedesktop.DBus.Error.UnknownObject");
}

/* The manager's own words where it gave some. */
static int call_failed(int code, const sd_bus_error *error, const char *member, const char *subject, struct err *err)
{
	if (says_not_loaded(error))
		return err_set(err, -ENOENT, "systemd", subject, "the unit is not loaded");
	if (bus_lost(code))
		return err_set(err, code, "systemd", subject, "the connection to the user manager was lost during %s", member);
	if (code == -EINTR)
		return err_set(err, code, "systemd", subject, "interrupted while the user manager was asked (%s)", member);
	if (code == -ETIMEDOUT || sd.bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) || sd.bus_error_has_name(error, SD_BUS_ERROR_TIMEOUT))
		return err_set(err, -ETIMEDOUT, "systemd", subject, "the user manager did not answer %s in time", member);
	return err_set(err, code, "systemd", subject, "%s failed: %s", member, error && error->message ? error->message : strerror(-code));
}

/* A text that does not fit is refused: a control group cut short would name another. */
static int text_store(const char *text, char *out, size_t size)
{
	size_t len = strlen(text);
	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(out, text, len + 1);
	return 0;
}

/* ---- calls ---- */

/* What is under way when the connection ends is answered by sd-bus itself, as if the peer had been silent. */
static int lost_rather_than_silent(sd_bus *bus, int code)
{
	return code < 0 && sd.bus_is_ready(bus) <= 0 ? -ECONNRESET : code;
}

/* An answer under way. sd_bus_call(3) would lose it at the first signal. */
struct bus_answer {
	sd_bus_slot *slot; /* released with it: no answer comes after that */
	sd_bus_message *reply;
};

static void answer_end(struct bus_answer *answer)
{
	if (answer->slot)
		(void)sd.bus_slot_unref(answer->slot);
	message_free(&answer->reply);
}
#define AUTO_ANSWER CLEANUP(answer_end)

/* What a callback for an answer returns: with 0 sd_bus_process(3) says that nothing was done where the answer is that there is none in time. */
#define TAKEN 1

static int answer_take(sd_bus_message *reply, void *data, sd_bus_error *ret_error)
{
	(void)ret_error;
	((struct bus_answer *)data)->reply = sd.bus_message_ref(reply);
	return TAKEN;
}

static const sd_bus_error *answer_error(const struct bus_answer *answer)
{
	return answer->reply ? sd.bus_message_get_error(answer->reply) : NULL;
}

/* One message, or a wait for it. The first signal that asks for the end (`noted` is what was noted when the wait began) ends it; what is taken back
 * afterwards is waited for. */
static int step(sd_bus *bus, int noted)
{
	int r = sd.bus_process(bus, NULL);
	if (r == 0)
		r = sd.bus_wait(bus, CALL_USEC);
	if (r < 0 && r != -EINTR)
		return r;
	return interrupt_noted() != noted ? -EINTR : 0;
}

static int answer_await(sd_bus *bus, struct bus_answer *answer)
{
	int noted = interrupt_noted();
	while (!answer->reply) {
		int r = step(bus, noted);
		if (r < 0)
			return r;
	}
	const sd_bus_error *error = answer_error(answer);
	if (!error)
		return 0;
	int code = sd.bus_error_get_errno(error);
	return lost_rather_than_silent(bus, code ? -code : -EIO);
}

static int call_and_await(sd_bus *bus, sd_bus_message *call, uint64_t usec, struct bus_answer *answer)
{
	int r = sd.bus_call_async(bus, &answer->slot, call, answer_take, answer, usec);
	return r < 0 ? r : answer_await(bus, answer);
}

int bus_call(struct bus *bus, const struct bus_method *method, char *ret_path, size_t size, struct err *err)
{
	AUTO_MESSAGE sd_bus_message *call = NULL;
	AUTO_ANSWER struct bus_answer answer = {0};
	const char *path = NULL;
	int r = sd.bus_message_new_method_call(bus->bus, &call, DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, method->member);
	for (const char *const *word = method->words; *word && r >= 0; word++)
		r = sd.bus_message_append(call, "s", *word);
	if (r >= 0 && method->signal)
		r = sd.bus_message_append(call, "i", method->signal);
	if (r >= 0)
		r = call_and_await(bus->bus, call, (uint64_t)(method->timeout_ms ? method->timeout_ms : BUS_CALL_MS) * 1000, &answer);
	if (r >= 0 && ret_path)
		r = sd.bus_message_read_basic(answer.reply, 'o', &path);
	if (r >= 0 && ret_path)
		r = text_store(path, ret_path, size);
	return r < 0 ? call_failed(r, answer_error(&answer), method->member, method->words[0], err) : 0;
}

/* ---- transient units ---- */

static int append_text(sd_bus_message *call, const char *name, const char *value)
{
	return sd.bus_message_append(call, "(sv)", name, "s", value);
}

/* The manager replaces variables in the words of a command. */
static char *without_variables(const char *word)
{
	char *out = malloc(2 * strlen(word) + 1), *at = out;
	for (; out && *word; word++) {
		if (*word == '$')
			*at++ = '$';
		*at++ = *word;
	}
	if (out)
		*at = '\0';
	return out;
}

static int append_words(sd_bus_message *call, const char *const *argv)
{
	int r = sd.bus_message_open_container(call, 'a', "s");
	for (; r >= 0 && *argv; argv++) {
		AUTO_FREE char *word = without_variables(*argv);
		r = word ? sd.bus_message_append(call, "s", word) : -ENOMEM;
	}
	return r < 0 ? r : sd.bus_message_close_container(call);
}

static int append_command(sd_bus_message *call, const char *const *argv)
{
	static const struct {
		char type;
		const char *contents;
	} levels[] = {{'r', "sv"}, {'v', "a(sasb)"}, {'a', "(sasb)"}, {'r', "sasb"}};
	int r = 0;
	for (size_t i = 0; r >= 0 && i < sizeof levels / sizeof *levels; i++) {
		r = sd.bus_message_open_container(call, levels[i].type, levels[i].contents);
		if (r >= 0 && i == 0)
			r = sd.bus_message_append(call, "s", "ExecStart");
	}
	if (r >= 0)
		r = sd.bus_message_append(call, "s", argv[0]);
	if (r >= 0)
		r = append_words(call, argv);
	if (r >= 0)
		r = sd.bus_message_append(call, "b", 0);
	for (size_t i = 0; r >= 0 && i < sizeof levels / sizeof *levels; i++)
		r = sd.bus_message_close_container(call);
	return r;
}

static int append_environment(sd_bus_message *call, char *const *environment)
{
	int r = sd.bus_message_open_container(call, 'r', "sv");
	if (r >= 0)
		r = sd.bus_message_append(call, "s", "Environment");
	if (r >= 0)
		r = sd.bus_message_open_container(call, 'v', "as");
	if (r >= 0)
		r = sd.bus_message_append_strv(call, (char **)(uintptr_t)environment);
	if (r >= 0)
		r = sd.bus_message_close_container(call);
	return r < 0 ? r : sd.bus_message_close_container(call);
}

static int append_transient(sd_bus_message *call, const struct bus_transient *transient)
{
	int r = sd.bus_message_append(call, "ss", transient->unit, "fail");
	if (r >= 0)
		r = sd.bus_message_open_container(call, 'a', "(sv)");
	if (r >= 0)
		r = append_text(call, "Description", transient->description);
	if (r >= 0)
		r = append_text(call, "Type", "exec");
	if (r >= 0)
		r = append_text(call, "Restart", "on-failure");
	if (r >= 0)
		r = append_text(call, "CollectMode", "inactive-or-failed");
	if (r >= 0)
		r = sd.bus_message_append(call, "(sv)", "RestartUSec", "t", UINT64_C(1000000));
	if (r >= 0)
		r = sd.bus_message_append(call, "(sv)", "TimeoutStopUSec", "t", UINT64_C(5000000));
	if (r >= 0)
		r = sd.bus_message_append(call, "(sv)", "UMask", "u", UINT32_C(0077));
	if (r >= 0)
		r = append_environment(call, transient->environment);
	if (r >= 0)
		r = append_command(call, transient->argv);
	if (r >= 0)
		r = sd.bus_message_close_container(call);
	return r < 0 ? r : sd.bus_message_append(call, "a(sa(sv))", 0);
}

int bus_start_transient(struct bus *bus, const struct bus_transient *transient, char *ret_path, size_t size, struct err *err)
{
	AUTO_MESSAGE sd_bus_message *call = NULL;
	AUTO_ANSWER struct bus_answer answer = {0};
	static const char member[] = "StartTransientUnit";
	const char *path = NULL;
	int r = sd.bus_message_new_method_call(bus->bus, &call, DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, member);
	if (r >= 0)
		r = append_transient(call, transient);
	if (r >= 0)
		r = call_and_await(bus->bus, call, CALL_USEC, &answer);
	if (sd.bus_error_has_name(answer_error(&answer), "org.freedesktop.systemd1.UnitExists"))
		return err_set(err, -EEXIST, "systemd", transient->unit, "a unit of this name is loaded");
	if (r >= 0)
		r = sd.bus_message_read_basic(answer.reply, 'o', &path);
	if (r >= 0)
		r = text_store(path, ret_path, size);
	return r < 0 ? call_failed(r, answer_error(&answer), member, transient->unit, err) : 0;
}

/* ---- connection ---- */

/* The peer must be of this uid: an address out of the environment may lead anywhere. */
static int peer_check(sd_bus *bus)
{
	AUTO_CREDS sd_bus_creds *creds = NULL;
	uid_t uid = (uid_t)-1;
	int r = sd.bus_get_owner_creds(bus, SD_BUS_CREDS_EUID, &creds);
	if (r >= 0)
		r = sd.bus_creds_get_euid(creds, &uid);
	return r < 0 ? r : uid == geteuid() ? 0 : -EPERM;
}

/* sd-bus itself would wait 90 s for a peer that takes the connection and says nothing. */
static int ready_await(sd_bus *bus, struct deadline until)
{
	int r;
	while ((r = sd.bus_is_ready(bus)) == 0) {
		r = sd.bus_process(bus, NULL);
		int64_t left = deadline_left_ns(until);
		if (r == 0 && left <= 0)
			return -ETIMEDOUT;
		if (r == 0)
			r = sd.bus_wait(bus, (uint64_t)left / 1000 + 1);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return r < 0 ? r : 0;
}

/* The manager takes a connection, which is a millisecond's work, while this process loads the library. Negative: left to the library. */
static int connect_ahead(const struct manager_address *address)
{
	struct sockaddr_un peer = {.sun_family = AF_UNIX};
	int r = text_store(address->path, peer.sun_path, sizeof peer.sun_path);
	if (r < 0 || !*address->path)
		return -EOPNOTSUPP;
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 || connect(fd, (const struct sockaddr *)&peer, sizeof peer) < 0 ? -errno : take_fd(&fd);
}

/* The bus owns the descriptor that it has taken. */
static int socket_give(sd_bus *bus, const struct manager_address *address, int *socket)
{
	if (*socket < 0)
		return sd.bus_set_address(bus, address->text);
	int r = sd.bus_set_fd(bus, *socket, *socket);
	if (r >= 0)
		(void)take_fd(socket);
	return r;
}

static int address_open(const struct manager_address *address, int *socket, sd_bus **ret_bus)
{
	AUTO_SD_BUS sd_bus *bus = NULL;
	int r = sd.bus_new(&bus);
	if (r >= 0)
		r = socket_give(bus, address, socket);
	if (r >= 0)
		r = sd.bus_set_bus_client(bus, !address->peer);
	if (r >= 0)
		r = sd.bus_start(bus);
	if (r >= 0)
		r = ready_await(bus, deadline_in_ms(BUS_CONNECT_MS));
	if (r >= 0)
		r = peer_check(bus);
	if (r >= 0)
		*ret_bus = TAKE_PTR(bus);
	return r < 0 ? r : 0;
}

/* A socket that takes a connection proves nothing yet: one answer does. A bus that has just been started by this very connection has no manager
 * yet, so the broker may wait for one. */
static int version_ask(sd_bus *bus, struct bus_answer *answer)
{
	AUTO_MESSAGE sd_bus_message *call = NULL;
	int r = sd.bus_message_new_method_call(bus, &call, DESTINATION, MANAGER_PATH, PROPERTIES_INTERFACE, "Get");
	if (r >= 0)
		r = sd.bus_message_append(call, "ss", MANAGER_INTERFACE, "Version");
	return r < 0 ? r : call_and_await(bus, call, BUS_CONNECT_MS * UINT64_C(1000), answer);
}

static int address_try(const struct manager_address *address, int *socket, struct bus **ret_bus, struct err *err)
{
	AUTO_BUS struct bus *bus = calloc(1, sizeof *bus);
	AUTO_ANSWER struct bus_answer answer = {0};
	if (!bus)
		return err_code(err, -ENOMEM, "systemd", NULL);
	int r = address_open(address, socket, &bus->bus);
	if (r < 0)
		return err_code(err, r, "systemd", address->text);
	bus->sender = address->peer ? NULL : DESTINATION;
	(void)sd.bus_set_method_call_timeout(bus->bus, CALL_USEC);
	r = version_ask(bus->bus, &answer);
	if (r < 0)
		return call_failed(r, answer_error(&answer), "connecting", address->text, err);
	*ret_bus = TAKE_PTR(bus);
	return 0;
}

int bus_open(const struct manager_addresses *addresses, struct bus **ret_bus, struct err *err)
{
	struct err why = {.code = -ENOENT};
	AUTO_CLOSE int socket = addresses->n ? connect_ahead(&addresses->v[0]) : -1;
	int r = sd_load(err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < addresses->n; i++) {
		if (address_try(&addresses->v[i], &socket, ret_bus, &why) == 0)
			return 0;
		close_quietly(take_fd(&socket)); /* it was the first one's */
	}
	if (err)
		*err = why;
	return why.code;
}

void bus_close(struct bus **slot)
{
	struct bus *bus = *slot;
	if (!bus)
		return;
	sd_bus_close_free(&bus->bus);
	free(bus);
	*slot = NULL;
}

/* ---- properties ---- */

static int text_read(sd_bus_message *message, char *out, size_t size)
{
	const char *text = NULL;
	int r = sd.bus_message_read_basic(message, 's', &text);
	return r < 0 ? r : text_store(text, out, size);
}

static int strings_read(sd_bus_message *message, char *out, size_t size)
{
	const char *text = NULL;
	size_t used = 0;
	int r = sd.bus_message_enter_container(message, 'a', "s");
	while (r >= 0 && (r = sd.bus_message_read_basic(message, 's', &text)) > 0) {
		int n = snprintf(out + used, size - used, "%s%s", used ? "\n" : "", text);
		if (n < 0 || (size_t)n >= size - used)
			return -ENAMETOOLONG;
		used += (size_t)n;
	}
	return r < 0 ? r : sd.bus_message_exit_container(message);
}

static int words_read(sd_bus_message *message, struct unit_command *command)
{
	const char *word = NULL, *before = "";
	int r = sd.bus_message_enter_container(message, 'a', "s");
	command->last_words[0] = 0;
	while (r >= 0 && (r = sd.bus_message_read_basic(message, 's', &word)) > 0) {
		(void)snprintf(command->last_words, sizeof command->last_words, "%s %s", before, word);
		before = word;
	}
	return r < 0 ? r : sd.bus_message_exit_container(message);
}

static int commands_read(sd_bus_message *message, struct unit_command *command)
{
	unsigned count = 0;
	int r = sd.bus_message_enter_container(message, 'a', "(sasbttttuii)");
	while (r >= 0 && (r = sd.bus_message_enter_container(message, 'r', "sasbttttuii")) > 0) {
		count++;
		r = text_read(message, command->program, sizeof command->program);
		if (r >= 0)
			r = words_read(message, command);
		if (r >= 0)
			r = sd.bus_message_skip(message, "bttttuii");
		if (r >= 0)
			r = sd.bus_message_exit_container(message);
	}
	if (count != 1)
		command->program[0] = 0;
	return r < 0 ? r : sd.bus_message_exit_container(message);
}

static int statuses_read(sd_bus_message *message, bool set[256])
{
	const int32_t *statuses = NULL;
	size_t bytes = 0;
	int r = sd.bus_message_enter_container(message, 'r', "aiai");
	if (r >= 0)
		r = sd.bus_message_read_array(message, 'i', (const void **)&statuses, &bytes);
	for (size_t i = 0; r >= 0 && i < bytes / sizeof *statuses; i++)
		if (statuses[i] >= 0 && statuses[i] < 256)
			set[statuses[i]] = true;
	if (r >= 0)
		r = sd.bus_message_skip(message, "ai");
	return r < 0 ? r : sd.bus_message_exit_container(message);
}

static int flag_read(sd_bus_message *message, bool *ret_flag)
{
	int flag = 0;
	int r = sd.bus_message_read_basic(message, 'b', &flag);
	if (r >= 0)
		*ret_flag = flag != 0;
	return r;
}

static const char *const signatures[] = {
	[BUS_TEXT] = "s",   [BUS_U32] = "u",	[BUS_I32] = "i",		  [BUS_U64] = "t",
	[BUS_FLAG] = "b", [BUS_LINES] = "as", [BUS_COMMAND] = "a(sasbttttuii)", [BUS_STATUSES] = "(aiai)",
};

static int value_read(sd_bus_message *message, const struct bus_field *field, void *at)
{
	switch (field->kind) {
	case BUS_TEXT:
		return text_read(message, at, field->size);
	case BUS_FLAG:
		return flag_read(message, at);
	case BUS_LINES:
		return strings_read(message, at, field->size);
	case BUS_COMMAND:
		return commands_read(message, at);
	case BUS_STATUSES:
		return statuses_read(message, at);
	default:
		return sd.bus_message_read_basic(message, *signatures[field->kind], at);
	}
}

/* Reads the variant at the cursor into the record. */
static int field_read(sd_bus_message *message, const struct bus_field *field, void *record)
{
	int r = sd.bus_message_enter_container(message, 'v', signatures[field->kind]);
	if (r >= 0)
		r = value_read(message, field, (char *)record + field->offset);
	return r < 0 ? r : sd.bus_message_exit_container(message);
}

static const struct bus_field *field_find(const struct bus_fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->n; i++)
		if (strcmp(fields->v[i].name, name) == 0)
			return &fields->v[i];
	return NULL;
}

static int fields_read(sd_bus_message *message, const struct bus_fields *fields, void *record)
{
	int r = sd.bus_message_enter_container(message, 'a', "{sv}");
	while (r >= 0 && (r = sd.bus_message_enter_container(message, 'e', "sv")) > 0) {
		const char *name = NULL;
		r = sd.bus_message_read_basic(message, 's', &name);
		const struct bus_field *field = r < 0 ? NULL : field_find(fields, name);
		if (r >= 0)
			r = field ? field_read(message, field, record) : sd.bus_message_skip(message, "v");
		if (r >= 0)
			r = sd.bus_message_exit_container(message);
	}
	return r < 0 ? r : 0;
}

static int properties_ask(sd_bus *bus, const char *unit, struct bus_answer *answer)
{
	AUTO_MESSAGE sd_bus_message *call = NULL;
	AUTO_FREE char *path = NULL;
	int r = sd.bus_path_encode(UNITS_PATH, unit, &path);
	if (r >= 0)
		r = sd.bus_message_new_method_call(bus, &call, DESTINATION, path, PROPERTIES_INTERFACE, "GetAll");
	if (r >= 0)
		r = sd.bus_message_append(call, "s", "");
	return r < 0 ? r : sd.bus_call_async(bus, &answer->slot, call, answer_take, answer, CALL_USEC);
}

int bus_properties_read(struct bus *bus, struct bus_answer *answer, const char *unit, const struct bus_fields *fields, void *record, struct err *err)
{
	int r = answer_await(bus->bus, answer);
	if (r < 0)
		return call_failed(r, answer_error(answer), "GetAll", unit, err);
	r = fields_read(answer->reply, fields, record);
	return r < 0 ? err_code(err, r, "systemd", unit) : 0;
}

int bus_properties(struct bus *bus, const char *unit, const struct bus_fields *fields, void *record, struct err *err)
{
	AUTO_ANSWER struct bus_answer answer = {0};
	int r = properties_ask(bus->bus, unit, &answer);
	return r < 0 ? call_failed(r, NULL, "GetAll", unit, err) : bus_properties_read(bus, &answer, unit, fields, record, err);
}

int bus_properties_ask(struct bus *bus, const char *unit, struct bus_answer **ret_answer, struct err *err)
{
	struct bus_answer *answer = calloc(1, sizeof *answer);
	int r = answer ? properties_ask(bus->bus, unit, answer) : -ENOMEM;
	if (r < 0)
		bus_answer_free(&answer);
	else
		*ret_answer = answer;
	return r < 0 ? call_failed(r, NULL, "GetAll", unit, err) : 0;
}

void bus_answer_free(struct bus_answer **answer)
{
	if (*answer)
		answer_end(*answer);
	free(*answer);
	*answer = NULL;
}

/* ---- many units ---- */

static int row_read(sd_bus_message *message, struct bus_row *row)
{
	int r = sd.bus_message_read(message, "ssss", &row->unit, NULL, &row->load_state, &row->active_state);
	if (r >= 0)
		r = sd.bus_message_read_basic(message, 's', &row->sub_state);
	return r < 0 ? r : sd.bus_message_skip(message, "souso");
}

static int rows_read(sd_bus_message *message, bus_row_visitor visit, void *data)
{
	int r = sd.bus_message_enter_container(message, 'a', "(ssssssouso)");
	while (r >= 0 && (r = sd.bus_message_enter_container(message, 'r', "ssssssouso")) > 0) {
		struct bus_row row;
		r = row_read(message, &row);
		if (r >= 0)
			r = visit(&row, data);
		if (r >= 0)
			r = sd.bus_message_exit_container(message);
	}
	return r < 0 ? r : 0;
}

int bus_list(struct bus *bus, const char *pattern, bus_row_visitor visit, void *data, struct err *err)
{
	static const char member[] = "ListUnitsByPatterns";
	AUTO_MESSAGE sd_bus_message *call = NULL;
	AUTO_ANSWER struct bus_answer answer = {0};
	int r = sd.bus_message_new_method_call(bus->bus, &call, DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, member);
	if (r >= 0)
		r = sd.bus_message_append(call, "asas", 0, 1, pattern);
	if (r >= 0)
		r = call_and_await(bus->bus, call, CALL_USEC, &answer);
	if (r < 0)
		return call_failed(r, answer_error(&answer), member, pattern, err);
	r = rows_read(answer.reply, visit, data);
	return r < 0 ? err_code(err, r, "systemd", pattern) : 0;
}

struct pipeline {
	size_t under_way;
	int code; /* the first failure that matters */
};
/* One property of one unit under way. */
struct question {
	sd_bus_slot *slot; /* released with the question: no answer comes after that */
	struct pipeline *pipeline;
	const struct bus_field *field;
	void *record;
};
struct questions {
	struct question *v;
	size_t n;
};

static void questions_free(struct questions *questions)
{
	for (size_t i = 0; i < questions->n; i++)
		sd.bus_slot_unref(questions->v[i].slot);
	free(questions->v);
}

static int question_answered(sd_bus_message *reply, void *data, sd_bus_error *ret_error)
{
	(void)ret_error;
	struct question *question = data;
	question->pipeline->under_way--;
	const sd_bus_error *error = sd.bus_message_get_error(reply);
	int r = 0;
	if (error && !says_not_loaded(error))
		r = sd.bus_error_get_errno(error) ? -sd.bus_error_get_errno(error) : -EIO;
	else if (!error)
		r = field_read(reply, question->field, question->record);
	if (r < 0 && question->pipeline->code == 0)
		question->pipeline->code = r;
	return TAKEN;
}

/* Lets the bus work until no more than `most` answers are out. */
static int pipeline_drain(struct bus *bus, struct pipeline *pipeline, size_t most)
{
	int noted = interrupt_noted();
	while (pipeline->under_way > most && pipeline->code == 0) {
		int r = step(bus->bus, noted);
		if (r < 0)
			return r;
	}
	return lost_rather_than_silent(bus->bus, pipeline->code);
}

static int unit_ask(struct bus *bus, const struct bus_subject *subject, const struct bus_fields *fields, struct questions *questions,
		    struct pipeline *pipeline)
{
	AUTO_FREE char *path = NULL;
	int r = sd.bus_path_encode(UNITS_PATH, subject->unit, &path);
	for (size_t i = 0; i < fields->n && r >= 0; i++) {
		struct question *question = &questions->v[questions->n];
		*question = (struct question){NULL, pipeline, &fields->v[i], subject->record};
		r = sd.bus_call_method_async(bus->bus, &question->slot, DESTINATION, path, PROPERTIES_INTERFACE, "Get", question_answered, question,
					     "ss", question->field->interface, question->field->name);
		if (r < 0)
			break;
		questions->n++;
		pipeline->under_way++;
	}
	return r < 0 ? r : pipeline_drain(bus, pipeline, PIPELINE);
}

int bus_gather(struct bus *bus, const struct bus_subject *subjects, size_t count, const struct bus_fields *fields, struct err *err)
{
	CLEANUP(questions_free) struct questions questions = {.v = calloc(count * fields->n + 1, sizeof *questions.v)};
	struct pipeline pipeline = {0};
	if (!questions.v)
		return err_code(err, -ENOMEM, "systemd", NULL);
	int r = 0;
	for (size_t i = 0; i < count && r >= 0; i++)
		r = unit_ask(bus, &subjects[i], fields, &questions, &pipeline);
	if (r >= 0)
		r = pipeline_drain(bus, &pipeline, 0);
	return r < 0 ? call_failed(r, &SD_BUS_ERROR_NULL, "Get", count == 1 ? subjects[0].unit : NULL, err) : 0;
}

/* ---- signals ---- */

static int job_removed(sd_bus_message *message, void *data, sd_bus_error *ret_error)
{
	(void)ret_error;
	struct bus *bus = data;
	struct bus_event event = {.kind = BUS_JOB_REMOVED};
	if (sd.bus_message_read(message, "uoss", NULL, &event.job, &event.unit, &event.result) >= 0)
		bus->listener(&event, bus->listener_data);
	return 0;
}

static int unit_removed(sd_bus_message *message, void *data, sd_bus_error *ret_error)
{
	(void)ret_error;
	struct bus *bus = data;
	struct bus_event event = {.kind = BUS_UNIT_CHANGED};
	if (sd.bus_message_read(message, "so", &event.unit, NULL) >= 0)
		bus->listener(&event, bus->listener_data);
	return 0;
}

/* One entry of the changed properties; those that nobody asks for are passed over. */
static int end_read_entry(sd_bus_message *message, struct bus_end *end)
{
	const char *name = NULL;
	int r = sd.bus_message_read_basic(message, 's', &name);
	if (r < 0)
		return r;
	int32_t *value = strcmp(name, "ExecMainCode") == 0 ? &end->code : strcmp(name, "ExecMainStatus") == 0 ? &end->status : NULL;
	end->told |= value != NULL;
	return value ? sd.bus_message_read(message, "v", "i", value) : sd.bus_message_skip(message, "v");
}

static int end_read(sd_bus_message *message, struct bus_end *end)
{
	int r = sd.bus_message_skip(message, "s");
	if (r >= 0)
		r = sd.bus_message_enter_container(message, 'a', "{sv}");
	while (r >= 0 && (r = sd.bus_message_enter_container(message, 'e', "sv")) > 0) {
		r = end_read_entry(message, end);
		if (r >= 0)
			r = sd.bus_message_exit_container(message);
	}
	return r;
}

static int properties_changed(sd_bus_message *message, void *data, sd_bus_error *ret_error)
{
	(void)ret_error;
	struct bus *bus = data;
	AUTO_FREE char *unit = NULL;
	struct bus_event event = {.kind = BUS_UNIT_CHANGED};
	if (sd.bus_path_decode(sd.bus_message_get_path(message), UNITS_PATH, &unit) <= 0)
		return 0;
	event.unit = unit;
	if (end_read(message, &event.end) < 0)
		event.end = (struct bus_end){0};
	bus->listener(&event, bus->listener_data);
	return 0;
}

/* A job's end names its unit behind a number, and sd-bus compares no argument behind one: so the ends of all jobs are heard. */
static int match_jobs(struct bus *bus)
{
	int r = bus->hears_jobs ? 0 : sd.bus_match_signal(bus->bus, NULL, bus->sender, MANAGER_PATH, MANAGER_INTERFACE, "JobRemoved", job_removed, bus);
	bus->hears_jobs = r >= 0;
	return r;
}

static int match_removal(struct bus *bus, const char *unit)
{
	char rule[768];
	int n = snprintf(rule, sizeof rule, "type='signal',%s%s%spath='" MANAGER_PATH "',interface='" MANAGER_INTERFACE "',member='UnitRemoved',arg0='%s'",
			 bus->sender ? "sender='" : "", bus->sender ? bus->sender : "", bus->sender ? "'," : "", unit);
	return n < 0 || (size_t)n >= sizeof rule ? -ENAMETOOLONG : sd.bus_add_match(bus->bus, NULL, rule, unit_removed, bus);
}

/* A manager sends its signals only to those who have asked for them, once. */
static int subscribe(struct bus *bus, struct err *err)
{
	int r = bus->subscribed ? 0 : bus_call(bus, &(struct bus_method){.member = "Subscribe"}, NULL, 0, err);
	bus->subscribed = bus->subscribed || r == 0;
	return r;
}

int bus_listen(struct bus *bus, const char *unit, bus_listener listener, void *data, struct err *err)
{
	AUTO_FREE char *path = NULL;
	bus->listener = listener;
	bus->listener_data = data;
	int r = sd.bus_path_encode(UNITS_PATH, unit, &path);
	if (r >= 0)
		r = match_jobs(bus);
	if (r >= 0)
		r = match_removal(bus, unit);
	if (r >= 0)
		r = sd.bus_match_signal(bus->bus, NULL, bus->sender, path, PROPERTIES_INTERFACE, "PropertiesChanged", properties_changed, bus);
	if (r < 0)
		return call_failed(r, &SD_BUS_ERROR_NULL, "AddMatch", NULL, err);
	return subscribe(bus, err);
}

static int match_all(struct bus *bus)
{
	char rule[512];
	int n = snprintf(rule, sizeof rule, "type='signal',%s%s%spath_namespace='" UNITS_PATH "',interface='" PROPERTIES_INTERFACE "',member='PropertiesChanged'",
			 bus->sender ? "sender='" : "", bus->sender ? bus->sender : "", bus->sender ? "'," : "");
	return n < 0 || (size_t)n >= sizeof rule ? -ENAMETOOLONG : sd.bus_add_match(bus->bus, NULL, rule, properties_changed, bus);
}

int bus_listen_all(struct bus *bus, bus_listener listener, void *data, struct err *err)
{
	bus->listener = listener;
	bus->listener_data = data;
	int r = match_jobs(bus);
	if (r >= 0)
		r = sd.bus_match_signal(bus->bus, NULL, bus->sender, MANAGER_PATH, MANAGER_INTERFACE, "UnitRemoved", unit_removed, bus);
	if (r >= 0)
		r = match_all(bus);
	return r < 0 ? call_failed(r, &SD_BUS_ERROR_NULL, "AddMatch", NULL, err) : subscribe(bus, err);
}

int bus_descriptor(struct bus *bus)
{
	return sd.bus_get_fd(bus->bus);
}

int bus_process(struct bus *bus, struct deadline until, struct err *err)
{
	int r, noted = interrupt_noted();
	while ((r = sd.bus_process(bus->bus, NULL)) == 0) {
		int64_t left = deadline_left_ns(until);
		if (left <= 0)
			return 0;
		r = sd.bus_wait(bus->bus, (uint64_t)left / 1000 + 1);
		if (r == -EINTR && interrupt_noted() == noted)
			r = 0;
		if (r < 0)
			break;
	}
	return r < 0 ? call_failed(r, &SD_BUS_ERROR_NULL, "waiting", NULL, err) : 1;
}
