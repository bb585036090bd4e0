//! Many games of one rule set, stepped together into plain arrays.

use std::fmt;
use std::ops::AddAssign;

use pulp::{Arch, Simd, WithSimd};

use crate::game::{Game, IllegalMove};
use crate::lanes::{self, BLOCK, Block, Lanes, Moves, actions_of, mask, select, transposed};
use crate::position::{Position, Side};
use crate::random::Stream;
use crate::threads::Threads;

/// When a game that has ended starts again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Autoreset {
    /// In the step after the one that ended it; the action of that step is
    /// ignored.
    #[default]
    NextStep,
    /// In the step that ended it; the last position is kept as a [`Final`].
    SameStep,
    /// When it is told to.
    Disabled,
}

/// What an action does that is in the action space but not legal.
///
/// An action outside the action space is always refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Illegal {
    /// The step is refused and no game moves.
    #[default]
    Refuse,
    /// The game ends and the mover has lost it; no seed moves.
    Lose,
}

/// How a [`Batch`] runs its games.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// When a game that has ended starts again.
    pub autoreset: Autoreset,
    /// What an illegal action does.
    pub illegal: Illegal,
    /// The plies (at least 1) after which a game is cut off (R12), if there is
    /// a limit.
    pub max_plies: Option<u32>,
}

/// What a step or a reset writes: an entry, or a row, for each game.
///
/// Where a game has started again in the same step ([`Autoreset::SameStep`]),
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
    fn chunks(self, game: &Game, games: usize) -> impl Iterator<Item = Rows<'a>> {
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
    fn write<const STANDARD: bool>(
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
struct Outcome {
    reward: Lanes,
    /// 255 or 0.
    terminated: Lanes,
    /// 255 or 0.
    truncated: Lanes,
    winner: Lanes,
    captured: Lanes,
    laps: [u32; BLOCK],
}

impl Outcome {
    const NONE: Outcome = Outcome {
        reward: [0; BLOCK],
        terminated: [0; BLOCK],
        truncated: [0; BLOCK],
        winner: [NOBODY; BLOCK],
        captured: [0; BLOCK],
        laps: [0; BLOCK],
    };
}

/// -1, as a byte.
const NOBODY: u8 = 255;

/// A game that ended in a step with [`Autoreset::SameStep`], as it was before
/// it started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Final {
    /// Which game of the batch.
    pub game: usize,
    /// Its last position.
    pub position: Position,
    /// The winner, -1 if the ply limit cut the game off.
    pub winner: i64,
    /// Seeds captured in the last ply.
    pub captured: i64,
    /// Laps of the last ply.
    pub laps: i64,
}

/// `n` games of one rule set, stepped together.
///
/// A step of the batch is one ply of every game, and each game writes its row
/// of the [`Arrays`]. What a game does depends on its own position and action
/// only.
///
/// ```
/// use katro::{Arrays, Batch, Game, Options, Rules};
///
/// let game = Game::new(Rules::KATRO);
/// let mut batch = Batch::new(game, 3, Options::default());
/// let mut arrays = Arrays::new(&game, 3);
/// batch.step(&[0, 1, 2], arrays.rows())?;
/// assert_eq!(arrays.laps, [7, 8, 7]);
/// assert_eq!(arrays.to_move, [1, 1, 1]);
/// # Ok::<(), katro::StepError>(())
/// ```
#[derive(Clone)]
pub struct Batch {
    game: Game,
    options: Options,
    len: usize,
    blocks: Vec<Block>,
    threads: Threads,
}

impl Batch {
    /// `n` games at the start, stepped by as many threads as pay off.
    pub fn new(game: Game, n: usize, options: Options) -> Batch {
        let mut block = Block::EMPTY;
        for lane in 0..BLOCK {
            block.place(lane, &game.start(), game.rules().columns());
        }
        let blocks = vec![block; n.div_ceil(BLOCK)];
        Batch { game, options, len: n, blocks, threads: Threads::for_games(n) }
    }

