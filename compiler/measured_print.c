/* What the summary says of a measurement (compiler/measured.h). */
#include "compiler/measured.h"
#include "passes/quantize/open.h"

#include <math.h>

enum { MOST_OUTPUTS = 8 };

static void put_db(FILE *to, double sqnr) {
    if (isinf(sqnr))
        fputs(sqnr > 0 ? "equal" : "all noise", to);
    else
        fprintf(to, "%.2f dB", sqnr);
}

static void put_integers(const MeasuredOutput *o, const char *name) {
    if (o->equal == o->sums.count)
        fprintf(stderr, "output %s is the same as in the float model (%zu element%s)", name,
                o->sums.count, plural((int64_t)o->sums.count));
    else
        fprintf(stderr, "output %s is the same as in the float model in %zu of %zu elements", name,
                o->equal, o->sums.count);
}

static void put_classes(const MeasuredOutput *o) {
    if (o->rows)
        fprintf(stderr, ", top-1 agrees on %zu of %zu", o->agree, o->rows);
    if (o->nan_rows)
        fprintf(stderr, ", no top-1 counts in %zu%s where the float model has NaN", o->nan_rows,
                o->rows ? " more" : "");
}

static void put_worst_part(const Job *j, const MeasuredOutput *o) {
    const Part *part = parts_worst(&o->parts, error_sqnr(&o->sums));
    if (!part)
        return;
    fputs(", ", stderr);
    put_db(stderr, error_sqnr(&part->sums));
    fprintf(stderr, " in its part %s", diag_name(j->d, part->name));
}

/* "SQNR 36.95 dB at output logits, top-1 agrees on 31 of 32" */
static void put_output(const Job *j, const MeasuredOutput *o, size_t samples) {
    const char *name = diag_name(j->d, o->name);
    if (!o->computed) {
        fprintf(stderr, "output %s was not measured", name);
    } else if (o->unlike == samples) {
        fprintf(stderr, "output %s is of other elements than in the float model", name);
    } else if (!o->sums.count) {
        fprintf(stderr, "output %s has no elements", name);
    } else if (o->integer) {
        put_integers(o, name);
    } else if (!o->sums.finite) {
        fprintf(stderr, "output %s is nowhere finite", name);
    } else if (o->sums.xx == 0) {
        fprintf(stderr, "output %s is 0 in the float model, here %s%.3g", name,
                o->sums.dd == 0 ? "" : "up to ", o->sums.max_abs);
    } else {
        fputs("SQNR ", stderr);
        put_db(stderr, error_sqnr(&o->sums));
        fprintf(stderr, " at output %s", name);
        put_worst_part(j, o);
    }
    if (o->classes)
        put_classes(o);
    if (o->unlike && o->unlike < samples)
        fprintf(stderr, " (on %zu sample%s)", samples - o->unlike,
                plural((int64_t)(samples - o->unlike)));
    if (o->computed && o->steady && o->sums.count)
        fputs(" (the same for all samples, which says little)", stderr);
}

/* What was rounded before is no loss of this run, which a number would hide. */
static void put_rounded(const Job *j) {
    size_t n = j->ctx.open ? j->ctx.open->rounded : 0;
    if (n)
        fprintf(stderr,
                ", against the model as it was read, %zu constant%s of which %s rounded before", n,
                plural((int64_t)n), n > 1 ? "were" : "was");
}

static void put_outputs(const Job *j, const Measured *m) {
    size_t most = m->n_outputs < MOST_OUTPUTS ? m->n_outputs : MOST_OUTPUTS;
    if (m->samples == m->of)
        fprintf(stderr, "measured on the calibration data (%zu sample%s)", m->of, plural(m->of));
    else
        fprintf(stderr, "measured on %zu of %zu samples of the calibration data", m->samples,
                m->of);
    put_rounded(j);
    fputc(':', stderr);
    for (size_t i = 0; i < most; i++) {
        fputs(most > 1 ? "\n  " : " ", stderr);
        put_output(j, &m->outputs[i], m->samples);
    }
    if (m->n_outputs > most)
        fprintf(stderr, "\n  and %zu more outputs", m->n_outputs - most);
    fputc('\n', stderr);
}

static void put_worst(const Job *j, const Measured *m) {
    for (size_t i = 0; i < m->n_worst; i++) {
        fprintf(stderr, "%s%s ", i ? ", " : "worst values: ", diag_name(j->d, m->worst[i].name));
        put_db(stderr, m->worst[i].sqnr);
    }
    if (m->n_worst)
        fputc('\n', stderr);
}

