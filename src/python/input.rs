//! What Python hands in: integers and arrays of any kind, checked.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::IllegalMoveError;
use crate::{Game, Player, Position};

/// An integer of any Python or NumPy kind, also as an array without
/// dimensions. `None` if it does not fit in 64 bits, which no legal value does.
pub(super) fn integer(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<i64>> {
    let index = match value.cast::<PyInt>() {
        Ok(_) => value.clone(),
        Err(_) => value.call_method0("__index__").map_err(|_| {
            PyTypeError::new_err(format!("{what} must be an integer, got {}", shown(value)))
        })?,
    };
    match index.extract() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The legal action that `value` is.
pub(super) fn action(game: &Game, position: &Position, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(value, "an action")?.ok_or_else(|| {
        IllegalMoveError::new_err(format!(
            "illegal action {}: legal are {} in {}",
            shown(value),
            game.legal(position),
            game.notation(position)
        ))
    })
}

/// The player that `value` (0 or 1) is.
pub(super) fn player(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Player> {
    integer(value, what)?.and_then(Player::from_index).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{what} must be 0 (South) or 1 (North), got {}",
            shown(value)
        ))
    })
}

/// The numbers and the shape of an array, or of nested lists, of integers.
pub(super) fn integers(value: &Bound<'_, PyAny>, what: &str) -> PyResult<(Vec<i64>, Vec<usize>)> {
    let numpy = value.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (value,))?;
    let kind: char = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !matches!(kind, 'i' | 'u') {
        let dtype = array.getattr("dtype")?;
        return Err(PyTypeError::new_err(format!("{what} must be integers, got dtype {dtype}")));
    }
    let shape = array.cast::<PyUntypedArray>()?.shape().to_vec();
    // No value above the range of an i64 is ever right, so it may be cut off there.
    let array = if kind == 'u' {
        numpy.call_method1("minimum", (array, i64::MAX))?.call_method1("astype", ("int64",))?
    } else {
        array.call_method1("astype", ("int64",))?
    };
    let array: PyReadonlyArrayDyn<'_, i64> = array.extract()?;
    Ok((array.as_array().iter().copied().collect(), shape))
}

/// The actions of a batch, one for each of `n` games.
pub(super) fn actions(value: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<i64>> {
    if let Ok(array) = value.cast::<PyArray1<i64>>()
        && array.len() == n
    {
        return Ok(array.try_readonly()?.as_array().to_vec());
    }
    let (actions, shape) = integers(value, "actions")?;
    if shape != [n] {
        return Err(PyValueError::new_err(format!(
            "actions must have the shape ({n},), got {}",
            tuple(&shape)
        )));
    }
    Ok(actions)
}

/// A shape as Python writes it.
pub(super) fn tuple(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => {
            format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A value as it stands in a message, cut off where it is long.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = match value.repr() {
        Ok(text) => text.to_string(),
        Err(_) => return format!("a {}", value.get_type()),
    };
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
