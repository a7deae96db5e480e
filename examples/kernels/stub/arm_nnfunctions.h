/* Stands in for CMSIS-NN's header where the library is not at hand: the same functions for the two
 * layers that board.c calls, as plain loops. Builds for a board take the library's own header. */
#ifndef STUB_ARM_NNFUNCTIONS_H
#define STUB_ARM_NNFUNCTIONS_H

#include <stdint.h>

typedef enum { ARM_CMSIS_NN_SUCCESS = 0, ARM_CMSIS_NN_ARG_ERROR = -1 } arm_cmsis_nn_status;
typedef struct {
    void *buf;
    int32_t size;
} cmsis_nn_context;
typedef struct {
    int32_t n, h, w, c;
} cmsis_nn_dims;
typedef struct {
    int32_t w, h;
} cmsis_nn_tile;
typedef struct {
    int32_t min, max;
} cmsis_nn_activation;
typedef struct {
    int32_t *multiplier, *shift;
} cmsis_nn_per_channel_quant_params;
typedef struct {
    int32_t input_offset, output_offset;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct {
    int32_t input_offset, output_offset, ch_mult;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;

/* sum * multiplier / 2^31 * 2^shift, rounded once and half up. */
static int32_t stub_requantize(int32_t sum, int32_t multiplier, int32_t shift) {
    int64_t product = (int64_t)sum * multiplier, half = (int64_t)1 << (30 - shift);
    return (int32_t)((product + half) >> (31 - shift));
}

/* One output channel at (oy, ox): `channels` inputs from `first` on, weights `step` apart. */
static int8_t stub_position(const cmsis_nn_conv_params *p, const cmsis_nn_dims *in, const int8_t *x,
                            int32_t first, int32_t channels, const cmsis_nn_dims *filter,
                            const int8_t *w, int32_t step, int32_t sum, int32_t multiplier,
                            int32_t shift, int32_t oy, int32_t ox) {
    int32_t ky, kx, c, y;
    for (ky = 0; ky < filter->h; ky++)
        for (kx = 0; kx < filter->w; kx++) {
            int32_t iy = oy * p->stride.h - p->padding.h + ky * p->dilation.h;
            int32_t ix = ox * p->stride.w - p->padding.w + kx * p->dilation.w;
            for (c = 0; c < channels; c++, w += step)
                if (iy >= 0 && iy < in->h && ix >= 0 && ix < in->w)
                    sum += (x[(iy * in->w + ix) * in->c + first + c] + p->input_offset) * *w;
        }
    y = stub_requantize(sum, multiplier, shift) + p->output_offset;
    y = y < p->activation.min ? p->activation.min : y;
    return (int8_t)(y > p->activation.max ? p->activation.max : y);
}

static int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *p,
                                                       const cmsis_nn_dims *in,
                                                       const cmsis_nn_dims *filter,
                                                       const cmsis_nn_dims *out) {
    (void)p, (void)out;
    return 4 * filter->h * filter->w * in->c;
}

static arm_cmsis_nn_status
arm_convolve_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *p,
                        const cmsis_nn_per_channel_quant_params *q, const cmsis_nn_dims *in,
                        const int8_t *x, const cmsis_nn_dims *filter, const int8_t *w,
                        const cmsis_nn_dims *bias_dims, const int32_t *bias,
                        const cmsis_nn_dims *out, int8_t *y) {
    int32_t n, i, c, one = filter->h * filter->w * in->c;
    (void)ctx, (void)bias_dims;
    for (n = 0; n < out->n; n++, x += in->h * in->w * in->c)
        for (i = 0; i < out->h * out->w; i++)
            for (c = 0; c < out->c; c++)
                *y++ = stub_position(p, in, x, 0, in->c, filter, w + c * one, 1, bias[c],
                                     q->multiplier[c], q->shift[c], i / out->w, i % out->w);
    return ARM_CMSIS_NN_SUCCESS;
}

static int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *p,
                                                             const cmsis_nn_dims *in,
                                                             const cmsis_nn_dims *filter,
                                                             const cmsis_nn_dims *out) {
    (void)p, (void)in;
    return 2 * filter->h * filter->w * out->c;
}

static arm_cmsis_nn_status
arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *p,
                              const cmsis_nn_per_channel_quant_params *q, const cmsis_nn_dims *in,
                              const int8_t *x, const cmsis_nn_dims *filter, const int8_t *w,
                              const cmsis_nn_dims *bias_dims, const int32_t *bias,
                              const cmsis_nn_dims *out, int8_t *y) {
    cmsis_nn_conv_params conv = {p->input_offset, p->output_offset, p->stride,
                                 p->padding,      p->dilation,      p->activation};
    int32_t i, c;
    (void)ctx, (void)bias_dims;
    for (i = 0; i < out->h * out->w; i++)
        for (c = 0; c < out->c; c++)
            *y++ = stub_position(&conv, in, x, c, 1, filter, w + c, out->c, bias[c],
                                 q->multiplier[c], q->shift[c], i / out->w, i % out->w);
    return ARM_CMSIS_NN_SUCCESS;
}

#endif
