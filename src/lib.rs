//! Katro, the six-row mancala of Madagascar: exact rules, and batches of games
//! that are stepped together for reinforcement learning.
//!
//! Plain data ([`Position`]) and compiled rules ([`Game`]) that know nothing of
//! Python; the Python package of the same name wraps them.
//!
//! ```
//! use katro::{Game, Rules};
//!
//! let game = Game::new(Rules::KATRO);
//! let mut position = game.start();
//! while let Some(action) = game.legal(&position).iter().next() {
//!     position = game.play(&position, action as i64)?.0;
//! }
//! println!("{} {:?}", game.notation(&position), game.winner(&position));
//! # Ok::<(), katro::IllegalMove>(())
//! ```

// The parts of a step are taken one by one only where Python is asked in between.
#[cfg_attr(not(feature = "python"), allow(dead_code))]
mod batch;
mod circuit;
mod game;
mod lanes;
mod notation;
mod policy;
mod position;
#[cfg(feature = "python")]
mod python;
#[cfg_attr(not(feature = "python"), allow(dead_code))]
mod random;
mod render;
mod rows;
mod rules;
mod search;
#[cfg_attr(not(feature = "python"), allow(dead_code))]
mod step;
mod threads;

pub use batch::{Autoreset, Batch, Final, Illegal, Opponent, Options, StepError};
pub use game::{Actions, Game, GridError, Hole, IllegalMove, LAP_LIMIT, Lap, Ply};
pub use notation::NotationError;
pub use policy::{Policy, PolicyError};
pub use position::{Direction, Player, Position, Side};
pub use rows::{Arrays, Rows};
pub use rules::{DirectionChoice, LastSeedSteps, MAX_SEEDS, Rules, RulesError, Switches};
pub use search::{Found, Limits, MAX_DEPTH, Search, WIN, evaluate};
pub use step::Counts;
