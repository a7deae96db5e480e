/* onnx_write: functions, imports and the model around the main graph. */
#include "backend/onnx/write.h"
#include "ir/onnx_fields.h"
#include "ir/onnx_schema.h"

static void write_imports(Writer *w, uint32_t field, const Import *imports, size_t n) {
    for (size_t i = 0; i < n; i++) {
        encode_begin(&w->e, field);
        encode_str(&w->e, OPSET_DOMAIN, imports[i].domain);
        encode_number(&w->e, OPSET_VERSION, (uint64_t)imports[i].version);
        write_extra(w, imports[i].extra);
        encode_end(&w->e);
    }
}

static void write_value_names(Writer *w, uint32_t field, Value *const *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        encode_str(&w->e, field, values[i]->name);
}

static void write_function(Writer *w, const Function *f) {
    Places places = places_of(w, f->body, f->extra);
    encode_begin(&w->e, MODEL_FUNCTIONS);
    encode_str(&w->e, FUNCTION_NAME, f->name);
    write_value_names(w, FUNCTION_INPUT, f->body->in, f->body->n_in);
    write_value_names(w, FUNCTION_OUTPUT, f->body->out, f->body->n_out);
    for (size_t i = 0; i < f->n_attrs; i++)
        encode_str(&w->e, FUNCTION_ATTRIBUTE, f->attrs[i]);
    write_nodes(w, FUNCTION_NODE, f->body, &places);
    encode_str(&w->e, FUNCTION_DOC, f->doc);
    if (f->n_imports)
        write_imports(w, FUNCTION_OPSET_IMPORT, f->imports, f->n_imports);
    else if (!was_absent(f->extra,
                         FUNCTION_OPSET_IMPORT)) /* the model's, which ONNX wants repeated */
        write_imports(w, FUNCTION_OPSET_IMPORT, w->module->imports, w->module->n_imports);
    encode_str(&w->e, FUNCTION_DOMAIN, f->domain);
    for (size_t i = 0; i < f->n_defaults; i++)
        write_attr(w, FUNCTION_ATTRIBUTE_PROTO, &f->defaults[i]);
    write_value_infos(w, FUNCTION_VALUE_INFO, &places);
    encode_str(&w->e, FUNCTION_OVERLOAD, f->overload);
    write_meta(w, FUNCTION_METADATA, f->meta);
    write_extra(w, f->extra);
    encode_end(&w->e);
}

static void write_model(Writer *w) {
    const Module *m = w->module;
    /* A text may leave the version open; ONNX may not. */
    int64_t ir = m->has_ir_version ? m->ir_version : onnx_ir_for_opset(module_opset(m, STR("")));
    encode_number(&w->e, MODEL_IR_VERSION, (uint64_t)ir);
    encode_str(&w->e, MODEL_PRODUCER_NAME, m->producer_name);
    encode_str(&w->e, MODEL_PRODUCER_VERSION, m->producer_version);
    encode_str(&w->e, MODEL_DOMAIN, m->domain);
    if (m->has_model_version)
        encode_number(&w->e, MODEL_VERSION, (uint64_t)m->model_version);
    encode_str(&w->e, MODEL_DOC, m->doc);
    write_graph(w, MODEL_GRAPH, m->graph);
    write_imports(w, MODEL_OPSET_IMPORT, m->imports, m->n_imports);
    write_meta(w, MODEL_METADATA, m->meta);
    for (size_t i = 0; i < m->n_functions; i++)
        write_function(w, m->functions[i]);
    write_extra(w, m->extra);
}

static void mark_outputs(Graph *g, void *ctx) {
    Writer *w = ctx;
    for (size_t i = 0; i < g->n_out; i++)
        if (g->out[i]->graph == g)
            w->is_output[g->out[i]->id] = true;
}

/* Functions only name their outputs: a type stands in value_info. */
static void unmark_function_outputs(Writer *w) {
    for (size_t i = 0; i < w->module->n_functions; i++) {
        const Graph *body = w->module->functions[i]->body;
        for (size_t k = 0; k < body->n_out; k++)
            w->is_output[body->out[k]->id] = false;
    }
}

/* The first pass. NULL after diagnostics. */
static Writer *measured(const Module *m, const OnnxWriteOptions *options) {
    Writer *w = NEW(m->arena, Writer);
    w->e.arena = m->arena;
    w->module = m;
    w->options = options ? *options : (OnnxWriteOptions){0};
    if (!check_writable(m, &w->options))
        return NULL;
    w->is_output = NEW_ARRAY(m->arena, bool, m->n_values);
    module_each_graph((Module *)m, mark_outputs, w);
    unmark_function_outputs(w);
    write_model(w);
    if (!w->e.too_deep)
        return w;
    diag_error(m->diags, LOC_NONE,
               "the model is nested too deeply: ONNX allows %d messages in each other",
               ENCODE_NESTING);
    return NULL;
}

uint64_t onnx_size(const Module *m, const OnnxWriteOptions *options) {
    const Writer *w = measured(m, options);
    return w ? w->e.total : 0;
}

bool onnx_write(const Module *m, FILE *out, const OnnxWriteOptions *options) {
    Writer *w = measured(m, options);
    if (!w)
        return false;
    if (w->e.total > INT32_MAX)
        return diag_error(
            m->diags, LOC_NONE,
            "the model takes %llu bytes without its external data; an ONNX file holds "
            "at most 2 GiB",
            (unsigned long long)w->e.total);
    encode_to(&w->e, out);
    write_model(w);
    return true;
}
