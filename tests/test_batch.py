"""`Batch`: the arrays of `KatroVectorEnv` without its dictionaries, reused buffers and rollouts."""

import copy
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from games import NAMES, choose, random_boards
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

import katro
from katro import Batch, Board, Finals, IllegalMoveError, KatroVectorEnv, Rollout, Step

MODES = [mode.value for mode in AutoresetMode]
INFO = ("action_mask", "to_move", "winner", "captured", "laps")
OVER = Board.from_grid([[0] * 6] * 5 + [[2] * 6])
FIELDS = {
    "observation": (np.uint8, (6, 6)),
    "action_mask": (np.int8, (6,)),
    "reward": (np.float64, ()),
    "terminated": (np.bool_, ()),
    "truncated": (np.bool_, ()),
    "to_move": (np.int64, ()),
    "winner": (np.int64, ()),
    "captured": (np.int64, ()),
    "laps": (np.int64, ()),
}
FINALS = ("game", "observation", "to_move", "winner", "captured", "laps")


def started(n, **options):
    batch = Batch(n, **options)
    batch.reset()
    return batch


def columns(step):
    """The arrays of a `Step`, or of its `Finals`."""
    return [column for column in step if isinstance(column, np.ndarray)]


def assert_equal(found, expected, names=tuple(FIELDS), rows=slice(None)):
    assert found.bound is expected.bound is None
    for name in names:
        a, b = getattr(found, name), getattr(expected, name)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        np.testing.assert_array_equal(a[rows], b[rows], name)


def over(step):
    return step.terminated | step.truncated


def total(rollouts):
    """The sum of what several rollouts counted."""
    rollouts = list(rollouts)
    return Rollout(
        sum(one.plies for one in rollouts),
        (sum(one.wins[0] for one in rollouts), sum(one.wins[1] for one in rollouts)),
        *(sum(getattr(one, name) for one in rollouts) for name in Rollout._fields[2:]),
    )


def chi_square(counts):
    """How far counts are from all the same, about their number - 1 if by chance."""
    expected = np.sum(counts) / len(counts)
    return float(((np.asarray(counts) - expected) ** 2 / expected).sum())


# Step


@pytest.mark.parametrize("copied", [True, False])
def test_a_step_has_a_row_of_its_type_for_every_game(copied):
    batch = Batch(5, copy=copied)
    for step in (batch.reset(), batch.step([0, 1, 2, 3, 4]), batch.reset(np.ones(5, bool))):
        assert type(step) is Step
        assert step._fields == (*FIELDS, "bound", "finals")
        for name, (dtype, shape) in FIELDS.items():
            array = getattr(step, name)
            assert (array.dtype, array.shape) == (dtype, (5, *shape)), name
            assert array.flags.c_contiguous, name
            assert array.flags.writeable, name
        assert step.bound is None
        assert step.finals is None


def test_the_shapes_of_a_step_follow_the_rules(rules):
    batch = Batch(3, rules=rules)
    step = batch.reset()
    assert step.observation.shape == (3, 2 * rules.rows, rules.columns)
    assert step.action_mask.shape == (3, rules.num_actions)
    assert batch.rules == rules
    assert len(batch) == 3


def test_steps_finals_and_rollouts_can_be_pickled():
    batch = started(2, autoreset_mode="SameStep", max_plies=1)
    step = batch.step([0, 1])
    for value in (step, step.finals, batch.rollout(3)):
        again = pickle.loads(pickle.dumps(value))
        assert type(again) is type(value)
        assert repr(again) == repr(value)


def assert_same_as_environment(step, result):
    observation, reward, terminated, truncated, infos = result
    expected = Step(
        observation, infos["action_mask"], reward, terminated, truncated,
        *(infos[name] for name in INFO[1:]), None, None,
    )  # fmt: skip
    assert_equal(step, expected)
    assert ("final_obs" in infos) == (step.finals is not None)
    if step.finals is None:
        return 0
    finals = step.finals
    assert type(finals) is Finals
    assert finals._fields == (*FINALS, "bound")
    assert finals.bound is None
    assert "bound" not in infos["final_info"]
    games = finals.game
    assert games.dtype == np.int64
    assert games.tolist() == np.flatnonzero(infos["_final_obs"]).tolist()
    assert games.tolist() == np.flatnonzero(terminated | truncated).tolist()
    np.testing.assert_array_equal(finals.observation, np.stack(infos["final_obs"][games]))
    assert finals.observation.dtype == np.uint8
    for name in INFO[1:]:
        column = getattr(finals, name)
        assert column.dtype == np.int64
        np.testing.assert_array_equal(column, infos["final_info"][name][games], name)
    return len(games)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize("rules", [*NAMES, katro.Rules(3, 8, 5), katro.Rules(1, 1)], ids=str)
def test_every_array_is_that_of_the_vector_environment(mode, illegal, rules):
    n = 70
    options = {"autoreset_mode": mode, "illegal": illegal, "rules": rules, "max_plies": 23}
    batch, envs = Batch(n, **options), KatroVectorEnv(n, **options)
    rng = np.random.default_rng(0)
    step = batch.reset()
    observation, infos = envs.reset()
    assert_same_as_environment(step, (observation, *step[2:5], infos))
    for name in ("reward", "terminated", "truncated", "captured", "laps"):
        assert not getattr(step, name).any(), name
    assert (step.winner == -1).all()
    ended, finals = 0, 0
    for _ in range(120):
        actions = choose(rng, step.action_mask)
        if illegal == "lose":
            anything = rng.random(n) < 0.02
            actions[anything] = rng.integers(batch.rules.num_actions, size=anything.sum())
        step = batch.step(actions)
        finals += assert_same_as_environment(step, envs.step(actions))
        assert envs.boards() == batch.boards()
        ended += over(step).sum()
        if mode == "Disabled" and over(step).any():
            mask = over(step)
            step = batch.reset(mask)
            observation, infos = envs.reset(options={"reset_mask": mask})
            np.testing.assert_array_equal(step.observation, observation)
            for name in INFO:
                np.testing.assert_array_equal(getattr(step, name)[mask], infos[name][mask], name)
    assert ended > n
    assert finals == (ended if mode == "SameStep" else 0)


