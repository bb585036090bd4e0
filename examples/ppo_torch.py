"""Masked PPO in one file of PyTorch: learns against an opponent inside the environment.

    python examples/ppo_torch.py                     two minutes against random
    python examples/ppo_torch.py --opponent greedy

Needs `pip install "katro[torch]"`. The agent moves once per step and the opponent answers
within it; the reward is 1 for a game won and -1 for a game lost, and the seat is drawn for each
game. At the end the agent plays matches, from both seats, against random and greedy. They begin
with a few random plies, since against an opponent that leaves little to chance whole games can
be learnt by heart.

A budget of seconds buys more steps on a faster machine. With `--steps` the same seed gives
the same weights on the same machine.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import katro

ROLLOUT = 32  # steps of every game between two updates
EPOCHS, MINIBATCH = 3, 2048
LEARNING_RATE = 2e-3  # at first; it falls linearly to zero
DISCOUNT, TRACE = 0.998, 0.8  # gamma and lambda
CLIP, ENTROPY, MAX_NORM = 0.2, 0.01, 0.5
HIDDEN = 128
MAX_PLIES = 600  # hardly a game between players that try to win takes longer


# --- the agent ---


class Agent(nn.Module):
    """Policy and value of a position.

    Where the sowing of a ply ends is hard to see for a network and free to ask the engine for.
    So the logit of an action is what the network makes of its afterstate, the grid after the
    ply as the player to move next sees it.
    """

    features: Tensor

    def __init__(self, rules: katro.Rules) -> None:
        super().__init__()
        # What the network sees of a hole: is it 1, 2, 3, at least 4, and how many more. Where a
        # lap ends depends on the exact number, so small ones have inputs of their own.
        seeds = torch.arange(rules.total_seeds + 1)
        planes = [seeds == 1, seeds == 2, seeds == 3, seeds >= 4, (seeds - 3).clamp(min=0) / 8]
        self.register_buffer("features", torch.stack(planes, dim=1).float(), persistent=False)
        inputs = 2 * rules.rows * rules.columns * len(planes)
        self.body = nn.Sequential(
            nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        )
        self.actor = nn.Linear(HIDDEN, 1)
        self.critic = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.actor.weight)  # starts as the random player

    def hidden(self, grids: Tensor) -> Tensor:
        """Returns (..., hidden) of grids (..., 2 * rows, columns)."""
        hidden: Tensor = self.body(self.features[grids.int()].flatten(-3))
        return hidden

    def policy(self, afterstates: Tensor, masks: Tensor) -> Tensor:
        """Returns log-probabilities (n, actions), -inf if illegal."""
        logits: Tensor = self.actor(self.hidden(afterstates)).squeeze(-1)
        return logits.masked_fill(~masks, -torch.inf).log_softmax(dim=1)

    def value(self, grids: Tensor) -> Tensor:
        """Returns (n), as the player to move sees it."""
        values: Tensor = self.critic(self.hidden(grids)).squeeze(-1)
        return values


def entropy_of(log_probs: Tensor) -> Tensor:
    """Returns (n); an illegal action adds 0 to it, where 0 times -inf would be NaN."""
    return -(log_probs.exp() * log_probs.masked_fill(log_probs.isneginf(), 0)).sum(dim=1)


# --- what a policy is learnt from ---


class Rollout(NamedTuple):
    """Steps of all games, (steps, n, ...) each."""

    grids: Tensor
    afterstates: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    rewards: Tensor
    ends: Tensor
    following: Tensor  # the value of the position after the step, 0 if the game was decided


@torch.no_grad()
def collect(
    agent: Agent, envs: katro.KatroVectorEnv, observations: Any
) -> tuple[Rollout, NDArray[np.uint8]]:
    """Plays on from the observations of the last step."""
    steps: list[tuple[Tensor, ...]] = []
    for _ in range(ROLLOUT):
        grids = torch.from_numpy(observations)
        afterstates, masks = map(torch.from_numpy, envs.afterstates())
        log_probs, values = agent.policy(afterstates, masks), agent.value(grids)
        actions = log_probs.exp().multinomial(1)
        observations, rewards, terminated, truncated, infos = envs.step(actions[:, 0].numpy())
        cut_off = torch.zeros(len(values))
        if truncated.any():
            # Such a game could have gone on: what it was worth is the value of its last
            # position, in which, as in every observation here, the agent is to move.
            finals = torch.from_numpy(np.stack(infos["final_obs"][truncated]))
            cut_off[torch.from_numpy(truncated)] = agent.value(finals)
        ends = torch.from_numpy(terminated | truncated)
        taken = log_probs.gather(1, actions)[:, 0]
        reward = torch.from_numpy(rewards).float()
        row = (grids, afterstates, masks, actions[:, 0], taken, values, reward, ends, cut_off)
        steps.append(row)
    rollout = Rollout(*(torch.stack(column) for column in zip(*steps, strict=True)))
    # So far `following` is right where a game has ended. Elsewhere it is the value of the next
    # row, which after an end is the start of another game.
    values = torch.cat([rollout.values[1:], agent.value(torch.from_numpy(observations))[None]])
    following = torch.where(rollout.ends, rollout.following, values)
    return rollout._replace(following=following), observations


def advantages_of(rewards: Tensor, values: Tensor, following: Tensor, ends: Tensor) -> Tensor:
    """Returns generalised advantage estimates, (steps, n) as everything here.

    `following` is the value of the position after the step, `ends` says after which steps a
    new game begins, over which no advantage is handed back.
    """
    errors = rewards + DISCOUNT * following - values
    advantages = torch.zeros_like(errors)
    carried = torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        carried = errors[t] + DISCOUNT * TRACE * carried * ~ends[t]
        advantages[t] = carried
    return advantages


def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout) -> None:
    """Changes the agent by some epochs of PPO on what it has played."""
    advantages = advantages_of(rollout.rewards, rollout.values, rollout.following, rollout.ends)
    rows = Rollout(*(column.flatten(0, 1) for column in rollout))
    advantages = advantages.flatten()
    targets = advantages + rows.values
    for _ in range(EPOCHS):
        order = torch.randperm(len(targets))
        for first in range(0, len(order), MINIBATCH):
            some = order[first : first + MINIBATCH]
            log_probs = agent.policy(rows.afterstates[some], rows.masks[some])
            values = agent.value(rows.grids[some])
            taken = log_probs.gather(1, rows.actions[some, None])[:, 0]
            ratio = (taken - rows.log_probs[some]).exp()
            gain = advantages[some]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            value_loss = (values - targets[some]).square().mean()
            loss = policy_loss + 0.5 * value_loss - ENTROPY * entropy_of(log_probs).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
            optimizer.step()


# --- training and evaluation ---


def make_envs(args: argparse.Namespace) -> katro.KatroVectorEnv:
    # In this mode a game that has ended starts again within the step, so every row is a
    # transition. With "NextStep" the row after an end is none and has to be left out of the
    # updates, here from arrays in which steps and games are the axes.
    return katro.KatroVectorEnv(
        args.envs,
        rules=args.rules,
        opponent=args.opponent,
        max_plies=MAX_PLIES,
        autoreset_mode="SameStep",
    )


def train(agent: Agent, envs: katro.KatroVectorEnv, args: argparse.Namespace) -> None:
    observations, _ = envs.reset(seed=args.seed)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    started = reported = time.perf_counter()
    steps = games = won = 0
    progress = 0.0
    while progress < 1:
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - progress)
        rollout, observations = collect(agent, envs, observations)
        update(agent, optimizer, rollout)
        steps += rollout.rewards.numel()
        games += int(rollout.ends.sum())
        won += int((rollout.rewards > 0).sum())
        now = time.perf_counter()
        done = steps / args.steps if args.steps else (now - started) / args.seconds
        progress = min(done, 1.0)
        if now - reported > 5 or progress == 1:
            rate = won / max(games, 1)
            speed = steps / (now - started)
            print(
                f"{progress:4.0%} {steps:>9,} steps, {speed:,.0f} a second: "
                f"won {rate:.1%} of {games:,} games",
                flush=True,
            )
            reported, games, won = now, 0, 0


def evaluate(agent: Agent, args: argparse.Namespace) -> None:
    """Prints how the agent does if it takes the action it holds for the best."""

    @torch.no_grad()
    def ppo(grids: NDArray[np.uint8], masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        batch = katro.Batch(len(grids), rules=args.rules)
        batch.set_boards([katro.Board.from_grid(grid, rules=args.rules) for grid in grids])
        # The masks know what a grid does not tell: the direction that a player is bound to.
        afterstates, _ = batch.afterstates()
        log_probs = agent.policy(torch.from_numpy(afterstates), torch.from_numpy(masks))
        actions: NDArray[np.int64] = log_probs.argmax(dim=1).numpy()
        return actions

    for name in ("random", "greedy"):
        print(katro.play_match(ppo, name, args.games, args.seed, rules=args.rules, progress=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120, help="time of training")
    parser.add_argument("--steps", type=int, help="steps of training, instead of a time")
    parser.add_argument("--opponent", default="random", help="whom to train against")
    parser.add_argument("--rules", default="katro")
    parser.add_argument("--envs", type=int, default=256, help="games played together")
    parser.add_argument("--games", type=int, default=1000, help="to evaluate by")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/ppo_torch"))
    args = parser.parse_args()
    for name in ("seconds", "steps", "envs", "games"):
        if getattr(args, name) is not None and not getattr(args, name) > 0:
            parser.error(f"--{name} must be more than 0, got {getattr(args, name)}")
    if args.seed < 0:
        parser.error(f"--seed must be 0 or more, got {args.seed}")
    try:
        rules = katro.Rules.named(args.rules)
        envs = make_envs(args)
        args.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        parser.error(str(error))

    torch.set_num_threads(1)  # the network is small
    torch.manual_seed(args.seed)
    agent = Agent(rules)
    train(agent, envs, args)
    path = args.out / "weights.pt"
    torch.save(agent.state_dict(), path)
    print(f"saved {path}")
    evaluate(agent, args)


if __name__ == "__main__":
    main()
