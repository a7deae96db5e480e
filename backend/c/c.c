/* The C writer: what stands in the source, in order. See backend/c/c.h. */
#include "backend/c/writer.h"
#include "ir/ops/op.h"
#include "program/bands.h"

CSizes c_sizes(const Program *p) {
    CSizes s = {.arena = p->arena_bytes, .alive = p->arena_alive, .macs = p->macs};
    CWriter w = {.program = p, .arena = p->module->arena};
    c_find_shared(&w);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (w.shared[i] == (int)i)
            s.weights += p->buffers[i].bytes;
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].kind == CALL_KERNEL)
            s.params += p->calls[c].kernel->params_size * call_params_held(&p->calls[c]);
    return s;
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
    w.n_steps = p->n_calls;
    if (w.options->n_tests)
        c_add_ours(&w);
    w.kernels = c_kernels(w.program);
    if (!c_prefix_fits(w.arena, w.options->prefix, d) || !check_types(p, d) ||
        !c_check_foreign(&w) || (w.options->integer_only && !c_refuse_floats(&w)))
        return false;
    FILE *source = w.f = to.source;
    w.math = c_needs_math(&w);
    c_find_shared(&w);
    if (to.weights && !c_place_weights(&w))
        return false;
    c_choose_names(&w);
    if (to.header) {
        c_put_header(&w, to.header, true);
        c_put_origin(&w, source);
        fprintf(source,
                " *\n * What it is and how to call it: see the header. */\n"
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
    c_put_foreign_checks(&w);
    fputs("/* ---- the model ---- */\n\n", source);
    c_put_run(&w);
    if (w.offsets)
        c_put_run_with_own_weights(&w);
    if (w.options->n_tests)
        c_put_testbench(&w);
    return true;
}
