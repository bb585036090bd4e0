//! Which game is played.

use std::fmt;

/// The most seeds a board may hold, so that the seeds of a hole fit in a byte.
pub const MAX_SEEDS: usize = 255;

/// How the direction of sowing is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum DirectionChoice {
    /// Not at all: everybody sows along R4's circuit.
    #[default]
    Fixed,
    /// At the start of every move (V1).
    PerMove,
    /// By a player's first sowing, for the whole game (V2).
    PerGame,
}

/// Steps that a player's last seed may take instead of being sown (V5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LastSeedSteps {
    /// To the next row inwards, in the same column.
    Straight,
    /// Straight, or with one column to the left or to the right.
    Diagonal,
}

/// The documented departures from the standard rules, all off by default.
///
/// V1 to V6 of the rules; what makes no sense together is refused by
/// [`Rules::with`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Switches {
    /// V1 and V2.
    pub direction: DirectionChoice,
    /// V3: only the inner row captures, and takes the first occupied hole of
    /// the opponent's column.
    pub fall_through: bool,
    /// V4: a last seed captures from an empty hole, not from an occupied one.
    pub capture_on_empty: bool,
    /// V5.
    pub last_seed_steps: Option<LastSeedSteps>,
    /// V6: any hole may be chosen, the inner row captures whole columns. Goes
    /// with [`DirectionChoice::PerGame`] and stands alone otherwise.
    pub boaoaka: bool,
}

impl Switches {
    const NONE: Switches = Switches {
        direction: DirectionChoice::Fixed,
        fall_through: false,
        capture_on_empty: false,
        last_seed_steps: None,
        boaoaka: false,
    };
}

/// Which game is played: the size of the board, the seeds it starts with, and
/// how the rules depart from the standard ones.
///
/// `rows` is the number of rows *per side*, so that the six-row game has
/// `rows = 3`.
///
/// ```
/// use katro::{DirectionChoice, Rules, Switches};
///
/// let rules = Rules::new(2, 4, 2)?;
/// assert_eq!(rules, Rules::named("katro-4x4")?);
/// assert_eq!(rules.total_seeds(), 32);
/// assert!(Rules::new(3, 8, 6).is_err()); // 288 seeds
///
/// let either_way = Switches { direction: DirectionChoice::PerMove, ..Switches::default() };
/// assert_eq!(Rules::with(2, 4, 2, either_way)?.num_actions(), 8);
/// # Ok::<(), katro::RulesError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    rows: u8,
    columns: u8,
    seeds: u8,
    switches: Switches,
}

const fn standard(rows: u8, columns: u8) -> Rules {
    Rules { rows, columns, seeds: 2, switches: Switches::NONE }
}

impl Rules {
    /// Standard Katro: six rows of six holes, two seeds in each (R1).
    pub const KATRO: Rules = standard(3, 6);