def test_the_finals_are_the_last_boards_of_the_games():
    batch = started(3, rules="katro-4x4", autoreset_mode="SameStep", max_plies=2)
    last = Board.from_notation("0,0,0,0/0,3,0,0/0,1,1,0/0,0,0,0 S")
    start = Board("katro-4x4")
    batch.set_boards([start, last, start])
    step = batch.step([1, 2, 1])
    assert step.finals.game.tolist() == [1]
    np.testing.assert_array_equal(step.finals.observation, [last.play(2).observation()])
    assert step.finals.to_move.tolist() == [1]
    assert step.finals.winner.tolist() == [0]
    assert step.finals.captured[0] > 0
    assert step.finals.laps[0] == len(last.trace(2))
    assert step.reward.tolist() == [0, 1, 0]
    assert step.terminated.tolist() == [False, True, False]
    # The rest is of the new game.
    assert (step.winner[1], step.captured[1], step.laps[1], step.to_move[1]) == (-1, 0, 0, 0)
    np.testing.assert_array_equal(step.observation[1], start.observation())
    assert batch.boards()[1] == start
    step = batch.step(batch.action_masks().argmax(axis=1))
    assert step.finals.game.tolist() == [0, 2]
    assert step.finals.winner.tolist() == [-1, -1]
    assert step.truncated.tolist() == [True, False, True]


# Reset, boards, masks and afterstates


def test_a_mask_starts_some_games_and_leaves_the_others():
    batch = started(3)
    batch.step([0, 1, 2])
    step = batch.reset(np.array([True, False, True]))
    boards = [Board(), Board().play(1), Board()]
    assert batch.boards() == boards
    np.testing.assert_array_equal(step.observation, [board.observation() for board in boards])
    np.testing.assert_array_equal(step.action_mask, [board.action_mask for board in boards])
    assert step.to_move.tolist() == [0, 1, 0]
    for name in ("reward", "terminated", "truncated", "captured", "laps"):
        assert not getattr(step, name).any(), name


def test_a_mask_may_be_a_view_and_read_only_and_may_name_no_game():
    batch = started(3)
    batch.step([0, 1, 2])
    mask = np.array([True, False, False, True, True, False])[::2]
    mask.flags.writeable = False
    batch.reset(mask)
    boards = [Board(), Board().play(1), Board()]
    assert batch.boards() == boards
    batch.reset(mask=np.zeros(3, bool))
    assert batch.boards() == boards


@pytest.mark.parametrize("mask", [None, [True, False, False, True]])
def test_a_reset_to_a_board_starts_from_it(rules, mask):
    batch = started(4, rules=rules)
    for board in random_boards(rules, 10, seed=1):
        batch.reset()
        step = batch.reset(None if mask is None else np.array(mask), board=board)
        for i in range(4):
            expected = board if mask is None or mask[i] else Board(rules)
            assert batch.boards()[i] == expected
            np.testing.assert_array_equal(step.observation[i], expected.observation())
            np.testing.assert_array_equal(step.action_mask[i], expected.action_mask)
            assert step.to_move[i] == expected.to_move


def test_a_reset_starts_the_count_of_plies():
    batch = started(2, autoreset_mode="Disabled", max_plies=2)
    batch.step([0, 0])
    batch.reset(np.array([True, False]))
    step = batch.step(batch.action_masks().argmax(axis=1))
    assert step.truncated.tolist() == [False, True]
    with pytest.raises(ResetNeeded, match="game 1 is over"):
        batch.step([1, 1])


@pytest.mark.parametrize(
    ("mask", "board", "error"),
    [
        (np.array([True]), None, ValueError),
        (np.array([True, False, True]), None, ValueError),
        (np.array([], bool), None, ValueError),
        (np.array([[True, False]]), None, (TypeError, ValueError)),
        (np.array(True), None, (TypeError, ValueError)),
        (np.array([1, 0]), None, TypeError),
        (np.array([1.0, 0]), None, TypeError),
        (np.array([True, False], object), None, TypeError),
        (True, None, ValueError),
        ("ab", None, TypeError),
        (None, Board("katro-4x4"), ValueError),
        (None, OVER, ValueError),
        (None, Board.from_grid([[3] * 6] * 6), ValueError),
        (None, Board().notation, TypeError),
        (np.array([True]), Board(), ValueError),
        (np.array([True, False]), OVER, ValueError),
    ],
    ids=repr,
)
def test_a_refused_reset_leaves_the_games_as_they_were(mask, board, error):
    batch = started(2)
    batch.step([0, 1])
    before = pickle.dumps(batch)
    with pytest.raises(error):
        batch.reset(mask, board=board)
    assert pickle.dumps(batch) == before


def test_a_refused_reset_starts_no_games():
    batch = Batch(2)
    with pytest.raises(ValueError, match="shape"):
        batch.reset(np.array([True]))
    with pytest.raises(ResetNeeded):
        batch.step([0, 0])


