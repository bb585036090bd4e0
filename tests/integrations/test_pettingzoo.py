"""katro.pettingzoo against PettingZoo's own tests and against the engine."""

import copy
import pickle
import warnings

import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.utils import wrappers
from pettingzoo.utils.average_total_reward import average_total_reward

import katro
import katro.pettingzoo
from katro.pettingzoo import AGENTS, env, raw_env

with warnings.catch_warnings():
    # PettingZoo's tests import one of its own games in a way it has deprecated itself.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, performance_benchmark, render_test, seed_test

# The two warnings that PettingZoo gives for every observation that is a dict.
UNAVOIDABLE = {
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or "
    "gymnasium.spaces.discrete",
}


def wrapped(**options):
    """The environment in PettingZoo's own three wrappers."""
    game = wrappers.TerminateIllegalWrapper(raw_env(**options), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(game))


def play(game, actions):
    for action in actions:
        game.step(action)


def play_random(game, rng, plies=10**6):
    """Plays until the game is over or so many plies were played."""
    while plies and not over(game):
        mask = game.observe(game.agent_selection)["action_mask"]
        game.step(rng.choice(np.flatnonzero(mask)))
        plies -= 1


def over(game):
    return any(game.terminations.values()) or any(game.truncations.values())


def started(**options):
    game = raw_env(**options)
    game.reset(seed=0)
    return game


def near_end(rules="katro"):
    """A board from which the next ply can win, and the winning action."""
    rng = np.random.default_rng(0)
    while True:
        before = board = katro.Board(rules)
        while not board.is_over:
            action = int(rng.choice(board.legal_actions))
            before, board = board, board.play(action)
        if before.to_move == 0:
            return before, action


@pytest.mark.parametrize("make", [env, raw_env, wrapped])
def test_api_test_gives_no_more_than_the_two_unavoidable_warnings(make, capsys):
    for rules in katro.RULES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            api_test(make(rules=rules), num_cycles=300)
        assert {str(warning.message) for warning in caught} <= UNAVOIDABLE


@pytest.mark.parametrize("make", [env, raw_env, wrapped])
@pytest.mark.parametrize("rules", katro.RULES)
def test_seed_test(make, rules):
    seed_test(lambda: make(rules=rules), num_cycles=200)


