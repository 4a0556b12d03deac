"""The page of long maps without a browser: sources, pictures, runs, files, the link."""

import io
import time

import numpy as np
import pytest
import torch

from core import longmap
from core.longmap_sources import SOURCES, Source, make
from parts import map_picture, map_view
from parts.map_code import snippet
from parts.map_component import pack, unpack, words
from parts.map_controls import POOLS, SCALES, WINDOWS
from parts.map_controls import SOURCES as OFFERED
from parts.map_jobs import Job, Spec, Store
from parts.map_picture import Picture, Scale, fitting, overview, strongest_in
from parts.text import catalog


@pytest.fixture
def open_map(app_test):
    def open_(lang="en", **query):
        return app_test("map", lang=lang, **({"map_S": 256} | query))

    return open_


def sent(app) -> tuple[dict, np.ndarray]:
    """The header and the levels of the picture that would go to the browser."""
    (found,) = [e for e in app.get("bidi_component") if e.proto.component_name == "long_map"]
    header, rest = unpack(found.proto.bytes)
    rows, cols = header["picture"]["shape"]
    start = 4 * header["numbers"][2] * header["numbers"][3] if header["numbers"] else 0
    levels = np.frombuffer(rest, np.uint8, rows * cols, start)
    return header, levels.reshape(rows, cols)


def level_of(header, weight) -> int:
    return int(Scale(**header["picture"]["scale"]).levels(np.float32([weight]))[0])


def spec(S=300, source="random", pool="max", causal=False, window=None):
    return Spec(source, S, 0, pool, causal, window)


def stage_map(q, k, **options):
    return longmap.attention_map(q, k, **options)


# --- the page -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_opens_with_the_whole_map_of_an_induction_head(open_map, lang):
    app = open_map(lang)
    header, levels = sent(app)
    assert header["picture"]["rect"] == [0, 0, 256, 256]
    assert header["picture"]["coarse"] is None
    i, j = make("induction", 256).landmark
    assert levels[i, j] == level_of(header, 0.9933)
    assert levels[0, 1] == 0  # hidden by the causal mask


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_opens_in_both_languages(open_map, name):
    words = [open_map(lang, map_source=name).markdown[1].value for lang in ("en", "zh")]
    assert words[0] != words[1]
    assert not any("{{" in text for text in words)


def test_a_link_leads_to_a_cell_and_its_arithmetic(open_map):
    i, j = make("needle", 256).landmark
    app = open_map(map_source="needle", at=f"{i - 7},{j - 4},8,8", cell=f"{i},{j}")
    header, levels = sent(app)
    assert header["view"] == [i - 7, j - 4, 8, 8]
    assert header["numbers"] == [i - 7, j - 4, 8, 8]
    assert levels[7, 4] == level_of(header, 0.9) == levels.max()
    cell, row = header["cell"], header["row"]
    assert cell["weight"] == pytest.approx(0.9, abs=1e-5)
    assert sum(cell["products"]) == pytest.approx(cell["raw"])
    assert np.exp(cell["scaled"] - cell["lse"]) == pytest.approx(cell["weight"])
    assert row["keys"][0]["j"] == j
    assert len(row["keys"]) == 10
    # −0.9·ln 0.9 − 255·(0.1/255)·ln(0.1/255)
    assert row["entropy"] == pytest.approx(0.879, abs=1e-3)


@pytest.mark.parametrize("query", [{"at": "1,2"}, {"at": "x,0,1,1"}, {"at": "900,0,4,4"},
                                   {"cell": "5"}, {"cell": "0,256"}, {"cell": "-1,0"}])  # fmt: skip
def test_a_link_that_names_no_place_shows_the_whole_map(open_map, query):
    header, _levels = sent(open_map(**query))
    assert header["view"] == [0, 0, 256, 256]
    assert header["cell"] is None


def test_the_button_goes_down_to_the_cell_to_look_at(open_map):
    app = open_map(map_source="needle")
    app.button(key="map_landmark").click().run()
    header, _levels = sent(app)
    assert (header["cell"]["i"], header["cell"]["j"]) == make("needle", 256).landmark
    assert header["numbers"]


