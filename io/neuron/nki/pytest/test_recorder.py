"""Tests of the recorder: python3 -m unittest discover io/neuron/nki/pytest."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from perfsim_nki import arguments  # noqa: E402
from perfsim_nki.indexing import Index, arange  # noqa: E402
from perfsim_nki.symbols import Loop, Sym  # noqa: E402

NEW = """
import nki
import nki.language as nl
import nki.isa as nisa
"""
OLD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa
import numpy as np
"""


def run(source, *args, name="kernel.py"):
    """Record a kernel text; return status, last line of stderr and the record."""
    with tempfile.TemporaryDirectory() as d:
        path, out = os.path.join(d, name), os.path.join(d, "k.nki.jsonl.gz")
        with open(path, "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(source))
        env = dict(os.environ, PYTHONPATH=os.path.dirname(HERE), PYTHONDONTWRITEBYTECODE="1")
        p = subprocess.run([sys.executable, "-m", "perfsim_nki", path, "-o", out, "--timeout", "5", *args], env=env, capture_output=True, text=True)
        record = []
        if p.returncode == 0:
            with gzip.open(out, "rt", encoding="utf-8") as f:
                record = [json.loads(line) for line in f]
        last = p.stderr.strip().splitlines()[-1] if p.stderr.strip() else ""
        return p.returncode, last.replace(d + os.sep, ""), record


def expanded(record):
    """Count executions by operation, loops written out."""
    forms, times, count = {}, [1], {}
    for line in record:
        if isinstance(line, dict):
            continue
        if line[0] == "f":
            forms[line[1]] = line
        elif line[0] == "l":
            times.append(times[-1] * line[2])
        elif line[0] == "e":
            times.pop()
        elif isinstance(line[0], int):
            op = forms[line[0]][2]
            count[op] = count.get(op, 0) + times[-1]
    return count


class Symbols(unittest.TestCase):
    def setUp(self):
        self.loop = Loop(0, 8, ("k.py", 1))
        self.i = Sym(0, ((self.loop, 1),))

    def test_affine_arithmetic_stays_symbolic(self):
        x = (self.i * 128 + 64) // 64
        self.assertEqual((x.c, x.t), (1, ((self.loop, 2),)))
        self.assertEqual((self.i * 128 + 5) % 128, 5)
        self.assertEqual(self.i - self.i, 0)
        self.assertFalse(self.loop.escaped)

    def test_comparisons_that_never_change_do_not_escape(self):
        self.assertTrue(self.i * 128 + 128 <= 1024)
        self.assertFalse(self.i > 7)
        self.assertFalse(self.loop.escaped)

    def test_what_changes_escapes(self):
        self.assertTrue(self.i == 0)
        self.assertTrue(self.loop.escaped)

    def test_remainder_and_list_index_escape(self):
        self.assertEqual(self.i % 2, 0)
        self.assertTrue(self.loop.escaped)
        self.loop.escaped = False
        self.assertEqual([7, 8][self.i], 7)
        self.assertTrue(self.loop.escaped)


class Indexing(unittest.TestCase):
    def test_masks_clip_both_ends(self):
        i = arange(128)[:, None]
        self.assertEqual((i < 100).clip((128, 4)), [(0, 100), (0, 4)])
        self.assertEqual((i >= 30).clip((128, 4)), [(30, 98), (0, 4)])
        self.assertIsNone((i > 200).clip((128, 4)))
        self.assertEqual(((i >= 30) & (i <= 40)).clip((128, 4)), [(30, 11), (0, 4)])

    def test_arange_broadcasts(self):
        x = arange(4)[:, None] * 10 + arange(3)[None, :]
        self.assertIsInstance(x, Index)
        self.assertEqual(x.shape, (4, 3))

    def test_quotients_and_remainders_that_do_not_wrap_round(self):
        x = arange(512)[None, :] + 1536
        for got, c, step in ((x // 2048, 0, 0), (x % 2048, 1536, 1), (x // 1024, 1, 0), (x % 1024, 512, 1)):
            self.assertEqual((got.c, got.axes, got.tile), (c, {1: (step, 512)}, None))
        rows = arange(4)[:, None] * 2048 + arange(512)[None, :]
        self.assertEqual(((rows // 2048).axes, (rows % 2048).axes), ({0: (1, 4), 1: (0, 512)}, {0: (0, 4), 1: (1, 512)}))
        self.assertIsNotNone((x % 100).tile)


class Arguments(unittest.TestCase):
    def test_texts(self):
        name, x = arguments.parse("f32[128,4096]")
        self.assertEqual((name, x.shape, str(x.dtype)), (None, (128, 4096), "float32"))
        self.assertEqual(arguments.parse("eps=1e-5"), ("eps", 1e-5))
        self.assertEqual(arguments.parse("pad=((0,0),(1,1))"), ("pad", ((0, 0), (1, 1))))
        self.assertEqual(arguments.value("True"), True)
        with self.assertRaises(arguments.UsageError):
            arguments.value("f32[-1,4]")
        with self.assertRaises(arguments.UsageError):
            arguments.value("f33[4]")


class Kernels(unittest.TestCase):
    def test_addresses_are_read(self):
        """A transfer reads the tile that holds its address, directly and through a register."""
        source = NEW + """
@nki.jit
def k(x, ids):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=i, src=ids)
    a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    ADDRESS
    nisa.dma_copy(dst=a, src=x.ap([[64, 128], [1, 64]], offset=0, scalar_offset=e, indirect_dim=0))
    nisa.dma_copy(dst=out, src=a)
    return out
"""
        for address in ("e = i[0:1, 0:1]", "e = nisa.register_alloc(i[0:1, 1:2])", "e = nisa.register_alloc(i[0:1, 1:2]) + 1"):
            status, error, record = run(source.replace("ADDRESS", address), "--arg", "bfloat16[1024,64]", "--arg", "int32[1,2]")
            self.assertEqual(status, 0, error)
            copies = [f for f in record if isinstance(f, list) and f[0] == "f" and f[2] == "DMACopy"]
            self.assertEqual([len(f[8]) for f in copies], [1, 2, 1], address)
            self.assertEqual(copies[1][8][1][0], "int32")

    def test_regular_loops_are_recorded_once(self):
        source = NEW + """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            for i in nl.affine_range(16):
                t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=t, src=x[i * 128:(i + 1) * 128, :])
                nisa.dma_copy(dst=out[nl.ds(i * 128, 128), :], src=t)
            return out
        """.replace("\n        ", "\n")
        status, err, rec = run(source, "--arg", "f32[2048,512]")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sum(1 for x in rec if isinstance(x, list) and isinstance(x[0], int)), 2)
        self.assertEqual(expanded(rec), {"DMACopy": 32})

    def test_lists_made_in_a_loop_are_whole(self):
        source = NEW + """
        @nki.jit
        def kernel(x):
            tiles = []
            for i in nl.affine_range(4):
                t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=t, src=x[i * 128:(i + 1) * 128, :])
                tiles.append(t)
            for t in tiles:
                nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        """.replace("\n        ", "\n")
        status, err, rec = run(source, "--arg", "f32[512,64]")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(expanded(rec), {"DMACopy": 4, "TensorScalar": 4})

    def test_a_tile_of_the_last_iteration_is_that_iteration_s(self):
        source = NEW + """
        @nki.jit
        def kernel(x):
            for i in range(6):
                t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=t, src=x)
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
        """.replace("\n        ", "\n")
        status, err, rec = run(source, "--arg", "f32[128,64]")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(expanded(rec), {"DMACopy": 6, "TensorScalar": 1})

    def test_counters_and_rotations_are_not_templates(self):
        source = NEW + """
        @nki.jit
        def kernel(x):
            n = 0
            a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            b = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            for i in range(5):
                nisa.dma_copy(dst=a, src=x)
                a, b = b, a
                n += 1
            for k in range(n):
                nisa.tensor_scalar(dst=a, data=b, op0=nl.add, operand0=1.0)
        """.replace("\n        ", "\n")
        status, err, rec = run(source, "--arg", "f32[128,64]")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(expanded(rec), {"DMACopy": 5, "TensorScalar": 5})

    def test_old_api_names_results_and_accumulates(self):
        source = OLD + """
        @nki.jit
        def kernel(a, b):
            out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
            acc = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(4):
                x = nl.load(a[k * 128:(k + 1) * 128, :])
                y = nl.load(b[k * 128:(k + 1) * 128, :])
                acc += nisa.nc_matmul(x, y)
            res = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
            res[...] = nl.multiply(acc, 2.0)
            nl.store(out, res)
            return out
        """.replace("\n        ", "\n")
        status, err, rec = run(source, "--arg", "bf16[512,128]", "--arg", "bf16[512,512]")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(expanded(rec), {"DMACopy": 9, "Matmult": 4, "TensorScalar": 1})

    def test_bad_kernels_name_the_line(self):
        cases = [
            ("nisa.frobnicate(x)", "kernel.py:8: nki.isa.frobnicate is not known to perfsim"),
            ("nisa.tensor_copy(dst=t, source=t)", "kernel.py:8: TypeError: tensor_copy() got an unexpected keyword argument 'source'"),
            ("nl.ndarray((256, 4), dtype=x.dtype, buffer=nl.sbuf)", "kernel.py:8: tile (256, 4) has 256 partitions; there are 128"),
            ("nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.psum)", "PSUM tile (128, 8192) of float32 takes 32768 bytes"),
            ("nl.ndarray((128, -4), dtype=x.dtype, buffer=nl.sbuf)", "has a negative size"),
            ("nl.ndarray((128, 2.5), dtype=x.dtype, buffer=nl.sbuf)", "which is no integer"),
            ("raise ValueError('no')", "kernel.py:8: ValueError: no"),
            ("assert x.shape == (1, 1)", "kernel.py:8: AssertionError"),
            ("open('/etc/hostname').read()", "the kernel opens the file /etc/hostname"),
            ("import torch; torch.zeros(3)", "torch.zeros is called in the kernel"),
            ("nisa.dma_copy(dst=t, src=x[0:128, 64:96])", "kernel.py:8: "),
            ("kernel(x)", ": the kernel recurses too deeply"),
            ("nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.frob)", "nki.language.frob is not known"),
        ]
        for line, want in cases:
            source = NEW + "@nki.jit\ndef kernel(x):\n    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)\n    " + line + "\n"
            status, err, _ = run(source, "--arg", "f32[128,96]")
            self.assertEqual(status, 1, line + ": " + err)
            self.assertIn(want, err, line)

    def test_endless_kernels_end(self):
        source = NEW + "@nki.jit\ndef kernel(x):\n    while True:\n        pass\n"
        status, err, _ = run(source, "--arg", "f32[128,96]", "--timeout", "0.3")
        self.assertEqual(status, 1)
        self.assertIn("kernel.py:", err)
        self.assertIn("still runs after 0.3 s", err)

    def test_a_mask_that_leaves_nothing(self):
        source = OLD + """
        @nki.jit
        def kernel(a):
            i = nl.arange(128)[:, None]
            j = nl.arange(64)[None, :]
            nl.load(a[i, j], mask=(i > 500))
            nl.load(a[i, j])
        """.replace("\n        ", "\n")
        status, err, _ = run(source, "--arg", "f32[128,64]")
        self.assertEqual(status, 1)
        self.assertIn("kernel.py:11: the mask leaves nothing", err)

    def test_two_cores_of_the_new_api(self):
        source = NEW + """
        @nki.jit
        def kernel(x):
            t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            r = nl.program_id(0)
            nisa.dma_copy(dst=t, src=x[r * 128:(r + 1) * 128, :])
            u = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.sendrecv(src=t, dst=u, send_to_rank=1 - r, recv_from_rank=1 - r, pipe_id=0)
        """.replace("\n        ", "\n")
        status, err, rec = run(source, "--arg", "f32[256,64]", "--grid", "2")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([x for x in rec if isinstance(x, list) and x[0] == "p"], [["p", 0, [0]], ["p", 1, [1]]])

    def test_same_input_same_bytes(self):
        source = NEW + "@nki.jit\ndef kernel(x):\n    t = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)\n    nisa.dma_copy(dst=t, src=x)\n"
        self.assertEqual(run(source, "--arg", "f32[128,96]")[2][1:], run(source, "--arg", "f32[128,96]")[2][1:])


if __name__ == "__main__":
    unittest.main()
