//! `katro._katro.Batch`: the games behind the environments.

use numpy::ndarray::{Array2, Array3, Array4};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

use super::IllegalMoveError;
use super::board::{PyBoard, interruptible};
use super::columns::Columns;
use super::input::{self, Argument, choose, integer, name_of, named_tuple, natural, number, shown};
use super::rules::PyRules;
use crate::step::Turn;
use crate::{
    Arrays, Autoreset, Batch, Counts, Direction, Final, Game, Illegal, Opponent, Options, Player,
    Policy, Position, Rows, Rules, StepError,
};

/// What a step or a reset of a vector environment returns: observations,
/// rewards, terminated, truncated, infos, and how games ended.
type Vector<'py> = (
    Py<PyArray3<u8>>,
    Py<PyArray1<f64>>,
    Py<PyArray1<bool>>,
    Py<PyArray1<bool>>,
    Bound<'py, PyDict>,
    Option<Bound<'py, PyAny>>,
);

/// What `step` returns of one game: observation, reward, terminated, truncated, info.
type Single<'py> = (Bound<'py, PyArray2<u8>>, f64, bool, bool, Bound<'py, PyDict>);

const AUTORESET: [(&str, Autoreset); 3] = [
    ("NextStep", Autoreset::NextStep),
    ("SameStep", Autoreset::SameStep),
    ("Disabled", Autoreset::Disabled),
];

const ILLEGAL: [(&str, Illegal); 2] = [("raise", Illegal::Refuse), ("lose", Illegal::Lose)];

/// The ply limit unless another is given.
const MAX_PLIES: u32 = 2000;

/// What makes the batch again: a function, its argument and a [`State`].
type Reduced<'py> = (Bound<'py, PyAny>, (usize,), (u32, bool, Bound<'py, PyBytes>));

/// What a pickle keeps beside the arguments: how it was written, whether the
/// games have been reset, and the games.
type State<'a> = (u32, bool, &'a [u8]);

const PICKLE_VERSION: u32 = 3;

/// Many games of one rule set, stepped together: arrays only.
///
/// What `KatroVectorEnv` is made of, for loops that want arrays without Gymnasium's
/// dictionaries. `reset` and `step` return a named tuple `Step` with a row per game:
///
/// - `observation`: (n, 2 * rows, columns) uint8, the seeds as the player to move sees them
/// - `action_mask`: (n, actions) int8, 1 for a legal action; all ones where the game is over
/// - `reward`: (n) float64, 1 if the mover has won, -1 if he lost by an illegal action
/// - `terminated`, `truncated`: (n) bool, whether somebody has won, or the ply limit
///   has cut the game off
/// - `to_move`: (n) int64, the player to move, 0 for South and 1 for North
/// - `winner`: (n) int64, -1 while the game is open
/// - `captured`, `laps`: (n) int64, seeds captured and laps of the ply
/// - `bound`: None, or where the rules bind players to a direction (n, 2) int8, that of
///   the player to move and that of his opponent: -1 for none, 0 for the usual one, 1
///   for the mirrored one
/// - `finals`: None, or with `"SameStep"` a named tuple `Finals` of the games that have
///   ended: `game` (k) int64 and the last `observation`, `to_move`, `winner`,
///   `captured`, `laps` and `bound` of each
///
/// Args:
///     n: the number of games.
///     rules: a `Rules` or the name of one.
///     autoreset_mode: `"NextStep"`, `"SameStep"` or `"Disabled"`, as in `KatroVectorEnv`.
///     illegal: `"raise"` or `"lose"`, as in `KatroEnv`.
///     max_plies: the plies after which a game is cut off, or None; with an opponent
///         it is cut off after his answer.
///     opponent: None for self-play; or who answers each ply of the agent within the step:
///         `"random"`, `"greedy"` (most own seeds after the move), `"minimax:DEPTH"`,
///         `"minimax:TIMEms"`, or a callable `(observations, action_masks) -> actions` that
///         gets the games waiting for it, (k, 2 * rows, columns) uint8 and (k, actions)
///         bool. Then the reward is 1 if the agent has won and -1 if the opponent has.
///     seat: where the agent sits against the opponent, 0 for South and 1 for North; None to
///         draw it for each game from its seed. The opponent moves first where the agent
///         sits second.
///     num_threads: the threads that step the games, the calling one among them; None for
///         as many as pay off for so many games on this machine. The results do not
///         depend on it.
///     copy: whether every step returns new arrays. If not, `reset` and `step` write
///         into the same arrays each time: what they returned before changes, so copy
///         what has to outlive the next call.
///
/// Raises:
///     ValueError: if an argument is not one of those above.
///     MemoryError: if there is no memory for so many games.
///
/// >>> import katro
/// >>> batch = katro.Batch(3)
/// >>> step = batch.reset()
/// >>> step = batch.step([0, 1, 2])
/// >>> step.laps.tolist(), step.to_move.tolist()
/// ([7, 8, 7], [1, 1, 1])
#[pyclass(name = "Batch", module = "katro")]
pub(super) struct PyBatch {
    batch: Batch,
    /// The opponent, if it is one outside.
    callable: Option<Py<PyAny>>,
    seat: Option<Player>,
    /// The arrays that every step writes into, if they are not new each time.
    kept: Option<Columns>,
    /// The number of threads that was asked for, if one was.
    num_threads: Option<usize>,
    /// Whether the games have been reset, without which none can be stepped.
    started: bool,
}

