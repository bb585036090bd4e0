//! A block of games, sown side by side: one byte lane each.
//!
//! A block keeps a hole of all its games in one array of 64 bytes, so that every
//! question of a lap ("how many seeds fall here", "is this row empty") is a few
//! byte operations for 64 games at once. The loops over the lanes are written so
//! that the compiler turns each into vector instructions, on every processor and
//! without `unsafe`: no branch, no load under a condition, nothing wider than a
//! byte. A lap of 64 games costs about as much as ten laps of a single game, so
//! a block goes on while more than [`FEW`] of its games are sowing; those few are
//! then gathered from all blocks of a group.
//!
//! This is the standard game; the other rule sets are sown one game at a time.

use crate::game::Game;
use crate::position::{Direction, Player, Position, Side};
use crate::random::Stream;

/// The games of a block: the bytes of the widest vector register there is.
pub(crate) const BLOCK: usize = 64;
/// The most holes of a side.
const HOLES: usize = 24;
/// The most columns.
const COLUMNS: usize = 8;
/// A block with no more games still sowing hands them over to the pool.
const FEW: u32 = 10;
/// The pool takes in new games when no more than this are sowing.
const REFILL: u32 = 36;
/// It is faster to finish so few games one by one.
const LAST: u32 = 3;

/// Set in `start` of a game whose move is over: further than any hole, so that
/// no lap touches it.
const DONE: u8 = 128;
/// No action.
const NONE: u8 = 255;

/// A byte for every game of a block.
pub(crate) type Lanes = [u8; BLOCK];

/// The holes of one side in the order of its owner's circuit (R4).
type SideLanes = [Lanes; HOLES];

/// Up to [`BLOCK`] games, an array for each thing that is known of them. The
/// sides are kept as the mover's and the opponent's, not as South's and North's.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Block {
    mine: SideLanes,
    theirs: SideLanes,
    /// 0 for a player who is free, else 1 + the direction he is bound to (V2).
    pub(crate) my_bound: Lanes,
    pub(crate) their_bound: Lanes,
    /// 0 for South.
    pub(crate) to_move: Lanes,
    /// 255 for a game that has ended and not started again, else 0.
    pub(crate) ended: Lanes,
    pub(crate) plies: [u32; BLOCK],
}

impl Block {
    pub(crate) const EMPTY: Block = Block {
        mine: [[0; BLOCK]; HOLES],
        theirs: [[0; BLOCK]; HOLES],
        my_bound: [0; BLOCK],
        their_bound: [0; BLOCK],
        to_move: [0; BLOCK],
        ended: [0; BLOCK],
        plies: [0; BLOCK],
    };

    pub(crate) fn player(&self, lane: usize) -> Player {
        if self.to_move[lane] == 0 { Player::South } else { Player::North }
    }

    /// The position of one game.
    pub(crate) fn position(&self, lane: usize, columns: usize) -> Position {
        let to_move = self.player(lane);
        let mine = side(&self.mine, lane, columns);
        let theirs = side(&self.theirs, lane, columns);
        let bound = [self.my_bound[lane], self.their_bound[lane]].map(direction);
        let position = Position { sides: [mine, theirs], to_move: Player::South, bound };
        match to_move {
            Player::South => position,
            Player::North => position.swapped(),
        }
    }

    /// Puts one game on a position and leaves all else that is known of it.
    pub(crate) fn place(&mut self, lane: usize, position: &Position, columns: usize) {
        let mover = position.to_move();
        for (sides, player) in [(&mut self.mine, mover), (&mut self.theirs, !mover)] {
            let side = position.side(player);
            for (hole, lanes) in sides.iter_mut().enumerate().take(3 * columns) {
                let (row, column) = place(hole, columns);
                lanes[lane] = (side[row] >> (8 * column)) as u8;
            }
        }
        let number = |bound: Option<Direction>| bound.map_or(0, |direction| 1 + direction as u8);
        self.my_bound[lane] = number(position.bound(mover));
        self.their_bound[lane] = number(position.bound(!mover));
        self.to_move[lane] = mover.index() as u8;
    }

