"""`KatroVectorEnv`: the same as Gymnasium's `SyncVectorEnv`, array by array and key by key."""

import copy
import pickle
import threading

import gymnasium as gym
import numpy as np
import pytest
from games import choose, random_boards
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import katro
from katro import Board, IllegalMoveError, KatroEnv, KatroVectorEnv

ID = "katro/Katro-v0"
MODES = [mode.value for mode in AutoresetMode]
BOARDS = (*katro.RULES, katro.Rules(1, 6), katro.Rules(3, 8, 5), katro.Rules(1, 1))


def assert_same(native, expected, path="result"):
    """Checks values, types, dtypes, shapes and keys."""
    assert type(native) is type(expected), path
    if isinstance(expected, dict):
        assert native.keys() == expected.keys(), path
        for key, value in expected.items():
            assert_same(native[key], value, f"{path}[{key!r}]")
    elif isinstance(expected, tuple):
        assert len(native) == len(expected), path
        for i, value in enumerate(expected):
            assert_same(native[i], value, f"{path}[{i}]")
    elif isinstance(expected, np.ndarray):
        assert (native.dtype, native.shape) == (expected.dtype, expected.shape), path
        if expected.dtype == object:
            for i, value in enumerate(expected):
                assert_same(native[i], value, f"{path}[{i}]")
        else:
            np.testing.assert_array_equal(native, expected, path)
    else:
        assert native == expected, path