#[pymethods]
impl PyBatch {
    #[new]
    #[pyo3(signature = (n, *, rules = Rules::KATRO, autoreset_mode = None, illegal = "raise",
                        max_plies = Argument::Missing, opponent = None, seat = None,
                        num_threads = None, copy = true),
           text_signature = "(n, *, rules='katro', autoreset_mode='NextStep', illegal='raise', \
                             max_plies=2000, opponent=None, seat=None, num_threads=None, \
                             copy=True)")]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a batch")]
    fn new(
        py: Python<'_>,
        n: &Bound<'_, PyAny>,
        rules: Rules,
        autoreset_mode: Option<&Bound<'_, PyAny>>,
        illegal: &str,
        max_plies: Argument<'_>,
        opponent: Option<Bound<'_, PyAny>>,
        seat: Option<Player>,
        num_threads: Option<&Bound<'_, PyAny>>,
        copy: bool,
    ) -> PyResult<PyBatch> {
        let autoreset = match autoreset_mode {
            None => Autoreset::NextStep,
            Some(mode) => {
                // Gymnasium's enumeration has the names as its values.
                let name = mode.getattr("value").unwrap_or_else(|_| mode.clone());
                let name: &str = name.extract().map_err(|_| {
                    let mode = shown(mode);
                    PyTypeError::new_err(format!("autoreset_mode must be a str, got {mode}"))
                })?;
                choose(&AUTORESET, name, "autoreset_mode")?
            }
        };
        let illegal = choose(&ILLEGAL, illegal, "illegal")?;
        let max_plies = match max_plies {
            Argument::Missing => Some(MAX_PLIES),
            Argument::Given(value) if value.is_none() => None,
            Argument::Given(value) => match number(&value, "max_plies")? {
                plies @ 1.. => Some(u32::try_from(plies).unwrap_or(u32::MAX)),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "max_plies must be at least 1, or None for no limit, got {}",
                        shown(&value)
                    )));
                }
            },
        };
        let num_threads = num_threads
            .map(|value| match number(value, "num_threads")? {
                count @ 1.. => Ok(count as usize),
                _ => Err(PyValueError::new_err(format!(
                    "num_threads must be at least 1, or None for as many as pay off, got {}",
                    shown(value)
                ))),
            })
            .transpose()?;
        let options = Options { autoreset, illegal, max_plies };
        let mut batch = batch(n, Game::new(rules), options)?;
        if let Some(count) = num_threads {
            batch.set_threads(count);
        }
        let callable = match opponent {
            None => {
                if seat.is_some() {
                    let message = "a seat needs an opponent, of whom there is none";
                    return Err(PyValueError::new_err(message));
                }
                None
            }
            Some(opponent) if opponent.is_callable() => {
                batch.set_opponent(Opponent::Outside, seat);
                Some(opponent.unbind())
            }
            Some(opponent) => {
                batch.set_opponent(Opponent::Policy(opponent.extract()?), seat);
                None
            }
        };
        let kept = (!copy).then(|| Columns::new(py, batch.game(), batch.len())).transpose()?;
        Ok(PyBatch { batch, callable, seat, kept, num_threads, started: false })
    }

    /// The rules of the games.
    #[getter]
    fn rules(&self) -> PyRules {
        PyRules(*self.batch.game().rules())
    }

    /// The threads that step the games, the calling one among them, if there are games
    /// enough to share out.
    #[getter]
    fn num_threads(&self) -> usize {
        self.num_threads.unwrap_or(self.batch.threads())
    }

    fn __len__(&self) -> usize {
        self.batch.len()
    }

    /// Starts the games.
    ///
    /// Args:
    ///     mask: (n) bool, the games to start; None for all.
    ///     board: the board to start from; None for the start of the rules.
    ///     seed: an integer of 0 or more, from which game `i` gets `seed + i`, or one (or
    ///         None) for each game. It fixes all that a game draws at random from here on.
    ///     seat: where the agent sits this time, one of 0 and 1 or one for each game.
    ///
    /// Returns:
    ///     A `Step` of the games as they stand; rewards, ends, winners and counts are those
    ///     of a new game in every row.
    ///
    /// Raises:
    ///     ValueError: if the mask has another shape, or the board is over or of other
    ///         rules. The games go on unchanged.
    ///     TypeError: if the mask is not of bool.
    #[pyo3(signature = (mask = None, *, board = None, seed = None, seat = None))]
    fn reset<'py>(
        &mut self,
        py: Python<'py>,
        mask: Option<&Bound<'py, PyAny>>,
        board: Option<&PyBoard>,
        seed: Option<&Bound<'py, PyAny>>,
        seat: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = self.start(py, mask, board, seed, seat)?;
        step_tuple(py, columns, None)
    }

    /// Plays one ply in every game.
    ///
    /// Args:
    ///     actions: (n) integers.
    ///     games: (n) bool, the games to play in; None for all. The others stay as they are
    ///         and their actions are ignored.
    ///
    /// Returns:
    ///     A `Step`; see the class.
    ///
    /// Raises:
    ///     IllegalMoveError: if an action is not legal; the message names the game, the
    ///         action and the legal ones. No game has moved.
    ///     ValueError: if the shape is not (n,).
    ///     TypeError: if the actions are no integers.
    ///     gymnasium.error.ResetNeeded: before the first reset, and if a game is over that
    ///         only a reset starts again.
    #[pyo3(signature = (actions, games = None))]
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        games: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let games = games.map(|games| input::mask(games, self.batch.len())).transpose()?;
        if games.is_some() && self.callable.is_some() {
            let message = "a step of some games is not made for an opponent that is a callable";
            return Err(PyValueError::new_err(message));
        }
        let (columns, finals) = self.play(py, actions, games.as_deref())?;
        step_tuple(py, columns, finals)
    }

    /// Returns an action of a policy for every game.
    ///
    /// Args:
    ///     policy: `"random"`, `"greedy"`, `"minimax:DEPTH"` or `"minimax:TIMEms"`.
    ///     games: (n) bool, the games to choose in; None for all.
    ///
    /// Returns:
    ///     (n) int64, 0 for games that are over or not of `games`. What is left to chance
    ///     comes from the game's seed.
    ///
    /// Raises:
    ///     ValueError: if no policy has that name, or the shape is not (n,).
    ///     gymnasium.error.ResetNeeded: before the first reset.
    ///
    /// >>> import katro
    /// >>> batch = katro.Batch(2)
    /// >>> step = batch.reset(seed=0)
    /// >>> step = batch.step(batch.choose("minimax:3"))
    #[pyo3(signature = (policy, games = None))]
    fn choose<'py>(
        &mut self,
        py: Python<'py>,
        policy: Policy,
        games: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.check_started(py)?;
        let n = self.batch.len();
        let games = games.map_or_else(|| Ok(vec![true; n]), |games| input::mask(games, n))?;
        Ok(py.detach(|| self.batch.choose(policy, &games)).into_pyarray(py))
    }

    /// Plays uniformly random plies in every game, inside Rust, and counts.
    ///
    /// A game that ends starts again at once; with `autoreset_mode="Disabled"` it does not,
    /// so that `wins` tells how games from a position went.
    ///
    /// Args:
    ///     plies: the plies to play in every game.
    ///     seed: an integer of 0 or more; game `i` plays by the random numbers of
    ///         `seed + i`, from their beginning at each call, so that independent
    ///         rollouts of `n` games need seeds at least `n` apart.
    ///
    /// Returns:
    ///     A named tuple `Rollout` of integers: `plies` played in all games, `wins` of
    ///     (South, North), `truncated` games, seeds `captured` and `laps`.
    ///
    /// Raises:
    ///     ValueError: if a number is negative, or the batch has an opponent.
    ///     KeyboardInterrupt: on Ctrl-C; the games stay where they are then.
    ///     gymnasium.error.ResetNeeded: before the first reset.
    ///
    /// >>> import katro
    /// >>> batch = katro.Batch(100, autoreset_mode="Disabled")
    /// >>> step = batch.reset()
    /// >>> sum(batch.rollout(5000, seed=0).wins)
    /// 100
    #[pyo3(signature = (plies, seed = Argument::Missing), text_signature = "($self, plies, seed=0)")]
    fn rollout<'py>(
        &mut self,
        py: Python<'py>,
        plies: &Bound<'py, PyAny>,
        seed: Argument<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_started(py)?;
        if self.batch.opponent() != Opponent::Nobody {
            let message = "a rollout plays both sides, so it needs a batch without an opponent";
            return Err(PyValueError::new_err(message));
        }
        let plies = natural(plies, "plies")?;
        let seed = match seed {
            Argument::Missing => 0,
            Argument::Given(seed) => natural(&seed, "seed")?,
        };
        let counts = interruptible(py, |go_on| self.batch.rollout(plies, seed, go_on))?;
        let Counts { plies, wins: [south, north], truncated, captured, laps } = counts;
        rollout_type(py)?.call1((plies, (south, north), truncated, captured, laps))
    }

    /// Raises what a reset to `board` with the agent at `seat` would raise.
    fn _check_start(
        &self,
        board: Option<&PyBoard>,
        seat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        board.map(|board| self.startable(board, None)).transpose()?;
        self.seats(seat).map(|_| ())
    }

    /// As `reset`, and what a vector environment returns of it.
    fn _reset_vector<'py>(
        &mut self,
        py: Python<'py>,
        mask: Option<&Bound<'py, PyAny>>,
        board: Option<&PyBoard>,
        seed: Option<&Bound<'py, PyAny>>,
        seat: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vector<'py>> {
        let columns = self.start(py, mask, board, seed, seat)?;
        self.vector(py, columns, None)
    }

    /// As `set_boards`, and what a vector environment returns of it.
    fn _set_boards_vector<'py>(
        &mut self,
        py: Python<'py>,
        boards: Vec<Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vector<'py>> {
        let columns = self.start_from(py, &boards, seed)?;
        self.vector(py, columns, None)
    }

    /// As `step`, and what a vector environment returns of it.
    fn _step_vector<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Vector<'py>> {
        let (columns, finals) = self.play(py, actions, None)?;
        self.vector(py, columns, finals)
    }

    /// Plays one ply in the only game and returns what `gymnasium.Env.step` does.
    fn _step_one<'py>(
        &mut self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<Single<'py>> {
        self.check_started(py)?;
        let number = integer(action, "an action")?.unwrap_or(i64::MAX);
        let mut arrays = Arrays::new(self.batch.game(), 1);
        match &self.callable {
            None => self.batch.step(&[number], arrays.rows()),
            Some(_) => self.or_undo(|this| this.step_outside(py, &[number], arrays.rows()))?,
        }
        .map_err(|error| self.step_error(action, error))?;
        self.single(py, arrays)
    }

    /// Starts the only game and returns what `gymnasium.Env.step` would.
    fn _reset_one<'py>(
        &mut self,
        py: Python<'py>,
        board: Option<&PyBoard>,
        seed: Option<&Bound<'py, PyAny>>,
        seat: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Single<'py>> {
        let turns = self.or_undo(|this| {
            this.prepare(None, board, seed, seat)?;
            this.open(py)
        })?;
        let mut arrays = Arrays::new(self.batch.game(), 1);
        self.batch.write(&turns, arrays.rows());
        self.single(py, arrays)
    }

    /// Returns (n, actions) bool, true for a legal action; all true where the game is over.
    fn action_masks<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray2<bool>> {
        let mut arrays = Arrays::new(self.batch.game(), self.batch.len());
        self.batch.observe(arrays.rows());
        let masks = arrays.action_mask.into_iter().map(|mask| mask != 0).collect();
        Array2::from_shape_vec((self.batch.len(), self.batch.game().rules().num_actions()), masks)
            .expect("a mask has an entry for every action")
            .into_pyarray(py)
    }

    /// Returns the board after each legal action of every game.
    ///
    /// Returns:
    ///     grids: (n, actions, 2 * rows, columns) uint8, as the player to move *next* sees
    ///         them; zero where the mask is false.
    ///     masks: (n, actions) bool, true for a legal action; unlike `action_masks()` all
    ///         false where the game is over.
    fn afterstates<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray4<u8>>, Bound<'py, PyArray2<bool>>) {
        let rules = self.batch.game().rules();
        let shape = (self.batch.len(), rules.num_actions(), 2 * rules.rows(), rules.columns());
        let (grids, masks) = py.detach(|| {
            let mut grids = vec![0; shape.0 * shape.1 * shape.2 * shape.3];
            let mut masks = vec![false; shape.0 * shape.1];
            self.batch.afterstates(&mut grids, &mut masks);
            (grids, masks)
        });
        let grids = Array4::from_shape_vec(shape, grids).expect("there is a grid for every action");
        let masks = Array2::from_shape_vec((shape.0, shape.1), masks)
            .expect("a mask has an entry for every action");
        (grids.into_pyarray(py), masks.into_pyarray(py))
    }

    /// The board of game `i`.
    fn _board(&self, i: usize) -> PyBoard {
        PyBoard { game: *self.batch.game(), position: self.batch.position(i) }
    }

    /// Returns the board of every game; the final one where it is over.
    fn boards(&self) -> Vec<PyBoard> {
        (0..self.batch.len()).map(|i| self._board(i)).collect()
    }

    /// Starts every game from its own board.
    ///
    /// Args:
    ///     boards: a list of a board for each game, of the batch's rules and not over.
    ///
    /// Returns:
    ///     What `reset` returns.
    ///
    /// Raises:
    ///     ValueError: if a board is over, or of other rules, or there is not one for
    ///         each game. The games go on unchanged.
    fn set_boards<'py>(
        &mut self,
        py: Python<'py>,
        boards: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = self.start_from(py, &boards, None)?;
        step_tuple(py, columns, None)
    }

    /// `functools.partial` hands over the keyword arguments, in every protocol.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = slf.py();
        let this = slf.try_borrow()?;
        let batch = &this.batch;
        let options = batch.options();
        let arguments = PyDict::new(py);
        arguments.set_item("rules", this.rules())?;
        arguments.set_item("autoreset_mode", name_of(&AUTORESET, options.autoreset))?;
        arguments.set_item("illegal", name_of(&ILLEGAL, options.illegal))?;
        arguments.set_item("max_plies", options.max_plies)?;
        let opponent = match batch.opponent() {
            Opponent::Nobody => None,
            Opponent::Policy(policy) => Some(policy.to_string().into_pyobject(py)?.into_any()),
            Opponent::Outside => this.callable.as_ref().map(|callable| callable.bind(py).clone()),
        };
        arguments.set_item("opponent", opponent)?;
        arguments.set_item("seat", this.seat.map(Player::index))?;
        arguments.set_item("num_threads", this.num_threads)?;
        arguments.set_item("copy", this.kept.is_none())?;
        let make =
            py.import("functools")?.call_method("partial", (slf.get_type(),), Some(&arguments))?;
        let mut games = Vec::new();
        for i in 0..batch.len() {
            let position = batch.position(i);
            games.extend(batch.game().grid(&position));
            games.extend([position.to_move().index() as u8, batch.ended(i).into()]);
            games.extend(bound_of(&position).map(|bound| bound as u8));
            games.extend(batch.plies(i).to_le_bytes());
            let agent = batch.seat(i).unwrap_or_default();
            games.push(agent.index() as u8);
            games.push(batch.stream(i).is_some().into());
            games.extend(batch.stream(i).unwrap_or_default().to_le_bytes());
        }
        let games = PyBytes::new(py, &games);
        Ok((make, (batch.len(),), (PICKLE_VERSION, this.started, games)))
    }

    fn __setstate__(&mut self, state: State<'_>) -> PyResult<()> {
        let (version, started, games) = state;
        if version != PICKLE_VERSION {
            return Err(PyValueError::new_err(format!(
                "this katro reads pickles of version {PICKLE_VERSION}, got {version}"
            )));
        }
        let restored = games
            .chunks(self.batch.game().rules().holes() + 18)
            .map(|game| self.restored(game))
            .collect::<Option<Vec<_>>>()
            .filter(|restored| restored.len() == self.batch.len())
            .ok_or_else(|| PyValueError::new_err("the pickle of a batch is damaged"))?;
        for (i, game) in restored.iter().enumerate() {
            self.batch.restore(i, &game.position, game.plies, game.ended);
            if let Some(stream) = game.stream {
                self.batch.restore_seat(i, stream, game.agent);
            }
        }
        self.started = started;
        Ok(())
    }
}

