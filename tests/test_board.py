"""`Board`, `Rules` and `perft` as values in Python."""

import copy
import pickle
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from games import NAMES, RULES, random_boards, random_game, read_lines, rotated

import katro
from katro import Board, IllegalMoveError, Rules

START = "2,2,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S"
INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
NOT_INTEGERS = [
    1.5,
    1.0,
    float("nan"),
    None,
    "1",
    b"1",
    1j,
    [1],
    (1,),
    np.float64(1),
    np.ones(2, int),
]


def message(error):
    """The message of an error: one lower-case sentence without a full stop."""
    text = str(error.value)
    assert text
    assert "\n" not in text
    assert not text[0].isupper()
    assert not text.endswith(".")
    return text


# A value that does not change


def test_a_board_cannot_be_changed():
    board = Board()
    for name in ("rules", "to_move", "winner", "is_over", "notation", "legal_actions", "other"):
        with pytest.raises(AttributeError):
            setattr(board, name, 0)
        with pytest.raises((AttributeError, TypeError)):
            delattr(board, name)


@pytest.mark.parametrize("name", ["rows", "columns", "seeds", "total_seeds", "name", "other"])
def test_rules_cannot_be_changed(name):
    with pytest.raises(AttributeError):
        setattr(Rules(), name, 1)


@pytest.mark.parametrize("take", [Board.grid, Board.observation, lambda board: board.action_mask])
def test_the_arrays_of_a_board_are_new_and_its_owner_may_write_to_them(take):
    board = Board.from_notation("0,1,1,0/3,2,2,2/2,2,2,2/2,0,2,2 S")
    first, second = take(board), take(board)
    assert not np.shares_memory(first, second)
    first += 1
    np.testing.assert_array_equal(take(board), second)
    assert board == Board.from_notation("0,1,1,0/3,2,2,2/2,2,2,2/2,0,2,2 S")


def test_play_leaves_the_board_unchanged(rules):
    for board in random_boards(rules, 100, seed=1):
        before = (board.notation, board.grid().tolist(), hash(board), board.rules)
        for action in board.legal_actions:
            board.play(action)
            board.trace(action)
        assert (board.notation, board.grid().tolist(), hash(board), board.rules) == before


def test_boards_are_equal_if_seeds_player_and_rules_are(rules):
    for board in random_boards(rules, 100, seed=2, over=True):
        same = Board.from_grid(board.grid().tolist(), board.to_move, board.rules, board.bound)
        assert same is not board
        assert same == board
        assert not same != board  # noqa: SIM202
        assert hash(same) == hash(board)
        assert len({same, board}) == 1


def test_boards_that_differ_are_unequal_and_hash_differently():
    south = Board("katro-4x4")
    north = Board.from_notation(START[:-1] + "N")
    moved = Board.from_notation("1,3,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S")
    other_rules = Board.from_notation(START, Rules(2, 4, 3))
    boards = [south, north, moved, other_rules]
    assert len({*boards}) == len({hash(board) for board in boards}) == 4
    assert all((a == b) == (a is b) for a in boards for b in boards)


def test_two_boards_that_differ_in_the_player_to_move_hash_differently(rules):
    # kaggle-environments#1295: a repetition was keyed on the board alone.
    for board in random_boards(rules, 50, seed=3):
        other = Board.from_grid(board.grid().tolist(), 1 - board.to_move, rules)
        assert other != board
        assert hash(other) != hash(board)


def test_a_board_is_unequal_to_other_things():
    board = Board()
    for other in (None, 0, board.notation, board.grid().tolist(), Rules()):
        assert board != other
        assert not board == other  # noqa: SIM201
    with pytest.raises(TypeError):
        board < Board()  # noqa: B015


def test_hashes_of_boards_spread():
    boards = {board for seed in range(20) for *_, board in random_game(Rules(), seed)}
    assert len({hash(board) for board in boards}) == len(boards) > 1000


# Copies, pickles, text


