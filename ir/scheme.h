/* The quantization scheme: what the quantizer is to decide, as rules in the order of the text. Of
 * each property (type, symmetry, granularity, ...) the last rule that matches and states it wins.
 * Rules are made by the reader of .qir, by the command line and by imports of other tools' files;
 * all memory is the arena's of whoever made them. Nothing here fails. */
#ifndef QXC_IR_SCHEME_H
#define QXC_IR_SCHEME_H

#include "ir/type.h"

struct Node;

/* What a rule is about: every node, those of an operator type, one by name, a value by name. */
typedef enum SchemeSubject {
    SCHEME_ALL,
    SCHEME_OP,
    SCHEME_NODE,
    SCHEME_OP_OR_NODE, /* -keep and -only take either */
    SCHEME_VALUE,
} SchemeSubject;

typedef enum SchemeRole {
    SCHEME_WEIGHTS,
    SCHEME_ACTIVATIONS, /* the values that the nodes produce; of all nodes: every value */
    SCHEME_BIAS,
    SCHEME_IN,     /* the values that the nodes read */
    SCHEME_OUT,    /* those they produce */
    SCHEME_ITSELF, /* of a value rule: the value */
    SCHEME_ROLES,
} SchemeRole;

/* Rules of one word, of the whole model. */
typedef enum SchemeWhole {
#define WHOLE(id, word) id,
#include "ir/scheme_words.def"
    SCHEME_WHOLES,
} SchemeWhole;

enum { SCHEME_UNSAID = -1 };

/* What follows a role: "int4q in uint8q sym block(32)". */
typedef struct SchemeSetting {
    bool said;
    Loc loc;
    bool is_float;
    const Quant *fixed; /* parameters and all: int8q<0.1, 3> */
    const Quant *line;  /* the quantization that the text says it with, !q or int8q<?>, or NULL */
    ElemType storage;   /* ELEM_UNDEFINED: not said */
    bool has_range;     /* with storage: only lo..hi of it */
    bool exact_range;   /* said as range(-7:7): symmetric or not */
    int64_t lo, hi;
    int sym, pow2, reduce_range; /* 0, 1 or SCHEME_UNSAID */
    bool has_grain;              /* per-tensor, per-channel or block(N) is said */
    bool per_tensor;             /* said in so many words */
    bool channel;                /* a scale for each output channel */
    bool has_axis; /* the axis of these is stated: an import's, as rules have no word */
    int axis;
    int64_t block; /* a scale for so many along the summed axis; 0: none */
} SchemeSetting;

extern const SchemeSetting scheme_setting_none;

typedef struct SchemeRule {
    SchemeSubject of;
    const char *pattern; /* glob, NULL of SCHEME_ALL */
    Loc loc;             /* of the rule; of the pattern where there is one */
    const char *flag;    /* the command line's option that it stands for, or the file it is from */
    const char *said_as; /* where no rule says it: what stands there, in words; or NULL */
    const struct Node *maker; /* of the value that it names, in the model as it came; or NULL */
    bool may_miss;            /* nothing is said where it names nothing */
    bool weak; /* what a value had that is decided anew: any other rule wins, of neighbours too */
    SchemeSetting set[SCHEME_ROLES];
    int keep; /* 1: keep float, 0: quantize, or SCHEME_UNSAID */
} SchemeRule;

typedef struct SchemeWord {
    Str text; /* STR_NONE: not said */
    Loc loc;  /* LOC_NONE: the command line says it */
} SchemeWord;

typedef struct Scheme {
    SchemeRule *rules;
    size_t n, cap;
    struct SchemeIndex *index; /* ir/scheme_index.h; NULL where there is no rule */
    SchemeWord whole[SCHEME_WHOLES];
} Scheme;

/* A rule that states nothing yet. */
SchemeRule scheme_rule(SchemeSubject of, const char *pattern, Loc loc);
/* A name as a glob that matches it and nothing else, also as an item of a list. NUL-terminated. */
Str scheme_glob_of(Arena *a, Str name);
/* The other way: the one name that a glob matches, which may be the glob's own bytes; false where
 * it has a wildcard. */
bool scheme_name_of(Arena *a, const char *glob, Str *name);
void scheme_add(Scheme *s, Arena *a, SchemeRule r);
/* Whether it is one rule, which says something of this role and nothing else. */
bool scheme_is_of_role(const Scheme *s, SchemeRole role);
/* Appends all of `from`; what it says of the whole wins. */
void scheme_append(Scheme *s, Arena *a, const Scheme *from);
/* Whether some rule states a scale: then not everything needs statistics. */
bool scheme_has_parameters(const Scheme *s);
/* In the words of the language (scheme_words.def): "weights", "in". "" of a value itself. */
const char *scheme_role_name(SchemeRole r);
const char *scheme_subject_name(SchemeSubject of); /* "op"; "" of all */
const char *scheme_whole_name(SchemeWhole w);      /* "recipe" */
/* Of a property and one of its two values: SCHEME_WORD(sym, 0) is "asym". */
#define SCHEME_WORD(member, value)    ((value) ? scheme_word_##member##_1 : scheme_word_##member##_0)
#define PROPERTY(member, value, word) extern const char scheme_word_##member##_##value[];
#include "ir/scheme_words.def"
/* What a word such as int3q or int3 means: the integers of so many bits, 1 to 32, in the narrowest
 * type that holds them; those of int3 lie in int4. False where it is no such word. `has_range`: not
 * all integers of the type. */
bool scheme_integers(Str word, SchemeSetting *s);
/* The other way: "int3q" of -4 to 3; NULL where they are not those of 2 bits or more. The arena's.
 */
const char *scheme_integers_name(Arena *a, int64_t lo, int64_t hi);
/* One line without its end: op "Gemm" weights int4q sym block(32). */
void scheme_rule_print(Buf *b, const SchemeRule *r);
void scheme_setting_print(Buf *b, const SchemeSetting *s);
/* The whole as a text that reads back: scheme { ... }. */
void scheme_print(Buf *b, const Scheme *s);

#endif
