"""Matches between players, and what they say about strength."""

from __future__ import annotations

import inspect
import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from katro._katro import Batch, Board, IllegalMoveError, Rules, Step

__all__ = ["LADDER", "MatchResult", "Player", "RatingResult", "play_match", "rate"]

LADDER = ("random", "greedy", "minimax:2", "minimax:3", "minimax:4", "minimax:6")
"""The players that others are measured against, from beginner to strong."""

Player: TypeAlias = (
    str
    | Callable[[Board], int]
    | Callable[[NDArray[np.uint8], NDArray[np.bool_]], ArrayLike]
    | Callable[..., Any]
)
"""A policy's name, a function of a board, or one of observations and action masks."""

CHUNK = 1024  # Games played side by side.
REDRAWS = 100  # How often an opening that decides the game is drawn again.
Z = 1.959963984540054  # Of a two-sided interval of 95 %.

_Chooser: TypeAlias = Callable[[Batch, Step, NDArray[np.bool_], int], NDArray[np.int64]]


@dataclass(frozen=True)
class MatchResult:
    """How a match went, as the first player sees it.

    Attributes:
        a: the name of the first player.
        b: the name of the second player.
        wins: the games that the first player won.
        losses: the games that he lost.
        unfinished: the games that the ply limit cut off.
        mean_plies: the mean length of a game, its opening included.

    >>> from katro.match import MatchResult
    >>> result = MatchResult("greedy", "random", wins=60, losses=30, unfinished=10, mean_plies=80)
    >>> result.games, result.win_rate, round(result.elo)
    (100, 0.6, 108)
    >>> low, high = result.interval
    >>> round(low, 3), round(high, 3)
    (0.502, 0.691)
    """

    a: str
    b: str
    wins: int
    losses: int
    unfinished: int
    mean_plies: float

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.losses + self.unfinished

    @property
    def win_rate(self) -> float:
        """The share of all games that the first player won; an unfinished one is no win."""
        return self.wins / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the win rate."""
        return wilson(self.wins, self.games)

    @property
    def elo(self) -> float:
        """By how much the first player is stronger, in Elo; infinite if he won every game.

        An unfinished game counts as half a win here, so that the difference changes its
        sign when the players change places.
        """
        return elo_of(self._points / self.games)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % interval of `elo`: that of Wilson, unfinished games as half a win."""
        low, high = wilson(self._points, self.games)
        return elo_of(low), elo_of(high)

    @property
    def _points(self) -> float:
        return self.wins + self.unfinished / 2

    def __str__(self) -> str:
        low, high = self.interval
        elo_low, elo_high = self.elo_interval
        unfinished = f", {self.unfinished} unfinished" if self.unfinished else ""
        return (
            f"{self.a} against {self.b}: {self.wins} won, {self.losses} lost{unfinished}"
            f" of {self.games}\n"
            f"win rate {self.win_rate:.1%} (95 %: {low:.1%} to {high:.1%}), "
            f"Elo {self.elo:+.0f} ({elo_low:+.0f} to {elo_high:+.0f}), "
            f"{self.mean_plies:.1f} plies a game"
        )


