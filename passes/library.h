/* What composite operators mean: functions of .qir, those of lib/ and people's own (-define).
 *
 * Functions of one domain and name are overloads, in the order of the text. The first that fits a
 * call says what it means. One fits where
 * - it has the operands, results and attributes that the call gives, and its body can do without
 *   the operands that the call leaves out;
 * - the operands are of the types that it states;
 * - what it states of an attribute that its body does not use is what the call has: it is for that
 *   value alone;
 * - the model's opset has what its body is made of, or other functions that stand for it.
 *
 * A text is read when somebody asks for what it defines. Functions live in modules of their own, so
 * a body's `graph->module` tells them from the model's. */
#ifndef QXC_PASSES_LIBRARY_H
#define QXC_PASSES_LIBRARY_H

#include "target/target.h"
#include "ir/ops/op.h"

typedef struct Overloads {
    const Function **items;
    size_t n, cap;
} Overloads;

/* Of the texts of lib/ those with chains to recognise, and all. */
typedef enum LibraryPart { LIBRARY_CHAINS, LIBRARY_ALL } LibraryPart;

typedef struct Library Library;
struct Library {
    Arena *arena;
    /* Both read what has not been read: a part, or what defines the functions of a key. */
    void (*read_part)(Library *l, LibraryPart part);
    void (*read_function)(Library *l, Str key);
    Map *by_name; /* function_key without an overload -> Overloads: people's own, chains, others */
    size_t n_own; /* functions of -define */
    Map *calls;   /* nodes of bodies -> what they call (match_overloads) */
};

/* Every function of a module that has been read. False where two claim one name, which was said. */
bool library_add(Library *l, Module *m, bool own, Diags *d);
/* Whether everything that people's own functions call can be put in: none is made of calls that
 * lead back to it, whichever overloads they take. Once all have been read; says what is wrong. */
bool library_check_calls(Library *l, Diags *d);
/* NULL where there are none, or no library. */
const Overloads *library_find(Library *l, Str domain, Str op);
/* People's own and a part of those of lib/, by name. */
const Map *library_functions(Library *l, LibraryPart part);
/* People's own: of operators that do not run, and chains that are operators which do. */
bool library_is_own(const Function *f);
/* Whether qxc computes the operator itself. */
bool operator_runs(Str domain, Str op);

/* The functions whose bodies are being put in, innermost first: none of these, by name, is put into
 * itself. */
typedef struct CallPath {
    const Function *f;
    const struct CallPath *outer;
} CallPath;

/* Whether chains of operators that its body matches are to be recognised. */
bool function_is_recognised(const Function *f);

/* Whether a call stays the one operator where nothing in the body becomes integers. */
bool function_stays_whole(const Function *f);

/* What a result may hold. */
typedef struct Chooser {
    Library *library;
    int64_t opset;                                    /* of the default domain */
    bool (*has)(const void *ctx, Str domain, Str op); /* an operator as it is */
    const void *ctx;
} Chooser;

/* Whether operators stand below their opset (OpDef.composite), which no ONNX file can say, or are
 * lacked by the target (NULL: that does not count): spell-newer takes them apart. */
bool module_has_newer(Module *m, const TargetPage *t);

/* The overload that says what the call means; NULL: none does. */
const Function *library_choose(const Chooser *c, const Node *call, const CallPath *path);
/* A warning where the call is of functions and none fits, with each one's reason. */
void library_tell_unfit(const Chooser *c, const Node *call, Diags *d);
/* Whether the call is of a function that only helps to say what operators of others mean, and none
 * fits; then an error, in the terms of the operator that the body is of. */
bool library_lacks_part(const Chooser *c, const Node *call, Diags *d);

/* What the call, or else the operator's schema, has for an attribute; NULL: nothing. `room` is for
 * a default. */
const Attr *attr_effective(const Node *n, Str name, Attr *room);
/* The same number, word or list; axes that count from the end are those of `rank`, where known. */
bool attr_same(const Attr *x, const Attr *y, int rank);
/* The attribute of the function with this name that has a default; NULL: none. */
const Attr *function_default(const Function *f, Str name);
/* Whether a value can be what a function states of it: the rank, the dimensions that are numbers,
 * and the element type, of which `float` is any that computes. A type without a rank states
 * nothing. */
bool function_type_fits(Type stated, Type has);
/* The dimension of an operand of the call that the function gives this name; NULL: there is none.
 */
const Dim *function_length(const Function *f, const Node *call, Str name);
/* Whether the body refers to an attribute of the function, or a dimension. */
bool function_uses(const Function *f, Str attr);

#endif
