/* support/diag: what a message looks like */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/diag.h"

typedef struct Fixture {
    Arena *arena;
    FILE *out;
    char *text;
    size_t size;
    Diags *d;
} Fixture;

static int setup(void **state) {
    Fixture *f = calloc(1, sizeof *f);
    f->arena = arena_new(0, NULL);
    f->out = open_memstream(&f->text, &f->size);
    f->d = diags_new(f->arena, f->out, false);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    fclose(f->out);
    free(f->text);
    arena_free(f->arena);
    free(f);
    return 0;
}

/* What was printed since the last call. */
static const char *printed(Fixture *f) {
    fflush(f->out);
    const char *copy = arena_str(f->arena, (Str){f->text, f->size}).s;
    rewind(f->out);
    return copy;
}

/* The range of `part` in `text`. */
static Loc loc(uint32_t source, const char *text, const char *part) {
    uint32_t begin = (uint32_t)(strstr(text, part) - text);
    return (Loc){source, begin, begin + (uint32_t)strlen(part), NULL};
}

static void test_caret(void **state) {
    Fixture *f = *state;
    const char *text = "qir 1\n  %y = Covn(%x)\n";
    uint32_t s = diags_source(f->d, "a.qir", str_from(text));
    assert_false(diag_error(f->d, loc(s, text, "Covn"), "unknown operator '%s'", "Covn"));
    assert_string_equal(printed(f), "a.qir:2:8: error: unknown operator 'Covn'\n"
                                    "  %y = Covn(%x)\n"
                                    "       ^~~~\n");
    assert_int_equal(diags_errors(f->d), 1);
}

static void test_tab_utf8_crlf(void **state) {
    Fixture *f = *state;
    const char *text = "x\r\n\t%\xc3\xbc\xe6\x97\xa5 = Foo(%z)\r\nend";
    uint32_t s = diags_source(f->d, "a.qir", str_from(text));
    diag_error(f->d, loc(s, text, "Foo"), "bad");
    assert_string_equal(printed(f), "a.qir:2:11: error: bad\n"
                                    "        %\xc3\xbc\xe6\x97\xa5 = Foo(%z)\n"
                                    "               ^~~\n");
    diag_error(f->d, loc(s, text, "\xe6\x97\xa5"), "wide");
    assert_string_equal(printed(f), "a.qir:2:5: error: wide\n"
                                    "        %\xc3\xbc\xe6\x97\xa5 = Foo(%z)\n"
                                    "          ^~\n");
    diag_error(f->d, loc(s, text, "\t"), "tab");
    assert_string_equal(printed(f), "a.qir:2:1: error: tab\n"
                                    "        %\xc3\xbc\xe6\x97\xa5 = Foo(%z)\n"
                                    "^~~~~~~~\n");
}

static void test_tab_stop(void **state) {
    Fixture *f = *state;
    uint32_t s = diags_source(f->d, "a.qir", STR("abc\td\te"));
    diag_error(f->d, (Loc){s, 4, 7, NULL}, "range over a tab");
    assert_string_equal(printed(f), "a.qir:1:5: error: range over a tab\n"
                                    "abc     d       e\n"
                                    "        ^~~~~~~~~\n");
}

static void test_ends(void **state) {
    Fixture *f = *state;
    const char *text = "ab\r\ncd";
    uint32_t s = diags_source(f->d, "a.qir", str_from(text));
    diag_error(f->d, (Loc){s, 2, 2, NULL}, "line end");
    assert_string_equal(printed(f), "a.qir:1:3: error: line end\nab\n  ^\n");
    diag_error(f->d, (Loc){s, 6, 6, NULL}, "file end");
    assert_string_equal(printed(f), "a.qir:2:3: error: file end\ncd\n  ^\n");
    diag_error(f->d, (Loc){s, 4000, 5000, NULL}, "beyond");
    assert_string_equal(printed(f), "a.qir:2:3: error: beyond\ncd\n  ^\n");
    diag_error(f->d, (Loc){s, 1, 6, NULL}, "several lines");
    assert_string_equal(printed(f), "a.qir:1:2: error: several lines\nab\n ^\n");
    uint32_t empty = diags_source(f->d, "b.qir", STR(""));
    diag_error(f->d, (Loc){empty, 0, 0, NULL}, "nothing");
    assert_string_equal(printed(f), "b.qir:1:1: error: nothing\n");
}

