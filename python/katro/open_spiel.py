"""Katro for OpenSpiel: importing this module registers the game `python_katro`.

>>> import pyspiel
>>> import katro.open_spiel
>>> game = pyspiel.load_game("python_katro(rules=katro-4x4,max_plies=300)")
>>> state = game.new_initial_state()
>>> state.apply_action(2)
>>> state.current_player(), state.legal_actions()
(1, [0, 1, 2, 3])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from katro import Board, IllegalMoveError, Rules

try:
    import pyspiel
    from open_spiel.python.observation import IIGObserverForPublicInfoGame
except ImportError as error:
    raise ImportError('katro.open_spiel needs OpenSpiel: pip install "katro[openspiel]"') from error

__all__ = ["KatroGame", "KatroObserver", "KatroState"]

# OpenSpiel has no None: a 0, an empty text or False stands for what `Rules` would take.
PARAMETERS: dict[str, Any] = {
    "rules": "katro",
    "max_plies": 2000,
    "rows": 0,
    "columns": 0,
    "seeds": 0,
    "direction": "",
    "fall_through": False,
    "capture_on_empty": False,
    "last_seed_steps": "",
    "boaoaka": False,
}

GAME_TYPE = pyspiel.GameType(
    short_name="python_katro",
    long_name="Katro",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
    information=pyspiel.GameType.Information.PERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification=PARAMETERS,
)


class KatroGame(pyspiel.Game):
    """Katro as a game of OpenSpiel, `python_katro`.

    Args:
        params: what `pyspiel.load_game` was given:

            - `rules`: the name of a rule set, `"katro"` unless another is given.
            - `rows`, `columns`, `seeds`, `direction`, `fall_through`,
              `capture_on_empty`, `last_seed_steps`, `boaoaka`: the arguments of
              `katro.Rules`, instead of a name.
            - `max_plies`: the plies after which the game is cut off, 0 to 0. It is
              the game's `max_game_length`.

    Raises:
        ValueError: if there are no such rules or the limit is below 1.

    >>> import pyspiel
    >>> import katro.open_spiel
    >>> game = pyspiel.load_game("python_katro", {"rows": 2, "columns": 3})
    >>> game.rules
    Rules(rows=2, columns=3, seeds=2)
    >>> game.max_game_length()
    2000
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        # OpenSpiel fills in what was not given; leaving it out keeps the game's text short.
        chosen = {**PARAMETERS, **(params or {})}
        given = {key: value for key, value in chosen.items() if value != PARAMETERS.get(key)}
        name, max_plies = chosen.pop("rules"), chosen.pop("max_plies")
        arguments = {key: value for key, value in chosen.items() if value}
        if arguments and name != PARAMETERS["rules"]:
            names = ", ".join(arguments)
            raise ValueError(f"the rules are either named, here {name!r}, or made of {names}")
        self.rules = Rules(**arguments) if arguments else Rules.named(name)
        if max_plies < 1:
            raise ValueError(f"max_plies must be at least 1, got {max_plies}")
        self.max_plies = max_plies
        self.start = Board(self.rules)
        information = pyspiel.GameInfo(
            num_distinct_actions=self.rules.num_actions,
            max_chance_outcomes=0,
            num_players=2,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=max_plies,
        )
        super().__init__(GAME_TYPE, information, given)

    def new_initial_state(self, notation: str | None = None) -> KatroState:
        """Returns the state that a game starts from.

        Args:
            notation: a board to start from as `Board.notation` writes it, or None.

        Raises:
            ValueError: if that is no board of the game's rules.
        """
        if notation is None:
            return KatroState(self, self.start)
        return KatroState(self, Board.from_notation(notation, self.rules))

    def __reduce__(self) -> tuple[Any, ...]:
        # OpenSpiel's own pickle forgets the attributes of a game written in Python.
        return pyspiel.load_game, (str(self),)

    def make_py_observer(
        self,
        iig_obs_type: Any = None,  # pyspiel.IIGObservationType
        params: dict[str, Any] | None = None,
    ) -> Any:
        """Returns an object that observes states; OpenSpiel calls this."""
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return KatroObserver(self.rules, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


class KatroState(pyspiel.State):
    """A state of `python_katro`; `board` is its `katro.Board`.

    An action of OpenSpiel is an action of katro. The returns are 1 for the winner and -1
    for the loser, and 0 for both while the game is open and when it was cut off.

    >>> import pyspiel
    >>> import katro.open_spiel
    >>> game = pyspiel.load_game("python_katro", {"rows": 1, "columns": 2})
    >>> state = game.new_initial_state("0,1/1,1 S")
    >>> [state.action_to_string(action) for action in state.legal_actions()]
    ['a', 'b']
    >>> state.apply_action(0)
    >>> state.is_terminal(), state.returns()
    (True, [1.0, -1.0])
    """

    # `clone` copies every attribute, so there are few.

    def __init__(self, game: KatroGame, board: Board) -> None:
        super().__init__(game)
        self.board = board
        self._plies_left = game.max_plies
        self._current = pyspiel.PlayerId.TERMINAL if board.is_over else board.to_move

    def current_player(self) -> int:
        """Returns the player to move, or `pyspiel.PlayerId.TERMINAL`."""
        return self._current

    def _legal_actions(self, _player: int) -> list[int]:
        return self.board.legal_actions

    def _apply_action(self, action: int) -> None:
        if not self._plies_left:
            raise IllegalMoveError(f"illegal action {action}: the game was cut off")
        board = self.board.play(action)
        self.board = board
        self._plies_left -= 1
        over = board.winner is not None or not self._plies_left
        self._current = pyspiel.PlayerId.TERMINAL if over else board.to_move

    def _action_to_string(self, _player: int, action: int) -> str:
        return self.board.rules.action_name(action)

    def is_terminal(self) -> bool:
        """Returns whether somebody has won or the game was cut off."""
        return self._current < 0

    def returns(self) -> list[float]:
        """Returns what South and North have got."""
        winner = self.board.winner
        if winner is None:
            return [0.0, 0.0]
        return [1.0, -1.0] if winner == 0 else [-1.0, 1.0]

    def __str__(self) -> str:
        # Equal texts mean equal states, which the algorithms that tabulate states rely on.
        return f"{self.board}\n{self.board.notation}, {self._plies_left} plies left"


class KatroObserver:
    """What one player sees of a state, in OpenSpiel's interface.

    `tensor` is `dict["observation"]` laid flat, (planes, 2 * rows, columns) float32:
    the seeds of every hole as that player sees them, his own outer row at the bottom; a
    plane of ones if he is to move, else of zeros; and, where the rules bind players to a
    direction, a plane of that of the player and one of that of his opponent: -1 for none,
    0 for the usual one, 1 for the mirrored one. Both are written anew by `set_from`: copy
    what has to be kept.
    """

    def __init__(self, rules: Rules, params: dict[str, Any] | None = None) -> None:
        if params:
            raise ValueError(f"observations have no parameters, got {params!r}")
        planes = 2 if Board(rules).bound is None else 4
        shape = (planes, 2 * rules.rows, rules.columns)
        self.tensor: NDArray[np.float32] = np.zeros(np.prod(shape), np.float32)
        self.dict: dict[str, NDArray[np.float32]] = {"observation": self.tensor.reshape(shape)}

    def set_from(self, state: KatroState, player: int) -> None:
        """Writes what a player sees of a state into the arrays."""
        board = state.board
        planes = self.dict["observation"]
        grid = board.grid()
        planes[0] = grid[::-1, ::-1] if player else grid
        planes[1] = board.to_move == player
        if board.bound is not None:
            for plane, one in ((2, player), (3, 1 - player)):
                direction = board.bound[one]
                planes[plane] = -1 if direction is None else direction

    def string_from(self, state: KatroState, _player: int) -> str:
        """Returns the notation of the board, which says who moves; the same for both."""
        return state.board.notation


pyspiel.register_game(GAME_TYPE, KatroGame)
