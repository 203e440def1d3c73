"""nki.isa of neuronxcc: results are returned; dst= is taken too where releases had it."""

from __future__ import annotations

import functools
from typing import Any, Dict

from . import isa_new
from .dtypes import ALL, dtype_of
from .errors import KernelError
from .indexing import Mask
from .isa_common import ENGINES, ENUMS, dge_mode as _dge, engine as _engine, engine_of, get_nc_version, oob_mode as _oob, reduce_cmd as _reduce
from .isa_common import value_of
from .names import op_name
from .operations import ANY, activation as _activation, binary, check_scalar, common, copy, current, dma, emit, fit, is_tile, is_vector, matmul
from .operations import memset as _memset, pdim_of, pe_transpose, reduce, result, use, want
from .tiles import HBM, Tile


def nc_matmul(stationary: Any, moving: Any, *, is_stationary_onezero: bool = False, is_moving_onezero: bool = False, mask: Any = None,
              is_transpose: bool = False, tile_position: Any = (), tile_size: Any = (), perf_mode: Any = None, dtype: Any = None, dst: Any = None) -> Tile:
    """stationary.T @ moving."""
    return matmul(stationary, moving, dst, transpose=is_transpose, mask=mask, onezero=is_stationary_onezero or is_moving_onezero,
                  perf_mode=value_of(perf_mode, "matmul_perf_mode") if perf_mode is not None and not isinstance(perf_mode, str) else perf_mode or "",
                  tile=tile_size or None)


def nc_transpose(data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = _engine.unknown, dst: Any = None) -> Tile:
    """Swap partitions and elements."""
    return pe_transpose(data, dst, dtype, mask, engine_of(engine))


def activation(op: Any, data: Any, *, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None, reduce_res: Any = None, reduce_cmd: Any = _reduce.idle,
               mask: Any = None, dtype: Any = None, dst: Any = None) -> Tile:
    """func(data * scale + bias)."""
    return _activation(op_name(op), data, bias, scale, dtype, mask, op_name(reduce_op), reduce_res, value_of(reduce_cmd, "reduce_cmd"), dst=dst)


def activation_reduce(op: Any, data: Any, *, reduce_op: Any = None, reduce_res: Any = None, bias: Any = None, scale: Any = 1.0, mask: Any = None,
                      dtype: Any = None) -> Tile:
    """activation with a reduction of its results."""
    return activation(op, data, bias=bias, scale=scale, reduce_op=reduce_op, reduce_res=reduce_res, mask=mask, dtype=dtype)


def tensor_reduce(op: Any, data: Any, axis: Any, *, mask: Any = None, dtype: Any = None, negate: bool = False, keepdims: bool = False,
                  dst: Any = None, engine: Any = None) -> Tile:
    """Reduce along free axes."""
    return reduce(op_name(op), data, axis, dtype, mask, keepdims, dst, engine_of(engine) or "DVE", negate)