    /// The number of threads that step the games; what they do does not depend
    /// on it.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Sets the number of threads, at least 1. There are never more than there
    /// are groups of games to share out.
    pub fn set_threads(&mut self, count: usize) {
        self.threads = Threads::new(count.min(self.blocks.len().div_ceil(GROUP)));
    }

    /// The memory that `n` games and the arrays of one step take, in bytes;
    /// `None` if it cannot be counted.
    pub fn bytes(game: &Game, n: usize) -> Option<usize> {
        let rules = game.rules();
        let row = rules.holes() + rules.num_actions() + 5 * size_of::<i64>() + 2;
        n.div_ceil(BLOCK).checked_mul(size_of::<Block>() + BLOCK * row)
    }

    /// The game that is played.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// How the games are run.
    pub fn options(&self) -> Options {
        self.options
    }

    /// The number of games.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no game.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The position of game `i`.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn position(&self, i: usize) -> Position {
        let (block, lane) = self.at(i);
        block.position(lane, self.game.rules().columns())
    }

    /// Whether game `i` has ended and not started again.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn ended(&self, i: usize) -> bool {
        let (block, lane) = self.at(i);
        block.ended[lane] != 0
    }

    /// The plies played in game `i` since it started.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn plies(&self, i: usize) -> u32 {
        let (block, lane) = self.at(i);
        block.plies[lane]
    }

    /// Starts game `i` anew from `position`, or from the start. If somebody has
    /// won there the game has ended.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn reset(&mut self, i: usize, position: Option<&Position>) {
        let start = self.game.start();
        self.restore(i, position.unwrap_or(&start), 0, false);
    }

    /// Puts game `i` into a state it was in before, as [`Batch::position`],
    /// [`Batch::plies`] and [`Batch::ended`] tell it.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn restore(&mut self, i: usize, position: &Position, plies: u32, ended: bool) {
        assert!(i < self.len, "game {i} of {}", self.len);
        let (block, lane) = (&mut self.blocks[i / BLOCK], i % BLOCK);
        block.place(lane, position, self.game.rules().columns());
        block.plies[lane] = plies;
        block.ended[lane] = mask(ended || self.game.winner(position).is_some());
    }

    /// Writes every game as a reset leaves it: no reward, nothing captured,
    /// open.
    ///
    /// # Panics
    ///
    /// If `rows` are not those of [`Arrays::new`] for this batch.
    pub fn observe(&self, rows: Rows<'_>) {
        assert!(rows.fit(&self.game, self.len), "these are not the arrays of this batch");
        Arch::new().dispatch(Observe { game: &self.game, blocks: &self.blocks, rows });
    }

    /// Plays one ply in every game and returns the games that ended and were
    /// started again, which there are with [`Autoreset::SameStep`] only, in
    /// their order.
    ///
    /// # Errors
    ///
    /// [`StepError`] if there is not an action for each game, or one cannot be
    /// played; then no game has moved and nothing has been written.
    ///
    /// # Panics
    ///
    /// If `rows` are not those of [`Arrays::new`] for this batch.
    pub fn step(&mut self, actions: &[i64], rows: Rows<'_>) -> Result<Vec<Final>, StepError> {
        assert!(rows.fit(&self.game, self.len), "these are not the arrays of this batch");
        self.check(actions)?;
        let games = GROUP * BLOCK;
        let (game, options) = (&self.game, &self.options);
        let groups = self
            .blocks
            .chunks_mut(GROUP)
            .zip(actions.chunks(games))
            .zip(rows.chunks(game, games))
            .enumerate()
            .map(|(index, ((blocks, actions), rows))| Step {
                game,
                options,
                first: index * games,
                blocks,
                actions,
                rows,
            });
        let mut finals = self.threads.map(groups, |group| Arch::new().dispatch(group)).concat();
        finals.sort_unstable_by_key(|last| last.game);
        Ok(finals)
    }

    /// Writes the board after each legal action of every game, as the player
    /// to move next sees it: `grids` is (n, actions, 2 * rows, columns). `legal`
    /// is (n, actions), false for all actions of a game that has ended; grids
    /// of actions that are not legal are left alone.
    ///
    /// # Panics
    ///
    /// If `grids` or `legal` have another length.
    pub fn afterstates(&self, grids: &mut [u8], legal: &mut [bool]) {
        let (holes, actions) = (self.game.rules().holes(), self.game.rules().num_actions());
        assert_eq!(grids.len(), self.len * actions * holes);
        assert_eq!(legal.len(), self.len * actions);
        legal.fill(false);
        for i in (0..self.len).filter(|&i| !self.ended(i)) {
            let position = self.position(i);
            for action in self.game.legal(&position).iter() {
                let mut after = position;
                self.game.play_unchecked(&mut after, action);
                let (mine, theirs) = (after.side(after.to_move), after.side(!after.to_move));
                let at = i * actions + action;
                legal[at] = true;
                write_grid(&mut grids[at * holes..(at + 1) * holes], &self.game, &mine, &theirs);
            }
        }
    }

    /// Plays `plies` uniformly random plies in every game and counts what came
    /// of it. Game `i` draws from the stream of `seed + i`. A game that ends
    /// starts again at once, with [`Autoreset::Disabled`] never.
    ///
    /// Asks `go_on` after every so many plies and returns `None` as soon as it
    /// says no; the games stay where they are then.
    pub fn rollout(
        &mut self,
        plies: u64,
        seed: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Counts> {
        // About a twentieth of a second on one thread.
        let at_once = (2_000_000 / self.len.max(1) as u64).clamp(1, 20_000);
        let mut streams: Vec<[Stream; BLOCK]> = (0..self.blocks.len() as u64)
            .map(|block| {
                std::array::from_fn(|lane| {
                    Stream::new(seed.wrapping_add(block * BLOCK as u64 + lane as u64))
                })
            })
            .collect();
        let mut counts = Counts::default();
        let mut left = plies;
        while left > 0 {
            if !go_on() {
                return None;
            }
            let plies = left.min(at_once);
            left -= plies;
            let (game, options, len) = (&self.game, &self.options, self.len);
            let groups =
                self.blocks.chunks_mut(GROUP).zip(streams.chunks_mut(GROUP)).enumerate().map(
                    |(index, (blocks, streams))| Rollout {
                        game,
                        options,
                        len: len - index * GROUP * BLOCK,
                        blocks,
                        streams,
                        plies,
                    },
                );
            for part in self.threads.map(groups, |group| Arch::new().dispatch(group)) {
                counts += part;
            }
        }
        Some(counts)
    }

    fn at(&self, i: usize) -> (&Block, usize) {
        assert!(i < self.len, "game {i} of {}", self.len);
        (&self.blocks[i / BLOCK], i % BLOCK)
    }

    /// Whether every action can be played, before any is.
    fn check(&mut self, actions: &[i64]) -> Result<(), StepError> {
        if actions.len() != self.len {
            return Err(StepError::Length { expected: self.len, found: actions.len() });
        }
        let (game, options) = (&self.game, &self.options);
        let groups = self.blocks.chunks(GROUP).zip(actions.chunks(GROUP * BLOCK)).enumerate().map(
            |(index, (blocks, actions))| Check {
                game,
                options,
                first: index * GROUP * BLOCK,
                blocks,
                actions,
            },
        );
        let refused = self.threads.map(groups, |group| Arch::new().dispatch(group));
        match refused.into_iter().flatten().min() {
            None => Ok(()),
            Some(game) if self.ended(game) => Err(StepError::Ended { game }),
            Some(game) => {
                let error = self.game.illegal(&self.position(game), actions[game]);
                Err(StepError::Illegal { game, error })
            }
        }
    }
}

