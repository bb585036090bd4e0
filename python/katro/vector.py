"""Katro as a Gymnasium environment of many games."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from katro import _katro
from katro._katro import Board, Finals, Rules
from katro.env import (
    RENDER_MODES,
    check_render_mode,
    observation_space,
    render_board,
    start_options,
    wants_dict,
)

Opponent: TypeAlias = "Callable[[NDArray[np.uint8], NDArray[np.bool_]], ArrayLike]"
Observations: TypeAlias = "NDArray[np.uint8] | dict[str, NDArray[Any]]"

INFO = ("action_mask", "to_move", "winner", "captured", "laps", "bound")


class KatroVectorEnv(VectorEnv[Observations, ArrayLike, NDArray[Any]]):
    """Many games of Katro, stepped together.

    The same as `gymnasium.vector.SyncVectorEnv` over as many `KatroEnv`, array by
    array and key by key, but native: a step is one call into Rust. Observations,
    rewards, ends and information are those of `KatroEnv`, one row per game.

    Args:
        num_envs: the number of games.
        autoreset_mode: when a game that has ended starts again, as Gymnasium's
            `AutoresetMode` or its value. `"NextStep"`: in the next step, whose
            action it ignores (a row that is no transition and that a learner
            drops); `"SameStep"`: at once, and `final_obs` and `final_info` of the
            information keep the end; `"Disabled"`: when `reset` is called with
            `options={"reset_mask": mask}`.
        num_threads: the threads that step the games, the calling one among them; None
            for as many as pay off for so many games on this machine. The results do
            not depend on it.
        copy: whether every step returns new arrays. If not, `reset` and `step` write into
            the same arrays each time, and what they returned before changes: copy what
            has to outlive the next call, as in a replay buffer. `final_obs` and
            `final_info` are new each time.
        rules: a `Rules` or the name of one.
        opponent: None for self-play, or who answers each ply of the agent, as in
            `KatroEnv`. A callable gets all games that wait for it: `(observations,
            action_masks) -> actions` of shapes (k, 2 * rows, columns), (k, actions) and
            (k). If it fails or answers with an illegal action no game has moved.
        seat: 0 or 1, or None to draw it from the seed of each game at each of its starts.
        observation: `"grid"` or `"dict"`.
        illegal: `"raise"` or `"lose"`.
        max_plies: the plies after which a game is cut off, or None; with an opponent
            it is cut off after his answer.
        render_mode: None, `"ansi"` or `"rgb_array"`.

    Raises:
        ValueError: if an argument is not one of those above.
        MemoryError: if there is no memory for so many games.

    >>> import katro, numpy as np
    >>> envs = katro.KatroVectorEnv(3)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.array([0, 1, 2]))
    >>> infos["laps"].tolist()
    [7, 8, 7]
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | None = None,
        copy: bool = True,
        rules: Rules | str = "katro",
        opponent: str | Opponent | None = None,
        seat: Literal[0, 1] | None = None,
        observation: Literal["grid", "dict"] = "grid",
        illegal: Literal["raise", "lose"] = "raise",
        max_plies: int | None = 2000,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
    ) -> None:
        self._batch = _katro.Batch(
            num_envs,
            rules=rules,
            autoreset_mode=autoreset_mode,
            illegal=illegal,
            max_plies=max_plies,
            opponent=opponent,
            seat=seat,
            num_threads=num_threads,
            copy=copy,
        )
        self._draws = opponent is not None
        self._seeded = False
        self._dict = wants_dict(observation)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.num_envs = len(self._batch)
        self.render_mode = check_render_mode(render_mode)
        self.metadata = {
            "render_modes": list(RENDER_MODES),
            "render_fps": 2,
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_observation_space = observation_space(self._batch.rules, self._dict)
        self.single_action_space = spaces.Discrete(self._batch.rules.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns (n, actions) bool, true for a legal action; all true where the game is over."""
        return self._batch.action_masks()

    def boards(self) -> list[Board]:
        """Returns the board of every game; the final one where it is over."""
        return self._batch.boards()

    def set_boards(self, boards: Sequence[Board]) -> tuple[Observations, dict[str, Any]]:
        """Starts every game from its own board.

        Args:
            boards: a board for each game, of the environment's rules and not over.

        Returns:
            What `reset` returns.

        Raises:
            ValueError: if a board is over, or of other rules, or there is not one
                for each game. The games go on unchanged.
        """
        observation, _, _, _, infos, _ = self._batch._set_boards_vector(
            list(boards), self._first_seeds()
        )
        return self._observed(observation, infos), infos

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Returns the board after each legal action of every game.

        Such a grid is what `step` returns as the observation after that action: the
        opponent's rows are the lower ones, the mover's own the upper ones. An action
        wins if its grid has no seed in the lower half.

        Returns:
            grids: (n, actions, 2 * rows, columns) uint8, as the player to move *next*
                sees them; zero where the mask is false.
            masks: (n, actions) bool, true for a legal action; unlike `action_masks()` all
                false where the game is over, since nothing can be played there.
        """
        return self._batch.afterstates()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Starts all games, or those of a mask.

        Args:
            seed: an integer, from which game `i` gets `seed + i`, or one (or None)
                for each game.
            options: `{"board": Board}` to start from a board; `{"seat": seat}` to seat the
                agents for this game, 0 or 1 or (n) of them; `{"reset_mask": mask}` with
                (n) bool to start only some of the games. The dict is not changed.

        Returns:
            The observations and the information; where `reset_mask` is false the
            observation is that of the game as it stands and the information zero.
            Without an opponent nothing is random: games of one start are all alike
            until the actions differ.

        Raises:
            ValueError: if an option is unknown, the board is over or of other
                rules, or a length is wrong. The games go on unchanged.
            TypeError: if `reset_mask` is no array of bool.
        """
        board, seat = start_options(options, self._batch, "reset_mask")
        mask = self._reset_mask(options)
        seeds = self._seeds(seed)
        observation, _, _, _, infos, _ = self._batch._reset_vector(mask, board, seeds, seat)
        observations = self._observed(observation, infos)
        if mask is not None:
            for column in infos.values():
                column[~mask] = 0
        return observations, infos

    def step(
        self, actions: ArrayLike
    ) -> tuple[
        Observations, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Plays one ply in every game.

        Args:
            actions: (n) integers.

        Returns:
            Observations, rewards (n) float64, terminated (n) bool, truncated (n) bool
            and information; all of them new arrays.

        Raises:
            IllegalMoveError: if an action is not legal; the message names the game,
                the action and the legal ones. No game has moved.
            ValueError: if the shape is not (n,).
            TypeError: if the actions are no integers.
            gymnasium.error.ResetNeeded: before the first reset, and if a game is over
                that only a reset starts again.
        """
        observation, rewards, terminated, truncated, infos, finals = self._batch._step_vector(
            actions
        )
        if finals is not None:
            self._add_finals(infos, finals)
        return self._observed(observation, infos), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Returns the boards, each as `KatroEnv.render` does."""
        if self.render_mode is None:
            gym.logger.warn(
                "render() needs a render mode: make the environment with "
                'render_mode="ansi" or render_mode="rgb_array"'
            )
            return None
        return tuple(render_board(board, self.render_mode) for board in self.boards())

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None] | None:
        """Returns the seed of every game; None for games that draw on."""
        if seed is None:
            return self._first_seeds()
        seeds: list[int | None]
        if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            if len(seed) != self.num_envs:
                raise ValueError(
                    f"{self.num_envs} games need {self.num_envs} seeds, got {len(seed)}"
                )
            seeds = [None if one is None else game_seed(one) for one in seed]
        else:
            first = game_seed(seed)
            super().reset(seed=first)
            seeds = [first + i for i in range(self.num_envs)]
        if not self._draws:
            return None
        chance = self._first_seeds()
        return [
            chance[i] if one is None and chance is not None else one for i, one in enumerate(seeds)
        ]

    def _first_seeds(self) -> list[int | None] | None:
        """Returns seeds of chance for games that draw and have none yet."""
        if not self._draws or self._seeded:
            return None
        self._seeded = True
        first = self.np_random_seed
        assert isinstance(first, int)
        return [first + i for i in range(self.num_envs)]

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_] | None:
        """Returns the games that the options of a reset name, None for all."""
        if options is None or "reset_mask" not in options:
            return None
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"the option 'reset_mask' must be an array of bool, got {mask!r}")
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"the option 'reset_mask' must have the shape ({self.num_envs},), got {mask.shape}"
            )
        if not mask.any():
            raise ValueError("the option 'reset_mask' must be true for at least one game")
        return mask

    def _observed(self, observation: NDArray[np.uint8], infos: dict[str, Any]) -> Observations:
        if not self._dict:
            return observation
        return {"action_mask": infos["action_mask"].copy(), "observation": observation}

    def _add_finals(self, infos: dict[str, Any], finals: Finals) -> None:
        """Adds how the games ended that started again in this step."""
        ended = np.zeros(self.num_envs, np.bool_)
        ended[finals.game] = True
        masks = np.ones((len(finals.game), self._batch.rules.num_actions), np.int8)
        final_obs = np.full(self.num_envs, None, dtype=object)
        for game, observation, mask in zip(
            finals.game.tolist(), finals.observation, masks, strict=True
        ):
            seen = observation.copy()
            final_obs[game] = (
                {"observation": seen, "action_mask": mask.copy()} if self._dict else seen
            )
        final_info: dict[str, Any] = {}
        for name in INFO:
            values: NDArray[Any] | None = masks if name == "action_mask" else getattr(finals, name)
            if values is None:
                continue
            column = np.zeros((self.num_envs, *values.shape[1:]), values.dtype)
            column[finals.game] = values
            final_info[name] = column
            final_info[f"_{name}"] = ended.copy()
        infos["final_obs"] = final_obs
        infos["_final_obs"] = ended.copy()
        infos["final_info"] = final_info
        infos["_final_info"] = ended


def game_seed(seed: Any) -> int:
    """Returns a seed as an integer of 0 or more."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"a seed must be an integer, got {seed!r}") from None
    if number < 0:
        raise ValueError(f"a seed must be 0 or more, got {number}")
    return number
