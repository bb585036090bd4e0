"""`KatroEnv`: Gymnasium's contract, and what has hurt users of other environments."""

import copy
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from games import NAMES, choose, random_boards, read_lines
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics

import katro
from katro import Board, IllegalMoveError, KatroEnv

ID = "katro/Katro-v0"
INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
OPTIONS = [
    {},
    *({"rules": name} for name in NAMES),
    # With one row a side the samples of check_env, made without the mask, are soon illegal.
    {"rules": katro.Rules(1, 6), "illegal": "lose"},
    {"rules": katro.Rules(3, 8, 5)},
    {"observation": "dict"},
    {"illegal": "lose"},
    {"max_plies": 5},
    {"max_plies": None},
    {"render_mode": "ansi"},
    {"render_mode": "rgb_array"},
    {"rules": "katro-4x4", "observation": "dict", "illegal": "lose", "max_plies": 9},
]
OVER = Board.from_notation("0,0,0,0/0,3,0,0/0,1,1,0/0,0,0,0 S").play(2)


class Index:
    """An integer of a foreign library, as a tensor without dimensions is."""

    def __index__(self):
        return 2


def same(first, second):
    """Whether two results are equal in values, types and keys."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return type(first) is type(second) and first == second


def arrays(result):
    """All arrays in a result."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, tuple):
        return [array for part in result for array in arrays(part)]
    return [result] if isinstance(result, np.ndarray) else []


def plies(env, rng, n, reset=True):
    """Random plies, with a reset after every game; the results in order."""
    results = [env.reset(seed=1)] if reset else []
    mask = env.get_wrapper_attr("action_masks")()
    for _ in range(n):
        result = env.step(int(choose(rng, mask)))
        results.append(result)
        if result[2] or result[3]:
            results.append(env.reset())
        mask = env.get_wrapper_attr("action_masks")()
    return results


def finish(env):
    """Plays a game of `env` to its end and returns the last result."""
    _, info = env.reset()
    rng = np.random.default_rng(1)
    while True:
        result = env.step(int(choose(rng, info["action_mask"])))
        info = result[-1]
        if result[2] or result[3]:
            return result


def run(code, **environment):
    """Runs Python code in a process of its own and returns what it prints."""
    variables = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env=variables | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Gymnasium's contract


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_check_env_passes(options):
    check_env(KatroEnv(**options), skip_render_check=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_check_env_passes_through_make_with_every_render_mode(options):
    check_env(gym.make(ID, **options).unwrapped)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_random_games_pass_the_passive_checker_and_stay_in_the_space(options):
    env = gym.make(ID, **options)
    for result in plies(env, np.random.default_rng(2), 300):
        assert result[0] in env.observation_space


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_step_returns_the_types_of_python(options):
    env = KatroEnv(**options)
    ended = 0
    for result in plies(env, np.random.default_rng(3), 300):
        info = result[-1]
        assert list(info) == ["action_mask", "to_move", "winner", "captured", "laps"]
        assert all(type(info[key]) is int for key in list(info)[1:])
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].shape == (env.action_space.n,)
        if len(result) == 2:
            assert (info["winner"], info["captured"], info["laps"]) == (-1, 0, 0)
            continue
        _, reward, terminated, truncated, _ = result
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        assert not (terminated and truncated)
        assert reward == (1 if terminated else 0)
        assert (info["winner"] >= 0) == terminated
        assert info["laps"] >= 1
        ended += terminated or truncated
    assert ended or options.get("rules") not in NAMES[1:]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_observation_mask_and_info_describe_the_board(options):
    # PettingZoo#1302: the mask of another step was stored with the observation.
    env = KatroEnv(**options)
    _, info = env.reset(seed=4)
    rng = np.random.default_rng(4)
    for _ in range(200):
        before = env.board
        action = int(choose(rng, info["action_mask"]))
        observation, _, terminated, truncated, info = env.step(action)
        board = env.board
        assert board == before.play(action)
        assert info["to_move"] == board.to_move
        assert info["winner"] == (-1 if board.winner is None else before.to_move)
        assert info["laps"] == len(before.trace(action))
        assert info["captured"] == sum(lap.taken for lap in before.trace(action))
        mask = np.ones_like(info["action_mask"]) if truncated else board.action_mask
        np.testing.assert_array_equal(info["action_mask"], mask)
        if options.get("observation") == "dict":
            np.testing.assert_array_equal(observation["action_mask"], mask)
            observation = observation["observation"]
        np.testing.assert_array_equal(observation, board.observation())
        if terminated or truncated:
            observation, info = env.reset()