@dataclass(frozen=True)
class RatingResult:
    """How strong the players of a round robin are.

    Attributes:
        names: the players, the strongest first.
        elo: the rating of each, in the same order.
        elo_interval: its 95 % interval, as far as the games tell it from the anchor's.
        matches: the result of every pair, by the two names in the order they were given.
        anchor: the player whose rating is 0.
    """

    names: tuple[str, ...]
    elo: tuple[float, ...]
    elo_interval: tuple[tuple[float, float], ...]
    matches: dict[tuple[str, str], MatchResult]
    anchor: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every player, the strongest first: name, Elo, interval, wins, games."""
        rows = []
        for name, elo, interval in zip(self.names, self.elo, self.elo_interval, strict=True):
            wins = games = 0
            for match in self.matches.values():
                if name in (match.a, match.b):
                    wins += match.wins if name == match.a else match.losses
                    games += match.games
            rows.append(
                {"name": name, "elo": elo, "elo_interval": interval, "wins": wins, "games": games}
            )
        return rows

    def between(self, a: str, b: str) -> MatchResult:
        """Returns the match of two players as the first of them sees it.

        Raises:
            KeyError: if the two have not played.
        """
        if (a, b) in self.matches:
            return self.matches[a, b]
        match = self.matches[b, a]
        return MatchResult(a, b, match.losses, match.wins, match.unfinished, match.mean_plies)

    def to_markdown(self) -> str:
        """Returns the ratings and the win rates of every pair as a Markdown table.

        A cell holds the share of games that the player of the row won against that of
        the column, and its 95 % interval, in percent.
        """
        lines = [["player", "Elo (95 %)", *self.names], ["---", *["---:"] * (len(self.names) + 1)]]
        for row in self.rows:
            low, high = row["elo_interval"]
            elo = f"{row['elo']:.0f}"
            cells = [row["name"], elo if low == high else f"{elo} ({low:.0f} to {high:.0f})"]
            for other in self.names:
                if other == row["name"]:
                    cells.append("")
                    continue
                match = self.between(row["name"], other)
                low, high = (100 * bound for bound in match.interval)
                cells.append(f"{100 * match.win_rate:.1f} ({low:.1f} to {high:.1f})")
            lines.append(cells)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def __str__(self) -> str:
        width = max(len(name) for name in ("player", *self.names))
        lines = [f"{'player':<{width}}    Elo    95 % interval    won  games"]
        for row in self.rows:
            low, high = row["elo_interval"]
            won = row["wins"] / row["games"]
            lines.append(
                f"{row['name']:<{width}}  {row['elo']:5.0f}  {low:6.0f} to {high:5.0f}  "
                f"{won:6.1%}  {row['games']:5}"
            )
        return "\n".join(lines)


def play_match(
    a: Player,
    b: Player,
    games: int = 1000,
    seed: int = 0,
    rules: Rules | str = "katro",
    max_plies: int | None = 2000,
    *,
    opening: int = 4,
    progress: bool | None = None,
) -> MatchResult:
    """Plays a match and counts.

    A player is the name of a policy (`"random"`, `"greedy"`, `"minimax:DEPTH"`,
    `"minimax:TIMEms"`) or a callable. One that requires one argument gets a `Board` and
    returns an action. One that requires two gets all the games that wait for it at once,
    `(observations, action_masks)` of (k, 2 * rows, columns) uint8 and (k, actions) bool,
    and returns (k) actions.

    Games come in pairs that begin with the same random plies, the first player being
    South in one and North in the other. Without the random plies, players that leave
    nothing to chance would play one and the same game again and again, and the interval
    would mean nothing. If `games` is odd the last game has no partner.

    Args:
        a: the first player, of whom the result speaks.
        b: the second player.
        games: the number of games, at least 1.
        seed: an integer of 0 or more that fixes the openings and what policies leave to
            chance. The result does not depend on the number of threads.
        rules: a `Rules` or the name of one.
        max_plies: the plies after which a game is cut off, its opening included; None
            for no limit.
        opening: the random plies that a game begins with. An opening that ends the game
            is drawn again. On the 6 x 6 board four plies give 784 openings, six 13,778;
            take more for long matches of players that leave nothing to chance.
        progress: whether to show a progress bar; None to show it in a terminal or
            notebook if tqdm is installed.

    Returns:
        A `MatchResult`.

    Raises:
        IllegalMoveError: if a callable chooses an action that is not legal; the message
            names the callable and the game.
        ValueError: if no policy has a name, a callable returns another shape, or an
            argument is out of its range.
        TypeError: if a player is neither, or its actions are no integers.
        ImportError: if a progress bar is asked for and tqdm is missing.

    >>> import katro
    >>> from katro.match import play_match
    >>> result = play_match("greedy", "random", games=200, rules="katro-4x4")
    >>> result.games, result.win_rate > 0.8
    (200, True)
    >>> def first(board):
    ...     return board.legal_actions[0]
    >>> play_match(first, "greedy", games=100).win_rate < 0.5
    True
    """
    games = _integer(games, "games", 1)
    seed = _integer(seed, "seed", 0)
    opening = _integer(opening, "opening", 0)
    rules = Rules.named(rules) if isinstance(rules, str) else rules
    if max_plies is not None and _integer(max_plies, "max_plies", 1) <= opening:
        raise ValueError(
            f"max_plies must be more than the {opening} plies of an opening, got {max_plies}"
        )
    players = (_chooser(a), _chooser(b))
    names = (player_name(a), player_name(b))
    rng = np.random.default_rng(seed)
    scores = np.zeros(3, np.int64)
    plies = 0
    bar = _progress_bar(progress, games, f"{names[0]} against {names[1]}")
    try:
        for first in range(0, games, CHUNK):
            n = min(CHUNK, games - first)
            boards = _openings((n + 1) // 2, opening, rules, rng)
            limit = None if max_plies is None else max_plies - opening
            batch = Batch(n, rules=rules, autoreset_mode="Disabled", max_plies=limit, copy=False)
            batch.reset(seed=rng.integers(2**63, size=n).tolist())
            step = batch.set_boards([boards[i // 2] for i in range(n)])
            results, moves = _play(batch, step, players, first, bar)
            scores += np.bincount(results, minlength=3)
            plies += moves + n * opening
    finally:
        if bar is not None:
            bar.close()
    unfinished, wins, losses = scores.tolist()
    return MatchResult(*names, wins, losses, unfinished, plies / games)


def rate(
    policies: Mapping[str, Player] | Iterable[Player] = (),
    games: int = 200,
    seed: int = 0,
    rules: Rules | str = "katro",
    max_plies: int | None = 2000,
    *,
    ladder: Sequence[str] = LADDER,
    opening: int = 4,
    progress: bool | None = None,
) -> RatingResult:
    """Rates players by a round robin of them and the players of the ladder.

    The ratings are those of the Bradley-Terry model that fit all games best, an
    unfinished one as half a win, and half a win more for each side of every pair: so
    they stay finite where one side wins all games, and are a little too close there.

    Args:
        policies: the players to rate, as in `play_match`; a dict gives them names.
        games: the number of games of every pair.
        seed: as in `play_match`.
        rules: as in `play_match`.
        max_plies: as in `play_match`.
        ladder: the names of policies to measure against. The first has the rating 0; if
            there is none, the first of `policies`.
        opening: as in `play_match`.
        progress: as in `play_match`.

    Returns:
        A `RatingResult`; `print` shows it as a table.

    Raises:
        ValueError: if there are not two players, or two of one name; else as `play_match`.
        TypeError: as `play_match`.

    >>> from katro.match import rate
    >>> rating = rate(["minimax:1"], games=100, rules="katro-4x4", ladder=["random", "greedy"])
    >>> rating.names[-1], rating.elo[-1]
    ('random', 0.0)
    """
    if isinstance(policies, str):
        policies = (policies,)
    if isinstance(policies, Mapping):
        given = list(policies.items())
    else:
        given = [(player_name(policy), policy) for policy in policies]
    players: dict[str, Player] = {name: name for name in ladder}
    seen = set()
    for name, policy in given:
        if name in seen or players.get(name, policy) != policy:
            raise ValueError(f"two players have the name {name!r}, a dict gives them others")
        seen.add(name)
        players[name] = policy
    if len(players) < 2:
        raise ValueError(f"a round robin needs at least two players, got {list(players)}")
    for policy in players.values():
        _chooser(policy)
    seed = _integer(seed, "seed", 0)
    names = list(players)
    n = len(names)
    wins = np.zeros((n, n))
    matches = {}
    for index, (i, j) in enumerate(combinations(range(n), 2)):
        match = play_match(
            players[names[i]],
            players[names[j]],
            games,
            seed + index,
            rules,
            max_plies,
            opening=opening,
            progress=progress,
        )
        matches[names[i], names[j]] = MatchResult(
            names[i], names[j], match.wins, match.losses, match.unfinished, match.mean_plies
        )
        wins[i, j] = match.wins + match.unfinished / 2
        wins[j, i] = match.losses + match.unfinished / 2
    elo, error = bradley_terry(wins + (1 - np.eye(n)) / 2)
    order = np.argsort(-elo, kind="stable").tolist()
    return RatingResult(
        tuple(names[i] for i in order),
        tuple(float(elo[i]) for i in order),
        tuple((float(elo[i] - Z * error[i]), float(elo[i] + Z * error[i])) for i in order),
        matches,
        names[0],
    )


def wilson(wins: float, games: int) -> tuple[float, float]:
    """Returns the 95 % Wilson interval of a share of games."""
    share = wins / games
    scale = 1 + Z * Z / games
    middle = (share + Z * Z / (2 * games)) / scale
    half = Z / scale * math.sqrt(share * (1 - share) / games + (Z / (2 * games)) ** 2)
    # Exactly 0 and 1 where no or every game was won, whatever the rounding.
    low = 0.0 if wins == 0 else max(middle - half, 0.0)
    high = 1.0 if wins == games else min(middle + half, 1.0)
    return low, high


def elo_of(share: float) -> float:
    """Returns the Elo difference that gives an expected share of points."""
    if share <= 0:
        return -math.inf
    if share >= 1:
        return math.inf
    return 400 * math.log10(share / (1 - share))


def bradley_terry(wins: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fits ratings to the points of a round robin.

    Args:
        wins: (n, n) float64, the points of the player of the row against that of the
            column; above 0 for every pair.

    Returns:
        elo: (n) float64, the ratings; the first is 0.
        error: (n) float64, the standard error of each against the first.
    """
    n = len(wins)
    games = wins + wins.T
    strength = np.ones(n)
    # Minorization-maximization (Hunter 2004): every round raises the likelihood.
    for _ in range(100_000):
        pairs = games / (strength[:, None] + strength)
        new = wins.sum(axis=1) / pairs.sum(axis=1)
        new /= np.exp(np.log(new).mean())
        done = np.abs(np.log(new / strength)).max() < 1e-10
        strength = new
        if done:
            break
    expected = strength[:, None] / (strength[:, None] + strength)
    weights = games * expected * expected.T
    np.fill_diagonal(weights, 0)
    information = np.diag(weights.sum(axis=1)) - weights
    error = np.zeros(n)
    error[1:] = np.sqrt(np.diag(np.linalg.inv(information[1:, 1:])))
    scale = 400 / math.log(10)
    return scale * np.log(strength / strength[0]), scale * error


