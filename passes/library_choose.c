/* Which overload of a function a call takes (passes/library.h), and why another does not fit. */
#include "passes/library.h"

#include <stdarg.h>

/* Why a function does not fit, where somebody asks. */
typedef struct Reason {
    Arena *arena;
    Diags *d; /* for names */
    const char *text;
} Reason;

__attribute__((format(printf, 2, 3))) static bool unfit(Reason *r, const char *fmt, ...) {
    char text[300];
    va_list ap;
    if (!r)
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->text = arena_strf(r->arena, "%s", text).s;
    return false;
}

/* ---- attributes ---- */

static bool is_formal(const Function *f, Str name) {
    for (size_t i = 0; i < f->n_attrs; i++)
        if (str_eq(f->attrs[i], name))
            return true;
    return function_default(f, name);
}

static const char *value_word(const Reason *r, const Attr *a) {
    if (!a)
        return "not given";
    switch ((int)(a->n == 1 && !attr_is_ref(a) ? a->kind : ATTR_GRAPH)) {
    case ATTR_INT: return arena_strf(r->arena, "%lld", (long long)a->v.i[0]).s;
    case ATTR_FLOAT: return arena_strf(r->arena, "%g", (double)a->v.f[0]).s;
    case ATTR_STRING: return arena_strf(r->arena, "\"%s\"", diag_name(r->d, a->v.s[0])).s;
    default: return "another value";
    }
}

static bool unfit_attr(Reason *r, const Attr *want, const Attr *has) {
    return r && unfit(r, "%s is %s, not %s", diag_name(r->d, want->name), value_word(r, has),
                      value_word(r, want));
}

/* Whether a node of the body cannot be without the attribute. */
static bool needs(const Function *f, Str attr) {
    for (const Node *n = f->body->first; n; n = n->next)
        for (size_t i = 0; i < n->n_attrs; i++) {
            const OnnxSchema *s = node_schema(n);
            const SchemaAttr *of = s ? onnx_schema_attr(s, n->attrs[i].name) : NULL;
            if (attr_is_ref(&n->attrs[i]) && str_eq(n->attrs[i].ref, attr) &&
                (node_is_constant(n) || (of && of->presence == SCHEMA_ATTR_REQUIRED)))
                return true;
        }
    return false;
}

static bool has_needed(const Function *f, const Node *call, Reason *r) {
    Attr room;
    for (size_t i = 0; i < f->n_attrs; i++)
        if (!attr_effective(call, f->attrs[i], &room) && needs(f, f->attrs[i]))
            return r && unfit(r, "the call gives no attribute %s", diag_name(r->d, f->attrs[i]));
    return true;
}

/* `first`: of the overloads, whose defaults are what goes without saying where no operator knows.
 */
static bool fits_attrs(const Function *f, const Function *first, const Node *call, Reason *r) {
    Attr room;
    for (size_t i = 0; i < call->n_attrs; i++) {
        const Attr *a = &call->attrs[i];
        const OnnxSchema *s = node_schema(call);
        const SchemaAttr *of = s ? onnx_schema_attr(s, a->name) : NULL;
        bool idle = of && of->presence == SCHEMA_ATTR_DEFAULT && of->type == SCHEMA_INT &&
                    a->kind == ATTR_INT && a->v.i[0] == of->value.i;
        if (!is_formal(f, a->name) && !idle)
            return r && unfit(r, "it has no attribute %s", diag_name(r->d, a->name));
    }
    for (size_t i = 0; i < f->n_defaults; i++) {
        const Attr *want = &f->defaults[i], *has = attr_effective(call, want->name, &room);
        has = has ? has : function_default(first, want->name);
        if (!function_uses(f, want->name) && !attr_same(want, has, value_rank(node_input(call, 0))))
            return unfit_attr(r, want, has);
    }
    return has_needed(f, call, r);
}

/* ---- operands, and what the body is made of ---- */

/* Whether operand i of a node may be left out. */
static bool is_optional(const Node *n, size_t i) {
    const OnnxSchema *s = node_schema(n);
    const SchemaParam *p = s ? onnx_schema_param(s, false, (int)i) : NULL;
    return !s || (p && p->option == SCHEMA_OPTIONAL);
}

static bool yields(const Function *f, const Value *v) {
    for (size_t i = 0; i < f->body->n_out; i++)
        if (f->body->out[i] == v)
            return true;
    return false;
}

