/* The way from a module as it was read to what an -emit= writes: pipeline.def has it as a table. */
#ifndef QXC_COMPILER_PIPELINE_H
#define QXC_COMPILER_PIPELINE_H

#include "compiler/options.h"
#include "exec/calibrate.h"
#include "passes/pass.h"

typedef enum Form {
#define FORM(id, name, steps) FORM_##id,
#include "compiler/pipeline.def"
} Form;

typedef enum EmitKind {
#define EMIT(id, name, file, form, decided) EMIT_##id,
#include "compiler/pipeline.def"
} EmitKind;

typedef struct Measured Measured; /* compiler/measured.h */
typedef struct Trained Trained;   /* compiler/doubtful.h */

/* The form a module is in: by its types, and by Q/DQ nodes and QOperators in a plain one. */
typedef struct ModuleForm {
    bool fake;           /* some value is `float ~ q` */
    bool typed;          /* some value has a quantized type */
    bool onnx_quantized; /* QuantizeLinear with three operands, QLinearConv, ... */
    bool qonnx;          /* Quant, BipolarQuant: passes/raise/raise_qonnx.h */
    bool scaling;        /* Round and Clip of scaled numbers: passes/raise/raise_scaling.h */
    bool integers;       /* operators of floats on plain integers: ir/ops/plain_integer.c */
    bool annotated;      /* ONNX's quantization annotations */
} ModuleForm;
ModuleForm module_form(Module *m);
/* Parts of that, in less time. */
bool module_is_fake(Module *m);
bool module_has_qonnx(Module *m);
bool module_is_annotated(Module *m);
/* Whether operators of floats say what is quantized, which raising makes types of. */
bool form_is_spelled(ModuleForm f);

typedef struct Job {
    const Options *o;
    Diags *d;
    PassContext ctx;
    Module *weights_from, *scales_from; /* -weights-from, -scales-from: models, or NULL */
    Scheme donated;                     /* by scales_from */
    Scheme flags, file; /* the parts of the scheme that stand on the command line, in -scheme */
    Str search_scheme;  /* what -search found, as a text; STR_NONE: it is not to be written */
    CalibOptions calib;
    CalibReport calibrated; /* what calibration saw */
    bool measures;          /* the result is to be measured: somebody reads the summary */
    KeptRun *kept;          /* by then: what the float model gave; or NULL */
    Measured *measured;     /* or NULL: nothing was */
    const char *unmeasured; /* why, where it was tried */
    ModuleForm found;       /* what the module was when it came */
    Trained *trained;       /* by its first BatchNormalization */
    struct Marks *marks;    /* before nodes are fused; NULL: they are not */
    bool has_basis;         /* there is something to decide from */
    bool data_completes;    /* data, had they been given, would decide what is left float */
    bool only_floats;       /* it came quantized, and no type or decision says so by now */
    bool anew;              /* -redecide can decide what it came with anew */
    Form form;
    EmitKind emit;
    bool faulty_file;      /* a file that an option names has mistakes */
    bool unreadable;       /* job_init failed on a file: -scheme, -scales-from */
    int64_t read_opset;    /* of the model as it was read */
    int64_t opset;         /* as it was written */
    bool quant_io;         /* -io=quant: graph inputs and outputs take the integer types */
    bool decided_before;   /* the model came quantized */
    bool keeps_unknown;    /* -keep leaves an operator that ONNX lacks */
    bool uncorrected;      /* quantized without data: biases are the float model's */
    bool unrounded;        /* and weights of few bits are rounded to the nearest */
    size_t widened;        /* weights of 3 bits, */
    ElemType widened_to;   /* which this type of 4 holds, as there is none of 3 */
    bool mended;           /* data corrected biases */
    bool rounded;          /* and rounded weights */
    long long external[2]; /* bytes of weights beside the file that was read, and the one written */
    bool same_format;      /* both files are ONNX: their sizes compare */
    size_t rounded_products; /* whose activations onnxruntime rounds though they are float here */
    bool nothing;            /* a float model was to be quantized, and none of it was */
    bool decided;            /* it was quantized here */
    size_t completed;        /* values that this run quantized of a model decided in part */
    Str completed_names;     /* of the first, with their types; the module's arena */
    bool wrote_c;
    const char *advice; /* the other way of quantization, where that suits the model; or NULL */
    const Batch *batch; /* of a module made to run: where samples are in values that hold several;
                           NULL: nowhere */
    /* -requant, of programs */
    SumRounding rounding;
    size_t arena, alive, flash; /* of emitted C, bytes: c_sizes */
    int64_t macs;
    const struct ForeignKernels *kernels; /* -kernels; NULL: none */
    const struct Program *c_program;      /* of emitted C, or NULL */
    const bool
        *c_floats; /* by Node.id: computed in floating point in emitted C; NULL: none written */
    size_t n_c_floats;
    bool c_all_float; /* the model has no integers */
    bool c_converts;  /* and something is converted from or to float */
    size_t n_c_mixed; /* nodes of several storage types, and elements converted for them a run */
    int64_t c_converted;
} Job;

/* Whether channels that are much larger than their neighbours are scaled unasked: of a float model
 * that is quantized by data, and in a result that holds its weights. Stated parameters are those of
 * the model as it is. */
bool job_mends_outliers(const Job *j);

/* Reads the options that concern passes; false after diagnostics. */
bool job_init(Job *j, const Options *o, Arena *a, Diags *d);

/* Runs a pass, with what the user wants to see of it (-print-before, -verify-each, ...). */
bool job_pass(Job *j, Module *m, PassId id);
/* -emit=onnx -annotate: a float model, and beside it what was decided. */
bool job_writes_beside(const Job *j);
/* Whether operators have to mean something: all but ways that only convert or show. */
bool job_lowers(const Job *j);

/* Whether it has some of values that are computed, or handed in. */
bool module_has_statistics(Module *m);

/* A model of any kind in true-quant form as far as it is quantized, else as it is. */
bool job_raise(const Job *j, Module *m);
/* A float model as the quantizer fuses one before it decides. */
bool job_fuse(const Job *j, Module *m);
/* The float model as it is when its decisions are made: what is done to it before (channels that
 * are scaled, what is fused) changes inner values. The job is fresh from job_init. */
bool job_reference(Job *j, Module *m);
/* Applies -bind and -shape. */
bool job_fix_shapes(Job *j, Module *m);

/* Static or dynamic quantization: what suits a model that was quantized so better than what was
 * chosen, as a line of text (advice.c), or NULL. */
const char *advice_of(const Job *j, Module *m);

/* Brings the module into j->form. */
bool job_compile(Job *j, Module *m);

/* What running needs: operators in the form exec knows, quantization raised to types, constants
 * folded, static shapes. */
bool job_prepare_run(Job *j, Module *m);
/* The same for two that are to take the same samples. */
bool job_prepare_pair(Job *a, Module *ma, Job *b, Module *mb);

#endif
