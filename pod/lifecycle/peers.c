#include "pod/lifecycle/peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/crew.h"
#include "pod/system/claims_file.h"
#include "pod/system/plane_scan.h"
#include "pod/system/records.h"

/* Keeping what was read costs about as much as reading so many. */
#define WORTH_KEEPING 64

struct peer_look {
	struct session *session;
	const struct plane_entry *entries;
	const struct pod_name *but;
	struct claims_kept kept;
	struct claim *claims; /* of each entry */
	bool *known;	      /* whether its claim bears a stamp */
	bool *fresh;	      /* whether it was read now */
};

static void read_claim(const struct record *record, struct claim *claim)
{
	const char *root = record_get(record, "ROOT_ID"), *text = record_get(record, "PORT");
	if (!text || port_parse(text, &claim->port, NULL) < 0)
		claim->port = 0;
	(void)snprintf(claim->root, sizeof claim->root, "%s", root ? root : "");
}

static int look(void *context, size_t i, struct err *err)
{
	const struct peer_look *peers = context;
	const struct plane_entry *peer = &peers->entries[i];
	struct claim *claim = &peers->claims[i];
	AUTO_RECORD struct record record = {0};
	bool listed = peer->traces & TRACE_LISTED;
	(void)err;
	if (!(peer->traces & TRACE_RECORD) || (peers->but && strcmp(peer->name.text, peers->but->text) == 0))
		return 0;
	peers->known[i] = listed && record_stamp(&peers->session->pods_dir, &peer->name, &claim->stamp) == 0;
	const struct claim *still = peers->known[i] ? claims_still(&peers->kept, &claim->stamp) : NULL;
	if (still) {
		*claim = *still;
		return 0;
	}
	peers->fresh[i] = true;
	if (record_load_listed(&peers->session->pods_dir, &peer->name, listed, &record, NULL) < 0)
		peers->known[i] = false;
	else
		read_claim(&record, claim);
	return 0;
}

static int take(struct session *session, const struct claim *claim, struct port_set *claimed, struct err *err)
{
	if (claim->port)
		port_set_add(claimed, claim->port);
	return *claim->root ? session_check_root(session, claim->root, err) : 0;
}

static void keep(const struct peer_look *peers, size_t n, const struct lock *plane)
{
	AUTO_CLAIMS struct claims claims = {.v = calloc(n, sizeof *claims.v)};
	size_t fresh = 0;
	for (size_t i = 0; claims.v && i < n; i++) {
		fresh += peers->fresh[i];
		if (peers->known[i])
			claims.v[claims.n++] = peers->claims[i];
	}
	if (fresh >= WORTH_KEEPING)
		claims_store(plane, &claims);
}

int peers_look(struct session *session, const struct pod_name *but, const struct lock *plane, struct port_set *claimed, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	struct pin nowhere = PIN_NONE;
	struct crew crew;
	int r = plane_scan(&nowhere, &session->pods_dir, session->around.plane.prefix, &entries, err);
	if (r < 0)
		return r;
	AUTO_FREE struct claim *claims = calloc(entries.n + 1, sizeof *claims);
	AUTO_FREE bool *known = calloc(2 * (entries.n + 1), sizeof *known);
	if (!claims || !known)
		return err_code(err, -ENOMEM, "look", NULL);
	struct peer_look peers = {.session = session, .entries = entries.v, .but = but, .claims = claims, .known = known, .fresh = known + entries.n + 1};
	if (plane)
		claims_load(plane, &peers.kept);
	crew_begin(&crew, entries.n, look, &peers);
	r = crew_end(&crew, err);
	if (r == 0 && plane)
		keep(&peers, entries.n, plane);
	claims_kept_free(&peers.kept);
	for (size_t i = 0; r == 0 && i < entries.n; i++)
		r = take(session, &claims[i], claimed, err);
	return r;
}
