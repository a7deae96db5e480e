/* The reader of pages. Each item is read by the function of its row in words.def; one that is wrong
 * is told and skipped, so a run tells every item that is. */
#define _GNU_SOURCE
#include "target/lex.h"
#include "target/read_words.h"
#include "support/buf.h"

#include <stdarg.h>

/* ---- tokens ---- */

bool page_wrong(PageReader *r, const char *fmt, ...) {
    if (r->x.kind == PAGE_WRONG)
        return false;
    va_list ap;
    va_start(ap, fmt);
    diag_v(r->x.d, DIAG_ERROR, r->x.loc, fmt, ap);
    va_end(ap);
    return false;
}

bool page_accept(PageReader *r, const char *word) {
    bool is = r->x.kind == PAGE_NAME && str_is(r->x.word, word);
    if (is)
        page_next(&r->x);
    return is;
}

bool page_one_of(PageReader *r, const char *what, const char *const *words, size_t n, size_t *i) {
    for (*i = 0; *i < n; ++*i)
        if (page_accept(r, words[*i]))
            return true;
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "%s is missing here", what);
    Buf all = buf_new(r->a);
    for (size_t k = 0; k < n; k++)
        buf_fmt(&all, "%s%s", k ? ", " : "", words[k]);
    page_wrong(r, "'%s' is no %s; there are: %s", diag_name(r->x.d, r->x.word), what,
               buf_as_str(&all).s);
    diag_did_you_mean(r->x.d, r->x.loc, r->x.word, words, n);
    return false;
}

bool page_more(PageReader *r) {
    bool is = r->x.kind == PAGE_COMMA;
    if (is)
        page_next(&r->x);
    return is;
}

bool page_string(PageReader *r, const char *what, const char **out) {
    if (r->x.kind != PAGE_STRING)
        return page_wrong(r, "%s is missing here, in quotes", what);
    *out = arena_str(r->a, r->x.word).s;
    page_next(&r->x);
    return true;
}

bool page_says(PageReader *r, const char **out) {
    return !page_accept(r, "says") || page_string(r, "the reason", out);
}

/* ---- items ---- */

static const struct Item {
    const char *word;
    bool (*read)(PageReader *r);
    bool once;
} items[] = {
#define ITEM(word, read, once) {word, read, once},
#include "target/words.def"
};
enum { N_ITEMS = sizeof items / sizeof *items };

static const struct Flag {
    const char *word, *value;
    size_t at;
} flags[] = {
#define FLAG(word, value, member) {word, value, offsetof(TargetPage, member)},
#include "target/words.def"
};
enum { N_FLAGS = sizeof flags / sizeof *flags };

static bool once(PageReader *r, const char *word, Loc at) {
    Loc *before = map_get(r->said, str_from(word));
    if (!before) {
        map_set(r->said, str_from(word), arena_copy(r->a, &at, sizeof at));
        return true;
    }
    diag_error(r->x.d, at, "the page says '%s' twice", word);
    diag_note(r->x.d, *before, "here it is said first");
    return false;
}

static bool read_flag(PageReader *r, const char *word) {
    const char *values[N_FLAGS];
    size_t at[N_FLAGS], n = 0, i;
    for (size_t k = 0; k < N_FLAGS; k++)
        if (strcmp(flags[k].word, word) == 0) {
            at[n] = flags[k].at;
            values[n++] = flags[k].value;
        }
    if (!page_one_of(r, arena_strf(r->a, "word behind '%s'", word).s, values, n, &i))
        return false;
    *(bool *)((char *)r->page + at[i]) = true;
    return true;
}

static bool no_such_item(PageReader *r) {
    const char *words[N_ITEMS + N_FLAGS];
    for (size_t i = 0; i < N_ITEMS + N_FLAGS; i++)
        words[i] = i < N_ITEMS ? items[i].word : flags[i - N_ITEMS].word;
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "an item begins with a word");
    page_wrong(r, "a page has no word '%s'", diag_name(r->x.d, r->x.word));
    diag_did_you_mean(r->x.d, r->x.loc, r->x.word, words, N_ITEMS + N_FLAGS);
    return false;
}

static bool read_item(PageReader *r) {
    Loc at = r->x.loc;
    for (size_t i = 0; i < N_ITEMS; i++)
        if (page_accept(r, items[i].word))
            return (!items[i].once || once(r, items[i].word, at)) && items[i].read(r);
    for (size_t i = 0; i < N_FLAGS; i++)
        if (page_accept(r, flags[i].word))
            return once(r, flags[i].word, at) && read_flag(r, flags[i].word);
    if (page_accept(r, "target")) /* which read_header has taken, or missed */
        return once(r, "target", at);
    return no_such_item(r);
}

bool page_at_end(PageReader *r) {
    if (r->x.kind == PAGE_END)
        return true;
    Str word = r->x.word;
    return page_wrong(r, "'%s' is too much here", diag_name(r->x.d, word));
}

/* target NAME "RUNTIME" */
static bool read_header(PageReader *r) {
    if (!page_next_item(&r->x))
        return diag_error(r->x.d, r->x.loc,
                          "the page is empty: it begins with target NAME \"RUNTIME\"");
    Loc at = r->x.loc;
    if (!page_accept(r, "target"))
        return page_wrong(r, "a page begins with target NAME \"RUNTIME\"");
    once(r, "target", at);
    if (r->x.kind != PAGE_NAME)
        return page_wrong(r, "the target's name is missing here");
    r->page->name = arena_str(r->a, r->x.word).s;
    page_next(&r->x);
    return page_string(r, "the runtime's name", &r->page->runtime) && page_at_end(r);
}

/* A file with NUL bytes that does not begin as a page gets no excerpt. */
bool page_check_bytes(PageReader *r, const char *name, const char *begins) {
    Str text = r->x.text;
    const char *nul = text.n ? memchr(text.s, 0, text.n) : NULL;
    uint32_t at = nul ? (uint32_t)(nul - text.s) : 0;
    if (!nul)
        return true;
    if (memmem(text.s, at, begins, strlen(begins)))
        return diag_error(r->x.d, (Loc){r->x.source, at, at + 1, NULL}, "a NUL byte in the page");
    return diag_error(r->x.d, LOC_NONE, "%s: a binary file, not the text of a page", name);
}

const TargetPage *target_read(Arena *a, Diags *d, const char *name, Str text) {
    TargetPage *p = NEW(a, TargetPage);
    *p = (TargetPage){.forms = {[TARGET_FORM_QDQ] = true},
                      .activations = {ELEM_UINT8, false, false},
                      .weights = {ELEM_INT8, true, true}};
    PageReader r = {.a = a, .page = p, .x = page_lexer(d, name, text), .said = map_new(a)};
    int before = diags_errors(d);
    if (!page_check_bytes(&r, name, "target "))
        return NULL;
    bool header = read_header(&r);
    bool more = header || r.x.at < r.x.text.n;
    while (more && page_next_item(&r.x))
        if (read_item(&r))
            page_at_end(&r);
    if (diags_errors(d) == before)
        page_agrees(&r);
    if (!p->about)
        p->about = p->runtime;
    return diags_errors(d) == before ? p : NULL;
}
