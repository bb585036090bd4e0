"""Katro for stable-baselines3: many games as one of its own vector environments.

`KatroVecEnv` steps all games in one call. A `katro.KatroEnv` alone, or in SB3's `Monitor`,
`DummyVecEnv` and `SubprocVecEnv`, works as it is; sb3-contrib finds the masks in all of them.

>>> from katro.sb3 import KatroVecEnv
>>> envs = KatroVecEnv(64)
>>> observations = envs.reset()
>>> masks = envs.action_masks()
>>> observations, rewards, dones, infos = envs.step(masks.argmax(axis=1))
>>> observations.shape, rewards.dtype.name, infos[0]
((64, 6, 6), 'float32', {})
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from katro import Board, Finals, KatroVectorEnv, Step
from katro.env import render_board
from katro.vector import INFO

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError('katro.sb3 needs stable-baselines3: pip install "katro[sb3]"') from error

__all__ = ["KatroVecEnv"]

Observations: TypeAlias = "NDArray[np.uint8] | dict[str, NDArray[Any]]"
Indices: TypeAlias = "int | Iterable[int] | None"


class KatroVecEnv(VecEnv):
    """Many games of Katro, stepped together, as stable-baselines3's `VecEnv`.

    Observations, rewards, dones and masks are those of `DummyVecEnv` over as many
    `katro.KatroEnv`, but native. sb3-contrib's `MaskablePPO` finds the masks by itself.

    A game that has ended starts again in the same step. Its dict in `infos` then has the
    last observation as `terminal_observation`, as `TimeLimit.truncated` whether the ply limit
    has cut it off, and what `KatroEnv` says of its last step (`winner`, `to_move` …). The
    dicts of the other games are empty.

    Args:
        num_envs: the number of games.
        observation: `"grid"` for `MlpPolicy`, or `"dict"` for `MultiInputPolicy`.
        render_mode: None, `"ansi"` or `"rgb_array"`.
        **options: other options of `katro.KatroVectorEnv`: `rules`, `opponent`, `seat`,
            `illegal`, `max_plies`, `num_threads`.

    Raises:
        TypeError: if there is no such option.
        ValueError: if an argument is not one of those above.

    >>> from katro.sb3 import KatroVecEnv
    >>> envs = KatroVecEnv(2, rules="katro-4x4", max_plies=500)
    >>> envs.reset().shape
    (2, 4, 4)
    >>> envs.env_method("action_masks")
    [array([ True,  True,  True,  True]), array([ True,  True,  True,  True])]
    """

    def __init__(
        self,
        num_envs: int,
        *,
        observation: Literal["grid", "dict"] = "grid",
        render_mode: Literal["ansi", "rgb_array"] | None = None,
        **options: Any,
    ) -> None:
        # SB3 starts games again in the same step, and keeps the last observations until
        # after the next one: neither can be chosen.
        self._arguments: dict[str, Any] = dict(
            autoreset_mode="SameStep",
            copy=True,
            observation=observation,
            render_mode=render_mode,
            **options,
        )
        self._envs = KatroVectorEnv(num_envs, **self._arguments)
        self._dict = observation == "dict"
        self._games = [Game(self._envs, i) for i in range(self._envs.num_envs)]
        self._actions: ArrayLike | None = None
        super().__init__(
            self._envs.num_envs,
            self._envs.single_observation_space,
            self._envs.single_action_space,
        )

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns (n, actions) bool, true for a legal action; a new array each time."""
        return self._envs.action_masks()

    def reset(self) -> Observations:
        """Starts all games, with what `seed` and `set_options` have said since the last reset.

        The options are those of `KatroEnv.reset`, such as `{"board": board}` to start from a
        board.

        Raises:
            ValueError: if an option is unknown, or a board is over or of other rules. The
                games go on unchanged.
            TypeError: if an option is of the wrong kind.
        """
        seeds, options = self._seeds, self._options
        self._reset_seeds()
        self._reset_options()
        if any(options):
            observations, infos = self._reset_with(seeds, options)
        else:
            observations, infos = self._envs.reset(seed=None if None in seeds else seeds)
        self.reset_infos = [
            {name: value(infos[name][i]) for name in INFO if name in infos}
            for i in range(self.num_envs)
        ]
        return observations

    def step_async(self, actions: ArrayLike) -> None:
        """Takes the (n) actions that `step_wait` will play."""
        self._actions = actions

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[Any]]:
        """Plays one ply in every game, and the opponent's answer if there is one.

        Returns:
            Observations, rewards (n) float32, dones (n) bool and a dict for each game, which is
            empty unless the game has ended.

        Raises:
            IllegalMoveError: if an action is not legal; the message names the game, the
                action and the legal ones. No game has moved.
            ValueError: if the shape is not (n,), or there was no `step_async` before.
            TypeError: if the actions are no integers.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        actions, self._actions = self._actions, None
        if actions is None:
            raise ValueError("step_wait needs a step_async first")
        step = self._envs._batch.step(actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if step.finals is not None:
            self._add_ends(infos, step, step.finals)
        observations = self._observed(step.observation, step.action_mask)
        return observations, step.reward.astype(np.float32), step.terminated | step.truncated, infos

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Returns a picture of each game, None without the render mode `"rgb_array"`."""
        if self.render_mode != "rgb_array":
            return [None] * self.num_envs
        return [game.render() for game in self._games]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Returns an attribute of each game: see `Game`, and what `set_attr` has set.

        Raises:
            AttributeError: if there is no such attribute.
        """
        return [getattr(game, attr_name) for game in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Keeps a value with each game for `get_attr`; the game does not change.

        Raises:
            AttributeError: if it is an attribute that belongs to the game.
        """
        for game in self._chosen(indices):
            setattr(game, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of each game: see `Game`. `action_masks` makes one call for all.

        Raises:
            AttributeError: if there is no such method.
        """
        if method_name == "action_masks" and not method_args and not method_kwargs:
            masks = self._envs.action_masks()
            if indices is not None:
                masks = masks[[game.index for game in self._chosen(indices)]]
            return list(masks)
        return [
            getattr(game, method_name)(*method_args, **method_kwargs)
            for game in self._chosen(indices)
        ]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Returns false for each game: there are no Gymnasium wrappers around them."""
        return [False for _ in self._chosen(indices)]

    def _observed(self, grids: NDArray[np.uint8], masks: NDArray[np.int8]) -> Observations:
        return {"observation": grids, "action_mask": masks} if self._dict else grids

    def _add_ends(self, infos: list[dict[str, Any]], step: Step, finals: Finals) -> None:
        """Says how games have ended and that they have started again."""
        for k, i in enumerate(finals.game.tolist()):
            infos[i] = row(finals, k)
            infos[i]["TimeLimit.truncated"] = bool(step.truncated[i])
            ones = np.ones_like(step.action_mask[i])
            infos[i]["terminal_observation"] = self._observed(finals.observation[k], ones)
            self.reset_infos[i] = row(step, i)

    def _chosen(self, indices: Indices) -> list[Game]:
        """Returns the games with these numbers, all for None."""
        if indices is None:
            return self._games
        return [self._games[i] for i in self._get_indices(indices)]

    def _reset_with(
        self, seeds: list[int | None], options: list[dict[str, Any]]
    ) -> tuple[Observations, dict[str, Any]]:
        """Starts the games, each with its own options, those with equal ones together."""
        if len(options) != self.num_envs:
            raise ValueError(f"{self.num_envs} games need {self.num_envs} options")
        groups: dict[Any, list[int]] = {}
        for i, option in enumerate(options):
            groups.setdefault(frozenset(option.items()), []).append(i)
        if len(groups) > 1:
            # A wrong one is refused before any game has started.
            trial = KatroVectorEnv(1, **self._arguments)
            for group in groups.values():
                trial.reset(options=options[group[0]])
        infos: dict[str, Any] = {}
        for group in groups.values():
            mask = np.zeros(self.num_envs, np.bool_)
            mask[group] = True
            observations, some = self._envs.reset(
                seed=[seed if started else None for seed, started in zip(seeds, mask, strict=True)],
                options={**options[group[0]], "reset_mask": mask},
            )
            for name, column in some.items():
                infos.setdefault(name, column)[mask] = column[mask]
        return observations, infos


class Game:
    """One game of a `KatroVecEnv`, for `get_attr` and `env_method`."""

    def __init__(self, envs: KatroVectorEnv, index: int) -> None:
        self._envs = envs
        self._index = index

    @property
    def index(self) -> int:
        """The number of the game."""
        return self._index

    @property
    def board(self) -> Board:
        """The board as it stands."""
        return self._envs._batch._board(self._index)

    @property
    def render_mode(self) -> str | None:
        """The render mode of all games."""
        return self._envs.render_mode

    @property
    def observation_space(self) -> Any:
        """The space of what one player sees."""
        return self._envs.single_observation_space

    @property
    def action_space(self) -> Any:
        """The space of one action."""
        return self._envs.single_action_space

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns (actions) bool, true for a legal action."""
        masks: NDArray[np.bool_] = self._envs.action_masks()[self._index]
        return masks

    def render(self) -> Any:
        """Returns the board as the render mode says, None without one."""
        mode = self._envs.render_mode
        return None if mode is None else render_board(self.board, mode)


def row(step: Step | Finals, i: int) -> dict[str, Any]:
    """Returns the information of one game of a step."""
    columns = {name: getattr(step, name, None) for name in INFO}
    return {name: value(column[i]) for name, column in columns.items() if column is not None}


def value(entry: Any) -> Any:
    """Returns a number as Python's, an array as a copy."""
    return entry.copy() if isinstance(entry, np.ndarray) else entry.item()