@pytest.mark.parametrize("make", [env, raw_env, wrapped])
def test_render_test(make, capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    render_test(make)
    assert "South to move" in capsys.readouterr().out


@pytest.mark.slow
def test_performance_benchmark(capsys):
    performance_benchmark(env())
    assert "Finished" in capsys.readouterr().out


def test_the_utilities_that_look_for_the_mask_find_it(capsys):
    # The mask of `last(observe=False)` is none, so actions are not masked here.
    assert average_total_reward(env(), max_episodes=5) == 0


def test_the_registry_has_the_environment():
    game = pettingzoo.make("aec", "katro/Katro-v0", rules="katro-4x4")
    game.reset()
    assert isinstance(game, raw_env)
    assert game.state().shape == (4, 4)


def test_an_environment_has_the_attributes_that_pettingzoo_asks_for():
    game = env(render_mode="ansi")
    assert game.metadata["name"] == str(game) == "katro_v0"
    assert game.metadata["is_parallelizable"] is False
    assert game.possible_agents == ["player_0", "player_1"]
    assert game.unwrapped is game
    for agent in AGENTS:
        assert game.observation_space(agent) is game.observation_space(agent)
        assert game.action_space(agent) is game.action_space(agent)
        assert game.action_space(agent).n == 6
    assert game.observation_space("player_0")["observation"].shape == (6, 6)
    game.reset()
    assert game.num_agents == game.max_num_agents == 2
    assert game.render() == str(katro.Board())
    game.close()


def test_both_agents_see_the_board_and_only_the_one_to_move_a_mask(rules):
    game = started(rules=rules)
    board = game.board
    rng = np.random.default_rng(1)
    for _ in range(60):
        if over(game):
            break
        mover, other = AGENTS[board.to_move], AGENTS[1 - board.to_move]
        assert game.agent_selection == mover
        seen, unseen = game.observe(mover), game.observe(other)
        assert seen["observation"].tolist() == board.observation().tolist()
        assert unseen["observation"].tolist() == board.observation()[::-1, ::-1].tolist()
        assert game.observe("player_0")["observation"].tolist() == board.grid().tolist()
        assert seen["action_mask"].tolist() == board.action_mask.tolist()
        assert not unseen["action_mask"].any()
        for agent in AGENTS:
            assert game.observe(agent)["action_mask"].dtype == np.int8
            assert game.observation_space(agent).contains(game.observe(agent))
        assert game.state().tolist() == board.grid().tolist()
        action = int(rng.choice(board.legal_actions))
        game.step(action)
        board = board.play(action)
        assert game.board == board


def test_swapping_the_sides_changes_nothing_that_the_mover_sees():
    board = katro.Board("katro-4x6").play(1).play(2)
    turned = katro.Board.from_grid(board.grid()[::-1, ::-1], 1 - board.to_move, board.rules)
    seen = []
    for start in (board, turned):
        game = raw_env(rules="katro-4x6")
        game.reset(options={"board": start})
        seen.append(game.last()[0])
    assert all(seen[0][key].tolist() == seen[1][key].tolist() for key in seen[0])


def test_the_loser_is_selected_and_sees_minus_1_through_last():
    board, action = near_end()
    game = env()
    game.reset(options={"board": board})
    game.step(action)
    assert game.agent_selection == "player_1"
    assert game.rewards == {"player_0": 1, "player_1": -1}
    assert game.terminations == dict.fromkeys(AGENTS, True)
    assert game.truncations == dict.fromkeys(AGENTS, False)
    got = {}
    for agent in game.agent_iter():
        observation, reward, terminated, truncated, _ = game.last()
        got[agent] = reward
        assert (terminated, truncated) == (True, False)
        assert observation["action_mask"].all()
        game.step(None)
    assert got == {"player_1": -1, "player_0": 1}
    assert list(got) == ["player_1", "player_0"]
    assert game.agents == []


def test_the_rewards_of_the_agents_sum_to_0_in_every_step():
    for seed in range(20):
        game = started(rules="katro-4x4")
        play_random(game, np.random.default_rng(seed))
        assert sorted(game.rewards.values()) == [-1, 1]
        assert game.rewards[game.agent_selection] == -1
        assert game.board.winner == AGENTS.index(max(game.rewards, key=game.rewards.get))


@pytest.mark.parametrize("plies", [1, 2, 7])
def test_the_ply_limit_truncates_exactly_there(plies):
    for limit in (plies, plies + 1):
        game = started(max_plies=limit)
        play_random(game, np.random.default_rng(0), plies)
        assert game.truncations == dict.fromkeys(AGENTS, limit == plies)
        assert game.terminations == dict.fromkeys(AGENTS, False)
        assert game.last()[1] == 0
    game = started(max_plies=plies)
    for agent in game.agent_iter():
        _, reward, terminated, truncated, _ = game.last()
        assert reward == 0
        assert not terminated
        mask = game.observe(agent)["action_mask"]
        game.step(None if truncated else int(mask.argmax()))
    assert game.agents == []


def test_a_game_won_on_its_last_ply_is_won():
    board, action = near_end()
    game = raw_env(max_plies=1)
    game.reset(options={"board": board})
    game.step(action)
    assert game.terminations == dict.fromkeys(AGENTS, True)
    assert game.truncations == dict.fromkeys(AGENTS, False)
    assert game.rewards["player_0"] == 1


def an_illegal_action():
    """A start for South in which action 0 is illegal."""
    rules = katro.Rules.named("katro-4x4")
    return katro.Board.from_grid([[1, 1, 1, 1]] * 3 + [[0, 1, 1, 1]], 0, rules)


def test_raw_env_refuses_an_illegal_action_and_changes_nothing():
    game = raw_env(rules="katro-4x4")
    game.reset(options={"board": an_illegal_action()})
    with pytest.raises(katro.IllegalMoveError, match="illegal action 0: legal are 1, 2, 3 in"):
        game.step(0)
    assert game.board == an_illegal_action()
    assert game.agent_selection == "player_0"
    game.step(1)
    assert game.agent_selection == "player_1"


def test_an_illegal_action_loses_in_env(caplog):
    game = env(rules="katro-4x4")
    game.reset(options={"board": an_illegal_action()})
    game.step(np.int64(0))
    assert "Illegal move" in caplog.text
    assert game.agent_selection == "player_0"
    assert game.rewards == {"player_0": -1, "player_1": 1}
    assert game.terminations == dict.fromkeys(AGENTS, True)
    assert game.truncations == dict.fromkeys(AGENTS, False)
    assert game.last()[1] == -1
    game.step(None)
    assert game.last()[1] == 1
    # What ended the last game must not leave a trace in the next.
    game.reset()
    assert game.agent_selection == "player_0"
    play_random(game, np.random.default_rng(0))
    assert sorted(game.rewards.values()) == [-1, 1]


def test_pettingzoos_own_wrapper_ends_the_game_its_own_way(caplog):
    game = wrapped(rules="katro-4x4")
    game.reset(options={"board": an_illegal_action()})
    game.step(0)
    assert game.rewards == {"player_0": -1, "player_1": 0}
    assert game.terminations == game.truncations == dict.fromkeys(AGENTS, True)
    for _ in game.agent_iter():
        game.last()
        game.step(None)
    game.reset()
    assert game.agent_selection == "player_0"
    assert list(game.agents) == list(AGENTS)


def test_after_a_reset_between_the_dead_steps_the_order_is_right():
    game = started(rules="katro-4x4")
    for seed in range(6):
        game.reset()
        assert game.agent_selection == "player_0"
        play_random(game, np.random.default_rng(seed))
        loser = AGENTS[1 - game.board.winner]
        assert game.agent_selection == loser
        game.step(None)
        assert game.agents == [AGENTS[game.board.winner]]
        if seed % 2:
            game.step(None)


@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize("action", [-1, 6, 2**63 - 1, -(2**63), 2**70, np.int64(-1)])
def test_an_action_outside_the_space_is_refused(make, action):
    game = make()
    game.reset()
    with pytest.raises(katro.IllegalMoveError, match=f"illegal action {action}"):
        game.step(action)
    assert game.board == katro.Board()
    assert not over(game)


@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize("action", [1.5, float("nan"), "a", None, [1], np.zeros(2, int)])
def test_an_action_that_is_no_integer_is_refused(make, action):
    game = make()
    game.reset()
    with pytest.raises(TypeError):
        game.step(action)
    assert game.board == katro.Board()


@pytest.mark.parametrize(
    "action", [2, np.int8(2), np.int32(2), np.int64(2), np.uint8(2), np.uint64(2), np.array(2)]
)
def test_every_integer_is_an_action(action):
    game = started()
    game.step(action)
    assert game.board == katro.Board().play(2)


def test_a_dead_agent_takes_none_only():
    game = started(max_plies=1)
    game.step(0)
    with pytest.raises(ValueError, match="None"):
        game.step(0)


def test_step_needs_a_reset_first_and_after_the_end():
    game = raw_env(max_plies=1)
    with pytest.raises(ResetNeeded):
        game.step(0)
    game.reset()
    play(game, [0, None, None])
    with pytest.raises(ResetNeeded):
        game.step(None)
    game.reset()
    assert game.board == katro.Board()


@pytest.mark.parametrize("name", ["agents", "agent_selection", "rewards", "infos", "num_agents"])
def test_what_a_reset_makes_is_not_there_before(name):
    with pytest.raises(AttributeError, match="after a reset"):
        getattr(env(), name)


def test_an_unknown_attribute_is_an_error():
    with pytest.raises(AttributeError, match=r"raw_env.*colour"):
        env().colour  # noqa: B018


def test_observe_names_the_agents_it_knows():
    with pytest.raises(ValueError, match="player_0 and player_1, got 'player_2'"):
        started().observe("player_2")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rules": "chess"}, ValueError),
        ({"rules": 3}, TypeError),
        ({"illegal": "ignore"}, ValueError),
        ({"max_plies": 0}, ValueError),
        ({"max_plies": 1.5}, TypeError),
        ({"render_mode": "rgb"}, ValueError),
        ({"max_cycles": 3}, TypeError),
    ],
)
def test_wrong_options_are_refused(options, error):
    for make in (env, raw_env):
        with pytest.raises(error):
            make(**options)