def player_name(player: Player) -> str:
    """Returns the name of a player in tables and messages."""
    if isinstance(player, str):
        return player
    return getattr(player, "__name__", None) or type(player).__name__


def _openings(n: int, plies: int, rules: Rules, rng: np.random.Generator) -> list[Board]:
    """Returns `n` open boards after random plies."""
    batch = Batch(n, rules=rules, autoreset_mode="Disabled", max_plies=None)
    drawn = np.ones(n, np.bool_)
    for _ in range(REDRAWS):
        seeds = rng.integers(2**63, size=n).tolist()
        batch.reset(drawn, seed=seeds)
        going = drawn.copy()
        for _ in range(plies):
            if not going.any():
                break
            step = batch.step(batch.choose("random", going), going)
            going &= ~step.terminated
        drawn &= ~going
        if not drawn.any():
            return batch.boards()
    raise ValueError(f"{plies} random plies end nearly every game of {rules}, take fewer")


def _play(
    batch: Batch, step: Step, players: tuple[_Chooser, _Chooser], first: int, bar: Any
) -> tuple[NDArray[np.int64], int]:
    """Plays the games of a batch to their ends.

    Returns who won each, 1 and 2 for the first and second player and 0 for nobody, and
    the plies played. The first player is South in games of even numbers.
    """
    n = len(batch)
    going = np.ones(n, np.bool_)
    results = np.zeros(n, np.int64)
    seats = np.arange(n) % 2
    plies = 0
    while going.any():
        # A copy, since the arrays of the step are written again by the next.
        second = step.to_move != seats
        actions = np.zeros(n, np.int64)
        for chooser, games in zip(players, (going & ~second, going & second), strict=True):
            if games.any():
                actions += chooser(batch, step, games, first)
        step = batch.step(actions, going)
        plies += int(going.sum())
        won = going & step.terminated
        results[won] = 1 + (step.winner[won] != seats[won])
        ended = won | (going & step.truncated)
        going &= ~ended
        if bar is not None and ended.any():
            bar.update(int(ended.sum()))
    return results, plies


