#include "model_test.h"

#include "fsops/cleanup.h"
#include "pod/model/record.h"

static void parse(const char *text, struct record *ret_record)
{
	struct err err = {0};
	assert_done(record_parse(text, strlen(text), ret_record, &err), &err);
}

static void lines_are_read_as_the_contract_says(void **state)
{
	static const struct {
		const char *text, *key, *value; /* value NULL: not there */
	} cases[] = {
		{"K='v'\n", "K", "v"},
		{"K='v'", "K", "v"},
		{"K=v\n", "K", "v"},
		{"K=\"v\"\n", "K", "v"},
		{"  K\t=  ' v '  \n", "K", " v "},
		{"K='v'\r\n", "K", "v"},
		{"K='it's'\n", "K", "it's"},
		{"K='a\"\n", "K", "'a\""},
		{"K=''v''\n", "K", "'v'"},
		{"K='\"v\"'\n", "K", "\"v\""},
		{"K='\n", "K", "'"},
		{"K=''\n", "K", ""},
		{"K=\n", "K", ""},
		{"K=a=b\n", "K", "a=b"},
		{"K='1'\nK='2'\n", "K", "2"},
		{"K='1'\nL='x'\nK='2'\n", "L", "x"},
		{"# K='v'\n", "K", NULL},
		{"  #K='v'\n", "K", NULL},
		{"K='v' # no comment\n", "K", "'v' # no comment"},
		{"K\n", "K", NULL},
		{"='v'\n", "", NULL},
		{"\n\n \n", "K", NULL},
		{"", "K", NULL},
		{"k='v'\n", "K", NULL},
		{"K=\xff\xfe\n", "K", "\xff\xfe"},
		{"export K=v\n", "export K", "v"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO_RECORD struct record record = {.count = 0};
		parse(cases[i].text, &record);
		const char *value = record_get(&record, cases[i].key);
		if (!cases[i].value)
			assert_null(value);
		else
			assert_string_equal(value, cases[i].value);
	}
}

static void L23_texts_that_no_record_holds(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *why;
	} bad[] = {{"K='a\0b'\n", 8, "NUL"}, {"\0", 1, "NUL"}, {"K='a\rb'\n", 8, "carriage return"}, {"K\rL='a'\n", 8, "carriage return"}, {"K='v'\r\rL='w'", 12, "carriage return"}};
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct record record = {.count = 77};
		struct err err = {0};
		assert_refused(record_parse(bad[i].bytes, bad[i].len, &record, &err), &err, REFUSAL_BAD_CONFIG, bad[i].why);
		assert_int_equal(record.count, 77);
	}
}

static void bytes_and_keys_are_bounded(void **state)
{
	AUTO_FREE char *text = malloc(RECORD_BYTES_MAX + 1);
	AUTO_RECORD struct record record = {.count = 0};
	struct err err = {0};
	(void)state;
	assert_non_null(text);
	memset(text, '\n', RECORD_BYTES_MAX + 1);
	assert_refused(record_parse(text, RECORD_BYTES_MAX + 1, &record, &err), &err, REFUSAL_BAD_CONFIG, "65536 bytes");
	assert_done(record_parse(text, RECORD_BYTES_MAX, &record, &err), &err);
	size_t len = 0;
	for (int i = 0; i < 1025; i++) {
		if (i == 1024)
			assert_done(record_parse(text, len, &record, &err), &err);
		len += (size_t)sprintf(text + len, "K%d=%d\n", i, i);
	}
	assert_int_equal(record.count, 1024);
	struct record more;
	assert_refused(record_parse(text, len, &more, &err), &err, REFUSAL_BAD_CONFIG, "1024 keys");
}

static void unknown_keys_and_their_order_are_kept(void **state)
{
	static const char text[] = "# a comment\nFUTURE='x y'\nPORT=7000\njunk\nODD KEY=\"1\"\nPORT='7001'\nEMPTY=\n";
	AUTO_RECORD struct record record = {.count = 0};
	AUTO_FREE char *out = NULL;
	size_t len = 0;
	struct err err = {0};
	(void)state;
	parse(text, &record);
	assert_done(record_set(&record, "NEW", "n", &err), &err);
	assert_done(record_set(&record, "PORT", "8000", &err), &err);
	assert_done(record_render(&record, &out, &len, &err), &err);
	assert_string_equal(out, "FUTURE='x y'\nPORT='8000'\nODD KEY='1'\nEMPTY=''\nNEW='n'\n");
	assert_int_equal(len, strlen(out));
}

