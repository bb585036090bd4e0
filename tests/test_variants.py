"""The rule sets with switches: their rules, boards, notation, environments and known answers."""

import copy
import inspect
import itertools
import pickle
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest
from games import SWITCHED, choose, random_boards, random_game, read_lines, rotated, rules_id
from gymnasium.utils.env_checker import check_env

import katro
from katro import Batch, Board, IllegalMoveError, KatroEnv, KatroVectorEnv, Rules

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
MODES = ("NextStep", "SameStep", "Disabled")
DIRECTIONS = ("fixed", "per_move", "per_game")
STEPS = (None, "straight", "diagonal")
SWITCHES = ("direction", "fall_through", "capture_on_empty", "last_seed_steps", "boaoaka")

# Of every named set: rows per side, columns, the switches that are on, the actions.
NAMED = {
    "katro": (3, 6, {}, 6),
    "katro-6x3": (3, 3, {}, 3),
    "katro-4x6": (2, 6, {}, 6),
    "katro-4x4": (2, 4, {}, 4),
    "katro-wikipedia": (3, 6, {"direction": "per_move", "capture_on_empty": True}, 12),
    "katro-ludii": (
        *(3, 6),
        {"direction": "per_move", "fall_through": True, "last_seed_steps": "straight"},
        13,
    ),
    "katro-fieldnotes": (
        *(3, 6),
        {"direction": "per_game", "fall_through": True, "last_seed_steps": "straight"},
        13,
    ),
    "katra-boaoaka": (2, 8, {"direction": "per_game", "boaoaka": True}, 32),
}
VARIANTS = [name for name, (_, _, switches, _) in NAMED.items() if switches]
BINDING = [rules for rules in SWITCHED if rules.direction == "per_game"]

# Every combination of switches that makes sense.
ALL = [
    *(
        Rules(
            2,
            3,
            direction=direction,
            fall_through=fall_through,
            capture_on_empty=capture_on_empty,
            last_seed_steps=steps,
        )
        for direction, fall_through, capture_on_empty, steps in itertools.product(
            DIRECTIONS, (False, True), (False, True), STEPS
        )
    ),
    Rules(2, 3, boaoaka=True),
]

FIELDNOTES = Board("katro-fieldnotes")
# The last seed of South may step; he is bound to the mirrored direction.
LAST = Board.from_notation(
    "0,0,0,0,0,0/0,0,0,0,0,0/0,3,0,0,0,0/0,0,0,0,0,0/0,0,0,0,0,0/0,1,0,0,0,0 S <-",
    "katro-fieldnotes",
)

both_kinds = pytest.mark.parametrize("name", NAMED)
every_switch = pytest.mark.parametrize("rules", SWITCHED, ids=rules_id)
every_binding = pytest.mark.parametrize("rules", BINDING, ids=rules_id)


def switches(rules):
    """The switches of rules by their names."""
    return {name: getattr(rules, name) for name in SWITCHES}


