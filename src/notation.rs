//! Positions as text.
//!
//! Rows from the top of the drawn board to the bottom, separated by slashes,
//! the seeds of a row by commas, then a space and `S` or `N` for the player to
//! move: `2,2,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S`.
//!
//! Where the rules bind players to a direction (V2) another space follows and a
//! character for South and one for North: `>` for R4's direction, `<` for the
//! mirrored one, `-` for a player who is still free.

use std::fmt;

use crate::game::{Game, GridError};
use crate::position::{Direction, Player, Position};
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
        let mut text = format!("{} {player}", rows.join("/"));
        if self.rules().binds() {
            text.push(' ');
            text.extend([Player::South, Player::North].map(
                |player| match position.bound(player) {
                    None => '-',
                    Some(Direction::Regular) => '>',
                    Some(Direction::Mirrored) => '<',
                },
            ));
        }
        text
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
        fields.position(self)
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
        let position = fields.position(&game)?;
        Ok((game, position))
    }
}

/// The parts of a text of the right form, whatever the board.
struct Fields {
    rows: usize,
    columns: usize,
    grid: Vec<i64>,
    to_move: Player,
    bound: Option<[Option<Direction>; 2]>,
}

impl Fields {
    fn read(text: &str) -> Result<Fields, NotationError> {
        let (board, rest) = text.split_once(' ').ok_or(NotationError::Parts)?;
        let (player, bound) = match rest.split_once(' ') {
            None => (rest, None),
            Some((player, bound)) => (player, Some(bound)),
        };
        let to_move = match player {
            "S" => Player::South,
            "N" => Player::North,
            _ => return Err(NotationError::Player(player.to_owned())),
        };
        let bound = bound.map(read_bound).transpose()?;
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
        Ok(Fields { rows, columns: columns.unwrap_or(0), grid, to_move, bound })
    }

    fn position(&self, game: &Game) -> Result<Position, NotationError> {
        if self.bound.is_some() != game.rules().binds() {
            return Err(NotationError::Bound { expected: game.rules().binds() });
        }
        game.position(&self.grid, self.to_move)
            .and_then(|position| game.bind(&position, self.bound.unwrap_or_default()))
            .map_err(NotationError::Grid)
    }
}

fn read_bound(text: &str) -> Result<[Option<Direction>; 2], NotationError> {
    let direction = |byte| match byte {
        b'-' => Some(None),
        b'>' => Some(Some(Direction::Regular)),
        b'<' => Some(Some(Direction::Mirrored)),
        _ => None,
    };
    match text.as_bytes() {
        &[south, north] => direction(south).zip(direction(north)).map(|(s, n)| [s, n]),
        _ => None,
    }
    .ok_or_else(|| NotationError::Directions(text.to_owned()))
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
    /// The directions are not one of `-`, `>` and `<` for each player.
    Directions(String),
    /// The rules bind players to a direction and the text says nothing of it,
    /// or the other way round.
    Bound {
        /// Whether the rules bind players.
        expected: bool,
    },
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
            NotationError::Directions(text) => {
                write!(f, "the directions must be -, > or < for South and for North, got {:?}", cut(text))
            }
            NotationError::Bound { expected: true } => f.write_str(
                "these rules bind players to a direction, so -, > or < for South and for North must follow",
            ),
            NotationError::Bound { expected: false } => {
                f.write_str("these rules bind no player to a direction, so nothing may follow the player to move")
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
