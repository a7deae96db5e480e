/* See compiler/top1.h. */
#include "compiler/top1.h"

#include "exec/model_run.h"
#include "exec/sample_files.h"
#include "support/npz.h"

#include <math.h>

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

bool top1_has_nan(const double *x, size_t n) {
    size_t i = 0;
    while (i < n && !isnan(x[i]))
        i++;
    return i < n;
}

size_t top1_of(const double *x, size_t n) {
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[at])
            at = i;
    return at;
}

/* ---- the samples held back: numbers 2, 5, 8, ... ---- */

static int64_t held_label(const Labels *l, size_t i) {
    return l->of[3 * i + 2];
}

static size_t held_back(size_t samples) {
    return samples / 3;
}

static bool check_labels(const Labels *l, size_t samples, size_t classes, Diags *d) {
    if (samples != l->n)
        return diag_error(d, LOC_NONE, "-labels: %zu labels for %zu samples", l->n, samples);
    if (!held_back(samples))
        return diag_error(d, LOC_NONE,
                          "-max-drop holds every third sample back to judge by: %zu %s too few",
                          samples, samples == 1 ? "sample is" : "samples are");
    for (size_t i = 0; i < l->n; i++)
        if (l->of[i] < 0 || (size_t)l->of[i] >= classes)
            return diag_error(d, LOC_NONE,
                              "-labels: sample %zu has the label %lld, which is no class: the "
                              "output has the classes 0 to %zu",
                              i, (long long)l->of[i], classes - 1);
    return true;
}

static bool answer(ModelRun *r, Samples *s, const Value *y, const Labels *labels, double *reals,
                   Answers *out, Diags *d) {
    Type now;
    for (size_t i = 0; model_run_load(r, s); i++) {
        if (!model_run_sample(r, d))
            return false;
        const void *data = model_run_value(r, y, &now);
        type_reals(now, data, out->classes, reals);
        out->of_class[held_label(labels, i)]++;
        bool nan = top1_has_nan(reals, out->classes);
        out->n_nan += nan;
        out->right[i] = !nan && (int64_t)top1_of(reals, out->classes) == held_label(labels, i);
        out->n_right += out->right[i];
    }
    return samples_ok(s);
}

/* One number a class: what else an output holds has no largest one that a label could name. */
static bool holds_classes(const Value *y, Diags *d) {
    size_t n = 0;
    int several = 0;
    if (!type_count(y->type, &n))
        return diag_error(d, y->loc,
                          "-max-drop: the data tell how long the first output, %s, is: labels want "
                          "as many numbers as there are classes",
                          diag_name(d, y->name));
    for (int i = 0; i < y->type.rank; i++)
        several += y->type.dims[i].value > 1;
    if (n == 0)
        return diag_error(d, y->loc, "-max-drop: the output %s has no elements",
                          diag_name(d, y->name));
    return several == 1 ||
           diag_error(d, y->loc,
                      "-max-drop: the first output, %s, is %s a sample: labels want one number for "
                      "each class",
                      diag_name(d, y->name), type_text(y->graph->module->arena, y->type));
}

bool top1_answers(Arena *a, Module *m, const char *const *paths, size_t n, const Labels *labels,
                  Answers *out, Diags *d) {
    size_t samples;
    *out = (Answers){0};
    if (!m->graph->n_out)
        return diag_error(d, LOC_NONE,
                          "-max-drop: the model has no output that could hold classes");
    ProgramOptions options = {.partial = true, .run_parts = runner_parts()};
    ModelRun *r = model_run_new(m->arena, m, &options, d);
    if (r && r->program && r->program->outputs[0] < 0)
        r = model_run_new(m->arena, m, NULL, d); /* says what cannot run */
    Samples *s = r ? samples_open(m->arena, m, paths, n, d) : NULL;
    if (!s)
        return false;
    const Value *y = m->graph->out[0];
    type_count(y->type, &out->classes);
    bool ok = holds_classes(y, d);
    ok = ok && samples_count(s, &samples) && check_labels(labels, samples, out->classes, d) &&
         samples_take(s, SAMPLES_HELD_BACK);
    if (ok) {
        out->n = held_back(samples);
        out->right = NEW_ARRAY(a, bool, out->n);
        out->of_class = NEW_ARRAY(a, size_t, out->classes);
        double *reals = NEW_ARRAY(m->arena, double, out->classes);
        ok = answer(r, s, y, labels, reals, out, d);
    }
    samples_close(s);
    model_run_free(r);
    return ok;
}

