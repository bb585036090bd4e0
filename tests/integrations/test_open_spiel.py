"""katro.open_spiel against OpenSpiel's own tests and against the engine."""

import copy
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import evaluate_bots, mcts, minimax
from open_spiel.python.bots import uniform_random
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation

import katro
import katro.open_spiel

SMALL = "python_katro(rules=katro-4x4,max_plies=60)"


def load(text="python_katro"):
    return pyspiel.load_game(text)


def named(rules, max_plies=300):
    return load(f"python_katro(rules={rules},max_plies={max_plies})")


def play_random(state, rng, plies=10**6):
    while plies and not state.is_terminal():
        state.apply_action(int(rng.choice(state.legal_actions())))
        plies -= 1
    return state


def same(state, other):
    return (
        str(state) == str(other)
        and state.board == other.board
        and state.history() == other.history()
        and state.move_number() == other.move_number()
        and state.current_player() == other.current_player()
    )


def test_the_game_is_registered():
    assert "python_katro" in pyspiel.registered_names()
    game = load()
    kind = game.get_type()
    assert isinstance(game, katro.open_spiel.KatroGame)
    assert kind.utility == pyspiel.GameType.Utility.ZERO_SUM
    assert kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    assert (game.num_distinct_actions(), game.num_players()) == (6, 2)
    assert (game.min_utility(), game.max_utility(), game.utility_sum()) == (-1, 1, 0)
    assert game.max_game_length() == 2000
    assert str(game) == "python_katro()"


@pytest.mark.parametrize("serialize", [False, True])
@pytest.mark.parametrize("rules", katro.RULES)
def test_random_sim_test(rules, serialize):
    pyspiel.random_sim_test(named(rules, 60), num_sims=2, serialize=serialize, verbose=False)


@pytest.mark.parametrize("rules", katro.RULES)
def test_a_state_is_the_board_of_the_engine(rules):
    state = named(rules).new_initial_state()
    board, rng = katro.Board(rules), np.random.default_rng(0)
    while not state.is_terminal():
        assert state.board == board
        assert state.current_player() == board.to_move
        assert state.legal_actions() == board.legal_actions == sorted(board.legal_actions)
        assert state.legal_actions(1 - board.to_move) == []
        live = board.action_mask.tolist()
        assert state.legal_actions_mask(board.to_move) == live
        assert state.returns() == state.rewards() == [0, 0]
        action = int(rng.choice(board.legal_actions))
        name = state.action_to_string(action)
        assert name == board.rules.action_name(action)
        assert state.string_to_action(name) == action
        state.apply_action(action)
        board = board.play(action)
    assert state.board == board
    assert state.legal_actions() == []
    assert state.current_player() == pyspiel.PlayerId.TERMINAL


def test_the_winner_gets_1_and_the_loser_minus_1():
    won = {0: 0, 1: 0}
    for seed in range(20):
        start = named("katro-4x4", 10**6).new_initial_state()
        state = play_random(start, np.random.default_rng(seed))
        winner = state.board.winner
        won[winner] += 1
        assert state.returns() == state.rewards() == [1 - 2 * winner, 2 * winner - 1]
        assert state.player_return(winner) == 1
    assert min(won.values()) > 0


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_max_game_length_is_true(limit):
    rng = np.random.default_rng(0)
    for plies in (limit - 1, limit):
        game = load(f"python_katro(max_plies={limit})")
        assert game.max_game_length() == limit
        state = play_random(game.new_initial_state(), rng, plies)
        assert state.move_number() == plies
        assert state.is_terminal() == (plies == limit)
        assert state.returns() == [0, 0]
    with pytest.raises(katro.IllegalMoveError, match="cut off"):
        state.apply_action(0)
    assert state.move_number() == limit


def test_a_game_won_on_its_last_ply_is_won():
    game = load("python_katro(rows=1,columns=2,max_plies=1)")
    state = game.new_initial_state("0,1/1,1 S")
    state.apply_action(0)
    assert state.returns() == [1, -1]
    with pytest.raises(katro.IllegalMoveError):
        state.apply_action(0)


