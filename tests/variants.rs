//! The rule sets with switches: each of V1 to V6 on positions drawn in the test,
//! and all of them played against a second implementation that sows one seed
//! at a time.
//!
//! A drawn move is checked from both seats, as in `rules.rs`, and the second
//! implementation must make it too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use katro::{
    Direction, DirectionChoice, Game, GridError, Hole, LAP_LIMIT, Lap, LastSeedSteps, MAX_SEEDS,
    NotationError, Player, Position, Rules, RulesError, Switches,
};

mod plain;

use plain::{Plain, Random, actions, hash, random_position, rows_of};

use Direction::{Mirrored, Regular};

const OFF: Switches = Switches {
    direction: DirectionChoice::Fixed,
    fall_through: false,
    capture_on_empty: false,
    last_seed_steps: None,
    boaoaka: false,
};
const V1: Switches = Switches { direction: DirectionChoice::PerMove, ..OFF };
const V2: Switches = Switches { direction: DirectionChoice::PerGame, ..OFF };
const V3: Switches = Switches { fall_through: true, ..OFF };
const V4: Switches = Switches { capture_on_empty: true, ..OFF };
const V5_STRAIGHT: Switches = Switches { last_seed_steps: Some(LastSeedSteps::Straight), ..OFF };
const V5_DIAGONAL: Switches = Switches { last_seed_steps: Some(LastSeedSteps::Diagonal), ..OFF };
const V6: Switches = Switches { direction: DirectionChoice::PerGame, boaoaka: true, ..OFF };

const PLAYERS: [Player; 2] = [Player::South, Player::North];

/// Every combination of V1 to V5 that makes sense.
fn combinations() -> Vec<Switches> {
    let mut all = Vec::new();
    for direction in [DirectionChoice::Fixed, DirectionChoice::PerMove, DirectionChoice::PerGame] {
        for fall_through in [false, true] {
            for capture_on_empty in [false, true] {
                let straight = LastSeedSteps::Straight;
                for last_seed_steps in [None, Some(straight), Some(LastSeedSteps::Diagonal)] {
                    all.push(Switches {
                        direction,
                        fall_through,
                        capture_on_empty,
                        last_seed_steps,
                        boaoaka: false,
                    });
                }
            }
        }
    }
    all
}

/// Reads a drawn position: its rows, the player to move, and with V2 the
/// directions.
fn draw(switches: Switches, drawing: &str) -> (Game, Position) {
    let words: Vec<&str> = drawing.split_whitespace().collect();
    let rows = words.iter().take_while(|word| !["S", "N"].contains(word)).count();
    let columns = words[0].split(',').count();
    let rules = Rules::with(rows as i64 / 2, columns as i64, 2, switches).unwrap();
    let game = Game::new(rules);
    let text = format!("{} {}", words[..rows].join("/"), words[rows..].join(" "));
    let position = game.parse(&text).unwrap();
    (game, position)
}

/// A hole of the drawn board.
fn hole(row: usize, column: usize) -> Hole {
    Hole { row, column }
}

/// Checks the legal actions of a drawn position, from both seats.
fn assert_legal(switches: Switches, drawing: &str, legal: &[i64]) {
    let (game, position) = draw(switches, drawing);
    for position in [position, position.swapped()] {
        assert_eq!(actions(&game, &position), legal, "{drawing}");
        assert_eq!(Plain::of(&game, &position).legal(), legal, "{drawing}");
        let far = [-1, game.rules().num_actions() as i64, 63, 64];
        for action in far.into_iter().chain(0..game.rules().num_actions() as i64) {
            assert_eq!(game.play(&position, action).is_ok(), legal.contains(&action));
        }
    }
}

/// Checks what a move does, from both seats: its laps as the seeds sown and the
/// seeds taken at the end of each, and the position after it. Returns the laps.
fn assert_plays(
    switches: Switches,
    before: &str,
    action: i64,
    laps: &[(usize, usize)],
    after: &str,
) -> Vec<Lap> {
    let (game, before) = draw(switches, before);
    let (_, after) = draw(switches, after);
    for (before, after) in [(before, after), (before.swapped(), after.swapped())] {
        let trace = game.trace(&before, action).unwrap();
        let numbers: Vec<_> = trace.iter().map(|lap| (lap.seeds, lap.taken)).collect();
        assert_eq!(numbers, laps);
        let (position, ply) = game.play(&before, action).unwrap();
        assert_eq!(game.notation(&position), game.notation(&after));
        assert_eq!(position, after);
        assert_eq!(ply.laps as usize, laps.len());
        assert_eq!(ply.captured as usize, laps.iter().map(|lap| lap.1).sum::<usize>());
        compare(&game, &before, action, &mut Plain::of(&game, &before));
    }
    game.trace(&before, action).unwrap()
}

/// Plays a move by both implementations and checks that it is the same; returns
/// the position after it and the laps.
fn compare(
    game: &Game,
    position: &Position,
    action: i64,
    plain: &mut Plain,
) -> (Position, Vec<Lap>) {
    let case = || format!("{:?} {} action {action}", game.rules(), game.notation(position));
    let laps = plain.play(action);
    let trace = game.trace(position, action).unwrap();
    if let Some(lap) = (0..laps.len()).find(|&lap| trace.get(lap) != laps.get(lap)) {
        panic!("{}: lap {lap}: {:?}, {:?}", case(), trace.get(lap), laps[lap]);
    }
    assert_eq!(trace.len(), laps.len(), "{}", case());
    let (after, ply) = game.play(position, action).unwrap();
    assert_eq!(rows_of(game, &after), plain.grid, "{}", case());
    assert_eq!(after.to_move(), plain.to_move, "{}", case());
    assert_eq!(PLAYERS.map(|player| after.bound(player)), plain.bound, "{}", case());
    assert_eq!(game.winner(&after), plain.winner(), "{}", case());
    assert_eq!(ply.laps as usize, laps.len(), "{}", case());
    assert_eq!(ply.captured as usize, laps.iter().map(|lap| lap.taken).sum::<usize>());
    (after, laps)
}

// The second implementation

/// What a comparison has seen.
#[derive(Default, Debug)]
struct Seen {
    moves: u64,
    captures: u64,
    wins: u64,
    /// Moves by an action beyond the sowing ones (V5), and those that captured.
    steps: u64,
    capturing_steps: u64,
    /// Moves of as many laps as V4 allows.
    limited: u64,
    /// Positions without a legal action.
    over: u64,
    longest: usize,
}

impl Seen {
    /// Compares a position, and every move from it.
    fn compare(&mut self, game: &Game, position: &Position) {
        let plain = Plain::of(game, position);
        let legal = actions(game, position);
        assert_eq!(plain.legal(), legal, "{:?} {}", game.rules(), game.notation(position));
        assert_eq!(plain.winner(), game.winner(position));
        assert_eq!(legal.is_empty(), plain.winner().is_some());
        self.over += u64::from(legal.is_empty());
        for action in legal {
            let (after, laps) = compare(game, position, action, &mut plain.clone());
            self.moves += 1;
            self.captures += laps.iter().filter(|lap| lap.taken > 0).count() as u64;
            self.wins += u64::from(game.winner(&after).is_some());
            self.limited += u64::from(laps.len() == LAP_LIMIT as usize);
            self.longest = self.longest.max(laps.len());
            if game.rules().action_name(action as usize).unwrap().starts_with("step") {
                self.steps += 1;
                self.capturing_steps += u64::from(laps[0].taken > 0);
            }
        }
    }