def tensor_partition_reduce(op: Any, data: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Reduce over partitions."""
    t = use(data, "data")
    return result("PartitionReduce", "Pool", [t], (1,) + t.shape[1:], dtype_of(dtype, t.dt), mask, op0=op_name(op))


def tensor_tensor(data1: Any, data2: Any, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = _engine.unknown, dst: Any = None) -> Tile:
    """data1 op data2."""
    a, b = use(data1, "data1"), use(data2, "data2")
    if a.shape != b.shape:
        shape = common(a.shape, b.shape)
        a, b = fit(a, shape), fit(b, shape)
    from .dtypes import wider

    return result("TensorTensor", engine_of(engine), [a, b], a.shape, dtype_of(dtype, wider(a.dt, b.dt)), mask, pdim=pdim_of(a), dst=dst, op0=op_name(op))


def tensor_tensor_scan(data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False, reverse1: bool = False, *, dtype: Any = None,
                       mask: Any = None) -> Tile:
    """A recurrence along the free axis."""
    a, b = use(data0, "data0"), use(data1, "data1")
    if a.shape != b.shape:
        shape = common(a.shape, b.shape)
        a, b = fit(a, shape), fit(b, shape)
    ins = [a, b] + ([use(initial, "initial")] if is_tile(initial) else [])
    return result("TensorTensorScan", "DVE", ins, a.shape, dtype_of(dtype, a.dt), mask, pdim=pdim_of(a), op0=op_name(op0), op1=op_name(op1))


def scalar_tensor_tensor(*, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False, reverse1: bool = False,
                         dtype: Any = None, mask: Any = None, dst: Any = None, engine: Any = None) -> Tile:
    """(data op0 scalar) op1 tensor."""
    t = use(data, "data")
    ins = [t]
    shape = t.shape
    if is_tile(operand1):
        shape = common(shape, use(operand1, "operand1").shape)
        ins = [fit(t, shape)]
    if is_tile(operand0):
        ins.append(use(operand0, "operand0"))
    else:
        check_scalar(operand0, "operand0")
    if is_tile(operand1):
        ins.append(fit(use(operand1, "operand1"), shape))
    else:
        check_scalar(operand1, "operand1")
    return result("ScalarTensorTensor", "DVE", ins, shape, dtype_of(dtype, t.dt), mask, pdim=pdim_of(t), dst=dst, op0=op_name(op0), op1=op_name(op1))


def tensor_scalar(data: Any, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None, operand1: Any = None, reverse1: bool = False, *,
                  dtype: Any = None, mask: Any = None, engine: Any = _engine.unknown, dst: Any = None) -> Tile:
    """(data op0 scalar) op1 scalar."""
    t = use(data, "data")
    ins = [t]
    for x, what in ((operand0, "operand0"), (operand1, "operand1")):
        if is_tile(x):
            v = use(x, what)
            if v.per_part() != 1 and not is_vector(v):
                raise KernelError("%s has %d elements a partition; tensor_scalar takes one (shape %s)" % (what, v.per_part(), v.shape))
            ins.append(fit(v, (t.parts(),) + v.shape[1:]) if v.parts() == 1 and t.parts() > 1 and v.part_axis() == 0 else v)
        elif x is not None:
            check_scalar(x, what)
    return result("TensorScalarPtr" if len(ins) > 1 else "TensorScalar", engine_of(engine), ins, t.shape, dtype_of(dtype, t.dt), mask,
                  pdim=pdim_of(t), dst=dst, op0=op_name(op0), op1=op_name(op1) or None)


def tensor_scalar_reduce(*, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any, reverse0: bool = False, dtype: Any = None,
                         mask: Any = None) -> Tile:
    """tensor_scalar with a reduction."""
    op_name(reduce_op)
    out = tensor_scalar(data, op0, operand0, reverse0, dtype=dtype, mask=mask, engine=_engine.vector)
    if reduce_res is not None:
        emit("DveReadAccumulator", "DVE", [want(reduce_res, "reduce_res")], [])
    return out


def tensor_copy(src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = _engine.unknown, dst: Any = None) -> Tile:
    """Copy on an engine."""
    return copy(src, dtype, mask, engine_of(engine), dst)


def tensor_copy_dynamic_src(src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = _engine.unknown) -> Tile:
    """Copy from an address that a tile holds."""
    t = use(src, "src")
    return result("TensorCopyDynamicSrc", engine_of(engine), [t], t.shape, dtype_of(dtype, t.dt), mask)


def tensor_copy_dynamic_dst(*, dst: Any, src: Any, mask: Any = None, dtype: Any = None, engine: Any = _engine.unknown) -> None:
    """Copy to an address that a tile holds."""
    emit("TensorCopyDynamicDst", engine_of(engine), [want(dst, "dst")], [use(src, "src")], mask)


def tensor_copy_predicated(*, src: Any, dst: Any, predicate: Any, mask: Any = None, dtype: Any = None, reverse_pred: bool = False) -> None:
    """Copy where a tile says so."""
    emit("CopyPredicated", "DVE", [want(dst, "dst")], ([use(src, "src")] if is_tile(src) else []) + [use(predicate, "predicate")], mask)


def reciprocal(data: Any, *, dtype: Any = None, mask: Any = None, engine: Any = None, dst: Any = None) -> Tile:
    """1 / data."""
    t = use(data, "data")
    return result("Reciprocal", engine_of(engine) or "DVE", [t], t.shape, dtype_of(dtype, t.dt), mask, pdim=pdim_of(t), dst=dst)


def iota(expr: Any, dtype: Any, *, mask: Any = None) -> Tile:
    """The values of an index expression."""
    shape = getattr(expr, "shape", None)
    if shape is None:
        raise KernelError("iota takes an index expression")
    t = current().fresh(shape, dtype_of(dtype))
    t.s.producer = emit("Iota", "Pool", [t], [], mask)
    return t


def dropout(data: Any, prob: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Zero some elements."""
    t = use(data, "data")
    return result("Dropout", "DVE", [t] + ([use(prob, "prob")] if is_tile(prob) else []), t.shape, dtype_of(dtype, t.dt), mask)


def affine_select(pred: Any, on_true_tile: Any, on_false_value: Any, *, mask: Any = None, dtype: Any = None, dst: Any = None) -> Tile:
    """A choice by an affine condition on the position."""
    if not isinstance(pred, (Mask, bool)):
        raise KernelError("affine_select takes a comparison of index expressions, not %r" % (pred,))
    t = use(on_true_tile, "on_true_tile")
    return result("TensorScalarAffineSelect", "Pool", [t], t.shape, dtype_of(dtype, t.dt), mask, pdim=pdim_of(t), dst=dst)


def range_select(*, on_true_tile: Any, comp_op0: Any, comp_op1: Any, bound0: Any, bound1: Any, reduce_cmd: Any = _reduce.reset_reduce,
                 reduce_res: Any = None, reduce_op: Any = None, range_start: Any = 0, on_false_value: Any = None, mask: Any = None,
                 dtype: Any = None) -> Tile:
    """A choice by a range of positions."""
    t = use(on_true_tile, "on_true_tile")
    return result("RangeSelect", "DVE", [t, use(bound0, "bound0"), use(bound1, "bound1")], t.shape, dtype_of(dtype, t.dt), mask,
                  extra=[want(reduce_res, "reduce_res")] if reduce_res is not None else [])


def select_reduce(*, dst: Any, predicate: Any, on_true: Any, on_false: Any, reduce_res: Any = None, reduce_cmd: Any = _reduce.idle,
                  reduce_op: Any = None, reverse_pred: bool = False, mask: Any = None, dtype: Any = None) -> None:
    """A choice by a tile, with a reduction."""
    isa_new.select_reduce(dst, predicate, on_true, on_false, reduce_res, reduce_cmd, reduce_op, reverse_pred)


def memset(shape: Any = None, value: Any = 0, dtype: Any = None, *, mask: Any = None, engine: Any = _engine.unknown, dst: Any = None) -> Any:
    """A tile of one value."""
    if dst is not None or is_tile(shape):
        _memset(dst if dst is not None else shape, value, engine_of(engine), mask)
        return None
    t = current().fresh([int(d) for d in shape], dtype_of(dtype, ALL["float32"]))
    t.s.producer = emit("Memset", engine_of(engine), [t], [], mask, zero=True if value == 0 else None)
    return t


def bn_stats(data: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Mean and variance of a part."""
    t = use(data, "data")
    return result("BNStats", "DVE", [t], (t.parts(), 6), dtype_of(dtype, t.dt), None if mask is None or isinstance(mask, Mask) else mask)


def bn_aggr(data: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Mean and variance of parts."""
    t = use(data, "data")
    return result("BNStatsAggregate", "DVE", [t], (t.parts(), 2), dtype_of(dtype, t.dt), None if mask is None or isinstance(mask, Mask) else mask)


def local_gather(src_buffer: Any, index: Any, num_elem_per_idx: Any = 1, num_valid_indices: Any = None, *, mask: Any = None) -> Tile:
    """Gather within groups of partitions."""
    t, i = use(src_buffer, "src_buffer"), use(index, "index")
    n = num_valid_indices if num_valid_indices is not None else i.per_part() * 16
    return result("Gather", "Pool", [t, i], (t.parts(), int(n), int(num_elem_per_idx)), t.dt, mask)


def dma_copy(*, dst: Any, src: Any, mask: Any = None, dst_rmw_op: Any = None, oob_mode: Any = _oob.error, dge_mode: Any = _dge.unknown,
             engine: Any = None) -> None:
    """Copy by DMA."""
    dma(dst, src, mask, dge=value_of(dge_mode, "dge_mode"), rmw=op_name(dst_rmw_op), engine=engine_of(engine))


def dma_transpose(src: Any, *, axes: Any = None, mask: Any = None, dtype: Any = None, dge_mode: Any = _dge.unknown, oob_mode: Any = _oob.error,
                  dst: Any = None) -> Any:
    """Transpose by DMA."""
    s = use(src, "src")
    if dst is not None:
        dma(dst, s, transpose=True)
        return None
    order = list(axes) if axes is not None else list(reversed(range(s.ndim)))
    shape = [s.shape[a] for a in order]
    return result("DMACopy", ANY, [s], shape, dtype_of(dtype, s.dt), mask, transpose=True)


def max8(*, src: Any, mask: Any = None, dtype: Any = None) -> Tile:
    """The eight largest values of a partition."""
    t = use(src, "src")
    return result("Max", "DVE", [t], (t.parts(), 8), dtype_of(dtype, t.dt))


def nc_find_index8(*, data: Any, vals: Any, mask: Any = None, dtype: Any = None) -> Tile:
    """Indices of eight values."""
    t = use(data, "data")
    return result("MaxIndex", "DVE", [t, use(vals, "vals")], (t.parts(), 8), dtype_of(dtype, ALL["uint32"]))


def nc_match_replace8(*, data: Any, vals: Any, imm: Any, dst_idx: Any = None, mask: Any = None, dtype: Any = None) -> Tile:
    """Replace eight values."""
    t = use(data, "data")
    return result("MatchReplace" if dst_idx is None else "MaxIndexAndMatchReplace", "DVE", [t, use(vals, "vals")], t.shape, dtype_of(dtype, t.dt),
                  mask, extra=[want(dst_idx, "dst_idx")] if dst_idx is not None else [])


def nc_stream_shuffle(src: Any, dst: Any, shuffle_mask: Any, *, dtype: Any = None, mask: Any = None) -> None:
    """Move partitions within quadrants of 32."""
    isa_new.nc_stream_shuffle(dst, src, shuffle_mask, mask=mask)


def sequence_bounds(*, segment_ids: Any, dtype: Any = None) -> Tile:
    """Bounds of sequences."""
    t = use(segment_ids, "segment_ids")
    return result("GetSequenceBounds", "Pool", [t], (t.parts(), 2, t.per_part()), dtype_of(dtype, t.dt))


FUNCTIONS: Dict[str, Any] = {
    f.__name__: f
    for f in (
        nc_matmul, nc_transpose, activation, activation_reduce, tensor_reduce, tensor_partition_reduce, tensor_tensor, tensor_tensor_scan,
        scalar_tensor_tensor, tensor_scalar, tensor_scalar_reduce, tensor_copy, tensor_copy_dynamic_src, tensor_copy_dynamic_dst,
        tensor_copy_predicated, reciprocal, iota, dropout, affine_select, range_select, select_reduce, memset, bn_stats, bn_aggr, local_gather,
        dma_copy, dma_transpose, max8, nc_find_index8, nc_match_replace8, nc_stream_shuffle, sequence_bounds, get_nc_version,
    )
}


def module(name: str) -> Any:
    """Return the module neuronxcc.nki.isa."""
    from .install import ApiModule

    m = ApiModule(name)
    for table in (FUNCTIONS, ENUMS, ENGINES):
        for k, v in table.items():
            setattr(m, k, named(v) if k in FUNCTIONS else v)
    return m


def named(func: Any) -> Any:
    """Take the keyword name, a label that every instruction of the old API may have."""

    @functools.wraps(func)
    def call(*args: Any, name: Any = None, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return call


__all__ = ["module", "FUNCTIONS", "binary", "HBM"]