def test_boards_can_be_set_and_read(rules):
    boards = random_boards(rules, 100, seed=2)
    batch = Batch(100, rules=rules)
    batch.set_boards(boards)
    assert batch.boards() == boards
    masks = batch.action_masks()
    assert (masks.dtype, masks.shape) == (np.bool_, (100, rules.num_actions))
    np.testing.assert_array_equal(masks, [board.action_mask for board in boards])
    actions = masks.argmax(axis=1)
    step = batch.step(actions)
    after = [board.play(int(action)) for board, action in zip(boards, actions, strict=True)]
    assert batch.boards() == after
    np.testing.assert_array_equal(step.observation, [board.observation() for board in after])
    np.testing.assert_array_equal(batch.action_masks(), step.action_mask != 0)


@pytest.mark.parametrize(
    ("boards", "error"),
    [
        ([Board()], ValueError),
        ([Board()] * 3, ValueError),
        ([], ValueError),
        ([Board(), Board("katro-4x4")], ValueError),
        ([OVER, Board()], ValueError),
        ([Board(), None], TypeError),
        ("ab", TypeError),
        (Board(), TypeError),
        (None, TypeError),
        (2, TypeError),
    ],
    ids=repr,
)
def test_refused_boards_leave_the_games_as_they_were(boards, error):
    batch = started(2)
    batch.step([0, 1])
    before = pickle.dumps(batch)
    with pytest.raises(error):
        batch.set_boards(boards)
    assert pickle.dumps(batch) == before


def test_afterstates_are_what_play_leads_to(rules):
    boards = random_boards(rules, 100, seed=3)
    batch = Batch(100, rules=rules)
    batch.set_boards(boards)
    grids, masks = batch.afterstates()
    assert grids.dtype == np.uint8
    assert grids.shape == (100, rules.num_actions, 2 * rules.rows, rules.columns)
    assert masks.dtype == np.bool_
    assert masks.shape == (100, rules.num_actions)
    expected = np.zeros_like(grids)
    for i, board in enumerate(boards):
        assert np.flatnonzero(masks[i]).tolist() == board.legal_actions
        for action in board.legal_actions:
            expected[i, action] = board.play(action).observation()
    np.testing.assert_array_equal(grids, expected)
    assert batch.boards() == boards


def test_a_game_that_is_over_has_no_afterstates_and_a_mask_of_ones():
    batch = started(2, autoreset_mode="Disabled", max_plies=1)
    step = batch.step([0, 1])
    assert step.truncated.all()
    grids, masks = batch.afterstates()
    assert not grids.any()
    assert not masks.any()
    assert batch.action_masks().all()
    assert step.action_mask.all()


# New arrays and reused ones


@pytest.mark.parametrize("mode", MODES)
def test_what_was_returned_never_changes_later_and_shares_no_memory(mode):
    # Gymnasium#1132, tianshou#1281: arrays that were kept and changed later.
    batch = Batch(70, rules="katro-4x4", autoreset_mode=mode, max_plies=9)
    rng = np.random.default_rng(4)
    step, last, held = batch.reset(), (), []
    for _ in range(300):
        own = [*columns(step), *columns(step.finals or ())]
        assert not any(np.shares_memory(a, b) for a in own for b in last)
        assert not any(np.shares_memory(a, b) for i, a in enumerate(own) for b in own[:i])
        held += [(array, array.copy()) for array in own]
        last = own
        if mode == "Disabled" and over(step).any():
            step = batch.reset(over(step))
        else:
            step = batch.step(choose(rng, step.action_mask))
    for array, then in held:
        np.testing.assert_array_equal(array, then)


def test_masks_afterstates_and_boards_are_new_each_time():
    for copied in (True, False):
        batch = started(2, copy=copied)
        for method in (
            batch.action_masks,
            lambda batch=batch: batch.afterstates()[0],
            lambda batch=batch: batch.afterstates()[1],
        ):
            first = method()
            then = first.copy()
            assert not np.shares_memory(first, method())
            batch.step([0, 1])
            np.testing.assert_array_equal(first, then)
            batch.reset()
        boards = batch.boards()
        batch.step([0, 1])
        assert boards == [Board(), Board()]


@pytest.mark.parametrize("mode", MODES)
def test_reused_arrays_are_the_same_ones_with_what_new_ones_hold(mode):
    options = {"rules": "katro-4x4", "autoreset_mode": mode, "max_plies": 9}
    fresh, reused = Batch(70, **options), Batch(70, copy=False, **options)
    rng = np.random.default_rng(5)
    step, first = fresh.reset(), reused.reset()
    assert_equal(first, step)
    finals = []
    for _ in range(300):
        if mode == "Disabled" and over(step).any():
            mask = over(step)
            step, same = fresh.reset(mask), reused.reset(mask)
        else:
            actions = choose(rng, step.action_mask)
            step, same = fresh.step(actions), reused.step(actions)
        assert_equal(same, step)
        for name in FIELDS:
            assert np.shares_memory(getattr(first, name), getattr(same, name)), name
        assert_equal(first, step)
        assert (same.finals is None) == (step.finals is None)
        if step.finals is not None:
            assert_equal(same.finals, step.finals, FINALS)
            for array in columns(same.finals):
                assert not any(np.shares_memory(array, other) for other in columns(same))
            finals.append((same.finals, step.finals))
    assert bool(finals) == (mode == "SameStep")
    for i, (same, expected) in enumerate(finals):
        assert_equal(same, expected, FINALS)
        following = finals[(i + 1) % len(finals)][0]
        for array, after in zip(columns(same), columns(following), strict=True):
            assert not np.shares_memory(array, after)


def test_reused_arrays_are_not_shared_with_each_other_or_another_batch():
    batches = [Batch(3, copy=False), Batch(3, copy=False)]
    own = [array for batch in batches for array in columns(batch.reset())]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(own) for b in own[:i])


