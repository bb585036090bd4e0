"""How fast katro is, next to what one would use instead.

Every contender is given random legal actions; choosing them is not timed. The
contenders take turns, several times, so that a noisy machine is noisy for all of
them. Noise only ever slows, so ratios and figures with a target are those of the
best turns.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray

import katro

HAS_NUMBA = importlib.util.find_spec("numba") is not None
if HAS_NUMBA:
    import katro_numba

GAMES = (1, 8, 64, 1024, 8192, 65536)
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = [threads for threads in sorted({1, 2, CORES}) if threads <= CORES]

BATCH, VECTOR, NUMBA, SYNC = "Batch(copy=False)", "KatroVectorEnv", "numba", "SyncVectorEnv"
CONTENDERS = (BATCH, VECTOR, NUMBA, SYNC)
MACHINE = "the machine"

RNG = np.random.default_rng(0)

# Seconds that one import takes after another, in a new interpreter.
IMPORT = """
import time, gymnasium
start = time.perf_counter()
import katro
print(time.perf_counter() - start)
"""

# Resident bytes per game beside the arrays that a step returns, in a new interpreter.
MEMORY = """
import numpy as np, katro

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

n = 1 << 20
actions = np.full(n, 0)
katro.Batch(1, copy=False, num_threads=1).reset()
before = resident()
batch = katro.Batch(n, copy=False, num_threads=1)
step = batch.reset()
for _ in range(3):
    np.argmax(step.action_mask, axis=1, out=actions)
    step = batch.step(actions)
rows = sum(array.nbytes for array in step if array is not None)
print((resident() - before - rows) / n)
"""

# Rates per second, one of each turn, of a contender: its name, games and threads.
Rates = dict[tuple[str, int, int], list[float]]

# Runs for about so many seconds, not all of them timed, and returns the rate.
Run = Callable[[float], float]


def draw(masks: NDArray[np.int8]) -> NDArray[np.int64]:
    """Returns an action drawn evenly from the legal ones of every game."""
    # Small numbers and no more arrays than needed: the caches belong to the step.
    keys = RNG.integers(1, 1 << 16, masks.shape, np.uint16)
    keys *= masks.view(np.uint8)
    actions: NDArray[np.int64] = np.argmax(keys, axis=1)
    return actions


def stepping(
    step: Callable[[NDArray[np.int64]], Any],
    masks_after: Callable[[Any], NDArray[np.int8]],
    games: int,
    warm_up: int,
) -> Run:
    """Returns what measures the games per second of `step`.

    Args:
        step: plays one ply in every game.
        masks_after: finds the action masks in what `step` has returned.
        games: the games of a step.
        warm_up: steps that come first, to reach the usual mix of early and late games.
    """
    masks = np.ones((games, 6), np.int8)

    def timed() -> float:
        nonlocal masks
        actions = draw(masks)
        start = time.perf_counter()
        result = step(actions)
        seconds = time.perf_counter() - start
        masks = masks_after(result)
        return seconds

    def run(seconds: float) -> float:
        start = time.perf_counter()
        while time.perf_counter() < start + seconds / 10:
            timed()  # the contender before has left its threads and the caches its way
        spent, steps = timed(), 1
        while time.perf_counter() < start + seconds:
            spent += timed()
            steps += 1
        return steps * games / spent

    for _ in range(warm_up):
        timed()
    return run


def contender(name: str, games: int, threads: int, warm_up: int) -> Run:
    """Returns what measures the games per second of a contender."""
    if name == BATCH:
        batch = katro.Batch(games, num_threads=threads, copy=False)
        batch.reset()
        return stepping(batch.step, lambda result: result.action_mask, games, warm_up)
    if name == NUMBA:
        rival = katro_numba.NumbaBatch(games, threads)
        return stepping(rival.step, lambda _: rival.mask, games, warm_up)
    envs = (
        katro.KatroVectorEnv(games, num_threads=threads)
        if name == VECTOR
        else SyncVectorEnv([katro.KatroEnv] * games)
    )
    envs.reset(seed=0)
    return stepping(envs.step, lambda result: result[4]["action_mask"], games, warm_up)


def competes(name: str, games: int, threads: int) -> bool:
    """Returns whether a contender can be measured so, in bearable time."""
    if name == NUMBA:
        return HAS_NUMBA
    return name != SYNC or (threads == 1 and games <= 1024)


def repeating(once: Callable[[], tuple[float, int]]) -> Run:
    """Returns what measures a rate; `once` makes calls, returns their seconds and number."""

    def run(seconds: float) -> float:
        once()
        start = time.perf_counter()
        spent, count = once()
        while time.perf_counter() < start + seconds:
            more, calls = once()
            spent, count = spent + more, count + calls
        return count / spent

    return run


def random_game() -> Iterator[tuple[katro.Board, np.int64]]:
    """Yields the boards and actions of a random game."""
    board = katro.Board()
    while not board.is_over:
        action = RNG.choice(board.legal_actions)
        yield board, action
        board = board.play(int(action))


def singles() -> dict[str, Run]:
    """Returns what measures the calls that play one game."""
    plies = list(random_game())
    moves = [(board, int(action)) for board, action in plies]
    env = katro.KatroEnv()

    def step() -> tuple[float, int]:
        env.reset(seed=0)
        start = time.perf_counter()
        for _, action in plies:
            env.step(action)
        return time.perf_counter() - start, len(plies)

    def play() -> tuple[float, int]:
        start = time.perf_counter()
        for board, action in moves:
            board.play(action)
        return time.perf_counter() - start, len(moves)

    return {"KatroEnv.step": repeating(step), "Board.play": repeating(play)}


def hashing(threads: int) -> Run:
    """Returns what measures the work of threads that share nothing: the machine's own limit."""
    data = bytes(1 << 20)
    pool = ThreadPoolExecutor(threads)

    def once() -> tuple[float, int]:
        start = time.perf_counter()
        list(pool.map(hashlib.sha256, [data] * 4 * threads))
        return time.perf_counter() - start, 4 * threads

    return repeating(once)


