//! The rules clause by clause, each on positions drawn in the test.
//!
//! A position is its rows one below the other, North's outer row at the top,
//! then the player to move. Every move is checked from both seats: once as it
//! is drawn, and once with the board turned round.

use katro::{Game, Hole, Lap, Player, Position, Rules};

/// Reads a drawn position; the board tells the rules.
fn draw(drawing: &str) -> (Game, Position) {
    let mut rows: Vec<&str> = drawing.split_whitespace().collect();
    let player = rows.pop().unwrap();
    Game::from_notation(&format!("{} {player}", rows.join("/"))).unwrap()
}

/// A hole of the drawn board.
fn hole(row: usize, column: usize) -> Hole {
    Hole { row, column }
}

/// The same hole when the board is turned by 180 degrees.
fn turned(game: &Game, hole: Hole) -> Hole {
    let (rows, columns) = (2 * game.rules().rows(), game.rules().columns());
    Hole { row: rows - 1 - hole.row, column: columns - 1 - hole.column }
}

/// Checks the legal actions of a drawn position, from both seats.
fn assert_legal(drawing: &str, legal: &[usize]) {
    let (game, position) = draw(drawing);
    for position in [position, position.swapped()] {
        assert_eq!(game.legal(&position).iter().collect::<Vec<_>>(), legal, "{drawing}");
    }
}

/// Checks what a move does, from both seats: its laps as the seeds sown and the
/// seeds taken at the end of each, and the board after it. Returns the laps.
fn assert_plays(before: &str, action: i64, laps: &[(usize, usize)], after: &str) -> Vec<Lap> {
    let (game, before) = draw(before);
    let (_, after) = draw(after);
    for (before, after) in [(before, after), (before.swapped(), after.swapped())] {
        let trace = game.trace(&before, action).unwrap();
        let numbers: Vec<_> = trace.iter().map(|lap| (lap.seeds, lap.taken)).collect();
        assert_eq!(numbers, laps);
        let (position, ply) = game.play(&before, action).unwrap();
        assert_eq!(game.notation(&position), game.notation(&after));
        assert_eq!(position, after);
        assert_eq!(ply.laps as usize, laps.len());
        assert_eq!(ply.captured as usize, laps.iter().map(|lap| lap.1).sum::<usize>());
    }
    game.trace(&before, action).unwrap()
}

/// Checks that a single seed goes the way that the numbers of `circuit`, the
/// mover's half as he sees it, count; for both seats.
fn assert_circuit(circuit: &[&[usize]]) {
    let (rows, columns) = (circuit.len(), circuit[0].len());
    let game = Game::new(Rules::new(rows as i64, columns as i64, 1).unwrap());
    let mut path = vec![hole(0, 0); rows * columns];
    for (row, numbers) in circuit.iter().enumerate() {
        for (column, &number) in numbers.iter().enumerate() {
            path[number - 1] = hole(rows + row, column);
        }
    }
    for (i, &from) in path.iter().enumerate() {
        let to = path[(i + 1) % path.len()];
        let mut grid = vec![0; 2 * rows * columns];
        grid[from.row * columns + from.column] = 1;
        // The opponent's only seed, which a seed that falls alone never takes.
        grid[columns - 1] = 1;
        let south = game.position(&grid, Player::South).unwrap();
        let action = from.column as i64;

        let lap = game.trace(&south, action).unwrap().remove(0);
        assert_eq!((lap.lifted, lap.landed), (from, to));
        let lap = game.trace(&south.swapped(), action).unwrap().remove(0);
        assert_eq!((lap.lifted, lap.landed), (turned(&game, from), turned(&game, to)));
    }
}

// R1

#[test]
fn the_game_starts_with_two_seeds_in_each_of_36_holes() {
    let (game, position) = draw(
        "2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2 S",
    );
    assert_eq!(game, Game::new(Rules::KATRO));
    assert_eq!(game.start(), position);
    assert_eq!(game.start().to_move(), Player::South);
    assert_eq!(game.grid(&position), [2; 36]);
    assert_eq!(game.rules().total_seeds(), 72);
    assert_eq!(game.winner(&position), None);
}

