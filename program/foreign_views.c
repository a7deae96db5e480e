/* What functions of others see of kernels that pack their weights: the layout and the multipliers
 * that libraries for microcontrollers have in common. See foreign.h. */
#include <math.h>

#include "program/foreign.h"

/* ---- params ---- */

typedef struct ConvView {
    int32_t n, ih, iw, ic, oh, ow, oc, kh, kw, sh, sw, dh, dw, pt, pl, pb, pr, group;
    int32_t xz, yz, lo, hi;
} ConvView;

typedef struct DenseView {
    int32_t m, k, n, xz, yz, lo, hi;
} DenseView;

#define FIELD(type, name) {#name, KF_I32, offsetof(type, name), 0}
#define CONV_FIELD(name)  FIELD(ConvView, name)
#define DENSE_FIELD(name) FIELD(DenseView, name)

static const KernelField conv_fields[] = {
    CONV_FIELD(n),  CONV_FIELD(ih), CONV_FIELD(iw),    CONV_FIELD(ic), CONV_FIELD(oh),
    CONV_FIELD(ow), CONV_FIELD(oc), CONV_FIELD(kh),    CONV_FIELD(kw), CONV_FIELD(sh),
    CONV_FIELD(sw), CONV_FIELD(dh), CONV_FIELD(dw),    CONV_FIELD(pt), CONV_FIELD(pl),
    CONV_FIELD(pb), CONV_FIELD(pr), CONV_FIELD(group), CONV_FIELD(xz), CONV_FIELD(yz),
    CONV_FIELD(lo), CONV_FIELD(hi),
};
static const KernelField dense_fields[] = {
    DENSE_FIELD(m),  DENSE_FIELD(k),  DENSE_FIELD(n),  DENSE_FIELD(xz),
    DENSE_FIELD(yz), DENSE_FIELD(lo), DENSE_FIELD(hi),
};

static const char conv_source[] =
    "typedef struct {\n"
    "    int32_t n, ih, iw, ic;          /* input [n, ih, iw, ic] */\n"
    "    int32_t oh, ow, oc;             /* output [n, oh, ow, oc] */\n"
    "    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */\n"
    "    int32_t pt, pl, pb, pr;         /* pads at the top, left, bottom and right */\n"
    "    int32_t group;                  /* depthwise: as many as channels */\n"
    "    int32_t xz, yz;                 /* zero points of input (of its padding, too) and output "
    "*/\n"
    "    int32_t lo, hi;                 /* the output is clamped to these */\n"
    "} qxc_conv_params;\n";
static const char dense_source[] = "typedef struct {\n"
                                   "    int32_t m, k, n; /* input [m, k], output [m, n] */\n"
                                   "    int32_t xz, yz;  /* zero points of input and output */\n"
                                   "    int32_t lo, hi;  /* the output is clamped to these */\n"
                                   "} qxc_dense_params;\n";

enum {
    N_CONV = sizeof conv_fields / sizeof *conv_fields,
    N_DENSE = sizeof dense_fields / sizeof *dense_fields
};

static const ForeignView views[] = {
    {"conv2d_nhwc_q", "qxc_conv_params", conv_source, sizeof(ConvView), conv_fields, N_CONV,
     "weights [oc][kh][kw][ic / group]", false},
    {"depthwise_nhwc_q", "qxc_conv_params", conv_source, sizeof(ConvView), conv_fields, N_CONV,
     "weights [kh][kw][oc]", true},
    {"matmul_packed_q", "qxc_dense_params", dense_source, sizeof(DenseView), dense_fields, N_DENSE,
     "weights [n][k]", false},
};

const KernelArg foreign_view_args[VIEW_CONSTS] = {
    {"w", "int8_t", sizeof(int8_t), true},
    {"bias", "int32_t", sizeof(int32_t), true},
    {"mul", "int32_t", sizeof(int32_t), true},
    {"shift", "int32_t", sizeof(int32_t), true},
};

const ForeignView *foreign_view(const char *kernel) {
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (strcmp(views[i].kernel, kernel) == 0)
            return &views[i];
    return NULL;
}

