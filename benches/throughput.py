"""Steps per second of `KatroVectorEnv.step` with random legal actions given.

python benches/throughput.py [--games 1024 8192] [--seconds 2] [--reps 7]
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import katro


def random_actions(masks: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns an action drawn evenly from the legal ones of every game."""
    actions: NDArray[np.int64] = np.argmax(
        (1 - rng.random(masks.shape, dtype=np.float32)) * masks, axis=1
    )
    return actions


def measure(step: Callable[[], float], games: int, seconds: float, reps: int) -> list[float]:
    """Returns the steps per second of `reps` runs; `step` returns the seconds it took."""
    rates = []
    for _ in range(reps):
        spent, steps = 0.0, 0
        while spent < seconds / reps:
            spent += step()
            steps += games
        rates.append(steps / spent)
    return rates


def vector_step(games: int) -> Callable[[], float]:
    """Returns a function that steps a `KatroVectorEnv` once and tells how long that took."""
    envs = katro.KatroVectorEnv(games)
    rng = np.random.default_rng(0)
    _, infos = envs.reset(seed=0)

    def step() -> float:
        nonlocal infos
        actions = random_actions(infos["action_mask"], rng)
        start = time.perf_counter()
        _, _, _, _, infos = envs.step(actions)
        return time.perf_counter() - start

    for _ in range(300):  # reach the usual mix of early and late games
        step()
    return step


def main() -> None:
    """Prints a table by number of games."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, nargs="+", default=[1, 64, 1024, 8192])
    parser.add_argument("--seconds", type=float, default=2.0, help="per row of the table")
    parser.add_argument("--reps", type=int, default=7)
    arguments = parser.parse_args()

    print(f"katro {katro.__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"{'games':>8} {'best M/s':>10} {'median M/s':>10}")
    for games in arguments.games:
        rates = measure(vector_step(games), games, arguments.seconds, arguments.reps)
        print(f"{games:>8} {max(rates) / 1e6:>10.2f} {statistics.median(rates) / 1e6:>10.2f}")


if __name__ == "__main__":
    main()
