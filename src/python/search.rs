//! `katro.search`.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::board::{PyBoard, interruptible};
use super::input::{named_tuple, number, shown};
use crate::{Limits, MAX_DEPTH, Search};

/// Positions that the table of a search has room for: 24 MB.
const ENTRIES: usize = 1 << 20;

/// Searches for the best action by alpha-beta with iterative deepening.
///
/// Args:
///     board: an open board.
///     depth: the plies to search, 1 to 64; None for as many as the time allows.
///     seconds: the time after which the last depth that was finished counts (the first
///         always is); None for no limit, or for one second if there is no depth either.
///
/// Returns:
///     A named tuple `SearchResult`: the best `action`; its `value` to the player to move,
///     `1_000_000 - n` for a win and `n - 1_000_000` for a loss in `n` plies, else points:
///     his less the opponent's, 1 for a seed, 2 more for one of the outer row, 1 for an
///     occupied hole; `line`, the best play of both sides as a
///     tuple of actions; `nodes`, the positions visited, which are the moves made and the
///     board itself; `nodes_per_second`; the `depth` searched to the end; and `seconds`.
///
/// Raises:
///     ValueError: if the game is over or a limit out of its range.
///     KeyboardInterrupt: on Ctrl-C.
///
/// >>> import katro
/// >>> result = katro.search(katro.Board("katro-4x4"), depth=6)
/// >>> result.depth, len(result.line), result.action in katro.Board("katro-4x4").legal_actions
/// (6, 6, True)
#[pyfunction]
#[pyo3(signature = (board, depth = None, seconds = None))]
pub(super) fn search<'py>(
    py: Python<'py>,
    board: &PyBoard,
    depth: Option<&Bound<'py, PyAny>>,
    seconds: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if board.game.winner(&board.position).is_some() {
        let text = board.game.notation(&board.position);
        return Err(PyValueError::new_err(format!("the game is over in {text}")));
    }
    let limits = Limits {
        depth: match depth {
            None => MAX_DEPTH,
            Some(value) => u32::try_from(number(value, "depth")?)
                .ok()
                .filter(|depth| (1..=MAX_DEPTH).contains(depth))
                .ok_or_else(|| {
                    let value = shown(value);
                    PyValueError::new_err(format!("depth must be 1 to {MAX_DEPTH}, got {value}"))
                })?,
        },
        time: match (seconds, depth) {
            (None, Some(_)) => None,
            (None, None) => Some(Duration::from_secs(1)),
            (Some(value), _) => Some(
                Duration::try_from_secs_f64(value.extract()?)
                    .ok()
                    .filter(|time| !time.is_zero())
                    .ok_or_else(|| {
                    let value = shown(value);
                    PyValueError::new_err(format!("seconds must be more than 0, got {value}"))
                })?,
            ),
        },
    };
    let mut search = Search::new(board.game, ENTRIES);
    let start = Instant::now();
    let found = interruptible(py, |go_on| {
        let mut interrupted = false;
        let found = search.run(&board.position, limits, &mut || {
            interrupted = !go_on();
            !interrupted
        });
        (!interrupted).then_some(found)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    search_result_type(py)?.call1((
        found.action,
        found.value,
        PyTuple::new(py, &found.line)?,
        found.nodes,
        found.nodes as f64 / seconds,
        found.depth,
        seconds,
    ))
}

/// The named tuple `katro.SearchResult`.
pub(super) fn search_result_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static RESULT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fields = ["action", "value", "line", "nodes", "nodes_per_second", "depth", "seconds"];
    named_tuple(py, &RESULT, "SearchResult", &fields, "What `search` has found; see there.")
}