def roomy(rules):
    """The same rules with as many seeds as the board may hold."""
    holes = 2 * rules.rows * rules.columns
    return Rules(rules.rows, rules.columns, 255 // holes, **switches(rules))


def last_seed_boards(rules, n, seed):
    """Boards on which the player to move has a single seed."""
    rng = np.random.default_rng(seed)
    boards = []
    for board in random_boards(rules, n, seed):
        grid = board.grid().astype(int)
        mine = grid[: rules.rows] if board.to_move else grid[rules.rows :]
        mine[...] = 0
        mine[rng.integers(rules.rows), rng.integers(rules.columns)] = 1
        boards.append(Board.from_grid(grid, board.to_move, rules, board.bound))
    return boards


def legal_actions(board):
    """The legal actions by a second, slow reading of R3, V1, V2, V5 and V6."""
    rules = board.rules
    if board.winner is not None:
        return []
    # Rows from the outer one, columns from the left, as the mover sees them.
    side = board.observation()[rules.rows :][::-1].astype(int)
    row = next(row for row in range(rules.rows) if side[row].any())
    if rules.boaoaka:
        starts = [side[r, c] > 0 for r in range(rules.rows) for c in range(rules.columns)]
    else:
        starts = [side[row, column] > 0 for column in range(rules.columns)]
    directions = {"fixed": [True], "per_move": [True, True], "per_game": [True, True]}
    allowed = directions[rules.direction]
    if board.bound is not None and board.bound[board.to_move] is not None:
        allowed = [direction == board.bound[board.to_move] for direction in (0, 1)]
    legal = [start and direction for direction in allowed for start in starts]
    shifts = {None: [], "straight": [0], "diagonal": [0, -1, 1]}[rules.last_seed_steps]
    column = int(side[row].argmax())
    for shift in shifts:
        possible = side.sum() == 1 and row < rules.rows - 1
        legal.append(possible and 0 <= column + shift < rules.columns)
    return [action for action, possible in enumerate(legal) if possible]


def bound_after(board, action):
    """What players are bound to after an action, by V2."""
    rules = board.rules
    if rules.direction != "per_game":
        return None
    starts = rules.columns * (rules.rows if rules.boaoaka else 1)
    bound = list(board.bound)
    if bound[board.to_move] is None and action < 2 * starts:
        bound[board.to_move] = action // starts
    return tuple(bound)


def seen_bound(board):
    """What players are bound to as `info` says it."""
    if board.bound is None:
        return None
    order = [board.to_move, 1 - board.to_move]
    return [-1 if board.bound[player] is None else board.bound[player] for player in order]


def message(error):
    """The text of an error, which is a sentence in lower case."""
    text = str(error.value)
    assert text
    assert not text[0].isupper()
    assert "\n" not in text
    return text


# Whole games


@both_kinds
def test_whole_random_games_on_a_board(name):
    rules = Rules.named(name)
    ended = 0
    for seed in range(4):
        plies = 400 if rules.capture_on_empty else 20_000
        for board, action, after in random_game(name, seed, plies):
            assert board.legal_actions == legal_actions(board)
            assert after.rules == rules
            assert after.to_move == 1 - board.to_move
            assert after.grid().sum() == rules.total_seeds
            assert after.bound == bound_after(board, action)
            if after.is_over:
                assert after.winner == board.to_move  # R10
                assert after.legal_actions == []
                ended += 1
    assert ended == (0 if rules.capture_on_empty else 4)


@both_kinds
@pytest.mark.parametrize("options", [{}, {"observation": "dict"}, {"illegal": "lose"}], ids=str)
def test_whole_random_games_in_an_environment(name, options):
    env = gym.make("katro/Katro-v0", rules=name, max_plies=600, **options)
    rules = Rules.named(name)
    binds = rules.direction == "per_game"
    keys = ["action_mask", "to_move", "winner", "captured", "laps"] + ["bound"] * binds
    for seed in range(3):
        env.action_space.seed(seed)
        _, info = env.reset(seed=seed)
        assert list(info) == keys
        board, over = Board(name), False
        while not over:
            if binds:
                assert info["bound"].dtype == np.int8
                assert info["bound"].tolist() == seen_bound(board)
            action = env.action_space.sample(info["action_mask"])
            trace, board = board.trace(action), board.play(action)
            observation, reward, terminated, truncated, info = env.step(action)
            assert observation in env.observation_space
            assert list(info) == keys
            assert env.unwrapped.board == board
            assert info["laps"] == len(trace)
            assert info["captured"] == sum(lap.taken for lap in trace)
            assert reward == terminated == (board.winner is not None)
            over = terminated or truncated
        assert info["action_mask"].all()
        assert terminated or name in ("katro", "katro-wikipedia")
        if binds:
            assert info["bound"].tolist() == seen_bound(board)


@both_kinds
@pytest.mark.parametrize("mode", MODES)
def test_whole_random_games_in_a_vector_environment(name, mode):
    n = 20
    envs = KatroVectorEnv(n, rules=name, autoreset_mode=mode, max_plies=300)
    rng = np.random.default_rng(1)
    _, infos = envs.reset(seed=1)
    boards = [Board(name)] * n
    binds = envs.boards()[0].bound is not None
    ended, fresh = np.zeros(n, int), np.zeros(n, bool)
    for _ in range(320):
        assert ("bound" in infos) == ("_bound" in infos) == binds
        if binds:
            assert infos["bound"].dtype == np.int8
            assert infos["bound"].tolist() == [seen_bound(board) for board in boards]
        actions = choose(rng, infos["action_mask"])
        after = [
            Board(name) if new else board.play(int(action))
            for board, action, new in zip(boards, actions, fresh, strict=True)
        ]
        _, rewards, terminated, truncated, infos = envs.step(actions)
        over = terminated | truncated
        ended += over
        assert rewards.tolist() == [0 if board.winner is None else 1 for board in after]
        fresh = over if mode == "NextStep" else np.zeros(n, bool)
        if mode == "SameStep":
            if binds and over.any():
                last = infos["final_info"]
                assert last["_bound"].tolist() == over.tolist()
                for i in np.flatnonzero(over):
                    assert last["bound"][i].tolist() == seen_bound(after[i])
            after = [Board(name) if end else board for board, end in zip(after, over, strict=True)]
        assert envs.boards() == after
        boards = after
        if mode == "Disabled" and over.any():
            boards = [
                Board(name) if end else board for board, end in zip(boards, over, strict=True)
            ]
            mask = infos["action_mask"]
            _, infos = envs.reset(options={"reset_mask": over})
            # The information of the other games is zero after a partial reset.
            infos["action_mask"][~over] = mask[~over]
            if binds:
                infos["bound"][~over] = [seen_bound(boards[i]) for i in np.flatnonzero(~over)]
    assert (ended > 0).all()


@both_kinds
def test_a_rollout_counts_what_steps_count(name):
    n, plies = 64, 60
    options = {"rules": name, "autoreset_mode": "Disabled", "max_plies": None}
    batch = Batch(n, **options)
    batch.reset()
    rollout = batch.rollout(plies, seed=3)
    boards = batch.boards()
    winners = [board.winner for board in boards]
    assert rollout.wins == (winners.count(0), winners.count(1))
    assert rollout.plies == n * plies or sum(rollout.wins)
    assert rollout.laps >= rollout.plies
    for board in boards:
        assert board.grid().sum() == board.rules.total_seeds
        if board.bound is not None:
            assert None not in board.bound


def test_random_games_of_wikipedia_almost_never_end():
    batch = Batch(200, rules="katro-wikipedia", autoreset_mode="Disabled", max_plies=None)
    batch.reset()
    assert sum(batch.rollout(1000, seed=0).wins) < 10


# Known answers


def from_case(case, rules):
    memory = case["memory"] and tuple(case["memory"])
    return Board.from_grid(case["board"], case["player"], rules, memory)


@pytest.mark.parametrize("name", VARIANTS)
def test_single_moves_match_the_known_answers(name):
    cases = [case for case in read_lines("variants.jsonl") if case["name"] == name]
    assert len(cases) == 75
    for case in cases:
        board = from_case(case, name)
        assert board.bound == (case["memory"] and tuple(case["memory"]))
        assert board.legal_actions == legal_actions(board) == case["legal"]
        after = board.play(case["action"])
        assert after.grid().tolist() == case["result"], case
        assert after.to_move == 1 - case["player"]
        assert after.bound == (case["memory_after"] and tuple(case["memory_after"]))
        assert after.winner == case["winner"]
        trace = board.trace(case["action"])
        assert len(trace) == case["laps"]
        assert sum(lap.taken for lap in trace) == case["captured"]
        assert sum(bool(lap.captured) for lap in trace) == case["captures"]
        for lap, known in zip(trace, case.get("trace", ()), strict="trace" in case):
            lifted, seeds, landed, captured, taken = known
            assert lap == (tuple(lifted), seeds, tuple(landed), tuple(map(tuple, captured)), taken)
        assert rotated(board).play(case["action"]) == rotated(after)


@pytest.mark.parametrize("name", VARIANTS)
def test_single_moves_in_a_batch_match_the_known_answers(name):
    cases = [case for case in read_lines("variants.jsonl") if case["name"] == name]
    rules = roomy(Rules.named(name))
    boards = [from_case(case, rules) for case in cases]
    batch = Batch(len(cases), rules=rules, autoreset_mode="Disabled")
    batch.set_boards(boards)
    masks = batch.action_masks()
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [case["legal"] for case in cases]
    step = batch.step([case["action"] for case in cases])
    assert step.captured.tolist() == [case["captured"] for case in cases]
    assert step.laps.tolist() == [case["laps"] for case in cases]
    won = [case["winner"] is not None for case in cases]
    assert step.terminated.tolist() == won
    assert step.reward.tolist() == won
    for board, case in zip(batch.boards(), cases, strict=True):
        assert board.grid().tolist() == case["result"]
        assert board.bound == (case["memory_after"] and tuple(case["memory_after"]))
        assert board.winner == case["winner"]


@pytest.mark.parametrize(
    "game",
    read_lines("variant_games.jsonl"),
    ids=lambda game: f"{game['name']}-{game['plies']}",
)
def test_whole_games_match_the_known_answers(game):
    board = Board(game["name"])
    env = KatroEnv(rules=game["name"], max_plies=None)
    env.reset()
    laps = captured = 0
    for action in game["actions"]:
        assert board.winner is None
        trace = board.trace(action)
        board = board.play(action)
        *_, terminated, _, info = env.step(action)
        assert env.board == board
        assert terminated == board.is_over
        laps += len(trace)
        captured += sum(lap.taken for lap in trace)
        assert info["laps"] == len(trace)
    assert board.grid().tolist() == game["final"]
    assert board.winner == game["winner"]
    assert board.bound == (game["memory"] and tuple(game["memory"]))
    assert (len(game["actions"]), laps, captured) == (
        *(game["plies"], game["laps"], game["captured"]),
    )


def test_v4_a_move_that_goes_on_for_ever_is_over_after_ten_thousand_laps():
    rules = Rules(2, 2, direction="per_move", capture_on_empty=True)
    board = Board.from_notation("0,1/0,0/1,0/3,1 S", rules)
    trace = board.trace(0)
    assert len(trace) == 10_000
    assert trace[8:] == trace[:-8]
    env = KatroEnv(rules=rules)
    env.reset(options={"board": board})
    assert env.step(0)[-1]["laps"] == 10_000
    assert env.board == board.play(0)
    assert not env.board.is_over


# Rules


def test_the_named_sets():
    assert tuple(NAMED) == katro.RULES
    for name, (rows, columns, on, actions) in NAMED.items():
        rules = Rules.named(name)
        assert (rules.rows, rules.columns, rules.seeds) == (rows, columns, 2)
        off = dict.fromkeys(SWITCHES, False) | {"direction": "fixed", "last_seed_steps": None}
        assert switches(rules) == off | on
        assert rules == Rules(rows, columns, **on)
        assert rules.name == name
        assert rules.num_actions == actions
    assert Rules(2, 8, direction="per_game").name is None


def test_every_combination_of_switches_differs():
    assert len({*ALL}) == len({hash(rules) for rules in ALL}) == len({*map(repr, ALL)}) == 37
    for a, b in itertools.product(ALL, ALL):
        assert (a == b) == (a is b)
        assert (a != b) == (a is not b)
    for a, b in itertools.pairwise(ALL):
        assert Board(a) != Board(b)
        assert hash(Board(a)) != hash(Board(b))


@pytest.mark.parametrize("rules", [*ALL, *SWITCHED], ids=repr)
def test_rules_are_rebuilt_by_repr_pickle_and_copy(rules):
    remade = [
        eval(repr(rules), {"Rules": Rules}),
        copy.copy(rules),
        copy.deepcopy(rules),
        *(pickle.loads(pickle.dumps(rules, protocol)) for protocol in PROTOCOLS),
        Rules(rules.rows, rules.columns, rules.seeds, **switches(rules)),
    ]
    for again in remade:
        assert type(again) is Rules
        assert again == rules
        assert hash(again) == hash(rules)
        assert switches(again) == switches(rules)
    assert repr(rules).startswith(f"Rules(rows={rules.rows}, columns={rules.columns}")


def test_repr_shows_only_the_switches_that_are_on():
    assert repr(Rules(direction="fixed", fall_through=False)) == "Rules(rows=3, columns=6, seeds=2)"
    assert (
        repr(Rules.named("katro-ludii")) == "Rules(rows=3, columns=6, seeds=2, "
        "direction='per_move', last_seed_steps='straight', fall_through=True)"
    )


@pytest.mark.parametrize("name", [*SWITCHES, "num_actions"])
def test_switches_cannot_be_changed(name):
    with pytest.raises(AttributeError):
        setattr(Rules(), name, getattr(Rules(), name))


def test_switches_are_keywords_with_defaults():
    parameters = inspect.signature(Rules).parameters
    assert tuple(parameters)[3:] == SWITCHES
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in SWITCHES)
    with pytest.raises(TypeError, match="positional"):
        Rules(3, 6, 2, "per_move")
    with pytest.raises(TypeError, match="directions"):
        Rules(directions="per_move")
    defaults = {name: parameters[name].default for name in SWITCHES}
    assert Rules(**defaults) == Rules()