/// The blocks that one thread takes at a time.
const GROUP: usize = 16;

/// Runs a task on some blocks. The code is compiled apart for the sizes of the
/// named standard boards, which makes it twice as fast for them, then for all
/// other boards of the standard game and for all other rules.
macro_rules! for_each_board {
    ($task:expr) => {{
        let rules = *$task.game.rules();
        match (rules.is_standard(), rules.rows(), rules.columns()) {
            (true, 3, 6) => $task.run::<true>(3, 6),
            (true, 3, 3) => $task.run::<true>(3, 3),
            (true, 2, 6) => $task.run::<true>(2, 6),
            (true, 2, 4) => $task.run::<true>(2, 4),
            (true, rows, columns) => $task.run::<true>(rows, columns),
            (false, rows, columns) => $task.run::<false>(rows, columns),
        }
    }};
}

/// For each game 255 if the action chosen in it is legal, else 0.
#[inline(always)]
fn legal_choices<const STANDARD: bool>(
    game: &Game,
    block: &Block,
    chosen: &Lanes,
    rows: usize,
    columns: usize,
) -> Lanes {
    let mut legal = [0; BLOCK];
    if STANDARD {
        for (column, lanes) in block.legal(rows, columns)[..columns].iter().enumerate() {
            for l in 0..BLOCK {
                legal[l] |= mask(lanes[l] != 0) & mask(chosen[l] == column as u8);
            }
        }
    } else {
        for l in 0..BLOCK {
            let shift = chosen[l].min(63); // no rules have an action 63
            legal[l] = mask(block.legal_of_one(l, game) >> shift & 1 == 1);
        }
    }
    legal
}

