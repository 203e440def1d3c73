"""nki.isa, destination first."""

from __future__ import annotations

from typing import Any, Dict

from .dtypes import dtype_of
from .errors import KernelError
from .isa_common import ENGINES, ENUMS, Register, dge_mode as _dge, engine as _engine, engine_of, get_nc_version, matmul_perf_mode as _perf
from .isa_common import oob_mode as _oob, reduce_cmd as _reduce, value_of
from .names import op_name
from .operations import ANY, activation as _activation, check_scalar, copy, current, dma, emit, fit, is_tile, is_vector, matmul, memset as _memset
from .operations import pe_transpose, use, want
from .symbols import plain
from .tiles import HBM, Tile, product


def _same_count(dst: Tile, src: Tile, what: str) -> None:
    if dst.size != src.size:
        raise KernelError("%s: dst has shape %s and the input %s" % (what, dst.shape, src.shape))


def _fitted(dst: Tile, t: Tile, what: str) -> Tile:
    if t.size == dst.size:
        return t
    shape = dst.shape
    if t.ndim <= len(shape):
        try:
            return fit(t, shape)
        except KernelError:
            pass
    if t.per_part() == dst.per_part() and t.parts() == 1:
        return fit(Tile(t.s, t.b, t.p, t.f, t.axes, t.dt, t.dyn), (1,) + shape[1:])
    raise KernelError("%s: dst has shape %s and an input %s" % (what, dst.shape, t.shape))


def activation(dst: Any, op: Any, data: Any, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None, reduce_res: Any = None,
               reduce_cmd: Any = _reduce.idle, acc: Any = None, name: Any = None, engine: Any = None, mask: Any = None) -> None:
    """func(data * scale + bias)."""
    d, t = want(dst, "dst"), use(data, "data")
    _activation(op_name(op), _fitted(d, t, "activation"), bias, scale, reduce_op=op_name(reduce_op), reduce_res=reduce_res,
                reduce_cmd=value_of(reduce_cmd, "reduce_cmd"), dst=d, mask=mask)


def activation_reduce(dst: Any, op: Any, data: Any, reduce_op: Any, reduce_res: Any, bias: Any = None, scale: Any = 1.0, name: Any = None) -> None:
    """activation with a sum of its results."""
    activation(dst, op, data, bias, scale, reduce_op, reduce_res)


def affine_select(dst: Any, pattern: Any, offset: Any = 0, channel_multiplier: Any = 0, on_true_tile: Any = None, on_false_value: Any = None,
                  cmp_op: Any = None, name: Any = None, pred: Any = None) -> None:
    """A choice by an affine function of the position."""
    d, t = want(dst, "dst"), use(on_true_tile, "on_true_tile")
    _same_count(d, t, "affine_select")
    emit("TensorScalarAffineSelect", "Pool", [d], [t])


def bn_stats(dst: Any, data: Any, name: Any = None) -> None:
    """Mean and variance of a part."""
    emit("BNStats", "DVE", [want(dst, "dst")], [use(data, "data")])


def bn_aggr(dst: Any, data: Any, name: Any = None) -> None:
    """Mean and variance of parts."""
    emit("BNStatsAggregate", "DVE", [want(dst, "dst")], [use(data, "data")])


