/* Kernels whose result lies over their operand: at the lead that ir/ops/overlay.h allows results
 * are the same as in memory of their own, at a smaller one they are not. */
#include "ir/ops/overlay.h"
#include "kernel_tools.h"

enum { CHANNELS = 40, TABLE = 64, ROUNDS = 600 };

/* A call, and which of its arguments are operand and result. */
typedef struct Case {
    const char *name;
    const void *params;
    void *args[9];
    int x, y;
    size_t in, out; /* bytes */
    int64_t lead;
} Case;

/* Elements of four bytes are aligned. */
static int64_t aligned(int64_t lead) {
    return lead < 0 ? lead / 4 * 4 : (lead + 3) / 4 * 4;
}

/* The result when it begins `lead` bytes before the operand. Freed by the caller. */
static uint8_t *overlaid(const Case *c, int64_t lead) {
    size_t margin = (c->in + c->out + 15) / 16 * 16, room = 12 * margin + 64;
    uint8_t *memory = calloc(room, 1), *out = malloc(c->out + 1);
    uint8_t *x = memory + margin, *y = x - lead;
    void *args[9];
    memcpy(args, c->args, sizeof args);
    args[c->x] = memcpy(x, c->args[c->x], c->in);
    args[c->y] = y;
    run(c->name, c->params, args);
    memcpy(out, y, c->out);
    free(memory);
    return out;
}

/* Returns whether a lead that is `less` smaller gives something else. */
static bool check(const Case *c, int64_t less) {
    if (c->in == 0 || c->out == 0)
        return false;
    assert_true(c->lead >= -(int64_t)c->in && c->lead <= (int64_t)c->out);
    run(c->name, c->params, c->args);
    uint8_t *same = overlaid(c, aligned(c->lead));
    uint8_t *other = overlaid(c, aligned(c->lead - less));
    if (memcmp(same, c->args[c->y], c->out))
        fail_msg("%s: %zu bytes over %zu, lead %lld", c->name, c->out, c->in, (long long)c->lead);
    bool differs = memcmp(other, c->args[c->y], c->out) != 0;
    free(same);
    free(other);
    return differs;
}

/* ---- windows ---- */

typedef struct Tables {
    int8_t w[256 * 1024];
    int32_t bias[TABLE], mul[TABLE], shift[TABLE];
    float scale[TABLE];
    uint8_t x[64 * 1024], y[256 * 1024], scratch[256 * 1024];
} Tables;

static Tables *tables(void) {
    Tables *t = calloc(1, sizeof *t);
    for (size_t i = 0; i < sizeof t->w; i++)
        t->w[i] = (int8_t)between(-127, 127);
    for (size_t i = 0; i < sizeof t->x; i++)
        t->x[i] = (uint8_t)random_bits();
    for (size_t i = 0; i < TABLE; i++) {
        t->bias[i] = (int32_t)between(-9999, 9999);
        t->mul[i] = (int32_t)between(1 << 23, (1 << 24) - 1);
        t->shift[i] = (int32_t)between(-36, -30);
        t->scale[i] = (float)uniform(1e-4, 1e-2);
    }
    return t;
}

static int32_t up_to(int32_t n) {
    return (int32_t)between(1, n);
}

/* Any window with at least one position; pads may be larger than the kernel. */
static Spatial random_spatial(bool same_channels) {
    Spatial s = {.n = up_to(3),
                 .ic = up_to(CHANNELS),
                 .oc = up_to(CHANNELS),
                 .kh = up_to(4),
                 .kw = up_to(4),
                 .sh = up_to(3),
                 .sw = up_to(3),
                 .dh = 1,
                 .dw = 1};
    if (random_bits() % 4 == 0)
        s.dh = up_to(3), s.dw = up_to(3);
    if (random_bits() % 3 == 0)
        s.kh = s.kw = s.sh = s.sw = 1;
    s.pt = random_bits() % 3 ? (s.kh - 1) / 2 : up_to(6);
    s.pl = random_bits() % 3 ? (s.kw - 1) / 2 : up_to(6);
    s.ih = up_to(9), s.iw = up_to(9);
    s.oh = (s.ih + 2 * s.pt - (s.kh - 1) * s.dh - 1) / s.sh + 1;
    s.ow = (s.iw + 2 * s.pl - (s.kw - 1) * s.dw - 1) / s.sw + 1;
    if (same_channels)
        s.oc = s.ic;
    return s.oh < 1 || s.ow < 1 || s.ih + 2 * s.pt < (s.kh - 1) * s.dh + 1 ||
                   s.iw + 2 * s.pl < (s.kw - 1) * s.dw + 1
               ? random_spatial(same_channels)
               : s;
}

