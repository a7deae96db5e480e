#include "passes/library.h"

/* Marks in `meta` of a function. */
static const char OWN[] = "qxc.own", RECOGNISE[] = "recognise", WHOLE[] = "whole";

/* ---- which there are ---- */

static Str mark_of(const Function *f, const char *key) {
    for (size_t i = 0; i < f->meta.n; i++)
        if (str_is(f->meta.items[i].key, key))
            return f->meta.items[i].value;
    return STR_NONE;
}

bool library_is_own(const Function *f) {
    return mark_of(f, OWN).s;
}

bool function_is_recognised(const Function *f) {
    return str_is(mark_of(f, RECOGNISE), "yes");
}

bool function_stays_whole(const Function *f) {
    return str_is(mark_of(f, WHOLE), "yes");
}

bool operator_runs(Str domain, Str op) {
    const OpDef *def = op_find(domain, op);
    return (def && def->bind) || qop_find(domain, op);
}

/* What has a kernel means what it does: people's own functions of it are chains to look for. */
static bool check_new(const Function *f, Diags *d) {
    return function_is_recognised(f) || !operator_runs(f->domain, f->name) ||
           diag_error(d, f->loc,
                      "qxc knows what %s means, and runs it: a function of yours can only say how "
                      "chains spell it, with meta <\"recognise\"=\"yes\">",
                      diag_name(d, f->name));
}

/* A mark with another word would be passed by. */
static bool check_mark(const Function *f, const char *key, Diags *d) {
    Str mark = mark_of(f, key);
    return !mark.s || str_is(mark, "yes") ||
           diag_error(d, f->loc, "meta of function %s: %s is \"yes\" or left out, not \"%s\"",
                      diag_name(d, f->name), key, diag_name(d, mark));
}

static bool check_marks(const Function *f, Diags *d) {
    bool ok = check_mark(f, RECOGNISE, d);
    return check_mark(f, WHOLE, d) && ok;
}

/* A chain has no operands yet whose dimensions its body could refer to. */
static bool check_lengths(const Function *f, Diags *d) {
    for (size_t i = 0; function_is_recognised(f) && i < f->body->n_in; i++) {
        const Value *v = f->body->in[i];
        for (int k = 0; k < v->type.rank; k++)
            if (dim_is_named(v->type.dims[k]) && function_uses(f, v->type.dims[k].param))
                return diag_error(d, v->loc,
                                  "function %s is recognised: its body cannot refer to $%s, a "
                                  "dimension of an operand",
                                  diag_name(d, f->name), diag_name(d, v->type.dims[k].param));
    }
    return true;
}

static bool claim(Library *l, Overloads *of, Function *f, Diags *d) {
    if (function_is_recognised(f) && f->body->n_out != 1)
        return diag_error(d, f->loc, "function %s has %zu results: chains of one are recognised",
                          diag_name(d, f->name), f->body->n_out);
    if (!check_lengths(f, d))
        return false;
    for (size_t i = 0; i < of->n; i++)
        if (str_eq(of->items[i]->overload, f->overload)) {
            diag_error(d, f->loc, "two functions are called %s%s%s", diag_name(d, f->name),
                       f->overload.n ? "::" : "", diag_name(d, f->overload));
            diag_note(d, of->items[i]->loc, "the other one");
            return false;
        }
    ARENA_PUSH(l->arena, of->items, of->n, of->cap, f);
    return true;
}

static void mark_own(Library *l, Function *f) {
    meta_set(l->arena, &f->meta, str_from(OWN), STR(""));
}

bool library_add(Library *l, Module *m, bool own, Diags *d) {
    Buf key = buf_new(l->arena);
    bool ok = true;
    for (size_t i = 0; i < m->n_functions; i++) {
        Function *f = m->functions[i];
        Str name = function_key(&key, f->domain, f->name, STR_NONE);
        Overloads *of = map_get(l->by_name, name);
        if (!of) {
            of = NEW(l->arena, Overloads);
            map_set(l->by_name, arena_str(l->arena, name), of);
        }
        if (!f->n_imports) { /* those of its file, not of the model that calls it */
            f->imports = m->imports;
            f->n_imports = m->n_imports;
        }
        if (own) {
            mark_own(l, f);
            l->n_own++;
        }
        ok = (!own || (check_marks(f, d) && check_new(f, d))) && claim(l, of, f, d) && ok;
    }
    return ok;
}

const Map *library_functions(Library *l, LibraryPart part) {
    l->read_part(l, part);
    return l->by_name;
}

