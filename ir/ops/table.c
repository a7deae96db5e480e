/* Functions of one number on integers: tables. Of 8 bits each number has an entry. Of 16 bits
 * entries are the ends of straight lines, as long as they keep every result within a step of the
 * exact one, which is found by trying all numbers; where each number would take one (Round), it has
 * its result there. */
#include "ir/ops/bind.h"
#include "ir/ops/overlay.h"

#include <assert.h>
#include <math.h>

/* ---- 8 bits ---- */

static bool call_table(Binder *b, const Node *n, const ElemType types[2], int32_t count,
                       const int args[3]) {
    qk_lut8_params p = {.n = count};
    if (!bind_call(b, n, bind_kernel(b, "lut8", 2, types), &p, sizeof p, 3, args))
        return false;
    bind_over_each(b, 0, count, types[0], types[1]);
    return true;
}

static bool bind_table8(Binder *b, const Node *n, const Value *x, const Value *y, UnaryFn *f,
                        const void *ctx) {
    const Quant *in = op_quant(x), *out = op_quant(y);
    ElemType types[] = {bind_elem(x), bind_elem(y)};
    uint8_t *table = arena_alloc(binder_arena(b), elem_bytes(types[1], 256));
    int32_t first = (int32_t)elem_min(types[0]);
    for (int32_t i = 0; i < 256; i++) {
        float v = (float)(first + i - quant_zero(in)) * quant_scale(in, 0);
        v = f(v, ctx);
        if (out)
            elem_store_int(types[1], table, (size_t)i, quant_of_real(out, 0, v));
        else
            memcpy(table + (size_t)i * sizeof v, &v, sizeof v);
    }
    int args[3] = {0, bind_const(b, types[1], 256, table, "table")};
    bind_each(b, n, x, y, &args[0], &args[2]);
    return call_table(b, n, types, bind_count(x), args);
}

/* ---- 16 bits ---- */

enum {
    NUMBERS = 1 << 16,
    FRACTION_BITS = 12,
    LONGEST = 13, /* lines of up to 2^13 numbers */
    SMALLEST_PART = 5,
};

static const double MOST_STEPS = 1 << 17; /* beyond all results */

/* A function of x's integers. Lines begin and end at multiples of their length from x's zero point
 * on, where some functions have a kink. */
typedef struct Curve {
    const Quant *out;
    int32_t lowest, first;   /* the lowest x, and what `value` begins with */
    size_t n;                /* of `value` but the last: a multiple of 2^LONGEST */
    int32_t *value;          /* results in 2^-FRACTION_BITS of a step, from y's zero point on */
    int32_t *exact;          /* results, by x - lowest */
    bool *fits[LONGEST + 1]; /* whether the line of 2^k numbers serves, by its place among those */
} Curve;

/* NaN is what rounds to it. */
static int32_t fixed_point(const Quant *q, float real) {
    double v = (double)real / (double)quant_scale(q, 0);
    if (isnan(v))
        v = (double)(quant_of_real(q, 0, real) - quant_zero(q));
    v = v > MOST_STEPS ? MOST_STEPS : v < -MOST_STEPS ? -MOST_STEPS : v;
    return (int32_t)lround(ldexp(v, FRACTION_BITS));
}

static Curve curve_of(Arena *scratch, const Quant *in, const Quant *out, int32_t lowest, UnaryFn *f,
                      const void *ctx) {
    int32_t zero = quant_zero(in), step = 1 << LONGEST;
    int32_t parts = (zero - lowest + step - 1) / step;
    Curve c = {.out = out, .lowest = lowest, .first = zero - parts * step};
    c.n = (size_t)((lowest + NUMBERS - c.first + step - 1) / step * step);
    c.value = NEW_ARRAY(scratch, int32_t, c.n + 1);
    c.exact = NEW_ARRAY(scratch, int32_t, NUMBERS);
    for (size_t i = 0; i <= c.n; i++) {
        int32_t x = c.first + (int32_t)i;
        float real = f((float)(x - zero) * quant_scale(in, 0), ctx);
        c.value[i] = fixed_point(out, real);
        if (x >= lowest && x < lowest + NUMBERS)
            c.exact[x - lowest] = (int32_t)quant_of_real(out, 0, real);
    }
    return c;
}

