"""What an attention layer costs, counted on the same step records that the engine runs.

Nothing is computed: the recipe of a configuration is built, and each step tells its FLOPs and its
elements from its named dims. So sizes that no machine here could hold are counted as well.

>>> c = cost(AttentionConfig(S=4, H=6, d_k=3))
>>> c.parameters, c.flops["project"], c.cache_per_token(bytes_per_element=2)
(54, 432, 12)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from core import ops, recipes
from core.config import AttentionConfig

MATRICES = ("W_Q", "W_K", "W_V", "W_O")
# Which steps belong together when one asks where the arithmetic goes.
PARTS = {
    "project": ("Q", "K", "V", "projected"),
    "compare": ("scores",),
    "softmax": ("scaled", "capped", "biased", "masked", "weights"),
    "mix": ("output",),
}
VARIED = ("S", "H", "h", "g", "d_k")


@dataclass(frozen=True)
class StepCost:
    """One step: FLOPs (a multiply-add counts 2) and elements of new memory, 0 for a view."""

    symbol: str
    shape: tuple[int, ...]
    flops: int
    elements: int
    given: bool


@dataclass(frozen=True)
class Cost:
    """The cost of one layer: its steps, and what follows from them."""

    config: AttentionConfig
    steps: tuple[StepCost, ...]

    @property
    def parameters(self) -> int:
        """Entries of the W's. Biases are not counted: the engine has none."""
        return sum(step.elements for step in self.steps if step.symbol in MATRICES)

    @property
    def flops(self) -> dict[str, int]:
        """FLOPs of a forward pass by part: project, compare (QKᵀ), softmax, mix (A·V)."""
        return {
            part: sum(step.flops for step in self.steps if step.symbol in symbols)
            for part, symbols in PARTS.items()
        }

    @property
    def activations(self) -> dict[str, int]:
        """Elements that eager code keeps, of shape (…, S, T) and all others, without the W's."""
        grid = (self.config.S, self.config.T)
        made = [step for step in self.steps if not step.given]
        square = sum(s.elements for s in made if s.symbol in PARTS["compare"] + PARTS["softmax"]
                     and s.shape[-2:] == grid)  # fmt: skip
        return {"square": square, "rest": sum(step.elements for step in made) - square}

    def cache_per_token(self, bytes_per_element: int) -> int:
        """Bytes that one more token adds to the KV cache: a key and a value per key/value head."""
        config = self.config
        return config.g * (config.d_k + config.d_v) * bytes_per_element


@lru_cache(maxsize=4096)
def cost(config: AttentionConfig) -> Cost:
    """Count one configuration."""
    sizes, counted = config.sizes() | {"E": config.H_Y}, []
    dims = {}
    for step in _recipe(config):
        dims[step.symbol] = step.dims
        read = [dims[symbol] for symbol in step.reads]
        elements = 0 if step.op.effect == "views" else ops.volume(step.dims, sizes)
        shape = tuple(ops.volume(axis, sizes) for axis in step.dims.split())
        flops = step.op.flops(sizes, read, step.dims)
        given = isinstance(step.op, ops.Given)
        counted.append(StepCost(step.symbol, shape, flops, elements, given))
    return Cost(config, tuple(counted))


def _recipe(config: AttentionConfig) -> list[recipes.Step]:
    """The steps of a configuration, without the code of its inputs."""
    heads = config.h > 1
    masked = config.causal or config.window or config.lengths or config.hidden
    plan = recipes.Plan(
        lead="B" if config.B is not None else "",
        h=config.h if heads else 0,
        g=config.g if heads else 0,
        source="T" if config.cross else "S",
        asker="H_Y" if config.H_Y != config.H else "H",
        result="E" if config.H_Y != config.H else "H",
        root=config.d_k,
        softcap=config.softcap,
        pairs=config.rotary or "",
        mask=f"S {'T' if config.cross else 'S'}" if masked else "",
        prescaled=config.dtype == "float16",
    )
    lines = dict.fromkeys(("Y", *config.input_shapes()), "")
    return recipes.projected(plan, lines, cross=config.cross)


def sweep(config: AttentionConfig, vary: str, values) -> list[Cost]:
    """The cost at each value of one size, all else equal. Sizes that do not fit are left out.

    Varying S varies T with it; varying h keeps H, so d_k follows as H / h; varying H keeps h.

    >>> [c.parameters for c in sweep(AttentionConfig(S=4, H=8, h=2), "H", [8, 16])]
    [192, 768]
    """
    found = []
    for value in values:
        if vary == "h":
            fits = config.H % value == 0 and value % min(config.g, value) == 0
            changes = {"h": value, "d_k": None, "d_v": None, "g": min(config.g, value)}
        elif vary == "g":
            fits, changes = config.h % value == 0, {"g": value}
        else:
            fits, changes = vary != "H" or value % config.h == 0, {vary: value}
        if fits:
            found.append(cost(replace_sizes(config, **changes)))
    return found


def replace_sizes(config: AttentionConfig, **changes) -> AttentionConfig:
    """`config.changed`, for counting: the example and its tokens make way for plain sizes."""
    return replace(config, x="seeded", tokens=(), targets=(), edits=()).changed(**changes)


def crossover(config: AttentionConfig, most: int = 1 << 20) -> int | None:
    """The smallest S at which QKᵀ and A·V together cost more FLOPs than the projections.

    Found by halving, on the step records. None if it is never so up to `most`.

    >>> crossover(AttentionConfig(S=4, H=8, project=True))
    17
    """

    def dearer(S):
        flops = cost(replace_sizes(config, S=S)).flops
        return flops["compare"] + flops["mix"] > flops["project"]

    low, high = 1, most
    if not dearer(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if dearer(middle) else (middle + 1, high)
    return low