def _chooser(player: Player) -> _Chooser:
    """Returns what chooses the actions of a player in the games of a mask, else 0."""
    if isinstance(player, str):
        name = player
        # An unknown name is refused before anything is played.
        probe = Batch(1)
        probe.reset()
        probe.choose(name, np.zeros(1, np.bool_))
        return lambda batch, step, games, first: batch.choose(name, games)
    if not callable(player):
        raise TypeError(f"a player must be the name of a policy or a callable, got {player!r}")
    if _arguments(player) == 1:
        return _board_chooser(player)
    return _batch_chooser(player)


def _arguments(player: Callable[..., Any]) -> int:
    """Returns how many arguments a callable requires, 1 for a board or 2 for a batch."""
    try:
        parameters = inspect.signature(player).parameters.values()
    except ValueError:
        return 2  # Some callables of compiled modules do not say.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) and required < 2:
        return 2
    needed = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if required not in (1, 2) or needed:
        raise TypeError(
            f"the player {player_name(player)} must require one argument, a board, or two, "
            f"observations and action masks, got {inspect.signature(player)}"
        )
    return required


def _board_chooser(player: Callable[..., Any]) -> _Chooser:
    name = player_name(player)

    def choose(batch: Batch, step: Step, games: NDArray[np.bool_], first: int) -> NDArray[np.int64]:
        actions = np.zeros(len(batch), np.int64)
        for game in np.flatnonzero(games).tolist():
            board = batch._board(game)
            answer = player(board)
            try:
                action = operator.index(answer)
            except TypeError:
                raise TypeError(
                    f"the player {name} in game {first + game}: "
                    f"an action must be an integer, got {answer!r}"
                ) from None
            if action not in board.legal_actions:
                raise _illegal(name, first + game, action, board)
            actions[game] = action
        return actions

    return choose


