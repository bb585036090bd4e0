"""The rules, clause by clause. A board is written as drawn, South at the bottom."""

import numpy as np
import pytest
from games import RULES, random_boards, random_game, rotated

import katro
from katro import Board

# The circuit of South (R4) on each board, hole by hole as drawn.
CIRCUITS = {
    "katro": [
        *[(5, 0), (5, 1), (5, 2), (5, 3), (5, 4), (5, 5)],
        *[(4, 5), (4, 4), (4, 3), (4, 2), (4, 1), (4, 0)],
        *[(3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5)],
    ],
    "katro-6x3": [(5, 0), (5, 1), (5, 2), (4, 2), (4, 1), (4, 0), (3, 0), (3, 1), (3, 2)],
    "katro-4x6": [
        *[(3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5)],
        *[(2, 5), (2, 4), (2, 3), (2, 2), (2, 1), (2, 0)],
    ],
    "katro-4x4": [(3, 0), (3, 1), (3, 2), (3, 3), (2, 3), (2, 2), (2, 1), (2, 0)],
    katro.Rules(1, 6): [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)],
}
STEPS = [
    (rules, hole, path[(i + 1) % len(path)])
    for rules, path in CIRCUITS.items()
    for i, hole in enumerate(path)
]


def plays(before, action, after, *, laps, captured=0, winner=None):
    """Checks what an action does, for South and, turned by 180 degrees, for North."""
    for board, result in [(before, after), (rotated(before), rotated(after))]:
        assert board.play(action) == result, f"{board.play(action)}"
        trace = board.trace(action)
        assert len(trace) == laps
        assert sum(lap.taken for lap in trace) == captured
        won_by_south = winner if board is before or winner is None else 1 - winner
        assert result.winner == won_by_south


def position(*rows):
    return Board.from_notation("".join(rows))


def test_r1_six_rows_of_six_holes_hold_two_seeds_each():
    board = Board()
    assert board.grid().shape == (6, 6)
    assert (board.grid() == 2).all()
    assert board.grid().sum() == board.rules.total_seeds == 72


@pytest.mark.parametrize("rules", RULES)
def test_r1_seeds_never_leave_the_board(rules):
    for seed in range(3):
        for _, _, after in random_game(rules, seed):
            assert after.grid().sum() == rules.total_seeds


def test_r2_south_moves_first_and_the_turn_alternates():
    board = Board()
    assert board.to_move == 0
    assert board.play(0).to_move == 1
    assert board.play(0).play(0).to_move == 0


def test_r2_south_owns_the_three_rows_at_the_bottom():
    start = Board().grid()
    after = Board().play(0).grid()
    assert (after[3:] != start[3:]).any()
    assert Board().play(0).trace(0)[0].lifted[0] == 0


@pytest.mark.parametrize("rules", RULES)
def test_r2_nobody_sows_into_the_other_side(rules):
    for seed in range(3):
        for board, action, after in random_game(rules, seed):
            mover = board.to_move
            theirs = np.s_[: rules.rows] if mover == 0 else np.s_[rules.rows :]
            assert (after.grid()[theirs] <= board.grid()[theirs]).all()
            lap = board.trace(action)[0]
            assert (lap.lifted[0] < rules.rows) == (lap.landed[0] < rules.rows) == (mover == 1)


@pytest.mark.parametrize(
    ("south", "legal", "row"),
    [
        ("4,0,0,0,0,1/0,3,0,0,0,0/0,0,2,0,0,1 S", [2, 5], 5),
        ("4,0,0,0,0,1/0,3,0,0,0,0/0,0,0,0,0,0 S", [1], 4),
        ("4,0,0,0,0,1/0,0,0,0,0,0/0,0,0,0,0,0 S", [0, 5], 3),
    ],
)
def test_r3_the_mover_starts_from_his_outermost_row_that_holds_seeds(south, legal, row):
    board = position("0,0,0,0,0,0/", "0,0,0,0,0,0/", "0,0,0,1,0,0/", south)
    assert board.legal_actions == rotated(board).legal_actions == legal
    for action in range(6):
        if action in legal:
            assert board.trace(action)[0].lifted == (row, action)
        else:
            with pytest.raises(katro.IllegalMoveError):
                board.play(action)