    /// Compares random games of at most `plies` plies until `moves` moves are
    /// compared, then random positions for as many again.
    fn compare_at_random(&mut self, game: &Game, random: &mut Random, plies: usize, moves: u64) {
        let begin = self.moves;
        while self.moves < begin + moves {
            let mut position = game.start();
            let mut plain = Plain::of(game, &position);
            for _ in 0..plies {
                self.compare(game, &position);
                let legal = plain.legal();
                if legal.is_empty() || self.moves >= begin + moves {
                    break;
                }
                (position, _) = compare(game, &position, random.choose(&legal), &mut plain);
            }
        }
        while self.moves < begin + 2 * moves {
            self.compare(game, &random_position(game, random));
        }
    }
}

#[test]
fn both_implementations_play_every_named_rule_set_alike() {
    for (name, rules) in Rules::NAMED {
        let mut seen = Seen::default();
        seen.compare_at_random(&Game::new(rules), &mut Random(1), 3_000, 75_000);
        println!("{name}: {seen:?}");
        assert!(seen.moves >= 150_000);
        assert!(seen.captures > 10_000 && seen.wins > 1_000 && seen.over > 100);
        assert_eq!(rules.switches().last_seed_steps.is_some(), seen.steps > 1_000);
        assert_eq!(rules.switches().last_seed_steps.is_some(), seen.capturing_steps > 100);
    }
}

#[test]
fn both_implementations_play_every_combination_of_switches_alike() {
    let mut random = Random(2);
    let mut all = Seen::default();
    let mut compare = |rows, columns, switches: Switches| {
        let game = Game::new(Rules::with(rows, columns, 2, switches).unwrap());
        let mut seen = Seen::default();
        // On the smallest boards many moves go on until V4's limit.
        let moves = match (switches.capture_on_empty, rows * columns) {
            (true, 1) => 25,
            (true, 2..=4) => 150,
            (true, 5..=8) => 500,
            _ => 1_000,
        };
        seen.compare_at_random(&game, &mut random, 100, moves);
        assert!(seen.moves >= 2 * moves);
        let steps = switches.last_seed_steps.is_some() && rows > 1;
        assert_eq!(seen.steps > 0, steps, "{switches:?}");
        all.moves += seen.moves;
        all.steps += seen.steps;
        all.captures += seen.captures;
        all.wins += seen.wins;
        all.over += seen.over;
        all.capturing_steps += seen.capturing_steps;
        all.longest = all.longest.max(seen.longest);
        all.limited += seen.limited;
    };
    for (rows, columns) in [(1, 1), (1, 4), (1, 8), (2, 1), (2, 2), (2, 5), (3, 1), (3, 4), (3, 8)]
    {
        for switches in combinations() {
            compare(rows, columns, switches);
        }
        compare(rows, columns, V6);
    }
    println!("all combinations: {all:?}");
    assert!(all.moves > 400_000 && all.captures > 100_000 && all.limited > 100);
}

// V1

#[test]
fn both_directions_are_always_legal() {
    let game = Game::new(Rules::with(3, 6, 2, V1).unwrap());
    assert_eq!(actions(&game, &game.start()), (0..12).collect::<Vec<_>>());
    assert_legal(
        V1,
        "1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1
         0,2,0,0,1,0
         0,0,0,0,0,0 S",
        &[1, 4, 7, 10],
    );
    // Also where they do the same.
    assert_legal(V1, "1 1 2 1 S", &[0, 1]);
    for action in [0, 1] {
        assert_plays(V1, "1 1 2 1 S", action, &[(1, 1), (4, 1)], "0 0 3 2 N");
    }
}

#[test]
fn the_mirrored_circuit_sows_outer_right_to_left_middle_left_to_right_inner_right_to_left() {
    for circuit in [
        &[&[18, 17, 16, 15, 14, 13][..], &[7, 8, 9, 10, 11, 12], &[6, 5, 4, 3, 2, 1]][..],
        &[&[4, 5, 6], &[3, 2, 1]],
        &[&[4, 3, 2, 1]],
    ] {
        let (rows, columns) = (circuit.len(), circuit[0].len());
        let game = Game::new(Rules::with(rows as i64, columns as i64, 1, V1).unwrap());
        let mut path = vec![hole(0, 0); rows * columns];
        for (row, numbers) in circuit.iter().enumerate() {
            for (column, &number) in numbers.iter().enumerate() {
                path[number - 1] = hole(rows + row, column);
            }
        }
        let turned =
            |hole: Hole| Hole { row: 2 * rows - 1 - hole.row, column: columns - 1 - hole.column };
        for (i, &from) in path.iter().enumerate() {
            let to = path[(i + 1) % path.len()];
            let mut grid = vec![0; 2 * rows * columns];
            grid[from.row * columns + from.column] = 1;
            grid[0] = 1;
            let south = game.position(&grid, Player::South).unwrap();
            let action = (columns + from.column) as i64;
            let lap = game.trace(&south, action).unwrap().remove(0);
            assert_eq!((lap.lifted, lap.landed), (from, to));
            let lap = game.trace(&south.swapped(), action).unwrap().remove(0);
            assert_eq!((lap.lifted, lap.landed), (turned(from), turned(to)));
        }
    }
}

#[test]
fn with_three_rows_the_mirror_image_is_not_the_circuit_backwards() {
    // Back along R4's circuit the hole before the first one of the outer row is
    // the last one of the inner row; the mirrored direction goes to the middle.
    let laps = assert_plays(
        V1,
        "0,0,0,1
         0,0,0,0
         0,0,0,0
         0,0,0,0
         0,0,0,0
         1,0,0,0 S",
        4,
        &[(1, 0)],
        "0,0,0,1
         0,0,0,0
         0,0,0,0
         0,0,0,0
         1,0,0,0
         0,0,0,0 N",
    );
    assert_eq!((laps[0].lifted, laps[0].landed), (hole(5, 0), hole(4, 0)));
    // With two rows it is.
    let (here, next) = ("0,0,0,0 1,0,0,0", "0,0,0,0 0,1,0,0");
    let [here_to_move, next_to_move] =
        [here, next].map(|south| format!("0,0,0,1 0,0,0,0 {south} S"));
    let [here_played, next_played] = [here, next].map(|south| format!("0,0,0,1 0,0,0,0 {south} N"));
    assert_plays(V1, &here_to_move, 0, &[(1, 0)], &next_played);
    assert_plays(V1, &next_to_move, 5, &[(1, 0)], &here_played);
    let (from_inner, to_outer) =
        ("0,0,0,1 0,0,0,0 1,0,0,0 0,0,0,0", "0,0,0,1 0,0,0,0 0,0,0,0 1,0,0,0");
    assert_plays(V1, &format!("{from_inner} S"), 0, &[(1, 0)], &format!("{to_outer} N"));
    assert_plays(V1, &format!("{to_outer} S"), 4, &[(1, 0)], &format!("{from_inner} N"));
}

