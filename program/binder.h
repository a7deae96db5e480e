/* What writes programs, as those see it that bind whole nodes and modules (ir/ops/bind_node.h,
 * exec/build.c). */
#ifndef QXC_PROGRAM_BINDER_H
#define QXC_PROGRAM_BINDER_H

#include "program/program.h"

/* One of the two buffers of a value. */
typedef struct MadeSlot {
    uint32_t id;
    bool last;
} MadeSlot;

struct Binder {
    Program *program;
    Arena *arena;
    Diags *diags;
    ProgramOptions options;
    Map *dynamic;         /* by value id: its buffer of parameters, plus 1 */
    Map *rejected;        /* by operator type, of Rejection */
    Rejection *rejection; /* the first of these since a node of the main graph began */
    size_t *alive;        /* by id of a node's first result: bytes of what is alive while it runs;
 NULL: nobody asked yet (ir/ops/room.c) */
    const Uses *uses;
    size_t busiest; /* most bytes alive while a node multiplies */
    int *last;      /* by Value.id: its buffer with channels last, or -1 */
    MadeSlot *made; /* what a conversion inside a branch filled, to be emptied at its end */
    size_t n_made, cap_made;
    size_t *marks; /* of n_made, one for each branch that is open */
    size_t n_marks, cap_marks;
    bool failed;
    size_t n_slots, cap_slots; /* of Program.value_buffer and last: stand-ins follow the module's */
    const Node *in_double;     /* the node that is being bound in double, or NULL */
    const Node *stands_for;    /* whose stand-in on floats is being bound, or NULL */
    Map *floats;               /* by value id: its stand-in (bind_half.c) */
    const LengthBound *stated; /* of the node that is being bound, by the model; NULL: none */
};

Binder *binder_new(Arena *a, Module *m, const ProgramOptions *o, Diags *d);
/* Forgets everything that was bound. */
void binder_reset(Binder *b);
/* Reports what was collected. True when everything was bound. */
bool binder_finish(Binder *b);

/* Collects an operator that cannot run, or reports a value; both make binder_finish fail. The
 * second returns a buffer that lets binding go on. */
bool binder_reject(Binder *b, const Node *n, const char *why);
int bind_value_error(Binder *b, const Value *v, const char *what);
/* Whether the value's elements are rounded to the grid of its type. */
bool binder_rounds(const Binder *b, const Value *v);

int binder_add_buffer(Binder *b, Buffer buffer);
/* What bounds the open axis of the node's results, or is stated of them; NULL: nothing is. */
const LengthBound *binder_bound(const Binder *b, const Node *n);
/* `length` says how long it is; a run fails where that is not allowed. The bound is the program's,
 * or one that the model states, which lives as long as the program. */
void binder_check_length(Binder *b, const LengthBound *bound, int length);
/* A new buffer like that of v, which it is from now on: what is bound next reads the old one and
 * writes to it. */
int binder_replace(Binder *b, const Value *v);
/* A new buffer for a value, constant or not, in the order of ONNX. */
int binder_new_value(Binder *b, const Value *v);
/* The id of one more value, with no buffers yet. */
uint32_t binder_new_slot(Binder *b);
/* What a branch converted is known in that branch only. Keep with bind_control. */
void binder_enter(Binder *b);
void binder_leave(Binder *b);
/* Forgets what is kept with channels last. */
void binder_reset_layout(Binder *b);
/* Whether these are floats of fewer than 32 bits, which programs hold as floats. */
bool elem_is_half(ElemType e);

/* What a map by value has as its key; belongs to the value. */
static inline Str binder_key(const Value *v) {
    return (Str){(const char *)&v->id, sizeof v->id};
}

#endif