@pytest.mark.parametrize("remake", [copy.copy, copy.deepcopy])
def test_copies_of_a_board_are_equal(remake, rules):
    for board in random_boards(rules, 20, seed=4, over=True):
        assert remake(board) == board
        assert remake(board).rules == rules
        assert remake([board, {"board": board}]) == [board, {"board": board}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_boards_and_rules_pickle(protocol, rules):
    # PettingZoo#1277, open_spiel#88: serialising lost the player to move.
    for board in random_boards(rules, 20, seed=5, over=True):
        again = pickle.loads(pickle.dumps(board, protocol))
        assert again == board
        assert (again.to_move, again.rules) == (board.to_move, rules)
    again = pickle.loads(pickle.dumps(rules, protocol))
    assert again == rules
    assert hash(again) == hash(rules)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_laps_and_errors_pickle(protocol):
    laps = Board().trace(2)
    again = pickle.loads(pickle.dumps(laps, protocol))
    assert again == laps
    assert type(again[0]) is katro.Lap
    with pytest.raises(IllegalMoveError) as error:
        Board().play(6)
    again = pickle.loads(pickle.dumps(error.value, protocol))
    assert type(again) is IllegalMoveError
    assert str(again) == str(error.value)


def test_repr_rebuilds_a_board_and_its_rules(rules):
    names = {"Board": Board, "Rules": Rules}
    assert eval(repr(rules), names) == rules
    for board in random_boards(rules, 100, seed=6, over=True):
        assert eval(repr(board), names) == board
        assert eval(repr(board), names).rules == rules


def test_str_draws_the_board():
    assert str(Board.from_notation("2,0,10,2/2,2,2,2/1,2,3,4/0,0,0,7 N")).splitlines() == [
        "North   d   c   b   a",
        "        2   .  10   2",
        "        2   2   2   2",
        "      ---------------",
        "        1   2   3   4",
        "        .   .   .   7",
        "South   a   b   c   d",
        "North to move",
    ]


def test_str_tells_the_winner():
    assert "won" in str(Board.from_notation("0,0/0,0/0,0/1,0 N")).splitlines()[-1]


def test_svg_is_xml_and_shows_every_number_above_a_handful(rules):
    for board in random_boards(rules, 30, seed=7, over=True):
        root = ElementTree.fromstring(board._repr_svg_())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        text = " ".join(root.itertext()).replace(",", " ").replace("/", " ").split()
        assert all(str(seeds) in text for seeds in board.grid().ravel().tolist())


def test_different_boards_are_drawn_differently():
    boards = random_boards(Rules(), 50, seed=8)
    assert len({board._repr_svg_() for board in boards}) == len({*boards})
    assert len({str(board) for board in boards}) == len({*boards})
    assert len({board._rgb().tobytes() for board in boards}) == len({*boards})


# Notation


def test_notation_round_trips(rules):
    for board in random_boards(rules, 300, seed=9, over=True):
        assert Board.from_notation(board.notation, rules) == board
        if rules == Rules(rules.rows, rules.columns):
            assert Board.from_notation(board.notation) == board


def test_notation_writes_rows_from_the_top_and_the_player():
    assert Board("katro-4x4").notation == START
    board = Board.from_grid([[1, 0], [12, 3]], to_move=1)
    assert board.notation == "1,0/12,3 N"


@pytest.mark.parametrize("text", read_lines("bad_notation.txt"))
def test_malformed_notation_is_refused(text):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Board.from_notation(text)
    assert type(error.value) is ValueError
    message(error)


@pytest.mark.parametrize("text", read_lines("bad_notation.txt"))
@pytest.mark.parametrize("name", NAMES)
def test_malformed_notation_is_refused_with_any_rules(text, name):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Board.from_notation(text, name)
    message(error)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("2,2/2,2 W", "W"),
        ("2,2/2,2 s", '"s"'),
        ("2,x/2,2 S", '"x"'),
        ("2,-7/2,2 S", "-7"),
        ("2,07/2,2 S", "07"),
        ("2,2/2,2/2 S", "row 3"),
        ("2,2/2,2/2,2 S", "3"),
        ("200,2/2,98 S", "302"),
        ("1,1,1,1,1,1,1,1,1/1,1,1,1,1,1,1,1,1 S", "9"),
        ("0,0/0,0 S", "without seeds"),
    ],
)
def test_the_message_shows_what_is_wrong_in_a_notation(text, part):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Board.from_notation(text)
    assert part in message(error)