#[test]
fn a_move_keeps_to_its_direction_in_relays_and_after_captures() {
    let laps = assert_plays(
        V1,
        "0,0,0,0
         1,1,0,0
         0,1,0,0
         1,1,0,0 S",
        5,
        &[(1, 0), (2, 1), (3, 0)],
        "0,0,0,0
         1,0,0,0
         1,0,1,1
         0,0,0,1 N",
    );
    assert_eq!((laps[1].landed, laps[1].captured.as_slice()), (hole(2, 1), &[hole(1, 1)][..]));
}

#[test]
fn a_direction_per_move_binds_nobody() {
    let (game, position) = draw(
        V1,
        "1,1,1
         1,1,1
         1,1,1
         1,1,1 S",
    );
    let (after, _) = game.play(&position, 3).unwrap();
    assert_eq!(PLAYERS.map(|player| after.bound(player)), [None; 2]);
    assert_eq!(game.bind(&position, [Some(Regular), None]), Err(GridError::Unbound));
    assert_eq!(game.bind(&position, [None; 2]), Ok(position));
    for extra in ["--", ">-", "<<"] {
        let text = format!("1,1,1/1,1,1/1,1,1/1,1,1 S {extra}");
        assert_eq!(game.parse(&text), Err(NotationError::Bound { expected: false }));
    }
}

// V2

#[test]
fn the_first_sowing_binds_a_player_and_the_opponent_is_bound_by_his_own() {
    for rules in [V2, V6].map(|switches| Rules::with(2, 4, 2, switches).unwrap()) {
        let game = Game::new(rules);
        let half = rules.num_actions() as i64 / 2;
        let all = |player: Player, position: &Position| {
            let legal = actions(&game, position);
            assert_eq!(position.to_move(), player);
            (legal.iter().any(|&a| a < half), legal.iter().any(|&a| a >= half))
        };
        let start = game.start();
        assert_eq!(all(Player::South, &start), (true, true));
        assert!(game.notation(&start).ends_with(" S --"));
        // South mirrored.
        let position = game.play(&start, half).unwrap().0;
        assert!(game.notation(&position).ends_with(" N <-"));
        assert_eq!(position.bound(Player::South), Some(Mirrored));
        assert_eq!(position.bound(Player::North), None);
        assert_eq!(all(Player::North, &position), (true, true));
        // North along R4's circuit.
        let legal = actions(&game, &position);
        let position = game.play(&position, legal[0]).unwrap().0;
        assert!(game.notation(&position).ends_with(" S <>"));
        assert_eq!(position.bound(Player::North), Some(Regular));
        assert_eq!(all(Player::South, &position), (false, true));
        let legal = actions(&game, &position);
        let other = game.play(&position, legal[0] - half).unwrap_err();
        assert_eq!(other.legal, game.legal(&position));
        // And so for the rest of the game.
        let position = game.play(&position, legal[0]).unwrap().0;
        assert!(game.notation(&position).ends_with(" N <>"));
        assert_eq!(all(Player::North, &position), (true, false));
    }
}

#[test]
fn the_actions_in_the_other_direction_are_illegal_from_then_on() {
    for (bound, legal) in [
        ("--", &[0, 2, 4, 6][..]),
        ("-<", &[0, 2, 4, 6]),
        (">-", &[0, 2]),
        ("><", &[0, 2]),
        ("<-", &[4, 6]),
        ("<>", &[4, 6]),
    ] {
        assert_legal(V2, &format!("1,1,1,1 1,1,1,1 1,1,1,1 3,0,1,0 S {bound}"), legal);
    }
}

#[test]
fn the_first_sowing_binds_whatever_the_number_of_seeds() {
    // A single seed, a handful, and the last seed of a side.
    assert_plays(V2, "0,1,0 0,1,0 S --", 4, &[(1, 0)], "0,1,0 1,0,0 N <-");
    assert_plays(V2, "0,1,0 0,3,1 S -<", 1, &[(3, 0)], "0,1,0 1,1,2 N ><");
    let steps = Switches { last_seed_steps: Some(LastSeedSteps::Diagonal), ..V2 };
    assert_plays(steps, "0,0,1 0,0,0 0,0,0 0,1,0 S --", 1, &[(1, 0)], {
        "0,0,1 0,0,0 0,0,0 0,0,1 N >-"
    });
    assert_plays(steps, "0,0,1 0,0,0 0,0,0 0,1,0 S --", 4, &[(1, 0)], {
        "0,0,1 0,0,0 0,0,0 1,0,0 N <-"
    });
}

#[test]
fn swapping_the_sides_swaps_the_binding() {
    let (game, position) = draw(V2, "1,0,2 0,3,1 S ><");
    let swapped = position.swapped();
    assert_eq!(swapped.bound(Player::South), Some(Mirrored));
    assert_eq!(swapped.bound(Player::North), Some(Regular));
    assert_eq!(game.notation(&swapped), "1,3,0/2,0,1 N <>");
    assert_eq!(swapped.swapped(), position);
    assert_eq!(game.legal(&swapped), game.legal(&position));
    assert_eq!(game.observation(&swapped), game.observation(&position));
}

#[test]
fn the_binding_belongs_to_equality_hash_and_notation() {
    let (game, free) = draw(V2, "1,0,2 0,3,1 S --");
    let directions = [None, Some(Regular), Some(Mirrored)];
    let mut seen: Vec<(Position, String)> = Vec::new();
    for south in directions {
        for north in directions {
            let position = game.bind(&free, [south, north]).unwrap();
            assert_eq!([position.bound(Player::South), position.bound(Player::North)], {
                [south, north]
            });
            let text = game.notation(&position);
            let again = game.parse(&text).unwrap();
            assert_eq!((again, hash(again)), (position, hash(position)));
            assert_eq!(game.grid(&position), game.grid(&free));
            for (other, written) in &seen {
                assert_ne!(position, *other);
                assert_ne!(hash(position), hash(other));
                assert_ne!(text, *written);
            }
            seen.push((position, text));
        }
    }
    assert_eq!(game.parse("1,0,2/0,3,1 S"), Err(NotationError::Bound { expected: true }));
    for wrong in ["", "-", "---", "xx", "->x", " --", "-- "] {
        assert_eq!(
            game.parse(&format!("1,0,2/0,3,1 S {wrong}")),
            Err(NotationError::Directions(wrong.to_owned()))
        );
    }
}

// V3

#[test]
fn an_empty_inner_row_gives_the_next_row_no_right_to_capture() {
    let before = "0,0,0,0,0,0
                  0,0,0,0,0,0
                  3,3,3,3,3,3
                  0,0,0,0,0,0
                  0,0,1,1,0,0
                  0,0,0,0,0,0 S";
    let relay = "0,0,0,0,0,0
                 0,0,0,0,0,0
                 3,3,3,3,3,3
                 0,0,0,0,0,0
                 1,1,0,0,0,0
                 0,0,0,0,0,0 N";
    assert_plays(V3, before, 3, &[(1, 0), (2, 0)], relay);
    // R8 gives it.
    let (game, position) = draw(OFF, before);
    assert_eq!(game.trace(&position, 3).unwrap()[0].taken, 3);
}

