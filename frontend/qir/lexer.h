/* Tokens of .qir text. Text is borrowed, NUL-terminated, and must outlive the tokens: names without
 * escapes are slices of it. Errors inside a token (a bad escape, an open string) are reported here,
 * and the token still comes, so that the parser does not complain again.
 *
 * A newline is a token only at file level and directly inside {}; the lexer knows which by a stack
 * of open brackets, which error recovery sets back. */
#ifndef QXC_FRONTEND_QIR_LEXER_H
#define QXC_FRONTEND_QIR_LEXER_H

#include "support/buf.h"
#include "support/diag.h"

enum { MAX_BRACKETS = 400 };

/* What Lemon carries for every terminal. */
typedef struct Token {
    int kind;
    bool bad; /* already reported */
    uint32_t begin, end;
    Str str;     /* names and strings, unescaped and without sigil */
    int64_t num; /* of an INT; 0 where it does not fit (see big) */
    bool big;
} Token;

typedef struct Lexer {
    Arena *arena;
    Diags *diags;
    uint32_t source;
    const char *text, *end;
    const char *cursor;
    int last; /* kind of the token before */
    int depth;
    bool too_deep;
    char open[MAX_BRACKETS];
    Buf scratch;
} Lexer;

void lexer_init(Lexer *x, Arena *a, Diags *d, uint32_t source, Str text);
/* The next token; kind 0 at the end of the text. */
Token lex(Lexer *x);

#endif
