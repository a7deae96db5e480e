"""Eight times the graph inputs and outputs take about eight times the time, not 64 times."""

import resource
import unittest

from common import OracleCase, qxc

PORTS, TIMES, BOUND = 4000, 8, 24


def relus(n):
    """n times Relu, each from an input to an output of its own."""
    inputs = ", ".join(f"%x{i} : float[1]" for i in range(n))
    outputs = ", ".join(f"%y{i}" for i in range(n))
    lines = [f"%y{i} : float[1] = Relu(%x{i})" for i in range(n)]
    return (f'qir 1\nimport "" 21\ngraph @g ({inputs}) -> ({outputs}) {{\n'
            + "\n".join(lines) + "\n}\n")


class GrowthOfPorts(OracleCase):
    def seconds(self, ports, *args):
        """CPU time of the better of two runs."""
        path = self.scratch / f"{ports}.qir"
        path.write_text(relus(ports))
        times = []
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            qxc(*[path if a == "MODEL" else a for a in args], "-quiet")
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return min(times)

    def check(self, *args):
        few, many = self.seconds(PORTS, *args), self.seconds(TIMES * PORTS, *args)
        self.assertLess(many / few, BOUND, f"{few:.3f} s, then {many:.3f} s")

    def test_emitted_c(self):
        self.check("MODEL", "-emit=c", "-no-sync", "-o", self.scratch / "out.c")

    def test_compare(self):
        self.check("compare", "MODEL", "MODEL", "-random=1")


if __name__ == "__main__":
    unittest.main()
