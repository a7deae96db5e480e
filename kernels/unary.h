//! kernel unary
//! template O=abs,ceil,cos,erf,exp,floor,gelu,gelu_tanh,hardswish,log,mish,neg,reciprocal,rint,sigmoid,sign,sin,softplus,softsign,sqrt,tanh T=f32
//! also f64
//! math if O!=hardswish,neg,reciprocal,sign
// y = op(x) elementwise (the ONNX operators of these names; rint is Round). y may be x.
typedef struct {
    int64_t n;
} qk_unary_params;

static $T $NAME_one($T x) {
    //! if O=abs
    return fabsf(x);
    //! end
    //! if O=ceil
    return ceilf(x);
    //! end
    //! if O=cos
    return cosf(x);
    //! end
    //! if O=erf
    return erff(x);
    //! end
    //! if O=exp
    return expf(x);
    //! end
    //! if O=floor
    return floorf(x);
    //! end
    //! if O=gelu
    // x * Phi(x), Phi the normal distribution
    return 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
    //! end
    //! if O=gelu_tanh
    return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    //! end
    //! if O=hardswish
    float v = x / 6.0f + 0.5f;
    return x * (v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v);
    //! end
    //! if O=log
    return logf(x);
    //! end
    //! if O=mish
    return x * tanhf((x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))));
    //! end
    //! if O=neg
    return -x;
    //! end
    //! if O=reciprocal
    return 1.0f / x;
    //! end
    //! if O=rint
    // ties to even, whatever the rounding mode
    float low = floorf(x), rest = x - low;
    float up = rest > 0.5f || (rest == 0.5f && 2.0f * floorf(low / 2.0f) != low) ? 1.0f : 0.0f;
    return copysignf(low + up, x);
    //! end
    //! if O=sigmoid
    // without overflow on either side
    float e = expf(x < 0.0f ? x : -x);
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
    //! end
    //! if O=sign
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; // a NaN stays one
    //! end
    //! if O=sin
    return sinf(x);
    //! end
    //! if O=softplus
    return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
    //! end
    //! if O=softsign
    return x / (1.0f + fabsf(x));
    //! end
    //! if O=sqrt
    return sqrtf(x);
    //! end
    //! if O=tanh
    return tanhf(x);
    //! end
}

static void $NAME(const qk_unary_params *p, const $T *x, $T *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = $NAME_one(x[i]);
}
