/* Circles of people's own functions, which may stand in several files.
 *
 * A function ends where each call in its body ends, and a call ends where one of the overloads does
 * that it may take, or qxc knows the operator or the function itself. What does not end calls
 * itself, be it by way of others. */
#include "passes/library.h"

typedef struct Ends {
    Library *library;
    Diags *d;
    Map *state; /* Function -> `ends`, or where the walk that met it began */
    bool more;  /* this round found some */
    bool ok;
} Ends;

static const Function ends;

static const Function *state_of(const Ends *e, const Function *f) {
    return map_get(e->state, (Str){(const char *)&f, sizeof f});
}

static void set_state(Ends *e, const Function *f, const Function *state) {
    const Function **key = NEW(e->library->arena, const Function *);
    *key = f;
    map_set(e->state, (Str){(const char *)key, sizeof *key}, (void *)state);
}

/* The overload that a call would take if it ended; NULL where the call ends. */
static const Function *endless_call(const Ends *e, const Node *n) {
    const Overloads *of =
        op_find(n->domain, n->op) ? NULL : library_find(e->library, n->domain, n->op);
    for (size_t i = 0; of && i < of->n; i++)
        if (!library_is_own(of->items[i]) || state_of(e, of->items[i]) == &ends)
            return NULL;
    return of ? of->items[0] : NULL;
}

static const Function *endless_in(const Ends *e, const Graph *g) {
    const Function *f = NULL;
    for (const Node *n = g->first; n && !f; n = n->next) {
        f = endless_call(e, n);
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; !f && k < attr_graphs(&n->attrs[i]); k++)
                f = endless_in(e, n->attrs[i].v.g[k]);
    }
    return f;
}

static void each_own(Ends *e, void (*fn)(Ends *e, const Function *f)) {
    const Map *all = e->library->by_name;
    for (size_t i = 0; i < map_size(all); i++) {
        const Overloads *of = map_value(all, i);
        for (size_t k = 0; k < of->n; k++)
            if (library_is_own(of->items[k]))
                fn(e, of->items[k]);
    }
}

static void find_end(Ends *e, const Function *f) {
    if (state_of(e, f) || endless_in(e, f->body))
        return;
    set_state(e, f, &ends);
    e->more = true;
}

/* From a function that does not end each step leads to another one, at last around a circle. */
static void tell_circle(Ends *e, const Function *f) {
    const Function *at = f;
    if (state_of(e, f))
        return;
    for (; !state_of(e, at); at = endless_in(e, at->body))
        set_state(e, at, f);
    if (state_of(e, at) != f) /* one that was told */
        return;
    e->ok = diag_error(e->d, at->loc, "function %s calls itself",
                       function_title(e->library->arena, e->d, at));
    for (const Function *g = endless_in(e, at->body); g != at; g = endless_in(e, g->body))
        diag_note(e->d, g->loc, "by way of %s", function_title(e->library->arena, e->d, g));
}

bool library_check_calls(Library *l, Diags *d) {
    Ends e = {.library = l, .d = d, .state = map_new(l->arena), .more = l->n_own, .ok = true};
    while (e.more) {
        e.more = false;
        each_own(&e, find_end);
    }
    if (l->n_own)
        each_own(&e, tell_circle);
    return e.ok;
}
