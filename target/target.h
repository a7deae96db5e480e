/* What a runtime has, likes and gets wrong: a page of facts, of which everything else asks. Only
 * this folder, and what the command line means, knows targets by name.
 *
 * A page is a text, target/NAME.target or a user's own; docs/targets.md has its words. */
#ifndef QXC_TARGET_TARGET_H
#define QXC_TARGET_TARGET_H

#include "target/fault.h"

/* What can be written for a target. */
typedef enum TargetForm {
    TARGET_FORM_QDQ,
    TARGET_FORM_QOP,
    TARGET_FORM_DYNAMIC,
    TARGET_FORM_WEIGHT_ONLY,
    TARGET_FORM_C,
    N_TARGET_FORMS
} TargetForm;

/* What is taken where nobody says anything else. */
typedef struct TargetType {
    ElemType storage;
    bool sym, channel; /* channel: of weights */
} TargetType;

/* Of which zero points of weights there may be more than one: the kernels' matter. */
typedef enum TargetZeros {
    TARGET_ZEROS_TENSOR, /* one a weight */
    TARGET_ZEROS_CHANNEL,
    TARGET_ZEROS_NONE, /* zero points are 0 */
} TargetZeros;

/* How far one scale reaches. */
typedef enum TargetScales {
    TARGET_SCALES_ANY,
    TARGET_SCALES_CHANNEL, /* activations have one, weights one or one a channel */
    TARGET_SCALES_TENSOR,  /* all have one */
} TargetScales;

typedef struct TargetNames {
    const char **items;
    size_t n, cap;
} TargetNames;

/* When the runtime makes an operator on integers of one between conversions. */
typedef enum TargetRule {
    TARGET_RULE_PRODUCT, /* data and weight dequantized; one scale, or one a channel of weights */
    TARGET_RULE_ALL,     /* all operands and the result 8 bits of one type */
    TARGET_RULE_MOVE,    /* operand and result of equal parameters */
    TARGET_RULE_ORDER,   /* the same, 8 bits */
    TARGET_RULE_NEAREST, /* the same, and the attribute mode is nearest */
} TargetRule;

typedef struct TargetFusion {
    const char *op;
    TargetRule rule;
    const char *as, *real; /* NULL as: itself; real: what it becomes without a QuantizeLinear */
} TargetFusion;

typedef struct TargetPage {
    const char *name;                /* as -target has it */
    const char *runtime;             /* in messages */
    const char *about;               /* in a list of all */
    int64_t first_opset, last_opset; /* that it loads; 0: not said */
    TargetNames domains;             /* besides ONNX's own */
    bool own_domains;                /* any but com.microsoft: plug-ins */
    bool forms[N_TARGET_FORMS];
    const char *no_form[N_TARGET_FORMS]; /* why not, or NULL */

    TargetType activations, weights;
    ElemType *types; /* that integers are stored in; n_types 0: any */
    size_t n_types, cap_types;
    const char *no_type;
    const char *no_real; /* why what is expressed must be float; NULL: it need not */
    TargetZeros zeros;
    const char *no_zero;
    TargetScales scales;
    const char *no_scales, *no_blocks; /* no_blocks: NULL where there are blocks */
    bool no_floats;                    /* what has an integer form takes it, be 8 bits few for it */
    bool float_biases;                 /* biases are added in float */
    bool no_integers;                  /* all operators between conversions compute on floats */
    bool saturates;        /* sums of uint8 by int8 on x86 without VNNI (-target-cpu=avx2) */
    bool no_clip;          /* what is stored takes the whole range: nothing clips integers */
    bool takes_relu;       /* fuses a Relu before a QuantizeLinear, whatever that cuts */
    bool drops_relu;       /* does not, so a Relu that a Clip of the integers repeats goes */
    bool no_dtype;         /* takes the type of a QuantizeLinear from its zero point alone */
    bool kernels;          /* has the kernels of ort_kernels.def, and no others */
    bool slow_conv;        /* ConvInteger is slower than Conv on floats */
    bool merges_names;     /* reads `.`, `/` and `:` in names as `_` */
    bool states_precision; /* nodes state one type of results and weights: quantization.ptq.* */
    TargetNames before;    /* operators that a QuantizeLinear stands before, and nowhere else; none:
                              wherever operators compute on integers */
    TargetType second;     /* of operand 1 of a product of activations */
    bool has_second;       /* else as activations are */
    bool blocks_divide;    /* the axis */
    TargetNames operators; /* of ONNX that it has; none: all */
    TargetNames lacks;     /* of those of ONNX that are spelled out with others (lib/) */
    const char *no_operator;
    TargetFusion *fusions; /* none: not known */
    size_t n_fusions, cap_fusions;
    TargetFault *faults;
    size_t n_faults, cap_faults;
} TargetPage;

/* The pages that come with the program, by their names in bytewise order. */
size_t target_count(void);
Str target_name(size_t i);
Str target_text(Str name); /* STR_NONE where there is none of that name */
/* The page of that name; NULL where there is none. Memory is the arena's. */
const TargetPage *target_find(Arena *a, const char *name, Diags *d);
/* A page from a text, which messages call `name`; NULL after errors, of which one run tells all. */
const TargetPage *target_read(Arena *a, Diags *d, const char *name, Str text);

bool target_names(const TargetNames *names, Str name); /* whether it is one of them */

/* ONNX's own domains always are. */
bool target_has_domain(const TargetPage *t, Str domain);
bool target_has_microsoft(const TargetPage *t);
/* The rule for a node, or NULL. */
const TargetFusion *target_fusion(const TargetPage *t, const Node *n);
/* The first fault of the page with this remedy that a node, as it is, meets; else NULL. */
const TargetFault *target_fault(const TargetPage *t, FaultRemedy then, FaultPlace at,
                                const FaultSite *s);

/* What the page says of it, or that it says so. */
const char *fault_words(const TargetFault *f, const TargetPage *t, const Node *n);

/* Whether a QuantizeLinear may stand before the operands of such a node. */
bool target_quantizes_before(const TargetPage *t, const Node *n);

/* Whether integers may be stored in that type. */
bool target_stores(const TargetPage *t, ElemType e);
/* Why it cannot hold a value of this quantized type; NULL where it can. */
const char *target_refuses_quant(const TargetPage *t, const Value *v);
/* Whether it wants this operator of ONNX spelled out with others. */
bool target_lacks(const TargetPage *t, Str op);
/* Whether a result for it (NULL: for whoever asks) has other operators in this one's place: a
 * composite that it lacks, or its opset, and what com.microsoft has where it has no such domain. */
bool target_spells_out(const TargetPage *t, const Node *n);
/* False after errors about quantized types, and about what the runtime gets wrong of operators on
 * them, before these become what is written. */
bool target_check_quantized(const TargetPage *t, Module *m, Diags *d);
/* The same of what is written: about operators that it does not have or gets wrong. Warns of an
 * opset that the page does not name. */
bool target_check_written(const TargetPage *t, Module *m, Diags *d);

#endif