    /// The legal actions of one game by any rules, as bits.
    pub(crate) fn legal_of_one(&self, lane: usize, game: &Game) -> u64 {
        let mine = side(&self.mine, lane, game.rules().columns());
        game.legal_for(&mine, direction(self.my_bound[lane]))
    }

    /// Starts the games of `lanes` (255 or 0) anew with `seeds` in every hole.
    #[inline(always)]
    pub(crate) fn restart(&mut self, lanes: &Lanes, seeds: u8, holes: usize) {
        for side in [&mut self.mine, &mut self.theirs] {
            for hole in &mut side[..holes] {
                for l in 0..BLOCK {
                    hole[l] = select(lanes[l], seeds, hole[l]);
                }
            }
        }
        for bytes in [&mut self.my_bound, &mut self.their_bound, &mut self.to_move, &mut self.ended]
        {
            for l in 0..BLOCK {
                bytes[l] &= !lanes[l];
            }
        }
        for l in 0..BLOCK {
            self.plies[l] &= u32::from(lanes[l] != 0).wrapping_sub(1);
        }
    }

    /// The legal columns of the standard game (R3): 1 in the lane of a game in
    /// which the mover may choose the column, else 0.
    #[inline(always)]
    pub(crate) fn legal(&self, rows: usize, columns: usize) -> [Lanes; COLUMNS] {
        let mut legal = [[0; BLOCK]; COLUMNS];
        let mut behind = [0; BLOCK];
        for row in 0..rows {
            let mut any = [0; BLOCK];
            for column in 0..columns {
                let hole = &self.mine[circuit(columns, row, column)];
                for l in 0..BLOCK {
                    any[l] |= hole[l];
                    legal[column][l] |= hole[l].min(1) & !behind[l];
                }
            }
            for l in 0..BLOCK {
                behind[l] |= mask(any[l] != 0);
            }
        }
        legal
    }

    /// Writes the boards as the movers see them, a row of `grids` for each game.
    #[inline(always)]
    pub(crate) fn write_grids(&self, grids: &mut [u8], rows: usize, columns: usize) {
        let width = 2 * rows * columns;
        // From the top: the opponent's outer row reversed, ..., the mover's outer row.
        let shown = |place: usize| {
            let (row, column) = (place / columns, place % columns);
            match row.checked_sub(rows) {
                None => &self.theirs[circuit(columns, row, columns - 1 - column)],
                Some(row) => &self.mine[circuit(columns, rows - 1 - row, column)],
            }
        };
        if width < 8 {
            for (l, grid) in grids.chunks_exact_mut(width).enumerate() {
                for (place, seeds) in grid.iter_mut().enumerate() {
                    *seeds = shown(place)[l];
                }
            }
            return;
        }
        // Eight holes at a time; the last eight overlap the ones before if the
        // width is no multiple of eight.
        let mut words = [[0; BLOCK]; 2 * HOLES / 8];
        let at = |word: usize| (8 * word).min(width - 8);
        for word in 0..width.div_ceil(8) {
            let s = |place| shown(at(word) + place);
            words[word] = transposed([s(0), s(1), s(2), s(3), s(4), s(5), s(6), s(7)]);
        }
        for (l, grid) in grids.chunks_exact_mut(width).enumerate() {
            for word in 0..width.div_ceil(8) {
                grid[at(word)..at(word) + 8].copy_from_slice(&words[word][l].to_le_bytes());
            }
        }
    }
}

/// The move that every game of a block makes, while it is made and after.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Moves {
    /// 255 for a game that makes a move.
    pub(crate) moved: Lanes,
    /// The hole in which the next lap drops its first seed; with [`DONE`], the
    /// hole after the last one.
    start: Lanes,
    /// The seeds of the next lap. When the move is over they go back into the
    /// landing hole (R7, R10).
    hand: Lanes,
    pub(crate) laps: [u32; BLOCK],
    pub(crate) captured: Lanes,
    /// 255 for a mover who has taken the last seed (R10).
    pub(crate) won: Lanes,
}

impl Moves {
    pub(crate) const NONE: Moves = Moves {
        moved: [0; BLOCK],
        start: [DONE; BLOCK],
        hand: [0; BLOCK],
        laps: [0; BLOCK],
        captured: [0; BLOCK],
        won: [0; BLOCK],
    };
}

