//! The rules applied: which moves there are, what they do, who has won.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::circuit::Circuit;
use crate::position::{Player, Position, Side, SideHole};
use crate::position::{innermost, is_empty, occupied, outermost, seeds_in};
use crate::rules::{MAX_SEEDS, Rules};

/// A set of actions, as a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Actions(pub(crate) u64);

impl Actions {
    /// Whether `action` is in the set; any integer may be asked for.
    pub fn contains(self, action: i64) -> bool {
        (0..64).contains(&action) && self.0 >> action & 1 == 1
    }

    /// The number of actions in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is no action in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The actions in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let action = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (action < 64).then_some(action)
        })
    }
}

impl fmt::Display for Actions {
    /// `0, 2, 5`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let list: Vec<String> = self.iter().map(|action| action.to_string()).collect();
        f.write_str(&list.join(", "))
    }
}

/// A hole of the drawn board: South at the bottom, row 0 at the top, column 0
/// at the left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hole {
    /// 0 at the top (North's outer row) to `2 * rows - 1` (South's outer row).
    pub row: usize,
    /// 0 at the left.
    pub column: usize,
}

/// One handful sown: a step of [`Game::trace`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lap {
    /// The hole whose seeds were lifted.
    pub lifted: Hole,
    /// The seeds sown, with those captured by the lap before (R9).
    pub seeds: usize,
    /// The hole into which the last seed fell.
    pub landed: Hole,
    /// The opponent's holes captured at the end of this lap (R8).
    pub captured: Vec<Hole>,
    /// The seeds that lay in the captured holes.
    pub taken: usize,
}

/// What a whole move came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ply {
    /// Handfuls sown, at least 1.
    pub laps: u32,
    /// Seeds captured in all.
    pub captured: u32,
}

/// A lap as the sowing loop sees it, in the mover's own holes.
struct Sown {
    lifted: SideHole,
    seeds: u64,
    landed: SideHole,
    /// The row of the opponent and the seeds captured from it.
    captured: Option<(usize, u64)>,
}

/// [`Rules`] made ready to play: every question about a [`Position`] goes
/// through here. Cheap to copy.
///
/// ```
/// use katro::{Game, Rules};
///
/// let game = Game::new(Rules::KATRO);
/// let start = game.start();
/// assert_eq!(game.legal(&start).len(), 6);
/// let (position, ply) = game.play(&start, 2)?;
/// assert_eq!((ply.laps, ply.captured), (7, 2));
/// assert_eq!(game.winner(&position), None);
/// # Ok::<(), katro::IllegalMove>(())
/// ```
#[derive(Clone, Copy)]
pub struct Game {
    rules: Rules,
    circuit: &'static Circuit,
}

impl Game {
    /// The game played by `rules`.
    pub fn new(rules: Rules) -> Game {
        Game { rules, circuit: Circuit::of_size(rules.rows(), rules.columns()) }
    }

    /// The rules of this game.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The position at the start (R1): South to move.
    pub fn start(&self) -> Position {
        let mut side = [0; 3];
        for row in &mut side[..self.rules.rows()] {
            for column in 0..self.rules.columns() {
                *row |= (self.rules.seeds() as u64) << (8 * column);
            }
        }
        Position { sides: [side; 2], to_move: Player::South }
    }

    /// The position with the seeds of `grid`: the holes of the drawn board row
    /// by row from the top, each row from the left.
    ///
    /// # Errors
    ///
    /// [`GridError`] if the number of holes is not that of the board, if a
    /// number is negative, if there is no seed or more than [`MAX_SEEDS`].
    pub fn position(&self, grid: &[i64], to_move: Player) -> Result<Position, GridError> {
        if grid.len() != self.rules.holes() {
            return Err(GridError::Holes { expected: self.rules.holes(), found: grid.len() });
        }
        if let Some(&seeds) = grid.iter().find(|&&seeds| seeds < 0) {
            return Err(GridError::Negative(seeds));
        }
        let total = grid.iter().fold(0, |total: i64, &seeds| total.saturating_add(seeds));
        if !(1..=MAX_SEEDS as i64).contains(&total) {
            return Err(GridError::Total(total));
        }
        let mut sides = [[0; 3]; 2];
        for (index, &seeds) in grid.iter().enumerate() {
            let (owner, hole) = self.owned(Hole {
                row: index / self.rules.columns(),
                column: index % self.rules.columns(),
            });
            sides[owner.index()][usize::from(hole >> 3)] |= (seeds as u64) << (8 * (hole & 7));
        }
        Ok(Position { sides, to_move })
    }

    /// The seeds of the drawn board, row by row from the top, each row from
    /// the left: `2 * rows * columns` numbers.
    pub fn grid(&self, position: &Position) -> Vec<u8> {
        self.drawn().map(|hole| self.seeds(position, hole)).collect()
    }

