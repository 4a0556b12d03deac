"""How the network came about: what was asked of it, what was measured, how the loss fell."""

from functools import lru_cache

import streamlit as st

from core.figures import CONFIG
from core.figures.curves import Series, curves
from core.numbers import write
from core.translator import load
from core.translator.translator import loss_curve
from parts.heads_tables import Cell, show, table
from parts.text import _, prose
from parts.translator_runs import PLACES

CODE = """\
from core.translator import load

translator = load()
print(translator.translate({text!r}))

run = translator.run({text!r})
trace = translator.trace(run, "cross", 0)  # every intermediate of an attention
print(trace["weights"].argmax(-1))  # for each head and row: the word it looks at most
print((trace["projected"] - run.out["cross", 0]).abs().max())  # the model's own forward
"""
curve = lru_cache(maxsize=1)(loss_curve)


def figures() -> dict:
    """What prose quotes: sizes and measured shares."""
    about = load().about
    found, training, sizes = about["figures"], about["training"], load().sizes
    return {
        "parameters": f"{about['parameters']:,}",
        "H": sizes.H,
        "h": sizes.h,
        "encoder": sizes.encoder,
        "decoder": sizes.decoder,
        "english": len(load().known),
        "chinese": len(load().target_words) - 3,
        "trained": f"{found['pairs']['trained']:,}",
        "held": f"{found['pairs']['held out']:,}",
        "steps": f"{training['steps']:,}",
        "minutes": write(training["seconds"] / 60, 2),
        "drop_head": percent(training["drop_head"]),
        "drop_mix": percent(training["drop_mix"]),
        "drop_word": percent(training["drop_word"]),
        "aligned": percent(found["aligned"]["share"]),
        "spared": percent(min(min(layer) for layer in found["exact without a head"]["cross"])),
        "best": found["aligned"]["head"] + 1,
    }


def _without(found: dict) -> None:
    """How many held-out sentences stay right without each head."""
    count = load().sizes.h
    rows = [
        (f"{_(PLACES[place])} {layer}", [Cell(percent(share), share=share) for share in shares])
        for place, layers in found.items()
        for layer, shares in enumerate(layers, 1)
    ]
    head = ["", *(_("head {number}").format(number=n + 1) for n in range(count))]
    show(table(_("Held-out sentences still right without one head"), head, rows, name="without"))


def percent(share: float) -> str:
    """Share as a percentage with at most two decimals, never rounded up to 100.

    >>> percent(0.9718), percent(1.0), percent(0.99999)
    ('97.18 %', '100 %', '99.99 %')
    """
    hundredths = int(share * 10_000 + 1e-9)
    return f"{hundredths / 100:g} %"


def training() -> None:
    """Figures beside their goals, the loss curve, and how to make it all again."""
    found = load().about["figures"]
    pairs, exact, aligned = found["pairs"], found["exact"], found["aligned"]
    said = [
        (_("held-out sentences translated word for word"), pairs["held out"], "≥ 99.5 %",
         exact["held out"]),
        (_("held-out sentences with “bank”"), pairs["bank"], "100 %", exact["bank"]),
        (_("of these, “bank” without river or account beside it"), pairs["bank apart"], "100 %",
         exact["bank apart"]),
        (_("strongest cross-attention on the true word"), pairs["held out"], "≥ 92 %",
         aligned["share"]),
        (_("the same, words with a single source only"), pairs["held out"], "–",
         aligned["share of words with one source"]),
    ]  # fmt: skip
    rows = [(name, [f"{count:,}", goal, percent(got)]) for name, count, goal, got in said]
    show(table(_("Asked and measured"), ["", _("sentences"), _("goal"), _("measured")], rows,
               name="figures"))  # fmt: skip
    st.markdown(prose("translator/training", **figures()))
    _without(found["exact without a head"])
    steps, losses = curve()
    figure = curves(
        [Series(_("loss"), steps, losses)], x_title=_("training step"), y_title=_("loss"),
        log_y=True, points=False, dark=st.context.theme.type == "dark",
    )  # fmt: skip
    alt = _("The loss over the steps of training, from {first} down to {last}").format(
        first=write(losses[0], 2), last=write(losses[-1], 2)
    )
    st.plotly_chart(figure, theme=None, config=CONFIG, key="translator_loss", alt=alt)
    st.code("python -m core.translator.train", language="bash")
