/* The reader of a file of kernels. See kernels.h. */
#include <errno.h>
#include <stdlib.h>

#include "target/kernels.h"
#include "target/read_words.h"
#include "support/buf.h"

typedef struct KernelsReader {
    PageReader r;
    ForeignKernels *all;
} KernelsReader;

/* ---- words ---- */

static bool word_is_missing(PageReader *r, const char *what) {
    return r->x.kind != PAGE_NAME && !page_wrong(r, "%s is missing here", what);
}

/* Letters, digits and underscores, a letter first. The writer knows which words C has taken. */
static bool is_identifier(Str s) {
    for (size_t i = 0; i < s.n; i++) {
        bool letter = (s.s[i] >= 'a' && s.s[i] <= 'z') || (s.s[i] >= 'A' && s.s[i] <= 'Z');
        if (!letter && (i == 0 || !((s.s[i] >= '0' && s.s[i] <= '9') || s.s[i] == '_')))
            return false;
    }
    return s.n > 0;
}

static bool read_function(PageReader *r, ForeignEntry *e) {
    if (word_is_missing(r, "the function"))
        return false;
    e->function_loc = r->x.loc;
    if (!is_identifier(r->x.word))
        return page_wrong(r,
                          "'%s' is no name of a function in C: letters, digits and underscores, "
                          "a letter first",
                          diag_name(r->x.d, r->x.word));
    e->function = arena_str(r->a, r->x.word).s;
    page_next(&r->x);
    return true;
}

static bool read_kernel(PageReader *r, ForeignEntry *e) {
    size_t n;
    if (!page_accept(r, "for"))
        return page_wrong(r, "an entry is 'call FUNCTION for KERNEL': for is missing here");
    if (word_is_missing(r, "the kernel"))
        return false;
    const char **kernels = foreign_kernels(r->a, &n);
    for (size_t i = 0; i < n && !e->kernel; i++)
        if (str_is(r->x.word, kernels[i]))
            e->kernel = kernels[i];
    if (!e->kernel) {
        page_wrong(r, "there is no kernel '%s': comments of emitted C name the kernel of each step",
                   diag_name(r->x.d, r->x.word));
        diag_did_you_mean(r->x.d, r->x.loc, r->x.word, kernels, n);
        return false;
    }
    page_next(&r->x);
    return true;
}

static void no_such_fact(PageReader *r, const ForeignEntry *e) {
    size_t n;
    const char **facts = foreign_facts(r->a, e->kernel, &n);
    Buf all = buf_new(r->a);
    for (size_t i = 0; i < n; i++)
        buf_fmt(&all, "%s%s", i ? ", " : "", facts[i]);
    page_wrong(r, "%s has no '%s'; there are: %s", e->kernel, diag_name(r->x.d, r->x.word),
               buf_as_str(&all).s);
    diag_did_you_mean(r->x.d, r->x.loc, r->x.word, facts, n);
}

/* The name of something that the kernel has. */
static bool read_fact(PageReader *r, const ForeignEntry *e, const char **fact, FactKind *kind) {
    if (word_is_missing(r, "what the condition is about"))
        return false;
    *kind = foreign_fact(r->a, e->kernel, r->x.word);
    if (*kind == FACT_NONE) {
        no_such_fact(r, e);
        return false;
    }
    *fact = arena_str(r->a, r->x.word).s;
    page_next(&r->x);
    return true;
}

/* ---- conditions ---- */

static bool read_number(PageReader *r, int64_t *out) {
    if (r->x.kind != PAGE_NUMBER)
        return page_wrong(r, "a number is missing here");
    errno = 0;
    *out = strtoll(arena_str(r->a, r->x.word).s, NULL, 10);
    if (errno)
        return page_wrong(r, "this number needs more than 64 bits");
    page_next(&r->x);
    return true;
}

/* 3, 1..7, 16.., multiple of 4 */
static bool read_range(PageReader *r, ForeignRange *to) {
    *to = (ForeignRange){INT64_MIN, INT64_MAX, 1};
    if (page_accept(r, "multiple")) {
        if (!page_accept(r, "of"))
            return page_wrong(r, "multiple of N: of is missing here");
        Loc at = r->x.loc;
        return read_number(r, &to->step) &&
               (to->step >= 1 || diag_error(r->x.d, at, "multiples are of 1 or more"));
    }
    Loc at = r->x.loc;
    if (!read_number(r, &to->low))
        return false;
    to->high = to->low;
    if (r->x.kind != PAGE_RANGE)
        return true;
    page_next(&r->x);
    to->high = INT64_MAX;
    if (r->x.kind == PAGE_NUMBER && !read_number(r, &to->high))
        return false;
    return to->high >= to->low || diag_error(r->x.d, at, "the range ends before it begins");
}