static void keys_are_removed(void **state)
{
	AUTO_RECORD struct record record = {.count = 0};
	struct err err = {0};
	(void)state;
	parse("A=1\nB=2\nC=3\n", &record);
	assert_done(record_set(&record, "B", NULL, &err), &err);
	assert_done(record_set(&record, "B", NULL, &err), &err);
	assert_int_equal(record.count, 2);
	assert_null(record_get(&record, "B"));
	assert_string_equal(record_get(&record, "C"), "3");
	assert_done(record_set(&record, "C", NULL, &err), &err);
	assert_done(record_set(&record, "A", NULL, &err), &err);
	assert_int_equal(record.count, 0);
}

static void L23_what_cannot_be_read_back_is_not_written(void **state)
{
	static const struct {
		char *key, *value;
	} bad[] = {{"K", "a\nb"}, {"K", "a\r"}, {"K", "x'\n[Service]\nExecStart='"}, {"", "v"}, {"#K", "v"}, {"A=B", "v"}, {"K\n", "v"}, {" K", "v"}, {"K\t", "v"}, {"K\r", "v"}};
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		AUTO_RECORD struct record record = {.count = 0};
		struct err err = {0};
		assert_refused(record_set(&record, bad[i].key, bad[i].value, &err), &err, REFUSAL_VALUE, NULL);
		assert_int_equal(record.count, 0);
		struct record_pair pair = {bad[i].key, bad[i].value};
		struct record forged = {&pair, 1};
		char *out = NULL;
		size_t len = 77;
		assert_refused(record_render(&forged, &out, &len, &err), &err, REFUSAL_VALUE, NULL);
		assert_null(out);
		assert_int_equal(len, 77);
	}
}

static void what_is_longer_than_the_reader_reads_is_not_written(void **state)
{
	AUTO_FREE char *value = malloc(RECORD_BYTES_MAX + 1);
	AUTO_RECORD struct record record = {.count = 0};
	AUTO_FREE char *out = NULL;
	size_t len = 0;
	struct err err = {0};
	(void)state;
	assert_non_null(value);
	memset(value, 'x', RECORD_BYTES_MAX);
	value[RECORD_BYTES_MAX - 5] = '\0';
	assert_done(record_set(&record, "K", value, &err), &err);
	assert_done(record_render(&record, &out, &len, &err), &err);
	assert_int_equal(len, RECORD_BYTES_MAX);
	value[RECORD_BYTES_MAX - 5] = 'x';
	value[RECORD_BYTES_MAX - 4] = '\0';
	assert_done(record_set(&record, "K", value, &err), &err);
	char *no = NULL;
	assert_refused(record_render(&record, &no, &len, &err), &err, REFUSAL_VALUE, "65536 bytes");
}

static void X20_values_come_back_byte_for_byte(void **state)
{
	static const char *const values[] = {"", " ", "'", "\"", "''", "'x'", "\"x\"", "it's", "a\\", "#x", "=", "\t", "\x1b[31m", "\xff", "ä", " 'x' ", "a;b", "$HOME"};
	(void)state;
	for (size_t i = 0; i < COUNT(values); i++) {
		AUTO_RECORD struct record record = {.count = 0}, back = {.count = 0};
		AUTO_FREE char *out = NULL;
		size_t len;
		struct err err = {0};
		assert_done(record_set(&record, "K", values[i], &err), &err);
		assert_done(record_render(&record, &out, &len, &err), &err);
		assert_done(record_parse(out, len, &back, &err), &err);
		assert_int_equal(back.count, 1);
		assert_string_equal(record_get(&back, "K"), values[i]);
	}
}

static void a_copy_is_its_own(void **state)
{
	AUTO_RECORD struct record record = {.count = 0}, copy = {.count = 0};
	struct err err = {0};
	(void)state;
	parse("A=1\nB=2\n", &record);
	assert_done(record_copy(&record, &copy, &err), &err);
	assert_done(record_set(&record, "A", "9", &err), &err);
	assert_string_equal(record_get(&copy, "A"), "1");
	assert_int_equal(copy.count, 2);
}

/* ---- meaning ---- */

static int spec_of(const char *text, struct spec *ret_spec, struct err *err)
{
	AUTO_RECORD struct record record = {.count = 0};
	parse(text, &record);
	return spec_from_record(&record, ret_spec, err);
}