/// Writes the games of some blocks as they stand.
struct Observe<'a> {
    game: &'a Game,
    blocks: &'a [Block],
    rows: Rows<'a>,
}

impl WithSimd for Observe<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for_each_board!(self);
    }
}

impl Observe<'_> {
    #[inline(always)]
    fn run<const STANDARD: bool>(self, rows: usize, columns: usize) {
        for (block, mut chunk) in self.blocks.iter().zip(self.rows.chunks(self.game, BLOCK)) {
            chunk.write::<STANDARD>(self.game, block, &Outcome::NONE, rows, columns);
        }
    }
}

/// Looks for an action that cannot be played.
struct Check<'a> {
    game: &'a Game,
    options: &'a Options,
    first: usize,
    blocks: &'a [Block],
    actions: &'a [i64],
}

impl WithSimd for Check<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Option<usize> {
        for_each_board!(self)
    }
}

impl Check<'_> {
    /// The first game whose action cannot be played.
    #[inline(always)]
    fn run<const STANDARD: bool>(self, rows: usize, columns: usize) -> Option<usize> {
        let waits = mask(self.options.autoreset == Autoreset::Disabled);
        let actions_of_rules = self.game.rules().num_actions() as u8;
        for (index, (block, actions)) in
            self.blocks.iter().zip(self.actions.chunks(BLOCK)).enumerate()
        {
            let chosen = actions_of(actions);
            let mut playable = [0; BLOCK];
            if self.options.illegal == Illegal::Lose {
                for l in 0..BLOCK {
                    playable[l] = mask(chosen[l] < actions_of_rules);
                }
            } else {
                playable = legal_choices::<STANDARD>(self.game, block, &chosen, rows, columns);
            }
            for l in 0..BLOCK {
                playable[l] = select(block.ended[l], !waits, playable[l]);
            }
            if let Some(lane) = playable[..actions.len()].iter().position(|&yes| yes == 0) {
                return Some(self.first + index * BLOCK + lane);
            }
        }
        None
    }
}

/// One ply of the games of some blocks, with actions that can be played.
struct Step<'a> {
    game: &'a Game,
    options: &'a Options,
    first: usize,
    blocks: &'a mut [Block],
    actions: &'a [i64],
    rows: Rows<'a>,
}

impl WithSimd for Step<'_> {
    type Output = Vec<Final>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<Final> {
        for_each_board!(self)
    }
}