def test_reused_arrays_outlive_the_batch():
    batch = Batch(3, copy=False)
    step = batch.reset()
    step = batch.step([0, 1, 2])
    del batch
    np.testing.assert_array_equal(
        step.observation, [Board().play(action).observation() for action in range(3)]
    )


def test_writing_into_reused_arrays_changes_no_game():
    batch = Batch(3, copy=False)
    for array in columns(batch.reset()):
        array[...] = 1
    assert batch.boards() == [Board()] * 3
    step = batch.step([0, 1, 2])
    assert_equal(step, started(3).step([0, 1, 2]))


def test_a_reused_array_may_be_the_actions():
    batch = Batch(3, copy=False)
    step = batch.reset()
    step.to_move[:] = [0, 1, 2]
    step = batch.step(step.to_move)
    assert_equal(step, started(3).step([0, 1, 2]))


def test_a_reused_array_that_was_made_read_only_is_refused_and_nothing_moves():
    batch = Batch(3, copy=False)
    step = batch.reset()
    step.reward.flags.writeable = False
    with pytest.raises((TypeError, ValueError), match="writeable"):
        batch.step([0, 1, 2])
    assert batch.boards() == [Board()] * 3
    step.reward.flags.writeable = True
    assert_equal(batch.step([0, 1, 2]), started(3).step([0, 1, 2]))