static void KiroCrews_own_record_is_understood(void **state)
{
	AUTO_SPEC struct spec spec = {.port = 0};
	struct err err = {0};
	(void)state;
	assert_done(spec_of("CHECKOUT='/home/u/src'\nPORT='7933'\nPORT_AUTO='7933'\nSEED='minimal'\nAPPROVAL='reads'\nCRONS='1'\nEMBEDDINGS='0'\n", &spec, &err), &err);
	assert_string_equal(spec.id, "");
	assert_string_equal(spec.checkout, "/home/u/src");
	assert_int_equal(spec.exec.n, 0);
	assert_int_equal(spec.port, 7933);
	assert_true(spec.port_auto);
	assert_string_equal(spec.seed, "minimal");
	assert_int_equal(spec.approval, APPROVAL_READS);
	assert_true(spec.crons);
	assert_false(spec.embeddings);
	assert_int_equal(spec.created, 0);
	assert_int_equal(spec.backend, BACKEND_AUTO);
	assert_int_equal(spec.health.kind, HEALTH_HTTP);
	assert_string_equal(spec.health.path, "/api/health");
	assert_true(spec.health.kirocrew);
	assert_int_equal(spec.warnings.n, 0);
}

static void an_empty_record_has_the_defaults(void **state)
{
	static const char *const texts[] = {"", "PORT=\nPORT_AUTO=\nEXEC=''\nHEALTH=\nBACKEND=\nID=\nCHECKOUT=\nSEED=\nCRONS=\nEMBEDDINGS=\nCREATED=\nMEMORY_MAX=\nCPU_QUOTA=\nSTOP_SECS=\nHOME_ID=\nROOT_ID=\n"};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_SPEC struct spec spec = {.port = 9};
		struct err err = {0};
		assert_done(spec_of(texts[i], &spec, &err), &err);
		assert_int_equal(spec.port, 0);
		assert_false(spec.port_auto);
		assert_false(spec.crons);
		assert_true(spec.embeddings);
		assert_int_equal(spec.approval, APPROVAL_UNSET);
		assert_int_equal(spec.backend, BACKEND_AUTO);
		assert_int_equal(spec.warnings.n, 0);
		assert_string_equal(spec.home_identity, "");
	}
}

static void a_machines_choice_is_told_from_a_pin_as_text(void **state)
{
	static const struct {
		const char *text;
		bool machine;
	} cases[] = {{"PORT=7000\nPORT_AUTO=7000\n", true}, {"PORT=7001\nPORT_AUTO=7000\n", false}, {"PORT=7000\n", false},
		     {"PORT=7000\nPORT_AUTO=07000\n", false}, {"PORT=7000\nPORT_AUTO=\n", false}, {"PORT='7000'\nPORT_AUTO=\"7000\"\n", true}};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO_SPEC struct spec spec = {.port = 0};
		struct err err = {0};
		assert_done(spec_of(cases[i].text, &spec, &err), &err);
		assert_int_equal(spec.port_auto, cases[i].machine);
	}
	AUTO_SPEC struct spec spec = {.port = 0};
	struct err err = {0};
	assert_done(spec_of("PORT_AUTO=7000\n", &spec, &err), &err);
	assert_int_equal(spec.port, 0);
	assert_false(spec.port_auto);
}