def test_controls_change_the_map_and_stand_in_the_link(open_map):
    app = open_map(map_source="random")
    app.button_group(key="map_pool").set_value("mean").run()
    app.button_group(key="map_scale").set_value("linear").run()
    app.button_group(key="map_window").set_value("16").run()
    app.toggle(key="map_causal_random").set_value(True).run()
    header, levels = sent(app)
    assert header["pool"] == "mean"
    assert header["picture"]["scale"]["kind"] == "linear"
    seen = levels > 0
    rows, cols = np.indices(seen.shape)
    np.testing.assert_array_equal(seen, (cols <= rows) & (cols >= rows - 16))
    said = {name: app.query_params[name] for name in ("map_pool", "map_scale", "map_window")}
    assert said == {"map_pool": "mean", "map_scale": "linear", "map_window": "16"}


def test_another_length_shows_the_whole_map_again(open_map):
    app = open_map(map_source="needle", at="10,10,8,8", cell="12,12")
    before = sent(app)[0]["epoch"]
    app.select_slider(key="map_S").set_value(128).run()
    header, _levels = sent(app)
    assert header["view"] == [0, 0, 128, 128]
    assert header["cell"] is None
    assert header["epoch"] > before


def test_every_label_of_the_choices_has_its_chinese():
    merged = catalog("zh")._catalog
    labels = [*OFFERED.values(), *POOLS.values(), *SCALES.values(), WINDOWS["none"]]
    assert [label for label in labels if label not in merged] == []


# --- files ----------------------------------------------------------------------------------------


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_ones_own_q_and_k_with_heads(open_map):
    app = open_map(map_source="own")
    assert [len(e.proto.bytes) for e in app.get("bidi_component")[1:]] == [0]  # only its code
    q = np.random.default_rng(1).normal(size=(2, 20, 4)).astype("f4")
    k = np.random.default_rng(2).normal(size=(1, 30, 4)).astype("f4")
    app.file_uploader(key="map_files").upload("mine.npz", npz(q=q, k=k)).run()
    app.session_state["map_look"].head = 1
    app.run()
    header, levels = sent(app)
    assert (header["S"], header["T"]) == (20, 30)
    wanted = (torch.tensor(q[1]) @ torch.tensor(k[0]).T / 2).softmax(-1).numpy()
    scale = Scale(**header["picture"]["scale"])
    np.testing.assert_allclose(levels.astype(int), scale.levels(wanted).astype(int), atol=1)


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "cannot be read as .npz"), ("zh", "文件头和内容对不上")]
)
def test_a_bad_file_gets_a_sentence_in_the_readers_language(open_map, lang, said):
    app = open_map(lang, map_source="own")
    app.file_uploader(key="map_files").upload("mine.npz", b"PK nothing of the kind").run()
    assert said in app.error[0].value.replace("\\", "")
    assert not app.exception
    app.file_uploader(key="map_files").upload("good.npz", npz(q=np.eye(9), k=np.eye(9))).run()
    assert not app.error
    assert sent(app)[0]["S"] == 9


# --- pictures -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_map():
    """S = 900 with 30 tiles of 30, made from a needle source of 900."""
    source = make("needle", 900)
    return source, longmap.attention_map(source.q, source.k, tiles=30)


def see(found, view, pixels=(100, 100), afford=1e9, kept=None):
    return fitting(found, view, pixels, head=0, afford=afford, kept={} if kept is None else kept)


def plain(source) -> np.ndarray:
    scores = source.q.double() @ source.k.double().T / 8
    return scores.softmax(-1).numpy()


def blocks(weights, rect, block) -> np.ndarray:
    i, j, rows, cols = rect
    part = weights[i : i + rows, j : j + cols]
    part = np.maximum.reduceat(part, np.arange(0, rows, block[0]), 0)
    return np.maximum.reduceat(part, np.arange(0, cols, block[1]), 1)


@pytest.mark.parametrize(
    ("view", "afford"),
    [
        ((0, 0, 900, 900), 1e9),  # computed anew, as finely as there are pixels
        ((0, 0, 900, 900), 0),  # the map's own tiles, and no better at once
        ((611, 37, 250, 333), 1e9),
        ((611, 37, 250, 333), 0),
        ((880, 850, 20, 50), 1e9),
    ],
)
def test_a_picture_is_the_largest_of_what_it_says_it_covers(long_map, view, afford):
    source, found = long_map
    shown = see(found, view, afford=afford)
    i, j, rows, cols = shown.rect
    assert i <= view[0]
    assert j <= view[1]
    assert i + rows >= view[0] + view[2]
    assert j + cols >= view[1] + view[3]
    np.testing.assert_allclose(
        shown.weights, blocks(plain(source), shown.rect, shown.block), rtol=1e-4, atol=1e-12
    )


