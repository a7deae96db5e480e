/* What is noted about values: how ONNX spelled a quantization (`onnx`), what a node was made from
 * (`from`). */
#include "frontend/qir/reader.h"
#include "ir/onnx_schema.h"

static void check_word(Reader *r, const Node *n, Range at) {
    static const char *const words[] = {"QuantizeLinear", "DequantizeLinear", "float", "integers",
                                        "annotation"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(n->op, words[i]))
            return;
    error_at(r, at,
             "an 'onnx' line says QuantizeLinear, DequantizeLinear, float, integers or annotation");
    suggest(r, at, n->op, words, sizeof words / sizeof *words);
}

typedef struct Keys {
    const OnnxSchema *schema; /* of the node that is spelled; NULL: it is no node */
    size_t i;
} Keys;

static const char *const own_keys[] = {"in", "out", "of",   "scale",  "zero_point",
                                       "at", "to",  "data", "stated", "local"};
enum { N_OWN = sizeof own_keys / sizeof *own_keys };

static bool next_key(void *ctx, Str *key) {
    Keys *k = ctx;
    size_t i = k->i++;
    size_t more = k->schema ? k->schema->n_attrs : 0;
    if (i >= N_OWN + more)
        return false;
    *key = str_from(i < N_OWN ? own_keys[i] : k->schema->attrs[i - N_OWN].name);
    return true;
}

static void check_key(Reader *r, const Node *n, const Field *f) {
    Keys keys = {onnx_schema_find(STR(""), n->op, ONNX_MAX_OPSET), 0};
    Str key;
    if (str_starts(f->key, META_QUANTIZATION))
        return;
    while (next_key(&keys, &key))
        if (str_eq(key, f->key))
            return;
    error_at(r, f->at, "an 'onnx' line of %s has no '%s'", shown(r, n->op), shown(r, f->key));
    diag_did_you_mean_next(r->diags, loc_of(r, f->at), f->key, next_key, &(Keys){keys.schema, 0});
}

static bool is_key(const Field *f, const char *const *keys, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (str_is(f->key, keys[i]))
            return true;
    return false;
}

static void check_value(Reader *r, const Field *f) {
    static const char *const names[] = {"in", "out", "of"}, *const tensors[] = {"scale",
                                                                                "zero_point"};
    const Val *v = &f->val;
    int64_t at;
    if (!f->has_val)
        return;
    if (is_key(f, names, 3) && v->kind != VAL_STRING)
        error_at(r, v->at, "'%s' is the name of a value in ONNX: a string", shown(r, f->key));
    else if (is_key(f, tensors, 2) && v->kind != VAL_STRING && v->kind != VAL_TENSOR)
        error_at(
            r, v->at,
            "'%s' is the name of an initializer, or a tensor; the numbers are those of the type",
            shown(r, f->key));
    else if (str_is(f->key, "at") && val_int(r, v, "'at', a place among the nodes,", &at) && at < 0)
        error_at(r, v->at, "'at' is a place among the nodes: 0 or more");
}

static void read_keys(Reader *r, Node *n, Span attrs) {
    size_t errors = (size_t)diags_errors(r->diags);
    bool node = str_is(n->op, "QuantizeLinear") || str_is(n->op, "DequantizeLinear");
    const Field *f = r->fields + attrs.begin;
    for (uint32_t i = 0; i < attrs.n; i++) {
        if (node)
            check_key(r, n, &f[i]);
        check_value(r, &f[i]);
    }
    if ((size_t)diags_errors(r->diags) == errors)
        n->n_attrs = read_plain_attrs(r, attrs, "an 'onnx' line", &n->attrs);
    else
        r->n_fields = attrs.begin;
}

static void add_note(Value *v, Node *n) {
    Node *first = v->onnx ? v->onnx : n, *last = v->onnx ? first->prev : NULL;
    if (last)
        last->next = n;
    v->onnx = first;
    first->prev = n; /* the last, while more may come */
}

void read_spelling(Reader *r, Token name, OpName op, const Span *attrs, Clauses *c) {
    Value *v = find_described(r, str_of(r, name), range_of(name));
    Node *n = node_new(r->frame->graph, STR_NONE, STR_NONE, 0, 0);
    op_name_parts(r, op, &n->domain, &n->op, &n->overload);
    n->loc = loc_of(r, op.at);
    check_word(r, n, op.at);
    if (attrs)
        read_keys(r, n, *attrs);
    clauses_check(r, c, "ndxmf", "an 'onnx' line");
    if (c) {
        n->from = c->from;
        n->name = c->name;
        n->doc = c->doc;
        n->meta = c->meta;
        n->extra = c->extra;
        r->spare_clauses = c;
    }
    if (v)
        add_note(v, n);
    take_flaws(r);
}

void read_from(Reader *r, Range word, Token name, Clauses *c) {
    Value *v = find_described(r, str_of(r, name), range_of(name));
    Provenance *from = v->kind == VALUE_NODE ? &v->def->from : &v->from;
    if (v->kind == VALUE_INPUT)
        error_at(r, range_of(name), "a 'from' line is about a constant, or a node by its result");
    else if (from->n)
        error_at(r, word, "what %%%s was made from is stated twice", shown(r, v->name));
    else
        *from = c->from;
    r->spare_clauses = c;
    take_flaws(r);
}

static void take_meta(Reader *r, Range word, Meta *to, Meta meta, const char *whose) {
    if (to->n)
        error_at(r, word, "metadata of %s are stated twice", whose);
    else
        *to = meta;
}

void read_meta_line(Reader *r, Range word, Token name, Span fields) {
    Meta meta;
    Value *v = find_described(r, str_of(r, name), range_of(name));
    read_metadata(r, fields, &meta);
    const char *whose = arena_strf(r->arena, "%%%s", shown(r, v->name)).s;
    take_meta(r, word, v->kind == VALUE_NODE ? &v->def->meta : &v->meta, meta, whose);
    take_flaws(r);
}

void read_graph_meta(Reader *r, Range word, Span fields) {
    Meta meta;
    Frame *f = r->frame;
    read_metadata(r, fields, &meta);
    take_meta(r, word, f->func ? &f->func->meta : &f->graph->meta, meta,
              f->func ? "the function" : "the graph");
    take_flaws(r);
}

void read_initializers(Reader *r, Span names, Range at) {
    Graph *g = r->frame->graph;
    Val *v = r->vals + names.begin;
    Str *list = NEW_ARRAY(r->arena, Str, names.n);
    Map *seen = map_new(r->arena);
    for (uint32_t i = 0; i < names.n; i++) {
        if (!val_str(r, &v[i], "the name of an initializer", &list[i]))
            continue;
        const Val *first = map_get(seen, list[i]);
        if (first) {
            error_at(r, v[i].at, "initializer \"%s\" stands twice", shown(r, list[i]));
            note_at(r, first->at, "the first one");
        } else {
            map_set(seen, list[i], &v[i]);
        }
    }
    r->n_vals = names.begin;
    if (g->initializers)
        error_at(r, at, "a second order of the initializers");
    g->initializers = list;
    g->n_initializers = names.n;
}
