"""One big W_Q against h small ones, and widths with d_k·h other than H."""

from functools import lru_cache

import streamlit as st

from core import AttentionConfig, heads, run
from core.numbers import write
from parts.heads_controls import choose, fit, number, row, sizes
from parts.heads_tables import Cell, show, table
from parts.text import _, prose
from parts.traces import trace

WIDTHS = {
    "512-8-64": (512, 8, 64),
    "512-8-256": (512, 8, 256),
    "512-8-32": (512, 8, 32),
    "6-2-5": (6, 2, 5),
}
cut = lru_cache(maxsize=64)(lambda config: heads.slices(trace(config)))
wide = lru_cache(maxsize=4)(run)  # up to 50 MB each


# --- one product or many ------------------------------------------------------------------------


def product() -> None:
    """The big product with the columns of each head, then one head on its own."""
    config = sizes()
    if config is None:
        return
    names = {str(i): _("head {number}").format(number=i + 1) for i in range(config.h)}
    head = int(choose(_("Small matrix of"), names, "small"))
    found, pieces, d_k = trace(config), cut(config), config.d_k
    facts = {"H": config.H, "h": config.h, "d_k": d_k, "big": config.H * config.h * d_k}
    st.markdown(prose("heads/product", **facts, small=config.H * d_k))
    st.code(
        "Q = X @ W_Q  # one product\n"
        "Q_small = torch.cat([X @ W for W in W_Q.chunk(h, -1)], -1)  # h products\n"
        "(Q - Q_small).abs().max()",
        language="python",
        wrap_lines=True,
    )
    show(
        _numbers("W_Q", found["W_Q"].tolist(), lambda c: c // d_k, "W_Q"),
        _numbers("Q = X · W_Q", found["Q"].tolist(), lambda c: c // d_k, "Q"),
    )
    title = _("{name} of head {number}")
    show(
        _numbers(title.format(name="W_Q", number=head + 1), pieces[head].weight.tolist(),
                 lambda c: head, "W_small"),
        _numbers(title.format(name="X · W_Q", number=head + 1), pieces[head].product.tolist(),
                 lambda c: head, "Q_small"),
    )  # fmt: skip
    largest = max(piece.difference for piece in pieces)
    st.markdown(prose("heads/product_measured", largest=write(largest, 3), h=config.h))
    show(_differences(pieces, d_k))


def _numbers(caption: str, rows: list, place, name: str) -> str:
    """A matrix, its columns in the colours of their heads."""
    cells = [
        (str(i + 1), [Cell(write(x, 3), place(c)) for c, x in enumerate(row)])
        for i, row in enumerate(rows)
    ]
    shape = f"{caption} ({len(rows)}, {len(rows[0])})"
    return table(shape, ["", *(str(c + 1) for c in range(len(rows[0])))], cells, name=name)


def _differences(pieces, d_k: int) -> str:
    head = ("", _("Columns of W_Q"), _("largest |difference|"))
    rows = [
        (
            _("head {number}").format(number=i + 1),
            [Cell(f"{i * d_k + 1} … {(i + 1) * d_k}", i), write(piece.difference, 3)],
        )
        for i, piece in enumerate(pieces)
    ]
    return table(_("Each small product against its columns of Q"), head, rows, name="differences")


# --- d_k·h = H, or not --------------------------------------------------------------------------


def width() -> None:
    """Any H, h and d_k, run: the shapes, the parameters, and the line of code that breaks."""
    st.markdown(prose("heads/width"))
    examples = st.container()
    with row():
        H = number(_("H, hidden size"), "width_H", 512, 1, 768)
        h = number(_("h, heads"), "width_h", 8, 1, 16)
        d_k = number(_("d_k, width of a head"), "width_d", 256, 1, 256)
    with examples:
        _examples((H, h, d_k))
    config = fit(S=4, H=H, h=h, d_k=d_k, project=True)
    if config is not None:
        _run(config)


def _examples(now: tuple[int, int, int]) -> None:
    names = {key: f"H = {H}, h = {h}, d_k = {d_k}" for key, (H, h, d_k) in WIDTHS.items()}
    keys = ("width_H", "width_h", "width_d")
    st.session_state["width_example"] = next((k for k, v in WIDTHS.items() if v == now), None)

    def take():
        if chosen := st.session_state["width_example"]:
            st.session_state.update(zip(keys, WIDTHS[chosen], strict=True))

    st.pills(_("Examples"), list(names), key="width_example", format_func=names.get, on_change=take)


def _run(config: AttentionConfig) -> None:
    found = wide(config)
    H, inner = config.H, config.h * config.d_k
    facts = {"H": H, "h": config.h, "d_k": config.d_k, "inner": inner, "S": config.S}
    facts["parameters"] = f"{_parameters(found):,}"
    facts["usual"] = f"{4 * H * H:,}"
    refusal = heads.view_refusal(found)
    st.markdown(prose("heads/width_other" if refusal else "heads/width_usual", **facts))
    if refusal:
        st.code(f"merged.view(S, H)\n# {refusal}", language="python", wrap_lines=True)
    show(_shapes(found))


def _parameters(found) -> int:
    return sum(step.tensor.numel() for step in found.steps if step.symbol.startswith("W_"))


def _shapes(found) -> str:
    head = ("", _("Dims"), _("Shape"))
    rows = [
        (step.symbol, [Cell(" × ".join(step.dims.split()), code=True),
                       Cell(str(step.shape), code=True)])
        for step in found.steps
    ]  # fmt: skip
    merged = [step.symbol for step in found.steps].index("merged") if "merged" in found else None
    return table(_("The run, step by step"), head, rows, current=merged, name="shapes")
