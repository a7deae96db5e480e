/* Tokens of .qir text. Text is borrowed, NUL-terminated, and must outlive the tokens, which only
 * say where in it they stand: names, strings and numbers are taken from there when somebody asks.
 * Errors inside a token (a bad escape, an open string) are reported here, and the token still
 * comes, so that the parser does not complain again.
 *
 * A newline is a token only at file level and directly inside {}; the lexer knows which by a stack
 * of open brackets, which error recovery sets back. */
#ifndef QXC_FRONTEND_QIR_LEXER_H
#define QXC_FRONTEND_QIR_LEXER_H

#include "support/buf.h"
#include "support/diag.h"

enum { MAX_BRACKETS = 400 };

/* What Lemon copies for every terminal: no more than two registers hold. */
typedef struct Token {
    uint8_t kind;
    bool bad;   /* already reported */
    bool mixed; /* a list of numbers that may not all be integers */
    uint32_t begin, end;
    uint32_t n; /* of a list of numbers: how many; of a scheme: bytes before its text */
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
    bool scheme_as_text; /* scheme { ... } is one token, of what stands between its braces */
    char open[MAX_BRACKETS];
} Lexer;

void lexer_init(Lexer *x, Arena *a, Diags *d, uint32_t source, Str text);
/* The next token; kind 0 at the end of the text. */
Token lex(Lexer *x);
/* The name or string that stands there, without sigil and quotes. Slices of the text, or where
 * there are escapes, from the arena. */
Str lexer_str(const Lexer *x, uint32_t begin, uint32_t end);
/* Whether the string from its quote at `open` to `end` has its second quote: lines may lack it. */
bool lexer_closed(const char *open, const char *end);
/* What is wrong with a word that begins as a number does. */
const char *lexer_bad_number(Str text);
/* Behind the spaces, line ends and comments at `p`, in a text that ends with a NUL. */
const char *lexer_space(const char *p);

#endif
