"""Pictures and tables of a layer's cost. All numbers come from `core.cost`."""

import pandas as pd
import streamlit as st

from core.cost import Cost, sweep
from core.figures.curves import Series, bars, curves
from parts.choice import choice
from parts.text import N_, _

PARTS = {
    "project": N_("projections"),
    "compare": N_("QKᵀ"),
    "softmax": N_("scale, mask, softmax"),
    "mix": N_("A·V"),
}
QUANTITIES = {
    "flops": N_("FLOPs"),
    "memory": N_("Activations"),
    "parameters": N_("Parameters"),
    "cache": N_("KV cache"),
}
PREFIXES = ("", "k", "M", "G", "T", "P")
RANGES = {
    "S": tuple(1 << power for power in range(4, 18)),
    "H": tuple(1 << power for power in range(5, 15)),
    "h": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128),
    "g": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128),
    "d_k": (8, 16, 32, 64, 128, 256, 512, 1024),
}


def large(number: float, unit: str = "") -> str:
    """A count with a decimal prefix, three digits: 12.9 M."""
    power = 0
    while abs(number) >= 1000 and power < len(PREFIXES) - 1:
        number, power = number / 1000, power + 1
    prefix = PREFIXES[power]
    text = f"{number:.0f}" if not prefix or number >= 100 else f"{number:.3g}"
    return f"{text} {prefix}{unit}".rstrip()


def _dark() -> bool:
    return st.context.theme.type == "dark"


def totals(counted: Cost, size: int) -> None:
    """The four totals of one layer."""
    memory, per_token = sum(counted.activations.values()) * size, counted.cache_per_token(size)
    cells = (
        (_("Parameters"), large(counted.parameters), _("entries of W_Q, W_K, W_V and W_O")),
        (_("FLOPs"), large(sum(counted.flops.values())), _("one forward pass, one sequence")),
        (_("Activations"), large(memory, "B"), _("if every step is kept, as eager code does")),
        (
            _("KV cache"),
            large(per_token * counted.config.S, "B"),
            _("{each} per token and layer").format(each=large(per_token, "B")),
        ),
    )
    for column, (label, value, note) in zip(st.columns(4), cells, strict=True):
        column.metric(label, value)
        column.caption(note)


def parts(counted: Cost, crossing: int | None) -> None:
    """FLOPs by part, and from which length on the S × S part costs more than the projections."""
    flops = counted.flops
    figure = bars(
        [_(PARTS[part]) for part in flops],
        {_("FLOPs"): list(flops.values())},
        y_title=_("FLOPs"),
        dark=_dark(),
    )
    st.plotly_chart(figure, theme=None, key="cost_parts", alt=_("FLOPs of each part as bars"))
    if crossing:
        st.markdown(
            _(
                "From **S = {crossing}** on, QKᵀ and A·V together cost more FLOPs than the "
                "projections. Found by counting at ever closer lengths, not by a formula."
            ).format(crossing=f"{crossing:,}")
        )


def varied(names) -> str:
    """Which size grows."""
    return choice(_("Let this size grow"), {n: n for n in names}, "cost_vary", default="S")


def growth(config, vary: str, size: int) -> None:
    """One quantity against one size, both on log axes."""
    names = QUANTITIES
    shown = choice(_("Show"), names, "cost_show", default="flops")
    found = sweep(config, vary, RANGES[vary])
    x = [getattr(one.config, vary) for one in found]
    series = [Series(_(name), x, y) for name, y in _lines(found, shown, size)]
    figure = curves(
        series,
        x_title=vary,
        y_title=_(names[shown]) + ("" if shown in ("flops", "parameters") else " (B)"),
        log_x=True,
        log_y=True,
        marks={_("now"): getattr(config, vary)},
        dark=_dark(),
        height=400,
    )
    st.plotly_chart(figure, theme=None, key="cost_growth", alt=_("Cost against one size"))
    if len(found) > 1:
        first, last = found[-2:]
        st.caption(_doubling(vary, x[-2:], first, last, shown, size))


def _lines(found, shown, size):
    if shown == "flops":
        return [(PARTS[part], [one.flops[part] for one in found]) for part in PARTS]
    if shown == "memory":
        return [
            (N_("S × S tables"), [one.activations["square"] * size for one in found]),
            (N_("everything else"), [one.activations["rest"] * size for one in found]),
        ]
    if shown == "parameters":
        return [(N_("Parameters"), [one.parameters for one in found])]
    return [(N_("KV cache"), [one.cache_per_token(size) * one.config.S for one in found])]


def _doubling(vary, x, first, last, shown, size):
    before = sum(line[-1] for _name, line in _lines([first], shown, size))
    after = sum(line[-1] for _name, line in _lines([last], shown, size))
    return _("{vary} from {a} to {b}: the sum grows {times} times.").format(
        vary=vary, a=f"{x[0]:,}", b=f"{x[1]:,}", times=f"{after / before:.3g}"
    )


def steps(counted: Cost, size: int) -> None:
    """Every step with its shape, FLOPs and new memory."""
    rows = [
        {
            _("Symbol"): step.symbol,
            _("Shape"): " × ".join(f"{n:,}" for n in step.shape),
            "FLOPs": step.flops,
            _("New memory (bytes)"): step.elements * size,
        }
        for step in counted.steps
    ]
    grouped = st.column_config.NumberColumn(format="localized")
    config = {"FLOPs": grouped, _("New memory (bytes)"): grouped}
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=320, column_config=config)


def code(config) -> None:
    """A script that lets torch count the products of this layer."""
    st.code(script(config), language="python")


def script(config) -> str:
    """Torch's own FLOP counter over the layer on the meta device, which computes nothing."""
    return f"""import torch
from torch.utils.flop_counter import FlopCounterMode

S, H, h, g, d = {config.S}, {config.H}, {config.h}, {config.g}, {config.d_k}
X = torch.empty(S, H, device="meta")
W_Q = torch.empty(H, h * d, device="meta")
W_K = torch.empty(H, g * d, device="meta")
W_V = torch.empty(H, g * d, device="meta")
W_O = torch.empty(h * d, H, device="meta")
with FlopCounterMode(display=False) as counter:
    Q = (X @ W_Q).view(S, h, d).transpose(0, 1)
    K = (X @ W_K).view(S, g, d).transpose(0, 1).repeat_interleave(h // g, dim=0)
    V = (X @ W_V).view(S, g, d).transpose(0, 1).repeat_interleave(h // g, dim=0)
    weights = (Q @ K.transpose(1, 2) * d**-0.5).softmax(-1)
    projected = (weights @ V).transpose(0, 1).reshape(S, h * d) @ W_O
products = counter.get_total_flops()
print(products)
"""


def ways(counted: Cost, size: int) -> dict[str, str]:
    """Numbers for the closing prose."""
    config = counted.config
    window = min(256, config.S)
    return {
        "S": f"{config.S:,}",
        "square": large(counted.activations["square"] * size, "B"),
        "rest": large(counted.activations["rest"] * size, "B"),
        "window": f"{window:,}",
        "ratio": f"{config.S / window:.3g}",
        "share": f"{config.h / config.g:.3g}",
    }
