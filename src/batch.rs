//! Many games of one rule set, stepped together into plain arrays.

use std::fmt;

use pulp::Arch;

use crate::game::{Game, IllegalMove};
use crate::lanes::{BLOCK, Block, mask};
use crate::policy::Policy;
use crate::position::{Player, Position};
use crate::random::Stream;
use crate::rows::{Rows, write_grid};
use crate::step::{Agents, Counts, GROUP, Group, Rollout, Seats, Turn};
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
    /// a limit; with an opponent it is cut off after his answer.
    pub max_plies: Option<u32>,
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

/// `n` games of one rule set, stepped together.
///
/// A step of the batch is one ply of every game, and each game writes its row
/// of the [`Arrays`](crate::Arrays). What a game does depends on its own position and action
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
    opponent: Opponent,
    /// Where the agent sits; `None` if that is drawn for each game.
    seat: Option<Player>,
    len: usize,
    blocks: Vec<Block>,
    /// As many as blocks if there is an opponent or a policy, else none.
    seats: Vec<Seats>,
    threads: Threads,
}

/// Who plays against the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opponent {
    /// Nobody: the agent plays both sides, a ply a step.
    #[default]
    Nobody,
    /// A policy. A step is the agent's ply and the answer to it.
    Policy(Policy),
    /// Somebody outside, who is asked for actions in the middle of a step.
    Outside,
}

/// The games of a batch at one time.
pub(crate) struct Saved {
    blocks: Vec<Block>,
    seats: Vec<Seats>,
}

impl Batch {
    /// `n` games at the start, stepped by as many threads as pay off.
    pub fn new(game: Game, n: usize, options: Options) -> Batch {
        let mut block = Block::EMPTY;
        for lane in 0..BLOCK {
            block.place(lane, &game.start(), game.rules().columns());
        }
        Batch {
            game,
            options,
            opponent: Opponent::Nobody,
            seat: None,
            len: n,
            blocks: vec![block; n.div_ceil(BLOCK)],
            seats: Vec::new(),
            threads: Threads::for_games(n),
        }
    }

    /// Puts an opponent into all games. The agent sits at `seat`, or where each
    /// game draws it at its start. The games are to be reset then, and
    /// [`Batch::reply`] called.
    pub fn set_opponent(&mut self, opponent: Opponent, seat: Option<Player>) {
        self.opponent = opponent;
        self.seat = seat;
        if opponent != Opponent::Nobody {
            self.make_seats();
        }
    }

    /// The opponent.
    pub fn opponent(&self) -> Opponent {
        self.opponent
    }