static Case window_case(const Spatial *s, Tables *t, ElemType y) {
    size_t out = (size_t)s->n * (size_t)s->oh * (size_t)s->ow * (size_t)s->oc;
    Case c = {.in = (size_t)s->n * (size_t)s->ih * (size_t)s->iw * (size_t)s->ic,
              .out = out * (size_t)elem_bits(y) / 8};
    c.args[0] = t->x;
    return c;
}

/* x, weights, bias, tables, y, scratch; `pads`: float results also take the parameters of x. */
static void set_mac_args(Case *c, Tables *t, ElemType y, bool pads) {
    int n = 1;
    c->args[n++] = t->w;
    c->args[n++] = t->bias;
    c->args[n++] = y == ELEM_FLOAT ? (void *)t->scale : t->mul;
    c->args[n++] = y == ELEM_FLOAT ? (void *)t->scale : t->shift;
    for (int i = 0; y == ELEM_FLOAT && i < 1 + pads; i++)
        c->args[n++] = NULL;
    c->y = n;
    c->args[n++] = t->y;
    c->args[n++] = t->scratch;
}

static void conv_over_its_operand(void **state) {
    (void)state;
    Tables *t = tables();
    int differs[2] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        Spatial s = random_spatial(false);
        bool rows = s.dh == 1 && s.dw == 1 && s.kh > 1 && random_bits() % 2;
        ElemType y = random_bits() % 4 ? ELEM_INT8 : ELEM_FLOAT;
        int32_t segments = rows ? s.kh : 1, k = s.ic * s.kw * (rows ? 1 : s.kh);
        qk_conv2d_nhwc_q_params p = {
            WINDOW_PARAMS(&s),    .ic = s.ic, .oc = s.oc, .group = 1, .segments = segments,
            .steps = (k + 3) / 4, .xz = 3,    .yz = -2,   .lo = -128, .hi = 127};
        int32_t row = 2 * (((s.ow - 1) * s.sw + s.kw) * s.ic + 15);
        p.col_bytes = 32 + (rows ? s.kh * ((row + 15) / 16 * 16) : up_to(20) * 8 * p.steps);
        Case c = window_case(&s, t, y);
        c.name = y == ELEM_INT8 ? "qk_conv2d_nhwc_q_s8_s8_s8" : "qk_conv2d_nhwc_q_u8_s8_f32";
        c.params = &p;
        set_mac_args(&c, t, y, true);
        ElemType x = y == ELEM_INT8 ? ELEM_INT8 : ELEM_UINT8;
        c.lead = rows ? lead_kept_rows(&s, x, y) : lead_window(&s, x, y, 0);
        differs[rows] += check(&c, (int64_t)s.iw * s.ic);
    }
    assert_in_range(differs[0], ROUNDS / 20, ROUNDS);
    assert_in_range(differs[1], ROUNDS / 20, ROUNDS);
    free(t);
}

static void depthwise_over_its_operand(void **state) {
    (void)state;
    Tables *t = tables();
    int differs = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Spatial s = random_spatial(true);
        ElemType y = random_bits() % 4 ? ELEM_UINT8 : ELEM_FLOAT;
        qk_depthwise_nhwc_q_params p = {WINDOW_PARAMS(&s), .c = s.ic, .xz = 3,
                                        .yz = 100,         .lo = 0,   .hi = 255};
        Case c = window_case(&s, t, y);
        c.name = y == ELEM_UINT8 ? "qk_depthwise_nhwc_q_u8_s8_u8" : "qk_depthwise_nhwc_q_u8_s8_f32";
        c.params = &p;
        set_mac_args(&c, t, y, true);
        c.lead = lead_window(&s, ELEM_UINT8, y, 4);
        differs += check(&c, 5 * (int64_t)s.iw * s.ic);
    }
    assert_in_range(differs, ROUNDS / 20, ROUNDS);
    free(t);
}