def test_r3_a_hole_with_a_single_seed_may_be_chosen():
    plays(
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,1,0,0/",
            "0,0,0,0,0,2/",
            "0,0,0,0,0,0/",
            "0,1,0,0,0,0 S",
        ),
        1,
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,1,0,0/",
            "0,0,0,0,0,2/",
            "0,0,0,0,0,0/",
            "0,0,1,0,0,0 N",
        ),
        laps=1,
    )


def test_r3_columns_count_from_the_left_of_the_mover():
    south = Board()
    assert [south.trace(c)[0].lifted for c in range(6)] == [(5, c) for c in range(6)]
    north = rotated(south)
    assert [north.trace(c)[0].lifted for c in range(6)] == [(0, 5 - c) for c in range(6)]


@pytest.mark.parametrize(("rules", "hole", "following"), STEPS)
def test_r4_a_seed_steps_along_the_circuit(rules, hole, following):
    rules = rules if isinstance(rules, katro.Rules) else katro.Rules.named(rules)
    before = np.zeros((2 * rules.rows, rules.columns), int)
    before[0, 0] = 1
    after = before.copy()
    before[hole] = after[following] = 1
    plays(
        Board.from_grid(before, 0, rules),
        hole[1],
        Board.from_grid(after, 1, rules),
        laps=1,
    )


def test_r4_the_facing_hole_is_in_the_same_drawn_column():
    board = position(
        "1,0,0,0,0,0/",
        "0,0,0,0,0,0/",
        "5,4,3,3,4,5/",
        "1,1,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,0,0,0,0,0 S",
    )
    assert board.trace(0)[0].captured == ((2, 1),)
    # The opponent counts that column as 5 - 1.
    assert rotated(board).trace(0)[0].captured == ((3, 4),)


@pytest.mark.parametrize("rules", RULES)
def test_r4_both_players_see_the_same_circuit(rules):
    last = (2 * rules.rows - 1, rules.columns - 1)

    def turned(hole):
        return last[0] - hole[0], last[1] - hole[1]

    for board in random_boards(rules, 150, seed=4, over=True):
        turned_board = rotated(board)
        assert turned_board.legal_actions == board.legal_actions
        assert turned_board.winner == (None if board.winner is None else 1 - board.winner)
        for action in board.legal_actions:
            assert turned_board.play(action) == rotated(board.play(action))
            assert turned_board.trace(action) == [
                lap._replace(
                    lifted=turned(lap.lifted),
                    landed=turned(lap.landed),
                    captured=tuple(map(turned, lap.captured)),
                )
                for lap in board.trace(action)
            ]


def test_r5_the_seeds_fall_one_by_one_into_the_following_holes():
    plays(
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,1,0,0/",
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,3,7,3 S",
        ),
        3,
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,1,0,0/",
            "1,0,0,0,0,0/",
            "0,0,0,0,0,1/",
            "0,0,0,0,8,4 N",
        ),
        laps=1,
    )


def test_r5_and_r7_a_lap_of_18_seeds_ends_in_its_own_empty_hole():
    plays(
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "3,3,3,3,3,3/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,18,0,0,0 S",
        ),
        2,
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "3,3,3,3,3,3/",
            "1,1,1,1,1,1/",
            "1,1,1,1,1,1/",
            "1,1,1,1,1,1 N",
        ),
        laps=1,
    )


def test_r5_no_hole_is_skipped_in_a_lap_of_more_than_18_seeds():
    board = position(
        "0,0,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,0,0,0,0,1/",
        "0,0,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,0,20,0,0,0 S",
    )
    first, second = board.trace(2)[:2]
    # The 18th seed falls into the hole it started from, the 20th two holes on.
    assert (first.lifted, first.seeds, first.landed) == ((5, 2), 20, (5, 4))
    assert (second.lifted, second.seeds, second.landed) == ((5, 4), 2, (4, 5))


