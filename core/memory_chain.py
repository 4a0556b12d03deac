"""A chain of tensor operations as data: how it is written, what torch does for each, when it fits.

It stands in a link as a short text, read by a strict parser of its own small grammar.

>>> write_chain(read_chain("x.transpose(1, 2) . contiguous()"))
'transpose(1,2).contiguous()'
"""

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import torch

MOST_DIMS, MOST_ELEMENTS, MOST_OPERATIONS = 5, 4096, 24
MOST_WEIGHTS = 65_536  # elements of W in matmul: what a click may allocate beside the tensors shown

Shape = tuple[int, ...]


class ChainError(ValueError):
    """A shape or chain that cannot be. `id` names the sentence a page says, `facts` its gaps."""

    def __init__(self, id: str, **facts):
        self.id, self.facts = id, facts
        super().__init__(f"{id} {facts}")


class Operation(NamedTuple):
    """One step of a chain: a name of FORMS and whole numbers.

    >>> str(Operation("transpose", (1, 2)))
    'transpose(1,2)'
    """

    name: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(str, self.numbers))})"


Chain = tuple[Operation, ...]


class Form(NamedTuple):
    """An operation: least and most numbers it takes, what torch does, how it is written."""

    least: int
    most: int
    run: Callable
    code: Callable[..., str]


def _method(name: str) -> Callable[..., str]:
    return lambda *numbers: f"x.{name}({', '.join(map(str, numbers))})"


def _weights(rows: int, columns: int) -> torch.Tensor:
    """W of matmul, (rows, columns): −2 … 2 in turn, so that products stay small whole numbers."""
    return torch.arange(rows * columns).remainder(5).sub(2).float().reshape(rows, columns)


def _colons(dim: int, start: int, stop: int, step: int) -> str:
    """A slice as people write it: one colon for each dim before the one that is cut."""
    return f"x[{':, ' * dim}{start}:{stop}:{step}]"


FORMS = {
    "view": Form(1, MOST_DIMS, lambda x, *n: x.view(n), _method("view")),
    "reshape": Form(1, MOST_DIMS, lambda x, *n: x.reshape(n), _method("reshape")),
    "transpose": Form(2, 2, lambda x, *n: x.transpose(*n), _method("transpose")),
    "permute": Form(1, MOST_DIMS, lambda x, *n: x.permute(n), _method("permute")),
    "expand": Form(1, MOST_DIMS, lambda x, *n: x.expand(n), _method("expand")),
    "narrow": Form(3, 3, lambda x, *n: x.narrow(*n), _method("narrow")),
    "slice": Form(4, 4, lambda x, d, *n: x[(slice(None),) * d + (slice(*n),)], _colons),
    "flip": Form(1, MOST_DIMS, lambda x, *n: x.flip(n), _method("flip")),
    "contiguous": Form(0, 0, lambda x: x.contiguous(), _method("contiguous")),
    "squeeze": Form(0, 1, lambda x, *n: x.squeeze(*n), _method("squeeze")),
    "unsqueeze": Form(1, 1, lambda x, n: x.unsqueeze(n), _method("unsqueeze")),
    "t": Form(0, 0, lambda x: x.t(), _method("t")),
    "repeat_interleave": Form(
        2, 2, lambda x, n, dim: x.repeat_interleave(n, dim), _method("repeat_interleave")
    ),
    "matmul": Form(1, 1, lambda x, n: x @ _weights(x.shape[-1], n).to(x.device), lambda n: "x @ W"),
}


# --- reading and writing -------------------------------------------------------------------------

_CALL = re.compile(r"\s*([a-z_]+)\s*\(\s*((?:-?\d{1,4}(?:\s*,\s*-?\d{1,4})*)?)\s*,?\s*\)\s*")
_SIZES = re.compile(r"[(\[]?\s*\d+(?:\s*[,，×x\s]\s*\d+)*\s*,?\s*[)\]]?")