    /// The grid as the player to move sees it: his outer row at the bottom,
    /// column 0 at his left hand.
    pub fn observation(&self, position: &Position) -> Vec<u8> {
        match position.to_move {
            Player::South => self.grid(position),
            Player::North => self.grid(&position.swapped()),
        }
    }

    /// The seeds in one hole of the drawn board.
    pub(crate) fn seeds(&self, position: &Position, hole: Hole) -> u8 {
        let (owner, hole) = self.owned(hole);
        seeds_in(&position.sides[owner.index()], hole) as u8
    }

    /// The actions the player to move may choose from (R3); none when the game
    /// is over.
    pub fn legal(&self, position: &Position) -> Actions {
        if self.winner(position).is_some() {
            return Actions::default();
        }
        let side = &position.sides[position.to_move.index()];
        Actions(occupied(side[outermost(side)]))
    }

    /// The player who has won, if the game is over (R10).
    pub fn winner(&self, position: &Position) -> Option<Player> {
        if is_empty(&position.sides[0]) {
            Some(Player::North)
        } else if is_empty(&position.sides[1]) {
            Some(Player::South)
        } else {
            None
        }
    }

    /// The position after the player to move plays `action`, and what the move
    /// came to.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if the action is not legal.
    pub fn play(&self, position: &Position, action: i64) -> Result<(Position, Ply), IllegalMove> {
        self.check(position, action)?;
        let mut after = *position;
        let ply = self.play_unchecked(&mut after, action as usize);
        Ok((after, ply))
    }

    /// Plays a *legal* `action` in place; with an empty hole the sowing might
    /// never end.
    pub(crate) fn play_unchecked(&self, position: &mut Position, action: usize) -> Ply {
        self.sow(position, action, |_| {})
    }

    /// The laps of one move, in order.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if the action is not legal.
    pub fn trace(&self, position: &Position, action: i64) -> Result<Vec<Lap>, IllegalMove> {
        self.check(position, action)?;
        let mover = position.to_move;
        let mut laps = Vec::new();
        self.sow(&mut position.clone(), action as usize, |sown| {
            let facing = |row: usize| (8 * row + self.facing(sown.landed)) as SideHole;
            laps.push(Lap {
                lifted: self.hole(mover, sown.lifted),
                seeds: sown.seeds as usize,
                landed: self.hole(mover, sown.landed),
                captured: sown
                    .captured
                    .iter()
                    .map(|&(row, _)| self.hole(!mover, facing(row)))
                    .collect(),
                taken: sown.captured.map_or(0, |(_, seeds)| seeds as usize),
            });
        });
        Ok(laps)
    }

    /// The number of sequences of `depth` moves from `position`; games that end
    /// sooner count for nothing.
    pub fn perft(&self, position: &Position, depth: u32) -> u64 {
        self.perft_while(position, depth, &mut || true).unwrap_or_default()
    }

    /// As [`Game::perft`], but asks `go_on` every thousand moves or so and
    /// returns `None` as soon as it says no.
    pub(crate) fn perft_while(
        &self,
        position: &Position,
        depth: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<u64> {
        let legal = self.legal(position);
        match depth {
            0 => Some(1),
            1 => Some(legal.len() as u64),
            _ => {
                if depth == 4 && !go_on() {
                    return None;
                }
                legal.iter().try_fold(0, |count, action| {
                    let mut after = *position;
                    self.play_unchecked(&mut after, action);
                    Some(count + self.perft_while(&after, depth - 1, go_on)?)
                })
            }
        }
    }

    fn check(&self, position: &Position, action: i64) -> Result<(), IllegalMove> {
        if self.legal(position).contains(action) {
            return Ok(());
        }
        Err(self.illegal(position, action))
    }

    /// The error for an `action` that is not legal.
    pub(crate) fn illegal(&self, position: &Position, action: i64) -> IllegalMove {
        IllegalMove { action, legal: self.legal(position), position: self.notation(position) }
    }

    /// Sows a whole move, telling `watch` of every lap.
    #[inline(always)]
    fn sow(&self, position: &mut Position, action: usize, mut watch: impl FnMut(Sown)) -> Ply {
        let mover = position.to_move;
        let mut mine = position.sides[mover.index()];
        let mut theirs = position.sides[(!mover).index()];
        let mut ply = Ply::default();

        let mut hole = (8 * outermost(&mine) + (action & 7)) as SideHole;
        let mut seeds = lift(&mut mine, hole);
        loop {
            ply.laps += 1;
            let lifted = hole;
            let sowing = self.circuit.sowing(hole, seeds);
            for (row, add) in mine.iter_mut().zip(sowing.add) {
                *row = row.wrapping_add(add);
            }
            hole = sowing.landing;
            if seeds_in(&mine, hole) == 1 {
                watch(Sown { lifted, seeds, landed: hole, captured: None });
                break; // R7
            }
            let captured = self.capture(&mine, &mut theirs, hole);
            watch(Sown { lifted, seeds, landed: hole, captured });
            seeds = lift(&mut mine, hole); // R6
            if let Some((_, taken)) = captured {
                ply.captured += taken as u32;
                seeds += taken; // R9
                if is_empty(&theirs) {
                    // R10: the seeds stay in the landing hole.
                    mine[usize::from(hole >> 3)] |= seeds << (8 * (hole & 7));
                    break;
                }
            }
        }

        position.sides[mover.index()] = mine;
        position.sides[(!mover).index()] = theirs;
        position.to_move = !mover;
        ply
    }

    /// Takes what a lap captures that ended in the occupied `hole` (R8): the
    /// row it is taken from and the seeds.
    #[inline(always)]
    fn capture(&self, mine: &Side, theirs: &mut Side, hole: SideHole) -> Option<(usize, u64)> {
        if usize::from(hole >> 3) != innermost(mine) {
            return None;
        }
        let row = innermost(theirs);
        let seeds = lift(theirs, (8 * row + self.facing(hole)) as SideHole);
        (seeds != 0).then_some((row, seeds))
    }

    /// The opponent's column that faces a hole (R4).
    #[inline(always)]
    fn facing(&self, hole: SideHole) -> usize {
        self.rules.columns() - 1 - usize::from(hole & 7)
    }

    /// The holes of the drawn board, row by row from the top.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = Hole> {
        let columns = self.rules.columns();
        (0..self.rules.holes()).map(move |i| Hole { row: i / columns, column: i % columns })
    }

