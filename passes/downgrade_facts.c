/* The facts of downgrade.def, and which of them a node meets. */
#include "passes/downgrade_parts.h"

#include <math.h>
#include <string.h>

/* clang-format off */
static const Fact FACTS[] = {
#define RENAMED(op_, newer, older)      {.kind = RENAMED, .op = op_, .key = newer, .word = older},
#define ONLY(op_, key_, number_)        {.kind = ONLY, .op = op_, .key = key_, .number = number_},
#define STATED(op_, key_, number_)      {.kind = STATED, .op = op_, .key = key_, .number = (double)(number_)},
#define EMPTY(op_, since_, operand_)    {.kind = EMPTY, .op = op_, .since = since_, .operand = operand_},
#define SINGLE(op_, since_, operand_)   {.kind = SINGLE, .op = op_, .since = since_, .operand = operand_},
#define LAST_AXIS(op_, since_)          {.kind = LAST_AXIS, .op = op_, .since = since_},
#define UNSAID(op_, key_, number_)      {.kind = UNSAID, .op = op_, .key = key_, .number = number_},
#define EQUAL_PARTS(op_, key_)          {.kind = EQUAL_PARTS, .op = op_, .key = key_},
#define NEWER(op_, since_, key_, word_) {.kind = NEWER, .op = op_, .since = since_, .key = key_, .word = word_},
#define NEWER_FLAG(op_, since_, key_)   {.kind = NEWER_FLAG, .op = op_, .since = since_, .key = key_},
#define FUSED(op_, since_)              {.kind = FUSED, .op = op_, .since = since_},
#include "passes/downgrade.def"
};
/* clang-format on */
enum { N_FACTS = sizeof FACTS / sizeof *FACTS };

/* The fact is about this operator, and the change lies between the two opsets. */
static bool applies(const Form *f, const Fact *fact, FactKind kind) {
    return fact->kind == kind && node_is(f->n, fact->op) &&
           (!fact->since || (f->to < fact->since && fact->since <= f->from));
}

const Fact *downgrade_fact(const Form *f, FactKind kind, const char *key) {
    for (size_t i = 0; i < N_FACTS; i++)
        if (applies(f, &FACTS[i], kind) && (!key || strcmp(FACTS[i].key, key) == 0))
            return &FACTS[i];
    return NULL;
}

bool downgrade_of_operand(const Form *f, FactKind kind, size_t operand) {
    for (size_t i = 0; i < N_FACTS; i++)
        if (applies(f, &FACTS[i], kind) && FACTS[i].operand == (int)operand)
            return true;
    return false;
}

/* What the schema or the node says of an attribute that is a word. */
static bool says_word(const Form *f, const char *key, const char *word) {
    const Attr *a = node_attr(f->n, key);
    const SchemaAttr *s = onnx_schema_attr(f->newer, str_from(key));
    if (a)
        return attr_holds(a, ATTR_STRING) && str_is(a->v.s[0], word);
    return s && s->presence == SCHEMA_ATTR_DEFAULT && s->type == SCHEMA_STRING &&
           strcmp(s->value.s, word) == 0;
}

static bool has_flag(const Form *f, const char *key) {
    const Attr *a = node_attr(f->n, key);
    return a && attr_holds(a, ATTR_INT) && a->v.i[0];
}

bool downgrade_is_newer(const Form *f) {
    for (const Fact *x = FACTS; x < FACTS + N_FACTS; x++)
        if ((applies(f, x, NEWER) && (!x->key || says_word(f, x->key, x->word))) ||
            (applies(f, x, NEWER_FLAG) && has_flag(f, x->key)))
            return true;
    return false;
}