@pytest.mark.parametrize(
    "more",
    [
        {"direction": "fixed"},
        {"direction": "per_move"},
        {"fall_through": True},
        {"capture_on_empty": True},
        {"last_seed_steps": "straight"},
        {"last_seed_steps": "diagonal"},
        {"direction": "per_game", "fall_through": True, "capture_on_empty": True},
    ],
    ids=str,
)
def test_boaoaka_goes_with_no_other_switch(more):
    with pytest.raises(ValueError, match=r"boaoaka .* no other switch") as error:
        Rules(2, 8, boaoaka=True, **more)
    message(error)


def test_boaoaka_brings_its_direction():
    assert Rules(2, 8, boaoaka=True) == Rules(2, 8, boaoaka=True, direction="per_game")
    assert Rules(2, 8, boaoaka=True).direction == "per_game"


@pytest.mark.parametrize("value", ["left", "", "Fixed", "per-move", "PER_GAME", "fixed "])
def test_an_unknown_direction_lists_the_known_ones(value):
    with pytest.raises(ValueError, match=f"direction must be .*got '{value}'") as error:
        Rules(direction=value)
    assert all(f"'{known}'" in message(error) for known in DIRECTIONS)


@pytest.mark.parametrize("value", ["none", "", "Straight", "left", "straight "])
def test_an_unknown_step_lists_the_known_ones(value):
    with pytest.raises(ValueError, match=f"last_seed_steps .*must be .*got '{value}'") as error:
        Rules(last_seed_steps=value)
    assert all(part in message(error) for part in ("None", "'straight'", "'diagonal'"))


