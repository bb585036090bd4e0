"""Katro for PettingZoo: the game as an AEC environment of two agents.

Importing this module registers `katro/Katro-v0` for `pettingzoo.make("aec", ...)`. `env` is for
learning and tournaments: an illegal action loses the game. `raw_env` is
the same game that refuses an illegal action with an exception.

>>> from katro.pettingzoo import env
>>> game = env()
>>> game.reset(seed=0)
>>> for agent in game.agent_iter():
...     observation, reward, termination, truncation, info = game.last()
...     if termination or truncation:
...         action = None
...     else:
...         action = int(observation["action_mask"].argmax())
...     game.step(action)
"""

from __future__ import annotations

import operator
from typing import Any, Literal, TypeAlias

import numpy as np
from gymnasium import logger, spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from katro import Batch, Board, IllegalMoveError, Rules
from katro.env import check_render_mode, observation_space, render_board

try:
    from pettingzoo import AECEnv, register
    from pettingzoo.utils.env_logger import EnvLogger
except ImportError as error:
    raise ImportError(
        'katro.pettingzoo needs PettingZoo: pip install "katro[pettingzoo]"'
    ) from error

__all__ = ["env", "raw_env"]

Observation: TypeAlias = "dict[str, NDArray[Any]]"

AGENTS = ("player_0", "player_1")

# What a user may look at only after a reset.
STATE = (
    "agents",
    "num_agents",
    "agent_selection",
    "rewards",
    "terminations",
    "truncations",
    "infos",
    "board",
)