static int32_t pad_behind(int32_t out, int32_t stride, int32_t taps, int32_t dilation, int32_t pad,
                          int32_t in) {
    int32_t need = (out - 1) * stride + (taps - 1) * dilation + 1 - pad - in;
    return need > 0 ? need : 0;
}

/* What the kernel's params do not say under the view's names. */
static void complete_conv(ConvView *v, const Call *c) {
    const int32_t *channels = kernel_param(c->kernel, c->params, "c"); /* depthwise */
    if (channels)
        v->ic = v->oc = v->group = *channels;
    v->pb = pad_behind(v->oh, v->sh, v->kh, v->dh, v->pt, v->ih);
    v->pr = pad_behind(v->ow, v->sw, v->kw, v->dw, v->pl, v->iw);
    v->xz = c->plain->xz;
}

void *foreign_view_params(Arena *a, const ForeignView *v, const Call *c) {
    char *params = arena_alloc(a, v->params_size);
    memset(params, 0, v->params_size);
    for (size_t i = 0; i < v->n_fields; i++) {
        const void *from = kernel_param(c->kernel, c->params, v->fields[i].name);
        if (from)
            memcpy(params + v->fields[i].offset, from, sizeof(int32_t));
    }
    if (v->fields == conv_fields)
        complete_conv((ConvView *)(void *)params, c);
    else
        ((DenseView *)(void *)params)->xz = c->plain->xz;
    return params;
}

/* ---- constants ---- */

static int add_const(Arena *a, Program *p, ElemType e, size_t count, const void *data,
                     const char *comment) {
    Buffer b = {.kind = BUF_CONST,
                .elem = e,
                .count = count,
                .bytes = elem_bytes(e, count),
                .alias = -1,
                .port = -1,
                .data = data,
                .first = -1,
                .last = -1,
                .comment = comment};
    ARENA_PUSH(a, p->buffers, p->n_buffers, p->cap_buffers, b);
    return (int)p->n_buffers - 1;
}

static const int8_t *taps_first(Arena *a, const Plain *plain) {
    size_t columns = (size_t)plain->columns, k = (size_t)plain->k;
    int8_t *out = NEW_ARRAY(a, int8_t, columns *k);
    for (size_t c = 0; c < columns; c++)
        for (size_t i = 0; i < k; i++)
            out[i * columns + c] = plain->weights[c * k + i];
    return out;
}

/* m = mul / 2^31 * 2^shift with 2^30 <= |mul| < 2^31, which is exact: there are at most 31 bits. */
static void q31(double m, int32_t *mul, int32_t *shift) {
    int exponent = 0;
    *mul = (int32_t)ldexp(frexp(m, &exponent), 31);
    *shift = m != 0 ? exponent : 0;
}

void foreign_view_consts(Arena *a, Program *p, const ForeignView *v, const Plain *plain,
                         int buffers[VIEW_CONSTS]) {
    size_t columns = (size_t)plain->columns, k = (size_t)plain->k;
    int32_t *mul = NEW_ARRAY(a, int32_t, columns), *shift = NEW_ARRAY(a, int32_t, columns);
    const int8_t *w = v->taps_first ? taps_first(a, plain) : plain->weights;
    const int32_t *bias = plain->bias ? plain->bias : NEW_ARRAY(a, int32_t, columns);
    for (size_t i = 0; i < columns; i++) {
        size_t at = plain->per_column ? i : 0;
        double c = plain->mul == plain->shift ? 1 : plain->mul[at];
        q31(ldexp(c, plain->shift[at]), &mul[i], &shift[i]);
    }
    buffers[0] = add_const(a, p, ELEM_INT8, columns * k, w, v->weights);
    buffers[1] = add_const(a, p, ELEM_INT32, columns, bias, "bias");
    buffers[2] = add_const(a, p, ELEM_INT32, columns, mul, "multipliers, over 2^31");
    buffers[3] = add_const(a, p, ELEM_INT32, columns, shift, "powers of two of these");
}