double top1_percent(const Answers *x) {
    return x->n ? 100.0 * (double)x->n_right / (double)x->n : 0;
}

/* ---- how sure that is ---- */

static const double SURE = 1.6448536269514722; /* 95 % of a normal distribution lie below */

/* Tango's statistic of `b` answers lost and `c` won among `n` for a true loss of `delta`. */
static double score(double b, double c, double n, double delta) {
    double two_a = 4 * n, bb = -b - c + (2 * n - b + c) * delta, cc = -c * delta * (1 - delta);
    double won = (sqrt(fmax(bb * bb - 2 * two_a * cc, 0)) - bb) / two_a;
    double variance = n * (2 * won + delta * (1 - delta)), over = b - c - n * delta;
    return variance > 0 ? over / sqrt(variance) : over < 0 ? -INFINITY : 0;
}

static double upper_bound(double b, double c, double n) {
    double lo = (b - c) / n, hi = 1;
    for (int i = 0; i < 60; i++) {
        double middle = (lo + hi) / 2;
        *(score(b, c, n, middle) >= -SURE ? &lo : &hi) = middle;
    }
    return hi;
}

Drop top1_drop(const Answers *f, const Answers *q) {
    double lost = 0, won = 0, n = (double)f->n;
    for (size_t i = 0; i < f->n; i++) {
        lost += f->right[i] && !q->right[i];
        won += !f->right[i] && q->right[i];
    }
    return (Drop){100 * (lost - won) / n, 100 * upper_bound(lost, won, n)};
}

/* ---- what is told ---- */

static size_t largest_class(const Answers *x) {
    size_t most = 0;
    for (size_t i = 0; i < x->classes; i++)
        most = x->of_class[i] > most ? x->of_class[i] : most;
    return most;
}

void top1_print(const Answers *x, size_t samples, FILE *to) {
    size_t seen = 0, least = x->n;
    for (size_t i = 0; i < x->classes; i++) {
        seen += x->of_class[i] > 0;
        least = x->of_class[i] && x->of_class[i] < least ? x->of_class[i] : least;
    }
    fprintf(to,
            "%zu samples to calibrate on, every third held back to judge by: %zu, with labels of "
            "%zu of %zu classes, %zu to %zu each; the float model is right on %.2f%%, always the "
            "commonest label on %.2f%%, chance on %.2f%%\n",
            samples - x->n, x->n, seen, x->classes, least, largest_class(x), top1_percent(x),
            100 * (double)largest_class(x) / (double)x->n, 100 / (double)x->classes);
}

void top1_warn(const Answers *f, double most_drop, Diags *d) {
    if (f->n_right <= largest_class(f))
        diag_warning(
            d, LOC_NONE,
            "-max-drop: the float model is right on %zu of %zu samples, always the "
            "commonest label would be on %zu: data, labels and model hardly belong together",
            f->n_right, f->n, largest_class(f));
    double least = 100 * SURE * SURE / ((double)f->n + SURE * SURE);
    if (least <= most_drop)
        return;
    if (most_drop > 0)
        diag_warning(d, LOC_NONE,
                     "-max-drop=%g: %zu samples held back are too few to be sure of that: they "
                     "tell drops from %.2f points on; %.0f samples in all would do",
                     most_drop, f->n, least, 3 * ceil(SURE * SURE * (100 / most_drop - 1)));
    else
        diag_warning(d, LOC_NONE,
                     "-max-drop=%g: no number of samples makes sure of that; the %zu held back "
                     "tell drops from %.2f points on",
                     most_drop, f->n, least);
}
