"""The command `katro`: play, measure and check from a terminal."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, NoReturn

import numpy as np

from katro._katro import RULES, Batch, Board, Lap, Rules, SearchResult, __version__, perft, search
from katro.match import LADDER, play_match, rate

__all__ = ["main"]

POLICIES = "random, greedy, minimax:DEPTH or minimax:TIMEms"
SIDES = ("South", "North")
HELP = """\
type the name of an action to play it, or
  undo   take back your last move and the answer to it
  hint   ask a search of one second
  board  show the board again
  help   show this
  quit   leave"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command `katro`.

    Args:
        arguments: the words after the command's name; None for those of this process.

    Returns:
        The exit code: 0 if all went well, 1 if a self-check failed, 130 after Ctrl-C.

    Raises:
        SystemExit: with code 2 for a user's mistake, after one sentence on standard
            error, and with code 0 after `--help` and `--version`.

    >>> from katro.cli import main
    >>> main(["perft", "--depth", "3"])
    1  6
    2  36
    3  168
    0
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        code = run(options)
        sys.stdout.flush()
        return code
    except (ValueError, TypeError, MemoryError, OverflowError) as error:
        text = str(error) or type(error).__name__
        print(f"katro: {text}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Who reads the output has seen enough, as in `katro ladder | head -1`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="katro",
        description="Katro, the six-row mancala of Madagascar: play it, and measure players.",
        epilog=f"Players are {POLICIES}.",
    )
    parser.add_argument("--version", action="version", version=f"katro {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_Parser
    )

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> _Parser:
        made: _Parser = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        made.set_defaults(run=run)
        made.add_argument(
            "--rules", metavar="NAME", default="katro", help=f"the rules, one of {', '.join(RULES)}"
        )
        return made

    play = command("play", _play, "play against the computer in the terminal")
    play.add_argument("--opponent", metavar="PLAYER", default="minimax:3", help=POLICIES)
    play.add_argument(
        "--seat", choices=("south", "north"), default="south", help="where you sit; South begins"
    )
    play.add_argument("--seed", type=int, default=None, help="fixes what the opponent draws")

    match = command("match", _match, "let two players play a match")
    match.add_argument("a", metavar="A", help=f"the first player: {POLICIES}")
    match.add_argument("b", metavar="B", help="the second player")
    match.add_argument("--games", type=int, default=1000, help="the games to play")

    ladder = command("ladder", _ladder, "rate the players of the ladder by a round robin")
    ladder.add_argument("--games", type=int, default=200, help="the games of every pair")
    ladder.add_argument(
        "--players", metavar="PLAYER", nargs="+", default=list(LADDER), help="the players to rate"
    )

    for made in (match, ladder):
        made.add_argument("--seed", type=int, default=0, help="fixes all that is drawn")
        made.add_argument("--max-plies", type=int, default=2000, help="the limit of a game")
        made.add_argument(
            "--opening", type=int, default=4, help="the random plies a game begins with"
        )

    counts = command("perft", _perft, "count the games of up to some plies from the start")
    counts.add_argument("--depth", type=int, default=7, help="the most plies")

    bench = command("bench", _bench, "measure how fast this machine steps games and searches")
    bench.add_argument("--games", type=int, default=4096, help="the games stepped together")
    bench.add_argument("--seconds", type=float, default=1.0, help="how long each measure takes")
    bench.add_argument("--threads", type=int, default=None, help="as many as pay off if not given")

    check = commands.add_parser(
        "selfcheck",
        help="play known games to see that this build follows the rules",
        description="Plays known games and counts known numbers of them with this very build. "
        "The exit code is 0 if every answer is right, else 1.",
    )
    check.set_defaults(run=_selfcheck)
    return parser


def _match(options: argparse.Namespace) -> int:
    result = play_match(
        options.a,
        options.b,
        options.games,
        options.seed,
        options.rules,
        options.max_plies,
        opening=options.opening,
    )
    print(result)
    return 0


def _ladder(options: argparse.Namespace) -> int:
    rating = rate(
        (),
        options.games,
        options.seed,
        options.rules,
        options.max_plies,
        ladder=options.players,
        opening=options.opening,
    )
    print(rating.to_markdown())
    return 0


def _perft(options: argparse.Namespace) -> int:
    if options.depth < 1:
        raise ValueError(f"depth must be at least 1, got {options.depth}")
    board = Board(options.rules)
    for depth in range(1, options.depth + 1):
        print(f"{depth}  {perft(board, depth)}", flush=True)
    return 0


def _bench(options: argparse.Namespace) -> int:
    if not 0 < options.seconds < 3600:
        raise ValueError(f"seconds must be between 0 and 3600, got {options.seconds}")
    batch = Batch(options.games, rules=options.rules, num_threads=options.threads, copy=False)
    batch.reset(seed=0)
    print(f"{options.games} games of {options.rules}, {batch.num_threads} threads")

    def measure(what: str, work: Callable[[], int]) -> None:
        work()  # Starts the threads and warms up.
        plies, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < options.seconds:
            plies += work()
        print(f"{what:<32} {plies / passed / 1e6:8.2f} M plies/s", flush=True)

    def stepped(policy: str) -> int:
        batch.step(batch.choose(policy))
        return len(batch)

    measure("random games inside the engine", lambda: batch.rollout(20).plies)
    measure("step and choose random", lambda: stepped("random"))
    measure("step and choose greedy", lambda: stepped("greedy"))
    result = search(Board(options.rules), seconds=options.seconds)
    print(
        f"{'search, one thread':<32} {result.nodes_per_second / 1e6:8.2f} M nodes/s"
        f" (depth {result.depth})"
    )
    return 0


