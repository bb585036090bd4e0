//! The work of a step on some blocks of a batch, compiled for the vector
//! instructions that the machine has.

use std::ops::AddAssign;

use pulp::{Arch, Simd, WithSimd};

use crate::batch::{Autoreset, Final, Illegal, Options};
use crate::game::Game;
use crate::lanes::{self, BLOCK, Block, Lanes, Moves, actions_of, mask, select};
use crate::policy::{Chooser, Policy};
use crate::position::Player;
use crate::random::Stream;
use crate::rows::{NOBODY, Outcome, Rows};

/// The blocks that one thread takes at a time.
pub(crate) const GROUP: usize = 16;

/// Runs a task on some blocks. The code is compiled apart for the 6 x 6 board, which
/// makes it twice as fast there, then for the other boards of the standard game and
/// for all other rules.
macro_rules! for_each_board {
    ($task:expr) => {{
        let task = $task;
        let rules = *task.game.rules();
        match (rules.is_standard(), rules.rows(), rules.columns()) {
            (true, 3, 6) => task.run::<true>(3, 6),
            (true, rows, columns) => task.run::<true>(rows, columns),
            (false, rows, columns) => task.run::<false>(rows, columns),
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

/// Where the agent sits in the games of a block, and what the games draw their
/// random numbers from.
#[derive(Clone)]
pub(crate) struct Seats {
    /// 0 for South.
    pub(crate) agent: Lanes,
    pub(crate) streams: [Stream; BLOCK],
}

/// Some blocks of a batch, a task of one thread.
pub(crate) struct Group<'a> {
    pub(crate) game: &'a Game,
    pub(crate) options: &'a Options,
    /// The number of the first game in the batch.
    pub(crate) first: usize,
    /// The games, of which the last block may have few.
    pub(crate) len: usize,
    pub(crate) blocks: &'a mut [Block],
    /// Empty if there is neither an opponent nor a policy.
    pub(crate) seats: &'a mut [Seats],
    /// Where the agent sits; `None` if that is drawn for each game.
    pub(crate) seat: Option<Player>,
    /// Whether an opponent answers the plies of the agent.
    pub(crate) answered: bool,
}

/// The actions of the agents in a group.
pub(crate) struct Agents<'a> {
    actions: &'a [i64],
    /// The games that are to move; `None` for all.
    playing: Option<&'a [bool]>,
    /// The actions as [`Group::check`] read them. What it has not seen is not played,
    /// should somebody write to `actions` in the meantime.
    chosen: [Lanes; GROUP],
}

impl<'a> Agents<'a> {
    pub(crate) fn new(actions: &'a [i64], playing: Option<&'a [bool]>) -> Agents<'a> {
        Agents { actions, playing, chosen: [[0; BLOCK]; GROUP] }
    }

    /// 255 for the games of a block that are to move.
    #[inline(always)]
    fn plays(&self, index: usize) -> Lanes {
        let mut plays = [255; BLOCK];
        if let Some(playing) = self.playing {
            for (l, &yes) in playing[index * BLOCK..].iter().take(BLOCK).enumerate() {
                plays[l] = mask(yes);
            }
        }
        plays
    }
}

/// A step under way: what it has come to so far in every block of a group.
#[derive(Clone)]
pub(crate) struct Turn {
    outcomes: [Outcome; GROUP],
    /// The games whose agent has moved, and that have not started again since.
    moved: [Lanes; GROUP],
}

impl Turn {
    pub(crate) const NONE: Turn =
        Turn { outcomes: [Outcome::NONE; GROUP], moved: [[0; BLOCK]; GROUP] };
}

/// A part of a step that is compiled for vector instructions. Each is a call of its
/// own, since every copy of the sowing is compiled for every board and machine.
enum Part<'a, 'b> {
    /// Reads the actions of the agents, and finds the first game whose action cannot be played.
    Check(&'a mut Agents<'b>, &'a mut Option<usize>),
    /// The plies of the agents.
    Agent(&'a Agents<'b>, &'a mut Turn),
    /// Actions of a policy in the games asked for.
    Choose(Policy, &'a [Lanes; GROUP], &'a mut [Lanes; GROUP]),
    /// The plies of the opponents in the games that wait for them.
    Reply(&'a [Lanes; GROUP], &'a mut Turn),
    /// The rows of the arrays.
    Write(&'a Turn, Rows<'a>),
}

/// A part of a step to do for a group.
struct Task<'a, 'b, 'c> {
    game: &'a Game,
    group: &'a mut Group<'b>,
    part: Part<'a, 'c>,
}

impl WithSimd for Task<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for_each_board!(self);
    }
}

