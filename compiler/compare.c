/* qxc compare A B: how far B is from A, worst values first. */
#include "compiler/json_print.h"
#include "compiler/session.h"
#include "compiler/trace.h"
#include "exec/compare.h"

#include <math.h>
#include <stdlib.h>

static int worst_first(const void *x, const void *y) {
    const CompareRow *const *a = x, *const *b = y;
    if ((*a)->is_output != (*b)->is_output)
        return (*a)->is_output ? 1 : -1;
    if ((*a)->sqnr != (*b)->sqnr)
        return (*a)->sqnr < (*b)->sqnr ? -1 : 1;
    return *a < *b ? -1 : 1;
}

static void print_number(double v, const char *fmt) {
    if (isinf(v))
        printf("%10s", v > 0 ? "equal" : "-inf");
    else
        printf(fmt, v);
}

static void drop_cut(Comparison *c, const Uses *a, const Uses *b) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].is_output || c->rows[i].stands_in ||
            !(is_cut_by_clamp(a, c->rows[i].a) || is_cut_by_clamp(b, c->rows[i].b)))
            c->rows[kept++] = c->rows[i];
    c->n = kept;
}

static const CompareRow **sorted_rows(Session *s, const Comparison *c) {
    const CompareRow **rows = NEW_ARRAY(s->arena, const CompareRow *, c->n);
    for (size_t i = 0; i < c->n; i++)
        rows[i] = &c->rows[i];
    qsort(rows, c->n, sizeof *rows, worst_first);
    return rows;
}

static void print_row(Session *s, const CompareRow *r) {
    if (!r->count) {
        printf("%10s %12s %10s  %s\n", "-", "-", "-", diag_name(s->d, r->name));
        return;
    }
    print_number(r->sqnr, "%10.2f");
    printf(" %12.6g %10.6f  %s\n", r->max_abs, r->cosine, diag_name(s->d, r->name));
}

/* Outputs come last: that is what counts. */
static void print_rows(Session *s, const Comparison *c, const Comparison *weights) {
    const CompareRow **rows = sorted_rows(s, c), **of_weights = sorted_rows(s, weights);
    size_t i = 0;
    printf("%10s %12s %10s  %s\n", "SQNR dB", "max error", "cosine", "value");
    for (; i < c->n && !rows[i]->is_output; i++)
        print_row(s, rows[i]);
    if (weights->n || weights->n_folded)
        puts("weights:");
    for (size_t k = 0; k < weights->n; k++)
        print_row(s, of_weights[k]);
    if (weights->n_folded)
        printf("%zu weight%s not compared, as other nodes are folded into %s: %s%s\n",
               weights->n_folded, weights->n_folded > 1 ? "s are" : " is",
               weights->n_folded > 1 ? "them" : "it", diag_name(s->d, weights->folded->name),
               weights->n_folded > 1 ? ", ..." : "");
    if (i < c->n)
        puts("outputs:");
    for (; i < c->n; i++)
        print_row(s, rows[i]);
    printf("%zu value%s, %zu weight%s, %zu sample%s\n", c->n, plural(c->n), weights->n,
           plural(weights->n), c->samples, plural(c->samples));
}

/* ---- JSON ---- */

/* JSON has no infinities and no NaN: null, and what is meant follows from max_error; without
 * elements nothing was compared. */
static void print_field(const char *key, double v) {
    if (isfinite(v))
        printf(", \"%s\": %.9g", key, v);
    else
        printf(", \"%s\": null", key);
}

static void print_json_row(Arena *a, const CompareRow *r, bool of_value) {
    printf("    {\"name\": ");
    json_print_name(a, r->name);
    if (of_value)
        printf(", \"output\": %s", r->is_output ? "true" : "false");
    printf(", \"elements\": %zu", r->count);
    if (r->unlike)
        printf(", \"samples_unlike\": %zu", r->unlike);
    print_field("sqnr_db", r->count ? r->sqnr : NAN);
    print_field("max_error", r->count ? r->max_abs : NAN);
    print_field("cosine", r->count ? r->cosine : NAN);
    putchar('}');
}

static void print_json_list(Session *s, const char *key, const Comparison *c, bool of_values) {
    const CompareRow **rows = sorted_rows(s, c);
    printf("  \"%s\": [", key);
    for (size_t i = 0; i < c->n; i++) {
        puts(i ? "," : "");
        print_json_row(s->arena, rows[i], of_values);
    }
    printf(c->n ? "\n  ]" : "]");
}