static bool can_do_without(const Function *f, const Value *operand) {
    if (yields(f, operand))
        return false;
    for (const Node *n = f->body->first; n; n = n->next)
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] == operand && !is_optional(n, i))
                return false;
    return true;
}

/* A name that stands for several dimensions is of equal ones; one that the body reads is known. */
static bool fits_names(const Function *f, const Node *call, size_t operand, Reason *r) {
    const Value *of = f->body->in[operand], *has = node_input(call, operand);
    for (int i = 0; i < of->type.rank; i++) {
        Str name = of->type.dims[i].param;
        if (!dim_is_named(of->type.dims[i]))
            continue;
        const Dim *first = function_length(f, call, name);
        const Dim *own = has ? &has->type.dims[i] : first;
        if (function_uses(f, name) && (!first || first->value < 0))
            return r && unfit(r, "dimension %s of operand %s is not known", diag_name(r->d, name),
                              diag_name(r->d, of->name));
        if (own != first && !dim_equal(*own, *first))
            return r && unfit(r, "dimension %s of operand %s is not that of an operand before",
                              diag_name(r->d, name), diag_name(r->d, of->name));
    }
    return true;
}

static bool fits_types(const Function *f, const Node *call, Reason *r) {
    for (size_t i = 0; i < f->body->n_in; i++) {
        const Value *of = f->body->in[i], *has = node_input(call, i);
        if (has && !function_type_fits(of->type, has->type))
            return r && unfit(r, "operand %s is %s, not %s", diag_name(r->d, of->name),
                              type_text(r->arena, has->type), type_text(r->arena, of->type));
        if (of->type.kind == TYPE_TENSOR && !fits_names(f, call, i, r))
            return false;
    }
    return true;
}

static bool fits_operands(const Function *f, const Node *call, Reason *r) {
    const Graph *b = f->body;
    for (size_t i = b->n_in; i < call->n_in; i++)
        if (call->in[i])
            return unfit(r, "it has fewer operands than the call: %zu", b->n_in);
    for (size_t i = b->n_out; i < call->n_out; i++)
        if (call->out[i])
            return unfit(r, "it has fewer results than the call: %zu", b->n_out);
    for (size_t i = 0; i < b->n_in; i++)
        if (!node_input(call, i) && !can_do_without(f, b->in[i]))
            return r && unfit(r, "the call leaves operand %s out, which the body needs",
                              diag_name(r->d, b->in[i]->name));
    return true;
}

/* Whether the opset can say the node of a body, which is written for another: operands may be
 * attributes of the same name there. */
static bool opset_has(const Node *n, int64_t opset) {
    const OnnxSchema *own = node_schema(n), *s = onnx_schema_find(n->domain, n->op, (int)opset);
    if (!s || s->flags & SCHEMA_DEPRECATED)
        return false;
    if (s == own || node_opset(n) <= opset)
        return true;
    for (size_t i = 0; own && i < n->n_in; i++) {
        const SchemaParam *p = onnx_schema_param(own, false, (int)i),
                          *q = onnx_schema_param(s, false, (int)i);
        if (n->in[i] && p && !q && !onnx_schema_attr(s, str_from(p->name)))
            return false;
    }
    for (size_t i = 0; i < n->n_attrs; i++)
        if (!onnx_schema_attr(s, n->attrs[i].name))
            return false;
    return true;
}

static bool is_on(const CallPath *path, const Function *f) {
    for (; path; path = path->outer)
        if (str_eq(path->f->name, f->name) && domain_equal(path->f->domain, f->domain))
            return true;
    return false;
}

static bool fits_target(const Chooser *c, const Function *f, const CallPath *path, Reason *r) {
    CallPath here = {f, path};
    for (const Node *n = f->body->first; n && !is_on(path, f); n = n->next) {
        bool onnx = domain_is_onnx(n->domain);
        bool number = node_is_constant(n) && n->n_out && !yields(f, n->out[0]);
        if (number || (c->has(c->ctx, n->domain, n->op) && (!onnx || opset_has(n, c->opset))))
            continue; /* numbers of a body become constants of the model */
        const Overloads *of = library_find(c->library, n->domain, n->op);
        bool any = false;
        for (size_t i = 0; of && i < of->n && !any; i++)
            any = fits_target(c, of->items[i], &here, NULL);
        if (!any)
            return r && unfit(r, "its %s can neither stand at opset %lld nor be spelled out",
                              diag_name(r->d, n->op), (long long)c->opset);
    }
    return !is_on(path, f) || unfit(r, "it would call itself");
}

