#include "fuzz.h"

#include "pod/model/claims.h"

/* What is understood can be used as a port, and is written as it was read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_CLAIMS struct claims claims = {0}, again = {0};
	char *bytes = NULL;
	size_t len = 0;
	if (claims_parse((const char *)data, size, &claims, NULL) < 0)
		return 0;
	for (size_t i = 0; i < claims.n; i++) {
		MUST(claims.v[i].port >= 0 && claims.v[i].port <= 65535 && strlen(claims.v[i].root) < sizeof claims.v[i].root);
		const struct claim *found = claims_find(&claims, &claims.v[i].stamp);
		MUST(!found || found->stamp.bytes == claims.v[i].stamp.bytes);
	}
	MUST(claims_render(&claims, &bytes, &len, NULL) == 0 && len == size && claims_parse(bytes, len, &again, NULL) == 0 && again.n == claims.n);
	free(bytes);
	return 0;
}
