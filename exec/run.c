/* Runs a program in this process. See exec/exec.h. */
#include <assert.h>
#include <stdlib.h>

#include "exec/exec.h"
#include "exec/lengths.h"
#include "exec/within.h"
#include "support/parallel.h"

struct Runner {
    const Program *program;
    uint8_t **memory; /* by buffer; NULL where nothing touches it */
    void **args;      /* of all calls but END, CALL_MAX_ARGS each */
    int *jump;        /* by call: IF, ELSE, LOOP and NEXT, where to go on */
    bool *ran;        /* by call */
    int *completes;   /* by buffer root: the call after which it is complete, -1 before the first */
    uint32_t *order;  /* buffers that hold values, by that call */
    size_t n_order;
    void *params; /* of a call that lengths change */
    RunnerObserver *observer;
    void *observer_ctx;
};

/* ---- building ---- */

/* The node whose call uses the buffer first. */
static const Node *user_of(const Program *p, size_t buffer) {
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args; i++)
            if (p->calls[c].args[i] >= 0 && program_root(p, p->calls[c].args[i]) == (int)buffer)
                return p->calls[c].node;
    return NULL;
}

/* What takes the most of a program's memory, for whoever has to say that there is not enough. */
static const char *largest(Arena *a, const Program *p) {
    const Buffer *most = NULL;
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        bool used = b->alias < 0 && b->kind != BUF_CONST && (b->kind != BUF_ARENA || b->first >= 0);
        most = used && (!most || b->bytes > most->bytes) ? b : most;
    }
    if (!most)
        return NULL;
    const Value *v = most->value;
    const Node *n = v && v->def ? v->def : user_of(p, (size_t)(most - p->buffers));
    Buf text = buf_new(a);
    if (v && !most->scratch)
        buf_fmt(&text, "'%s', %s", diag_name(p->module->diags, v->name), type_text(a, v->type));
    else
        buf_fmt(&text, "scratch of %zu bytes", most->bytes);
    if (n && (!v || v->kind != VALUE_INPUT))
        buf_fmt(&text, ", of %s", node_text(n));
    return buf_as_str(&text).s;
}

/* Less is no reason to run out of it. */
enum { WORTH_NAMING = 1 << 20 };

static void give_memory(Runner *r, Arena *a) {
    const Program *p = r->program;
    uint8_t *arena = arena_alloc(a, p->arena_bytes + BUFFER_ALIGN);
    arena += (BUFFER_ALIGN - (uintptr_t)arena % BUFFER_ALIGN) % BUFFER_ALIGN;
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Buffer *b = &p->buffers[i];
        if (b->alias >= 0)
            continue;
        if (b->kind == BUF_CONST)
            r->memory[i] = (uint8_t *)(uintptr_t)b->data; /* kernels take it as const */
        else if (b->kind != BUF_ARENA)
            r->memory[i] = arena_alloc(a, b->bytes ? b->bytes : 1);
        else if (b->first >= 0)
            r->memory[i] = arena + b->offset;
    }
    for (size_t i = 0; i < p->n_buffers; i++)
        r->memory[i] = r->memory[program_root(p, (int)i)];
}

/* IF goes past its ELSE (or END) when false, ELSE past its END; LOOP past its NEXT in the end, NEXT
 * back to it. */
static void find_jumps(Runner *r, Arena *a) {
    const Program *p = r->program;
    int *stack = NEW_ARRAY(a, int, p->n_calls + 1), depth = 0;
    for (size_t i = 0; i < p->n_calls; i++) {
        CallKind kind = p->calls[i].kind;
        if (kind == CALL_KERNEL)
            continue;
        if (kind == CALL_NEXT) {
            assert(depth > 0);
            r->jump[i] = stack[depth - 1];
            r->jump[stack[depth - 1]] = (int)i + 1;
        } else if (kind == CALL_ELSE || kind == CALL_END) {
            assert(depth > 0);
            depth--;
            if (p->calls[stack[depth]].kind != CALL_LOOP)
                r->jump[stack[depth]] = kind == CALL_ELSE ? (int)i + 1 : (int)i;
        }
        if (kind == CALL_IF || kind == CALL_ELSE || kind == CALL_LOOP)
            stack[depth++] = (int)i;
    }
    assert(depth == 0);
}

