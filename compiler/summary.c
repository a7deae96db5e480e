/* The closing summary: sizes, what is integer, what stayed float and why. */
#include "compiler/complete.h"
#include "compiler/grown.h"
#include "compiler/measured.h"
#include "program/bands.h"

#include <sys/stat.h>

static long long file_size(const char *path) {
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (long long)st.st_size : -1;
}

/* One line a reason: "2 LRN, 1 Softmax stay float: this operator has no integer form". */
static void print_reasons(const Job *j, Module *m) {
    const PassContext *c = &j->ctx;
    bool *done = NEW_ARRAY(m->arena, bool, c->n_remarks + 1);
    for (size_t i = 0; i < c->n_remarks; i++) {
        if (done[i])
            continue;
        size_t same = 0;
        for (size_t k = i; k < c->n_remarks; k++)
            if (str_eq(c->remarks[k].op, c->remarks[i].op) &&
                strcmp(c->remarks[k].reason, c->remarks[i].reason) == 0) {
                done[k] = true;
                same++;
            }
        const Remark *r = &c->remarks[i];
        const char *name = r->name.n ? diag_name(j->d, r->name)
                           : r->result.n
                               ? arena_strf(m->arena, "of \"%s\"", diag_name(j->d, r->result)).s
                               : "unnamed";
        fprintf(stderr, "  %zu %s (first: %s): %s\n", same, diag_name(j->d, r->op), name,
                r->reason);
    }
}

/* Where types are not quite what the model said, as notes told one by one. */
static void print_inexact(const Job *j) {
    size_t n = j->ctx.n_inexact;
    if (n)
        fprintf(
            stderr,
            "types round otherwise than the model at %zu place%s (first: %s), as the notes say: "
            "what is written%s follows the types; qxc compare measures the difference\n",
            n, n > 1 ? "s" : "", j->ctx.first_inexact.s,
            j->o->testbench ? ", its test bench too," : "");
}

/* What calibration had to leave out: "NonMaxSuppression cannot run here (it is not known): ...". */
static void print_left_out(const Job *j) {
    const LeftOut *out = j->calibrated.left_out;
    for (size_t i = 0; out && i < out->n; i++) {
        const Rejection *r = out->reasons[i];
        fprintf(stderr, "%s cannot run here (%s%s): ", diag_name(j->d, r->op), r->why,
                r->other_reasons ? ", and others" : "");
        if (r->values == 1)
            fputs("1 value behind it has no statistics and stays float\n", stderr);
        else if (r->values)
            fprintf(stderr, "%zu values behind it have no statistics and stay float\n", r->values);
        else
            fputs("nothing behind it is float\n", stderr);
    }
}

/* Where the C computes in floating point, in one line; print_reasons tells the rest. */
static void print_floats(const Job *j) {
    size_t n = j->n_c_floats;
    const char *io = j->c_converts && !j->quant_io ? " (-io=quant leaves these to the caller)" : "";
    if (n)
        fprintf(stderr, "%zu node%s in floating point%s\n", n, n > 1 ? "s compute" : " computes",
                j->c_all_float ? ": the model is float" : "");
    else if (j->c_converts)
        fprintf(stderr, "floating point in conversions alone%s\n", io);
    else
        fputs("no floating point\n", stderr);
    if (j->n_c_mixed)
        fprintf(stderr,
                "%zu node%s with several storage types: %lld element%s converted a run, which one "
                "type would save\n",
                j->n_c_mixed, j->n_c_mixed > 1 ? "s" : "", (long long)j->c_converted,
                j->c_converted > 1 ? "s are" : " is");
}

/* What was done to make the arena small, and what that costs. */
static void print_bands(const Job *j) {
    BandsTotal t = program_bands(j->c_program);
    if (!t.calls)
        return;
    fprintf(stderr, "%zu steps run in bands of rows: %zu bytes lie between them, not %zu", t.calls,
            t.between, t.whole);
    if (t.moved)
        fprintf(stderr, "; %zu bytes of rows that bands share are moved a run", t.moved);
    fputc('\n', stderr);
}

typedef struct Beside {
    bool blobs;
    long long bytes;
} Beside;

static void add_external(Value *v, void *ctx) {
    Beside *b = ctx;
    const Tensor *t = v->kind == VALUE_CONST ? v->data : NULL;
    if (t && (t->place == TENSOR_EXTERNAL || (b->blobs && t->place == TENSOR_BLOB)))
        b->bytes += (long long)t->bytes;
}

long long external_bytes(Module *m, bool blobs) {
    Beside b = {blobs, 0};
    module_each_value(m, add_external, &b);
    return b.bytes;
}

/* The output and what lies beside it, as names: "m.qir + m.safetensors". */
static const char *names_of(const OutFiles *files, Arena *a, const char *out_path) {
    const SideFile *side;
    for (size_t i = 0; (side = out_side_at(files, i)); i++)
        out_path = arena_strf(a, "%s + %s", out_path, side->name).s;
    return out_path;
}

long long side_bytes(const OutFiles *files) {
    const SideFile *side;
    long long bytes = 0;
    for (size_t i = 0; (side = out_side_at(files, i)); i++)
        bytes += side->size;
    return bytes;
}

