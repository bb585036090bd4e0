//! `katro.Board` and what it gives out.

use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use super::IllegalMoveError;
use super::input::{action, integer, integers, named_tuple, shown, tuple};
use super::rules::PyRules;
use crate::{Direction, Game, Hole, IllegalMove, Lap, NotationError, Player, Position, Rules};

impl From<IllegalMove> for PyErr {
    fn from(error: IllegalMove) -> PyErr {
        IllegalMoveError::new_err(error.to_string())
    }
}

impl From<NotationError> for PyErr {
    fn from(error: NotationError) -> PyErr {
        PyValueError::new_err(error.to_string())
    }
}

/// A position of a game: the seeds and the player to move, with the rules.
///
/// Immutable, hashable, comparable, copyable and picklable; `repr` rebuilds it
/// and `str` draws it.
///
/// Args:
///     rules: a `Rules` or the name of one. The board is at the start (R1).
///
/// Raises:
///     ValueError: if no rule set has that name.
///
/// >>> import katro
/// >>> board = katro.Board()
/// >>> board.legal_actions
/// [0, 1, 2, 3, 4, 5]
/// >>> board.play(2).notation
/// '2,2,2,2,2,2/2,2,2,2,2,2/2,0,2,2,2,2/3,0,3,3,3,3/3,0,3,3,1,4/0,3,1,0,1,4 N'
#[pyclass(name = "Board", module = "katro", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct PyBoard {
    pub(super) game: Game,
    pub(super) position: Position,
}

#[pymethods]
impl PyBoard {
    #[new]
    #[pyo3(signature = (rules = Rules::KATRO), text_signature = "(rules='katro')")]
    fn new(rules: Rules) -> PyBoard {
        let game = Game::new(rules);
        PyBoard { game, position: game.start() }
    }

    /// Reads a board from its notation.
    ///
    /// Args:
    ///     text: rows from the top, separated by slashes, the seeds of a row by
    ///         commas, then a space and `S` or `N` for the player to move. Where the
    ///         rules bind players to a direction another space follows and a character
    ///         for South and one for North: `-` free, `>` the usual direction, `<` the
    ///         mirrored one.
    ///     rules: a `Rules` or the name of one; None for the standard rules on a
    ///         board of that size, with two seeds a hole at the start.
    ///
    /// Raises:
    ///     ValueError: if the text is no position, or one of another board.
    ///
    /// >>> import katro
    /// >>> katro.Board.from_notation("0,2/0,1 S").legal_actions
    /// [1]
    #[classmethod]
    #[pyo3(signature = (text, rules = None))]
    fn from_notation(
        _class: &Bound<'_, PyType>,
        text: &str,
        rules: Option<Rules>,
    ) -> PyResult<PyBoard> {
        let (game, position) = match rules {
            None => Game::from_notation(text)?,
            Some(rules) => {
                let game = Game::new(rules);
                (game, game.parse(text)?)
            }
        };
        Ok(PyBoard { game, position })
    }