/* Within a quarter of a step of the value, where that is within the range of results. */
static bool line_fits(const Curve *c, size_t from, int shift) {
    double a = c->value[from], rise = (double)c->value[from + ((size_t)1 << shift)] - a;
    double step = ldexp(1, FRACTION_BITS), per_number = ldexp(rise, -shift);
    double lo = (double)(quant_lo(c->out) - quant_zero(c->out)) * step - step / 2;
    double hi = (double)(quant_hi(c->out) - quant_zero(c->out)) * step + step / 2;
    for (int32_t i = 0; i < 1 << shift; i++) {
        int64_t at = (int64_t)from + i, x = at + c->first - c->lowest;
        double line = fmin(fmax(a + per_number * i, lo), hi);
        double value = fmin(fmax((double)c->value[at], lo), hi);
        if (x >= 0 && x < NUMBERS && fabs(line - value) > step / 4)
            return false;
    }
    return true;
}

static void find_lines(Arena *scratch, Curve *c) {
    for (int k = 0; k <= LONGEST; k++) {
        c->fits[k] = NEW_ARRAY(scratch, bool, c->n >> k);
        for (size_t i = 0; i < c->n >> k; i++)
            c->fits[k][i] = line_fits(c, i << k, k);
    }
}

/* The longest lines that serve all of the part of 2^size numbers. */
static int longest_in(const Curve *c, size_t part, int size) {
    int k = size;
    for (bool all = false; !all && k > 0; k -= !all) {
        all = true;
        for (size_t i = 0; i < (size_t)1 << (size - k); i++)
            all = all && c->fits[k][(part << (size - k)) + i];
    }
    return k;
}

static size_t entries_with(const Curve *c, int size) {
    size_t n = (c->n >> size) + 1;
    for (size_t i = 0; i < c->n >> size; i++)
        n += (size_t)1 << (size - longest_in(c, i, size));
    return n;
}

/* The size of parts that takes the fewest entries. */
static int best_part(const Curve *c, size_t *entries) {
    int best = LONGEST;
    *entries = SIZE_MAX;
    for (int size = LONGEST; size >= SMALLEST_PART; size--) {
        size_t n = entries_with(c, size);
        if (n < *entries) {
            *entries = n;
            best = size;
        }
    }
    return best;
}

static int32_t *put_lines(Arena *scratch, const Curve *c, int size, size_t entries) {
    int32_t *table = NEW_ARRAY(scratch, int32_t, entries);
    size_t parts = c->n >> size, next = parts;
    for (size_t i = 0; i < parts; i++) {
        int k = longest_in(c, i, size);
        table[i] = (int32_t)(next << 4) | k;
        for (size_t at = i << size; at < (i + 1) << size; at += (size_t)1 << k)
            table[next++] = c->value[at];
    }
    table[next] = c->value[c->n];
    return table;
}

static int each_number(Binder *b, Arena *scratch, const Curve *c, ElemType e) {
    uint8_t *table = arena_alloc(scratch, elem_bytes(e, NUMBERS));
    for (size_t i = 0; i < NUMBERS; i++)
        elem_store_int(e, table, i, c->exact[i]);
    return bind_const(b, e, NUMBERS, table, "table");
}

static bool bind_table16(Binder *b, const Node *n, const Value *x, const Value *y, UnaryFn *f,
                         const void *ctx) {
    Arena *scratch = arena_scratch(binder_arena(b));
    ElemType types[] = {bind_elem(x), bind_elem(y)};
    Curve c = curve_of(scratch, op_quant(x), op_quant(y), (int32_t)elem_min(types[0]), f, ctx);
    qk_curve16_params p = {
        .n = bind_count(x), .first = c.first, .bits = FRACTION_BITS, RESULT_PARAMS(c.out)};
    qk_lut16_params all = {.n = bind_count(x)};
    size_t entries;
    int args[3];
    find_lines(scratch, &c);
    p.part = best_part(&c, &entries);
    bool lines = entries * sizeof(int32_t) < elem_bytes(types[1], NUMBERS);
    args[1] =
        lines ? bind_const(b, ELEM_INT32, entries, put_lines(scratch, &c, p.part, entries), "curve")
              : each_number(b, scratch, &c, types[1]);
    arena_free(scratch);
    bind_each(b, n, x, y, &args[0], &args[2]);
    if (!bind_call(b, n, bind_kernel(b, lines ? "curve16" : "lut16", 2, types),
                   lines ? (const void *)&p : &all, lines ? sizeof p : sizeof all, 3, args))
        return false;
    bind_over_each(b, 0, bind_count(x), types[0], types[1]);
    return true;
}