def test_a_picture_never_has_more_tiles_than_the_screen_has_pixels(long_map):
    for view in [(0, 0, 900, 900), (3, 5, 700, 801), (0, 400, 130, 500)]:
        for pixels in [(100, 100), (64, 333), (17, 29)]:
            for afford in (0, 1e9):
                shape = see(long_map[1], view, pixels, afford).weights.shape
                assert shape[0] <= pixels[0] + 2  # what sticks out on both sides
                assert shape[1] <= pixels[1] + 2


def test_numbers_travel_where_they_are_few(long_map):
    _source, found = long_map
    assert see(found, (100, 100, 40, 40)).numbers
    assert not see(found, (100, 100, 41, 41)).numbers


def test_what_takes_too_long_is_coarse_until_it_has_been_made(long_map):
    _source, found = long_map
    kept = {}
    first = see(found, (10, 10, 200, 200), afford=0, kept=kept)
    assert first.coarse == "tiles"
    kept[first.wanted[:3]] = map_picture.sharp(found, first.wanted)
    second = see(found, (10, 10, 200, 200), afford=0, kept=kept)
    assert (second.coarse, second.wanted, second.block) == (None, None, (2, 2))


@pytest.mark.parametrize("pool", ["max", "mean"])
@pytest.mark.parametrize("view", [(10, 10, 200, 350), (0, 0, 900, 900), (700, 33, 199, 65)])
def test_a_picture_in_bands_is_the_same_and_is_given_up_between_two(pool, view):
    source = make("needle", 900)
    found = longmap.attention_map(source.q, source.k, tiles=30, pool=pool)
    wanted = (0, view, (40, 64), 0)
    whole = map_picture.sharp(found, wanted)
    bands = map_picture.in_bands(found, wanted, lambda: False)
    assert (bands.rect, bands.block) == (whole.rect, whole.block)
    np.testing.assert_allclose(bands.weights, whole.weights, rtol=1e-5)
    asked = iter([False, True])
    assert map_picture.in_bands(found, wanted, lambda: next(asked, True)) is None


def test_a_finer_picture_comes_for_each_reader(needle_job):
    needle_job.kept.clear()
    for who, view in (("a", (0, 0, 150, 150)), ("b", (100, 100, 150, 150))):
        needle_job._refine(who, (0, view, (64, 64), 22_500))
    wait(lambda: len(needle_job.kept) == 2 and not needle_job._sharpening)
    assert needle_job.kept[(0, (0, 0, 150, 150), (64, 64))].block == (3, 3)


def test_means_are_weighted_by_what_a_tile_covers():
    """7 rows in tiles of 2 leave a last one of 1: it must not count as much as the others."""
    q, k = torch.randn(7, 4), torch.randn(7, 4)
    found = longmap.attention_map(q, k, tiles=4, pool="mean")
    small = Picture((0, 0, 7, 7), (8, 8), np.zeros(1))
    shown = fitting(found, small.rect, (1, 1), head=0, afford=0, kept={})
    np.testing.assert_allclose(shown.weights, [[1 / 7]], rtol=1e-5)


