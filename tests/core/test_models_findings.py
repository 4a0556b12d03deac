"""What a reading's numbers say, and the sheet of all heads as plain data."""

import numpy as np
import pytest
import torch

from core import models
from core.figures.head_map import head_map, layer_map
from core.models.symptoms import diagnose
from tests.core.model_folders import network, word_piece

SENTENCE = "the cat sat on the mat a dog"


def reading(change=None, kind="bert", text=SENTENCE):
    made = network(kind)
    if change:
        change(made)
    return models.read(models.Model(kind, word_piece(), made, limit=64, pairs=False), text)


def found(read):
    return {finding.id: finding for finding in diagnose(read)}


def attention(made, layer):
    return made.encoder.layer[layer].attention.self


def scaled_by(factor):
    def change(made):
        for layer in (0, 1):
            attention(made, layer).query.weight.data.mul_(factor)

    return change


def test_scores_that_hardly_differ_are_found_too_even():
    even = found(reading(scaled_by(1e-4)))["even"]
    assert even.numbers["count"] == even.numbers["total"] == 8
    assert float(even.numbers["spread"]) < 0.01
    assert even.numbers["scale"] == f"{8**-0.5:.4g}"


def test_scores_that_differ_much_are_found_too_sharp():
    read = reading(scaled_by(1000))
    sharp = found(read)["sharp"]
    assert sharp.numbers["count"] >= 6
    c, i = sharp.heads[0]
    assert read.facts[c][i].largest > 0.9
    spread = np.mean([read.calls[c].head(i)["scaled"].std(unbiased=False) for c, i in sharp.heads])
    assert sharp.numbers["spread"] == f"{spread:.2f}"
    assert "even" not in found(read)


def test_a_head_copied_from_another_is_found():
    def change(made):
        for part in ("query", "key"):
            weight = getattr(attention(made, 0), part).weight.data
            weight[8:16] = weight[:8]

    twins = found(reading(change))["twins"]
    assert twins.heads == ((0, 1),)
    assert twins.numbers["apart"] == "0.0%"


def test_a_scale_that_is_not_of_the_heads_width_is_said():
    scale = found(reading(kind="gemma2"))["scale"]
    assert scale.numbers["scale"] == "0.0625"  # 1/√256, of heads 8 wide
    assert scale.numbers["usual"] == f"{8**-0.5:.4g}"
    assert scale.numbers["count"] == 8
    assert "scale" not in found(reading())


def test_long_texts_are_measured_over_how_many_keys_they_spread():
    made = network("bert")
    made.embeddings.position_embeddings = torch.nn.Embedding(300, 32)
    made.embeddings.position_ids = torch.arange(300)[None]
    made.embeddings.token_type_ids = torch.zeros(1, 300, dtype=torch.long)
    scaled_by(0)(made)
    for layer in (0, 1):
        attention(made, layer).query.bias.data.zero_()
    model = models.Model("long", word_piece(), made, limit=300, pairs=False)
    long = found(models.read(model, "the cat " * 99))["long"]
    assert (long.numbers["T"], long.numbers["keys"]) == (200, "200")
    assert long.numbers["cells"] == "40,000"


def test_heads_stand_on_the_sheet_where_their_layer_and_number_say():
    layers = [np.full((2, 3, 4), 0.25), np.stack([np.eye(3), np.zeros((3, 3))])]
    sheet = head_map(layers, current=(1, 0), text={"layer": "<b>", "weight": "%{x}"})
    drawn = sheet.data[0]
    z = np.asarray(drawn.z)
    assert z.shape == (9, 9)  # 4 + a gap of 1 + 4
    assert z[:3, :4] == pytest.approx(0.25)
    assert np.isnan(z[3:5]).all()
    assert np.isnan(z[:, 4]).all()
    assert z[5:8, :3] == pytest.approx(np.eye(3))
    assert np.asarray(drawn.customdata)[6, [1, 6]].tolist() == [[2, 1], [2, 2]]
    assert (drawn.zmin, drawn.zmax) == (0, 1)
    assert "<b>" not in drawn.hovertemplate.replace("<br>", "")
    assert "%{x}" not in drawn.hovertemplate
    frame = sheet.layout.shapes[0]
    assert (frame.x0, frame.y0) == (-1.0, 4.0)
    assert list(sheet.layout.yaxis.ticktext) == ["1", "2"]
    assert sheet.layout.yaxis.range[0] > sheet.layout.yaxis.range[1]  # layer 1 on top


def test_the_heads_of_a_layer_name_query_and_key_under_the_pointer():
    heads = torch.stack([torch.eye(3), torch.zeros(3, 3), torch.full((3, 3), 0.5)])
    names = ["a", "b", "<i>%{z}"]
    drawn = layer_map(heads, rows=names, cols=["x", "y", "z"], titles=names, current=1, columns=2)
    z, text = np.asarray(drawn.data[0].z), drawn.data[0].text
    assert z.shape == (7, 7)
    assert z[:3, :3] == pytest.approx(np.eye(3))
    assert z[4:, :3] == pytest.approx(0.5)
    assert np.isnan(z[4:, 4:]).all()
    assert text[1][6] == "b → z"
    assert text[6][0] == "&lt;i&gt;%&#123;z} → x"
    titles = [note.text for note in drawn.layout.annotations]
    assert titles[:3] == ["a", "<b>▸ b</b>", "&lt;i&gt;%&#123;z}"]


def test_a_long_layer_is_reduced_and_still_names_the_entry_itself():
    one = torch.zeros(1, 200, 200)
    one[0, 150, 77] = 0.75
    drawn = layer_map(one)
    z = np.asarray(drawn.data[0].z)
    assert z.size <= 4096
    i, j = np.argwhere(z == 0.75)[0]
    assert drawn.data[0].text[i][j] == "151 → 78"
