//! Policies that choose actions, from beginner to strong.

use std::fmt;
use std::time::Duration;

use crate::game::{Game, Ply};
use crate::position::Position;
use crate::random::Stream;
use crate::search::{Limits, MAX_DEPTH, Search};

/// A way to choose actions, by name: `random`, `greedy`, `minimax:4`,
/// `minimax:50ms`.
///
/// ```
/// use katro::Policy;
///
/// let policy: Policy = "minimax:4".parse()?;
/// assert_eq!(policy.to_string(), "minimax:4");
/// assert!("minimax:0".parse::<Policy>().is_err());
/// # Ok::<(), katro::PolicyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Any legal action, all equally likely.
    Random,
    /// An action after which the mover has the most seeds, any of the best
    /// equally likely.
    Greedy,
    /// The best action of an alpha-beta search, any of the best equally likely.
    Minimax(Limits),
}

impl std::str::FromStr for Policy {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Policy, PolicyError> {
        let unknown = || PolicyError::Unknown(name.to_owned());
        match name {
            "random" => Ok(Policy::Random),
            "greedy" => Ok(Policy::Greedy),
            _ => {
                let limit = name.strip_prefix("minimax:").ok_or_else(unknown)?;
                let (number, is_time) = match limit.strip_suffix("ms") {
                    Some(number) => (number, true),
                    None => (limit, false),
                };
                let number: i64 = number.parse().map_err(|_| unknown())?;
                match number {
                    1.. if is_time => Ok(Policy::Minimax(Limits {
                        depth: MAX_DEPTH,
                        time: Some(Duration::from_millis(number as u64)),
                    })),
                    _ if is_time => Err(PolicyError::Time(number)),
                    depth if (1..=MAX_DEPTH.into()).contains(&depth) => {
                        Ok(Policy::Minimax(Limits { depth: depth as u32, time: None }))
                    }
                    depth => Err(PolicyError::Depth(depth)),
                }
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Random => f.write_str("random"),
            Policy::Greedy => f.write_str("greedy"),
            Policy::Minimax(Limits { time: Some(time), .. }) => {
                write!(f, "minimax:{}ms", time.as_millis())
            }
            Policy::Minimax(Limits { depth, time: None }) => write!(f, "minimax:{depth}"),
        }
    }
}

/// A [`Policy`] at work: it keeps the memory that it needs from move to move.
pub(crate) struct Chooser {
    policy: Policy,
    search: Option<Search>,
}

impl Chooser {
    pub(crate) fn new(policy: Policy, game: &Game) -> Chooser {
        let search = match policy {
            Policy::Minimax(limits) => {
                // Room for about the positions of a whole search, as far as that is wise.
                let entries = match limits.depth {
                    0..=2 => 0,
                    depth => 1 << (2 * depth + 6).min(20),
                };
                Some(Search::new(*game, entries))
            }
            _ => None,
        };
        Chooser { policy, search }
    }

    /// A legal action in an open position. What is left to chance comes from
    /// `stream`.
    pub(crate) fn choose(
        &mut self,
        game: &Game,
        position: &Position,
        stream: &mut Stream,
    ) -> usize {
        let legal = game.legal(position);
        match (self.policy, &mut self.search) {
            (Policy::Minimax(limits), Some(search)) => search.choose(position, limits, stream),
            (Policy::Greedy, _) => {
                // The mover's own seeds grow by those that he captures.
                let captured = legal.iter().map(|action| {
                    let Ply { captured, .. } = game.play_unchecked(&mut position.clone(), action);
                    (captured, action)
                });
                let mut best = Vec::new();
                let mut most = 0;
                for (captured, action) in captured {
                    if captured > most {
                        most = captured;
                        best.clear();
                    }
                    if captured == most {
                        best.push(action);
                    }
                }
                best[stream.below(best.len() as u32) as usize]
            }
            _ => {
                let nth = stream.below(legal.len() as u32) as usize;
                legal.iter().nth(nth).expect("there are that many")
            }
        }
    }
}

/// Why a name is not that of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// No policy has this name.
    Unknown(String),
    /// A depth outside 1 to [`MAX_DEPTH`].
    Depth(i64),
    /// A time that is not positive.
    Time(i64),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Unknown(name) => write!(
                f,
                "unknown policy {name:?}, known are random, greedy, minimax:DEPTH and minimax:TIMEms"
            ),
            PolicyError::Depth(depth) => {
                write!(f, "the depth of minimax must be 1 to {MAX_DEPTH}, got {depth}")
            }
            PolicyError::Time(time) => {
                write!(f, "the time of minimax must be at least 1 ms, got {time}")
            }
        }
    }
}

impl std::error::Error for PolicyError {}