static void test_no_control_characters(void **state) {
    Fixture *f = *state;
    const char *text = "a\x1b[31mb \xff\xe2\x80\xae @";
    uint32_t s = diags_source(f->d, "x\x1b.qir", str_from(text));
    diag_error(f->d, loc(s, text, "@"), "name %s", "\r\x1b]0;pwned\x07\n\xc2\x9b");
    const char *out = printed(f);
    for (const char *p = out; *p; p++)
        assert_true((unsigned char)*p >= 0x20 || *p == '\n');
    assert_null(strstr(out, "\xc2\x9b"));
    assert_null(strstr(out, "\xe2\x80\xae"));
    assert_string_equal(out, "x\\x1b.qir:1:14: error: name \\x0d\\x1b]0;pwned\\x07\\x0a\\xc2\\x9b\n"
                             "a\\x1b[31mb \\xff\\xe2\\x80\\xae @\n"
                             "                            ^\n");
}

/* A long line shows a window of it; the caret still stands under its character. */
static void test_window(void **state) {
    Fixture *f = *state;
    enum { SIZE = 1000000 };
    char *text = malloc(SIZE + 1);
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    for (int at = 0; at < SIZE; at += at < 400 ? 37 : 99991) {
        text[at] = '@';
        uint32_t s = diags_source(f->d, "a.qir", (Str){text, SIZE});
        diag_error(f->d, (Loc){s, (uint32_t)at, SIZE, NULL}, "here");
        const char *line = strchr(printed(f), '\n') + 1, *marks = strchr(line, '\n') + 1;
        assert_in_range(strcspn(line, "\n"), 100, 166);
        assert_int_equal(line[strcspn(marks, "^")], '@');
        assert_true(strcspn(marks, "\n") <= strcspn(line, "\n"));
        text[at] = 'x';
    }
    free(text);
}

static void test_binary_and_nowhere(void **state) {
    Fixture *f = *state;
    uint32_t s = diags_source(f->d, "m.onnx", STR_NONE);
    const Place graph = {"graph \"g\"", NULL}, node = {"node \"c\x01\" (Conv, #12)", &graph};
    diag_warning(f->d, (Loc){s, 1, 0, &node}, "odd");
    assert_string_equal(printed(f),
                        "m.onnx: node \"c\\x01\" (Conv, #12 in graph \"g\"): warning: odd\n");
    diag_error(f->d, LOC_NONE, "no input");
    assert_string_equal(printed(f), "qxc: error: no input\n");
    assert_int_equal(diags_warnings(f->d), 1);
    assert_string_equal(diags_source_name(f->d, s), "m.onnx");
    assert_null(diags_source_name(f->d, 99));
}

static void test_limit_and_quiet(void **state) {
    Fixture *f = *state;
    Loc at = {.source = diags_source(f->d, "m.onnx", STR_NONE)};
    diags_limit(f->d, 2);
    for (int i = 0; i < 5; i++) {
        diag_error(f->d, LOC_NONE, "error %d", i);
        diag_note(f->d, at, "note %d", i);
    }
    diag_note(f->d, LOC_NONE, "to all of them");
    for (int i = 0; i < 3; i++)
        diag_warning(f->d, LOC_NONE, "w");
    diags_finish(f->d);
    assert_string_equal(printed(f), "qxc: error: error 0\nm.onnx: note: note 0\n"
                                    "qxc: error: error 1\nm.onnx: note: note 1\n"
                                    "qxc: note: to all of them\n"
                                    "qxc: warning: w\nqxc: warning: w\n"
                                    "qxc: note: 3 more errors and 1 more warning not shown\n");
    assert_int_equal(diags_errors(f->d), 5);
    diags_limit(f->d, 10);
    diags_quiet(f->d, true);
    diag_warning(f->d, LOC_NONE, "w");
    diag_error(f->d, LOC_NONE, "e");
    assert_string_equal(printed(f), "qxc: error: e\n");
}

