"""Train the translator and measure it: `python -m core.translator.train`.

Nothing tells a head where to look. Two habits of training make heads look at the word they render:
- Heads of cross-attention are dropped at random, so that each must carry the translation alone.
- The encoder's attention is dropped for whole sentences at random, so that a source row stays
  first of all its own word, and what it borrows from others ("bank" from "river") comes on top.

One thread, so that the same seed gives the same weights on any number of cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional

from core.translator import corpus, evaluate
from core.translator.model import BEGIN, PAD, Network, Sizes

FOLDER = Path(__file__).parents[2] / "assets/models"
AMBIGUOUS = "bank"  # never without its company
SAMPLE = 2000  # pairs, where all would take long


@dataclass(frozen=True)
class Settings:
    """How to train. `drop_head`, `drop_mix`: chance that a head of cross-attention, or a layer of
    the encoder's attention, is left out for a sentence. `drop_word`: chance that a word of the
    translation so far is hidden from the decoder."""

    steps: int = 7000
    batch: int = 128
    rate: float = 4e-3
    drop_head: float = 0.3
    drop_mix: float = 0.3
    drop_word: float = 0.1
    decay: float = 0.1
    seed: int = 0


def prepare(size: int = corpus.SIZE):
    """(training pairs, held-out pairs, English words, Chinese words)."""
    pairs = corpus.draw(size)
    source_words = corpus.vocabulary(pair.en for pair in pairs)
    target_words = corpus.vocabulary(pair.zh for pair in pairs)
    return *corpus.split(pairs), source_words, target_words


def fresh(source_words, target_words, seed: int = 0) -> Network:
    """A network with seeded random weights; torch's own generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(Sizes(len(source_words), len(target_words)))


def steps(network: Network, pairs, source_words, target_words, settings: Settings) -> Iterator:
    """Train in place; yields the loss of each step."""
    sources = corpus.numbers([pair.en for pair in pairs], source_words, marks=False)
    targets = corpus.numbers([pair.zh for pair in pairs], target_words, marks=True)
    chance = torch.Generator().manual_seed(settings.seed)
    optimiser = torch.optim.AdamW(
        network.parameters(), settings.rate, betas=(0.9, 0.98), weight_decay=settings.decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.rate, total_steps=settings.steps, pct_start=0.1
    )
    for _ in range(settings.steps):
        chosen = torch.randint(len(pairs), (settings.batch,), generator=chance)
        source, target = _trimmed(sources[chosen]), _trimmed(targets[chosen])
        ambiguous = (source == source_words.index(AMBIGUOUS)).any(1)
        dropped = _Dropped(settings, network.sizes.h, ambiguous, chance)
        encoded = network.encode(source, dropped)
        before = target[:, :-1]
        hidden = torch.rand(before.shape, generator=chance) < settings.drop_word
        before = before.masked_fill(hidden & (before != BEGIN), PAD)
        logits, _ = network.decode(before, encoded, source != PAD, cuts=dropped)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD
        )
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        yield loss.item()


def _trimmed(ids):
    return ids[:, : int((ids != PAD).sum(1).max())]


class _Dropped:
    """Which heads a step leaves out, as `cuts` of the network."""

    def __init__(self, settings: Settings, h: int, ambiguous, chance: torch.Generator):
        self.settings, self.h, self.ambiguous, self.chance = settings, h, ambiguous, chance

    def __call__(self, place, layer, rows, keys):
        B, h = self.settings.batch, self.h
        if place == "encoder":
            kept = torch.rand(B, generator=self.chance) >= self.settings.drop_mix
            return None, (kept | self.ambiguous).float()[:, None].expand(B, h)
        if place == "cross":
            kept = torch.rand(B, h, generator=self.chance) >= self.settings.drop_head
            spare = torch.randint(h, (B, 1), generator=self.chance)
            alone = torch.zeros(B, h, dtype=torch.bool).scatter(1, spare, True)
            kept = torch.where(kept.any(1, keepdim=True), kept, alone).float()
            return None, kept / kept.mean(1, keepdim=True)
        return None, None


def measure(network: Network, trained, held, source_words, target_words) -> dict:
    """The figures that the tests and the page quote, over all held-out pairs.

    The best head is chosen on pairs of the training part, then measured on the held-out ones.
    """
    words = source_words, target_words
    sample, bank = trained[:SAMPLE], [pair for pair in held if pair.kind.startswith("bank")]
    apart = [pair for pair in bank if pair.kind != "bank next"]
    chosen = int(evaluate.aligned(network, sample, *words).flatten().argmax())
    layer, head = divmod(chosen, network.sizes.h)
    heads = evaluate.aligned(network, held, *words)
    single = evaluate.aligned(network, held, *words, one=True)
    kinds = sorted({pair.kind for pair in held})
    return {
        "pairs": {"trained": len(trained), "held out": len(held), "bank": len(bank),
                  "bank apart": len(apart)},
        "exact": {
            "trained": evaluate.exact(network, sample, *words),
            "held out": evaluate.exact(network, held, *words),
            "bank": evaluate.exact(network, bank, *words),
            "bank apart": evaluate.exact(network, apart, *words),
        },
        "exact by kind": {
            kind: evaluate.exact(network, [p for p in held if p.kind == kind], *words)
            for kind in kinds
        },
        "exact without a head": evaluate.without(network, held[:SAMPLE], *words),
        "aligned": {
            "layer": layer,
            "head": head,
            "share": heads[layer, head].item(),
            "share of words with one source": single[layer, head].item(),
            "heads": heads.tolist(),
        },
    }  # fmt: skip


def main() -> None:
    usual = Settings()
    parser = argparse.ArgumentParser(prog="python -m core.translator.train", description=__doc__)
    parser.add_argument("--steps", type=int, default=usual.steps)
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the three files")
    asked = parser.parse_args()
    settings = Settings(steps=asked.steps, seed=asked.seed)
    torch.set_num_threads(1)
    begun = time.perf_counter()
    trained, held, *words = prepare()
    network = fresh(*words, settings.seed)
    losses = []
    for loss in steps(network, trained, *words, settings):
        losses.append(loss)
        _show(len(losses), settings.steps, loss, time.perf_counter() - begun)
    seconds = time.perf_counter() - begun
    figures = measure(network, trained, held, *words)
    _write(asked.out, network, words, settings, figures, losses, seconds)
    print(json.dumps(figures, indent=1))


def _show(done: int, total: int, loss: float, seconds: float) -> None:
    """A bar on the error stream, drawn anew every 20 steps."""
    if done % 20 and done != total:
        return
    width = 30 * done // total
    bar = "█" * width + "·" * (30 - width)
    left = seconds / done * (total - done)
    end = "\n" if done == total else ""
    print(f"\r{bar} {done}/{total}  loss {loss:.4f}  {left:3.0f} s left ", end=end,
          file=sys.stderr, flush=True)  # fmt: skip


def _write(folder, network, words, settings, figures, losses, seconds) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().contiguous() for name, tensor in network.state_dict().items()}
    save_file(weights, folder / "translator.safetensors")
    about = {
        "sizes": network.sizes.to_dict(),
        "parameters": sum(tensor.numel() for tensor in weights.values()),
        "training": asdict(settings) | {"seconds": round(seconds), "torch": torch.__version__},
        "figures": figures,
        "source_words": words[0],
        "target_words": words[1],
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    (folder / "translator.json").write_text(text + "\n", "utf-8")
    lines = [f"{step},{loss:.5f}" for step, loss in enumerate(losses, 1) if step % 20 == 0]
    (folder / "translator_loss.csv").write_text("step,loss\n" + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