static void warn_of_unmeasured(const Job *j, const MeasuredOutput *o) {
    if (!o->computed)
        diag_warning(j->d, LOC_NONE,
                     "output %s was not measured, as %s: nothing is known of its accuracy",
                     diag_name(j->d, o->name), o->why_not);
}

static void warn_of_choices(const Job *j, const MeasuredOutput *o, size_t samples) {
    if (o->unlike)
        diag_warning(
            j->d, LOC_NONE,
            "output %s is of other elements than in the float model in %zu of %zu sample%s: "
            "no number here counts those",
            diag_name(j->d, o->name), o->unlike, samples, plural((int64_t)samples));
}

static void warn_of_odd(const Job *j, const MeasuredOutput *o) {
    if (o->float_odd)
        diag_warning(
            j->d, LOC_NONE,
            "output %s: %zu of %zu elements are NaN or infinite in the float model itself: "
            "the data or the model is wrong, and no number here holds for them",
            diag_name(j->d, o->name), o->float_odd, o->sums.count);
    else if (o->odd)
        diag_warning(j->d, LOC_NONE,
                     "output %s: %zu of %zu elements are NaN or infinite, in the float model none",
                     diag_name(j->d, o->name), o->odd, o->sums.count);
}

/* The output that has the least, NULL where none has too little. A signal of 0 has no dB. */
static const MeasuredOutput *too_little(const Measured *m) {
    const MeasuredOutput *least = NULL;
    double sqnr = MEASURED_LITTLE;
    for (size_t i = 0; i < m->n_outputs; i++) {
        const MeasuredOutput *o = &m->outputs[i];
        if (!o->computed || o->integer || !o->sums.count || o->sums.xx == 0 ||
            !(error_sqnr(&o->sums) < sqnr))
            continue;
        sqnr = error_sqnr(&o->sums);
        least = o;
    }
    return least;
}

static void warn_of_part(const Job *j, const MeasuredOutput *o) {
    double whole = error_sqnr(&o->sums), little = MEASURED_LITTLE;
    const Part *part = o->sums.count ? parts_worst(&o->parts, whole) : NULL;
    if (part && error_sqnr(&part->sums) < little && whole >= little && !j->o->min_sqnr)
        diag_warning(
            j->d, LOC_NONE,
            "output %s has %.2f dB on the calibration data, but %.2f in its part %s, which is "
            "little%s",
            diag_name(j->d, o->name), whole, error_sqnr(&part->sums), diag_name(j->d, part->name),
            part->one_scale ? ": one scale serves all parts" : "");
}

static void warn_of_little(const Job *j, const Measured *m) {
    const MeasuredOutput *o = too_little(m);
    if (o && !j->o->min_sqnr)
        diag_warning(j->d, LOC_NONE,
                     "output %s has %.2f dB on the calibration data, which is little: "
                     "%s",
                     diag_name(j->d, o->name), error_sqnr(&o->sums), m->advice);
}

/* Why there are no numbers, in a line; NULL where nobody would expect any. */
static const char *why_nothing(const Job *j) {
    if (j->form <= FORM_FLOAT && j->calibrated.samples)
        return "nothing is quantized yet, so nothing was measured; a later run measures where it "
               "has data, too (-calib=PATH)";
    if (!j->decided)
        return NULL;
    if (!j->o->calib.n)
        return j->o->calib_random >= 0
                   ? "nothing was measured: random data says nothing about accuracy; with "
                     "-calib=PATH a summary does"
                   : "nothing was measured, as there is no data: qxc compare MODEL RESULT "
                     "-input=PATH tells what this costs";
    return j->unmeasured ? NULL
                         : "nothing was measured: qxc compare MODEL RESULT -input=PATH tells what "
                           "this costs";
}

void measured_print(const Job *j) {
    const Measured *m = j->measured;
    const char *why = m ? NULL : why_nothing(j);
    if (why)
        fprintf(stderr, "%s\n", why);
    if (!m && j->unmeasured)
        diag_warning(j->d, LOC_NONE, "nothing was measured, nothing is known of the accuracy: %s",
                     j->unmeasured);
    if (!m)
        return;
    put_outputs(j, m);
    put_worst(j, m);
    for (size_t i = 0; i < m->n_outputs; i++)
        warn_of_odd(j, &m->outputs[i]);
    for (size_t i = 0; i < m->n_outputs && i < MOST_OUTPUTS; i++)
        warn_of_choices(j, &m->outputs[i], m->samples);
    for (size_t i = 0; i < m->n_outputs && i < MOST_OUTPUTS; i++)
        warn_of_unmeasured(j, &m->outputs[i]);
    for (size_t i = 0; i < m->n_outputs && i < MOST_OUTPUTS; i++)
        warn_of_part(j, &m->outputs[i]);
    warn_of_little(j, m);
}
