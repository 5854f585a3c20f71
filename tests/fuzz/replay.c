/* Runs a target over every file of the directories (or the files) on the command line, and over each of their beginnings when they are short.
 * Fails when there is nothing to run. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

#define CUT_EVERYWHERE_MAX 512

static size_t ran;

/* Each input in memory of its own size, so that the sanitizer sees a read past its end. */
static void run(const char *bytes, size_t len)
{
	uint8_t *input = malloc(len ? len : 1);
	MUST(input);
	memcpy(input, bytes, len);
	(void)LLVMFuzzerTestOneInput(input, len);
	free(input);
	ran++;
}

static void run_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	char *bytes = NULL;
	size_t len = 0;
	MUST(file);
	FILE *memory = open_memstream(&bytes, &len);
	MUST(memory);
	for (int c; (c = fgetc(file)) != EOF;)
		(void)fputc(c, memory);
	MUST(fclose(memory) == 0 && fclose(file) == 0);
	run(bytes, len);
	for (size_t cut = 0; cut < len && len <= CUT_EVERYWHERE_MAX; cut++)
		run(bytes, cut);
	free(bytes);
}

static void run_path(const char *path)
{
	struct stat st;
	MUST(stat(path, &st) == 0);
	if (!S_ISDIR(st.st_mode)) {
		run_file(path);
		return;
	}
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, NULL, alphasort);
	MUST(count >= 0);
	for (int i = 0; i < count; i++) {
		char file[4096];
		if (entries[i]->d_name[0] != '.') {
			(void)snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
			run_path(file);
		}
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run_path(argv[i]);
	(void)printf("%zu inputs\n", ran);
	return ran ? 0 : 1;
}
