#include "pod/lifecycle/port_choice.h"

#include <stdio.h>
#include <unistd.h>

#include "pod/model/refusal.h"
#include "pod/system/network.h"

static void name_holder(int port, char *out, size_t size)
{
	AUTO_LISTENERS struct listeners *listeners = NULL;
	struct unit_group nobody = {0};
	struct listener listener = {0};
	if (listeners_read(port, &listeners, NULL) == 0 && listener_of(listeners, port, &nobody, &listener, NULL) == 0 && listener.pid)
		(void)snprintf(out, size, "port %d is held by pid %d (%s)", port, (int)listener.pid, listener.program);
	else if (port < 1024 && geteuid() != 0)
		(void)snprintf(out, size, "ports below 1024 need a privilege that you do not have");
	else
		(void)snprintf(out, size, "port %d is busy", port);
}

static int check_pin(const struct plane *plane, int port, struct err *err)
{
	char subject[16], holder[160];
	(void)snprintf(subject, sizeof subject, "%d", port);
	if (port == plane->live_port)
		return refuse(err, REFUSAL_LIVE_PORT, subject, NULL);
	bool is_free = false;
	int r = port_is_free(port, &is_free, err);
	if (r < 0 || is_free)
		return r;
	name_holder(port, holder, sizeof holder);
	return refuse(err, REFUSAL_PORT_BUSY, subject, "%s", holder);
}

static int usable(const struct plane *plane, const struct port_set *taken, int port, bool *ret_usable, struct err *err)
{
	*ret_usable = false;
	if (port == plane->live_port || port_set_has(taken, port))
		return 0;
	return port_is_free(port, ret_usable, err);
}

static int walk_band(const struct plane *plane, const struct pod_name *name, const struct port_set *taken, int *ret_port, struct err *err)
{
	int step = 0;
	for (int port = port_next(plane, name, taken, &step); port; port = port_next(plane, name, taken, &step)) {
		bool is_free = false;
		int r = port_is_free(port, &is_free, err);
		if (r < 0)
			return r;
		if (is_free) {
			*ret_port = port;
			return 0;
		}
	}
	return refuse(err, REFUSAL_PORT_BAND_FULL, name->text, "ports %d to %d", plane->base_port + 1, plane->base_port + plane->port_span);
}

int port_choose(const struct plane *plane, const struct pod_name *name, const struct port_set *taken, struct spec *spec, bool *ret_moved, struct err *err)
{
	*ret_moved = false;
	if (spec->port && !spec->port_auto)
		return check_pin(plane, spec->port, err);
	int wanted = spec->port ? spec->port : port_preferred(plane, name), port = wanted;
	bool stays = false;
	int r = usable(plane, taken, wanted, &stays, err);
	if (r == 0 && !stays)
		r = walk_band(plane, name, taken, &port, err);
	if (r < 0)
		return r;
	*ret_moved = port != wanted;
	spec->port = port;
	spec->port_auto = true;
	return 0;
}

bool port_is_taken(int port)
{
	bool is_free = true;
	return port_is_free(port, &is_free, NULL) == 0 && !is_free;
}