/// A game of a pickled batch.
struct Restored {
    position: Position,
    plies: u32,
    ended: bool,
    agent: Player,
    stream: Option<u64>,
}

impl PyBatch {
    /// Reads a game as `__reduce__` writes it.
    fn restored(&self, bytes: &[u8]) -> Option<Restored> {
        let game = self.batch.game();
        let (grid, rest) = bytes.split_at_checked(game.rules().holes())?;
        let (&[to_move, ended, mine, theirs], rest) = rest.split_first_chunk()?;
        let (&plies, rest) = rest.split_first_chunk()?;
        let (&[agent, seeded], stream) = rest.split_first_chunk()?;
        let grid: Vec<i64> = grid.iter().map(|&seeds| seeds.into()).collect();
        let to_move = Player::from_index(to_move.into())?;
        let mut bound = [direction(mine)?, direction(theirs)?];
        if to_move == Player::North {
            bound.reverse();
        }
        Some(Restored {
            position: game.bind(&game.position(&grid, to_move).ok()?, bound).ok()?,
            plies: u32::from_le_bytes(plies),
            ended: ended != 0,
            agent: Player::from_index(agent.into())?,
            stream: (seeded != 0).then_some(u64::from_le_bytes(stream.try_into().ok()?)),
        })
    }

    fn check_started(&self, py: Python<'_>) -> PyResult<()> {
        if self.started { Ok(()) } else { Err(reset_needed(py, "the games need a reset first")) }
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

    /// The arrays to write a step into.
    fn columns(&self, py: Python<'_>) -> PyResult<Columns> {
        match &self.kept {
            Some(columns) => Ok(columns.clone_ref(py)),
            None => Columns::new(py, self.batch.game(), self.batch.len()),
        }
    }

    /// Does `work`; if it fails, which it may in the middle where a callable is asked,
    /// the games are put back to where they were.
    fn or_undo<T>(&mut self, work: impl FnOnce(&mut PyBatch) -> PyResult<T>) -> PyResult<T> {
        let saved = self.callable.is_some().then(|| (self.batch.save(), self.started));
        work(self).inspect_err(|_| {
            if let Some((games, started)) = saved {
                self.batch.load(games);
                self.started = started;
            }
        })
    }

    /// Puts the games of `mask` (all, if None) on `board`, or on the start.
    fn prepare(
        &mut self,
        mask: Option<&Bound<'_, PyAny>>,
        board: Option<&PyBoard>,
        seed: Option<&Bound<'_, PyAny>>,
        seat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let n = self.batch.len();
        let position = board.map(|board| self.startable(board, None)).transpose()?;
        let mask = match mask {
            None => vec![true; n],
            Some(mask) => input::mask(mask, n)?,
        };
        let seeds = seed.map(|seed| input::seeds(seed, n)).transpose()?;
        let seats = self.seats(seat)?;
        for i in (0..n).filter(|&i| mask[i]) {
            if let Some(seed) = seeds.as_ref().and_then(|seeds| seeds[i]) {
                self.batch.seed(i, seed);
            }
            self.batch.reset(i, position.as_ref());
            if let Some(seats) = &seats {
                self.batch.set_seat(i, seats[i]);
            }
        }
        self.started = true;
        Ok(())
    }

    /// Where the agents are to sit.
    fn seats(&self, seat: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<Player>>> {
        match seat {
            Some(_) if self.batch.opponent() == Opponent::Nobody => {
                Err(PyValueError::new_err("a seat needs an opponent, of whom there is none"))
            }
            Some(seat) => input::seats(seat, self.batch.len()).map(Some),
            None => Ok(None),
        }
    }

    /// Lets the opponent move in the games that have just started and wait for him.
    fn open(&mut self, py: Python<'_>) -> PyResult<Vec<Turn>> {
        let mut turns = self.batch.turns();
        match self.batch.opponent() {
            Opponent::Nobody => {}
            Opponent::Policy(_) => py.detach(|| self.batch.reply_by_policy(&mut turns)),
            Opponent::Outside => self.ask(py, &mut turns)?,
        }
        Ok(turns)
    }

    fn start(
        &mut self,
        py: Python<'_>,
        mask: Option<&Bound<'_, PyAny>>,
        board: Option<&PyBoard>,
        seed: Option<&Bound<'_, PyAny>>,
        seat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Columns> {
        let turns = self.or_undo(|this| {
            this.prepare(mask, board, seed, seat)?;
            this.open(py)
        })?;
        self.written(py, &turns)
    }

    /// Starts every game from its own board.
    fn start_from(
        &mut self,
        py: Python<'_>,
        boards: &[Bound<'_, PyAny>],
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Columns> {
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
        let seeds = seed.map(|seed| input::seeds(seed, n)).transpose()?;
        let turns = self.or_undo(|this| {
            for (i, position) in positions.iter().enumerate() {
                if let Some(seed) = seeds.as_ref().and_then(|seeds| seeds[i]) {
                    this.batch.seed(i, seed);
                }
                this.batch.reset(i, Some(position));
            }
            this.started = true;
            this.open(py)
        })?;
        self.written(py, &turns)
    }

    /// The arrays of the games as they stand.
    fn written(&mut self, py: Python<'_>, turns: &[Turn]) -> PyResult<Columns> {
        let columns = self.columns(py)?;
        let game = *self.batch.game();
        columns.write(py, &game, |rows| self.batch.write(turns, rows))?;
        Ok(columns)
    }

    /// Plays one ply in every game, or in those of `games`.
    fn play<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        games: Option<&[bool]>,
    ) -> PyResult<(Columns, Option<Bound<'py, PyAny>>)> {
        self.check_started(py)?;
        let columns = self.columns(py)?;
        // A callable might write to the actions while they are in use.
        let may_change =
            |range| self.callable.is_some() || self.kept.is_some() && columns.overlap(py, &range);
        let numbers = input::actions(actions, self.batch.len(), may_change)?;
        let numbers = numbers.as_slice();
        let game = *self.batch.game();
        let finals = match &self.callable {
            None => columns.write(py, &game, |rows| self.batch.step_some(numbers, games, rows))?,
            Some(_) => self.or_undo(|this| {
                columns.write_attached(py, &game, |rows| this.step_outside(py, numbers, rows))?
            })?,
        }
        .map_err(|error| self.step_error(actions, error))?;
        let finals = (!finals.is_empty()).then(|| self.finals(py, &finals)).transpose()?;
        Ok((columns, finals))
    }

    /// A step with an opponent that is a callable, to be undone if it fails.
    fn step_outside(
        &mut self,
        py: Python<'_>,
        actions: &[i64],
        rows: Rows<'_>,
    ) -> PyResult<Result<Vec<Final>, StepError>> {
        let mut turns = match self.batch.agents(actions) {
            Ok(turns) => turns,
            Err(error) => return Ok(Err(error)),
        };
        self.ask(py, &mut turns)?;
        let finals = self.batch.finish(&mut turns);
        self.ask(py, &mut turns)?;
        self.batch.write(&turns, rows);
        Ok(Ok(finals))
    }

    /// Asks the callable for the plies of the games that wait for it.
    fn ask(&mut self, py: Python<'_>, turns: &mut [Turn]) -> PyResult<()> {
        let waiting = self.batch.waiting();
        let (Some(callable), false) = (&self.callable, waiting.is_empty()) else {
            return Ok(());
        };
        let callable = callable.bind(py);
        let game = *self.batch.game();
        let positions: Vec<Position> = waiting.iter().map(|&i| self.batch.position(i)).collect();
        let grids = positions.iter().flat_map(|position| game.observation(position)).collect();
        let observations = self.grids(waiting.len(), grids).into_pyarray(py);
        let num_actions = game.rules().num_actions();
        let masks = positions.iter().flat_map(|position| {
            let legal = game.legal(position);
            (0..num_actions as i64).map(move |action| legal.contains(action))
        });
        let masks = Array2::from_shape_vec((waiting.len(), num_actions), masks.collect())
            .expect("a mask has an entry for every action")
            .into_pyarray(py);
        let name = callable
            .getattr("__name__")
            .and_then(|name| name.extract::<String>())
            .unwrap_or_else(|_| shown(callable));
        let answer = callable.call1((observations, masks))?;
        let actions = input::actions(&answer, waiting.len(), |_| false).map_err(|error| {
            let message = format!("the opponent {name}: {}", error.value(py));
            if error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(message)
            } else {
                PyValueError::new_err(message)
            }
        })?;
        self.batch.replies(actions.as_slice(), turns).map_err(|error| match error {
            StepError::Illegal { game, error } => {
                IllegalMoveError::new_err(format!("the opponent {name} in game {game}: {error}"))
            }
            other => PyValueError::new_err(format!("the opponent {name}: {other}")),
        })
    }

    fn vector<'py>(
        &self,
        py: Python<'py>,
        columns: Columns,
        finals: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vector<'py>> {
        let infos = columns.infos(py)?;
        let Columns { observation, reward, terminated, truncated, .. } = columns;
        Ok((observation, reward, terminated, truncated, infos, finals))
    }

    fn finals<'py>(&self, py: Python<'py>, finals: &[Final]) -> PyResult<Bound<'py, PyAny>> {
        let game = self.batch.game();
        let grids = finals.iter().flat_map(|last| game.observation(&last.position)).collect();
        let column = |value: fn(&Final) -> i64| {
            finals.iter().map(value).collect::<Vec<i64>>().into_pyarray(py)
        };
        finals_type(py)?.call1((
            column(|last| last.game as i64),
            self.grids(finals.len(), grids).into_pyarray(py),
            column(|last| last.position.to_move().index() as i64),
            column(|last| last.winner),
            column(|last| last.captured),
            column(|last| last.laps),
            game.rules().binds().then(|| {
                let bound = finals.iter().flat_map(|last| bound_of(&last.position)).collect();
                Array2::from_shape_vec((finals.len(), 2), bound)
                    .expect("there are two players")
                    .into_pyarray(py)
            }),
        ))
    }

