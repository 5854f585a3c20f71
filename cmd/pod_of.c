#include "cmd/pod_of.h"

#include <errno.h>

#include "pod/model/port.h"
#include "pod/model/refusal.h"
#include "pod/system/records.h"

int pod_of(const struct arguments *arguments, struct session *session, struct pod_name *ret_name, struct spec *ret_spec, struct err *err)
{
	AUTO_RECORD struct record record = {0};
	struct err why = {0};
	int r = argument_name(arguments, 0, ret_name, err);
	if (r == 0)
		r = session_open(arguments->config, session, err);
	if (r < 0)
		return r;
	r = session->pods_dir.fd < 0 ? -ENOENT : record_load(&session->pods_dir, ret_name, &record, &why);
	if (r == -ENOENT)
		return refuse(err, REFUSAL_NO_SUCH_POD, ret_name->text, NULL);
	if (r < 0) {
		*err = why;
		return r;
	}
	r = spec_from_record(&record, ret_spec, err);
	if (r < 0)
		return err_prepend(err, "%s/%s", session->around.plane.pods_dir, pod_file_record(ret_name).text);
	if (r == 0 && !ret_spec->port)
		ret_spec->port = port_preferred(&session->around.plane, ret_name);
	return r;
}
