//! `katro.Rules`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::input::{Argument, choose, integer, name_of, shown};
use crate::{DirectionChoice, LastSeedSteps, Rules, RulesError, Switches};

impl From<RulesError> for PyErr {
    fn from(error: RulesError) -> PyErr {
        PyValueError::new_err(error.to_string())
    }
}

/// Which game is played: the board, and how the rules depart from the standard.
///
/// Immutable, hashable, comparable and picklable. A name is accepted wherever
/// rules are; `katro.RULES` lists the names.
///
/// Args:
///     rows: rows per side, 1 to 3.
///     columns: holes per row, 1 to 8.
///     seeds: seeds in every hole at the start, at least 1, with at most 255
///         on the whole board.
///     direction: `"fixed"`, everybody sows along one circuit; `"per_move"`, the
///         mover chooses it or its mirror image; `"per_game"`, a player's first
///         sowing binds him. None for `"fixed"`, or what `boaoaka` needs.
///     fall_through: captures are made from the inner row only, and take the first
///         occupied hole of the opponent's column.
///     capture_on_empty: a last seed captures from an empty hole and never from an
///         occupied one. Moves may go on for ever, so a move is over after 10,000 laps.
///     last_seed_steps: a player's last seed may step to the next row inwards
///         instead of being sown: None, `"straight"`, or `"diagonal"` for also with
///         one column to the left or right.
///     boaoaka: any hole may be chosen and the inner row captures whole columns, as in
///         Katra Boaoaka. Goes with `direction="per_game"` and nothing else.
///
/// Raises:
///     ValueError: if a number is out of its range, a switch has no such value, or
///         the switches make no sense together.
///
/// >>> import katro
/// >>> katro.Rules(rows=2, columns=4)
/// Rules(rows=2, columns=4, seeds=2)
/// >>> katro.Rules.named("katro-4x4") == katro.Rules(2, 4)
/// True
/// >>> katro.Rules(2, 4, direction="per_move").num_actions
/// 8
#[pyclass(name = "Rules", module = "katro", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PyRules(pub(super) Rules);

const DIRECTIONS: [(&str, DirectionChoice); 3] = [
    ("fixed", DirectionChoice::Fixed),
    ("per_move", DirectionChoice::PerMove),
    ("per_game", DirectionChoice::PerGame),
];

const STEPS: [(&str, LastSeedSteps); 2] =
    [("straight", LastSeedSteps::Straight), ("diagonal", LastSeedSteps::Diagonal)];

#[pymethods]
impl PyRules {
    #[new]
    #[pyo3(signature = (rows = Argument::Missing, columns = Argument::Missing,
 seeds = Argument::Missing, *, direction = None,
                        fall_through = false, capture_on_empty = false, last_seed_steps = None,
                        boaoaka = false),
           text_signature = "(rows=3, columns=6, seeds=2, *, direction=None, fall_through=False, \
                             capture_on_empty=False, last_seed_steps=None, boaoaka=False)")]
    #[expect(clippy::too_many_arguments, reason = "they are the switches of the rules")]
    fn new(
        rows: Argument<'_>,
        columns: Argument<'_>,
        seeds: Argument<'_>,
        direction: Option<&str>,
        fall_through: bool,
        capture_on_empty: bool,
        last_seed_steps: Option<&str>,
        boaoaka: bool,
    ) -> PyResult<PyRules> {
        let direction = match direction {
            Some(name) => choose(&DIRECTIONS, name, "direction")?,
            None if boaoaka => DirectionChoice::PerGame,
            None => DirectionChoice::Fixed,
        };
        let last_seed_steps = last_seed_steps
            .map(|name| choose(&STEPS, name, "last_seed_steps (if not None)"))
            .transpose()?;
        let switches =
            Switches { direction, fall_through, capture_on_empty, last_seed_steps, boaoaka };
        Ok(PyRules(Rules::with(
            rows.number("rows", Rules::KATRO.rows())?,
            columns.number("columns", Rules::KATRO.columns())?,
            seeds.number("seeds", Rules::KATRO.seeds())?,
            switches,
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

    /// How the direction of sowing is chosen: "fixed", "per_move" or "per_game".
    #[getter]
    fn direction(&self) -> &'static str {
        name_of(&DIRECTIONS, self.0.switches().direction)
    }

    /// Whether the inner row alone captures, the first occupied hole of a column.
    #[getter]
    fn fall_through(&self) -> bool {
        self.0.switches().fall_through
    }

    /// Whether a last seed captures from an empty hole and not from an occupied one.
    #[getter]
    fn capture_on_empty(&self) -> bool {
        self.0.switches().capture_on_empty
    }

    /// The steps that a player's last seed may take: None, "straight" or "diagonal".
    #[getter]
    fn last_seed_steps(&self) -> Option<&'static str> {
        self.0.switches().last_seed_steps.map(|steps| name_of(&STEPS, steps))
    }

    /// Whether the game is Katra Boaoaka.
    #[getter]
    fn boaoaka(&self) -> bool {
        self.0.switches().boaoaka
    }

    /// The size of the action space.
    ///
    /// Actions are the columns, counted from the mover's left (of Boaoaka the holes,
    /// `row * columns + column` with row 0 the outer one); where the mover has a
    /// choice of direction the same again in the mirrored one; then the steps
    /// straight, left and right.
    #[getter]
    fn num_actions(&self) -> usize {
        self.0.num_actions()
    }

    /// Returns the name of an action.
    ///
    /// The letter of its column from the mover's left (of Boaoaka also the number of
    /// the row, 1 for the outer one); where there is a choice of direction `>` for the
    /// outer row from left to right, `<` for the mirror image; `step`, `step-left` and
    /// `step-right`.
    ///
    /// Raises:
    ///     ValueError: if the action is not in the action space.
    ///
    /// >>> import katro
    /// >>> katro.Rules().action_name(2)
    /// 'c'
    /// >>> katro.Rules.named("katra-boaoaka").action_name(26)
    /// 'c2<'
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
        let mut text = format!(
            "Rules(rows={}, columns={}, seeds={}",
            self.rows(),
            self.columns(),
            self.seeds()
        );
        if self.0.switches().direction != DirectionChoice::Fixed {
            text += &format!(", direction='{}'", self.direction());
        }
        if let Some(steps) = self.last_seed_steps() {
            text += &format!(", last_seed_steps='{steps}'");
        }
        for (name, on) in [
            ("fall_through", self.fall_through()),
            ("capture_on_empty", self.capture_on_empty()),
            ("boaoaka", self.boaoaka()),
        ] {
            if on {
                text += &format!(", {name}=True");
            }
        }
        text + ")"
    }

    /// `functools.partial` hands over the keyword arguments, in every protocol.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (usize, usize, usize))> {
        let py = slf.py();
        let this = slf.get();
        let switches = PyDict::new(py);
        switches.set_item("direction", this.direction())?;
        switches.set_item("fall_through", this.fall_through())?;
        switches.set_item("capture_on_empty", this.capture_on_empty())?;
        switches.set_item("last_seed_steps", this.last_seed_steps())?;
        switches.set_item("boaoaka", this.boaoaka())?;
        let make =
            py.import("functools")?.call_method("partial", (slf.get_type(),), Some(&switches))?;
        Ok((make, (this.rows(), this.columns(), this.seeds())))
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