def test_notation_of_another_board_is_refused():
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Board.from_notation(START, "katro")
    assert "6 x 6" in message(error)
    assert "4 x 4" in message(error)


@pytest.mark.parametrize("value", [None, 1, b"2,2/2,2 S", ["2,2/2,2 S"], np.zeros(3)])
def test_notation_must_be_text(value):
    with pytest.raises(TypeError):
        Board.from_notation(value)


def test_text_that_no_encoding_holds_is_refused():
    with pytest.raises(ValueError):  # noqa: PT011
        Board.from_notation("2,2/2,2 \ud800")


# Grids


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_grid_of_any_integers_round_trips(dtype, rules):
    for board in random_boards(rules, 30, seed=10, over=True, most=min(rules.total_seeds, 120)):
        grid = board.grid().astype(dtype)
        for form in (
            grid,
            grid.tolist(),
            np.asfortranarray(grid),
            grid.astype(f">{grid.dtype.str[1:]}"),
        ):
            assert Board.from_grid(form, board.to_move, rules, board.bound) == board


def test_a_grid_may_be_a_view_read_only_or_made_of_tuples():
    board = Board.from_notation("1,0,3,4/2,2,2,2/2,2,2,2/5,6,7,8 N")
    wide = np.repeat(board.grid().astype(int), 2, axis=1)
    assert Board.from_grid(wide[:, ::2], 1) == board
    fixed = board.grid().astype(int)
    fixed.flags.writeable = False
    assert Board.from_grid(fixed, 1) == board
    assert Board.from_grid(tuple(map(tuple, fixed.tolist())), 1) == board
    assert Board.from_grid([list(row) for row in fixed], np.int8(1)) == board


def test_a_board_keeps_no_reference_to_its_grid():
    grid = np.full((4, 4), 2)
    board = Board.from_grid(grid)
    grid[:] = 0
    assert board == Board("katro-4x4")


def test_grid_and_observation_are_contiguous_writable_bytes(rules):
    for board in random_boards(rules, 10, seed=11):
        for array in (board.grid(), board.observation()):
            assert array.dtype == np.uint8
            assert array.shape == (2 * rules.rows, rules.columns)
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert array.flags.owndata or array.base is not None


def test_from_grid_takes_the_standard_rules_of_that_size():
    assert Board.from_grid(np.full((4, 4), 3)).rules == Rules.named("katro-4x4")
    assert Board.from_grid(np.full((4, 4), 3), rules=Rules(2, 4, 3)) == Board(Rules(2, 4, 3))


@pytest.mark.parametrize(
    "shape", [(), (0,), (36,), (3, 6), (5, 6), (8, 6), (6, 9), (6, 0), (0, 6), (6, 6, 1), (1, 6, 6)]
)
def test_a_grid_of_a_shape_that_no_board_has_is_refused(shape):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Board.from_grid(np.ones(shape, int))
    message(error)


@pytest.mark.parametrize("shape", [(6, 5), (4, 6), (6, 3), (3, 12), (36, 1)])
def test_a_grid_of_another_board_than_that_of_the_rules_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(6, 6\)"):
        Board.from_grid(np.ones(shape, int), rules="katro")


