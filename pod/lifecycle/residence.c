#include "pod/lifecycle/residence.h"

#include <errno.h>
#include <unistd.h>

#include "pod/model/refusal.h"
#include "pod/system/home_look.h"
#include "pod/system/homes.h"
#include "pod/system/records.h"

void residence_free(struct residence *residence)
{
	spec_free(&residence->spec);
	pin_close(&residence->home);
	environment_free(&residence->payload);
	environment_free(&residence->agent);
}

static int read_spec(struct session *session, struct residence *residence, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	AUTO_INI struct ini own = {0};
	struct err why = {0};
	int r = session->pods_dir.fd < 0 ? -ENOENT : record_load(&session->pods_dir, &residence->name, &record, &why);
	if (r == -ENOENT)
		return refuse(err, REFUSAL_NO_SUCH_POD, residence->name.text, NULL);
	if (r < 0)
		return *err = why, r;
	r = spec_from_record(&record, &residence->spec, err);
	if (r == 0 && residence->spec.checkout)
		r = checkout_ini_read(residence->spec.checkout, &own, err);
	return r < 0 ? r : ini_merge(&session->around.ini, &own, err);
}

static int pin_home(struct session *session, struct residence *residence, struct err *err)
{
	enum home_kind kind = HOME_ABSENT;
	int64_t made = 0;
	int r = home_look(&session->root, &residence->name, residence->spec.home_identity, true, &kind, &made, err);
	if (r < 0)
		return r;
	if (kind == HOME_ABSENT)
		return refuse(err, REFUSAL_NOT_PROVISIONED, residence->name.text, "it has no home yet");
	if (kind == HOME_REPLACED)
		return refuse(err, REFUSAL_NOT_THE_POD, residence->paths.home, "another directory has its name");
	return home_open(&session->root, &residence->name, &residence->home, err);
}

int residence_environment(const struct session *session, struct residence *residence, struct err *err)
{
	AUTO_ENVIRONMENT struct environment base = {0};
	int r = environment_copy(environ, &base, err);
	if (r == 0)
		r = environment_for_payload(&session->around.plane, &residence->name, &residence->spec, &residence->paths, &base, &residence->payload, err);
	return r < 0 ? r : environment_for_agent(&residence->payload, &residence->paths, &residence->agent, err);
}

int residence_open(struct session *session, const struct pod_name *name, struct residence *ret_residence, struct err *err)
{
	AUTO_RESIDENCE struct residence residence = {.name = *name, .home = PIN_NONE};
	int r = read_spec(session, &residence, err);
	if (r == 0)
		r = pod_paths_make(&session->around.plane, name, &residence.paths, err);
	if (r == 0)
		r = pin_home(session, &residence, err);
	if (r == 0)
		r = home_check_rooms(&residence.home, err);
	if (r == 0)
		r = residence_environment(session, &residence, err);
	if (r < 0)
		return r;
	*ret_residence = residence;
	residence = RESIDENCE_NONE;
	return 0;
}