#[test]
fn seeds_never_leave_the_board() {
    let game = Game::new(Rules::KATRO);
    let mut position = game.start();
    for ply in 0..200 {
        let legal: Vec<usize> = game.legal(&position).iter().collect();
        let Some(&action) = legal.get(ply % legal.len().max(1)) else { break };
        position = game.play(&position, action as i64).unwrap().0;
        assert_eq!(game.grid(&position).iter().map(|&seeds| usize::from(seeds)).sum::<usize>(), 72);
    }
}

// R2

#[test]
fn nobody_sows_into_the_other_side() {
    assert_plays(
        "0,0,0,0,0,1
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,4
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        5,
        &[(4, 0)],
        "0,0,0,0,0,1
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,0,0 N",
    );
}

#[test]
fn the_turn_passes_after_every_move() {
    let game = Game::new(Rules::KATRO);
    let (first, _) = game.play(&game.start(), 0).unwrap();
    let (second, _) = game.play(&first, 0).unwrap();
    assert_eq!((first.to_move(), second.to_move()), (Player::North, Player::South));
}

// R3

#[test]
fn the_mover_starts_from_the_outermost_row_that_holds_seeds() {
    assert_legal(
        "2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         1,1,1,1,1,1
         1,1,1,1,1,1
         0,3,0,0,1,0 S",
        &[1, 4],
    );
    assert_legal(
        "2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         1,1,1,1,1,1
         1,0,0,2,0,9
         0,0,0,0,0,0 S",
        &[0, 3, 5],
    );
    assert_legal(
        "2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         0,0,7,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        &[2],
    );
}

#[test]
fn the_opponents_rows_do_not_matter_for_the_choice() {
    assert_legal(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,1
         0,0,0,0,0,0
         1,1,1,0,0,0
         0,0,0,0,1,1 S",
        &[4, 5],
    );
}

