/* Attributes: held against ONNX's schema, then decoded once into the operator's struct. */
#include "ir/onnx_names.h"
#include "ir/ops/infer.h"

#include <assert.h>
#include <stddef.h>

enum { MOST_ATTRS = 512 }; /* bytes of the largest struct of attributes */

static Loc attr_loc(const Node *n, const Attr *a) {
    return a->loc.source || a->loc.what ? a->loc : n->loc;
}

/* An empty list or a bare $reference has no kind of its own: it takes the one asked for. */
static bool kind_fits(Attr *a, AttrKind want) {
    if (a->kind == ATTR_UNDEFINED && attr_is_ref(a))
        a->kind = want;
    if (a->kind != want && a->n == 0 && attr_kind_is_list(a->kind) && attr_kind_is_list(want))
        a->kind = want;
    return a->kind == want;
}

static bool wrong_kind(const Node *n, const Attr *a, AttrKind want, Diags *d) {
    Loc at = node_attr_loc(n, arena_str(n->graph->module->arena, a->name).s, d);
    diag_error(d, at, "attribute '%s' of %s must be %s, not %s", diag_name(d, a->name),
               diag_name(d, n->op), attr_kind_text(want), attr_kind_text(a->kind));
    if (want == ATTR_FLOAT && a->kind == ATTR_INT && a->n) /* a reference has no value */
        diag_note(d, at, "a float is written with a point: %lld.0", (long long)a->v.i[0]);
    return false;
}

static bool unknown_attr(const Node *n, const OnnxSchema *schema, const Attr *a, Diags *d) {
    diag_error(d, attr_loc(n, a), "%s has no attribute '%s' at opset %lld", diag_name(d, n->op),
               diag_name(d, a->name), (long long)node_opset(n));
    onnx_attr_did_you_mean(d, attr_loc(n, a), a->name, schema);
    return false;
}

static bool check_schema(Node *n, const OnnxSchema *schema, Diags *d) {
    bool ok = true, unknown = false;
    for (size_t i = 0; i < n->n_attrs; i++) {
        Attr *a = &n->attrs[i];
        const SchemaAttr *s = onnx_schema_attr(schema, a->name);
        if (!s && str_starts(a->name, META_QUANTIZATION))
            continue; /* metadata in the wrong place: no operator has such an attribute */
        unknown |= !s;
        if (!s)
            ok = unknown_attr(n, schema, a, d);
        else if (!kind_fits(a, (AttrKind)s->type))
            ok = wrong_kind(n, a, (AttrKind)s->type, d);
    }
    for (int i = 0; i < schema->n_attrs && !unknown; i++) /* a name mistyped is missing too */
        if (schema->attrs[i].presence == SCHEMA_ATTR_REQUIRED &&
            !node_attr(n, schema->attrs[i].name))
            ok = diag_error(d, n->loc, "%s needs attribute '%s'", diag_name(d, n->op),
                            schema->attrs[i].name);
    return ok;
}

/* Softmax's axis shows why the schema's default goes first: it changed between opsets. */
static void set_default(const AttrSpec *spec, const OnnxSchema *schema, char *at) {
    const SchemaAttr *s = schema ? onnx_schema_attr(schema, str_from(spec->name)) : NULL;
    bool stated = s && s->presence == SCHEMA_ATTR_DEFAULT && s->type == (uint8_t)spec->kind;
    switch ((int)spec->kind) {
    case ATTR_INT: *(int64_t *)at = stated ? s->value.i : spec->def_int; break;
    case ATTR_FLOAT: *(float *)at = stated ? s->value.f : spec->def_float; break;
    case ATTR_STRING: *(Str *)at = str_from(stated ? s->value.s : spec->def_str); break;
    default: break; /* lists, tensors and graphs are absent: zero */
    }
}

static void set_value(const AttrSpec *spec, const Attr *a, char *at) {
    switch ((int)spec->kind) {
    case ATTR_INT: *(int64_t *)at = a->v.i[0]; break;
    case ATTR_FLOAT: *(float *)at = a->v.f[0]; break;
    case ATTR_STRING: *(Str *)at = a->v.s[0]; break;
    case ATTR_INTS: *(Ints *)at = (Ints){a->v.i ? a->v.i : (const int64_t *)"", a->n}; break;
    case ATTR_FLOATS: *(Floats *)at = (Floats){a->v.f ? a->v.f : (const float *)"", a->n}; break;
    case ATTR_STRINGS: *(Strs *)at = (Strs){a->v.s ? a->v.s : (const Str *)"", a->n}; break;
    case ATTR_TENSOR: *(const Tensor **)at = a->v.t[0]; break;
    case ATTR_GRAPH: *(Graph **)at = a->v.g[0]; break;
    default: break;
    }
}

typedef struct WordList {
    const char *at, *end;
} WordList;

static bool next_word(void *ctx, Str *word) {
    WordList *w = ctx;
    w->at += w->at < w->end && (*w->at == ' ' || *w->at == '|');
    size_t n = 0;
    while (w->at + n < w->end && w->at[n] != ' ' && w->at[n] != '|')
        n++;
    *word = (Str){w->at, n};
    w->at += n;
    return n > 0;
}

