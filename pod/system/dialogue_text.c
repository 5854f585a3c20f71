#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "pod/model/text.h"
#include "pod/system/dialogue.h"
#include "pod/system/spawn.h"

void tail_text(const struct tail *tail, size_t characters, char *out, size_t size)
{
	size_t from = tail->len, end = tail->len;
	while (end && strchr("\r\n \t", tail->bytes[end - 1]) && tail->bytes[end - 1])
		end--;
	from = end;
	for (size_t seen = 0; from && seen < characters && end - from < TAIL_BYTES; seen++)
		do
			from--;
		while (from && ((unsigned char)tail->bytes[from] & 0xc0) == 0x80);
	(void)text_escape(tail->bytes + from, end - from, out, size);
}

bool tail_mentions(const struct tail *tail, const char *text)
{
	char copy[2 * TAIL_BYTES + 1];
	if (!text || !*text)
		return false;
	for (size_t i = 0; i < tail->len; i++)
		copy[i] = tail->bytes[i] ? tail->bytes[i] : ' ';
	copy[tail->len] = '\0';
	return strcasestr(copy, text) != NULL;
}

void status_text(int status, char *out, size_t size)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (code > 128 && code <= 128 + 64)
		(void)snprintf(out, size, "signal %d (%s)", code - 128, sigdescr_np(code - 128) ? sigdescr_np(code - 128) : "unknown");
	else
		(void)snprintf(out, size, "exit status %d", code);
}

/* bwrap says which call failed in words only. */
bool exec_failed(const struct tail *complained, const char *program, char *out, size_t size)
{
	static const int causes[] = {ENOENT, EACCES, ENOEXEC, ENOTDIR, EISDIR, ELOOP, E2BIG, ENOMEM, ETXTBSY};
	struct err why = {0};
	if (!tail_mentions(complained, "bwrap: execvp "))
		return false;
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		if (tail_mentions(complained, strerrordesc_np(causes[i]))) {
			(void)exec_cause(program, -causes[i], &why);
			(void)text_escape(why.text, strlen(why.text), out, size);
			return true;
		}
	return false;
}