#[test]
fn the_first_occupied_hole_of_the_column_is_captured_inner_before_middle_before_outer() {
    // The seeds of North's column, the hole captured, the seeds sown on.
    for (outer, middle, inner, captured, after) in [
        (5, 4, 3, Some((2, 3)), "0,0,0,0,1,1 0,0,0,0,0,0 1,1,1,0,0,0"),
        (5, 4, 0, Some((1, 3)), "0,0,0,0,1,1 0,0,0,0,0,0 1,1,1,1,0,0"),
        (5, 0, 3, Some((2, 3)), "0,0,0,0,1,1 0,0,0,0,0,0 1,1,1,0,0,0"),
        (5, 0, 0, Some((0, 3)), "0,0,0,0,1,1 0,0,0,0,0,0 1,1,1,1,1,0"),
        (0, 0, 0, None, "0,0,0,0,1,1 0,0,0,0,0,0 0,0,0,0,0,0"),
    ] {
        // North's inner row holds a seed elsewhere, or none.
        for other in [1, 0] {
            let mut seeds = [outer, middle, inner];
            let board = |[outer, middle, inner]: [usize; 3]| {
                format!("7,0,0,{outer},0,0 0,0,0,{middle},0,0 {other},0,0,{inner},0,0")
            };
            let before = board(seeds);
            let taken =
                captured.map_or(0, |(row, _): (usize, usize)| std::mem::take(&mut seeds[row]));
            let laps = assert_plays(
                V3,
                &format!("{before} 0,0,1,1,0,0 0,0,0,0,0,0 0,0,0,0,0,0 S"),
                2,
                &[(1, taken), (2 + taken, 0)],
                &format!("{} {after} N", board(seeds)),
            );
            let expected: Vec<Hole> =
                captured.map(|(row, column)| hole(row, column)).into_iter().collect();
            assert_eq!(laps[0].captured, expected);
        }
    }
}

#[test]
fn fall_through_captures_nothing_from_an_empty_hole() {
    assert_plays(
        V3,
        "0,0,4,0
         0,0,4,0
         0,0,0,1
         0,0,0,0 S",
        3,
        &[(1, 0)],
        "0,0,4,0
         0,0,4,0
         0,0,1,0
         0,0,0,0 N",
    );
}

// V4

#[test]
fn a_last_seed_captures_from_an_empty_hole_and_is_sown_on_with_the_captured_seeds() {
    let laps = assert_plays(
        V4,
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,5,0,0
         0,0,1,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 5), (6, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,1,1,1,0,0 N",
    );
    assert_eq!((laps[0].landed, laps[0].captured.as_slice()), (hole(3, 3), &[hole(2, 3)][..]));
    assert_eq!(laps[1].lifted, hole(3, 3));
}

