#include "pod/lifecycle/peers.h"

#include <string.h>

#include "pod/system/plane_scan.h"
#include "pod/system/records.h"

static int look(struct session *session, const struct plane_entry *peer, struct port_set *claimed, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	int port = 0;
	if (record_load_listed(&session->pods_dir, &peer->name, peer->traces & TRACE_LISTED, &record, NULL) < 0)
		return 0;
	const char *root = record_get(&record, "ROOT_ID"), *text = record_get(&record, "PORT");
	if (text && port_parse(text, &port, NULL) == 0)
		port_set_add(claimed, port);
	return root ? session_check_root(session, root, err) : 0;
}

int peers_look(struct session *session, const struct pod_name *but, struct port_set *claimed, struct err *err)
{
	AUTO_ENTRIES struct plane_entries entries = {0};
	struct pin nowhere = PIN_NONE;
	int r = plane_scan(&nowhere, &session->pods_dir, session->around.plane.prefix, &entries, err);
	for (size_t i = 0; r == 0 && i < entries.n; i++)
		if ((entries.v[i].traces & TRACE_RECORD) && (!but || strcmp(entries.v[i].name.text, but->text) != 0))
			r = look(session, &entries.v[i], claimed, err);
	return r;
}
