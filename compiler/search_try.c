/* See compiler/search_try.h. */
#include "compiler/search_try.h"

#include "compiler/judge.h"
#include "compiler/metric.h"
#include "passes/quantize/sharing.h"
#include "support/child.h"
#include "support/platform.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

/* ---- in the process of its own ---- */

typedef struct Maker {
    Session *s;
    const Try *t;
    TryResult *out;
    Options of_float, quantized, to_run;
} Maker;

void search_widen(Scheme *to, Arena *a, const SearchName *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        Str name = arena_str(a, str_from(names[i]));
        SchemeRule r = scheme_rule(SCHEME_VALUE, scheme_glob_of(a, name).s, LOC_NONE);
        r.set[SCHEME_ITSELF].said = true;
        r.set[SCHEME_ITSELF].storage = ELEM_INT16;
        scheme_add(to, a, r);
    }
}

/* What is to be seen is seen of the result alone. */
static Options silent(const Options *o) {
    Options quiet = *o;
    quiet.trace = NULL;
    quiet.verbose = quiet.sqnr_metadata = false;
    quiet.print_before = quiet.print_after = quiet.explain = quiet.explain_match = NULL;
    return quiet;
}

static bool read_float(Maker *k, Module **m, Job *j) {
    ExitCode code;
    k->of_float = silent(&k->s->o);
    k->of_float.scheme = k->of_float.scales_from = NULL;
    *m = session_read(k->s, 0, &code);
    return *m && job_init(j, &k->of_float, k->s->arena, k->s->d);
}

static bool make_quantized(Maker *k, Module **m, Job *j) {
    ExitCode code;
    Session *s = k->s;
    k->quantized = silent(&k->t->o);
    k->quantized.input_names = k->quantized.output_names = NULL; /* data have those of the model */
    *m = session_read(s, 0, &code);
    if (!*m || !job_init(j, &k->quantized, s->arena, s->d) || !session_read_donors(s, j, &code))
        return false;
    search_widen(&j->file, s->arena, k->t->wide, k->t->n_wide);
    j->ctx.part = SAMPLES_BUT_HELD_BACK;
    j->form = FORM_TRUE;
    j->quant_io = j->calib.keep = false;
    if (!job_compile(j, *m))
        return false;
    if (j->decided_before)
        return diag_error(s->d, LOC_NONE,
                          "the model is quantized already; what -emit=float gives can be searched");
    k->to_run = k->quantized; /* shapes and lengths are bound by now */
    k->to_run.bind = k->to_run.shape = k->to_run.max_elements = (TextList){0};
    j->o = &k->to_run;
    return true;
}

/* ---- what 8 bits are few for ---- */

typedef struct Loss {
    const Value *v;
    double left; /* dB that its own rounding leaves */
} Loss;

static void insert(Loss *list, size_t *n, Loss x) {
    size_t at = *n;
    while (at > 0 && x.left < list[at - 1].left)
        at--;
    if (at == SEARCH_WIDE_MOST)
        return;
    *n += *n < SEARCH_WIDE_MOST;
    memmove(&list[at + 1], &list[at], (*n - at - 1) * sizeof *list);
    list[at] = x;
}

/* Rounding to steps of `scale` adds noise of scale^2 / 12 (uniform over a step; Widrow, Kollar,
 * Quantization Noise, 2008, section 5.1). What only moves has the steps of its operand. */
static void find_lossy(Module *b, const Comparison *c, TryResult *out) {
    const Uses *uses = uses_new(b);
    Loss worst[SEARCH_WIDE_MOST];
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const Value *v = c->rows[i].b;
        const Quant *q = v->type.quant;
        if (!v->def || !v->def->def || is_follower(v->def) || !q || elem_bits(q->storage) > 8 ||
            !(c->rows[i].power > 0) || is_cut_by_clamp(uses, v) || v->name.n >= SEARCH_NAME_MOST)
            continue;
        double scale = quant_scale(q, 0);
        insert(worst, &n, (Loss){v, 10 * log10(c->rows[i].power * 12 / (scale * scale))});
    }
    for (size_t i = 0; i < n; i++)
        memcpy(out->lossy[i], worst[i].v->name.s, worst[i].v->name.n);
    out->n_lossy = n;
}