#[test]
fn landing_in_an_occupied_hole_is_always_a_plain_relay() {
    assert_plays(
        V4,
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,5,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 0), (2, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,5,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
}

#[test]
fn a_seed_that_falls_alone_into_an_empty_inner_row_captures_from_it() {
    assert_plays(
        V4,
        "0,0,0,0,0,0
         0,0,0,0,0,0
         2,0,0,0,0,1
         0,0,0,0,0,0
         1,0,0,1,0,0
         0,0,0,0,0,0 S",
        0,
        &[(1, 2), (3, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,1
         0,1,1,1,0,0
         0,0,0,1,0,0
         0,0,0,0,0,0 N",
    );
}

#[test]
fn on_an_empty_hole_too_the_capture_is_made_from_the_innermost_rows_that_hold_seeds() {
    // South's inner row and North's inner and middle rows are empty.
    assert_plays(
        V4,
        "0,3,0,1
         0,0,0,0
         0,0,0,0
         0,0,0,0
         0,0,1,0
         0,0,0,0 S",
        2,
        &[(1, 3), (4, 0)],
        "0,0,0,1
         0,0,0,0
         0,0,0,0
         1,1,1,0
         1,0,0,0
         0,0,0,0 N",
    );
}

#[test]
fn the_move_is_over_if_the_row_or_the_facing_hole_is_the_wrong_one() {
    // (a) The inner row holds a seed, and the lap ends in the middle row.
    assert_plays(
        V4,
        "0,0,0,0
         0,0,0,0
         3,3,3,3
         0,0,0,1
         0,0,1,0
         0,0,0,0 S",
        2,
        &[(1, 0)],
        "0,0,0,0
         0,0,0,0
         3,3,3,3
         0,0,0,1
         0,1,0,0
         0,0,0,0 N",
    );
    // (b) The facing hole of the innermost row that holds seeds is empty.
    assert_plays(
        V4,
        "0,3,0,0
         0,3,0,0
         3,0,3,3
         1,0,0,1
         0,0,0,0
         0,0,0,0 S",
        0,
        &[(1, 0)],
        "0,3,0,0
         0,3,0,0
         3,0,3,3
         0,1,0,1
         0,0,0,0
         0,0,0,0 N",
    );
    // With V3 it is the first occupied one of the column.
    let both = Switches { capture_on_empty: true, ..V3 };
    assert_plays(
        both,
        "0,3,0,0
         0,2,0,0
         3,0,3,3
         1,0,0,1
         0,0,0,0
         0,0,0,0 S",
        0,
        &[(1, 2), (3, 0)],
        "0,3,0,0
         0,0,0,0
         3,0,3,3
         0,0,1,2
         0,0,0,0
         1,0,0,0 N",
    );
}

#[test]
fn the_lap_limit_ends_a_move_that_goes_round_for_ever() {
    let switches = Switches { direction: DirectionChoice::PerMove, ..V4 };
    let (game, before) = draw(switches, "0,1 0,0 1,0 3,1 S");
    let laps = game.trace(&before, 0).unwrap();
    assert_eq!((LAP_LIMIT, laps.len()), (10_000, 10_000));
    assert_eq!(game.play(&before, 0).unwrap().1.laps, 10_000);
    assert!((1..8).all(|period| laps[..100] != laps[period..100 + period]));
    assert_eq!(laps[8..], laps[..laps.len() - 8]);
    assert_eq!(laps[7].landed, laps[0].lifted);
    assert!(laps.iter().all(|lap| lap.captured.is_empty()));
    // 10,000 is a multiple of 8: the board is the same as before.
    let (after, _) = compare(&game, &before, 0, &mut Plain::of(&game, &before));
    assert_eq!(game.notation(&after), "0,1/0,0/1,0/3,1 N");
    assert_eq!(game.play(&before.swapped(), 0).unwrap().0, after.swapped());
}

#[test]
fn without_v4_there_is_no_lap_limit() {
    for switches in combinations().into_iter().chain([V6]) {
        let rules = Rules::with(3, 6, 2, switches).unwrap();
        assert_eq!(rules.every_move_ends(), !switches.capture_on_empty);
    }
}

// V5

#[test]
fn a_last_seed_may_step_to_the_next_row_inwards() {
    let before = "0,0,0,1,0,0
                  0,0,0,0,0,0
                  0,0,0,0,0,0
                  0,0,0,0,0,0
                  0,0,0,0,0,0
                  0,0,1,0,0,0 S";
    assert_legal(V5_STRAIGHT, before, &[2, 6]);
    assert_legal(V5_DIAGONAL, before, &[2, 6, 7, 8]);
    for (switches, action, row) in [
        (V5_STRAIGHT, 6, "0,0,1,0,0,0"),
        (V5_DIAGONAL, 6, "0,0,1,0,0,0"),
        (V5_DIAGONAL, 7, "0,1,0,0,0,0"),
        (V5_DIAGONAL, 8, "0,0,0,1,0,0"),
    ] {
        let north = "0,0,0,1,0,0 0,0,0,0,0,0 0,0,0,0,0,0";
        let after = format!("{north} 0,0,0,0,0,0 {row} 0,0,0,0,0,0 N");
        assert_plays(switches, before, action, &[(1, 0)], &after);
    }
    // The seed may be sown instead.
    assert_plays(
        V5_STRAIGHT,
        before,
        2,
        &[(1, 0)],
        "0,0,0,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,1,0,0 N",
    );
}

#[test]
fn the_steps_come_after_the_sowing_actions() {
    for (switches, straight) in [(OFF, 4), (V1, 8), (V2, 8)] {
        for (last_seed_steps, steps) in [(LastSeedSteps::Straight, 1), (LastSeedSteps::Diagonal, 3)]
        {
            let switches = Switches { last_seed_steps: Some(last_seed_steps), ..switches };
            let rules = Rules::with(2, 4, 2, switches).unwrap();
            assert_eq!(rules.num_actions(), straight + steps);
            let names: Vec<_> =
                (straight..straight + steps).map(|a| rules.action_name(a).unwrap()).collect();
            assert_eq!(names, ["step", "step-left", "step-right"][..steps]);
        }
    }
}

#[test]
fn a_step_is_legal_only_with_exactly_one_seed() {
    for (south, legal) in [
        ("0,0,0 0,0,0 0,1,0", &[1, 3, 4, 5][..]),
        ("0,0,0 0,1,0 0,0,0", &[1, 3, 4, 5]),
        ("0,0,0 0,0,0 0,2,0", &[1]),
        ("0,0,0 0,0,0 0,1,1", &[1, 2]),
        ("0,0,0 0,1,0 0,1,0", &[1]),
        ("1,0,0 0,0,0 0,1,0", &[1]),
        ("1,0,0 0,1,0 0,0,0", &[1]),
    ] {
        assert_legal(V5_DIAGONAL, &format!("0,1,0 0,0,0 0,5,0 {south} S"), legal);
    }
}

#[test]
fn no_step_leads_out_of_the_inner_row() {
    assert_legal(V5_DIAGONAL, "0,0,0 0,0,0 0,1,0 0,1,0 0,0,0 0,0,0 S", &[1]);
    assert_legal(V5_DIAGONAL, "0,0,0 0,1,0 0,1,0 0,0,0 S", &[1]);
    assert_legal(V5_DIAGONAL, "0,0,0 0,1,0 0,0,0 0,1,0 S", &[1, 3, 4, 5]);
}

#[test]
fn a_step_needs_a_column_to_step_into() {
    let north = "1,1,1 1,1,1 1,1,1 0,0,0";
    assert_legal(V5_DIAGONAL, &format!("{north} 0,0,0 1,0,0 S"), &[0, 3, 5]);
    assert_legal(V5_DIAGONAL, &format!("{north} 0,0,0 0,0,1 S"), &[2, 3, 4]);
    assert_legal(V5_DIAGONAL, &format!("{north} 1,0,0 0,0,0 S"), &[0, 3, 5]);
    assert_legal(V5_DIAGONAL, "1 0 0 0 0 1 S", &[0, 1]);
    assert_legal(V5_STRAIGHT, &format!("{north} 0,0,0 1,0,0 S"), &[0, 3]);
}

#[test]
fn with_one_row_a_side_no_step_is_ever_legal() {
    assert_legal(V5_DIAGONAL, "1,1,1 0,1,0 S", &[1]);
    assert_legal(V5_STRAIGHT, "1 1 S", &[0]);
    let rules = Rules::with(1, 3, 2, V5_DIAGONAL).unwrap();
    assert_eq!(rules.num_actions(), 6);
}

#[test]
fn a_step_into_the_middle_row_captures_nothing() {
    for switches in [V5_STRAIGHT, Switches { fall_through: true, ..V5_STRAIGHT }] {
        assert_plays(
            switches,
            "0,5,0 0,5,0 0,5,0 0,0,0 0,0,0 0,1,0 S",
            3,
            &[(1, 0)],
            "0,5,0 0,5,0 0,5,0 0,0,0 0,1,0 0,0,0 N",
        );
    }
}

#[test]
fn a_step_into_the_inner_row_captures_and_sows_on_along_r4s_circuit() {
    let before = "0,0,0,0,0,0
                  0,0,0,0,0,0
                  1,0,3,0,0,0
                  0,0,0,0,0,0
                  0,0,1,0,0,0
                  0,0,0,0,0,0 S";
    let after = "0,0,0,0,0,0
                 0,0,0,0,0,0
                 1,0,0,0,0,0
                 0,0,0,1,1,1
                 0,0,0,0,0,0
                 1,0,0,0,0,0 N";
    let laps = assert_plays(V5_STRAIGHT, before, 6, &[(1, 3), (4, 0)], after);
    // It counts as a lap of one seed, the first of the trace.
    let first = Lap {
        lifted: hole(4, 2),
        seeds: 1,
        landed: hole(3, 2),
        captured: vec![hole(2, 2)],
        taken: 3,
    };
    assert_eq!(laps[0], first);
    assert_eq!((laps[1].lifted, laps[1].landed), (hole(3, 2), hole(5, 0)));
    // Also where the direction could be chosen, and where a last seed captures
    // from an empty hole.
    let either = Switches { direction: DirectionChoice::PerMove, ..V5_STRAIGHT };
    assert_plays(either, before, 12, &[(1, 3), (4, 0)], after);
    let on_empty = Switches { capture_on_empty: true, ..V5_STRAIGHT };
    assert_plays(on_empty, before, 6, &[(1, 3), (4, 0)], after);
    // And diagonally.
    let before = before.replace("0,0,1,0,0,0", "0,0,0,1,0,0");
    assert_plays(V5_DIAGONAL, &before, 7, &[(1, 3), (4, 0)], after);
    let before = before.replace("0,0,0,1,0,0", "0,1,0,0,0,0");
    assert_plays(V5_DIAGONAL, &before, 8, &[(1, 3), (4, 0)], after);
}

#[test]
fn the_seeds_captured_by_a_step_are_sown_in_the_direction_the_player_is_bound_to() {
    let switches = Switches { last_seed_steps: Some(LastSeedSteps::Straight), ..V2 };
    for (bound, south) in [
        ("--", "0,0,0,1,1,1 0,0,0,0,0,0 1,0,0,0,0,0"),
        ("-<", "0,0,0,1,1,1 0,0,0,0,0,0 1,0,0,0,0,0"),
        (">-", "0,0,0,1,1,1 0,0,0,0,0,0 1,0,0,0,0,0"),
        ("<-", "1,1,0,0,0,0 0,0,0,0,0,0 0,0,0,0,1,1"),
        ("<>", "1,1,0,0,0,0 0,0,0,0,0,0 0,0,0,0,1,1"),
    ] {
        // A step never chooses a direction: who was free stays free.
        let north = "0,0,0,0,0,0 0,0,0,0,0,0";
        assert_plays(
            switches,
            &format!("{north} 1,0,3,0,0,0 0,0,0,0,0,0 0,0,1,0,0,0 0,0,0,0,0,0 S {bound}"),
            12,
            &[(1, 3), (4, 0)],
            &format!("{north} 1,0,0,0,0,0 {south} N {bound}"),
        );
    }
}

#[test]
fn a_step_without_a_capture_chooses_no_direction_either() {
    let switches = Switches { last_seed_steps: Some(LastSeedSteps::Diagonal), ..V2 };
    let (before, after) = ("1,0,0 0,0,0 0,0,0 0,1,0", "1,0,0 0,0,0 0,0,1 0,0,0");
    for bound in ["--", "<-", ">>"] {
        let after = format!("{after} N {bound}");
        assert_plays(switches, &format!("{before} S {bound}"), 8, &[(1, 0)], &after);
    }
    assert_legal(switches, &format!("{before} S --"), &[1, 4, 6, 7, 8]);
    assert_legal(switches, &format!("{before} S <-"), &[4, 6, 7, 8]);
    assert_legal(switches, &format!("{after} S --"), &[2, 5]);
}

#[test]
fn a_step_captures_where_a_last_seed_would() {
    // R8 (b): from the innermost row that holds seeds, without falling through.
    assert_plays(
        V5_STRAIGHT,
        "0,5,0 0,5,0 1,0,0 0,0,0 0,1,0 0,0,0 S",
        3,
        &[(1, 0)],
        "0,5,0 0,5,0 1,0,0 0,1,0 0,0,0 0,0,0 N",
    );
    assert_plays(
        V5_STRAIGHT,
        "0,5,0 0,2,0 0,0,0 0,0,0 0,1,0 0,0,0 S",
        3,
        &[(1, 2), (3, 0)],
        "0,5,0 0,0,0 0,0,0 0,0,1 0,0,0 1,1,0 N",
    );
    // V3: the first occupied hole of the column.
    let fall_through = Switches { fall_through: true, ..V5_STRAIGHT };
    assert_plays(
        fall_through,
        "0,5,0 0,2,0 1,0,0 0,0,0 0,1,0 0,0,0 S",
        3,
        &[(1, 2), (3, 0)],
        "0,5,0 0,0,0 1,0,0 0,0,1 0,0,0 1,1,0 N",
    );
    assert_plays(
        fall_through,
        "5,0,0 2,0,0 1,0,0 0,0,0 0,1,0 0,0,0 S",
        3,
        &[(1, 0)],
        "5,0,0 2,0,0 1,0,0 0,1,0 0,0,0 0,0,0 N",
    );
}

#[test]
fn the_capture_of_the_last_seed_by_a_step_ends_the_game_at_once() {
    assert_plays(
        V5_STRAIGHT,
        "0,0,0 0,0,0 0,4,0 0,0,0 0,1,0 0,0,0 S",
        3,
        &[(1, 4)],
        "0,0,0 0,0,0 0,0,0 0,5,0 0,0,0 0,0,0 N",
    );
    let (game, won) = draw(V5_STRAIGHT, "0,0,0 0,0,0 0,0,0 0,5,0 0,0,0 0,0,0 N");
    assert_eq!(game.winner(&won), Some(Player::South));
}

// V6

#[test]
fn any_hole_of_the_side_may_be_chosen_in_either_direction() {
    let game = Game::new(Rules::named("katra-boaoaka").unwrap());
    assert_eq!(game.rules().num_actions(), 32);
    assert_eq!(actions(&game, &game.start()), (0..32).collect::<Vec<_>>());
    for position in [game.start(), game.start().swapped()] {
        for action in 0..32 {
            let (row, column) = (action / 8 % 2, action % 8);
            let lifted = match position.to_move() {
                Player::South => hole(3 - row, column),
                Player::North => hole(row, 7 - column),
            };
            let laps = game.trace(&position, action as i64).unwrap();
            assert_eq!(laps[0].lifted, lifted);
        }
    }
    // Holes are counted from the outer row, and from the mover's left.
    assert_legal(V6, "1,1,1 1,1,1 0,0,4 2,1,0 S --", &[0, 1, 5, 6, 7, 11]);
    // In R4's direction hole 4 (inner row) goes to the left, mirrored to the right.
    for (action, after) in [(4, "1,0,0 0,0,1"), (10, "0,0,1 0,0,1")] {
        let bound = if action < 6 { ">-" } else { "<-" };
        let after = format!("0,1,0 0,0,0 {after} N {bound}");
        assert_plays(V6, "0,1,0 0,0,0 0,1,0 0,0,1 S --", action, &[(1, 0)], &after);
    }
}

#[test]
fn a_lap_that_ends_in_the_inner_row_captures_the_whole_column() {
    // A single seed goes from the inner row's column 2 to its column 1, which
    // is empty or not. (Inner, outer) facing seeds, and whether they are taken.
    for (inner, outer, from_empty, from_occupied) in [
        (0, 0, false, false),
        (1, 0, false, true),
        (0, 1, false, true),
        (1, 1, false, true),
        (2, 0, true, true),
        (0, 2, true, true),
        (1, 2, true, true),
        (2, 1, true, true),
        (2, 2, true, true),
        (3, 1, true, true),
    ] {
        for (lying, taken) in [(0, from_empty), (1, from_occupied)] {
            let text = format!("0,{outer},0,1 0,{inner},0,0 0,{lying},1,0 0,0,0,0 S --");
            let (game, before) = draw(V6, &text);
            for before in [before, before.swapped()] {
                let (_, laps) = compare(&game, &before, 6, &mut Plain::of(&game, &before));
                assert_eq!(laps[0].taken, if taken { inner + outer } else { 0 }, "{text}");
                let holes = usize::from(inner > 0) + usize::from(outer > 0);
                assert_eq!(laps[0].captured.len(), if taken { holes } else { 0 }, "{text}");
                assert_eq!(laps.len() > 1, taken || lying > 0, "{text}");
            }
        }
    }
}

#[test]
fn the_seeds_of_the_whole_column_are_sown_on_with_those_of_the_landing_hole() {
    let laps = assert_plays(
        V6,
        "0,1,0,1
         0,2,0,0
         0,0,1,0
         0,0,0,0 S --",
        6,
        &[(1, 3), (4, 0)],
        "0,0,0,1
         0,0,0,0
         1,0,0,0
         1,1,1,0 N >-",
    );
    assert_eq!(laps[0].captured, [hole(1, 1), hole(0, 1)]);
    assert_plays(
        V6,
        "0,1,0,1
         0,1,0,0
         0,1,1,0
         0,0,0,0 S --",
        6,
        &[(1, 2), (4, 0)],
        "0,0,0,1
         0,0,0,0
         1,0,0,0
         1,1,1,0 N >-",
    );
}

#[test]
fn the_opponents_outer_hole_is_taken_when_his_inner_hole_or_row_is_empty() {
    for elsewhere in [1, 0] {
        let laps = assert_plays(
            V6,
            &format!("0,2,0,1 {elsewhere},0,0,0 0,0,1,0 0,0,0,0 S --"),
            6,
            &[(1, 2), (3, 0)],
            &format!("0,0,0,1 {elsewhere},0,0,0 1,0,0,0 1,1,0,0 N >-"),
        );
        assert_eq!(laps[0].captured, [hole(0, 1)]);
    }
}

#[test]
fn only_the_inner_row_captures_whole_columns() {
    // The outer row does not, whether the inner row is empty or not.
    for inner in [0, 1] {
        assert_plays(
            V6,
            &format!("0,3,0,1 0,3,0,0 0,0,0,{inner} 1,1,0,0 S --"),
            0,
            &[(1, 0), (2, 0)],
            &format!("0,3,0,1 0,3,0,0 0,0,0,{inner} 0,0,1,1 N >-"),
        );
    }
    // The inner row does, also if it held no seed before.
    assert_plays(
        V6,
        "1,0,0,2
         0,0,0,1
         0,0,0,0
         0,0,0,1 S --",
        3,
        &[(1, 3), (4, 0)],
        "1,0,0,0
         0,0,0,0
         1,1,1,0
         1,0,0,0 N >-",
    );
}

#[test]
fn a_lap_without_a_capture_is_relayed_from_an_occupied_hole_and_ends_the_move_in_an_empty_one() {
    assert_plays(
        V6,
        "1,0,1,1
         1,0,1,1
         0,1,1,0
         0,0,0,0 S --",
        6,
        &[(1, 0), (2, 0)],
        "1,0,1,1
         1,0,1,1
         1,0,0,0
         1,0,0,0 N >-",
    );
    assert_plays(
        V6,
        "1,1,1,1
         1,1,1,1
         0,0,1,0
         0,0,0,0 S --",
        6,
        &[(1, 0)],
        "1,1,1,1
         1,1,1,1
         0,1,0,0
         0,0,0,0 N >-",
    );
}

#[test]
fn the_capture_of_the_last_column_ends_the_game_at_once() {
    assert_plays(
        V6,
        "0,2,0,0
         0,1,0,0
         0,0,1,0
         1,0,0,0 S -<",
        6,
        &[(1, 3)],
        "0,0,0,0
         0,0,0,0
         0,4,0,0
         1,0,0,0 N ><",
    );
}

#[test]
fn with_three_rows_a_side_all_three_facing_holes_are_captured() {
    let laps = assert_plays(
        V6,
        "0,1,0
         0,1,0
         1,2,0
         1,0,0
         0,0,0
         0,0,0 S --",
        6,
        &[(1, 4), (5, 0)],
        "0,0,0
         0,0,0
         1,0,0
         0,0,1
         0,0,1
         1,1,1 N >-",
    );
    assert_eq!(laps[0].captured, [hole(2, 1), hole(1, 1), hole(0, 1)]);
}

// One-sided boards

#[test]
fn the_owner_of_all_seeds_has_won_whoever_is_to_move() {
    let mut random = Random(3);
    for rules in all_rules() {
        let game = Game::new(rules);
        let half = rules.holes() / 2;
        for owner in PLAYERS {
            let first = if owner == Player::South { half } else { 0 };
            let mut grid = vec![0; 2 * half];
            for _ in 0..=random.below(9) {
                grid[first + random.below(half)] += 1;
            }
            for to_move in PLAYERS {
                let position = game.position(&grid, to_move).unwrap();
                assert_eq!(game.winner(&position), Some(owner));
                assert!(game.legal(&position).is_empty());
                for action in 0..rules.num_actions() as i64 {
                    assert!(game.play(&position, action).is_err());
                    assert!(game.trace(&position, action).is_err());
                }
                assert_eq!(Plain::of(&game, &position).winner(), Some(owner));
            }
        }
        assert_eq!(game.position(&vec![0; 2 * half], Player::South), Err(GridError::Total(0)));
    }
}

#[test]
fn a_board_without_seeds_is_refused() {
    for switches in combinations().into_iter().chain([V6]) {
        let game = Game::new(Rules::with(2, 2, 2, switches).unwrap());
        let bound = if game.rules().binds() { " --" } else { "" };
        let error = game.parse(&format!("0,0/0,0/0,0/0,0 S{bound}")).unwrap_err();
        assert_eq!(error, NotationError::Grid(GridError::Total(0)));
        assert_eq!(error.to_string(), "a board without seeds is no position");
    }
}

// R11

/// A game and the moves to play in it.
struct Run {
    name: String,
    game: Game,
    moves: u64,
}

/// Plays random moves from random positions and tells the largest number of laps
/// for each game. A move that does not end within the time fails the test.
fn longest_moves(runs: Vec<Run>, seed: u64) -> Vec<(String, u32)> {
    let begun = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let watched = Arc::clone(&begun);
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut longest = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            let mut random = Random(seed);
            let (mut laps, mut moves) = (0, 0);
            watched[0].store(index as u64, Ordering::Relaxed);
            while moves < run.moves {
                let mut position = random_position(&run.game, &mut random);
                for _ in 0..8 {
                    let legal = run.game.legal(&position);
                    if legal.is_empty() {
                        break;
                    }
                    let action = legal.iter().nth(random.below(legal.len())).unwrap();
                    watched[1].store(moves, Ordering::Relaxed);
                    let (after, ply) = run.game.play(&position, action as i64).unwrap();
                    position = after;
                    laps = laps.max(ply.laps);
                    moves += 1;
                }
            }
            longest.push((run.name.clone(), laps));
        }
        send.send(longest).unwrap();
    });
    match receive.recv_timeout(Duration::from_secs(300)) {
        Ok(longest) => longest,
        Err(RecvTimeoutError::Disconnected) => panic!("the moves were not played"),
        Err(RecvTimeoutError::Timeout) => {
            let [game, number] = [0, 1].map(|i| begun[i].load(Ordering::Relaxed));
            panic!("game {game}, move {number} has not ended (random numbers from {seed})");
        }
    }
}

