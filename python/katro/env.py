"""Katro as a Gymnasium environment of one game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from katro import _katro
from katro._katro import Board, Rules

Observation: TypeAlias = "NDArray[np.uint8] | dict[str, NDArray[Any]]"

Opponent: TypeAlias = "Callable[[NDArray[np.uint8], NDArray[np.bool_]], Any]"

RENDER_MODES = ("ansi", "rgb_array")


class KatroEnv(gym.Env[Observation, Any]):
    """One game of Katro.

    ## Description

    Katro is the six-row mancala of the Betsileo, Tanala and Sakalava of
    Madagascar. A move lifts the seeds of a hole and sows them one by one along
    the player's own rows; a last seed in an occupied hole goes on with the
    next lap, often with seeds captured from the opponent. Who has no seed left
    has lost. In self-play, without an `opponent`, every step is one ply, of the
    player to move. With one, a step is the agent's ply and the answer to it.

    ## Action Space

    `Discrete(6)`: the column of the hole to start from, counted from the left of
    the player to move. The hole is the one in the outermost of his rows that
    holds any seed, and must not be empty. Other rules have more actions:
    `rules.num_actions` of them, `rules.action_name(action)` says what each means.

    ## Observation Space

    `Box(0, 72, (6, 6), uint8)`: the seeds of every hole as the player to move
    sees them, his own outer row at the bottom, the opponent's at the top,
    column 0 at his left hand. With `observation="dict"` a `Dict` of that as
    `observation` and of the mask as `action_mask`.

    ## Starting State

    Two seeds in every hole and South to move, or
    `reset(options={"board": board})`. An opponent moves first if the agent sits
    second; if he wins with it, which needs a tiny board or one of your own, the
    game is over before it has begun, and `info["winner"]` says so.

    ## Rewards

    To the player who has just moved: 1 for the move that wins, else 0. The
    mover never loses by his own move, so the value of the next state is the
    *other* player's and has to be negated. With `illegal="lose"` an illegal
    action costs -1. Against an opponent: 1 if the agent has won, -1 if the
    opponent has, else 0, and nothing is to be negated.

    ## Episode End

    `terminated` when a player has no seed left, `truncated` after `max_plies`
    plies, or an opponent's answer to the last of them; never both. After the end the
    board stays as it is, and `step` needs a `reset` first.

    ## Information

    `reset` and `step` return the same keys:

    - `action_mask`: (6) int8, 1 for a legal action; all ones when the game is
      over. `env.action_space.sample(info["action_mask"])` plays at random.
    - `to_move`: the player to move, 0 for South and 1 for North.
    - `winner`: 0 or 1, and -1 while the game is open.
    - `captured`: seeds captured in this ply, the agent's if there is an opponent.
    - `laps`: laps of this ply.
    - `bound`, only where the rules bind players to a direction: (2) int8, that of the
      player to move and that of his opponent, -1 for none, 0 for the usual one, 1 for
      the mirrored one. The observation does not show it.

    ## Arguments

    Args:
        rules: a `Rules` or the name of one. Spaces follow the board's size.
        opponent: None for self-play; or who answers each ply of the agent: `"random"`,
            `"greedy"` (most own seeds after the move), `"minimax:DEPTH"`,
            `"minimax:TIMEms"`, or a callable `(observation, action_mask) -> action`
            that sees the game as an agent does, the mask as bool.
        seat: where the agent sits against the opponent, 0 for South and 1 for North;
            None to draw it from the seed at each reset. `reset(options={"seat": 0})`
            decides for one game.
        observation: `"grid"`, or `"dict"` for libraries that look for the mask
            in the observation.
        illegal: what an illegal action does. `"raise"` refuses it with an
            `IllegalMoveError` and changes nothing; `"lose"` ends the game, lost
            for the mover. An action outside the space is always refused.
        max_plies: the plies after which the game is cut off, or None; with an opponent
            it is cut off after his answer.
        render_mode: None, `"ansi"` for text or `"rgb_array"` for a picture.

    Raises:
        ValueError: if an argument is not one of those above.

    >>> import katro
    >>> env = katro.KatroEnv()
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(2)
    >>> info["captured"], info["to_move"]
    (2, 1)

    ## Version History

    - v0: the first version.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        *,
        rules: Rules | str = "katro",
        opponent: str | Opponent | None = None,
        seat: Literal[0, 1] | None = None,
        observation: Literal["grid", "dict"] = "grid",
        illegal: Literal["raise", "lose"] = "raise",
        max_plies: int | None = 2000,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
    ) -> None:
        self._batch = _katro.Batch(
            1,
            rules=rules,
            autoreset_mode="Disabled",
            illegal=illegal,
            max_plies=max_plies,
            opponent=OneGame(opponent) if callable(opponent) else opponent,
            seat=seat,
        )
        self._draws = opponent is not None
        self._seeded = False
        self._dict = wants_dict(observation)
        self.render_mode = check_render_mode(render_mode)
        self.observation_space = observation_space(self._batch.rules, self._dict)
        self.action_space = spaces.Discrete(self._batch.rules.num_actions)

    @property
    def board(self) -> Board:
        """The board as it stands; after the end, the final one."""
        return self._batch._board(0)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns (actions) bool, true for a legal action; all true when the game is over.

        sb3-contrib and PyTorch want the mask in this form; `info["action_mask"]` is
        the same as int8. Through wrappers: `env.get_wrapper_attr("action_masks")()`.
        """
        masks: NDArray[np.bool_] = self._batch.action_masks()[0]
        return masks

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts a game.

        Args:
            seed: an integer of 0 or more that fixes everything random from here on.
            options: `{"board": Board}` to start from a board instead of the start;
                `{"seat": 0}` or `{"seat": 1}` to seat the agent for this game.

        Returns:
            The observation and the information; see the class.

        Raises:
            ValueError: if an option is unknown, or the board is over or of other
                rules. The game goes on unchanged.
        """
        board, seat = start_options(options, self._batch)
        super().reset(seed=seed)
        # What the seed fixes is drawn in Rust; without one the game draws on.
        fresh = self._draws and (seed is not None or not self._seeded)
        observation, _, _, _, info = self._batch._reset_one(
            board, self.np_random_seed if fresh else None, seat
        )
        self._seeded = self._seeded or fresh
        return self._observed(observation, info), info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Plays one ply.

        Args:
            action: any integer, also of NumPy or an array without dimensions.

        Returns:
            Observation, reward, terminated, truncated and information; see the class.

        Raises:
            IllegalMoveError: if the action is not legal. The game goes on unchanged.
            TypeError: if it is no integer.
            gymnasium.error.ResetNeeded: before the first reset and after the end.
        """
        observation, reward, terminated, truncated, info = self._batch._step_one(action)
        return self._observed(observation, info), reward, terminated, truncated, info

    def render(self) -> Any:
        """Returns the board: a str (`ansi`) or (height, width, 3) uint8 (`rgb_array`)."""
        if self.render_mode is None:
            gym.logger.warn(
                "render() needs a render mode: make the environment with "
                'render_mode="ansi" or render_mode="rgb_array"'
            )
            return None
        return render_board(self.board, self.render_mode)

    def _observed(self, observation: NDArray[np.uint8], info: dict[str, Any]) -> Observation:
        if not self._dict:
            return observation
        return {"observation": observation, "action_mask": info["action_mask"].copy()}


def wants_dict(observation: str) -> bool:
    """Returns whether `observation` asks for a dict."""
    if observation not in ("grid", "dict"):
        raise ValueError(f"observation must be 'grid' or 'dict', got {observation!r}")
    return observation == "dict"


def check_render_mode(render_mode: str | None) -> str | None:
    """Returns `render_mode` if there is such a mode."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        modes = " or ".join(map(repr, RENDER_MODES))
        raise ValueError(f"render_mode must be {modes} or None, got {render_mode!r}")
    return render_mode


