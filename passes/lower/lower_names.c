/* Lowering: values and nodes take back the names they had in ONNX. See lower_spelling.h. */
#include "ir/later.h"
#include "passes/edit.h"
#include "passes/lower/lower_spelling.h"

void name_wanted(Lower *l, Value *v, Str name) {
    Spelled *s = l->spelled;
    if (v->kind == VALUE_INPUT || uses_is_output(l->uses, v))
        return; /* the interface keeps its names */
    Want w = {v, name};
    ARENA_PUSH(l->b.m->scratch, s->wants, s->n_wants, s->cap_wants, w);
}

typedef struct Names {
    Map *used, *wanted;
} Names;

static void note_kept(Value *v, void *ctx) {
    Names *n = ctx;
    if (!map_get(n->wanted, value_key(v)))
        map_set(n->used, v->name, v);
}

/* Values that became graph outputs while lowering (a clamp that changes nothing was dropped) have
 * the interface's names. */
static void drop_interface(Spelled *s, const Uses *uses) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n_wants; i++) {
        const Use *of;
        bool output = false;
        for (size_t n = uses_of(uses, s->wants[i].v, &of); n-- > 0 && !output;)
            output = !of[n].node;
        if (!output)
            s->wants[kept++] = s->wants[i];
    }
    s->n_wants = kept;
}

/* One constant, quantized in two ways: it takes the place of `v`. What its integers mean is what
 * both say, or left open. */
static void merge_const(Lower *l, Uses *uses, Value *v, Value *into) {
    if (v->type.quant && into->type.quant && !quant_equal(v->type.quant, into->type.quant))
        into->type = integer_type(into->type, into->type.quant, false);
    value_replace(l->b.m, uses, v, into);
}

static void take_names(Lower *l) {
    Spelled *s = l->spelled;
    Arena *a = l->b.m->scratch;
    Names n = {map_new(a), map_new(a)};
    edit_sweep(l->b.m);
    Uses *uses = uses_new(l->b.m);
    drop_interface(s, uses);
    for (size_t i = 0; i < s->n_wants; i++)
        map_set(n.wanted, value_key(s->wants[i].v), s->wants[i].v);
    module_each_value(l->b.m, note_kept, &n);
    for (size_t i = 0; i < s->n_wants; i++) {
        Value *v = s->wants[i].v, *other = map_get(n.used, s->wants[i].name);
        if (other == v)
            continue;
        if (other && v->kind == VALUE_CONST && v->data)
            later_make(l->b.m, v->data);
        if (other && v->kind == VALUE_CONST && cell_same_data(v->data, value_data(other)) &&
            (other->graph == l->b.m->graph || other->graph == v->graph)) {
            merge_const(l, uses, v, other);
            continue;
        }
        v->name = other ? unique_name(l->b.names, s->wants[i].name) : s->wants[i].name;
        map_set(n.used, v->name, v);
    }
}

/* ---- nodes ---- */

/* Another node, made before, may be called what a spelling called its node: onnxruntime loads no
 * graph in which two nodes have one name. */
static void part_nodes(Graph *g, void *ctx) {
    Lower *l = ctx;
    const Spelled *s = l->spelled;
    Map *spelled = map_new(l->b.m->scratch);
    FOR_NODES(n, g) {
        if (n->id < s->n_at && s->at[n->id])
            map_set(spelled, n->name, n);
    }
    FOR_NODES(n, g) {
        const Node *other = n->name.n ? map_get(spelled, n->name) : NULL;
        if (other && !(n->id < s->n_at && s->at[n->id]))
            n->name = unique_name(l->b.names, n->name);
    }
}

void names_restore(Lower *l) {
    Arena *outer = scratch_begin(l->b.m);
    take_names(l);
    module_each_graph(l->b.m, part_nodes, l);
    scratch_end(l->b.m, outer);
    edit_sweep(l->b.m);
    module_forget_infos(l->b.m);
    l->b.names = unique_names_new(l->b.m);
}