#[test]
fn every_move_of_the_named_rule_sets_ends() {
    let named = Rules::NAMED.iter().filter(|(_, rules)| rules.every_move_ends());
    let runs: Vec<Run> = named
        .map(|&(name, rules)| Run {
            name: name.to_owned(),
            game: Game::new(rules),
            moves: 2_000_000,
        })
        .collect();
    assert_eq!(runs.len(), 7);
    for (name, laps) in longest_moves(runs, 4) {
        println!("{name}: at most {laps} laps in 2,000,000 moves");
        assert!(laps > 10);
    }
}

#[test]
fn every_move_of_every_other_rule_set_without_v4_ends() {
    let rules = all_rules().into_iter().filter(Rules::every_move_ends);
    let runs: Vec<Run> = rules
        .map(|rules| Run { name: format!("{rules:?}"), game: Game::new(rules), moves: 2_000 })
        .collect();
    let longest = longest_moves(runs, 5);
    println!("of all others: {:?}", longest.iter().max_by_key(|(_, laps)| laps));
}

// Rules

/// Every size of board under every combination of switches.
fn all_rules() -> Vec<Rules> {
    let mut all = Vec::new();
    for rows in 1..=3 {
        for columns in 1..=8 {
            for switches in combinations().into_iter().chain([V6]) {
                all.push(Rules::with(rows, columns, 2, switches).unwrap());
            }
        }
    }
    all
}

