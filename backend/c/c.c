/* The C writer: what stands in the source, in order. See backend/c/c.h. */
#include "backend/c/writer.h"
#include "ir/ops/op.h"

CSizes c_sizes(const Program *p) {
    CSizes s = {.arena = p->arena_bytes, .alive = p->arena_alive, .macs = p->macs};
    CWriter w = {.program = p, .arena = p->module->arena};
    c_find_shared(&w);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (w.shared[i] == (int)i)
            s.weights += p->buffers[i].bytes;
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].kind == CALL_KERNEL)
            s.params += p->calls[c].kernel->params_size;
    return s;
}

/* ---- integer only ---- */

static bool kernel_is_integer(Arena *a, const KernelDef *k) {
    if (k->needs_math || c_code_has_word(k->source, "float") ||
        c_code_has_word(k->source, "double"))
        return false;
    for (const char *const *chunk = k->uses; *chunk; chunk++) {
        const char *text = c_integer_part(a, kernel_chunk(*chunk));
        if (c_code_has_word(text, "float") || c_code_has_word(text, "double"))
            return false;
    }
    for (size_t i = 0; i < k->n_fields; i++)
        if (k->fields[i].kind == KF_F32)
            return false;
    return true;
}

/* Those of `kernels` that compute in floating point. */
static Map *float_kernels(Arena *a, const Map *kernels) {
    Map *floats = map_new(a);
    for (size_t i = 0; i < map_size(kernels); i++)
        if (!kernel_is_integer(a, map_value(kernels, i)))
            map_set(floats, map_key(kernels, i), map_value(kernels, i));
    return floats;
}

static bool is_float_call(const Map *floats, const Call *call) {
    return call->kind == CALL_KERNEL && map_get(floats, str_from(call->kernel->name));
}

/* The node computes in floating point, not only to convert. */
static bool *float_nodes(const Program *p, const Map *floats, bool *any) {
    bool *is = NEW_ARRAY(p->module->arena, bool, p->module->n_nodes);
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        if (!is_float_call(floats, call))
            continue;
        *any = true;
        if (call->node)
            is[call->node->id] = node_conversion(call->node) == CONVERT_NONE;
    }
    return is;
}

typedef struct Refusal {
    const CWriteOptions *options;
    const bool *is_float; /* by node id */
    Diags *d;
    size_t said;
} Refusal;

static void blame_reasons(Graph *g, void *ctx) {
    Refusal *r = ctx;
    FOR_NODES(n, g) {
        const char *why =
            r->options->why_float ? r->options->why_float(n, r->options->why_ctx) : NULL;
        if (why) {
            diag_error(r->d, n->loc, "-integer-only: %s stays float: %s", node_text(n), why);
            r->said++;
        }
    }
}

static void blame_nodes(Graph *g, void *ctx) {
    Refusal *r = ctx;
    FOR_NODES(n, g) {
        if (r->is_float[n->id]) {
            diag_error(r->d, n->loc, "-integer-only: %s computes in floating point", node_text(n));
            r->said++;
        }
    }
}

static void blame_conversions(const Program *p, const Map *floats, Diags *d) {
    const Graph *g = p->module->graph;
    const Node *last = NULL;
    for (size_t i = 0; i < p->n_inputs; i++)
        if (elem_is_float(p->buffers[p->inputs[i]].elem))
            diag_error(d, p->buffers[p->inputs[i]].value->loc,
                       "-integer-only: graph input %s is float",
                       diag_name(d, p->buffers[p->inputs[i]].value->name));
    for (size_t i = 0; i < p->n_outputs; i++)
        if (elem_is_float(p->buffers[p->outputs[i]].elem))
            diag_error(d, g->out[i]->loc, "-integer-only: graph output %s is float",
                       diag_name(d, g->out[i]->name));
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        if (!is_float_call(floats, call) || (c && call->node == last))
            continue;
        last = call->node;
        if (last)
            diag_error(d, last->loc, "-integer-only: %s computes in floating point",
                       node_text(last));
        else
            diag_error(d, LOC_NONE, "-integer-only: a graph input is rounded in floating point");
    }
}

/* The nodes that were left float and why; those that merely compute on their results, convert them
 * or hand them out are named only where no reason is known. */
static bool refuse_floats(const CWriter *w, Diags *d) {
    const Program *p = w->program;
    const Map *floats = float_kernels(w->arena, w->kernels);
    bool any = false;
    Refusal r = {.options = w->options, .d = d};
    r.is_float = float_nodes(p, floats, &any);
    for (size_t i = 0; i < p->n_inputs; i++)
        any = any || elem_is_float(p->buffers[p->inputs[i]].elem);
    for (size_t i = 0; i < p->n_outputs; i++)
        any = any || elem_is_float(p->buffers[p->outputs[i]].elem);
    if (!any)
        return true;
    module_each_graph(p->module, blame_reasons, &r);
    if (!r.said)
        module_each_graph(p->module, blame_nodes, &r);
    if (!r.said)
        blame_conversions(p, floats, d);
    return false;
}

/* Elements that C has no type for. */
static bool check_types(const Program *p, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        if (!c_type(b->elem) && b->alias < 0)
            ok = diag_error(d, b->value ? b->value->loc : LOC_NONE,
                            "value %s is %s, which C has no type for",
                            b->value ? diag_name(d, b->value->name) : "?", elem_name(b->elem));
    }
    return ok;
}

/* ---- the whole ---- */

bool c_write(const Program *p, const CWriteOptions *o, CStreams to, Diags *d) {
    static const CWriteOptions none = {0};
    CWriter w = {.program = p, .options = o ? o : &none, .arena = p->module->arena, .diags = d};
    w.kernels = c_kernels(p);
    if (!c_prefix_fits(w.arena, w.options->prefix, d) || !check_types(p, d) ||
        (w.options->integer_only && !refuse_floats(&w, d)))
        return false;
    FILE *source = w.f = to.source;
    w.math = c_needs_math(p);
    c_find_shared(&w);
    if (to.weights && !c_place_weights(&w))
        return false;
    c_choose_names(&w);
    if (to.header) {
        c_put_header(&w, to.header, true);
        fprintf(source,
                "/* Generated by qxc; what it is and how to call it: see the header. */\n"
                "#include \"%s\"\n\n",
                w.options->header_name ? w.options->header_name : "model.h");
    } else {
        c_put_header(&w, source, false);
    }
    c_put_includes(&w);
    fputs("\n/* ---- kernels ---- */\n\n", source);
    c_put_kernels(&w);
    fputs("/* ---- weights and tables ---- */\n\n", source);
    if (w.offsets) {
        c_put_weights_file(&w, to.weights);
        c_put_weights(&w);
    } else {
        c_put_consts(&w);
    }
    fputs("/* ---- parameters of the calls ---- */\n\n", source);
    c_put_params(&w);
    fputs("/* ---- the model ---- */\n\n", source);
    c_put_run(&w);
    if (w.offsets)
        c_put_run_with_own_weights(&w);
    if (w.options->n_tests)
        c_put_testbench(&w);
    return true;
}
