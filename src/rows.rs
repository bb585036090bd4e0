//! What a batch tells of its games: plain arrays with a row for each.

use crate::game::Game;
use crate::lanes::{BLOCK, Block, Lanes, transposed};
use crate::position::Side;

/// What a step or a reset writes: an entry, or a row, for each game.
///
/// Where a game has started again in the same step ([`Autoreset::SameStep`](crate::Autoreset::SameStep)),
/// `reward`, `terminated` and `truncated` tell of the old game and the rest of
/// the new one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arrays {
    /// (n, 2 * rows, columns) seeds, as the player to move sees them.
    pub observation: Vec<u8>,
    /// (n, actions) 1 for a legal action; all ones when the game is over.
    pub action_mask: Vec<i8>,
    /// (n) 1 if the mover has won, -1 if he lost by an illegal action, else 0.
    pub reward: Vec<f64>,
    /// (n) whether somebody has won.
    pub terminated: Vec<bool>,
    /// (n) whether the ply limit cut the game off.
    pub truncated: Vec<bool>,
    /// (n) the player to move, 0 or 1.
    pub to_move: Vec<i64>,
    /// (n) the winner, -1 while the game is open.
    pub winner: Vec<i64>,
    /// (n) seeds captured in this ply.
    pub captured: Vec<i64>,
    /// (n) laps of this ply.
    pub laps: Vec<i64>,
    /// (n, 2) the directions that the player to move and his opponent are bound
    /// to, -1 for none, 0 for R4's, 1 for the mirrored one; empty where the
    /// rules bind nobody (V2).
    pub bound: Vec<i8>,
}

impl Arrays {
    /// Arrays for `n` games, all zero.
    pub fn new(game: &Game, n: usize) -> Arrays {
        Arrays {
            observation: vec![0; n * game.rules().holes()],
            action_mask: vec![0; n * game.rules().num_actions()],
            reward: vec![0.0; n],
            terminated: vec![false; n],
            truncated: vec![false; n],
            to_move: vec![0; n],
            winner: vec![0; n],
            captured: vec![0; n],
            laps: vec![0; n],
            bound: vec![0; n * bound_width(game)],
        }
    }

    /// All rows of the arrays.
    pub fn rows(&mut self) -> Rows<'_> {
        Rows {
            observation: &mut self.observation,
            action_mask: &mut self.action_mask,
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            to_move: &mut self.to_move,
            winner: &mut self.winner,
            captured: &mut self.captured,
            laps: &mut self.laps,
            bound: &mut self.bound,
        }
    }
}

/// The part of [`Arrays`] that belongs to some consecutive games, borrowed from
/// wherever the arrays are kept.
pub struct Rows<'a> {
    /// As [`Arrays::observation`].
    pub observation: &'a mut [u8],
    /// As [`Arrays::action_mask`].
    pub action_mask: &'a mut [i8],
    /// As [`Arrays::reward`].
    pub reward: &'a mut [f64],
    /// As [`Arrays::terminated`].
    pub terminated: &'a mut [bool],
    /// As [`Arrays::truncated`].
    pub truncated: &'a mut [bool],
    /// As [`Arrays::to_move`].
    pub to_move: &'a mut [i64],
    /// As [`Arrays::winner`].
    pub winner: &'a mut [i64],
    /// As [`Arrays::captured`].
    pub captured: &'a mut [i64],
    /// As [`Arrays::laps`].
    pub laps: &'a mut [i64],
    /// As [`Arrays::bound`].
    pub bound: &'a mut [i8],
}

impl<'a> Rows<'a> {
    /// Whether these are the rows of `n` games.
    pub(crate) fn fit(&self, game: &Game, n: usize) -> bool {
        self.observation.len() == n * game.rules().holes()
            && self.action_mask.len() == n * game.rules().num_actions()
            && self.reward.len() == n
            && self.terminated.len() == n
            && self.truncated.len() == n
            && self.to_move.len() == n
            && self.winner.len() == n
            && self.captured.len() == n
            && self.laps.len() == n
            && self.bound.len() == n * bound_width(game)
    }

