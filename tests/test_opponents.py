"""Opponents inside the environments, the search, and what they leave to chance."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from games import choose, random_boards
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

import katro
from katro import Batch, Board, IllegalMoveError, KatroEnv, KatroVectorEnv

POLICIES = ("random", "greedy", "minimax:2")


def first_legal(observation, mask):
    """The first legal action, of one game or of many."""
    assert mask.dtype == np.bool_
    return mask.argmax(axis=-1)


def assert_same(found, expected):
    for a, b in zip(found[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[-1].keys() == expected[-1].keys()
    for key, value in expected[-1].items():
        if key == "final_info":
            assert_same(([], found[-1][key]), ([], value))
        elif key == "final_obs":
            for a, b in zip(found[-1][key], value, strict=True):
                np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_array_equal(found[-1][key], value, err_msg=key)


@pytest.mark.parametrize("rules", ["katro", "katro-4x4", "katro-ludii", "katra-boaoaka"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("opponent", [*POLICIES, first_legal])
def test_games_against_an_opponent_are_those_of_sync_vector_env(rules, mode, opponent):
    options = {"rules": rules, "opponent": opponent, "max_plies": 60}
    many = KatroVectorEnv(5, autoreset_mode=mode, **options)
    sync = SyncVectorEnv([lambda: KatroEnv(**options)] * 5, autoreset_mode=mode)
    found, expected = many.reset(seed=7), sync.reset(seed=7)
    assert_same(found, expected)
    rng = np.random.default_rng(1)
    infos = found[-1]
    for _ in range(120):
        actions = choose(rng, infos["action_mask"])
        found, expected = many.step(actions), sync.step(actions)
        assert_same(found, expected)
        infos = found[-1]


@pytest.mark.parametrize("opponent", [*POLICIES, first_legal])
@pytest.mark.parametrize("seat", [0, 1, None])
def test_the_reward_is_the_agents_and_the_turn_always_his(opponent, seat):
    envs = KatroVectorEnv(
        64, rules="katro-4x4", opponent=opponent, seat=seat, autoreset_mode="SameStep"
    )
    _, infos = envs.reset(seed=3)
    seats = infos["to_move"].copy()
    if seat is None:
        assert set(seats.tolist()) == {0, 1}
    else:
        assert (seats == seat).all()
    ends = {1.0: 0, -1.0: 0}
    rng = np.random.default_rng(4)
    for _ in range(150):
        actions = choose(rng, infos["action_mask"])
        _, rewards, terminated, truncated, infos = envs.step(actions)
        np.testing.assert_array_equal(rewards != 0, terminated)
        assert not truncated.any()
        for i in np.flatnonzero(terminated):
            winner = infos["final_info"]["winner"][i]
            assert (winner == seats[i]) == (rewards[i] == 1)
            ends[rewards[i]] += 1
        seats = np.where(terminated, infos["to_move"], seats)
        np.testing.assert_array_equal(infos["to_move"], seats)
        assert (infos["winner"] == -1).all()
    assert min(ends.values()) > 10


@pytest.mark.parametrize("opponent", [*POLICIES, first_legal])
@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("max_plies", [1, 2, 5, 6])
def test_a_game_is_cut_off_where_the_agent_is_to_move(opponent, seat, max_plies):
    # Else the value of the last position is the opponent's, and whoever bootstraps from it
    # learns it with the wrong sign.
    options = {"opponent": opponent, "seat": seat, "max_plies": max_plies}
    # The agent's plies until the opponent's answer reaches the limit, which an opening of
    # the opponent alone never does.
    steps = max(1, max_plies // 2 if seat else (max_plies + 1) // 2)
    env = KatroEnv(**options)
    envs = KatroVectorEnv(70, autoreset_mode="SameStep", **options)
    _, info = env.reset(seed=0)
    _, infos = envs.reset(seed=0)
    for step in range(1, 3 * steps + 1):
        actions = infos["action_mask"].argmax(axis=1)
        _, reward, terminated, truncated, info = env.step(int(actions[0]))
        _, _, _, cut_off, infos = envs.step(actions)
        ends = step % steps == 0
        assert (reward, terminated, truncated) == (0, False, ends)
        assert info["to_move"] == seat
        assert cut_off.all() if ends else not cut_off.any()
        assert (infos["to_move"] == seat).all()
        if ends:
            assert (infos["final_info"]["to_move"] == seat).all()
            last = infos["final_obs"][0]
            np.testing.assert_array_equal(last, env.board.observation())
            env.reset()


@pytest.mark.parametrize("opponent", POLICIES)
def test_a_seed_fixes_the_games_whatever_the_threads_and_the_number_of_games(opponent):
    def rows(n, threads):
        envs = KatroVectorEnv(n, opponent=opponent, num_threads=threads)
        observations, infos = envs.reset(seed=11)
        seen = [observations[:3]]
        for _ in range(25):
            # The first legal action: no game may depend on the draws of another.
            observations, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
            seen.append(observations[:3])
        return np.stack(seen)

    expected = rows(3, 1)
    for n, threads in [(3, 2), (70, 1), (1100, 2)]:
        np.testing.assert_array_equal(rows(n, threads), expected)


def test_other_seeds_give_other_games():
    games = set()
    for seed in range(20):
        env = KatroEnv(opponent="random")
        _, info = env.reset(seed=seed)
        for _ in range(5):
            _, _, _, _, info = env.step(int(info["action_mask"].argmax()))
        games.add(env.board)
    assert len(games) > 15


def test_without_a_seed_chance_decides():
    boards = set()
    for _ in range(20):
        env = KatroEnv(opponent="random", seat=1)
        env.reset()
        boards.add(env.board)
    assert len(boards) > 1


@pytest.mark.parametrize("option", [{"opponent": name} for name in (*POLICIES, first_legal)])
def test_check_env_passes_with_an_opponent(option):
    # It plays without a mask.
    check_env(gym.make("katro/Katro-v0", illegal="lose", **option).unwrapped)


def test_a_seat_can_be_chosen_for_one_game():
    env = KatroEnv(opponent="greedy", seat=0)
    for seat in (1, 0):
        _, info = env.reset(options={"seat": seat})
        assert info["to_move"] == seat
    envs = KatroVectorEnv(4, opponent="greedy")
    _, infos = envs.reset(options={"seat": np.array([0, 1, 1, 0])})
    assert infos["to_move"].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("make", [KatroEnv, lambda **o: KatroVectorEnv(3, **o)])
def test_copies_in_mid_game_go_on_alike(make):
    env = make(opponent="greedy")
    env.reset(seed=5)
    for clone in (copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))):
        twin = clone(env)
        for _ in range(5):
            masks = env.action_masks()
            np.testing.assert_array_equal(masks, twin.action_masks())
            action = masks.argmax(axis=-1)
            a, b = env.step(action), twin.step(action)
            np.testing.assert_array_equal(a[0], b[0])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"opponent": "nobody"}, ValueError, "random, greedy, minimax:DEPTH"),
        ({"opponent": "minimax:0"}, ValueError, "1 to 64"),
        ({"opponent": "minimax:-1"}, ValueError, "1 to 64"),
        ({"opponent": "minimax:65"}, ValueError, "65"),
        ({"opponent": "minimax:0ms"}, ValueError, "at least 1 ms"),
        ({"opponent": "minimax:"}, ValueError, "minimax:"),
        ({"opponent": "minimax:x"}, ValueError, "minimax:x"),
        ({"opponent": 3}, TypeError, "3"),
        ({"opponent": "random", "seat": 2}, ValueError, "0 .* 1"),
        ({"seat": 0}, ValueError, "needs an opponent"),
    ],
)
@pytest.mark.parametrize("make", [KatroEnv, lambda **o: KatroVectorEnv(3, **o)])
def test_an_opponent_or_a_seat_that_cannot_be_is_refused(make, options, error, says):
    with pytest.raises(error, match=says):
        make(**options)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (lambda o, m: np.full(len(m), 9), IllegalMoveError, "<lambda> in game 1: illegal action 9"),
        (lambda o, m: np.full(len(m), -1), IllegalMoveError, "<lambda> in game 1"),
        (lambda o, m: np.zeros(len(m) + 1, int), ValueError, r"<lambda>: .*shape"),
        (lambda o, m: np.zeros(len(m)), TypeError, "<lambda>: .*float64"),
        (lambda o, m: None, TypeError, "<lambda>: .*object"),
        (lambda o, m: 1 / 0, ZeroDivisionError, "zero"),
    ],
)
def test_an_opponent_that_fails_is_named_and_no_game_moves(answer, error, says):
    calls = []

    def sometimes(observations, masks):
        calls.append(len(masks))
        return answer(observations, masks) if len(calls) > 3 else masks.argmax(axis=1)

    sometimes.__name__ = "<lambda>"
    envs = KatroVectorEnv(3, opponent=sometimes, seat=0)
    envs.reset(seed=1)
    # A game that has ended does not wait for the opponent, so that game 1 is the first.
    boards = random_boards(katro.Rules(), 3, seed=2)
    boards = [Board.from_grid(board.grid(), 0) for board in boards]
    boards[0] = Board.from_notation(
        "0,0,0,0,0,0/0,0,0,0,0,0/0,0,0,0,0,1/0,0,0,0,0,1/0,0,0,0,0,0/0,0,0,0,1,0 S"
    )
    envs.set_boards(boards)
    _, infos = envs.set_boards(boards)
    while len(calls) < 3:
        envs.set_boards(boards)
        envs.step(infos["action_mask"].argmax(axis=1))
    envs.set_boards(boards)
    with pytest.raises(error, match=says if error is not IllegalMoveError else "<lambda> in game"):
        envs.step(infos["action_mask"].argmax(axis=1))
    assert envs.boards() == boards


def test_a_policy_chooses_only_where_it_is_asked():
    batch = Batch(70)
    step = batch.reset(seed=0)
    asked = np.arange(70) % 2 == 0
    actions = batch.choose("random", asked)
    assert (actions[~asked] == 0).all()
    assert step.action_mask[np.arange(70), actions].all()
    before = batch.boards()
    batch.step(actions, asked)
    for i, board in enumerate(batch.boards()):
        assert board == (before[i].play(actions[i]) if asked[i] else before[i])


@pytest.mark.parametrize("name", katro.RULES)
def test_greedy_takes_the_most_seeds(name):
    rules = katro.Rules.named(name)
    boards = random_boards(rules, 100, seed=3)
    batch = Batch(100, rules=rules)
    batch.reset(seed=1)
    batch.set_boards(boards)
    for board, action in zip(boards, batch.choose("greedy").tolist(), strict=True):
        taken = {a: sum(lap.taken for lap in board.trace(a)) for a in board.legal_actions}
        assert taken[action] == max(taken.values())


def test_random_choices_are_even():
    batch = Batch(6000)
    batch.reset(seed=0)
    counts = np.bincount(batch.choose("random"), minlength=6)
    assert ((counts > 850) & (counts < 1150)).all()


def test_a_forced_win_is_found_and_its_line_leads_there():
    wins = 0
    for board in random_boards(katro.Rules.named("katro-4x4"), 50, seed=9):
        result = katro.search(board, depth=7)
        if result.value < 900_000:
            continue
        wins += 1
        assert len(result.line) == 1_000_000 - result.value
        last = board
        for action in result.line:
            last = last.play(action)
        assert last.winner == board.to_move
    assert wins > 5


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"depth": 0}, ValueError),
        ({"depth": -1}, ValueError),
        ({"depth": 65}, ValueError),
        ({"depth": 10**30}, ValueError),
        ({"depth": 1.5}, TypeError),
        ({"depth": "3"}, TypeError),
        ({"seconds": 0}, ValueError),
        ({"seconds": -1}, ValueError),
        ({"seconds": float("nan")}, ValueError),
        ({"seconds": "x"}, TypeError),
    ],
)
def test_a_search_without_sensible_limits_is_refused(limits, error):
    with pytest.raises(error):
        katro.search(Board(), **limits)


def test_a_search_of_a_finished_game_is_refused():
    with pytest.raises(ValueError, match="the game is over"):
        katro.search(Board.from_notation("0,0/0,1 S"), depth=1)


def test_a_search_keeps_to_its_time():
    result = katro.search(Board(), seconds=0.2)
    assert result.seconds < 2
    assert result.depth >= 1


@pytest.mark.parametrize("opponent", [*POLICIES, first_legal])
def test_a_rollout_is_not_for_a_batch_with_an_opponent(opponent):
    # It would leave games in which the opponent is to move, and the next step would play
    # the agent's action for him.
    batch = Batch(3, opponent=opponent)
    batch.reset(seed=0)
    then = batch.boards()
    with pytest.raises(ValueError, match="a rollout plays both sides, so it needs a batch without"):
        batch.rollout(10)
    assert batch.boards() == then