impl Task<'_, '_, '_> {
    #[inline(always)]
    fn run<const STANDARD: bool>(self, rows: usize, columns: usize) {
        let group = self.group;
        match self.part {
            Part::Check(agents, refused) => {
                *refused = group.refused::<STANDARD>(agents, rows, columns);
            }
            Part::Agent(agents, turn) => {
                group.play_agents::<STANDARD>(agents, turn, rows, columns);
            }
            Part::Choose(policy, asked, chosen) => {
                *chosen = group.choose_by::<STANDARD>(policy, asked, rows, columns);
            }
            Part::Reply(chosen, turn) => {
                group.play_replies::<STANDARD>(chosen, turn, rows, columns);
            }
            Part::Write(turn, out) => group.write_rows::<STANDARD>(turn, out, rows, columns),
        }
    }
}

impl Group<'_> {
    fn task(&mut self, part: Part<'_, '_>) {
        Arch::new().dispatch(Task { game: self.game, group: self, part });
    }

    /// Reads the actions and tells the first game of the batch whose action cannot be played.
    pub(crate) fn check(&mut self, agents: &mut Agents<'_>) -> Option<usize> {
        let mut refused = None;
        self.task(Part::Check(agents, &mut refused));
        refused
    }

    /// A whole step; the opponent, if there is one, is a policy.
    pub(crate) fn step(
        mut self,
        agents: &Agents<'_>,
        opponent: Option<Policy>,
        rows: Rows<'_>,
    ) -> Vec<Final> {
        let mut turn = Turn::NONE;
        self.agents(agents, &mut turn);
        if let Some(policy) = opponent {
            self.reply_by(policy, &mut turn);
        }
        let finals = self.finish(&mut turn);
        if let Some(policy) = opponent
            && !finals.is_empty()
        {
            self.reply_by(policy, &mut turn);
        }
        self.task(Part::Write(&turn, rows));
        finals
    }

    /// The plies of the agents, by actions that can be played.
    pub(crate) fn agents(&mut self, agents: &Agents<'_>, turn: &mut Turn) {
        self.task(Part::Agent(agents, turn));
    }

    /// The plies of the opponents in games that wait for them, by an action for
    /// every game.
    pub(crate) fn reply(&mut self, actions: &[i64], turn: &mut Turn) {
        let mut chosen = [[0; BLOCK]; GROUP];
        for (chosen, actions) in chosen.iter_mut().zip(actions.chunks(BLOCK)) {
            *chosen = actions_of(actions);
        }
        self.task(Part::Reply(&chosen, turn));
    }

    /// The same by a policy.
    pub(crate) fn reply_by(&mut self, policy: Policy, turn: &mut Turn) {
        let mut waiting = [[0; BLOCK]; GROUP];
        for index in 0..self.blocks.len() {
            waiting[index] = self.waiting(index);
        }
        if waiting != [[0; BLOCK]; GROUP] {
            let mut chosen = waiting;
            self.task(Part::Choose(policy, &waiting, &mut chosen));
            self.task(Part::Reply(&chosen, turn));
        }
    }

    /// Writes the rows of the games.
    pub(crate) fn write(&mut self, turn: &Turn, rows: Rows<'_>) {
        self.task(Part::Write(turn, rows));
    }

    /// Actions of a policy for the games of `games` that are open.
    pub(crate) fn choose(&mut self, policy: Policy, games: &[bool], actions: &mut [i64]) {
        let mut asked = [[0; BLOCK]; GROUP];
        for (game, _) in games.iter().enumerate().filter(|&(_, &asked)| asked) {
            asked[game / BLOCK][game % BLOCK] = !self.blocks[game / BLOCK].ended[game % BLOCK];
        }
        let mut chosen = asked;
        self.task(Part::Choose(policy, &asked, &mut chosen));
        for (game, action) in actions.iter_mut().enumerate() {
            let (block, lane) = (game / BLOCK, game % BLOCK);
            *action = i64::from(chosen[block][lane] & asked[block][lane]);
        }
    }
}

