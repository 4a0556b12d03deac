"""The spaces of queries, keys and values as they are: two or three axes, nothing projected away."""

import streamlit as st

from core import AttentionConfig
from core.experiments import roles
from core.figures import CONFIG, Points, panels, space
from core.numbers import write
from parts.heads_tables import Cell, show, table
from parts.roles_controls import names
from parts.state import escaped
from parts.text import _, prose

HEIGHT = 400


def spaces(
    before: AttentionConfig, after: AttentionConfig, query: int, place: tuple[str, int, int, float]
) -> None:
    """Three spaces, what the query reads off in them, and how far the changed weight moved them."""
    _moved(before, after, place)
    for column, symbol in zip(st.columns(3), "QKV", strict=True):
        with column:
            _space(before, after, symbol, query)
    _read_off(after, query)


def _moved(before, after, place) -> None:
    matrix, row, column, by = place
    facts = {"matrix": f"{matrix}[{row + 1}, {column + 1}]", "row": row + 1, "axis": column + 1}
    facts |= {"by": write(by, 3), "space": matrix[-1]}
    facts["value"] = write(float(roles.whole(after)[matrix][row, column]), 3)
    if not by:
        return st.markdown(prose("roles/unmoved", **facts))
    facts["moved"] = write(roles.moved(before, after, matrix[-1]), 3)
    facts["predicted"] = write(roles.predicted_move(before, row, by), 3)
    others = [symbol for symbol in "QKV" if symbol != matrix[-1]]
    facts["others"] = ", ".join(others)
    facts["stayed"] = write(max(roles.moved(before, after, symbol) for symbol in others), 3)
    return st.markdown(prose("roles/moved", **facts))


def _space(before, after, symbol: str, query: int) -> None:
    tokens, whole = names(after), roles.whole(after)
    points = whole[symbol].tolist()
    asking = Points(_("query of {token}").format(token=tokens[query]),
                    [whole["Q"][query].tolist()], ["q"], arrows=True)  # fmt: skip
    title = {
        "Q": _("Queries: Q = X·W_Q"),
        "K": _("Keys: K = X·W_K, with the query"),
        "V": _("Values: V = X·W_V, with what is read"),
    }[symbol]
    if symbol == "Q":
        rest = [i for i in range(len(tokens)) if i != query]
        groups = [Points(_("queries"), [points[i] for i in rest], [tokens[i] for i in rest], True)]
        groups += [asking]
    elif symbol == "K":
        groups = [Points(_("keys"), points, tokens, arrows=True), asking]
    else:
        read = [whole["output"][query].tolist()]
        groups = [Points(_("values"), points, tokens, arrows=True),
                  Points(_("output"), read, [_("output")], arrows=True)]  # fmt: skip
    was = roles.whole(before)[symbol].tolist()
    if was != points:
        groups.append(Points(_("before the change"), was))
    groups = [group for group in groups if len(group.at)]
    st.markdown(f"**{title}**")
    axis = "d_v" if symbol == "V" else "d_k"
    titles = [f"{axis} {i + 1}" for i in range(after.d_k)]
    figure = space(groups, titles=titles, dark=dark(), height=HEIGHT)
    figure.update_layout(legend=panels.LEGEND, margin_t=panels.TOP)
    if after.d_k == 3:
        figure.update_layout(scene_camera_eye={"x": 1.9, "y": 1.9, "z": 1.3})
    places = "; ".join(
        f"{token} ({', '.join(write(x, 2) for x in at)})"
        for token, at in zip(tokens, points, strict=True)
    )
    st.plotly_chart(figure, theme=None, key=f"roles_space_{symbol}", config=CONFIG,
                    alt=f"{title}. {places}")  # fmt: skip


def dark() -> bool:
    return st.context.theme.type == "dark"


def _read_off(config: AttentionConfig, query: int) -> None:
    """Length, angle and dot product of every key with the query."""
    tokens, found = names(config), roles.keys(config, query)
    rows = [
        (
            token,
            [
                write(key.length, 3),
                f"{key.degrees:.1f}°",
                write(key.cosine, 3),
                write(key.query_length * key.length * key.cosine, 3),
                write(key.dot, 3),
                Cell(write(key.weight, 3), share=key.weight),
            ],
        )
        for token, key in zip(tokens, found, strict=True)
    ]
    head = (_("key"), "|k|", _("angle to q"), "cos", "|q|·|k|·cos", "q·k", _("weight"))
    title = _("Keys as seen from the query of {token}, |q| = {length}")
    length = write(found[0].query_length, 3)
    show(table(title.format(token=tokens[query], length=length), head, rows, name="keys"))
    nearest = max(range(len(found)), key=lambda i: found[i].cosine)
    largest = max(range(len(found)), key=lambda i: found[i].dot)
    facts = {
        "nearest": escaped(tokens[nearest]),
        "angle": f"{found[nearest].degrees:.1f}",
        "largest": escaped(tokens[largest]),
        "dot": write(found[largest].dot, 3),
        "length": write(found[largest].length, 3),
        "nearest_length": write(found[nearest].length, 3),
        "query": escaped(tokens[query]),
    }
    st.markdown(prose("roles/same" if nearest == largest else "roles/longer", **facts))