def _batch_chooser(player: Callable[..., Any]) -> _Chooser:
    name = player_name(player)

    def choose(batch: Batch, step: Step, games: NDArray[np.bool_], first: int) -> NDArray[np.int64]:
        waiting = np.flatnonzero(games)
        masks = step.action_mask[waiting].astype(np.bool_)
        answer = np.asarray(player(step.observation[waiting], masks.copy()))
        where = f"the player {name} in game {first + int(waiting[0])}"
        if len(waiting) > 1:
            where += f" and {len(waiting) - 1} more"
        if answer.shape != waiting.shape:
            raise ValueError(
                f"{where}: expected actions of shape {waiting.shape}, got {answer.shape}"
            )
        if not np.issubdtype(answer.dtype, np.integer):
            raise TypeError(f"{where}: actions must be integers, got {answer.dtype}")
        inside = (answer >= 0) & (answer < masks.shape[1])
        legal = inside & masks[np.arange(len(waiting)), np.where(inside, answer, 0)]
        if not legal.all():
            wrong = int(np.argmin(legal))
            game = int(waiting[wrong])
            raise _illegal(name, first + game, int(answer[wrong]), batch._board(game))
        actions = np.zeros(len(batch), np.int64)
        actions[waiting] = answer
        return actions

    return choose


def _illegal(name: str, game: int, action: int, board: Board) -> IllegalMoveError:
    return IllegalMoveError(
        f"the player {name} in game {game}: action {action} is not legal in "
        f"{board.notation}, legal are {board.legal_actions}"
    )


def _integer(value: Any, what: str, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {value!r}") from None
    if number < least:
        raise ValueError(f"{what} must be at least {least}, got {number}")
    return number


def _progress_bar(progress: bool | None, total: int, text: str) -> Any:
    """Returns a progress bar of tqdm, or None."""
    if progress is None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        progress = terminal or "ipykernel" in sys.modules
        required = False
    else:
        required = progress
    if not progress:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if not required:
            return None
        raise ImportError('a progress bar needs tqdm: pip install "tqdm"') from None
    return tqdm(total=total, desc=text, unit="game", leave=False)