/* What is carried through a loop is there as each iteration begins: it was given a value before the
 * loop (`first` is by buffer root). What is scanned is not: each iteration takes its part. */
static void complete_carried(Runner *r, int loop, const int *first) {
    const Program *p = r->program;
    const Node *n = p->calls[loop].node;
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Graph *g = n->attrs[i].kind == ATTR_GRAPH ? n->attrs[i].v.g[0] : NULL;
        for (size_t k = 0; g && k < g->n_in; k++) {
            int at = p->value_buffer[g->in[k]->id];
            int root = at < 0 ? -1 : program_root(p, at);
            if (root >= 0 && first[root] < loop && r->completes[root] > loop)
                r->completes[root] = loop;
        }
    }
}

static void find_completion(Runner *r, Arena *a) {
    const Program *p = r->program;
    int *first = NEW_ARRAY(a, int, p->n_buffers);
    for (size_t i = 0; i < p->n_buffers; i++)
        r->completes[i] = first[i] = -1;
    for (size_t c = 0; c < p->n_calls; c++) {
        const Call *call = &p->calls[c];
        for (int i = 0; i < call->n_args; i++) {
            if (!call_writes(call, i) || call->args[i] < 0)
                continue;
            int root = program_root(p, call->args[i]);
            first[root] = first[root] < 0 ? (int)c : first[root];
            r->completes[root] = (int)c;
        }
    }
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].kind == CALL_LOOP)
            complete_carried(r, (int)c, first);
}

static int completes(const Runner *r, uint32_t buffer) {
    return r->completes[program_root(r->program, (int)buffer)];
}

static bool observable(const Program *p, size_t i) {
    const Value *v = p->buffers[i].value;
    return v && v->kind != VALUE_CONST && p->value_buffer[v->id] == (int)i &&
           !(v->kind == VALUE_INPUT && v->data);
}

/* A stable sort by completing call (counting sort: programs may be long). */
static void order_values(Runner *r, Arena *a) {
    const Program *p = r->program;
    size_t *start = NEW_ARRAY(a, size_t, p->n_calls + 3);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (observable(p, i)) {
            start[completes(r, (uint32_t)i) + 2]++;
            r->n_order++;
        }
    for (size_t i = 1; i < p->n_calls + 2; i++)
        start[i] += start[i - 1];
    r->order = NEW_ARRAY(a, uint32_t, r->n_order);
    for (size_t i = 0; i < p->n_buffers; i++)
        if (observable(p, i))
            r->order[start[completes(r, (uint32_t)i) + 1]++] = (uint32_t)i;
}

static size_t most_params(const Program *p) {
    size_t most = 1;
    for (size_t c = 0; c < p->n_calls; c++)
        if (p->calls[c].patches && p->calls[c].kernel->params_size > most)
            most = p->calls[c].kernel->params_size;
    return most;
}

Runner *runner_new(Arena *a, const Program *p) {
    Runner *r = NEW(a, Runner);
    *r = (Runner){.program = p, .params = arena_alloc(a, most_params(p))};
    r->memory = NEW_ARRAY(a, uint8_t *, p->n_buffers);
    r->args = NEW_ARRAY(a, void *, p->n_calls *CALL_MAX_ARGS);
    r->jump = NEW_ARRAY(a, int, p->n_calls);
    r->ran = NEW_ARRAY(a, bool, p->n_calls);
    r->completes = NEW_ARRAY(a, int, p->n_buffers);
    OutOfMemory *oom = arena_handler(a);
    if (oom && p->arena_bytes >= WORTH_NAMING)
        oom->largest = largest(a, p);
    give_memory(r, a);
    if (oom)
        oom->largest = NULL;
    for (size_t c = 0; c < p->n_calls; c++)
        for (int i = 0; i < p->calls[c].n_args && p->calls[c].kind != CALL_END; i++)
            if (p->calls[c].args[i] >= 0)
                r->args[c * CALL_MAX_ARGS + (size_t)i] = r->memory[p->calls[c].args[i]];
    find_jumps(r, a);
    find_completion(r, a);
    order_values(r, a);
    return r;
}

/* ---- running ---- */

void *runner_input(Runner *r, size_t i) {
    return r->memory[r->program->inputs[i]];
}