/// A legal column for every game of `asked`, all equally likely, drawn from its
/// own stream.
#[inline(always)]
pub(crate) fn random_columns(
    block: &Block,
    streams: &mut [Stream; BLOCK],
    asked: &Lanes,
    rows: usize,
    columns: usize,
) -> Lanes {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let words = transposed(block.legal(rows, columns).each_ref());
    let mut chosen = [0; BLOCK];
    for l in 0..BLOCK {
        // Byte c of `upto` is the number of legal columns from 0 to c.
        let upto = words[l].wrapping_mul(ONES);
        let mut stream = streams[l];
        let rank = 1 + u64::from(stream.below((upto >> 56) as u32));
        if asked[l] != 0 {
            streams[l] = stream;
        }
        // The first byte that is not below `rank`; they are all small.
        let reached = ((upto | (0x80 * ONES)) - rank * ONES) & (0x80 * ONES);
        chosen[l] = (reached.trailing_zeros() / 8) as u8;
    }
    chosen
}

/// As [`random_columns`] by any rules.
pub(crate) fn random_actions(
    block: &Block,
    streams: &mut [Stream; BLOCK],
    game: &Game,
    asked: &Lanes,
) -> Lanes {
    let mut chosen = [0; BLOCK];
    for lane in (0..BLOCK).filter(|&lane| asked[lane] != 0) {
        let mut legal = block.legal_of_one(lane, game);
        for _ in 0..streams[lane].below(legal.count_ones()) {
            legal &= legal - 1;
        }
        chosen[lane] = legal.trailing_zeros() as u8;
    }
    chosen
}

/// The actions of a block as bytes.
#[inline(always)]
pub(crate) fn actions_of(actions: &[i64]) -> Lanes {
    let mut bytes = [NONE; BLOCK];
    for (byte, &action) in bytes.iter_mut().zip(actions) {
        *byte = (action as u64).min(NONE.into()) as u8;
    }
    bytes
}

/// Makes the moves of all games in the blocks whose `moved` is set, by the
/// standard rules; the columns `chosen` must be legal for them.
#[inline(always)]
pub(crate) fn play(
    blocks: &mut [Block],
    moves: &mut [Moves],
    chosen: &[Lanes],
    rows: usize,
    columns: usize,
) {
    // Games that a block has handed over.
    let mut pending = Vec::with_capacity(blocks.len() * BLOCK);
    for (index, (block, moves)) in blocks.iter_mut().zip(&mut *moves).enumerate() {
        begin(block, moves, &chosen[index], rows, columns);
        while lap(block, moves, rows, columns) > FEW {}
        pending.extend(sowing(&moves.start).map(|lane| (index * BLOCK + lane) as u32));
    }
    finish(blocks, moves, &mut pending, rows, columns);
    for (block, moves) in blocks.iter_mut().zip(moves) {
        end(block, moves, rows * columns);
    }
}

/// As [`play`] by any rules, one game at a time.
pub(crate) fn play_one_by_one(game: &Game, block: &mut Block, moves: &mut Moves, chosen: &Lanes) {
    *moves = Moves { moved: moves.moved, ..Moves::NONE };
    for lane in (0..BLOCK).filter(|&lane| moves.moved[lane] != 0) {
        let columns = game.rules().columns();
        let mut position = block.position(lane, columns);
        let ply = game.play_unchecked(&mut position, chosen[lane].into());
        block.place(lane, &position, columns);
        moves.laps[lane] = ply.laps;
        moves.captured[lane] = ply.captured as u8; // no more than a board holds
        moves.won[lane] = mask(game.winner(&position).is_some());
    }
}

