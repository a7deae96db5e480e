#include "compiler/cut.h"

#include "passes/annotations.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Cut {
    Module *m;
    Graph *g; /* the model's own */
    Diags *d;
    Map *values; /* of that graph, by name */
} Cut;

/* The values that one of the options names. */
typedef struct Chosen {
    const char *option;
    Value **v;
    size_t n, cap;
} Chosen;

/* ---- names ---- */

typedef struct Elsewhere {
    Str name;
    const Graph *own;
    const Value *in_body;
    const Node *node; /* of this name, in the model's own graph */
} Elsewhere;

static void look_in_body(Value *v, void *ctx) {
    Elsewhere *e = ctx;
    if (v->graph != e->own && str_eq(v->name, e->name))
        e->in_body = v;
}

static bool refuse_body(const Cut *c, const char *option, const Value *v) {
    const Graph *body = v->graph;
    if (!body->owner)
        return diag_error(c->d, v->loc,
                          "%s: '%s' stands in a function, whose calls each have their own: only "
                          "values of the model's own graph can be cut",
                          option, diag_name(c->d, v->name));
    return diag_error(c->d, v->loc,
                      "%s: '%s' stands in the body of %s: only values of the model's own graph can "
                      "be cut",
                      option, diag_name(c->d, v->name), node_text(body->owner));
}

static bool refuse_name(const Cut *c, const char *option, Str name) {
    Elsewhere e = {.name = name, .own = c->g};
    module_each_value(c->m, look_in_body, &e);
    if (e.in_body)
        return refuse_body(c, option, e.in_body);
    FOR_NODES(n, c->g)
    if (str_eq(n->name, name) && n->n_out && n->out[0])
        e.node = n;
    diag_error(c->d, LOC_NONE, "%s: %s has no value '%s'", option,
               diag_name(c->d, str_from(c->m->path)), diag_name(c->d, name));
    if (e.node)
        diag_note(c->d, e.node->loc, "the result of %s is the value '%s'", node_text(e.node),
                  diag_name(c->d, e.node->out[0]->name));
    else
        diag_did_you_mean_key(c->d, LOC_NONE, name, c->values);
    return false;
}

static bool choose(const Cut *c, Chosen *to, Str name) {
    Value *v = map_get(c->values, name);
    if (!v)
        return refuse_name(c, to->option, name);
    for (size_t i = 0; i < to->n; i++)
        if (to->v[i] == v)
            return diag_error(c->d, v->loc, "%s: '%s' is named twice", to->option,
                              diag_name(c->d, name));
    ARENA_PUSH(c->m->arena, to->v, to->n, to->cap, v);
    return true;
}

/* A text that is a value's name is that name, whatever commas it has. */
static bool choose_list(const Cut *c, Chosen *to, const char *text) {
    if (map_get(c->values, str_from(text)))
        return choose(c, to, str_from(text));
    bool ok = true;
    Str name;
    for (const char *at = text; str_next_item(&at, &name);) {
        if (!name.n)
            return diag_error(c->d, LOC_NONE, "%s: a name is empty", to->option);
        ok = choose(c, to, name) && ok;
    }
    return ok;
}

static bool choose_all(const Cut *c, Chosen *to, const TextList *texts) {
    bool ok = true;
    for (size_t i = 0; i < texts->n; i++)
        ok = choose_list(c, to, texts->items[i]) && ok;
    return ok;
}

static void name_values(const Cut *c) {
    const Graph *g = c->g;
    for (size_t i = 0; i < g->n_in; i++)
        map_set(c->values, g->in[i]->name, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        map_set(c->values, g->consts[i]->name, g->consts[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            map_set(c->values, n->out[i]->name, n->out[i]);
}

/* ---- inputs in the place of what was computed ---- */

/* A node that is left has all its results, one of a new name in the place of this one: of results
 * that stand in a row runtimes miss none. */
static void detach(UniqueNames *names, Value *v) {
    Node *n = v->def;
    if (n) {
        Str name = unique_name(names, v->name); /* v still has its own */
        n->out[v->index] = NULL;
        node_add_output(n, (size_t)v->index, name, v->type);
    }
    v->kind = VALUE_INPUT;
    v->def = NULL;
    v->index = 0;
    v->data = NULL;
    v->sparse = NULL;
    v->declared = true;
}

static bool detach_all(const Cut *c, const Chosen *in) {
    bool ok = true;
    for (size_t i = 0; i < in->n; i++)
        if (in->v[i]->type.kind == TYPE_NONE)
            ok = diag_error(c->d, in->v[i]->loc,
                            "%s: nothing is known of the type of '%s', which an input has to state",
                            in->option, diag_name(c->d, in->v[i]->name));
    if (!ok)
        return false;
    UniqueNames *names = unique_names_new(c->m);
    for (size_t i = 0; i < in->n; i++)
        detach(names, in->v[i]);
    size_t kept = 0;
    for (size_t i = 0; i < c->g->n_consts; i++)
        if (c->g->consts[i]->kind == VALUE_CONST)
            c->g->consts[kept++] = c->g->consts[i];
    c->g->n_consts = kept;
    return true;
}

/* ---- what the outputs need ---- */

/* Bodies are as deep in each other as readers allow. */
static void need_operands(const Node *n, bool *needed) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            needed[n->in[i]->id] = true;
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++) {
            const Graph *body = n->attrs[i].v.g[k];
            for (const Node *inner = body->first; inner; inner = inner->next)
                need_operands(inner, needed);
            for (size_t o = 0; o < body->n_out; o++)
                needed[body->out[o]->id] = true;
        }
}

/* By value id. Nodes stand behind what they read, so one walk from the last to the first meets
 * every reader of a result before what makes it; those that nobody needs go. */
static bool *keep_needed(const Cut *c) {
    bool *needed = NEW_ARRAY(c->m->scratch, bool, (size_t)c->m->n_values + 1);
    for (size_t i = 0; i < c->g->n_out; i++)
        needed[c->g->out[i]->id] = true;
    for (Node *n = c->g->last, *before; n; n = before) {
        before = n->prev;
        bool some = false;
        for (size_t i = 0; i < n->n_out; i++)
            some = some || (n->out[i] && needed[n->out[i]->id]);
        if (some)
            need_operands(n, needed);
        else
            node_remove(n);
    }
    return needed;
}

/* ---- the graph's lists ---- */

static bool is_among(const Chosen *list, const Value *v) {
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == v)
            return true;
    return false;
}