    /// Where the agent sits in game `i`, if there is an opponent.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn seat(&self, i: usize) -> Option<Player> {
        let seats = self.seats.get(i / BLOCK).filter(|_| self.opponent != Opponent::Nobody)?;
        Player::from_index(seats.agent[i % BLOCK].into())
    }

    /// Fixes what game `i` draws at random from now on: the seat, and what the
    /// opponent and policies leave to chance.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn seed(&mut self, i: usize, seed: u64) {
        self.make_seats();
        self.seats[i / BLOCK].streams[i % BLOCK] = Stream::new(seed);
    }

    /// Where game `i` stands in its random numbers, and a number to put it there.
    pub(crate) fn stream(&self, i: usize) -> Option<u64> {
        Some(self.seats.get(i / BLOCK)?.streams[i % BLOCK].state())
    }

    /// Puts game `i` where [`Batch::stream`] and [`Batch::seat`] say it was.
    pub(crate) fn restore_seat(&mut self, i: usize, stream: u64, agent: Player) {
        self.make_seats();
        self.seats[i / BLOCK].streams[i % BLOCK] = Stream::from_state(stream);
        self.seats[i / BLOCK].agent[i % BLOCK] = agent.index() as u8;
    }

    fn make_seats(&mut self) {
        if self.seats.is_empty() {
            let agent = self.seat.map_or(0, |seat| seat.index() as u8);
            let streams = [Stream::new(0); BLOCK];
            self.seats = vec![Seats { agent: [agent; BLOCK], streams }; self.blocks.len()];
        }
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
        n.div_ceil(BLOCK).checked_mul(size_of::<Block>() + size_of::<Seats>() + BLOCK * row)
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

    /// Starts game `i` anew from `position`, or from the start, and draws where
    /// the agent sits unless that is fixed. If somebody has won there the game
    /// has ended. With an opponent, [`Batch::reply`] is to follow.
    ///
    /// # Panics
    ///
    /// If there is no such game.
    pub fn reset(&mut self, i: usize, position: Option<&Position>) {
        let start = self.game.start();
        self.restore(i, position.unwrap_or(&start), 0, false);
        if let Some(seats) = self.seats.get_mut(i / BLOCK) {
            let agent = &mut seats.agent[i % BLOCK];
            *agent = match self.seat {
                Some(seat) => seat.index() as u8,
                None if self.opponent == Opponent::Nobody => 0,
                None => seats.streams[i % BLOCK].below(2) as u8,
            };
        }
    }

    /// Seats the agent in game `i` until it starts again.
    ///
    /// # Panics
    ///
    /// If there is no such game or no opponent.
    pub fn set_seat(&mut self, i: usize, seat: Player) {
        self.seats[i / BLOCK].agent[i % BLOCK] = seat.index() as u8;
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
    /// If `rows` are not those of [`Arrays::new`](crate::Arrays::new) for this batch.
    pub fn observe(&mut self, rows: Rows<'_>) {
        self.write(&self.turns(), rows);
    }

    /// Plays one ply in every game, and the opponent's answer to it if it is a
    /// policy, and returns the games that ended and were started again, which
    /// there are with [`Autoreset::SameStep`] only, in their order.
    ///
    /// # Errors
    ///
    /// [`StepError`] if there is not an action for each game, or one cannot be
    /// played; then no game has moved and nothing has been written.
    ///
    /// # Panics
    ///
    /// If `rows` are not those of [`Arrays::new`](crate::Arrays::new) for this batch.
    pub fn step(&mut self, actions: &[i64], rows: Rows<'_>) -> Result<Vec<Final>, StepError> {
        self.step_some(actions, None, rows)
    }

    /// As [`Batch::step`], but only in the games of `playing` if it is given; the
    /// others stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Batch::step`].
    ///
    /// # Panics
    ///
    /// Also if `playing` has not an entry for each game.
    pub fn step_some(
        &mut self,
        actions: &[i64],
        playing: Option<&[bool]>,
        rows: Rows<'_>,
    ) -> Result<Vec<Final>, StepError> {
        assert!(rows.fit(&self.game, self.len), "these are not the arrays of this batch");
        assert!(playing.is_none_or(|playing| playing.len() == self.len));
        let opponent = match self.opponent {
            Opponent::Policy(policy) => Some(policy),
            _ => None,
        };
        let game = self.game;
        let finals = self.check_and_run(
            actions,
            playing,
            rows.chunks(&game, GAMES),
            |group, agents, rows| group.step(agents, opponent, rows),
        )?;
        self.threads.stay_awake();
        Ok(finals)
    }

    /// Lets the opponent, if it is a policy, move where it is his turn: after a
    /// reset in the games where the agent sits second.
    pub fn reply(&mut self) {
        self.reply_by_policy(&mut self.turns());
    }

    /// Actions of a policy for the games of `games` that are open, 0 for the
    /// others.
    ///
    /// # Panics
    ///
    /// If `games` has not an entry for each game.
    pub fn choose(&mut self, policy: Policy, games: &[bool]) -> Vec<i64> {
        assert_eq!(games.len(), self.len);
        self.make_seats();
        let mut actions = vec![0; self.len];
        let parts = games.chunks(GAMES).zip(actions.chunks_mut(GAMES));
        self.run(parts, |mut group, (games, actions)| {
            group.choose(policy, games, actions);
            Vec::new()
        });
        actions
    }

    /// As many empty turns as groups.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        vec![Turn::NONE; self.blocks.len().div_ceil(GROUP)]
    }

    /// The first part of a step with an opponent outside: the agents' plies.
    pub(crate) fn agents(&mut self, actions: &[i64]) -> Result<Vec<Turn>, StepError> {
        let mut turns = self.turns();
        self.check_and_run(actions, None, turns.iter_mut(), |mut group, agents, turn| {
            group.agents(agents, turn);
            Vec::new()
        })?;
        Ok(turns)
    }

    /// The games that wait for the opponent.
    pub(crate) fn waiting(&self) -> Vec<usize> {
        let waits = |&i: &usize| {
            let (block, lane) = self.at(i);
            let agent = self.seats.get(i / BLOCK).map(|seats| seats.agent[lane]);
            block.ended[lane] == 0 && agent.is_some_and(|agent| agent != block.to_move[lane])
        };
        (0..self.len).filter(waits).collect()
    }

    /// The opponents' plies in the games that wait for them, with an action for
    /// each of those.
    pub(crate) fn replies(&mut self, actions: &[i64], turns: &mut [Turn]) -> Result<(), StepError> {
        let waiting = self.waiting();
        let mut all = vec![0; self.len];
        for (&i, &action) in waiting.iter().zip(actions) {
            let position = self.position(i);
            if !self.game.legal(&position).contains(action) {
                let error = self.game.illegal(&position, action);
                return Err(StepError::Illegal { game: i, error });
            }
            all[i] = action;
        }
        let parts = all.chunks(GAMES).zip(turns);
        self.run(parts, |mut group, (actions, turn)| {
            group.reply(actions, turn);
            Vec::new()
        });
        Ok(())
    }

    /// The same by the policy of the opponent, if it is one.
    pub(crate) fn reply_by_policy(&mut self, turns: &mut [Turn]) {
        if let Opponent::Policy(policy) = self.opponent {
            self.run(turns.iter_mut(), |mut group, turn| {
                group.reply_by(policy, turn);
                Vec::new()
            });
        }
    }

    /// The part of a step after the replies: games that have ended start again, if
    /// they do so at once.
    pub(crate) fn finish(&mut self, turns: &mut [Turn]) -> Vec<Final> {
        self.run(turns.iter_mut(), |mut group, turn| group.finish(turn))
    }

    /// The last part of a step, and of a reset: writes the rows.
    pub(crate) fn write(&mut self, turns: &[Turn], rows: Rows<'_>) {
        assert!(rows.fit(&self.game, self.len), "these are not the arrays of this batch");
        let game = self.game;
        let parts = turns.iter().zip(rows.chunks(&game, GAMES));
        self.run(parts, |mut group, (turn, rows)| {
            group.write(turn, rows);
            Vec::new()
        });
    }

    /// The games as they are now.
    pub(crate) fn save(&self) -> Saved {
        Saved { blocks: self.blocks.clone(), seats: self.seats.clone() }
    }

    /// Puts the games back to where they were.
    pub(crate) fn load(&mut self, saved: Saved) {
        self.blocks = saved.blocks;
        self.seats = saved.seats;
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
    /// starts again at once, with [`Autoreset::Disabled`] never. An opponent is not asked:
    /// such games are to be reset afterwards.
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

    /// As [`Batch::run`], with the actions of the agents in each group, once it is known
    /// that all of them can be played.
    fn check_and_run<T: Send>(
        &mut self,
        actions: &[i64],
        playing: Option<&[bool]>,
        parts: impl Iterator<Item = T>,
        work: impl Fn(Group<'_>, &Agents<'_>, T) -> Vec<Final> + Sync,
    ) -> Result<Vec<Final>, StepError> {
        if actions.len() != self.len {
            return Err(StepError::Length { expected: self.len, found: actions.len() });
        }
        let agents = actions.chunks(GAMES).enumerate().map(|(index, actions)| {
            let playing = playing.map(|playing| &playing[index * GAMES..][..actions.len()]);
            Agents::new(actions, playing)
        });
        let (groups, threads) = self.groups();
        let finals = threads.check_and_map(
            groups.zip(agents).zip(parts),
            |((group, agents), _)| group.check(agents),
            |((group, agents), part)| work(group, &agents, part),
        );
        match finals {
            Ok(finals) => Ok(in_order(finals)),
            Err(game) if self.ended(game) => Err(StepError::Ended { game }),
            Err(game) => {
                let error = self.game.illegal(&self.position(game), actions[game]);
                Err(StepError::Illegal { game, error })
            }
        }
    }

    /// Does a piece of work for each group, on the threads of the batch.
    fn run<T: Send>(
        &mut self,
        parts: impl Iterator<Item = T>,
        work: impl Fn(Group<'_>, T) -> Vec<Final> + Sync,
    ) -> Vec<Final> {
        let (groups, threads) = self.groups();
        in_order(threads.map(groups.zip(parts), |(group, part)| work(group, part)))
    }

    /// The groups to share out, and what to share them out to.
    fn groups(&mut self) -> (impl Iterator<Item = Group<'_>>, &mut Threads) {
        let answered = self.opponent != Opponent::Nobody;
        let Batch { game, options, seat, len, blocks, seats, threads, .. } = self;
        let (game, options, seat, len) = (&*game, &*options, *seat, *len);
        let mut seats = seats.chunks_mut(GROUP);
        let groups = blocks.chunks_mut(GROUP).enumerate().map(move |(index, blocks)| {
            let first = index * GAMES;
            Group {
                game,
                options,
                first,
                len: GAMES.min(len - first),
                blocks,
                seats: seats.next().unwrap_or_default(),
                seat,
                answered,
            }
        });
        (groups, threads)
    }
}

/// Finals that came from groups in any order, in the order of the games.
fn in_order(finals: Vec<Vec<Final>>) -> Vec<Final> {
    let mut finals = finals.concat();
    finals.sort_unstable_by_key(|last| last.game);
    finals
}

/// The games of a group.
const GAMES: usize = GROUP * BLOCK;

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
