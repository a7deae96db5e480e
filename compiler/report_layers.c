/* Layers, values and quantizations of a report as JSON. */
#include "compiler/report_parts.h"

#include <math.h>

json_t *report_text_of(const Report *r, Str s) {
    return json_name(r->a, s);
}

json_t *report_count(size_t n) {
    return json_integer((json_int_t)n);
}

void report_real(json_t *to, const char *key, double x) {
    if (isfinite(x))
        json_object_set_new(to, key, json_real(x));
}

static size_t bytes_of(const Value *v) {
    size_t count;
    return v && v->type.kind == TYPE_TENSOR && type_count(v->type, &count)
               ? elem_bytes(v->type.elem, count)
               : 0;
}

/* Nothing where a dimension is open. */
static void put_bytes(json_t *to, const Value *v) {
    size_t count;
    if (v->type.kind == TYPE_TENSOR && type_count(v->type, &count))
        json_object_set_new(to, "bytes", report_count(bytes_of(v)));
}

/* ---- quantizations ---- */

static json_t *scales(const Quant *q) {
    if (q->n_scale == 1)
        return json_real((double)q->scale[0]);
    json_t *list = json_array();
    for (size_t i = 0; i < q->n_scale; i++)
        json_array_append_new(list, json_real((double)q->scale[i]));
    return list;
}

static json_t *zero_points(const Quant *q) {
    if (q->n_zp <= 1)
        return json_integer(q->n_zp ? q->zp[0] : 0);
    json_t *list = json_array();
    for (size_t i = 0; i < q->n_zp; i++)
        json_array_append_new(list, json_integer(q->zp[i]));
    return list;
}

static void put_real_range(json_t *to, const Quant *q) {
    double low = INFINITY, high = -INFINITY;
    bool integers = quant_is_integers(q);
    double lo = integers ? (double)quant_lo(q) : -(double)q->floats.most;
    double hi = integers ? (double)quant_hi(q) : (double)q->floats.most;
    for (size_t i = 0; i < q->n_scale; i++) {
        double zp = integers ? (double)quant_zp(q, i) : 0, scale = (double)quant_scale(q, i);
        low = fmin(low, (lo - zp) * scale);
        high = fmax(high, (hi - zp) * scale);
    }
    if (isfinite(low) && isfinite(high))
        json_object_set_new(to, "real_range", json_pack("[f, f]", low, high));
}

static void put_axes(json_t *to, const Quant *q) {
    json_t *axes = json_array();
    for (int i = 0; i < q->n_axes; i++)
        json_array_append_new(
            axes, json_pack("{s:i, s:I}", "axis", q->axis[i], "block", (json_int_t)q->block[i]));
    json_object_set_new(to, "axes", axes);
}

json_t *report_quant(const Report *r, const Quant *q) {
    static const char *const kinds[] = {[QUANT_PARAMS] = "parameters",
                                        [QUANT_UNKNOWN] = "open",
                                        [QUANT_DYNAMIC] = "dynamic",
                                        [QUANT_ACC] = "accumulator"};
    json_t *to = json_object();
    json_object_set_new(to, "kind", json_string(kinds[q->kind]));
    if (q->storage != ELEM_UNDEFINED)
        json_object_set_new(to, "storage", json_string(elem_name(q->storage)));
    if (q->alias.n)
        json_object_set_new(to, "alias", report_text_of(r, q->alias));
    if (!quant_is_known(q))
        return to;
    json_object_set_new(to, "scale", scales(q));
    json_object_set_new(to, "zero_point", zero_points(q));
    if (quant_is_integers(q))
        json_object_set_new(to, "integers",
                            json_pack("[I, I]", (json_int_t)quant_lo(q), (json_int_t)quant_hi(q)));
    put_axes(to, q);
    put_real_range(to, q);
    return to;
}

/* ---- values ---- */

/* The type without any alias: what that stands for is the quantization's to say. */
static void put_type(const Report *r, json_t *to, const Value *v) {
    json_object_set_new(to, "type", report_text_of(r, str_from(type_text(r->a, v->type))));
    if (v->type.kind == TYPE_TENSOR) {
        json_object_set_new(to, "element", json_string(elem_name(v->type.elem)));
        if (v->type.rank >= 0)
            json_object_set_new(to, "shape", json_dims(r->a, v->type));
    }
}

static void put_stat(json_t *to, const Stat *s) {
    float min, max;
    if (!s || s->n != 1 || !s->min || !s->max || s->assumed)
        return;
    min = s->min[0];
    max = s->max[0];
    json_t *seen = json_object();
    report_real(seen, "min", (double)min);
    report_real(seen, "max", (double)max);
    if (s->avg)
        report_real(seen, "mean", (double)s->avg[0]);
    if (s->std)
        report_real(seen, "std", (double)s->std[0]);
    if (s->count)
        json_object_set_new(seen, "samples", json_integer(s->count));
    json_object_set_new(to, "calibrated", seen);
}

static json_t *numbers(const int *list, size_t n) {
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(out, json_integer(list[i]));
    return out;
}

static json_t *value_json(Report *r, ReportValue *x) {
    json_t *v = json_object(), *names = json_array();
    json_object_set_new(v, "name", report_text_of(r, x->names[x->own_name]));
    for (size_t i = 0; i < x->n_names; i++)
        if (i != x->own_name)
            json_array_append_new(names, report_text_of(r, x->names[i]));
    json_object_set_new(v, "converted_to", names);
    put_type(r, v, x->root);
    json_object_set_new(v, "role",
                        json_string(x->is_output  ? "output"
                                    : x->is_input ? "input"
                                                  : "inner"));
    json_object_set_new(v, "maker", x->maker >= 0 ? json_integer(x->maker) : json_null());
    json_object_set_new(v, "readers", numbers(x->readers, x->n_readers));
    put_bytes(v, x->root);
    if (x->quant)
        json_object_set_new(v, "quantization", report_quant(r, x->quant));
    put_stat(v, x->root->stat);
    x->json = v;
    return v;
}

