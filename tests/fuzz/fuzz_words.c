#include "fuzz.h"

#include "pod/model/text.h"

static void check_same(const struct words *a, const struct words *b)
{
	MUST(a->n == b->n && !a->v[a->n] && !b->v[b->n]);
	for (size_t i = 0; i < a->n; i++)
		MUST(!strcmp(a->v[i], b->v[i]));
}

/* Words that are quoted and joined split into themselves. */
static void check_quoting(const struct words *words)
{
	char *line = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&line, &len);
	MUST(stream);
	for (size_t i = 0; i < words->n; i++) {
		char *quoted = shell_quote(words->v[i]);
		MUST(quoted);
		(void)fprintf(stream, " %s", quoted);
		free(quoted);
	}
	MUST(fclose(stream) == 0);
	AUTO_WORDS struct words again = {0};
	MUST(words_split(line, &again, NULL) == 0);
	check_same(words, &again);
	free(line);
}

static void check_filling(const struct words *words)
{
	static const struct placeholders none = {.port = NULL, .home = NULL, .os_home = NULL, .name = NULL};
	static const struct placeholders all = {.port = "7", .home = "/h", .os_home = "/o", .name = "n"};
	AUTO_WORDS struct words same = {0}, filled = {0}, copy = {0};
	MUST(words_fill(words, &none, &same, NULL) == 0 && words_fill(words, &all, &filled, NULL) == 0);
	MUST(words_copy(words->v, words->n, &copy, NULL) == 0);
	check_same(words, &copy);
	MUST(same.n == words->n && filled.n == words->n);
	for (size_t i = 0; i < words->n; i++) {
		if (!strchr(words->v[i], '{'))
			MUST(!strcmp(words->v[i], filled.v[i]));
		if (!strstr(words->v[i], "{{"))
			MUST(!strcmp(words->v[i], same.v[i]) && !strstr(filled.v[i], "{port}"));
	}
	(void)words_use_port(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size);
	AUTO_WORDS struct words words = {0};
	if (words_split(text, &words, NULL) == 0) {
		size_t bytes = 0;
		for (size_t i = 0; i < words.n; i++)
			bytes += strlen(words.v[i]);
		MUST(bytes <= strlen(text) && !words.v[words.n]);
		check_quoting(&words);
		check_filling(&words);
	}
	free(text);
	return 0;
}
