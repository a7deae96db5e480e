/* See compiler/search.h. */
#include "compiler/search.h"

#include "compiler/placement.h"
#include "compiler/search_parts.h"
#include "compiler/without_effect.h"
#include "support/platform.h"

#include <math.h>
#include <stdlib.h>

const Row search_rows[N_ROWS] = {
#define TRY(group, options, wide, least) {GROUP_##group, options, wide, least},
#include "compiler/search.def"
};
enum { ROUNDS_MOST = 3, HOPELESS = 2 /* dB */ };

/* ---- the command line ---- */

/* 60, 60s, 20-tries, or nothing. */
static bool read_limit(Search *x) {
    const char *text = x->s->o.search;
    char *end = NULL;
    unsigned long n = 0;
    if (!*text)
        return true;
    if (*text >= '0' && *text <= '9')
        n = strtoul(text, &end, 10);
    if (n && n < 1000000 && (!*end || strcmp(end, "s") == 0))
        x->limits.end = clock_seconds() + (double)n;
    else if (n && n < 1000000 && strcmp(end, "-tries") == 0)
        x->most = n;
    else
        return diag_error(x->s->d, LOC_NONE,
                          "-search wants seconds or a number of tries (60s, 20-tries), not '%s'",
                          diag_name(x->s->d, str_from(text)));
    return true;
}

static bool check_options(Search *x) {
    const Options *o = &x->s->o;
    Diags *d = x->s->d;
    if (!read_limit(x))
        return false;
    if (o->dynamic || o->weight_only || o->passes)
        return diag_error(d, LOC_NONE, "-search is about static quantization");
    if (x->j->form <= FORM_FLOAT || (o->emit && strcmp(o->emit, "float") == 0))
        return diag_error(d, LOC_NONE, "-search: nothing is quantized in this form");
    if (!o->calib.n)
        return diag_error(d, LOC_NONE, "-search judges on data: -calib=PATH");
    return session_reads_again(x->s, "-search reads");
}

/* ---- candidates ---- */

static bool is_open_row(const Search *x, const Row *r) {
    const char *words = r->options;
    const OptionDef *def;
    Str word;
    bool open = (!r->wide || target_stores(x->j->ctx.target, ELEM_INT16)) &&
                (r->group != GROUP_PLACEMENT || placement_is_open(x->j));
    while (open && options_next(&words, &word, &def))
        open = def && option_is_open(&x->s->o, def);
    return open;
}

static bool add_words(Search *x, Options *o, const char *words) {
    Arena *a = x->s->arena;
    const OptionDef *def;
    for (Str word; options_next(&words, &word, &def);)
        if (!options_take(o, arena_str(a, word).s, a, x->s->d))
            return false;
    return true;
}

static bool same(const Choices *x, const Choices *y) {
    return memcmp(x->of, y->of, sizeof x->of) == 0;
}

static size_t wide_of(const Choices *c) {
    size_t r = c->of[GROUP_WIDTH];
    return r == NO_ROW ? 0 : search_rows[r].wide;
}

/* False where there is no such candidate, or it was tried. */
static bool add_try(Search *x, const Choices *c) {
    for (size_t i = 0; i < x->n; i++)
        if (same(&x->tries[i].choices, c))
            return false;
    size_t wide = wide_of(c);
    if (wide > x->n_wide)
        return false;
    if (x->most && x->n == x->most) {
        x->cut = true;
        return false;
    }
    Tried t = {.choices = *c, .made = {.o = x->s->o, .wide = x->wide, .n_wide = wide}};
    for (size_t g = 0; g < N_GROUPS; g++)
        if (c->of[g] != NO_ROW && !add_words(x, &t.made.o, search_rows[c->of[g]].options))
            return false;
    ARENA_PUSH(x->s->arena, x->tries, x->n, x->cap, t);
    return true;
}

static void add_group(Search *x, Group g) {
    Choices c = x->n ? x->tries[x->best].choices : (Choices){0};
    if (!x->n) { /* the default itself comes first */
        for (size_t i = 0; i < N_GROUPS; i++)
            c.of[i] = NO_ROW;
        add_try(x, &c);
    }
    size_t had = c.of[g];
    for (size_t r = 0; r < N_ROWS; r++) {
        c.of[g] = r;
        if (search_rows[r].group == g && r != had && !x->given_up[r] &&
            is_open_row(x, &search_rows[r]))
            add_try(x, &c);
    }
    c.of[g] = NO_ROW;
    add_try(x, &c);
}

/* ---- the search ---- */

static bool run(Search *x, size_t from) {
    Progress *p = diags_progress(x->s->d);
    size_t n = x->n - from;
    Try *batch = NEW_ARRAY(x->s->arena, Try, n + 1);
    for (size_t i = 0; i < n; i++)
        batch[i] = x->tries[from + i].made;
    const char *what = n > 1 ? arena_strf(x->s->arena, "search: tries %zu to %zu", from + 1, x->n).s
                             : arena_strf(x->s->arena, "search: try %zu", from + 1).s;
    size_t level = progress_begin(p, what, 0);
    bool ok = tries_run(x->s, batch, n, &x->limits);
    progress_end(p, level);
    for (size_t i = 0; i < n; i++) {
        x->tries[from + i].made = batch[i];
        if (!batch[i].done && x->n > from + i) {
            x->n = from + i;
            x->cut = true;
        }
    }
    return ok;
}

/* How much a try has to win over the best, as it has rows that cost something. */
static double least_win(const Tried *t, const Tried *best) {
    double least = 0;
    for (size_t g = 0; g < N_GROUPS; g++)
        if (t->choices.of[g] != NO_ROW && t->choices.of[g] != best->choices.of[g])
            least = fmax(least, search_rows[t->choices.of[g]].least);
    return least;
}

