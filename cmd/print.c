#include "cmd/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "fsops/memory_stream.h"
#include "pod/model/refusal.h"
#include "pod/model/text.h"

static int write_error;

static void remember(bool failed)
{
	if (failed && !write_error)
		write_error = errno ? errno : EIO;
}

void print_out(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	remember(vprintf(format, arguments) < 0);
	va_end(arguments);
}

void print_text(const char *bytes, size_t len)
{
	char safe[8192];
	size_t n = text_escape(bytes, len, safe, sizeof safe);
	remember(fwrite(safe, 1, n, stdout) != n);
}

void print_escaped(const char *bytes, size_t len)
{
	remember(fwrite(bytes, 1, len, stdout) != len);
}

void print_blanks(size_t count)
{
	static const char blanks[] = "                                ";
	for (size_t most = sizeof blanks - 1; count; count -= count < most ? count : most)
		print_escaped(blanks, count < most ? count : most);
}

void print_json(struct json *json)
{
	AUTO_JSON struct json *owned = json;
	AUTO_FREE char *text = owned && !json_lost_something() ? json_dump(owned, 0) : NULL;
	if (!text) {
		errno = ENOMEM;
		remember(true);
		return;
	}
	remember(puts(text) < 0);
}

void json_line_begin(struct json_line *line)
{
	*line = (struct json_line){0};
	line->stream = open_memstream(&line->text, &line->len);
	line->lost = !line->stream || putc('[', line->stream) < 0;
}

void json_line_add(struct json_line *line, struct json *item)
{
	AUTO_JSON struct json *owned = item;
	AUTO_FREE char *text = owned && !json_lost_something() && !line->lost ? json_dump(owned, 0) : NULL;
	line->lost = !text || (line->count++ && putc(',', line->stream) < 0) || fputs(text, line->stream) < 0;
}

void json_line_print(struct json_line *line)
{
	if (line->stream) {
		line->lost |= fputs("]\n", line->stream) < 0;
		line->lost |= !memory_stream_end(line->stream, &line->text);
		line->stream = NULL;
	}
	if (line->lost)
		errno = ENOMEM;
	remember(line->lost || fputs(line->text, stdout) < 0);
}

void json_line_free(struct json_line *line)
{
	if (line->stream)
		(void)fclose(line->stream);
	free(line->text);
}

static void line_to_stderr(const char *head, const char *bytes, size_t len)
{
	char safe[8192];
	size_t n = text_escape(bytes, len, safe, sizeof safe);
	(void)fprintf(stderr, "%s%.*s\n", head, (int)n, safe);
}

void print_note(const char *format, ...)
{
	char line[4096];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	line_to_stderr("kirocrew-pod: ", line, n < 0 ? 0 : strlen(line));
}

void print_err(const struct err *err)
{
	char sentence[4608];
	err_sentence(err, sentence, sizeof sentence);
	line_to_stderr("kirocrew-pod: ", sentence, strlen(sentence));
}

int print_not_runnable(const struct err *err)
{
	print_err(err);
	return err->code == -ENOENT ? 127 : 126;
}

void print_tail(const char *bytes)
{
	while (bytes && *bytes) {
		size_t len = strcspn(bytes, "\n");
		line_to_stderr("  | ", bytes, len);
		bytes += len + (bytes[len] == '\n');
	}
}

bool print_flush(void)
{
	errno = 0;
	remember(fflush(stdout) != 0);
	return !write_error;
}

int print_end(int status)
{
	errno = 0;
	remember(fflush(stdout) != 0);
	if (!write_error || write_error == EPIPE)
		return status;
	print_note("standard output cannot be written: %s", strerror(write_error));
	return status ? status : EXIT_FAILED;
}
