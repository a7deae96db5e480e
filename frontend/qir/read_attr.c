/* Attributes: their kind is read off the value. */
#include "frontend/qir/reader.h"

static bool read_kind(Reader *r, const Val *v, AttrKind first, AttrKind *out) {
    Str word = str_at(r, v->word);
    const char *words[ATTR_TYPES];
    size_t n = 0;
    for (AttrKind k = first; attr_kind_word(k); k++) {
        words[n++] = attr_kind_word(k);
        if (str_is(word, attr_kind_word(k))) {
            *out = k;
            return true;
        }
    }
    error_at(r, v->at, "unknown kind of attribute '%s'", shown(r, word));
    suggest(r, v->at, word, words, n);
    return false;
}

static void note_word(Reader *r, Range at, Str word) {
    bool yes = str_same_letters(word, STR("true")), no = str_same_letters(word, STR("false"));
    if (yes || no)
        note_at(r, at, yes ? "yes is written 1" : "no is written 0");
    else
        diag_note(r->diags, loc_of(r, at), "a string is written \"%s\"", shown(r, word));
}

/* The kind of one value that is neither list nor reference. */
static bool single_kind(Reader *r, const Val *v, AttrKind *out) {
    Number n;
    switch (v->kind) {
    case VAL_NUMBER:
        *out = val_number(r, v, &n) && n.kind == NUM_INT ? ATTR_INT : ATTR_FLOAT;
        return true;
    case VAL_STRING: *out = ATTR_STRING; return true;
    case VAL_TENSOR: *out = ATTR_TENSOR; return true;
    case VAL_SPARSE: *out = ATTR_SPARSE; return true;
    case VAL_TYPE: *out = ATTR_TYPE; return true;
    case VAL_GRAPH: *out = ATTR_GRAPH; return true;
    default:
        error_at(r, v->at,
                 "this is no value of an attribute; there are numbers, strings, "
                 "tensor(...), type(...), graph and lists of these");
        if (v->kind == VAL_WORD)
            note_word(r, v->at, str_at(r, v->word));
        return false;
    }
}

/* Puts item i in its place; the tensors and graphs were built while parsing. False for what could
 * not be built, which was said there. */
static bool store_item(const Reader *r, Attr *a, size_t i, const Val *v) {
    switch (v->kind) {
    case VAL_STRING: ((Str *)a->v.s)[i] = str_at(r, v->word); break;
    case VAL_TENSOR: ((Tensor **)a->v.t)[i] = v->u.tensor; break;
    case VAL_SPARSE: ((SparseTensor **)a->v.sp)[i] = v->u.sparse; break;
    case VAL_TYPE: ((Type *)a->v.ty)[i] = *v->u.type; break;
    case VAL_GRAPH: ((Graph **)a->v.g)[i] = v->u.graph; break;
    default: break;
    }
    return (v->kind != VAL_TENSOR || v->u.tensor) && (v->kind != VAL_SPARSE || v->u.sparse);
}

static void make_room(Reader *r, Attr *a) {
    switch (a->kind) {
    case ATTR_STRING:
    case ATTR_STRINGS: a->v.s = NEW_ARRAY(r->arena, Str, a->n); break;
    case ATTR_TENSOR:
    case ATTR_TENSORS: a->v.t = NEW_ARRAY(r->arena, Tensor *, a->n); break;
    case ATTR_SPARSE:
    case ATTR_SPARSES: a->v.sp = NEW_ARRAY(r->arena, SparseTensor *, a->n); break;
    case ATTR_TYPE:
    case ATTR_TYPES: a->v.ty = NEW_ARRAY(r->arena, Type, a->n); break;
    case ATTR_GRAPH:
    case ATTR_GRAPHS: a->v.g = NEW_ARRAY(r->arena, Graph *, a->n); break;
    default: break;
    }
}

/* A list is of floats when one of its numbers is. */
static bool has_float(Reader *r, const Val *v) {
    NumberList list = numbers_of(r, v);
    Number n;
    while (next_number(r, &list, &n))
        if (n.kind != NUM_INT)
            return true;
    return list.failed; /* reported; an integer list would report it again */
}

static bool read_numbers(Reader *r, const Val *v, Attr *a) {
    if (a->kind == ATTR_FLOAT || a->kind == ATTR_FLOATS)
        return val_floats(r, v, "this attribute", &a->v.f, &a->n);
    return val_ints(r, v, "this attribute", &a->v.i, &a->n);
}

static AttrKind list_kind(AttrKind single) {
    switch (single) {
    case ATTR_SPARSE: return ATTR_SPARSES;
    case ATTR_TYPE: return ATTR_TYPES;
    default: return (AttrKind)(single + (ATTR_FLOATS - ATTR_FLOAT));
    }
}