def read_shape(text: str) -> Shape:
    """The shape in "1,4,2,3" (also "(1, 4, 2, 3)" or "1×4"). Raises ChainError for anything else.

    >>> read_shape("1, 4, 2, 3")
    (1, 4, 2, 3)
    """
    if not _SIZES.fullmatch(text.strip()):
        raise ChainError("shape-text", text=text.strip()[:60])
    sizes = re.findall(r"\d+", text)
    if len(sizes) > MOST_DIMS:
        raise ChainError("shape-dims", count=len(sizes), most=MOST_DIMS)
    too_long = next((size for size in sizes if len(size) > 4), None)
    shape = tuple(int(size[:5]) for size in sizes)
    if too_long or 0 in shape:
        raise ChainError("shape-size", size=(too_long or "0")[:20], most=MOST_ELEMENTS)
    if prod(shape) > MOST_ELEMENTS:
        raise ChainError("too-many", count=prod(shape), shape=shape, most=MOST_ELEMENTS)
    return shape


def write_shape(shape: Shape) -> str:
    """The inverse of `read_shape`: (1, 4, 2, 3) gives "1,4,2,3"."""
    return ",".join(map(str, shape))


def read_chain(text: str) -> Chain:
    """The operations in "transpose(1,2).contiguous()"; spaces and a leading "x." are allowed.

    A strict parser of its own small grammar: nothing is evaluated. Raises ChainError.

    >>> read_chain("x.transpose(1, 2)")
    (Operation(name='transpose', numbers=(1, 2)),)
    """
    rest = re.sub(r"^\s*x?\s*\.", "", text).strip()
    chain = []
    while rest:
        found = _CALL.match(rest)
        if not found or (found.end() < len(rest) and rest[found.end()] != "."):
            raise ChainError("chain-text", text=rest[:40])
        chain.append(_operation(found[1], re.findall(r"-?\d+", found[2])))
        if rest.endswith(".") and found.end() == len(rest) - 1:
            raise ChainError("chain-text", text=".")
        rest = rest[found.end() + 1 :]
        if len(chain) > MOST_OPERATIONS:
            raise ChainError("chain-long", most=MOST_OPERATIONS)
    return tuple(chain)


def _operation(name: str, numbers: Sequence[str]) -> Operation:
    if name not in FORMS:
        raise ChainError("name", name=name[:40], known=", ".join(FORMS))
    form = FORMS[name]
    if not form.least <= len(numbers) <= form.most:
        raise ChainError("numbers", name=name, count=len(numbers), least=form.least, most=form.most)
    return Operation(name, tuple(map(int, numbers)))


def write_chain(chain: Chain) -> str:
    """The inverse of `read_chain`.

    >>> write_chain((Operation("transpose", (1, 2)), Operation("contiguous")))
    'transpose(1,2).contiguous()'
    """
    return ".".join(map(str, chain))


# --- what stands in the way of an operation, found before torch is asked --------------------------


def refusal(tensor: torch.Tensor, operation: Operation) -> ChainError | None:
    """Why `operation` cannot be done on `tensor`, as far as sizes tell; None if they allow it.

    >>> refusal(torch.zeros(2, 3), Operation("view", (5,))).facts
    {'name': 'view', 'wanted': (5,), 'count': 5, 'have': 6, 'shape': (2, 3)}
    """
    try:
        CHECKS[operation.name](tuple(tensor.shape), operation)
        _check_growth(tensor, operation)
    except ChainError as error:
        return error
    return None


def _check_least(what: str, number: int) -> None:
    if number < 1:
        raise ChainError("least", what=what, got=number)


def _check_dims(shape: Shape, dims: Sequence[int]) -> None:
    for dim in dims:
        if not -len(shape) <= dim < len(shape):
            raise ChainError("dim-range", dim=dim, dims=len(shape), shape=shape)


def _check_nothing(shape: Shape, operation: Operation) -> None:
    """contiguous always fits."""


def _check_all_dims(shape: Shape, operation: Operation) -> None:
    """transpose, flip, squeeze: every number names a dim."""
    _check_dims(shape, operation.numbers)


def _check_flip(shape: Shape, operation: Operation) -> None:
    _check_dims(shape, operation.numbers)
    if len({dim % len(shape) for dim in operation.numbers}) < len(operation.numbers):
        raise ChainError("dim-twice", name=operation.name, numbers=operation.numbers)


def _check_unsqueeze(shape: Shape, operation: Operation) -> None:
    if len(shape) == MOST_DIMS:
        raise ChainError("dims-most", most=MOST_DIMS)
    _check_dims((*shape, 1), operation.numbers)