static bool check_needed(const Cut *c, const Chosen *in, const bool *needed) {
    bool ok = true;
    for (size_t i = 0; i < in->n; i++)
        if (!needed[in->v[i]->id])
            ok = diag_error(c->d, in->v[i]->loc, "%s: no output needs '%s'%s", in->option,
                            diag_name(c->d, in->v[i]->name),
                            in->n > 1 ? " where the others are given" : "");
    return ok;
}

static void put_chosen(Value **list, size_t *n, const Chosen *in) {
    for (size_t i = 0; i < in->n; i++)
        list[(*n)++] = in->v[i];
}

/* Those that were asked for stand where the first one stood that they replace, or behind the others
 * where they replace none. */
static void list_inputs(const Cut *c, const Chosen *in, const bool *needed) {
    Graph *g = c->g;
    Value **list = NEW_ARRAY(c->m->arena, Value *, g->n_in + in->n + 1);
    size_t n = 0;
    bool placed = false;
    for (size_t i = 0; i < g->n_in; i++) {
        Value *v = g->in[i];
        bool listed = is_among(in, v);
        if (!listed && needed[v->id]) {
            list[n++] = v;
            continue;
        }
        if (!placed)
            put_chosen(list, &n, in);
        placed = true;
        if (!listed && !v->data)
            diag(c->d, DIAG_REMARK, v->loc, "input '%s' goes: no output needs it",
                 diag_name(c->d, v->name));
    }
    if (!placed)
        put_chosen(list, &n, in);
    g->in = list;
    g->n_in = n;
    g->cap_in = n;
}

/* Who cuts a branch and forgets the one beside it wants to know. */
static void tell_left(const Cut *c, const Chosen *in) {
    const Uses *uses = uses_new(c->m);
    for (size_t i = 0; in->n && i < c->g->n_in; i++) {
        const Value *v = c->g->in[i];
        const Use *use;
        if (is_among(in, v) || v->data || !uses_of(uses, v, &use))
            continue;
        diag(c->d, DIAG_REMARK, v->loc, "input '%s' stays: %s still needs it",
             diag_name(c->d, v->name), use->node ? node_text(use->node) : "an output");
    }
}

static void set_outputs(const Cut *c, const Chosen *out) {
    if (!out->n)
        return;
    c->g->out = out->v;
    c->g->n_out = out->n;
    c->g->cap_out = out->cap;
    edit_forget_outputs(c->g);
    for (size_t i = 0; i < out->n; i++) {
        Value *v = out->v[i];
        v->declared = v->type.kind != TYPE_NONE;
        if (!v->declared)
            diag_warning(c->d, v->loc,
                         "%s: nothing is known of the type of '%s', which runtimes may want to "
                         "know of an output",
                         out->option, diag_name(c->d, v->name));
    }
}

/* ---- what was said of values that are gone ---- */

static void forget_annotations(const Cut *c, const bool *needed) {
    Annotations all = annotations_of(c->g), left = {0};
    for (size_t i = 0; i < all.n; i++) {
        const Value *v = map_get(c->values, all.items[i].tensor);
        if (v && needed[v->id])
            ARENA_PUSH(c->m->arena, left.items, left.n, left.cap, all.items[i]);
    }
    if (left.n < all.n)
        annotations_set(c->g, &left);
}

static bool cut(const Cut *c, Chosen *in, Chosen *out, const Options *o) {
    bool ok = choose_all(c, out, &o->cut_outputs);
    ok = choose_all(c, in, &o->cut_inputs) && ok;
    if (!ok || !detach_all(c, in))
        return false;
    set_outputs(c, out);
    bool *needed = keep_needed(c);
    if (!check_needed(c, in, needed))
        return false;
    list_inputs(c, in, needed);
    forget_annotations(c, needed);
    edit_sweep(c->m);
    drop_unused_quants(c->m);
    tell_left(c, in);
    return true;
}

bool cut_module(Session *s, Module *m, unsigned flags, ExitCode *code) {
    const Options *o = &s->o;
    if (!o->cut_outputs.n && !o->cut_inputs.n)
        return true;
    Arena *outer = scratch_begin(m);
    Cut c = {m, m->graph, s->d, map_new(m->scratch)};
    Chosen in = {.option = "-cut-inputs"}, out = {.option = "-cut-outputs"};
    name_values(&c);
    module_forget_file(m);
    bool ok = cut(&c, &in, &out, o);
    scratch_end(m, outer);
    *code = ok ? EXIT_WRONG : EXIT_USAGE;
    return ok && module_check(m, flags, s->d);
}
