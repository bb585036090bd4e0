"""Learns Katro by self-play: masked PPO in JAX, one file.

    python examples/ppo_jax.py                  ten minutes of training on two cores
    python examples/ppo_jax.py --seconds 10     a quick look

Needs `pip install "katro[jax]"`.

Where the sowing of a ply ends is hard to see for a network and free to ask the engine
for. So the policy looks one ply ahead: an action's logit is what the network makes of its
*afterstate*, the grid after the move as the player to move next sees it. The same network
has a second output, the value of a grid for the player to move, from -1 to 1.

One network plays both sides. The next value is then the other player's, so it counts
against the mover.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

import katro

Array: TypeAlias = Any  # of JAX
Network: TypeAlias = dict[str, Array]
Results: TypeAlias = dict[str, katro.MatchResult]

RULES = katro.Rules()
HOLES = 2 * RULES.rows * RULES.columns
HIDDEN = 128
PLIES = 64  # of each game between two updates
MINIBATCHES, EPOCHS = 8, 2
LEARNING_RATE, CLIP, ENTROPY, VALUE = 3e-3, 0.2, 0.01, 0.5
LAMBDA = 0.9  # of the generalised advantage estimate; nothing is discounted
TRAINING_MAX_PLIES = 400  # only a few of the first games are longer
CHECK_GAMES, FINAL_GAMES = 400, 1000


class Rollout(NamedTuple):
    """What was played: `PLIES` plies of every game, first axis the ply, second the game."""

    observation: Array  # (plies, n, 2 * rows, columns) uint8
    afterstates: Array  # (plies, n, actions, 2 * rows, columns) uint8
    mask: Array  # (plies, n, actions) bool
    action: Array  # (plies, n)
    log_prob: Array  # (plies, n) of the action, when it was drawn
    value: Array  # (plies, n) of the observation
    reward: Array  # (plies, n), 1 for a ply that won
    over: Array  # (plies, n) bool, whether the game ended with the ply
    next_value: Array  # (plies, n) for the mover, of the position after the ply


# --- the network ---


def make_network(key: Array) -> Network:
    inputs = HOLES * 5
    first, second, last = jax.random.split(key, 3)
    orthogonal = jax.nn.initializers.orthogonal
    return {
        "w1": orthogonal(2**0.5)(first, (inputs, HIDDEN)),
        "b1": jnp.zeros(HIDDEN),
        "w2": orthogonal(2**0.5)(second, (HIDDEN, HIDDEN)),
        "b2": jnp.zeros(HIDDEN),
        "w3": orthogonal(0.01)(last, (HIDDEN, 2)),
        "b3": jnp.zeros(2),
    }


def outputs(network: Network, grids: Array) -> tuple[Array, Array]:
    """Returns the value of grids (..., 2 * rows, columns), and their logits as afterstates."""
    seeds = grids.reshape(*grids.shape[:-2], HOLES)
    # Where a lap ends depends on the exact number: small ones have inputs of their own.
    features = [seeds == 1, seeds == 2, seeds == 3, seeds >= 4, jnp.maximum(seeds, 3) / 8 - 3 / 8]
    x = jnp.concatenate(features, axis=-1, dtype=jnp.float32)
    x = jax.nn.relu(x @ network["w1"] + network["b1"])
    x = jax.nn.relu(x @ network["w2"] + network["b2"])
    x = x @ network["w3"] + network["b3"]
    return jnp.tanh(x[..., 0]), x[..., 1]


def log_policy(network: Network, afterstates: Array, masks: Array) -> Array:
    """Returns (..., actions) log-probabilities; an illegal action has the probability 0."""
    _, logits = outputs(network, afterstates)
    # Not minus infinity, of which the gradient of the entropy would be no number.
    return jax.nn.log_softmax(jnp.where(masks, logits, -1e9))


# --- self-play ---


@jax.jit
def draw(network: Network, observed: Array, afterstates: Array, masks: Array, key: Array) -> Any:
    """Returns an action for every game, its log-probability and the value of the game."""
    log_probs = log_policy(network, afterstates, masks)
    actions = jax.random.categorical(key, log_probs)
    value, _ = outputs(network, observed)
    return actions, jnp.take_along_axis(log_probs, actions[:, None], 1)[:, 0], value


@jax.jit
def value_after(network: Network, grids: Array, over: Array) -> Array:
    """Returns what grids are worth to the player who has just moved, 0 where it is over."""
    return jnp.where(over, 0, -outputs(network, grids)[0])


class Games:
    """The games that are played, over and over, to learn from."""

    def __init__(self, n: int, seed: int) -> None:
        # In this mode a game that has ended starts again within the step: there are open
        # positions only, so every row of every step is a ply to learn from.
        self.envs = katro.KatroVectorEnv(n, autoreset_mode="SameStep", max_plies=TRAINING_MAX_PLIES)
        self.observed: Any  # (n, 2 * rows, columns) uint8, as the player to move sees it
        self.observed, _ = self.envs.reset(seed=seed)

    def play(self, network: Network, key: Array) -> Rollout:
        """Returns the next plies of all games."""
        rows = []
        for step_key in jax.random.split(key, PLIES):
            observed = self.observed
            grids, masks = self.envs.afterstates()
            action, log_prob, value = draw(network, observed, grids, masks, step_key)
            self.observed, reward, won, cut_off, infos = self.envs.step(np.asarray(action))
            # Nothing follows a win; a game that the ply limit cut off would have gone on.
            after = value_after(network, self.observed, won | cut_off)
            if cut_off.any():
                last = self.observed.copy()
                last[cut_off] = np.stack(infos["final_obs"][cut_off])
                after = jnp.where(cut_off, value_after(network, last, won), after)
            rows.append(
                (observed, grids, masks, action, log_prob, value, reward, won | cut_off, after)
            )
        return Rollout(*map(np.stack, zip(*rows, strict=True)))


# --- PPO ---


@jax.jit
def advantages(rollout: Rollout) -> Array:
    """Returns (plies, n): how much better a ply was for its mover than was expected."""

    def ply(next_advantage: Array, row: Rollout) -> tuple[Array, Array]:
        surprise = row.reward + row.next_value - row.value
        # What goes well for the next mover goes badly for this one.
        advantage = surprise - LAMBDA * jnp.where(row.over, 0, next_advantage)
        return advantage, advantage

    _, found = jax.lax.scan(ply, jnp.zeros(rollout.value.shape[1]), rollout, reverse=True)
    return found


def loss(network: Network, plies: Rollout, advantage: Array, target: Array) -> Array:
    log_probs = log_policy(network, plies.afterstates, plies.mask)
    log_prob = jnp.take_along_axis(log_probs, plies.action[:, None], 1)[:, 0]
    ratio = jnp.exp(log_prob - plies.log_prob)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP)
    policy = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1).mean()
    value, _ = outputs(network, plies.observation)
    return policy + VALUE * ((value - target) ** 2).mean() - ENTROPY * entropy


optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam(eps=1e-5))


@jax.jit
def update(network: Network, state: Any, rollout: Rollout, rate: float, key: Array) -> Any:
    """Returns the network and the state of the optimizer after some epochs on a rollout."""
    found = advantages(rollout)
    samples = (rollout, found, found + rollout.value)
    samples = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)

    def minibatch(carry: Any, rows: Array) -> Any:
        network, state = carry
        slopes = jax.grad(loss)(network, *jax.tree.map(lambda x: x[rows], samples))
        steps, state = optimizer.update(slopes, state)
        return (jax.tree.map(lambda w, step: w - rate * step, network, steps), state), None

    count = len(found) * found.shape[1]
    orders = [jax.random.permutation(k, count) for k in jax.random.split(key, EPOCHS)]
    rows = jnp.concatenate(orders).reshape(EPOCHS * MINIBATCHES, -1)
    return jax.lax.scan(minibatch, (network, state), rows)[0]


# --- evaluation ---


@jax.jit
def best(network: Network, afterstates: Array, masks: Array) -> Array:
    return jnp.argmax(log_policy(network, afterstates, masks), axis=1)


def evaluate(network: Network, games: int, seed: int) -> Results:
    """Returns matches against the two weakest policies of the ladder."""

    def player(observations: NDArray[np.uint8], _: NDArray[np.bool_]) -> NDArray[np.int64]:
        # Of one size, lest the network is compiled for each number of games.
        batch = katro.Batch(games)
        boards = [katro.Board.from_grid(grid) for grid in observations]
        batch.set_boards(boards + [katro.Board()] * (games - len(boards)))
        return np.asarray(best(network, *batch.afterstates()), np.int64)[: len(boards)]

    # Pairs of games begin with two random plies and are played from both seats, so that
    # knowing one opening by heart does not pass for strength.
    return {
        name: katro.play_match(player, name, games, seed, opening=2, progress=False)
        for name in ("random", "greedy")
    }


def report(title: str, results: Results) -> None:
    for name, match in results.items():
        low, high = match.interval
        print(
            f"{title}: wins {match.win_rate:.1%} of {match.games} games against {name} "
            f"(95 % interval {low:.1%} to {high:.1%}, {match.unfinished} unfinished)",
            flush=True,
        )


def train(network: Network, args: argparse.Namespace, key: Array) -> Network:
    games = Games(args.envs, args.seed)
    state = optimizer.init(network)
    updates, checked, progress = 0, 0.0, 0.0
    seconds = 0.0
    while progress < 1:
        started = time.perf_counter()
        key, play_key, update_key = jax.random.split(key, 3)
        rollout = games.play(network, play_key)
        rate = LEARNING_RATE * (1 - progress)
        network, state = jax.block_until_ready(update(network, state, rollout, rate, update_key))
        updates += 1
        seconds += time.perf_counter() - started  # evaluations do not count
        done = updates / args.updates if args.updates else seconds / args.seconds
        progress = min(done, 1)
        if checked + 0.1 < progress < 1:
            checked = progress
            plies = updates * PLIES * args.envs
            report(
                f"{seconds:.0f} s, {plies / 1e6:.1f} M plies",
                evaluate(network, CHECK_GAMES, args.seed),
            )
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns Katro by self-play with PPO in JAX.")
    parser.add_argument("--seconds", type=float, default=600, help="time of training")
    parser.add_argument("--updates", type=int, help="updates of training, instead of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--envs", type=int, default=512, help="games played together")
    parser.add_argument("--out", type=Path, default=Path("runs/ppo_jax"))
    args = parser.parse_args()
    for name in ("seconds", "updates", "envs"):
        if getattr(args, name) is not None and not getattr(args, name) > 0:
            parser.error(f"--{name} must be more than 0, got {getattr(args, name)}")
    if args.seed < 0:
        parser.error(f"--seed must be 0 or more, got {args.seed}")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(str(error))
    key, network_key = jax.random.split(jax.random.key(args.seed))
    network = train(make_network(network_key), args, key)
    report("after training", evaluate(network, FINAL_GAMES, args.seed))
    weights: dict[str, Any] = jax.device_get(network)
    np.savez(args.out / "weights.npz", **weights)
    print(f"saved {args.out / 'weights.npz'}")


if __name__ == "__main__":
    main()
