//! `katro._katro.Batch`: the games behind the environments.

use numpy::PyReadonlyArray1;
use numpy::ndarray::{Array2, Array3, Array4};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::IllegalMoveError;
use super::board::PyBoard;
use super::input::{self, integer, number, shown};
use super::rules::PyRules;
use crate::{
    Arrays, Autoreset, Batch, Final, Game, Illegal, Options, Player, Position, Rules, StepError,
};

/// The arrays of a step in the order of [`Arrays`].
type Columns<'py> = (
    Bound<'py, PyArray3<u8>>,
    Bound<'py, PyArray2<i8>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
);

/// The games that ended in a step and started again at once: which they were,
/// and their last observation, player to move, winner, captured and laps.
type Finals<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray3<u8>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
);

/// What `step` returns of one game: observation, reward, terminated, truncated, info.
type Single<'py> = (Bound<'py, PyArray2<u8>>, f64, bool, bool, Bound<'py, PyDict>);

const AUTORESET: [(&str, Autoreset); 3] = [
    ("NextStep", Autoreset::NextStep),
    ("SameStep", Autoreset::SameStep),
    ("Disabled", Autoreset::Disabled),
];

const ILLEGAL: [(&str, Illegal); 2] = [("raise", Illegal::Refuse), ("lose", Illegal::Lose)];

/// The arguments that make a batch like another: the number of games, the
/// rules, the names of the autoreset mode and of what an illegal action does,
/// and the ply limit.
type Arguments = (usize, PyRules, &'static str, &'static str, Option<u32>);

/// What a pickle keeps beside the arguments: how it was written, whether the
/// games have been reset, and the games.
type State<'a> = (u32, bool, &'a [u8]);

const PICKLE_VERSION: u32 = 1;

/// Many games of one rule set, stepped together.
#[pyclass(name = "Batch", module = "katro._katro")]
pub(super) struct PyBatch {
    batch: Batch,
    /// Whether the games have been reset, without which none can be stepped.
    started: bool,
}

