/* Why an execve(2) failed: the kernel's errno alone sends people the wrong way (ENOENT for a missing interpreter, EACCES for a directory). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fsops/cleanup.h"
#include "pod/system/spawn.h"

struct beginning {
	unsigned char bytes[256];
	size_t len;
};

static bool read_beginning(const char *program, struct beginning *ret)
{
	AUTO_CLOSE int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, ret->bytes, sizeof ret->bytes - 1, 0);
	if (n < 0)
		return false;
	ret->len = (size_t)n;
	ret->bytes[n] = 0;
	return true;
}

/* The interpreter of a "#!" line. */
static bool script_interpreter(const struct beginning *b, char *out, size_t size)
{
	const char *text = (const char *)b->bytes;
	if (b->len < 3 || strncmp(text, "#!", 2) != 0)
		return false;
	text += 2 + strspn(text + 2, " \t");
	size_t len = strcspn(text, " \t\r\n");
	/* A carriage return belongs to the name as the kernel sees it, and is what people do not see. */
	if (text[len] == '\r')
		len++;
	if (len == 0 || len >= size)
		return false;
	memcpy(out, text, len);
	out[len] = 0;
	return true;
}

static bool is_elf(const struct beginning *b)
{
	return b->len > 4 && memcmp(b->bytes, "\177ELF", 4) == 0;
}

static int missing(const char *program, int code, struct err *err)
{
	struct stat st;
	struct beginning b;
	char interpreter[200];
	if (lstat(program, &st) < 0)
		return err_set(err, code, "exec", program, "there is no such file");
	if (stat(program, &st) < 0)
		return err_set(err, code, "exec", program, "it is a link to nothing");
	if (!read_beginning(program, &b))
		return err_set(err, code, "exec", program, "the file or its interpreter is missing");
	if (script_interpreter(&b, interpreter, sizeof interpreter)) {
		size_t len = strlen(interpreter);
		if (interpreter[len - 1] != '\r')
			return err_set(err, code, "exec", program, "its interpreter %s is missing", interpreter);
		interpreter[len - 1] = 0;
		return err_set(err, code, "exec", program, "its first line ends with a carriage return, so the interpreter %s is not found",
			       interpreter);
	}
	return err_set(err, code, "exec", program, is_elf(&b) ? "its program loader (ELF interpreter) is missing" : "its interpreter is missing");
}

static int forbidden(const char *program, int code, struct err *err)
{
	struct stat st;
	struct statvfs fs;
	if (stat(program, &st) < 0)
		return err_set(err, code, "exec", program, "a directory on the way to it is closed to this user");
	if (S_ISDIR(st.st_mode))
		return err_set(err, code, "exec", program, "it is a directory");
	if (!S_ISREG(st.st_mode))
		return err_set(err, code, "exec", program, "it is not a regular file");
	if (statvfs(program, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
		return err_set(err, code, "exec", program, "it lies on a mount that forbids execution (noexec)");
	if (access(program, X_OK) < 0)
		return err_set(err, code, "exec", program, "it is not executable");
	struct beginning b;
	char interpreter[200];
	if (read_beginning(program, &b) && script_interpreter(&b, interpreter, sizeof interpreter))
		return err_set(err, code, "exec", program, "its interpreter %s may not be executed", interpreter);
	return err_set(err, code, "exec", program, "execution is not permitted");
}

static int wrong_format(const char *program, int code, struct err *err)
{
	struct beginning b;
	if (read_beginning(program, &b) && b.len == 0)
		return err_set(err, code, "exec", program, "it is an empty file");
	struct utsname here = {.machine = "this machine"};
	(void)uname(&here);
	if (read_beginning(program, &b) && is_elf(&b))
		return err_set(err, code, "exec", program, "it is a program for another architecture than %s", here.machine);
	return err_set(err, code, "exec", program, "it is neither a program nor a script with a #! line");
}

int exec_cause(const char *program, int code, struct err *err)
{
	switch (code) {
	case -ENOENT:
		return missing(program, code, err);
	case -EACCES:
	case -EPERM:
		return forbidden(program, code, err);
	case -ENOEXEC:
	case -EINVAL:
	case -ELIBBAD:
		return wrong_format(program, code, err);
	case -E2BIG:
		return err_set(err, code, "exec", program, "its arguments and environment are too long");
	default:
		return err_code(err, code, "exec", program);
	}
}
