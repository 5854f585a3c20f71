#include "pod/model/unit_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pod/model/unit_environment.h"
#include "unit_templates.h"

#define NUMBER(number) number_text((char[16]){0}, number)

static const char *number_text(char out[16], unsigned number)
{
	(void)snprintf(out, 16, "%u", number);
	return out;
}

int unit_text_template(const struct unit_input *input, char **ret_text, struct err *err)
{
	AUTO_ENVIRONMENT struct environment environment = {0};
	int r = unit_environment(input->plane, BACKEND_SYSTEMD, &environment, err);
	if (r < 0)
		return r;
	const char *const *assignments = (const char *const *)environment.v;
	const struct template_value program = TEMPLATE_ONE(input->program);
	const struct template_value values[SERVICE_PLACEHOLDERS] = {
	    [SERVICE_PLACEHOLDER_PLANE] = TEMPLATE_ONE(input->plane->root),
	    [SERVICE_PLACEHOLDER_PODS_DIR] = TEMPLATE_ONE(input->plane->pods_dir),
	    [SERVICE_PLACEHOLDER_START_LIMIT_SECS] = TEMPLATE_ONE(NUMBER(UNIT_START_LIMIT_SECS)),
	    [SERVICE_PLACEHOLDER_START_LIMIT_BURST] = TEMPLATE_ONE(NUMBER(UNIT_START_LIMIT_BURST)),
	    [SERVICE_PLACEHOLDER_ENVIRONMENT] = {assignments, environment.n},
	    [SERVICE_PLACEHOLDER_PROGRAM] = input->config_file ? TEMPLATE_NONE : program,
	    [SERVICE_PLACEHOLDER_CONFIGURED_PROGRAM] = input->config_file ? program : TEMPLATE_NONE,
	    [SERVICE_PLACEHOLDER_CONFIG] = {&input->config_file, input->config_file != NULL},
	    [SERVICE_PLACEHOLDER_RESTART_SECS] = TEMPLATE_ONE(NUMBER(UNIT_RESTART_SECS)),
	    [SERVICE_PLACEHOLDER_STOP_SECS] = TEMPLATE_ONE(NUMBER(input->stop_secs)),
	    [SERVICE_PLACEHOLDER_JOURNAL] = {(const char *const[]){"journal"}, input->log_directory == NULL},
	    [SERVICE_PLACEHOLDER_LOG_DIRECTORY] = {&input->log_directory, input->log_directory != NULL},
	};
	return template_fill(template_service, service_placeholders, SERVICE_PLACEHOLDERS, values, ret_text, err);
}

int unit_text_drop_in(const struct spec *spec, char **ret_text, struct err *err)
{
	const char *memory_max = spec->memory_max, *cpu_quota = spec->cpu_quota, *stop_secs = spec->stop_secs;
	if (!*memory_max && !*cpu_quota && !*stop_secs) {
		*ret_text = NULL;
		return 0;
	}
	const struct template_value values[DROP_IN_PLACEHOLDERS] = {
	    [DROP_IN_PLACEHOLDER_MEMORY_MAX] = {&memory_max, *memory_max != '\0'},
	    [DROP_IN_PLACEHOLDER_CPU_QUOTA] = {&cpu_quota, *cpu_quota != '\0'},
	    [DROP_IN_PLACEHOLDER_STOP_SECS] = {&stop_secs, *stop_secs != '\0'},
	};
	return template_fill(template_drop_in, drop_in_placeholders, DROP_IN_PLACEHOLDERS, values, ret_text, err);
}

/* The plane's line, to its end; NULL when there is none. */
static const char *plane_line(const char *text, size_t *ret_len)
{
	static const char mark[] = "# plane: ";
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, mark, sizeof mark - 1) == 0) {
			*ret_len = strcspn(line, "\n");
			return line;
		}
	}
	return NULL;
}

bool unit_text_same_plane(const char *text, const char *rendered)
{
	size_t len, rendered_len;
	const char *line = plane_line(text, &len), *expected = plane_line(rendered, &rendered_len);
	return line && expected && len == rendered_len && memcmp(line, expected, len) == 0;
}

/* One word of put_quoted, from its opening quote; NULL when it is none, else what follows its closing quote. */
static const char *unquote(const char *at, char *out, size_t size)
{
	size_t n = 0;
	if (*at++ != '"')
		return NULL;
	while (*at && *at != '"' && *at != '\n' && n + 1 < size) {
		char c = *at++;
		if (c == '\\' && *at == 'x') {
			char digits[3] = {0};
			(void)snprintf(digits, sizeof digits, "%.2s", at + 1);
			if (strspn(digits, "0123456789abcdef") != 2)
				return NULL;
			c = (char)strtol(digits, NULL, 16);
			at += 3;
		} else if (c == '\\') {
			c = *at++;
		}
		if (!c)
			return NULL;
		out[n++] = c;
	}
	out[n] = '\0';
	return *at == '"' ? at + 1 : NULL;
}

int unit_text_pods_dir(const char *text, char ret_path[PLANE_PATH_MAX])
{
	char root[PLANE_PATH_MAX], pods_dir[PLANE_PATH_MAX];
	size_t len;
	const char *line = plane_line(text, &len);
	if (!line)
		return -ENOENT;
	const char *at = unquote(line + strlen("# plane: "), root, sizeof root);
	if (!at || *at != ' ' || !unquote(at + 1, pods_dir, sizeof pods_dir))
		return -EBADMSG;
	memcpy(ret_path, pods_dir, strlen(pods_dir) + 1);
	return 0;
}

/* ExecStart="/a/b" …: in a program's path nothing is escaped but %, which is doubled. */
int unit_text_program(const char *text, char ret_path[PLANE_PATH_MAX])
{
	char path[PLANE_PATH_MAX];
	const char *at = strstr(text, "\nExecStart=\"");
	size_t n = 0;
	if (!at)
		return -EBADMSG;
	for (at += strlen("\nExecStart=\""); *at && *at != '"' && *at != '\n' && n + 1 < sizeof path; at++) {
		path[n++] = *at;
		at += at[0] == '%' && at[1] == '%';
	}
	if (*at != '"')
		return -EBADMSG;
	path[n] = '\0';
	memcpy(ret_path, path, n + 1);
	return 0;
}