#[test]
fn an_action_is_a_column_of_the_row_that_is_played_from() {
    let laps = assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,0,0,0
         0,0,0,0,0,1
         0,0,0,2,0,1
         0,0,0,0,0,0 S",
        3,
        &[(2, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,0,0,0
         0,0,0,0,0,1
         0,1,1,0,0,1
         0,0,0,0,0,0 N",
    );
    assert_eq!(laps[0].lifted, hole(4, 3));
}

#[test]
fn a_single_seed_may_be_chosen() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,1
         0,0,0,0,0,0
         5,1,0,0,0,0 S",
        1,
        &[(1, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,1
         0,0,0,0,0,0
         5,0,1,0,0,0 N",
    );
}

#[test]
fn an_empty_hole_cannot_be_chosen_and_nobody_passes() {
    let (game, position) = draw(
        "2,2,2,2,2,2
         2,2,2,2,2,2
         2,2,2,2,2,2
         1,1,1,1,1,1
         1,1,1,1,1,1
         0,3,0,0,1,0 S",
    );
    for action in [0, 2, 3, 5, 6, 7, 9, 12, 63, 64, 65, 256 + 1, -1, -63, i64::MIN, i64::MAX] {
        let error = game.play(&position, action).unwrap_err();
        assert_eq!(error, game.trace(&position, action).unwrap_err());
        assert_eq!((error.action, error.legal), (action, game.legal(&position)));
        assert_eq!(error.position, game.notation(&position));
    }
    assert_eq!(
        game.play(&position, -1).unwrap_err().to_string(),
        "illegal action -1: legal are 1, 4 in 2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/\
         1,1,1,1,1,1/1,1,1,1,1,1/0,3,0,0,1,0 S"
    );
}

#[test]
fn columns_are_counted_from_the_movers_left() {
    let (game, position) = draw(
        "0,0,0,0,2,1
         0,0,0,0,0,0
         1,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
    assert_eq!(game.legal(&position).iter().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(game.trace(&position, 0).unwrap()[0].lifted, hole(0, 5));
    assert_eq!(game.trace(&position, 1).unwrap()[0].lifted, hole(0, 4));
}

// R4

#[test]
fn the_circuit_of_three_rows_winds_inwards_and_starts_again() {
    assert_circuit(&[&[13, 14, 15, 16, 17, 18], &[12, 11, 10, 9, 8, 7], &[1, 2, 3, 4, 5, 6]]);
    assert_circuit(&[&[7, 8, 9], &[6, 5, 4], &[1, 2, 3]]);
    assert_circuit(&[&[3], &[2], &[1]]);
}

#[test]
fn the_circuit_of_two_rows_is_a_ring() {
    assert_circuit(&[&[12, 11, 10, 9, 8, 7], &[1, 2, 3, 4, 5, 6]]);
    assert_circuit(&[&[8, 7, 6, 5], &[1, 2, 3, 4]]);
    assert_circuit(&[&[16, 15, 14, 13, 12, 11, 10, 9], &[1, 2, 3, 4, 5, 6, 7, 8]]);
}

#[test]
fn the_circuit_of_one_row_is_a_line_that_starts_again() {
    assert_circuit(&[&[1, 2, 3, 4, 5, 6]]);
    assert_circuit(&[&[1, 2, 3, 4, 5, 6, 7, 8]]);
    assert_circuit(&[&[1, 2]]);
}

#[test]
fn north_sees_the_same_circuit_from_his_seat() {
    let (game, before) = draw(
        "1,0,0,0,0,5
         0,0,0,0,0,0
         1,0,0,0,0,0
         0,0,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
    let (_, after) = draw(
        "0,1,1,1,1,0
         1,1,0,0,0,0
         1,0,0,0,0,0
         0,0,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
    );
    let laps = game.trace(&before, 0).unwrap();
    assert_eq!((laps[0].lifted, laps[0].landed), (hole(0, 5), hole(0, 0)));
    assert_eq!((laps[1].lifted, laps[1].landed), (hole(0, 0), hole(1, 1)));
    assert_eq!(game.play(&before, 0).unwrap().0, after);
}

#[test]
fn the_facing_hole_is_the_same_column_of_the_drawn_board() {
    for column in 0..5 {
        let mut grid = [0; 36];
        grid[12..18].copy_from_slice(&[1; 6]);
        grid[18 + column] = 1;
        grid[18 + column + 1] = 1;
        let game = Game::new(Rules::KATRO);
        let position = game.position(&grid, Player::South).unwrap();
        let lap = game.trace(&position, column as i64).unwrap().remove(0);
        assert_eq!(lap.landed, hole(3, column + 1));
        assert_eq!(lap.captured, [hole(2, column + 1)]);
        // The mover's column c faces the opponent's column 5 - c.
        let lap = game.trace(&position.swapped(), column as i64).unwrap().remove(0);
        assert_eq!(lap.landed, hole(2, 4 - column));
        assert_eq!(lap.captured, [hole(3, 4 - column)]);
    }
}

// R5

#[test]
fn seeds_are_sown_one_by_one_into_the_following_holes() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,1
         1,0,0,0,0,0
         0,0,0,0,1,2
         0,0,0,5,0,4 S",
        3,
        &[(5, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,1
         1,0,0,0,0,0
         0,0,0,1,2,3
         0,0,0,0,1,5 N",
    );
}

#[test]
fn a_lap_of_17_seeds_fills_every_hole_but_its_own() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,17,0,0,0 S",
        2,
        &[(17, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,0,1,1,1 N",
    );
}

#[test]
fn a_lap_of_18_seeds_ends_in_its_own_empty_hole() {
    let laps = assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,18,0,0,0 S",
        2,
        &[(18, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1 N",
    );
    assert_eq!(laps[0].lifted, laps[0].landed);
}

#[test]
fn a_lap_of_18_seeds_from_the_inner_row_captures_nothing() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,18,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        3,
        &[(18, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1 N",
    );
}

#[test]
fn a_lap_of_19_seeds_does_not_skip_its_own_hole() {
    let laps = assert_plays(
        "1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         19,0,0,0,0,0 S",
        0,
        &[(19, 0), (2, 0), (2, 0), (2, 0), (2, 0), (2, 0), (2, 0), (2, 0), (2, 0), (2, 0)],
        "1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         2,0,2,0,2,0
         0,2,0,2,0,2
         2,1,2,0,2,0 N",
    );
    assert_eq!(laps[0].landed, hole(5, 1));
}

#[test]
fn a_lap_of_36_seeds_relays_from_its_own_hole() {
    let (game, position) = draw(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,36,0,0,0 S",
    );
    let laps = game.trace(&position, 2).unwrap();
    assert_eq!((laps[0].seeds, laps[0].landed, laps[0].taken), (36, hole(5, 2), 0));
    assert_eq!((laps[1].lifted, laps[1].seeds), (hole(5, 2), 2));
    assert_eq!(laps[1].landed, hole(5, 4));
}

// R6

#[test]
fn a_lap_that_ends_in_an_occupied_hole_is_relayed() {
    let laps = assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,1
         0,0,0,0,0,0
         1,1,0,2,0,0 S",
        0,
        &[(1, 0), (2, 0), (3, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,1
         0,0,0,0,0,1
         0,0,1,0,1,1 N",
    );
    assert_eq!((laps[0].landed, laps[1].landed), (laps[1].lifted, laps[2].lifted));
}

// R7

#[test]
fn a_move_ends_in_an_empty_hole() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,1
         0,0,0,0,0,0
         3,1,1,0,1,1 S",
        0,
        &[(3, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,1,1,1
         0,0,0,0,0,1
         0,0,0,0,0,0
         0,2,2,1,1,1 N",
    );
}

#[test]
fn a_seed_that_falls_alone_captures_nothing() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,5,0,0
         0,0,1,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,5,0,0
         0,0,0,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
}

// R8

#[test]
fn a_capture_is_made_on_the_first_lap_too() {
    let laps = assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,1,0,1,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 1), (3, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,1,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,0,0,0,0,0 N",
    );
    assert_eq!((laps[0].landed, laps[0].captured.as_slice()), (hole(3, 3), &[hole(2, 3)][..]));
    assert!(laps[1].captured.is_empty());
}

#[test]
fn a_capture_is_compulsory() {
    // A relay would sow two seeds and end in column 1 of the outer row, but no
    // action means "do not capture".
    let before = "0,0,0,0,0,0
                  0,0,0,0,0,0
                  1,0,0,0,0,1
                  0,0,0,0,1,1
                  0,0,0,0,0,0
                  0,0,0,0,0,0 S";
    assert_legal(before, &[4, 5]);
    assert_plays(
        before,
        4,
        &[(1, 1), (3, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,0,0,0 N",
    );
}

#[test]
fn capture_needs_an_occupied_hole_on_both_sides() {
    // Empty here, occupied there: the move ends.
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,4,0,0
         0,0,1,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,4,0,0
         0,0,0,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
    // Occupied here, empty there: a relay.
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,0,1,1
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 0), (2, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,1,1,0,1,1
         0,0,0,0,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
    // Occupied on both sides: a capture.
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,4,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 4), (6, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,1,1,1,0,0 N",
    );
}

#[test]
fn only_the_innermost_row_that_holds_seeds_captures() {
    // The inner row holds a seed, so the middle row does not capture.
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         3,3,3,3,3,3
         0,0,0,0,0,1
         0,0,1,1,0,0
         0,0,0,0,0,0 S",
        3,
        &[(1, 0), (2, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         3,3,3,3,3,3
         0,0,0,0,0,1
         1,1,0,0,0,0
         0,0,0,0,0,0 N",
    );
    // The inner row is empty, so the middle row does.
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         3,3,3,3,3,3
         0,0,0,0,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0 S",
        3,
        &[(1, 3), (5, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         3,3,0,3,3,3
         1,1,1,0,0,0
         1,1,0,0,0,0
         0,0,0,0,0,0 N",
    );
    // Inner and middle row are empty, so the outer row does.
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         3,3,3,3,3,3
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,1,1,0,0,0 S",
        1,
        &[(1, 3), (5, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         3,3,0,3,3,3
         0,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,1,1,1 N",
    );
}

#[test]
fn the_movers_innermost_row_is_judged_after_the_last_seed_has_fallen() {
    // South's inner row is empty until this lap sows into it, so the landing in
    // the outer row is not in the innermost row any more.
    assert_plays(
        "0,0,0,0
         3,1,1,1
         0,0,0,0
         1,0,6,0 S",
        2,
        &[(6, 0), (2, 0)],
        "0,0,0,0
         3,1,1,1
         1,1,1,1
         0,1,1,1 N",
    );
}

#[test]
fn the_capture_is_made_from_the_opponents_innermost_row_that_holds_seeds() {
    assert_plays(
        "9,9,9,9,9,9
         1,0,0,2,0,0
         0,0,0,0,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 2), (4, 0)],
        "9,9,9,9,9,9
         1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,1,0,0,0,0 N",
    );
    assert_plays(
        "1,0,0,2,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 2), (4, 0)],
        "1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,1,0,0,0,0 N",
    );
}

#[test]
fn a_capture_does_not_fall_through_to_the_next_row_of_the_column() {
    assert_plays(
        "0,0,0,5,0,0
         0,0,0,5,0,0
         1,0,0,0,0,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 0), (2, 0)],
        "0,0,0,5,0,0
         0,0,0,5,0,0
         1,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
}

#[test]
fn the_opponents_innermost_row_is_judged_anew_for_every_capture() {
    // The first capture empties North's inner row, the second is made from the
    // middle row.
    let laps = assert_plays(
        "0,0,0,0,0,0
         1,0,0,0,2,0
         0,1,0,0,0,0
         1,1,0,0,1,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        0,
        &[(1, 1), (3, 2), (4, 0)],
        "0,0,0,0,0,0
         1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,1,1,0,1
         0,0,0,0,0,0
         1,1,1,0,0,0 N",
    );
    assert_eq!(laps[0].captured, [hole(2, 1)]);
    assert_eq!(laps[1].captured, [hole(1, 4)]);
}

#[test]
fn only_one_hole_is_captured() {
    assert_plays(
        "0,0,0,4,0,0
         0,0,0,4,0,0
         0,0,1,1,1,0
         0,0,1,1,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 1), (3, 0)],
        "0,0,0,4,0,0
         0,0,0,4,0,0
         0,0,1,0,1,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,0,0,0,0,0 N",
    );
}

// R9

#[test]
fn captured_and_landing_seeds_are_sown_together_after_the_landing_hole() {
    let laps = assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,5,0,0
         0,0,1,2,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 5), (8, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,0,0,0
         0,0,0,0,1,1
         0,0,0,0,0,0
         1,1,1,1,1,1 N",
    );
    assert_eq!((laps[1].lifted, laps[1].landed), (hole(3, 3), hole(5, 5)));
}

#[test]
fn a_lap_of_18_seeds_after_a_capture_ends_in_the_landing_hole() {
    assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,9,0,0
         0,0,1,8,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 9), (18, 0)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,0,0,0
         1,1,1,1,1,1
         1,1,1,1,1,1
         1,1,1,1,1,1 N",
    );
}