def arrays(result):
    """All arrays in a result, also those in dicts and in arrays of objects."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, np.ndarray):
        return [result, *(arrays(tuple(result)) if result.dtype == object else [])]
    if isinstance(result, tuple):
        return [array for part in result for array in arrays(part)]
    return []


def snapshot(envs):
    return pickle.dumps(envs)


def steps(envs, rng, n):
    """Random steps of a batch that resets itself; the results in order."""
    results = []
    for _ in range(n):
        results.append(envs.step(choose(rng, envs.action_masks())))
    return results


# The same as SyncVectorEnv


def both(n, mode, **options):
    native = KatroVectorEnv(n, autoreset_mode=mode, **options)
    sync = SyncVectorEnv([lambda: KatroEnv(**options)] * n, autoreset_mode=AutoresetMode(mode))
    return native, sync


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("observation", ["grid", "dict"])
@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize("rules", BOARDS, ids=str)
def test_every_array_and_key_is_that_of_sync_vector_env(mode, observation, illegal, rules):
    n = 5
    native, sync = both(
        n, mode, rules=rules, observation=observation, illegal=illegal, max_plies=23
    )
    rng = np.random.default_rng(0)
    result = sync.reset(seed=3)
    assert_same(native.reset(seed=3), result)
    ended, lost, cut = 0, 0, 0
    for step in range(150):
        actions = choose(rng, native.action_masks())
        if illegal == "lose":
            anything = rng.random(n) < 0.05
            actions[anything] = rng.integers(native.single_action_space.n, size=anything.sum())
        result = sync.step(actions)
        assert_same(native.step(actions), result, f"step {step}")
        over = result[2] | result[3]
        ended += over.sum()
        lost += (result[1] < 0).sum()
        cut += result[3].sum()
        if mode == "Disabled" and over.any():
            extra = rng.random(n) < 0.2
            mask = over | extra
            expected = sync.reset(options={"reset_mask": mask})
            assert_same(native.reset(options={"reset_mask": mask}), expected, f"reset {step}")
        if step % 50 == 30:
            seeds = [step, *[None] * (n - 2), 7]
            assert_same(native.reset(seed=seeds), sync.reset(seed=seeds))
    assert ended > 10
    assert cut > 0 or rules in (katro.Rules(1, 6), katro.Rules(1, 1))  # always shorter
    assert lost > 0 or illegal == "raise" or rules == katro.Rules(1, 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_of_several_blocks_is_that_of_sync_vector_env(mode):
    n = 131
    native, sync = both(n, mode, rules="katro-4x4", max_plies=15)
    rng = np.random.default_rng(1)
    assert_same(native.reset(), sync.reset())
    for step in range(60):
        actions = choose(rng, native.action_masks())
        result = sync.step(actions)
        assert_same(native.step(actions), result, f"step {step}")
        if mode == "Disabled" and (over := result[2] | result[3]).any():
            expected = sync.reset(options={"reset_mask": over.copy()})
            assert_same(native.reset(options={"reset_mask": over}), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("observation", ["grid", "dict"])
def test_a_reset_to_a_board_is_that_of_sync_vector_env(mode, observation):
    native, sync = both(4, mode, rules="katro-4x6", observation=observation)
    native.reset()
    sync.reset()
    mask = np.array([True, False, False, True])
    for board in random_boards(katro.Rules.named("katro-4x6"), 20, seed=2):
        for options in ({"board": board}, {"board": board, "reset_mask": mask}):
            assert_same(native.reset(options=options), sync.reset(options=dict(options)))
            actions = native.action_masks().argmax(axis=1)
            if mode != "Disabled":
                assert_same(native.step(actions), sync.step(actions))


@pytest.mark.parametrize("options", [{}, {"rules": "katro-4x4", "observation": "dict"}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_spaces_and_metadata_are_those_of_sync_vector_env(mode, options):
    native, sync = both(3, mode, **options)
    for name in (
        *("num_envs", "render_mode", "autoreset_mode", "metadata", "closed"),
        *("single_action_space", "action_space", "single_observation_space", "observation_space"),
    ):
        assert getattr(native, name) == getattr(sync, name), name
    assert native.metadata["autoreset_mode"] is AutoresetMode(mode)
    observations, _ = native.reset()
    assert observations in native.observation_space
    if "observation" in options:
        assert list(observations) == list(sync.reset()[0])


@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_render_is_that_of_sync_vector_env(render_mode):
    native, sync = both(2, "NextStep", render_mode=render_mode)
    for envs in (native, sync):
        envs.reset()
        envs.step(np.array([0, 3]))
    assert_same(native.render(), sync.render())


def test_render_without_a_mode_warns():
    envs = KatroVectorEnv(2)
    envs.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert envs.render() is None


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_gives_the_same_rows_as_batches_of_one(mode):
    n, options = 70, {"rules": "katro-4x4", "max_plies": 30, "autoreset_mode": mode}
    batch = KatroVectorEnv(n, **options)
    singles = [KatroVectorEnv(1, **options) for _ in range(n)]
    rng = np.random.default_rng(3)
    batch.reset(seed=5)
    for i, single in enumerate(singles):
        single.reset(seed=5 + i)
    for _ in range(60):
        actions = choose(rng, batch.action_masks())
        *columns, infos = batch.step(actions)
        over = columns[2] | columns[3]
        for i, single in enumerate(singles):
            *column, info = single.step(actions[i : i + 1])
            assert_same(tuple(column), tuple(rows[i : i + 1] for rows in columns))
            for name in ("action_mask", "to_move", "winner", "captured", "laps"):
                np.testing.assert_array_equal(info[name], infos[name][i : i + 1])
            assert ("final_obs" in info) == (mode == "SameStep" and over[i])
            if "final_obs" in info:
                np.testing.assert_array_equal(info["final_obs"][0], infos["final_obs"][i])
            if mode == "Disabled" and over[i]:
                single.reset()
        if mode == "Disabled" and over.any():
            batch.reset(options={"reset_mask": over})


# Statistics


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("max_plies", [12, 2000])
def test_record_episode_statistics_counts_every_ply_of_every_episode(mode, max_plies):
    # Gymnasium#1017 (one too many), Gymnasium#1624 (one too few from the second episode on).
    n = 6
    inner = KatroVectorEnv(n, autoreset_mode=mode, rules="katro-4x4", max_plies=max_plies)
    envs = RecordEpisodeStatistics(inner, buffer_length=10_000)
    envs.reset(seed=0)
    rng = np.random.default_rng(4)
    lengths, played, fresh = [], np.zeros(n, int), np.zeros(n, bool)
    for _ in range(400):
        _, rewards, terminated, truncated, infos = envs.step(choose(rng, inner.action_masks()))
        played[~fresh] += 1
        over = terminated | truncated
        if over.any():
            np.testing.assert_array_equal(infos["_episode"], over)
            np.testing.assert_array_equal(infos["episode"]["l"][over], played[over])
            np.testing.assert_array_equal(infos["episode"]["r"][over], rewards[over])
            lengths += played[over].tolist()
            played[over] = 0
        fresh = over if mode == "NextStep" else np.zeros(n, bool)
    assert list(envs.length_queue) == lengths
    assert len(lengths) > 50
    assert max(lengths) <= max_plies


def test_the_rows_of_a_next_step_reset_are_no_plies():
    # rl_games#362: PPO was trained on them.
    envs = KatroVectorEnv(8, rules="katro-4x4")
    envs.reset()
    rng, over, resets = np.random.default_rng(5), np.zeros(8, bool), 0
    for result in steps(envs, rng, 200):
        _, rewards, terminated, truncated, infos = result
        assert (infos["laps"][over] == 0).all()
        assert (infos["laps"][~over] > 0).all()
        assert not rewards[over].any()
        assert not (terminated | truncated)[over].any()
        resets += over.sum()
        over = terminated | truncated
    assert resets > 20


def test_infos_can_be_taken_apart():
    envs = DictInfoToList(KatroVectorEnv(3, autoreset_mode="SameStep", max_plies=2))
    envs.reset()
    envs.step(np.array([0, 1, 2]))
    *_, infos = envs.step(np.array([0, 1, 2]))
    assert len(infos) == 3
    assert all(info["final_info"]["laps"] > 0 for info in infos)


# Ends


def test_next_step_ignores_the_action_of_an_ended_game():
    envs = KatroVectorEnv(3, max_plies=1)
    envs.reset()
    first = envs.step(np.array([0, 1, 2]))
    assert first[3].all()
    for actions in ([-1, 99, 2**63 - 1], [-(2**63), 6, 0]):
        _, rewards, terminated, truncated, infos = envs.step(np.array(actions))
        assert not (terminated | truncated).any()
        assert not rewards.any()
        assert not infos["laps"].any()
        assert envs.boards() == [Board()] * 3
        envs.step(np.array([0, 1, 2]))


def test_with_autoreset_disabled_an_ended_game_needs_a_reset():
    envs = KatroVectorEnv(3, autoreset_mode="Disabled", rules="katro-4x4", max_plies=2)
    envs.reset()
    last = Board.from_notation("0,0,0,0/0,3,0,0/0,1,1,0/0,0,0,0 S")
    envs.set_boards([Board("katro-4x4"), last, Board("katro-4x4")])
    _, rewards, terminated, *_ = envs.step(np.array([1, 2, 1]))
    assert rewards.tolist() == [0, 1, 0]
    assert terminated.tolist() == [False, True, False]
    before = snapshot(envs)
    with pytest.raises(ResetNeeded, match="game 1 is over"):
        envs.step(np.array([1, 1, 1]))
    assert snapshot(envs) == before
    assert envs.boards()[1] == last.play(2)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    *_, truncated, _ = envs.step(np.array([1, 1, 1]))
    assert truncated.tolist() == [True, False, True]


@pytest.mark.parametrize("mode", MODES)
def test_step_needs_a_reset_first(mode):
    envs = KatroVectorEnv(2, autoreset_mode=mode)
    with pytest.raises(ResetNeeded, match="reset"):
        envs.step(np.array([0, 0]))
    with pytest.raises(ResetNeeded, match="reset"):
        pickle.loads(pickle.dumps(envs)).step(np.array([0, 0]))
    envs.set_boards([Board(), Board()])
    envs.step(np.array([0, 0]))


# Making


@pytest.mark.parametrize("mode", [*AutoresetMode, *MODES])
def test_make_vec_accepts_the_mode_as_name_and_as_enum(mode):
    # Gymnasium#625: the vector entry point was not used.
    envs = gym.make_vec(ID, num_envs=3, rules="katro-4x4", autoreset_mode=mode)
    assert isinstance(envs.unwrapped, KatroVectorEnv)
    assert envs.num_envs == 3
    assert envs.unwrapped.autoreset_mode is AutoresetMode(mode)
    envs.reset(seed=0)
    envs.step(np.array([0, 1, 2]))


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, "Disabled"])
def test_make_vec_of_the_spec_makes_the_same(mode):
    # Gymnasium#967: the spec could not be set.
    envs = gym.make_vec(ID, num_envs=2, rules="katro-4x4", max_plies=3, autoreset_mode=mode)
    again = gym.make_vec(envs.spec)
    assert again.spec == envs.spec
    assert again.num_envs == 2
    assert again.unwrapped.autoreset_mode is envs.unwrapped.autoreset_mode
    assert again.observation_space == envs.observation_space
    envs.unwrapped.spec = None
    assert envs.unwrapped.spec is None


def test_sync_vectorization_can_still_be_asked_for():
    envs = gym.make_vec(ID, num_envs=2, vectorization_mode="sync", rules="katro-4x4")
    native = gym.make_vec(ID, num_envs=2, rules="katro-4x4")
    assert isinstance(envs.unwrapped, SyncVectorEnv)
    assert_same(native.reset(seed=0), envs.reset(seed=0))
    assert_same(native.step(np.array([1, 2])), envs.step(np.array([1, 2])))


@pytest.mark.parametrize("mode", ["next_step", "nextstep", "", "Never"])
def test_an_unknown_mode_is_refused(mode):
    with pytest.raises(ValueError, match="'NextStep' or 'SameStep' or 'Disabled'"):
        KatroVectorEnv(2, autoreset_mode=mode)


@pytest.mark.parametrize(
    ("n", "error"),
    [
        *((n, ValueError) for n in (0, -3, -(2**63), np.int64(0))),
        *((n, MemoryError) for n in (2**40, 2**62, 2**63 - 1, 2**64, 10**30)),
        *((n, TypeError) for n in (1.5, 2.0, "x", "2", None, [2], np.ones(2, int))),
    ],
    ids=repr,
)
def test_an_impossible_number_of_games_is_refused(n, error):
    with pytest.raises(error) as caught:
        KatroVectorEnv(n)
    text = str(n) if isinstance(n, np.integer) else repr(n)
    assert text[:20] in str(caught.value)


def test_the_number_of_games_may_be_of_numpy():
    envs = KatroVectorEnv(np.int32(4))
    assert type(envs.num_envs) is int
    assert envs.num_envs == 4


# Resetting


def test_a_reset_mask_leaves_the_options_unchanged_and_can_be_used_again():
    # Gymnasium#1696: the mask was popped from the options of the caller.
    envs = KatroVectorEnv(3, autoreset_mode="Disabled")
    envs.reset()
    envs.step(np.array([0, 1, 2]))
    mask = np.array([True, False, True])
    options = {"reset_mask": mask}
    for _ in range(2):
        envs.reset(options=options)
        assert list(options) == ["reset_mask"]
        assert options["reset_mask"] is mask
        assert mask.tolist() == [True, False, True]
        assert envs.boards() == [Board(), Board().play(1), Board()]


def test_a_partial_reset_keeps_the_statistics_of_the_other_games():
    inner = KatroVectorEnv(2, autoreset_mode="Disabled", max_plies=5)
    envs = RecordEpisodeStatistics(inner)
    envs.reset()
    for _ in range(2):
        envs.step(inner.action_masks().argmax(axis=1))
    envs.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(3):
        *_, truncated, infos = envs.step(inner.action_masks().argmax(axis=1))
    assert truncated.tolist() == [False, True]
    assert infos["episode"]["l"].tolist() == [0, 5]


@pytest.mark.parametrize(
    "mask",
    [
        None,
        [True, False, True],
        (True, False, True),
        True,
        np.array([1, 0, 1]),
        np.array([1, 0, 1], np.int8),
        np.array([1.0, 0, 1]),
        np.array([True, False, True], object),
        np.array([True, False]),
        np.array([True, False, True, True]),
        np.array([[True, False, True]]),
        np.array([[True], [False], [True]]),
        np.array(True),
        np.array([False, False, False]),
        np.array([], bool),
    ],
    ids=repr,
)
def test_a_bad_reset_mask_is_refused_as_by_sync_vector_env(mask):
    native, sync = both(3, "Disabled")
    native.reset()
    sync.reset()
    native.step(np.array([0, 1, 2]))
    before = snapshot(native)
    with pytest.raises((TypeError, ValueError)) as expected:
        sync.reset(options={"reset_mask": mask})
    with pytest.raises((TypeError, ValueError), match="reset_mask") as error:
        native.reset(options={"reset_mask": mask})
    assert type(error.value) is type(expected.value)
    assert snapshot(native) == before


def test_a_reset_mask_may_be_a_view():
    envs = KatroVectorEnv(3, autoreset_mode="Disabled")
    envs.reset()
    envs.step(np.array([0, 1, 2]))
    mask = np.array([True, False, False, False, True, False])[::2]
    mask.flags.writeable = False
    envs.reset(options={"reset_mask": mask})
    assert envs.boards() == [Board(), Board().play(1), Board()]


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        # Gymnasium#1356: the option was once called `mask`, and did nothing.
        ({"mask": np.array([True, False])}, ValueError, "reset_mask"),
        ({"reset_mask": np.array([True, False]), "seat": 0}, ValueError, "seat"),
        ({"board": Board("katro-4x4")}, ValueError, "rules"),
        ({"board": Board.from_grid([[0] * 6] * 5 + [[2] * 6])}, ValueError, "over"),
        ({"board": Board.from_grid([[3] * 6] * 6)}, ValueError, "108"),
        ({"board": [Board(), Board()]}, TypeError, "board"),
        ({"board": "katro"}, TypeError, "board"),
    ],
)
def test_a_refused_reset_leaves_the_games_as_they_were(options, error, part):
    envs = KatroVectorEnv(2)
    envs.reset()
    envs.step(np.array([0, 1]))
    before = snapshot(envs)
    with pytest.raises(error, match=part):
        envs.reset(options=options)
    assert snapshot(envs) == before


@pytest.mark.parametrize("seed", [None, 0, 5, np.int64(3), [1, None, 2], (1, 2, 3), np.arange(3)])
def test_seeds_of_every_kind_are_accepted(seed):
    # Gymnasium#427, Gymnasium#1573: which kinds of seeds a vector environment takes.
    envs = KatroVectorEnv(3)
    observations, _ = envs.reset(seed=seed)
    np.testing.assert_array_equal(observations, np.full((3, 6, 6), 2))


@pytest.mark.parametrize(
    ("seed", "error", "parts"),
    [
        ([1], ValueError, "13"),
        ([1, 2, 3, 4], ValueError, "34"),
        ([], ValueError, "03"),
        (-1, ValueError, ["-1"]),
        ([0, -7, 1], ValueError, ["-7"]),
        (1.5, TypeError, ["1.5"]),
        ([0, 1.5, 1], TypeError, ["1.5"]),
        (np.float64(2), TypeError, ["2.0"]),
        (["a", 1, 2], TypeError, ["'a'"]),
    ],
)
def test_a_bad_seed_is_refused_and_the_games_go_on_unchanged(seed, error, parts):
    envs = KatroVectorEnv(3)
    envs.reset()
    envs.step(np.array([0, 1, 2]))
    before = snapshot(envs)
    with pytest.raises(error) as caught:
        envs.reset(seed=seed)
    assert all(part in str(caught.value) for part in parts)
    assert snapshot(envs) == before


# Boards


def test_boards_can_be_set_and_read(rules):
    boards = random_boards(rules, 100, seed=6)
    envs = KatroVectorEnv(100, rules=rules)
    observations, infos = envs.set_boards(boards)
    assert envs.boards() == boards
    np.testing.assert_array_equal(observations, [board.observation() for board in boards])
    np.testing.assert_array_equal(infos["action_mask"], [board.action_mask for board in boards])
    assert infos["to_move"].tolist() == [board.to_move for board in boards]
    assert (infos["winner"] == -1).all()
    actions = [board.legal_actions[-1] for board in boards]
    envs.step(actions)
    assert envs.boards() == [
        board.play(action) for board, action in zip(boards, actions, strict=True)
    ]


def test_setting_boards_starts_the_games():
    envs = KatroVectorEnv(2, autoreset_mode="Disabled", max_plies=1)
    for _ in range(2):
        envs.set_boards((Board(), Board().play(2)))
        *_, truncated, infos = envs.step(np.array([0, 0]))
        assert truncated.all()
        assert infos["to_move"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("boards", "error", "parts"),
    [
        ([Board()], ValueError, ["2", "1"]),
        ([Board()] * 3, ValueError, ["2", "3"]),
        ([], ValueError, ["2", "0"]),
        ([Board(), Board("katro-4x4")], ValueError, ["board 1", "rules"]),
        ([Board.from_grid([[0] * 6] * 5 + [[2] * 6]), Board()], ValueError, ["board 0", "over"]),
        ([Board(), Board.from_grid([[3] * 6] * 6)], ValueError, ["board 1", "108"]),
        ([Board(), Board().notation], TypeError, ["board 1"]),
        ([None, Board()], TypeError, ["board 0", "None"]),
    ],
)
def test_refused_boards_leave_the_games_as_they_were(boards, error, parts):
    envs = KatroVectorEnv(2)
    envs.reset()
    envs.step(np.array([0, 1]))
    before = snapshot(envs)
    with pytest.raises(error) as caught:
        envs.set_boards(boards)
    assert all(part in str(caught.value) for part in parts)
    assert snapshot(envs) == before


def test_afterstates_are_what_play_leads_to(rules):
    boards = random_boards(rules, 100, seed=7)
    envs = KatroVectorEnv(100, rules=rules)
    envs.set_boards(boards)
    grids, masks = envs.afterstates()
    assert grids.dtype == np.uint8
    assert grids.shape == (100, rules.num_actions, 2 * rules.rows, rules.columns)
    assert masks.dtype == np.bool_
    np.testing.assert_array_equal(masks, envs.action_masks())
    for i, board in enumerate(boards):
        assert np.flatnonzero(masks[i]).tolist() == board.legal_actions
        for action in range(rules.num_actions):
            if action not in board.legal_actions:
                assert not grids[i, action].any()
                continue
            after = board.play(action)
            np.testing.assert_array_equal(grids[i, action], after.observation())
            won = not grids[i, action, rules.rows :].any()
            assert won == (after.winner == board.to_move)
    assert envs.boards() == boards


def test_a_game_that_is_over_has_no_afterstates():
    envs = KatroVectorEnv(2, max_plies=1)
    envs.reset()
    envs.step(np.array([0, 1]))
    grids, masks = envs.afterstates()
    assert not grids.any()
    assert not masks.any()
    assert envs.action_masks().all()
    assert envs.boards() == [Board().play(0), Board().play(1)]


# Actions


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize("action", [-1, 6, 63, 64, 70, 2**63 - 1, -(2**63)])
def test_one_action_outside_the_space_refuses_the_batch_and_nothing_moves(mode, illegal, action):
    envs = KatroVectorEnv(100, autoreset_mode=mode, illegal=illegal)
    envs.reset()
    before = snapshot(envs)
    actions = np.zeros(100, np.int64)
    actions[77] = action
    with pytest.raises(
        IllegalMoveError, match=f"game 77: illegal action {action}: .*0, 1, 2, 3, 4, 5"
    ):
        envs.step(actions)
    assert snapshot(envs) == before


def test_one_empty_hole_refuses_the_batch_and_nothing_moves():
    envs = KatroVectorEnv(3, rules="katro-4x4")
    board = Board.from_notation("2,2,2,2/2,2,2,2/2,2,2,2/0,4,2,2 S")
    envs.set_boards([Board("katro-4x4"), Board("katro-4x4"), board])
    with pytest.raises(
        IllegalMoveError, match=r"game 2: .* 0: legal are 1, 2, 3 in .*mask"
    ) as error:
        envs.step(np.array([1, 1, 0]))
    assert board.notation in str(error.value)
    assert envs.boards() == [Board("katro-4x4"), Board("katro-4x4"), board]


def test_an_unsigned_action_is_named_as_it_was_given():
    envs = KatroVectorEnv(2)
    envs.reset()
    with pytest.raises(IllegalMoveError, match="game 1: illegal action 18446744073709551615"):
        envs.step(np.array([0, 2**64 - 1], np.uint64))


@pytest.mark.parametrize(
    "actions",
    [
        np.array([0, 1, 2], np.int32),
        *(
            np.array([0, 1, 2], f"{order}{kind}{size}")
            for order in "<>"
            for kind in "iu"
            for size in (1, 2, 4, 8)
        ),
        np.array([0, 9, 1, 9, 2, 9])[::2],
        np.array([2, 1, 0])[::-1],
        np.asfortranarray([[0, 5], [1, 5], [2, 5]])[:, 0],
        np.array([[0, 5], [1, 5], [2, 5]])[:, 0],
        np.frombuffer(np.array([0, 1, 2], np.int64).tobytes(), np.int64),
        np.frombuffer(b"\0" + np.array([0, 1, 2], np.int64).tobytes(), np.int64, offset=1),
        [0, 1, 2],
        (0, 1, 2),
        [np.int8(0), 1, np.uint32(2)],
        np.arange(3).view(np.recarray),
    ],
    ids=repr,
)
def test_every_array_of_integers_is_accepted(actions):
    envs = KatroVectorEnv(3)
    envs.reset()
    envs.step(actions)
    assert envs.boards() == [Board().play(action) for action in range(3)]


def test_step_leaves_the_actions_of_the_caller_unchanged():
    envs = KatroVectorEnv(3)
    envs.reset()
    actions = np.array([0, 1, 2])
    envs.step(actions)
    assert actions.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        *(
            (np.array([0, 1, 2], dtype), TypeError)
            for dtype in (float, np.float32, bool, object, complex)
        ),
        (np.array([0, np.nan, 2]), TypeError),
        (np.array(["0", "1", "2"]), TypeError),
        (["0", "1", "2"], TypeError),
        ([0.0, 1.0, 2.0], TypeError),
        ([None, 1, 2], TypeError),
        ([0, 1, 10**30], TypeError),
        (None, TypeError),
        ({0: 0}, TypeError),
        ("012", TypeError),
        (np.array([0, 1, 2], "datetime64[s]"), TypeError),
        (np.zeros((3, 1), int), ValueError),
        (np.zeros((1, 3), int), ValueError),
        (np.zeros((3, 3), int), ValueError),
        (np.zeros(4, int), ValueError),
        (np.zeros(2, int), ValueError),
        (np.zeros(0, int), ValueError),
        (np.array(0), ValueError),
        (0, ValueError),
        ([[0], [1], [2]], ValueError),
    ],
    ids=repr,
)
def test_what_are_no_actions_is_refused_and_nothing_moves(actions, error):
    envs = KatroVectorEnv(3)
    envs.reset()
    with pytest.raises(error, match="actions must"):
        envs.step(actions)
    assert envs.boards() == [Board()] * 3


# Data


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("observation", ["grid", "dict"])
def test_what_was_returned_never_changes_later_and_shares_no_memory(mode, observation):
    # Gymnasium#1132, PufferLib#161: buffers that were used again, seen a step late.
    envs = KatroVectorEnv(
        3, rules="katro-4x4", autoreset_mode=mode, observation=observation, max_plies=9
    )
    rng = np.random.default_rng(8)
    held, last = [], arrays(envs.reset())
    for _ in range(500):
        own = arrays(envs.step(choose(rng, envs.action_masks())))
        assert not any(np.shares_memory(a, b) for a in own for b in last if a.dtype != object)
        assert not any(np.shares_memory(a, b) for i, a in enumerate(own) for b in own[:i])
        held += [(array, copy.deepcopy(array)) for array in own]
        last = own
    for array, then in held:
        assert_same(array, then)


def test_rows_of_a_batch_differ_and_are_contiguous_and_writable():
    # EnvPool#324: with NumPy 2 every row of a batch was the same.
    envs = KatroVectorEnv(6)
    envs.reset()
    result = envs.step(np.arange(6))
    assert len({row.tobytes() for row in result[0]}) == 6
    for array in arrays(result):
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned
        array[...] = 1
    assert envs.boards() == [Board().play(action) for action in range(6)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "remake",
    [
        copy.deepcopy,
        *(
            lambda envs, protocol=protocol: pickle.loads(pickle.dumps(envs, protocol))
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_a_copy_in_the_middle_of_games_continues_identically(mode, remake):
    # PettingZoo#1307, PettingZoo#641: copies that lost the state of the game.
    options = {"rules": "katro-4x4", "illegal": "lose", "observation": "dict", "max_plies": 17}
    envs = KatroVectorEnv(70, autoreset_mode=mode, **options)
    envs.reset(seed=9)
    rng = np.random.default_rng(9)
    for _ in range(11 if mode == "Disabled" else 40):
        result = envs.step(choose(rng, envs.action_masks()))
        if mode == "Disabled" and (over := result[2] | result[3]).any():
            envs.reset(options={"reset_mask": over})
    other = remake(envs)
    assert other.boards() == envs.boards()
    assert other.metadata == envs.metadata
    boards = envs.boards()
    n = 1 if mode == "Disabled" else 60
    ahead = steps(other, np.random.default_rng(10), n)
    assert envs.boards() == boards
    assert_same(tuple(steps(envs, np.random.default_rng(10), n)), tuple(ahead))


def test_an_ended_game_is_ended_in_the_copy():
    envs = KatroVectorEnv(2, autoreset_mode="Disabled", max_plies=1)
    envs.reset()
    envs.step(np.array([0, 0]))
    with pytest.raises(ResetNeeded):
        copy.deepcopy(envs).step(np.array([0, 0]))


def test_a_damaged_pickle_is_refused():
    envs = KatroVectorEnv(2)
    envs.reset()
    remake, arguments, (version, started, games) = envs._batch.__reduce__()
    for state in [
        (version + 1, started, games),
        (version, started, games[:-1]),
        (version, started, games + games),
        (version, started, b""),
        (version, started, b"\xff" * len(games)),
        (version, started, bytes(len(games))),
    ]:
        with pytest.raises(ValueError, match="pickle"):
            remake(*arguments).__setstate__(state)


def test_environments_step_in_threads():
    def play(results, i):
        envs = KatroVectorEnv(300, rules="katro-4x4", autoreset_mode="SameStep")
        envs.reset(seed=i)
        results[i] = steps(envs, np.random.default_rng(11), 100)[-1]

    results = {}
    threads = [threading.Thread(target=play, args=(results, i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    play(results, 4)
    for i in range(4):
        assert_same(results[i], results[4])


def test_results_do_not_depend_on_other_environments():
    envs, other = KatroVectorEnv(5, rules="katro-4x4"), KatroVectorEnv(5, rules="katro-4x4")
    envs.reset(seed=1)
    alone = steps(envs, np.random.default_rng(12), 50)
    envs.reset(seed=1)
    rng, again = np.random.default_rng(12), []
    for i in range(50):
        other.reset(seed=i)
        again += steps(envs, rng, 1)
        other.step(np.zeros(5, int))
    assert_same(tuple(again), tuple(alone))


def test_close_may_be_called_twice():
    envs = KatroVectorEnv(2)
    envs.reset()
    envs.close()
    assert envs.closed
    envs.close()
