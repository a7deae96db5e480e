/* See compiler/top1.h. */
#include "compiler/top1.h"

#include "exec/sample_files.h"
#include "support/npz.h"

static bool read_file(Arena *a, const char *path, const char *key, Labels *out, Diags *d) {
    Npz *z = npz_open(a, path, LOC_NONE, d);
    int at = z ? npz_find(z, str_from(key)) : -1;
    bool ok = at >= 0;
    if (z && !ok)
        diag_error(d, LOC_NONE, "-labels=%s: %s holds no such array", key, path);
    const NpyArray *x = ok ? npz_at(z, (size_t)at) : NULL;
    if (ok && !(elem_is_int((ElemType)x->elem) && x->rank > 0 && x->dims[0] == (int64_t)x->count))
        ok = diag_error(d, LOC_NONE, "-labels=%s: %s: wanted one integer a sample", key, path);
    NpyReader *r = ok ? npy_reader(z, (size_t)at) : NULL;
    if (r) {
        uint8_t *raw = NEW_ARRAY(a, uint8_t, x->count * x->elem_size + 1);
        int64_t *all = NEW_ARRAY(a, int64_t, out->n + x->count + 1);
        if (out->n)
            memcpy(all, out->of, out->n * sizeof *all);
        ok = npy_read(r, raw, x->count);
        for (size_t i = 0; ok && i < x->count; i++)
            all[out->n + i] = elem_load_int((ElemType)x->elem, raw, i);
        *out = (Labels){all, out->n + x->count};
    }
    npy_reader_close(r);
    npz_close(z);
    return ok && r;
}

bool labels_read(Arena *a, const char *const *paths, size_t n, const char *key, Labels *out,
                 Diags *d) {
    SampleFiles files = {0};
    bool ok = sample_files(a, paths, n, &files, d);
    for (size_t i = 0; ok && i < files.n; i++)
        ok = read_file(a, files.paths[i], key, out, d);
    return ok;
}

static size_t largest(const double *x, size_t n) {
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[at])
            at = i;
    return at;
}

bool top1_accuracy(Module *m, const char *const *paths, size_t n, const Labels *labels,
                   double *percent, Diags *d) {
    if (!m->graph->n_out)
        return diag_error(d, LOC_NONE,
                          "-max-drop: the model has no output that could hold classes");
    Program *p = program_build(m, &(ProgramOptions){.partial = true}, d);
    if (p && p->outputs[0] < 0)
        p = program_build(m, NULL, d); /* says what cannot run */
    Samples *s = p ? samples_open(m->arena, m, paths, n, d) : NULL;
    if (!s)
        return false;
    const Value *y = m->graph->out[0];
    Runner *r = runner_new(m->arena, p);
    size_t count = 0, right = 0, samples = 0;
    type_count(y->type, &count);
    double *reals = NEW_ARRAY(m->arena, double, count + 1);
    bool ok = true;
    for (; ok && samples_load(s, r); samples++) {
        ok = runner_run(r, d);
        value_reals(y, runner_output(r, 0), count, reals);
        right += samples < labels->n && (int64_t)largest(reals, count) == labels->of[samples];
    }
    ok = ok && samples_ok(s);
    samples_close(s);
    if (ok && samples != labels->n)
        ok = diag_error(d, LOC_NONE, "-labels: %zu labels for %zu samples", labels->n, samples);
    *percent = samples ? 100.0 * (double)right / (double)samples : 0;
    return ok;
}
