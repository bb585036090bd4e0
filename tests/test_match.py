"""Matches between players and what they say about strength."""

import math

import numpy as np
import pytest

import katro
from katro import match
from katro.match import LADDER, MatchResult, play_match, rate


def first_of_board(board):
    return board.legal_actions[0]


def first_of_batch(observations, action_masks):
    return action_masks.argmax(axis=1)


def greedy_of_board(board):
    return max(
        board.legal_actions, key=lambda action: sum(lap.taken for lap in board.trace(action))
    )


def result(wins, losses, unfinished=0):
    return MatchResult("a", "b", wins, losses, unfinished, 50.0)


# Statistics


def test_the_interval_is_that_of_wilson():
    # 8 of 10, by hand: (0.8 + z²/20) / (1 + z²/10) -+ z / (1 + z²/10) * sqrt(0.016 + z²/400)
    assert match.wilson(8, 10) == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert match.wilson(50, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)
    # No win of n games: z² / (n + z²).
    assert match.wilson(0, 10) == pytest.approx((0, 3.84146 / 13.84146), abs=1e-5)
    assert match.wilson(10, 10) == pytest.approx((10 / 13.84146, 1), abs=1e-5)


def test_the_interval_covers_the_truth_95_times_of_100():
    wins = np.random.default_rng(0).binomial(200, 0.7, 2000)
    inside = [low <= 0.7 <= high for low, high in (match.wilson(won, 200) for won in wins)]
    assert 0.93 < np.mean(inside) < 0.97


def test_elo_is_that_of_the_share_of_points():
    assert match.elo_of(0.5) == 0
    assert match.elo_of(10 / 11) == pytest.approx(400)
    assert match.elo_of(0.25) == pytest.approx(-190.85, abs=0.01)
    assert match.elo_of(1) == math.inf
    assert match.elo_of(0) == -math.inf


def test_an_unfinished_game_is_no_win_but_half_a_point():
    some = result(50, 30, 20)
    assert some.games == 100
    assert some.win_rate == 0.5
    assert some.interval == match.wilson(50, 100)
    assert some.elo == pytest.approx(match.elo_of(0.6))
    assert result(30, 50, 20).elo == pytest.approx(-some.elo)
    low, high = some.elo_interval
    assert low < some.elo < high


def test_a_result_without_a_loss_has_a_finite_lower_bound():
    low, high = result(100, 0).elo_interval
    assert result(100, 0).elo == high == math.inf
    assert 400 < low < 800


def test_a_result_is_shown_with_its_intervals():
    text = str(result(60, 30, 10))
    assert text.startswith("a against b: 60 won, 30 lost, 10 unfinished of 100\n")
    assert "win rate 60.0 % (95" in text.replace("%", " %", 1)
    assert "unfinished" not in str(result(60, 40))


def test_bradley_terry_of_two_is_the_elo_of_their_match():
    elo, error = match.bradley_terry(np.array([[0, 25.0], [75.0, 0]]))
    assert elo == pytest.approx([0, match.elo_of(0.75)])
    # The standard error of a logit is 1 / sqrt(n p q).
    assert error == pytest.approx([0, 400 / math.log(10) / math.sqrt(100 * 0.75 * 0.25)])


def test_bradley_terry_finds_the_ratings_that_made_the_points():
    truth = np.array([0.0, 120.0, 500.0, 430.0])
    expected = 1 / (1 + 10 ** ((truth - truth[:, None]) / 400))
    wins = 100 * expected
    np.fill_diagonal(wins, 0)
    elo, error = match.bradley_terry(wins)
    assert elo == pytest.approx(truth, abs=1e-4)
    assert error[0] == 0
    assert (error[1:] > 10).all()


# Matches


@pytest.mark.parametrize("games", [1, 2, 7, 100])
def test_every_game_is_counted(games):
    played = play_match("greedy", "random", games, rules="katro-4x4")
    assert played.wins + played.losses + played.unfinished == played.games == games
    assert played.mean_plies > 4


def test_a_match_of_several_chunks_counts_every_game(monkeypatch):
    monkeypatch.setattr(match, "CHUNK", 64)
    assert play_match("greedy", "random", 150, rules="katro-4x4").games == 150


def test_a_seed_fixes_the_result_and_another_changes_it():
    results = [play_match("greedy", "random", 100, seed) for seed in (3, 3, 4)]
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_games_come_in_pairs_with_one_opening_and_both_seats():
    starts = []

    def south_and_north(board):
        starts.append(board)
        return board.legal_actions[0]

    seen = []

    def other(board):
        seen.append(board)
        return board.legal_actions[0]

    play_match(south_and_north, other, 20, max_plies=5, opening=4)
    # South is to move after four plies: the first player in even games, the second in odd ones.
    assert starts == seen
    assert len(starts) == 10
    assert all(board.to_move == 0 for board in starts)
    assert len(set(starts)) > 5
    assert katro.Board() not in starts


