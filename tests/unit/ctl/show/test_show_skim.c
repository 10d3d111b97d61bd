/*
 * ctl/show/show_skim: maps made by hand, whole, empty and hostile.
 */
#include "ctl/show/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *shown(const char *json)
{
	struct json_object *map = json_tokener_parse(json);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(map);
	assert_non_null(f);
	show_skim(f, map);
	fclose(f);
	json_object_put(map);
	return text;
}

static void expect(const char *json, const char *expected)
{
	char *text = shown(json);

	assert_string_equal(text, expected);
	free(text);
}

static const char WHOLE[] =
	"{\"skim\":\"tip\",\"id\":\"5abc\",\"traceBytes\":2048,\"samples\":1234,\"psbs\":3,"
	"\"headBytes\":5,\"overflows\":1,\"badPackets\":2,\"badBytes\":100,"
	"\"fromNSec\":-5000000,\"untilNSec\":2000,"
	"\"functions\":[{\"name\":\"main\",\"image\":\"/bin/a\",\"samples\":1000,\"bytes\":1024},"
	"{\"name\":null,\"image\":null,\"samples\":234,\"bytes\":10}],"
	"\"threads\":[{\"pid\":7,\"tid\":8,\"comm\":\"a\",\"samples\":1234,\"bytes\":1034,"
	"\"functions\":[{\"name\":\"main\"}]}],"
	"\"cpus\":[{\"cpu\":0,\"traceBytes\":1024,\"samples\":1234,\"psbs\":2,\"fromNSec\":-5000000,"
	"\"untilNSec\":2000,\"functions\":[{\"name\":\"main\"}]},{\"cpu\":1,\"traceBytes\":1024,"
	"\"samples\":0,\"psbs\":1,\"fromNSec\":null,\"untilNSec\":null,\"functions\":[]}],"
	"\"slices\":[{\"fromNSec\":-5000000,\"bytes\":1000,\"threads\":[{\"comm\":\"a\"}],"
	"\"functions\":[{\"name\":\"main\"}]},{\"fromNSec\":-1000,\"bytes\":34,\"threads\":[],"
	"\"functions\":[]}],\"cut\":[]}";

static void show_skim_whole_map_is_a_page(void **state)
{
	(void)state;
	expect(WHOLE, "Skim      5abc, by tip: 1,234 samples, 3 PSBs in 2.0 KiB\n"
		      "Time      -5.0 ms to 2.0 us from the trigger\n"
		      "Faults    1 overflows, 2 bad packets (100 B skipped), head 5 B\n"
		      "\n"
		      "     TRACE      SAMPLES FUNCTION\n"
		      "   1.0 KiB        1,000 main                                     a\n"
		      "      10 B          234 -                                        -\n"
		      "\n"
		      "     TRACE      SAMPLES      PID      TID COMM            MOST IN\n"
		      "   1.0 KiB        1,234        7        8 a               main\n"
		      "\n"
		      "CPU      TRACE      SAMPLES     PSBS       FROM      UNTIL MOST IN\n"
		      "  0    1.0 KiB        1,234        2    -5.0 ms     2.0 us main\n"
		      "  1    1.0 KiB            0        1          -          - -\n"
		      "\n"
		      "      FROM      TRACE            COMM            MOST IN\n"
		      "   -5.0 ms     1000 B ########## a               main\n"
		      "   -1.0 us       34 B            -               -\n");
}

static void show_skim_empty_map_has_no_tables(void **state)
{
	(void)state;
	expect("{\"skim\":\"psb\"}", "Skim      -, by psb: - samples, - PSBs in -\n"
				     "Time      - to - from the trigger\n"
				     "Faults    - overflows, - bad packets (- skipped), head -\n");
}

static void show_skim_hostile_names_are_escaped(void **state)
{
	char *text = shown("{\"skim\":\"tip\",\"functions\":[{\"name\":\"\\u001b[1m\",\"image\":"
			   "\"/x/\\u202ey\"},3],\"threads\":{},\"slices\":[{\"bytes\":"
			   "18446744073709551615},null],\"cpus\":[1,2]}");

	(void)state;
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "\\x1b[1m"));
	assert_non_null(strstr(text, "\\u{202e}y"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_skim_whole_map_is_a_page),
		cmocka_unit_test(show_skim_empty_map_has_no_tables),
		cmocka_unit_test(show_skim_hostile_names_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
