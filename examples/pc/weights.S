/* The weights as an object file, for compilers without C23's #embed; -Wa,-I names their folder. */
    .section .rodata
    .global digits_weights
    .balign 16
digits_weights:
    .incbin "digits.weights.bin"
    .section .note.GNU-stack,"",%progbits