@pytest.mark.parametrize(
    "switch",
    [
        *({"direction": value} for value in (0, True, b"fixed", ["fixed"])),
        *({"last_seed_steps": value} for value in (1, True, False, ("straight",))),
        *(
            {name: value}
            for name in ("fall_through", "capture_on_empty", "boaoaka")
            for value in (1, 0, None, "yes", 1.0)
        ),
    ],
    ids=str,
)
def test_a_switch_of_another_type_is_refused(switch):
    with pytest.raises(TypeError):
        Rules(**switch)


@pytest.mark.parametrize("switch", [{"direction": "per_move"}, {"boaoaka": True}], ids=str)
@pytest.mark.parametrize(
    ("numbers", "part"),
    [((0, 6), "rows"), ((2, 9), "columns"), ((3, 8, 6), "255"), ((1, 1, 0), "seeds")],
)
def test_impossible_numbers_are_refused_with_switches_too(numbers, part, switch):
    with pytest.raises(ValueError, match=part) as error:
        Rules(*numbers, **switch)
    message(error)


TAKE = [
    Rules.named,
    Board,
    lambda rules: Board.from_notation("2,2/2,2 S", rules),
    lambda rules: Board.from_grid([[2, 2], [2, 2]], rules=rules),
    lambda rules: Batch(2, rules=rules),
    lambda rules: KatroEnv(rules=rules),
    lambda rules: KatroVectorEnv(2, rules=rules),
    lambda rules: gym.make("katro/Katro-v0", rules=rules),
    lambda rules: gym.make_vec("katro/Katro-v0", num_envs=2, rules=rules),
]


@pytest.mark.parametrize("take", TAKE)
@pytest.mark.parametrize("name", ["", "Katro-ludii", "katro-boaoaka", "ludii", "katra-boaoaka "])
def test_an_unknown_name_lists_the_known_ones(take, name):
    with pytest.raises(ValueError, match=f'unknown rules "{name}"') as error:
        take(name)
    assert all(known in message(error) for known in katro.RULES)


@both_kinds
def test_a_name_is_taken_wherever_rules_are(name):
    rules = Rules.named(name)
    start = Board(name)
    assert start == Board(rules)
    assert Board.from_notation(start.notation, name) == start
    assert Board.from_grid(start.grid(), rules=name) == start
    assert Batch(2, rules=name).rules == rules
    assert KatroEnv(rules=name).board == KatroEnv(rules=rules).board == start
    assert KatroVectorEnv(2, rules=name).boards() == [start, start]
    assert gym.make("katro/Katro-v0", rules=name).unwrapped.board == start
    assert gym.make_vec("katro/Katro-v0", num_envs=2, rules=name).boards() == [start, start]


# Actions


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (Rules(1, 3), "a b c"),
        (Rules(1, 3, direction="per_move"), "a> b> c> a< b< c<"),
        (Rules(3, 3, direction="per_game"), "a> b> c> a< b< c<"),
        (Rules(1, 2, last_seed_steps="straight"), "a b step"),
        (Rules(2, 2, last_seed_steps="diagonal"), "a b step step-left step-right"),
        (
            Rules(2, 2, direction="per_move", last_seed_steps="diagonal"),
            "a> b> a< b< step step-left step-right",
        ),
        (Rules(2, 2, boaoaka=True), "a1> b1> a2> b2> a1< b1< a2< b2<"),
        (Rules.named("katro-wikipedia"), "a> b> c> d> e> f> a< b< c< d< e< f<"),
        (Rules.named("katro-ludii"), "a> b> c> d> e> f> a< b< c< d< e< f< step"),
    ],
    ids=str,
)
def test_every_action_has_a_name(rules, names):
    names = names.split()
    assert rules.num_actions == len(names)
    assert [rules.action_name(action) for action in range(len(names))] == names
    assert [rules.parse_action(name) for name in names] == list(range(len(names)))
    for action in (-1, len(names), 10**30):
        with pytest.raises(ValueError, match=f"0 to {len(names) - 1}, got {action}") as error:
            rules.action_name(action)
        message(error)
    for unknown in ("", "a ", "A>", "z", "a>>", "steps", "1a", "<a", *("a", "a1>", "step-up")):
        if unknown not in names:
            with pytest.raises(ValueError, match="no action is called") as error:
                rules.parse_action(unknown)
            assert message(error).endswith(", ".join(names))