def test_a_vector_environment_can_reuse_its_arrays():
    options = {"rules": "katro-4x4", "autoreset_mode": "SameStep", "max_plies": 9}
    fresh, reused = KatroVectorEnv(5, **options), KatroVectorEnv(5, copy=False, **options)
    fresh.reset()
    first, _ = reused.reset()
    rng = np.random.default_rng(6)
    last = []
    for _ in range(100):
        actions = choose(rng, fresh.action_masks())
        expected, result = fresh.step(actions), reused.step(actions)
        assert np.shares_memory(first, result[0])
        for found, array in zip(result[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(found, array)
        for name in INFO:
            np.testing.assert_array_equal(result[4][name], expected[4][name])
        if "final_obs" in expected[4]:
            own = [grid for grid in result[4]["final_obs"] if grid is not None]
            wanted = [grid for grid in expected[4]["final_obs"] if grid is not None]
            assert not any(np.shares_memory(a, b) for a in own for b in (*last, first))
            np.testing.assert_array_equal(own, wanted)
            last = own
    assert last


# Rollouts


def test_a_rollout_counts_in_integers():
    rollout = started(10).rollout(20, seed=1)
    assert type(rollout) is Rollout
    assert Rollout._fields == ("plies", "wins", "truncated", "captured", "laps")
    south, north = rollout.wins
    for number in (rollout.plies, south, north, *rollout[2:]):
        assert type(number) is int


def test_a_seed_decides_a_rollout(rules):
    first, again, other = (started(100, rules=rules) for _ in range(3))
    rollout = first.rollout(30, seed=5)
    assert again.rollout(30, seed=5) == rollout
    assert again.boards() == first.boards()
    other.rollout(30, seed=500)
    if rules.num_actions > 1:
        assert other.boards() != first.boards()


def test_the_seed_is_0_unless_another_is_given():
    first, again = started(10), started(10)
    assert first.rollout(30) == again.rollout(30, 0)
    assert first.boards() == again.boards()


def test_a_rollout_does_not_depend_on_numpy_or_earlier_rollouts():
    batch = started(10)
    expected = batch.rollout(30, seed=3)
    batch.rollout(17, seed=9)
    batch.reset()
    np.random.seed(0)
    assert batch.rollout(30, seed=3) == expected


@pytest.mark.parametrize("mode", MODES)
def test_game_i_of_a_rollout_plays_as_a_batch_of_one_with_seed_plus_i(mode):
    n, seed, options = 131, 7, {"rules": "katro-4x4", "autoreset_mode": mode, "max_plies": 30}
    batch = started(n, **options)
    singles = [started(1, **options) for _ in range(n)]
    rollout = batch.rollout(100, seed)
    assert rollout == total(one.rollout(100, seed + i) for i, one in enumerate(singles))
    assert batch.boards() == [one.boards()[0] for one in singles]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [65, 1025, 5000])
def test_a_rollout_does_not_depend_on_the_threads(mode, n):
    batches = [
        started(n, autoreset_mode=mode, max_plies=100, num_threads=threads)
        for threads in (1, 2, 8, None)
    ]
    rollouts = {batch.rollout(150, seed=2) for batch in batches}
    assert len(rollouts) == 1
    assert len({pickle.dumps(batch.boards()) for batch in batches}) == 1


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("n", [1, 64, 65, 1000])
def test_games_that_start_again_play_every_ply(mode, n):
    rollout = started(n, autoreset_mode=mode, rules="katro-4x4", max_plies=50).rollout(300)
    assert rollout.plies == 300 * n
    assert rollout.laps >= rollout.plies
    assert sum(rollout.wins) + rollout.truncated >= 300 // 50 * n


def test_a_rollout_counts_what_the_ply_limit_cuts_off():
    rollout = started(100, max_plies=5).rollout(35)
    assert rollout.truncated == 7 * 100
    assert rollout.wins == (0, 0)
    # The limit counts the plies of the game, not those of one rollout.
    batch = started(100, max_plies=5)
    assert [batch.rollout(3).truncated for _ in range(5)] == [0, 100, 0, 100, 100]


def test_with_autoreset_disabled_every_game_ends_once_and_stays():
    batch = started(1000, autoreset_mode="Disabled", max_plies=200)
    rollout = batch.rollout(200)
    assert sum(rollout.wins) + rollout.truncated == 1000
    assert rollout.truncated > 100
    assert min(rollout.wins) > 100
    assert rollout.plies < 200 * 1000
    boards = batch.boards()
    winners = [board.winner for board in boards]
    assert (winners.count(0), winners.count(1)) == rollout.wins
    assert batch.rollout(1000, seed=1) == Rollout(0, (0, 0), 0, 0, 0)
    assert batch.boards() == boards
    assert batch.action_masks().all()
    with pytest.raises(ResetNeeded, match="game 0 is over"):
        batch.step(np.zeros(1000, int))


def test_after_a_rollout_a_same_step_batch_has_no_ended_game():
    # "A game that ends starts again at once": as a step of this mode leaves it.
    batch = started(3, autoreset_mode="SameStep", max_plies=5)
    rollout = batch.rollout(5)
    assert rollout.truncated == 3
    assert batch.boards() == [Board()] * 3
    step = batch.step([0, 1, 2])
    assert (step.laps > 0).all()
    assert batch.boards() == [Board().play(action) for action in range(3)]


def test_a_rollout_and_steps_follow_each_other():
    batch = started(50, max_plies=20, rules="katro-4x4")
    for seed in range(10):
        batch.rollout(7, seed)
        boards = batch.boards()
        masks = batch.action_masks()
        actions = masks.argmax(axis=1)
        step = batch.step(actions)
        for i, board in enumerate(boards):
            after = board.play(int(actions[i])) if step.laps[i] else Board("katro-4x4")
            np.testing.assert_array_equal(step.observation[i], after.observation())


def test_a_rollout_from_a_board_counts_its_wins():
    last = Board.from_notation("0,0,0,0/0,3,0,0/0,1,1,0/0,0,0,0 S")
    wins = [last.play(action).winner == 0 for action in last.legal_actions]
    assert any(wins)
    assert not all(wins)
    batch = Batch(2000, rules="katro-4x4", autoreset_mode="Disabled")
    batch.reset(board=last)
    rollout = batch.rollout(1)
    assert rollout.plies == 2000
    assert rollout.wins[1] == 0
    assert abs(rollout.wins[0] / 2000 - sum(wins) / len(wins)) < 0.06


@pytest.mark.parametrize("mode", MODES)
def test_no_plies_change_nothing(mode):
    batch = started(3, autoreset_mode=mode, max_plies=1)
    batch.step([0, 1, 2])
    before = pickle.dumps(batch)
    assert batch.rollout(0) == Rollout(0, (0, 0), 0, 0, 0)
    assert batch.rollout(plies=0, seed=2**62) == Rollout(0, (0, 0), 0, 0, 0)
    assert pickle.dumps(batch) == before


def test_random_games_are_as_long_as_the_rules_say():
    # R12: mean 194 plies, median 151, 99 % under 715; R10: 3.4 laps on average.
    n = 8000
    batch = started(n, autoreset_mode="Disabled", max_plies=None)
    rollout = batch.rollout(151)
    assert abs(sum(rollout.wins) / n - 0.5) < 0.03
    rollout = total((rollout, batch.rollout(715 - 151, seed=10**6)))
    assert abs(sum(rollout.wins) / n - 0.99) < 0.005
    rollout = total((rollout, batch.rollout(5000, seed=10**7)))
    assert sum(rollout.wins) == n
    assert rollout.truncated == 0
    assert abs(rollout.plies / n - 194) < 8
    assert abs(rollout.laps / rollout.plies - 3.4) < 0.1
    assert abs(rollout.wins[0] / n - 0.5) < 0.03


def test_a_rollout_plays_legal_actions_equally_often(rules):
    n = 6000
    for number, board in enumerate(random_boards(rules, 12, seed=8)):
        batch = Batch(n, rules=rules, autoreset_mode="Disabled")
        batch.reset(board=board)
        batch.rollout(1, seed=number * n)
        counts = {board.play(action): 0 for action in board.legal_actions}
        for after in batch.boards():
            counts[after] += 1  # a KeyError is an illegal action
        if len(counts) == len(board.legal_actions):  # else two actions lead to one board
            assert chi_square(list(counts.values())) < 25 + 2 * max(0, len(counts) - 6)


def test_plies_and_games_of_a_rollout_are_independent():
    n = 36_000
    actions = {Board().play(action): action for action in range(6)}
    replies = {
        board.play(reply): (action, rank)
        for board, action in actions.items()
        for rank, reply in enumerate(board.legal_actions)
    }
    sizes = {action: len(board.legal_actions) for board, action in actions.items()}
    batch = started(n, autoreset_mode="Disabled")
    batch.rollout(2, seed=11)
    played = [replies[board] for board in batch.boards()]
    counts = np.zeros((6, 6))
    for action, rank in played:
        counts[action, rank] += 1
    assert chi_square(counts.sum(axis=1)) < 25
    for action, row in enumerate(counts):
        assert chi_square(row[: sizes[action]]) < 25
    # Neighbouring games have neighbouring seeds.
    first = np.array([action for action, _ in played])
    assert chi_square(np.bincount(first[:-1] * 6 + first[1:], minlength=36)) < 80


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ((-1,), ValueError, "plies must be 0 or more, got -1"),
        ((-(10**30),), ValueError, "plies must be 0 or more"),
        ((5.0,), TypeError, "plies must be an integer, got 5.0"),
        (("5",), TypeError, "plies"),
        ((None,), TypeError, "plies"),
        ((np.array([1, 2]),), TypeError, "plies"),
        ((5, -1), ValueError, "seed must be 0 or more, got -1"),
        ((5, -(10**30)), ValueError, "seed must be 0 or more"),
        ((5, 1.5), TypeError, "seed must be an integer, got 1.5"),
        ((5, np.float64(2)), TypeError, "seed"),
        ((5, None), TypeError, "seed"),
        ((5, "1"), TypeError, "seed"),
        ((), TypeError, "plies"),
        ((1, 2, 3), TypeError, "arguments"),
    ],
    ids=repr,
)
def test_a_refused_rollout_leaves_the_games_as_they_were(arguments, error, part):
    batch = started(3)
    batch.step([0, 1, 2])
    before = pickle.dumps(batch)
    with pytest.raises(error, match=part):
        batch.rollout(*arguments)
    assert pickle.dumps(batch) == before