static void X36_X56_unreadable_values_are_refused_by_key(void **state)
{
	static const struct {
		const char *text, *key;
	} cases[] = {
		{"PORT='0'\n", "PORT"},
		{"PORT='65536'\n", "PORT"},
		{"PORT='0x50'\n", "PORT"},
		{"PORT='08080'\n", "PORT"},
		{"PORT=' 80'\n", "PORT"},
		{"PORT='1e3'\n", "PORT"},
		{"PORT='-1'\n", "PORT"},
		{"PORT='79\n", "PORT"},
		{"EXEC='a b'\n", "EXEC"},
		{"EXEC='[]'\n", "EXEC"},
		{"EXEC='{}'\n", "EXEC"},
		{"EXEC='\"a\"'\n", "EXEC"},
		{"EXEC='[1]'\n", "EXEC"},
		{"EXEC='[\"a\",null]'\n", "EXEC"},
		{"EXEC='[\"\"]'\n", "EXEC"},
		{"EXEC='[\"a\",[\"b\"]]'\n", "EXEC"},
		{"EXEC='[\"a\\u0000b\"]'\n", "EXEC"},
		{"EXEC='[\"a\",\"b\n", "EXEC"},
		{"EXEC='[\"a\"] x'\n", "EXEC"},
		{"EXEC='[\"\xff\"]'\n", "EXEC"},
		{"HEALTH='https'\n", "HEALTH"},
		{"HEALTH='http:x'\n", "HEALTH"},
		{"BACKEND='upstart'\n", "BACKEND"},
		{"BACKEND='none'\n", "BACKEND"},
		{"ID='1'\n", "ID"},
		{"ID='0f8fad5b-d9cb-469f-a165-70867728950\n", "ID"},
		{"ID='0f8fad5b-d9cb-469f-a165-70867728950g'\n", "ID"},
		{"ID='0f8fad5b-d9cb-469f-a165-70867728950ee'\n", "ID"},
		{"ID='0f8fad5bxd9cb-469f-a165-70867728950e'\n", "ID"},
		{"ID='0f8fad5b-d9cb-469f-a165-7086772895:e'\n", "ID"},
		{"ID='0f8fad5b-d9cb-469f-a165-7086772895Ge'\n", "ID"},
		{"CHECKOUT='src'\n", "CHECKOUT"},
		{"CHECKOUT='~/src'\n", "CHECKOUT"},
		{"MEMORY_MAX='much'\n", "MEMORY_MAX"},
		{"MEMORY_MAX='4G %i'\n", "MEMORY_MAX"},
		{"CPU_QUOTA='2'\n", "CPU_QUOTA"},
		{"STOP_SECS='0'\n", "STOP_SECS"},
		{"STOP_SECS='3601'\n", "STOP_SECS"},
		{"STOP_SECS='soon'\n", "STOP_SECS"},
		{"HOME_ID='12 34'\n", "HOME_ID"},
		{"HOME_ID='1234567890123456789012345678901234567890123456789012345678901234'\n", "HOME_ID"},
		{"ROOT_ID='/'\n", "ROOT_ID"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spec spec = {.port = 77};
		struct err err = {0};
		assert_refused(spec_of(cases[i].text, &spec, &err), &err, REFUSAL_BAD_CONFIG, cases[i].key);
		assert_string_equal(err.subject, cases[i].key);
		assert_int_equal(spec.port, 77);
	}
}

static void L22_long_values_are_refused_never_cut(void **state)
{
	static const char *const keys[] = {"CHECKOUT", "SEED"};
	char text[PLANE_PATH_MAX + 64];
	(void)state;
	for (size_t i = 0; i < COUNT(keys); i++)
		for (size_t len = PLANE_PATH_MAX - 1; len <= PLANE_PATH_MAX; len++) {
			AUTO_SPEC struct spec spec = {.port = 0};
			struct err err = {0};
			int head = snprintf(text, sizeof text, "%s='/", keys[i]);
			memset(text + head, 'x', len - 1);
			(void)snprintf(text + head + len - 1, 3, "'\n");
			int r = spec_of(text, &spec, &err);
			if (len < PLANE_PATH_MAX)
				assert_done(r, &err);
			else
				assert_refused(r, &err, REFUSAL_BAD_CONFIG, keys[i]);
		}
}

static void X56_odd_words_take_the_safe_side_with_a_warning(void **state)
{
	static const struct {
		const char *text;
		enum approval approval;
		bool crons, embeddings;
		const char *warning;
	} cases[] = {
		{"APPROVAL='reads'\n", APPROVAL_READS, false, true, NULL},
		{"APPROVAL='yolo'\n", APPROVAL_YOLO, false, true, NULL},
		{"APPROVAL='interactive'\n", APPROVAL_INTERACTIVE, false, true, NULL},
		{"APPROVAL='YOLO'\n", APPROVAL_INTERACTIVE, false, true, "APPROVAL='YOLO' is unknown: interactive is forced"},
		{"APPROVAL='re\n", APPROVAL_INTERACTIVE, false, true, "APPROVAL"},
		{"APPROVAL=\n", APPROVAL_INTERACTIVE, false, true, "APPROVAL"},
		{"APPROVAL='\x1b[31m'\n", APPROVAL_INTERACTIVE, false, true, "APPROVAL='\\x1b[31m'"},
		{"CRONS='1'\n", APPROVAL_UNSET, true, true, NULL},
		{"CRONS='true'\n", APPROVAL_UNSET, true, true, NULL},
		{"CRONS='yes'\n", APPROVAL_UNSET, true, true, NULL},
		{"CRONS='on'\n", APPROVAL_UNSET, true, true, NULL},
		{"CRONS='0'\n", APPROVAL_UNSET, false, true, NULL},
		{"CRONS='off'\n", APPROVAL_UNSET, false, true, NULL},
		{"CRONS='2'\n", APPROVAL_UNSET, false, true, "CRONS='2' is unknown: it stays off"},
		{"CRONS='maybe'\n", APPROVAL_UNSET, false, true, "CRONS"},
		{"EMBEDDINGS='0'\n", APPROVAL_UNSET, false, false, NULL},
		{"EMBEDDINGS='false'\n", APPROVAL_UNSET, false, false, NULL},
		{"EMBEDDINGS='no'\n", APPROVAL_UNSET, false, false, NULL},
		{"EMBEDDINGS='off'\n", APPROVAL_UNSET, false, false, NULL},
		{"EMBEDDINGS='1'\n", APPROVAL_UNSET, false, true, NULL},
		{"EMBEDDINGS='never'\n", APPROVAL_UNSET, false, true, "EMBEDDINGS='never' is unknown: it stays on"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO_SPEC struct spec spec = {.port = 0};
		struct err err = {0};
		assert_done(spec_of(cases[i].text, &spec, &err), &err);
		assert_int_equal(spec.approval, cases[i].approval);
		assert_int_equal(spec.crons, cases[i].crons);
		assert_int_equal(spec.embeddings, cases[i].embeddings);
		assert_int_equal(spec.warnings.n, cases[i].warning ? 1 : 0);
		if (cases[i].warning)
			assert_non_null(strstr(spec.warnings.v[0], cases[i].warning));
	}
	AUTO_SPEC struct spec spec = {.port = 0};
	struct err err = {0};
	assert_done(spec_of("APPROVAL=?\nCRONS=?\nEMBEDDINGS=?\nCREATED=yesterday\n", &spec, &err), &err);
	assert_int_equal(spec.warnings.n, 3);
	assert_int_equal(spec.created, 0);
}

static void health_follows_from_the_payload_unless_it_is_said(void **state)
{
	static const struct {
		const char *text;
		enum health_kind kind;
		const char *path;
		bool kirocrew;
	} cases[] = {
		{"CHECKOUT=/c\n", HEALTH_HTTP, "/api/health", true},
		{"CHECKOUT=/c\nHEALTH=http:/x\n", HEALTH_HTTP, "/x", true},
		{"CHECKOUT=/c\nHEALTH=none\n", HEALTH_NONE, "", false},
		{"CHECKOUT=/c\nHEALTH=tcp\n", HEALTH_TCP, "", false},
		{"EXEC=[\"s\",\"{port}\"]\n", HEALTH_TCP, "", false},
		{"EXEC=[\"sh\",\"-c\",\"s $PORT\"]\n", HEALTH_TCP, "", false},
		{"EXEC=[\"s\"]\n", HEALTH_NONE, "", false},
		{"EXEC=[\"s\"]\nHEALTH=http\n", HEALTH_HTTP, "/", false},
		{"CHECKOUT=/c\nEXEC=[\"s\"]\nHEALTH=http:/api/health\n", HEALTH_HTTP, "/api/health", false},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO_SPEC struct spec spec = {.port = 0};
		struct err err = {0};
		assert_done(spec_of(cases[i].text, &spec, &err), &err);
		assert_int_equal(spec.health.kind, cases[i].kind);
		assert_string_equal(spec.health.path, cases[i].path);
		assert_int_equal(spec.health.kirocrew, cases[i].kirocrew);
	}
}

/* With a blank behind the bracket, an array is the parser's. */
static void plain_words_are_what_the_parser_reads(void **state)
{
	static const char *const arrays[] = {
		"\"a\"]", "\"a\",\"\",\"b c\"]", "\"\",\"a\"]", "\"a\" ,\"b\"]", "\"a\", \"b\"]", "\"a\",]", "\"a\"", "\"a", "\"", "", "]", "\"a\"]]", "\"a\"]x",
		"\"a\"\"b\"]", "\"a\\\\\"]", "\"a\\\"\"]", "\"\\u0061\"]", "\"\\u0000\"]", "\"\x7f\"]", "\"\xc3\xa4\"]", "\"\xc3\"]", "\"\t\"]", "a]", "1]", "\"a\",1]",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(arrays); i++) {
		char plain[64], parsed[64];
		AUTO_SPEC struct spec one = {.port = 0}, other = {.port = 0};
		(void)snprintf(plain, sizeof plain, "EXEC=[%s\n", arrays[i]);
		(void)snprintf(parsed, sizeof parsed, "EXEC=[ %s\n", arrays[i]);
		int r = spec_of(plain, &one, NULL);
		assert_int_equal(r, spec_of(parsed, &other, NULL));
		assert_int_equal(one.exec.n, other.exec.n);
		for (size_t k = 0; k < one.exec.n; k++)
			assert_string_equal(one.exec.v[k], other.exec.v[k]);
	}
}

static void health_checks_are_parsed_and_rendered(void **state)
{
	static const char *const good[] = {"http", "http:/a", "http:/a?b=c#d", "tcp", "none"};
	static const char *const bad[] = {"", "HTTP", "http:", "http:a", "http:/a b", "http:/a\n", "http:/\xc3\xa4", "http:/\x7f", "http:/a\r\nX: y", "tcp:80", "none ", "httpx", "https://x"};
	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct health health;
		struct err err = {0};
		char out[64];
		assert_done(health_parse(good[i], &health, &err), &err);
		health_render(&health, out, sizeof out);
		assert_string_equal(out, good[i]);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct health health = {.kind = HEALTH_TCP};
		struct err err = {0};
		assert_refused(health_parse(bad[i], &health, &err), &err, REFUSAL_BAD_CONFIG, "health");
		assert_int_equal(health.kind, HEALTH_TCP);
	}
	struct health slash;
	struct err err = {0};
	char out[16], text[2048] = "http:/";
	assert_done(health_parse("http:/", &slash, &err), &err);
	health_render(&slash, out, sizeof out);
	assert_string_equal(out, "http");
	memset(text + 6, 'x', 254);
	assert_done(health_parse(text, &slash, &err), &err);
	text[6 + 254] = 'x';
	assert_refused(health_parse(text, &slash, &err), &err, REFUSAL_BAD_CONFIG, "255");
}

static void limits_are_those_that_systemd_takes(void **state)
{
	static const char *const memory[] = {"1", "4096", "512M", "4G", "1T", "2P", "15E", "1K", "infinity", "1%", "50%", "100%", "18446744073709551614"};
	static const char *const no_memory[] = {"", "0", "0K", "0%", "101%", "-1", "4g", "4GB", "4 G", " 4G", "4G ", "1.5G", "G", "%", "04G", "+4G", "0x10", "16E",
						"18446744073709551615", "99999999999999999999999999999999999G", "infinity ", "Infinity", "4G\nExecStart=x", "1e3", "50%%"};
	static const char *const quota[] = {"1%", "50%", "200%", "1000000%"};
	static const char *const no_quota[] = {"", "0%", "%", "50", "-1%", "50 %", "1.5%", "1000001%", "050%", "infinity", "50%\n", "%%", "99999999999999999999999999999999999%"};
	(void)state;
	for (size_t i = 0; i < COUNT(memory); i++)
		assert_true(memory_max_valid(memory[i]));
	for (size_t i = 0; i < COUNT(no_memory); i++)
		assert_false(memory_max_valid(no_memory[i]));
	for (size_t i = 0; i < COUNT(quota); i++)
		assert_true(cpu_quota_valid(quota[i]));
	for (size_t i = 0; i < COUNT(no_quota); i++)
		assert_false(cpu_quota_valid(no_quota[i]));
}

static void assert_same_spec(const struct spec *a, const struct spec *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->checkout ? a->checkout : "none", b->checkout ? b->checkout : "none");
	assert_string_equal(a->seed ? a->seed : "none", b->seed ? b->seed : "none");
	assert_string_equal(a->memory_max, b->memory_max);
	assert_string_equal(a->cpu_quota, b->cpu_quota);
	assert_string_equal(a->stop_secs, b->stop_secs);
	assert_string_equal(a->home_identity, b->home_identity);
	assert_string_equal(a->root_identity, b->root_identity);
	assert_int_equal(a->port, b->port);
	assert_int_equal(a->port_auto, b->port_auto);
	assert_int_equal(a->approval, b->approval);
	assert_int_equal(a->crons, b->crons);
	assert_int_equal(a->embeddings, b->embeddings);
	assert_int_equal(a->created, b->created);
	assert_int_equal(a->backend, b->backend);
	assert_int_equal(a->health.kind, b->health.kind);
	assert_string_equal(a->health.path, b->health.path);
	assert_int_equal(a->health.kirocrew, b->health.kirocrew);
	assert_int_equal(a->exec.n, b->exec.n);
	for (size_t i = 0; i < a->exec.n; i++)
		assert_string_equal(a->exec.v[i], b->exec.v[i]);
}

