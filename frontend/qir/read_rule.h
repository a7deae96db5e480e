/* A line of a scheme while it is read, and its words. Private to read_scheme.c and
 * read_setting.c. */
#ifndef QXC_FRONTEND_QIR_READ_RULE_H
#define QXC_FRONTEND_QIR_READ_RULE_H

#include "frontend/qir/reader.h"
#include "ir/scheme.h"

typedef struct Rule {
    Reader *r;
    const Val *v;
    uint32_t n, i; /* words in all, and those taken */
    SchemeRule rule;
} Rule;

/* The next word, or NULL. */
const Val *rule_peek(const Rule *t);
bool rule_word_is(const Rule *t, const Val *v, const char *word);
/* Takes the next word where it is that one. */
bool rule_take(Rule *t, const char *word);
/* Where something is missing: behind the last word. */
Range rule_behind(const Rule *t);
/* A word that ends a setting: another role, or what becomes of a node. */
bool rule_begins_role(const Rule *t, const Val *v);

/* Reads words up to the next role; false after an error. */
bool read_setting(Rule *t, SchemeSetting *s);

#endif