def test_the_parameters_make_every_rule_set():
    games = {
        "python_katro(rows=2,columns=4,seeds=3)": katro.Rules(2, 4, 3),
        "python_katro(columns=5)": katro.Rules(columns=5),
        "python_katro(direction=per_move,last_seed_steps=diagonal)": katro.Rules(
            direction="per_move", last_seed_steps="diagonal"
        ),
        "python_katro(fall_through=True)": katro.Rules(fall_through=True),
        "python_katro(capture_on_empty=True)": katro.Rules(capture_on_empty=True),
        "python_katro(rows=2,columns=8,boaoaka=True)": katro.Rules(2, 8, boaoaka=True),
        "python_katro(rules=katro-ludii)": katro.Rules.named("katro-ludii"),
        "python_katro()": katro.Rules(),
    }
    for text, rules in games.items():
        game = load(text)
        assert game.rules == rules
        assert game.num_distinct_actions() == rules.num_actions
        assert load(str(game)).rules == rules
    assert load("python_katro(rules=katro-ludii)") != load()
    assert pyspiel.load_game("python_katro", {"rules": "katro-4x6"}).rules.columns == 6
    assert katro.open_spiel.KatroGame({"rows": 2}).rules == katro.Rules(2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules=chess", 'unknown rules "chess", known are katro'),
        ("rules=katro-4x4,rows=2", "either named, here 'katro-4x4', or made of rows"),
        ("rows=9", "rows per side must be 1 to 3, got 9"),
        ("columns=-1", "got -1"),
        ("direction=left", "direction must be"),
        ("max_plies=0", "max_plies must be at least 1, got 0"),
        ("max_plies=-5", "max_plies must be at least 1, got -5"),
    ],
)
def test_wrong_parameters_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        load(f"python_katro({text})")


@pytest.mark.parametrize("text", ["foo=1", "rules=3", "max_plies=abc"])
def test_openspiel_refuses_parameters_that_there_are_not(text, capfd):
    with pytest.raises(pyspiel.SpielError):
        load(f"python_katro({text})")


@pytest.mark.parametrize("action", [-2, 6, 2**31, 2**62, -(2**63)])
def test_an_illegal_action_is_refused_and_changes_nothing(action):
    state = load().new_initial_state()
    before = state.clone()
    with pytest.raises(katro.IllegalMoveError, match=f"illegal action {action}: legal are"):
        state.apply_action(action)
    assert same(state, before)


@pytest.mark.parametrize("action", [2**63, 1.5, float("nan"), None, "a"])
def test_an_action_that_is_no_integer_is_refused(action):
    state = load().new_initial_state()
    with pytest.raises((TypeError, ValueError)):
        state.apply_action(action)
    assert state.board == katro.Board()


def test_a_game_can_start_from_a_board():
    board = katro.Board("katro-fieldnotes").play(7)
    state = named("katro-fieldnotes").new_initial_state(board.notation)
    assert state.board == board
    assert state.current_player() == 1
    with pytest.raises(ValueError, match=r"notation|rows|board"):
        load().new_initial_state("1,1/1,1 S")


@pytest.mark.parametrize("rules", ["katro", "katro-fieldnotes"])
def test_copies_keep_the_game_and_go_their_own_way(rules):
    game = named(rules, 50)
    state = play_random(game.new_initial_state(), np.random.default_rng(0), 17)
    copies = [
        state.clone(),
        copy.deepcopy(state),
        game.deserialize_state(state.serialize()),
        pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))[1],
        *(pickle.loads(pickle.dumps(state, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)),
    ]
    assert all(same(state, other) for other in copies)
    play_random(state, np.random.default_rng(1))
    for other in copies:
        assert other.move_number() == 17
        assert same(state, play_random(other, np.random.default_rng(1)))
    for again in (pickle.loads(pickle.dumps(game)), copy.deepcopy(game)):
        assert again == game
        assert again.rules == game.rules
        assert str(again.new_initial_state()) == str(game.new_initial_state())