/// The movers lift the seeds of the holes they have chosen (R3).
#[inline(always)]
fn begin(block: &mut Block, moves: &mut Moves, column: &Lanes, rows: usize, columns: usize) {
    let holes = rows * columns;
    let mut behind = [0; BLOCK];
    for l in 0..BLOCK {
        behind[l] = !moves.moved[l];
    }
    let mut hand = [0; BLOCK];
    let mut start = [0; BLOCK];
    for row in 0..rows {
        let mut any = [0; BLOCK];
        for c in 0..columns {
            let i = circuit(columns, row, c);
            let hole = &mut block.mine[i];
            for l in 0..BLOCK {
                any[l] |= hole[l];
                let lifted = hole[l] & mask(column[l] == c as u8) & !behind[l];
                hand[l] |= lifted;
                hole[l] ^= lifted;
                start[l] |= mask(lifted != 0) & ((i + 1) % holes) as u8;
            }
        }
        for l in 0..BLOCK {
            behind[l] |= mask(any[l] != 0);
        }
    }
    for l in 0..BLOCK {
        start[l] |= DONE & mask(hand[l] == 0);
    }
    *moves = Moves { moved: moves.moved, start, hand, ..Moves::NONE };
}

/// One lap (R5) of every game of the block that is still sowing; returns how
/// many go on (R6, R9).
#[inline(always)]
fn lap(block: &mut Block, moves: &mut Moves, rows: usize, columns: usize) -> u32 {
    let holes = (rows * columns) as u8;
    let start = moves.start;
    let mut each = [0; BLOCK]; // seeds that every hole gets
    let mut next = [0; BLOCK];
    let mut landing = [0; BLOCK];
    for l in 0..BLOCK {
        let sowing = mask(start[l] < DONE);
        let hand = moves.hand[l] & sowing;
        let end = start[l].wrapping_add(hand % holes);
        // `x.min(x - holes)` in wrapping arithmetic is `x % holes` for x < 2 * holes.
        next[l] = select(sowing, end.min(end.wrapping_sub(holes)), start[l]);
        each[l] = (hand / holes).wrapping_add(u8::from(end >= holes) & sowing);
        landing[l] = next[l].wrapping_sub(1).min(next[l].wrapping_add(holes - 1)) | !sowing;
    }

    let mut landed = [0; BLOCK]; // seeds of the landing hole
    let mut inner = [0; BLOCK]; // first hole of the innermost row that holds any seed
    for row in 0..rows {
        let mut any = [0; BLOCK];
        for i in row * columns..(row + 1) * columns {
            let hole = &mut block.mine[i];
            let i = i as u8;
            for l in 0..BLOCK {
                // One seed more from `start` to the end of the circuit, one less from `next` on.
                let seeds = hole[l]
                    .wrapping_add(each[l])
                    .wrapping_sub(mask(i >= start[l]))
                    .wrapping_add(mask(i >= next[l]));
                let lifted = seeds & mask(landing[l] == i);
                landed[l] |= lifted;
                any[l] |= seeds;
                hole[l] = seeds ^ lifted;
            }
        }
        for l in 0..BLOCK {
            inner[l] = select(mask(any[l] != 0), (row * columns) as u8, inner[l]);
        }
    }

    // R8: the opponent's column that faces the landing hole, if it captures.
    let mut facing = [0; BLOCK];
    for l in 0..BLOCK {
        let along = landing[l].wrapping_sub(inner[l]);
        let captures = (along < columns as u8) & (landed[l] > 1);
        let middle = mask(inner[l] == columns as u8);
        facing[l] =
            select(middle, along, (columns as u8 - 1).wrapping_sub(along)) | mask(!captures);
    }
    let mut taken = [0; BLOCK];
    let mut left = [0u8; BLOCK]; // seeds of the opponent before the capture
    for row in (0..rows).rev() {
        let mut sum = [0u8; BLOCK];
        for column in 0..columns {
            let hole = &mut block.theirs[circuit(columns, row, column)];
            for l in 0..BLOCK {
                let captured = hole[l] & mask(facing[l] == column as u8);
                sum[l] = sum[l].wrapping_add(hole[l]);
                taken[l] |= captured;
                hole[l] ^= captured;
            }
        }
        for l in 0..BLOCK {
            left[l] = left[l].wrapping_add(sum[l]);
            facing[l] |= mask(sum[l] != 0);
        }
    }

    for l in 0..BLOCK {
        moves.laps[l] += u32::from(start[l] < DONE);
    }
    let mut sowing = 0u8;
    for l in 0..BLOCK {
        let sown = start[l] < DONE;
        let goes_on = (landed[l] > 1) & (left[l] != taken[l]);
        moves.start[l] = next[l] | (DONE & mask(!goes_on));
        moves.hand[l] = select(mask(sown), landed[l].wrapping_add(taken[l]), moves.hand[l]);
        moves.captured[l] = moves.captured[l].wrapping_add(taken[l]);
        moves.won[l] |= mask(sown & (left[l] == taken[l]));
        sowing += u8::from(goes_on);
    }
    sowing.into()
}