#[test]
fn contradictory_switches_are_refused() {
    let sentence =
        "boaoaka has its own captures and a direction per game, and goes with no other switch";
    for switches in combinations() {
        assert!(Rules::with(3, 6, 2, switches).is_ok());
        let both = Switches { boaoaka: true, ..switches };
        if both == V6 {
            assert!(Rules::with(2, 8, 2, both).is_ok());
            continue;
        }
        let error = Rules::with(2, 8, 2, both).unwrap_err();
        assert_eq!(error, RulesError::BoaoakaStandsAlone);
        assert_eq!(error.to_string(), sentence);
    }
}

#[test]
fn impossible_numbers_are_refused_with_any_switches() {
    for switches in combinations().into_iter().chain([V6]) {
        let refused =
            |rows, columns, seeds| Rules::with(rows, columns, seeds, switches).unwrap_err();
        assert_eq!(refused(0, 6, 2), RulesError::Rows(0));
        assert_eq!(refused(4, 6, 2), RulesError::Rows(4));
        assert_eq!(refused(3, 9, 2), RulesError::Columns(9));
        assert_eq!(refused(3, 0, 2), RulesError::Columns(0));
        assert_eq!(refused(3, 6, 0), RulesError::Seeds(0));
        assert_eq!(refused(3, i64::MIN, i64::MAX), RulesError::Columns(i64::MIN));
        let full = MAX_SEEDS as i64 / 36;
        assert!(Rules::with(3, 6, full, switches).is_ok());
        for seeds in [full + 1, i64::MAX] {
            assert_eq!(
                refused(3, 6, seeds),
                RulesError::TooManySeeds { rows: 3, columns: 6, seeds }
            );
        }
    }
}

