"""What several files of tests need: rule sets, random boards and random play."""

import json
from pathlib import Path

import numpy as np

import katro

DATA = Path(__file__).parent / "data"

NAMES = ("katro", "katro-6x3", "katro-4x6", "katro-4x4")

# The named boards, one row a side, the largest board, the smallest, an odd number of columns.
RULES = (
    *map(katro.Rules.named, NAMES),
    katro.Rules(1, 6),
    katro.Rules(3, 8, 5),
    katro.Rules(1, 1),
    katro.Rules(2, 3, 4),
)

# The named sets with switches, and other combinations of them on other boards.
SWITCHED = (
    *(katro.Rules.named(name) for name in katro.RULES if name not in NAMES),
    katro.Rules(2, 4, direction="per_game", capture_on_empty=True, last_seed_steps="diagonal"),
    katro.Rules(3, 3, 3, fall_through=True, last_seed_steps="diagonal"),
    katro.Rules(1, 5, direction="per_move", last_seed_steps="straight"),
    katro.Rules(3, 3, boaoaka=True),
)


def read_lines(name):
    """The values of a file with one JSON value a line."""
    values = [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]
    assert values
    return values


def rotated(board):
    """The board turned by 180 degrees, with the other player to move."""
    grid = np.rot90(board.grid(), 2).astype(int)
    bound = board.bound and board.bound[::-1]
    return katro.Board.from_grid(grid, 1 - board.to_move, board.rules, bound)


def random_boards(rules, n, seed, over=False, most=None):
    """`n` boards with full, thin and empty rows; decided ones only if `over`."""
    rng = np.random.default_rng(seed)
    shape = (2 * rules.rows, rules.columns)
    most = rules.total_seeds if most is None else most
    boards = []
    while len(boards) < n:
        grid = rng.geometric(rng.uniform(0.15, 1), shape)
        grid *= rng.random(shape) < rng.uniform(0.1, 1.1)
        grid *= rng.random((shape[0], 1)) < rng.uniform(0.4, 1.2)
        if not 1 <= grid.sum() <= most:
            continue
        to_move, bound = int(rng.integers(2)), None
        if rules.direction == "per_game":
            bound = tuple((None, 0, 1)[i] for i in rng.integers(3, size=2))
        board = katro.Board.from_grid(grid, to_move, rules, bound)
        if over or not board.is_over:
            boards.append(board)
    return boards


def random_game(rules, seed, plies=400):
    """The (board, action, next board) of every ply of a random game."""
    rng = np.random.default_rng(seed)
    board = katro.Board(rules)
    while plies and not board.is_over:
        action = int(rng.choice(board.legal_actions))
        after = board.play(action)
        yield board, action, after
        board = after
        plies -= 1


def choose(rng, masks):
    """A random action of every mask."""
    return ((1 - rng.random(masks.shape)) * masks).argmax(axis=-1)


def rules_id(rules):
    """The board of rules, and their name or switches if they are not standard."""
    board = f"{2 * rules.rows}x{rules.columns}x{rules.seeds}"
    if rules in RULES:
        return board
    return rules.name or board + str(rules).partition(f"seeds={rules.seeds}")[2][:-1]