@pytest.mark.parametrize(
    ("grid", "part"),
    [
        ([[1, -1], [0, 1]], "-1"),
        ([[-(2**63), 1], [0, 1]], str(-(2**63))),
        ([[0, 0], [0, 0]], "without seeds"),
        ([[255, 0], [0, 1]], "256"),
        ([[256, 0], [0, 0]], "256"),
        ([[2**63 - 1, 2**63 - 1], [2**63 - 1, 0]], "255"),
        (np.array([[2**64 - 1, 0], [0, 1]], np.uint64), "255"),
        (np.array([[2**63, 2**63], [0, 0]], np.uint64), "255"),
    ],
)
def test_a_grid_of_impossible_numbers_is_refused(grid, part):
    with pytest.raises(ValueError, match=part) as error:
        Board.from_grid(grid)
    message(error)


@pytest.mark.parametrize(
    "grid",
    [
        np.ones((4, 4)),
        np.full((4, 4), np.nan),
        np.ones((4, 4), np.float32),
        np.ones((4, 4), bool),
        np.ones((4, 4), complex),
        np.ones((4, 4), object),
        np.full((4, 4), "1"),
        [["1", "1"], ["1", "1"]],
        [[1.0, 1], [1, 1]],
        [[None, 1], [1, 1]],
        [[10**30, 1], [1, 1]],
        "1,1/1,1 S",
        None,
        {},
        object(),
    ],
)
def test_a_grid_of_other_things_than_integers_is_refused(grid):
    with pytest.raises(TypeError, match="integers"):
        Board.from_grid(grid)


def test_a_ragged_grid_is_refused():
    with pytest.raises(ValueError):  # noqa: PT011
        Board.from_grid([[1, 1], [1]])


@pytest.mark.parametrize("to_move", [-1, 2, 10**30, 2**63])
def test_from_grid_refuses_a_third_player(to_move):
    with pytest.raises(ValueError, match=r"0 .* 1") as error:
        Board.from_grid([[1], [1]], to_move)
    assert str(to_move) in message(error)


@pytest.mark.parametrize("to_move", [0.0, "0", None, [0]])
def test_from_grid_refuses_a_player_that_is_no_integer(to_move):
    with pytest.raises(TypeError, match="integer"):
        Board.from_grid([[1], [1]], to_move)


# What the player to move sees


def test_the_observation_of_north_is_the_grid_turned_by_180_degrees(rules):
    for board in random_boards(rules, 100, seed=12, over=True):
        turned = np.rot90(board.grid(), 2) if board.to_move else board.grid()
        np.testing.assert_array_equal(board.observation(), turned)


def test_swapped_sides_see_the_same(rules):
    # PettingZoo#1004: the planes of one side of a chess board were mirrored.
    for board in random_boards(rules, 100, seed=13, over=True):
        np.testing.assert_array_equal(rotated(board).observation(), board.observation())
        np.testing.assert_array_equal(rotated(board).action_mask, board.action_mask)


def test_the_own_outer_row_is_at_the_bottom_and_column_0_at_the_left():
    board = Board.from_notation("1,2,3/4,5,6/7,8,9/10,11,12 N")
    assert board.observation().tolist() == [[12, 11, 10], [9, 8, 7], [6, 5, 4], [3, 2, 1]]


def succeeds(board, action):
    try:
        board.play(action)
    except IllegalMoveError:
        return False
    return True


