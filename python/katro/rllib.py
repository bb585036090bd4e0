"""Katro for Ray RLlib: the game as a `MultiAgentEnv` of two agents.

Importing this module registers it with RLlib as `"katro"`. `docs/integrations/rllib.md` trains a
policy in it by self-play, with RLlib's own action masking.

>>> from katro.rllib import KatroMultiAgentEnv
>>> env = KatroMultiAgentEnv({"rules": "katro-4x4"})
>>> observations, infos = env.reset(seed=0)
>>> observations, rewards, terminateds, truncateds, infos = env.step({"player_0": 2})
>>> list(observations), rewards, terminateds
(['player_1'], {'player_0': 0.0, 'player_1': 0.0}, {'__all__': False})
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from katro import Board, KatroEnv
from katro.env import RENDER_MODES

try:
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.tune import register_env
except ImportError as error:
    raise ImportError('katro.rllib needs Ray RLlib: pip install "katro[ray]"') from error

__all__ = ["KatroMultiAgentEnv"]

Observations: TypeAlias = "dict[str, dict[str, NDArray[np.float32]]]"

AGENTS = ("player_0", "player_1")

# RLlib hands over a dict, in which a misspelt name would otherwise go unnoticed. It samples
# actions without masks where it checks an environment and where it explores at random:
# so an illegal action loses unless the user wants to know of it.
DEFAULTS: dict[str, Any] = {
    "rules": "katro",
    "illegal": "lose",
    "max_plies": 2000,
    "render_mode": None,
}


class KatroMultiAgentEnv(MultiAgentEnv):
    """Katro as an environment of two agents that take turns.

    The agents are `player_0` (South, who moves first) and `player_1` (North).

    - Observation: `{"observations": (2 * rows * columns) float32, "action_mask": (actions)
      float32}`, the names and types that RLlib's `ActionMaskingTorchRLModule` asks for, flat
      since RLlib has no network of its own for a grid. The seeds of every hole as *that* agent
      sees them, row by row, his own outer row last. Only the agent to move is observed; when
      the game is over both are, and the masks are all ones.
    - Action: the column, or whatever `rules.action_name` says.
    - Rewards: 1 to the winner and -1 to the loser in the step that ends the game, else 0; both
      agents are named in every step.
    - End: `terminateds["__all__"]` when one has won, `truncateds["__all__"]` after `max_plies`
      plies; never both. `step` needs a `reset` then.
    - Information: empty, but under rules that bind players to a direction `bound` for each
      agent observed: (2) int8, the agent's and the opponent's, -1 for none, 0 for the usual
      one, 1 for the mirrored one.

    It can be copied and pickled in the middle of a game.

    Args:
        config: the `env_config` of RLlib, a dict with any of these:
            `rules`: a `Rules` or the name of one.
            `illegal`: what an illegal action does. `"lose"` ends the game, -1 for the agent and
            1 for his opponent; `"raise"` refuses it with an `IllegalMoveError` and changes
            nothing. An action outside the space is always refused.
            `max_plies`: the plies after which the game is cut off, or None.
            `render_mode`: None, `"ansi"` for text or `"rgb_array"` for a picture.

    Raises:
        ValueError: if there is no such option, or its value is not one of those above.
        TypeError: if `config` is no dict.

    >>> from katro.rllib import KatroMultiAgentEnv
    >>> env = KatroMultiAgentEnv({"rules": "katro-4x4", "illegal": "raise"})
    >>> observations, infos = env.reset()
    >>> observations["player_0"]["action_mask"].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__()
        if not isinstance(config, dict | None):
            raise TypeError(f"config must be a dict of options, got {config!r}")
        for option in config or {}:
            if option not in DEFAULTS:
                raise ValueError(f"unknown option {option!r}, known are {', '.join(DEFAULTS)}")
        self._game = KatroEnv(**{**DEFAULTS, **(config or {})})
        self.render_mode = self._game.render_mode
        # RLlib writes into it, so it must not be that of the class.
        self.metadata = {"render_modes": list(RENDER_MODES), "render_fps": 2}
        rules = self._game.board.rules
        holes = 2 * rules.rows * rules.columns
        self.agents = list(AGENTS)
        self.possible_agents = list(AGENTS)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observations": spaces.Box(0, rules.total_seeds, (holes,), np.float32),
                    "action_mask": spaces.Box(0, 1, (rules.num_actions,), np.float32),
                }
            )
            for agent in AGENTS
        }
        self.action_spaces: dict[str, spaces.Space[Any]] = {
            agent: spaces.Discrete(rules.num_actions) for agent in AGENTS
        }
        self._mover: str | None = None  # None when there is no game

    @property
    def board(self) -> Board:
        """The board as it stands; after the end, the final one."""
        return self._game.board

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Starts a game.

        Args:
            seed: changes nothing in the game, since nothing in Katro is random.
            options: `{"board": Board}` to start from a board.

        Returns:
            What the agent to move observes, and the information.

        Raises:
            ValueError: if an option is unknown, or the board is over or of other rules. The
                game goes on unchanged.
            TypeError: if it is no board, or `options` no dict.
        """
        if not isinstance(options, dict | None):
            raise TypeError(f"options must be a dict or None, got {options!r}")
        if options and "seat" in options:
            raise ValueError("unknown option 'seat', known is board")
        observation, info = self._game.reset(seed=seed, options=options)
        return self._seen(observation, info, False)

    def step(
        self, action_dict: dict[str, Any]
    ) -> tuple[
        Observations,
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Plays the action of the agent to move.

        Args:
            action_dict: `{agent: action}` of that agent alone.

        Returns:
            Observations, rewards, terminateds, truncateds and information; see the class.

        Raises:
            IllegalMoveError: if the action is outside the space, or not legal and the
                environment refuses that. The game goes on unchanged.
            TypeError: if the action is no integer, or `action_dict` no dict.
            ValueError: if it is not the action of the agent to move alone.
            gymnasium.error.ResetNeeded: before the first reset and after the end.
        """
        mover = self._mover
        if mover is None:
            raise ResetNeeded("the game needs a reset first")
        if not isinstance(action_dict, dict):
            raise TypeError(f"the actions must be a dict {{agent: action}}, got {action_dict!r}")
        if list(action_dict) != [mover]:
            raise ValueError(f"{mover} is to move alone, got actions of {list(action_dict)}")
        observation, reward, terminated, truncated, info = self._game.step(action_dict[mover])
        # The other agent gets the opposite, also where an illegal action has lost the game.
        rewards = {agent: reward if agent == mover else 0.0 - reward for agent in AGENTS}
        observations, infos = self._seen(observation, info, terminated or truncated)
        return observations, rewards, {"__all__": terminated}, {"__all__": truncated}, infos

    def render(self) -> Any:
        """Returns the board: a str (`ansi`) or (height, width, 3) uint8 (`rgb_array`)."""
        return self._game.render()

    def _seen(
        self, observation: Any, info: dict[str, Any], over: bool
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Returns what is observed of a step: by the agent to move, by both at the end."""
        agent, other = AGENTS[info["to_move"]], AGENTS[1 - info["to_move"]]
        self._mover = None if over else agent
        seeds = observation.ravel().astype(np.float32)
        mask = info["action_mask"].astype(np.float32)
        observations = {agent: {"observations": seeds, "action_mask": mask}}
        infos = {agent: {"bound": info["bound"]} if "bound" in info else {}}
        if over:
            # He sits opposite: the same holes from the other end.
            observations[other] = {"observations": seeds[::-1].copy(), "action_mask": mask.copy()}
            infos[other] = {"bound": info["bound"][::-1].copy()} if "bound" in info else {}
        return observations, infos


register_env("katro", KatroMultiAgentEnv)
