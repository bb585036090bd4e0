"""Speed of the adapters beside what their frameworks have, with the ratios that are asked for.

python benches/adapters.py [--seconds 2] [--reps 7]

Needs the extras pettingzoo (with PettingZoo's own `classic`), sb3 and openspiel. Each pair is
driven by the same code, in turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.games import tic_tac_toe  # noqa: F401 (registers the game)
from pettingzoo.classic.connect_four import connect_four
from stable_baselines3.common.vec_env import DummyVecEnv

import katro
import katro.open_spiel
import katro.pettingzoo
from katro.sb3 import KatroVecEnv

# Plays for so many seconds and returns the steps per second.
Run = Callable[[float], float]


def aec(env: Any) -> Run:
    """Random legal play through `agent_iter` and `last`; a dead step counts as a step."""
    rng = random.Random(0)

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            env.reset()
            for _ in env.agent_iter():
                observation, _, termination, truncation, _ = env.last()
                action = None
                if not (termination or truncation):
                    action = rng.choice(np.flatnonzero(observation["action_mask"]).tolist())
                env.step(action)
                steps += 1
        return steps / (time.perf_counter() - start)

    return run


def vec_env(envs: Any, masks_of: Callable[[Any], Any]) -> Run:
    """Random legal play in all games of an SB3 `VecEnv`; a step of one game counts as one."""
    rng = np.random.default_rng(0)
    envs.reset()

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(10):
                masks = masks_of(envs)
                envs.step((rng.random(masks.shape) * masks).argmax(axis=1))
                steps += envs.num_envs
        return steps / (time.perf_counter() - start)

    return run


def joined(envs: Any) -> Any:
    """The masks of all games, put together by the faster of NumPy's ways."""
    return np.concatenate(envs.env_method("action_masks")).reshape(envs.num_envs, -1)


def stacked(envs: Any) -> Any:
    """The masks of all games as sb3-contrib's `get_action_masks` puts them together."""
    return np.stack(envs.env_method("action_masks"))


def playouts(name: str) -> Run:
    """Random playouts of an OpenSpiel game, from Python."""
    game, rng = pyspiel.load_game(name), random.Random(0)

    def run(seconds: float) -> float:
        moves, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            state = game.new_initial_state()
            while not state.is_terminal():
                state.apply_action(rng.choice(state.legal_actions()))
                moves += 1
        return moves / (time.perf_counter() - start)

    return run


def main() -> None:
    """Prints a table of both rates of each pair, their ratio and the one asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=64, help="of the vector environments")
    parser.add_argument("--seconds", type=float, default=2.0, help="per row of the table")
    parser.add_argument("--reps", type=int, default=7)
    arguments = parser.parse_args()

    games = arguments.games
    native, dummy = KatroVecEnv(games), DummyVecEnv([katro.KatroEnv] * games)
    rows: list[tuple[str, Run, Run, str]] = [
        (
            "PettingZoo: env(), connect_four_v3.env()",
            aec(katro.pettingzoo.env()),
            aec(connect_four.env()),
            "5",
        ),
        (
            f"SB3: KatroVecEnv({games}), DummyVecEnv of KatroEnv",
            vec_env(native, joined),
            vec_env(dummy, joined),
            "10",
        ),
        (
            "     the same, masks by get_action_masks",
            vec_env(native, stacked),
            vec_env(dummy, stacked),
            "-",
        ),
        (
            "OpenSpiel: python_katro, python_tic_tac_toe",
            playouts("python_katro"),
            playouts("python_tic_tac_toe"),
            "1",
        ),
    ]
    packages = ("pettingzoo", "stable-baselines3", "open-spiel", "numpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    print(f"katro {katro.__version__}, Python {platform.python_version()}, {versions}")
    print(f"{'':52} {'katro/s':>11} {'other/s':>11} {'ratio':>6} {'asked':>6}")
    for name, ours, theirs, asked in rows:
        slot = arguments.seconds / 2 / arguments.reps
        rates = [(ours(slot), theirs(slot)) for _ in range(arguments.reps)]
        ratio = statistics.median(one / other for one, other in rates)
        mine, other = (statistics.median(column) for column in zip(*rates, strict=True))
        print(f"{name:52} {mine:>11,.0f} {other:>11,.0f} {ratio:>6.1f} {asked:>6}")


if __name__ == "__main__":
    main()
