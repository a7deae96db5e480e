/* Conv and ConvTranspose of three spatial dimensions as such of two: each position along the first
 * one is an image of its own, whose channels are those of all the planes that its window takes in,
 * channel by channel: [n, c, in, plane] becomes [n, out, c, kernel, plane]. Weights lie like that
 * as they are. Buffers belong to the program; what is too large is refused, as -1. */
#ifndef QXC_IR_OPS_VOLUME_H
#define QXC_IR_OPS_VOLUME_H

#include "ir/ops/bind.h"

/* Output o takes in input o * stride - pad + k * dilation for each k below `kernel`; `spread`
 * (ConvTranspose): input i reaches output i * stride - pad + k * dilation. */
typedef struct Volume {
    int32_t n, c, in, out, kernel;
    int32_t plane, oc, out_plane; /* elements of planes, and channels, of the result */
    int64_t stride, dilation, pad;
    bool spread;
} Volume;

/* Of Conv's window over x, whose last two spatial dimensions `s` describes: it describes the images
 * afterwards. */
Volume volume_of(const Window *w, Type x, Type y, Spatial *s);
/* The images of the elements `e` in buffer x; where a window reaches over the edge, `zero`. Without
 * a volume (NULL), as below, x itself. */
int volume_images(Binder *b, const Node *n, const Volume *v, int x, ElemType e, int64_t zero);
/* A buffer for the result y as images, and its elements put into y as ONNX has them. */
int volume_result(Binder *b, const Volume *v, int y, ElemType e);
bool volume_store(Binder *b, const Node *n, const Volume *v, int images, int y, ElemType e);

#endif