#[pymethods]
impl PyBatch {
    #[new]
    #[pyo3(signature = (n, rules, autoreset, illegal, max_plies))]
    fn new(
        n: &Bound<'_, PyAny>,
        rules: Rules,
        autoreset: &str,
        illegal: &str,
        max_plies: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyBatch> {
        let autoreset = choose(&AUTORESET, autoreset, "autoreset_mode")?;
        let illegal = choose(&ILLEGAL, illegal, "illegal")?;
        let max_plies = max_plies
            .map(|value| match number(value, "max_plies")? {
                plies @ 1.. => Ok(u32::try_from(plies).unwrap_or(u32::MAX)),
                _ => Err(PyValueError::new_err(format!(
                    "max_plies must be at least 1, or None for no limit, got {}",
                    shown(value)
                ))),
            })
            .transpose()?;
        let options = Options { autoreset, illegal, max_plies };
        Ok(PyBatch { batch: batch(n, Game::new(rules), options)?, started: false })
    }

    #[getter]
    fn rules(&self) -> PyRules {
        PyRules(*self.batch.game().rules())
    }

    fn __len__(&self) -> usize {
        self.batch.len()
    }

    /// Raises what a reset to `board` would raise.
    fn check_board(&self, board: &PyBoard) -> PyResult<()> {
        self.startable(board, None).map(|_| ())
    }

    /// Starts the games of `mask` (all, if None) from `board`, or from the start.
    fn reset(
        &mut self,
        mask: Option<PyReadonlyArray1<'_, bool>>,
        board: Option<&PyBoard>,
    ) -> PyResult<()> {
        let position = board.map(|board| self.startable(board, None)).transpose()?;
        match mask {
            None => (0..self.batch.len()).for_each(|i| self.batch.reset(i, position.as_ref())),
            Some(mask) => {
                for (i, _) in mask.as_array().iter().enumerate().filter(|&(_, &reset)| reset) {
                    self.batch.reset(i, position.as_ref());
                }
            }
        }
        self.started = true;
        Ok(())
    }

    /// Every game as a reset leaves it.
    fn observe<'py>(&self, py: Python<'py>) -> Columns<'py> {
        let mut arrays = Arrays::new(self.batch.game(), self.batch.len());
        self.batch.observe(&mut arrays);
        self.columns(py, arrays)
    }

    /// Plays one ply in every game.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<(Columns<'py>, Option<Finals<'py>>)> {
        self.check_started(py)?;
        let numbers = input::actions(actions, self.batch.len())?;
        let (arrays, finals) = py
            .detach(|| {
                let mut arrays = Arrays::new(self.batch.game(), self.batch.len());
                self.batch.step(&numbers, &mut arrays).map(|finals| (arrays, finals))
            })
            .map_err(|error| self.step_error(actions, error))?;
        let finals = (!finals.is_empty()).then(|| self.finals(py, &finals));
        Ok((self.columns(py, arrays), finals))
    }

    /// Plays one ply in the only game and returns what `gymnasium.Env.step` does.
    fn step_one<'py>(
        &mut self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<Single<'py>> {
        self.check_started(py)?;
        let number = integer(action, "an action")?.unwrap_or(i64::MAX);
        let mut arrays = Arrays::new(self.batch.game(), 1);
        self.batch.step(&[number], &mut arrays).map_err(|error| self.step_error(action, error))?;
        self.single(py, arrays)
    }

    /// What `gymnasium.Env.step` would return of the only game just after a reset.
    fn observe_one<'py>(&self, py: Python<'py>) -> PyResult<Single<'py>> {
        let mut arrays = Arrays::new(self.batch.game(), 1);
        self.batch.observe(&mut arrays);
        self.single(py, arrays)
    }

    /// (n, actions) bool, true for a legal action; all true where the game is over.
    fn action_masks<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<bool>> {
        let mut arrays = Arrays::new(self.batch.game(), self.batch.len());
        self.batch.observe(&mut arrays);
        let masks = arrays.action_mask.into_iter().map(|mask| mask != 0).collect();
        Array2::from_shape_vec((self.batch.len(), self.batch.game().rules().num_actions()), masks)
            .expect("a mask has an entry for every action")
            .into_pyarray(py)
    }

    /// The grids after each action: (n, actions, 2 * rows, columns) uint8.
    fn afterstates<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray4<u8>> {
        let rules = self.batch.game().rules();
        let shape = (self.batch.len(), rules.num_actions(), 2 * rules.rows(), rules.columns());
        let grids = py.detach(|| {
            let mut grids = vec![0; shape.0 * shape.1 * shape.2 * shape.3];
            self.batch.afterstates(&mut grids);
            grids
        });
        Array4::from_shape_vec(shape, grids)
            .expect("there is a grid for every action of every game")
            .into_pyarray(py)
    }

    /// The board of game `i`.
    fn board(&self, i: usize) -> PyBoard {
        PyBoard { game: *self.batch.game(), position: self.batch.position(i) }
    }

    /// The boards of all games.
    fn boards(&self) -> Vec<PyBoard> {
        (0..self.batch.len()).map(|i| self.board(i)).collect()
    }

    /// Starts every game from its own board.
    fn set_boards(&mut self, boards: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let n = self.batch.len();
        if boards.len() != n {
            let message = format!("{n} games need {n} boards, got {}", boards.len());
            return Err(PyValueError::new_err(message));
        }
        let positions = boards
            .iter()
            .enumerate()
            .map(|(i, board)| {
                let board = board.cast::<PyBoard>().map_err(|_| {
                    PyTypeError::new_err(format!("board {i} must be a Board, got {}", shown(board)))
                })?;
                self.startable(board.get(), Some(i))
            })
            .collect::<PyResult<Vec<_>>>()?;
        for (i, position) in positions.iter().enumerate() {
            self.batch.reset(i, Some(position));
        }
        self.started = true;
        Ok(())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> (Bound<'py, PyType>, Arguments, (u32, bool, Bound<'py, PyBytes>)) {
        let this = slf.borrow();
        let batch = &this.batch;
        let options = batch.options();
        let arguments = (
            batch.len(),
            this.rules(),
            name_of(&AUTORESET, options.autoreset),
            name_of(&ILLEGAL, options.illegal),
            options.max_plies,
        );
        let mut games = Vec::new();
        for i in 0..batch.len() {
            let position = batch.position(i);
            games.extend(batch.game().grid(&position));
            games.extend([position.to_move().index() as u8, batch.ended(i).into()]);
            games.extend(batch.plies(i).to_le_bytes());
        }
        let games = PyBytes::new(slf.py(), &games);
        (slf.get_type(), arguments, (PICKLE_VERSION, this.started, games))
    }

    fn __setstate__(&mut self, state: State<'_>) -> PyResult<()> {
        let (version, started, games) = state;
        if version != PICKLE_VERSION {
            return Err(PyValueError::new_err(format!(
                "this katro reads pickles of version {PICKLE_VERSION}, got {version}"
            )));
        }
        let holes = self.batch.game().rules().holes();
        let restored = games
            .chunks(holes + 6)
            .map(|game| {
                let (grid, rest) = game.split_at_checked(holes)?;
                let &[to_move, ended, a, b, c, d] = rest else { return None };
                let grid: Vec<i64> = grid.iter().map(|&seeds| seeds.into()).collect();
                let to_move = Player::from_index(to_move.into())?;
                let position = self.batch.game().position(&grid, to_move).ok()?;
                // A game that somebody has won cannot be stepped.
                let ended = ended != 0 || self.batch.game().winner(&position).is_some();
                Some((position, u32::from_le_bytes([a, b, c, d]), ended))
            })
            .collect::<Option<Vec<_>>>()
            .filter(|restored| restored.len() == self.batch.len())
            .ok_or_else(|| PyValueError::new_err("the pickle of a batch is damaged"))?;
        for (i, (position, plies, ended)) in restored.iter().enumerate() {
            self.batch.restore(i, position, *plies, *ended);
        }
        self.started = started;
        Ok(())
    }
}

