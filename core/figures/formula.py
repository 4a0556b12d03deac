r"""LaTeX to MathML, for files that must show formulas without a network or a library.

Only what our formulas use. A command that is not known here raises ValueError; `inline` then shows
the LaTeX itself.

>>> inline(r"\sqrt 2")
'<math><msqrt><mn>2</mn></msqrt></math>'
"""

from __future__ import annotations

import re
from html import escape

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)
_SPACE = {r"\,": "0.17em", r"\;": "0.28em", r"\quad": "1em", r"\ ": "0.25em"}
_OPERATOR = {
    r"\cdot": "·", r"\times": "×", r"\top": "⊤", r"\infty": "∞", r"\sum": "∑", r"\approx": "≈",
    r"\partial": "∂", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\le": "≤", r"\leq": "≤", r"\ge": "≥",
    r"\geq": "≥", r"\neq": "≠", r"\ne": "≠", r"\to": "→", r"\in": "∈", r"\pm": "±", r"\odot": "⊙",
    r"\ldots": "…", r"\dots": "…", r"\cdots": "⋯", r"\mid": "|", r"\|": "‖", r"\propto": "∝",
    r"\sim": "∼", r"\ll": "≪", r"\gg": "≫", r"\{": "{", r"\}": "}", r"\prod": "∏", r"\circ": "∘",
}  # fmt: skip
_LETTER = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "pi": "π", "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω",
    "Delta": "Δ", "Sigma": "Σ", "ell": "ℓ",
}  # fmt: skip
_NAMED = ("tanh", "exp", "log", "ln", "max", "min", "sin", "cos", "argmax")


def inline(latex: str, block: bool = False) -> str:
    """A <math> element, or the escaped LaTeX in <code> where it holds something unknown."""
    try:
        inner = _Reader(latex).all()
    except (ValueError, IndexError, RecursionError):
        return f"<code>{escape(latex)}</code>"
    return f'<math display="block">{inner}</math>' if block else f"<math>{inner}</math>"


class _Reader:
    def __init__(self, latex: str):
        self.tokens, self.source, self.at = _TOKEN.findall(latex), latex, 0

    def all(self) -> str:
        return "".join(self.until(None))

    def peek(self):
        """The next token that is not a space, None at the end."""
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self) -> str:
        self.peek()
        self.at += 1
        return self.tokens[self.at - 1]

    def until(self, end: str | None) -> list[str]:
        """Elements up to the token `end`, which is taken too."""
        parts = []
        while self.peek() != end:
            if self.peek() is None:
                raise ValueError(f"{end} is missing in {self.source}")
            parts.append(self.scripted())
        self.at += 1
        return parts

    def scripted(self) -> str:
        """One element with the sub- and superscript that follow it."""
        base, scripts = self.one(), {}
        while self.peek() in ("_", "^"):
            place = self.next()
            scripts[place] = self.one()
        low, high = scripts.get("_", ""), scripts.get("^", "")
        kind = {(True, True): "msubsup", (True, False): "msub", (False, True): "msup"}
        tag = kind.get((bool(low), bool(high)))
        return f"<{tag}>{base}{low}{high}</{tag}>" if tag else base

    def one(self) -> str:
        token = self.next()
        if token == "{":
            return f"<mrow>{''.join(self.until('}'))}</mrow>"
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha() and len(token) == 1:
            return f"<mi>{escape(token)}</mi>"
        if not token.startswith("\\"):
            return f"<mo>{escape('−' if token == '-' else token)}</mo>"
        return self.command(token)

    def command(self, token: str) -> str:
        name = token[1:]
        if token in _SPACE:
            return f'<mspace width="{_SPACE[token]}"/>'
        if token in _OPERATOR:
            return f"<mo>{_OPERATOR[token]}</mo>"
        if name in _LETTER:
            return f"<mi>{_LETTER[name]}</mi>"
        if name in _NAMED:
            return f"<mi>{name}</mi>"
        if name in ("mathrm", "text", "operatorname", "mathbf"):
            return f"<mtext>{escape(self.words())}</mtext>"
        if name == "frac":
            return f"<mfrac>{self.one()}{self.one()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self.one()}</msqrt>"
        if name in ("left", "right"):
            return "" if self.peek() == "." and self.next() else self.one()
        if token == r"\_":
            return "<mo>_</mo>"
        if name == "begin" and self.words() == "cases":
            return self.cases()
        raise ValueError(token)

    def words(self) -> str:
        """The argument of \\text or \\mathrm, as it is written."""
        if self.next() != "{":
            raise ValueError(self.source)
        end = self.tokens.index("}", self.at)
        said = "".join(self.tokens[self.at : end])
        self.at = end + 1
        return said.replace(r"\_", "_")

    def cases(self) -> str:
        rows, row, cell = [], [], []
        while self.peek() != r"\end":
            if self.peek() == "&":
                self.next()
                row, cell = [*row, cell], []
            elif self.peek() == "\\\\":
                self.next()
                rows, row, cell = [*rows, [*row, cell]], [], []
            else:
                cell.append(self.scripted())
        self.next()
        self.words()
        rows.append([*row, cell])
        body = "".join(
            "<mtr>" + "".join(f"<mtd>{''.join(cell)}</mtd>" for cell in row) + "</mtr>"
            for row in rows
        )
        return f'<mrow><mo>{{</mo><mtable columnalign="left">{body}</mtable></mrow>'