    /// Makes a board from the seeds of its holes.
    ///
    /// Args:
    ///     grid: (2 * rows, columns) integers as drawn, South at the bottom.
    ///     to_move: 0 for South, 1 for North.
    ///     rules: a `Rules` or the name of one; None for the standard rules on a
    ///         board of that size, with two seeds a hole at the start.
    ///     bound: where the rules bind players to a direction, those of South and North,
    ///         each None, 0 or 1; None for two free players.
    ///
    /// Raises:
    ///     ValueError: if the shape is not that of a board, a number is
    ///         negative, there is no seed or there are more than 255, or the rules bind
    ///         nobody.
    ///     TypeError: if the grid does not hold integers.
    ///
    /// >>> import katro
    /// >>> katro.Board.from_grid([[0, 2], [0, 1]], to_move=1).notation
    /// '0,2/0,1 N'
    #[classmethod]
    #[pyo3(signature = (grid, to_move = Player::South, rules = None, bound = None),
           text_signature = "(grid, to_move=0, rules=None, bound=None)")]
    fn from_grid(
        _class: &Bound<'_, PyType>,
        grid: &Bound<'_, PyAny>,
        to_move: Player,
        rules: Option<Rules>,
        bound: Option<(Option<Direction>, Option<Direction>)>,
    ) -> PyResult<PyBoard> {
        let (numbers, shape) = integers(grid, "the seeds of a grid")?;
        let rules = match (rules, shape.as_slice()) {
            (Some(rules), &[rows, columns])
                if (rows, columns) == (2 * rules.rows(), rules.columns()) =>
            {
                rules
            }
            (None, &[rows, columns]) if rows % 2 == 0 => {
                Rules::for_board(rows as i64 / 2, columns as i64)?
            }
            (rules, _) => {
                let expected = rules.map_or("(2 * rows, columns)".to_owned(), |rules| {
                    tuple(&[2 * rules.rows(), rules.columns()])
                });
                let message = format!("the shape of a grid is {expected}, got {}", tuple(&shape));
                return Err(PyValueError::new_err(message));
            }
        };
        let game = Game::new(rules);
        let position = game
            .position(&numbers, to_move)
            .and_then(|position| match bound {
                None => Ok(position),
                Some((south, north)) => game.bind(&position, [south, north]),
            })
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyBoard { game, position })
    }

    /// The rules of the game.
    #[getter]
    fn rules(&self) -> PyRules {
        PyRules(*self.game.rules())
    }

    /// The player to move: 0 for South, 1 for North.
    #[getter]
    fn to_move(&self) -> usize {
        self.position.to_move().index()
    }

    /// The directions that South and North are bound to, None where the rules bind nobody.
    ///
    /// Each is None for a player who is still free, 0 for the usual direction and 1 for the
    /// mirrored one.
    #[getter]
    fn bound(&self) -> Option<(Option<u8>, Option<u8>)> {
        let bound =
            |player| self.position.bound(player).map(|direction: Direction| direction as u8);
        self.game.rules().binds().then(|| (bound(Player::South), bound(Player::North)))
    }

    /// The player who has won, None while the game is open.
    #[getter]
    fn winner(&self) -> Option<usize> {
        self.game.winner(&self.position).map(|player| player.index())
    }

    /// Whether somebody has won.
    #[getter]
    fn is_over(&self) -> bool {
        self.winner().is_some()
    }

    /// The board as text; `from_notation` reads it back.
    #[getter]
    fn notation(&self) -> String {
        self.game.notation(&self.position)
    }

    /// The actions the player to move may choose from, ascending; empty when the game is over.
    #[getter]
    fn legal_actions(&self) -> Vec<usize> {
        self.game.legal(&self.position).iter().collect()
    }

    /// (actions) int8, 1 for a legal action; all ones when the game is over.
    ///
    /// What `action_space.sample(mask)` of Gymnasium takes. A new array each time.
    #[getter]
    fn action_mask<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i8>> {
        let legal = self.game.legal(&self.position);
        let actions = 0..self.game.rules().num_actions() as i64;
        let allowed = |action| (legal.is_empty() || legal.contains(action)).into();
        actions.map(allowed).collect::<Vec<i8>>().into_pyarray(py)
    }

    /// Returns the board after the player to move plays an action.
    ///
    /// Raises:
    ///     IllegalMoveError: if the action is not legal.
    ///     TypeError: if it is no integer.
    ///
    /// >>> import katro
    /// >>> katro.Board("katro-4x4").play(0).to_move
    /// 1
    fn play(&self, action: &Bound<'_, PyAny>) -> PyResult<PyBoard> {
        let action = self::action(&self.game, &self.position, action)?;
        let (position, _) = self.game.play(&self.position, action)?;
        Ok(PyBoard { game: self.game, position })
    }

    /// Returns the laps of a move, in order.
    ///
    /// Each is a `Lap(lifted, seeds, landed, captured, taken)`; a hole is
    /// (row, column) as drawn.
    ///
    /// Raises:
    ///     IllegalMoveError: if the action is not legal.
    ///     TypeError: if it is no integer.
    ///
    /// >>> import katro
    /// >>> katro.Board("katro-4x4").trace(2)[0]
    /// Lap(lifted=(3, 2), seeds=2, landed=(2, 3), captured=((1, 3),), taken=2)
    fn trace<'py>(&self, action: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = action.py();
        let action = self::action(&self.game, &self.position, action)?;
        let laps = self.game.trace(&self.position, action)?;
        laps.iter().map(|lap| python_lap(py, lap)).collect()
    }

    /// Returns the seeds as drawn, South at the bottom: a new (2 * rows, columns) uint8 array.
    fn grid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<u8>> {
        self.array(py, self.game.grid(&self.position))
    }

    /// Returns the seeds as the player to move sees them: a new (2 * rows, columns) uint8 array.
    ///
    /// His outer row is at the bottom and column 0 at his left hand.
    fn observation<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<u8>> {
        self.array(py, self.game.observation(&self.position))
    }

    fn __repr__(&self) -> String {
        let text = self.notation();
        let rules = self.game.rules();
        if Rules::for_board(rules.rows() as i64, rules.columns() as i64).as_ref() == Ok(rules) {
            return format!("Board.from_notation('{text}')");
        }
        let rules =
            rules.name().map_or_else(|| PyRules(*rules).shown(), |name| format!("'{name}'"));
        format!("Board.from_notation('{text}', rules={rules})")
    }

    fn __str__(&self) -> String {
        self.game.text(&self.position)
    }

    fn _repr_svg_(&self) -> String {
        self.game.svg(&self.position, None)
    }

    /// The board as a picture: (height, width, 3) uint8.
    fn _rgb<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray3<u8>> {
        let (height, width, pixels) = self.game.rgb(&self.position, None);
        Array3::from_shape_vec((height, width, 3), pixels)
            .expect("a pixel has three bytes")
            .into_pyarray(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, PyRules))> {
        let board = slf.get();
        let rebuild = slf.get_type().getattr("from_notation")?;
        Ok((rebuild, (board.notation(), board.rules())))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

impl PyBoard {
    fn array<'py>(&self, py: Python<'py>, grid: Vec<u8>) -> Bound<'py, PyArray2<u8>> {
        let rules = self.game.rules();
        Array2::from_shape_vec((2 * rules.rows(), rules.columns()), grid)
            .expect("a grid has an entry for every hole")
            .into_pyarray(py)
    }
}