impl Group<'_> {
    /// Reads the actions of the agents and looks for one that cannot be played.
    #[inline(always)]
    fn refused<const STANDARD: bool>(
        &self,
        agents: &mut Agents<'_>,
        rows: usize,
        columns: usize,
    ) -> Option<usize> {
        let waits = mask(self.options.autoreset == Autoreset::Disabled);
        let actions_of_rules = self.game.rules().num_actions() as u8;
        let mut refused = None;
        for (index, block) in self.blocks.iter().enumerate() {
            let actions = agents.actions.chunks(BLOCK).nth(index).unwrap_or_default();
            let chosen = actions_of(actions);
            agents.chosen[index] = chosen;
            let mut playable = [0; BLOCK];
            if self.options.illegal == Illegal::Lose {
                for l in 0..BLOCK {
                    playable[l] = mask(chosen[l] < actions_of_rules);
                }
            } else {
                playable = legal_choices::<STANDARD>(self.game, block, &chosen, rows, columns);
            }
            let plays = agents.plays(index);
            for l in 0..BLOCK {
                playable[l] = select(block.ended[l], !waits, playable[l]) | !plays[l];
            }
            let lane = playable[..actions.len()].iter().position(|&yes| yes == 0);
            refused = refused.or(lane.map(|lane| self.first + index * BLOCK + lane));
        }
        refused
    }

    /// The agents' plies, by actions that can be played.
    #[inline(always)]
    fn play_agents<const STANDARD: bool>(
        &mut self,
        agents: &Agents<'_>,
        turn: &mut Turn,
        rows: usize,
        columns: usize,
    ) {
        let chosen = &agents.chosen;
        let actions_of_rules = self.game.rules().num_actions() as u8;
        let mut moves = [Moves::NONE; GROUP];
        let mut lost = [[0; BLOCK]; GROUP];
        for index in 0..self.blocks.len() {
            let block = &self.blocks[index];
            let (moved, plays) = (&mut moves[index].moved, agents.plays(index));
            for l in 0..BLOCK {
                // Lanes without a game have no action.
                moved[l] = mask(chosen[index][l] < actions_of_rules) & !block.ended[l] & plays[l];
            }
            if self.options.illegal == Illegal::Lose {
                let legal =
                    legal_choices::<STANDARD>(self.game, block, &chosen[index], rows, columns);
                for l in 0..BLOCK {
                    lost[index][l] = moved[l] & !legal[l];
                    moved[l] &= legal[l];
                }
            }
            if self.options.autoreset != Autoreset::Disabled {
                self.restart(index, rows * columns);
            }
        }
        play::<STANDARD>(self.game, self.blocks, &mut moves, chosen, rows, columns);
        for (index, block) in self.blocks.iter_mut().enumerate() {
            // An opponent is to answer before a game is cut off: else its last position
            // would be the opponent's to play, and its value of the other sign.
            let may_be_cut_off = [mask(!self.answered); BLOCK];
            turn.outcomes[index] =
                judge(self.options, block, &moves[index], &lost[index], &may_be_cut_off);
            for l in 0..BLOCK {
                turn.moved[index][l] = moves[index].moved[l] | lost[index][l];
            }
        }
    }

    /// The games of a block that wait for the opponent.
    fn waiting(&self, index: usize) -> Lanes {
        let (block, seats) = (&self.blocks[index], &self.seats[index]);
        let mut waiting = [0; BLOCK];
        for l in 0..BLOCK {
            let exists = mask(index * BLOCK + l < self.len);
            waiting[l] = exists & !block.ended[l] & mask(block.to_move[l] != seats.agent[l]);
        }
        waiting
    }

    /// The opponents' plies, by legal actions.
    #[inline(always)]
    fn play_replies<const STANDARD: bool>(
        &mut self,
        chosen: &[Lanes; GROUP],
        turn: &mut Turn,
        rows: usize,
        columns: usize,
    ) {
        let mut moves = [Moves::NONE; GROUP];
        for index in 0..self.blocks.len() {
            moves[index].moved = self.waiting(index);
        }
        play::<STANDARD>(self.game, self.blocks, &mut moves, chosen, rows, columns);
        for (index, block) in self.blocks.iter_mut().enumerate() {
            let (outcome, moved) = (&mut turn.outcomes[index], &turn.moved[index]);
            // A game that has only just started is not cut off before the agent has moved.
            let reply = judge(self.options, block, &moves[index], &[0; BLOCK], moved);
            for l in 0..BLOCK {
                // The opponent's win is the agent's loss. A game that has only just
                // started gives no reward, whatever its first ply.
                let counts = moves[index].moved[l] & moved[l];
                outcome.reward[l] |= reply.terminated[l] & counts;
                outcome.terminated[l] |= reply.terminated[l] & counts;
                outcome.truncated[l] |= reply.truncated[l] & counts;
                outcome.winner[l] = select(reply.terminated[l], reply.winner[l], outcome.winner[l]);
            }
        }
    }

    /// Actions of a policy for the games of `asked`.
    #[inline(always)]
    fn choose_by<const STANDARD: bool>(
        &mut self,
        policy: Policy,
        asked: &[Lanes; GROUP],
        rows: usize,
        columns: usize,
    ) -> [Lanes; GROUP] {
        let mut chosen = [[0; BLOCK]; GROUP];
        match policy {
            Policy::Random if STANDARD => {
                for (index, block) in self.blocks.iter().enumerate() {
                    let streams = &mut self.seats[index].streams;
                    chosen[index] =
                        lanes::random_columns(block, streams, &asked[index], rows, columns);
                }
            }
            Policy::Greedy if STANDARD => {
                let mut captured = Vec::new();
                for column in 0..columns {
                    let mut trial = self.blocks.to_vec();
                    let mut moves = [Moves::NONE; GROUP];
                    for (index, block) in self.blocks.iter().enumerate() {
                        let legal = block.legal(rows, columns)[column];
                        for l in 0..BLOCK {
                            moves[index].moved[l] = asked[index][l] & mask(legal[l] != 0);
                        }
                    }
                    let everywhere = [[column as u8; BLOCK]; GROUP];
                    lanes::play(&mut trial, &mut moves, &everywhere, rows, columns);
                    captured.push(moves);
                }
                for (index, seats) in self.seats.iter_mut().enumerate() {
                    for lane in (0..BLOCK).filter(|&lane| asked[index][lane] != 0) {
                        let moves = captured.iter().map(|moves| &moves[index]);
                        chosen[index][lane] = most_captured(moves, lane, &mut seats.streams[lane]);
                    }
                }
            }
            _ => {
                let mut chooser = Chooser::new(policy, self.game);
                for (index, block) in self.blocks.iter().enumerate() {
                    let streams = &mut self.seats[index].streams;
                    for lane in (0..BLOCK).filter(|&lane| asked[index][lane] != 0) {
                        let position = block.position(lane, columns);
                        let action = chooser.choose(self.game, &position, &mut streams[lane]);
                        chosen[index][lane] = action as u8;
                    }
                }
            }
        }
        chosen
    }

    /// Starts the games that have ended again, if they do so in the same step,
    /// and returns how they ended.
    pub(crate) fn finish(&mut self, turn: &mut Turn) -> Vec<Final> {
        let (rows, columns) = (self.game.rules().rows(), self.game.rules().columns());
        let mut finals = Vec::new();
        if self.options.autoreset != Autoreset::SameStep {
            return finals;
        }
        for index in 0..self.blocks.len() {
            let block = &self.blocks[index];
            if block.ended == [0; BLOCK] {
                continue;
            }
            let (outcome, moved) = (&mut turn.outcomes[index], &mut turn.moved[index]);
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
                moved[lane] = 0;
            }
            self.restart(index, rows * columns);
        }
        finals
    }

    /// Starts the games of a block again that have ended.
    #[inline(always)]
    fn restart(&mut self, index: usize, holes: usize) {
        let block = &mut self.blocks[index];
        if block.ended == [0; BLOCK] {
            return;
        }
        let ended = block.ended;
        block.restart(&ended, self.game.rules().seeds() as u8, holes);
        if let (Some(seats), None) = (self.seats.get_mut(index), self.seat) {
            for lane in (0..BLOCK).filter(|&lane| ended[lane] != 0) {
                seats.agent[lane] = seats.streams[lane].below(2) as u8;
            }
        }
    }

    /// Writes the rows of the games.
    #[inline(always)]
    fn write_rows<const STANDARD: bool>(
        &self,
        turn: &Turn,
        out: Rows<'_>,
        rows: usize,
        columns: usize,
    ) {
        let chunks = out.chunks(self.game, BLOCK);
        for ((block, outcome), mut chunk) in self.blocks.iter().zip(&turn.outcomes).zip(chunks) {
            chunk.write::<STANDARD>(self.game, block, outcome, rows, columns);
        }
    }
}