/* Words that an operator does not know, onnxruntime refuses as well. */
static bool check_word(const Node *n, const AttrSpec *spec, Str value, Diags *d) {
    const char *told = spec->words + strcspn(spec->words, "|");
    WordList all = {spec->words, spec->words + strlen(spec->words)}, list = {spec->words, told};
    Str word;
    while (next_word(&all, &word))
        if (str_eq(word, value))
            return true;
    Buf b = buf_new(n->graph->module->arena);
    for (bool more = next_word(&list, &word); more;) {
        buf_str(&b, word);
        more = next_word(&list, &word);
        if (more)
            buf_text(&b, list.at < told ? ", " : " or ");
    }
    Loc at = node_attr_loc(n, spec->name, d);
    diag_error(d, at, "%s: %s is '%s', must be %s", diag_name(d, n->op), spec->name,
               diag_name(d, value), buf_as_str(&b).s);
    diag_did_you_mean_next(d, at, value, next_word, &(WordList){spec->words, told});
    return false;
}

/* `before`: what they were, if they were those of `op`, or NULL. They seldom change, and passes
 * look at each node again and again. */
static const void *kept_attrs(const Node *n, const OpDef *op, const void *before,
                              const void *typed) {
    size_t bytes = op->attrs_size;
    if (before && memcmp(before, typed, bytes) == 0)
        return before;
    return arena_copy(n->graph->module->arena, typed, bytes ? bytes : 1);
}

/* A reference to a function's attribute has no value yet: the default stands in for it. */
static bool decode(Node *n, const OpDef *op, const OnnxSchema *schema, const void *before,
                   Diags *d) {
    _Alignas(max_align_t) char typed[MOST_ATTRS] = {0};
    assert(op->attrs_size <= sizeof typed);
    bool ok = true;
    for (const AttrSpec *spec = op->attrs; spec && spec->name; spec++) {
        const Attr *a = node_attr(n, spec->name);
        char *at = typed + spec->offset;
        if (a && !attr_is_ref(a) && a->kind != spec->kind)
            ok = wrong_kind(n, a, spec->kind, d);
        else if (a && !attr_is_ref(a) && spec->words && !check_word(n, spec, a->v.s[0], d))
            ok = false;
        else if (a && !attr_is_ref(a))
            set_value(spec, a, at);
        else if (!a && spec->required && !schema) /* else said above */
            ok = diag_error(d, n->loc, "%s needs attribute '%s'", diag_name(d, n->op), spec->name);
        else
            set_default(spec, schema, at);
    }
    n->typed = ok ? kept_attrs(n, op, before, typed) : NULL;
    return ok;
}

const void *attrs_as(const Node *n, const OpDef *op, Diags *d) {
    Node as = *n;
    return decode(&as, op, NULL, NULL, d) ? as.typed : NULL;
}

/* Outside of functions nothing could be referred to; onnx's checker takes it of operators that it
 * does not know. */
static bool check_refs(const Node *n, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < n->n_attrs && !node_in_function(n); i++) {
        const Attr *a = &n->attrs[i];
        if (attr_is_ref(a))
            ok = diag_error(d, attr_loc(n, a),
                            "attribute '%s' refers to '%s', but this is no function",
                            diag_name(d, a->name), diag_name(d, a->ref));
    }
    return ok;
}

/* Whether both have the same operands and attributes, whatever types they take. */
static bool same_form(const OnnxSchema *a, const OnnxSchema *b) {
    bool same = a->n_inputs == b->n_inputs && a->n_attrs == b->n_attrs;
    for (int i = 0; same && i < a->n_attrs; i++) {
        const SchemaAttr *x = &a->attrs[i], *y = &b->attrs[i];
        same = strcmp(x->name, y->name) == 0 && x->type == y->type && x->presence == y->presence &&
               (x->type != SCHEMA_FLOAT || x->value.f == y->value.f);
    }
    return same;
}

/* Rows know forms from opset 7 on; older ones are renewed first (passes/old_forms.h). */
static bool is_old_form(const Node *n, const OnnxSchema *schema) {
    enum { FIRST = 7 };
    if (!schema || schema->since >= FIRST || !domain_is_onnx(n->domain) || node_opset(n) >= FIRST)
        return false;
    const OnnxSchema *renewed = onnx_schema_find(n->domain, n->op, FIRST);
    return renewed && !same_form(schema, renewed);
}

bool op_resolve(Node *n, Diags *d) {
    const OnnxSchema *schema = node_schema(n);
    const OpDef *was = n->def;
    const void *typed = n->typed;
    n->typed = NULL;
    n->def = NULL;
    if (n->misread)
        return true;
    n->def = op_find(n->domain, n->op);
    if (schema && !(schema->flags & SCHEMA_DEPRECATED) && !check_schema(n, schema, d)) {
        n->def = NULL; /* half-decoded attributes would only bring more errors */
        return false;
    }
    if (is_old_form(n, schema)) {
        n->def = NULL;
        return check_refs(n, d);
    }
    const OpDef *op = n->def ? n->def : qop_find(n->domain, n->op);
    bool known = op || schema;
    if ((!known || check_refs(n, d)) &&
        (!op || decode(n, op, schema, op == was ? typed : NULL, d))) {
        if (n->def && n->def->form)
            n->def = n->def->form(n);
        return true;
    }
    n->def = NULL;
    return false;
}

typedef struct Resolve {
    Diags *d;
    bool ok;
} Resolve;

static void resolve_graph(Graph *g, void *ctx) {
    Resolve *r = ctx;
    FOR_NODES(n, g)
    r->ok = op_resolve(n, r->d) && r->ok;
}

bool module_resolve(Module *m, Diags *d) {
    Resolve r = {d, true};
    module_each_graph(m, resolve_graph, &r);
    return r.ok;
}
