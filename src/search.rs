//! Alpha-beta search for the best move.

use std::time::{Duration, Instant};

use crate::game::Game;
use crate::position::{Player, Position, Side, occupied, total};
use crate::random::Stream;

/// The value of a won game; a win in `n` plies is worth `WIN - n`.
pub const WIN: i32 = 1_000_000;

/// The deepest search there is.
pub const MAX_DEPTH: u32 = 64;

/// How far to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Plies, at most [`MAX_DEPTH`].
    pub depth: u32,
    /// The time after which the search stops and the last depth that was
    /// finished counts; the first always is.
    pub time: Option<Duration>,
}

/// What a search has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The best action.
    pub action: usize,
    /// What the position is worth to the player to move: the evaluation after
    /// the best play, or `WIN - n` for a win and `n - WIN` for a loss in `n`
    /// plies.
    pub value: i32,
    /// The best play of both sides, the action first.
    pub line: Vec<usize>,
    /// Positions visited: one for every move made, and the root.
    pub nodes: u64,
    /// The depth that was searched to the end.
    pub depth: u32,
}

/// Searches for the best move, with a table of positions seen before.
///
/// ```
/// use katro::{Game, Limits, Rules, Search};
///
/// let game = Game::new(Rules::KATRO);
/// let mut search = Search::new(game, 1 << 16);
/// let limits = Limits { depth: 4, time: None };
/// let found = search.run(&game.start(), limits, &mut || true);
/// assert_eq!(found.line.len(), 4);
/// ```
pub struct Search {
    game: Game,
    table: Vec<Entry>,
    /// Entries of another generation belong to a search before.
    generation: u16,
    nodes: u64,
    deadline: Option<Instant>,
    stopped: bool,
    /// The best play found from every ply on.
    lines: Vec<Vec<u8>>,
}

/// Which side of the true value a stored one is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Exact,
    AtLeast,
    AtMost,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    value: i32,
    generation: u16,
    depth: u8,
    action: u8,
    bound: Bound,
}

const EMPTY: Entry =
    Entry { key: 0, value: 0, generation: 0, depth: 0, action: 0, bound: Bound::Exact };

impl Search {
    /// A search with room for about `entries` positions; 0 for none.
    pub fn new(game: Game, entries: usize) -> Search {
        let entries = if entries == 0 { 0 } else { entries.next_power_of_two() };
        Search {
            game,
            table: vec![EMPTY; entries],
            generation: 0,
            nodes: 0,
            deadline: None,
            stopped: false,
            lines: vec![Vec::new(); MAX_DEPTH as usize + 2],
        }
    }