def test_needles_of_every_head_stay_in_sight():
    """64 needles in each of 2 heads of S = 1,024: each lights its tile of the overview."""
    generator = torch.Generator().manual_seed(0)
    S, count = 1024, 64
    q, k = torch.randn(2, S, 64, generator=generator), torch.randn(2, S, 64, generator=generator)
    rows = torch.stack([torch.randperm(S, generator=generator)[:count] for _ in range(2)])
    cols = torch.stack([torch.randperm(S, generator=generator)[:count] for _ in range(2)])
    for head in range(2):
        q[head, rows[head]] = 1.6 * k[head, cols[head]]
    found = longmap.attention_map(q, k, tiles=512)
    for head in range(2):
        shown = overview(found, head)
        lit = shown.weights[rows[head] // shown.block[0], cols[head] // shown.block[1]]
        assert lit.min() > 10 * np.median(shown.weights)


def test_the_strongest_cell_of_a_tile(long_map):
    source, found = long_map
    assert strongest_in(found, (0, 0, 900, 900), 0) == source.landmark
    part = plain(source)[100:170, 200:290]
    r, c = np.unravel_index(part.argmax(), part.shape)
    assert strongest_in(found, (100, 200, 70, 90), 0) == (100 + r, 200 + c)


def test_levels_keep_nothing_and_something_apart():
    scale = Scale("log", 1e-4, 1.0)
    assert scale.levels(np.float32([0, 1e-30, 1e-4, 1e-2, 1])).tolist() == [0, 1, 1, 128, 255]
    assert Scale("linear", 0, 0.5).levels(np.float32([0, 1e-9, 0.25, 0.5])).tolist() == [
        0, 1, 128, 255]  # fmt: skip


def test_what_is_sent_stays_under_its_limit():
    """1,024² levels, 192² small ones, the words: less than 1.1 MB."""
    largest = Picture((0, 0, 1024, 1024), (1, 1), np.random.rand(1024, 1024).astype("f4"))
    small = Picture((0, 0, 1024, 1024), (6, 6), np.random.rand(192, 192).astype("f4"))
    packed = pack({"text": words()}, largest, small, (Scale("log", 1e-5, 1.0),) * 2)
    assert len(packed) < 1.1e6


# --- what the browser reports ---------------------------------------------------------------------


def heard(job, **report) -> map_view.Look:
    S, T = job.source.shape
    look = map_view.Look((S, T), (0, 0, S, T))
    about = {"n": 3, "map": f"{S}×{T}", "view": [0, 0, S, T], "pixels": [500, 500]}
    map_view._hear(look, job, about | report)
    return look


@pytest.fixture(scope="module")
def needle_job():
    job = Job(spec(source="needle"), make("needle", 300), Store())
    job.look(5)
    return job


def test_a_tile_is_taken_as_its_strongest_cell(needle_job):
    look = heard(needle_job, tile=[200, 0, 200, 300])
    assert look.cell == needle_job.source.landmark
    assert (look.view, look.epoch) == ((0, 0, 300, 300), 1)
    look = heard(needle_job, tile=[200, 0, 200, 300], near=12)
    _i, j = needle_job.source.landmark
    assert look.view == (288, min(288, max(0, j - 6)), 12, 12)
    assert look.epoch == 2


@pytest.mark.parametrize("report", [{"view": [500, 0, 3, 3]}, {"view": [-9, -9, 3, 3]},
                                    {"cell": [300, 0]}, {"tile": [900, 900, 9, 9]}])  # fmt: skip
def test_reports_that_no_longer_fit_change_nothing(needle_job, report):
    look = heard(needle_job, **report)
    assert (look.view, look.cell) == ((0, 0, 300, 300), None)


def test_a_picture_is_never_asked_larger_than_1024(needle_job):
    assert heard(needle_job, pixels=[9000, 2]).pixels == (1024, 16)


# --- runs -----------------------------------------------------------------------------------------


class Slow:
    """An engine whose maps take as many steps as it is told, each when it is allowed."""

    def __init__(self, monkeypatch, delay=0.02):
        self.delay, self.real, self.running, self.most = delay, longmap.refine, 0, 0
        monkeypatch.setattr(longmap, "refine", self.refine)
        monkeypatch.setattr("parts.map_jobs.AT_ONCE", 0)

    def refine(self, q, k, *, stop, start, **options):
        states = self.real(q, k, stop=None, start=start, **options)
        if start is None:
            yield next(states)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(40):
                time.sleep(self.delay)
                if stop():
                    return
                yield start
            yield from states
        finally:
            self.running -= 1


def wait(test, seconds=10):
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_stopped_run_keeps_what_it_has_and_goes_on_to_the_same_map(monkeypatch):
    Slow(monkeypatch)
    job = Job(spec(), make("random", 300), Store())
    job.look()
    assert job.state == "running"
    assert job.map.done == 0
    job.stop()
    wait(lambda: not job._thread.is_alive())
    assert job.state == "stopped"
    job.look()  # looking alone does not start it again
    assert job.state == "stopped"
    job.resume()
    wait(lambda: job.state == "done")
    whole = stage_map(job.source.q, job.source.k, tiles=job.map.problem.tiles)
    assert torch.equal(job.map.tiles, whole.tiles)


def test_a_run_rests_when_nobody_looks_and_goes_on_when_somebody_does(monkeypatch):
    Slow(monkeypatch)
    monkeypatch.setattr("parts.map_jobs.ABANDONED", 0.1)
    job = Job(spec(), make("random", 300), Store())
    job.look()
    wait(lambda: job.state == "resting")
    job.look()
    assert job.state in ("running", "waiting")
    job.stop()


def test_of_long_maps_one_is_computed_at_a_time(monkeypatch):
    slow = Slow(monkeypatch, delay=0.01)
    monkeypatch.setattr("parts.map_jobs.SHORT", 0)
    store = Store()
    jobs = [store.job(spec(S), lambda S=S: make("random", S)) for S in (300, 301)]
    for job in jobs:
        job.look()
        assert job.map is not None  # the coarse picture is there at once
    wait(lambda: {job.state for job in jobs} == {"running", "waiting"})
    wait(lambda: [job.state for job in jobs] == ["done", "done"])
    assert slow.most == 1


def test_a_map_is_shared_and_the_oldest_go_when_there_is_no_room():
    source = make("random", 300)
    store = Store(room=4 * source.q.numel() * 4)
    made = [store.job(spec(S), lambda: source) for S in (300, 300, 301, 302, 303)]
    assert made[0] is made[1]
    for job in made:
        job.look(5)
    store.job(spec(304), lambda: source)
    assert store.job(spec(304), lambda: source) is not None
    assert spec(300) not in store._jobs
    assert spec(304) in store._jobs


def test_a_map_that_fails_says_why():
    job = Job(spec(), Source("own", torch.ones(3, 2), torch.ones(3, 5)), Store())
    job.look(5)
    assert job.state == "failed"
    assert job.problem.id == "same-width"


def test_stop_and_continue_on_the_page(open_map, monkeypatch):
    Slow(monkeypatch)
    monkeypatch.setattr("parts.map_jobs.STORE.rate", 0)  # no view is affordable meanwhile
    app = open_map(map_source="sink", map_seed=77)
    assert "0 % of the rows are exact" in app.get("progress")[0].proto.text
    assert sent(app)[0]["picture"]["coarse"] == "sample"
    app.toggle(key="map_run").set_value(False).run()
    assert app.get("progress")[0].proto.text.startswith("Stopped: ")
    app.toggle(key="map_run").set_value(True).run()
    assert not app.get("progress") or "Stopped" not in app.get("progress")[0].proto.text


def test_waiting_is_told(open_map, monkeypatch):
    from parts.map_jobs import STORE

    monkeypatch.setattr("parts.map_jobs.SHORT", 0)
    monkeypatch.setattr("parts.map_jobs.AT_ONCE", 0)
    with STORE.turn:
        app = open_map("zh", map_source="sink", map_seed=78)
        assert "正在等" in app.get("progress")[0].proto.text
        app.toggle(key="map_run").set_value(False).run()


# --- a model --------------------------------------------------------------------------------------


def test_the_heads_of_a_model_are_shown_as_it_computes_them(open_map):
    from core import models

    if not models.offered():
        pytest.skip("no model on this machine")
    asked = {"map_source": "model", "map_text": "the cat saw the other cat"}
    app = open_map(**asked, map_layer=2, head=5, cell="2,6")
    header, levels = sent(app)
    reading = models.read(models.load("MiniLM"), "the cat saw the other cat", cut=True)
    call = [n for n, each in enumerate(reading.calls) if each.kind != "cross"][1]
    weights = reading.weights(call)[5].numpy()
    assert header["count"] == header["gallery"]["count"] == 12
    assert header["cell"]["names"] == ["cat", "cat"]
    assert header["cell"]["weight"] == pytest.approx(float(weights[2, 6]), rel=1e-4)
    scale = Scale(**header["picture"]["scale"])
    np.testing.assert_allclose(levels.astype(int), scale.levels(weights).astype(int), atol=1)
    assert header["head"] == 5


# --- taking it along ------------------------------------------------------------------------------


def test_the_code_makes_the_map_that_is_shown(open_map, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    app = open_map(
        map_source="needle", map_pool="mean", map_window="64", map_seed=3, cell="250,200"
    )
    (code,) = [each.value for each in app.code]
    exec(compile(code, "snippet", "exec"), scope := {})
    shown = sent(app)[0]["cell"]["weight"]
    assert scope["cell"].weight == pytest.approx(shown, rel=1e-9)
    assert capsys.readouterr().out.startswith(str(scope["cell"].weight))
    assert (scope["m"].problem.pool, scope["m"].problem.window) == ("mean", (64, 64))
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("source", ["own", "model"])
def test_code_for_given_tensors_leaves_them_to_the_reader(source):
    code = snippet(Spec(source, 5, 0, "max", True, None, "x", 0.25, 30.0), (1, 1), head=1)
    assert "attention_map(q, k, causal=True, scale=0.25, softcap=30.0)" in code
    assert "m.cell(1, 1, head=1)" in code
    assert "make(" not in code
