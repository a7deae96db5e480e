/* SHA-256 against the examples of FIPS 180-4 and hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/sha256_blocks.h"

static void expect(Str data, const char *want) {
    char got[SHA256_HEX + 1];
    sha256_hex(data, got);
    assert_string_equal(got, want);
}

static void test_examples(void **state) {
    (void)state;
    expect(STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(STR_NONE, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Around the ends of blocks, where the padding needs one more. */
static void test_lengths(void **state) {
    (void)state;
    static const struct {
        size_t n;
        const char *want;
    } cases[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {127, "c57e9278af78fa3cab38667bef4ce29d783787a2f731d4e12200270f0c32320a"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
        {1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    char *text = malloc(1000000);
    assert_non_null(text);
    memset(text, 'a', 1000000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect((Str){text, cases[i].n}, cases[i].want);
    free(text);
}

/* With the processor's instructions for it, where it has them, and without. */
static void test_both_ways(void **state) {
    (void)state;
    enum { MOST = 9 };
    Sha256Blocks *fast = sha256_blocks_x86();
    uint8_t bytes[1 + MOST * SHA256_BLOCK];
    uint32_t seed = 1;
    if (!fast)
        skip();
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        Sha256 plain = sha256_begin(), other = plain;
        sha256_blocks_plain(plain.state, bytes + 1, n); /* at an odd address */
        fast(other.state, bytes + 1, n);
        assert_memory_equal(plain.state, other.state, sizeof plain.state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
