//! chunk column
//! uses simd
/* What unfolded activations are kept as: 16 bits where the micro-kernel multiplies pairs of them,
 * else 8. Values are 0 to 255; signed activations are raised by 128. */
#if defined(QK_AVX2) || defined(QK_SSE2)
typedef int16_t qk_column;
#else
typedef uint8_t qk_column;
#endif
/* How much of a row of them may lie on the stack. */
#if defined(__SSE2__)
enum { QK_PART = 2048 };
#else
enum { QK_PART = 64 };
#endif