def test_r6_a_last_seed_in_an_occupied_hole_is_relayed():
    plays(
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "2,2,2,2,2,2/",
            "0,0,0,0,0,1/",
            "0,0,0,0,0,0/",
            "2,0,3,0,0,0 S",
        ),
        0,
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "2,2,2,2,2,2/",
            "0,0,0,0,0,1/",
            "0,0,0,0,0,1/",
            "0,1,0,1,1,1 N",
        ),
        laps=2,
    )


def test_r7_a_last_seed_in_an_empty_hole_ends_the_move_even_facing_seeds():
    plays(
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "9,9,9,9,9,9/",
            "1,0,1,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 S",
        ),
        0,
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "9,9,9,9,9,9/",
            "0,1,1,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 N",
        ),
        laps=1,
    )


def test_r8_and_r9_the_first_lap_must_capture_and_sows_on_after_the_landing_hole():
    before = position(
        "1,0,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,4,0,0,0,0/",
        "1,1,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,0,0,0,0,0 S",
    )
    after = position(
        "1,0,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,0,0,0,0,0/",
        "0,0,1,1,1,1/",
        "0,0,0,0,0,0/",
        "1,1,0,0,0,0 N",
    )
    plays(before, 0, after, laps=2, captured=4)
    assert before.trace(0) == [
        katro.Lap(lifted=(3, 0), seeds=1, landed=(3, 1), captured=((2, 1),), taken=4),
        katro.Lap(lifted=(3, 1), seeds=4 + 2, landed=(5, 1), captured=(), taken=0),
    ]


def test_r8_the_middle_row_captures_when_the_inner_row_is_empty():
    plays(
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,3,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,1,1/",
            "0,0,0,0,0,0 S",
        ),
        5,
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "1,0,0,0,0,0/",
            "1,1,1,1,0,0/",
            "0,0,0,0,0,0 N",
        ),
        laps=2,
        captured=3,
    )


def test_r8_the_outer_row_captures_when_it_alone_holds_seeds():
    plays(
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,3,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,1,1,0,0 S",
        ),
        2,
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,1,1,1/",
            "0,0,0,0,1,1 N",
        ),
        laps=2,
        captured=3,
    )


def test_r8_the_middle_row_does_not_capture_when_the_inner_row_holds_a_seed():
    plays(
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,3,0/",
            "1,0,0,0,0,0/",
            "0,0,0,0,1,1/",
            "0,0,0,0,0,0 S",
        ),
        5,
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,3,0/",
            "1,0,0,0,0,0/",
            "0,0,1,1,0,0/",
            "0,0,0,0,0,0 N",
        ),
        laps=2,
    )


@pytest.mark.parametrize("row", [0, 1, 2])
def test_r8_seeds_are_captured_from_the_innermost_row_that_holds_any(row):
    grid = np.zeros((6, 6), int)
    grid[: row + 1] = [1, 4, 0, 0, 0, 0]
    grid[3, :2] = 1
    board = Board.from_grid(grid)
    assert board.trace(0)[0].captured == ((row, 1),)
    assert board.play(0).grid()[:3].sum() == grid[:3].sum() - 4


def test_r8_an_empty_facing_hole_does_not_fall_through_to_the_next_row():
    plays(
        position(
            "0,7,0,0,0,0/",
            "0,2,0,0,0,0/",
            "0,0,0,0,0,1/",
            "1,1,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 S",
        ),
        0,
        position(
            "0,7,0,0,0,0/",
            "0,2,0,0,0,0/",
            "0,0,0,0,0,1/",
            "0,0,1,1,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 N",
        ),
        laps=2,
    )


