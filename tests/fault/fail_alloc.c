/* Preloaded (LD_PRELOAD): the N-th allocation of the tool fails, or that one and all that follow. Counting begins with main().
 *   FAIL_ALLOC_TOOL  the program that is meant; others of the same environment are let alone
 *   FAIL_ALLOC_ROLE  control, boot, keeper or guard: by its words
 *   FAIL_ALLOC_AT    N from 1; 0: only counted
 *   FAIL_ALLOC_EVER  1: all that follow, too
 *   FAIL_ALLOC_TOLD  a file to which one line is appended when one fails */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
		      void *stack_end);

static int (*real_main)(int, char **, char **);
static bool armed, for_ever;
static long at, counted;
static const char *told;

static bool fails(void)
{
	long n = armed ? __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED) : 0;
	if (!n || n < at || (n > at && !for_ever))
		return false;
	int fd = n == at && told ? open(told, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0) {
		(void)!write(fd, "failed\n", 7);
		(void)close(fd);
	}
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	*ret = fails() ? NULL : __libc_memalign(alignment, size);
	return *ret ? 0 : ENOMEM;
}

static const char *role_of(char **argv)
{
	for (; *argv && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, "_run") == 0)
			return "boot";
		else if (strcmp(*argv, "_keep") == 0)
			return "keeper";
		else if (strcmp(*argv, "_watch") == 0)
			return "guard";
	return "control";
}

static bool is_meant(char **argv)
{
	char program[PATH_MAX];
	const char *tool = getenv("FAIL_ALLOC_TOOL"), *role = getenv("FAIL_ALLOC_ROLE");
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n < 0 ? 0 : n] = '\0';
	return tool && role && strcmp(program, tool) == 0 && strcmp(role_of(argv), role) == 0;
}

static int counting_main(int argc, char **argv, char **envp)
{
	const char *number = getenv("FAIL_ALLOC_AT"), *ever = getenv("FAIL_ALLOC_EVER");
	at = number ? atol(number) : 0;
	for_ever = ever && *ever == '1';
	told = getenv("FAIL_ALLOC_TOLD");
	armed = at > 0 && is_meant(argv);
	return real_main(argc, argv, envp);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
		      void *stack_end)
{
	__typeof__(&__libc_start_main) start;
	*(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
	real_main = main;
	return start(counting_main, argc, argv, init, fini, rtld_fini, stack_end);
}
