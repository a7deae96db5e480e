/* What SHA-256 does to whole blocks of 64 bytes, with and without instructions for it. Private to
 * support and its tests. */
#ifndef QXC_SUPPORT_SHA256_BLOCKS_H
#define QXC_SUPPORT_SHA256_BLOCKS_H

#include "support/sha256.h"

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
extern const uint32_t sha256_constants[64];

/* Takes n blocks into the state. */
void sha256_blocks_plain(uint32_t state[8], const uint8_t *p, size_t n);
/* The same several times as fast, on x86 processors with SHA extensions; NULL on others. */
Sha256Blocks *sha256_blocks_x86(void);

#endif
