/* What the emitted C calls for a layer, spelled with CMSIS-NN. The header of the model declares
 * these functions; with several models, that of any of them will do. */
#include "arm_nnfunctions.h"
#include "digits.h"

static cmsis_nn_dims input_of(const qxc_conv_params *p) {
    cmsis_nn_dims d = {p->n, p->ih, p->iw, p->ic};
    return d;
}

static cmsis_nn_dims output_of(const qxc_conv_params *p) {
    cmsis_nn_dims d = {p->n, p->oh, p->ow, p->oc};
    return d;
}

int board_conv(const qxc_conv_params *p, const int8_t *x, const int8_t *w, const int32_t *bias,
               const int32_t *mul, const int32_t *shift, int8_t *y, uint8_t *scratch,
               int32_t scratch_bytes) {
    cmsis_nn_context ctx = {scratch, scratch_bytes};
    cmsis_nn_conv_params conv = {-p->xz,         p->yz,          {p->sw, p->sh},
                                 {p->pl, p->pt}, {p->dw, p->dh}, {p->lo, p->hi}};
    cmsis_nn_per_channel_quant_params quant = {(int32_t *)mul, (int32_t *)shift};
    cmsis_nn_dims in = input_of(p), out = output_of(p), one = {1, 1, 1, p->oc};
    cmsis_nn_dims filter = {p->oc, p->kh, p->kw, p->ic};
    if (arm_convolve_wrapper_s8_get_buffer_size(&conv, &in, &filter, &out) > scratch_bytes)
        return 1; /* state more scratch in the file of kernels */
    return arm_convolve_wrapper_s8(&ctx, &conv, &quant, &in, x, &filter, w, &one, bias, &out, y) !=
           ARM_CMSIS_NN_SUCCESS;
}

int board_depthwise(const qxc_conv_params *p, const int8_t *x, const int8_t *w, const int32_t *bias,
                    const int32_t *mul, const int32_t *shift, int8_t *y, uint8_t *scratch,
                    int32_t scratch_bytes) {
    cmsis_nn_context ctx = {scratch, scratch_bytes};
    cmsis_nn_dw_conv_params conv = {
        -p->xz, p->yz, 1, {p->sw, p->sh}, {p->pl, p->pt}, {p->dw, p->dh}, {p->lo, p->hi}};
    cmsis_nn_per_channel_quant_params quant = {(int32_t *)mul, (int32_t *)shift};
    cmsis_nn_dims in = input_of(p), out = output_of(p), one = {1, 1, 1, p->oc};
    cmsis_nn_dims filter = {1, p->kh, p->kw, p->oc};
    if (arm_depthwise_conv_wrapper_s8_get_buffer_size(&conv, &in, &filter, &out) > scratch_bytes)
        return 1;
    return arm_depthwise_conv_wrapper_s8(&ctx, &conv, &quant, &in, x, &filter, w, &one, bias, &out,
                                         y) != ARM_CMSIS_NN_SUCCESS;
}
