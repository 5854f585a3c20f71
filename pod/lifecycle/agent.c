#include "pod/lifecycle/agent.h"

#include <stdio.h>
#include <stdlib.h>

bool agent_expected(const struct spec *spec, const struct ini *settings)
{
	return spec->exec.n == 0 || settings->agent_exec;
}

static int agent_words(const struct residence *residence, const struct ini *settings, struct words *ret_words, struct err *err)
{
	AUTO_WORDS struct words words = {0};
	char port[16];
	(void)snprintf(port, sizeof port, "%d", residence->spec.port);
	struct placeholders values = {
		.port = port, .home = residence->paths.home, .os_home = residence->paths.os_home, .name = residence->name.text};
	int r = words_split(settings->agent_exec ? settings->agent_exec : AGENT_DEFAULT, &words, err);
	return r < 0 ? err_prepend(err, "[agent] exec") : words_fill(&words, &values, ret_words, err);
}

int agent_probe(const struct residence *residence, const struct ini *settings, const struct sandbox_program *sandbox, struct viability *ret_viability,
		struct err *err)
{
	AUTO_WORDS struct words words = {0};
	int r = agent_words(residence, settings, &words, err);
	if (r < 0)
		return r;
	struct viability_input input = {
		.exec = &words,
		.environment = &residence->agent,
		.cwd = residence->paths.workspace,
		.home = &residence->home,
		.home_path = residence->paths.home,
		.sandbox = sandbox,
		.signed_out = settings->agent_signed_out,
		.limit_ms = settings->agent_timeout ? strtol(settings->agent_timeout, NULL, 10) * 1000 : VIABILITY_LIMIT_MS,
	};
	return viability_probe(&input, ret_viability, err);
}
