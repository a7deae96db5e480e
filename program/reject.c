/* Operators that cannot run, collected by type, so that one build names them all. */
#include "program/binder.h"

static Str op_full_name(Binder *b, const Node *n) {
    if (domain_is_onnx(n->domain))
        return n->op;
    return arena_strf(b->arena, STR_FMT "::" STR_FMT, STR_ARG(n->domain), STR_ARG(n->op));
}

bool binder_reject(Binder *b, const Node *n, const char *why) {
    Str op = op_full_name(b, n);
    Rejection *r = map_get(b->rejected, op);
    if (!r) {
        r = NEW(b->arena, Rejection);
        *r = (Rejection){.op = op, .why = why};
        map_set(b->rejected, op, r);
    }
    if (r->count > 0 && r->first[r->count < 3 ? r->count - 1 : 2] == n)
        return false; /* collected already, with a better reason */
    if (strcmp(r->why, why))
        r->other_reasons = true;
    if (r->count < 3)
        r->first[r->count] = n;
    r->count++;
    b->rejection = b->rejection ? b->rejection : r;
    b->failed = true;
    return false;
}

bool bind_unsupported(Binder *b, const Node *n, const char *fmt, ...) {
    Buf text = buf_new(b->arena);
    va_list ap;
    va_start(ap, fmt);
    buf_fmt_v(&text, fmt, ap);
    va_end(ap);
    return binder_reject(b, n, buf_as_str(&text).s);
}

void bind_error(Binder *b, const Node *n, const char *fmt, ...) {
    Buf text = buf_new(b->arena);
    va_list ap;
    va_start(ap, fmt);
    buf_fmt_v(&text, fmt, ap);
    va_end(ap);
    b->failed = true;
    diag_error(b->diags, n->loc, "%s", buf_as_str(&text).s);
}

static void report(Binder *b, const Rejection *r) {
    Buf text = buf_new(b->arena);
    buf_fmt(&text, "operator %s cannot run: %s (%zu node%s: ", diag_name(b->diags, r->op), r->why,
            r->count, plural(r->count));
    for (size_t i = 0; i < 3 && i < r->count; i++) {
        const Node *n = r->first[i];
        Str name = n->name.n || n->n_out == 0 || !n->out[0] ? n->name : n->out[0]->name;
        buf_fmt(&text, "%s%s", i ? ", " : "", diag_name(b->diags, name));
    }
    buf_text(&text, r->count > 3 ? ", ...)" : ")");
    if (r->other_reasons)
        buf_text(&text, "; of some the reason is another");
    diag_error(b->diags, r->first[0]->loc, "%s", buf_as_str(&text).s);
}

bool binder_finish(Binder *b) {
    for (size_t i = 0; i < map_size(b->rejected); i++)
        report(b, map_value(b->rejected, i));
    if (map_size(b->rejected) && b->options.observed)
        diag_note(
            b->diags, LOC_NONE,
            "nothing that could be quantized runs without these; -weight-only and -dynamic need no "
            "run, and ranges can be stated in the model's text (-emit=qir) as `stat %%x <min=-1.0, "
            "max=1.0>`");
    return !b->failed;
}