@pytest.mark.parametrize("what", ["plies", "seed"])
def test_a_negative_number_is_named_as_it_was_given(what):
    arguments = {"plies": 1, "seed": 1, what: -(10**30)}
    with pytest.raises(ValueError, match=str(-(10**30))):
        started(2).rollout(**arguments)


def test_large_seeds_are_refused_or_differ():
    # OpenEnv#1102: a seed that is silently discarded is worse than an error.
    boards = []
    for seed in (2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 10**30 + 1):
        batch = started(50)
        try:
            batch.rollout(10, seed)
        except ValueError as error:
            assert str(seed) in str(error)  # noqa: PT017
        else:
            boards.append((seed, batch.boards()))
    for i, (seed, played) in enumerate(boards):
        for other, same in boards[:i]:
            assert played != same, f"the seeds {other} and {seed} play alike"


@pytest.mark.parametrize(
    "kind", [int, np.int8, np.uint8, np.int64, np.uint64, np.array], ids=lambda kind: kind.__name__
)
def test_the_numbers_of_a_rollout_may_be_integers_of_every_kind(kind):
    assert started(3).rollout(kind(20), kind(4)) == started(3).rollout(20, seed=4)


def test_a_rollout_needs_a_reset_first():
    batch = Batch(2)
    with pytest.raises(ResetNeeded, match="reset"):
        batch.rollout(5)
    batch.set_boards([Board(), Board()])
    assert batch.rollout(5).plies == 10


INTERRUPTED = """
import signal, time
import numpy as np
import katro

signal.signal(signal.SIGINT, signal.default_int_handler)
batch = katro.Batch({n}, max_plies=None, autoreset_mode="{mode}", num_threads={threads})
batch.reset()
print("ready", flush=True)
try:
    batch.rollout(10**15, seed=1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
seeds = {{int(board.grid().sum()) for board in batch.boards()}}
assert seeds == {{72}}, seeds
batch.reset()
assert batch.boards() == [katro.Board()] * {n}
batch.step(np.zeros({n}, int))
assert batch.rollout(10, seed=1).plies == 10 * {n}
print("usable", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("n", "mode", "threads"),
    [(1, "NextStep", 1), (1, "Disabled", 1), (5000, "SameStep", 2), (200_000, "NextStep", 2)],
)
def test_ctrl_c_ends_a_rollout_and_leaves_the_batch_usable(n, mode, threads):
    code = INTERRUPTED.format(n=n, mode=mode, threads=threads)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        patience = threading.Timer(30, process.kill)
        patience.start()
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            then = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            assert time.monotonic() - then < 2
            # Not communicate(), which loses what readline() has read ahead.
            output, errors = process.stdout.read(), process.stderr.read()
            process.wait()
        finally:
            patience.cancel()
            process.kill()
    assert (output, errors, process.returncode) == ("usable\n", "", 0)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_a_signal_that_is_handled_does_not_change_a_rollout():
    seen = []
    expected = started(500).rollout(20_000, seed=3)
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        batch = started(500)
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        rollout = batch.rollout(20_000, seed=3)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert rollout == expected
    assert seen == [1]


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_the_exception_of_a_signal_handler_ends_a_rollout():
    def handler(*_):
        batch.boards()  # the batch is busy

    batch = started(500)
    before = signal.signal(signal.SIGUSR1, handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        with pytest.raises(RuntimeError, match="borrowed"):
            batch.rollout(10**15)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert batch.rollout(10).plies == 5000


# Making


def test_the_signatures_can_be_inspected():
    expected = (
        "(n, *, rules='katro', autoreset_mode='NextStep', illegal='raise', max_plies=2000, "
        "opponent=None, seat=None, num_threads=None, copy=True)"
    )
    assert str(inspect.signature(Batch)) == expected
    batch = Batch(n=2)
    assert str(inspect.signature(batch.reset)) == "(mask=None, *, board=None, seed=None, seat=None)"
    assert str(inspect.signature(batch.step)) == "(actions, games=None)"
    assert str(inspect.signature(batch.rollout)) == "(plies, seed=0)"
    assert str(inspect.signature(batch.set_boards)) == "(boards)"
    for method in (batch.action_masks, batch.afterstates, batch.boards):
        assert str(inspect.signature(method)) == "()"


def test_arguments_may_be_named_and_options_must_be():
    batch = Batch(n=2, num_threads=1)
    batch.reset(mask=np.ones(2, bool), board=Board())
    batch.step(actions=[0, 1])
    batch.rollout(plies=3, seed=2)
    batch.set_boards(boards=[Board(), Board()])
    for wrong in (
        lambda: Batch(),
        lambda: Batch(2, "katro"),
        lambda: Batch(num_envs=2),
        lambda: Batch(2, observation="dict"),
        lambda: batch.reset(None, Board()),
        lambda: batch.reset(opponent="random"),
        lambda: batch.step(),
        lambda: batch.step([0, 1], [0, 1]),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert batch.boards() == [Board(), Board()]


@pytest.mark.parametrize("n", [3, np.int8(3), np.uint64(3), np.array(3)], ids=repr)
def test_the_number_of_games_may_be_any_integer(n):
    assert len(Batch(n)) == 3


@pytest.mark.parametrize(
    ("n", "error", "part"),
    [
        (0, ValueError, "num_envs must be at least 1, got 0"),
        (-3, ValueError, "num_envs must be at least 1, got -3"),
        (-(2**63), ValueError, "num_envs"),
        (-(10**30), ValueError, "num_envs must be at least 1"),
        (2**40, MemoryError, r"1099511627776 games need \d+\.\d GB of memory"),
        (2**62, MemoryError, "4611686018427387904 games need .* memory"),
        (2**63 - 1, MemoryError, "memory"),
        (10**30, MemoryError, "memory"),
        (1.5, TypeError, "num_envs must be an integer, got 1.5"),
        (float("nan"), TypeError, "num_envs"),
        ("3", TypeError, "num_envs must be an integer, got '3'"),
        (None, TypeError, "num_envs"),
        ([3], TypeError, "num_envs"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [Batch, KatroVectorEnv])
def test_a_bad_number_of_games_is_refused(kind, n, error, part):
    with pytest.raises(error, match=part):
        kind(n)


@pytest.mark.parametrize("copied", [True, False])
def test_too_many_games_are_refused_with_and_without_new_arrays(copied):
    with pytest.raises(MemoryError, match="GB"):
        Batch(2**40, copy=copied)


@pytest.mark.parametrize(
    ("threads", "error", "part"),
    [
        (0, ValueError, "num_threads must be at least 1, .*got 0"),
        (-1, ValueError, "num_threads must be at least 1, .*got -1"),
        (-(10**30), ValueError, "num_threads"),
        ("x", TypeError, "num_threads must be an integer, got 'x'"),
        (1.5, TypeError, "num_threads must be an integer, got 1.5"),
        (2.0, TypeError, "num_threads"),
        ([2], TypeError, "num_threads"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [Batch, KatroVectorEnv])
def test_a_bad_number_of_threads_is_refused(kind, threads, error, part):
    with pytest.raises(error, match=part):
        kind(3, num_threads=threads)


@pytest.mark.parametrize("threads", [1, 2, np.int8(2), np.uint64(2), np.array(2)], ids=repr)
def test_the_number_of_threads_may_be_any_integer(threads):
    batch = started(5000, num_threads=threads)
    assert batch.num_threads == int(threads)
    batch.step(np.zeros(5000, int))


def test_the_threads_are_chosen_for_the_batch_and_the_machine():
    assert Batch(1).num_threads == 1
    assert Batch(64).num_threads == 1
    assert 1 <= Batch(200_000).num_threads <= os.cpu_count()


@pytest.mark.parametrize("threads", [10**5, 10**9])
def test_absurdly_many_threads_are_refused_or_not_started(threads):
    code = f"""
