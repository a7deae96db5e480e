/* qxc run INPUT -input=x.npz: outputs (or all values) as .npz, or as text without -o. */
#include "compiler/session.h"
#include "compiler/suffix.h"
#include "exec/samples.h"
#include "ir/minifloat.h"
#include "support/buf.h"
#include "support/npz.h"

/* One value over all samples, growing as they come. */
typedef struct Column {
    const Value *v;
    Str name;
    ElemType
        elem; /* as reported: 4 bits and narrower one byte each, other floats than NumPy's float */
    size_t bytes; /* of one sample */
    char *data;
    size_t n, cap;
} Column;

typedef struct Collect {
    Session *s;
    Arena *arena;
    Column *cols;
    size_t n;
    size_t samples;
    const bool *from_file; /* by value id: a constant of the file itself, which is not reported */
    size_t n_from_file;
    const Batch *batch; /* the model's dimension that counts samples, or NULL */
    SamplesSeen seen;
    bool alike; /* what does not depend on that dimension is the same for all samples */
} Collect;

static ElemType reported(ElemType e) {
    if (elem_is_float(e) && e != ELEM_DOUBLE && e != ELEM_FLOAT16)
        return ELEM_FLOAT;
    if (elem_bits(e) >= 8)
        return e;
    return elem_is_signed(e) ? ELEM_INT8 : ELEM_UINT8;
}

static void add_column(Collect *c, const Value *v, Str name) {
    size_t count;
    if (v->type.kind != TYPE_TENSOR || !type_count(v->type, &count) ||
        !npy_dtype(reported(v->type.elem)))
        return;
    Column *col = &c->cols[c->n++];
    *col = (Column){.v = v, .name = name, .elem = reported(v->type.elem)};
    col->bytes = elem_bytes(col->elem, count);
}

/* A program has floats for float16. */
static void put_elements(const Column *col, const void *data, char *to) {
    if (col->elem != ELEM_FLOAT16) {
        memcpy(to, data, col->bytes);
        return;
    }
    for (size_t i = 0; i < col->bytes / 2; i++) {
        uint64_t bits;
        float_encode(ELEM_FLOAT16, (double)((const float *)data)[i], &bits);
        memcpy(to + 2 * i, &bits, 2);
    }
}

static void store(Column *col, Arena *a, size_t sample, const void *data) {
    if (sample == col->cap) {
        size_t cap = col->cap ? 2 * col->cap : 1;
        col->data = arena_grow(a, col->data, col->n * col->bytes, cap * col->bytes);
        col->cap = cap;
    }
    /* A value of a branch not taken leaves zeros. */
    if (data && col->bytes)
        put_elements(col, data, col->data + sample * col->bytes);
    col->n = sample + 1;
}

static void count_values(Graph *g, void *ctx) {
    size_t *n = ctx;
    *n += g->n_in + g->n_consts;
    FOR_NODES(node, g) *n += node->n_out;
}

static void add_graph(Graph *g, void *ctx) {
    Collect *c = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        add_column(c, g->in[i], g->in[i]->name);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            add_column(c, n->out[i], n->out[i]->name);
}

static void add_consts(Graph *g, void *ctx) {
    Collect *c = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        if (g->consts[i]->id >= c->n_from_file || !c->from_file[g->consts[i]->id])
            add_column(c, g->consts[i], g->consts[i]->name);
}

static void mark_consts(Graph *g, void *ctx) {
    bool *is_const = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        is_const[g->consts[i]->id] = true;
    for (size_t i = 0; i < g->n_in; i++)
        is_const[g->in[i]->id] = g->in[i]->data;
}

static bool run_all(Collect *c, Runner *r, Samples *in) {
    for (; samples_load(in, r); c->samples++) {
        if (!runner_run(r, c->s->d))
            return false;
        for (size_t i = 0; i < c->n; i++) {
            const void *data = runner_computed(r, c->cols[i].v) || c->cols[i].v->kind != VALUE_NODE
                                   ? runner_value(r, c->cols[i].v)
                                   : NULL;
            store(&c->cols[i], c->arena, c->samples, data);
        }
    }
    return samples_ok(in);
}

/* ---- samples as arrays ---- */

typedef struct Shape {
    int rank;
    int64_t dims[MAX_RANK + 1];
} Shape;

static Shape shape_of(const Value *v) {
    Shape s = {.rank = v->type.rank};
    for (int i = 0; i < s.rank; i++)
        s.dims[i] = v->type.dims[i].value;
    return s;
}

/* An axis in front; with `replaces`, in the place of a first dimension of 1. */
static Shape stacked(Shape s, int64_t n, bool replaces) {
    if (!replaces || s.rank == 0 || s.dims[0] != 1) {
        memmove(s.dims + 1, s.dims, (size_t)s.rank * sizeof *s.dims);
        s.rank++;
    }
    s.dims[0] = n;
    return s;
}

/* Where the model has one dimension for all samples, it has them `stride` elements apart. */
static Shape joined(Column *col, Arena *a, Shape s, size_t n, size_t stride, int axis) {
    size_t elem = elem_bytes(col->elem, 1), step = stride * elem, at = 0;
    char *all = n ? arena_alloc(a, n * col->bytes + 1) : NULL;
    for (size_t block = 0; step && block < col->bytes; block += step)
        for (size_t k = 0; k < n; k++, at += step)
            memcpy(all + at, col->data + k * col->bytes + block, step);
    col->data = all;
    s.dims[axis] *= (int64_t)n;
    return s;
}