@pytest.mark.parametrize("rules", RULES)
def test_legal_actions_are_those_that_can_be_played(rules):
    # Pgx#204, Pgx#1049: masks that were wrong in some states. 100,000 actions on all boards.
    asked = 0
    for board in random_boards(rules, 20_000 // rules.num_actions, seed=14, over=True):
        playable = [a for a in range(-1, rules.num_actions + 1) if succeeds(board, a)]
        asked += rules.num_actions + 2
        assert playable == board.legal_actions
        mask = np.ones(rules.num_actions) if board.is_over else np.zeros(rules.num_actions)
        mask[playable] = 1
        np.testing.assert_array_equal(board.action_mask, mask)
    assert asked > 20_000


def test_an_open_board_has_a_legal_action(rules):
    # entity-neural-network/incubator#186, MicroRTS-Py#8: masks without any action.
    for board in random_boards(rules, 500, seed=15):
        assert board.legal_actions
        assert sorted({*board.legal_actions}) == board.legal_actions


def test_the_mask_is_what_discrete_sample_wants():
    mask = Board().play(0).action_mask
    assert mask.dtype == np.int8
    assert mask.shape == (6,)


# Playing


@pytest.mark.parametrize("dtype", INTEGERS)
def test_play_accepts_integers_of_numpy(dtype):
    board = Board()
    assert board.play(np.dtype(dtype).type(3)) == board.play(3)
    assert board.trace(np.array(3, dtype)) == board.trace(3)


@pytest.mark.parametrize(
    "action", [-1, 6, 64, 70, 255, 256, 2**31, 2**63 - 1, -(2**63), 2**64, 10**30]
)
def test_play_refuses_an_action_outside_the_space(action):
    for ask in (Board().play, Board().trace):
        with pytest.raises(IllegalMoveError) as error:
            ask(action)
        assert str(action) in message(error)
        assert "0, 1, 2, 3, 4, 5" in message(error)
        assert Board().notation in message(error)


def test_play_rejects_an_empty_hole():
    board = Board.from_notation("2,2,2,2/2,2,2,2/2,2,2,2/0,2,0,2 S")
    with pytest.raises(IllegalMoveError, match="illegal action 0: legal are 1, 3 in 2,2"):
        board.play(0)


@pytest.mark.parametrize("action", NOT_INTEGERS, ids=repr)
def test_play_refuses_what_is_no_integer(action):
    for ask in (Board().play, Board().trace):
        with pytest.raises(TypeError, match="integer"):
            ask(action)


def test_an_illegal_move_is_a_value_error():
    assert issubclass(IllegalMoveError, ValueError)
    assert IllegalMoveError.__module__ == "katro"


def test_the_laps_of_a_move_fit_together(rules):
    for board in random_boards(rules, 100, seed=16):
        for action in board.legal_actions:
            laps = board.trace(action)
            after = board.play(action)
            theirs = np.s_[: rules.rows] if board.to_move == 0 else np.s_[rules.rows :]
            lost = int(board.grid()[theirs].sum()) - int(after.grid()[theirs].sum())
            assert sum(lap.taken for lap in laps) == lost
            for lap, following in pairwise(laps):
                assert following.lifted == lap.landed
                # Only with switches a seed that falls into an empty hole can capture.
                least = 1 if rules not in RULES and lap.taken else 2
                assert following.seeds >= least + lap.taken
            for lap in laps:
                assert bool(lap.captured) == (lap.taken > 0)
                assert len(lap.captured) <= (rules.rows if rules.boaoaka else 1)
                assert lap.taken == 0 or not lap.captured or lap.landed[1] == lap.captured[0][1]
            assert laps[0].seeds == board.grid()[laps[0].lifted]
            if after.is_over:
                least = 2 if rules in RULES else 1
                assert after.grid()[laps[-1].landed] >= least + laps[-1].taken  # R10
            elif not (rules.capture_on_empty and len(laps) == 10_000):
                assert after.grid()[laps[-1].landed] == 1  # R7


# Counting


def test_perft_of_a_board_counts_what_play_reaches():
    def count(board, depth):
        if depth == 0:
            return 1
        return sum(count(board.play(action), depth - 1) for action in board.legal_actions)

    for board in random_boards(Rules.named("katro-6x3"), 20, seed=17, over=True):
        for depth in range(5):
            assert katro.perft(board, depth) == count(board, depth)


@pytest.mark.parametrize("depth", [-1, 101, 2**31, -(2**63), 10**30])
def test_perft_refuses_a_depth_out_of_range(depth):
    with pytest.raises(ValueError, match="depth") as error:
        katro.perft(Board(), depth)
    assert str(depth) in message(error)


@pytest.mark.parametrize("depth", [1.0, "1", None, [1]])
def test_perft_refuses_a_depth_that_is_no_integer(depth):
    with pytest.raises(TypeError, match="depth must be an integer"):
        katro.perft(Board(), depth)


@pytest.mark.parametrize("board", [None, "katro", START, Rules()])
def test_perft_wants_a_board(board):
    with pytest.raises(TypeError):
        katro.perft(board, 1)


# Rules


def test_the_named_rules():
    sizes = {name: (Rules.named(name).rows, Rules.named(name).columns) for name in NAMES}
    assert sizes == {
        "katro": (3, 6),
        "katro-6x3": (3, 3),
        "katro-4x6": (2, 6),
        "katro-4x4": (2, 4),
    }
    for name in NAMES:
        rules = Rules.named(name)
        assert rules.name == name
        assert rules.seeds == 2
        assert Rules(rules.rows, rules.columns) == rules
        assert Board(name) == Board(rules)
    assert Rules(2, 5).name is None
    assert Rules() == Rules.named("katro") == Board().rules


def test_rules_are_equal_if_their_numbers_are():
    assert Rules(rows=2, columns=4, seeds=3) == Rules(2, 4, 3)
    different = {
        Rules(rows, columns, seeds) for rows in (1, 2) for columns in (3, 4) for seeds in (1, 2)
    }
    assert len(different) == 8
    assert Rules() != "katro"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"rows": 0}, "rows"),
        ({"rows": 4}, "4"),
        ({"rows": -1}, "-1"),
        ({"columns": 0}, "columns"),
        ({"columns": 9}, "9"),
        ({"columns": -1}, "-1"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": -1}, "-1"),
        ({"seeds": 300}, "300"),
        ({"seeds": 8}, "255"),
        ({"rows": 2**63 - 1}, "rows"),
        ({"rows": 2**64}, "rows"),
        ({"columns": -(2**63)}, "columns"),
        ({"seeds": 2**63 - 1}, "seeds"),
        ({"rows": 10**30}, "rows"),
        ({"seeds": 10**30}, "seeds"),
    ],
)
def test_impossible_rules_are_refused(arguments, part):
    with pytest.raises(ValueError, match=part) as error:
        Rules(**arguments)
    message(error)


