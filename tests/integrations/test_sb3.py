"""katro.sb3 and KatroEnv against stable-baselines3 and sb3-contrib."""

import copy
import pickle
import runpy
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import katro

with warnings.catch_warnings():
    # PyTorch and TensorBoard warn of what they import.
    warnings.simplefilter("ignore")
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.evaluation import evaluate_policy
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3.common.env_checker import check_env
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import (
        DummyVecEnv,
        SubprocVecEnv,
        VecCheckNan,
        VecMonitor,
    )

import katro.sb3
from katro.sb3 import KatroVecEnv

# The networks are small: a second thread costs more than it gives on a busy machine.
torch.set_num_threads(1)


def choose(rng, masks):
    return (rng.random(masks.shape) * masks).argmax(axis=-1)


def same(a, b):
    """Whether two observations or dicts of information are equal, also in their types."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def masks_of(envs):
    return np.stack(envs.env_method("action_masks"))


def test_the_spaces_are_those_of_one_game():
    envs = KatroVecEnv(3, rules="katro-4x6", observation="dict")
    single = katro.KatroEnv(rules="katro-4x6", observation="dict")
    assert envs.observation_space == single.observation_space
    assert envs.action_space == single.action_space
    assert envs.num_envs == 3
    assert envs.unwrapped is envs


@pytest.mark.parametrize("observation", ["grid", "dict"])
@pytest.mark.parametrize("rules", ["katro-4x4", "katro-fieldnotes"])
def test_it_is_dummy_vec_env_of_katro_env(rules, observation):
    options = {"rules": rules, "observation": observation, "max_plies": 30}
    native = KatroVecEnv(7, **options)
    dummy = DummyVecEnv([lambda: katro.KatroEnv(**options)] * 7)
    for envs in (native, dummy):
        envs.seed(3)
    assert same(native.reset(), dummy.reset())
    rng = np.random.default_rng(0)
    ends = cut_off = 0
    for _ in range(300):
        masks = masks_of(native)
        assert same(masks, masks_of(dummy))
        actions = choose(rng, masks)
        seen, rewards, dones, infos = native.step(actions)
        expected = dummy.step(actions)
        assert same(seen, expected[0])
        assert same(rewards, expected[1])
        assert same(dones, expected[2])
        for i, (info, other) in enumerate(zip(infos, expected[3], strict=True)):
            if not dones[i]:
                assert info == {}
                continue
            ends += 1
            cut_off += info["TimeLimit.truncated"]
            assert other.pop("action_mask").all()
            assert same(info, other)
            assert native.observation_space.contains(info["terminal_observation"])
            assert same(native.reset_infos[i], dummy.reset_infos[i])
    assert 0 < cut_off < ends


OPPONENTS = "opponent" in (katro.KatroVectorEnv.__init__.__kwdefaults__ or {})
needs_opponents = pytest.mark.skipif(not OPPONENTS, reason="this katro has no opponents yet")


@needs_opponents
@pytest.mark.parametrize("opponent", ["random", "greedy"])
def test_against_an_opponent_too_it_is_dummy_vec_env_of_katro_env(opponent):
    options = {"rules": "katro-4x4", "opponent": opponent, "max_plies": 40}
    native = KatroVecEnv(6, **options)
    dummy = DummyVecEnv([lambda: katro.KatroEnv(**options)] * 6)
    rng = np.random.default_rng(0)
    board = katro.Board("katro-4x4").play(1)
    mixed = [{"seat": 1}, {}, {"board": board}, {}, {"board": board, "seat": 0}, {"seat": 1}]
    results = set()
    for chosen in (None, {"seat": 0}, mixed):
        for envs in (native, dummy):
            envs.seed(11)
            envs.set_options(chosen)
        assert same(native.reset(), dummy.reset())
        assert all(map(same, native.reset_infos, dummy.reset_infos))
        for _ in range(100):
            masks = masks_of(native)
            assert same(masks, masks_of(dummy))
            actions = choose(rng, masks)
            seen, rewards, dones, infos = native.step(actions)
            expected = dummy.step(actions)
            assert all(map(same, (seen, rewards, dones), expected[:3]))
            results |= set(rewards[dones].tolist())
            for i in np.flatnonzero(dones):
                expected[3][i].pop("action_mask")
                assert same(infos[i], expected[3][i])
    assert results >= {1, -1}


def test_the_ends_agree_also_where_the_limit_and_a_win_meet():
    board = katro.Board.from_notation("0,1/1,1 S")
    envs = KatroVecEnv(2, rules=board.rules, max_plies=1)
    envs.set_options([{"board": board}, {}])
    envs.reset()
    _, rewards, dones, infos = envs.step([0, 0])
    assert rewards.tolist() == [1, 0]
    assert dones.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [False, True]
    assert [info["winner"] for info in infos] == [0, -1]


def test_the_types_are_those_that_sb3_wants():
    envs = KatroVecEnv(4)
    observations = envs.reset()
    assert observations.dtype == np.uint8
    assert type(observations) is np.ndarray
    observations, rewards, dones, infos = envs.step(np.zeros(4, np.int64))
    assert (rewards.dtype, dones.dtype, type(infos)) == (np.float32, np.bool_, list)
    masks = envs.env_method("action_masks")
    assert type(masks) is list
    assert len(masks) == 4
    assert all(mask.dtype == np.bool_ and mask.shape == (6,) for mask in masks)


def test_masks_are_found_and_come_from_one_array():
    envs = KatroVecEnv(5)
    envs.reset()
    envs.step([0, 1, 2, 3, 4])
    assert is_masking_supported(envs)
    expected = [board.action_mask.astype(bool).tolist() for board in envs.get_attr("board")]
    assert get_action_masks(envs).tolist() == envs.action_masks().tolist() == expected
    assert len({id(mask.base) for mask in envs.env_method("action_masks")}) == 1
    assert masks_of(envs)[[3]].tolist() == [envs.env_method("action_masks", indices=3)[0].tolist()]
    some = envs.env_method("action_masks", indices=[4, 0])
    assert [mask.tolist() for mask in some] == [expected[4], expected[0]]
    assert envs.get_attr("action_masks", 1)[0]().tolist() == expected[1]


def test_attributes_can_be_read_and_kept():
    envs = KatroVecEnv(3, render_mode="ansi")
    envs.reset()
    envs.step([0, 1, 2])
    assert envs.get_attr("board") == [katro.Board().play(i) for i in range(3)]
    assert envs.get_attr("render_mode") == ["ansi"] * 3
    assert envs.get_attr("action_space", [2])[0].n == 6
    assert envs.get_attr("observation_space")[0] == envs.observation_space
    assert envs.env_method("render", indices=[1]) == [str(katro.Board().play(1))]
    assert not envs.has_attr("level")
    envs.set_attr("level", 3)
    envs.set_attr("level", 5, indices=1)
    assert envs.get_attr("level") == [3, 5, 3]
    assert envs.get_attr("level", range(1, 3)) == [5, 3]
    with pytest.raises(AttributeError):
        envs.set_attr("board", katro.Board())
    with pytest.raises(AttributeError):
        envs.get_attr("colour")
    with pytest.raises(AttributeError):
        envs.env_method("colour")
    with pytest.raises(IndexError):
        envs.get_attr("board", 3)
    assert envs.env_is_wrapped(Monitor) == [False] * 3
    assert envs.env_is_wrapped(Monitor, indices=0) == [False]


def test_render_modes():
    envs = KatroVecEnv(3, render_mode="rgb_array")
    envs.reset()
    images = envs.get_images()
    assert len(images) == 3
    height, width, _ = images[0].shape
    assert envs.render().shape == (2 * height, 2 * width, 3)
    assert KatroVecEnv(2).get_images() == [None, None]


def test_options_start_games_from_boards_once():
    board = katro.Board().play(2)
    envs = KatroVecEnv(3)
    envs.set_options({"board": board})
    assert envs.reset().tolist() == [board.observation().tolist()] * 3
    assert [info["to_move"] for info in envs.reset_infos] == [1] * 3
    envs.reset()
    assert envs.get_attr("board") == [katro.Board()] * 3
    boards = [katro.Board().play(1), katro.Board(), katro.Board().play(1)]
    envs.seed(5)
    envs.set_options([{"board": boards[0]}, {}, {"board": boards[2]}])
    seen = envs.reset()
    assert envs.get_attr("board") == boards
    assert seen.tolist() == [each.observation().tolist() for each in boards]
    assert [info["to_move"] for info in envs.reset_infos] == [1, 0, 1]
    assert all(info["action_mask"].dtype == np.int8 for info in envs.reset_infos)
    dummy = DummyVecEnv([katro.KatroEnv] * 3)
    dummy.set_options([{"board": boards[0]}, {}, {"board": boards[2]}])
    assert same(seen, dummy.reset())
    assert all(map(same, envs.reset_infos, dummy.reset_infos))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"board": katro.Board("katro-4x4")}, ValueError),
        ({"board": [[2] * 6] * 6}, TypeError),
        ({"mask": 1}, ValueError),
        ([{"board": katro.Board().play(1)}, {"board": 3}], TypeError),
        ([{"board": katro.Board()}, {"mask": 1}], ValueError),
        ([{"board": katro.Board().play(1)}], ValueError),
    ],
)
def test_wrong_options_are_refused_and_the_games_go_on(options, error):
    envs = KatroVecEnv(2)
    envs.reset()
    envs.step([1, 2])
    envs.set_options(options)
    with pytest.raises(error):
        envs.reset()
    assert envs.get_attr("board") == [katro.Board().play(1), katro.Board().play(2)]
    envs.reset()


def test_seeds_are_those_of_sb3():
    envs = KatroVecEnv(3)
    assert envs.seed(7) == [7, 8, 9]
    envs.reset()
    assert envs._seeds == [None] * 3
    assert len(set(envs.seed())) == 3
    envs.reset()


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((0,), {}, ValueError),
        ((-1,), {}, ValueError),
        ((1.5,), {}, TypeError),
        ((2,), {"observation": "box"}, ValueError),
        ((2,), {"rules": "chess"}, ValueError),
        ((2,), {"render_mode": "human"}, ValueError),
        ((2,), {"max_steps": 3}, TypeError),
        ((2,), {"autoreset_mode": "Disabled"}, TypeError),
        ((2,), {"copy": False}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(arguments, options, error):
    with pytest.raises(error):
        KatroVecEnv(*arguments, **options)


def test_wrong_actions_are_refused_before_any_game_moves():
    board = katro.Board.from_grid([[1] * 4] * 3 + [[0, 1, 1, 1]], 0, "katro-4x4")
    envs = KatroVecEnv(2, rules="katro-4x4")
    with pytest.raises(ResetNeeded):
        envs.step([0, 0])
    envs.set_options({"board": board})
    envs.reset()
    for actions, error, message in [
        ([1, 0], katro.IllegalMoveError, "game 1: illegal action 0.*action mask"),
        ([4, 1], katro.IllegalMoveError, "game 0: illegal action 4"),
        ([1, -1], katro.IllegalMoveError, "game 1: illegal action -1"),
        ([1], ValueError, "2"),
        (np.ones((2, 1), int), ValueError, "2"),
        ([1.0, 1.0], TypeError, "integer"),
    ]:
        with pytest.raises(error, match=message):
            envs.step(actions)
        assert envs.get_attr("board") == [board] * 2
    with pytest.raises(ValueError, match="step_async"):
        envs.step_wait()


def test_an_illegal_action_can_lose():
    board = katro.Board.from_grid([[1] * 4] * 3 + [[0, 1, 1, 1]], 0, "katro-4x4")
    envs = KatroVecEnv(2, rules="katro-4x4", illegal="lose")
    envs.set_options({"board": board})
    envs.reset()
    _, rewards, dones, infos = envs.step([0, 1])
    assert rewards.tolist() == [-1, 0]
    assert dones.tolist() == [True, False]
    assert infos[0]["winner"] == 1
    assert infos[0]["terminal_observation"].tolist() == board.observation().tolist()


def test_vec_monitor_counts_every_ply_of_every_game():
    envs = VecMonitor(KatroVecEnv(4, rules="katro-4x4", max_plies=25))
    rng, lengths, counted = np.random.default_rng(0), np.zeros(4, int), 0
    envs.reset()
    for _ in range(300):
        _, rewards, dones, infos = envs.step(choose(rng, get_action_masks(envs)))
        lengths += 1
        for i in np.flatnonzero(dones):
            assert infos[i]["episode"]["l"] == lengths[i]
            assert infos[i]["episode"]["r"] == rewards[i]
            lengths[i], counted = 0, counted + 1
    assert counted > 40
    assert envs.action_masks().shape == (4, 4)


def test_nothing_that_was_returned_changes_later():
    envs = KatroVecEnv(8, rules="katro-4x4", max_plies=9, observation="dict")
    rng, kept = np.random.default_rng(0), []
    envs.reset()
    for _ in range(200):
        masks = envs.action_masks()
        seen, rewards, dones, infos = envs.step(choose(rng, masks))
        arrays = [masks, rewards, dones, *seen.values()]
        for info in (*infos, *envs.reset_infos):
            arrays += [value for value in info.values() if isinstance(value, np.ndarray)]
            arrays += info.get("terminal_observation", {}).values()
        kept += [(array, array.copy()) for array in arrays]
    assert all(np.array_equal(*pair) for pair in kept)
    assert len({id(info) for info in infos}) == 8


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_in_mid_game_keeps_the_games(again):
    envs = KatroVecEnv(5, rules="katro-fieldnotes", max_plies=60)
    envs.set_attr("level", 3)
    envs.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        envs.step(choose(rng, envs.action_masks()))
    other = again(envs)
    assert other.get_attr("board") == envs.get_attr("board")
    assert other.get_attr("level") == [3] * 5
    for _ in range(40):
        actions = choose(rng, envs.action_masks())
        first, second = envs.step(actions), other.step(actions)
        assert all(map(same, first[:3], second[:3]))
        assert all(map(same, first[3], second[3]))
        assert other.get_attr("board") == envs.get_attr("board")


@pytest.mark.parametrize("observation", ["grid", "dict"])
def test_check_env(observation):
    # Of a board SB3 remarks only that it is neither a picture nor flat; its policies flatten it.
    for seed in range(5):
        env = katro.KatroEnv(observation=observation, illegal="lose")
        env.action_space.seed(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env)
        assert all("unconventional shape" in str(warning.message) for warning in caught)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: env,
        Monitor,
        gym.wrappers.FlattenObservation,
        lambda env: Monitor(gym.wrappers.TimeLimit(env, 50)),
    ],
)
def test_the_masks_of_katro_env_are_found_through_wrappers(wrap):
    env = wrap(gym.make("katro/Katro-v0"))
    env.reset()
    assert is_masking_supported(env)
    assert get_action_masks(env).tolist() == [True] * 6
    envs = DummyVecEnv([lambda: wrap(gym.make("katro/Katro-v0"))] * 2)
    envs.reset()
    assert is_masking_supported(envs)
    assert get_action_masks(envs).shape == (2, 6)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_masks_of_katro_env_are_found_in_other_processes(method):
    envs = SubprocVecEnv([katro.KatroEnv] * 2, start_method=method)
    try:
        envs.reset()
        envs.step(np.array([0, 5]))
        assert is_masking_supported(envs)
        expected = [katro.Board().play(i).action_mask.astype(bool).tolist() for i in (0, 5)]
        assert get_action_masks(envs).tolist() == expected
    finally:
        envs.close()


@pytest.mark.parametrize(
    ("policy", "observation"), [("MlpPolicy", "grid"), ("MultiInputPolicy", "dict")]
)
def test_maskable_ppo_trains_saves_and_evaluates(policy, observation, tmp_path):
    options = {"rules": "katro-4x4", "observation": observation, "max_plies": 200}
    envs = VecMonitor(VecCheckNan(KatroVecEnv(16, **options), raise_exception=True))
    model = MaskablePPO(policy, envs, n_steps=32, batch_size=128, seed=0, device="cpu")
    model.learn(2 * 16 * 32)
    assert model.num_timesteps == 1024
    assert len(model.ep_info_buffer) > 0
    model.save(tmp_path / "model.zip")
    model = MaskablePPO.load(tmp_path / "model.zip", env=envs, device="cpu")
    # Every action was legal, or the games would have refused it.
    returns, lengths = evaluate_policy(
        model, envs, n_eval_episodes=16, deterministic=False, return_episode_rewards=True
    )
    assert len(returns) == 16
    assert set(returns) <= {0, 1}
    single = Monitor(katro.KatroEnv(**options))
    returns, lengths = evaluate_policy(
        model, single, n_eval_episodes=2, deterministic=False, return_episode_rewards=True
    )
    assert max(lengths) <= 200


def test_predictions_keep_to_the_mask():
    envs = KatroVecEnv(8, rules="katro-4x4")
    model = MaskablePPO("MlpPolicy", envs, n_steps=8, batch_size=64, seed=0, device="cpu")
    seen = envs.reset()
    for _ in range(150):
        masks = envs.action_masks()
        actions, _ = model.predict(seen, action_masks=masks, deterministic=False)
        assert masks[np.arange(8), actions].all()
        seen, *_ = envs.step(actions)


@needs_opponents
def test_the_example_runs(monkeypatch, tmp_path, capsys):
    example = __file__.rpartition("tests")[0] + "examples/sb3_maskable_ppo.py"
    arguments = [
        "--opponents",
        "random",
        "greedy",
        "--steps",
        "2000",
        "--games",
        "20",
        "--envs",
        "8",
        "--out",
        str(tmp_path),
    ]
    monkeypatch.setattr(sys, "argv", [example, *arguments])
    runpy.run_path(example, run_name="__main__")
    assert "random" in capsys.readouterr().out


def test_it_needs_stable_baselines3_only(check_alone, check_missing):
    check_alone("sb3", "stable_baselines3", "pettingzoo", "pyspiel", "sb3_contrib")
    check_missing("sb3", "stable_baselines3", "sb3")


def test_the_docstrings(check_doctests):
    check_doctests(katro.sb3)


def test_the_page(check_page, capsys):
    check_page("sb3.md", "stable-baselines3", "sb3-contrib", "torch")
