//! The seeds on the board and whose turn it is: plain data.

use std::ops::Not;

/// One of the two players. South sits at the bottom and moves first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Player {
    /// Player 0.
    #[default]
    South = 0,
    /// Player 1.
    North = 1,
}

impl Player {
    /// Player 0 or 1; `None` for any other number.
    pub fn from_index(index: i64) -> Option<Player> {
        match index {
            0 => Some(Player::South),
            1 => Some(Player::North),
            _ => None,
        }
    }

    /// 0 for South, 1 for North.
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Not for Player {
    type Output = Player;

    /// The opponent.
    fn not(self) -> Player {
        match self {
            Player::South => Player::North,
            Player::North => Player::South,
        }
    }
}

/// The seeds of one player: a word per row (outer, middle, inner), a byte per
/// hole, the lowest byte for the column at the owner's left hand. Rows and
/// columns that a smaller board does not have hold no seeds.
pub type Side = [u64; 3];

/// A hole of one side as `row * 8 + column`, both as its owner counts them, so
/// that `hole & 7` is a byte of the word `hole >> 3` of a [`Side`].
pub(crate) type SideHole = u8;

pub(crate) fn seeds_in(side: &Side, hole: SideHole) -> u64 {
    side[usize::from(hole >> 3)] >> (8 * (hole & 7)) & 0xff
}

/// The row nearest the owner that holds a seed; the inner row of three if none.
pub(crate) fn outermost(side: &Side) -> usize {
    if side[0] != 0 {
        0
    } else if side[1] != 0 {
        1
    } else {
        2
    }
}

/// The row nearest the opponent that holds a seed; the outer row if none.
pub(crate) fn innermost(side: &Side) -> usize {
    if side[2] != 0 {
        2
    } else if side[1] != 0 {
        1
    } else {
        0
    }
}

pub(crate) fn is_empty(side: &Side) -> bool {
    (side[0] | side[1] | side[2]) == 0
}

/// The seeds of a side, of which a board holds too few to overflow a byte.
pub(crate) fn total(side: &Side) -> u64 {
    let columns = side[0].wrapping_add(side[1]).wrapping_add(side[2]);
    columns.wrapping_mul(0x0101_0101_0101_0101) >> 56
}

/// A bit for every byte of `row` that is not zero.
pub(crate) fn occupied(row: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of every byte that is not zero ...
    let nonzero = (((row & !HIGH) + !HIGH) | row) & HIGH;
    // ... gathered: the product moves the low bit of byte i to bit 56 + i.
    (nonzero >> 7 & LOW).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// A direction of sowing (R4, V1), as its owner sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// R4's circuit: the outer row from left to right.
    Regular = 0,
    /// Its mirror image: the outer row from right to left.
    Mirrored = 1,
}

/// The seeds of both sides, the player to move, and the directions to which the
/// players are bound, where the rules have such a thing (V2).
///
/// A position belongs to the [`Game`](crate::Game) that made it, which knows
/// the size of the board and answers every question about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    pub(crate) sides: [Side; 2],
    pub(crate) to_move: Player,
    pub(crate) bound: [Option<Direction>; 2],
}

impl Position {
    /// The player whose turn it is.
    pub fn to_move(&self) -> Player {
        self.to_move
    }

    /// The seeds of one player, a byte per hole; see [`Side`].
    pub fn side(&self, player: Player) -> Side {
        self.sides[player.index()]
    }

    /// The direction that a player's first sowing has bound him to (V2).
    pub fn bound(&self, player: Player) -> Option<Direction> {
        self.bound[player.index()]
    }

    /// The same board seen from the other seat: each player gets the seeds, the
    /// turn and the direction of the other.
    pub fn swapped(&self) -> Position {
        Position {
            sides: [self.sides[1], self.sides[0]],
            to_move: !self.to_move,
            bound: [self.bound[1], self.bound[0]],
        }
    }
}
