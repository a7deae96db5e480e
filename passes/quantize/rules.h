/* What the rules of a scheme match, and walks over those that may: a scheme can have a rule for
 * each of many thousand values, and to try all of them on every value takes long. */
#ifndef QXC_PASSES_QUANTIZE_RULES_H
#define QXC_PASSES_QUANTIZE_RULES_H

#include "ir/ir.h"

/* By the value's name, or that of the value it was made from: a weight keeps its rule when a
 * BatchNormalization was folded into it. */
bool rule_matches_value(const SchemeRule *r, const Value *v);
/* ... some node that reads the value. */
bool rule_matches_reader(const SchemeRule *r, const Uses *uses, const Value *v);
/* It names the node, or a call that the node is a part of for now (passes/enclose.h). */
bool rule_matches_node(const SchemeRule *r, const Node *n);
/* The operator that those of a QOperator's name are once they are read: Conv for QLinearConv. NULL
 * where `pattern` is no such name. */
const char *rule_read_as(const char *pattern);
/* What rules about nodes call it. Names of nodes are optional, those of values are not: without one
 * it goes by the name of its first result. STR_NONE or empty where it has neither. */
Str rule_name(const Node *n);

/* What stands before a message about the rule: the option or the file that it is from, where it has
 * no place in a text. */
const char *rule_source(Diags *d, const SchemeRule *r);

/* Notes of rules about values what makes these, which may be folded into others later. */
void rules_note_makers(Scheme *s, Module *m);

/* A walk gives every rule that matches what it was told of, and a few that may not: whoever walks
 * asks the functions above. One walk ends before the next one over the same scheme begins. */
typedef struct RuleWalk {
    const Scheme *s;
    const struct RuleNumbers *last; /* those of the last name that some rule has */
    bool sorted;
    size_t open, open_end, met, met_end; /* still to come, of the two lists of ir/scheme_index.h */
} RuleWalk;

RuleWalk rules_begin(const Scheme *s);
void rules_of_value(RuleWalk *w, const Value *v);
void rules_of_node(RuleWalk *w, const Node *n);
void rules_of_readers(RuleWalk *w, const Uses *uses, const Value *v);
/* In the order of the scheme; NULL behind the last. */
const SchemeRule *rules_next(RuleWalk *w);
/* The other way round. A walk goes one way. */
const SchemeRule *rules_previous(RuleWalk *w);

#endif