def test_equal_texts_mean_equal_states():
    game = load(SMALL)
    seen = {}
    for seed in range(30):
        state, rng = game.new_initial_state(), np.random.default_rng(seed)
        while not state.is_terminal():
            value = (state.board, state.move_number())
            assert seen.setdefault(str(state), value) == value
            play_random(state, rng, 1)
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("rules", ["katro", "katro-4x6", "katro-fieldnotes"])
def test_the_observation_is_what_each_player_sees(rules):
    game = named(rules)
    binds = katro.Board(rules).bound is not None
    shape = [4 if binds else 2, *katro.Board(rules).grid().shape]
    assert game.observation_tensor_shape() == shape
    observation = make_observation(game)
    state, rng = game.new_initial_state(), np.random.default_rng(0)
    while not state.is_terminal():
        board = state.board
        for player in (0, 1):
            tensor = np.array(state.observation_tensor(player)).reshape(shape)
            grid = board.grid() if player == 0 else board.grid()[::-1, ::-1]
            assert tensor[0].tolist() == grid.tolist()
            assert (tensor[1] == (player == board.to_move)).all()
            if binds:
                bound = [-1 if each is None else each for each in board.bound]
                assert (tensor[2] == bound[player]).all()
                assert (tensor[3] == bound[1 - player]).all()
            observation.set_from(state, player)
            assert observation.tensor.dtype == np.float32
            assert observation.tensor.tolist() == tensor.ravel().tolist()
            assert observation.dict["observation"].shape == tuple(shape)
            assert observation.string_from(state, player) == board.notation
            assert state.observation_string(player) == board.notation
        mover = np.array(state.observation_tensor()).reshape(shape)[0]
        assert mover.tolist() == board.observation().tolist()
        play_random(state, rng, 1)


def test_the_information_state_is_the_history():
    state = play_random(load().new_initial_state(), np.random.default_rng(0), 5)
    assert state.information_state_string(0) == state.history_str()
    observation = make_observation(load(), INFO_STATE_OBS_TYPE)
    assert observation.string_from(state, 0) == state.history_str()


def test_an_observer_has_no_parameters():
    with pytest.raises(ValueError, match="no parameters"):
        make_observation(load(), params={"planes": 3})


def test_openspiels_bots_play_it():
    game = load(SMALL)
    rng = np.random.RandomState(0)
    searcher = mcts.MCTSBot(game, 2, 40, mcts.RandomRolloutEvaluator(1, rng), random_state=rng)
    total = np.zeros(2)
    for seat in (0, 1):
        bots = [uniform_random.UniformRandomBot(1 - seat, rng)] * 2
        bots[seat] = searcher
        for _ in range(4):
            returns = evaluate_bots.evaluate_bots(game.new_initial_state(), bots, rng)
            total += returns if seat == 0 else returns[::-1]
    assert total[0] > total[1]


def test_openspiels_search_finds_a_win_in_one():
    game = load("python_katro(rows=1,columns=2)")
    state = game.new_initial_state("0,1/1,1 S")
    value, action = minimax.alpha_beta_search(
        game, state=state, maximum_depth=1, value_function=lambda state: state.player_return(0)
    )
    assert (value, action) == (1, 0)


def test_the_rl_environment_of_openspiel_plays_it():
    environment = rl_environment.Environment(load(SMALL))
    rng = np.random.default_rng(0)
    for _ in range(3):
        step = environment.reset()
        while not step.last():
            player = step.observations["current_player"]
            legal = step.observations["legal_actions"][player]
            step = environment.step([int(rng.choice(legal))])
        assert sum(step.rewards) == 0


def test_it_needs_openspiel_only(check_alone, check_missing):
    check_alone("open_spiel", "pyspiel", "stable_baselines3", "pettingzoo", "torch")
    check_missing("open_spiel", "pyspiel", "openspiel")


def test_the_docstrings(check_doctests):
    check_doctests(katro.open_spiel, "KatroObserver")


def test_the_page(check_page, capsys):
    check_page("open_spiel.md", "open-spiel")
