"""Who quantizes, and how: tools with their recipes, by what is asked for.

A recipe of another tool is options of its script (with_TOOL.py); of qxc they are those of its command line.
"""

LANGUAGE = ("int4 in blocks of 32", "int3 in blocks of 32", "int2 in blocks of 32")  # weights of a language model
FORMATS = ("W8A8", "W4A8", "W8A16", "int4 weights", *LANGUAGE)

# tool: {format: {recipe: options}}
RECIPES = {
    "onnxruntime": {
        "W8A8": {"MinMax": "static MinMax", "Percentile": "static Percentile", "Entropy": "static Entropy"},
        "W8A16": {"MinMax": "static16 MinMax"},
        "int4 weights": {"RTN": "nbits DEFAULT 16 4", "HQQ": "nbits HQQ 16 4", "k-quant": "nbits KQUANT 16 4"},
        "int4 in blocks of 32": {"RTN": "nbits DEFAULT 32 4", "HQQ": "nbits HQQ 32 4", "k-quant": "nbits KQUANT 32 4",
                                 "GPTQ": "nbits GPTQ 32 4"},
        "int2 in blocks of 32": {"RTN": "nbits DEFAULT 32 2", "HQQ": "nbits HQQ 32 2"},
    },
    "nncf": {
        "W8A8": {"default": "static", "MINMAX": "static minmax", "MINMAX, mixed": "static minmax mixed",
                 "MINMAX, full bias correction": "static minmax mixed full_bias",
                 "MINMAX, transformer": "static minmax mixed transformer"},
        "int4 weights": {"RTN": "weights INT4_ASYM 16", "scale estimation": "weights INT4_ASYM 16 scale_estimation",
                         "AWQ, scale estimation": "weights INT4_ASYM 16 awq scale_estimation"},
        "int4 in blocks of 32": {"RTN": "weights INT4_ASYM 32", "scale estimation": "weights INT4_ASYM 32 scale_estimation",
                                 "AWQ, scale estimation": "weights INT4_ASYM 32 awq scale_estimation",
                                 "GPTQ": "weights INT4_ASYM 32 gptq"},
        "int3 in blocks of 32": {"scale estimation": "weights INT3_SYM 32 scale_estimation"},
        "int2 in blocks of 32": {"scale estimation": "weights INT2_SYM 32 scale_estimation"},
    },
    "aimet": {
        "W8A8": {"default": "8 8", "CLE": "8 8 cle", "SQNR ranges": "8 8 enhanced", "CLE, SeqMSE": "8 8 cle seqmse",
                 "CLE, SeqMSE, AdaRound": "8 8 cle seqmse adaround=2000"},
        "W4A8": {"CLE, SeqMSE": "4 8 cle seqmse", "CLE, SeqMSE, AdaRound": "4 8 cle seqmse adaround=2000"},
        "W8A16": {"CLE": "8 16 cle"},
    },
    "quark": {
        "W8A8": {"A8W8": "int8 Percentile", "XINT8, CLE": "xint8 MinMSE cle", "MinMax": "uint8 MinMax channel",
                 "Percentile by layer": "uint8 LayerwisePercentile channel", "bias correction": "uint8 MinMax channel bias",
                 "CLE": "uint8 MinMax channel cle",
                 "SmoothQuant": "uint8 MinMax channel smooth", "AdaRound": "uint8 MinMax channel adaround",
                 "CLE, AdaQuant": "uint8 MinMax channel cle adaquant", "AdaQuant": "uint8 MinMax channel adaquant"},
        "W8A16": {"CLE": "uint16 MinMax channel cle"},
        "int4 weights": {"RTN": "nbits DEFAULT 16 4", "HQQ": "nbits HQQ 16 4", "GPTQ": "nbits GPTQ 16 4"},
        "int4 in blocks of 32": {"RTN": "nbits DEFAULT 32 4", "HQQ": "nbits HQQ 32 4", "GPTQ": "nbits GPTQ 32 4"},
        "int2 in blocks of 32": {"HQQ": "nbits HQQ 32 2"},
    },
    "modelopt": {
        "W8A8": {"max": "int8 max", "entropy": "int8 entropy"},
        "int4 weights": {"RTN": "int4 rtn_dq 16", "AWQ clip": "int4 awq_clip 16", "AWQ lite": "int4 awq_lite 16"},
        "int4 in blocks of 32": {"RTN": "int4 rtn_dq 32", "AWQ clip": "int4 awq_clip 32", "AWQ lite": "int4 awq_lite 32"},
    },
    "qxc": {
        "W8A8": {"default": "", "-preset=auto": "-preset=auto", "-search": "-search=40-tries",
                 "-target=openvino": "-target=openvino", "-target=openvino -adaround": "-target=openvino|-adaround"},
        "W4A8": {"default": "-weights=int4 sym", "-preset=auto": "-weights=int4 sym|-preset=auto",
                 "-search": "-weights=int4 sym|-search=40-tries"},
        "W8A16": {"default": "-activations=int16", "-adaround": "-activations=int16|-adaround",
                  "-preset=auto": "-activations=int16|-preset=auto"},
        "int4 weights": {"default": "-weight-only|-weights=int4 block(16)",
                         "-adaround": "-weight-only|-weights=int4 block(16)|-adaround"},
        **{form: {"default": f"-weight-only|-weights={form[:4]} block(32)"} for form in LANGUAGE},
    },
}
# MatMulNBits is about MatMul: what has few of them says nothing of the others.
MODELS_OF = {"int4 weights": {"vit", "charlm", "transformer", "outliers"}, **dict.fromkeys(LANGUAGE, {"charlm", "decoder"})}
# A preset of a language model is of another format.
NOT_OF = {("qxc", "-preset=auto"): {"charlm"}}
