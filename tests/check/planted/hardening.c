/* For hardening.sh: an array and a copy, which a protected and fortified build would guard. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	char copy[64];
	strcpy(copy, argv[argc - 1]);
	return puts(copy) < 0;
}