static bool read_word(PageReader *r, FactKind kind, const char **out) {
    size_t n, i;
    const char *const *words = foreign_words(kind, &n);
    if (kind == FACT_LAYER)
        return page_string(r, "the name of a layer, which may have * in it,", out);
    if (n) {
        if (!page_one_of(r, kind == FACT_TYPE ? "type of a kernel" : "rounding", words, n, &i))
            return false;
        *out = words[i];
        return true;
    }
    if (word_is_missing(r, "an operator"))
        return false;
    *out = arena_str(r->a, r->x.word).s;
    page_next(&r->x);
    return true;
}

static bool read_test(PageReader *r, ForeignEntry *e) {
    ForeignTest t = {.negated = page_accept(r, "not")};
    size_t cap = 0;
    if (!read_fact(r, e, &t.fact, &t.kind))
        return false;
    do {
        ForeignRange range;
        const char *word;
        if (t.kind == FACT_NUMBER) {
            if (!read_range(r, &range))
                return false;
            ARENA_PUSH(r->a, t.ranges, t.n, cap, range);
        } else {
            if (!read_word(r, t.kind, &word))
                return false;
            ARENA_PUSH(r->a, t.words, t.n, cap, word);
        }
    } while (page_more(r));
    ARENA_PUSH(r->a, e->tests, e->n_tests, e->cap_tests, t);
    return true;
}

/* ---- scratch ---- */

/* 4 * kh * kw */
static bool read_term(PageReader *r, ForeignEntry *e) {
    ForeignTerm t = {.factor = 1};
    do {
        const char *fact;
        FactKind kind;
        int64_t factor = 1;
        Loc at = r->x.loc;
        if (r->x.kind == PAGE_NUMBER) {
            if (!read_number(r, &factor))
                return false;
            if (factor < 0 || factor > INT32_MAX || t.factor > INT32_MAX / (factor ? factor : 1))
                return diag_error(r->x.d, at, "scratch is between 0 and 2147483647 bytes");
            t.factor *= factor;
            continue;
        }
        if (word_is_missing(r, "a number of bytes, or a fact that is a number,") ||
            !read_fact(r, e, &fact, &kind))
            return false;
        if (kind != FACT_NUMBER)
            return diag_error(r->x.d, at, "'%s' is no number", fact);
        ARENA_PUSH(r->a, t.facts, t.n, t.cap, fact);
    } while (page_accept(r, "*"));
    ARENA_PUSH(r->a, e->scratch, e->n_scratch, e->cap_scratch, t);
    return true;
}

static bool read_scratch(PageReader *r, ForeignEntry *e) {
    for (;;) {
        if (!read_term(r, e))
            return false;
        if (r->x.kind != PAGE_PLUS)
            return true;
        page_next(&r->x);
    }
}

/* ---- the file ---- */

/* call FUNCTION for KERNEL when FACT VALUES and not FACT VALUES scratch 4 * kh + 16 */
static bool read_entry(KernelsReader *k) {
    PageReader *r = &k->r;
    ForeignEntry e = {.loc = r->x.loc};
    if (!page_accept(r, "call"))
        return page_wrong(r, "an entry begins with call");
    if (!read_function(r, &e) || !read_kernel(r, &e))
        return false;
    if (page_accept(r, "when"))
        do {
            if (!read_test(r, &e))
                return false;
        } while (page_accept(r, "and"));
    if (page_accept(r, "scratch") && !read_scratch(r, &e))
        return false;
    if (!page_at_end(r))
        return false;
    ARENA_PUSH(r->a, k->all->entries, k->all->n, k->all->cap, e);
    return true;
}

/* kernels "LIBRARY" */
static bool read_header(KernelsReader *k) {
    PageReader *r = &k->r;
    if (!page_next_item(&r->x))
        return diag_error(r->x.d, r->x.loc,
                          "the file is empty: it begins with kernels \"LIBRARY\"");
    if (!page_accept(r, "kernels"))
        return page_wrong(r, "a file of kernels begins with kernels \"LIBRARY\"");
    return page_string(r, "the library's name", &k->all->library) && page_at_end(r);
}

const ForeignKernels *kernels_read(Arena *a, Diags *d, const char *name, Str text) {
    ForeignKernels *all = NEW(a, ForeignKernels);
    *all = (ForeignKernels){0};
    KernelsReader k = {.r = {.a = a, .x = page_lexer(d, name, text)}, .all = all};
    int before = diags_errors(d);
    if (!page_check_bytes(&k.r, name, "kernels ") || !read_header(&k))
        return NULL;
    while (page_next_item(&k.r.x))
        read_entry(&k);
    if (diags_errors(d) == before && !all->n)
        diag_error(d, k.r.x.loc, "the file has no entry: call FUNCTION for KERNEL");
    return diags_errors(d) == before ? all : NULL;
}
