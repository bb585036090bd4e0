//! The cost of one game in a batched step, for `cargo bench` (nanoseconds) and
//! for an instruction counter (which is steady on a noisy machine):
//!
//! ```text
//! cargo bench --bench step                      # ns per game, best and median
//! cargo bench --bench step -- --count [GAMES]   # a fixed number of steps, to be
//!                                               # run under valgrind
//! ```

use std::time::Instant;

use katro::{Arrays, Batch, Game, Options, Rules};

/// Steps per measurement.
const STEPS: usize = 200;

/// A batch in the usual mix of early and late games, with its last arrays.
struct Bench {
    batch: Batch,
    arrays: Arrays,
    random: u64,
}

impl Bench {
    fn new(games: usize) -> Bench {
        let game = Game::new(Rules::KATRO);
        let mut batch = Batch::new(game, games, Options::default());
        batch.set_threads(1);
        let mut arrays = Arrays::new(&game, games);
        batch.observe(arrays.rows());
        let mut bench = Bench { batch, arrays, random: 1 };
        for _ in 0..300 {
            bench.step();
        }
        bench
    }

    /// A random legal action for each game.
    #[inline(never)]
    fn actions(&mut self) -> Vec<i64> {
        let mut draw = |n: usize| {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            ((self.random >> 32) as usize * n) >> 32
        };
        let masks = self.arrays.action_mask.chunks_exact(6);
        masks
            .map(|mask| {
                let legal = mask.iter().filter(|&&legal| legal == 1).count();
                let nth = draw(legal);
                (0..).zip(mask).filter(|&(_, &legal)| legal == 1).nth(nth).map_or(0, |(a, _)| a)
            })
            .collect()
    }

    /// Seconds for one step.
    fn step(&mut self) -> f64 {
        let actions = self.actions();
        let start = Instant::now();
        step(&mut self.batch, &actions, &mut self.arrays);
        start.elapsed().as_secs_f64()
    }
}

/// What is measured, by this name.
#[inline(never)]
fn step(batch: &mut Batch, actions: &[i64], arrays: &mut Arrays) {
    batch.step(actions, arrays.rows()).expect("the actions are legal");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--count") {
        let games = arguments.get(at + 1).and_then(|games| games.parse().ok()).unwrap_or(1024);
        let mut bench = Bench::new(games);
        for _ in 0..100 {
            bench.step();
        }
        println!("{} game steps", 400 * games);
        return;
    }
    println!("{:>8} {:>10} {:>10}", "games", "best ns", "median ns");
    for games in [1, 8, 64, 1024, 8192, 65536] {
        let mut bench = Bench::new(games);
        let steps = (STEPS * 1024 / games).clamp(20, 20_000);
        let mut times: Vec<f64> = (0..15)
            .map(|_| (0..steps).map(|_| bench.step()).sum::<f64>() / (steps * games) as f64 * 1e9)
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{games:>8} {:>10.2} {:>10.2}", times[0], times[times.len() / 2]);
    }
}
