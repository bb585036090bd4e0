"""Learns Katro by self-play: TD(0) on afterstates with a small network, NumPy only.

    python examples/selfplay_td.py                  a minute of training, under 70 s in all
    python examples/selfplay_td.py --seconds 3      a quick look

The network estimates V(grid), the expected result (+1 a win, -1 a loss) for the player to
move, from the grid of seeds as that player sees it. An *afterstate* is the grid after a
move as the player to move next sees it, so its V is the opponent's: the mover takes the
legal action whose afterstate has the lowest V.

A budget of seconds buys more updates on a faster machine, so results vary a little from
run to run. With `--updates` the same seed gives the same network on the same machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

# The matrices are small: a second BLAS thread costs more than it gives, and very much
# more while another program keeps that core busy. Must be set before NumPy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

import katro

Floats: TypeAlias = NDArray[np.floating[Any]]
Grids: TypeAlias = NDArray[np.uint8]
Masks: TypeAlias = NDArray[np.bool_]
Actions: TypeAlias = NDArray[np.int64]
# A match against each opponent, by its name.
Results: TypeAlias = dict[str, katro.MatchResult]
Curve: TypeAlias = dict[int, Results]  # by the plies of self-play before

RULES = katro.Rules()
HOLES = 2 * RULES.rows * RULES.columns
HIDDEN = 64
LEARNING_RATE = 3e-3  # at first; it falls linearly to zero
EXPLORE = 0.1  # the share of random plies in self-play
TRAINING_MAX_PLIES = 400  # only a few of the first games are longer
CHECKS = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # when to evaluate: most is learned early
CHECK_GAMES, FINAL_GAMES = 400, 1000

# What the network sees of a hole, by its seeds: is it 1, 2, 3, at least 4, and how many
# more. Where a lap ends depends on the exact number, so small ones have inputs of their own.
SEEDS = np.arange(RULES.total_seeds + 1)
FEATURES = np.stack(
    [SEEDS == 1, SEEDS == 2, SEEDS == 3, SEEDS >= 4, np.maximum(SEEDS - 3, 0) / 8], axis=1
).astype(np.float32)


# --- the network: one hidden layer, tanh at the end ---


class Network(NamedTuple):
    w1: Floats  # (inputs, hidden)
    b1: Floats  # (hidden)
    w2: Floats  # (hidden)
    b2: Floats  # (1)


def make_network(rng: np.random.Generator) -> Network:
    inputs = HOLES * FEATURES.shape[1]
    return Network(
        w1=rng.normal(0, np.sqrt(4 / inputs), (inputs, HIDDEN)).astype(np.float32),
        b1=np.zeros(HIDDEN, np.float32),
        w2=rng.normal(0, 0.1 / np.sqrt(HIDDEN), HIDDEN).astype(np.float32),  # V starts near 0
        b2=np.zeros(1, np.float32),
    )


def forward(network: Network, grids: Grids) -> tuple[Floats, Floats, Floats]:
    """Returns V (n) of grids (n, 2 * rows, columns), and the layers that led to it."""
    inputs = FEATURES[grids.reshape(len(grids), HOLES)].reshape(len(grids), -1)
    hidden = np.maximum(inputs @ network.w1 + network.b1, 0)
    return np.tanh(hidden @ network.w2 + network.b2), hidden, inputs


def gradient(network: Network, grids: Grids, targets: Floats) -> Network:
    values, hidden, inputs = forward(network, grids)
    # The loss is the cross-entropy of the chance to win, (1 + V) / 2. Its slope before the
    # tanh is V - target, which does not vanish where the network is both sure and wrong.
    error = (values - targets) / len(targets)
    back = np.outer(error, network.w2) * (hidden > 0)
    return Network(
        w1=inputs.T @ back, b1=back.sum(axis=0), w2=hidden.T @ error, b2=error.sum(keepdims=True)
    )


class Adam:
    def __init__(self, network: Network) -> None:
        self.updates = 0
        self.means = [np.zeros_like(weights) for weights in network]
        self.squares = [np.zeros_like(weights) for weights in network]

    def update(self, network: Network, slopes: Network, rate: float) -> None:
        """Changes the network in place."""
        self.updates += 1
        rate *= (1 - 0.999**self.updates) ** 0.5 / (1 - 0.9**self.updates)
        for weights, slope, mean, square in zip(
            network, slopes, self.means, self.squares, strict=True
        ):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            weights -= rate * mean / (np.sqrt(square) + 1e-8)


# --- the player ---


def highest(scores: Floats, masks: Masks) -> Actions:
    """Returns the legal action with the highest score for each game."""
    actions: Actions = np.where(masks, scores, -np.inf).argmax(axis=1)
    return actions


def opponent_values(network: Network, grids: Grids, masks: Masks) -> Floats:
    """Returns (n, actions): what each action is worth to the opponent, infinity if illegal."""
    values = np.full(masks.shape, np.inf, np.float32)
    values[masks] = forward(network, grids[masks])[0]
    # R10: where the opponent, now to move, has no seed in his half, he has lost. The mover
    # never loses by his own move, so there is no other end of a game to look for.
    values[masks & ~grids[:, :, RULES.rows :].any(axis=(2, 3))] = -1
    return values


# --- evaluation ---


def evaluate(network: Network, games: int, seed: int) -> Results:
    """Returns matches against the two weakest policies of the ladder."""

    def network_player(observations: Grids, masks: Masks) -> Actions:
        batch = katro.Batch(len(observations))
        batch.set_boards([katro.Board.from_grid(grid) for grid in observations])
        grids, masks = batch.afterstates()
        return highest(-opponent_values(network, grids, masks), masks)

    # Every pair of games begins with two random plies and is played from both seats, so
    # that knowing one opening by heart does not pass for strength.
    return {
        name: katro.play_match(network_player, name, games, seed, opening=2, progress=False)
        for name in ("random", "greedy")
    }


def report(title: str, results: Results) -> None:
    for name, match in results.items():
        low, high = match.interval
        print(
            f"{title} training: wins {match.win_rate:.1%} of {match.games} games against {name} "
            f"(95 % interval {low:.1%} to {high:.1%}, {match.unfinished} unfinished)"
        )


# --- training ---


def train(network: Network, args: argparse.Namespace, rng: np.random.Generator) -> Curve:
    """Trains the network in place."""
    # In this mode a game that has ended starts again within the step: there are open positions
    # only, and no step of any game is to be dropped.
    envs = katro.KatroVectorEnv(args.envs, autoreset_mode="SameStep", max_plies=TRAINING_MAX_PLIES)
    observed: Any  # (n, 2 * rows, columns) uint8, as the mover sees it
    observed, _ = envs.reset()
    adam = Adam(network)
    checks: Curve = {}
    progress = seconds = 0.0  # evaluations do not count as time of training
    rates = ""
    bar = tqdm(
        total=1.0,
        bar_format="training {percentage:3.0f}%|{bar:20}| {elapsed}{postfix}",
        mininterval=0.5 if sys.stderr.isatty() else 10,
    )
    while progress < 1:
        started = time.perf_counter()
        afterstates, masks = envs.afterstates()
        values = opponent_values(network, afterstates, masks)
        # What the mover observes is the afterstate that the last move has left him. The most
        # he can make of it is what his best action leaves the opponent, with the other sign:
        # V(observed) = -min V(afterstate), and +1 if an action wins. This is TD(0) with the
        # best reply for a target, whatever exploration then plays. Targets come from open
        # positions only, so neither the end of a game nor the ply limit is a special case.
        slopes = gradient(network, observed, -values.min(axis=1))
        adam.update(network, slopes, LEARNING_RATE * (1 - progress))

        actions = highest(-values, masks)
        # All games start alike, so without exploration they would also go on alike.
        explores = rng.random(args.envs) < EXPLORE
        actions[explores] = highest(rng.random(masks.shape), masks)[explores]
        observed, *_ = envs.step(actions)

        seconds += time.perf_counter() - started
        plies = adam.updates * args.envs
        done = adam.updates / args.updates if args.updates else seconds / args.seconds
        progress = bar.n = min(done, 1.0)
        bar.update(0)
        if progress >= CHECKS[len(checks)]:
            games = FINAL_GAMES if progress == 1 else CHECK_GAMES
            checks[plies] = evaluate(network, games, args.seed)
            rates = "".join(
                f", {name} {match.win_rate:.1%}" for name, match in checks[plies].items()
            )
        bar.set_postfix_str(f"{plies / seconds:,.0f} plies/s{rates}", refresh=False)
    bar.close()
    print(f"{plies:,} plies in {adam.updates:,} updates, {seconds:.0f} s")
    return checks


def draw_curve(checks: Curve, path: Path) -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")  # without pyplot: Agg, no display
    axes = figure.subplots()
    millions = [plies / 1e6 for plies in checks]
    for name in ("random", "greedy"):
        matches = [check[name] for check in checks.values()]
        low, high = zip(*(match.interval for match in matches), strict=True)
        (line,) = axes.plot(millions, [match.win_rate for match in matches], marker="o")
        line.set_label(f"against {name}")
        axes.fill_between(millions, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set(xlabel="plies of self-play (millions)", ylabel="win rate", ylim=(0, 1.02))
    axes.set_title("TD(0) on afterstates, with 95 % intervals", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learns Katro by self-play.")
    parser.add_argument("--seconds", type=float, default=60, help="time of training")
    parser.add_argument("--updates", type=int, help="updates of training, instead of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--envs", type=int, default=256, help="games played together")
    parser.add_argument("--out", type=Path, default=Path("runs/selfplay_td"))
    args = parser.parse_args()
    if args.seconds <= 0 or (args.updates is not None and args.updates <= 0):
        parser.error("--seconds and --updates must be more than 0")
    args.out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(args.seed)
    network = make_network(rng)
    before = evaluate(network, FINAL_GAMES, args.seed)
    report("before", before)
    checks = {0: before} | train(network, args, rng)
    report("after", checks[max(checks)])

    weights, curve = args.out / "weights.npz", args.out / "curve.png"
    np.savez(weights, **network._asdict())
    draw_curve(checks, curve)
    print(f"saved {weights} and {curve}")


if __name__ == "__main__":
    main()