/* ---- the choice ---- */

static bool fits(const Chooser *c, const Function *f, const Function *first, const Node *call,
                 const CallPath *path, Reason *r) {
    return fits_operands(f, call, r) && fits_types(f, call, r) && fits_attrs(f, first, call, r) &&
           fits_target(c, f, path, r);
}

static bool is_asked_for(const Node *call, const Function *f) {
    return !call->overload.n || str_eq(call->overload, f->overload);
}

const Function *library_choose(const Chooser *c, const Node *call, const CallPath *path) {
    const Overloads *of = library_find(c->library, call->domain, call->op);
    for (size_t i = 0; of && i < of->n; i++)
        if (is_asked_for(call, of->items[i]) &&
            fits(c, of->items[i], of->items[0], call, path, NULL))
            return of->items[i];
    return NULL;
}

static void note_reasons(const Chooser *c, const Overloads *of, const Node *call, Diags *d) {
    for (size_t i = 0; i < of->n; i++) {
        Reason r = {c->library->arena, d, "the call asks for another overload"};
        if (is_asked_for(call, of->items[i]))
            fits(c, of->items[i], of->items[0], call, NULL, &r);
        diag_note(d, of->items[i]->loc, "%s", r.text);
    }
}

/* An attribute that each of the functions is for another value of than the call's, be they of one
 * name and for the operands that there are. */
typedef struct Wanted {
    const Attr *has;
    Buf values;
    size_t n;
} Wanted;

static void want(Wanted *w, Reason *r, const Attr *value, bool last) {
    const char *word = value_word(r, value);
    buf_fmt(&w->values, "%s%s", !w->n++ ? "" : last ? " or " : ", ", word);
}

static const Attr *unfit_default(const Function *f, const Node *call, const Attr **has) {
    for (size_t i = 0; i < f->n_defaults; i++) {
        const Attr *want = &f->defaults[i];
        *has = node_attr(call, arena_str(call->graph->module->arena, want->name).s);
        if (!function_uses(f, want->name) && *has && (*has)->given.n &&
            !attr_same(want, *has, value_rank(node_input(call, 0))))
            return want;
    }
    return NULL;
}

static Wanted wanted(const Overloads *of, const Node *call, Reason *r) {
    Wanted w = {.values = buf_new(r->arena)};
    const Attr *has, *next = NULL;
    for (size_t i = 0; i < of->n; i++) {
        const Function *f = of->items[i];
        const Attr *value = fits_operands(f, call, r) && fits_types(f, call, r)
                                ? unfit_default(f, call, &has)
                                : NULL;
        if (!value || (w.has && !str_eq(has->name, w.has->name)) ||
            (next && attr_same(next, value, -1)))
            continue; /* equal values stand side by side */
        w.has = has;
        if (next)
            want(&w, r, next, false);
        next = value;
    }
    if (next)
        want(&w, r, next, true);
    return w;
}

bool library_lacks_part(const Chooser *c, const Node *call, Diags *d) {
    const Overloads *of = library_find(c->library, call->domain, call->op);
    if (!str_is(call->domain, "qxc") || !call->from.n || !of || library_is_own(of->items[0]) ||
        library_choose(c, call, NULL))
        return false;
    Reason r = {c->library->arena, d, ""};
    Wanted w = wanted(of, call, &r);
    const char *op = diag_name(d, call->from.from[0].op);
    if (w.has) {
        diag_error(d, call->loc, "%s: %s is %s, must be %s", op, diag_name(d, w.has->given),
                   value_word(&r, w.has), buf_as_str(&w.values).s);
        return true;
    }
    diag_error(d, call->loc, "%s: what it is with these operands and attributes is not known", op);
    note_reasons(c, of, call, d);
    return true;
}

void library_tell_unfit(const Chooser *c, const Node *call, Diags *d) {
    const Overloads *of = library_find(c->library, call->domain, call->op);
    if (!of || library_choose(c, call, NULL))
        return;
    diag_warning(d, call->loc, "%s %s fits this call: it stays as it is",
                 of->n > 1 ? "none of the functions" : "no function", diag_name(d, call->op));
    note_reasons(c, of, call, d);
}
