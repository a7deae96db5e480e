/* What a search says in the end. */
#include "compiler/search_parts.h"

#include "compiler/info_next.h"
#include "compiler/mixed.h"
#include "compiler/scheme_flags.h"

#include <math.h>

static void put_choices(const Search *x, const Tried *t, Buf *b) {
    bool any = false;
    for (size_t g = 0; g < N_GROUPS; g++) {
        size_t r = t->choices.of[g];
        if (r == NO_ROW || !search_rows[r].options[0])
            continue;
        buf_fmt(b, "%s%s", any ? " " : "", search_rows[r].options);
        any = true;
    }
    for (size_t i = 0; i < t->made.n_wide; i++) {
        const char *name = diag_name(x->s->d, str_from(t->made.wide[i]));
        buf_fmt(b, i ? ", %s" : any ? " and 16 bits for %s" : "16 bits for %s", name);
    }
    if (!any && !t->made.n_wide)
        buf_text(b, "default");
}

static void put_try(const Search *x, const Tried *t, Buf *b) {
    const TryResult *r = &t->made.result;
    buf_fmt(b, "  %s ", t->taken ? "*" : " ");
    if (r->measured && x->s->o.metric)
        buf_fmt(b, "%10.6g ", r->metric);
    if (!r->measured)
        buf_fmt(b, x->s->o.metric ? "   failed             " : "   failed  ");
    else if (isinf(r->sqnr))
        buf_fmt(b, "     equal  ");
    else
        buf_fmt(b, "%7.2f dB  ", r->sqnr);
    put_choices(x, t, b);
    if (!r->measured)
        buf_fmt(b, ": %s", r->why);
    if (t->narrow)
        buf_text(b, "; loses on the other samples");
    buf_byte(b, '\n');
}

typedef struct Again {
    bool new_scheme; /* which has the rules of the old one */
} Again;

static bool is_repeated(const OptionDef *def, const void *ctx) {
    const Again *again = ctx;
    return !again->new_scheme || strcmp(def->name, "scheme") != 0;
}

static void put_word(Buf *b, const char *option, const char *value) {
    Buf word = buf_new(b->arena);
    buf_fmt(&word, "%s%s", option, value);
    buf_byte(b, ' ');
    buf_shell(b, buf_as_str(&word));
}

/* What does the same without -search; s->o has what was found. */
static Str command_again(const Search *x) {
    const Options *o = &x->s->o;
    bool wide = x->tries[x->best].made.n_wide;
    const Again again = {wide};
    Buf b = buf_new(x->s->arena);
    buf_text(&b, "qxc");
    put_word(&b, "", next_readable(b.arena, o->inputs.items[0]).s);
    options_repeat(o, is_repeated, &again, &b);
    if (wide)
        put_word(&b, "-scheme=", o->search_scheme ? o->search_scheme : "FILE");
    if (o->metric && mixed_wanted(o))
        put_word(&b, "-metric=", o->metric);
    if (o->output) {
        buf_text(&b, " -o");
        put_word(&b, "", o->output);
    }
    return buf_as_str(&b);
}

static void put_outcome(const Search *x, Buf *b) {
    const TryResult *first = &x->tries[0].made.result, *best = &x->tries[x->best].made.result;
    if (x->limits.over)
        buf_fmt(b, "search: the time was over; -search=%zu-tries gives the same\n", x->n);
    else if (x->cut)
        buf_fmt(b, "search: more would have been tried\n");
    if (!x->best) {
        buf_fmt(b, "search: nothing is better than the default, which is kept\n");
        return;
    }
    buf_text(b, "search: ");
    if (x->s->o.metric)
        buf_fmt(b, "%g where the default has %g, and ", best->metric, first->metric);
    buf_fmt(b, "%.2f dB %s than the default; ", fabs(best->sqnr - first->sqnr),
            best->sqnr < first->sqnr ? "less" : "more");
    buf_fmt(b, "the same without -search%s:\n  " STR_FMT "\n",
            x->tries[x->best].made.n_wide && !x->s->o.search_scheme
                ? ", with the scheme that -search-scheme=FILE writes"
                : "",
            STR_ARG(command_again(x)));
}

void search_tell(const Search *x) {
    Buf b = buf_new(x->s->arena);
    if (x->s->o.quiet)
        return;
    if (x->n)
        buf_fmt(&b, "search: %zu %s, judged on %zu samples held back%s; * was taken\n", x->n,
                x->n == 1 ? "try" : "tries", x->tries[0].made.result.samples,
                x->s->o.metric ? " by -metric" : "");
    for (size_t i = 0; i < x->n; i++)
        put_try(x, &x->tries[i], &b);
    if (x->n)
        put_outcome(x, &b);
    else
        buf_text(&b, "search: the time was over before anything was tried; the default is kept\n");
    diags_flush(x->s->d);
    progress_clear(diags_progress(x->s->d));
    fwrite(b.p, 1, b.n, stderr);
}

bool search_write_scheme(const Search *x, const Options *found) {
    Scheme all = {0};
    Buf b = buf_new(x->s->arena);
    if (!x->s->o.search_scheme)
        return true;
    if (!scheme_of_flags(&all, found, x->s->arena, x->s->d))
        return false;
    scheme_append(&all, x->s->arena, &x->j->file);
    buf_fmt(&b, "// Found by qxc -search:\n//   " STR_FMT "\n", STR_ARG(command_again(x)));
    scheme_print(&b, &all);
    x->j->search_scheme = buf_as_str(&b);
    return true;
}
