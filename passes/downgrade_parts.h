/* A node on its way to an older form: what downgrade.c and downgrade_attrs.c share. */
#ifndef QXC_PASSES_DOWNGRADE_PARTS_H
#define QXC_PASSES_DOWNGRADE_PARTS_H

#include "ir/onnx_schema.h"
#include "passes/downgrade.h"

typedef struct Form {
    Node *n;
    const OnnxSchema *newer, *older;
    int64_t from, to;
    UniqueNames *names; /* NULL: nothing is to change */
} Form;

typedef enum FactKind {
    RENAMED,
    ONLY,
    STATED,
    EMPTY,
    SINGLE,
    LAST_AXIS,
    UNSAID,
    EQUAL_PARTS,
    NEWER,
    NEWER_FLAG,
    FUSED
} FactKind;

typedef struct Fact {
    FactKind kind;
    const char *op, *key, *word;
    int64_t since; /* 0: whatever the opsets are */
    int operand;
    double number;
} Fact;

/* The fact about the node's operator, of changes between the two opsets, and of `key` unless that
 * is NULL; NULL: there is none. */
const Fact *downgrade_fact(const Form *f, FactKind kind, const char *key);
bool downgrade_of_operand(const Form *f, FactKind kind, size_t operand);
/* Whether what the node states has no older form. */
bool downgrade_is_newer(const Form *f);

/* ---- attributes (downgrade_attrs.c); texts say what is in the way, NULL: nothing is ---- */

/* Whether an attribute or operand of this name is about axes. */
bool downgrade_is_axes(const char *name);
/* Below opset 11 axes do not count from the end. False where the rank that it takes is unknown. */
bool downgrade_from_start(const Form *f, int64_t *list, size_t n);
bool downgrade_is_last_axis(const Form *f);
const char *downgrade_stated(const Form *f);
/* What goes without saying in the newer form is stated where the older one means something else. */
const char *downgrade_unstated(const Form *f);

#endif