/* What was written, beside what was read. */
static void print_size(const Job *j, const Module *m, const OutFiles *files, const char *in_path,
                       long long in, const char *out_path, long long out) {
    if (j->wrote_c)
        fprintf(
            stderr,
            "%s: arena %zu bytes (tensors alive at one time: %zu), weights and tables %zu bytes, "
            "%lld multiply-accumulates a run\n",
            out_path ? out_path : "C", j->arena, j->alive, j->flash, (long long)j->macs);
    else if (j->o->in_place)
        fprintf(stderr, "%s: %lld bytes\n", names_of(files, m->arena, out_path), out);
    else if (in > 0 && out > 0)
        fprintf(stderr, "%s: %lld bytes -> %s: %lld bytes (%.2fx)\n", in_path, in,
                names_of(files, m->arena, out_path), out, (double)in / (double)out);
}

static void print_calibrated(const Job *j) {
    if (j->calibrated.samples)
        fprintf(stderr, "calibrated on %zu sample%s: %zu value%s%s\n", j->calibrated.samples,
                plural((int64_t)j->calibrated.samples), j->calibrated.values,
                plural((int64_t)j->calibrated.values),
                j->o->calib_random >= 0 && !j->o->calib.n ? ", random data: scales mean little"
                                                          : "");
}

/* What was done to weights, and what for lack of data was not. */
static void print_weights(const Job *j) {
    if (j->widened)
        fprintf(
            stderr,
            "%zu weight%s of 3 bits in %s, as no type has 3: the file is no smaller than with 4\n",
            j->widened, plural((int64_t)j->widened), elem_name(j->widened_to));
    if (j->uncorrected && !j->nothing)
        fprintf(stderr,
                "quantized without data: biases are not corrected%s, which -calib=PATH would do\n",
                j->unrounded ? ", weights of few bits not rounded so that errors cancel" : "");
    if (j->ctx.n_outliers)
        fprintf(stderr,
                "%zu channel%s of %zu value%s %s much larger than the others, and scaled as "
                "-equalize scales all; -no-equalize leaves %s\n",
                j->ctx.n_outliers, plural((long long)j->ctx.n_outliers), j->ctx.n_with_outliers,
                plural((long long)j->ctx.n_with_outliers), j->ctx.n_outliers == 1 ? "is" : "are",
                j->ctx.n_outliers == 1 ? "it" : "them");
    if (j->ctx.n_tied)
        fprintf(stderr,
                "%zu table%s stored once with the product of the same numbers, in its type: a copy "
                "would take %lld bytes more\n",
                j->ctx.n_tied, j->ctx.n_tied > 1 ? "s are each" : " is",
                (long long)j->ctx.tied_bytes);
}

/* What the data did to biases, or did not. */
static void print_biases(const Job *j) {
    if (j->ctx.biases_cost > 0)
        fprintf(stderr,
                "biases are not corrected: on the calibration data that made the outputs %.1f dB "
                "worse; -bias-correction does it all the same\n",
                j->ctx.biases_cost);
    if (j->emit == EMIT_SCHEME && j->mended)
        fprintf(stderr,
                "what the data did to biases%s is no rule: give it beside the scheme, too, "
                "or keep the model as .qir or ONNX\n",
                j->rounded ? " and to weights of few bits" : "");
}

static void print_rounded_products(const Job *j) {
    size_t rounded = j->rounded_products;
    if (rounded)
        fprintf(stderr,
                "%zu product%s with integer weights alone: onnxruntime makes MatMulNBits of %s and "
                "rounds activations to 8 bits there, too; the session option "
                "session.qdq_matmulnbits_accuracy_level=1 keeps them float, which is slower\n",
                rounded, rounded > 1 ? "s" : "", rounded > 1 ? "them" : "it");
}

void summary_print(const Job *j, Module *m, const OutFiles *files, const char *in_path,
                   const char *out_path) {
    diags_flush(j->d);
    long long in = file_size(in_path), out = file_size(out_path);
    in += in > 0 ? j->external[0] : 0;
    out += out > 0 ? j->external[1] + side_bytes(files) : 0;
    if (j->form == FORM_AS_IS && !j->ctx.n_remarks)
        return;
    print_size(j, m, files, in_path, in, out_path, out);
    if (j->same_format && in > 0 && out > in)
        explain_growth(j, m, out - in);
    if (j->wrote_c) {
        print_bands(j);
        print_floats(j);
    }
    if (!j->wrote_c && j->opset != j->read_opset)
        fprintf(stderr, "opset %lld -> %lld\n", (long long)j->read_opset, (long long)j->opset);
    print_calibrated(j);
    print_left_out(j);
    completed_print(j);
    print_weights(j);
    print_biases(j);
    if (j->ctx.n_remarks)
        fputs("not integer as it stands, and why:\n", stderr);
    print_reasons(j, m);
    print_inexact(j);
    print_rounded_products(j);
    if (j->advice)
        fprintf(stderr, "%s\n", j->advice);
    measured_print(j);
}
