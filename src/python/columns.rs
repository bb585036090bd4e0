//! The arrays of a step as NumPy has them.

use std::ops::Range;

use numpy::ndarray::{Dimension, IntoDimension};
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyUntypedArrayMethods, dtype,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::{Game, Rows};

/// An array, or the rows of one, for each field of [`Rows`].
pub(super) struct Columns {
    games: usize,
    pub(super) observation: Py<PyArray3<u8>>,
    pub(super) action_mask: Py<PyArray2<i8>>,
    pub(super) reward: Py<PyArray1<f64>>,
    pub(super) terminated: Py<PyArray1<bool>>,
    pub(super) truncated: Py<PyArray1<bool>>,
    pub(super) to_move: Py<PyArray1<i64>>,
    pub(super) winner: Py<PyArray1<i64>>,
    pub(super) captured: Py<PyArray1<i64>>,
    pub(super) laps: Py<PyArray1<i64>>,
    /// Where the rules bind players to a direction (V2).
    pub(super) bound: Option<Py<PyArray2<i8>>>,
}

impl Columns {
    /// New arrays for `n` games, to be written before anybody sees them.
    pub(super) fn new(py: Python<'_>, game: &Game, n: usize) -> PyResult<Columns> {
        let rules = game.rules();
        let flags = || PyArray1::zeros(py, n, false).unbind();
        Ok(Columns {
            games: n,
            observation: new(py, (n, 2 * rules.rows(), rules.columns()), n)?,
            action_mask: new(py, (n, rules.num_actions()), n)?,
            reward: new(py, (n,), n)?,
            // Not every byte is a bool.
            terminated: flags(),
            truncated: flags(),
            to_move: new(py, (n,), n)?,
            winner: new(py, (n,), n)?,
            captured: new(py, (n,), n)?,
            laps: new(py, (n,), n)?,
            bound: rules.binds().then(|| new(py, (n, 2), n)).transpose()?,
        })
    }

    /// The same arrays once more.
    pub(super) fn clone_ref(&self, py: Python<'_>) -> Columns {
        Columns {
            games: self.games,
            observation: self.observation.clone_ref(py),
            action_mask: self.action_mask.clone_ref(py),
            reward: self.reward.clone_ref(py),
            terminated: self.terminated.clone_ref(py),
            truncated: self.truncated.clone_ref(py),
            to_move: self.to_move.clone_ref(py),
            winner: self.winner.clone_ref(py),
            captured: self.captured.clone_ref(py),
            laps: self.laps.clone_ref(py),
            bound: self.bound.as_ref().map(|bound| bound.clone_ref(py)),
        }
    }

    /// Whether one of the arrays has memory in a range of addresses.
    pub(super) fn overlap(&self, py: Python<'_>, range: &Range<usize>) -> bool {
        let bound = self.bound.as_ref().is_some_and(|bound| overlaps(bound.bind(py), range));
        bound
            || overlaps(self.observation.bind(py), range)
            || overlaps(self.action_mask.bind(py), range)
            || overlaps(self.reward.bind(py), range)
            || overlaps(self.terminated.bind(py), range)
            || overlaps(self.truncated.bind(py), range)
            || overlaps(self.to_move.bind(py), range)
            || overlaps(self.winner.bind(py), range)
            || overlaps(self.captured.bind(py), range)
            || overlaps(self.laps.bind(py), range)
    }

    /// Lets `work` write the arrays while other Python threads run.
    pub(super) fn write<T: Send>(
        &self,
        py: Python<'_>,
        game: &Game,
        work: impl FnOnce(Rows<'_>) -> T + Send,
    ) -> PyResult<T> {
        self.write_attached(py, game, |rows| py.detach(|| work(rows)))
    }

    /// Lets `work` write the arrays, which may ask Python in between.
    pub(super) fn write_attached<T>(
        &self,
        py: Python<'_>,
        game: &Game,
        work: impl FnOnce(Rows<'_>) -> T,
    ) -> PyResult<T> {
        let mut observation = self.observation.bind(py).try_readwrite()?;
        let mut action_mask = self.action_mask.bind(py).try_readwrite()?;
        let mut reward = self.reward.bind(py).try_readwrite()?;
        let mut terminated = self.terminated.bind(py).try_readwrite()?;
        let mut truncated = self.truncated.bind(py).try_readwrite()?;
        let mut to_move = self.to_move.bind(py).try_readwrite()?;
        let mut winner = self.winner.bind(py).try_readwrite()?;
        let mut captured = self.captured.bind(py).try_readwrite()?;
        let mut laps = self.laps.bind(py).try_readwrite()?;
        let mut bound =
            self.bound.as_ref().map(|bound| bound.bind(py).try_readwrite()).transpose()?;
        let rows = Rows {
            observation: observation.as_slice_mut()?,
            action_mask: action_mask.as_slice_mut()?,
            reward: reward.as_slice_mut()?,
            terminated: terminated.as_slice_mut()?,
            truncated: truncated.as_slice_mut()?,
            to_move: to_move.as_slice_mut()?,
            winner: winner.as_slice_mut()?,
            captured: captured.as_slice_mut()?,
            laps: laps.as_slice_mut()?,
            bound: match &mut bound {
                Some(bound) => bound.as_slice_mut()?,
                None => &mut [],
            },
        };
        if !rows.fit(game, self.games) {
            let message = "the arrays that every step writes into have been given another form";
            return Err(PyValueError::new_err(message));
        }
        Ok(work(rows))
    }

    /// The information of Gymnasium's vector environments: the arrays by name,
    /// and under `_name` which games have it, which is all of them.
    pub(super) fn infos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let infos = PyDict::new(py);
        let all = || PyArray1::from_vec(py, vec![true; self.games]);
        infos.set_item(intern!(py, "action_mask"), &self.action_mask)?;
        infos.set_item(intern!(py, "_action_mask"), all())?;
        infos.set_item(intern!(py, "to_move"), &self.to_move)?;
        infos.set_item(intern!(py, "_to_move"), all())?;
        infos.set_item(intern!(py, "winner"), &self.winner)?;
        infos.set_item(intern!(py, "_winner"), all())?;
        infos.set_item(intern!(py, "captured"), &self.captured)?;
        infos.set_item(intern!(py, "_captured"), all())?;
        infos.set_item(intern!(py, "laps"), &self.laps)?;
        infos.set_item(intern!(py, "_laps"), all())?;
        if let Some(bound) = &self.bound {
            infos.set_item(intern!(py, "bound"), bound)?;
            infos.set_item(intern!(py, "_bound"), all())?;
        }
        Ok(infos)
    }
}

/// A new array to be written in full: zeros if it is small, uninitialised if it is large,
/// since clearing that takes longer than asking NumPy for it does.
fn new<'py, T: Element, I: IntoDimension + IntoPyObject<'py>>(
    py: Python<'py>,
    shape: I,
    games: usize,
) -> PyResult<Py<PyArray<T, I::Dim>>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // To ask NumPy takes a tenth of a microsecond longer, in which so many rows are cleared.
    if games < 256 {
        return Ok(PyArray::zeros(py, shape, false).unbind());
    }
    let array = EMPTY.import(py, "numpy", "empty")?.call1((shape, dtype::<T>(py)))?;
    Ok(array.cast_into::<PyArray<T, I::Dim>>()?.unbind())
}

/// Whether an array without gaps has memory in a range of addresses.
fn overlaps<T: Element, D: Dimension>(
    array: &Bound<'_, PyArray<T, D>>,
    range: &Range<usize>,
) -> bool {
    let start = array.data().addr();
    start < range.end && range.start < start + array.len() * size_of::<T>()
}