impl PyBatch {
    fn check_started(&self, py: Python<'_>) -> PyResult<()> {
        if self.started { Ok(()) } else { Err(reset_needed(py, "step needs a reset first")) }
    }

    /// The position of a board that a game can start from.
    fn startable(&self, board: &PyBoard, index: Option<usize>) -> PyResult<Position> {
        let rules = self.batch.game().rules();
        let which = index.map_or("the board".to_owned(), |i| format!("board {i}"));
        let refuse = |why: String| Err(PyValueError::new_err(format!("{which} {why}")));
        if board.game != *self.batch.game() {
            return refuse(format!(
                "has the rules {}, the environment has {}",
                PyRules(*board.game.rules()).shown(),
                self.rules().shown()
            ));
        }
        if board.game.winner(&board.position).is_some() {
            return refuse(format!("is over: {}", board.game.notation(&board.position)));
        }
        let seeds: u32 =
            board.game.grid(&board.position).iter().map(|&seeds| u32::from(seeds)).sum();
        if seeds as usize > rules.total_seeds() {
            // The observation space ends there.
            return refuse(format!(
                "holds {seeds} seeds, more than the {} of the start",
                rules.total_seeds()
            ));
        }
        Ok(board.position)
    }

    /// The exception for a step with `actions`, an array or a single action.
    fn step_error(&self, actions: &Bound<'_, PyAny>, error: StepError) -> PyErr {
        match error {
            StepError::Length { .. } => PyValueError::new_err(error.to_string()),
            StepError::Ended { .. } => reset_needed(actions.py(), &error.to_string()),
            StepError::Illegal { game, error } => {
                // As the user wrote it, for an i64 may have cut it off.
                let (which, action) = match actions.get_item(game) {
                    Ok(action) => (format!("game {game}: "), action),
                    Err(_) => (String::new(), actions.clone()),
                };
                let action = action.str().map_or(error.action.to_string(), |text| text.to_string());
                let message = error.message(action);
                IllegalMoveError::new_err(format!("{which}{message} (was the action mask used?)"))
            }
        }
    }

    /// An array of `n` grids.
    fn grids(&self, n: usize, grids: Vec<u8>) -> Array3<u8> {
        let rules = self.batch.game().rules();
        Array3::from_shape_vec((n, 2 * rules.rows(), rules.columns()), grids)
            .expect("a grid has an entry for every hole")
    }

