/* Names of values and their scopes; what value_info and outputs say of values, and in what order.
 */
#include "frontend/onnx/read.h"

Value *scope_find(const Scope *s, Str name) {
    for (; s; s = s->outer) {
        Value *v = map_get(s->values, name);
        if (v)
            return v;
    }
    return NULL;
}

bool scope_define(Reader *r, Scope *s, Value *v) {
    const Value *other = map_get(s->values, v->name);
    if (!other) {
        map_set(s->values, v->name, v);
        return true;
    }
    diag_error(r->diags, v->loc, "value \"%s\" is defined twice", diag_name(r->diags, v->name));
    diag_note(r->diags, other->loc, "first defined here");
    return false;
}

bool plain_type_of(const Tensor *t, const Type *type) {
    if (type->kind != TYPE_TENSOR || type->elem != t->elem || type->rank != t->rank ||
        type->denotation.s)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (type->dims[i].value != t->dims[i] || type->dims[i].denotation.s)
            return false;
    return true;
}

Infos read_infos(Reader *r, size_t n, Onnx__ValueInfoProto **infos, size_t n_out,
                 Onnx__ValueInfoProto **outputs) {
    Infos all = {NEW_ARRAY(r->arena, Info, n), n, map_new(r->arena), map_new(r->arena)};
    for (size_t i = 0; i < n; i++) {
        all.items[i].proto = infos[i];
        Str name = pb_str(infos[i]->has_name, infos[i]->name);
        if (name.n && !map_get(all.by_name, name))
            map_set(all.by_name, name, &all.items[i]);
    }
    for (size_t i = 0; i < n_out; i++) {
        Str name = pb_str(outputs[i]->has_name, outputs[i]->name);
        if (!map_get(all.outputs, name))
            map_set(all.outputs, name, outputs[i]);
    }
    return all;
}

/* An entry that is but a name stays in `extra`: the value would not show that it had one. */
static bool says_anything(const Onnx__ValueInfoProto *p) {
    return p->type || p->has_doc_string || p->n_metadata_props || p->base.n_unknown_fields;
}

void take_info(Reader *r, Infos *infos, Value *v) {
    const Onnx__ValueInfoProto *output = map_get(infos->outputs, v->name);
    if (output) {
        read_info(r, v, output);
        v->declared = output->type != NULL;
        return;
    }
    Info *info = map_get(infos->by_name, v->name);
    if (info && says_anything(info->proto)) {
        read_info(r, v, info->proto);
        v->declared = info->proto->type != NULL;
        info->value = v;
    }
}

/* ---- outputs ---- */

/* A constant as an output: the same as stating its type. */
static bool take_const_output(Reader *r, Value *v, const Onnx__ValueInfoProto *output) {
    Value stated = *v;
    if (v->declared || !v->data || !output->type)
        return false;
    read_info(r, &stated, output);
    if (!plain_type_of(v->data, &stated.type))
        return false;
    v->doc = stated.doc;
    v->meta = stated.meta;
    v->extra = stated.extra;
    return v->declared = true;
}

typedef struct Said { /* by the first output of a name */
    const Onnx__ValueInfoProto *output;
    Str packed; /* once there is a second one */
    bool follows;
} Said;

/* Whether the value itself says all that `output` does, so that it can be written from there.
 * `before` is what an earlier output said of the same value, or NULL. */
static bool output_follows(Reader *r, const Scope *s, const Onnx__ValueInfoProto *output,
                           Said *before, const Onnx__GraphProto *p, Value *v) {
    if (v->graph != s->graph)
        return false;
    if (before) {
        if (before->follows && !before->packed.s)
            before->packed = packed_message(r, &before->output->base);
        return before->follows && str_eq(before->packed, packed_message(r, &output->base));
    }
    switch (v->kind) {
    case VALUE_NODE: /* it has taken what the output says; a main graph's is written with a type */
        return output->type || s->outer;
    case VALUE_INPUT: return same_message(r, &p->input[v->index]->base, &output->base);
    case VALUE_CONST: return take_const_output(r, v, output);
    }
    return false;
}