@pytest.mark.parametrize("name", ["rows", "columns", "seeds"])
@pytest.mark.parametrize("value", [1.5, 1.0, "x", "2", None, [2], np.float32(2)], ids=repr)
def test_rules_of_other_things_than_integers_are_refused(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        Rules(**{name: value})


def test_the_most_seeds_that_rules_allow():
    assert Rules(3, 6, 7).total_seeds == 252
    assert Rules(1, 1, 127).total_seeds == 254
    with pytest.raises(ValueError, match="255"):
        Rules(1, 1, 128)


@pytest.mark.parametrize(
    "take", [Rules.named, Board, lambda name: Board.from_notation(START, name)]
)
@pytest.mark.parametrize("name", ["", "Katro", "katro ", "katro-4X4", "katro-8x8", "mancala"])
def test_an_unknown_name_lists_the_known_ones(take, name):
    with pytest.raises(ValueError, match=f'"{name}"') as error:
        take(name)
    text = message(error)
    assert all(known in text for known in NAMES)


@pytest.mark.parametrize("rules", [1, 2.5, b"katro", ["katro"], (3, 6, 2), Board()])
def test_rules_must_be_rules_or_a_name(rules):
    with pytest.raises(TypeError, match="rules must be"):
        Board(rules)


def test_actions_have_the_letters_of_their_columns():
    rules = Rules(1, 8)
    names = [rules.action_name(action) for action in range(8)]
    assert names == list("abcdefgh")
    assert [rules.parse_action(name) for name in names] == list(range(8))
    for action in (-1, 8, 10**30):
        with pytest.raises(ValueError, match=str(action)):
            rules.action_name(action)
    for name in ("i", "A", "", "ab", "0"):
        with pytest.raises(ValueError, match="a, b, c, d, e, f, g, h"):
            rules.parse_action(name)
