//! Known answers from programs written independently of this project: single
//! moves with their laps, whole games, and perft.

use std::collections::BTreeMap;
use std::fs;

use katro::{Direction, Game, Hole, Player, Position, Rules};
use serde::Deserialize;

#[derive(Deserialize)]
struct Move {
    board: Vec<Vec<i64>>,
    player: i64,
    column: i64,
    legal: Vec<usize>,
    result: Vec<Vec<i64>>,
    laps: u32,
    captured: u32,
    winner: Option<i64>,
    trace: Option<Vec<KnownLap>>,
}

type Place = (usize, usize);

/// Lifted hole, seeds, landing hole, captured hole, seeds captured.
type KnownLap = (Place, usize, Place, Option<Place>, usize);

#[derive(Deserialize)]
struct WholeGame {
    moves: Vec<i64>,
    winner: i64,
    r#final: Vec<Vec<i64>>,
    plies: usize,
    laps: u32,
    captured: u32,
}

/// A move under a rule set with switches (V1 to V6).
#[derive(Deserialize)]
struct VariantMove {
    name: String,
    board: Vec<Vec<i64>>,
    player: i64,
    memory: Option<Memory>,
    action: i64,
    legal: Vec<usize>,
    result: Vec<Vec<i64>>,
    memory_after: Option<Memory>,
    laps: u32,
    captured: u32,
    winner: Option<i64>,
    trace: Option<Vec<VariantLap>>,
}

/// Lifted hole, seeds, landing hole, captured holes, seeds captured.
type VariantLap = (Place, usize, Place, Vec<Place>, usize);

/// The directions South and North are bound to: 0 R4's, 1 mirrored.
type Memory = [Option<u8>; 2];

#[derive(Deserialize)]
struct VariantGame {
    name: String,
    actions: Vec<i64>,
    winner: Option<i64>,
    r#final: Vec<Vec<i64>>,
    memory: Option<Memory>,
    plies: usize,
    laps: u32,
    captured: u32,
}

const BOARDS: [&str; 5] = ["6x6", "4x4", "4x6", "6x3", "2x6"];

fn game(board: &str) -> Game {
    let (rows, columns) = board.split_once('x').unwrap();
    let rows: i64 = rows.parse().unwrap();
    Game::new(Rules::for_board(rows / 2, columns.parse().unwrap()).unwrap())
}

fn read<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<T> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty());
    lines
}

fn position(game: &Game, board: &[Vec<i64>], player: i64) -> Position {
    game.position(&board.concat(), Player::from_index(player).unwrap()).unwrap()
}

fn bound(position: &Position, game: &Game, memory: Option<Memory>) -> Position {
    let direction = |number| if number == 0 { Direction::Regular } else { Direction::Mirrored };
    let memory = memory.unwrap_or_default().map(|number| number.map(direction));
    game.bind(position, memory).unwrap()
}

fn hole((row, column): Place) -> Hole {
    Hole { row, column }
}

#[test]
fn single_moves_match_the_known_answers() {
    for board in BOARDS {
        let game = game(board);
        for case in read::<Move>(&format!("moves_{board}.jsonl")) {
            let before = position(&game, &case.board, case.player);
            assert_eq!(game.legal(&before).iter().collect::<Vec<_>>(), case.legal);
            let (after, ply) = game.play(&before, case.column).unwrap();
            assert_eq!(after, position(&game, &case.result, 1 - case.player));
            assert_eq!((ply.laps, ply.captured), (case.laps, case.captured));
            assert_eq!(game.winner(&after), case.winner.and_then(Player::from_index));

            let trace = game.trace(&before, case.column).unwrap();
            assert_eq!(trace.len() as u32, case.laps);
            for (lap, known) in trace.iter().zip(case.trace.iter().flatten()) {
                assert_eq!((lap.lifted, lap.seeds), (hole(known.0), known.1));
                assert_eq!((lap.landed, lap.taken), (hole(known.2), known.4));
                assert_eq!(lap.captured, known.3.map(hole).into_iter().collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn whole_games_match_the_known_answers() {
    for board in ["6x6", "4x4", "4x6", "6x3"] {
        let game = game(board);
        for known in read::<WholeGame>(&format!("games_{board}.jsonl")) {
            let mut position = game.start();
            let (mut laps, mut captured) = (0, 0);
            for &column in &known.moves {
                assert_eq!(game.winner(&position), None);
                let (after, ply) = game.play(&position, column).unwrap();
                position = after;
                laps += ply.laps;
                captured += ply.captured;
            }
            assert_eq!(game.winner(&position), Player::from_index(known.winner));
            let last = self::position(&game, &known.r#final, 0);
            assert_eq!(game.grid(&position), game.grid(&last));
            let totals = (known.moves.len(), laps, captured);
            assert_eq!(totals, (known.plies, known.laps, known.captured));
        }
    }
}

#[test]
fn perft_matches_the_known_answers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/perft.json");
    let known: BTreeMap<String, Vec<u64>> =
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(known.len(), BOARDS.len());
    for (board, counts) in known {
        let game = game(&board);
        for (depth, count) in (1..).zip(counts) {
            assert_eq!(game.perft(&game.start(), depth), count, "{board} depth {depth}");
        }
    }
}

#[test]
fn moves_of_the_variants_match_the_known_answers() {
    for case in read::<VariantMove>("variants.jsonl") {
        let game = Game::new(Rules::named(&case.name).unwrap());
        let before = bound(&position(&game, &case.board, case.player), &game, case.memory);
        assert_eq!(game.legal(&before).iter().collect::<Vec<_>>(), case.legal);
        let (after, ply) = game.play(&before, case.action).unwrap();
        let result = position(&game, &case.result, 1 - case.player);
        assert_eq!(after, bound(&result, &game, case.memory_after));
        assert_eq!((ply.laps, ply.captured), (case.laps, case.captured));
        assert_eq!(game.winner(&after), case.winner.and_then(Player::from_index));

        let trace = game.trace(&before, case.action).unwrap();
        assert_eq!(trace.len() as u32, case.laps);
        for (lap, known) in trace.iter().zip(case.trace.iter().flatten()) {
            assert_eq!((lap.lifted, lap.seeds), (hole(known.0), known.1));
            assert_eq!((lap.landed, lap.taken), (hole(known.2), known.4));
            assert_eq!(lap.captured, known.3.iter().copied().map(hole).collect::<Vec<_>>());
        }
    }
}

#[test]
fn games_of_the_variants_match_the_known_answers() {
    for known in read::<VariantGame>("variant_games.jsonl") {
        let game = Game::new(Rules::named(&known.name).unwrap());
        let mut position = game.start();
        let (mut laps, mut captured) = (0, 0);
        for &action in &known.actions {
            assert_eq!(game.winner(&position), None);
            let (after, ply) = game.play(&position, action).unwrap();
            position = after;
            laps += ply.laps;
            captured += ply.captured;
        }
        assert_eq!(game.winner(&position), known.winner.and_then(Player::from_index));
        let to_move = position.to_move().index() as i64;
        let last = self::position(&game, &known.r#final, to_move);
        assert_eq!(position, bound(&last, &game, known.memory));
        let totals = (known.actions.len(), laps, captured);
        assert_eq!(totals, (known.plies, known.laps, known.captured));
    }
}
