#include "pod/lifecycle/peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/crew.h"
#include "pod/system/plane_scan.h"
#include "pod/system/records.h"

/* What the record of another pod claims: a port (0 none), and in which root its home is. */
struct claim {
	int port;
	char root[sizeof((struct spec *)0)->root_identity];
};

struct peer_look {
	struct session *session;
	const struct plane_entry *entries;
	const struct pod_name *but;
	struct claim *claims;
};

static int look(void *context, size_t i, struct err *err)
{
	const struct peer_look *peers = context;
	const struct plane_entry *peer = &peers->entries[i];
	struct claim *claim = &peers->claims[i];
	AUTO_RECORD struct record record = {0};
	(void)err;
	bool other = (peer->traces & TRACE_RECORD) && (!peers->but || strcmp(peer->name.text, peers->but->text) != 0);
	if (!other || record_load_listed(&peers->session->pods_dir, &peer->name, peer->traces & TRACE_LISTED, &record, NULL) < 0)
		return 0;
	const char *root = record_get(&record, "ROOT_ID"), *text = record_get(&record, "PORT");
	if (!text || port_parse(text, &claim->port, NULL) < 0)
		claim->port = 0;
	(void)snprintf(claim->root, sizeof claim->root, "%s", root ? root : "");
	return 0;
}

static int take(struct session *session, const struct claim *claim, struct port_set *claimed, struct err *err)
{
	if (claim->port)
		port_set_add(claimed, claim->port);
	return *claim->root ? session_check_root(session, claim->root, err) : 0;
}

int peers_look(struct session *session, const struct pod_name *but, struct port_set *claimed, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	struct pin nowhere = PIN_NONE;
	struct crew crew;
	int r = plane_scan(&nowhere, &session->pods_dir, session->around.plane.prefix, &entries, err);
	if (r < 0)
		return r;
	AUTO_FREE struct claim *claims = calloc(entries.n + 1, sizeof *claims);
	if (!claims)
		return err_code(err, -ENOMEM, "look", NULL);
	struct peer_look peers = {.session = session, .entries = entries.v, .but = but, .claims = claims};
	crew_begin(&crew, entries.n, look, &peers);
	r = crew_end(&crew, err);
	for (size_t i = 0; r == 0 && i < entries.n; i++)
		r = take(session, &claims[i], claimed, err);
	return r;
}