/// Brings the pending games to the end of their moves.
#[inline(always)]
fn finish(
    blocks: &mut [Block],
    moves: &mut [Moves],
    pending: &mut Vec<u32>,
    rows: usize,
    columns: usize,
) {
    if pending.len() > LAST as usize {
        pool(blocks, moves, pending, rows, columns);
    }
    for game in pending.drain(..) {
        let (index, lane) = (game as usize / BLOCK, game as usize % BLOCK);
        while moves[index].start[lane] < DONE {
            lap_of_one(&mut blocks[index], &mut moves[index], lane, rows, columns);
        }
    }
}

/// Brings all but [`LAST`] of the pending games to the end of their moves, in a
/// block of their own that takes in new games as others drop out.
#[inline(always)]
fn pool(
    blocks: &mut [Block],
    moves: &mut [Moves],
    pending: &mut Vec<u32>,
    rows: usize,
    columns: usize,
) {
    let holes = rows * columns;
    let at = |game: u32| (game as usize / BLOCK, game as usize % BLOCK);
    let (mut pool, mut pool_moves) = (Block::EMPTY, Moves::NONE);
    let mut games = [None; BLOCK];
    let mut enough = REFILL;
    while enough == REFILL {
        for lane in 0..BLOCK {
            if pool_moves.start[lane] < DONE {
                continue;
            }
            if let Some((index, home)) = games[lane].take() {
                copy(&pool, lane, &mut blocks[index], home, holes);
                copy_move(&pool_moves, lane, &mut moves[index], home);
            }
            if let Some((index, home)) = pending.pop().map(at) {
                games[lane] = Some((index, home));
                copy(&blocks[index], home, &mut pool, lane, holes);
                copy_move(&moves[index], home, &mut pool_moves, lane);
            }
        }
        if pending.is_empty() {
            enough = LAST;
        }
        while lap(&mut pool, &mut pool_moves, rows, columns) > enough {}
    }
    for (lane, game) in games.iter().enumerate() {
        if let Some((index, home)) = *game {
            copy(&pool, lane, &mut blocks[index], home, holes);
            copy_move(&pool_moves, lane, &mut moves[index], home);
            if pool_moves.start[lane] < DONE {
                pending.push((index * BLOCK + home) as u32);
            }
        }
    }
}

#[inline(always)]
fn copy(from: &Block, source: usize, to: &mut Block, target: usize, holes: usize) {
    for i in 0..holes {
        to.mine[i][target] = from.mine[i][source];
        to.theirs[i][target] = from.theirs[i][source];
    }
}

#[inline(always)]
fn copy_move(from: &Moves, source: usize, to: &mut Moves, target: usize) {
    to.start[target] = from.start[source];
    to.hand[target] = from.hand[source];
    to.laps[target] = from.laps[source];
    to.captured[target] = from.captured[source];
    to.won[target] = from.won[source];
}

/// [`lap`] for a single game.
fn lap_of_one(block: &mut Block, moves: &mut Moves, lane: usize, rows: usize, columns: usize) {
    let holes = rows * columns;
    let (mine, theirs) = (&mut block.mine, &mut block.theirs);
    let mut hole = usize::from(moves.start[lane]);
    for _ in 1..moves.hand[lane] {
        mine[hole][lane] += 1;
        hole = if hole + 1 == holes { 0 } else { hole + 1 };
    }
    mine[hole][lane] += 1;
    let inner =
        |side: &SideLanes| (0..holes).rev().find(|&i| side[i][lane] != 0).map(|i| i / columns);
    let mut goes_on = mine[hole][lane] > 1;
    let mut taken = 0;
    if goes_on
        && inner(mine) == Some(hole / columns)
        && let Some(row) = inner(theirs)
    {
        let (_, column) = place(hole, columns);
        let facing = circuit(columns, row, columns - 1 - column);
        taken = std::mem::take(&mut theirs[facing][lane]);
        moves.captured[lane] += taken;
        if inner(theirs).is_none() {
            moves.won[lane] = 255;
            goes_on = false;
        }
    }
    moves.hand[lane] = std::mem::take(&mut mine[hole][lane]) + taken;
    moves.laps[lane] += 1;
    moves.start[lane] = ((hole + 1) % holes) as u8 | (DONE & mask(!goes_on));
}

