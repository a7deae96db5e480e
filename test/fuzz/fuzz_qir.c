/* Any bytes as .qir text: they are refused with a message, or what is printed of them parses and
 * prints the same, and so does their formatted text. What can be written as ONNX reads back. */
#include "frontend/qir/qir_format.h"
#include "passes/library.h"
#include "test/fuzz/fuzz.h"

static Str format(Fuzz *f, Str text) {
    Str out;
    return qir_format(fuzz_arena(f), fuzz_diags(f), "fuzz.qir", text, 1, &out) ? out : STR_NONE;
}

static void check_format(Fuzz *f, Str text) {
    Str once = format(f, text);
    if (!once.s)
        return;
    Str twice = format(f, once);
    fuzz_promise(str_eq(once, twice), "formatting twice is formatting once", once, twice);
}

/* Laying a valid text out does not change what it means. */
static void check_meaning(Fuzz *f, Str text, Str printed) {
    Str formatted = format(f, text);
    fuzz_promise(formatted.s != NULL, "a valid text can be formatted", text, STR_NONE);
    Module *m = fuzz_read_qir(f, formatted);
    fuzz_promise(m != NULL, "a formatted text parses", text, formatted);
    Str again = fuzz_valid(f, m, VERIFY_ERRORS) ? fuzz_print(m) : STR_NONE;
    fuzz_promise(str_eq(printed, again), "formatting keeps the meaning", printed, again);
    formatted = format(f, printed);
    fuzz_promise(str_eq(printed, formatted), "the printer formats", printed, formatted);
}

/* What its opset lacks a pass spells out before it is written. */
static void check_onnx(Fuzz *f, Module *m) {
    if (module_has_newer(m, NULL))
        return;
    Str bytes = fuzz_write_onnx(f, m);
    if (!bytes.s)
        return;
    Module *again = fuzz_read_onnx(f, bytes);
    fuzz_promise(again && fuzz_valid(f, again, VERIFY_ONNX), "written ONNX reads back",
                 fuzz_print(m), bytes);
}

static void run(Fuzz *f, Str text) {
    check_format(f, text);
    Module *m = fuzz_read_qir(f, text);
    if (!m || !fuzz_valid(f, m, VERIFY_ERRORS))
        return;
    Str printed = fuzz_print(m);
    fuzz_reread(f, printed);
    check_meaning(f, text, printed);
    check_onnx(f, m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_run(run, data, size);
}
