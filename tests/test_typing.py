"""The types that the package declares, as mypy sees them."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import katro

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy"),
]

GOOD = """
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import katro

board: katro.Board = katro.Board(katro.Rules(rows=2, columns=4)).play(0)
board = katro.Board.from_notation("2,2/2,2 S", rules=None)
board = katro.Board.from_grid([[1, 2], [3, 4]], to_move=1, rules="katro")
winner: int | None = board.winner
actions: list[int] = board.legal_actions
mask: NDArray[np.int8] = board.action_mask
grid: NDArray[np.uint8] = board.grid()
lap: katro.Lap = board.trace(0)[0]
hole: tuple[int, int] = lap.landed
name: str | None = board.rules.name
nodes: int = katro.perft(board, 3)
assert hash(board) == hash(board) and {board: 1}

env = katro.KatroEnv(rules=katro.Rules(), observation="dict", illegal="lose", max_plies=None)
observation, info = env.reset(seed=0, options={"board": board})
observation, reward, terminated, truncated, info = env.step(2)
score: float = reward
masks: NDArray[np.bool_] = env.action_masks()

envs = katro.KatroVectorEnv(3, autoreset_mode=AutoresetMode.SAME_STEP)
envs = katro.KatroVectorEnv(3, autoreset_mode="Disabled", render_mode="ansi")
observations, infos = envs.reset(seed=[1, None, 2])
observations, rewards, terminations, truncations, infos = envs.step(np.array([0, 1, 2]))
total: np.float64 = rewards.sum()
boards: list[katro.Board] = envs.boards()
grids, legal = envs.afterstates()

try:
    board.play(9)
except katro.IllegalMoveError as error:
    refused: ValueError = error
"""

BAD = [
    "katro.Board(3)",
    "katro.Board().grid = 1",
    "katro.Board().play('a')",
    "katro.Board().winner + 1",
    "katro.Board.from_notation(3)",
    "katro.perft(katro.Board())",
    "katro.Rules('katro')",
    "katro.KatroEnv(observation='box')",
    "katro.KatroEnv(illegal='ignore')",
    "katro.KatroEnv(render_mode='human')",
    "katro.KatroVectorEnv(2, max_steps=3)",
    "katro.no_such_name",
    "class Mine(katro.Board): ...",
]


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=cwd,
        check=False,
    )


def test_mypy_accepts_the_package_and_what_is_right_and_refuses_what_is_wrong(tmp_path):
    assert (Path(katro.__file__).parent / "py.typed").exists()
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text("\n".join(["import katro", *BAD]))
    modules = [f"-m{name}" for name in ("katro", "katro.env", "katro.vector", "good", "bad")]
    done = run("mypy", "--strict", "--no-error-summary", *modules, cwd=tmp_path)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert done.stderr == ""
    wrong = {int(line.split(":")[1]) for line in errors if line.startswith("bad.py")}
    assert [line for i, line in enumerate(BAD, start=2) if i not in wrong] == []
    assert [line for line in errors if not line.startswith("bad.py")] == []


def test_the_stub_is_what_the_engine_has(tmp_path):
    done = run("mypy.stubtest", "katro._katro", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
