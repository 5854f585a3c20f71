/* For static.sh: one fault for each tool. */
#include <stdlib.h>

int freed_twice(int n);
int beyond_the_end(void);
long wide_too_late(int n);
extern int *kept;
void keeps_what_ends(int n);

int freed_twice(int n)
{
	int *numbers = malloc(sizeof *numbers);
	if (!numbers)
		return n;
	*numbers = n;
	free(numbers);
	free(numbers);
	return n;
}

int beyond_the_end(void)
{
	int four[4] = {1, 2, 3, 4};
	return four[4];
}

void keeps_what_ends(int n)
{
	int local = n;
	kept = &local;
}

long wide_too_late(int n)
{
	return n * 86400;
}
