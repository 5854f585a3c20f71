/* For the pass `sanitize`: reads behind the end of its memory. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	char *block = calloc((size_t)argc, 1);
	(void)argv;
	int found = block ? block[argc] : 0;
	free(block);
	return found;
}
