"""nki.collectives: communication between ranks, as one instruction each."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from .errors import KernelError
from .isa_common import Register
from .names import op_name
from .operations import current, emit, is_tile, use, want
from .symbols import plain
from .tiles import HBM, PSUM, SBUF


class ReplicaGroup:
    """Lists of ranks; each list communicates on its own."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        try:
            self.groups = [[int(plain(r)) for r in g] for g in groups]
        except TypeError:
            raise KernelError("ReplicaGroup takes lists of ranks, such as [[0, 1, 2, 3]], not %r" % (groups,)) from None
        ranks = [r for g in self.groups for r in g]
        if not ranks or not all(self.groups):
            raise KernelError("ReplicaGroup %s has a list without ranks" % self.groups)
        if len(set(ranks)) != len(ranks) or min(ranks) < 0:
            raise KernelError("ReplicaGroup %s has a rank twice, or a negative one" % self.groups)

    @staticmethod
    def from_partition_op(world_size: int, op: Any, operand: int) -> "ReplicaGroup":
        """Ranks of which op(rank, operand) is the same are one list."""
        if not isinstance(op, Partition):
            raise KernelError("op=%r is no rg_partition_op" % (op,))
        lists: Dict[int, List[int]] = {}
        for rank in range(int(plain(world_size))):
            lists.setdefault(op.of(rank, int(plain(operand))), []).append(rank)
        return ReplicaGroup(list(lists.values()))

    @property
    def size(self) -> int:
        """Ranks of the largest list."""
        return max(len(g) for g in self.groups)


class Partition:
    """A member of rg_partition_op."""

    def __init__(self, of: Callable[[int, int], int]) -> None:
        self.of = of


