"""Katro batched in numba: what one would write who wants speed and has no katro.

It does what `katro.Batch.step` does by default, with fewer arrays: the board, the
mask, the reward and the end of every game, and an ended game starts again in the
next step. `check` plays it side by side with katro.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

import katro

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Returns the function in machine code."""
    return cast(F, numba.njit(nogil=True)(function))


@compiled
def occupied(side: NDArray[np.uint8], first: int, end: int) -> bool:
    """Returns whether one of some consecutive holes of a circuit holds a seed."""
    seeds = 0
    for hole in range(first, end):
        seeds |= side[hole]
    return seeds != 0


@compiled
def outer_row(side: NDArray[np.uint8]) -> int:
    """Returns the outermost occupied row."""
    if occupied(side, 0, 6):
        return 0
    return 1 if occupied(side, 6, 12) else 2


@compiled
def hole_at(row: int, column: int) -> int:
    """Returns the place of a hole in the circuit (R4)."""
    return 11 - column if row == 1 else 6 * row + column


@compiled
def play(mine: NDArray[np.uint8], theirs: NDArray[np.uint8], hole: int) -> bool:
    """Plays a move and returns whether it has won."""
    seeds = int(mine[hole])
    mine[hole] = 0
    while True:
        for _ in range(seeds):
            hole = 0 if hole == 17 else hole + 1
            mine[hole] += 1
        seeds = int(mine[hole])
        if seeds == 1:
            return False
        row = hole // 6
        if row == 2 or not occupied(mine, 6 * row + 6, 18):
            inner = 2
            while inner > 0 and not occupied(theirs, 6 * inner, 6 * inner + 6):
                inner -= 1
            column = 11 - hole if row == 1 else hole - 6 * row
            facing = hole_at(inner, 5 - column)
            captured = int(theirs[facing])
            if captured:
                theirs[facing] = 0
                seeds += captured
                if not occupied(theirs, 0, 18):  # R10
                    mine[hole] = seeds
                    return True
        mine[hole] = 0


@compiled
def observe(
    mine: NDArray[np.uint8],
    theirs: NDArray[np.uint8],
    over: bool,
    observation: NDArray[np.uint8],
    mask: NDArray[np.int8],
) -> None:
    """Writes what the player to move sees and may do."""
    for column in range(6):
        for row in range(3):
            observation[row, column] = theirs[hole_at(row, 5 - column)]
            observation[5 - row, column] = mine[hole_at(row, column)]
    row = outer_row(mine)
    for column in range(6):
        mask[column] = over or mine[hole_at(row, column)] > 0


def step_games(
    sides: NDArray[np.uint8],
    to_move: NDArray[np.int64],
    actions: NDArray[np.int64],
    observation: NDArray[np.uint8],
    mask: NDArray[np.int8],
    reward: NDArray[np.float64],
    done: NDArray[np.bool_],
) -> None:
    """Plays one ply in every game; a game that is over starts again instead."""
    for i in numba.prange(len(to_move)):
        if done[i]:
            sides[i] = 2
            to_move[i] = 0
            won = False
        else:
            mine, theirs = sides[i, to_move[i]], sides[i, 1 - to_move[i]]
            won = play(mine, theirs, hole_at(outer_row(mine), actions[i]))
            to_move[i] = 1 - to_move[i]
        done[i] = won
        reward[i] = won
        observe(sides[i, to_move[i]], sides[i, 1 - to_move[i]], won, observation[i], mask[i])


STEP: Callable[..., None] = compiled(step_games)
STEP_PARALLEL: Callable[..., None] = numba.njit(nogil=True, parallel=True)(step_games)


class NumbaBatch:
    """Games in the arrays `observation`, `mask`, `reward` and `done`, which `step` changes."""

    def __init__(self, n: int, threads: int) -> None:
        self.sides = np.full((n, 2, 18), 2, np.uint8)
        self.to_move = np.zeros(n, np.int64)
        self.observation = np.full((n, 6, 6), 2, np.uint8)
        self.mask = np.ones((n, 6), np.int8)
        self.reward = np.zeros(n, np.float64)
        self.done = np.zeros(n, np.bool_)
        self.threads = threads

    def step(self, actions: NDArray[np.int64]) -> None:
        """Plays one ply in every game."""
        # The parallel loop costs some microseconds to start but is compiled to faster
        # code, also for one thread; so every size gets what serves it best.
        kernel = STEP
        if self.threads > 1 or len(actions) >= 64:
            numba.set_num_threads(self.threads)
            kernel = STEP_PARALLEL
        kernel(
            self.sides,
            self.to_move,
            actions,
            self.observation,
            self.mask,
            self.reward,
            self.done,
        )


def check(
    draw: Callable[[NDArray[np.int8]], NDArray[np.int64]], threads: int, n: int, steps: int
) -> None:
    """Plays the same moves here and in katro, and raises if anything differs."""
    ours, theirs = katro.Batch(n), NumbaBatch(n, threads)
    result = ours.reset()
    for _ in range(steps):
        actions = draw(result.action_mask)
        result = ours.step(actions)
        theirs.step(actions)
        np.testing.assert_array_equal(theirs.observation, result.observation)
        np.testing.assert_array_equal(theirs.mask, result.action_mask)
        np.testing.assert_array_equal(theirs.reward, result.reward)
        np.testing.assert_array_equal(theirs.done, result.terminated)