def _check_t(shape: Shape, operation: Operation) -> None:
    if len(shape) > 2:
        raise ChainError("t-dims", dims=len(shape), shape=shape)


def _check_repeat(shape: Shape, operation: Operation) -> None:
    repeats, dim = operation.numbers
    _check_dims(shape, (dim,))
    _check_least("repeats", repeats)


def _check_matmul(shape: Shape, operation: Operation) -> None:
    (columns,) = operation.numbers
    _check_dims(shape, (-1,))
    _check_least("columns", columns)
    if shape[-1] * columns > MOST_WEIGHTS:
        raise ChainError("weights-most", rows=shape[-1], columns=columns, most=MOST_WEIGHTS)


def _check_sizes(shape: Shape, operation: Operation) -> None:
    """view, reshape: the sizes hold as many elements as there are; one −1 stands for the rest."""
    name, wanted = operation
    have, unknown = prod(shape), wanted.count(-1)
    known = prod(n for n in wanted if n != -1)
    if unknown > 1:
        raise ChainError("infer-two", name=name, wanted=wanted)
    if any(n < 1 and n != -1 for n in wanted):
        raise ChainError("least", what="size", got=min(n for n in wanted if n != -1))
    if unknown and have % known:
        raise ChainError("infer", name=name, wanted=wanted, known=known, have=have)
    if not unknown and known != have:
        raise ChainError("elements", name=name, wanted=wanted, count=known, have=have, shape=shape)


def _check_expand(shape: Shape, operation: Operation) -> None:
    """expand: sizes stay (or −1), except that 1 may become anything; new dims go in front."""
    wanted = operation.numbers
    new = len(wanted) - len(shape)
    if new < 0:
        raise ChainError("expand-fewer", wanted=wanted, dims=len(shape), shape=shape)
    for dim, size in enumerate(wanted, start=-new):
        if dim >= 0 and size in (-1, shape[dim]):
            continue
        _check_least("size", size)
        if dim >= 0 and shape[dim] != 1:
            raise ChainError("expand-size", dim=dim, have=shape[dim], wanted=size)


def _check_permute(shape: Shape, operation: Operation) -> None:
    dims = operation.numbers
    _check_dims(shape, dims)
    if sorted(dim % max(len(shape), 1) for dim in dims) != list(range(len(shape))):
        raise ChainError("permute", numbers=dims, dims=len(shape))


def _check_narrow(shape: Shape, operation: Operation) -> None:
    dim, start, length = operation.numbers
    _check_dims(shape, (dim,))
    if start < 0 or length < 1 or start + length > shape[dim]:
        raise ChainError("narrow", dim=dim, size=shape[dim], start=start, length=length)


def _check_slice(shape: Shape, operation: Operation) -> None:
    dim, start, stop, step = operation.numbers
    _check_dims(shape, (dim,))
    if dim < 0:
        raise ChainError("slice-dim", dim=dim, instead=dim + len(shape))
    _check_least("step", step)
    if not range(shape[dim])[start:stop:step]:
        raise ChainError("slice-empty", dim=dim, size=shape[dim], start=start, stop=stop)


CHECKS = {
    "view": _check_sizes,
    "reshape": _check_sizes,
    "transpose": _check_all_dims,
    "permute": _check_permute,
    "expand": _check_expand,
    "narrow": _check_narrow,
    "slice": _check_slice,
    "flip": _check_flip,
    "contiguous": _check_nothing,
    "squeeze": _check_all_dims,
    "unsqueeze": _check_unsqueeze,
    "t": _check_t,
    "repeat_interleave": _check_repeat,
    "matmul": _check_matmul,
}


def _check_growth(tensor: torch.Tensor, operation: Operation) -> None:
    """Ask torch itself how large the result would be, on the meta device, which stores nothing."""
    ghost = torch.empty_strided(tensor.shape, tensor.stride(), device="meta")
    try:
        shape = tuple(FORMS[operation.name].run(ghost, *operation.numbers).shape)
    except RuntimeError:  # a view that strides forbid: no larger than before, told by `walk`
        return
    if prod(shape) > MOST_ELEMENTS:
        raise ChainError("too-many", count=prod(shape), shape=shape, most=MOST_ELEMENTS)
