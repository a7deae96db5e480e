//! kernel unary
//! template O=abs,acos,acosh,asin,asinh,atan,atanh,ceil,cos,cosh,erf,exp,floor,gelu,gelu_tanh,hardswish,log,mish,neg,not,reciprocal,rint,sigmoid,sign,sin,sinh,softplus,softsign,sqrt,tan,tanh T=f32,s8,u8,s16,u16,s32,u32,s64,u64
//! skip O!=abs,neg,not,sign T!=f32
//! skip O=not T=f32
//! also f64
//! math if O!=hardswish,neg,not,reciprocal,sign T=f32
// y = op(x) elementwise (the ONNX operators of these names; rint is Round, not BitwiseNot); integers are
// modulo their range. y may be x.
typedef struct {
    int64_t n;
} qk_unary_params;

static $T $NAME_one($T x) {
    //! if O=abs T=f32
    return fabsf(x);
    //! end
    //! if O=abs T=s8,s16,s32,s64
    return ($T)(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    //! end
    //! if O=abs T=u8,u16,u32,u64
    return x;
    //! end
    //! if O=acos
    return acosf(x);
    //! end
    //! if O=acosh
    return acoshf(x);
    //! end
    //! if O=asin
    return asinf(x);
    //! end
    //! if O=asinh
    return asinhf(x);
    //! end
    //! if O=atan
    return atanf(x);
    //! end
    //! if O=atanh
    return atanhf(x);
    //! end
    //! if O=ceil
    return ceilf(x);
    //! end
    //! if O=cos
    return cosf(x);
    //! end
    //! if O=cosh
    return coshf(x);
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
    //! if O=neg T=f32
    return -x;
    //! end
    //! if O=neg T!=f32
    return ($T)(0 - (uint64_t)x);
    //! end
    //! if O=not
    return ($T)~x;
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
    //! if O=sign T=f32
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; // a NaN stays one
    //! end
    //! if O=sign T=s8,s16,s32,s64
    return ($T)((x > 0) - (x < 0));
    //! end
    //! if O=sign T=u8,u16,u32,u64
    return ($T)(x != 0);
    //! end
    //! if O=sin
    return sinf(x);
    //! end
    //! if O=sinh
    return sinhf(x);
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
    //! if O=tan
    return tanf(x);
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
