/* -verify-roundtrip: what is printed, as -inline and -plain want it, reads back as the same text.
 */
#include "backend/qir/qir_write.h"
#include "compiler/session.h"
#include "frontend/qir/qir_read.h"

/* The line in which two texts begin to differ, for the message. */
static Str differing_line(Str a, Str b) {
    size_t i = 0, start = 0;
    while (i < a.n && i < b.n && a.s[i] == b.s[i])
        if (a.s[i++] == '\n')
            start = i;
    size_t end = start;
    while (end < a.n && a.s[end] != '\n')
        end++;
    return (Str){a.s + start, end - start};
}

bool roundtrip_check(Module *m, const Options *o, Diags *d) {
    QirWriteOptions how = {.plain = o->plain,
                           .has_few = o->inline_most >= 0,
                           .few = o->inline_most >= 0 ? (size_t)o->inline_most : 0};
    Buf first = buf_new(m->arena);
    qir_print(m, &first, &how);
    Str text = buf_as_str(&first);
    Arena *a = arena_scratch(m->arena);
    QirReadOptions beside = {.in.dir = path_dir(a, m->path), .wide_zp = m->wide_zp};
    /* Quietly, as what there is to warn of was said when the model was read. */
    static const char name[] = "the printed text";
    Module *again = qir_read_text(a, diags_new(a, NULL, false), name, text, &beside);
    if (!again) {
        qir_read_text(a, d, name, text, &beside);
        arena_free(a);
        return diag_error(d, LOC_NONE, "round trip: the printed text does not parse");
    }
    bool ok = true;
    if (!module_check(again, VERIFY_ERRORS, d))
        ok = diag_error(d, LOC_NONE, "round trip: the printed text does not verify");
    Buf second = buf_new(again->arena);
    qir_print(again, &second, &how);
    Str text2 = buf_as_str(&second);
    if (ok && !str_eq(text, text2))
        ok = diag_error(d, LOC_NONE, "round trip: the text changes, first in this line: %s",
                        diag_name(d, differing_line(text, text2)));
    module_free(again);
    return ok;
}
