//! Many games of one rule set, stepped together into plain arrays.

use std::fmt;

use crate::game::{Game, IllegalMove};
use crate::position::{Player, Position, Side, is_empty, occupied, outermost};

/// Games that are kept, and stepped, together.
pub(crate) const BLOCK: usize = 64;

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
        }
    }

    /// Whether these are arrays for `n` games.
    fn fit(&self, game: &Game, n: usize) -> bool {
        self.observation.len() == n * game.rules().holes()
            && self.action_mask.len() == n * game.rules().num_actions()
            && self.reward.len() == n
            && self.terminated.len() == n
            && self.truncated.len() == n
            && self.to_move.len() == n
            && self.winner.len() == n
            && self.captured.len() == n
            && self.laps.len() == n
    }
}

/// The part of [`Arrays`] that belongs to some consecutive games.
struct Rows<'a> {
    observation: &'a mut [u8],
    action_mask: &'a mut [i8],
    reward: &'a mut [f64],
    terminated: &'a mut [bool],
    truncated: &'a mut [bool],
    to_move: &'a mut [i64],
    winner: &'a mut [i64],
    captured: &'a mut [i64],
    laps: &'a mut [i64],
}

impl<'a> Rows<'a> {
    /// The rows of every block in turn.
    fn blocks(game: &Game, arrays: &'a mut Arrays) -> impl Iterator<Item = Rows<'a>> {
        let (holes, actions) = (game.rules().holes(), game.rules().num_actions());
        let mut observation = arrays.observation.chunks_mut(BLOCK * holes);
        let mut action_mask = arrays.action_mask.chunks_mut(BLOCK * actions);
        let mut reward = arrays.reward.chunks_mut(BLOCK);
        let mut terminated = arrays.terminated.chunks_mut(BLOCK);
        let mut truncated = arrays.truncated.chunks_mut(BLOCK);
        let mut to_move = arrays.to_move.chunks_mut(BLOCK);
        let mut winner = arrays.winner.chunks_mut(BLOCK);
        let mut captured = arrays.captured.chunks_mut(BLOCK);
        let mut laps = arrays.laps.chunks_mut(BLOCK);
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
            })
        })
    }
}

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

/// Up to [`BLOCK`] games, an array for each thing that is known of them. The
/// sides are kept as the mover and the opponent, not as South and North.
#[derive(Clone)]
struct Block {
    len: usize,
    mine: [[u64; BLOCK]; 3],
    theirs: [[u64; BLOCK]; 3],
    plies: [u32; BLOCK],
    to_move: [u8; BLOCK],
    ended: [bool; BLOCK],
}

impl Block {
    fn new(len: usize, start: &Position) -> Block {
        let mut block = Block {
            len,
            mine: [[0; BLOCK]; 3],
            theirs: [[0; BLOCK]; 3],
            plies: [0; BLOCK],
            to_move: [0; BLOCK],
            ended: [false; BLOCK],
        };
        for i in 0..BLOCK {
            block.set(i, start);
        }
        block
    }

    fn sides(&self, i: usize) -> (Side, Side) {
        let side = |rows: &[[u64; BLOCK]; 3]| [rows[0][i], rows[1][i], rows[2][i]];
        (side(&self.mine), side(&self.theirs))
    }

    fn player(&self, i: usize) -> Player {
        if self.to_move[i] == 0 { Player::South } else { Player::North }
    }

    fn position(&self, i: usize) -> Position {
        let (mine, theirs) = self.sides(i);
        let to_move = self.player(i);
        let sides = match to_move {
            Player::South => [mine, theirs],
            Player::North => [theirs, mine],
        };
        Position { sides, to_move }
    }

    /// Puts a game on `position` and leaves its counters alone.
    fn place(&mut self, i: usize, position: &Position) {
        let mover = position.to_move;
        for row in 0..3 {
            self.mine[row][i] = position.side(mover)[row];
            self.theirs[row][i] = position.side(!mover)[row];
        }
        self.to_move[i] = mover.index() as u8;
    }

    /// Starts a game from `position`.
    fn set(&mut self, i: usize, position: &Position) {
        self.place(i, position);
        self.plies[i] = 0;
        self.ended[i] = position.side_is_empty();
    }

