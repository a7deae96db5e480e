/* Feeds the parser with tokens, and goes on behind those at which the syntax is wrong. */
#include "frontend/qir/reader.h"
#include "parser.h"

static void feed(Reader *r, void *parser, Token t) {
    r->failed_here = r->body_left = false;
    QirParse(parser, t.kind, t, r);
}

/* The statement that is being read, given the brackets open at its last token. */
static void enter_statement(Reader *r, int depth) {
    while (depth > 0 && r->lexer.open[depth - 1] != '{')
        depth--;
    r->statement_depth = depth;
    r->statement = r->starts[depth];
}

/* Where the lexer stands, a token that is not in the text. */
static Token make_token(Reader *r, uint8_t kind) {
    uint32_t at = (uint32_t)(r->lexer.cursor - r->lexer.text);
    r->lexer.last = kind;
    return (Token){.kind = kind, .begin = at, .end = at};
}

/* After a syntax error at `t`: goes on behind it. Returns the last token that the parser got. */
static Token resume(Reader *r, void *parser, Token t) {
    if (qir_parser_in_header(parser)) {
        bool body = recover_header(r, t);
        if (t.kind != T_LC)
            feed(r, parser, make_token(r, T_LC));
        if (body)
            return make_token(r, T_LC);
        feed(r, parser, make_token(r, T_RC));
    } else if (!recover(r, t)) {
        return t;
    }
    bool left = r->body_left;
    t = make_token(r, T_NL);
    feed(r, parser, t);
    if (left) {
        feed(r, parser, make_token(r, T_RC));
        feed(r, parser, t);
    }
    r->body_left = left;
    return t;
}

/* A place to go on that an earlier error led to already would lead here again: the token that
 * failed is left out then. */
static void make_progress(Reader *r, Token failed) {
    const char *behind = r->text.s + failed.end;
    if (r->lexer.cursor <= r->furthest && r->lexer.cursor < behind && !r->body_left)
        r->lexer.cursor = behind;
    r->furthest = r->lexer.cursor;
}

/* A scheme needs no first line: the parser gets one all the same. */
static void feed_header(Reader *r, void *parser) {
    static const uint8_t kinds[] = {T_QIR, T_INT, T_NL};
    Lexer look = r->lexer;
    look.diags = diags_new(r->arena, NULL, false); /* the parser comes here again, and tells */
    if (lex(&look).kind == T_QIR)
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        feed(r, parser, make_token(r, kinds[i]));
}

void parse_with(Reader *r, void *parser) {
    QirParseInit(parser);
    if (r->only_scheme)
        feed_header(r, parser);
    Token t = {.kind = T_NL};
    do {
        int depth = r->lexer.depth;
        bool begins = t.kind == T_NL || t.kind == T_LC;
        t = lex(&r->lexer);
        if (begins)
            r->starts[depth] = t.begin;
        feed(r, parser, t);
        if (r->failed_here && t.kind) {
            Token failed = t;
            enter_statement(r, depth);
            t = resume(r, parser, t);
            make_progress(r, failed);
        }
        r->prev_end = t.end;
        r->prev_kind = t.kind;
    } while (t.kind && !r->lexer.too_deep);
}
