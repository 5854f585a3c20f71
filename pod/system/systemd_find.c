#include "pod/system/systemd_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pod/model/plane.h"
#include "pod/model/refusal.h"
#include "pod/model/unit_map.h"

static void runtime_directory(char *out, size_t size)
{
	const char *given = secure_getenv("XDG_RUNTIME_DIR");
	if (given && *given == '/' && strlen(given) < 400)
		(void)snprintf(out, size, "%s", given);
	else
		(void)snprintf(out, size, "/run/user/%u", (unsigned)geteuid());
}

static bool is_directory(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Only what this user made is trusted: whoever answers on the socket gets our commands. */
static bool is_our_socket(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

static void host_look(const char *runtime, struct manager_host *host)
{
	struct stat st;
	*host = (struct manager_host){
		.uid = geteuid(),
		.runtime = runtime,
		.systemd_is_init = is_directory("/run/systemd/system"),
		.logind = is_directory("/run/systemd/users"),
	};
	if (stat(runtime, &st) == 0) {
		host->runtime_there = S_ISDIR(st.st_mode);
		host->runtime_owner = st.st_uid;
	}
}

/* dbus-daemon(1), "unix:path=": bytes outside this set are escaped. */
static void address_of_path(const char *path, char *out, size_t size)
{
	int used = snprintf(out, size, "unix:path=");
	for (const char *p = path; *p && used > 0 && (size_t)used < size; p++) {
		bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || strchr("-_/.\\*", *p);
		used += plain ? snprintf(out + used, size - (size_t)used, "%c", *p) :
				snprintf(out + used, size - (size_t)used, "%%%02x", (unsigned char)*p);
	}
}

static void add_socket(struct manager_addresses *addresses, const char *runtime, const char *name, bool peer)
{
	char path[512];
	int n = snprintf(path, sizeof path, "%s/%s", runtime, name);
	if (n < 0 || (size_t)n >= sizeof path || !is_our_socket(path))
		return;
	struct manager_address *address = &addresses->v[addresses->n++];
	address->peer = peer;
	if ((size_t)n < sizeof address->path)
		memcpy(address->path, path, (size_t)n + 1);
	address_of_path(path, address->text, sizeof address->text);
}

static void add_environment(struct manager_addresses *addresses)
{
	const char *given = secure_getenv("DBUS_SESSION_BUS_ADDRESS");
	struct manager_address *address = &addresses->v[addresses->n];
	if (!given || !*given || strlen(given) >= sizeof address->text)
		return;
	*address = (struct manager_address){.peer = false};
	(void)snprintf(address->text, sizeof address->text, "%s", given);
	addresses->n++;
}

static int advise(const struct manager_host *host, struct err *err)
{
	char sentence[512];
	manager_advice(host, sentence, sizeof sentence);
	return refuse(err, REFUSAL_NO_MANAGER, NULL, "%s", sentence);
}

int manager_find(bool crowd, struct manager_addresses *ret_addresses, struct err *err)
{
	char runtime[512];
	struct manager_host host;
	struct manager_addresses found = {0};
	runtime_directory(runtime, sizeof runtime);
	host_look(runtime, &host);
	if (host.runtime_there && host.runtime_owner != host.uid)
		return advise(&host, err);
	if (crowd)
		add_socket(&found, runtime, "bus", false);
	add_socket(&found, runtime, "systemd/private", true);
	if (!crowd)
		add_socket(&found, runtime, "bus", false);
	if (!found.n)
		add_environment(&found);
	if (!found.n)
		return advise(&host, err);
	*ret_addresses = found;
	return 0;
}

int manager_refuse(int why, struct err *err)
{
	char runtime[512];
	struct manager_host host;
	runtime_directory(runtime, sizeof runtime);
	host_look(runtime, &host);
	host.socket_there = true;
	host.connect_error = why;
	return advise(&host, err);
}
