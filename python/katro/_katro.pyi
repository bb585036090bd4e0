"""The Rust engine of katro; see the docstrings at run time."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self

__all__ = [
    "RULES",
    "Batch",
    "Board",
    "Finals",
    "IllegalMoveError",
    "Lap",
    "Rollout",
    "Rules",
    "SearchResult",
    "Step",
    "__version__",
    "perft",
    "search",
]

__version__: str
RULES: tuple[str, ...]

_Vector: TypeAlias = tuple[
    NDArray[np.uint8],
    NDArray[np.float64],
    NDArray[np.bool_],
    NDArray[np.bool_],
    dict[str, Any],
    Finals | None,
]
_Single: TypeAlias = tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]

class IllegalMoveError(ValueError): ...

class Lap(NamedTuple):
    lifted: tuple[int, int]
    seeds: int
    landed: tuple[int, int]
    captured: tuple[tuple[int, int], ...]
    taken: int

@final
class Rules:
    def __new__(
        cls,
        rows: int = 3,
        columns: int = 6,
        seeds: int = 2,
        *,
        direction: str | None = None,
        fall_through: bool = False,
        capture_on_empty: bool = False,
        last_seed_steps: str | None = None,
        boaoaka: bool = False,
    ) -> Self: ...
    @classmethod
    def named(cls, name: str) -> Rules: ...
    @property
    def name(self) -> str | None: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def seeds(self) -> int: ...
    @property
    def total_seeds(self) -> int: ...
    @property
    def direction(self) -> str: ...
    @property
    def fall_through(self) -> bool: ...
    @property
    def capture_on_empty(self) -> bool: ...
    @property
    def last_seed_steps(self) -> str | None: ...
    @property
    def boaoaka(self) -> bool: ...
    @property
    def num_actions(self) -> int: ...
    def action_name(self, action: int) -> str: ...
    def parse_action(self, text: str) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Board:
    def __new__(cls, rules: Rules | str = "katro") -> Self: ...
    @classmethod
    def from_notation(cls, text: str, rules: Rules | str | None = None) -> Board: ...
    @classmethod
    def from_grid(
        cls,
        grid: ArrayLike,
        to_move: int = 0,
        rules: Rules | str | None = None,
        bound: tuple[int | None, int | None] | None = None,
    ) -> Board: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def to_move(self) -> int: ...
    @property
    def bound(self) -> tuple[int | None, int | None] | None: ...
    @property
    def winner(self) -> int | None: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def notation(self) -> str: ...
    @property
    def legal_actions(self) -> list[int]: ...
    @property
    def action_mask(self) -> NDArray[np.int8]: ...
    def play(self, action: int) -> Board: ...
    def trace(self, action: int) -> list[Lap]: ...
    def grid(self) -> NDArray[np.uint8]: ...
    def observation(self) -> NDArray[np.uint8]: ...
    def _repr_svg_(self) -> str: ...
    def _rgb(self) -> NDArray[np.uint8]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Board: ...
    def __deepcopy__(self, _memo: Any) -> Board: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def perft(board: Board, depth: int) -> int: ...

class SearchResult(NamedTuple):
    action: int
    value: int
    line: tuple[int, ...]
    nodes: int
    nodes_per_second: float
    depth: int
    seconds: float

def search(
    board: Board, depth: int | None = None, seconds: float | None = None
) -> SearchResult: ...

class Finals(NamedTuple):
    game: NDArray[np.int64]
    observation: NDArray[np.uint8]
    to_move: NDArray[np.int64]
    winner: NDArray[np.int64]
    captured: NDArray[np.int64]
    laps: NDArray[np.int64]
    bound: NDArray[np.int8] | None

class Step(NamedTuple):
    observation: NDArray[np.uint8]
    action_mask: NDArray[np.int8]
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    to_move: NDArray[np.int64]
    winner: NDArray[np.int64]
    captured: NDArray[np.int64]
    laps: NDArray[np.int64]
    bound: NDArray[np.int8] | None
    finals: Finals | None

class Rollout(NamedTuple):
    plies: int
    wins: tuple[int, int]
    truncated: int
    captured: int
    laps: int

@final
class Batch:
    def __new__(
        cls,
        n: int,
        *,
        rules: Rules | str = "katro",
        autoreset_mode: AutoresetMode | str = "NextStep",
        illegal: str = "raise",
        max_plies: int | None = 2000,
        opponent: str | Callable[[NDArray[np.uint8], NDArray[np.bool_]], ArrayLike] | None = None,
        seat: int | None = None,
        num_threads: int | None = None,
        copy: bool = True,
    ) -> Self: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def num_threads(self) -> int: ...
    def __len__(self) -> int: ...
    def reset(
        self,
        mask: ArrayLike | None = None,
        *,
        board: Board | None = None,
        seed: int | Sequence[int | None] | None = None,
        seat: ArrayLike | None = None,
    ) -> Step: ...
    def step(self, actions: ArrayLike, games: ArrayLike | None = None) -> Step: ...
    def choose(self, policy: str, games: ArrayLike | None = None) -> NDArray[np.int64]: ...
    def rollout(self, plies: int, seed: int = 0) -> Rollout: ...
    def action_masks(self) -> NDArray[np.bool_]: ...
    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]: ...
    def boards(self) -> list[Board]: ...
    def set_boards(self, boards: Sequence[Board]) -> Step: ...
    def _board(self, i: int) -> Board: ...
    def _check_start(self, board: Board | None, seat: Any) -> None: ...
    def _step_one(self, action: Any) -> _Single: ...
    def _reset_one(self, board: Board | None, seed: Any, seat: Any) -> _Single: ...
    def _step_vector(self, actions: ArrayLike) -> _Vector: ...
    def _reset_vector(
        self, mask: ArrayLike | None, board: Board | None, seed: Any, seat: Any
    ) -> _Vector: ...
    def _set_boards_vector(self, boards: Sequence[Board], seed: Any) -> _Vector: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[int, bool, bytes]) -> None: ...