static void print_json(Session *s, const Comparison *c, const Comparison *weights) {
    printf("{\n  \"samples\": %zu,\n", c->samples);
    print_json_list(s, "values", c, true);
    puts(",");
    print_json_list(s, "weights", weights, false);
    printf(",\n  \"weights_folded\": %zu\n}\n", weights->n_folded);
}

static bool passes(Session *s, const CompareRow *r, double least) {
    return r->sqnr >= least ||
           diag_error(s->d, LOC_NONE, "%s %s has %.2f dB, less than the %g asked for",
                      r->is_output ? "output" : "value", diag_name(s->d, r->name), r->sqnr, least);
}

/* Exit 4 when an output is worse than asked for. */
static ExitCode gate(Session *s, const Comparison *c) {
    if (!s->o.min_sqnr)
        return EXIT_DONE;
    char *end;
    double least = strtod(s->o.min_sqnr, &end);
    if (*end || end == s->o.min_sqnr || !isfinite(least)) {
        diag_error(s->d, LOC_NONE, "-min-sqnr wants a number of dB, not '%s'", s->o.min_sqnr);
        return EXIT_USAGE;
    }
    ExitCode code = EXIT_DONE;
    size_t compared = 0;
    for (size_t i = 0; i < c->n; i++)
        compared += compare_judges(c, &c->rows[i]);
    if (c->unmeasured) {
        diag_error(
            s->d, LOC_NONE,
            "-min-sqnr: '%s' is quantized behind what the data choose, and no sample measures "
            "what it costs, as both models chose other elements in each",
            diag_name(s->d, c->unmeasured->name));
        return EXIT_WRONG;
    }
    for (size_t i = 0; i < c->n; i++)
        if (compare_judges(c, &c->rows[i]) && !passes(s, &c->rows[i], least))
            code = EXIT_MISSED;
    if (c->unseen) {
        diag_error(
            s->d, LOC_NONE,
            "in %zu of %zu samples output %s is of other elements in the second model, and no "
            "number says what that costs",
            c->unseen_in, c->samples, diag_name(s->d, c->unseen->name));
        code = EXIT_MISSED;
    }
    if (!compared && c->n && code == EXIT_DONE) {
        diag_error(s->d, LOC_NONE, "-min-sqnr: no output has an element to compare");
        return EXIT_WRONG;
    }
    return code;
}

/* Values come in the order in which they are computed: the first one may tell why. */
static void warn_of_choices(Session *s, const Comparison *c) {
    const CompareRow *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        first = first || !c->rows[i].unlike ? first : &c->rows[i];
        n += c->rows[i].unlike > 0;
    }
    if (first)
        diag_warning(s->d, LOC_NONE,
                     "the models choose other elements in %zu of %zu sample%s, where '%s'%s %s not "
                     "compared",
                     first->unlike, c->samples, plural((int64_t)c->samples),
                     diag_name(s->d, first->name), arena_others(s->arena, " and ", n - 1, ""),
                     n > 1 ? "are" : "is");
}

ExitCode cmd_compare(Session *s) {
    ExitCode code;
    Job jobs[2];
    Module *m[2];
    for (size_t i = 0; i < 2; i++) {
        if (!job_init(&jobs[i], &s->o, s->arena, s->d))
            return job_init_failure(&jobs[i]);
        if (!(m[i] = session_read(s, i, &code)))
            return code;
        if (session_lacks_data(s, m[i])) {
            diag_error(s->d, LOC_NONE, "compare needs data: -input=PATH or -random=N");
            return EXIT_USAGE;
        }
    }
    if (!job_prepare_pair(&jobs[0], m[0], &jobs[1], m[1]))
        return job_failure(jobs[1].ctx.misused ? &jobs[1] : &jobs[0]);
    ProgramOptions p = {.ignore_quant = s->o.ignore_quant,
                        .rounding = jobs[0].rounding,
                        .run_parts = runner_parts()};
    Comparison c, weights;
    CompareData data = {.paths = (const char *const *)s->o.input.items, .n = s->o.input.n};
    data.random = s->o.random > 0 ? (size_t)s->o.random : 1;
    trace_begin(s->o.trace);
    bool compared = compare_modules(m[0], m[1], &data, &p, &p, &c, s->d);
    trace_end(s->o.trace, "comparing");
    if (!compared)
        return EXIT_WRONG;
    warn_of_choices(s, &c);
    drop_cut(&c, uses_new(m[0]), uses_new(m[1]));
    compare_weights(m[0], m[1], &weights);
    if (s->o.json)
        print_json(s, &c, &weights);
    else
        print_rows(s, &c, &weights);
    return gate(s, &c);
}
