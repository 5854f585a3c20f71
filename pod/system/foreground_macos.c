#include <errno.h>

#include "pod/system/foreground.h"

/* Nobody could end the pod of a `run` that was killed, so there is no `run`. */
int foreground_begin(struct foreground *ret_foreground, struct err *err)
{
	(void)ret_foreground;
	return err_set(err, -ENOTSUP, "run", NULL, "it needs Linux, where a pod can be tied to a process; use `up` and `down`");
}

void foreground_end(struct foreground *foreground)
{
	(void)foreground;
}

int foreground_asked_to_end(const struct foreground *foreground)
{
	(void)foreground;
	return 0;
}

int foreground_run(struct foreground *foreground, const char *program, char *const *argv, char *const *envp, int *ret_status, struct err *err)
{
	(void)program, (void)argv, (void)envp, (void)ret_status;
	return foreground_begin(foreground, err);
}