def test_the_spaces_follow_the_rules():
    env = KatroEnv(rules=katro.Rules(2, 5, 3))
    assert env.action_space == gym.spaces.Discrete(5)
    assert env.observation_space == gym.spaces.Box(0, 60, (4, 5), np.uint8)
    env = KatroEnv(rules=katro.Rules(2, 5, 3), observation="dict")
    assert env.observation_space == gym.spaces.Dict(
        action_mask=gym.spaces.Box(0, 1, (5,), np.int8),
        observation=gym.spaces.Box(0, 60, (4, 5), np.uint8),
    )


@pytest.mark.parametrize("through_make", [False, True])
def test_the_masks_agree_and_can_be_sampled(through_make):
    # sb3-contrib#256, Gymnasium#836: masks that vanished behind wrappers.
    env = gym.make(ID) if through_make else KatroEnv()
    _, info = env.reset(seed=5)
    env.action_space.seed(5)
    for _ in range(300):
        masks = env.get_wrapper_attr("action_masks")()
        assert masks.dtype == np.bool_
        assert masks.shape == (6,)
        np.testing.assert_array_equal(masks, info["action_mask"])
        action = env.action_space.sample(info["action_mask"])
        assert masks[action]
        *_, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            _, info = env.reset()


def test_action_masks_is_a_bound_method_that_pickles():
    # sb3-contrib#49: a closure that returned the masks could not be pickled.
    env = KatroEnv()
    env.reset()
    masks = pickle.loads(pickle.dumps(env.action_masks))
    np.testing.assert_array_equal(masks(), env.action_masks())


def test_the_mask_is_all_ones_when_the_game_is_over():
    for env in (KatroEnv(rules="katro-4x4"), KatroEnv(max_plies=3)):
        info = finish(env)[-1]
        assert info["action_mask"].all()
        assert env.action_masks().all()


def test_record_episode_statistics_counts_every_ply_of_every_episode():
    env = RecordEpisodeStatistics(gym.make(ID, rules="katro-4x4", max_plies=20))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        _, info = env.reset(seed=seed)
        for ply in range(1, 21):
            _, reward, terminated, truncated, info = env.step(int(choose(rng, info["action_mask"])))
            if terminated or truncated:
                assert (info["episode"]["l"], info["episode"]["r"]) == (ply, reward)
                break
        else:
            pytest.fail("the game did not end")


def test_a_time_limit_of_gymnasium_truncates():
    env = gym.make(ID, max_episode_steps=7)
    _, info = env.reset()
    for ply in range(1, 8):
        *_, truncated, info = env.step(int(info["action_mask"].argmax()))
        assert truncated == (ply == 7)


# Making


def test_make_and_the_spec_round_trip():
    env = gym.make(ID, rules="katro-4x4", max_plies=7)
    again = gym.make(env.spec)
    from_json = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    for made in (again, from_json):
        assert made.spec == env.spec
        assert made.observation_space == env.observation_space
        assert plies(made, np.random.default_rng(0), 7)[-2][3] is True


def test_the_id_with_the_module_imports_katro():
    code = "import gymnasium as gym; print(gym.make('katro:katro/Katro-v0').unwrapped)"
    assert "KatroEnv" in run(code)


def test_every_render_mode_works_without_a_display_or_another_package():
    code = """
import sys
for name in ("pygame", "matplotlib", "PIL", "cv2", "moviepy"):
    sys.modules[name] = None
import gymnasium as gym, katro
for mode in katro.KatroEnv.metadata["render_modes"]:
    env = gym.make("katro/Katro-v0", render_mode=mode)
    env.reset()
    print(type(env.render()).__name__)
"""
    assert run(code).split() == ["str", "ndarray"]