@every_switch
def test_names_of_actions_can_be_parsed(rules):
    actions = range(rules.num_actions)
    names = [rules.action_name(np.int64(action)) for action in actions]
    assert len({*names}) == rules.num_actions
    assert [rules.parse_action(name) for name in names] == list(actions)


@every_switch
def test_the_name_of_an_action_says_what_it_does(rules):
    boards = random_boards(rules, 100, seed=1)
    if rules.last_seed_steps:
        boards += last_seed_boards(rules, 100, seed=2)
    seen = set()
    for board in boards:
        for action in board.legal_actions:
            lap, name = board.trace(action)[0], rules.action_name(action)
            # As the mover sees it: rows from the outer one, columns from his left.
            (row, column), (to_row, to_column) = (
                (2 * rules.rows - 1 - r, c) if board.to_move == 0 else (r, rules.columns - 1 - c)
                for r, c in (lap.lifted, lap.landed)
            )
            if name.startswith("step"):
                shift = {"step": 0, "step-left": -1, "step-right": 1}[name]
                assert (to_row, to_column) == (row + 1, column + shift)
                assert lap.seeds == 1
            else:
                assert name[0] == "abcdefgh"[column]
                assert not rules.boaoaka or name[1] == str(row + 1)
                mirrored = name.endswith("<")
                if lap.seeds == 1 and rules.columns > 1:
                    right = (row % 2 == 0) != mirrored
                    ends = column == (rules.columns - 1 if right else 0)
                    if ends:
                        assert to_row == (row + 1) % rules.rows
                    else:
                        assert (to_row, to_column) == (row, column + (1 if right else -1))
            seen.add(name)
    possible = {rules.action_name(action) for action in range(rules.num_actions)}
    assert seen == {name for name in possible if rules.rows > 1 or not name.startswith("step")}


@every_switch
def test_masks_are_those_of_a_second_reading_of_the_rules(rules):
    boards = [Board(rules), *random_boards(rules, 400, seed=3)]
    boards += last_seed_boards(rules, 200, seed=4)
    batch = Batch(len(boards), rules=rules)
    batch.set_boards(boards)
    masks = batch.action_masks()
    assert masks.shape == (len(boards), rules.num_actions)
    assert masks.any(axis=0).tolist() == [
        rules.rows > 1 or not rules.action_name(action).startswith("step")
        for action in range(rules.num_actions)
    ]
    for board, mask in zip(boards, masks, strict=True):
        expected = legal_actions(board)
        assert board.legal_actions == np.flatnonzero(mask).tolist() == expected
        assert board.action_mask.dtype == np.int8
        np.testing.assert_array_equal(board.action_mask, mask)
        for action in range(-1, rules.num_actions + 1):
            if action not in expected:
                with pytest.raises(IllegalMoveError, match=f"illegal action {action}: legal are"):
                    board.play(action)
                with pytest.raises(IllegalMoveError):
                    board.trace(action)


@every_switch
def test_a_board_that_is_over_has_no_action_and_a_mask_of_ones(rules):
    grid = np.zeros((2 * rules.rows, rules.columns), int)
    grid[0, 0] = 1
    for to_move in (0, 1):
        board = Board.from_grid(grid, to_move, rules)
        assert board.winner == 1
        assert board.legal_actions == []
        assert board.action_mask.all()
        assert len(board.action_mask) == rules.num_actions


@every_switch
def test_afterstates_are_what_play_leads_to(rules):
    boards = random_boards(rules, 60, seed=5) + last_seed_boards(rules, 40, seed=6)
    batch = Batch(100, rules=rules)
    batch.set_boards(boards)
    grids, masks = batch.afterstates()
    assert grids.shape == (100, rules.num_actions, 2 * rules.rows, rules.columns)
    for board, found, mask in zip(boards, grids, masks, strict=True):
        assert np.flatnonzero(mask).tolist() == board.legal_actions
        for action, grid in enumerate(found):
            expected = board.play(action).observation() if mask[action] else np.zeros_like(grid)
            np.testing.assert_array_equal(grid, expected)
    assert batch.boards() == boards


# What players are bound to


@every_switch
def test_a_first_sowing_binds_the_mover_and_nothing_else_does(rules):
    boards = random_boards(rules, 60, seed=7)
    if rules.last_seed_steps:
        boards += last_seed_boards(rules, 60, seed=8)
    for board in boards:
        assert (board.bound is None) == (rules not in BINDING)
        for action in board.legal_actions:
            assert board.play(action).bound == bound_after(board, action)