class rg_partition_op:
    """How ranks are told apart."""

    div = Partition(lambda rank, n: rank // n)
    mod = Partition(lambda rank, n: rank % n)
    bitwise_and = Partition(lambda rank, n: rank & n)


def _group(g: Any) -> ReplicaGroup:
    if not isinstance(g, ReplicaGroup):
        raise KernelError("replica_group=%r is no ReplicaGroup" % (g,))
    return g


def _list(x: Any, name: str) -> List[Any]:
    if is_tile(x) or not isinstance(x, (list, tuple)) or not x:
        raise KernelError("%s is a list of tensors, not %s" % (name, "a tensor" if is_tile(x) else repr(x)))
    return list(x)


def _record(kind: str, ranks: int, srcs: Any, dsts: Any, chip: bool = True) -> None:
    """One collective of all tensors of srcs and dsts."""
    ins = [use(t, "srcs[%d]" % i) for i, t in enumerate(_list(srcs, "srcs"))]
    outs = [want(t, "dsts[%d]" % i) for i, t in enumerate(_list(dsts, "dsts"))]
    if len(ins) % len(outs):
        raise KernelError("%d tensors are sent and %d received" % (len(ins), len(outs)))
    memories = {t.s.mem for t in ins + outs}
    if PSUM in memories or len(memories) > 1 or SBUF in memories and not chip:
        raise KernelError("%s of tensors in %s: %s" % (
            kind, " and ".join(sorted(memories)), "all are in device memory or all in SBUF" if chip else "all are in device memory"))
    if SBUF in memories and len(outs) > 1:
        raise KernelError("%s of several tensors at once: only in device memory" % kind)
    current().note("collectives: latency, steps and rate of the machine description, chosen by perfsim; the other ranks are taken to arrive at the same time")
    emit("CollectiveCompute", "Pool", outs, ins, func="%s %d" % (kind, ranks))


def _sizes(kind: str, srcs: Any, dsts: Any, of: Callable[[int], int], chip: bool, dim: Any) -> None:
    """Refuse results of another size than the collective makes."""
    for s, d in zip(_list(srcs, "srcs"), _list(dsts, "dsts")):
        s, d = want(s, "srcs"), want(d, "dsts")
        n = of(s.size)
        if d.size != n:
            raise KernelError("%s of a tensor of shape %s makes %d elements; dst has shape %s" % (kind, s.shape, n, d.shape))
        if dim is not None and int(plain(dim)) not in ((0, 1) if chip and s.s.mem != HBM else (0,)):
            raise KernelError("%s along dimension %s" % (kind, plain(dim)))


def all_reduce(srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = None, name: Any = None) -> None:
    """Every rank gets the sum of all."""
    op_name(op)
    n = _group(replica_group).size
    _sizes("all_reduce", srcs, dsts, lambda x: x, True, None)
    _record("all-reduce", n, srcs, dsts)


def all_gather(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = None, name: Any = None) -> None:
    """Every rank gets what all have."""
    n = _group(replica_group).size
    _sizes("all_gather", srcs, dsts, lambda x: x * n, True, collective_dim)
    _record("all-gather", n, srcs, dsts)


def reduce_scatter(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, op: Any, priority: Any = None, name: Any = None) -> None:
    """Every rank gets its part of the sum of all."""
    op_name(op)
    n = _group(replica_group).size
    _sizes("reduce_scatter", srcs, dsts, lambda x: x // n, False, collective_dim)
    _record("reduce-scatter", n, srcs, dsts)


def all_to_all(srcs: Any, dsts: Any, replica_group: Any, collective_dim: Any, priority: Any = None, name: Any = None) -> None:
    """Every rank gets a part of every other's."""
    n = _group(replica_group).size
    _sizes("all_to_all", srcs, dsts, lambda x: x, False, collective_dim)
    _record("all-to-all", n, srcs, dsts, chip=False)


def all_to_all_v(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: bool = False, has_rdispls: bool = False,
                 priority: Any = None, name: Any = None) -> None:
    """all_to_all of sizes that only the running kernel knows."""
    use(metadata_tensor, "metadata_tensor")
    current().note("all_to_all_v: sizes are not known before the kernel runs; whole tensors count")
    _record("all-to-all", _group(replica_group).size, srcs, dsts, chip=False)


def collective_permute(srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = None, name: Any = None) -> None:
    """Ranks send to ranks that pairs name."""
    for p in _list(source_target_pairs, "source_target_pairs"):
        if not isinstance(p, (list, tuple)) or len(p) != 2:
            raise KernelError("source_target_pairs has %r, which is no pair of ranks" % (p,))
    _sizes("collective_permute", srcs, dsts, lambda x: x, False, None)
    _record("collective-permute", 2, srcs, dsts, chip=False)


def _channels(name: str, lists: Any, ids: Any) -> List[Any]:
    out = []
    for c in _list(lists, name):
        inner = _list(c, name)
        if len(inner) != 1:
            raise KernelError("%s has %d tensors for a channel; it takes one" % (name, len(inner)))
        out += inner
    if len(out) != len(list(ids)):
        raise KernelError("%s has %d channels, channel_ids has %d" % (name, len(out), len(list(ids))))
    return out


def collective_permute_implicit(srcs_by_channel: Any, dsts_by_channel: Any, replica_group: Any, channel_ids: Any = (0,), priority: Any = None,
                                name: Any = None) -> None:
    """Ranks send to their neighbours in a ring."""
    n = _group(replica_group).size
    srcs, dsts = _channels("srcs_by_channel", srcs_by_channel, channel_ids), _channels("dsts_by_channel", dsts_by_channel, channel_ids)
    for s, d in zip(srcs, dsts):
        _record("collective-permute", n, [s], [d])


def collective_permute_implicit_reduce(srcs0_by_channel: Any, srcs1_by_channel: Any, dsts_by_channel: Any, replica_group: Any, op: Any,
                                       channel_ids: Any = (0,), priority: Any = None, name: Any = None) -> None:
    """Ranks send a sum of two to their neighbours in a ring."""
    op_name(op)
    n = _group(replica_group).size
    lists = [_channels(k, v, channel_ids) for k, v in (
        ("srcs0_by_channel", srcs0_by_channel), ("srcs1_by_channel", srcs1_by_channel), ("dsts_by_channel", dsts_by_channel))]
    for a, b, d in zip(*lists):
        use(b, "srcs1_by_channel")
        current().note("collective_permute_implicit_reduce: the reduction is taken to hide behind the transfer")
        _record("collective-permute", n, [a], [d])


def collective_permute_implicit_current_processing_rank_id(iteration_id: Any, replica_group: Any, channel_id: Any = 0, num_channels: Any = 1,
                                                           name: Any = None) -> Register:
    """A register with the rank whose data is worked on."""
    _group(replica_group)
    return rank_id()


def rank_id(name: Any = None) -> Register:
    """A register with this rank."""
    current().emit("RegisterMove", "SP", [], [])
    return Register(None)


FUNCTIONS: Dict[str, Any] = {
    f.__name__: f
    for f in (
        all_reduce, all_gather, reduce_scatter, all_to_all, all_to_all_v, collective_permute, collective_permute_implicit,
        collective_permute_implicit_reduce, collective_permute_implicit_current_processing_rank_id, rank_id,
    )
}
FUNCTIONS.update(ReplicaGroup=ReplicaGroup, rg_partition_op=rg_partition_op)


def module(name: str) -> Any:
    """Return the module nki.collectives."""
    from .install import ApiModule

    m: Any = ApiModule(name)
    for k, v in FUNCTIONS.items():
        setattr(m, k, v)
    return m
