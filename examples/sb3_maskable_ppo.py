"""Trains MaskablePPO against an opponent inside the environment, and evaluates it with masks.

    python examples/sb3_maskable_ppo.py                        against random, then greedy
    python examples/sb3_maskable_ppo.py --opponents random minimax:2 --steps 2000000

Needs `pip install "katro[sb3]"`. The agent moves once per step and the opponent answers
within it; the reward is 1 for a game won and -1 for a game lost. The seat is drawn for
each game. An opponent that is hardly ever beaten teaches little, so a weak one comes first.
A win rate against random says little, since plain greed (most own seeds after the move)
wins 98 % of those games: both are reported.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from torch import nn

import katro
from katro.match import Player
from katro.sb3 import KatroVecEnv

MAX_PLIES = 600  # hardly a game between players that try to win takes longer


class Lookahead(BaseFeaturesExtractor):
    """The value of the board, and a logit for each action from its afterstate.

    An afterstate is the grid after an action as the player to move next sees it. Where the
    sowing of a ply ends is hard to see for a network and free to ask the engine for.
    """

    def __init__(self, observation_space: spaces.Box, rules: str) -> None:
        super().__init__(observation_space, 1 + katro.Rules.named(rules).num_actions)
        self.rules = katro.Rules.named(rules)
        # What the network sees of each hole: is it 1, 2 or 3, at least 4, and how many more.
        # Where a lap ends depends on the exact number, so small ones have inputs of their own.
        seeds = torch.arange(self.rules.total_seeds + 1)
        planes = [seeds == 1, seeds == 2, seeds == 3, seeds >= 4, (seeds - 3).clamp(min=0) / 8]
        self.register_buffer("planes", torch.stack(planes, dim=1).float(), persistent=False)
        inputs = len(planes) * math.prod(observation_space.shape)
        self.network = nn.Sequential(
            nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Returns (n, 1 + actions) for (n, 2 * rows, columns) seeds."""
        batch = katro.Batch(len(observations), rules=self.rules)
        grids = observations.numpy().astype(np.uint8)
        batch.set_boards([katro.Board.from_grid(grid, rules=self.rules) for grid in grids])
        afterstates, _ = batch.afterstates()
        seen = torch.from_numpy(np.concatenate([grids[:, None], afterstates], axis=1))
        outputs = self.network(self.planes[seen.int()].flatten(2))
        return torch.cat([outputs[:, :1, 0], outputs[:, 1:, 1]], dim=1)


class Columns(nn.Module):
    """Some columns of what it gets."""

    def __init__(self, columns: slice) -> None:
        super().__init__()
        self.columns = columns

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Returns (n, columns) of (n, features)."""
        return features[:, self.columns]


class LookaheadPolicy(MaskableActorCriticPolicy):
    """A policy whose features are the value and the logits themselves."""

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        nn.init.zeros_(self.features_extractor.network[-1].weight)  # starts as the random player
        self.value_net, self.action_net = Columns(slice(0, 1)), Columns(slice(1, None))
        # The optimizer that was made knew the layers that have gone.
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


class Progress(BaseCallback):
    """Prints now and then how the last games of the training went."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every
        self.steps = 0
        self.start = time.perf_counter()

    def _on_step(self) -> bool:
        self.steps += self.training_env.num_envs
        if self.steps % self.every < self.training_env.num_envs and self.model.ep_info_buffer:
            returns = [episode["r"] for episode in self.model.ep_info_buffer]
            won = np.mean(np.array(returns) > 0)
            speed = self.steps / (time.perf_counter() - self.start)
            print(
                f"{self.num_timesteps:>10,} steps: won {won:4.0%} of the last {len(returns)}, "
                f"{speed:,.0f} steps/s"
            )
        return True


def make_model(envs: VecEnv, rules: str, seed: int) -> MaskablePPO:
    """Returns an agent that has learnt nothing yet."""
    return MaskablePPO(
        LookaheadPolicy,
        envs,
        n_steps=128,
        batch_size=1024,
        n_epochs=4,
        gamma=0.998,
        gae_lambda=0.8,
        learning_rate=2e-3,
        ent_coef=0.01,
        policy_kwargs={
            "features_extractor_class": Lookahead,
            "features_extractor_kwargs": {"rules": rules},
            "net_arch": [],
        },
        seed=seed,
        device="cpu",
    )


def player(model: MaskablePPO) -> Player:
    """Returns the agent as a player for `katro.play_match`."""

    def maskable_ppo(grids: NDArray[np.uint8], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        # Without the masks the agent would try illegal actions, which it never had to unlearn.
        actions: NDArray[np.int64]
        actions, _ = model.predict(grids, action_masks=masks, deterministic=True)
        return actions

    return maskable_ppo


def main() -> None:
    """Trains, saves, loads and evaluates."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--opponents",
        nargs="+",
        default=["random", "greedy", "greedy"],
        help="whom to train against, each for the same share of the steps",
    )
    parser.add_argument("--rules", default="katro")
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--games", type=int, default=400, help="to evaluate by")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/sb3_maskable_ppo"))
    arguments = parser.parse_args()
    for name in ("steps", "envs", "games"):
        if getattr(arguments, name) <= 0:
            parser.error(f"--{name} must be more than 0, got {getattr(arguments, name)}")
    if arguments.seed < 0:
        parser.error(f"--seed must be 0 or more, got {arguments.seed}")
    try:
        stages = [
            VecMonitor(
                KatroVecEnv(
                    arguments.envs, rules=arguments.rules, opponent=opponent, max_plies=MAX_PLIES
                )
            )
            for opponent in arguments.opponents
        ]
        arguments.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        parser.error(str(error))

    torch.set_num_threads(1)  # the network is small
    model = make_model(stages[0], arguments.rules, arguments.seed)
    steps = arguments.steps // len(stages)
    for opponent, envs in zip(arguments.opponents, stages, strict=True):
        print(f"against {opponent}")
        model.set_env(envs)
        model.learn(steps, callback=Progress(max(steps // 8, 1)), reset_num_timesteps=False)
    path = arguments.out / "model.zip"
    model.save(path)
    print(f"saved {path}")

    model = MaskablePPO.load(path, device="cpu")
    for opponent in ("random", "greedy"):
        print(
            katro.play_match(
                player(model), opponent, arguments.games, arguments.seed, rules=arguments.rules
            )
        )


if __name__ == "__main__":
    main()
