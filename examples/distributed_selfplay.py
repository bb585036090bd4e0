"""Learns Katro by self-play on as many cores or machines as there are, with Ray and NumPy only.

    python examples/distributed_selfplay.py --seconds 60           every core of this machine
    python examples/distributed_selfplay.py --address auto         every core of a cluster
    python examples/distributed_selfplay.py --checkpoint runs/d             keeps the run
    python examples/distributed_selfplay.py --checkpoint runs/d --resume    goes on with it

Needs `pip install katro ray`, on every machine. The agent is that of `selfplay_td.py`: a small
network that estimates the result for the player to move, and TD(0) on afterstates. Here workers
play, each with games and a copy of the weights of its own, and send the slope of the loss over
the plies of a round. The learner takes a step of Adam for every answer, in the order in which
they come, and sends the new weights back.

With an answer comes all that its worker needs to go on. When a worker dies, another one takes
its place and plays on from its last answer: nothing but the unfinished round is lost, and no
round is counted twice. A checkpoint keeps the last answers of all workers with the weights, so
that with one worker a resumed run equals one that never stopped; more of them answer in an order
of their own. `--seconds` and `--updates` count from the start of the run, not from the resume.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

# The matrices are small: a second BLAS thread only takes the core of another worker. Must be
# set before NumPy is loaded; on other machines Ray itself gives an actor of one CPU one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import ray
from numpy.typing import NDArray
from ray.exceptions import RayError, RayTaskError

import katro

Floats: TypeAlias = NDArray[np.floating[Any]]
Grids: TypeAlias = NDArray[np.uint8]
Masks: TypeAlias = NDArray[np.bool_]
Actions: TypeAlias = NDArray[np.int64]
Network: TypeAlias = tuple[Floats, ...]  # w1 (inputs, hidden), b1 (hidden), w2 (hidden), b2 (1)
# What a worker goes on from: its games, what their movers see, and its chance.
State: TypeAlias = tuple[katro.Batch, Grids, np.random.Generator]

RULES = katro.Rules()
HOLES = 2 * RULES.rows * RULES.columns
HIDDEN = 64
GAMES, PLIES = 256, 4  # games of a worker, and plies of each in a round
LEARNING_RATE = 3e-3  # at first
EXPLORE = 0.1  # the share of random plies in self-play
MAX_PLIES = 400  # only a few of the first games are longer
CHECKPOINT_SECONDS = 10  # of training that a learner that is stopped may lose
CHECKPOINT = "selfplay.pickle"
RETRIES = 3  # so often in a row a worker may die; then something is wrong with all of them

# What the network sees of a hole, by its seeds: is it 1, 2, 3, at least 4, and how many more.
SEEDS = np.arange(RULES.total_seeds + 1)
FEATURES = np.stack(
    [SEEDS == 1, SEEDS == 2, SEEDS == 3, SEEDS >= 4, np.maximum(SEEDS - 3, 0) / 8], axis=1
).astype(np.float32)


# --- the network: one hidden layer, tanh at the end ---


def make_network(rng: np.random.Generator) -> Network:
    inputs = HOLES * FEATURES.shape[1]
    return (
        rng.normal(0, np.sqrt(4 / inputs), (inputs, HIDDEN)).astype(np.float32),
        np.zeros(HIDDEN, np.float32),
        rng.normal(0, 0.1 / np.sqrt(HIDDEN), HIDDEN).astype(np.float32),
        np.zeros(1, np.float32),
    )


def forward(network: Network, grids: Grids) -> tuple[Floats, Floats, Floats]:
    """Returns V (n) of grids (n, 2 * rows, columns), and the layers that led to it."""
    w1, b1, w2, b2 = network
    inputs = FEATURES[grids.reshape(len(grids), HOLES)].reshape(len(grids), -1)
    hidden = np.maximum(inputs @ w1 + b1, 0)
    return np.tanh(hidden @ w2 + b2), hidden, inputs


def gradient(network: Network, grids: Grids, targets: Floats) -> Network:
    """Returns the slope of the cross-entropy of the chance to win, (1 + V) / 2."""
    values, hidden, inputs = forward(network, grids)
    error = (values - targets) / len(targets)
    back = np.outer(error, network[2]) * (hidden > 0)
    return inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(keepdims=True)


def opponent_values(network: Network, grids: Grids, masks: Masks) -> Floats:
    """Returns (n, actions): what each action is worth to the opponent, infinity if illegal."""
    values = np.full(masks.shape, np.inf, np.float32)
    values[masks] = forward(network, grids[masks])[0]
    # R10: where the opponent, now to move, has no seed in his half, he has lost.
    values[masks & ~grids[:, :, RULES.rows :].any(axis=(2, 3))] = -1
    return values


# --- the workers ---


def new_state(rng: np.random.Generator) -> State:
    # A game that has ended starts again within the step: there are open positions only.
    games = katro.Batch(GAMES, autoreset_mode="SameStep", max_plies=MAX_PLIES, num_threads=1)
    return games, games.reset().observation, rng


class Worker:
    def __init__(self, state: State) -> None:
        self.games, self.observed, self.rng = state

    def play(self, network: Network) -> tuple[Network, State]:
        """Plays a round, and returns the slope of its plies and the state after it."""
        grids, targets = [], []
        for _ in range(PLIES):
            afterstates, masks = self.games.afterstates()
            values = opponent_values(network, afterstates, masks)
            # The mover's value is that of his best action for the opponent, with the other sign.
            grids.append(self.observed)
            targets.append(-values.min(axis=1))
            actions = values.argmin(axis=1)
            # All games start alike, so without exploration they would also go on alike.
            explores = self.rng.random(GAMES) < EXPLORE
            chance = (masks * (1 - self.rng.random(masks.shape))).argmax(axis=1)
            self.observed = self.games.step(np.where(explores, chance, actions)).observation
        slope = gradient(network, np.concatenate(grids), np.concatenate(targets))
        return slope, (self.games, self.observed, self.rng)


RemoteWorker: Any = ray.remote(num_cpus=1)(Worker)


# --- the learner ---


class Learner:
    """The weights, and the workers that play with them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.network = make_network(self.rng)
        self.means = [np.zeros_like(weights) for weights in self.network]
        self.squares = [np.zeros_like(weights) for weights in self.network]
        self.updates = self.plies = self.replaced = 0
        self.seconds = 0.0
        self.states: list[State] = []  # each worker's, after its last round that was learnt from

    def start(self, workers: int) -> None:
        """Starts workers; those that there were before a checkpoint go on where they stood."""
        for _ in range(len(self.states), workers):
            self.states.append(new_state(np.random.default_rng(self.rng.integers(2**63))))
        self.deaths = [0] * workers  # of each worker since its last answer
        self.workers = [RemoteWorker.remote(state) for state in self.states[:workers]]
        self.rounds: dict[Any, int] = {}  # who plays each round that is under way
        for worker in range(workers):
            self.play(worker)

    def play(self, worker: int) -> None:
        """Has a worker play a round with the weights as they are now."""
        self.rounds[self.workers[worker].play.remote(ray.put(self.network))] = worker

    def update(self) -> None:
        """Learns from the next round that is finished."""
        started = time.perf_counter()
        slope = None
        while slope is None:
            (finished,), _ = ray.wait(list(self.rounds))
            worker = self.rounds.pop(finished)
            try:
                slope, self.states[worker] = ray.get(finished)
            except RayTaskError:
                raise  # a mistake in this program, which another worker would make again
            except RayError:
                # The worker has died (RayActorError), or the node that had its answer.
                self.deaths[worker] += 1
                if self.deaths[worker] > RETRIES:
                    raise
                ray.kill(self.workers[worker])  # it may be out of reach only
                self.workers[worker] = RemoteWorker.remote(self.states[worker])
                self.replaced += 1
                self.play(worker)
        self.deaths[worker] = 0
        self.updates += 1
        self.plies += GAMES * PLIES
        self.descend(slope)
        self.play(worker)
        self.seconds += time.perf_counter() - started

    def descend(self, slope: Network) -> None:
        """Takes a step of Adam."""
        # The rate falls with the updates that were made, not with the share of those asked
        # for, so that a run can be resumed for longer.
        rate = LEARNING_RATE / (1 + self.updates / 2000)
        rate *= (1 - 0.999**self.updates) ** 0.5 / (1 - 0.9**self.updates)
        for weights, mean, square, down in zip(
            self.network, self.means, self.squares, slope, strict=True
        ):
            mean += 0.1 * (down - mean)
            square += 0.001 * (down * down - square)
            weights -= rate * mean / (np.sqrt(square) + 1e-8)

    def save(self, path: Path) -> None:
        """Writes a checkpoint; the one before stays whole until the new one is."""
        running = ("workers", "rounds", "deaths")
        content = pickle.dumps({name: x for name, x in vars(self).items() if name not in running})
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def load(self, path: Path) -> None:
        """Goes on from a checkpoint; the program ends if it cannot be read."""
        try:
            content = path.read_bytes()
            if hashlib.sha256(content[32:]).digest() != content[:32]:
                raise ValueError("it is damaged")
            vars(self).update(pickle.loads(content[32:]))
        except (OSError, ValueError) as error:
            sys.exit(f"cannot resume from {path}: {error}")