def test_importing_katro_starts_no_thread_and_imports_gymnasium_and_numpy_only():
    code = """
import os, sys, threading
import gymnasium, numpy
known = set(sys.modules)
before = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
import katro
env = katro.KatroEnv()
env.reset()
env.step(0)
after = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
assert before == after, (before, after)
assert threading.active_count() == 1
new = {name.partition(".")[0] for name in set(sys.modules) - known}
print(*sorted(new - set(sys.stdlib_module_names)))
"""
    assert {"katro"} <= {*run(code).split()} <= {"katro", "gymnasium", "numpy"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_step():
    # rayon#708, polars#8032: a thread pool that is dead in the child.
    code = """
import os, signal
import numpy as np, katro
envs = katro.KatroVectorEnv(5000)
envs.reset()
envs.step(np.zeros(5000, int))
child = os.fork()
if child == 0:
    signal.alarm(10)
    envs.step(np.argmax(envs.action_masks(), axis=1))
    os._exit(17)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert run(code, **variables).split() == ["17"]


@pytest.mark.slow
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_spawned_workers_can_step(context):
    if sys.platform == "win32" and context == "forkserver":
        pytest.skip("no forkserver")
    envs = AsyncVectorEnv([lambda: gym.make(f"katro:{ID}")] * 2, context=context)
    try:
        envs.reset(seed=0)
        *_, infos = envs.step(np.array([0, 2]))
        assert infos["laps"].tolist() == [7, 7]
    finally:
        envs.close()


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"rules": "katro-9x9"}, ValueError, "katro-4x4"),
        ({"rules": 3}, TypeError, "rules"),
        ({"rules": None}, TypeError, "rules"),
        ({"observation": "Grid"}, ValueError, "'grid' or 'dict'"),
        ({"observation": None}, ValueError, "None"),
        ({"illegal": "ignore"}, ValueError, "'raise' or 'lose'"),
        ({"illegal": None}, TypeError, None),
        ({"max_plies": 0}, ValueError, "0"),
        ({"max_plies": -5}, ValueError, "-5"),
        ({"max_plies": 1.5}, TypeError, "max_plies"),
        ({"max_plies": "9"}, TypeError, "max_plies"),
        ({"render_mode": "human"}, ValueError, "'ansi' or 'rgb_array'"),
        ({"render_mode": "svg"}, ValueError, "svg"),
        ({"max_steps": 9}, TypeError, "max_steps"),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [KatroEnv, katro.KatroVectorEnv])
def test_impossible_arguments_are_refused(make, arguments, error, part):
    with pytest.raises(error, match=part):
        make(**arguments)


@pytest.mark.parametrize("limit", [2**31, 2**32, 2**40, 2**64, 10**30, np.int64(9)])
def test_any_ply_limit_of_at_least_1_is_accepted(limit):
    env = KatroEnv(max_plies=limit)
    env.reset()
    assert env.step(0)[2:4] == (False, False)


# Resetting


def test_reset_starts_from_the_start_or_from_a_board():
    env = KatroEnv(rules="katro-4x4")
    for board in random_boards(env.board.rules, 100, seed=6):
        observation, info = env.reset(options={"board": board})
        assert env.board == board
        np.testing.assert_array_equal(observation, board.observation())
        np.testing.assert_array_equal(info["action_mask"], board.action_mask)
        assert info["to_move"] == board.to_move
    for options in (None, {}):
        env.reset(options=options)
        assert env.board == Board("katro-4x4")


def test_reset_restarts_the_count_of_plies():
    env = KatroEnv(max_plies=4)
    for _ in range(3):
        _, info = env.reset()
        for ply in range(1, 5):
            *_, truncated, info = env.step(int(info["action_mask"].argmax()))
            assert truncated == (ply == 4)
        env.reset()
        env.step(0)


def test_reset_leaves_the_options_of_the_caller_unchanged():
    options = {"board": Board().play(0)}
    KatroEnv().reset(options=options)
    assert options == {"board": Board().play(0)}


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({"mask": 1}, ValueError, "mask"),
        ({"reset_mask": np.ones(1, bool)}, ValueError, "reset_mask"),
        ({"Board": Board("katro-4x4")}, ValueError, "Board"),
        ({"board": Board("katro-4x4"), "seat": 1}, ValueError, "seat"),
        ({"board": Board()}, ValueError, "rules"),
        ({"board": Board(katro.Rules(2, 4, 3))}, ValueError, "rules"),
        ({"board": OVER}, ValueError, "over"),
        ({"board": Board.from_grid(np.full((4, 4), 3))}, ValueError, "48"),
        ({"board": Board("katro-4x4").notation}, TypeError, "board"),
        ({"board": Board("katro-4x4").grid()}, TypeError, "board"),
    ],
)
def test_a_refused_reset_leaves_the_game_as_it_was(options, error, part):
    env = KatroEnv(rules="katro-4x4", max_plies=3)
    twin = KatroEnv(rules="katro-4x4", max_plies=3)
    for each in (env, twin):
        each.reset(seed=1)
        each.step(0)
    with pytest.raises(error, match=part):
        env.reset(options=options)
    assert env.board == twin.board
    for _ in range(2):
        action = int(twin.action_masks().argmax())
        assert same(env.step(action), twin.step(action))


@pytest.mark.parametrize("seed", [-1, 1.5, "1", np.int64(3), [1]], ids=repr)
def test_a_refused_seed_is_the_error_of_gymnasium_and_leaves_the_game_as_it_was(seed):
    env = KatroEnv()
    env.reset(seed=1)
    env.step(0)
    board = env.board
    with pytest.raises(gym.error.Error, match=r"[Ss]eed"):
        env.reset(seed=seed)
    assert env.board == board


def test_a_seed_determines_everything_at_any_time():
    # EnvPool#432: reset(seed=...) was ignored.
    env, fresh = KatroEnv(), KatroEnv()
    plies(env, np.random.default_rng(7), 33)
    assert same(env.reset(seed=8), fresh.reset(seed=8))
    assert env.np_random.random() == fresh.np_random.random()
    expected = plies(fresh, np.random.default_rng(9), 200, reset=False)
    assert same(tuple(plies(env, np.random.default_rng(9), 200, reset=False)), tuple(expected))
    assert env.np_random_seed == 8
    env.reset(seed=9)
    assert env.np_random.random() != fresh.np_random.random()


# The end


def test_step_needs_a_reset_first():
    env = KatroEnv()
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    with pytest.raises(ResetNeeded):
        pickle.loads(pickle.dumps(env)).step(0)
    with pytest.raises(ResetNeeded):
        gym.make(ID).step(0)
    env.reset()
    env.step(0)


@pytest.mark.parametrize(
    "options",
    [{"rules": "katro-4x4"}, {"rules": "katro-6x3", "max_plies": 3}, {"observation": "dict"}],
)
def test_after_the_end_the_final_board_stays_and_step_needs_a_reset(options):
    # LeRobot#4242, IsaacLab#6219: environments that reset themselves.
    env = KatroEnv(**options)
    observation, _, terminated, truncated, info = finish(env)
    board = env.board
    if "max_plies" not in options:
        assert board.is_over
        assert board.winner == info["winner"]
    if "observation" in options:
        observation = observation["observation"]
    np.testing.assert_array_equal(observation, board.observation())
    for action in (0, 1, -1, 99):
        with pytest.raises(ResetNeeded, match="over"):
            env.step(action)
        assert env.board == board
    assert terminated or truncated
    env.reset()
    assert env.board == Board(env.board.rules)
    env.step(0)


@pytest.mark.parametrize("name", ["6x6", "4x4", "4x6", "6x3"])
def test_the_ply_limit_is_exact_and_a_win_on_the_last_ply_is_a_win(name):
    # jumanji#275: a natural end that was also truncated.
    rules = f"katro-{name}" if name != "6x6" else "katro"
    for game in read_lines(f"games_{name}.jsonl")[:8]:
        n = game["plies"]
        for limit in (n - 1, n, n + 1):
            env = KatroEnv(rules=rules, max_plies=limit)
            env.reset()
            flags = [env.step(move)[1:4] for move in game["moves"][: min(limit, n)]]
            assert set(flags[:-1]) == {(0, False, False)}
            assert flags[-1] == ((0, False, True) if limit < n else (1, True, False))


def test_a_limit_of_one_ply():
    env = KatroEnv(max_plies=1)
    for _ in range(3):
        env.reset()
        assert env.step(0)[1:4] == (0, False, True)


# Actions


def test_an_illegal_action_can_lose_the_game():
    # Pgx and PettingZoo disagree on the reward of the other player; here the sum is zero.
    env = KatroEnv(rules="katro-4x4", illegal="lose")
    for board, winner in [
        (Board.from_notation("2,2,2,2/2,2,2,2/2,2,2,2/0,4,2,2 S"), 1),
        (Board.from_notation("2,2,4,0/2,2,2,2/2,2,2,2/2,2,2,2 N"), 0),
    ]:
        env.reset(options={"board": board})
        observation, reward, terminated, truncated, info = env.step(0)
        assert (reward, terminated, truncated) == (-1, True, False)
        assert type(reward) is float
        assert (info["winner"], info["captured"], info["laps"]) == (winner, 0, 0)
        assert info["to_move"] == board.to_move
        assert info["action_mask"].all()
        assert env.board == board
        np.testing.assert_array_equal(observation, board.observation())
        with pytest.raises(ResetNeeded):
            env.step(1)
        with pytest.raises(ResetNeeded):
            pickle.loads(pickle.dumps(env)).step(1)
        # PettingZoo#1176: a stale order of players after an illegal move.
        _, info = env.reset()
        assert info["to_move"] == 0
        assert env.board == Board("katro-4x4")


def test_an_illegal_action_on_the_last_allowed_ply_loses():
    env = KatroEnv(rules="katro-4x4", illegal="lose", max_plies=2)
    env.reset(options={"board": Board.from_notation("2,2,4,0/2,2,2,2/2,2,2,2/2,2,2,2 S")})
    assert env.step(0)[1:4] == (0, False, False)
    assert env.step(0)[1:4] == (-1, True, False)


@pytest.mark.parametrize(
    "action",
    [2, *(np.dtype(t).type(2) for t in INTEGERS), *(np.array(2, t) for t in INTEGERS), Index()],
    ids=repr,
)
def test_every_kind_of_integer_is_an_action(action):
    # gym-battleship#6: actions of NumPy were refused.
    env = KatroEnv()
    env.reset()
    env.step(action)
    assert env.board == Board().play(2)


@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize(
    "action",
    [
        -1,
        6,
        64,
        66,
        2**31,
        2**63 - 1,
        -(2**63),
        2**64 + 2,
        10**30,
        np.uint64(2**64 - 1),
        np.int8(-1),
    ],
    ids=repr,
)
def test_an_action_outside_the_space_is_refused_and_the_game_goes_on_unchanged(action, illegal):
    # open_spiel#533: some games crashed, some ignored it, some were damaged.
    env, twin = KatroEnv(illegal=illegal, max_plies=3), KatroEnv(illegal=illegal, max_plies=3)
    for each in (env, twin):
        each.reset(seed=1)
        each.step(1)
    with pytest.raises(IllegalMoveError, match="0, 1, 2, 3, 4, 5") as error:
        env.step(action)
    assert str(int(action)) in str(error.value)
    assert env.board.notation in str(error.value)
    assert env.board == twin.board
    for move in (0, 2):
        assert same(env.step(move), twin.step(move))


def test_an_empty_hole_is_refused_and_the_message_asks_for_the_mask():
    # sb3-contrib#166: illegal moves in evaluation, where the mask was forgotten.
    env = KatroEnv(rules="katro-4x4", max_plies=1)
    board = Board.from_notation("2,2,2,2/2,2,2,2/2,2,2,2/0,4,2,2 S")
    env.reset(options={"board": board})
    with pytest.raises(IllegalMoveError, match=r"illegal action 0: legal are 1, 2, 3 .*mask"):
        env.step(0)
    assert env.board == board
    assert env.step(1)[3] is True


@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize(
    "action",
    [
        1.5,
        1.0,
        float("nan"),
        None,
        "0",
        b"0",
        1j,
        [0],
        (0,),
        {},
        object,
        np.float64(0),
        np.float32(0),
        np.array(0.0),
        np.array([0]),
        np.array([0, 1]),
        np.array([[0]]),
        np.array("0"),
    ],
    ids=repr,
)
def test_what_is_no_integer_is_refused_and_the_game_goes_on_unchanged(action, illegal):
    env = KatroEnv(illegal=illegal)
    env.reset()
    with pytest.raises(TypeError, match="an action must be an integer, got") as error:
        env.step(action)
    assert repr(action)[:60] in str(error.value)
    assert env.board == Board()
    env.step(0)
    assert env.board == Board().play(0)


@pytest.mark.parametrize("rules", NAMES)
def test_with_illegal_lose_no_action_of_the_space_raises(rules):
    # ray#27987, sb3-contrib#145: checkers that sample without the mask.
    env = gym.make(ID, rules=rules, illegal="lose")
    env.action_space.seed(0)
    env.reset()
    lost = 0
    for _ in range(500):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        lost += reward == -1
        if reward == -1:
            assert terminated
            assert info["winner"] == 1 - info["to_move"]
        if terminated or truncated:
            env.reset()
    assert lost > 10


# Data


@pytest.mark.parametrize("observation", ["grid", "dict"])
def test_what_was_returned_never_changes_later(observation):
    # Gymnasium#1132: final_obs changed later because its array was used again.
    env = KatroEnv(rules="katro-4x4", observation=observation)
    results = plies(env, np.random.default_rng(10), 1000)
    again = plies(
        KatroEnv(rules="katro-4x4", observation=observation), np.random.default_rng(10), 1000
    )
    assert same(tuple(results), tuple(again))
    held = [array for result in results for array in arrays(result)]
    assert len({id(array) for array in held}) == len(held)
    for result, following in pairwise(results):
        for one in arrays(result):
            assert not any(np.shares_memory(one, other) for other in arrays(following))
    for result in results:
        own = arrays(result)
        assert not any(np.shares_memory(a, b) for i, a in enumerate(own) for b in own[:i])


def test_what_was_returned_may_be_written_to():
    env, twin = KatroEnv(observation="dict"), KatroEnv(observation="dict")
    rng = np.random.default_rng(11)
    env.reset()
    twin.reset()
    for _ in range(100):
        action = int(choose(rng, twin.action_masks()))
        result = env.step(action)
        assert same(result, twin.step(action))
        for array in arrays(result):
            array[...] = 77
        result[-1].clear()
        env.action_masks()[:] = False
        if result[2]:
            env.reset()
            twin.reset()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rules": "katro-4x4", "observation": "dict", "illegal": "lose", "max_plies": 40},
        {"rules": katro.Rules(1, 6, 4), "max_plies": None},
    ],
)
@pytest.mark.parametrize(
    "remake",
    [
        copy.deepcopy,
        *(
            lambda env, protocol=protocol: pickle.loads(pickle.dumps(env, protocol))
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_a_copy_in_the_middle_of_a_game_continues_identically(remake, options):
    # PettingZoo#1307: a copy that began again with an empty board.
    env = KatroEnv(**options)
    plies(env, np.random.default_rng(12), 27)
    other = remake(env)
    assert other is not env
    assert other.board == env.board
    assert other.np_random.bit_generator.state == env.np_random.bit_generator.state
    board = env.board
    after = plies(other, np.random.default_rng(13), 150, reset=False)
    assert env.board == board
    assert same(tuple(plies(env, np.random.default_rng(13), 150, reset=False)), tuple(after))


def test_two_environments_do_not_touch_each_other():
    one, other = KatroEnv(), KatroEnv()
    one.reset()
    other.reset()
    one.step(0)
    assert other.board == Board()


# Drawing


def test_ansi_is_the_text_of_the_board():
    env = KatroEnv(render_mode="ansi")
    env.reset()
    assert env.render() == str(Board())
    env.step(3)
    assert env.render() == str(Board().play(3))
    assert type(env.render()) is str


def test_rgb_array_is_a_picture_that_follows_the_game(rules):
    env = KatroEnv(render_mode="rgb_array", rules=rules)
    env.reset()
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    assert min(first.shape[:2]) > 50
    assert len(np.unique(first)) > 5
    np.testing.assert_array_equal(first, env.render())
    assert not np.shares_memory(first, env.render())
    env.step(0)
    assert env.render().shape == first.shape
    assert not np.array_equal(first, env.render())


def test_render_without_a_mode_warns():
    env = KatroEnv()
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_close_may_be_called_twice():
    env = KatroEnv()
    env.reset()
    env.close()
    env.close()


def test_memory_does_not_grow():
    # ManiSkill#320: an info dict that referred to itself.
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("needs /proc")

    def resident():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def work(n):
        envs = katro.KatroVectorEnv(256, autoreset_mode="SameStep")
        envs.reset()
        for _ in range(n):
            envs.step(np.argmax(envs.action_masks(), axis=1))
            envs.afterstates()
        for _ in range(2 * n):
            env = KatroEnv(render_mode="rgb_array")
            env.reset()
            env.step(0)
            env.board.trace(0)
            pickle.loads(pickle.dumps(env))

    work(100)
    before = resident()
    work(1000)
    assert resident() - before < 5_000_000