/// The column of the moves, one for each in order, that captured the most seeds;
/// drawn from `stream` if there are several.
fn most_captured<'a>(
    moves: impl Iterator<Item = &'a Moves> + Clone,
    lane: usize,
    stream: &mut Stream,
) -> u8 {
    let legal = moves
        .enumerate()
        .filter(|(_, moves)| moves.moved[lane] != 0)
        .map(|(column, moves)| (moves.captured[lane], column as u8));
    let most = legal.clone().map(|(captured, _)| captured).max().unwrap_or(0);
    let best = legal.filter(|&(captured, _)| captured == most).map(|(_, column)| column);
    let nth = stream.below(best.clone().count() as u32) as usize;
    best.clone().nth(nth).unwrap_or_default()
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

/// Tells what the moves of a block, and the illegal actions that have `lost` a
/// game, came to, and which games have ended; the ply limit ends those that
/// `may_be_cut_off`.
#[inline(always)]
fn judge(
    options: &Options,
    block: &mut Block,
    moves: &Moves,
    lost: &Lanes,
    may_be_cut_off: &Lanes,
) -> Outcome {
    let limit = options.max_plies.unwrap_or(u32::MAX);
    let mut over = [0; BLOCK];
    for l in 0..BLOCK {
        let played = u32::from(moves.moved[l] & 1);
        // No number of plies reaches the limit that stands for none.
        block.plies[l] = block.plies[l].saturating_add(played).min(u32::MAX - 1);
        over[l] = mask(block.plies[l] >= limit) & may_be_cut_off[l];
    }
    let mut outcome = Outcome { captured: moves.captured, laps: moves.laps, ..Outcome::NONE };
    for l in 0..BLOCK {
        // Who has moved is no longer to move; who has lost still is. The winner is
        // the player not to move in either case.
        let ended = moves.won[l] | lost[l];
        outcome.reward[l] = (moves.won[l] & 1) | lost[l];
        outcome.terminated[l] = ended;
        outcome.truncated[l] = over[l] & moves.moved[l] & !ended;
        outcome.winner[l] = select(ended, block.to_move[l] ^ 1, NOBODY);
        block.ended[l] |= ended | outcome.truncated[l];
    }
    outcome
}

/// Random plies of the games of some blocks.
pub(crate) struct Rollout<'a> {
    pub(crate) game: &'a Game,
    pub(crate) options: &'a Options,
    /// The games of the blocks, of which the last may be short.
    pub(crate) len: usize,
    pub(crate) blocks: &'a mut [Block],
    pub(crate) streams: &'a mut [[Stream; BLOCK]],
    pub(crate) plies: u64,
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
                if self.options.autoreset != Autoreset::Disabled {
                    let ended = block.ended;
                    block.restart(&ended, seeds, rows * columns);
                }
                for l in 0..BLOCK {
                    let exists = mask(index * BLOCK + l < self.len);
                    moves[index].moved[l] = exists & !block.ended[l];
                }
                let streams = &mut self.streams[index];
                chosen[index] = if STANDARD {
                    lanes::random_columns(block, streams, &moves[index].moved, rows, columns)
                } else {
                    lanes::random_actions(block, streams, self.game, &moves[index].moved)
                };
            }
            play::<STANDARD>(self.game, self.blocks, &mut moves, &chosen, rows, columns);
            for (block, moves) in self.blocks.iter_mut().zip(&moves) {
                let outcome = judge(self.options, block, moves, &[0; BLOCK], &[255; BLOCK]);
                counts.add(moves, &outcome);
                if self.options.autoreset != Autoreset::Disabled {
                    let ended = block.ended;
                    block.restart(&ended, seeds, rows * columns);
                }
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