static void test_did_you_mean(void **state) {
    Fixture *f = *state;
    static const char *const words[] = {"Conv", "Concat", "Relu", "MaxPool"};
    diag_did_you_mean(f->d, LOC_NONE, STR("Covn"), words, 4);
    assert_string_equal(printed(f), "qxc: note: did you mean 'Conv'?\n");
    diag_did_you_mean(f->d, LOC_NONE, STR("Softmax"), words, 4);
    diag_did_you_mean(f->d, LOC_NONE, STR("x"), words, 4);
    assert_string_equal(printed(f), "");
}

static void test_records(void **state) {
    Fixture *f = *state;
    const char *text = "one\ntwo\n";
    uint32_t s = diags_source(f->d, "a.qir", str_from(text));
    diags_record(f->d, true);
    diag_error(f->d, loc(s, text, "wo"), "second");
    diag_warning(f->d, loc(s, text, "ne"), "first"); /* also backwards */
    const DiagRecord *r;
    assert_int_equal(diags_records(f->d, &r), 2);
    assert_int_equal(r[0].line, 2);
    assert_int_equal(r[0].column, 2);
    assert_int_equal(r[1].line, 1);
    assert_int_equal(r[1].severity, DIAG_WARNING);
    assert_string_equal(r[1].text, "first");
    assert_string_equal(printed(f), "");
}

/* Once in the same words of one file, by whatever number that was read; what nobody saw is told. */
static void test_remark_once(void **state) {
    Fixture *f = *state;
    const char *text = "one\n";
    uint32_t s = diags_source(f->d, "a.qir", str_from(text));
    uint32_t again = diags_source(f->d, "a.qir", str_from(text));
    uint32_t other = diags_source(f->d, "b.qir", str_from(text));
    diags_quiet(f->d, true);
    diag_remark_once(f->d, loc(s, text, "one"), "%s goes", "x");
    assert_string_equal(printed(f), "");
    diags_quiet(f->d, false);
    diag_remark_once(f->d, loc(s, text, "one"), "%s goes", "x");
    assert_string_equal(printed(f), "a.qir:1:1: remark: x goes\none\n^~~\n");
    diag_remark_once(f->d, loc(s, text, "one"), "%s goes", "x");
    diag_remark_once(f->d, loc(again, text, "one"), "%s goes", "x");
    assert_string_equal(printed(f), "");
    diag_remark_once(f->d, loc(s, text, "one"), "%s goes", "y");
    assert_string_equal(printed(f), "a.qir:1:1: remark: y goes\none\n^~~\n");
    diag_remark_once(f->d, loc(other, text, "one"), "%s goes", "x");
    assert_string_equal(printed(f), "b.qir:1:1: remark: x goes\none\n^~~\n");
}

/* Warnings of one format: many have one line and a number, a few are told, what is not alike is. */
static void test_merge(void **state) {
    Fixture *f = *state;
    uint32_t s = diags_source(f->d, "a.onnx", STR_NONE);
    Loc at = {.source = s, .what = &(Place){.words = "node \"n\""}};
    diags_merge(f->d, true);
    for (int i = 0; i < 5; i++) {
        diag_warning(f->d, at, "'v%d' is of no use here", i);
        diag_note(f->d, at, "as of %d", i);
    }
    diag_warning(f->d, at, "%s: %s", "a", "b"); /* no words of its own */
    diag_warning(f->d, at, "%s: %s", "c", "d");
    assert_string_equal(printed(f), "a.onnx: node \"n\": warning: 'v0' is of no use here\n"
                                    "a.onnx: node \"n\": note: as of 0\n"
                                    "qxc: note: and 4 more of this kind (-v shows them)\n"
                                    "a.onnx: node \"n\": warning: a: b\n"
                                    "a.onnx: node \"n\": warning: c: d\n");
    assert_int_equal(diags_warnings(f->d), 7);
    diag_warning(f->d, at, "'v%d' is of no use here", 7);
    diag_note(f->d, at, "as of 7");
    assert_string_equal(printed(f), "");
    diag_error(f->d, at, "stop"); /* what waits stands before it */
    assert_string_equal(printed(f), "a.onnx: node \"n\": warning: 'v7' is of no use here\n"
                                    "a.onnx: node \"n\": note: as of 7\n"
                                    "a.onnx: node \"n\": error: stop\n");
    for (int i = 0; i < 3; i++)
        diag_warning(f->d, LOC_NONE, "-option%d has no effect", i);
    assert_string_equal(printed(f), "qxc: warning: -option0 has no effect\n"
                                    "qxc: warning: -option1 has no effect\n"
                                    "qxc: warning: -option2 has no effect\n");
    diags_finish(f->d);
    assert_string_equal(printed(f), "");
}

