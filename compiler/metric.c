/* See compiler/metric.h. */
#include "compiler/metric.h"

#include "compiler/columns.h"
#include "exec/model_run.h"
#include "compiler/work_folder.h"
#include "support/child.h"
#include "support/npz.h"
#include "support/platform.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- outputs as arrays ---- */

static bool run_all(ModelRun *r, Samples *in, Column *cols, size_t n, Arena *a, Diags *d) {
    Type now;
    while (model_run_load(r, in)) {
        if (!model_run_sample(r, d))
            return false;
        for (size_t i = 0; i < n; i++)
            column_add(&cols[i], a, model_run_value(r, cols[i].v, &now));
    }
    return samples_ok(in);
}

/* Outputs that cannot be computed here are left out, and those of no fixed shape. */
static size_t columns_of(const ModelRun *r, Arena *a, const char *prefix, Column *cols) {
    const Graph *g = r->module->graph;
    size_t n = 0;
    for (size_t i = 0; i < g->n_out; i++)
        if (!r->program || r->program->outputs[i] >= 0)
            n += column_new(&cols[n], g->out[i],
                            arena_strf(a, "%s" STR_FMT, prefix, STR_ARG(g->out[i]->name)), false);
    return n;
}

static bool add_outputs(NpzWriter *w, Session *s, MetricSide of, SamplePart part,
                        const char *prefix, Arena *a, size_t *samples) {
    const TextList *data = &s->o.calib;
    ProgramOptions options = {.partial = true, .run_parts = runner_parts()};
    ModelRun *r = model_run_new(a, of.m, &options, s->d);
    Samples *in = r ? samples_open(a, of.m, (const char *const *)data->items, data->n, s->d) : NULL;
    if (!in)
        return false;
    Column *cols = NEW_ARRAY(a, Column, of.m->graph->n_out + 1);
    size_t n = columns_of(r, a, prefix, cols);
    bool ok = samples_take(in, part) && run_all(r, in, cols, n, a, s->d);
    model_run_free(r);
    Arrangement as = arrangement_of(of.m, in, of.batch);
    samples_close(in);
    for (size_t i = 0; ok && i < n; i++) {
        Shape shape = column_arrange(&cols[i], a, &as);
        ok = npz_add(w, cols[i].name, cols[i].elem, shape.rank, shape.dims, cols[i].data);
        *samples = cols[i].n;
    }
    return ok;
}

static void add_samples(NpzWriter *w, Arena *a, SamplePart part, size_t n) {
    int64_t *of = NEW_ARRAY(a, int64_t, n + 1), dims = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        of[i] = part == SAMPLES_HELD_BACK ? 3 * (int64_t)i + 2 : (int64_t)i;
    npz_add(w, STR("qxc:samples"), ELEM_INT64, 1, &dims, of);
}

static bool write_outputs(Session *s, MetricSide is, MetricSide of_float, SamplePart part,
                          const char *path) {
    FILE *f = fopen(path, "wb");
    if (!f)
        return diag_error(s->d, LOC_NONE, "-metric: cannot write %s: %s", path, strerror(errno));
    Arena *a = arena_scratch(is.m->arena);
    NpzWriter *w = npz_writer(a, f);
    size_t n = 0;
    bool ok = add_outputs(w, s, is, part, "", a, &n) &&
              add_outputs(w, s, of_float, part, "float:", a, &n);
    add_samples(w, a, part, n);
    npz_finish(w);
    arena_free(a);
    bool arrived = !ferror(f);
    arrived = fclose(f) == 0 && arrived;
    return ok && (arrived || diag_error(s->d, LOC_NONE, "-metric: cannot write %s: %s", path,
                                        strerror(errno)));
}

/* ---- CMD ---- */

/* What CMD printed, without blanks around it; more than fits is no number anyway. */
static void read_back(int fd, char *text, size_t room) {
    ssize_t n = pread(fd, text, room - 1, 0);
    size_t end = n > 0 ? (size_t)n : 0, at = 0;
    while (end > 0 && isspace((unsigned char)text[end - 1]))
        end--;
    text[end] = 0;
    while (isspace((unsigned char)text[at]))
        at++;
    memmove(text, text + at, end - at + 1);
}

static bool read_number(const char *text, double *out, Diags *d) {
    char *end;
    *out = strtod(text, &end);
    if (!*text)
        return diag_error(d, LOC_NONE,
                          "-metric: the command printed nothing, and wanted is a number");
    if (*end || end == text)
        return diag_error(d, LOC_NONE,
                          "-metric: wanted is one number, and the command printed '%s'",
                          diag_name(d, str_from(text)));
    return isfinite(*out) ||
           diag_error(d, LOC_NONE, "-metric: wanted is a finite number, and the command printed %s",
                      text);
}

static bool run_command(Session *s, const char *path, double *out) {
    char text[256];
    Buf command = buf_new(s->arena);
    Children children;
    int fd = file_in_memory("metric");
    if (fd < 0)
        return diag_error(s->d, LOC_NONE, "-metric: no file for its number: %s", strerror(errno));
    buf_command(&command, s->o.metric);
    diags_flush(s->d);
    children_begin(&children);
    int code = child_shell_to(&children, arena_str(s->arena, buf_as_str(&command)).s, path, fd, 0);
    children_end(&children);
    read_back(fd, text, sizeof text);
    close(fd);
    if (code == CHILD_INTERRUPTED)
        return diag_error(s->d, LOC_NONE, "-metric was interrupted");
    if (code == CHILD_FAILED)
        return diag_error(s->d, LOC_NONE, "-metric: cannot start a process: %s", strerror(errno));
    if (code != 0)
        return diag_error(s->d, LOC_NONE, "-metric: the command failed with %s %d",
                          code > 128 ? "signal" : "exit status", code > 128 ? code - 128 : code);
    return read_number(text, out, s->d);
}

bool metric_measure(Session *s, MetricSide is, MetricSide of_float, SamplePart part, double *out) {
    int lock;
    const char *folder = work_folder(s->arena, &lock, s->d);
    if (!folder)
        return false;
    const char *path = arena_strf(s->arena, "%s/outputs.npz", folder).s;
    bool ok = write_outputs(s, is, of_float, part, path) && run_command(s, path, out);
    remove_folder(folder);
    if (lock >= 0)
        close(lock);
    return ok;
}