    /// The rule sets that have a name, with their names.
    pub const NAMED: [(&'static str, Rules); 8] = [
        ("katro", Rules::KATRO),
        ("katro-6x3", standard(3, 3)),
        ("katro-4x6", standard(2, 6)),
        ("katro-4x4", standard(2, 4)),
        (
            "katro-wikipedia",
            Rules {
                switches: Switches {
                    direction: DirectionChoice::PerMove,
                    capture_on_empty: true,
                    ..Switches::NONE
                },
                ..Rules::KATRO
            },
        ),
        (
            "katro-ludii",
            Rules {
                switches: Switches {
                    direction: DirectionChoice::PerMove,
                    fall_through: true,
                    last_seed_steps: Some(LastSeedSteps::Straight),
                    ..Switches::NONE
                },
                ..Rules::KATRO
            },
        ),
        (
            "katro-fieldnotes",
            Rules {
                switches: Switches {
                    direction: DirectionChoice::PerGame,
                    fall_through: true,
                    last_seed_steps: Some(LastSeedSteps::Straight),
                    ..Switches::NONE
                },
                ..Rules::KATRO
            },
        ),
        (
            "katra-boaoaka",
            Rules {
                switches: Switches {
                    direction: DirectionChoice::PerGame,
                    boaoaka: true,
                    ..Switches::NONE
                },
                ..standard(2, 8)
            },
        ),
    ];

    /// Standard rules on a board of `rows` (1 to 3) rows per side, `columns`
    /// (1 to 8) and `seeds` (at least 1) in every hole at the start.
    ///
    /// # Errors
    ///
    /// [`RulesError`] if a number is out of its range or the board would hold
    /// more than [`MAX_SEEDS`] seeds.
    pub fn new(rows: i64, columns: i64, seeds: i64) -> Result<Rules, RulesError> {
        Rules::with(rows, columns, seeds, Switches::NONE)
    }

    /// As [`Rules::new`], with departures from the standard rules.
    ///
    /// # Errors
    ///
    /// Also if the switches make no sense together.
    pub fn with(
        rows: i64,
        columns: i64,
        seeds: i64,
        switches: Switches,
    ) -> Result<Rules, RulesError> {
        if !(1..=3).contains(&rows) {
            return Err(RulesError::Rows(rows));
        }
        if !(1..=8).contains(&columns) {
            return Err(RulesError::Columns(columns));
        }
        if seeds < 1 {
            return Err(RulesError::Seeds(seeds));
        }
        if seeds.saturating_mul(2 * rows * columns) > MAX_SEEDS as i64 {
            return Err(RulesError::TooManySeeds { rows, columns, seeds });
        }
        if switches.boaoaka {
            let alone =
                Switches { boaoaka: true, direction: DirectionChoice::PerGame, ..Switches::NONE };
            if switches != alone {
                return Err(RulesError::BoaoakaStandsAlone);
            }
        }
        Ok(Rules { rows: rows as u8, columns: columns as u8, seeds: seeds as u8, switches })
    }

    /// The rule set called `name`.
    ///
    /// # Errors
    ///
    /// [`RulesError::Unknown`] if no rule set has that name.
    pub fn named(name: &str) -> Result<Rules, RulesError> {
        Rules::NAMED
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, rules)| rules)
            .ok_or_else(|| RulesError::Unknown(name.to_owned()))
    }

    /// The name of this rule set, if it has one.
    pub fn name(&self) -> Option<&'static str> {
        Rules::NAMED.iter().find(|(_, rules)| rules == self).map(|&(name, _)| name)
    }

    /// The rules to assume for a board of `rows` per side and `columns`: the
    /// standard ones with two seeds a hole.
    ///
    /// # Errors
    ///
    /// As [`Rules::new`].
    pub fn for_board(rows: i64, columns: i64) -> Result<Rules, RulesError> {
        Rules::new(rows, columns, 2)
    }

    /// Rows per side, 1 to 3.
    pub fn rows(&self) -> usize {
        self.rows.into()
    }

    /// Holes per row, 1 to 8.
    pub fn columns(&self) -> usize {
        self.columns.into()
    }

    /// Seeds in every hole at the start.
    pub fn seeds(&self) -> usize {
        self.seeds.into()
    }

    /// How the rules depart from the standard ones.
    pub fn switches(&self) -> Switches {
        self.switches
    }

    /// Holes of the whole board.
    pub fn holes(&self) -> usize {
        2 * self.rows() * self.columns()
    }

    /// Seeds on the whole board at the start; they never leave it (R1).
    pub fn total_seeds(&self) -> usize {
        self.holes() * self.seeds()
    }

    /// Whether no switch is on.
    pub fn is_standard(&self) -> bool {
        self.switches == Switches::NONE
    }

    /// Whether a position remembers in which direction each player sows (V2).
    pub fn binds(&self) -> bool {
        self.switches.direction == DirectionChoice::PerGame
    }

    /// Whether every move ends by itself (R11); if not, a limit ends it (V4).
    pub fn every_move_ends(&self) -> bool {
        !self.switches.capture_on_empty
    }

    /// The holes a move may start from, as far as the action tells them apart:
    /// a column (R3), or any hole of the side (V6).
    pub(crate) fn starts(&self) -> usize {
        if self.switches.boaoaka { self.rows() * self.columns() } else { self.columns() }
    }

    /// The directions a move may start in.
    pub(crate) fn directions(&self) -> usize {
        if self.switches.direction == DirectionChoice::Fixed { 1 } else { 2 }
    }

    /// Where the steps of V5 lead: columns to the right.
    pub(crate) fn steps(&self) -> &'static [i8] {
        match self.switches.last_seed_steps {
            None => &[],
            Some(LastSeedSteps::Straight) => &[0],
            Some(LastSeedSteps::Diagonal) => &[0, -1, 1],
        }
    }

    /// The size of the action space.
    ///
    /// An action is a column, counted from the mover's left (R3), or with V6 a
    /// hole, `row * columns + column`. Where the mover has a choice of
    /// direction the same again in the mirrored one; then the steps of V5.
    pub fn num_actions(&self) -> usize {
        self.starts() * self.directions() + self.steps().len()
    }

    /// How an action is written: the letter of its column (with V6 also the
    /// number of its row, 1 for the outer one), then, where there is a choice,
    /// `>` for R4's direction or `<` for the mirrored one. Steps are `step`,
    /// `step-left` and `step-right`.
    ///
    /// `None` if `action` is not in the action space.
    pub fn action_name(&self, action: usize) -> Option<String> {
        let (starts, directions) = (self.starts(), self.directions());
        if action >= starts * directions {
            return self.steps().get(action - starts * directions).map(|step| match step {
                0 => "step".to_owned(),
                -1 => "step-left".to_owned(),
                _ => "step-right".to_owned(),
            });
        }
        let start = action % starts;
        let mut name = char::from(b'a' + (start % self.columns()) as u8).to_string();
        if self.switches.boaoaka {
            name += &(start / self.columns() + 1).to_string();
        }
        if directions == 2 {
            name.push(if action < starts { '>' } else { '<' });
        }
        Some(name)
    }

    /// The action that [`Rules::action_name`] writes as `text`.
    pub fn parse_action(&self, text: &str) -> Option<usize> {
        (0..self.num_actions()).find(|&action| self.action_name(action).as_deref() == Some(text))
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::KATRO
    }
}