class raw_env(AECEnv[str, Observation, Any]):  # noqa: N801 (PettingZoo's name)
    """Katro as an AEC environment.

    The agents are `player_0` (South, who moves first) and `player_1` (North).

    - Observation: `{"observation": (2 * rows, columns) uint8, "action_mask": (actions)
      int8}`. The seeds of every hole as *that* agent sees them, his own outer row at the
      bottom. The mask is that of the agent to move, all zeros for the other one; once
      the game is over it is all ones for the agent selected.
    - Action: the column, or whatever `rules.action_name` says.
    - Rewards: 1 to the winner and -1 to the loser in the step that ends the game, else 0.
      Both reach the agents through `last()`.
    - End: both agents terminate when one has won, or truncate after `max_plies`
      plies; never both. After the last move of a game that was won, the agent selected
      is the loser. Then, as always in PettingZoo, each agent is stepped once more, with
      None; `agent_iter` sees to it that both get their turn.
    - Information: empty, but under rules that bind players to a direction `bound`: (2)
      int8, the agent's and the opponent's, -1 for none, 0 for the usual one, 1 for the
      mirrored one.
    - `state()`: (2 * rows, columns) uint8, the board as drawn, South at the bottom.

    No wrapper is needed: the environment itself checks the order of calls and the
    actions. It can be copied and pickled in the middle of a game.

    Args:
        rules: a `Rules` or the name of one.
        illegal: what an illegal action does. `"raise"` refuses it with an
            `IllegalMoveError` and changes nothing, so that PettingZoo's
            `TerminateIllegalWrapper` can be put around; `"lose"` ends the game, -1 for
            the agent and 1 for his opponent. An action outside the space, or of
            another type, is always refused.
        max_plies: the plies after which the game is cut off, or None.
        render_mode: None, `"human"` to print the board after every move, `"ansi"` for text
            or `"rgb_array"` for a picture.

    Raises:
        ValueError: if an argument is not one of those above.

    >>> import katro.pettingzoo
    >>> game = katro.pettingzoo.raw_env(rules="katro-4x4")
    >>> game.reset()
    >>> game.step(2)
    >>> game.agent_selection, game.observe("player_1")["action_mask"].tolist()
    ('player_1', [1, 1, 1, 1])
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "name": "katro_v0",
        "render_modes": ["human", "ansi", "rgb_array"],
        "render_fps": 2,
        "is_parallelizable": False,
    }

    board: Board
    """The board as it stands; after the end, the final one."""

    def __init__(
        self,
        *,
        rules: Rules | str = "katro",
        illegal: Literal["raise", "lose"] = "raise",
        max_plies: int | None = 2000,
        render_mode: Literal["human", "ansi", "rgb_array"] | None = None,
    ) -> None:
        super().__init__()
        # A batch knows which arguments there are.
        self.rules = Batch(1, rules=rules, illegal=illegal, max_plies=max_plies).rules
        self.max_plies = max_plies
        self.render_mode = render_mode if render_mode == "human" else check_render_mode(render_mode)
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {agent: observation_space(self.rules, True) for agent in AGENTS}
        self.action_spaces = {agent: spaces.Discrete(self.rules.num_actions) for agent in AGENTS}
        self._lose = illegal == "lose"
        self._start = Board(self.rules)
        self._nothing = np.zeros(self.rules.num_actions, np.int8)
        self._binds = self._start.bound is not None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Returns the space of what an agent sees, the same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Returns the space of an agent's actions, the same object every time."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a game.

        Args:
            seed: changes nothing, since nothing in Katro is random.
            options: `{"board": Board}` to start from a board; PettingZoo's own tests
                pass others, which are ignored.

        Raises:
            ValueError: if the board is over or of other rules. The game goes on unchanged.
            TypeError: if it is no board.
        """
        board = (options or {}).get("board")
        if board is None:
            board = self._start
        elif not isinstance(board, Board):
            raise TypeError(f"the option 'board' must be a katro.Board, got {board!r}")
        else:
            Batch(1, rules=self.rules).set_boards([board])
        self.board = board
        self.plies = 0
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos = self._infos()
        self.agent_selection = AGENTS[board.to_move]
        # Where the base class keeps whom to select after the dead steps.
        self._skip_agent_selection = None

    def observe(self, agent: str) -> Observation:
        """Returns what an agent sees; new arrays every time."""
        board = self.board
        if agent not in AGENTS:
            raise ValueError(f"the agents are {' and '.join(AGENTS)}, got {agent!r}")
        if agent != self.agent_selection:
            mask = self._nothing.copy()
        elif self.terminations[agent] or self.truncations[agent]:
            mask = np.ones_like(self._nothing)
        else:
            # The agent selected in an open game is the player to move.
            return {"observation": board.observation(), "action_mask": board.action_mask}
        grid = board.grid()
        return {
            "observation": grid if agent == AGENTS[0] else grid[::-1, ::-1].copy(),
            "action_mask": mask,
        }

    def state(self) -> NDArray[np.uint8]:
        """Returns the board as drawn, South at the bottom: (2 * rows, columns) uint8."""
        return self.board.grid()

    def step(self, action: Any) -> None:
        """Plays the action of the agent selected; None when the game is over for him.

        Raises:
            IllegalMoveError: if the action is outside the space, or not legal and the
                environment refuses that. The game goes on unchanged.
            TypeError: if the action is no integer.
            ValueError: if the game is over and the action is not None.
            gymnasium.error.ResetNeeded: before the first reset, and after both agents have
                made their last step.
        """
        try:
            agent = self.agent_selection
            over = self.terminations[agent] or self.truncations[agent]
        except (AttributeError, KeyError):
            raise ResetNeeded("the game needs a reset first") from None
        if over:
            self._was_dead_step(action)
            return
        try:
            board = self.board.play(action)
        except IllegalMoveError:
            if not self._lose or not 0 <= operator.index(action) < self.rules.num_actions:
                raise
            EnvLogger.warn_on_illegal_move()
            self._end(1 - self.board.to_move)
            return
        self.board = board
        self.plies += 1
        self.agent_selection = AGENTS[board.to_move]
        if self._binds:
            self.infos = self._infos()
        winner = board.winner
        if winner is not None:
            self._end(winner)
        elif self.plies == self.max_plies:
            self.truncations = dict.fromkeys(AGENTS, True)
        if self.render_mode == "human":
            self.render()

    def render(self) -> Any:
        """Returns the board, or with the mode `"human"` prints it."""
        if self.render_mode is None:
            logger.warn(
                "render() needs a render mode: make the environment with "
                'render_mode="human", render_mode="ansi" or render_mode="rgb_array"'
            )
            return None
        if self.render_mode == "human":
            print(self.board)
            return None
        return render_board(self.board, self.render_mode)

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def __getattr__(self, name: str) -> Any:
        if name in STATE:
            raise AttributeError(f"{name} is there after a reset only")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _end(self, winner: int) -> None:
        """Ends the game; rewards have been 0 until now, in every step."""
        self.rewards = {AGENTS[winner]: 1.0, AGENTS[1 - winner]: -1.0}
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(AGENTS, True)

    def _infos(self) -> dict[str, dict[str, Any]]:
        bound = self.board.bound
        if bound is None:
            return {agent: {} for agent in AGENTS}
        both = [-1 if direction is None else direction for direction in bound]
        return {
            AGENTS[0]: {"bound": np.array(both, np.int8)},
            AGENTS[1]: {"bound": np.array(both[::-1], np.int8)},
        }


def env(**options: Any) -> raw_env:
    """Returns the environment for learning: `raw_env` in which an illegal action loses.

    PettingZoo's other environments come in three wrappers, which cost more than a move.
    This one does their work itself: a wrong order of calls, an action outside the space
    (an `IllegalMoveError` instead of an `AssertionError`) and an illegal action, which
    is warned of and ends the game with -1 for the agent and 1 for his opponent. For
    PettingZoo's own -1 and 0 write `TerminateIllegalWrapper(raw_env(), illegal_reward=-1)`.

    Args:
        **options: those of `raw_env`; `illegal` is `"lose"` unless it is given.

    >>> import katro.pettingzoo
    >>> game = katro.pettingzoo.env(rules="katro-4x6", max_plies=500)
    >>> game.reset(seed=0)
    >>> game.agent_selection
    'player_0'
    """
    return raw_env(**{"illegal": "lose", **options})


register("aec", "katro/Katro-v0", entry_point="katro.pettingzoo:env")