@pytest.mark.parametrize("name", ["katro-fieldnotes", "katra-boaoaka"])
def test_the_other_direction_is_illegal_from_the_second_sowing_on(name):
    half = Rules.named(name).columns * (2 if name == "katra-boaoaka" else 1)
    for first in (0, half):
        board = Board(name).play(first)
        assert board.bound == (first // half, None)
        assert {action // half for action in board.legal_actions} == {0, 1}
        board = board.play(board.legal_actions[-1])
        assert board.bound == (first // half, 1)
        assert {action // half for action in board.legal_actions} == {first // half}
        with pytest.raises(IllegalMoveError, match="illegal action"):
            board.play(board.legal_actions[0] + (-half if first else half))


def test_a_step_binds_nobody():
    free = Board.from_grid(LAST.grid(), 0, LAST.rules)
    assert free.bound == (None, None)
    assert free.legal_actions == [1, 7, 12]
    assert free.play(12).bound == (None, None)
    assert LAST.legal_actions == [7, 12]
    assert LAST.play(12).bound == LAST.play(7).bound == (1, None)


@every_binding
def test_boards_differ_by_what_players_are_bound_to(rules):
    for board in random_boards(rules, 20, seed=9):
        boards = [
            Board.from_grid(board.grid(), board.to_move, rules, bound)
            for bound in itertools.product((None, 0, 1), repeat=2)
        ]
        assert len({*boards}) == len({hash(one) for one in boards}) == 9
        assert len({one.notation for one in boards}) == len({repr(one) for one in boards}) == 9
        assert sum(one == board for one in boards) == 1


@every_binding
def test_swapped_sides_are_bound_to_the_same(rules):
    for board in random_boards(rules, 60, seed=10):
        other = rotated(board)
        assert other.bound == board.bound[::-1]
        assert other.legal_actions == board.legal_actions
        np.testing.assert_array_equal(other.observation(), board.observation())
        for action in board.legal_actions:
            assert other.play(action) == rotated(board.play(action))


@every_binding
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_boards_that_are_bound_pickle(rules, protocol):
    boards = random_boards(rules, 30, seed=11, over=True)
    assert pickle.loads(pickle.dumps(boards, protocol)) == boards
    assert copy.deepcopy(boards) == boards
    assert [copy.copy(board) for board in boards] == boards
    assert [pickle.loads(pickle.dumps(board, protocol)).bound for board in boards] == [
        board.bound for board in boards
    ]


REMAKE = [
    copy.deepcopy,
    *(
        lambda envs, protocol=protocol: pickle.loads(pickle.dumps(envs, protocol))
        for protocol in PROTOCOLS
    ),
]


@every_binding
@pytest.mark.parametrize("remake", REMAKE)
def test_copies_of_environments_in_mid_game_keep_what_players_are_bound_to(rules, remake):
    # After one ply only South is bound, after two both are.
    for plies in (1, 2, 7):
        env = KatroEnv(rules=rules, illegal="lose")
        envs = KatroVectorEnv(9, rules=rules)
        batch = Batch(9, rules=rules, copy=False)
        _, info = env.reset(seed=2)
        _, infos = envs.reset(seed=2)
        step = batch.reset()
        rng = np.random.default_rng(plies)
        for _ in range(plies):
            if info["winner"] >= 0:
                _, info = env.reset()
            *_, info = env.step(int(choose(rng, info["action_mask"])))
            actions = choose(rng, infos["action_mask"])
            *_, infos = envs.step(actions)
            step = batch.step(actions)
        assert max(0, 2 - plies) in {board.bound.count(None) for board in envs.boards()}
        one, many, arrays = remake(env), remake(envs), remake(batch)
        assert one.board == env.board
        assert many.boards() == envs.boards() == arrays.boards()
        for _ in range(10):
            if infos["winner"].max() >= 0 or info["winner"] >= 0:
                break
            action = int(choose(rng, info["action_mask"]))
            info, again = env.step(action)[-1], one.step(action)[-1]
            assert again["bound"].tolist() == info["bound"].tolist() == seen_bound(env.board)
            actions = choose(rng, infos["action_mask"])
            infos, others, step = (
                envs.step(actions)[-1],
                many.step(actions)[-1],
                arrays.step(actions),
            )
            np.testing.assert_array_equal(others["bound"], infos["bound"])
            np.testing.assert_array_equal(step.bound, infos["bound"])
        assert many.boards() == envs.boards() == arrays.boards()
        assert one.board == env.board


@every_binding
def test_a_reset_frees_both_players(rules):
    env, envs = KatroEnv(rules=rules), KatroVectorEnv(3, rules=rules, max_plies=2)
    batch = Batch(3, rules=rules, autoreset_mode="SameStep", max_plies=2)
    _, info = env.reset()
    envs.reset()
    batch.reset()
    env.step(int(info["action_mask"].argmax()))
    _, info = env.reset()
    assert info["bound"].tolist() == [-1, -1]
    assert env.board == Board(rules)
    for _ in range(2):
        infos = envs.step(envs.action_masks().argmax(axis=1))[-1]
        step = batch.step(batch.action_masks().argmax(axis=1))
    assert infos["bound"].tolist() == [[0, 0]] * 3
    assert step.bound.tolist() == [[-1, -1]] * 3
    assert step.finals.bound.tolist() == [[0, 0]] * 3
    assert step.finals.bound.dtype == step.bound.dtype == np.int8
    infos = envs.step(np.zeros(3, int))[-1]
    assert infos["bound"].tolist() == [[-1, -1]] * 3
    assert envs.boards() == batch.boards() == [Board(rules)] * 3


@every_binding
def test_games_start_from_boards_that_are_bound(rules):
    boards = [board for board in random_boards(roomy(rules), 40, seed=12) if not board.is_over]
    rules = roomy(rules)
    env, envs = KatroEnv(rules=rules), KatroVectorEnv(len(boards), rules=rules)
    _, infos = envs.set_boards(boards)
    assert envs.boards() == boards
    assert infos["bound"].tolist() == [seen_bound(board) for board in boards]
    for board in boards:
        _, info = env.reset(options={"board": board})
        assert env.board == board
        assert info["bound"].tolist() == seen_bound(board)
        np.testing.assert_array_equal(info["action_mask"], board.action_mask)
        envs.reset(options={"board": board})
        assert envs.boards() == [board] * len(boards)


def test_an_environment_that_binds_takes_no_board_that_does_not():
    plain = Board(Rules(fall_through=True, last_seed_steps="straight"))
    env = KatroEnv(rules="katro-fieldnotes")
    env.reset()
    with pytest.raises(ValueError, match=r"has the rules .*direction='per_game'") as error:
        env.reset(options={"board": plain})
    message(error)
    with pytest.raises(ValueError, match="has the rules"):
        KatroEnv(rules=plain.rules).reset(options={"board": FIELDNOTES})


@pytest.mark.parametrize("copied", [True, False])
def test_arrays_of_directions_are_new_unless_reuse_was_asked_for(copied):
    batch = Batch(3, rules="katro-fieldnotes", copy=copied)
    first = batch.reset()
    kept = first.bound
    assert (kept.shape, kept.dtype) == ((3, 2), np.int8)
    step = batch.step([0, 6, 7])
    assert np.shares_memory(step.bound, kept) == (not copied)
    assert step.bound.tolist() == [[-1, 0], [-1, 1], [-1, 1]]
    assert kept.tolist() == ([[-1, -1]] * 3 if copied else step.bound.tolist())
    step.bound[:] = 1
    assert [board.bound for board in batch.boards()] == [(0, None), (1, None), (1, None)]


def test_information_of_an_environment_about_directions_is_new_each_time():
    env = KatroEnv(rules="katra-boaoaka")
    _, first = env.reset()
    *_, second = env.step(20)
    first["bound"][:] = 7
    second["bound"][:] = 7
    assert env.board.bound == (1, None)
    *_, third = env.step(env.board.legal_actions[0])
    assert third["bound"].tolist() == [1, 0]


# Illegal actions


def test_an_action_in_the_other_direction_can_lose_the_game():
    env = KatroEnv(rules="katro-fieldnotes", illegal="lose")
    env.reset()
    for action in (6, 0):
        env.step(action)
    board = env.board
    assert board.bound == (1, 0)
    assert 1 not in board.legal_actions
    assert 1 in Board.from_grid(board.grid(), 0, board.rules).legal_actions
    observation, reward, terminated, truncated, info = env.step(1)
    assert (reward, terminated, truncated) == (-1, True, False)
    assert (info["winner"], info["laps"], info["captured"]) == (1, 0, 0)
    assert info["bound"].tolist() == [1, 0]
    assert env.board == board
    np.testing.assert_array_equal(observation, board.observation())


def test_a_step_that_is_not_possible_can_lose_the_game():
    env = KatroEnv(rules="katro-ludii", illegal="lose")
    env.reset()
    assert env.step(12)[1:4] == (-1, True, False)
    env = KatroEnv(rules="katro-ludii")
    env.reset()
    with pytest.raises(IllegalMoveError, match=r"illegal action 12: legal are 0, 1, .*11 in"):
        env.step(12)


@both_kinds
@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize("n", [3, 3000])
def test_one_action_outside_the_space_refuses_a_batch_and_nothing_moves(name, illegal, n):
    actions = Rules.named(name).num_actions
    batch = Batch(n, rules=name, illegal=illegal, num_threads=2)
    batch.reset()
    before = pickle.dumps(batch)
    for action in (-1, actions, 255, 256, 2**63 - 1, -(2**63)):
        played = np.zeros(n, np.int64)
        played[n - 2] = action
        with pytest.raises(IllegalMoveError, match=f"game {n - 2}: illegal action {action}: "):
            batch.step(played)
        assert pickle.dumps(batch) == before


@every_binding
def test_one_action_in_the_other_direction_refuses_a_batch_and_nothing_moves(rules):
    starts = rules.columns * (rules.rows if rules.boaoaka else 1)
    boards = []
    for first in (0, 0, 0, starts, 0):
        board = Board(rules).play(first)
        after = (board.play(action) for action in board.legal_actions)
        boards.append(next(board for board in after if not board.is_over))
    batch = Batch(5, rules=rules)
    batch.set_boards(boards)
    before = pickle.dumps(batch)
    actions = [board.legal_actions[0] for board in boards]
    actions[3] -= starts
    assert actions[3] >= 0
    with pytest.raises(IllegalMoveError, match=f"game 3: illegal action {actions[3]}: ") as error:
        batch.step(actions)
    assert boards[3].notation in message(error)
    assert pickle.dumps(batch) == before
    loses = Batch(5, rules=rules, illegal="lose", autoreset_mode="Disabled")
    loses.set_boards(boards)
    step = loses.step(actions)
    assert step.reward[3] == -1
    assert step.terminated[3]
    assert step.winner[3] == 1
    assert step.bound[3].tolist() == seen_bound(boards[3])
    assert loses.boards()[3] == boards[3]


# Notation and grids


@every_switch
def test_notation_and_repr_round_trip(rules):
    names = {"Board": Board, "Rules": Rules}
    for board in random_boards(rules, 200, seed=13, over=True):
        again = Board.from_notation(board.notation, rules)
        assert again == board
        assert again.bound == board.bound
        assert eval(repr(board), names) == board
        assert Board.from_grid(board.grid(), board.to_move, rules, board.bound) == board


def test_notation_writes_the_directions_after_the_player():
    start = "/".join(["2,2,2,2,2,2"] * 6) + " S"
    assert FIELDNOTES.notation == f"{start} --"
    for text, bound in {
        "--": (None, None),
        ">-": (0, None),
        "-<": (None, 1),
        "><": (0, 1),
        "<>": (1, 0),
        ">>": (0, 0),
    }.items():
        board = Board.from_notation(f"{start} {text}", "katro-fieldnotes")
        assert board.bound == bound
        assert board.notation == f"{start} {text}"
        assert repr(board) == f"Board.from_notation('{board.notation}', rules='katro-fieldnotes')"
    assert Board("katro-ludii").notation == start


@pytest.mark.parametrize(
    "end",
    [
        *("", " ", " -", " >", " ---", " ><-", " xx", " -x", " x-", " 01", " SN", " ->S"),
        *("  ><", " >< ", "\t><", " > <", " ><\n", " \uff1e\uff1c", " ><\0", "><", " -- --"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("player", ["S", "N"])
def test_malformed_directions_are_refused(end, player):
    text = "/".join(["2,2,2,2,2,2"] * 6) + f" {player}{end}"
    with pytest.raises(ValueError, match=r"directions|bind players|player to move") as error:
        Board.from_notation(text, "katro-fieldnotes")
    message(error)


@pytest.mark.parametrize("rules", [None, "katro", "katro-ludii", "katro-wikipedia"])
@pytest.mark.parametrize("end", ["--", "><", ">-"])
def test_directions_are_refused_where_rules_bind_nobody(rules, end):
    text = Board().notation
    with pytest.raises(ValueError, match="bind no player") as error:
        Board.from_notation(f"{text} {end}", rules)
    message(error)


@both_kinds
@pytest.mark.parametrize("text", read_lines("bad_notation.txt"))
def test_malformed_notation_is_refused_with_any_rules(text, name):
    for end in ("", " --"):
        with pytest.raises((ValueError, UnicodeEncodeError)):
            Board.from_notation(text + end, name)


def test_directions_of_a_grid_may_be_left_out_or_free():
    grid = FIELDNOTES.grid()
    for bound in (None, (None, None)):
        assert Board.from_grid(grid, rules="katro-fieldnotes", bound=bound) == FIELDNOTES
    board = Board.from_grid(grid, 1, "katro-fieldnotes", (np.int8(1), np.uint64(0)))
    assert board.bound == (1, 0)
    assert all(type(direction) is int for direction in board.bound)


@pytest.mark.parametrize(
    ("bound", "error"),
    [
        ((2, 0), ValueError),
        ((-1, 0), ValueError),
        ((0, 10**30), ValueError),
        ((0,), ValueError),
        ((0, 1, 0), ValueError),
        ((), ValueError),
        (("<", ">"), TypeError),
        ((0.0, 1.0), TypeError),
        ("<>", TypeError),
        (1, TypeError),
        ({0, 1}, TypeError),
    ],
    ids=repr,
)
def test_bad_directions_of_a_grid_are_refused(bound, error):
    with pytest.raises(error):
        Board.from_grid(FIELDNOTES.grid(), 0, "katro-fieldnotes", bound)


@pytest.mark.parametrize("rules", [None, "katro", "katro-ludii"])
@pytest.mark.parametrize("bound", [(0, None), (0, 1)])
def test_directions_of_a_grid_are_refused_where_rules_bind_nobody(rules, bound):
    with pytest.raises(ValueError, match="bind no player") as error:
        Board.from_grid(Board().grid(), 0, rules, bound)
    message(error)
    assert Board().bound is Board("katro-ludii").bound is None


def test_a_board_of_a_size_without_rules_is_a_standard_one():
    assert Board.from_grid([[2] * 8] * 4).rules == Rules(2, 8)
    assert Board.from_notation("/".join(["2,2"] * 2) + " S").rules == Rules(1, 2)


def test_a_board_that_is_bound_is_drawn_as_xml():
    for bound in itertools.product((None, 0, 1), repeat=2):
        board = Board.from_grid(FIELDNOTES.grid(), 0, "katro-fieldnotes", bound)
        root = ElementTree.fromstring(board._repr_svg_())
        assert board.notation in "".join(root.itertext())


# Gymnasium's contract


CONTRACT = [
    {},
    {"observation": "dict"},
    {"max_plies": 5},
    {"max_plies": None},
    {"render_mode": "ansi"},
    {"render_mode": "rgb_array"},
]


@both_kinds
@pytest.mark.parametrize("options", CONTRACT, ids=str)
def test_check_env_passes(name, options):
    # Its samples, made without the mask, are illegal sooner or later where not every action is.
    env = KatroEnv(rules=name, illegal="lose", **options)
    check_env(env, skip_render_check=True)
    check_env(gym.make("katro/Katro-v0", rules=name, illegal="lose", **options).unwrapped)


@every_switch
def test_the_spaces_follow_the_rules(rules):
    box = gym.spaces.Box(0, rules.total_seeds, (2 * rules.rows, rules.columns), np.uint8)
    env, envs = KatroEnv(rules=rules), KatroVectorEnv(3, rules=rules)
    assert env.action_space == envs.single_action_space == gym.spaces.Discrete(rules.num_actions)
    assert env.observation_space == envs.single_observation_space == box
    assert envs.action_space == gym.spaces.MultiDiscrete([rules.num_actions] * 3)
    for one in (
        KatroEnv(rules=rules, observation="dict").observation_space,
        KatroVectorEnv(3, rules=rules, observation="dict").single_observation_space,
    ):
        assert one == gym.spaces.Dict(
            action_mask=gym.spaces.Box(0, 1, (rules.num_actions,), np.int8), observation=box
        )
    observations, infos = envs.reset()
    assert observations in envs.observation_space
    assert infos["action_mask"].shape == (3, rules.num_actions)


@pytest.mark.parametrize("name", VARIANTS)
def test_spec_and_render_modes_work_with_switches(name):
    env = gym.make("katro/Katro-v0", rules=name, render_mode="ansi")
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.board == Board(name)
    env.reset()
    assert env.render() == str(Board(name))
    env = gym.make("katro/Katro-v0", rules=name, render_mode="rgb_array")
    env.reset()
    assert env.render().dtype == np.uint8


@pytest.mark.parametrize("name", VARIANTS)
def test_results_do_not_depend_on_the_number_of_threads(name):
    n = 3000
    options = {"rules": name, "autoreset_mode": "SameStep", "max_plies": 12, "illegal": "lose"}
    batches = [Batch(n, num_threads=threads, **options) for threads in (1, 2, 5)]
    rng = np.random.default_rng(14)
    for batch in batches:
        batch.reset()
    for _ in range(30):
        actions = choose(rng, batches[0].action_masks())
        actions[rng.random(n) < 0.05] = 0
        first, *others = (batch.step(actions) for batch in batches)
        for other in others:
            for name_, column in first._asdict().items():
                if name_ == "finals":
                    assert (column is None) == (other.finals is None)
                    pairs = zip(column or (), other.finals or (), strict=True)
                else:
                    pairs = [(column, getattr(other, name_))]
                for a, b in pairs:
                    np.testing.assert_array_equal(a, b)
    assert batches[0].boards() == batches[1].boards() == batches[2].boards()
    rollouts = [batch.rollout(20, seed=1) for batch in batches]
    assert rollouts == [rollouts[0]] * 3
    assert batches[0].boards() == batches[1].boards() == batches[2].boards()
