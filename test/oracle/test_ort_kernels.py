"""target/ort_kernels.def against the installed onnxruntime: what the table says is what onnxruntime
answers now, and it covers every operator that qxc puts on integers."""

import importlib.util
import json
import re

import onnxruntime as ort

from common import ROOT, OracleCase, qxc

spec = importlib.util.spec_from_file_location("probe", ROOT / "tools/probe_ort_kernels.py")
probe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(probe)
TABLE = (ROOT / "target/ort_kernels.def").read_text()

# Operators whose integers are always between conversions in ONNX: they have no type of integers
# there, or one with another meaning (Add on integers wraps around).
CLASSES_ON_INTEGERS = ("moves data", "keeps order", "joins", "clamps")


class OrtKernels(OracleCase):
    def test_table_is_what_onnxruntime_answers(self):
        made_from = re.search(r"from onnxruntime (\S+)\.", TABLE)[1]
        if made_from != ort.__version__:
            self.skipTest(f"the table is from onnxruntime {made_from}, this is {ort.__version__}")
        body = TABLE[TABLE.index("*/\n") + 3:]
        texts = [probe.text(key) for key in sorted(probe.PROBES)]
        self.assertEqual(body, "".join("\n" + t for t in texts if t))

    def test_covers_every_operator_on_integers(self):
        wanted = set()
        for op in json.loads(qxc("list", "ops", "-json").stdout):
            if op["runs"] in ("kernel", "function") and op["integers"] in CLASSES_ON_INTEGERS and "::" not in op["op"]:
                wanted.add(op["op"])
            if op["runs"] in ("kernel", "function") and op["qoperator"]:
                wanted.add(op["qoperator"])
        self.assertEqual(set(), wanted - {name for _, name in probe.PROBES})
