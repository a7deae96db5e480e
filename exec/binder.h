/* What build.c needs of the binder beyond exec/program.h. */
#ifndef QXC_EXEC_BINDER_H
#define QXC_EXEC_BINDER_H

#include "exec/exec.h"

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
    size_t *alive;        /* by id of a node's first result: bytes of what is alive while it runs */
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
};

Binder *binder_new(Arena *a, Module *m, const ProgramOptions *o, Diags *d);
/* Forgets everything that was bound. */
void binder_reset(Binder *b);
/* Binds one node, then rounds its results to their grids where their types say so. */
bool bind_node(Binder *b, const Node *n);
/* Binds the nodes of the main graph that can run (exec/partial.c). What Program.left_out names is
 * left out, and so is what turns out not to run, with all that depends on it: what those nodes had
 * begun to bind is still there, so another binder has to begin again where `rejected` is not empty.
 * False after a diagnostic: a fault of the model. */
bool bind_partly(Binder *b, Graph *g);
/* Whether a node that could be quantized was bound. */
bool partial_is_useful(const Program *p);
/* Sets Rejection.values. */
void partial_count(Program *p);
/* The buffer of a graph input; rounds it where its type says so. */
void bind_input(Binder *b, const Value *v, int port);
/* Gives the value's bytes to an output port, by a copy where they have to stay elsewhere. */
void bind_output(Binder *b, const Value *v, int port);
/* Reports what was collected. True when everything was bound. */
bool binder_finish(Binder *b);

/* Collects an operator that cannot run, or reports a value; both make binder_finish fail. The
 * second returns a buffer that lets binding go on. */
bool binder_reject(Binder *b, const Node *n, const char *why);
int bind_value_error(Binder *b, const Value *v, const char *what);
/* Whether the value's elements are rounded to the grid of its type. */
bool binder_rounds(const Binder *b, const Value *v);

/* Whether a kernel on integers cannot hold what the node computes on, whatever the operator. */
bool binder_needs_double(const Node *n);

/* Rounds a float value to a grid of more than 16 bits: from now on another buffer is v. */
bool bind_rounded_wide(Binder *b, const Node *n, const Value *v);

int binder_add_buffer(Binder *b, Buffer buffer);
/* A new buffer like that of v, which it is from now on: what is bound next reads the old one and
 * writes to it. */
int binder_replace(Binder *b, const Value *v);
/* A new buffer for a value, constant or not, in the order of ONNX. */
int binder_new_value(Binder *b, const Value *v);
/* The id of one more value, with no buffers yet. */
uint32_t binder_new_slot(Binder *b);
/* Of the buffers from `first` on, those of stand-ins are nobody's values: nothing reports or
 * compares them. */
void binder_forget_stand_ins(Binder *b, size_t first);
/* What a branch converted is known in that branch only. Keep with bind_control. */
void binder_enter(Binder *b);
void binder_leave(Binder *b);
/* Forgets what is kept with channels last. */
void binder_reset_layout(Binder *b);
/* A node on floats of fewer than 32 bits, on floats instead; else the node itself. Then results,
 * once they are bound, are rounded to their types. */
const Node *bind_half_stand_in(Binder *b, const Node *n);
void bind_half_done(Binder *b, const Node *n, const Node *stand_in, size_t first_buffer);
bool bind_half_round(Binder *b, const Node *n, const Value *v);
/* Whether results are numbers that operands, of the same type, have: nothing to round. */
bool bind_half_moves(const Node *n);
/* Whether these are such floats; of a graph input or output: from and to their bits. */
bool elem_is_half(ElemType e);
bool bind_half_load(Binder *b, const Value *v, int from, int to);
bool bind_half_store(Binder *b, const Value *v, int from, int to);

/* What a map by value has as its key; belongs to the value. */
static inline Str binder_key(const Value *v) {
    return (Str){(const char *)&v->id, sizeof v->id};
}

#endif