    fn legal(&self, i: usize) -> u64 {
        let (mine, _) = self.sides(i);
        occupied(mine[outermost(&mine)])
    }
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
/// batch.step(&[0, 1, 2], &mut arrays)?;
/// assert_eq!(arrays.laps, [7, 8, 7]);
/// assert_eq!(arrays.to_move, [1, 1, 1]);
/// # Ok::<(), katro::StepError>(())
/// ```
#[derive(Clone)]
pub struct Batch {
    game: Game,
    options: Options,
    start: Position,
    len: usize,
    blocks: Vec<Block>,
}

impl Batch {
    /// `n` games at the start.
    pub fn new(game: Game, n: usize, options: Options) -> Batch {
        let start = game.start();
        let blocks =
            (0..n).step_by(BLOCK).map(|first| Block::new(BLOCK.min(n - first), &start)).collect();
        Batch { game, options, start, len: n, blocks }
    }

    /// The memory that `n` games and the arrays of one step take, in bytes;
    /// `None` if it cannot be counted.
    pub fn bytes(game: &Game, n: usize) -> Option<usize> {
        let rules = game.rules();
        let row = rules.holes() + rules.num_actions() + 5 * size_of::<i64>() + 2;
        n.checked_mul(row + size_of::<Block>() / BLOCK)?.checked_add(size_of::<Block>())
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
        self.blocks[i / BLOCK].position(i % BLOCK)
    }

    /// Whether game `i` has ended and not started again.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn ended(&self, i: usize) -> bool {
        self.blocks[i / BLOCK].ended[i % BLOCK]
    }

    /// The plies played in game `i` since it started.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn plies(&self, i: usize) -> u32 {
        self.blocks[i / BLOCK].plies[i % BLOCK]
    }

    /// Starts game `i` anew from `position`, or from the start. If somebody has
    /// won there the game has ended.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn reset(&mut self, i: usize, position: Option<&Position>) {
        self.blocks[i / BLOCK].set(i % BLOCK, position.unwrap_or(&self.start));
    }

    /// Puts game `i` into a state it was in before, as [`Batch::position`],
    /// [`Batch::plies`] and [`Batch::ended`] tell it.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn restore(&mut self, i: usize, position: &Position, plies: u32, ended: bool) {
        let (block, i) = (&mut self.blocks[i / BLOCK], i % BLOCK);
        block.set(i, position);
        block.plies[i] = plies;
        block.ended[i] |= ended;
    }

    /// Writes every game as a reset leaves it: no reward, nothing captured,
    /// open.
    ///
    /// # Panics
    ///
    /// If `arrays` are not those of [`Arrays::new`] for this batch.
    pub fn observe(&self, arrays: &mut Arrays) {
        assert!(arrays.fit(&self.game, self.len), "these are not the arrays of this batch");
        for (block, mut rows) in self.blocks.iter().zip(Rows::blocks(&self.game, arrays)) {
            for i in 0..block.len {
                rows.reset(i);
                rows.write(i, &self.game, block);
            }
        }
    }

    /// Plays one ply in every game and returns the games that ended and were
    /// started again, which there are with [`Autoreset::SameStep`] only.
    ///
    /// # Errors
    ///
    /// [`StepError`] if there is not an action for each game, or one cannot be
    /// played; then no game has moved and nothing has been written.
    ///
    /// # Panics
    ///
    /// If `arrays` are not those of [`Arrays::new`] for this batch.
    pub fn step(&mut self, actions: &[i64], arrays: &mut Arrays) -> Result<Vec<Final>, StepError> {
        assert!(arrays.fit(&self.game, self.len), "these are not the arrays of this batch");
        self.check(actions)?;
        let mut finals = Vec::new();
        let actions = actions.chunks(BLOCK);
        let rows = Rows::blocks(&self.game, arrays);
        for (index, ((block, actions), mut rows)) in
            self.blocks.iter_mut().zip(actions).zip(rows).enumerate()
        {
            for (i, &action) in actions.iter().enumerate() {
                if block.ended[i] {
                    block.set(i, &self.start);
                    rows.reset(i);
                } else if let Some(mut last) =
                    self.options.step(&self.game, block, action, i, &mut rows)
                {
                    last.game = index * BLOCK + i;
                    finals.push(last);
                    block.set(i, &self.start);
                    (rows.winner[i], rows.captured[i], rows.laps[i]) = (-1, 0, 0);
                }
                rows.write(i, &self.game, block);
            }
        }
        Ok(finals)
    }

    /// Writes the board after each legal action of every game, as the player
    /// to move next sees it: `grids` is (n, actions, 2 * rows, columns). Rows
    /// of illegal actions, and of games that have ended, are left alone.
    ///
    /// # Panics
    ///
    /// If `grids` has not `n * actions * holes` entries.
    pub fn afterstates(&self, grids: &mut [u8]) {
        let (holes, actions) = (self.game.rules().holes(), self.game.rules().num_actions());
        assert_eq!(grids.len(), self.len * actions * holes);
        for (game, grids) in grids.chunks_mut(actions * holes).enumerate() {
            if self.ended(game) {
                continue;
            }
            let position = self.position(game);
            for action in self.game.legal(&position).iter() {
                let mut after = position;
                self.game.play_unchecked(&mut after, action);
                let (mine, theirs) = (after.side(after.to_move), after.side(!after.to_move));
                let grid = &mut grids[action * holes..(action + 1) * holes];
                write_grid(grid, &self.game, &mine, &theirs);
            }
        }
    }

    /// Whether every action can be played, before any is.
    fn check(&self, actions: &[i64]) -> Result<(), StepError> {
        if actions.len() != self.len {
            return Err(StepError::Length { expected: self.len, found: actions.len() });
        }
        let space = 0..self.game.rules().num_actions() as i64;
        for (game, &action) in actions.iter().enumerate() {
            let (block, i) = (&self.blocks[game / BLOCK], game % BLOCK);
            if block.ended[i] {
                match self.options.autoreset {
                    Autoreset::Disabled => return Err(StepError::Ended { game }),
                    _ => continue,
                }
            }
            let playable = match self.options.illegal {
                Illegal::Lose => space.contains(&action),
                Illegal::Refuse => space.contains(&action) && block.legal(i) >> action & 1 == 1,
            };
            if !playable {
                let error = self.game.illegal(&block.position(i), action);
                return Err(StepError::Illegal { game, error });
            }
        }
        Ok(())
    }
}

