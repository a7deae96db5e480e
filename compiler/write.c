/* The outputs of a compilation: .qir, ONNX, texts and reports. C has a file of its own (write_c.c).
 */
#include "compiler/trace.h"
#include "compiler/write.h"
#include "backend/qir/qir_write.h"
#include "compiler/calib_table.h"
#include "compiler/emit_scales.h"
#include "compiler/emit_scheme.h"
#include "compiler/external.h"
#include "compiler/metadata.h"
#include "compiler/report.h"
#include "compiler/write_onnx.h"

/* External data is looked for beside the model: elsewhere it has to become part of it. */
static bool leaves_folder(Writing *w) {
    const char *in = w->s->o.inputs.items[0], *out = w->s->o.output;
    Arena *a = w->m->arena;
    return !out || strcmp(path_dir(a, in), path_dir(a, out)) != 0 || w->s->o.external_data_dir;
}

/* External data is not found from another folder: it becomes part of the text or its blob. */
static void keep_external(Tensor *t, Str name, void *ctx) {
    (void)name;
    (void)ctx;
    if (t->place == TENSOR_EXTERNAL && t->data) {
        t->place = TENSOR_INLINE;
        t->external = (Meta){0};
    }
}

static void settle_references(Writing *w, bool none) {
    if (none || leaves_folder(w))
        module_each_tensor(w->m, keep_external, NULL);
    w->j->external[1] = external_bytes(w->m, false);
}

static bool write_qir(Writing *w) {
    settle_references(w, false);
    const Options *o = &w->s->o;
    QirWriteOptions q = {.elide = o->elide_larger >= 0,
                         .elide_larger = o->elide_larger >= 0 ? (size_t)o->elide_larger : 0,
                         .plain = o->plain,
                         .has_few = o->inline_most >= 0,
                         .few = o->inline_most >= 0 ? (size_t)o->inline_most : 0};
    if (o->in_place && !w->m->n_blobs && !q.has_few) /* a text that is one file stays one */
        q.no_blob = true;
    if (o->output)
        return qir_write_file(w->m, w->out, o->output, &q);
    qir_write(w->m, stdout, &q);
    return true;
}

/* With statistics, a float model that came out of a decision for a runtime would be decided on
 * again, for another target. */
static bool write_onnx(Writing *w) {
    settle_references(w, w->s->o.external_data);
    OnnxWriteOptions o = {.allow_newer = !w->j->ctx.newer_refused};
    bool decided_float = w->j->nothing && (w->j->emit == EMIT_QDQ || w->j->emit == EMIT_QOP);
    metadata_put(w->m, !decided_float);
    return external_write(w, &o) && write_onnx_checked(w->m, w->file, &o, w->s->d);
}

/* What is a text of its own, made in memory; NULL for the others. */
static Str text_of(Writing *w) {
    Job *j = w->j;
    switch (j->emit) {
    case EMIT_SCHEME: return scheme_text(j, w->m);
    case EMIT_OVERRIDES: return scales_text(j, w->m, false);
    case EMIT_ENCODINGS: return scales_text(j, w->m, true);
    case EMIT_DOT: return dot_text(j, w->m);
    case EMIT_HTML: return report_text(w->s, j, w->m, true);
    case EMIT_JSON: return report_text(w->s, j, w->m, false);
    case EMIT_CALIB_TABLE: return calib_table(j, w->m);
    default: return STR_NONE;
    }
}

static bool write_text(Writing *w) {
    Str text = text_of(w);
    if (text.s)
        fwrite(text.s, 1, text.n, w->file);
    return text.s != NULL;
}

bool emits_binary(const Job *j) {
    enum { TEXT, BINARY };
    static const bool binary[] = {
#define EMIT(id, name, file, form, decided) file == BINARY,
#include "compiler/pipeline.def"
    };
    return binary[j->emit];
}

/* Whether what was written has arrived is told by out_commit, and of standard output by main. */
static ExitCode write_result(Session *s, Job *j, Module *m) {
    s->out = session_outputs(s);
    Writing w = {s, j, m, s->out, stdout};
    bool is_qir = j->emit == EMIT_QIR;
    FILE *report = NULL, *found = NULL;
    if ((s->o.output && !is_qir && !(w.file = out_open(w.out, s->o.output))) ||
        (s->o.report && !(report = out_open(w.out, s->o.report))) ||
        (j->search_scheme.s && !(found = out_open(w.out, s->o.search_scheme)))) {
        out_abort(w.out);
        return EXIT_IO;
    }
    bool ok = is_qir              ? write_qir(&w)
              : j->emit == EMIT_C ? write_c(&w)
              : emits_binary(j)   ? write_onnx(&w)
                                  : write_text(&w);
    j->opset = module_opset(m, STR(""));
    ok = ok && (!report || report_write(s, j, m, report));
    if (found)
        fwrite(j->search_scheme.s, 1, j->search_scheme.n, found);
    ok = ok && session_inputs_are_whole(s);
    if (!ok || diags_errors(s->d)) {
        out_abort(w.out);
        return out_failed(w.out) || s->inputs_changed ? EXIT_IO : EXIT_WRONG;
    }
    return out_commit(w.out) && !ferror(stdout) ? EXIT_DONE : EXIT_IO;
}

ExitCode session_write(Session *s, Job *j, Module *m) {
    trace_begin(s->o.trace);
    ExitCode code = write_result(s, j, m);
    trace_end(s->o.trace, "writing");
    return code;
}