static void pools_over_their_operand(void **state) {
    (void)state;
    Tables *t = tables();
    int differs[2] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        Spatial s = random_spatial(true);
        bool average = random_bits() % 2;
        qk_maxpool2d_nhwc_params p = {WINDOW_PARAMS(&s), .c = s.ic};
        qk_avgpool2d_nhwc_q_params q = {WINDOW_PARAMS(&s), .c = s.ic,    .lo = 0, .hi = 255,
                                        .shift = 20,       .m = 1 << 20, .xz = 3, .yz = 3};
        Case c = window_case(&s, t, ELEM_UINT8);
        c.name = average ? "qk_avgpool2d_nhwc_q_u8" : "qk_maxpool2d_nhwc_u8";
        c.params = average ? (const void *)&q : &p;
        c.y = 1;
        c.args[1] = t->y;
        c.args[2] = t->scratch;
        c.lead = lead_window(&s, ELEM_UINT8, ELEM_UINT8, !average);
        differs[average] += check(&c, 2 * (int64_t)s.iw * s.ic);
    }
    assert_in_range(differs[0], ROUNDS / 20, ROUNDS);
    assert_in_range(differs[1], ROUNDS / 20, ROUNDS);
    free(t);
}

/* Floats of whole planes: each window is read before its result is written, or a row of results is
 * begun before. */
static void planes_over_their_operand(void **state) {
    (void)state;
    static float w[64 * 16], bias[64];
    Tables *t = tables();
    int differs[4] = {0};
    for (size_t i = 0; i < COUNT(w); i++)
        w[i] = (float)uniform(-1, 1);
    for (size_t i = 0; i < sizeof t->x / sizeof(float); i++)
        ((float *)(void *)t->x)[i] = (float)uniform(-2, 2);
    for (int round = 0; round < 4 * ROUNDS; round++) {
        Spatial s = random_spatial(true);
        qk_maxpool2d_params max = {WINDOW_PARAMS(&s), .c = s.ic};
        qk_avgpool2d_f32_params average = {WINDOW_PARAMS(&s), .c = s.ic};
        qk_depthwise_f32_params dw = {WINDOW_PARAMS(&s), .ic = s.ic, .oc = s.ic, .has_bias = 1};
        qk_lrn_f32_params lrn = {s.n, s.ic, s.ih * s.iw, up_to(7), 1e-2f, 0.75f, 1.0f};
        Case c = window_case(&s, t, ELEM_FLOAT);
        c.in *= 4;
        c.args[1] = t->y;
        c.y = 1;
        c.lead = lead_planes(&s, ELEM_FLOAT, ELEM_FLOAT, 0);
        int kind = round % 4;
        if (kind == 0)
            c.name = "qk_maxpool2d_f32", c.params = &max;
        if (kind == 1)
            c.name = "qk_avgpool2d_f32", c.params = &average;
        if (kind == 2) {
            c.name = "qk_depthwise_f32", c.params = &dw;
            c.args[1] = w, c.args[2] = bias, c.args[3] = t->y;
            c.y = 3;
            c.lead = lead_planes(&s, ELEM_FLOAT, ELEM_FLOAT, s.ow);
        }
        if (kind == 3) {
            Spatial of = {.n = s.n,
                          .ic = 1,
                          .ih = s.ic,
                          .iw = lrn.inner,
                          .oc = 1,
                          .oh = s.ic,
                          .ow = lrn.inner,
                          .kh = lrn.size,
                          .kw = 1,
                          .sh = 1,
                          .sw = 1,
                          .dh = 1,
                          .dw = 1,
                          .pt = (lrn.size - 1) / 2};
            c.name = "qk_lrn_f32", c.params = &lrn;
            c.out = c.in;
            c.lead = lead_window(&of, ELEM_FLOAT, ELEM_FLOAT, 0);
        }
        if (c.in <= sizeof t->x)
            differs[kind] += check(&c, 4 * (int64_t)s.iw);
    }
    for (int kind = 0; kind < 4; kind++)
        assert_in_range(differs[kind], ROUNDS / 20, ROUNDS);
    free(t);
}

/* Floats with channels last: pools begin with results that they then change, a depthwise Conv makes
 * eight at a time, and so does one of few channels. */