/// Lays the seeds in hand back into the landing holes and hands the turn over.
#[inline(always)]
fn end(block: &mut Block, moves: &Moves, holes: usize) {
    for i in 0..holes {
        let (mine, theirs) = (&mut block.mine[i], &mut block.theirs[i]);
        let next = DONE | ((i + 1) % holes) as u8;
        for l in 0..BLOCK {
            let seeds = mine[l].wrapping_add(moves.hand[l] & mask(moves.start[l] == next));
            mine[l] = select(moves.moved[l], theirs[l], seeds);
            theirs[l] = select(moves.moved[l], seeds, theirs[l]);
        }
    }
    for l in 0..BLOCK {
        block.to_move[l] ^= moves.moved[l] & 1;
    }
}

#[inline(always)]
pub(crate) fn mask(yes: bool) -> u8 {
    0u8.wrapping_sub(u8::from(yes))
}

/// `a` where `mask` is 255 and `b` where it is 0. A choice between two loads
/// would not be turned into vector instructions everywhere.
#[inline(always)]
pub(crate) fn select(mask: u8, a: u8, b: u8) -> u8 {
    (a & mask) | (b & !mask)
}

/// The lanes whose games are still sowing.
#[inline(always)]
fn sowing(start: &Lanes) -> impl Iterator<Item = usize> {
    let (words, _) = start.as_chunks();
    words.iter().enumerate().flat_map(|(index, word)| {
        let mut left = !u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        std::iter::from_fn(move || {
            let lane = left.trailing_zeros() as usize / 8;
            left &= left.wrapping_sub(1);
            (lane < 8).then_some(8 * index + lane)
        })
    })
}

/// Where a hole lies on the circuit (R4); within a row it is its own inverse.
#[inline(always)]
const fn circuit(columns: usize, row: usize, column: usize) -> usize {
    row * columns + if row % 2 == 1 { columns - 1 - column } else { column }
}

/// Row and column of a hole of the circuit; undoes [`circuit`].
const fn place(hole: usize, columns: usize) -> (usize, usize) {
    let row = hole / columns;
    (row, circuit(columns, row, hole % columns) % columns)
}

fn side(holes: &SideLanes, lane: usize, columns: usize) -> Side {
    let mut side = [0; 3];
    for (hole, lanes) in holes.iter().enumerate().take(3 * columns) {
        let (row, column) = place(hole, columns);
        side[row] |= u64::from(lanes[lane]) << (8 * column);
    }
    side
}

fn direction(bound: u8) -> Option<Direction> {
    match bound {
        0 => None,
        1 => Some(Direction::Regular),
        _ => Some(Direction::Mirrored),
    }
}

/// Byte `k` of word `l` is byte `l` of array `k`. In three stages, since the
/// compiler finds no vector instructions for it in one.
#[inline(always)]
pub(crate) fn transposed(bytes: [&Lanes; 8]) -> [u64; BLOCK] {
    let mut words = [0; BLOCK];
    let mut pairs = [[0u16; BLOCK]; 4];
    let mut fours = [[0u32; BLOCK]; 2];
    for k in 0..4 {
        for l in 0..BLOCK {
            pairs[k][l] = u16::from(bytes[2 * k][l]) | u16::from(bytes[2 * k + 1][l]) << 8;
        }
    }
    for k in 0..2 {
        for l in 0..BLOCK {
            fours[k][l] = u32::from(pairs[2 * k][l]) | u32::from(pairs[2 * k + 1][l]) << 16;
        }
    }
    for l in 0..BLOCK {
        words[l] = u64::from(fours[0][l]) | u64::from(fours[1][l]) << 32;
    }
    words
}
