"""Functions that are called on tiles and that name what an instruction computes."""

from __future__ import annotations

from typing import Any, Dict

from .errors import KernelError

BINARY = (
    "add subtract multiply divide power maximum minimum mod fmod floor_divide logical_and logical_or logical_xor bitwise_and bitwise_or "
    "bitwise_xor equal not_equal greater greater_equal less less_equal left_shift right_shift arithmetic_shift_left "
    "arithmetic_shift_right logical_shift_left logical_shift_right abs_max abs_min average bypass"
).split()
UNARY = (
    "abs arctan ceil cos erf erf_dx exp floor gelu gelu_apprx_tanh gelu_apprx_sigmoid gelu_apprx_sigmoid_dx gelu_dx gelu_apprx_tanh_dx log "
    "log1p expm1 mish relu rsqrt sigmoid sign silu silu_dx sin softplus sqrt square tan tanh trunc invert logical_not bitwise_invert "
    "bitwise_not identity reciprocal negative leaky_relu prelu elu swish derivative_gelu derivative_silu sinh cosh arcsin arccos is_finite "
    "round exp2 cbrt lrelu copysign relu_dx tanh_dx sigmoid_dx copy rint"
).split()
# what numpy calls them
ALIASES: Dict[str, str] = {
    "absolute": "abs", "true_divide": "divide", "mult": "multiply", "max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum",
    "sum": "add", "prod": "multiply", "subtract": "subtract", "remainder": "mod", "abs_": "abs", "invert": "invert", "gt": "greater",
    "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal", "any": "maximum", "all": "minimum",
    "is_gt": "greater", "is_ge": "greater_equal", "is_lt": "less", "is_le": "less_equal", "is_equal": "equal", "pow": "power",
    "float_power": "power", "bypass": "bypass", "mean": "add", "arctan": "arctan", "copy": "copy", "truediv": "divide", "mul": "multiply",
    "sub": "subtract", "multiply": "multiply", "negative": "negative", "shift_right": "right_shift", "shift_left": "left_shift",
    "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}
KNOWN = set(BINARY) | set(UNARY)


def op_name(op: Any, what: str = "op") -> str:
    """Return the name of an operation given as a function of nl or numpy, or as a text."""
    if op is None:
        return ""
    name = op if isinstance(op, str) else getattr(op, "perfsim_op", None) or getattr(op, "__name__", None) or str(op)
    name = name.rsplit(".", 1)[-1]
    name = ALIASES.get(name, name)
    if name not in KNOWN:
        raise KernelError("%s=%s is no operation that is known" % (what, getattr(op, "__name__", op)))
    return name
