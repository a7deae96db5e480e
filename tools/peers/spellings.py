"""How tools spell quantized models: a recipe for each form that a tool writes. They differ in the operators and types of the
model, not in how good it is.
"""

# tool: {form: options of its script}
SPELLINGS = {
    "onnxruntime": {"W8A8": "static MinMax", "W8A8, operators": "operators MinMax", "W4A8": "static4 MinMax",
                    "W8A16": "static16 MinMax", "W8, dynamic": "dynamic",
                    "int4 weights": "nbits DEFAULT 16 4", "int2 weights": "nbits DEFAULT 16 2"},
    "nncf": {"W8A8": "static", "W8A8, transformer": "static minmax mixed transformer", "int8 weights": "weights INT8_ASYM -1",
             "int4 weights": "weights INT4_ASYM 16", "int4 weights, symmetric": "weights INT4_SYM 16"},
    "aimet": {"W8A8": "8 8", "W4A8": "4 8 cle", "W8A16": "8 16 cle"},
    "quark": {"W8A8": "uint8 MinMax channel cle", "A8W8": "int8 Percentile", "XINT8": "xint8 MinMSE cle",
              "W8A16": "uint16 MinMax channel cle", "int4 weights": "nbits DEFAULT 16 4"},
    "modelopt": {"W8A8": "int8 max", "int4 weights": "int4 rtn_dq 16"},
}

# folder of QXC_SHARED/models/tools: {form: names of files}
FILES = {
    "aidge": {"quantizers": "_meta", "expanded": "_ex[pq]", "QDQ": "_qdq", "QOperator": "_qop"},
    "inc": {"static": "_static_", "dynamic": "_dynamic_", "qat": "_qat_"},
    "torch": {"eager": "^eagerqat", "PT2E": "^pt2e"},
    "brevitas": {"QCDQ": "_qcdq_", "QONNX": "_qonnx_"},
}