    /// The rows of `games` games each in turn.
    pub(crate) fn chunks(self, game: &Game, games: usize) -> impl Iterator<Item = Rows<'a>> {
        let (holes, actions) = (game.rules().holes(), game.rules().num_actions());
        let mut observation = self.observation.chunks_mut(games * holes);
        let mut action_mask = self.action_mask.chunks_mut(games * actions);
        let mut reward = self.reward.chunks_mut(games);
        let mut terminated = self.terminated.chunks_mut(games);
        let mut truncated = self.truncated.chunks_mut(games);
        let mut to_move = self.to_move.chunks_mut(games);
        let mut winner = self.winner.chunks_mut(games);
        let mut captured = self.captured.chunks_mut(games);
        let mut laps = self.laps.chunks_mut(games);
        let mut bound = self.bound.chunks_mut(games * 2);
        std::iter::from_fn(move || {
            Some(Rows {
                observation: observation.next()?,
                action_mask: action_mask.next()?,
                reward: reward.next()?,
                terminated: terminated.next()?,
                truncated: truncated.next()?,
                to_move: to_move.next()?,
                winner: winner.next()?,
                captured: captured.next()?,
                laps: laps.next()?,
                bound: bound.next().unwrap_or_default(),
            })
        })
    }

    /// Writes a block of games as they stand, and what their last moves came to.
    #[inline(always)]
    pub(crate) fn write<const STANDARD: bool>(
        &mut self,
        game: &Game,
        block: &Block,
        outcome: &Outcome,
        rows: usize,
        columns: usize,
    ) {
        block.write_grids(self.observation, rows, columns);
        if STANDARD {
            let mut legal = block.legal(rows, columns);
            for column in &mut legal[..columns] {
                for l in 0..BLOCK {
                    column[l] |= block.ended[l] & 1;
                }
            }
            let words = transposed(legal.each_ref());
            for (row, word) in self.action_mask.chunks_exact_mut(columns).zip(&words) {
                row.copy_from_slice(&word.to_le_bytes().map(|legal| legal as i8)[..columns]);
            }
        } else {
            let masks = self.action_mask.chunks_exact_mut(game.rules().num_actions());
            for (lane, row) in masks.enumerate() {
                let over = u64::from(block.ended[lane] & 1).wrapping_neg();
                let legal = block.legal_of_one(lane, game) | over;
                for (action, mask) in row.iter_mut().enumerate() {
                    *mask = (legal >> action & 1) as i8;
                }
            }
            for (lane, pair) in self.bound.chunks_exact_mut(2).enumerate() {
                pair[0] = block.my_bound[lane] as i8 - 1;
                pair[1] = block.their_bound[lane] as i8 - 1;
            }
        }
        fill(self.reward, &outcome.reward, |reward| f64::from(reward as i8));
        fill(self.terminated, &outcome.terminated, |yes| yes != 0);
        fill(self.truncated, &outcome.truncated, |yes| yes != 0);
        fill(self.to_move, &block.to_move, i64::from);
        fill(self.winner, &outcome.winner, |player| i64::from(player as i8));
        fill(self.captured, &outcome.captured, i64::from);
        fill(self.laps, &outcome.laps, i64::from);
    }
}

/// Entries of [`Arrays::bound`] for each game.
fn bound_width(game: &Game) -> usize {
    if game.rules().binds() { 2 } else { 0 }
}

/// Writes a value for each game of a block, of which the last may be short.
#[inline(always)]
fn fill<B: Copy, T>(column: &mut [T], lanes: &[B; BLOCK], value: impl Fn(B) -> T) {
    // A full block has a length that the compiler knows.
    if let Ok(column) = <&mut [T; BLOCK]>::try_from(&mut *column) {
        for l in 0..BLOCK {
            column[l] = value(lanes[l]);
        }
        return;
    }
    for (entry, &lane) in column.iter_mut().zip(lanes) {
        *entry = value(lane);
    }
}

/// What the moves of a block came to; of a game that has not moved, what a reset
/// leaves. Signed numbers are kept in two's complement.
#[derive(Clone)]
pub(crate) struct Outcome {
    pub(crate) reward: Lanes,
    /// 255 or 0.
    pub(crate) terminated: Lanes,
    /// 255 or 0.
    pub(crate) truncated: Lanes,
    pub(crate) winner: Lanes,
    pub(crate) captured: Lanes,
    pub(crate) laps: [u32; BLOCK],
}

impl Outcome {
    pub(crate) const NONE: Outcome = Outcome {
        reward: [0; BLOCK],
        terminated: [0; BLOCK],
        truncated: [0; BLOCK],
        winner: [NOBODY; BLOCK],
        captured: [0; BLOCK],
        laps: [0; BLOCK],
    };
}

/// -1, as a byte.
pub(crate) const NOBODY: u8 = 255;

/// Writes a board as the owner of `mine` sees it.
pub(crate) fn write_grid(grid: &mut [u8], game: &Game, mine: &Side, theirs: &Side) {
    let (rows, columns) = (game.rules().rows(), game.rules().columns());
    let far = (0..rows).map(|row| theirs[row].swap_bytes() >> (8 * (8 - columns)));
    let near = (0..rows).rev().map(|row| mine[row]);
    for (out, row) in grid.chunks_exact_mut(columns).zip(far.chain(near)) {
        out.copy_from_slice(&row.to_le_bytes()[..columns]);
    }
}