const void *runner_output(const Runner *r, size_t i) {
    int at = r->program->outputs[i];
    return at < 0 ? NULL : r->memory[at];
}

void runner_observe(Runner *r, RunnerObserver *fn, void *ctx) {
    r->observer = fn;
    r->observer_ctx = ctx;
}

/* Shows the values complete after `call`; `at` walks through the order. */
static size_t observe(Runner *r, size_t at, int call) {
    for (; at < r->n_order && completes(r, r->order[at]) <= call; at++)
        if (r->observer && completes(r, r->order[at]) == call)
            r->observer(r->observer_ctx, r->program->buffers[r->order[at]].value,
                        r->memory[r->order[at]]);
    return at;
}

static bool goes_on(void *const *args) {
    return *(const uint8_t *)args[0] && *(const int64_t *)args[1] < *(const int64_t *)args[2];
}

int runner_parts(void) {
    enum { EACH = 2 };
    int workers = parallel_workers(SIZE_MAX, 1);
    return workers > 1 ? EACH * workers : 0;
}

typedef struct CallParts {
    const Call *call;
    void *const *args;
} CallParts;

static void run_part(const Call *c, size_t i, void *const *all) {
    const CallPart *part = &c->parts[i];
    void *args[CALL_MAX_ARGS];
    for (int k = 0; k < c->n_args; k++)
        args[k] = all[k] ? (char *)all[k] + part->at[k] : NULL;
    kernel_invoke(c->kernel, part->params, args);
}

static void run_parts(void *ctx, size_t from, size_t to, int worker) {
    const CallParts *c = ctx;
    (void)worker;
    for (size_t i = from; i < to; i++)
        run_part(c->call, i, c->args);
}

/* All calls of the bands, with the arguments of them all. */
static void run_bands(const Call *first, void *const *args) {
    for (size_t b = 0; b < first->n_parts; b++)
        for (size_t i = 0; i < first->bands->n; i++)
            if (first[i].parts[b].params)
                run_part(&first[i], b, args + i * CALL_MAX_ARGS);
}

/* `args` are those of the call, `params` what lengths make of its params. The first of calls in
 * bands runs them all. */
static void invoke(const Program *p, const Call *c, const void *params, void *const *args) {
    if (c->bands && c != &p->calls[c->bands->first])
        return;
    if (c->bands)
        run_bands(c, args);
    else if (c->n_parts)
        parallel_for(c->n_parts, 1, run_parts, &(CallParts){c, args});
    else
        kernel_invoke(c->kernel, params, args);
}

/* The first value that is complete at the call or later. */
static size_t back_to(const Runner *r, size_t at, int call) {
    while (at > 0 && completes(r, r->order[at - 1]) >= call)
        at--;
    return at;
}

/* Iterations of the outermost loop and of all inside it. */
typedef struct Rounds {
    int loop; /* its call */
    int64_t n;
} Rounds;

static bool another_round(const Runner *r, Rounds *rounds, int call) {
    if (rounds->loop < 0 || call >= r->jump[rounds->loop])
        *rounds = (Rounds){call, 0};
    return rounds->n++ < LOOP_MOST;
}

static bool never_ends(const Runner *r, int call, Diags *d) {
    const Node *n = r->program->calls[call].node;
    return diag_error(d, n->loc, LOOP_ENDLESS, node_text(n), LOOP_MOST);
}

static bool run_calls(Runner *r, Progress *progress, size_t level, Diags *d) {
    const Program *p = r->program;
    int n = (int)p->n_calls;
    memset(r->ran, 0, p->n_calls * sizeof *r->ran);
    size_t at = observe(r, 0, -1);
    Rounds rounds = {-1, 0};
    for (int i = 0; i < n;) {
        const Call *c = &p->calls[i];
        void **args = r->args + (size_t)i * CALL_MAX_ARGS;
        bool jump = c->kind == CALL_ELSE || c->kind == CALL_NEXT ||
                    (c->kind == CALL_IF && !*(const uint8_t *)args[0]) ||
                    (c->kind == CALL_LOOP && !goes_on(args));
        Outside outside;
        if (c->within && !call_within(p, c, args, &outside))
            return outside_error(c, &outside, d);
        if (c->kind == CALL_CHECK && !length_check(c->bound, *(const int64_t *)args[0], d))
            return false;
        r->ran[i] = true;
        progress_step(progress, level, (size_t)i);
        const void *params = c->params;
        if (c->kind == CALL_KERNEL && (!c->patches || (params = call_params(c, args, r->params))))
            invoke(p, c, params, args);
        if (c->kind == CALL_LOOP && !jump && !another_round(r, &rounds, i))
            return never_ends(r, i, d);
        at = c->kind == CALL_NEXT           ? back_to(r, at, r->jump[i])
             : c->kind == CALL_LOOP && jump ? at
                                            : observe(r, at, i);
        i = jump ? r->jump[i] : i + 1;
    }
    return true;
}