/* The EXTRA_PLACES entry of an output that says of its value what the value itself does not. */
static void keep_output(size_t index, const Onnx__ValueInfoProto *output, Buf *places) {
    Buf entry = buf_new(places->arena);
    wire_put_number(&entry, OUTPUT_INDEX, index);
    extra_message(&entry, OUTPUT_INFO, &output->base);
    wire_put_bytes(places, PLACE_OUTPUT, buf_as_str(&entry));
}

void read_outputs(Reader *r, const Scope *s, const Onnx__GraphProto *p, Buf *places) {
    Map *said = map_new(r->arena); /* name -> Said */
    for (size_t i = 0; i < p->n_output; i++) {
        Onnx__ValueInfoProto *output = p->output[i];
        Str name = pb_str(output->has_name, output->name);
        Value *v = name.n ? scope_find(s, name) : NULL;
        if (!v) {
            diag_error(r->diags, reader_loc(r, "output", name),
                       "no node, input or initializer defines it");
            continue;
        }
        graph_add_output(s->graph, v);
        Said *before = map_get(said, name);
        Said now = {output, STR_NONE, output_follows(r, s, output, before, p, v)};
        if (!now.follows)
            keep_output(i, output, places);
        if (!before)
            map_set(said, name, arena_copy(r->arena, &now, sizeof now));
    }
}

/* ---- what goes by rule, and where the file differs ---- */

void keep_order(Arena *a, const Graph *g, OnnxList list, const Str *names, size_t n, Buf *places) {
    ValueList rule = onnx_list(a, g, list);
    bool same = rule.n == n; /* else there were errors */
    for (size_t i = 0; same && i < n; i++)
        same = str_eq(rule.items[i]->name, names[i]);
    for (size_t i = 0; !same && i < n; i++)
        wire_put_bytes(places, list, names[i]);
}

/* Takes the next Info that found its value. */
static const Info *next_taken(const Infos *infos, size_t *i) {
    while (*i < infos->n && !infos->items[*i].value)
        ++*i;
    return *i < infos->n ? &infos->items[(*i)++] : NULL;
}

static bool takes_info(const Infos *infos, const Value *v) {
    const Info *info = v ? map_get(infos->by_name, v->name) : NULL;
    return info && info->value == v;
}

static bool info_order_follows(Arena *a, const Graph *g, const Infos *infos) {
    ValueList rule = onnx_list(a, g, LIST_VALUE_INFOS);
    size_t at = 0;
    for (size_t i = 0; i < rule.n; i++)
        if (takes_info(infos, rule.items[i]) && next_taken(infos, &at)->value != rule.items[i])
            return false;
    return true;
}

/* Does an entry that no value took stand before one that was taken? */
static bool infos_mixed(const Infos *infos) {
    bool left = false;
    for (size_t i = 0; i < infos->n; i++) {
        if (left && infos->items[i].value)
            return true;
        left |= !infos->items[i].value;
    }
    return false;
}

void keep_infos(const Graph *g, const Infos *infos, uint32_t number, Buf *extra, Buf *places) {
    if (infos_mixed(infos)) {
        for (size_t i = 0; i < infos->n; i++) {
            const Info *info = &infos->items[i];
            if (info->value)
                wire_put_bytes(places, PLACE_VALUE_INFO, info->value->name);
            else
                extra_message(places, PLACE_OTHER_INFO, &info->proto->base);
        }
        return;
    }
    for (size_t i = 0; i < infos->n; i++)
        if (!infos->items[i].value)
            extra_message(extra, number, &infos->items[i].proto->base);
    if (info_order_follows(places->arena, g, infos))
        return;
    size_t at = 0;
    for (const Info *info; (info = next_taken(infos, &at));)
        wire_put_bytes(places, PLACE_VALUE_INFO, info->value->name);
}
