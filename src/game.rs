//! The rules applied: which moves there are, what they do, who has won.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::circuit::Circuit;
use crate::position::{Direction, Player, Position, Side, SideHole};
use crate::position::{innermost, is_empty, occupied, outermost, seeds_in, total};
use crate::rules::{DirectionChoice, MAX_SEEDS, Rules};

/// The laps after which a move is over where not every move ends by itself (V4).
pub const LAP_LIMIT: u32 = 10_000;

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
    /// The seeds captured, where they lay on the opponent's side.
    captured: Side,
}

/// How a move begins.
enum Start {
    /// The seeds of a hole are lifted.
    Sow(SideHole, Direction),
    /// The last seed of a side steps into another hole (V5).
    Step(SideHole, SideHole),
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
    /// By direction; the same twice where there is no choice.
    circuits: [&'static Circuit; 2],
}

impl Game {
    /// The game played by `rules`.
    pub fn new(rules: Rules) -> Game {
        let circuit = |direction| Circuit::of_size(rules.rows(), rules.columns(), direction);
        let mirrored =
            if rules.directions() == 2 { Direction::Mirrored } else { Direction::Regular };
        Game { rules, circuits: [circuit(Direction::Regular), circuit(mirrored)] }
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
        Position { sides: [side; 2], to_move: Player::South, bound: [None; 2] }
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
        Ok(Position { sides, to_move, bound: [None; 2] })
    }

    /// The position with South and North bound to directions (V2).
    ///
    /// # Errors
    ///
    /// [`GridError::Unbound`] if these rules bind nobody.
    pub fn bind(
        &self,
        position: &Position,
        bound: [Option<Direction>; 2],
    ) -> Result<Position, GridError> {
        if bound != [None; 2] && !self.rules.binds() {
            return Err(GridError::Unbound);
        }
        Ok(Position { bound, ..*position })
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
        let mover = position.to_move;
        Actions(self.legal_for(&position.side(mover), position.bound(mover)))
    }

    /// The actions of a mover with seeds on his side, as bits.
    #[inline(always)]
    pub(crate) fn legal_for(&self, mine: &Side, bound: Option<Direction>) -> u64 {
        let rules = &self.rules;
        if rules.is_standard() {
            return occupied(mine[outermost(mine)]);
        }
        let starts = if rules.switches().boaoaka {
            (0..3).map(|row| occupied(mine[row]) << (row * rules.columns())).sum()
        } else {
            occupied(mine[outermost(mine)])
        };
        let sowing = match (rules.switches().direction, bound) {
            (DirectionChoice::Fixed, _) | (_, Some(Direction::Regular)) => starts,
            (_, Some(Direction::Mirrored)) => starts << rules.starts(),
            (_, None) => starts | starts << rules.starts(),
        };
        let first_step = rules.starts() * rules.directions();
        (0..rules.steps().len())
            .filter(|&step| self.step(mine, step).is_some())
            .fold(sowing, |legal, step| legal | 1 << (first_step + step))
    }