static void a_spec_written_is_the_spec_read(void **state)
{
	static const char *const texts[] = {
		"",
		("CHECKOUT='/c'\nPORT='1'\nPORT_AUTO='1'\nSEED='s'\nAPPROVAL='yolo'\nCRONS='on'\nEMBEDDINGS='no'\nID='0f8fad5b-D9CB-469f-a165-70867728950e'\nCREATED='9223372036854775807'\n"
		"BACKEND='systemd'\nHEALTH='tcp'\nMEMORY_MAX='1G'\nCPU_QUOTA='5%'\nSTOP_SECS='60'\nHOME_ID='12:34.000000001'\nROOT_ID='9:-'\n"),
		"EXEC='[\"sh\",\"-c\",\"echo \\u0027x\\u0027 \\\\ \\n \\\" {port}\",\"\"]'\nPORT='2'\nPORT_AUTO='3'\nBACKEND='launchd'\nHEALTH='http:/'\n",
		"EXEC='[\"s\"]'\nBACKEND='embedded'\nAPPROVAL='?'\n",
		"CHECKOUT='/c'\nEXEC='[\"s\"]'\nHEALTH='http:/api/health'\n",
		"CHECKOUT='/c'\nHEALTH='http:/api/health'\n",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO_SPEC struct spec spec = {.port = 0}, back = {.port = 0};
		AUTO_RECORD struct record record = {.count = 0}, again = {.count = 0};
		AUTO_FREE char *out = NULL;
		size_t len;
		struct err err = {0};
		assert_done(spec_of(texts[i], &spec, &err), &err);
		assert_done(spec_to_record(&spec, &record, &err), &err);
		assert_done(record_render(&record, &out, &len, &err), &err);
		assert_done(record_parse(out, len, &again, &err), &err);
		assert_done(spec_from_record(&again, &back, &err), &err);
		assert_same_spec(&spec, &back);
		assert_int_equal(back.warnings.n, 0);
	}
}

