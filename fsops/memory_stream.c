#include "fsops/memory_stream.h"

bool memory_stream_end(FILE *stream, char *const *text)
{
	bool whole = !ferror(stream);
	whole &= fclose(stream) == 0;
	return whole && *text;
}