    fn columns<'py>(&self, py: Python<'py>, arrays: Arrays) -> Columns<'py> {
        let (n, actions) = (self.batch.len(), self.batch.game().rules().num_actions());
        (
            self.grids(n, arrays.observation).into_pyarray(py),
            Array2::from_shape_vec((n, actions), arrays.action_mask)
                .expect("a mask has an entry for every action")
                .into_pyarray(py),
            arrays.reward.into_pyarray(py),
            arrays.terminated.into_pyarray(py),
            arrays.truncated.into_pyarray(py),
            arrays.to_move.into_pyarray(py),
            arrays.winner.into_pyarray(py),
            arrays.captured.into_pyarray(py),
            arrays.laps.into_pyarray(py),
        )
    }

    fn finals<'py>(&self, py: Python<'py>, finals: &[Final]) -> Finals<'py> {
        let game = self.batch.game();
        let grids = finals.iter().flat_map(|last| game.observation(&last.position)).collect();
        let column = |value: fn(&Final) -> i64| {
            finals.iter().map(value).collect::<Vec<i64>>().into_pyarray(py)
        };
        (
            column(|last| last.game as i64),
            self.grids(finals.len(), grids).into_pyarray(py),
            column(|last| last.position.to_move().index() as i64),
            column(|last| last.winner),
            column(|last| last.captured),
            column(|last| last.laps),
        )
    }

    fn single<'py>(&self, py: Python<'py>, arrays: Arrays) -> PyResult<Single<'py>> {
        let rules = self.batch.game().rules();
        let info = PyDict::new(py);
        info.set_item(intern!(py, "action_mask"), arrays.action_mask.into_pyarray(py))?;
        info.set_item(intern!(py, "to_move"), arrays.to_move[0])?;
        info.set_item(intern!(py, "winner"), arrays.winner[0])?;
        info.set_item(intern!(py, "captured"), arrays.captured[0])?;
        info.set_item(intern!(py, "laps"), arrays.laps[0])?;
        let observation =
            Array2::from_shape_vec((2 * rules.rows(), rules.columns()), arrays.observation)
                .expect("a grid has an entry for every hole")
                .into_pyarray(py);
        Ok((observation, arrays.reward[0], arrays.terminated[0], arrays.truncated[0], info))
    }
}

/// Makes the games, if there is memory for them and for what a step writes.
fn batch(n: &Bound<'_, PyAny>, game: Game, options: Options) -> PyResult<Batch> {
    let number = integer(n, "num_envs")?;
    if number.is_some_and(|number| number < 1) {
        return Err(PyValueError::new_err(format!(
            "num_envs must be at least 1, got {}",
            shown(n)
        )));
    }
    let needed = number.and_then(|number| Batch::bytes(&game, usize::try_from(number).ok()?));
    match (number, needed) {
        (Some(number), Some(bytes)) if Vec::<u8>::new().try_reserve_exact(bytes).is_ok() => {
            Ok(Batch::new(game, number as usize, options))
        }
        (_, Some(bytes)) => Err(PyMemoryError::new_err(format!(
            "{} games need {:.1} GB of memory",
            shown(n),
            bytes as f64 / 1e9
        ))),
        _ => Err(PyMemoryError::new_err(format!(
            "{} games need more memory than can be addressed",
            shown(n)
        ))),
    }
}

/// `gymnasium.error.ResetNeeded`.
fn reset_needed(py: Python<'_>, message: &str) -> PyErr {
    let error = || py.import("gymnasium.error")?.getattr("ResetNeeded")?.call1((message,));
    error().map_or_else(|error| error, PyErr::from_value)
}

fn choose<T: Copy>(names: &[(&str, T)], name: &str, what: &str) -> PyResult<T> {
    names.iter().find(|(known, _)| *known == name).map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<String> = names.iter().map(|(name, _)| format!("'{name}'")).collect();
        PyValueError::new_err(format!("{what} must be {}, got {name:?}", known.join(" or ")))
    })
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |&(name, _)| name)
}
