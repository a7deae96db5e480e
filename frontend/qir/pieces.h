/* A text in pieces: its tokens, the numbers of a list one by one, and the comments between. For the
 * formatter; the text must have no syntax errors. */
#ifndef QXC_FRONTEND_QIR_PIECES_H
#define QXC_FRONTEND_QIR_PIECES_H

#include "frontend/qir/qir_format.h"
#include "frontend/qir/reader.h"
#include "parser.h"

enum { PIECE_COMMENT = -1 };

typedef struct Piece {
    int kind;     /* of the token */
    Str text;     /* of a scheme: what stands between its braces */
    int newlines; /* between the piece before and this one */
    bool begins_statement;
    bool graph; /* the word `graph` that begins one */
    bool tall;  /* a `<` of attributes among which is a graph: each has a line of its own */
} Piece;

typedef struct Pieces {
    Piece *items;
    size_t n, cap;
} Pieces;

Pieces pieces_of(Arena *a, Str text);
/* The same words in the same statements, whatever the blanks between. */
bool pieces_equal(const Pieces *x, const Pieces *y);

#endif
