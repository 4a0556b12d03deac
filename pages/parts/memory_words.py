"""What the Memory page says about a shape or chain that cannot be: one sentence per reason.

The English sentence is the msgid of its translation; `core.memory_chain.ChainError` has the facts.
"""

from core.memory import Cure, Failure
from core.memory_chain import ChainError, write_chain
from parts.text import N_, _

SENTENCES = {
    "shape-text": N_("“{text}” is not a shape: write 1 to 5 whole numbers, such as 1, 4, 2, 3."),
    "shape-dims": N_("A shape of {count} dims is too deep to draw: write at most {most} sizes."),
    "shape-size": N_("A size of {size} is not possible: each size is from 1 to {most}."),
    "too-many": N_(
        "{shape} would hold {count} elements: at most {most} are drawn, so choose smaller sizes."
    ),
    "chain-text": N_(
        "“{text}” cannot be read: write operations with whole numbers, joined by dots, "
        "such as transpose(1,2).contiguous()."
    ),
    "chain-long": N_("A chain has at most {most} operations: remove some."),
    "name": N_("There is no operation “{name}” here. Known are: {known}."),
    "numbers": N_("{name} takes {least} to {most} numbers, not {count}."),
    "numbers-exact": N_("{name} takes exactly {most} numbers, not {count}."),
    "elements": N_(
        "{name}{wanted} asks for {count} elements, but {shape} holds {have}: "
        "choose sizes whose product is {have}."
    ),
    "infer": N_(
        "{name}{wanted}: {have} elements cannot be divided by {known}, "
        "so −1 has no size: choose sizes whose product divides {have}."
    ),
    "infer-two": N_("{name}{wanted} leaves two sizes open: only one may be −1."),
    "least": N_("{what} is {got}: it must be at least 1."),
    "dim-range": N_(
        "There is no dim {dim} in {shape}: it has {dims} dims, counted from 0, "
        "or from −1 at the end."
    ),
    "dim-twice": N_("{name}{numbers} names a dim twice: name each once."),
    "permute": N_("permute{numbers} must name each of the {dims} dims exactly once."),
    "expand-size": N_(
        "Dim {dim} has size {have}, so expand cannot make it {wanted}: "
        "only a dim of size 1 can be stretched. repeat_interleave copies instead."
    ),
    "expand-fewer": N_(
        "expand{wanted} has fewer sizes than {shape} has dims: give at least {dims}."
    ),
    "narrow": N_(
        "Dim {dim} has size {size}, so start {start} and length {length} do not fit: "
        "start + length may be at most {size}, and length at least 1."
    ),
    "slice-empty": N_(
        "The slice {start}:{stop} of a dim of size {size} is empty: choose a start before the stop."
    ),
    "slice-dim": N_("A slice counts its dim from the front: write {instead} instead of {dim}."),
    "t-dims": N_(
        "t() is for at most 2 dims, and {shape} has {dims}: transpose(-2,-1) swaps the last two."
    ),
    "dims-most": N_("{most} dims are as deep as is drawn here: squeeze or merge some first."),
    "weights-most": N_(
        "W would be {rows} × {columns}: choose fewer columns, so that it holds at most "
        "{most} weights."
    ),
}
THINGS = {
    "size": N_("A size"),
    "repeats": N_("The number of repeats"),
    "columns": N_("The width"),
    "step": N_("The step"),
}


def sentence(error: ChainError) -> str:
    """The reason in the reader's language.

    >>> sentence(ChainError("least", what="step", got=0))
    'The step is 0: it must be at least 1.'
    """
    facts = dict(error.facts)
    if "what" in facts:
        facts["what"] = _(THINGS[facts["what"]])
    exact = error.id == "numbers" and facts["least"] == facts["most"]
    return _(SENTENCES["numbers-exact" if exact else error.id]).format(**facts)


def reason(failure: Failure) -> str:
    """Why the operation cannot be done, with the sizes or strides that stand in the way."""
    if failure.error:
        return sentence(failure.error)
    if failure.conflict:
        facts = failure.conflict._asdict() | {"expected": failure.conflict.expected}
        return _(
            "Size {size} runs dims {outer} and {inner} together. So the stride of dim {outer} "
            "must be {inner_stride}·{inner_size} = {expected} (stride · size of dim {inner}), "
            "but it is {stride}."
        ).format(**facts)
    return _("torch refuses it.")


def cure_label(cure: Cure) -> str:
    """A way out and its price, for a button."""
    facts = {"code": write_chain(cure.operations)}
    if not cure.copied_elements:
        return _("Use `{code}`: copies nothing").format(**facts)
    facts |= {"elements": cure.copied_elements, "bytes": cure.copied_bytes}
    return _("Use `{code}`: copies {elements} elements, {bytes} bytes").format(**facts)