    /// Finds the best move in an open position, deeper and deeper up to the
    /// limits. Of equally good actions the first is taken.
    ///
    /// Asks `go_on` every few thousand nodes; when it says no the last depth that
    /// was finished counts, and if none was, the first legal action.
    ///
    /// # Panics
    ///
    /// If the game is over.
    pub fn run(
        &mut self,
        position: &Position,
        limits: Limits,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Found {
        self.start(limits);
        let first = self.game.legal(position).iter().next().expect("the game is open");
        let mut found = Found { action: first, value: 0, line: vec![first], nodes: 0, depth: 0 };
        for depth in 1..=limits.depth.min(MAX_DEPTH) {
            let value = self.negamax(position, depth, -WIN, WIN, 0, go_on);
            if self.stopped {
                break;
            }
            let line: Vec<usize> = self.lines[0].iter().map(|&action| action.into()).collect();
            found = Found { action: line[0], value, line, nodes: 0, depth };
            if value.abs() >= WIN - depth as i32 {
                break; // no deeper search changes a forced result
            }
        }
        found.nodes = self.nodes;
        found
    }

    /// A best action, drawn from `stream` if there are several.
    pub(crate) fn choose(
        &mut self,
        position: &Position,
        limits: Limits,
        stream: &mut Stream,
    ) -> usize {
        let mut best: Vec<usize> = self.game.legal(position).iter().collect();
        if best.len() == 1 {
            return best[0];
        }
        self.start(limits);
        let mut order = best.clone();
        let mut ended = false;
        for depth in 1..=limits.depth.min(MAX_DEPTH) {
            let mut top = -WIN;
            let mut tied = Vec::new();
            for &action in &order {
                let mut after = *position;
                self.game.play_unchecked(&mut after, action);
                // A window that tells an equal value from a lower one.
                let value = if self.has_lost(&after) {
                    WIN - 1
                } else {
                    -self.negamax(&after, depth - 1, -WIN, 1 - top, 1, &mut || true)
                };
                if self.stopped {
                    break;
                }
                if value > top {
                    top = value;
                    tied.clear();
                }
                if value == top {
                    tied.push(action);
                }
            }
            if self.stopped {
                break;
            }
            order.sort_by_key(|action| !tied.contains(action));
            best = tied;
            ended = ended || top.abs() >= WIN - depth as i32;
            if ended {
                break;
            }
        }
        best.sort_unstable();
        best[stream.below(best.len() as u32) as usize]
    }

    fn start(&mut self, limits: Limits) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.table.fill(EMPTY);
            self.generation = 1;
        }
        self.nodes = 1;
        self.stopped = false;
        self.deadline = limits.time.map(|time| Instant::now() + time);
    }

    /// The value of a position that is not lost, if it lies between `alpha` and
    /// `beta`; else a bound of it on the side where it lies.
    fn negamax(
        &mut self,
        position: &Position,
        depth: u32,
        mut alpha: i32,
        beta: i32,
        ply: i32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> i32 {
        let line = ply as usize;
        self.lines[line].clear();
        if depth == 0 {
            return evaluate(&self.game, position);
        }
        if self.nodes & 0xfff == 0 && !self.may_go_on(go_on) {
            self.stopped = true;
        }
        if self.stopped {
            return 0;
        }

        let key = key(position);
        let known = self.known(key);
        if let Some(entry) = known
            && u32::from(entry.depth) == depth
            && ply > 0
        {
            // Only of this very depth: another one has another value.
            let value = from_here(entry.value, ply);
            match entry.bound {
                Bound::Exact => return value,
                Bound::AtLeast if value >= beta => return value,
                Bound::AtMost if value <= alpha => return value,
                _ => {}
            }
        }

        let lower = alpha;
        let mut best = -WIN;
        let mut best_action = 0;
        let first = known.map(|entry| usize::from(entry.action));
        let mut children = Children::new(&self.game, position, first, depth > 1);
        while let Some((action, child)) = children.next(&self.game, position) {
            self.nodes += 1;
            let value = if self.has_lost(&child) {
                self.lines[line + 1].clear();
                WIN - (ply + 1)
            } else {
                -self.negamax(&child, depth - 1, -beta, -alpha, ply + 1, go_on)
            };
            if self.stopped {
                return 0;
            }
            if value > best {
                best = value;
                best_action = action;
                if value > alpha {
                    alpha = value;
                    let (head, tail) = self.lines.split_at_mut(line + 1);
                    head[line].clear();
                    head[line].push(action as u8);
                    head[line].extend_from_slice(&tail[0]);
                }
                if value >= beta {
                    break;
                }
            }
        }

        let bound = match best {
            _ if best >= beta => Bound::AtLeast,
            _ if best <= lower => Bound::AtMost,
            _ => Bound::Exact,
        };
        self.remember(Entry {
            key,
            value: from_root(best, ply),
            generation: self.generation,
            depth: depth as u8,
            action: best_action as u8,
            bound,
        });
        best
    }

    fn may_go_on(&self, go_on: &mut dyn FnMut() -> bool) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline) && go_on()
    }

    /// Whether the player to move has no seed.
    fn has_lost(&self, position: &Position) -> bool {
        position.side(position.to_move()) == [0; 3]
    }

    fn known(&self, key: u64) -> Option<Entry> {
        let mask = self.table.len().checked_sub(1)?;
        let entry = self.table[key as usize & mask];
        (entry.key == key && entry.generation == self.generation).then_some(entry)
    }

    fn remember(&mut self, entry: Entry) {
        if let Some(mask) = self.table.len().checked_sub(1) {
            self.table[entry.key as usize & mask] = entry;
        }
    }
}