/// Why numbers, switches or a name do not make a rule set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RulesError {
    /// Rows per side outside 1 to 3.
    Rows(i64),
    /// Columns outside 1 to 8.
    Columns(i64),
    /// Fewer than one seed a hole.
    Seeds(i64),
    /// More than [`MAX_SEEDS`] seeds on the board.
    TooManySeeds {
        /// Rows per side.
        rows: i64,
        /// Holes per row.
        columns: i64,
        /// Seeds per hole.
        seeds: i64,
    },
    /// V6 with another switch, or without the direction of V2.
    BoaoakaStandsAlone,
    /// No rule set has this name.
    Unknown(String),
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RulesError::Rows(rows) => write!(f, "rows per side must be 1 to 3, got {rows}"),
            RulesError::Columns(columns) => write!(f, "columns must be 1 to 8, got {columns}"),
            RulesError::Seeds(seeds) => write!(f, "seeds per hole must be at least 1, got {seeds}"),
            RulesError::TooManySeeds { rows, columns, seeds } => write!(
                f,
                "a board of 2 x {rows} x {columns} holes with {seeds} seeds each holds more than {MAX_SEEDS} seeds"
            ),
            RulesError::BoaoakaStandsAlone => f.write_str(
                "boaoaka has its own captures and a direction per game, and goes with no other switch",
            ),
            RulesError::Unknown(name) => {
                let names: Vec<&str> = Rules::NAMED.iter().map(|&(name, _)| name).collect();
                write!(f, "unknown rules {name:?}, known are {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for RulesError {}
