//! Positions as text.
//!
//! Rows from the top of the drawn board to the bottom, separated by slashes,
//! the seeds of a row by commas, then a space and `S` or `N` for the player to
//! move: `2,2,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S`.

use std::fmt;

use crate::game::{Game, GridError};
use crate::position::{Player, Position};
use crate::rules::{Rules, RulesError};

impl Game {
    /// Writes `position` as text; [`Game::parse`] reads it back.
    pub fn notation(&self, position: &Position) -> String {
        let rows: Vec<String> = self
            .grid(position)
            .chunks(self.rules().columns())
            .map(|row| row.iter().map(u8::to_string).collect::<Vec<_>>().join(","))
            .collect();
        let player = match position.to_move() {
            Player::South => 'S',
            Player::North => 'N',
        };
        format!("{} {player}", rows.join("/"))
    }

    /// Reads a position of this game.
    ///
    /// ```
    /// use katro::{Game, Rules};
    ///
    /// let game = Game::new(Rules::named("katro-4x4")?);
    /// let text = "2,2,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S";
    /// assert_eq!(game.parse(text)?, game.start());
    /// assert_eq!(game.notation(&game.start()), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotationError`] if the text is no position, or one of another board.
    pub fn parse(&self, text: &str) -> Result<Position, NotationError> {
        let fields = Fields::read(text)?;
        let (rows, columns) = (2 * self.rules().rows(), self.rules().columns());
        if (fields.rows, fields.columns) != (rows, columns) {
            return Err(NotationError::Board {
                expected: (rows, columns),
                found: (fields.rows, fields.columns),
            });
        }
        self.position(&fields.grid, fields.to_move).map_err(NotationError::Grid)
    }

    /// Reads a position and takes the standard rules for a board of its size.
    ///
    /// # Errors
    ///
    /// [`NotationError`] if the text is no position.
    pub fn from_notation(text: &str) -> Result<(Game, Position), NotationError> {
        let fields = Fields::read(text)?;
        if fields.rows % 2 == 1 {
            return Err(NotationError::OddRows(fields.rows));
        }
        let rules = Rules::for_board(fields.rows as i64 / 2, fields.columns as i64)
            .map_err(NotationError::Rules)?;
        let game = Game::new(rules);
        let position = game.position(&fields.grid, fields.to_move).map_err(NotationError::Grid)?;
        Ok((game, position))
    }
}

/// The parts of a text of the right form, whatever the board.
struct Fields {
    rows: usize,
    columns: usize,
    grid: Vec<i64>,
    to_move: Player,
}

impl Fields {
    fn read(text: &str) -> Result<Fields, NotationError> {
        let (board, player) = text.split_once(' ').ok_or(NotationError::Parts)?;
        let to_move = match player {
            "S" => Player::South,
            "N" => Player::North,
            _ => return Err(NotationError::Player(player.to_owned())),
        };
        let mut grid = Vec::new();
        let mut columns = None;
        let mut rows = 0;
        for (index, row) in board.split('/').enumerate() {
            let before = grid.len();
            for count in row.split(',') {
                grid.push(read_count(count)?);
            }
            let width = grid.len() - before;
            if *columns.get_or_insert(width) != width {
                return Err(NotationError::Ragged { row: index + 1 });
            }
            rows = index + 1;
        }
        Ok(Fields { rows, columns: columns.unwrap_or(0), grid, to_move })
    }
}

/// Digits only: no sign, no space, no leading zero, so that a position has one
/// way to be written.
fn read_count(text: &str) -> Result<i64, NotationError> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    match text.parse() {
        Ok(seeds) if canonical => Ok(seeds),
        _ => Err(NotationError::Count(text.to_owned())),
    }
}

/// Why a text is not a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotationError {
    /// Not a board, a single space and a player.
    Parts,
    /// The player is neither `S` nor `N`.
    Player(String),
    /// Something else than a number of seeds between commas or slashes.
    Count(String),
    /// A row (counted from 1 at the top) longer or shorter than the first.
    Ragged {
        /// The row.
        row: usize,
    },
    /// A board whose rows cannot be shared out between two sides.
    OddRows(usize),
    /// Rows and columns of another board.
    Board {
        /// Rows and columns of the game's board.
        expected: (usize, usize),
        /// Rows and columns of the text.
        found: (usize, usize),
    },
    /// A board of a size that no rules have.
    Rules(RulesError),
    /// The numbers of seeds make no position.
    Grid(GridError),
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotationError::Parts => {
                f.write_str("a position is its rows, a space and S or N for the player to move")
            }
            NotationError::Player(player) => {
                write!(f, "the player to move must be S or N, got {:?}", cut(player))
            }
            NotationError::Count(count) => {
                write!(f, "{:?} is not a number of seeds", cut(count))
            }
            NotationError::Ragged { row } => {
                write!(f, "row {row} has not as many holes as the first")
            }
            NotationError::OddRows(rows) => {
                write!(f, "the rows must be an even number, got {rows}")
            }
            NotationError::Board { expected, found } => write!(
                f,
                "the rules have a board of {} x {}, got {} x {}",
                expected.0, expected.1, found.0, found.1
            ),
            NotationError::Rules(error) => error.fmt(f),
            NotationError::Grid(error) => error.fmt(f),
        }
    }
}

/// The beginning of a text that may be long.
fn cut(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

impl std::error::Error for NotationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NotationError::Rules(error) => Some(error),
            NotationError::Grid(error) => Some(error),
            _ => None,
        }
    }
}
