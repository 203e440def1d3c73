"""Kernels that use the API widely; counts are by hand."""

from __future__ import annotations

import textwrap
import unittest

from test_recorder import NEW, OLD, expanded, run


class OldApi(unittest.TestCase):
    def counts(self, source, *args):
        status, error, record = run(OLD + textwrap.dedent(source), *args)
        self.assertEqual((status, error if status else ""), (0, ""))
        return expanded(record)

    def test_a_mask_cuts_the_last_tile(self):
        n = self.counts(
            """
            import math
            @nki.jit(mode="simulation")
            def k(x):
                out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
                p, f = nl.mgrid[0:128, 0:x.shape[1]]
                for i in nl.affine_range(math.ceil(x.shape[0] / nl.tile_size.pmax)):
                    m = i * 128 + p < x.shape[0]
                    t = nl.load(x[i * 128 + p, f], mask=m)
                    e = nl.exp(nl.subtract(t, nl.max(t, axis=1, mask=m, keepdims=True), mask=m), mask=m)
                    nl.store(out[i * 128 + p, f], nl.divide(e, nl.sum(e, axis=[1], mask=m), mask=m), mask=m)
                return out
            """,
            "--arg", "f32[300,64]",
        )
        # Three tiles: each is loaded, stored, reduced twice, and takes two
        # operations with one value a partition.
        self.assertEqual(n, {"DMACopy": 6, "TensorReduce": 6, "TensorScalarPtr": 6, "Activation": 3})

    def test_windows_by_five_axes(self):
        n = self.counts(
            """
            @nki.jit
            def k(x):
                c, h, w = x.shape
                out = nl.ndarray((c, h // 2, w // 2), dtype=x.dtype, buffer=nl.shared_hbm)
                t = nl.load(x)
                a, b = nl.arange(c)[:, None, None, None, None], nl.arange(h // 2)[None, :, None, None, None]
                d = nl.arange(w // 2)[None, None, :, None, None]
                u, v = nl.arange(2)[None, None, None, :, None], nl.arange(2)[None, None, None, None, :]
                nl.store(out, nl.sum(t[a, 2 * b + u, 2 * d + v], axis=[3, 4]) / 4)
                return out
            """,
            "--arg", "f32[64,16,16]",
        )
        self.assertEqual(n, {"DMACopy": 2, "TensorReduce": 1, "TensorScalar": 1})

    def test_scan_with_a_carried_state(self):
        n = self.counts(
            """
            @nki.jit
            def k(a, b):
                out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
                x, y = nl.load(a), nl.load(b)
                s = nl.ndarray((nl.par_dim(128), 1024), dtype=nl.float32)
                state = nl.zeros((nl.par_dim(128), 1), dtype=nl.float32)
                for j in nl.sequential_range(2):
                    part = nl.ds(j * 512, 512)
                    s[:, part] = nisa.tensor_tensor_scan(x[:, part], y[:, part], initial=state, op0=np.multiply, op1=np.add)
                    state[...] = nl.copy(s[:, j * 512 + 511])
                nl.store(out, s)
                return out
            """,
            "--arg", "f32[128,1024]", "--arg", "f32[128,1024]",
        )
        self.assertEqual(n, {"DMACopy": 3, "TensorTensorScan": 2, "TensorCopy": 2})

    def test_rows_by_index_on_a_grid(self):
        n = self.counts(
            """
            @nki.jit
            def k(table, rows):
                out = nl.ndarray((rows.shape[0], table.shape[1]), dtype=table.dtype, buffer=nl.shared_hbm)
                at = nl.program_id(0) * 128
                i = nl.load(rows[nl.ds(at, 128), :])
                nl.store(out[nl.ds(at, 128), :], nl.load(table[i[nl.arange(128)[:, None], 0], nl.arange(256)[None, :]]))
                return out
            """,
            "--arg", "f32[5000,256]", "--arg", "i32[256,1]", "--grid", "2",
        )
        self.assertEqual(n, {"DMACopy": 6})


