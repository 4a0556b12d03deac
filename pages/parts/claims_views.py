"""The claims page: which claim, what may be changed, what was measured, the verdict."""

import streamlit as st

from core.experiments.claims import CLAIMS, Claim, measure
from core.numbers import write
from parts.choice import choice
from parts.text import N_, _

SHORT = {
    "shared": N_("Q and K from one matrix"),
    "matmul": N_("transpose and contiguous"),
    "reshape": N_("reshape"),
    "contiguity": N_("the contiguity rule"),
    "fill": N_("−1e9"),
    "unscaled": N_("without √d_k"),
    "bounded": N_("bounded gradients"),
    "widths": N_("d_k·h = H"),
    "across": N_("heads without transpose"),
    "variance": N_("variance 1"),
}
SAYS = {
    "shared": N_("If Q and K share one matrix, each position always attends most to itself."),
    "matmul": N_("A transposed tensor cannot be multiplied without contiguous()."),
    "reshape": N_("reshape never copies."),
    "contiguity": N_("The contiguity rule holds for every dimension."),
    "fill": N_("−1e9 is a safe mask value."),
    "unscaled": N_("Without √d_k training fails."),
    "bounded": N_("Softmax gradients are bounded, so learning is safe."),
    "widths": N_("d_k·h must equal H."),
    "across": N_(
        "Splitting to (S, h, d_k) and multiplying the last two axes is multi-head attention."
    ),
    "variance": N_("Scaling makes the variance 1."),
}
BAR = r"\|"  # else a bar of |x| would end a cell of the table
VERDICTS = {"false": N_("false"), "conditional": N_("true under a condition")}
ASKED = {
    "S": N_("S, sequence length"),
    "d": N_("width of a vector"),
    "equal": N_("equal key lengths"),
    "seed": N_("Seed"),
    "rows": N_("rows"),
    "inner": N_("columns"),
    "columns": N_("columns"),
    "stride": N_("stride of the dimension of size 1"),
    "score": N_("score of the visible key"),
    "keys": N_("keys in a row"),
    "d_k": N_("d_k, key width"),
    "T": N_("T, source length"),
    "gain": N_("scores times"),
    "H": N_("H, hidden size"),
    "h": N_("h, heads"),
    "spread": N_("σ of the entries"),
    "within": N_("correlation ρ of the entries"),
}
MEASURED = {
    "rows": N_("positions"),
    "own": N_("positions whose largest score is their own"),
    "asymmetry": N_("largest |s_ij − s_ji|"),
    "beaten": N_("(1, 0) scores (3, 0) higher than itself by"),
    "contiguous": N_("is_contiguous()"),
    "difference": N_("largest difference"),
    "view": N_("view(-1) says"),
    "plain_shares": N_("plain: reshape shares the storage"),
    "turned_copies": N_("transposed: reshape copies"),
    "bytes": N_("bytes copied"),
    "strides": N_("strides of the shape (1, rows, columns)"),
    "wanted": N_("stride[0] by the rule"),
    "leak": N_("share of the hidden key"),
    "blind": N_("share of each key when all are hidden"),
    "half": N_("float16 says"),
    "entropy_scaled": N_("entropy, divided by √d_k"),
    "gradient_scaled": N_("gradient, divided by √d_k"),
    "entropy_bare": N_("entropy, undivided"),
    "gradient_bare": N_("gradient, undivided"),
    "entropy_t5": N_("entropy, undivided, W_Q drawn smaller by √d_k"),
    "gradient_t5": N_("gradient, undivided, W_Q drawn smaller by √d_k"),
    "bound": N_("the bound"),
    "calm": N_("largest derivative, scores as drawn"),
    "steep": N_("largest derivative, scores multiplied"),
    "merged": N_("h·d_k, merged width"),
    "H": N_("H, hidden size"),
    "shape": N_("shape of the result"),
    "fits": N_("the result is (S, H)"),
    "grid": N_("shape of the scores"),
    "heard": N_("change of token 0 when the value of token 1 changes"),
    "measured": N_("variance after scaling, measured"),
    "predicted": N_("variance after scaling, predicted"),
}


def chosen() -> str:
    """Which claim."""
    return choice(_("Claim"), SHORT, "claim", default="shared")


def heading(claim: Claim) -> None:
    """What one reads, and what is so."""
    number = list(CLAIMS).index(claim.name) + 1
    st.header(f"{number}. “{_(SAYS[claim.name])}”", anchor=False)
    colour = {"false": "red", "conditional": "orange"}[claim.verdict]
    st.markdown(f"{_('Verdict')}: :{colour}-badge[{_(VERDICTS[claim.verdict])}]")


def settings(claim: Claim) -> tuple[tuple[str, float], ...]:
    """The numbers a reader may change, each kept in the link."""
    found = []
    for one, column in zip(claim.asked, st.columns(len(claim.asked)), strict=True):
        key, label = f"{claim.name}_{one.name}", _(ASKED[one.name])
        if isinstance(one.first, bool):
            value = column.toggle(label, one.first, key=key, bind="query-params")
        else:
            kind = float if isinstance(one.first, float) else int
            limits = (kind(one.least), kind(one.most), kind(one.first), kind(one.step))
            value = column.number_input(label, *limits, key=key, bind="query-params")
        if value != one.first:
            found.append((one.name, value))
    return tuple(found)


def measured(claim: Claim, changed) -> None:
    """What this very run measured, and whether the claim held in it."""
    found = measure(claim.name, changed)
    rows = [(_(MEASURED[name]), _shown(value)) for name, value in found.items() if name != "holds"]
    head = f"| {_('measured')} | |\n| --- | --- |\n"
    lines = (f"| {label.replace('|', BAR)} | `{value}` |" for label, value in rows)
    st.markdown(head + "\n".join(lines))
    if found["holds"]:
        st.info(_("With these numbers the claim holds."), icon=":material/check:")
    else:
        st.warning(_("With these numbers the claim does not hold."), icon=":material/close:")


def _shown(value) -> str:
    if isinstance(value, bool | str):
        return str(value)
    return write(value)


def overview() -> None:
    """All claims with their verdicts."""
    lines = [f"| | {_('Claim')} | {_('Verdict')} |", "| --- | --- | --- |"]
    for number, claim in enumerate(CLAIMS.values(), 1):
        lines.append(f"| {number} | {_(SAYS[claim.name])} | {_(VERDICTS[claim.verdict])} |")
    st.markdown("\n".join(lines))