    fn single<'py>(&self, py: Python<'py>, arrays: Arrays) -> PyResult<Single<'py>> {
        let rules = self.batch.game().rules();
        let info = PyDict::new(py);
        info.set_item(intern!(py, "action_mask"), arrays.action_mask.into_pyarray(py))?;
        info.set_item(intern!(py, "to_move"), arrays.to_move[0])?;
        info.set_item(intern!(py, "winner"), arrays.winner[0])?;
        info.set_item(intern!(py, "captured"), arrays.captured[0])?;
        info.set_item(intern!(py, "laps"), arrays.laps[0])?;
        if rules.binds() {
            info.set_item(intern!(py, "bound"), arrays.bound.into_pyarray(py))?;
        }
        let observation =
            Array2::from_shape_vec((2 * rules.rows(), rules.columns()), arrays.observation)
                .expect("a grid has an entry for every hole")
                .into_pyarray(py);
        Ok((observation, arrays.reward[0], arrays.terminated[0], arrays.truncated[0], info))
    }
}

/// The directions that the player to move and his opponent are bound to, as numbers.
fn bound_of(position: &Position) -> [i8; 2] {
    [position.to_move(), !position.to_move()]
        .map(|player| position.bound(player).map_or(-1, |direction| direction as i8))
}

/// The direction with a number of [`bound_of`]; `None` if there is none.
fn direction(number: u8) -> Option<Option<Direction>> {
    match number as i8 {
        -1 => Some(None),
        0 => Some(Some(Direction::Regular)),
        1 => Some(Some(Direction::Mirrored)),
        _ => None,
    }
}