def test_players_that_draw_nothing_meet_in_many_games():
    played = play_match(first_of_batch, first_of_batch, 400, rules="katro-4x4")
    # A player against himself: what he wins as South he loses as North.
    assert played.wins == played.losses == 200


def test_players_that_draw_do_not_play_the_pair_alike():
    results = [play_match("random", "random", 200, seed, "katro-4x4") for seed in range(5)]
    assert len({played.wins for played in results}) > 1
    assert any(played.wins != played.losses for played in results)


def test_no_opening_starts_at_the_start():
    boards = set()

    def player(board):
        boards.add(board)
        return board.legal_actions[0]

    play_match(player, "greedy", 2, opening=0, max_plies=1)
    assert boards == {katro.Board()}


def test_the_ply_limit_counts_the_opening():
    played = play_match("random", "random", 50, max_plies=6, opening=4)
    assert played.unfinished > 0
    assert played.mean_plies <= 6


def test_an_opening_leaves_nobody_without_seeds():
    def player(board):
        assert not board.is_over
        return board.legal_actions[0]

    # Nearly half of these openings would end the game.
    played = play_match(player, player, 100, rules="katro-4x4", opening=16)
    assert played.mean_plies > 16
    with pytest.raises(ValueError, match="1000 random plies end nearly every game of Rules"):
        play_match("random", "random", 10, rules="katro-4x4", opening=1000)


@pytest.mark.parametrize("rules", ["katro", "katro-fieldnotes", "katra-boaoaka"])
def test_both_kinds_of_callables_see_the_same_games(rules):
    by_board = play_match(first_of_board, "greedy", 60, 5, rules)
    by_batch = play_match(first_of_batch, "greedy", 60, 5, rules)
    assert (by_board.wins, by_board.losses, by_board.mean_plies) == (
        by_batch.wins,
        by_batch.losses,
        by_batch.mean_plies,
    )


def test_a_batch_callable_gets_observations_and_masks_of_the_boards():
    boards, rows = [], []

    def one(board):
        boards.append(board)
        return board.legal_actions[-1]

    def many(observations, action_masks):
        assert observations.dtype == np.uint8
        assert action_masks.dtype == np.bool_
        rows.extend(zip(observations, action_masks, strict=True))
        return action_masks.shape[1] - 1 - action_masks[:, ::-1].argmax(axis=1)

    play_match(one, "greedy", 10, 1)
    play_match(many, "greedy", 10, 1)
    assert len(boards) == len(rows)
    for board, (observation, mask) in zip(boards, rows, strict=True):
        assert board.observation().tolist() == observation.tolist()
        assert board.action_mask.astype(bool).tolist() == mask.tolist()


def test_a_callable_that_does_what_a_name_does_wins_as_often():
    named = play_match("greedy", "random", 200)
    called = play_match(greedy_of_board, "random", 200)
    assert abs(named.win_rate - called.win_rate) < 0.06


def test_a_callable_may_keep_and_change_what_it_gets():
    kept = []

    def player(observations, action_masks):
        actions = action_masks.argmax(axis=1)
        kept.append((observations, observations.copy()))
        action_masks[:] = False
        return actions

    play_match(player, "random", 20, rules="katro-4x4")
    assert all((given == copy).all() for given, copy in kept)


def test_a_callable_is_told_by_the_arguments_it_requires():
    def with_option(board, depth=1):
        return katro.search(board, depth=depth).action

    class Net:
        def __call__(self, observations, action_masks):
            return action_masks.argmax(axis=1)

    assert play_match(with_option, "random", 20, rules="katro-4x4").win_rate > 0.5
    assert play_match(Net(), "random", 10, rules="katro-4x4").a == "Net"
    star = play_match(lambda *batch: batch[1].argmax(axis=1), "random", 10, rules="katro-4x4")
    assert star.games == 10


def test_greedy_beats_random():
    assert play_match("greedy", "random", 1000).win_rate > 0.95


def test_minimax_beats_greedy():
    assert play_match("minimax:2", "greedy", 200).interval[0] > 0.6


# Ratings


def test_rate_orders_the_ladder_and_anchors_it():
    rating = rate(games=60, rules="katro-4x4", ladder=LADDER[:3])
    assert rating.names == ("minimax:2", "greedy", "random")
    assert rating.elo[-1] == 0
    assert rating.elo_interval[-1] == (0, 0)
    assert rating.anchor == "random"
    assert rating.elo[0] > rating.elo[1] > 100
    assert len(rating.matches) == 3
    assert all(row["games"] == 120 for row in rating.rows)
    assert sum(row["wins"] for row in rating.rows) <= 180