static bool read_list(Reader *r, const Val *v, Attr *a) {
    AttrKind kind, other;
    if (v->n == 0) {
        if (!v->word.end)
            return error_at(r, v->at, "an empty list says of what: []:ints");
        if (!read_kind(r, v, ATTR_FLOATS, &a->kind))
            return false;
        return attr_kind_is_list(a->kind) ||
               error_at(r, v->at, "[]:%s is no kind of list; []:%ss may be",
                        attr_kind_word(a->kind), attr_kind_word(a->kind));
    }
    if (!single_kind(r, &v->u.items[0], &kind))
        return false;
    a->kind = list_kind(kind);
    a->n = v->n;
    make_room(r, a);
    for (uint32_t i = 0; i < v->n; i++) {
        if (!single_kind(r, &v->u.items[i], &other))
            return false;
        if (other != kind)
            return error_at(r, v->u.items[i].at,
                            "a list is of one kind; the first item is of kind %s",
                            attr_kind_word(kind));
        if (!store_item(r, a, i, &v->u.items[i]))
            return false;
    }
    return true;
}

/* Whether the stated type of an operand gives one of its dimensions this name. */
static bool names_dimension(const Graph *g, Str name) {
    for (size_t i = 0; i < g->n_in; i++) {
        Type t = g->in[i]->type;
        for (int k = 0; t.kind == TYPE_TENSOR && k < t.rank; k++)
            if (dim_is_named(t.dims[k]) && str_eq(t.dims[k].param, name))
                return true;
    }
    return false;
}

/* `$name` in a function names one of its attributes, in a library also a dimension of an operand.
 * ONNX takes another name for one that no call gives; in a library, which people write, it is a
 * mistake. */
static bool check_reference(Reader *r, Range at, Str ref) {
    const Frame *f = r->frame;
    while (f && !f->func)
        f = f->outer;
    if (!f || map_get(f->formals, ref)) /* outside of functions the verifier says it */
        return true;
    bool library = r->options.functions_alone;
    if (library && names_dimension(f->graph, ref))
        return true;
    diag(r->diags, library ? DIAG_ERROR : DIAG_WARNING, loc_of(r, at),
         "the function has no attribute '%s'", shown(r, ref));
    suggest_key(r, at, ref, f->formals);
    return !library;
}

static bool read_value(Reader *r, const Val *v, Attr *a) {
    switch (v->kind) {
    case VAL_REF:
        a->ref = str_at(r, v->u.name);
        if (!a->ref.n)
            return error_at(r, v->at, "behind $ stands the name of an attribute");
        return check_reference(r, v->at, a->ref) &&
               (!v->word.end || read_kind(r, v, ATTR_FLOAT, &a->kind));
    case VAL_NUMBERS:
        a->kind = v->mixed && has_float(r, v) ? ATTR_FLOATS : ATTR_INTS;
        return read_numbers(r, v, a);
    case VAL_LIST: return read_list(r, v, a);
    default: break;
    }
    if (!single_kind(r, v, &a->kind))
        return false;
    a->n = 1;
    if (v->kind == VAL_NUMBER)
        return read_numbers(r, v, a);
    make_room(r, a);
    return store_item(r, a, 0, v);
}

bool read_attribute(Reader *r, const Field *f, Attr *out) {
    *out = (Attr){.name = f->key, .loc = loc_of(r, f->at)};
    clauses_check(r, f->clauses, "dx", "an attribute");
    if (f->clauses) {
        out->doc = f->clauses->doc;
        out->extra = f->clauses->extra;
    }
    if (!f->has_val)
        return error_at(r, f->at, "attribute '%s' has no value", shown(r, f->key));
    return read_value(r, &f->val, out);
}

void check_unique(Reader *r, const Field *f, size_t n, const char *what) {
    Map *seen = NULL;
    for (size_t i = 0; i < n; i++) {
        const Field *old = key_before(r->arena, &seen, f, sizeof *f, n, i);
        if (!old)
            continue;
        error_at(r, f[i].at, "%s '%s' stands twice", what, shown(r, f[i].key));
        note_at(r, old->at, "the first one");
    }
}

size_t read_attrs(Reader *r, Span fields, Attr **out) {
    Field *f = take_fields(r, fields);
    Attr *attrs = NEW_ARRAY(r->arena, Attr, fields.n);
    size_t n = 0;
    for (uint32_t i = 0; i < fields.n; i++)
        n += read_attribute(r, &f[i], &attrs[n]);
    check_unique(r, f, fields.n, "attribute");
    *out = attrs;
    return n;
}

size_t read_plain_attrs(Reader *r, Span fields, const char *what, Attr **out) {
    size_t n = read_attrs(r, fields, out);
    for (const Attr *a = *out; a < *out + n; a++)
        if (attr_graphs(a))
            diag_error(r->diags, a->loc, "%s holds no graphs", what);
    return n;
}