impl Options {
    /// Plays one ply of an open game and writes what it came to; if the game
    /// ended and is to start again at once, returns how it ended.
    fn step(
        &self,
        game: &Game,
        block: &mut Block,
        action: i64,
        i: usize,
        rows: &mut Rows<'_>,
    ) -> Option<Final> {
        let mut position = block.position(i);
        let mover = position.to_move;
        let legal = block.legal(i) >> action & 1 == 1;
        rows.reset(i);
        if legal {
            let ply = game.play_unchecked(&mut position, action as usize);
            block.place(i, &position);
            block.plies[i] = block.plies[i].saturating_add(1);
            rows.captured[i] = ply.captured.into();
            rows.laps[i] = ply.laps.into();
            if is_empty(&position.side(!mover)) {
                rows.winner[i] = mover.index() as i64;
                rows.reward[i] = 1.0;
            }
        } else {
            rows.winner[i] = (!mover).index() as i64;
            rows.reward[i] = -1.0;
        }
        rows.terminated[i] = rows.winner[i] >= 0;
        rows.truncated[i] =
            !rows.terminated[i] && self.max_plies.is_some_and(|limit| block.plies[i] >= limit);
        block.ended[i] = rows.terminated[i] || rows.truncated[i];
        (block.ended[i] && self.autoreset == Autoreset::SameStep).then(|| Final {
            game: i,
            position,
            winner: rows.winner[i],
            captured: rows.captured[i],
            laps: rows.laps[i],
        })
    }
}

impl Rows<'_> {
    /// Writes what a ply came to as a reset leaves it.
    fn reset(&mut self, i: usize) {
        self.reward[i] = 0.0;
        self.terminated[i] = false;
        self.truncated[i] = false;
        self.winner[i] = -1;
        self.captured[i] = 0;
        self.laps[i] = 0;
    }

    /// Writes the position of game `i`: what can be seen and played.
    fn write(&mut self, i: usize, game: &Game, block: &Block) {
        let (holes, actions) = (game.rules().holes(), game.rules().num_actions());
        let (mine, theirs) = block.sides(i);
        write_grid(&mut self.observation[i * holes..(i + 1) * holes], game, &mine, &theirs);
        let legal = if block.ended[i] { u64::MAX } else { block.legal(i) };
        for (action, mask) in
            self.action_mask[i * actions..(i + 1) * actions].iter_mut().enumerate()
        {
            *mask = (legal >> action & 1) as i8;
        }
        self.to_move[i] = block.to_move[i].into();
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