/// Counts the sequences of `depth` moves from a board.
///
/// Games that end sooner count for nothing, so that the numbers show whether an
/// engine plays the rules exactly.
///
/// Args:
///     board: where the sequences start.
///     depth: 0 to 100.
///
/// Raises:
///     ValueError: if `depth` is out of its range.
///     TypeError: if `depth` is no integer.
///
/// >>> import katro
/// >>> [katro.perft(katro.Board(), depth) for depth in range(5)]
/// [1, 6, 36, 168, 784]
#[pyfunction]
pub(super) fn perft(py: Python<'_>, board: &PyBoard, depth: &Bound<'_, PyAny>) -> PyResult<u64> {
    let depth =
        integer(depth, "depth")?.filter(|depth| (0..=100).contains(depth)).ok_or_else(|| {
            PyValueError::new_err(format!("depth must be 0 to 100, got {}", shown(depth)))
        })?;
    interruptible(py, |go_on| board.game.perft_while(&board.position, depth as u32, go_on))
}

/// Runs long work that asks now and then whether to go on, and stops it, with
/// the exception that Python raises then, when the user presses Ctrl-C.
pub(super) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Option<T> + Send,
) -> PyResult<T> {
    let mut interrupt = None;
    let done = py.detach(|| {
        work(&mut || {
            interrupt = Python::attach(|py| py.check_signals()).err();
            interrupt.is_none()
        })
    });
    match (done, interrupt) {
        (Some(done), _) => Ok(done),
        (None, Some(interrupt)) => Err(interrupt),
        (None, None) => unreachable!("work stops only when it is told to"),
    }
}

/// The named tuple `katro.Lap`.
pub(super) fn lap_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    named_tuple(
        py,
        &LAP,
        "Lap",
        &["lifted", "seeds", "landed", "captured", "taken"],
        "One handful sown; a hole is (row, column) as drawn, row 0 at the top.\n\n\
         lifted: the hole whose seeds were lifted\n\
         seeds: the seeds sown, with those captured by the lap before\n\
         landed: the hole into which the last seed fell\n\
         captured: the opponent's holes captured at the end of the lap\n\
         taken: the seeds that lay in them",
    )
}

fn python_lap<'py>(py: Python<'py>, lap: &Lap) -> PyResult<Bound<'py, PyAny>> {
    let hole = |hole: &Hole| (hole.row, hole.column);
    let captured = PyTuple::new(py, lap.captured.iter().map(hole))?;
    lap_type(py)?.call1((hole(&lap.lifted), lap.seeds, hole(&lap.landed), captured, lap.taken))
}
