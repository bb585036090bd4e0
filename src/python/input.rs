//! What Python hands in, checked: integers and arrays of any kind.

use std::ops::Range;

use numpy::{
    PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PySequence, PyString};

use super::IllegalMoveError;
use crate::{Direction, Game, Player, Policy, Position};

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

/// An integer; one that does not fit in 64 bits becomes the nearest that does,
/// since no such value is ever right.
pub(super) fn number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<i64> {
    match integer(value, what)? {
        Some(number) => Ok(number),
        None => Ok(if value.lt(0)? { i64::MIN } else { i64::MAX }),
    }
}

/// An integer of 0 or more. One that does not fit in 64 bits is folded into them, so
/// that no seed is thrown away.
pub(super) fn natural(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    if number(value, what)? < 0 {
        return Err(PyValueError::new_err(format!(
            "{what} must be 0 or more, got {}",
            shown(value)
        )));
    }
    match value.extract() {
        Ok(natural) => Ok(natural),
        // The largest prime below 2^64.
        Err(_) => value.call_method1("__mod__", (u64::MAX - 58,))?.extract(),
    }
}

/// A seed for each of `n` games: from one, neighbouring ones.
pub(super) fn seeds(value: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<Option<u64>>> {
    let listed = value.cast::<PySequence>().is_ok() || value.cast::<PyUntypedArray>().is_ok();
    if !listed || value.cast::<PyString>().is_ok() {
        let first = natural(value, "a seed")?;
        return Ok((0..n as u64).map(|i| Some(first.wrapping_add(i))).collect());
    }
    let seeds = value
        .try_iter()?
        .map(|seed| {
            let seed = seed?;
            if seed.is_none() { Ok(None) } else { natural(&seed, "a seed").map(Some) }
        })
        .collect::<PyResult<Vec<_>>>()?;
    if seeds.len() != n {
        let message = format!("{n} games need {n} seeds, got {}", seeds.len());
        return Err(PyValueError::new_err(message));
    }
    Ok(seeds)
}

/// A seat for each of `n` games, or one for all.
pub(super) fn seats(value: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<Player>> {
    if let Ok(seat) = value.extract::<Player>() {
        return Ok(vec![seat; n]);
    }
    let (numbers, shape) = integers(value, "seats")?;
    let seats: Option<Vec<Player>> = numbers.into_iter().map(Player::from_index).collect();
    seats.filter(|_| shape == [n]).ok_or_else(|| {
        let value = shown(value);
        PyValueError::new_err(format!("seats must be 0 or 1, one or ({n},) of them, got {value}"))
    })
}

impl<'a, 'py> FromPyObject<'a, 'py> for Policy {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Policy> {
        let name: &str = value.extract().map_err(|_| {
            PyTypeError::new_err(format!("a policy must be a name, got {}", shown(&value)))
        })?;
        name.parse::<Policy>().map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// Which of `n` games are meant.
pub(super) fn mask(value: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<bool>> {
    let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
    let Ok(array) = array.extract::<PyReadonlyArrayDyn<'_, bool>>() else {
        let dtype = array.getattr("dtype")?;
        return Err(PyTypeError::new_err(format!("a mask must be of bool, got dtype {dtype}")));
    };
    if array.shape() != [n] {
        let shape = tuple(array.shape());
        return Err(PyValueError::new_err(format!(
            "a mask must have the shape ({n},), got {shape}"
        )));
    }
    Ok(array.as_array().iter().copied().collect())
}

/// An argument that may be left out, which is not the same as `None`.
pub(super) enum Argument<'py> {
    /// Left out.
    Missing,
    /// Whatever was given.
    Given(Bound<'py, PyAny>),
}

impl Argument<'_> {
    /// The argument as a [`number`].
    pub(super) fn number(&self, what: &str, default: usize) -> PyResult<i64> {
        match self {
            Argument::Missing => Ok(default as i64),
            Argument::Given(value) => number(value, what),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Argument<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Argument<'py>> {
        Ok(Argument::Given(value.to_owned()))
    }
}

/// The action that `value` is, if it can be one at all.
pub(super) fn action(game: &Game, position: &Position, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(value, "an action")?.ok_or_else(|| {
        IllegalMoveError::new_err(game.illegal(position, i64::MAX).message(shown(value)))
    })
}

impl<'a, 'py> FromPyObject<'a, 'py> for Player {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Player> {
        integer(&value, "a player")?.and_then(Player::from_index).ok_or_else(|| {
            let value = shown(&value);
            PyValueError::new_err(format!("a player is 0 (South) or 1 (North), got {value}"))
        })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Direction {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Direction> {
        match integer(&value, "a direction")? {
            Some(0) => Ok(Direction::Regular),
            Some(1) => Ok(Direction::Mirrored),
            _ => Err(PyValueError::new_err(format!(
                "a direction is 0 (the usual one) or 1 (mirrored), got {}",
                shown(&value)
            ))),
        }
    }
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
    let numbers = if kind == 'u' {
        let array: PyReadonlyArrayDyn<'_, u64> =
            array.call_method1("astype", ("uint64",))?.extract()?;
        // As [`number`]: no value above the range of an i64 is ever right.
        array.as_array().iter().map(|&number| number.try_into().unwrap_or(i64::MAX)).collect()
    } else {
        let array: PyReadonlyArrayDyn<'_, i64> =
            array.call_method1("astype", ("int64",))?.extract()?;
        array.as_array().iter().copied().collect()
    };
    Ok((numbers, shape))
}

/// The actions of a batch: the array that was given, where that is possible.
pub(super) enum Actions<'py> {
    Given(PyReadonlyArray1<'py, i64>),
    Copied(Vec<i64>),
}

impl Actions<'_> {
    /// The actions, one for each game.
    pub(super) fn as_slice(&self) -> &[i64] {
        match self {
            Actions::Given(array) => array.as_slice().expect("only such arrays are not copied"),
            Actions::Copied(actions) => actions,
        }
    }
}

/// The actions of a batch, one for each of `n` games; copied if their memory `may_change`
/// while they are in use.
pub(super) fn actions<'py>(
    value: &Bound<'py, PyAny>,
    n: usize,
    may_change: impl FnOnce(Range<usize>) -> bool,
) -> PyResult<Actions<'py>> {
    if let Ok(array) = value.cast::<PyArray1<i64>>()
        && array.len() == n
    {
        let array = array.try_readonly()?;
        if array.as_slice().is_ok_and(|slice| !may_change(addresses(slice))) {
            return Ok(Actions::Given(array));
        }
    }
    let (actions, shape) = integers(value, "actions")?;
    if shape != [n] {
        return Err(PyValueError::new_err(format!(
            "actions must have the shape ({n},), got {}",
            tuple(&shape)
        )));
    }
    Ok(Actions::Copied(actions))
}

/// The addresses of a slice.
fn addresses<T>(slice: &[T]) -> Range<usize> {
    let bytes = slice.as_ptr_range();
    bytes.start.addr()..bytes.end.addr()
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

/// The named tuple of the package called `name`, made on first use.
pub(super) fn named_tuple<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
    fields: &[&str],
    doc: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let made = cell.get_or_try_init(py, || {
        let options = PyDict::new(py);
        options.set_item("module", "katro")?;
        let made =
            py.import("collections")?.call_method("namedtuple", (name, fields), Some(&options))?;
        made.setattr("__doc__", doc)?;
        Ok::<_, PyErr>(made.unbind())
    })?;
    Ok(made.bind(py))
}

/// The value with a name.
pub(super) fn choose<T: Copy>(names: &[(&str, T)], name: &str, what: &str) -> PyResult<T> {
    names.iter().find(|(known, _)| *known == name).map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<String> = names.iter().map(|(name, _)| format!("'{name}'")).collect();
        PyValueError::new_err(format!("{what} must be {}, got '{name}'", known.join(" or ")))
    })
}

/// The name of a value; undoes [`choose`].
pub(super) fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |&(name, _)| name)
}
