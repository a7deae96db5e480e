/* The tokens of a target's page. An item begins at the start of a line; lines that begin with a
 * blank continue it. `#` begins a comment. */
#ifndef QXC_TARGET_LEX_H
#define QXC_TARGET_LEX_H

#include "support/diag.h"

typedef enum PageTokenKind {
    PAGE_END, /* of the item */
    PAGE_NAME,
    PAGE_NUMBER,
    PAGE_STRING,
    PAGE_COMMA,
    PAGE_RANGE, /* .. */
    PAGE_PLUS,
    PAGE_WRONG, /* said already */
} PageTokenKind;

typedef struct PageLexer {
    Diags *d;
    uint32_t source;
    Str text;
    size_t at; /* behind the token */
    bool begun;
    PageTokenKind kind;
    Str word; /* the token; of a string what stands between the quotes */
    Loc loc;
} PageLexer;

PageLexer page_lexer(Diags *d, const char *name, Str text);
void page_next(PageLexer *x);
/* To the first token of the next item; false at the end of the text. */
bool page_next_item(PageLexer *x);

#endif
