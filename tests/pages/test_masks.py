"""The masks page without a browser."""

import pytest


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_opens_with_a_causal_mask_and_its_verdicts(app_test, lang):
    app = app_test("masks", lang=lang)
    assert len(app.table) == 2
    assert "21" in app.caption[0].value  # of 36 pairs, S = 6
    blind = app.table[1].value
    assert next(row.strip() for row in blind.iloc[:, 1]) == "0, 0"
    assert "NaN" in blind.iloc[1, 1]


def test_masks_compose_from_the_link(app_test):
    app = app_test(
        "masks", masks_S=4, masks_kinds="causal,window,padding,drawn", masks_lengths="4, 2",
        masks_left=1, masks_right=0, masks_drawn="1-0",
    )  # fmt: skip
    assert "6" in app.caption[0].value.split()[0]  # 7 of the band, less the drawn one


@pytest.mark.parametrize("lengths", ["x", "", "9, 3", "-1"])
def test_lengths_that_do_not_fit_are_said_in_one_sentence(app_test, lengths):
    app = app_test("masks", lang="zh", masks_S=4, masks_kinds="padding", masks_lengths=lengths)
    if lengths:
        assert len(app.error) == 1


def test_a_blind_query_is_announced(app_test):
    app = app_test("masks", masks_S=3, masks_kinds="padding", masks_lengths="0, 3")
    assert any("3 of 6" in warning.value for warning in app.warning)