/* Remarks are merged as warnings are, and count as none. */
static void test_merge_remarks(void **state) {
    Fixture *f = *state;
    uint32_t s = diags_source(f->d, "a.onnx", STR_NONE);
    Loc at = {.source = s, .what = &(Place){.words = "node \"n\""}};
    diags_merge(f->d, true);
    diags_limit(f->d, 1);
    for (int i = 0; i < 5; i++)
        diag(f->d, DIAG_REMARK, at, "'v%d' is rounded here", i);
    diag_warning(f->d, at, "a warning");
    diags_finish(f->d);
    assert_string_equal(printed(f), "a.onnx: node \"n\": remark: 'v0' is rounded here\n"
                                    "qxc: note: and 4 more of this kind (-v shows them)\n"
                                    "a.onnx: node \"n\": warning: a warning\n");
    assert_int_equal(diags_warnings(f->d), 1);
}

/* A note of its own, at another place, is not lost behind one of many. */
static void test_merge_note_apart(void **state) {
    Fixture *f = *state;
    const char *text = "one two";
    uint32_t s = diags_source(f->d, "a.qir", str_from(text));
    diags_merge(f->d, true);
    for (int i = 0; i < 5; i++) {
        diag_warning(f->d, loc(s, text, "one"), "'v%d' is of no use here", i);
        diag_note(f->d, loc(s, text, "one"), "as of %d", i);
    }
    diag_note(f->d, loc(s, text, "two"), "apart");
    assert_string_equal(printed(f), "a.qir:1:1: warning: 'v0' is of no use here\n"
                                    "one two\n^~~\n"
                                    "a.qir:1:1: note: as of 0\n"
                                    "one two\n^~~\n"
                                    "qxc: note: and 4 more of this kind (-v shows them)\n"
                                    "a.qir:1:5: note: apart\n"
                                    "one two\n    ^~~\n");
}

/* One that others stand for is not past the limit. */
static void test_merge_limit(void **state) {
    Fixture *f = *state;
    uint32_t s = diags_source(f->d, "a.onnx", STR_NONE);
    Loc at = {.source = s, .what = &(Place){.words = "node \"n\""}};
    diags_merge(f->d, true);
    diags_limit(f->d, 2);
    for (int i = 0; i < 5; i++)
        diag_warning(f->d, at, "'v%d' is of no use here", i);
    diag_warning(f->d, at, "another warning");
    diag_warning(f->d, at, "a third that is too many");
    diags_finish(f->d);
    assert_string_equal(printed(f), "a.onnx: node \"n\": warning: 'v0' is of no use here\n"
                                    "qxc: note: and 4 more of this kind (-v shows them)\n"
                                    "a.onnx: node \"n\": warning: another warning\n"
                                    "qxc: note: 1 more warning not shown\n");
}

static void test_color(void **state) {
    Fixture *f = *state;
    Diags *d = diags_new(f->arena, f->out, true);
    diag_error(d, LOC_NONE, "e");
    assert_string_equal(printed(f), "\033[1mqxc: \033[1;31merror: \033[0m\033[1me\033[0m\n");
}

static void test_name(void **state) {
    Fixture *f = *state;
    assert_string_equal(diag_name(f->d, STR("a\"\x1b")), "a\\\"\\x1b");
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name + 99, "\xc3\xbc", 2); /* would be cut in two */
    const char *shown = diag_name(f->d, (Str){name, sizeof name});
    assert_int_equal(strlen(shown), 99 + 3);
    assert_string_equal(shown + 99, "...");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_caret),
        TEST(test_tab_utf8_crlf),
        TEST(test_tab_stop),
        TEST(test_ends),
        TEST(test_no_control_characters),
        TEST(test_window),
        TEST(test_binary_and_nowhere),
        TEST(test_limit_and_quiet),
        TEST(test_did_you_mean),
        TEST(test_records),
        TEST(test_remark_once),
        TEST(test_merge),
        TEST(test_merge_remarks),
        TEST(test_merge_note_apart),
        TEST(test_merge_limit),
        TEST(test_color),
        TEST(test_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
