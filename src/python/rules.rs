//! `katro.Rules`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::input::{Argument, integer, shown};
use crate::{Rules, RulesError};

impl From<RulesError> for PyErr {
    fn from(error: RulesError) -> PyErr {
        PyValueError::new_err(error.to_string())
    }
}

/// Which game is played: the size of the board and the seeds it starts with.
///
/// Immutable, hashable, comparable and picklable. A name is accepted wherever
/// rules are.
///
/// Args:
///     rows: rows per side, 1 to 3.
///     columns: holes per row, 1 to 8.
///     seeds: seeds in every hole at the start, at least 1, with at most 255
///         on the whole board.
///
/// Raises:
///     ValueError: if a number is out of its range.
///
/// >>> import katro
/// >>> katro.Rules(rows=2, columns=4)
/// Rules(rows=2, columns=4, seeds=2)
/// >>> katro.Rules.named("katro-4x4") == katro.Rules(2, 4)
/// True
#[pyclass(name = "Rules", module = "katro", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PyRules(pub(super) Rules);

#[pymethods]
impl PyRules {
    #[new]
    #[pyo3(signature = (rows = Argument::Missing, columns = Argument::Missing, seeds = Argument::Missing),
           text_signature = "(rows=3, columns=6, seeds=2)")]
    fn new(rows: Argument<'_>, columns: Argument<'_>, seeds: Argument<'_>) -> PyResult<PyRules> {
        Ok(PyRules(Rules::new(
            rows.number("rows", Rules::KATRO.rows())?,
            columns.number("columns", Rules::KATRO.columns())?,
            seeds.number("seeds", Rules::KATRO.seeds())?,
        )?))
    }

    /// Returns the rule set called `name`.
    ///
    /// Raises:
    ///     ValueError: if no rule set has that name; the message lists the known ones.
    ///
    /// >>> import katro
    /// >>> katro.Rules.named("katro-6x3").columns
    /// 3
    #[classmethod]
    fn named(_class: &Bound<'_, PyType>, name: &str) -> PyResult<PyRules> {
        Ok(PyRules(Rules::named(name)?))
    }

    /// The name of this rule set, None if it has none.
    #[getter]
    fn name(&self) -> Option<&'static str> {
        self.0.name()
    }

    /// Rows per side, 1 to 3.
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Holes per row, 1 to 8.
    #[getter]
    fn columns(&self) -> usize {
        self.0.columns()
    }

    /// Seeds in every hole at the start.
    #[getter]
    fn seeds(&self) -> usize {
        self.0.seeds()
    }

    /// Seeds on the whole board at the start.
    #[getter]
    fn total_seeds(&self) -> usize {
        self.0.total_seeds()
    }

    /// The size of the action space.
    #[getter]
    fn num_actions(&self) -> usize {
        self.0.num_actions()
    }

    /// Returns the name of an action: the letter of its column from the mover's left.
    ///
    /// Raises:
    ///     ValueError: if the action is not in the action space.
    ///
    /// >>> import katro
    /// >>> katro.Rules().action_name(2)
    /// 'c'
    fn action_name(&self, action: &Bound<'_, PyAny>) -> PyResult<String> {
        integer(action, "an action")?
            .and_then(|action| usize::try_from(action).ok())
            .and_then(|action| self.0.action_name(action))
            .ok_or_else(|| {
                PyValueError::new_err(format!(
                    "an action is 0 to {}, got {}",
                    self.0.num_actions() - 1,
                    shown(action)
                ))
            })
    }

    /// Returns the action with a name; undoes `action_name`.
    ///
    /// Raises:
    ///     ValueError: if no action has that name; the message lists them.
    ///
    /// >>> import katro
    /// >>> katro.Rules().parse_action("c")
    /// 2
    fn parse_action(&self, text: &str) -> PyResult<usize> {
        self.0.parse_action(text).ok_or_else(|| {
            let names: Vec<String> =
                (0..self.0.num_actions()).filter_map(|action| self.0.action_name(action)).collect();
            PyValueError::new_err(format!(
                "no action is called {text:?}, they are {}",
                names.join(", ")
            ))
        })
    }

    fn __repr__(&self) -> String {
        format!("Rules(rows={}, columns={}, seeds={})", self.rows(), self.columns(), self.seeds())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (usize, usize, usize)) {
        let rules = slf.get().0;
        (slf.get_type(), (rules.rows(), rules.columns(), rules.seeds()))
    }
}

impl PyRules {
    /// As `repr` shows it.
    pub(super) fn shown(&self) -> String {
        self.__repr__()
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Rules {
    type Error = PyErr;

    /// Takes a `Rules` or the name of one.
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Rules> {
        if let Ok(rules) = value.cast::<PyRules>() {
            return Ok(rules.get().0);
        }
        match value.extract::<&str>() {
            Ok(name) => Ok(Rules::named(name)?),
            Err(_) => Err(PyTypeError::new_err(format!(
                "rules must be a katro.Rules or the name of one, got {}",
                shown(&value)
            ))),
        }
    }
}