    /// The owner of a hole of the drawn board, and the hole as he counts it.
    fn owned(&self, hole: Hole) -> (Player, SideHole) {
        let (rows, last) = (self.rules.rows(), self.rules.columns() - 1);
        if hole.row < rows {
            (Player::North, (8 * hole.row + last - hole.column) as SideHole)
        } else {
            (Player::South, (8 * (2 * rows - 1 - hole.row) + hole.column) as SideHole)
        }
    }

    /// A hole of `owner` on the drawn board; undoes [`Game::owned`].
    fn hole(&self, owner: Player, hole: SideHole) -> Hole {
        let (row, column) = (usize::from(hole >> 3), usize::from(hole & 7));
        match owner {
            Player::North => Hole { row, column: self.rules.columns() - 1 - column },
            Player::South => Hole { row: 2 * self.rules.rows() - 1 - row, column },
        }
    }
}

impl PartialEq for Game {
    fn eq(&self, other: &Game) -> bool {
        self.rules == other.rules
    }
}

impl Eq for Game {}

impl Hash for Game {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rules.hash(state);
    }
}

impl fmt::Debug for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Game").field(&self.rules).finish()
    }
}

/// Empties `hole` and returns the seeds that lay there.
#[inline(always)]
fn lift(side: &mut Side, hole: SideHole) -> u64 {
    let shift = 8 * (hole & 7);
    let row = &mut side[usize::from(hole >> 3)];
    let seeds = *row >> shift & 0xff;
    *row &= !(0xff << shift);
    seeds
}

/// An action that is not legal in its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IllegalMove {
    /// The action that was asked for.
    pub action: i64,
    /// The actions that are legal.
    pub legal: Actions,
    /// The position, in notation.
    pub position: String,
}

impl IllegalMove {
    /// The message for an action that may be no `i64`.
    pub(crate) fn message(&self, action: impl fmt::Display) -> String {
        let IllegalMove { legal, position, .. } = self;
        if legal.is_empty() {
            format!("illegal action {action}: the game is over in {position}")
        } else {
            format!("illegal action {action}: legal are {legal} in {position}")
        }
    }
}

impl fmt::Display for IllegalMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(self.action))
    }
}

impl std::error::Error for IllegalMove {}

/// Why a grid is not a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GridError {
    /// The number of holes is not that of the board.
    Holes {
        /// Holes of the board.
        expected: usize,
        /// Holes of the grid.
        found: usize,
    },
    /// A hole with fewer than no seeds.
    Negative(i64),
    /// No seed at all, or more than [`MAX_SEEDS`].
    Total(i64),
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GridError::Holes { expected, found } => {
                write!(f, "the board has {expected} holes, got {found}")
            }
            GridError::Negative(seeds) => write!(f, "a hole cannot hold {seeds} seeds"),
            GridError::Total(0) => f.write_str("a board without seeds is no position"),
            GridError::Total(total) => {
                write!(f, "a board holds at most {MAX_SEEDS} seeds, got {total}")
            }
        }
    }
}

impl std::error::Error for GridError {}
