/* See exec/fold.h. */
#include "exec/fold.h"
#include "exec/memory.h"
#include "ir/minifloat.h"
#include "ir/ops/bind_node.h"
#include "ir/provenance.h"

/* What runs a node, its result and the constant made of it take memory, and later passes more. */
enum { PART_OF_MEMORY = 4, WITHOUT_LIMIT = 64 << 20 };

typedef struct Folder {
    Module *module;
    const FoldOptions *options;
    Diags *quiet;
    Arena *outer;   /* the module's scratch; that of now has programs and what they run on */
    Binder *binder; /* of these */
    size_t empty;   /* bytes that it takes itself */
    const char *by; /* the pass that constants are from */
    size_t max_bytes, grown; /* bytes that results took beyond their operands */
    size_t folded;
    bool *failed;    /* by node id: constants will not do better the next time */
    size_t *readers; /* by value id: those of constants that may go; NULL: none may */
    bool *made;      /* by value id: run_node made a constant of it */
    bool progress;
} Folder;

/* ---- programs ---- */

/* Small ones share their binder, and are given back together; small constants stay. */
enum { WORTH_GIVING_BACK = 1 << 20, WORTH_DROPPING = 64 << 10 };

static void begin_programs(Folder *f) {
    f->outer = scratch_begin(f->module);
    f->binder = binder_new(f->module->scratch, f->module, NULL, f->quiet);
    f->empty = arena_used(f->module->scratch);
}

static void end_programs(Folder *f) {
    scratch_end(f->module, f->outer);
}

static void forget_program(Folder *f) {
    if (arena_used(f->module->scratch) < f->empty + WORTH_GIVING_BACK) {
        binder_reset(f->binder);
        return;
    }
    end_programs(f);
    begin_programs(f);
}

/* ---- which nodes ---- */

static bool keeps_running(const FoldOptions *o, const Node *n) {
    if (n->faulty || !n->def || !n->def->bind || has_bodies(n))
        return true;
    Conversion c = node_conversion(n);
    return n->def->stays &&
           !(o && o->conversions && (c == CONVERT_QUANTIZE || c == CONVERT_DEQUANTIZE));
}

/* Elements that the IR can hold as they come out of a kernel. */
static bool plain(const Value *v) {
    return !v->type.quant && elem_bits(v->type.elem) >= 8;
}

static bool sizes_fit(Folder *f, const Node *n, size_t *growth) {
    size_t in = 0, out = 0, count;
    for (size_t i = 0; i < n->n_in; i++)
        in += n->in[i] ? n->in[i]->data->bytes : 0;
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        if (!plain(n->out[i]))
            return false;
        if (n->def->counts) { /* no more than an index for each dimension of each element */
            out += in * MAX_RANK * sizeof(int64_t);
            continue;
        }
        if (!type_count(n->out[i]->type, &count) || count > INT32_MAX)
            return false;
        out += elem_bytes(n->out[i]->type.elem, count);
    }
    *growth = out > in ? out - in : 0;
    if (*growth <= f->max_bytes - f->grown)
        return true;
    if (f->options && f->options->too_large)
        f->options->too_large(n, f->options->ctx);
    f->failed[n->id] = true; /* what has grown does not shrink */
    return false;
}

static bool has_const_operands(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !value_is_const(n->in[i]))
            return false;
    return true;
}

static bool foldable(Folder *f, const Node *n, size_t *growth) {
    if (f->failed[n->id] || keeps_running(f->options, n) || !has_const_operands(n))
        return false;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !plain(n->in[i]))
            return false;
    return sizes_fit(f, n, growth);
}

/* ---- results ---- */

/* Integers of less than a byte, of which a program has one a byte. */
static void pack_elements(const Tensor *t, uint8_t *bytes, const uint8_t *data) {
    bool sign = elem_min(t->elem) < 0;
    for (size_t i = 0; i < t->count; i++)
        elem_store_int(t->elem, bytes, i, sign ? (int8_t)data[i] : data[i]);
}

/* Elements as the value's type has them, of those that a program computes. */
static void store_elements(Tensor *t, uint8_t *bytes, const void *data) {
    size_t size = (size_t)elem_bits(t->elem) / 8;
    if (elem_unpacked(t->elem) == t->elem) {
        memcpy(bytes, data, t->bytes);
        return;
    }
    if (!size) {
        pack_elements(t, bytes, data);
        return;
    }
    for (size_t i = 0; i < t->count; i++) {
        uint64_t bits;
        float_encode(t->elem, (double)((const float *)data)[i], &bits);
        memcpy(bytes + i * size, &bits, size);
    }
}

/* What a program computed for a value. */
static Tensor *result_of(const Folder *f, const Runner *r, const Value *v) {
    int64_t dims[MAX_RANK];
    uint8_t *bytes;
    int rank = runner_shape(r, v, dims);
    Tensor *t = tensor_new(f->module->arena, v->type.elem, rank, dims, &bytes);
    if (t->bytes)
        store_elements(t, bytes, runner_value(r, v));
    return t;
}

/* The node's output becomes a constant in place: name, uses and type stay. */
static void make_const(Folder *f, Graph *g, Value *v, const Tensor *t) {
    const Node *n = v->def;
    v->data = (Tensor *)t;
    if (n->def->counts)
        v->type = tensor_type(f->module->arena, t);
    v->kind = VALUE_CONST;
    v->def = NULL;
    v->stat = NULL;
    v->declared = false; /* the tensor says it */
    v->from = (Provenance){0};
    value_from_node(v, n, f->by);
    ARENA_PUSH(f->module->arena, g->consts, g->n_consts, g->cap_consts, v);
}

