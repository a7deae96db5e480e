/* Every floating-point element type as bits: float8, bfloat16 and the others, next to float and
 * double. Rounding is to nearest, ties to even. Bits stand in the low end of a word. */
#ifndef QXC_IR_MINIFLOAT_H
#define QXC_IR_MINIFLOAT_H

#include "ir/type.h"

/* The value of a bit pattern; NaN payloads are not carried over. */
double float_decode(ElemType e, uint64_t bits);
/* The nearest value of the type, NaN as its default NaN. False when the type cannot hold it: a
 * finite number that rounds beyond the largest one, or an infinity or NaN it does not have. */
bool float_encode(ElemType e, double v, uint64_t *bits);
/* The numbers of a type of less than 32 bits. False for E8M0, which has no sign. */
bool float_grid(ElemType e, FloatGrid *out);
bool float_is_nan(ElemType e, uint64_t bits);

#endif