#[test]
fn the_named_rule_sets_are_those_of_the_table() {
    let ludii = Switches { direction: DirectionChoice::PerMove, fall_through: true, ..V5_STRAIGHT };
    let field_notes = Switches { direction: DirectionChoice::PerGame, ..ludii };
    let wikipedia = Switches { direction: DirectionChoice::PerMove, ..V4 };
    let table = [
        ("katro", 3, 6, OFF, 6),
        ("katro-6x3", 3, 3, OFF, 3),
        ("katro-4x6", 2, 6, OFF, 6),
        ("katro-4x4", 2, 4, OFF, 4),
        ("katro-wikipedia", 3, 6, wikipedia, 12),
        ("katro-ludii", 3, 6, ludii, 13),
        ("katro-fieldnotes", 3, 6, field_notes, 13),
        ("katra-boaoaka", 2, 8, V6, 32),
    ];
    assert_eq!(Rules::NAMED.map(|(name, _)| name), table.map(|(name, ..)| name));
    for (name, rows, columns, switches, num_actions) in table {
        let rules = Rules::with(rows, columns, 2, switches).unwrap();
        assert_eq!(Rules::named(name), Ok(rules));
        assert_eq!(rules.name(), Some(name));
        assert_eq!((rules.switches(), rules.num_actions()), (switches, num_actions));
        assert_eq!(rules.is_standard(), switches == OFF);
        assert_eq!(rules.binds(), switches.direction == DirectionChoice::PerGame);
        let other = Rules::with(rows, columns, 1, switches).unwrap();
        assert_eq!(other.name(), None);
        assert_ne!(other, rules);
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    for unknown in ["", "Katro", "katro ", "ludii", "katro-8x8"] {
        let error = Rules::named(unknown).unwrap_err();
        assert_eq!(error, RulesError::Unknown(unknown.to_owned()));
        assert_eq!(
            error.to_string(),
            format!(
                "unknown rules {unknown:?}, known are katro, katro-6x3, katro-4x6, katro-4x4, \
                 katro-wikipedia, katro-ludii, katro-fieldnotes, katra-boaoaka"
            )
        );
    }
}

#[test]
fn rules_are_equal_if_all_their_numbers_and_switches_are() {
    let all = all_rules();
    for (i, one) in all.iter().enumerate() {
        let again = Rules::with(one.rows() as i64, one.columns() as i64, 2, one.switches());
        assert_eq!(again, Ok(*one));
        assert_eq!(hash(again.unwrap()), hash(one));
        assert!(all[..i].iter().all(|other| other != one && hash(other) != hash(one)));
    }
}

#[test]
fn every_action_has_a_name_that_is_read_back() {
    for rules in all_rules().into_iter().chain(Rules::NAMED.map(|(_, rules)| rules)) {
        let num_actions = rules.num_actions();
        assert!((1..=63).contains(&num_actions), "{rules:?}");
        assert_eq!(Plain::of(&Game::new(rules), &Game::new(rules).start()).num_actions(), {
            num_actions
        });
        let mut names: Vec<String> =
            (0..num_actions).map(|action| rules.action_name(action).unwrap()).collect();
        for (action, name) in names.iter().enumerate() {
            assert_eq!(rules.parse_action(name), Some(action), "{rules:?}");
        }
        for action in [num_actions, num_actions + 1, 63, 64, usize::MAX] {
            assert_eq!(rules.action_name(action), None);
        }
        for text in ["", " ", "A", "i", "a ", " a", "a><", "a0", "a9", "steps", "0", "-1", "é"] {
            assert_eq!(rules.parse_action(text), None, "{rules:?}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), num_actions);
    }
}

#[test]
fn an_action_is_named_by_its_column_and_its_direction() {
    let names = |rules: Rules| -> Vec<String> {
        (0..rules.num_actions()).map(|action| rules.action_name(action).unwrap()).collect()
    };
    assert_eq!(names(Rules::with(3, 3, 2, OFF).unwrap()), ["a", "b", "c"]);
    let steps = Switches { direction: DirectionChoice::PerMove, ..V5_DIAGONAL };
    assert_eq!(
        names(Rules::with(2, 2, 2, steps).unwrap()),
        ["a>", "b>", "a<", "b<", "step", "step-left", "step-right"]
    );
    assert_eq!(
        names(Rules::with(2, 2, 2, V6).unwrap()),
        ["a1>", "b1>", "a2>", "b2>", "a1<", "b1<", "a2<", "b2<"]
    );
}
