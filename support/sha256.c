#include "support/sha256_blocks.h"

enum { BLOCK = SHA256_BLOCK, ROUNDS = 64 };

const uint32_t sha256_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The same of the square roots of the first 8. */
static const uint32_t first_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t load_big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(uint32_t w[ROUNDS], const uint8_t block[BLOCK]) {
    for (int i = 0; i < 16; i++)
        w[i] = load_big_endian(block + 4 * i);
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        uint32_t s0 = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3;
        uint32_t s1 = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* Eight rounds bring the names of the state back to where they were; nothing is moved. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
    do {                                                                                           \
        uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +   \
                     sha256_constants[i] + w[i];                                                   \
        d += t;                                                                                    \
        h = t + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));    \
    } while (0)

static void compress_block(uint32_t state[8], const uint8_t block[BLOCK]) {
    uint32_t w[ROUNDS];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(w, block);
    for (int i = 0; i < ROUNDS; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += sum[i];
}

void sha256_blocks_plain(uint32_t state[8], const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        compress_block(state, p + i * BLOCK);
}

Sha256 sha256_begin(void) {
    Sha256Blocks *fast = sha256_blocks_x86();
    Sha256 h = {.blocks = fast ? fast : sha256_blocks_plain};
    memcpy(h.state, first_state, sizeof h.state);
    return h;
}

void sha256_more(Sha256 *h, const void *data, size_t n) {
    const uint8_t *p = data;
    size_t have = h->bytes % BLOCK;
    h->bytes += n;
    if (have) {
        size_t take = n < BLOCK - have ? n : BLOCK - have;
        memcpy(h->rest + have, p, take);
        if (have + take < BLOCK)
            return;
        h->blocks(h->state, h->rest, 1);
        p += take;
        n -= take;
    }
    h->blocks(h->state, p, n / BLOCK);
    if (n % BLOCK)
        memcpy(h->rest, p + n / BLOCK * BLOCK, n % BLOCK);
}

void sha256_end(const Sha256 *all, char out[SHA256_HEX + 1]) {
    Sha256 h = *all;
    size_t left = h.bytes % BLOCK;
    uint8_t last[2 * BLOCK] = {0}; /* what is left, a 1 bit, zeros, the length in bits */
    memcpy(last, h.rest, left);
    last[left] = 0x80;
    size_t n = left < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    uint64_t bits = h.bytes * 8;
    for (int i = 0; i < 8; i++)
        last[n - 1 - i] = (uint8_t)(bits >> (8 * i));
    h.blocks(h.state, last, n / BLOCK);
    for (int i = 0; i < SHA256_HEX; i++)
        out[i] = "0123456789abcdef"[h.state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[SHA256_HEX] = 0;
}

void sha256_hex(Str data, char out[SHA256_HEX + 1]) {
    Sha256 h = sha256_begin();
    sha256_more(&h, data.s, data.n);
    sha256_end(&h, out);
}