const Overloads *library_find(Library *l, Str domain, Str op) {
    if (!l)
        return NULL;
    Buf key = buf_new(l->arena);
    Str name = function_key(&key, domain, op, STR_NONE);
    l->read_function(l, name);
    return map_get(l->by_name, name);
}

/* ---- attributes ---- */

/* What goes without saying, of a kind; in `room`, whose text is the arena's. */
static const Attr *unsaid(Arena *a, Attr *room, int kind, const int64_t *i, const float *f,
                          const char *s) {
    Str *text = s ? arena_copy(a, &(Str){s, strlen(s)}, sizeof *text) : NULL;
    room->kind = (AttrKind)kind;
    room->n = 1;
    if (kind == ATTR_INT)
        room->v.i = i;
    else if (kind == ATTR_FLOAT)
        room->v.f = f;
    else if (kind == ATTR_STRING && s)
        room->v.s = text;
    else
        return NULL; /* lists have no defaults that matter here */
    return room;
}

const Attr *attr_effective(const Node *n, Str name, Attr *room) {
    Arena *a = n->graph->module->arena;
    const Attr *stated = attr_find(n->attrs, n->n_attrs, name);
    if (stated)
        return stated;
    const OnnxSchema *s = node_schema(n);
    const SchemaAttr *of = s ? onnx_schema_attr(s, name) : NULL;
    const OpDef *op = of ? NULL : op_find(n->domain, n->op);
    const AttrSpec *spec = op ? op_attr(op, name) : NULL;
    *room = (Attr){.name = name};
    if (of)
        return of->presence != SCHEMA_ATTR_DEFAULT
                   ? NULL
                   : unsaid(a, room, of->type, &of->value.i, &of->value.f,
                            of->type == SCHEMA_STRING ? of->value.s : NULL);
    return spec && !spec->required
               ? unsaid(a, room, spec->kind, &spec->def_int, &spec->def_float, spec->def_str)
               : NULL;
}

static int64_t from_start(int64_t axis, int rank) {
    return axis < 0 && rank >= 0 ? axis + rank : axis;
}

static bool same_ints(const Attr *x, const Attr *y, int rank) {
    for (size_t i = 0; i < x->n; i++)
        if (from_start(x->v.i[i], rank) != from_start(y->v.i[i], rank))
            return false;
    return true;
}

bool attr_same(const Attr *x, const Attr *y, int rank) {
    if (!x || !y)
        return x == y;
    if (x->kind != y->kind || x->n != y->n || attr_is_ref(x) || attr_is_ref(y))
        return false;
    bool axis = str_is(x->name, "axis") || str_is(x->name, "axes");
    switch ((int)x->kind) {
    case ATTR_INT:
    case ATTR_INTS: return same_ints(x, y, axis ? rank : -1);
    case ATTR_FLOAT:
    case ATTR_FLOATS: return memcmp(x->v.f, y->v.f, x->n * sizeof *x->v.f) == 0;
    case ATTR_STRING: return str_eq(x->v.s[0], y->v.s[0]);
    default: return false;
    }
}

const Attr *function_default(const Function *f, Str name) {
    return attr_find(f->defaults, f->n_defaults, name);
}

bool function_type_fits(Type stated, Type has) {
    if (stated.kind != TYPE_TENSOR || stated.rank < 0)
        return true;
    if (has.kind != TYPE_TENSOR || has.rank != stated.rank)
        return false;
    ElemType elem = type_real_elem(has);
    bool fits = stated.elem == ELEM_FLOAT ? elem_is_float(elem) : stated.elem == elem;
    for (int i = 0; fits && i < stated.rank; i++)
        fits = stated.dims[i].value < 0 || stated.dims[i].value == has.dims[i].value;
    return fits;
}

const Dim *function_length(const Function *f, const Node *call, Str name) {
    for (size_t i = 0; i < f->body->n_in; i++) {
        Type stated = f->body->in[i]->type;
        const Value *has = node_input(call, i);
        for (int k = 0; has && has->type.rank == stated.rank && k < stated.rank; k++)
            if (dim_is_named(stated.dims[k]) && str_eq(stated.dims[k].param, name))
                return &has->type.dims[k];
    }
    return NULL;
}

static bool graph_uses(const Graph *g, Str attr) {
    for (const Node *n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->n_attrs; i++) {
            if (attr_is_ref(&n->attrs[i]) && str_eq(n->attrs[i].ref, attr))
                return true;
            for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
                if (graph_uses(n->attrs[i].v.g[k], attr))
                    return true;
        }
    return false;
}

bool function_uses(const Function *f, Str attr) {
    return graph_uses(f->body, attr);
}