static void keys_of_others_stay_and_ours_go_when_they_say_nothing(void **state)
{
	AUTO_RECORD struct record record = {.count = 0};
	AUTO_FREE char *out = NULL;
	size_t len;
	struct spec spec = {.embeddings = true, .backend = BACKEND_NULL, .health = {.kind = HEALTH_HTTP, .path = "/api/health"}};
	struct err err = {0};
	(void)state;
	parse("FUTURE='1'\nPORT='1'\nPORT_AUTO='1'\nEXEC='[\"x\"]'\nCRONS='1'\nEMBEDDINGS='0'\nHEALTH='tcp'\nBACKEND='systemd'\nAPPROVAL='yolo'\nCREATED='5'\n", &record);
	assert_done(spec_to_record(&spec, &record, &err), &err);
	assert_done(record_render(&record, &out, &len, &err), &err);
	assert_string_equal(out, "FUTURE='1'\n");
}

static void the_record_of_a_command_is_exactly_this(void **state)
{
	AUTO_RECORD struct record record = {.count = 0};
	AUTO_FREE char *out = NULL;
	size_t len;
	char *v[] = {"/usr/bin/sh", "-c", "echo 'it' \\ \"$1\" \x1b \xc2\x85", "a\nb", NULL};
	struct spec spec = {.exec = {v, 4}, .embeddings = true, .port = 7933, .port_auto = true, .backend = BACKEND_EMBEDDED, .health = {.kind = HEALTH_HTTP, .path = "/"}};
	struct err err = {0};
	(void)state;
	assert_done(spec_to_record(&spec, &record, &err), &err);
	assert_done(record_render(&record, &out, &len, &err), &err);
	assert_string_equal(out, "PORT='7933'\nPORT_AUTO='7933'\nBACKEND='embedded'\nHEALTH='http'\n"
				 "EXEC='[\"/usr/bin/sh\",\"-c\",\"echo \\u0027it\\u0027 \\\\ \\\"$1\\\" \\u001B \\u0085\",\"a\\nb\"]'\n");
	AUTO_SPEC struct spec back = {.port = 0};
	assert_done(spec_from_record(&record, &back, &err), &err);
	assert_same_spec(&spec, &back);
}