def measure(games: Sequence[int], seconds: float, rounds: int, warm_up: int) -> Rates:
    """Returns the rates of all contenders, who take turns."""
    runs = {
        (name, n, threads): contender(name, n, threads, warm_up)
        for n in games
        for threads in THREADS
        for name in CONTENDERS
        if competes(name, n, threads)
    }
    runs |= {(name, 1, 1): run for name, run in singles().items()}
    runs |= {(MACHINE, 1, threads): hashing(threads) for threads in THREADS}
    rates: Rates = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            rates[key].append(run(seconds / rounds))
    return rates


def ratio(rates: Rates, one: tuple[str, int, int], other: tuple[str, int, int]) -> float | None:
    """Returns how much faster one contender is than another, if both were measured."""
    if one not in rates or other not in rates:
        return None
    return max(rates[one]) / max(rates[other])


def in_new_interpreter(code: str) -> float:
    """Returns the number that some code prints."""
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Figure(NamedTuple):
    """A figure with what it should be at least, and what we aim at."""

    what: str
    measured: float | None
    unit: str
    target: float
    aim: float

    def row(self) -> list[str]:
        """Returns the row of a table."""
        if self.measured is None:
            verdict, shown = "not measured", "-"
        else:
            # The smaller the better, if the aim is.
            sign = -1 if self.aim < self.target else 1
            reached = [sign * self.measured >= sign * wanted for wanted in (self.aim, self.target)]
            verdict = "aim" if reached[0] else "target" if reached[1] else "MISSED"
            shown = f"{self.measured:.3g}{self.unit}"
        return [
            self.what,
            f"{self.target:g}{self.unit}",
            f"{self.aim:g}{self.unit}",
            shown,
            verdict,
        ]


def figures(rates: Rates, imports: int) -> list[Figure]:
    """Returns the figures that have a target; `imports` are the imports to time."""

    def microseconds(name: str) -> float:
        return 1e6 / max(rates[name, 1, 1])

    def two_threads(name: str, games: int) -> Figure:
        gain = ratio(rates, (name, games, 2), (name, games, 1))
        return Figure(f"{name}, {games:,} games: 2 threads against 1", gain, "x", 1.7, 1.9)

    def against_numba(games: int) -> Figure:
        gain = ratio(rates, (BATCH, games, 1), (NUMBA, games, 1))
        return Figure(f"{BATCH}, {games:,} games: against numba", gain, "x", 2.5, 4)

    fresh = ratio(rates, (VECTOR, 8192, 1), (BATCH, 8192, 1))
    large = ratio(rates, (BATCH, 8192, 1), (BATCH, 65536, 1))
    importing = statistics.median(in_new_interpreter(IMPORT) for _ in range(imports))
    memory = in_new_interpreter(MEMORY) if Path("/proc/self/status").exists() else None
    return [
        against_numba(1024),
        against_numba(8192),
        Figure(f"{VECTOR}, 8,192 games: rate against {BATCH}", fresh, "x", 0.8, 0.9),
        two_threads(BATCH, 8192),
        two_threads(BATCH, 65536),
        two_threads(VECTOR, 8192),
        two_threads(VECTOR, 65536),
        Figure(f"{BATCH}, 65,536 games: cost per game against 8,192", large, "x", 1.25, 1.1),
        Figure(f"{VECTOR}.step, 1 game", microseconds(VECTOR), " us", 8, 5),
        Figure("KatroEnv.step", microseconds("KatroEnv.step"), " us", 5, 2.5),
        Figure("Board.play", microseconds("Board.play"), " us", 1, 0.5),
        Figure("import katro beyond import gymnasium", 1e3 * importing, " ms", 50, 20),
        Figure("memory per game beside its output rows", memory, " bytes", 128, 64),
    ]