impl Step<'_> {
    #[inline(always)]
    fn run<const STANDARD: bool>(self, rows: usize, columns: usize) -> Vec<Final> {
        let seeds = self.game.rules().seeds() as u8;
        let actions_of_rules = self.game.rules().num_actions() as u8;
        let mut moves = [Moves::NONE; GROUP];
        let mut lost = [[0; BLOCK]; GROUP];
        let mut chosen = [[0; BLOCK]; GROUP];
        for (index, (block, actions)) in
            self.blocks.iter_mut().zip(self.actions.chunks(BLOCK)).enumerate()
        {
            chosen[index] = actions_of(actions);
            let moved = &mut moves[index].moved;
            for l in 0..BLOCK {
                moved[l] = mask(chosen[index][l] < actions_of_rules) & !block.ended[l];
            }
            if self.options.illegal == Illegal::Lose {
                let legal =
                    legal_choices::<STANDARD>(self.game, block, &chosen[index], rows, columns);
                for l in 0..BLOCK {
                    lost[index][l] = moved[l] & !legal[l];
                    moved[l] &= legal[l];
                }
            }
            self.options.restart(block, seeds, rows * columns);
        }
        play::<STANDARD>(self.game, self.blocks, &mut moves, &chosen, rows, columns);

        let mut finals = Vec::new();
        let chunks = self.rows.chunks(self.game, BLOCK);
        for (index, (block, mut rows_of_block)) in self.blocks.iter_mut().zip(chunks).enumerate() {
            let mut outcome = self.options.judge(block, &moves[index], &lost[index]);
            if self.options.autoreset == Autoreset::SameStep && block.ended != [0; BLOCK] {
                for lane in (0..BLOCK).filter(|&lane| block.ended[lane] != 0) {
                    finals.push(Final {
                        game: self.first + index * BLOCK + lane,
                        position: block.position(lane, columns),
                        winner: i64::from(outcome.winner[lane] as i8),
                        captured: outcome.captured[lane].into(),
                        laps: outcome.laps[lane].into(),
                    });
                    outcome.winner[lane] = NOBODY;
                    outcome.captured[lane] = 0;
                    outcome.laps[lane] = 0;
                }
                self.options.restart(block, seeds, rows * columns);
            }
            rows_of_block.write::<STANDARD>(self.game, block, &outcome, rows, columns);
        }
        finals
    }
}

/// Makes the moves of all games of the blocks whose `moved` is set.
#[inline(always)]
fn play<const STANDARD: bool>(
    game: &Game,
    blocks: &mut [Block],
    moves: &mut [Moves],
    chosen: &[Lanes],
    rows: usize,
    columns: usize,
) {
    if STANDARD {
        lanes::play(blocks, moves, chosen, rows, columns);
    } else {
        for ((block, moves), chosen) in blocks.iter_mut().zip(moves).zip(chosen) {
            lanes::play_one_by_one(game, block, moves, chosen);
        }
    }
}

/// Random plies of the games of some blocks.
struct Rollout<'a> {
    game: &'a Game,
    options: &'a Options,
    /// The games of the blocks, of which the last may be short.
    len: usize,
    blocks: &'a mut [Block],
    streams: &'a mut [[Stream; BLOCK]],
    plies: u64,
}

impl WithSimd for Rollout<'_> {
    type Output = Counts;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Counts {
        for_each_board!(self)
    }
}

impl Rollout<'_> {
    #[inline(always)]
    fn run<const STANDARD: bool>(self, rows: usize, columns: usize) -> Counts {
        let seeds = self.game.rules().seeds() as u8;
        let mut counts = Counts::default();
        let mut moves = [Moves::NONE; GROUP];
        let mut chosen = [[0; BLOCK]; GROUP];
        for _ in 0..self.plies {
            for (index, block) in self.blocks.iter_mut().enumerate() {
                self.options.restart(block, seeds, rows * columns);
                for l in 0..BLOCK {
                    let exists = mask(index * BLOCK + l < self.len);
                    moves[index].moved[l] = exists & !block.ended[l];
                }
                let streams = &mut self.streams[index];
                chosen[index] = if STANDARD {
                    lanes::random_columns(block, streams, rows, columns)
                } else {
                    lanes::random_actions(block, streams, self.game, &moves[index].moved)
                };
            }
            play::<STANDARD>(self.game, self.blocks, &mut moves, &chosen, rows, columns);
            for (block, moves) in self.blocks.iter_mut().zip(&moves) {
                let outcome = self.options.judge(block, moves, &[0; BLOCK]);
                counts.add(moves, &outcome);
                self.options.restart(block, seeds, rows * columns);
            }
        }
        counts
    }
}

/// What a rollout came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Plies played.
    pub plies: u64,
    /// Games won by South and by North.
    pub wins: [u64; 2],
    /// Games that the ply limit cut off.
    pub truncated: u64,
    /// Seeds captured.
    pub captured: u64,
    /// Laps sown.
    pub laps: u64,
}