static void L23_values_that_no_record_carries_are_refused(void **state)
{
	struct err err = {0};
	char *v[] = {"s", "\xff\xfe", NULL};
	(void)state;
	struct spec bytes = {.exec = {v, 2}, .embeddings = true};
	AUTO_RECORD struct record record = {.count = 0};
	assert_refused(spec_to_record(&bytes, &record, &err), &err, REFUSAL_VALUE, "not UTF-8");
	struct spec newline = {.checkout = "/a\n[Service]", .embeddings = true};
	assert_refused(spec_to_record(&newline, &record, &err), &err, REFUSAL_VALUE, "CHECKOUT");
	struct spec seed = {.seed = "a\rb", .embeddings = true};
	assert_refused(spec_to_record(&seed, &record, &err), &err, REFUSAL_VALUE, "SEED");
}

static void X56_a_record_cut_at_any_byte_never_becomes_another_pod(void **state)
{
	static const char text[] = "CHECKOUT='/home/u/src'\nAPPROVAL='reads'\nID='0f8fad5b-d9cb-469f-a165-70867728950e'\nBACKEND='embedded'\nPORT='7933'\nPORT_AUTO='7933'\n"
				   "EXEC='[\"sh\",\"-c\",\"x\"]'\nHEALTH='http:/x'\nMEMORY_MAX='4G'\nCPU_QUOTA='50%'\nHOME_ID='1:2.3'\n";
	size_t understood = 0, refused = 0;
	(void)state;
	for (size_t len = 0; len < sizeof text; len++) {
		AUTO_RECORD struct record record = {.count = 0};
		AUTO_SPEC struct spec spec = {.port = 0};
		struct err err = {0};
		assert_done(record_parse(text, len < sizeof text - 1 ? len : sizeof text - 1, &record, &err), &err);
		int r = spec_from_record(&record, &spec, &err);
		if (r < 0) {
			assert_refused(r, &err, REFUSAL_BAD_CONFIG, NULL);
			refused++;
			continue;
		}
		understood++;
		assert_true(!spec.checkout || !strcmp(spec.checkout, "/home/u/src"));
		assert_true(!*spec.id || !strcmp(spec.id, "0f8fad5b-d9cb-469f-a165-70867728950e"));
		assert_true(!spec.port || spec.port == 7933);
		assert_true(spec.approval != APPROVAL_YOLO);
		assert_true(spec.backend == BACKEND_AUTO || spec.backend == BACKEND_EMBEDDED);
		assert_true(!*spec.memory_max || !strcmp(spec.memory_max, "4G"));
	}
	assert_true(understood > 20 && refused > 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_as_the_contract_says),
		cmocka_unit_test(L23_texts_that_no_record_holds),
		cmocka_unit_test(bytes_and_keys_are_bounded),
		cmocka_unit_test(unknown_keys_and_their_order_are_kept),
		cmocka_unit_test(keys_are_removed),
		cmocka_unit_test(L23_what_cannot_be_read_back_is_not_written),
		cmocka_unit_test(what_is_longer_than_the_reader_reads_is_not_written),
		cmocka_unit_test(X20_values_come_back_byte_for_byte),
		cmocka_unit_test(a_copy_is_its_own),
		cmocka_unit_test(KiroCrews_own_record_is_understood),
		cmocka_unit_test(an_empty_record_has_the_defaults),
		cmocka_unit_test(a_machines_choice_is_told_from_a_pin_as_text),
		cmocka_unit_test(X36_X56_unreadable_values_are_refused_by_key),
		cmocka_unit_test(L22_long_values_are_refused_never_cut),
		cmocka_unit_test(X56_odd_words_take_the_safe_side_with_a_warning),
		cmocka_unit_test(health_follows_from_the_payload_unless_it_is_said),
		cmocka_unit_test(plain_words_are_what_the_parser_reads),
		cmocka_unit_test(health_checks_are_parsed_and_rendered),
		cmocka_unit_test(limits_are_those_that_systemd_takes),
		cmocka_unit_test(a_spec_written_is_the_spec_read),
		cmocka_unit_test(keys_of_others_stay_and_ours_go_when_they_say_nothing),
		cmocka_unit_test(the_record_of_a_command_is_exactly_this),
		cmocka_unit_test(L23_values_that_no_record_carries_are_refused),
		cmocka_unit_test(X56_a_record_cut_at_any_byte_never_becomes_another_pod),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