def observation_space(rules: Rules, as_dict: bool) -> spaces.Space[Any]:
    """Returns the space of what one player sees."""
    shape = (2 * rules.rows, rules.columns)
    grid = spaces.Box(0, rules.total_seeds, shape, np.uint8)
    if not as_dict:
        return grid
    mask = spaces.Box(0, 1, (rules.num_actions,), np.int8)
    return spaces.Dict({"observation": grid, "action_mask": mask})


def start_options(
    options: dict[str, Any] | None, batch: _katro.Batch, *more: str
) -> tuple[Board | None, Any]:
    """Returns the board and the seat of the options of a reset, which may have `more` keys."""
    known = ("board", "seat", *more)
    if not options:
        return None, None
    for option in options:
        if option not in known:
            raise ValueError(f"unknown option {option!r}, known are {', '.join(known)}")
    board, seat = options.get("board"), options.get("seat")
    if board is not None and not isinstance(board, Board):
        raise TypeError(f"the option 'board' must be a katro.Board, got {board!r}")
    batch._check_start(board, seat)
    return board, seat


class OneGame:
    """An opponent of one game, as the batch asks it."""

    def __init__(self, opponent: Opponent) -> None:
        self.opponent = opponent
        self.__name__ = getattr(opponent, "__name__", type(opponent).__name__)

    def __call__(self, observations: NDArray[np.uint8], masks: NDArray[np.bool_]) -> NDArray[Any]:
        """Returns the action for the only game."""
        return np.asarray([self.opponent(observations[0], masks[0])])


def render_board(board: Board, render_mode: str) -> Any:
    """Returns a board in a render mode."""
    return str(board) if render_mode == "ansi" else board._rgb()