// R10

#[test]
fn the_capture_of_the_last_seed_ends_the_game_at_once() {
    // The captured seeds stay in the landing hole with those that lie there.
    let laps = assert_plays(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,2,0,0
         0,0,1,4,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        2,
        &[(1, 2)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,7,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
    assert_eq!(laps[0].captured, [hole(2, 3)]);
}

#[test]
fn the_last_seed_may_be_captured_from_any_row_and_on_any_lap() {
    assert_plays(
        "0,0,0,0,3,0
         0,0,0,0,0,0
         0,1,0,0,0,0
         1,1,0,0,1,0
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
        0,
        &[(1, 1), (3, 3)],
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,1,1,5,0
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
}

#[test]
fn the_player_without_seeds_has_lost_and_cannot_move() {
    let (game, before) = draw(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,2,0,0
         0,0,1,4,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
    );
    for (before, winner) in [(before, Player::South), (before.swapped(), Player::North)] {
        let (after, _) = game.play(&before, 2).unwrap();
        assert_eq!(game.winner(&after), Some(winner));
        assert_eq!(after.to_move(), !winner);
        assert!(game.legal(&after).is_empty());
        for action in -1..7 {
            assert!(game.play(&after, action).is_err());
            assert!(game.trace(&after, action).is_err());
        }
        let text = game.notation(&after);
        assert_eq!(
            game.play(&after, 3).unwrap_err().to_string(),
            format!("illegal action 3: the game is over in {text}")
        );
    }
}

#[test]
fn no_action_is_legal_for_the_winner_either() {
    let drawing = "0,0,0,0,0,0
                   0,0,0,0,0,0
                   0,0,0,0,0,0
                   0,0,0,0,1,1
                   0,0,0,0,0,0
                   0,1,0,0,0,0 S";
    let (game, position) = draw(drawing);
    assert_legal(drawing, &[]);
    assert_eq!(game.winner(&position), Some(Player::South));
    assert_eq!(game.winner(&position.swapped()), Some(Player::North));
    assert!(game.play(&position, 1).is_err());
    assert_eq!(game.perft(&position, 1), 0);
    assert_eq!(game.perft(&position, 3), 0);
}

#[test]
fn a_capture_that_leaves_the_opponent_a_seed_does_not_end_the_game() {
    let (game, before) = draw(
        "1,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,2,0,0
         0,0,1,4,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
    );
    let (after, ply) = game.play(&before, 2).unwrap();
    assert_eq!((ply.laps, ply.captured), (2, 2));
    assert_eq!(game.winner(&after), None);
    assert!(!game.legal(&after).is_empty());
}

// R12

#[test]
fn there_are_no_draws_and_two_players_can_circle_for_ever() {
    let (game, start) = draw(
        "0,0,0,0,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,0,0,0,0
         1,0,0,0,0,0 S",
    );
    let mut position = start;
    for ply in 1..=360 {
        assert_eq!(game.legal(&position).len(), 1);
        let action = game.legal(&position).iter().next().unwrap();
        position = game.play(&position, action as i64).unwrap().0;
        assert_eq!(game.winner(&position), None);
        assert_eq!(position == start, ply % 36 == 0);
    }
}

// Other boards

#[test]
fn boards_have_their_own_numbers() {
    for (name, rows, columns) in
        [("katro", 6, 6), ("katro-6x3", 6, 3), ("katro-4x6", 4, 6), ("katro-4x4", 4, 4)]
    {
        let game = Game::new(Rules::named(name).unwrap());
        assert_eq!((2 * game.rules().rows(), game.rules().columns()), (rows, columns));
        assert_eq!(game.grid(&game.start()), vec![2; rows * columns]);
        assert_eq!(game.legal(&game.start()).len(), columns);
    }
}

#[test]
fn two_rows_a_side_are_an_outer_and_an_inner_row() {
    // The inner row is played from only when the outer row is empty.
    assert_legal(
        "1,1,1,1
         1,1,1,1
         1,1,1,1
         0,2,0,0 S",
        &[1],
    );
    assert_legal(
        "1,1,1,1
         1,1,1,1
         0,1,0,1
         0,0,0,0 S",
        &[1, 3],
    );
    // From right to left through the inner row, where the capture is made.
    let laps = assert_plays(
        "0,0,0,0
         0,3,0,1
         0,1,0,0
         0,0,0,3 S",
        3,
        &[(3, 3), (5, 0)],
        "0,0,0,0
         0,0,0,1
         1,0,1,1
         1,1,1,1 N",
    );
    assert_eq!(laps[0].landed, hole(2, 1));
    // A lap of eight seeds ends in its own hole, and nothing is captured.
    assert_plays(
        "0,0,0,0
         1,1,1,1
         0,8,0,0
         0,0,0,0 S",
        1,
        &[(8, 0)],
        "0,0,0,0
         1,1,1,1
         1,1,1,1
         1,1,1,1 N",
    );
}

#[test]
fn one_row_a_side_is_outer_and_inner_at_once() {
    assert_plays(
        "0,1,1
         1,1,0 S",
        0,
        &[(1, 1), (3, 0)],
        "0,0,1
         1,1,1 N",
    );
    // A relay where the facing hole is empty, past the end of the line.
    assert_plays(
        "1,1,0
         0,1,1 S",
        1,
        &[(1, 0), (2, 0)],
        "1,1,0
         1,1,0 N",
    );
    // A lap of as many seeds as there are holes ends in its own hole.
    assert_plays(
        "1,1,1
         0,3,0 S",
        1,
        &[(3, 0)],
        "1,1,1
         1,1,1 N",
    );
}

#[test]
fn one_hole_a_side_wins_with_the_first_handful_of_two() {
    assert_plays(
        "2
         2 S",
        0,
        &[(2, 2)],
        "0
         4 N",
    );
    // A single seed falls alone into the hole that it was lifted from.
    assert_plays(
        "5
         1 S",
        0,
        &[(1, 0)],
        "5
         1 N",
    );
}

// Both seats

#[test]
fn both_seats_play_the_same_game() {
    let game = Game::new(Rules::KATRO);
    let mut south = game.start();
    let mut north = game.start().swapped();
    assert_eq!(north.to_move(), Player::North);
    for ply in 0..500 {
        let legal: Vec<usize> = game.legal(&south).iter().collect();
        let Some(&action) = legal.get(ply % legal.len().max(1)) else { break };
        assert_eq!(game.legal(&south), game.legal(&north));
        assert_eq!(game.observation(&south), game.observation(&north));
        let one = game.play(&south, action as i64).unwrap();
        let other = game.play(&north, action as i64).unwrap();
        assert_eq!(one.1, other.1);
        (south, north) = (one.0, other.0);
        assert_eq!(south, north.swapped());
        assert_eq!(game.winner(&south), game.winner(&north).map(|winner| !winner));
    }
}

#[test]
fn norths_capture_is_the_mirror_image_of_souths() {
    let (game, before) = draw(
        "0,0,0,0,0,0
         0,0,0,0,0,0
         0,0,1,1,0,0
         0,0,4,0,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0 N",
    );
    let laps = game.trace(&before, 2).unwrap();
    assert_eq!((laps[0].lifted, laps[0].landed), (hole(2, 3), hole(2, 2)));
    assert_eq!((laps[0].captured.as_slice(), laps[0].taken), (&[hole(3, 2)][..], 4));
    assert_eq!((laps[1].lifted, laps[1].seeds, laps[1].landed), (hole(2, 2), 6, hole(0, 2)));
    let (after, _) = game.play(&before, 2).unwrap();
    let (_, expected) = draw(
        "0,0,1,1,1,1
         0,0,0,0,0,0
         1,1,0,0,0,0
         0,0,0,0,0,1
         0,0,0,0,0,0
         0,0,0,0,0,0 S",
    );
    assert_eq!(after, expected);
}
