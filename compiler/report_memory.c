/* The arena of a report over time, and the work of each layer. */
#include "compiler/report_parts.h"
#include "exec/exec.h"
#include "exec/specialise.h"

static json_t *layer_number(const Report *r, const Node *n) {
    int at = n ? report_layer_of(r, n) : -1;
    return at >= 0 ? json_integer(at) : json_null();
}

static json_t *steps(const Report *r, const Program *p) {
    json_t *out = json_array();
    for (size_t i = 0; i < p->n_calls; i++)
        json_array_append_new(out, layer_number(r, p->calls[i].node));
    return out;
}

static json_t *tensors(const Report *r, const Program *p) {
    json_t *out = json_array();
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        if (b->kind != BUF_ARENA || b->first < 0 || b->alias >= 0)
            continue;
        json_t *t = json_pack("{s:I, s:I, s:i, s:i}", "offset", (json_int_t)b->offset, "bytes",
                              (json_int_t)b->bytes, "first", b->first, "last", b->last);
        const ReportValue *x = b->value ? map_get(r->by_name, b->value->name) : NULL;
        json_object_set_new(t, "value",
                            x && x->number >= 0 ? json_integer(x->number) : json_null());
        json_object_set_new(t, "name",
                            b->value ? report_text_of(r, b->value->name)
                                     : json_string("working memory"));
        json_array_append_new(out, t);
    }
    return out;
}

static void put_work(Report *r, const Program *p) {
    FOR_NODES(n, p->module->graph) {
        int at = p->macs_of[n->id] ? report_layer_of(r, n) : -1;
        if (at >= 0)
            r->layers[at]->macs += p->macs_of[n->id];
    }
    for (size_t i = 0; i < r->n_layers; i++)
        json_object_set_new(r->layers[i]->json, "macs", json_integer(r->layers[i]->macs));
    json_object_set_new(r->root, "multiply_accumulates", json_integer(p->macs));
}

/* Of emitted C its own program; else the one that this program would run. */
static const Program *program_of(Report *r) {
    if (r->j->c_program)
        return r->j->c_program;
    ProgramOptions o = {.partial = true, .rounding = r->j->rounding};
    return module_check_static(r->m, r->m->mute) ? program_build(r->m, &o, r->m->mute) : NULL;
}

void report_memory(Report *r) {
    const Program *p = program_of(r);
    if (!p)
        return;
    put_work(r, p);
    json_object_set_new(r->root, "bytes_of_values_at_once", report_count(p->arena_alive));
    json_t *m = json_object();
    json_object_set_new(m, "bytes", report_count(p->arena_bytes));
    json_object_set_new(m, "steps", steps(r, p));
    json_object_set_new(m, "tensors", tensors(r, p));
    json_object_set_new(r->root, "arena", m);
}