bool bind_table(Binder *b, const Node *n, UnaryFn *f, const void *ctx) {
    const Value *x = n->in[0], *y = n->out[0];
    const Quant *in = op_quant(x), *out = op_quant(y);
    int from = elem_bits(bind_elem(x)), to = elem_bits(bind_elem(y));
    bool plain = quant_plain(in) && (!out || quant_plain(out));
    if (plain && from == 8 && to <= (out ? 16 : 32))
        return bind_table8(b, n, x, y, f, ctx);
    if (plain && from == 16 && out && to <= 16)
        return bind_table16(b, n, x, y, f, ctx);
    return bind_in_double(b, n);
}

/* A kernel on doubles, with params for one number. */
typedef struct OneNumber {
    const KernelDef *kernel;
    const void *params;
} OneNumber;

static float one_number(float x, const void *ctx) {
    const OneNumber *f = ctx;
    double in = (double)x, out;
    kernel_invoke(f->kernel, f->params, (void *[]){&in, &out});
    return (float)out;
}

static bool bind_twin_table(Binder *b, const Node *n, const char *kernel, const void *params,
                            size_t size) {
    char *one = arena_copy(binder_arena(b), params, size);
    const int64_t count = 1;
    OneNumber f = {bind_twin(b, kernel), one};
    assert(f.kernel && f.kernel->fields[0].kind == KF_I64 && f.kernel->fields[0].offset == 0);
    memcpy(one, &count, sizeof count);
    return bind_table(b, n, one_number, &f);
}

bool bind_unary(Binder *b, const Node *n, const char *kernel, const void *params, size_t size) {
    if (op_quant(n->in[0]))
        return bind_twin_table(b, n, kernel, params, size);
    int args[2];
    if (!bind_floats_only(b, n))
        return false;
    bind_each(b, n, n->in[0], n->out[0], &args[0], &args[1]);
    if (!bind_call(b, n, kernel, params, size, 2, args))
        return false;
    bind_in_place(b, 0);
    return true;
}

/* ---- requantization ---- */

static bool requantize_table(Binder *b, const Node *n, const Value *x, int from, const Quant *out,
                             int y, int32_t lo, int32_t hi) {
    const Quant *in = op_quant(x);
    ElemType types[] = {bind_elem(x), bind_buffer(b, y)->elem};
    uint8_t *table = arena_alloc(binder_arena(b), elem_bytes(types[1], 256));
    int32_t first = (int32_t)elem_min(types[0]);
    for (int32_t i = 0; i < 256; i++) {
        float v = (float)(first + i - quant_zero(in)) * quant_scale(in, 0);
        int64_t q = quant_of_real(out, 0, v);
        elem_store_int(types[1], table, (size_t)i, q < lo ? lo : q > hi ? hi : q);
    }
    int args[] = {from, bind_const(b, types[1], 256, table, "table"), y};
    return call_table(b, n, types, bind_count(x), args);
}

bool bind_requantize(Binder *b, const Node *n, const Value *x, int x_buffer, const Quant *out,
                     int y_buffer, int32_t lo, int32_t hi) {
    const Quant *in = op_quant(x);
    if (!quant_plain(in) || !quant_plain(out))
        return bind_unsupported(b, n, "requantization needs parameters for the whole tensor");
    if (elem_bits(bind_elem(x)) == 8)
        return requantize_table(b, n, x, x_buffer, out, y_buffer, lo, hi);
    ElemType types[] = {bind_elem(x), bind_buffer(b, y_buffer)->elem};
    qk_requantize_params p = {
        .n = bind_count(x), .xz = quant_zero(in), .yz = quant_zero(out), .lo = lo, .hi = hi};
    int bits =
        elem_bits(types[0]) > elem_bits(types[1]) ? elem_bits(types[0]) : elem_bits(types[1]);
    requant_ratio(quant_scale(in, 0), quant_scale(out, 0), bits, &p.m, &p.shift);
    if (!bind_call(b, n, bind_kernel(b, "requantize", 2, types), &p, sizeof p, 2,
                   (int[]){x_buffer, y_buffer}))
        return false;
    bind_over_each(b, 0, p.n, types[0], types[1]);
    return true;
}