static void floats_last_over_their_operand(void **state) {
    (void)state;
    static float w[64 * 16 * 64], bias[64];
    Tables *t = tables();
    int differs[4] = {0};
    for (size_t i = 0; i < COUNT(w); i++)
        w[i] = (float)uniform(-1, 1);
    for (size_t i = 0; i < sizeof t->x / sizeof(float); i++)
        ((float *)(void *)t->x)[i] = (float)uniform(-2, 2);
    for (int round = 0; round < 4 * ROUNDS; round++) {
        int kind = round % 4;
        Spatial s = random_spatial(kind < 3);
        while (kind == 3 && s.dw != 1)
            s = random_spatial(kind < 3);
        qk_maxpool2d_nhwc_params max = {WINDOW_PARAMS(&s), .c = s.ic};
        qk_avgpool2d_nhwc_f32_params average = {WINDOW_PARAMS(&s), .c = s.ic};
        qk_depthwise_nhwc_f32_params dw = {WINDOW_PARAMS(&s), .c = s.ic, .clamped = round % 2,
                                           .lo = -1, .hi = 2};
        qk_conv2d_few_nhwc_f32_params few = {WINDOW_PARAMS(&s), .ic = s.ic, .oc = s.oc};
        Case c = window_case(&s, t, ELEM_FLOAT);
        c.in *= 4;
        c.args[1] = t->y;
        c.y = 1;
        c.lead = lead_window(&s, ELEM_FLOAT, ELEM_FLOAT, kind >= 2 ? 8 : 1);
        if (kind == 0)
            c.name = "qk_maxpool2d_nhwc_f32", c.params = &max;
        if (kind == 1)
            c.name = "qk_avgpool2d_nhwc_f32", c.params = &average;
        if (kind == 2)
            c.name = "qk_depthwise_nhwc_f32", c.params = &dw;
        if (kind == 3)
            c.name = "qk_conv2d_few_nhwc_f32", c.params = &few;
        if (kind >= 2) {
            c.args[1] = w, c.args[2] = bias, c.args[3] = t->y;
            c.y = 3;
        }
        if (c.in <= sizeof t->x)
            differs[kind] += check(&c, 4 * (kind >= 2 ? 9 : 2) * (int64_t)s.iw * s.ic);
    }
    for (int kind = 0; kind < 4; kind++)
        assert_in_range(differs[kind], ROUNDS / 20, ROUNDS);
    free(t);
}

/* ---- rows and elements ---- */

static void matmul_over_its_operand(void **state) {
    (void)state;
    Tables *t = tables();
    int differs = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ElemType y = random_bits() % 4 ? ELEM_INT8 : ELEM_FLOAT;
        qk_matmul_packed_q_params p = {
            .m = up_to(30), .k = up_to(60), .n = up_to(CHANNELS), .yz = -2, .lo = -128, .hi = 127};
        p.steps = (p.k + 3) / 4;
        p.col_bytes = 2 * up_to(20) * 4 * p.steps;
        Case c = {.in = (size_t)p.m * (size_t)p.k, .params = &p, .args = {t->x}};
        c.out = (size_t)p.m * (size_t)p.n * (size_t)elem_bits(y) / 8;
        c.name = y == ELEM_INT8 ? "qk_matmul_packed_q_s8_s8_s8" : "qk_matmul_packed_q_s8_s8_f32";
        set_mac_args(&c, t, y, false);
        c.lead = lead_steps(p.m, p.k, (int64_t)p.n * elem_bits(y) / 8);
        differs += check(&c, p.k * 8);
    }
    assert_in_range(differs, ROUNDS / 20, ROUNDS);
    free(t);
}

static void elements_over_their_operand(void **state) {
    (void)state;
    Tables *t = tables();
    static float numbers[500];
    int differs[2] = {0};
    for (size_t i = 0; i < 500; i++)
        numbers[i] = (float)uniform(-3, 3);
    for (int round = 0; round < ROUNDS; round++) {
        int32_t n = up_to(400), zp = 3;
        float scale = 0.02f;
        bool widen = random_bits() % 2;
        qk_quantize_params q = {1, 1, n, 1, 0, 0, 0, -128, 127, -128};
        qk_dequantize_params d = {1, 1, n, 1, 0, 0, 0, 0, 0};
        int64_t in = widen ? 1 : 4, out = widen ? 4 : 1;
        Case c = {.name = widen ? "qk_dequantize_s8" : "qk_quantize_s8",
                  .params = widen ? (const void *)&d : &q,
                  .args = {widen ? (void *)t->x : numbers, &scale, &zp, t->y},
                  .y = 3,
                  .in = (size_t)(n * in),
                  .out = (size_t)(n * out),
                  .lead = lead_steps(n, in, out)};
        differs[widen] += check(&c, 32);
    }
    assert_in_range(differs[0], ROUNDS / 20, ROUNDS);
    assert_in_range(differs[1], ROUNDS / 20, ROUNDS);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_over_its_operand),
        cmocka_unit_test(depthwise_over_its_operand),
        cmocka_unit_test(pools_over_their_operand),
        cmocka_unit_test(planes_over_their_operand),
        cmocka_unit_test(floats_last_over_their_operand),
        cmocka_unit_test(matmul_over_its_operand),
        cmocka_unit_test(elements_over_their_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
