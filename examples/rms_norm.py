"""RMS norm of the rows of a matrix, three ways: docs/nki.md walks through them.

perfsim rank examples/rms_norm.py:narrow examples/rms_norm.py:wide \
    examples/rms_norm.py:fused --arg 'f32[2048,1024]' --arg 'f32[1,1024]'
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128


def spread_weight(weight, columns):
    """Load one row and repeat it on all partitions."""
    tile = nl.ndarray((P, columns), dtype=weight.dtype, buffer=nl.sbuf, name="weight")
    nisa.dma_copy(dst=tile, src=weight.broadcast_to((P, columns)))
    return tile


def normalise(out, x, weight, total, columns):
    """out = x * weight / sqrt(total / columns)."""
    scale = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf, name="scale")
    nisa.activation(dst=scale, op=nl.rsqrt, data=total, scale=1.0 / columns)
    nisa.tensor_scalar(dst=out, data=x, op0=nl.multiply, operand0=scale)
    nisa.tensor_tensor(dst=out, data1=out, data2=weight, op=nl.multiply)


@nki.jit
def narrow(x, weight):
    """Tiles of 128 columns: every row of a transfer is 512 bytes."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    w = spread_weight(weight, columns)
    for r in nl.affine_range(rows // P):
        row = nl.ndarray((P, columns), dtype=x.dtype, buffer=nl.sbuf, name="row")
        part = nl.ndarray((P, columns // P), dtype=nl.float32, buffer=nl.sbuf, name="part")
        for c in nl.affine_range(columns // P):
            here = nl.ds(c * P, P)
            nisa.dma_copy(dst=row[:, here], src=x[nl.ds(r * P, P), here])
            square = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.sbuf, name="square")
            nisa.activation(dst=square, op=nl.square, data=row[:, here])
            nisa.tensor_reduce(dst=part[:, nl.ds(c, 1)], op=nl.add, data=square, axis=1)
        total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf, name="total")
        nisa.tensor_reduce(dst=total, op=nl.add, data=part, axis=1)
        normalise(row, row, w, total, columns)
        for c in nl.affine_range(columns // P):
            here = nl.ds(c * P, P)
            nisa.dma_copy(dst=out[nl.ds(r * P, P), here], src=row[:, here])
    return out


@nki.jit
def wide(x, weight):
    """Whole rows: one transfer in, one out, for 128 rows."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    w = spread_weight(weight, columns)
    for r in nl.affine_range(rows // P):
        row = nl.ndarray((P, columns), dtype=x.dtype, buffer=nl.sbuf, name="row")
        nisa.dma_copy(dst=row, src=x[nl.ds(r * P, P), :])
        square = nl.ndarray((P, columns), dtype=nl.float32, buffer=nl.sbuf, name="square")
        total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf, name="total")
        nisa.activation(dst=square, op=nl.square, data=row)
        nisa.tensor_reduce(dst=total, op=nl.add, data=square, axis=1)
        normalise(row, row, w, total, columns)
        nisa.dma_copy(dst=out[nl.ds(r * P, P), :], src=row)
    return out


@nki.jit
def fused(x, weight):
    """The Activation engine adds the squares up; scale and weight are one pass."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    w = spread_weight(weight, columns)
    for r in nl.affine_range(rows // P):
        row = nl.ndarray((P, columns), dtype=x.dtype, buffer=nl.sbuf, name="row")
        nisa.dma_copy(dst=row, src=x[nl.ds(r * P, P), :])
        square = nl.ndarray((P, columns), dtype=nl.float32, buffer=nl.sbuf, name="square")
        total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf, name="total")
        nisa.activation(dst=square, op=nl.square, data=row, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        scale = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf, name="scale")
        nisa.activation(dst=scale, op=nl.rsqrt, data=total, scale=1.0 / columns)
        nisa.scalar_tensor_tensor(dst=row, data=row, op0=nl.multiply, operand0=scale, op1=nl.multiply, operand1=w)
        nisa.dma_copy(dst=out[nl.ds(r * P, P), :], src=row)
    return out
