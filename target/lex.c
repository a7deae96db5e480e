#include "target/lex.h"

#include <string.h>

PageLexer page_lexer(Diags *d, const char *name, Str text) {
    return (PageLexer){.d = d, .source = diags_source(d, name, text), .text = text};
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           (c && strchr("_.-:*", c));
}

static char peek(const PageLexer *x, size_t ahead) {
    return x->at + ahead < x->text.n ? x->text.s[x->at + ahead] : '\n';
}

/* Over blanks, comments and the ends of lines that another one continues. */
static void skip_blanks(PageLexer *x) {
    while (x->at < x->text.n) {
        if (peek(x, 0) == '#')
            while (x->at < x->text.n && peek(x, 0) != '\n')
                x->at++;
        bool goes_on = peek(x, 0) == '\n' && (is_blank(peek(x, 1)) || peek(x, 1) == '\n' ||
                                              peek(x, 1) == '#' || peek(x, 1) == '\r');
        if (!goes_on && !is_blank(peek(x, 0)))
            return;
        x->at++;
    }
}

static PageTokenKind take(PageLexer *x, PageTokenKind kind, size_t from, size_t to, size_t end) {
    x->word = (Str){x->text.s + from, to - from};
    x->loc = (Loc){x->source, (uint32_t)(from - (kind == PAGE_STRING)), (uint32_t)end, NULL};
    x->at = end;
    return x->kind = kind;
}

static void take_string(PageLexer *x) {
    size_t from = x->at + 1, to = from;
    while (to < x->text.n && x->text.s[to] != '"' && x->text.s[to] != '\n')
        to++;
    bool closed = to < x->text.n && x->text.s[to] == '"';
    take(x, PAGE_STRING, from, to, to + closed);
    if (!closed) {
        diag_error(x->d, x->loc, "the string has no end on its line");
        x->kind = PAGE_WRONG;
    }
}

void page_next(PageLexer *x) {
    size_t behind = x->at;
    skip_blanks(x);
    size_t from = x->at, to = from;
    char c = peek(x, 0);
    if (x->at >= x->text.n || c == '\n') {
        take(x, PAGE_END, behind, behind, behind);
        x->at = from;
    } else if (c == '"') {
        take_string(x);
    } else if (c == ',') {
        take(x, PAGE_COMMA, from, from + 1, from + 1);
    } else if (c == '+') {
        take(x, PAGE_PLUS, from, from + 1, from + 1);
    } else if (c == '.' && peek(x, 1) == '.') {
        take(x, PAGE_RANGE, from, from + 2, from + 2);
    } else if (is_digit(c) || (c == '-' && is_digit(peek(x, 1)))) {
        to++;
        while (to < x->text.n && is_digit(x->text.s[to]))
            to++;
        take(x, PAGE_NUMBER, from, to, to);
    } else if (is_in_name(c)) {
        while (to < x->text.n && is_in_name(x->text.s[to]))
            to++;
        take(x, PAGE_NAME, from, to, to);
    } else {
        take(x, PAGE_WRONG, from, from + 1, from + 1);
        diag_error(x->d, x->loc, "'%s' stands for nothing here", diag_name(x->d, x->word));
    }
}

/* The start of the line behind `at`. */
static size_t next_line(const PageLexer *x, size_t at) {
    while (at < x->text.n && x->text.s[at] != '\n')
        at++;
    return at + (at < x->text.n);
}

static bool begins_item(char c) {
    return !is_blank(c) && c != '\n' && c != '#';
}

bool page_next_item(PageLexer *x) {
    size_t mark = str_starts(x->text, "\xEF\xBB\xBF") ? 3 : 0; /* which some editors put there */
    x->at = x->begun ? next_line(x, x->at) : mark;
    x->begun = true;
    while (x->at < x->text.n && !begins_item(x->text.s[x->at]))
        x->at = next_line(x, x->at);
    page_next(x);
    return x->at < x->text.n || x->kind != PAGE_END;
}