import os, numpy as np, katro
try:
    batch = katro.Batch(5000, num_threads={threads})
except ValueError as error:
    assert "num_threads" in str(error)
else:
    batch.reset()
    batch.step(np.zeros(5000, int))
    batch.rollout(10)
    started = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
    assert started < 1000, started
"""
    try:
        done = subprocess.run([sys.executable, "-c", code], timeout=4, capture_output=True)
    except subprocess.TimeoutExpired:
        pytest.fail("one step takes more than 4 seconds")
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({"rules": "x"}, ValueError, "rules"),
        ({"rules": 3}, TypeError, "rules"),
        ({"autoreset_mode": "x"}, ValueError, "autoreset_mode"),
        ({"autoreset_mode": "next_step"}, ValueError, "autoreset_mode"),
        ({"autoreset_mode": 3}, TypeError, "autoreset_mode"),
        ({"illegal": "x"}, ValueError, "illegal"),
        ({"illegal": None}, TypeError, "str"),
        ({"max_plies": 0}, ValueError, "max_plies must be at least 1, .*got 0"),
        ({"max_plies": -1}, ValueError, "max_plies"),
        ({"max_plies": 1.5}, TypeError, "max_plies"),
        ({"copy": None}, TypeError, "bool"),
        ({"copy": "no"}, TypeError, "bool"),
    ],
    ids=repr,
)
def test_a_bad_option_is_refused(options, error, part):
    with pytest.raises(error, match=part):
        Batch(3, **options)


@pytest.mark.parametrize("mode", [*AutoresetMode, *MODES])
def test_the_mode_may_be_a_name_or_gymnasiums_enumeration(mode):
    batch = started(2, autoreset_mode=mode, max_plies=1)
    step = batch.step([0, 1])
    assert (step.finals is not None) == (AutoresetMode(mode) is AutoresetMode.SAME_STEP)


# Actions


@pytest.mark.parametrize(
    "actions",
    [
        *(
            np.array([0, 1, 2], f"{order}{kind}{size}")
            for order in "<>"
            for kind in "iu"
            for size in (1, 2, 4, 8)
        ),
        np.array([0, 9, 1, 9, 2, 9])[::2],
        np.array([2, 1, 0])[::-1],
        np.array([[0, 5], [1, 5], [2, 5]])[:, 0],
        np.array([[0, 5], [1, 5], [2, 5]], ">i4")[:, 0],
        # Strides that are no multiple of the size.
        np.array([(9, 0), (9, 1), (9, 2)], [("other", "u1"), ("action", "i8")])["action"],
        np.array([(9, 0), (9, 1), (9, 2)], [("other", "u1"), ("action", "i4")])["action"],
        np.frombuffer(np.array([0, 1, 2], np.int64).tobytes(), np.int64),
        np.frombuffer(b"\0" + np.array([0, 1, 2], np.int64).tobytes(), np.int64, offset=1),
        np.lib.stride_tricks.as_strided(np.array([0, 1, 2]), writeable=False),
        [0, 1, 2],
        (0, 1, 2),
        range(3),
        [np.int8(0), 1, np.uint32(2)],
    ],
    ids=repr,
)
@pytest.mark.parametrize("copied", [True, False])
def test_every_array_of_integers_is_accepted_and_left_alone(actions, copied):
    batch = started(3, copy=copied)
    then = copy.deepcopy(actions)
    batch.step(actions)
    assert batch.boards() == [Board().play(action) for action in range(3)]
    np.testing.assert_array_equal(actions, then)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "view",
    [
        lambda step: step.to_move,
        lambda step: step.captured,
        lambda step: step.reward.view(np.int64),
        lambda step: step.observation.reshape(-1)[: 8 * 5000].view(np.int64),
        lambda step: step.observation.reshape(-1)[-8 * 5000 :].view(np.int64),
    ],
    ids=["to_move", "captured", "reward", "observation", "the end of observation"],
)
def test_actions_in_an_array_that_the_step_writes_into_are_read_before(view, threads):
    batch = started(5000, copy=False, num_threads=threads)
    actions = view(batch.reset())
    actions[:] = np.arange(5000) % 6
    batch.step(actions)
    assert batch.boards()[:6] == [Board().play(action) for action in range(6)]
    expected = started(5000)
    expected.step(np.arange(5000) % 6)
    assert batch.boards() == expected.boards()


def test_actions_of_one_value_for_all_games_are_accepted():
    batch = started(3)
    batch.step(np.broadcast_to(np.int64(2), 3))
    assert batch.boards() == [Board().play(2)] * 3


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        *(
            (np.array([0, 1, 2], dtype), TypeError)
            for dtype in (float, np.float16, bool, object, complex, "m8[s]", "S1")
        ),
        (np.array([0, np.nan, 2]), TypeError),
        (["0", "1", "2"], TypeError),
        ([None, 1, 2], TypeError),
        ([0, 1, 10**30], TypeError),
        (None, TypeError),
        ("012", TypeError),
        (np.zeros((3, 1), int), ValueError),
        (np.zeros((1, 3), int), ValueError),
        (np.zeros(4, int), ValueError),
        (np.zeros(2, int), ValueError),
        (np.zeros(0, int), ValueError),
        (0, ValueError),
    ],
    ids=repr,
)
@pytest.mark.parametrize("copied", [True, False])
def test_what_are_no_actions_is_refused_and_nothing_moves(actions, error, copied):
    batch = started(3, copy=copied)
    with pytest.raises(error, match="actions must"):
        batch.step(actions)
    assert batch.boards() == [Board()] * 3


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("n", [3, 5000])
def test_an_illegal_action_refuses_the_batch_and_nothing_moves(n, copied):
    batch = Batch(n, copy=copied, num_threads=2)
    step = batch.reset()
    before, kept = pickle.dumps(batch), [array.copy() for array in columns(step)]
    actions = np.zeros(n, int)
    actions[[n - 2, n - 1]] = 6, -1
    with pytest.raises(IllegalMoveError, match=f"game {n - 2}: illegal action 6: .*mask"):
        batch.step(actions)
    assert pickle.dumps(batch) == before
    for array, then in zip(columns(step), kept, strict=True):
        np.testing.assert_array_equal(array, then)


def test_a_step_needs_a_reset_first():
    batch = Batch(2)
    with pytest.raises(ResetNeeded, match="reset"):
        batch.step([0, 0])
    with pytest.raises(gym.error.ResetNeeded):
        copy.deepcopy(batch).step([0, 0])
    assert batch.boards() == [Board()] * 2
    assert batch.action_masks().all()
    assert all(part.any() for part in batch.afterstates())


# Copies

REMAKE = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda batch, protocol=protocol: pickle.loads(pickle.dumps(batch, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ),
]


@pytest.mark.parametrize("remake", REMAKE)
@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_copy_keeps_the_options_and_goes_on_identically(remake, copied, mode):
    # PettingZoo#1307: copies that lost the state of the game.
    batch = started(
        70, rules="katro-4x4", autoreset_mode=mode, illegal="lose", max_plies=17, num_threads=3,
        copy=copied,
    )  # fmt: skip
    batch.rollout(11, seed=4)
    other = remake(batch)
    assert type(other) is Batch
    assert len(other) == 70
    assert other.rules == batch.rules
    assert other.num_threads == 3
    assert other.boards() == batch.boards()
    assert pickle.dumps(other) == pickle.dumps(batch)
    boards = batch.boards()
    if mode == "Disabled":
        assert other.rollout(20, seed=5) == batch.rollout(20, seed=5)
        assert other.boards() == batch.boards()
        return
    rng, kept = np.random.default_rng(9), []
    for _ in range(40):
        # Illegal actions lose, and plies before the copy count for the limit.
        kept.append((rng.integers(4, size=70), other.boards()))
        step = other.step(kept[-1][0])
        kept[-1] += (copy.deepcopy(step),)
    assert batch.boards() == boards
    for actions, before, expected in kept:
        assert batch.boards() == before
        step = batch.step(actions)
        assert_equal(step, expected)
        assert (step.finals is None) == (expected.finals is None)
    last, again = other.reset(), other.reset()
    assert np.shares_memory(last.reward, again.reward) == (not copied)


def test_a_copy_shares_no_arrays_with_the_original():
    batch = started(3, copy=False)
    other = copy.deepcopy(batch)
    pairs = zip(columns(batch.reset()), columns(other.reset()), strict=True)
    assert not any(np.shares_memory(a, b) for a, b in pairs)


def test_a_copy_keeps_that_no_limit_or_number_of_threads_was_given():
    batch = started(2, max_plies=None)
    keywords = copy.deepcopy(batch).__reduce__()[0].keywords
    assert keywords["max_plies"] is None
    assert keywords["num_threads"] is None
    assert keywords["copy"] is True