/* A feed of the model's own shape gives results of the model's own shape. */
static Shape arrange(Collect *c, Column *col) {
    Shape s = shape_of(col->v);
    const Batch *b =
        c->seen.extra || !c->batch || col->v->id >= c->batch->n_values ? NULL : c->batch;
    bool one = !c->seen.extra && c->seen.n == 1 && c->seen.files <= 1;
    if (b && b->stride[col->v->id] > 0)
        return joined(col, c->arena, s, c->seen.n, (size_t)b->stride[col->v->id],
                      b->axis[col->v->id]);
    return one || (b && c->alike && c->seen.n) ? s : stacked(s, (int64_t)c->seen.n, !c->seen.extra);
}

static ExitCode write_npz(Collect *c, const char *path) {
    OutFiles *out = c->s->out = session_outputs(c->s);
    FILE *f = out_open(out, path);
    if (!f)
        return EXIT_IO;
    NpzWriter *w = npz_writer(c->arena, f);
    for (size_t i = 0; i < c->n; i++) {
        Column *col = &c->cols[i];
        Shape shape = arrange(c, col);
        npz_add(w, col->name, col->elem, shape.rank, shape.dims, col->data);
    }
    npz_finish(w);
    if (session_inputs_are_whole(c->s))
        return out_commit(out) ? EXIT_DONE : EXIT_IO;
    out_abort(out);
    return EXIT_IO;
}

static void print_text(Collect *c) {
    for (size_t k = 0; k < c->samples; k++)
        for (size_t i = 0; i < c->n; i++) {
            Column *col = &c->cols[i];
            Buf b = buf_new(c->arena);
            buf_fmt(&b, "%%");
            buf_escaped(&b, col->name);
            buf_fmt(&b, " : %s = [", type_text(c->arena, col->v->type));
            Tensor *t = tensor_of(c->arena, col->elem, 1,
                                  (int64_t[]){(int64_t)(col->bytes / elem_bytes(col->elem, 1))},
                                  col->data + k * col->bytes);
            for (size_t e = 0; e < t->count; e++) {
                buf_text(&b, e ? ", " : "");
                if (elem_is_float(col->elem))
                    buf_f32(&b, (float)tensor_float(t, e));
                else if (col->elem == ELEM_UINT64)
                    buf_u64(&b, (uint64_t)tensor_int(t, e));
                else
                    buf_i64(&b, tensor_int(t, e));
            }
            buf_text(&b, "]\n");
            fwrite(b.p, 1, b.n, stdout);
        }
}

static Samples *open_samples(Session *s, Module *m) {
    if (s->o.input.n)
        return samples_open(m->arena, m, s->o.input.items, s->o.input.n, s->d);
    return samples_random(m->arena, m, s->o.random > 0 ? (size_t)s->o.random : 1);
}

static void see_samples(Collect *c, const Module *m, const Samples *in, const Batch *batch) {
    c->batch = batch;
    c->seen = samples_seen(in);
    c->alike = c->seen.files == 1;
    for (size_t i = 0; batch && i < m->graph->n_in; i++)
        c->alike &= batch->stride[m->graph->in[i]->id] > 0 || !samples_several(in, m->graph->in[i]);
}

static Collect collect_columns(Session *s, Module *m, const bool *from_file, size_t n_from_file) {
    Collect c = {.s = s, .arena = m->arena, .from_file = from_file, .n_from_file = n_from_file};
    size_t n = 0;
    module_each_graph(m, count_values, &n);
    c.cols = NEW_ARRAY(m->arena, Column, n + m->graph->n_out);
    if (s->o.all_values) {
        module_each_graph(m, add_graph, &c);
        module_each_graph(m, add_consts, &c);
    } else {
        for (size_t i = 0; i < m->graph->n_out; i++)
            add_column(&c, m->graph->out[i], m->graph->out[i]->name);
    }
    return c;
}

ExitCode cmd_run(Session *s) {
    Job j;
    ExitCode code;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    if (!suffix_is(&s->o, "run", ".npz", s->d))
        return EXIT_USAGE;
    Module *m = session_read(s, 0, &code);
    if (!m)
        return code;
    if (session_lacks_data(s, m)) {
        diag_error(s->d, LOC_NONE, "run needs data: -input=PATH or -random=N");
        return EXIT_USAGE;
    }
    size_t n_from_file = m->n_values;
    bool *from_file = NEW_ARRAY(m->arena, bool, n_from_file);
    module_each_graph(m, mark_consts, from_file);
    if (!job_prepare_run(&j, m))
        return job_failure(&j);
    ProgramOptions po = {
        .ignore_quant = s->o.ignore_quant, .keep_all = s->o.all_values, .rounding = j.rounding};
    Program *p = program_build(m, &po, s->d);
    Samples *in = p ? open_samples(s, m) : NULL;
    if (!in)
        return EXIT_WRONG;
    Collect c = collect_columns(s, m, from_file, n_from_file);
    Runner *r = runner_new(m->arena, p);
    bool ok = run_all(&c, r, in);
    see_samples(&c, m, in, j.batch);
    samples_close(in);
    if (!ok)
        return EXIT_WRONG;
    if (s->o.output)
        return write_npz(&c, s->o.output);
    print_text(&c);
    return EXIT_DONE;
}
