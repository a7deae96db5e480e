/* qxc list quant MODEL: what is quantized, and under which of the four schemas; as JSON with all
 * numbers. */
#include "compiler/json_print.h"
#include "compiler/session.h"
#include "passes/edit.h"

static const char *schema_of(const Quant *q) {
    switch (q->kind) {
    case QUANT_UNKNOWN: return "unknown";
    case QUANT_DYNAMIC: return "dynamic";
    default: return quant_schema(q);
    }
}

static const char *grain_of(const Quant *q) {
    return quant_is_blocked(q) ? "blocks" : quant_is_per_tensor(q) ? "tensor" : "axis";
}

static const char *form_of(Type t) {
    return !t.tilde ? "typed" : elem_is_float(t.elem) ? "float ~" : "int ~";
}

typedef struct ListQuant {
    Diags *d;
    json_t *rows; /* NULL: a table */
} ListQuant;

static Str storage_of(Arena *a, const Quant *q) {
    return q->storage == ELEM_UNDEFINED ? STR("?") : arena_strf(a, "%sq", elem_name(q->storage));
}

static json_t *scales_of(const Quant *q) {
    json_t *list = json_array();
    for (size_t i = 0; i < q->n_scale; i++)
        json_array_append_new(list, json_number((double)q->scale[i]));
    return list;
}

static json_t *zero_points_of(const Quant *q) {
    json_t *list = json_array();
    for (size_t i = 0; i < q->n_zp; i++)
        json_array_append_new(list, json_integer(q->zp[i]));
    return list;
}

/* Of each axis, {axis, block}: how many elements along it share parameters. */
static json_t *axes_of(const Quant *q) {
    json_t *list = json_array();
    for (int i = 0; i < q->n_axes; i++)
        json_array_append_new(
            list, json_pack("{s:i, s:I}", "axis", q->axis[i], "block", (json_int_t)q->block[i]));
    return list;
}

static json_t *row_of(const Value *v) {
    const Quant *q = v->type.quant;
    Arena *a = v->graph->module->arena;
    json_t *row = json_pack("{s:o, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "value",
                            json_name(a, v->name), "storage", storage_of(a, q).s, "schema",
                            schema_of(q), "for", grain_of(q), "as", form_of(v->type), "scales",
                            scales_of(q), "zero_points", zero_points_of(q), "axes", axes_of(q));
    float min, max;
    if (edit_range(v, &min, &max))
        json_object_update_new(row,
                               json_pack("{s:f, s:f}", "min", (double)min, "max", (double)max));
    return row;
}

static void list_value(Value *v, void *ctx) {
    const ListQuant *l = ctx;
    const Quant *q = v->type.quant;
    if (v->type.kind != TYPE_TENSOR || !q)
        return;
    if (l->rows)
        json_array_append_new(l->rows, row_of(v));
    else
        printf("%-15s  %-25s  %-6s  %-8s  %s\n", storage_of(v->graph->module->arena, q).s,
               schema_of(q), grain_of(q), form_of(v->type), diag_name(l->d, v->name));
}

ExitCode cmd_list_quant(Session *s) {
    ExitCode code;
    if (s->o.inputs.n != 2) {
        diag_error(s->d, LOC_NONE, "list quant wants a model: qxc list quant model.qir");
        return EXIT_USAGE;
    }
    Module *m = session_read(s, 1, &code);
    if (!m)
        return code;
    Job j;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    if (!job_raise(&j, m))
        return EXIT_WRONG;
    ListQuant l = {s->d, s->o.json ? json_array() : NULL};
    if (!l.rows)
        puts("storage          schema                     for     as        value");
    module_each_value(m, list_value, &l);
    if (l.rows)
        json_print(l.rows);
    json_decref(l.rows);
    return EXIT_DONE;
}