class Collectives(unittest.TestCase):
    KERNEL = """
import nki.collectives as ncc
@nki.jit
def k(x):
    g = ncc.ReplicaGroup.from_partition_op(8, ncc.rg_partition_op.div, 4)
    rank = ncc.rank_id()
    a, b, c = [nl.ndarray(s, dtype=x.dtype, buffer=nl.private_hbm) for s in ((128, 64), (512, 64), (32, 64))]
    nisa.dma_copy(dst=a, src=x)
    %s
    return b
"""

    def record(self, call):
        return run(NEW + self.KERNEL % call, "--arg", "f32[128,64]")

    def test_groups_and_kinds(self):
        for call, func in (
            ("ncc.all_gather(srcs=[a], dsts=[b], replica_group=g, collective_dim=0)", "all-gather 4"),
            ("ncc.reduce_scatter([a], [c], g, 0, nl.add)", "reduce-scatter 4"),
            ("ncc.all_to_all(srcs=[b], dsts=[b], replica_group=g, collective_dim=0)", "all-to-all 4"),
            ("ncc.collective_permute([a], [a], [(0, 1), (1, 0)])", "collective-permute 2"),
            ("ncc.collective_permute_implicit([[a]], [[a]], g, channel_ids=[0])", "collective-permute 4"),
        ):
            status, error, record = self.record(call)
            self.assertEqual((status, error if status else ""), (0, ""))
            made = [line[4]["func"] for line in record[1:] if line[0] == "f" and line[2] == "CollectiveCompute"]
            self.assertEqual(made, [func])

    def test_what_cannot_be(self):
        for call, error in (
            ("ncc.all_gather([a], [c], g, 0)", "makes 32768 elements; dst has shape (32, 64)"),
            ("ncc.all_reduce(a, [a], g, nl.add)", "srcs is a list of tensors, not a tensor"),
            ("ncc.all_reduce([a], [a], [[0, 1]], nl.add)", "replica_group=[[0, 1]] is no ReplicaGroup"),
            ("ncc.ReplicaGroup([[0, 1], [1, 2]])", "has a rank twice"),
            ("ncc.broadcast([a], [a], g)", "nki.collectives.broadcast is not known to perfsim"),
        ):
            status, got, _ = self.record(call)
            self.assertEqual(status, 1)
            self.assertIn("kernel.py:", got)
            self.assertIn(error, got)


class NewApi(unittest.TestCase):
    def counts(self, source, *args):
        status, error, record = run(NEW + textwrap.dedent(source), *args)
        self.assertEqual((status, error if status else ""), (0, ""))
        return expanded(record)

    def test_loops_and_numbers_of_the_device(self):
        n = self.counts(
            """
            @nki.jit
            def k(x, n):
                out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
                c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
                nisa.dma_copy(dst=c, src=n)
                def body(i):
                    t = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=t, src=x.ap(pattern=[[512, 128], [1, 512]], offset=0, scalar_offset=i * 128, indirect_dim=0))
                    nisa.dma_copy(dst=out.ap(pattern=[[512, 128], [1, 512]], offset=0, scalar_offset=i * 128, indirect_dim=0), src=t)
                nl.fori_loop(0, 4, body)
                nl.fori_loop(0, nisa.scalar_load(c), body)
                def again(r):
                    nisa.scalar_store(c, r - 1)
                    return nisa.scalar_load(c)
                nl.while_loop(nisa.scalar_load(c), again)
                return out
            """,
            "--arg", "f32[512,512]", "--arg", "i32[1,1]",
        )
        # A loop whose bounds are in memory counts once.
        self.assertEqual(n["DMACopy"], 1 + 2 * 4 + 2)
        self.assertEqual((n["TensorLoad"], n["TensorSave"], n["RegisterAlu"]), (3, 1, 1))

    def test_views_and_reductions(self):
        n = self.counts(
            """
            @nki.jit
            def k(x):
                b, s, h, d = x.shape
                out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
                t = nl.ndarray((128, h, d), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=t, src=x.reshape((b * s, h * d))[0:128].reshape((128, h, d)))
                u = nl.ndarray((128, h, d), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(dst=u[:, :, 0:d // 2], src=t[:, :, 0:d:2])
                nisa.tensor_copy(dst=u[:, :, d // 2:], src=t[:, :, 1:d:2])
                m = nl.ndarray((128, h), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_scalar_reduce(u, u, nl.multiply, 2.0, nl.add, m[:, 0:1], reduce_cmd=nisa.reduce_cmd.reset_reduce)
                nisa.tensor_reduce(m, nl.add, u, axis=[2])
                nisa.tensor_tensor(dst=u, data1=u, data2=m.expand_dim(2).broadcast(2, d), op=nl.multiply)
                nisa.dma_copy(dst=out.select(0, 0).slice(0, 0, 128).reshape((128, h * d)), src=u.flatten_dims(1, 2), dst_rmw_op=nl.add)
                return out
            """,
            "--arg", "bf16[1,256,8,64]",
        )
        self.assertEqual(n, {"DMACopy": 2, "TensorCopy": 2, "TensorScalar": 1, "DveReadAccumulator": 1, "TensorReduce": 1, "TensorTensor": 1})


if __name__ == "__main__":
    unittest.main()
