"""Why scores are divided by √d_k: sampled, measured, and compared with what theory predicts."""

import streamlit as st

from core.experiments.scaling import snippet, sweep_snippet, unscaled_snippet
from parts import scaling_controls as controls
from parts import scaling_views as views
from parts.tables import table_style
from parts.text import _, prose

table_style()
st.title(_("Why divide by √d_k"))
st.markdown(prose("scaling/intro"))

st.header(_("The spread of q·k"), anchor=False)
pairs = controls.pairs()
found = views.sample_of(pairs)
views.verdict(found)
views.histograms(found)
views.numbers(found)

st.header(_("What softmax makes of such scores"), anchor=False)
st.markdown(prose("scaling/rows"))
rows, own = controls.rows(pairs)
views.row(rows, pairs.d_k, own)

st.header(_("Entropy and gradient against d_k"), anchor=False)
points = views.curves(rows, pairs.d_k, own)
views.reading(points, rows, own)

st.header(_("T5 divides by nothing"), anchor=False)
views.t5(pairs)

st.header(_("The same in PyTorch"), anchor=False)
sampling, sweeping, unscaled = st.tabs(
    [_("The spread of q·k"), _("Entropy and gradient against d_k"), _("T5 divides by nothing")]
)
sampling.code(snippet(pairs), language="python", wrap_lines=True)
sweeping.code(sweep_snippet(rows, own), language="python", wrap_lines=True)
unscaled.code(unscaled_snippet(pairs.d_k, pairs.seed), language="python", wrap_lines=True)