/* Takes a constant that nobody reads any more out of its graph: it is one of the last. */
static void drop_const(const Folder *f, const Value *v) {
    Graph *g = v->graph;
    size_t i = g->n_consts;
    if (v->data->bytes < WORTH_DROPPING)
        return;
    while (g->consts[i - 1] != v)
        i--;
    g->n_consts--;
    memmove(&g->consts[i - 1], &g->consts[i], (g->n_consts - (i - 1)) * sizeof *g->consts);
    arena_release(f->module->arena, v->data->data, v->data->bytes);
}

static void finish_node(Folder *f, Node *n) {
    for (size_t i = 0; f->readers && i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (v && --f->readers[v->id] == 0 && f->made[v->id])
            drop_const(f, v);
    }
    node_remove(n);
    f->folded++;
    f->progress = true;
}

static const Runner *run_program(Folder *f, const Node *n) {
    Binder *b = f->binder;
    if (!bind_node(b, n))
        return NULL;
    program_align(b->arena, b->program);
    program_plan(b->arena, b->program, true, false, 0);
    Runner *r = runner_new(b->arena, b->program);
    if (!runner_run(r, f->quiet))
        return NULL;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !runner_value(r, n->out[i]))
            return NULL;
    return r;
}

static bool run_node(Folder *f, Graph *g, Node *n) {
    if (!node_infer(n, f->quiet) || n->faulty) /* operands have become constants since */
        return false;
    const Runner *r = run_program(f, n);
    for (size_t i = 0; r && i < n->n_out; i++)
        if (n->out[i]) {
            make_const(f, g, n->out[i], result_of(f, r, n->out[i]));
            if (f->readers)
                f->made[n->out[i]->id] = true;
        }
    forget_program(f);
    if (r)
        finish_node(f, n);
    return r != NULL;
}

/* What the types of the operands determine: nothing has to run. */
static bool fold_types(Folder *f, Graph *g, Node *n) {
    if (!n->def || !n->def->from_types || n->n_out != 1 || !n->out[0])
        return false;
    OpCtx c = op_ctx(n, NULL);
    const Tensor *t = n->def->from_types(&c);
    if (!t)
        return false;
    n->out[0]->type = tensor_type(f->module->arena, t);
    make_const(f, g, n->out[0], t);
    finish_node(f, n);
    return true;
}

/* What the one branch that runs yields. */
static bool fold_branch(Folder *f, Graph *g, Node *n) {
    const Graph *branch = node_branch(n);
    if (!branch || n->faulty)
        return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (!value_is_const(branch->out[i]) || !plain(branch->out[i])))
            return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            n->out[i]->type = branch->out[i]->type;
            make_const(f, g, n->out[i], branch->out[i]->data);
        }
    finish_node(f, n);
    return true;
}

static void fold_graph(Graph *g, void *ctx) {
    Folder *f = ctx;
    size_t growth;
    const FoldOptions *o = f->options;
    FOR_NODES(n, g) {
        if (o && o->wanted && !o->wanted(n, o->ctx))
            continue;
        if (fold_types(f, g, n) || fold_branch(f, g, n) || !foldable(f, n, &growth))
            continue;
        if (run_node(f, g, n))
            f->grown += growth;
        else
            f->failed[n->id] = true;
    }
}

static size_t default_max_bytes(const Arena *a) {
    size_t left = arena_left(a);
    return left == SIZE_MAX ? WITHOUT_LIMIT : left / PART_OF_MEMORY;
}

static void count_readers(Value *v, void *ctx) {
    const Uses *uses = ((void **)ctx)[0];
    const Use *use;
    ((size_t *)((void **)ctx)[1])[v->id] = uses_of(uses, v, &use);
}

/* What a graph yields is read by nobody who is folded. */
static void watch_readers(Folder *f) {
    Module *m = f->module;
    f->readers = NEW_ARRAY(m->scratch, size_t, m->n_values);
    f->made = NEW_ARRAY(m->scratch, bool, m->n_values);
    Arena *outer = scratch_begin(m);
    module_each_value(m, count_readers, (void *[]){uses_new(m), f->readers});
    scratch_end(m, outer);
}

size_t module_fold(Module *m, const FoldOptions *o) {
    Folder f = {.module = m,
                .by = o && o->by ? o->by : "fold-const",
                .options = o,
                .quiet = diags_new(m->arena, NULL, false),
                .failed = NEW_ARRAY(m->arena, bool, m->n_nodes)};
    f.max_bytes = o && o->max_bytes ? o->max_bytes : default_max_bytes(m->arena);
    if (o && o->drops)
        watch_readers(&f);
    begin_programs(&f);
    do { /* what became constant may fix shapes, which may make more constant */
        f.progress = false;
        module_each_graph(m, fold_graph, &f);
    } while (f.progress && module_refine_early(m, f.quiet));
    end_programs(&f);
    return f.folded;
}

bool module_fold_node(Module *m, Node *n, const char *by) {
    if (keeps_running(NULL, n) || !has_const_operands(n))
        return false;
    Folder f = {.module = m, .by = by, .quiet = diags_new(m->arena, NULL, false)};
    begin_programs(&f);
    bool folded = run_node(&f, n->graph, n);
    end_programs(&f);
    return folded;
}