def test_a_reset_refuses_a_wrong_board_and_ignores_what_pettingzoo_passes():
    game = started()
    game.step(1)
    board, action = near_end()
    for wrong, error in [
        (katro.Board("katro-4x4"), ValueError),
        (board.play(action), ValueError),
        ([[2] * 6] * 6, TypeError),
    ]:
        with pytest.raises(error):
            game.reset(options={"board": wrong})
        assert game.board == katro.Board().play(1)
    game.reset(seed=7, options={"options": 1, "board": None})
    assert game.board == katro.Board()
    north = katro.Board().play(1)
    game.reset(options={"board": north})
    assert game.agent_selection == "player_1"
    assert game.last()[0]["observation"].tolist() == north.observation().tolist()


@pytest.mark.parametrize("make", [env, wrapped])
def test_a_copy_in_mid_game_keeps_the_game(make):
    game = make(max_plies=50)
    game.reset(seed=0)
    play_random(game, np.random.default_rng(0), 17)
    space = game.action_space("player_0")
    space.seed(3)
    copies = [copy.deepcopy(game)]
    if make is env:  # Their wrappers cannot be pickled.
        copies += [pickle.loads(pickle.dumps(game, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    after = [each.action_space("player_0").sample() for each in (game, *copies)]
    assert len(set(after)) == 1
    assert space is game.action_space("player_0")
    for each in copies:
        assert each.unwrapped.board == game.unwrapped.board
        assert each.unwrapped.plies == 17
        assert each.agent_selection == game.agent_selection
    play_random(game, np.random.default_rng(1))
    for each in copies:
        assert not over(each)
        play_random(each, np.random.default_rng(1))
        assert each.unwrapped.board == game.unwrapped.board
        assert each.rewards == game.rewards
        assert each.truncations == game.truncations


def test_nothing_that_was_returned_changes_later():
    game = started(rules="katro-fieldnotes")
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(1000):
        if over(game):
            game.reset()
        for agent in AGENTS:
            observation = game.observe(agent)
            bound = game.infos[agent]["bound"]
            arrays = (*observation.values(), bound, game.state())
            kept.append((arrays, [array.copy() for array in arrays]))
        play_random(game, rng, 1)
    for arrays, copies in kept:
        assert all(np.array_equal(*pair) for pair in zip(arrays, copies, strict=True))
        assert all(array.flags.writeable and array.flags.c_contiguous for array in arrays)


def test_the_information_says_what_the_players_are_bound_to():
    game = started(rules="katro-fieldnotes")
    assert game.infos["player_0"]["bound"].tolist() == [-1, -1]
    game.step(7)
    assert game.infos["player_0"]["bound"].tolist() == [1, -1]
    assert game.infos["player_1"]["bound"].tolist() == [-1, 1]
    assert started().infos == {"player_0": {}, "player_1": {}}


def test_the_games_are_those_of_katro_env():
    for seed, rules in enumerate(katro.RULES):
        rng = np.random.default_rng(seed)
        game, single = env(rules=rules, max_plies=40), katro.KatroEnv(rules=rules, max_plies=40)
        game.reset()
        observation, info = single.reset()
        while True:
            seen = game.last()[0]
            assert seen["observation"].tolist() == observation.tolist()
            assert seen["action_mask"].tolist() == info["action_mask"].tolist()
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            mover = game.agent_selection
            observation, reward, terminated, truncated, info = single.step(action)
            game.step(action)
            assert game.rewards[mover] == reward
            assert game.terminations[mover] is terminated
            assert game.truncations[mover] is truncated
            if terminated or truncated:
                break


def test_render_without_a_mode_warns_and_returns_nothing():
    game = started()
    with pytest.warns(UserWarning, match="render mode"):
        assert game.render() is None


def test_the_mode_human_prints_every_move(capsys):
    game = started(render_mode="human")
    game.step(0)
    assert capsys.readouterr().out == f"{katro.Board().play(0)}\n"


def test_it_needs_pettingzoo_only(check_alone, check_missing):
    check_alone("pettingzoo", "pettingzoo", "stable_baselines3", "pyspiel", "torch")
    check_missing("pettingzoo", "pettingzoo", "pettingzoo")


def test_the_docstrings(check_doctests):
    check_doctests(katro.pettingzoo)


def test_the_page(check_page, capsys):
    check_page("pettingzoo.md", "pettingzoo")
