//! kernel binary
//! template O=add,sub,mul,div,max,min,pow,prelu,saturating,mod,fmod,and,or,xor,left,right T=f32,s8,u8,s16,u16,s32,u32,s64,u64
//! skip O=and,or,xor,left,right T=f32
//! skip O=pow,prelu T!=f32
//! skip O=saturating T!=s32
//! also f64
//! math if O=pow,mod,fmod T=f32
//! uses walk row_at
// y = a op b elementwise (ONNX Add, Sub, Mul, Div, Max, Min, Pow, PRelu; Mod with the sign of b, of a for
// fmod; BitwiseAnd, Or, Xor; BitShift left and right, where all bits go 0 or the sign); y is contiguous of shape
// dim[0..rank), as and bs are the strides of a and b in elements, 0 where they are broadcast. y may be
// a or b where that has y's shape and is contiguous. Integers are modulo their range; x / 0 is 0; the
// sum of accumulators and biases (saturating) stops at the ends. Max and Min are NaN where an operand
// is.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
} qk_binary_params;

static $T $NAME_one($T a, $T b) {
    //! if O=pow
    return powf(a, b);
    //! end
    //! if O=prelu
    return a < 0.0f ? a * b : a;
    //! end
    //! if O=max T=f32
    return a > b || a != a ? a : b;
    //! end
    //! if O=min T=f32
    return a < b || a != a ? a : b;
    //! end
    //! if O=max T!=f32
    return a > b ? a : b;
    //! end
    //! if O=min T!=f32
    return a < b ? a : b;
    //! end
    //! if O=saturating
    int64_t sum = (int64_t)a + b;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
    //! end
    //! if O=add T=f32
    return a + b;
    //! end
    //! if O=sub T=f32
    return a - b;
    //! end
    //! if O=mul T=f32
    return a * b;
    //! end
    //! if O=div T=f32
    return a / b;
    //! end
    //! if O=add T!=f32
    return ($T)((uint64_t)a + (uint64_t)b);
    //! end
    //! if O=sub T!=f32
    return ($T)((uint64_t)a - (uint64_t)b);
    //! end
    //! if O=mul T!=f32
    return ($T)((uint64_t)a * (uint64_t)b);
    //! end
    //! if O=fmod T=f32
    return fmodf(a, b);
    //! end
    //! if O=mod T=f32
    float rest = fmodf(a, b);
    return rest == 0.0f ? copysignf(0.0f, b) : (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
    //! end
    //! if O=mod,fmod T=s8,s16,s32,s64
    $T rest = ($T)(b == 0 || b == -1 ? 0 : a % b);
    //! end
    //! if O=fmod T=s8,s16,s32,s64
    return rest;
    //! end
    //! if O=mod T=s8,s16,s32,s64
    return ($T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    //! end
    //! if O=mod,fmod T=u8,u16,u32,u64
    return ($T)(b == 0 ? 0 : a % b);
    //! end
    //! if O=and
    return ($T)(a & b);
    //! end
    //! if O=or
    return ($T)(a | b);
    //! end
    //! if O=xor
    return ($T)(a ^ b);
    //! end
    //! if O=left,right T=s8,s16,s32,s64
    int inside = b >= 0 && b < 8 * (int)sizeof a;
    //! end
    //! if O=left,right T=u8,u16,u32,u64
    int inside = b < 8 * sizeof a;
    //! end
    //! if O=left
    return ($T)(inside ? (uint64_t)a << b : 0);
    //! end
    //! if O=right T=u8,u16,u32,u64
    return ($T)(inside ? a >> b : 0);
    //! end
    //! if O=right T=s8,s16,s32,s64
    uint64_t bits = a < 0 ? ~(uint64_t)a : (uint64_t)a; /* the sign fills what becomes free */
    bits = inside ? bits >> b : 0;
    return ($T)(a < 0 ? ~bits : bits);
    //! end
    //! if O=div T=s8,s16,s32,s64
    if (b == -1) /* the least number has no opposite */
        return ($T)(0 - (uint64_t)a);
    //! end
    //! if O=div T!=f32
    return ($T)(b == 0 ? 0 : a / b);
    //! end
}

static void $NAME(const qk_binary_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        const $T u0 = inner ? *u : 0, v0 = inner ? *v : 0;
        if (sa == 1 && sb == 1)
            for (i = 0; i < inner; i++)
                y[i] = $NAME_one(u[i], v[i]);
        else if (sa == 1 && sb == 0)
            for (i = 0; i < inner; i++)
                y[i] = $NAME_one(u[i], v0);
        else if (sa == 0 && sb == 1)
            for (i = 0; i < inner; i++)
                y[i] = $NAME_one(u0, v[i]);
        else
            for (i = 0; i < inner; i++)
                y[i] = $NAME_one(u[i * sa], v[i * sb]);
        qk_next_row(index, p->dim, last);
    }
}