def instructions(games: int = 1024) -> str:
    """Returns how many instructions a game takes in a batched step of the Rust core."""
    missing = [tool for tool in ("cargo", "valgrind") if shutil.which(tool) is None]
    manifest = Path(__file__).parents[1] / "Cargo.toml"
    if missing or not manifest.exists():
        return f"instructions not counted: no {' and no '.join(missing or ['Cargo.toml'])}"
    build = ["cargo", "bench", "--bench", "step", "--no-run", "--message-format=json", "--quiet"]
    built = subprocess.run(
        build, cwd=manifest.parent, check=True, stdout=subprocess.PIPE, text=True
    )
    messages = (json.loads(line) for line in built.stdout.splitlines())
    binary = next(message["executable"] for message in messages if message.get("executable"))
    count = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=step::step",  # the function of that name in benches/step.rs
        *(binary, "--count", str(games)),
    ]
    counted = subprocess.run(count, check=True, capture_output=True, text=True)
    collected = re.search(r"Collected : (\d+)", counted.stderr)
    steps = re.search(r"(\d+) game steps", counted.stdout)
    if collected is None or steps is None:
        return f"instructions not counted: valgrind printed\n{counted.stderr}"
    each = int(collected[1]) / int(steps[1])
    return f"instructions per game of a step of {games:,}: {each:.0f} (no AVX-512 under valgrind)"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown whose columns also line up as plain text."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    ruler = [f"{'-' * (width - 1)}:" for width in widths]
    ruler[0] = "-" * widths[0]
    lines = [
        [cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(cells)]
        for cells in (list(zip(row, widths, strict=True)) for row in (head, *rows))
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ruler, *lines[1:]))


def throughput(rates: Rates, show: Callable[[list[float]], str]) -> str:
    """Returns the table of the contenders."""
    names = [name for name in CONTENDERS if any(key[0] == name for key in rates)]
    rows = []
    for games, threads in dict.fromkeys(key[1:] for key in rates):
        found = [rates.get((name, games, threads)) for name in names]
        row = [f"{games:,}", str(threads), *(show(rate) if rate else "" for rate in found)]
        if NUMBA in names:
            row.append(f"{ratio(rates, (BATCH, games, threads), (NUMBA, games, threads)):.2f}")
        rows.append(row)
    against = ["Batch : numba"] if NUMBA in names else []
    return table(["games", "threads", *names, *against], rows)


def millions(rate: float) -> str:
    """Returns a rate in millions, with three digits."""
    return f"{rate / 1e6:.3g}"


def machine() -> str:
    """Names what the figures were measured on, and when."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = re.search(r"model name\s*: (.*)", cpuinfo.read_text())
        cpu = model[1] if model else cpu
    packages = ["katro", "numpy", "gymnasium", *(["numba"] if HAS_NUMBA else [])]
    versions = [f"{name} {metadata.version(name)}" for name in packages]
    system = f"{platform.system()} {platform.release()}"
    return (
        f"{cpu}, {CORES} cores, {system}, Python {platform.python_version()}, "
        f"{', '.join(versions)}, {datetime.date.today()}"
    )


def load() -> str:
    """Returns how many processes want to run, on average over the last minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="for each contender and number of games"
    )
    parser.add_argument(
        "--quick", action="store_true", help="whether it runs at all: figures of no worth"
    )
    parser.add_argument("--markdown", action="store_true", help="only the table of the README")
    arguments = parser.parse_args()
    quick = arguments.quick
    games = (1, 1024, 8192) if quick else GAMES
    seconds, rounds, warm_up = (0.15, 3, 20) if quick else (arguments.seconds, 15, 300)

    print(machine(), flush=True)
    if HAS_NUMBA:
        for threads in THREADS:
            for n in (10, 1000):
                katro_numba.check(draw, threads, n, warm_up)
    else:
        print("numba is not installed, so it is left out")
    before = load()
    rates = measure(games, seconds, rounds, warm_up)
    print(f"load {before} before and {load()} after\n")
    if arguments.markdown:
        print("Million steps per second, median:\n")
        print(throughput(rates, lambda found: millions(statistics.median(found))))
        return
    print("Million steps per second, best / median:\n")
    print(
        throughput(
            rates, lambda found: f"{millions(max(found))} / {millions(statistics.median(found))}"
        )
    )
    print()
    rows = [figure.row() for figure in figures(rates, 3 if quick else 25)]
    print(table(["", "target", "aim", "measured", "reached"], rows), flush=True)
    print()
    limit = ratio(rates, (MACHINE, 1, 2), (MACHINE, 1, 1))
    if limit:
        print(f"two threads that share nothing do {limit:.2f} times the work of one here\n")
    print("instructions not counted: --quick" if quick else instructions())


if __name__ == "__main__":
    main()
