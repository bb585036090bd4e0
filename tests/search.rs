//! The search finds what plain negamax finds, and finds it fast.

use katro::{Game, Limits, Position, Rules, Search, WIN, evaluate};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % n as u64) as usize
    }
}

/// Open positions of random games.
fn positions(game: &Game, count: usize, seed: u64) -> Vec<Position> {
    let mut random = Random(seed);
    let mut positions = Vec::new();
    while positions.len() < count {
        let mut position = game.start();
        for _ in 0..random.below(120) {
            let legal: Vec<usize> = game.legal(&position).iter().collect();
            if legal.is_empty() {
                break;
            }
            let action = legal[random.below(legal.len())] as i64;
            position = game.play(&position, action).unwrap().0;
        }
        if game.winner(&position).is_none() {
            positions.push(position);
        }
    }
    positions
}

/// The value by its definition: no window, no table, no order.
fn plain(game: &Game, position: &Position, depth: u32, ply: i32) -> i32 {
    if game.winner(position).is_some() {
        return ply - WIN; // the player to move has no seed
    }
    if depth == 0 {
        return evaluate(game, position);
    }
    let values = game.legal(position).iter().map(|action| {
        let (after, _) = game.play(position, action as i64).unwrap();
        -plain(game, &after, depth - 1, ply + 1)
    });
    values.max().unwrap()
}

fn boards() -> Vec<(Game, u32)> {
    let mut boards: Vec<(Game, u32)> =
        Rules::NAMED.map(|(_, rules)| (Game::new(rules), 3)).to_vec();
    boards.push((Game::new(Rules::new(2, 3, 2).unwrap()), 6));
    boards.push((Game::new(Rules::new(1, 6, 2).unwrap()), 5));
    boards.push((Game::new(Rules::KATRO), 5));
    boards
}

fn search(game: Game, entries: usize, position: &Position, depth: u32) -> katro::Found {
    Search::new(game, entries).run(position, Limits { depth, time: None }, &mut || true)
}

#[test]
fn the_value_is_that_of_plain_negamax_with_and_without_a_table() {
    for (game, deepest) in boards() {
        let few = if game.rules().num_actions() > 12 || deepest > 4 { 40 } else { 300 };
        for position in positions(&game, few, 1) {
            for depth in 1..=deepest {
                let value = plain(&game, &position, depth, 0);
                for entries in [0, 16, 1 << 14] {
                    let found = search(game, entries, &position, depth);
                    assert_eq!(found.value, value, "depth {depth}, {entries} entries");
                }
            }
        }
    }
}

#[test]
fn a_search_that_goes_on_with_its_table_finds_the_same() {
    let game = Game::new(Rules::named("katro-4x6").unwrap());
    let mut one = Search::new(game, 1 << 12);
    for position in positions(&game, 300, 2) {
        let limits = Limits { depth: 4, time: None };
        let found = one.run(&position, limits, &mut || true);
        assert_eq!(found, search(game, 1 << 12, &position, 4));
    }
}

#[test]
fn the_line_is_legal_and_leads_to_the_value() {
    for (game, depth) in boards() {
        for position in positions(&game, 50, 3) {
            let found = search(game, 1 << 12, &position, depth);
            assert_eq!(found.action, found.line[0]);
            let mut after = position;
            for &action in &found.line {
                after = game.play(&after, action as i64).unwrap().0;
            }
            let sign = if found.line.len().is_multiple_of(2) { 1 } else { -1 };
            let value = match game.winner(&after) {
                Some(_) => sign * (found.line.len() as i32 - WIN),
                None => sign * evaluate(&game, &after),
            };
            assert_eq!(found.value, value);
        }
    }
}

#[test]
fn a_quick_win_is_better_than_a_slow_one_and_a_slow_loss_than_a_quick_one() {
    let game = Game::new(Rules::named("katro-4x4").unwrap());
    let mut wins = 0;
    for position in positions(&game, 2_000, 4) {
        let found = search(game, 1 << 14, &position, 6);
        if found.value.abs() > WIN / 2 {
            wins += 1;
            let plies = WIN - found.value.abs();
            assert_eq!(found.line.len() as i32, plies);
            // Nothing shorter is forced.
            let shallower = search(game, 0, &position, plies as u32 - 1);
            assert!(shallower.value.abs() < WIN / 2);
        }
    }
    assert!(wins > 200);
}

#[test]
fn a_search_stops_when_it_is_told_to_and_still_has_a_legal_action() {
    let game = Game::new(Rules::KATRO);
    let mut asked = 0;
    let mut go_on = || {
        asked += 1;
        asked < 3
    };
    let limits = Limits { depth: 64, time: None };
    let found = Search::new(game, 1 << 16).run(&game.start(), limits, &mut go_on);
    assert!(game.legal(&game.start()).contains(found.action as i64));
    assert!(found.depth < 64);
    assert_eq!(asked, 3);
}