fn step_tuple<'py>(
    py: Python<'py>,
    columns: Columns,
    finals: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    step_type(py)?.call1((
        columns.observation,
        columns.action_mask,
        columns.reward,
        columns.terminated,
        columns.truncated,
        columns.to_move,
        columns.winner,
        columns.captured,
        columns.laps,
        columns.bound,
        finals,
    ))
}

/// The named tuple `katro.Step`.
pub(super) fn step_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static STEP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fields = [
        "observation",
        "action_mask",
        "reward",
        "terminated",
        "truncated",
        "to_move",
        "winner",
        "captured",
        "laps",
        "bound",
        "finals",
    ];
    named_tuple(py, &STEP, "Step", &fields, "What `Batch.step` returns; see `Batch`.")
}

/// The named tuple `katro.Finals`.
pub(super) fn finals_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static FINALS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fields = ["game", "observation", "to_move", "winner", "captured", "laps", "bound"];
    named_tuple(py, &FINALS, "Finals", &fields, "Games that have ended; see `Batch`.")
}

/// The named tuple `katro.Rollout`.
pub(super) fn rollout_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static ROLLOUT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let fields = ["plies", "wins", "truncated", "captured", "laps"];
    named_tuple(py, &ROLLOUT, "Rollout", &fields, "What `Batch.rollout` counts; see there.")
}

/// Makes the games, if there is memory for them and for what a step writes.
fn batch(n: &Bound<'_, PyAny>, game: Game, options: Options) -> PyResult<Batch> {
    let number = integer(n, "num_envs")?;
    if input::number(n, "num_envs")? < 1 {
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