impl Counts {
    #[inline(always)]
    fn add(&mut self, moves: &Moves, outcome: &Outcome) {
        let count = |lanes: &Lanes| lanes.iter().map(|&lane| u64::from(lane & 1)).sum::<u64>();
        let north = count(&outcome.winner.map(|winner| mask(winner == 1)));
        self.plies += count(&moves.moved);
        self.wins[0] += count(&outcome.terminated) - north;
        self.wins[1] += north;
        self.truncated += count(&outcome.truncated);
        self.captured += outcome.captured.iter().map(|&seeds| u64::from(seeds)).sum::<u64>();
        self.laps += outcome.laps.iter().map(|&laps| u64::from(laps)).sum::<u64>();
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.plies += other.plies;
        self.wins[0] += other.wins[0];
        self.wins[1] += other.wins[1];
        self.truncated += other.truncated;
        self.captured += other.captured;
        self.laps += other.laps;
    }
}

impl Options {
    /// Starts the games of a block again that have ended, unless that is left to
    /// the caller.
    #[inline(always)]
    fn restart(&self, block: &mut Block, seeds: u8, holes: usize) {
        if self.autoreset != Autoreset::Disabled && block.ended != [0; BLOCK] {
            let ended = block.ended;
            block.restart(&ended, seeds, holes);
        }
    }

    /// Tells what the moves of a block, and the illegal actions that have `lost`
    /// a game, came to, and which games have ended.
    #[inline(always)]
    fn judge(&self, block: &mut Block, moves: &Moves, lost: &Lanes) -> Outcome {
        let limit = self.max_plies.unwrap_or(u32::MAX);
        let mut over = [0; BLOCK];
        for l in 0..BLOCK {
            let played = u32::from(moves.moved[l] & 1);
            // No number of plies reaches the limit that stands for none.
            block.plies[l] = block.plies[l].saturating_add(played).min(u32::MAX - 1);
            over[l] = mask(block.plies[l] >= limit);
        }
        let mut outcome = Outcome { captured: moves.captured, laps: moves.laps, ..Outcome::NONE };
        for l in 0..BLOCK {
            // Who has moved is no longer to move; who has lost still is. The
            // winner is the player not to move in either case.
            let ended = moves.won[l] | lost[l];
            outcome.reward[l] = (moves.won[l] & 1) | lost[l];
            outcome.terminated[l] = ended;
            outcome.truncated[l] = over[l] & moves.moved[l] & !ended;
            outcome.winner[l] = select(ended, block.to_move[l] ^ 1, NOBODY);
            block.ended[l] |= ended | outcome.truncated[l];
        }
        outcome
    }
}

/// Writes a board as the owner of `mine` sees it.
fn write_grid(grid: &mut [u8], game: &Game, mine: &Side, theirs: &Side) {
    let (rows, columns) = (game.rules().rows(), game.rules().columns());
    let far = (0..rows).map(|row| theirs[row].swap_bytes() >> (8 * (8 - columns)));
    let near = (0..rows).rev().map(|row| mine[row]);
    for (out, row) in grid.chunks_exact_mut(columns).zip(far.chain(near)) {
        out.copy_from_slice(&row.to_le_bytes()[..columns]);
    }
}

/// Why a step of a batch was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepError {
    /// Not one action for each game.
    Length {
        /// The number of games.
        expected: usize,
        /// The number of actions.
        found: usize,
    },
    /// An action that is not legal in its game.
    Illegal {
        /// Which game of the batch.
        game: usize,
        /// What is wrong with the action.
        error: IllegalMove,
    },
    /// A game that has ended and was not started again.
    Ended {
        /// Which game of the batch.
        game: usize,
    },
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepError::Length { expected, found } => {
                write!(f, "{expected} games need {expected} actions, got {found}")
            }
            StepError::Illegal { game, error } => write!(f, "game {game}: {error}"),
            StepError::Ended { game } => write!(f, "game {game} is over and must be reset first"),
        }
    }
}

impl std::error::Error for StepError {}