def train(learner: Learner, args: argparse.Namespace) -> None:
    saved = told = learner.seconds
    if args.checkpoint:
        learner.save(args.checkpoint / CHECKPOINT)
    while learner.updates < args.updates if args.updates else learner.seconds < args.seconds:
        learner.update()
        if learner.seconds - told > 10:
            told = learner.seconds
            print(f"{told:.0f} s: {learner.updates:,} updates, {learner.plies:,} plies", flush=True)
        if args.checkpoint and learner.seconds - saved > CHECKPOINT_SECONDS:
            saved = learner.seconds
            learner.save(args.checkpoint / CHECKPOINT)
    if args.checkpoint:
        learner.save(args.checkpoint / CHECKPOINT)


def player(network: Network) -> Callable[[Grids, Masks], Actions]:
    """Returns the network as a player for `katro.play_match`."""

    def selfplay(observations: Grids, masks: Masks) -> Actions:
        batch = katro.Batch(len(observations))
        batch.set_boards([katro.Board.from_grid(grid) for grid in observations])
        actions: Actions = opponent_values(network, *batch.afterstates()).argmin(axis=1)
        return actions

    return selfplay


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns Katro by self-play with Ray.")
    parser.add_argument("--workers", type=int, help="by default one for every core")
    parser.add_argument("--seconds", type=float, default=60, help="time of training in all")
    parser.add_argument("--updates", type=int, help="updates in all, instead of a time")
    parser.add_argument("--seed", type=int, default=0, help="of a new run, and of the matches")
    parser.add_argument("--address", help="of a Ray cluster, else this machine does it all")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where to keep the run")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--games", type=int, default=400, help="to evaluate by")
    args = parser.parse_args()
    for name in ("workers", "seconds", "updates", "games"):
        if getattr(args, name) is not None and not getattr(args, name) > 0:
            parser.error(f"--{name} must be more than 0, got {getattr(args, name)}")
    if args.seed < 0:
        parser.error(f"--seed must be 0 or more, got {args.seed}")
    if args.resume and not args.checkpoint:
        parser.error("--resume needs the --checkpoint to go on from")

    learner = Learner(args.seed)
    if args.resume:
        learner.load(args.checkpoint / CHECKPOINT)
        print(f"resumed after {learner.updates:,} updates, {learner.plies:,} plies")
    elif args.checkpoint:
        if (args.checkpoint / CHECKPOINT).exists():
            parser.error(f"{args.checkpoint} holds a run already: go on with --resume")
        try:
            args.checkpoint.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(str(error))

    if args.address:
        try:
            ray.init(address=args.address)
        except (ConnectionError, ValueError) as error:
            sys.exit(f"there is no Ray cluster at {args.address}: {error}")
    else:
        ray.init(address="local", num_cpus=args.workers, include_dashboard=False)
    try:
        learner.start(args.workers or int(ray.cluster_resources()["CPU"]))
        train(learner, args)
    finally:
        ray.shutdown()
    print(
        f"{learner.plies:,} plies in {learner.updates:,} updates, {learner.seconds:.0f} s: "
        f"{learner.plies / learner.seconds:,.0f} plies/s, {learner.replaced} workers replaced"
    )
    for name in ("random", "greedy"):
        print(katro.play_match(player(learner.network), name, args.games, args.seed, opening=2))


if __name__ == "__main__":
    main()
