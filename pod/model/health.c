#include <stdio.h>
#include <string.h>

#include "pod/model/record.h"
#include "pod/model/refusal.h"

static bool path_valid(const char *path)
{
	if (*path != '/' || strlen(path) >= sizeof((struct health *)0)->path)
		return false;
	for (const char *c = path; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return true;
}

int health_parse(const char *text, struct health *ret_health, struct err *err)
{
	struct health health = {.kind = HEALTH_NONE};
	const char *path = NULL;
	if (!strcmp(text, "tcp"))
		health.kind = HEALTH_TCP;
	else if (!strcmp(text, "http"))
		path = "/";
	else if (!strncmp(text, "http:", 5))
		path = text + 5;
	else if (strcmp(text, "none"))
		return refuse(err, REFUSAL_BAD_CONFIG, text, "a health check is http, http:/PATH, tcp or none");
	if (path) {
		if (!path_valid(path))
			return refuse(err, REFUSAL_BAD_CONFIG, text,
				      "a health path begins with / and is at most %zu visible ASCII characters", sizeof health.path - 1);
		health.kind = HEALTH_HTTP;
		(void)snprintf(health.path, sizeof health.path, "%s", path);
	}
	*ret_health = health;
	return 0;
}

void health_render(const struct health *health, char *out, size_t size)
{
	if (health->kind == HEALTH_HTTP && strcmp(health->path, "/"))
		(void)snprintf(out, size, "http:%s", health->path);
	else
		(void)snprintf(out, size, "%s", health->kind == HEALTH_HTTP ? "http" : health->kind == HEALTH_TCP ? "tcp" : "none");
}
