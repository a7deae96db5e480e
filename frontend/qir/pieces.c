#include "frontend/qir/pieces.h"

typedef struct Cutter {
    Arena *arena;
    Pieces all;
    int newlines; /* since the last piece */
    bool statement;
    size_t open[MAX_BRACKETS]; /* the pieces that opened brackets */
    int depth;
} Cutter;

/* The word `graph` begins a graph at the start of a line and as a value; elsewhere it is a name. */
static bool begins_graph(const Cutter *c, const Piece *p) {
    if (p->kind != T_GRAPH)
        return false;
    if (c->depth == 0)
        return p->begins_statement;
    const Piece *before = &c->all.items[c->all.n - 1];
    int inside = c->all.items[c->open[c->depth - 1]].kind;
    return (inside == T_LT && before->kind == T_EQ) ||
           (inside == T_LB && (before->kind == T_LB || before->kind == T_COMMA));
}

/* The attributes that a graph is among, itself or in a list. */
static void mark_tall(Cutter *c) {
    for (int d = c->depth; d > 0 && d > c->depth - 2; d--) {
        Piece *open = &c->all.items[c->open[d - 1]];
        if (open->kind == T_LT)
            open->tall = true;
        if (open->kind != T_LB)
            return;
    }
}

static void add(Cutter *c, int kind, Str text) {
    Piece p = {.kind = kind, .text = text, .newlines = c->newlines};
    if (kind != PIECE_COMMENT) {
        p.begins_statement = c->statement;
        c->statement = kind == T_LC;
    }
    p.graph = begins_graph(c, &p);
    if (p.graph)
        mark_tall(c);
    c->newlines = 0;
    if ((kind == T_LP || kind == T_LB || kind == T_LT || kind == T_LC) && c->depth < MAX_BRACKETS)
        c->open[c->depth++] = c->all.n;
    if ((kind == T_RP || kind == T_RB || kind == T_GT || kind == T_RC) && c->depth > 0)
        c->depth--;
    ARENA_PUSH(c->arena, c->all.items, c->all.n, c->all.cap, p);
}

/* Blanks and comments; returns where something else begins, at `end` at the latest. */
static const char *cut_gap(Cutter *c, const char *p, const char *end) {
    for (; p < end; p++) {
        if (*p == '\n') {
            c->newlines++;
        } else if (end - p > 1 && p[0] == '/' && p[1] == '/') {
            const char *stop = memchr(p, '\n', (size_t)(end - p));
            stop = stop ? stop : end;
            const char *last = stop;
            while (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r')
                last--;
            add(c, PIECE_COMMENT, (Str){p, (size_t)(last - p)});
            p = stop - 1;
        } else if (*p != ' ' && *p != '\t' && *p != '\r') {
            return p;
        }
    }
    return end;
}

static void cut_numbers(Cutter *c, const char *p, const char *end) {
    add(c, T_LB, (Str){p++, 1});
    while ((p = cut_gap(c, p, end)) < end) {
        size_t n = strcspn(p, ",] \t\r\n/");
        if (n)
            add(c, T_INT, (Str){p, n});
        else
            add(c, *p == ',' ? T_COMMA : T_RB, (Str){p, n = 1});
        p += n;
    }
}

Pieces pieces_of(Arena *a, Str text) {
    Cutter *c = NEW(a, Cutter);
    Lexer *x = NEW(a, Lexer);
    c->arena = a;
    c->statement = true;
    lexer_init(x, a, diags_new(a, NULL, false), 0, text);
    x->scheme_as_text = true;
    const char *at = x->cursor;
    Token t;
    do {
        t = lex(x);
        const char *begin = text.s + t.begin, *end = text.s + t.end;
        cut_gap(c, at, begin);
        if (t.kind == T_NL) {
            c->newlines += t.end > t.begin;
            c->statement = true;
        } else if (t.kind == T_NUMBERS) {
            cut_numbers(c, begin, end);
        } else if (t.kind) {
            bool scheme = t.kind == T_SCHEME; /* what is between the braces */
            const char *from = scheme ? begin + t.n : begin, *to = scheme ? end - 1 : end;
            add(c, t.kind, (Str){from, (size_t)(to - from)});
        }
        at = end;
    } while (t.kind);
    return c->all;
}

bool pieces_equal(const Pieces *x, const Pieces *y) {
    if (x->n != y->n)
        return false;
    for (size_t i = 0; i < x->n; i++) {
        const Piece *p = &x->items[i], *q = &y->items[i];
        if (p->kind != q->kind || p->begins_statement != q->begins_statement ||
            !str_eq(p->text, q->text))
            return false;
    }
    return true;
}

size_t qir_comments(Arena *a, Str text) {
    Pieces all = pieces_of(a, text);
    size_t n = 0;
    for (size_t i = 0; i < all.n; i++)
        n += all.items[i].kind == PIECE_COMMENT;
    return n;
}
