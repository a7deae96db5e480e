/* What may follow a definition: name, doc, meta, from ... by, extra, inferred, stated. */
#include "frontend/qir/reader.h"
#include "ir/extra.h"

static Clauses *own(Reader *r, Clauses *c) {
    if (c)
        return c;
    c = r->spare_clauses;
    r->spare_clauses = NULL;
    if (!c)
        return NEW(r->arena, Clauses);
    *c = (Clauses){0};
    return c;
}

static void once(Reader *r, Range *seen, Range at, const char *word) {
    if (seen->end) {
        error_at(r, at, "a second '%s' here", word);
        diag_note(r->diags, loc_of(r, *seen), "the first one");
    }
    *seen = at;
}

Clauses *clauses_name(Reader *r, Clauses *c, Token t) {
    c = own(r, c);
    once(r, &c->name_at, range_of(t), "name");
    c->name = str_of(r, t);
    return c;
}

Clauses *clauses_doc(Reader *r, Clauses *c, Token t) {
    c = own(r, c);
    once(r, &c->doc_at, range_of(t), "doc");
    c->doc = str_of(r, t);
    return c;
}

/* `_` without quotes: an entry without a key. "_" is a key like others. */
static bool no_key(const Reader *r, const Field *f) {
    return r->text.s[f->at.begin] == '_' && f->key.n == 1;
}

/* onnx.checker refuses a model with a key twice. Texts may have it, as they have all that ONNX has.
 */
static void warn_of_double_keys(Reader *r, const Field *f, size_t n) {
    Map *seen = NULL;
    for (size_t i = 0; i < n; i++) {
        const Field *old = key_before(r->arena, &seen, f, sizeof *f, n, i);
        if (!old)
            continue;
        diag_warning(r->diags, loc_of(r, f[i].at),
                     "metadata '%s' stands twice: onnx.checker refuses a model with both",
                     shown(r, f[i].key));
        note_at(r, old->at, "the first one");
    }
}

bool read_metadata(Reader *r, Span fields, Meta *out) {
    Field *f = take_fields(r, fields);
    StrPair *items = NEW_ARRAY(r->arena, StrPair, fields.n);
    bool ok = true;
    for (uint32_t i = 0; i < fields.n; i++) {
        if (no_key(r, &f[i])) /* who reads ONNX takes an absent key for an empty one */
            f[i].key = STR_NONE;
        items[i].key = f[i].key;
        clauses_check(r, f[i].clauses, "x", "an entry of metadata");
        if (f[i].clauses)
            items[i].extra = f[i].clauses->extra;
        if (f[i].has_val)
            ok &= val_str(r, &f[i].val, "a value of metadata", &items[i].value);
    }
    *out = (Meta){items, fields.n};
    warn_of_double_keys(r, f, fields.n);
    return ok;
}

Clauses *clauses_meta(Reader *r, Clauses *c, Span fields) {
    c = own(r, c);
    once(r, &c->meta_at, fields.at, "meta");
    read_metadata(r, fields, &c->meta);
    return c;
}

/* One word in quotes is a name: from("w"). */
Span span_of_origin(Reader *r, OpName op, const Token *name) {
    Span s = {.begin = (uint32_t)r->n_origins, .n = 1, .at = op.at};
    Origin o = {0};
    Str overload;
    if (!name && op.n == 1 && r->text.s[op.at.begin] == '"') {
        o.name = str_at(r, op.part[0]);
    } else {
        op_name_parts(r, op, &o.domain, &o.op, &overload);
        o.name = name ? str_of(r, *name) : STR_NONE;
    }
    ARENA_PUSH(r->arena, r->origins, r->n_origins, r->cap_origins, o);
    if (name)
        s.at.end = name->end;
    return s;
}

/* `by` and `in` are tokens of no kind where nothing is stated. */
Clauses *clauses_from(Reader *r, Clauses *c, Span origins, const Token *by, const Token *in) {
    c = own(r, c);
    once(r, &c->from_at, origins.at, "from");
    c->from = (Provenance){
        .from = arena_copy(r->arena, r->origins + origins.begin, origins.n * sizeof *r->origins),
        .n = origins.n,
        .by = by->kind ? str_of(r, *by) : STR_NONE,
        .in = in->kind ? str_of(r, *in) : STR_NONE};
    r->n_origins = origins.begin;
    return c;
}

bool read_hex(Reader *r, const Val *v, Str *out) {
    Str text;
    if (!val_is_call(r, v, "hex") || v->n != 1)
        return error_at(r, v->at, "expected hex(\"...\")");
    const Field *arg = &v->u.args[0];
    if (!val_str(r, &arg->val, "hexadecimal text", &text))
        return false;
    char *bytes = arena_alloc(r->arena, text.n / 2 + 1);
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int hi = hex_digit(text.s[i]), lo = hex_digit(text.s[i + 1]);
        if (hi < 0 || lo < 0)
            return error_at(r, arg->at, "hexadecimal text holds 0-9 and a-f only");
        bytes[i / 2] = (char)(hi << 4 | lo);
    }
    if (text.n % 2)
        return error_at(r, arg->at, "hexadecimal text has an even number of digits");
    *out = (Str){bytes, text.n / 2};
    return true;
}

/* Whether bytes hold more than the order of things (EXTRA_PLACES): messages that may be anything.
 */
static bool has_messages(Str extra) {
    WireField f, place;
    while (extra.n && !wire_next(&extra, &f)) {
        if (f.number != EXTRA_PLACES)
            return true;
        while (f.payload.n)
            if (wire_next(&f.payload, &place) || place.number == PLACE_OUTPUT ||
                place.number == PLACE_OTHER_INFO)
                return true;
    }
    return false;
}

bool read_extra(Reader *r, const Val *v, Str *out) {
    Str bytes;
    if (!read_hex(r, v, &bytes))
        return false;
    if (!wire_valid(bytes))
        return error_at(r, v->at, "the bytes of 'extra' are no run of protobuf fields");
    *out = bytes;
    r->module->raw_fields |= has_messages(bytes);
    return true;
}

Clauses *clauses_extra(Reader *r, Clauses *c, Val v) {
    c = own(r, c);
    once(r, &c->extra_at, v.at, "extra");
    read_extra(r, &v, &c->extra);
    return c;
}

Clauses *clauses_stated(Reader *r, Clauses *c, Token t, bool stated) {
    c = own(r, c);
    once(r, &c->stated_at, range_of(t), "stated' or 'inferred");
    c->stated = stated;
    c->inferred = !stated;
    return c;
}

Clauses *clauses_states(Reader *r, Clauses *c, Token t, Type *type) {
    c = clauses_stated(r, c, t, true);
    c->type = type;
    return c;
}

void clauses_check(Reader *r, const Clauses *c, const char *allowed, const char *what) {
    if (!c)
        return;
    const struct {
        char letter;
        Range at;
        const char *word;
    } clauses[] = {
        {'n', c->name_at, "name"}, {'d', c->doc_at, "doc"},   {'x', c->extra_at, "extra"},
        {'m', c->meta_at, "meta"}, {'f', c->from_at, "from"}, {'s', c->stated_at, "stated"},
    };
    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++)
        if (clauses[i].at.end && !strchr(allowed, clauses[i].letter))
            error_at(r, clauses[i].at, "%s has no '%s'", what,
                     clauses[i].letter == 's' && c->inferred ? "inferred" : clauses[i].word);
}