/* What changes no number, as there is nothing for it to do, and what loses much. */
static void give_up(Search *x, const Tried *t, const Tried *best) {
    double win = t->made.result.sqnr - best->made.result.sqnr;
    if (x->s->o.metric && t->made.result.measured && win != 0)
        return;
    for (size_t g = 0; g < N_GROUPS; g++) {
        size_t r = t->choices.of[g];
        if (r != NO_ROW && r != best->choices.of[g])
            x->given_up[r] = !t->made.result.measured || win == 0 || win < -HOPELESS;
    }
}

/* What cuts ranges wins on samples without the largest numbers. Those that set the ranges have
 * them: what is to be taken may lose next to nothing there. */
static bool is_narrow(const Tried *t, const Tried *best) {
    static const double LOST = 0.5; /* dB: chance */
    return t->made.result.fitted < best->made.result.fitted - LOST;
}

static bool is_better(const Tried *t, const Tried *than, const Tried *best) {
    const TryResult *r = &t->made.result, *o = &than->made.result;
    bool pays = r->sqnr - best->made.result.sqnr >= least_win(t, best) && !is_narrow(t, best);
    if (!r->measured || (t->made.n_wide > best->made.n_wide && !pays))
        return false;
    if (r->metric != o->metric)
        return r->metric > o->metric;
    return r->sqnr > o->sqnr && (pays || r->metric > best->made.result.metric);
}

/* Whether one of them is better than what was the best before: by the metric, and where that says
 * nothing by the SQNR. */
static bool take_best(Search *x, size_t from) {
    size_t before = x->best;
    for (size_t i = from; i < x->n; i++) {
        const TryResult *r = &x->tries[i].made.result, *was = &x->tries[before].made.result;
        give_up(x, &x->tries[i], &x->tries[before]);
        x->tries[i].narrow = r->measured && r->metric <= was->metric && r->sqnr > was->sqnr &&
                             is_narrow(&x->tries[i], &x->tries[before]);
        if (i != before && is_better(&x->tries[i], &x->tries[x->best], &x->tries[before]))
            x->best = i;
    }
    x->tries[x->best].taken = x->best > 0;
    return x->best != before;
}

/* Which values may get 16 bits is found out once nothing has them. */
static void find_wide(Search *x) {
    if (!x->n || wide_of(&x->tries[x->best].choices))
        return;
    const TryResult *r = &x->tries[x->best].made.result;
    SearchName *names = NEW_ARRAY(x->s->arena, SearchName, SEARCH_WIDE_MOST);
    memcpy(names, r->lossy, sizeof r->lossy);
    x->wide = names;
    x->n_wide = r->n_lossy;
}

static bool is_over(const Search *x) {
    bool perfect = x->n && isinf(x->tries[x->best].made.result.sqnr);
    return x->cut || x->limits.over || x->limits.interrupted || perfect;
}

static ExitCode try_group(Search *x, Group g, bool *took) {
    size_t from = x->n;
    if (g == GROUP_WIDTH)
        find_wide(x);
    add_group(x, g);
    if (x->n > from && !run(x, from))
        return EXIT_IO;
    if (x->limits.interrupted) {
        diag_error(x->s->d, LOC_NONE, "-search was interrupted");
        return EXIT_WRONG;
    }
    if (from == 0 && x->n && !x->tries[0].made.result.measured) {
        diag_error(x->s->d, LOC_NONE, "-search cannot judge the default: %s",
                   x->tries[0].made.result.why);
        return EXIT_WRONG;
    }
    *took = take_best(x, from) || *took;
    return EXIT_DONE;
}

static ExitCode search(Search *x) {
    bool took = true;
    for (int round = 0; round < ROUNDS_MOST && took && !is_over(x); round++) {
        took = false;
        for (Group g = 0; g < N_GROUPS && !is_over(x); g++) {
            ExitCode code = try_group(x, g, &took);
            if (code != EXIT_DONE)
                return code;
        }
    }
    return EXIT_DONE;
}

/* ---- what was found ---- */

/* The job is that of the best. */
static bool settle(Search *x) {
    Session *s = x->s;
    const Tried *t = &x->tries[x->best];
    Options found = {.calib_random = -1};
    for (size_t g = 0; g < N_GROUPS; g++)
        if (t->choices.of[g] != NO_ROW &&
            !add_words(x, &found, search_rows[t->choices.of[g]].options))
            return false;
    s->o = t->made.o;
    diags_quiet(s->d, true); /* what it has to say was said of the default */
    bool ok = job_init(x->j, &s->o, s->arena, s->d);
    diags_quiet(s->d, s->o.quiet);
    if (!ok)
        return false;
    search_widen(&x->j->file, s->arena, t->made.wide, t->made.n_wide);
    return search_write_scheme(x, &found);
}

/* Of what is wrong with the model itself each line is told, at its place. */
static bool can_be_read(Search *x, ExitCode *code) {
    Module *m = session_look(x->s, code);
    session_free_modules(x->s, 0);
    return m;
}

ExitCode search_decide(Session *s, Job *j) {
    Search x = {.s = s, .j = j};
    if (!check_options(&x))
        return EXIT_USAGE;
    ExitCode code = EXIT_DONE;
    if (can_be_read(&x, &code))
        code = search(&x);
    if (code != EXIT_DONE)
        return code;
    if (x.n && !settle(&x))
        return EXIT_WRONG;
    search_tell(&x);
    return EXIT_DONE;
}