/* ---- layers ---- */

/* One object for all layers that read it. */
static json_t *weight_json(const Report *r, ReportValue *x) {
    if (x->json)
        return json_incref(x->json);
    json_t *w = x->json = json_object();
    json_object_set_new(w, "name", report_text_of(r, x->names[0]));
    put_type(r, w, x->root);
    put_bytes(w, x->root);
    if (x->quant)
        json_object_set_new(w, "quantization", report_quant(r, x->quant));
    return w;
}

static void put_operators(const Report *r, json_t *row, const ReportLayer *l) {
    json_t *all = json_array(), *from = json_array();
    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(all, report_text_of(r, l->nodes[i]->op));
    const Provenance *p = &l->head->from;
    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(from, json_pack("{s:o, s:o}", "op", report_text_of(r, p->from[i].op),
                                              "name", report_text_of(r, p->from[i].name)));
    json_object_set_new(row, "operators", all);
    json_object_set_new(row, "from", from);
}

/* A layer is float where all of its nodes are. */
static void put_kind(const Report *r, json_t *row, const ReportLayer *l) {
    const char *why = NULL;
    bool integer = false;
    for (size_t i = 0; i < l->n; i++) {
        NodeReport x = report_node(r->j, l->nodes[i], r->uses);
        integer = integer || strcmp(x.kind, "integer") == 0;
        if (l->nodes[i] == l->head && x.runs)
            json_object_set_new(row, "onnxruntime", json_string(x.runs));
        why = why ? why : x.why;
    }
    json_object_set_new(row, "kind", json_string(integer ? "integer" : "float"));
    if (why)
        json_object_set_new(row, "why", report_text_of(r, str_from(why)));
}

/* Weights of a layer are constants that mean something by themselves. Where integers are spelled
 * out, scales and zero points are operands beside them. */
static bool is_weight(const ReportValue *x, const ReportLayer *l) {
    bool spelled = l->n > 1 || qop_find(l->head->domain, l->head->op);
    Type t = x->root->type;
    return x->quant || !spelled || (t.rank > 0 && elem_is_int(t.elem));
}

static void append(json_t *row, const char *key, json_t *x) {
    json_array_append_new(json_object_get(row, key), x);
}

static void connect_value(Report *r, ReportValue *x) {
    if (x->number >= 0 && x->maker >= 0)
        append(r->layers[x->maker]->json, "outputs", json_integer(x->number));
    for (size_t i = 0; i < x->n_readers; i++) {
        ReportLayer *l = r->layers[x->readers[i]];
        if (x->number >= 0)
            append(l->json, "inputs", json_integer(x->number));
        else if (x->is_const && is_weight(x, l))
            append(l->json, "weights", weight_json(r, x));
    }
}

static json_t *layer_json(Report *r, ReportLayer *l) {
    static const char *const lists[] = {"inputs", "outputs", "weights"};
    json_t *row = json_object();
    json_object_set_new(row, "name", report_text_of(r, l->head->name));
    json_object_set_new(row, "op", report_text_of(r, l->head->op));
    json_object_set_new(row, "domain", report_text_of(r, l->head->domain));
    put_operators(r, row, l);
    put_kind(r, row, l);
    json_object_set_new(row, "conversions", report_count(l->conversions));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        json_object_set_new(row, lists[i], json_array());
    l->json = row;
    return row;
}

static void put_counts(Report *r) {
    size_t integer = 0, conversions = 0, weights = 0;
    for (size_t i = 0; i < r->n_layers; i++) {
        const json_t *kind = json_object_get(r->layers[i]->json, "kind");
        integer += strcmp(json_string_value(kind), "integer") == 0;
        conversions += r->layers[i]->conversions;
    }
    for (size_t i = 0; i < r->n_values; i++)
        weights += r->values[i]->is_const ? bytes_of(r->values[i]->root) : 0;
    json_object_set_new(r->root, "layers_integer", report_count(integer));
    json_object_set_new(r->root, "layers_float", report_count(r->n_layers - integer));
    json_object_set_new(r->root, "conversions", report_count(conversions));
    json_object_set_new(r->root, "bytes_of_constants", report_count(weights));
}

static void add_quantization(Value *v, void *ctx) {
    Report *r = ctx;
    ReportValue *x = map_get(r->by_name, v->name);
    if (!x || !x->json)
        return;
    if (!json_object_get(x->json, "bytes"))
        put_bytes(x->json, v);
    if (x->quant || v->type.kind != TYPE_TENSOR || !v->type.quant)
        return;
    x->quant = v->type.quant;
    json_object_set_new(x->json, "quantization", report_quant(r, x->quant));
}

void report_put_quantizations(Report *r) {
    module_each_value(r->m, add_quantization, r);
}

void report_put_layers(Report *r) {
    json_t *layers = json_array(), *values = json_array();
    for (size_t i = 0; i < r->n_layers; i++)
        json_array_append_new(layers, layer_json(r, r->layers[i]));
    for (size_t i = 0; i < r->n_values; i++) {
        if (r->values[i]->number >= 0)
            json_array_append_new(values, value_json(r, r->values[i]));
        connect_value(r, r->values[i]);
    }
    put_counts(r);
    json_object_set_new(r->root, "layers", layers);
    json_object_set_new(r->root, "values", values);
}