bool runner_run(Runner *r, Diags *d) {
    Progress *progress = diags_progress(d);
    size_t level = progress_begin(progress, "step", r->program->n_calls);
    bool ok = run_calls(r, progress, level, d);
    progress_end(progress, level);
    return ok;
}

static int buffer_of(const Runner *r, const Value *v) {
    return v->id < r->program->module->n_values ? r->program->value_buffer[v->id] : -1;
}

const void *runner_value(const Runner *r, const Value *v) {
    int i = buffer_of(r, v);
    return i < 0 ? NULL : r->memory[i];
}

bool runner_computed(const Runner *r, const Value *v) {
    int i = buffer_of(r, v);
    if (i < 0)
        return false;
    int call = completes(r, (uint32_t)i);
    return call < 0 || r->ran[call];
}

/* Of a counted axis, also where the model states a length. */
int runner_shape(const Runner *r, const Value *v, int64_t *dims) {
    const Counted *c = program_counted(r->program, v);
    int rank = type_lengths(v->type, dims);
    if (c)
        memcpy(&dims[c->axis], r->memory[c->count], sizeof *dims);
    return rank;
}

/* ---- elements ---- */

/* What plain integers mean is recorded with ~; both kinds are read as the real numbers. */
static const Quant *meaning(Type t) {
    return t.quant && t.quant->n_scale && elem_is_int(t.elem) ? t.quant : NULL;
}

/* The elements of a value as programs hold them; `dims` has MAX_RANK entries. */
static Tensor view(Type t, const void *data, int64_t *dims) {
    return (Tensor){
        .elem = elem_unpacked(t.elem), .rank = type_lengths(t, dims), .dims = dims, .data = data};
}

static double real(const Tensor *t, const Quant *q, size_t i) {
    double x = tensor_float(t, i);
    if (!q)
        return x;
    size_t k = quant_is_per_tensor(q) ? 0 : quant_index(q, t->rank, t->dims, i);
    return (x - (double)quant_zp(q, k)) * (double)quant_scale(q, k);
}

/* What `real` makes of each, where one scale is that of all. */
static bool reals_of_bytes(const Tensor *t, const Quant *q, size_t n, double *out) {
    bool is_signed = t->elem == ELEM_INT8;
    if ((!is_signed && t->elem != ELEM_UINT8) || (q && !quant_is_per_tensor(q)))
        return false;
    double zp = q ? (double)quant_zp(q, 0) : 0, scale = q ? (double)quant_scale(q, 0) : 1;
    const uint8_t *bytes = t->data;
    for (size_t i = 0; i < n; i++) {
        int x = is_signed ? (int8_t)bytes[i] : bytes[i];
        out[i] = ((double)x - zp) * scale;
    }
    return true;
}

void type_reals(Type type, const void *data, size_t n, double *out) {
    const Quant *q = meaning(type);
    int64_t dims[MAX_RANK];
    Tensor t = view(type, data, dims);
    if (t.elem == ELEM_FLOAT) {
        for (size_t i = 0; i < n; i++)
            out[i] = (double)((const float *)data)[i];
        return;
    }
    if (reals_of_bytes(&t, q, n, out))
        return;
    for (size_t i = 0; i < n; i++)
        out[i] = real(&t, q, i);
}

void type_reals_at(Type type, const void *data, const size_t *at, size_t n, double *out) {
    const Quant *q = meaning(type);
    int64_t dims[MAX_RANK];
    Tensor t = view(type, data, dims);
    for (size_t i = 0; i < n; i++)
        out[i] = real(&t, q, at[i]);
}
