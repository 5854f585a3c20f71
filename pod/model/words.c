#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "pod/model/ascii.h"
#include "pod/model/refusal.h"
#include "pod/model/text.h"

void words_free(struct words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->v[i]);
	free(words->v);
	*words = (struct words){0};
}

static int no_memory(struct err *err)
{
	return err_code(err, -ENOMEM, "words", NULL);
}

/* Takes `word` over, also on failure and when it is NULL. */
static int words_take(struct words *words, char *word, struct err *err)
{
	char **v = word ? realloc(words->v, (words->n + 2) * sizeof *v) : NULL;
	if (!v) {
		free(word);
		return no_memory(err);
	}
	words->v = v;
	v[words->n++] = word;
	v[words->n] = NULL;
	return 0;
}

static void words_give(struct words *words, struct words *ret_words)
{
	*ret_words = *words;
	*words = (struct words){0};
}

static bool separates(char c)
{
	return ascii_blank(c) || c == '\n';
}

/* The quoted part that `at` stands on, unquoted into *out; NULL when its end is missing. */
static const char *quoted_part(const char *at, char **out)
{
	char quote = *at++;
	for (; *at != quote; at++) {
		if (quote == '"' && *at == '\\' && at[1] && strchr("$`\"\\\n", at[1])) {
			if (*++at == '\n')
				continue;
		} else if (!*at) {
			return NULL;
		}
		*(*out)++ = *at;
	}
	return at + 1;
}

/* One word from `at` into `out`; *ret_is_word is false when only joined lines were there. NULL: *why says what is missing. */
static const char *one_word(const char *at, char *out, bool *ret_is_word, const char **why)
{
	bool is_word = false;
	while (*at && !separates(*at)) {
		if (at[0] == '\\' && at[1] == '\n') {
			at += 2;
			continue;
		}
		is_word = true;
		if (*at == '\'' || *at == '"') {
			*why = *at == '"' ? "a \" has no end" : "a ' has no end";
			at = quoted_part(at, &out);
			if (!at)
				return NULL;
			continue;
		}
		if (*at == '\\' && !*++at) {
			*why = "a \\ stands at the end";
			return NULL;
		}
		*out++ = *at++;
	}
	*out = '\0';
	*ret_is_word = is_word;
	return at;
}

int words_split(const char *text, struct words *ret_words, struct err *err)
{
	AUTO_WORDS struct words words = {0};
	AUTO_FREE char *word = malloc(strlen(text) + 1);
	words.v = calloc(1, sizeof *words.v);
	if (!word || !words.v)
		return no_memory(err);
	for (const char *at = text;;) {
		while (separates(*at))
			at++;
		if (!*at)
			break;
		bool is_word;
		const char *why;
		at = one_word(at, word, &is_word, &why);
		if (!at)
			return refuse(err, REFUSAL_BAD_CONFIG, text, "it cannot be split into words: %s", why);
		int r = is_word ? words_take(&words, strdup(word), err) : 0;
		if (r < 0)
			return r;
	}
	words_give(&words, ret_words);
	return 0;
}

int words_copy(char *const *v, size_t n, struct words *ret_words, struct err *err)
{
	AUTO_WORDS struct words words = {.v = calloc(n + 1, sizeof *words.v)};
	if (!words.v)
		return no_memory(err);
	for (; words.n < n; words.n++)
		if (!(words.v[words.n] = strdup(v[words.n])))
			return no_memory(err);
	words_give(&words, ret_words);
	return 0;
}

int words_append(struct words *words, const char *word)
{
	char **bigger = realloc(words->v, (words->n + 2) * sizeof *bigger);
	if (!bigger)
		return -ENOMEM;
	words->v = bigger;
	if (!(bigger[words->n] = strdup(word)))
		return -ENOMEM;
	bigger[++words->n] = NULL;
	return 0;
}

/* The bytes that the piece at `at` takes (at least 1), and in *ret_value what stands for it; NULL: itself. */
static size_t placeholder(const char *at, const struct placeholders *values, const char **ret_value)
{
	const struct {
		const char *text, *value;
	} known[] = {
	    {"{{", "{"}, {"{port}", values->port}, {"{home}", values->home}, {"{os_home}", values->os_home}, {"{name}", values->name},
	};
	*ret_value = NULL;
	for (size_t i = 0; *at == '{' && i < sizeof known / sizeof *known; i++) {
		size_t len = strlen(known[i].text);
		if (!strncmp(at, known[i].text, len)) {
			*ret_value = known[i].value;
			return len;
		}
	}
	return 1;
}

/* Returns the length; writes when out is not NULL. */
static size_t fill(const char *in, const struct placeholders *values, char *out)
{
	size_t written = 0;
	while (*in) {
		const char *value;
		size_t taken = placeholder(in, values, &value);
		size_t len = value ? strlen(value) : taken;
		if (out)
			memcpy(out + written, value ? value : in, len);
		written += len;
		in += taken;
	}
	if (out)
		out[written] = '\0';
	return written;
}

int words_fill(const struct words *in, const struct placeholders *values, struct words *ret_words, struct err *err)
{
	AUTO_WORDS struct words words = {.v = calloc(in->n + 1, sizeof *words.v)};
	if (!words.v)
		return no_memory(err);
	for (; words.n < in->n; words.n++) {
		char *word = malloc(fill(in->v[words.n], values, NULL) + 1);
		if (!word)
			return no_memory(err);
		(void)fill(in->v[words.n], values, word);
		words.v[words.n] = word;
	}
	words_give(&words, ret_words);
	return 0;
}

char *word_without_placeholders(const char *text)
{
	size_t n = 0;
	char *word = malloc(2 * strlen(text) + 1);
	for (const char *at = text; word && *at; at++) {
		if (*at == '{')
			word[n++] = '{';
		word[n++] = *at;
	}
	if (word)
		word[n] = '\0';
	return word;
}

/* "$PORT" or "${PORT…", not "$PORTAL". */
static bool is_port_variable(const char *at)
{
	size_t brace = at[1] == '{';
	if (*at != '$' || strncmp(at + 1 + brace, "PORT", 4))
		return false;
	char next = at[5 + brace];
	return !ascii_alnum(next) && next != '_';
}

bool words_use_port(const struct words *words)
{
	static const struct placeholders marks = {.port = "", .home = NULL, .os_home = NULL, .name = NULL};
	for (size_t i = 0; i < words->n; i++)
		for (const char *at = words->v[i]; *at;) {
			const char *value;
			size_t taken = placeholder(at, &marks, &value);
			if (value == marks.port || is_port_variable(at))
				return true;
			at += taken;
		}
	return false;
}