/// The positions after the legal moves, in an order in which the best is likely
/// to come early: the one that was best before, then by the seeds captured.
struct Children {
    first: Option<usize>,
    left: u64,
    /// With the seeds captured, most last; filled when the first is done with.
    sorted: Vec<(u32, usize, Position)>,
    sort: bool,
}

impl Children {
    fn new(game: &Game, position: &Position, first: Option<usize>, sort: bool) -> Children {
        let left = game.legal(position).0;
        let first = first.filter(|&action| left >> action & 1 == 1);
        Children { first, left, sorted: Vec::new(), sort }
    }

    fn next(&mut self, game: &Game, position: &Position) -> Option<(usize, Position)> {
        if let Some(action) = self.first.take() {
            self.left &= !(1 << action);
            return Some((action, after(game, position, action).1));
        }
        if self.sort && self.left != 0 {
            while self.left != 0 {
                let action = self.left.trailing_zeros() as usize;
                self.left &= self.left - 1;
                let (captured, child) = after(game, position, action);
                self.sorted.push((captured, action, child));
            }
            // Stable in the order of the actions, from the end.
            self.sorted.reverse();
            self.sorted.sort_by_key(|&(captured, _, _)| captured);
        }
        if self.left != 0 {
            let action = self.left.trailing_zeros() as usize;
            self.left &= self.left - 1;
            return Some((action, after(game, position, action).1));
        }
        self.sorted.pop().map(|(_, action, child)| (action, child))
    }
}

/// The seeds captured by a legal action and the position after it.
fn after(game: &Game, position: &Position, action: usize) -> (u32, Position) {
    let mut child = *position;
    let ply = game.play_unchecked(&mut child, action);
    (ply.captured, child)
}

/// What an open position is worth to the player to move: his points less the
/// opponent's, where a seed counts one point, a seed of the outer row two more,
/// and an occupied hole one more.
///
/// The outer row is safe and keeps moves in hand: no capture of R8 reaches it
/// before the rows in front of it are empty, and its holes are the choice of R3.
/// The weights were tuned by matches at equal nodes on the 6 x 6 board.
pub fn evaluate(_game: &Game, position: &Position) -> i32 {
    let (mine, theirs) = sides(position);
    points(&mine) - points(&theirs)
}

fn points(side: &Side) -> i32 {
    let [outer, middle, inner] = side.map(occupied);
    let holes = (outer | middle << 8 | inner << 16).count_ones();
    (total(side) + 2 * total(&[side[0], 0, 0])) as i32 + holes as i32
}

fn sides(position: &Position) -> (Side, Side) {
    (position.side(position.to_move()), position.side(!position.to_move()))
}

/// A win or a loss counted from the root, counted from `ply` on instead.
fn from_root(value: i32, ply: i32) -> i32 {
    match value {
        _ if value > WIN / 2 => value + ply,
        _ if value < -WIN / 2 => value - ply,
        _ => value,
    }
}

/// Undoes [`from_root`].
fn from_here(value: i32, ply: i32) -> i32 {
    from_root(value, -ply)
}

/// A hash of what the mover sees: the game is the same from both seats.
fn key(position: &Position) -> u64 {
    let (mine, theirs) = sides(position);
    let bound = |player: Player| position.bound(player).map_or(2, |direction| direction as u64);
    let memory = 3 * bound(position.to_move()) + bound(!position.to_move());
    mine.into_iter().chain(theirs).fold(memory, |hash, row| {
        let mixed = (hash ^ row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    })
}
