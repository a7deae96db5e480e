/* SHA-256 (FIPS 180-4) of bytes at hand, or as they come. Never fails. */
#ifndef QXC_SUPPORT_SHA256_H
#define QXC_SUPPORT_SHA256_H

#include <stdint.h>

#include "support/str.h"

enum { SHA256_HEX = 64, SHA256_BLOCK = 64 };

typedef void Sha256Blocks(uint32_t state[8], const uint8_t *p, size_t n);

typedef struct Sha256 {
    Sha256Blocks *blocks; /* what the processor does best */
    uint32_t state[8];
    uint64_t bytes;             /* so far */
    uint8_t rest[SHA256_BLOCK]; /* those that fill no block yet */
} Sha256;

Sha256 sha256_begin(void);
void sha256_more(Sha256 *h, const void *data, size_t n);
/* 64 digits 0-9 a-f and a NUL. More may follow. */
void sha256_end(const Sha256 *h, char out[SHA256_HEX + 1]);

void sha256_hex(Str data, char out[SHA256_HEX + 1]);

#endif