def test_r8_the_row_of_the_mover_is_judged_after_the_last_seed_has_fallen():
    # The inner row was empty when the lap began, so the middle row would have captured.
    plays(
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,3/",
            "0,0,0,0,0,0/",
            "13,0,0,0,0,1/",
            "0,0,0,0,0,0 S",
        ),
        0,
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,3/",
            "1,1,1,1,1,1/",
            "0,0,0,1,1,0/",
            "1,1,1,1,1,1 N",
        ),
        laps=2,
    )


def test_r8_a_row_emptied_by_a_capture_gives_its_place_to_the_next():
    plays(
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,2,0/",
            "0,1,0,0,0,0/",
            "1,1,0,0,1,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 S",
        ),
        0,
        position(
            "1,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,1,1,0,1/",
            "0,0,0,0,0,0/",
            "1,1,1,0,0,0 N",
        ),
        laps=3,
        captured=3,
    )


def test_r10_the_capture_of_the_last_seed_ends_the_game_at_once():
    # The four captured seeds stay in the landing hole, with the two that lie there.
    plays(
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,4,0,0,0,0/",
            "1,1,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 S",
        ),
        0,
        position(
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,6,0,0,0,0/",
            "0,0,0,0,0,0/",
            "0,0,0,0,0,0 N",
        ),
        laps=1,
        captured=4,
        winner=0,
    )


@pytest.mark.parametrize("player", ["S", "N"])
@pytest.mark.parametrize(("board", "winner"), [("0,0/0,0/0,0/1,0", 0), ("0,0/0,1/0,0/0,0", 1)])
def test_r10_a_player_without_seeds_has_lost_whoever_is_to_move(board, winner, player):
    board = Board.from_notation(f"{board} {player}")
    assert board.winner == winner
    assert board.is_over
    assert board.legal_actions == []
    for action in range(2):
        with pytest.raises(katro.IllegalMoveError, match="over"):
            board.play(action)
        with pytest.raises(katro.IllegalMoveError, match="over"):
            board.trace(action)


@pytest.mark.parametrize("rules", RULES)
def test_r10_the_mover_never_loses_by_his_own_move(rules):
    won = 0
    for board in random_boards(rules, 1000, seed=10, most=min(rules.total_seeds, 12)):
        for action in board.legal_actions:
            winner = board.play(action).winner
            assert winner in (None, board.to_move)
            won += winner is not None
    assert won > 0


def test_r11_every_move_ends():
    # About one random game in seventy of this board would sow for ever without R10's "at once".
    laps = [
        len(board.trace(action))
        for board in random_boards(katro.Rules.named("katro-4x4"), 5000, seed=11)
        for action in board.legal_actions
    ]
    assert max(laps) < 1000


def test_r12_two_seeds_circle_for_ever_and_only_the_ply_limit_stops_them():
    board = position("0,1,0,0/", "0,0,0,0/", "0,0,0,0/", "1,0,0,0 S")
    env = katro.KatroEnv(rules="katro-4x4", max_plies=1000)
    _, info = env.reset(options={"board": board})
    for ply in range(1, 1001):
        _, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
        assert (reward, terminated, info["winner"]) == (0, False, -1)
        assert truncated == (ply == 1000)


def test_two_rows_capture_from_the_outer_row_when_the_inner_is_empty():
    plays(
        position("1,0,0,0/", "0,3,0,0/", "0,0,0,0/", "1,1,0,0 S"),
        0,
        position("1,0,0,0/", "0,0,0,0/", "0,1,1,1/", "0,0,1,1 N"),
        laps=2,
        captured=3,
    )


def test_two_rows_do_not_capture_from_the_outer_row_when_the_inner_holds_a_seed():
    plays(
        position("1,0,0,0/", "0,3,0,0/", "1,0,0,0/", "1,1,0,0 S"),
        0,
        position("1,0,0,0/", "0,3,0,0/", "1,0,0,0/", "0,0,1,1 N"),
        laps=2,
    )


def test_one_row_starts_again_at_its_beginning_and_captures():
    plays(
        position("2,0,0,1/", "1,0,0,1 S"),
        3,
        position("0,0,0,1/", "1,1,1,1 N"),
        laps=2,
        captured=2,
    )