def test_rate_takes_names_callables_and_a_dict_of_them():
    rating = rate({"mine": first_of_batch}, 20, rules="katro-4x4", ladder=["random"])
    assert set(rating.names) == {"mine", "random"}
    rating = rate([first_of_board, "greedy"], 20, rules="katro-4x4", ladder=["random", "greedy"])
    assert set(rating.names) == {"first_of_board", "greedy", "random"}
    assert rate("greedy", 10, ladder=["random"]).names == ("greedy", "random")
    assert rate({"mine": first_of_batch}, 20, rules="katro-4x4", ladder=["random"]) == rate(
        {"mine": first_of_batch}, 20, rules="katro-4x4", ladder=["random"]
    )


def test_a_match_of_a_rating_is_seen_from_both_sides():
    rating = rate(games=20, rules="katro-4x4", ladder=LADDER[:2])
    there, back = rating.between("greedy", "random"), rating.between("random", "greedy")
    assert (there.wins, there.losses) == (back.losses, back.wins)
    with pytest.raises(KeyError):
        rating.between("greedy", "nobody")


def test_a_rating_is_a_table_of_a_line_for_every_player():
    rating = rate(games=20, rules="katro-4x4", ladder=LADDER[:2])
    assert len(str(rating).splitlines()) == 3
    lines = rating.to_markdown().splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {5}
    assert lines[-1].startswith("| random | 0 |")


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"games": 0}, "games must be at least 1, got 0"),
        ({"games": -5}, "games must be at least 1, got -5"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"opening": -1}, "opening must be at least 0, got -1"),
        ({"max_plies": 4}, "max_plies must be more than the 4 plies of an opening, got 4"),
        ({"rules": "chess"}, "chess"),
        ({"a": "strong"}, 'unknown policy "strong", known are random, greedy, minimax:DEPTH'),
        ({"b": "minimax:0"}, "the depth of minimax must be 1 to 64, got 0"),
        ({"b": "minimax:-1"}, "the depth of minimax must be 1 to 64, got -1"),
    ],
)
def test_a_match_refuses_a_wrong_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        play_match(**{"a": "random", "b": "random", **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"games": 1.5}, "games must be an integer, got 1.5"),
        ({"seed": "x"}, "seed must be an integer, got 'x'"),
        ({"a": 3}, "a player must be the name of a policy or a callable, got 3"),
        ({"b": None}, "a player must be the name of a policy or a callable, got None"),
        ({"b": lambda: 0}, "the player <lambda> must require one argument, a board, or two"),
        ({"b": lambda x, y, z: 0}, "must require one argument, a board, or two"),
        ({"a": lambda board: "a"}, "the player <lambda> in game 0: an action must be an integer"),
        ({"a": lambda board: 1.0}, "an action must be an integer, got 1.0"),
        ({"a": lambda o, m: np.zeros(len(o))}, "in game 0 and 49 more: actions must be integers"),
    ],
)
def test_a_match_refuses_a_wrong_kind(arguments, message):
    with pytest.raises(TypeError, match=message):
        play_match(**{"a": "random", "b": "random", "games": 100, **arguments})


def test_an_illegal_action_names_the_callable_and_the_game():
    def bad_board(board):
        return 6

    def bad_batch(observations, action_masks):
        actions = action_masks.argmax(axis=1)
        actions[3] = -1
        return actions

    with pytest.raises(katro.IllegalMoveError, match="the player bad_board in game 1: action 6 is"):
        play_match("random", bad_board, 10)
    with pytest.raises(
        katro.IllegalMoveError, match="the player bad_batch in game 6: action -1 is"
    ):
        play_match(bad_batch, "random", 10)


def test_a_wrong_shape_names_the_callable_and_the_game():
    def wide(observations, action_masks):
        return action_masks.astype(int)

    with pytest.raises(
        ValueError, match=r"the player wide in game 0 .* shape \(5,\), got \(5, 6\)"
    ):
        play_match(wide, "random", 10)


def test_rate_refuses_too_few_players_and_two_of_a_name():
    with pytest.raises(ValueError, match="at least two players"):
        rate(ladder=["random"])
    with pytest.raises(ValueError, match="two players have the name '<lambda>'"):
        rate([lambda board: 0, lambda board: 1])
    with pytest.raises(ValueError, match="two players have the name 'random'"):
        rate({"random": first_of_batch})
    with pytest.raises(ValueError, match="unknown policy"):
        rate(["strong"])


def test_a_progress_bar_is_shown_when_asked_for(capsys):
    pytest.importorskip("tqdm")
    play_match("random", "random", 10, rules="katro-4x4", progress=True)
    assert "random against random" in capsys.readouterr().err
    play_match("random", "random", 10, rules="katro-4x4")
    assert capsys.readouterr().err == ""