def core_barrier(data: Any, cores: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Wait for the other core."""
    emit("CoreBarrier", "ALL", [], [use(data, "data")] if data is not None else [])


def dma_copy(dst: Any, src: Any, dst_rmw_op: Any = None, oob_mode: Any = _oob.error, dge_mode: Any = _dge.unknown, unique_indices: bool = True,
             engine: Any = _engine.unknown, priority: Any = None, name: Any = None, mask: Any = None) -> None:
    """Copy by DMA."""
    dma(dst, src, mask, engine=engine_of(engine), dge=value_of(dge_mode, "dge_mode"), rmw=op_name(dst_rmw_op))


def dma_transpose(dst: Any, src: Any, axes: Any = None, priority: Any = None, dge_mode: Any = _dge.unknown, oob_mode: Any = _oob.error,
                  engine: Any = _engine.unknown, name: Any = None) -> None:
    """Transpose by DMA."""
    d, s = want(dst, "dst"), use(src, "src")
    _same_count(d, s, "dma_transpose")
    dma(d, s, transpose=True, engine=engine_of(engine), dge=value_of(dge_mode, "dge_mode"))


def dma_compute(dst: Any, srcs: Any, reduce_op: Any = None, scales: Any = None, unique_indices: bool = True, name: Any = None) -> None:
    """A sum of sources by DMA."""
    if isinstance(reduce_op, (list, tuple)):  # an older order: dst, srcs, scales, reduce_op
        reduce_op, scales = scales, reduce_op
    d = want(dst, "dst")
    for i, s in enumerate(srcs):
        dma(d, s, rmw=op_name(reduce_op) if i else None)


def dropout(dst: Any, data: Any, prob: Any, name: Any = None) -> None:
    """Zero some elements."""
    d, t = want(dst, "dst"), use(data, "data")
    emit("Dropout", "DVE", [d], [t] + ([use(prob, "prob")] if is_tile(prob) else []))


def exponential(dst: Any, src: Any, max_value: Any = 0.0, reduce_res: Any = None, reduce_cmd: Any = _reduce.idle, reduce_init: Any = 0.0,
                name: Any = None) -> None:
    """exp(src - max_value) on the DVE."""
    d = want(dst, "dst")
    ins = [use(src, "src")] + ([use(max_value, "max_value")] if is_tile(max_value) else [])
    emit("Exponential", "DVE", [d] + ([want(reduce_res, "reduce_res")] if reduce_res is not None else []), ins)


def iota(dst: Any, pattern: Any, offset: Any = 0, channel_multiplier: Any = 0, name: Any = None) -> None:
    """Numbers by an affine function of the position."""
    emit("Iota", "Pool", [want(dst, "dst")], [])


def local_gather(dst: Any, src_buffer: Any, index: Any, num_elem_per_idx: Any = 1, num_valid_indices: Any = None, name: Any = None) -> None:
    """Gather within groups of partitions."""
    emit("Gather", "Pool", [want(dst, "dst")], [use(src_buffer, "src_buffer"), use(index, "index")])


def max8(dst: Any, src: Any, name: Any = None) -> None:
    """The eight largest values of a partition."""
    emit("Max", "DVE", [want(dst, "dst")], [use(src, "src")])


def memset(dst: Any, value: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Fill."""
    if not is_tile(value):
        check_scalar(value, "memset")
    _memset(dst, value, engine_of(engine))


def nc_find_index8(dst: Any, data: Any, vals: Any, name: Any = None) -> None:
    """Indices of eight values."""
    emit("MaxIndex", "DVE", [want(dst, "dst")], [use(data, "data"), use(vals, "vals")])


def nc_match_replace8(dst: Any, data: Any, vals: Any, imm: Any, dst_idx: Any = None, name: Any = None) -> None:
    """Replace eight values."""
    op = "MatchReplace" if dst_idx is None else "MaxIndexAndMatchReplace"
    emit(op, "DVE", [want(dst, "dst")] + ([want(dst_idx, "dst_idx")] if dst_idx is not None else []), [use(data, "data"), use(vals, "vals")])


def nc_matmul(dst: Any, stationary: Any, moving: Any, is_stationary_onezero: bool = False, is_moving_onezero: bool = False, is_transpose: bool = False,
              accumulate: Any = None, tile_position: Any = (), tile_size: Any = (), perf_mode: Any = _perf.none, psum_accumulate_flag: Any = None,
              name: Any = None) -> None:
    """dst += or = stationary.T @ moving."""
    if accumulate is not None and not isinstance(accumulate, bool):
        accumulate = bool(plain(accumulate))
    if psum_accumulate_flag is not None:
        accumulate = not (int(psum_accumulate_flag) & 1) if int(psum_accumulate_flag) != 3 else None
    matmul(stationary, moving, dst, transpose=is_transpose, accumulate=accumulate, onezero=is_stationary_onezero or is_moving_onezero,
           perf_mode=value_of(perf_mode, "matmul_perf_mode") if not isinstance(perf_mode, str) else perf_mode,
           tile=tuple(plain(x) for x in tile_size) if tile_size else None)


def nc_matmul_mx(dst: Any, stationary: Any, moving: Any, stationary_scale: Any, moving_scale: Any, tile_position: Any = None, tile_size: Any = None,
                 accumulate: Any = None, psum_accumulate_flag: Any = None, name: Any = None) -> None:
    """A matmul of MX types."""
    if accumulate is not None:
        accumulate = bool(plain(accumulate))
    matmul(stationary, moving, dst, accumulate=accumulate, opcode="MatmultMx", scales=[stationary_scale, moving_scale],
           tile=tuple(plain(x) for x in tile_size) if tile_size else None)


def nc_n_gather(dst: Any, data: Any, indices: Any, name: Any = None) -> None:
    """Gather within partitions."""
    emit("Gather", "Pool", [want(dst, "dst")], [use(data, "data"), use(indices, "indices")])


def nc_stream_shuffle(dst: Any, src: Any, shuffle_mask: Any, name: Any = None, mask: Any = None) -> None:
    """Move partitions within quadrants of 32."""
    d, s = want(dst, "dst"), use(src, "src")
    if len(shuffle_mask) != 32:
        raise KernelError("shuffle_mask has %d entries; it needs 32" % len(shuffle_mask))
    emit("StreamShuffle", "DVE", [d], [s], mask)


def nc_transpose(dst: Any, data: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Swap partitions and elements."""
    pe_transpose(data, dst, engine=engine_of(engine))


def nonzero_with_count(dst: Any, src: Any, index_offset: Any = 0, padding_val: Any = -1, name: Any = None) -> None:
    """Indices of nonzero elements."""
    emit("NonzeroWithCount", "Pool", [want(dst, "dst")], [use(src, "src")])


def quantize_mx(dst: Any, src: Any, dst_scale: Any, name: Any = None) -> None:
    """To MX types."""
    emit("QuantizeMx", "DVE", [want(dst, "dst"), want(dst_scale, "dst_scale")], [use(src, "src")])


def rand2(dst: Any, min: Any = 0.0, max: Any = 1.0, name: Any = None) -> None:
    """Uniform random numbers."""
    emit("Rand2", "DVE", [want(dst, "dst")], [use(x, "min") for x in (min, max) if is_tile(x)])


def rng(dst: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Random bits."""
    emit("Rng", engine_of(engine), [want(dst, "dst")], [])


def rand_get_state(dst: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Read the state of the random numbers."""
    emit("RandGetState", engine_of(engine), [want(dst, "dst")], [])


def rand_set_state(src_seeds: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Write the state of the random numbers."""
    emit("RandSetState", engine_of(engine), [], [use(src_seeds, "src_seeds")])


def set_rng_seed(src_seeds: Any, name: Any = None) -> None:
    """Write the seed of the random numbers."""
    emit("RandSetState", ANY, [], [use(src_seeds, "src_seeds")])


def range_select(dst: Any, on_true_tile: Any, comp_op0: Any, comp_op1: Any, bound0: Any, bound1: Any, reduce_cmd: Any = _reduce.reset_reduce,
                 reduce_res: Any = None, reduce_op: Any = None, range_start: Any = 0.0, on_false_value: Any = None, name: Any = None) -> None:
    """A choice by a range of positions."""
    outs = [want(dst, "dst")] + ([want(reduce_res, "reduce_res")] if reduce_res is not None else [])
    emit("RangeSelect", "DVE", outs, [use(on_true_tile, "on_true_tile"), use(bound0, "bound0"), use(bound1, "bound1")])


def reciprocal(dst: Any, data: Any, name: Any = None, engine: Any = None, mask: Any = None) -> None:
    """1 / data."""
    d, t = want(dst, "dst"), use(data, "data")
    _same_count(d, t, "reciprocal")
    emit("Reciprocal", engine_of(engine) or "DVE", [d], [t], mask)


def register_alloc(x: Any = None) -> Register:
    """A register, with a number or the value of a tile in it."""
    r = Register(None)
    if is_tile(x):
        register_load(r, x)
    elif x is not None:
        register_move(r, x)
    return r


def register_load(dst: Any, src: Any) -> None:
    """Memory to register."""
    t = use(src, "src")
    emit("TensorLoad", "SP", [], [t])
    dst.value, dst.tile = None, t


def register_move(dst: Any, src: Any = None, imm: Any = None) -> None:
    """A number to a register."""
    v = src if src is not None else imm
    emit("RegisterMove", "SP", [], [])
    dst.value, dst.tile = (v.value, v.tile) if isinstance(v, Register) else (int(plain(v)), None)


def register_store(dst: Any, src: Any) -> None:
    """Register to memory."""
    emit("TensorSave", "SP", [want(dst, "dst")], [])


def scalar_load(src: Any) -> Register:
    """A number of a tile for the sequencers."""
    return register_alloc(want(src, "src"))


def scalar_store(dst: Any, src: Any) -> None:
    """Such a number to a tile."""
    register_store(dst, src)


def scalar_tensor_tensor(dst: Any, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False, reverse1: bool = False,
                         name: Any = None, mask: Any = None) -> None:
    """(data op0 scalar) op1 tensor."""
    d, t = want(dst, "dst"), use(data, "data")
    ins = [_fitted(d, t, "scalar_tensor_tensor")]
    if is_tile(operand0):
        ins.append(use(operand0, "operand0"))
    ins.append(_fitted(d, use(operand1, "operand1"), "scalar_tensor_tensor"))
    emit("ScalarTensorTensor", "DVE", [d], ins, mask, op0=op_name(op0), op1=op_name(op1))


def select_reduce(dst: Any, predicate: Any, on_true: Any, on_false: Any, reduce_res: Any = None, reduce_cmd: Any = _reduce.idle, reduce_op: Any = None,
                  reverse_pred: bool = False, name: Any = None) -> None:
    """A choice by a tile, with a reduction."""
    outs = [want(dst, "dst")] + ([want(reduce_res, "reduce_res")] if reduce_res is not None else [])
    emit("Select", "DVE", outs, [use(predicate, "predicate"), use(on_true, "on_true")] + ([use(on_false, "on_false")] if is_tile(on_false) else []))


def sendrecv(src: Any, dst: Any, send_to_rank: Any, recv_from_rank: Any, pipe_id: Any = 0, use_gpsimd_dma: bool = False, dma_engine: Any = None,
             name: Any = None) -> None:
    """Exchange with another core."""
    s, d = use(src, "src"), want(dst, "dst")
    _same_count(d, s, "sendrecv")
    emit("SendRecv", ANY, [d], [s], to=int(plain(send_to_rank)), source=int(plain(recv_from_rank)), pipe=int(plain(pipe_id)))


def sequence_bounds(dst: Any, segment_ids: Any, name: Any = None) -> None:
    """Bounds of sequences."""
    emit("GetSequenceBounds", "Pool", [want(dst, "dst")], [use(segment_ids, "segment_ids")])


def tensor_copy(dst: Any, src: Any, engine: Any = _engine.unknown, name: Any = None, dtype: Any = None, mask: Any = None) -> None:
    """Copy on an engine."""
    d, t = want(dst, "dst"), use(src, "src")
    if d.s.mem == HBM:
        raise KernelError("tensor_copy writes SBUF or PSUM; use dma_copy for device memory")
    if dtype is not None:
        dtype_of(dtype)
    copy(_fitted(d, t, "tensor_copy"), None, mask, engine_of(engine), dst=d)


def tensor_copy_dynamic_src(dst: Any, src: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Copy from an address that a register or tile holds."""
    d, t = want(dst, "dst"), use(src, "src")
    emit("TensorCopyDynamicSrc", engine_of(engine), [d], [t])


def tensor_copy_dynamic_dst(dst: Any, src: Any, engine: Any = _engine.unknown, name: Any = None) -> None:
    """Copy to an address that a register or tile holds."""
    d, t = want(dst, "dst"), use(src, "src")
    emit("TensorCopyDynamicDst", engine_of(engine), [d], [t])


def tensor_copy_predicated(dst: Any, src: Any, predicate: Any, reverse_pred: bool = False, name: Any = None) -> None:
    """Copy where a tile says so."""
    d = want(dst, "dst")
    ins = ([use(src, "src")] if is_tile(src) else []) + [use(predicate, "predicate")]
    emit("CopyPredicated", "DVE", [d], ins)


def tensor_partition_reduce(dst: Any, op: Any, data: Any, name: Any = None) -> None:
    """Reduce over partitions."""
    emit("PartitionReduce", "Pool", [want(dst, "dst")], [use(data, "data")], op0=op_name(op))


def tensor_reduce(dst: Any, op: Any, data: Any, axis: Any, negate: bool = False, keepdims: bool = False, name: Any = None, engine: Any = None,
                  mask: Any = None) -> None:
    """Reduce along free axes."""
    from .operations import axes_of

    d, t = want(dst, "dst"), use(data, "data")
    axes = axes_of(axis, t.ndim)
    if t.part_axis() in axes:
        raise KernelError("tensor_reduce along the partition axis")
    left = product([n for i, n in enumerate(t.shape) if i not in axes])
    if d.size != left:
        raise KernelError("tensor_reduce of %s along %s gives %d elements; dst has shape %s" % (t.shape, axes, left, d.shape))
    order = [i for i in range(t.ndim) if i not in axes] + axes
    src = Tile(t.s, t.b, t.p, t.f, tuple(t.axes[i] for i in order), t.dt, t.dyn)
    emit("TensorReduce", engine_of(engine) or "DVE", [d], [src], mask, op0=op_name(op), axes=len(axes), negate=True if negate else None)


def tensor_scalar(dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None, operand1: Any = None,
                  reverse1: bool = False, engine: Any = _engine.unknown, name: Any = None, dtype: Any = None, mask: Any = None) -> None:
    """(data op0 scalar) op1 scalar; a scalar is a number or one element a partition."""
    d, t = want(dst, "dst"), use(data, "data")
    ins = [_fitted(d, t, "tensor_scalar")]
    for x, what in ((operand0, "operand0"), (operand1, "operand1")):
        if is_tile(x):
            v = use(x, what)
            if v.per_part() != 1 and not is_vector(v):
                raise KernelError("%s has %d elements a partition; tensor_scalar takes one (shape %s)" % (what, v.per_part(), v.shape))
            ins.append(v)
        elif x is not None:
            check_scalar(x, what)
    op1n = op_name(op1, "op1")
    emit("TensorScalarPtr" if len(ins) > 1 else "TensorScalar", engine_of(engine), [d], ins, mask, op0=op_name(op0, "op0"), op1=op1n or None)


def tensor_scalar_cumulative(dst: Any, src: Any, op0: Any, op1: Any, imm0: Any, imm1: Any = None, reduce_cmd: Any = _reduce.reset_reduce,
                             name: Any = None) -> None:
    """tensor_scalar with a running reduction."""
    ins = [use(src, "src")] + [use(x, "imm") for x in (imm0, imm1) if is_tile(x)]
    emit("TensorTensorScan", "DVE", [want(dst, "dst")], ins, op0=op_name(op0), op1=op_name(op1))


def tensor_scalar_reduce(dst: Any, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any = None, reverse0: bool = False,
                         reduce_cmd: Any = _reduce.reset_reduce, reduce_init: Any = None, reduce_res_negate: bool = False, name: Any = None) -> None:
    """tensor_scalar with a reduction."""
    op_name(reduce_op, "reduce_op"), value_of(reduce_cmd, "reduce_cmd")
    tensor_scalar(dst, data, op0, operand0, reverse0, engine=_engine.vector)
    if reduce_res is not None:
        emit("DveReadAccumulator", "DVE", [want(reduce_res, "reduce_res")], [])


def tensor_tensor(dst: Any, data1: Any, data2: Any, op: Any, engine: Any = _engine.unknown, name: Any = None, dtype: Any = None,
                  mask: Any = None) -> None:
    """data1 op data2."""
    d, a, b = want(dst, "dst"), use(data1, "data1"), use(data2, "data2")
    emit("TensorTensor", engine_of(engine), [d], [_fitted(d, a, "tensor_tensor"), _fitted(d, b, "tensor_tensor")], mask, op0=op_name(op))


def tensor_tensor_scan(dst: Any, data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False, reverse1: bool = False,
                       name: Any = None) -> None:
    """A recurrence along the free axis."""
    ins = [use(data0, "data0"), use(data1, "data1")] + ([use(initial, "initial")] if is_tile(initial) else [])
    emit("TensorTensorScan", "DVE", [want(dst, "dst")], ins, op0=op_name(op0), op1=op_name(op1))


FUNCTIONS: Dict[str, Any] = {
    f.__name__: f
    for f in (
        activation, activation_reduce, affine_select, bn_stats, bn_aggr, core_barrier, dma_copy, dma_transpose, dma_compute, dropout, exponential,
        iota, local_gather, max8, memset, nc_find_index8, nc_match_replace8, nc_matmul, nc_matmul_mx, nc_n_gather, nc_stream_shuffle,
        nc_transpose, nonzero_with_count, quantize_mx, rand2, rng, rand_get_state, rand_set_state, set_rng_seed, range_select, reciprocal,
        register_alloc, register_load, register_move, register_store, scalar_load, scalar_store, scalar_tensor_tensor, select_reduce, sendrecv, sequence_bounds,
        tensor_copy, tensor_copy_dynamic_src, tensor_copy_dynamic_dst, tensor_copy_predicated, tensor_partition_reduce, tensor_reduce,
        tensor_scalar, tensor_scalar_cumulative, tensor_scalar_reduce, tensor_tensor, tensor_tensor_scan, get_nc_version,
    )
}


def module(name: str) -> Any:
    """Return the module nki.isa."""
    from .install import ApiModule

    m: Any = ApiModule(name)
    m.NkiScalar = m.VirtualRegister = Register
    for table in (FUNCTIONS, ENUMS, ENGINES):
        for k, v in table.items():
            setattr(m, k, v)
    return m


__all__ = ["module", "FUNCTIONS", "current"]
