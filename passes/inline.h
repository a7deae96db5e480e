/* Puts bodies of functions in the place of nodes that call them: of the model's own functions, and
 * of the library's (passes/library.h).
 *
 * A body is copied for each call, attributes are what the call states. Names become "CALL/NAME"; of
 * the library's functions values are named after the call's result and nodes after the call. A
 * body may be written for another opset of the default domain than the model, and is converted. */
#ifndef QXC_PASSES_INLINE_H
#define QXC_PASSES_INLINE_H

#include "passes/library.h"
#include "passes/pass.h"

typedef struct Inlining {
    const char *by; /* the pass, for provenance */
    /* The function that takes the place of the node; NULL: it stays. Asked of the nodes that come
     * in with a body, too: `path` says with which. */
    const Function *(*callee)(void *ctx, const Node *n, const CallPath *path);
    /* Whether the call, of the model's, gets borders (passes/enclose.h); NULL: none does. */
    bool (*encloses)(void *ctx, const Function *f);
    void *ctx;
    int64_t opset; /* of the default domain that everything is brought to */
    bool mixed;    /* the model, or functions of its own, are at another */
} Inlining;

/* False after diagnostics: the module is then not used any more. Results that nobody asks for may
 * be left (edit_drop_dead). */
bool inline_calls(Module *m, PassContext *c, const Inlining *what);

#endif
