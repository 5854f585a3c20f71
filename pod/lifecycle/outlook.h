/* Waiting for the next change of what `look_all` tells: files of the root and the pods dir, and units. Whether a pod answers tells nobody: that is looked at. */
#pragma once

#include "pod/lifecycle/look.h"
#include "pod/system/watch.h"

struct outlook {
	struct watch_set watch;
	int directories; /* -1: nothing tells of them */
	int output;      /* -1: nobody would miss what is not read */
};
#define OUTLOOK_NONE ((struct outlook){.directories = -1, .output = -1})
/* To be opened before the look after which it is waited. `output`: where pictures go. */
int outlook_open(struct session *session, int output, struct outlook *ret_outlook, struct err *err);
void outlook_close(struct outlook *outlook);
#define AUTO_OUTLOOK __attribute__((cleanup(outlook_close)))

/* -EPIPE, and nothing in *err: nobody reads the output any more. Until something has changed, or there is a reason to look again: often while a pod is on its way, now and then for those that only an answer tells of. */
int outlook_await(struct session *session, const struct outlook *outlook, const struct sights *seen, struct err *err);
