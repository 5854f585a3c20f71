#include "pod/model/sandbox_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"
#include "unit_templates.h"

const char *sandbox_kind_name(enum sandbox_kind kind)
{
	static const char *const names[] = {
		[SANDBOX_UNAVAILABLE] = "unavailable", [SANDBOX_BWRAP] = "bwrap", [SANDBOX_SEATBELT] = "seatbelt", [SANDBOX_OFF] = "off"};
	return names[kind];
}

/* Every failure is the same one and sticks, so that it is asked for once at the end. */
struct builder {
	struct words words;
	bool failed;
};

static void add_one(struct builder *b, char *owned)
{
	char **grown = b->failed || !owned ? NULL : realloc(b->words.v, (b->words.n + 2) * sizeof *grown);
	if (!grown) {
		free(owned);
		b->failed = true;
		return;
	}
	grown[b->words.n++] = owned;
	grown[b->words.n] = NULL;
	b->words.v = grown;
}

/* Strings up to a NULL. */
static void add(struct builder *b, ...)
{
	va_list words;
	va_start(words, b);
	for (const char *word; (word = va_arg(words, const char *));)
		add_one(b, strdup(word));
	va_end(words);
}

static void add_number(struct builder *b, const char *option, int number)
{
	char text[16];
	(void)snprintf(text, sizeof text, "%d", number);
	add(b, option, text, NULL);
}

static void add_parameter(struct builder *b, const char *key, const char *value)
{
	char *text = NULL;
	if (asprintf(&text, "%s=%s", key, value) < 0)
		text = NULL;
	add(b, "-D", NULL);
	add_one(b, text);
}

static int finish(struct builder *b, struct words *ret_argv, struct err *err)
{
	if (b->failed) {
		words_free(&b->words);
		return err_code(err, -ENOMEM, "sandbox", NULL);
	}
	*ret_argv = b->words;
	return 0;
}

static void add_bind(struct builder *b, const struct sandbox_plan *plan, bool read_only, int fd, const char *path)
{
	if (plan->by_descriptor) {
		add_number(b, read_only ? "--ro-bind-fd" : "--bind-fd", fd);
		add(b, path, NULL);
	} else {
		add(b, read_only ? "--ro-bind" : "--bind", path, path, NULL);
	}
}

/* ld.so(8) and iconv(3), locale(7): what names code or files that are read before main. */
static bool obeyed_by_the_loader(const char *entry)
{
	static const char *const prefixes[] = {"LD_", "GLIBC_TUNABLES=", "GCONV_PATH=", "LOCPATH=", "MALLOC_", "GETCONF_DIR=", "NLSPATH="};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(entry, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static int split_environment(struct builder *b, const struct environment *all, struct environment *ret_environment, struct err *err)
{
	AUTO_ENVIRONMENT struct environment own = {0};
	int r = environment_copy(all->v, &own, err);
	for (size_t i = 0; r == 0 && i < all->n; i++) {
		const char *equals = strchr(all->v[i], '=');
		if (!equals || !obeyed_by_the_loader(all->v[i]))
			continue;
		AUTO_FREE char *name = strndup(all->v[i], (size_t)(equals - all->v[i]));
		if (!name)
			return err_code(err, -ENOMEM, "sandbox", NULL);
		environment_unset(&own, name);
		add(b, "--setenv", name, equals + 1, NULL);
	}
	if (r == 0) {
		*ret_environment = own;
		own = (struct environment){0};
	}
	return r;
}

int sandbox_plan_bwrap(const struct sandbox_plan *plan, struct words *ret_argv, struct environment *ret_environment, struct err *err)
{
	struct builder b = {0};
	struct environment environment = {0};
	add(&b, plan->program, "--unshare-user", "--unshare-pid", "--die-with-parent", "--cap-drop", "ALL", NULL);
	if (plan->new_session)
		add(&b, "--new-session", NULL);
	add(&b, "--dev-bind", "/", "/", "--proc", "/proc", NULL);
	add_bind(&b, plan, false, plan->home_fd, plan->home);
	add_bind(&b, plan, true, plan->run_fd, plan->run_canonical);
	if (plan->scratch)
		add_bind(&b, plan, false, plan->scratch_fd, plan->scratch_canonical);
	add(&b, "--chdir", plan->cwd, NULL);
	add_number(&b, "--info-fd", plan->info_fd);
	add_number(&b, "--block-fd", plan->block_fd);
	add_number(&b, "--sync-fd", plan->sync_fd);
	int r = split_environment(&b, plan->environment, &environment, err);
	if (r < 0) {
		words_free(&b.words);
		return r;
	}
	add(&b, "--", NULL);
	for (char *const *word = plan->argv; *word; word++)
		add(&b, *word, NULL);
	r = finish(&b, ret_argv, err);
	if (r < 0)
		environment_free(&environment);
	else
		*ret_environment = environment;
	return r;
}

int sandbox_plan_seatbelt(const struct sandbox_plan *plan, struct words *ret_argv, struct err *err)
{
	struct builder b = {0};
	char *profile = NULL;
	if (asprintf(&profile, "%s%s", template_seatbelt, plan->scratch ? template_seatbelt_scratch : "") < 0)
		return err_code(err, -ENOMEM, "sandbox", NULL);
	add(&b, plan->program, NULL);
	add_parameter(&b, "RUN", plan->run);
	add_parameter(&b, "RUN_CANONICAL", plan->run_canonical);
	if (plan->scratch)
		add_parameter(&b, "SCRATCH", plan->scratch_canonical);
	add(&b, "-p", NULL);
	add_one(&b, profile);
	for (char *const *word = plan->argv; *word; word++)
		add(&b, *word, NULL);
	return finish(&b, ret_argv, err);
}