def _selfcheck(options: argparse.Namespace) -> int:
    text = files("katro").joinpath("known_answers.json").read_text("utf-8")
    known: dict[str, list[dict[str, Any]]] = json.loads(text)
    wrong = 0
    for answer in known["perft"]:
        rules = Rules(answer["rows"], answer["columns"])
        counts = [perft(Board(rules), depth) for depth in range(1, len(answer["counts"]) + 1)]
        wrong += _told(f"perft of {rules}", counts, answer["counts"])
    for number, game in enumerate(known["games"], start=1):
        what = f"game {number} of {game['rules']}, {len(game['actions'])} plies"
        expected = {name: game[name] for name in ("winner", "final", "laps", "captured")}
        try:
            wrong += _told(f"{what}, move by move", _replayed(game), expected)
            wrong += _told(f"{what}, in a batch", _batched(game), expected)
        except ValueError as error:
            wrong += _told(what, str(error), expected)
    checks = len(known["perft"]) + 2 * len(known["games"])
    print(f"katro {__version__}: {checks} checks, {wrong or 'none'} failed")
    return 1 if wrong else 0


def _told(what: str, found: object, expected: object) -> int:
    """Prints whether an answer is right; returns 1 if it is not."""
    if found == expected:
        print(f"ok     {what}")
        return 0
    print(f"WRONG  {what}: expected {expected}, found {found}")
    return 1


def _replayed(game: dict[str, Any]) -> dict[str, Any]:
    board, laps, captured = Board(game["rules"]), 0, 0
    for action in game["actions"]:
        trace = board.trace(action)
        laps += len(trace)
        captured += sum(lap.taken for lap in trace)
        board = board.play(action)
    final = board.grid().tolist()
    return {"winner": board.winner, "final": final, "laps": laps, "captured": captured}


def _batched(game: dict[str, Any]) -> dict[str, Any]:
    batch = Batch(3, rules=game["rules"], autoreset_mode="Disabled", max_plies=None)
    step, laps, captured = batch.reset(), np.zeros(3, np.int64), np.zeros(3, np.int64)
    for action in game["actions"]:
        step = batch.step([action] * 3)
        laps += step.laps
        captured += step.captured
    final = batch.boards()[2].grid().tolist()
    winner = int(step.winner[2])
    return {
        "winner": None if winner < 0 else winner,
        "final": final,
        "laps": int(laps[2]),
        "captured": int(captured[2]),
    }


def _play(options: argparse.Namespace) -> int:
    if options.seed is not None and options.seed < 0:
        raise ValueError(f"a seed must be 0 or more, got {options.seed}")
    seed = time.time_ns() if options.seed is None else options.seed
    board = Board(options.rules)
    opponent = Batch(1, rules=board.rules, autoreset_mode="Disabled", max_plies=None)
    opponent.reset(seed=seed)
    opponent.choose(options.opponent, np.zeros(1, np.bool_))  # Refuses an unknown name.
    you = SIDES.index(options.seat.capitalize())
    print(f"You are {SIDES[you]}, {options.opponent} is {SIDES[1 - you]}. Type help for help.")
    print(f"\n{board}\n")
    earlier: list[Board] = []  # The boards before your moves.
    while not board.is_over:
        if board.to_move != you:
            opponent.set_boards([board])
            action = int(opponent.choose(options.opponent)[0])
            print(f"{options.opponent} plays {board.rules.action_name(action)}")
            board = _shown(board, action)
            continue
        names = [board.rules.action_name(action) for action in board.legal_actions]
        try:
            answer = input(f"your move ({' '.join(names)}): ").strip().lower()
        except (EOFError, KeyboardInterrupt):
            print("\ngoodbye")
            return 0
        if answer in ("quit", "exit", "q"):
            print("goodbye")
            return 0
        if answer in ("help", "?"):
            print(HELP)
        elif answer in ("board", ""):
            print(f"\n{board}\n")
        elif answer == "undo":
            if earlier:
                board = earlier.pop()
                print(f"\n{board}\n")
            else:
                print("there is no move of yours to take back")
        elif answer == "hint":
            _hint(board)
        else:
            try:
                action = board.rules.parse_action(answer)
                after = _shown(board, action)
            except ValueError as error:
                print(error)
            else:
                earlier.append(board)
                board = after
    print("you have won" if board.winner == you else f"{options.opponent} has won")
    return 0


def _hint(board: Board) -> None:
    try:
        result: SearchResult = search(board, seconds=1.0)
    except KeyboardInterrupt:
        print("\nno hint")
        return
    line = " ".join(board.rules.action_name(action) for action in result.line)
    print(
        f"{board.rules.action_name(result.action)} looks best, value {result.value:+} "
        f"at depth {result.depth}: {line}"
    )


def _shown(board: Board, action: int) -> Board:
    """Plays an action and shows its laps and the board after it."""
    after = board.play(action)
    for number, lap in enumerate(board.trace(action), start=1):
        print(f"  {number:3}  {_lap(lap)}")
    print(f"\n{after}\n")
    return after


def _lap(lap: Lap) -> str:
    seeds = "1 seed" if lap.seeds == 1 else f"{lap.seeds} seeds"
    text = f"{seeds} from {_hole(lap.lifted)} to {_hole(lap.landed)}"
    if lap.captured:
        holes = " and ".join(map(_hole, lap.captured))
        text += f", takes {lap.taken} from {holes}"
    return text


def _hole(hole: tuple[int, int]) -> str:
    """A hole as drawn: its row from the top and its column from the left, from 1."""
    row, column = hole
    return f"({row + 1}, {column + 1})"