static bool measure(Maker *k) {
    Session *s = k->s;
    Module *a, *b;
    Job *plain = NEW(s->arena, Job), *made = NEW(s->arena, Job);
    const Judge on_others = {s->arena, &s->o.calib, SAMPLES_HELD_BACK, ""};
    const Judge on_own = {s->arena, &s->o.calib, SAMPLES_BUT_HELD_BACK, ""};
    Comparison c, own;
    Judged found, fitted;
    if (!read_float(k, &a, plain) || !make_quantized(k, &b, made) ||
        !job_prepare_pair(plain, a, made, b) ||
        !judge_outputs(&on_others, a, b, &c, &found, s->d) ||
        !judge_outputs(&on_own, a, b, &own, &fitted, s->d))
        return false;
    if (s->o.metric &&
        !metric_measure(s, (MetricSide){b, made->batch}, (MetricSide){a, plain->batch},
                        SAMPLES_HELD_BACK, &k->out->metric))
        return false;
    if (found.unmeasured)
        return diag_error(s->d, LOC_NONE, "%s; %s", found.unmeasured, found.advice);
    k->out->sqnr = found.sqnr;
    k->out->fitted = fitted.sqnr;
    k->out->samples = c.samples;
    find_lossy(b, &c, k->out);
    return true;
}

static void put_why(TryResult *out, const char *text) {
    snprintf(out->why, sizeof out->why, "%s", text);
}

/* Messages are about a candidate, not about what the user asked for: but for the first error they
 * go. */
static _Noreturn void make(Maker *k) {
    Session *s = k->s;
    if (setjmp(s->oom.env)) {
        put_why(k->out, "it takes more memory than -max-memory allows");
        _exit(EXIT_WRONG);
    }
    s->d = diags_new(s->arena, NULL, false);
    diags_record(s->d, true);
    s->o = silent(&s->o);
    k->out->measured = measure(k);
    const char *error = diags_first_error(s->d);
    if (!k->out->measured)
        put_why(k->out, error ? error : "it cannot be measured");
    _exit(EXIT_DONE);
}

/* ---- and around it ---- */

typedef struct Crew {
    Session *s;
    Try *tries;
    size_t n, next;
    TryLimits *limits;
    TryResult *shared;
    Children children;
    pid_t pids[8];
    size_t of[8]; /* which try */
    size_t running;
} Crew;

static bool start_one(Crew *c) {
    Maker *k = NEW(c->s->arena, Maker);
    *k = (Maker){.s = c->s, .t = &c->tries[c->next], .out = &c->shared[c->next]};
    pid_t pid = child_start(&c->children);
    if (pid == 0)
        make(k);
    if (pid < 0)
        return diag_error(c->s->d, LOC_NONE, "-search: cannot start a process: %s",
                          strerror(errno));
    c->pids[c->running] = pid;
    c->of[c->running++] = c->next++;
    return true;
}

/* Whole seconds that are left, and 1 where it is less; 0: there is no limit. */
static int64_t seconds_left(const TryLimits *l) {
    return l->end > 0 ? (int64_t)fmax(1, ceil(l->end - clock_seconds())) : 0;
}

static void end_one(Crew *c, size_t at, int code) {
    Try *t = &c->tries[c->of[at]];
    t->result = c->shared[c->of[at]];
    t->done = true;
    if (code != EXIT_DONE && !t->result.why[0])
        put_why(&t->result, "its process failed");
    c->running--;
    memmove(&c->pids[at], &c->pids[at + 1], (c->running - at) * sizeof *c->pids);
    memmove(&c->of[at], &c->of[at + 1], (c->running - at) * sizeof *c->of);
}

static bool run_all(Crew *c, size_t at_once) {
    while (c->running || c->next < c->n) {
        size_t at = 0;
        c->limits->over =
            c->limits->over || (c->limits->end > 0 && clock_seconds() >= c->limits->end);
        if (c->limits->over)
            break;
        if (c->running < at_once && c->next < c->n) {
            if (!start_one(c))
                return false;
            continue;
        }
        int code = child_wait_any(&c->children, c->pids, c->running, seconds_left(c->limits), &at);
        c->limits->over = code == CHILD_TIMEOUT;
        c->limits->interrupted = code == CHILD_INTERRUPTED;
        if (code < 0) { /* all are gone */
            c->running = 0;
            return true;
        }
        end_one(c, at, code);
    }
    return true;
}

/* One that a limit ended leaves none behind it: what is taken is then that of so many tries. */
static void cut_behind_first(Try *tries, size_t n) {
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = tries[i].done = tries[i].done && all;
}

bool tries_run(Session *s, Try *tries, size_t n, TryLimits *limits) {
    Crew c = {.s = s, .tries = tries, .n = n, .limits = limits};
    size_t most = sizeof c.pids / sizeof *c.pids, at_once = (size_t)processors_usable();
    c.shared = memory_share(n * sizeof *c.shared);
    if (!c.shared)
        return diag_error(s->d, LOC_NONE, "-search: cannot share memory: %s", strerror(errno));
    diags_flush(s->d);
    children_begin(&c.children);
    bool ok = run_all(&c, at_once < most ? at_once : most);
    children_kill(c.pids, c.running);
    children_end(&c.children);
    memory_unshare(c.shared, n * sizeof *c.shared);
    cut_behind_first(tries, n);
    return ok;
}