    /// The hole of the last seed and the one into which a step takes it (V5);
    /// `None` if the step is not legal.
    fn step(&self, mine: &Side, step: usize) -> Option<(SideHole, SideHole)> {
        if total(mine) != 1 {
            return None;
        }
        let row = outermost(mine);
        let column = mine[row].trailing_zeros() as usize / 8;
        let target = column.checked_add_signed(self.rules.steps()[step].into())?;
        (row + 1 < self.rules.rows() && target < self.rules.columns())
            .then(|| ((8 * row + column) as SideHole, (8 * (row + 1) + target) as SideHole))
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
        self.run(position, action, |_| {})
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
        self.run(&mut position.clone(), action as usize, |sown| {
            let facing = |row: usize| (8 * row + self.facing(sown.landed)) as SideHole;
            laps.push(Lap {
                lifted: self.hole(mover, sown.lifted),
                seeds: sown.seeds as usize,
                landed: self.hole(mover, sown.landed),
                captured: (0..3)
                    .rev()
                    .filter(|&row| sown.captured[row] != 0)
                    .map(|row| self.hole(!mover, facing(row)))
                    .collect(),
                taken: total(&sown.captured) as usize,
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

    /// Plays a whole move by the captures of these rules, telling `watch` of
    /// every lap.
    #[inline(always)]
    fn run(&self, position: &mut Position, action: usize, watch: impl FnMut(Sown)) -> Ply {
        let switches = self.rules.switches();
        match (switches.boaoaka, switches.fall_through, switches.capture_on_empty) {
            (true, _, _) => self.sow::<WholeColumn>(position, action, watch),
            (_, false, false) => self.sow::<Facing>(position, action, watch),
            (_, true, false) => self.sow::<FirstOfColumn>(position, action, watch),
            (_, false, true) => self.sow::<OnEmpty<Facing>>(position, action, watch),
            (_, true, true) => self.sow::<OnEmpty<FirstOfColumn>>(position, action, watch),
        }
    }

    /// Plays a whole move, telling `watch` of every lap.
    #[inline(always)]
    fn sow<C: Captures>(
        &self,
        position: &mut Position,
        action: usize,
        mut watch: impl FnMut(Sown),
    ) -> Ply {
        let mover = position.to_move;
        let mut mine = position.sides[mover.index()];
        let mut theirs = position.sides[(!mover).index()];
        let mut ply = Ply::default();

        let start = self.start_of(&mine, action);
        let direction = match start {
            Start::Sow(_, direction) if self.rules.binds() => {
                *position.bound[mover.index()].insert(direction)
            }
            Start::Sow(_, direction) => direction,
            Start::Step(..) => position.bound(mover).unwrap_or(Direction::Regular),
        };
        let circuit = self.circuits[direction as usize];

        let (mut lifted, mut seeds, mut landing);
        match start {
            Start::Sow(hole, _) => {
                (lifted, seeds) = (hole, lift(&mut mine, hole));
                landing = self.lap::<C>(circuit, &mut mine, &theirs, hole, seeds);
            }
            Start::Step(hole, inwards) => {
                (lifted, seeds) = (hole, lift(&mut mine, hole));
                drop_seeds(&mut mine, inwards, seeds);
                let inner = usize::from(inwards >> 3) + 1 == self.rules.rows();
                let captured =
                    if inner { C::facing(self, &mine, &theirs, inwards) } else { [0; 3] };
                landing = Landing { hole: inwards, captured, relays: false };
            }
        }
        loop {
            ply.laps += 1;
            let Landing { hole, captured, relays } = landing;
            watch(Sown { lifted, seeds, landed: hole, captured });
            let taken = total(&captured);
            if taken == 0 && !relays {
                break; // R7
            }
            for (row, captured) in theirs.iter_mut().zip(captured) {
                *row -= captured;
            }
            ply.captured += taken as u32;
            if (taken != 0 && is_empty(&theirs)) || ply.laps == C::LAP_LIMIT {
                drop_seeds(&mut mine, hole, taken); // R10, V4
                break;
            }
            (lifted, seeds) = (hole, lift(&mut mine, hole) + taken); // R6, R9
            landing = self.lap::<C>(circuit, &mut mine, &theirs, hole, seeds);
        }

        position.sides[mover.index()] = mine;
        position.sides[(!mover).index()] = theirs;
        position.to_move = !mover;
        ply
    }

    /// Sows `seeds` from `hole` (R5).
    #[inline(always)]
    fn lap<C: Captures>(
        &self,
        circuit: &Circuit,
        mine: &mut Side,
        theirs: &Side,
        hole: SideHole,
        seeds: u64,
    ) -> Landing {
        let sowing = circuit.sowing(hole, seeds);
        for (row, add) in mine.iter_mut().zip(sowing.add) {
            *row = row.wrapping_add(add);
        }
        let hole = sowing.landing;
        let empty = seeds_in(mine, hole) == 1;
        let captured = C::captured(self, mine, theirs, hole, empty);
        Landing { hole, captured, relays: !empty }
    }

    /// How the mover begins with a legal `action`.
    #[inline(always)]
    fn start_of(&self, mine: &Side, action: usize) -> Start {
        let rules = &self.rules;
        let starts = rules.starts();
        let (direction, start) = if action < starts {
            (Direction::Regular, action)
        } else if action < starts * rules.directions() {
            (Direction::Mirrored, action - starts)
        } else {
            let step = action - starts * rules.directions();
            let (lifted, landed) = self.step(mine, step).unwrap_or_default();
            return Start::Step(lifted, landed);
        };
        let hole = if rules.switches().boaoaka {
            8 * (start / rules.columns()) + start % rules.columns()
        } else {
            8 * outermost(mine) + (start & 7)
        };
        Start::Sow(hole as SideHole, direction)
    }

    /// The opponent's column that faces a hole (R4).
    #[inline(always)]
    fn facing(&self, hole: SideHole) -> usize {
        self.rules.columns() - 1 - usize::from(hole & 7)
    }

    /// The seeds of the opponent's column that faces a hole of the inner row,
    /// where they lie; none for a hole of another row.
    #[inline(always)]
    fn column_facing(&self, theirs: &Side, hole: SideHole) -> Side {
        if usize::from(hole >> 3) + 1 != self.rules.rows() {
            return [0; 3];
        }
        theirs.map(|row| row & 0xff << (8 * self.facing(hole)))
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

/// Where the last seed of a lap fell, and what follows.
struct Landing {
    hole: SideHole,
    /// The seeds captured, where they lie on the opponent's side.
    captured: Side,
    /// Whether the seeds of the hole are sown on if nothing is captured (R6).
    relays: bool,
}

/// What a last seed captures: a type for each rule, so that each has a sowing
/// loop of its own.
trait Captures {
    /// The laps after which the move is over.
    const LAP_LIMIT: u32 = u32::MAX;

    /// The seeds that can be captured from `hole`, where they lie.
    fn facing(game: &Game, mine: &Side, theirs: &Side, hole: SideHole) -> Side;

    /// The seeds captured when a last seed has fallen into `hole`, which was
    /// empty or not.
    #[inline(always)]
    fn captured(game: &Game, mine: &Side, theirs: &Side, hole: SideHole, empty: bool) -> Side {
        if empty { [0; 3] } else { Self::facing(game, mine, theirs, hole) }
    }
}

/// R8: from the innermost occupied row, the hole of the opponent's.
struct Facing;

impl Captures for Facing {
    #[inline(always)]
    fn facing(game: &Game, mine: &Side, theirs: &Side, hole: SideHole) -> Side {
        if usize::from(hole >> 3) != innermost(mine) {
            return [0; 3];
        }
        let mut captured = [0; 3];
        let row = innermost(theirs);
        captured[row] = theirs[row] & 0xff << (8 * game.facing(hole));
        captured
    }
}

/// V3: from the inner row, the first occupied hole of the column.
struct FirstOfColumn;

impl Captures for FirstOfColumn {
    #[inline(always)]
    fn facing(game: &Game, _: &Side, theirs: &Side, hole: SideHole) -> Side {
        let column = game.column_facing(theirs, hole);
        let row = innermost(&column);
        let mut captured = [0; 3];
        captured[row] = column[row];
        captured
    }
}

/// V4: as another rule, but from an empty hole, not from an occupied one.
struct OnEmpty<C>(PhantomData<C>);

impl<C: Captures> Captures for OnEmpty<C> {
    const LAP_LIMIT: u32 = LAP_LIMIT;

    #[inline(always)]
    fn facing(game: &Game, mine: &Side, theirs: &Side, hole: SideHole) -> Side {
        C::facing(game, mine, theirs, hole)
    }

    #[inline(always)]
    fn captured(game: &Game, mine: &Side, theirs: &Side, hole: SideHole, empty: bool) -> Side {
        C::captured(game, mine, theirs, hole, !empty)
    }
}

/// V6: from the inner row, the whole column; but from an empty hole only if it
/// has a hole with more than one seed.
struct WholeColumn;

impl Captures for WholeColumn {
    #[inline(always)]
    fn facing(game: &Game, _: &Side, theirs: &Side, hole: SideHole) -> Side {
        game.column_facing(theirs, hole)
    }

    #[inline(always)]
    fn captured(game: &Game, mine: &Side, theirs: &Side, hole: SideHole, empty: bool) -> Side {
        let captured = Self::facing(game, mine, theirs, hole);
        let singles = captured.iter().all(|row| row >> (8 * game.facing(hole)) <= 1);
        if empty && singles { [0; 3] } else { captured }
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

/// Lets `seeds` fall into `hole`.
#[inline(always)]
fn drop_seeds(side: &mut Side, hole: SideHole, seeds: u64) {
    side[usize::from(hole >> 3)] += seeds << (8 * (hole & 7));
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
    /// Players bound to a direction by rules that bind nobody.
    Unbound,
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GridError::Holes { expected, found } => {
                write!(f, "the board has {expected} holes, got {found}")
            }
            GridError::Negative(seeds) => write!(f, "a hole cannot hold {seeds} seeds"),
            GridError::Unbound => f.write_str("these rules bind no player to a direction"),
            GridError::Total(0) => f.write_str("a board without seeds is no position"),
            GridError::Total(total) => {
                write!(f, "a board holds at most {MAX_SEEDS} seeds, got {total}")
            }
        }
    }
}

impl std::error::Error for GridError {}
