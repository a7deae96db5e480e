"""Which products of weights a tool left in float: a model that keeps some is nearer to the float model for that."""

PRODUCTS = {"Conv": (1,), "ConvTranspose": (1,), "Gemm": (1,), "MatMul": (0, 1), "LSTM": (1,), "GRU": (1,)}
WHOLE = ("MatMulNBits", "MatMulInteger", "ConvInteger", "QLinearConv", "QLinearMatMul", "QGemm")
MOVES = ("Transpose", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Cast")


def moves(node):
    """Whether its result is its first input; a Sum of one thing is that, and keeps runtimes from fusing."""
    return node.op_type in MOVES or (node.op_type == "Sum" and len(node.input) == 1)


def source(name, makers, constants):
    """"float" of a constant, "integer" of one that is dequantized, or None of anything else."""
    while name in makers and moves(makers[name]):
        name = makers[name].input[0]
    if name in constants:
        return "float"
    maker = makers.get(name)
    if maker is None or maker.op_type != "DequantizeLinear":
        return None
    behind = maker.input[0]
    while behind in makers and (moves(makers[behind]) or makers[behind].op_type == "QuantizeLinear"):
        behind = makers[behind].input[0]
    return "integer" if behind in constants else None


def float_products(model):
    """(products with a float constant, products with a constant)."""
    graph = model.graph
    makers = {out: node for node in graph.node for out in node.output}
    constants = {t.name for t in graph.initializer} | {n.output[0] for n in graph.node if n.op_type == "Constant"}
    found = ["integer" for node in graph.node if node.op_type in WHOLE]
    for node in graph.node:
        kinds = [source(node.input[i], makers, constants) for i in PRODUCTS.get(node.op_type, ())]
        found += [kind for kind in kinds if kind][:1]
    return found.count("float"), len(found)
