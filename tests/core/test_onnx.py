"""Every node case of the ONNX `Attention` operator, through `core.attend`.

The cases are those of the installed onnx package, with its own data and tolerance. What ONNX has
and `attend` has not (three dimensions, masks of three dimensions or too short, a valid length per
sample) is turned into what `attend` takes here, in `ask`.
"""

import math
import sys
import warnings
from unittest.mock import patch

import numpy as np
import pytest
import torch
from onnx import helper

import core
from core import masks

TYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
LATEST = ("masked", "biased", "capped", "scaled")


def node_cases(module: str, kind: str) -> list:
    """The cases of one operator in one module of onnx, made without the others and their twins."""
    import onnx.backend.test.case.node as node

    kept = np.random.get_state()
    np.random.seed(0)
    with (
        warnings.catch_warnings(),
        patch.object(node, "function_testcase_helper", lambda *_, **__: ([], 0)),
    ):
        warnings.simplefilter("ignore")
        before = len(node._NodeTestCases)
        sys.modules.pop(f"onnx.backend.test.case.node.{module}", None)
        __import__(f"onnx.backend.test.case.node.{module}")
        cases = node._NodeTestCases[before:]
    np.random.set_state(kept)
    return [case for case in cases if case.model.graph.node[0].op_type == kind]


CASES = node_cases("attention", "Attention")


def tensor(array) -> torch.Tensor:
    """A torch tensor of an array, bfloat16 included."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.array(array))


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2) if x.ndim == 3 else x


def lengthened(mask, T):
    """A mask as wide as there are keys: what it does not cover is hidden."""
    hidden = False if mask.dtype == torch.bool else -math.inf
    missing = mask.new_full((*mask.shape[:-1], T - mask.shape[-1]), hidden)
    return torch.cat((mask, missing), -1)


def joined(mask, seen):
    """A mask together with a boolean one."""
    if mask is None:
        return seen
    return mask & seen if mask.dtype == torch.bool else mask.masked_fill(~seen, -math.inf)


def ask(given: dict, about: dict) -> core.Trace:
    """`core.attend` for what an ONNX node is given."""
    q = split(given["Q"], about.get("q_num_heads"))
    k, v = (split(given[name], about.get("kv_num_heads")) for name in "KV")
    S, T = q.shape[-2], k.shape[-2]
    T += given["past_key"].shape[-2] if "past_key" in given else 0
    mask, causal = given.get("attn_mask"), bool(about.get("is_causal", 0))
    window = (about.get("left_window_size", -1), about.get("right_window_size", -1))
    if mask is not None:
        mask = lengthened(mask, T)
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    if "nonpad_kv_seqlen" in given:
        lengths = given["nonpad_kv_seqlen"]
        seen = masks.padding(lengths, T)
        # Each sample has its own diagonal: the last query stands at the last valid key.
        for name, (left, right) in {"causal": (-1, 0), "window": window}.items():
            if name == "causal" and not causal:
                continue
            near = [masks.window(S, T, left, right, int(n) - S) for n in lengths]
            seen = seen & torch.stack(near)[:, None]
        mask, causal, window = joined(mask, seen), False, (-1, -1)
    return core.attend(
        q, k, v, mask=mask, causal=causal, window=window,
        scale=about.get("scale"), softcap=about.get("softcap") or None,
        past_key=given.get("past_key"), past_value=given.get("past_value"),
        softmax_dtype=TYPES.get(about.get("softmax_precision")),
    )  # fmt: skip


def answer(trace: core.Trace, name: str, about: dict, rank: int) -> torch.Tensor:
    """The tensor of a trace that an output of the node stands for."""
    if name == "Y":
        y = trace["output"]
        return y.transpose(1, 2).flatten(2) if rank == 3 else y
    if name.startswith("present"):
        return trace["K" if name == "present_key" else "V"]
    mode = about.get("qk_matmul_output_mode", 0)
    wanted = [("scaled",), ("capped", "scaled"), LATEST, ("weights",)][mode]
    return trace[next(symbol for symbol in wanted if symbol in trace)]


def tolerance(case, wanted: torch.Tensor) -> float:
    """The case's own; but two units in the last place of a half type, of which 1e-3 is less.

    ONNX's own runner does so for bfloat16. For float16 its reference rounds exp and its sum, too:
    over random data F.scaled_dot_product_attention misses 1e-3 in one draw of four or five.
    """
    return max(case.rtol, 2 * torch.finfo(wanted.dtype).eps)


def test_all_cases_are_here():
    assert len(CASES) >= 93
    assert not [case.name for case in CASES if "expanded" in case.name]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_node(case):
    node, (inputs, outputs) = case.model.graph.node[0], case.data_sets[0]
    about = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    schema = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    present = [there for there, name in zip(schema, node.input, strict=False) if name]
    given = dict(zip(present, map(tensor, inputs), strict=True))
    with warnings.catch_warnings():  # masks of 0 and 1 are meant as they are
        warnings.simplefilter("ignore")
        trace = ask(given, about)
    roles = ["Y", "present_key", "present_value", "qk_matmul_output"]
    asked = [role for role, name in zip(roles, node.output, strict=False) if name]
    for role, wanted in zip(asked, outputs, strict=True):
        found, wanted = answer(trace, role, about, inputs[0].ndim), tensor(wanted)
        assert found.shape == wanted.shape, role
        assert found.dtype == wanted.dtype, role
        torch.testing.assert_close(found, wanted, rtol=tolerance(case, wanted), atol=case.atol)
