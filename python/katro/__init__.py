"""Katro, the six-row mancala of Madagascar, for reinforcement learning.

`Board` is a position to explore, `KatroEnv` a Gymnasium environment and
`KatroVectorEnv` many of them stepped together; `Rules` says which game is
played. Importing this package registers `katro/Katro-v0` with Gymnasium.
"""

import gymnasium

from katro._katro import (
    RULES,
    Batch,
    Board,
    Finals,
    IllegalMoveError,
    Lap,
    Rollout,
    Rules,
    SearchResult,
    Step,
    __version__,
    perft,
    search,
)
from katro.env import KatroEnv
from katro.match import LADDER, MatchResult, RatingResult, play_match, rate
from katro.vector import KatroVectorEnv

__all__ = [
    "LADDER",
    "RULES",
    "Batch",
    "Board",
    "Finals",
    "IllegalMoveError",
    "KatroEnv",
    "KatroVectorEnv",
    "Lap",
    "MatchResult",
    "RatingResult",
    "Rollout",
    "Rules",
    "SearchResult",
    "Step",
    "__version__",
    "perft",
    "play_match",
    "rate",
    "search",
]

gymnasium.register(
    id="katro/Katro-v0",
    entry_point="katro.env:KatroEnv",
    vector_entry_point="katro.vector:KatroVectorEnv",
)
