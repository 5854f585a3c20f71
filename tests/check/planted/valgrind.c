/* For valgrind.sh: goes by what was never written. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	(void)argv;
	int *numbers = malloc((size_t)argc * sizeof *numbers);
	int found = numbers && numbers[argc - 1] == 42;
	free(numbers);
	return found;
}
