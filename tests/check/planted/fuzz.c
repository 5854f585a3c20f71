/* A fault behind four bytes, which the fuzzer has to find. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4 || memcmp(data, "TRAP", 4) != 0)
		return 0;
	char *room = malloc(size - 1);
	if (room)
		memcpy(room, data, size);
	free(room);
	return 0;
}
