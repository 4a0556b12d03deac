"""The translator on all held-out pairs, and how long a sentence takes."""

import statistics
import time

from core.translator import load, studies, train

SENTENCE = "at the bank my friend's old teacher did not catch fish yesterday"


def _seconds(work, times=20) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def measure() -> dict:
    begun = time.perf_counter()
    translator = load()
    loading = time.perf_counter() - begun
    trained, held, *words = train.prepare()
    target = translator.run(SENTENCE).target
    return {
        "figures": train.measure(translator.network, trained, held, *words),
        "as shipped": translator.about["figures"]["exact"],
        "seconds to load": loading,
        "seconds for 11 words": _seconds(lambda: translator.run(SENTENCE)),
        "seconds to try all heads": _seconds(
            lambda: studies.rests_on(translator, SENTENCE, target, 0)
        ),
        "seconds for a trace": _seconds(
            lambda: translator.trace(translator.run(SENTENCE), "cross", 0)
        ),
    }
