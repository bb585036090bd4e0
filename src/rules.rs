//! Which game is played.

use std::fmt;

/// The most seeds a board may hold, so that the seeds of a hole fit in a byte.
pub const MAX_SEEDS: usize = 255;

/// Which game is played: the size of the board and the seeds it starts with.
///
/// `rows` is the number of rows *per side*, so that the six-row game has
/// `rows = 3`.
///
/// ```
/// use katro::Rules;
///
/// let rules = Rules::new(2, 4, 2)?;
/// assert_eq!(rules, Rules::named("katro-4x4")?);
/// assert_eq!(rules.total_seeds(), 32);
/// assert!(Rules::new(3, 8, 6).is_err()); // 288 seeds
/// # Ok::<(), katro::RulesError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    rows: u8,
    columns: u8,
    seeds: u8,
}

impl Rules {
    /// Standard Katro: six rows of six holes, two seeds in each (R1).
    pub const KATRO: Rules = Rules { rows: 3, columns: 6, seeds: 2 };

    /// The rule sets that have a name, with their names.
    pub const NAMED: [(&'static str, Rules); 4] = [
        ("katro", Rules::KATRO),
        ("katro-6x3", Rules { rows: 3, columns: 3, seeds: 2 }),
        ("katro-4x6", Rules { rows: 2, columns: 6, seeds: 2 }),
        ("katro-4x4", Rules { rows: 2, columns: 4, seeds: 2 }),
    ];

    /// Standard rules on a board of `rows` (1 to 3) rows per side, `columns`
    /// (1 to 8) and `seeds` (at least 1) in every hole at the start.
    ///
    /// # Errors
    ///
    /// [`RulesError`] if a number is out of its range or the board would hold
    /// more than [`MAX_SEEDS`] seeds.
    pub fn new(rows: i64, columns: i64, seeds: i64) -> Result<Rules, RulesError> {
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
        Ok(Rules { rows: rows as u8, columns: columns as u8, seeds: seeds as u8 })
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

    /// Holes of the whole board.
    pub fn holes(&self) -> usize {
        2 * self.rows() * self.columns()
    }

    /// Seeds on the whole board at the start; they never leave it (R1).
    pub fn total_seeds(&self) -> usize {
        self.holes() * self.seeds()
    }

    /// The size of the action space: an action is a column (R3).
    pub fn num_actions(&self) -> usize {
        self.columns()
    }

    /// The letter of an action's column from the mover's left, `a` onwards.
    ///
    /// `None` if `action` is not in the action space.
    pub fn action_name(&self, action: usize) -> Option<String> {
        (action < self.num_actions()).then(|| char::from(b'a' + action as u8).to_string())
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

/// Why numbers or a name do not make a rule set.
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
            RulesError::Unknown(name) => {
                let names: Vec<&str> = Rules::NAMED.iter().map(|&(name, _)| name).collect();
                write!(f, "unknown rules {name:?}, known are {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for RulesError {}
