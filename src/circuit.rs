//! The path of sowing (R4), compiled into a table of whole handfuls.

use std::sync::OnceLock;

use crate::position::{Direction, Side, SideHole};

/// What one handful does: the seeds it adds to each row and where its last one falls.
#[derive(Clone, Copy)]
pub(crate) struct Sowing {
    pub(crate) add: Side,
    pub(crate) landing: SideHole,
}

/// 32 holes (of which a side has at most 24) times 256 numbers of seeds: powers
/// of two, so that an index made of two bytes needs no bounds check.
const HANDFULS: usize = 32 * 256;

/// The circuit of one size of board as a table of handfuls.
pub(crate) struct Circuit {
    sowings: Box<[Sowing; HANDFULS]>,
}

impl Circuit {
    /// The circuit of boards with `rows` rows per side and `columns` columns,
    /// made on first use and kept for the life of the process.
    pub(crate) fn of_size(rows: usize, columns: usize, direction: Direction) -> &'static Circuit {
        static CIRCUITS: [[OnceLock<Circuit>; 24]; 2] =
            [const { [const { OnceLock::new() }; 24] }; 2];
        CIRCUITS[direction as usize][(rows - 1) * 8 + columns - 1]
            .get_or_init(|| Circuit::new(rows, columns, direction))
    }

    fn new(rows: usize, columns: usize, direction: Direction) -> Circuit {
        // R4: outer row from left to right, middle row from right to left,
        // inner row from left to right; V1: mirrored, but the rows in the same
        // order.
        let path: Vec<SideHole> = (0..rows)
            .flat_map(|row| {
                (0..columns).map(move |step| {
                    let rightwards = (row % 2 == 0) == (direction == Direction::Regular);
                    let column = if rightwards { step } else { columns - 1 - step };
                    (8 * row + column) as SideHole
                })
            })
            .collect();

        let mut sowings: Box<[Sowing; HANDFULS]> =
            vec![Sowing { add: [0; 3], landing: 0 }; HANDFULS]
                .try_into()
                .unwrap_or_else(|_| unreachable!("the vector has HANDFULS entries"));
        for (start, &hole) in path.iter().enumerate() {
            let mut sowing = Sowing { add: [0; 3], landing: hole };
            for seeds in 0..256 {
                sowings[usize::from(hole) << 8 | seeds] = sowing;
                // R5: no hole is skipped, not even the one the lap started from.
                sowing.landing = path[(start + seeds + 1) % path.len()];
                let row = &mut sowing.add[usize::from(sowing.landing >> 3)];
                // Only a lap that no board can hold would carry into the next byte.
                *row = row.wrapping_add(1 << (8 * (sowing.landing & 7)));
            }
        }
        Circuit { sowings }
    }

    /// The lap that sows `seeds` (at most 255) from `hole`.
    #[inline(always)]
    pub(crate) fn sowing(&self, hole: SideHole, seeds: u64) -> &Sowing {
        &self.sowings[usize::from(hole & 31) << 8 | usize::from(seeds as u8)]
    }
}
