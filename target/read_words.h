/* What the reader of pages (read.c) and the items (read_words.c) share. Private to target. */
#ifndef QXC_TARGET_READ_WORDS_H
#define QXC_TARGET_READ_WORDS_H

#include "target/lex.h"
#include "target/target.h"

typedef struct PageReader {
    Arena *a;
    TargetPage *page;
    PageLexer x;
    Map *said; /* items: where */
    Loc no_form_at[N_TARGET_FORMS];
} PageReader;

/* An error at the token; false. */
bool page_wrong(PageReader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool page_accept(PageReader *r, const char *word); /* takes the word, if it is that */
/* One of the words, else an error that names them all: "'x' is no `what`". */
bool page_one_of(PageReader *r, const char *what, const char *const *words, size_t n, size_t *i);
bool page_more(PageReader *r); /* takes a comma */
bool page_string(PageReader *r, const char *what, const char **out);
bool page_says(PageReader *r, const char **out); /* says "...", which may be left out */

bool page_at_end(PageReader *r); /* of an item, else an error */
/* A file with NUL bytes that does not begin as a page does gets no excerpt. */
bool page_check_bytes(PageReader *r, const char *name, const char *begins);

/* An error at the place: the word stands there again. */
bool page_again(PageReader *r, Loc at, const char *word);
/* Whether its items agree; an error for each that does not, at the item. */
bool page_agrees(PageReader *r);

bool page_operator(PageReader *r, Str *domain, Str *op); /* Conv, com.microsoft::Gelu */
bool page_operators(PageReader *r, TargetNames *names);  /* of ONNX, with commas between */

/* The items, behind their first word (words.def). */
#define ITEM(word, read, once) bool read(PageReader *r);
#include "target/words.def"

#endif
