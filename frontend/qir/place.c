/* See qir_place.h. */
#include "frontend/qir/qir_place.h"

#include "frontend/qir/lexer.h"
#include "parser.h"

static bool is_name(const Lexer *x, Token t, Str name) {
    return str_eq(lexer_str(x, t.begin, t.end), name);
}

/* %a, %b : type = Op: from the beginning of the line to the operator. */
static bool find_result(Lexer *x, const DiagPart *part, uint32_t op, Token *found) {
    while (x->cursor > x->text && x->cursor[-1] != '\n')
        x->cursor--;
    for (Token t = lex(x); t.kind && t.begin < op; t = lex(x))
        if (t.kind == T_VALUE && is_name(x, t, part->name))
            *found = t; /* the last: statements may stand on one line */
    return found->kind;
}

/* (%a, _, %b): operand `index`, or else any of the name. */
static bool find_operand(Lexer *x, const DiagPart *part, Token *found) {
    if (lex(x).kind != T_LP)
        return false;
    size_t i = 0;
    for (Token t = lex(x); t.kind && x->depth > 0; t = lex(x)) {
        if (t.kind == T_VALUE && (i == part->index || !found->kind) && is_name(x, t, part->name))
            *found = t;
        i += t.kind == T_COMMA;
    }
    return found->kind;
}

/* From here to before the `,` or bracket that ends it, or what `ends` says. */
static Token find_end(Lexer *x, Token first, int depth, bool (*ends)(int kind)) {
    Token last = first, t;
    for (t = lex(x); t.kind && x->depth >= depth; t = lex(x)) {
        if (x->depth == depth && (t.kind == T_COMMA || ends(t.kind)))
            break;
        last.end = t.end;
    }
    return last;
}

static bool ends_value(int kind) {
    return kind == T_GT || kind == T_DOC || kind == T_EXTRA;
}

static bool ends_type(int kind) {
    return kind == T_EQ || kind == T_NL || kind == T_TILDE || kind == T_RP || ends_value(kind) ||
           kind == T_META || kind == T_INFERRED || kind == T_STATED || kind == T_FROM;
}

/* Behind its key; a graph is as good as its key. */
static bool find_value(Lexer *x, int depth, Token *found) {
    if (lex(x).kind != T_EQ)
        return false;
    Token t = lex(x);
    if (t.kind != T_GRAPH)
        *found = find_end(x, t, depth, ends_value);
    return t.kind != T_GRAPH;
}

/* Op(...) <a=1, b=2>: keys stand behind `<` and `,`. */
static bool find_attribute(Lexer *x, const DiagPart *part, Token *found) {
    while (lex(x).kind && x->depth > 0)
        continue;
    Token before = lex(x), t = before;
    if (before.kind != T_LT)
        return false;
    for (; x->depth > 0 && t.kind && !found->kind; before = t) {
        bool begins = x->depth == 1 && (before.kind == T_LT || before.kind == T_COMMA);
        t = lex(x);
        if (begins && is_name(x, t, part->name))
            *found = t;
    }
    if (found->kind)
        find_value(x, 1, found);
    return found->kind;
}

/* %y : type */
static bool find_type(Lexer *x, Token *found) {
    if (lex(x).kind != T_COLON)
        return false;
    *found = find_end(x, lex(x), 0, ends_type);
    return true;
}

bool qir_find_part(Arena *scratch, Str text, const DiagPart *part, Loc *at) {
    if (at->begin >= at->end || at->end > text.n)
        return false;
    Lexer x;
    lexer_init(&x, scratch, diags_new(scratch, NULL, false), 0, text);
    x.cursor = text.s + at->end;
    x.last = 0; /* a newline ends the statement */
    Token t = {0};
    bool found = part->kind == PART_RESULT    ? find_result(&x, part, at->begin, &t)
                 : part->kind == PART_OPERAND ? find_operand(&x, part, &t)
                 : part->kind == PART_TYPE    ? find_type(&x, &t)
                 : part->kind == PART_VALUE   ? find_value(&x, 0, &t)
                                              : find_attribute(&x, part, &t);
    if (found) {
        at->begin = t.begin;
        at->end = t.end;
    }
    return found;
}
