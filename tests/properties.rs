//! What holds in every position and for every move, looked for in seeded random
//! games and random positions on every size of board; and that a second
//! implementation, which sows one seed at a time, plays the same standard game.

use std::collections::HashMap;

use katro::{Direction, Game, Hole, MAX_SEEDS, Player, Position, Rules};

mod plain;

use plain::{Plain, Random, actions, hash, random_position, rows_of};

/// Every size of board with few and with as many seeds as it can hold.
fn all_games() -> Vec<Game> {
    let mut games = Vec::new();
    for rows in 1..=3 {
        for columns in 1..=8 {
            let most = MAX_SEEDS as i64 / (2 * rows * columns);
            for seeds in [1, 2, 3, most] {
                games.push(Game::new(Rules::new(rows, columns, seeds).unwrap()));
            }
        }
    }
    games
}

/// Visits the positions of random games, of which the last of each may be over.
fn visit_games(seed: u64, plies: usize, mut visit: impl FnMut(&Game, &Position)) {
    let mut random = Random(seed);
    for game in all_games() {
        for _ in 0..3 {
            let mut position = game.start();
            for _ in 0..plies {
                visit(&game, &position);
                let legal = actions(&game, &position);
                if legal.is_empty() {
                    break;
                }
                position = game.play(&position, random.choose(&legal)).unwrap().0;
            }
        }
    }
}

/// Visits random positions, of which some are over.
fn visit_positions(seed: u64, number: usize, mut visit: impl FnMut(&Game, &Position)) {
    let mut random = Random(seed);
    for game in all_games() {
        for _ in 0..number {
            visit(&game, &random_position(&game, &mut random));
        }
    }
}

/// Visits both.
fn visit(seed: u64, mut visit: impl FnMut(&Game, &Position)) {
    visit_games(seed, 60, &mut visit);
    visit_positions(seed + 1, 60, &mut visit);
}

#[test]
fn a_seed_by_seed_implementation_plays_the_same_game() {
    let mut moves = 0;
    let mut check = |game: &Game, position: &Position| {
        let legal = actions(game, position);
        let plain = Plain::of(game, position);
        assert_eq!(plain.num_actions(), game.rules().num_actions());
        assert_eq!(plain.legal(), legal);
        assert_eq!(plain.winner(), game.winner(position));
        for action in legal {
            let mut plain = Plain::of(game, position);
            let laps = plain.play(action);
            let text = game.notation(position);
            assert_eq!(game.trace(position, action).unwrap(), laps, "{text} action {action}");
            let (after, ply) = game.play(position, action).unwrap();
            assert_eq!(rows_of(game, &after), plain.grid, "{text} action {action}");
            assert_eq!(after.to_move(), plain.to_move);
            assert_eq!(game.winner(&after), plain.winner());
            assert_eq!(ply.laps as usize, laps.len());
            assert_eq!(ply.captured as usize, laps.iter().map(|lap| lap.taken).sum::<usize>());
            moves += 1;
        }
    };
    visit_games(1, 400, &mut check);
    visit_positions(2, 1_000, &mut check);
    assert!(moves >= 100_000, "only {moves} moves");
}

#[test]
fn whole_games_of_both_implementations_are_the_same() {
    let mut random = Random(3);
    for rules in Rules::NAMED.map(|(_, rules)| rules).into_iter().filter(Rules::is_standard) {
        let game = Game::new(rules);
        for _ in 0..20 {
            let mut position = game.start();
            let mut plain = Plain::of(&game, &position);
            let mut plies = 0;
            while plain.winner().is_none() && plies < 5_000 {
                let action = random.choose(&plain.legal());
                plain.play(action);
                position = game.play(&position, action).unwrap().0;
                plies += 1;
            }
            assert_eq!(rows_of(&game, &position), plain.grid);
            assert_eq!(game.winner(&position), plain.winner());
            assert!(plain.winner().is_some(), "a random game of {plies} plies");
        }
    }
}

#[test]
fn seeds_are_conserved() {
    let sum = |grid: Vec<u8>| grid.into_iter().map(usize::from).sum::<usize>();
    visit(10, |game, position| {
        let before = sum(game.grid(position));
        assert!((1..=MAX_SEEDS).contains(&before));
        for action in actions(game, position) {
            let (after, _) = game.play(position, action).unwrap();
            assert_eq!(sum(game.grid(&after)), before);
        }
    });
    visit_games(12, 60, |game, position| {
        assert_eq!(sum(game.grid(position)), game.rules().total_seeds());
    });
}

#[test]
fn the_mover_never_loses_by_his_own_move() {
    visit(20, |game, position| {
        for action in actions(game, position) {
            let (after, ply) = game.play(position, action).unwrap();
            assert_ne!(game.winner(&after), Some(!position.to_move()));
            // A side is emptied by a capture only.
            assert!(game.winner(&after).is_none() || ply.captured > 0);
            assert_eq!(after.to_move(), !position.to_move());
        }
    });
}

#[test]
fn a_position_is_open_if_and_only_if_an_action_is_legal() {
    let mut over = 0;
    visit(30, |game, position| {
        let empty = |player| position.side(player) == [0; 3];
        let expected = [Player::South, Player::North].into_iter().find(|&player| empty(!player));
        assert_eq!(game.winner(position), expected);
        assert_eq!(game.legal(position).is_empty(), expected.is_some());
        over += usize::from(expected.is_some());
    });
    assert!(over > 100, "{over}");
}

#[test]
fn the_legal_actions_are_those_that_can_be_played() {
    visit(40, |game, position| {
        let legal = game.legal(position);
        let listed: Vec<usize> = legal.iter().collect();
        assert!(listed.is_sorted());
        assert_eq!((listed.len(), listed.is_empty()), (legal.len(), legal.is_empty()));
        let far = [i64::MIN, -64, 63, 64, 256, i64::from(i32::MAX), i64::MAX];
        for action in (-2..=9).chain(far) {
            let can = legal.contains(action);
            assert_eq!(can, usize::try_from(action).is_ok_and(|action| listed.contains(&action)));
            assert_eq!(can, game.play(position, action).is_ok());
            assert_eq!(can, game.trace(position, action).is_ok());
        }
        assert!(listed.iter().all(|&action| action < game.rules().num_actions()));
    });
}

#[test]
fn a_trace_tells_all_of_a_move() {
    visit(50, |game, position| {
        let mover = position.to_move();
        for action in actions(game, position) {
            let laps = game.trace(position, action).unwrap();
            let (after, ply) = game.play(position, action).unwrap();
            assert_eq!(laps.len(), ply.laps as usize);
            assert_eq!(laps.iter().map(|lap| lap.taken).sum::<usize>(), ply.captured as usize);

            // The board is what the laps say when they are sown seed by seed.
            let mut plain = Plain::of(game, position);
            let mut taken = 0;
            for lap in &laps {
                let mut at = (lap.lifted.row, lap.lifted.column);
                let own = std::mem::take(&mut plain.grid[at.0][at.1]) as usize;
                assert_eq!(lap.seeds, own + taken);
                for _ in 0..lap.seeds {
                    at = plain.after(at, Direction::Regular);
                    plain.grid[at.0][at.1] += 1;
                }
                assert_eq!((lap.landed.row, lap.landed.column), at);
                assert!(plain.rows(mover).contains(&at.0));
                taken = 0;
                for hole in &lap.captured {
                    assert!(plain.rows(!mover).contains(&hole.row));
                    taken += std::mem::take(&mut plain.grid[hole.row][hole.column]) as usize;
                }
                assert_eq!(lap.taken, taken);
                assert_eq!(lap.captured.is_empty(), taken == 0);
            }
            // R10: what the last lap takes stays in the landing hole.
            let last = laps.last().unwrap();
            plain.grid[last.landed.row][last.landed.column] += last.taken as u32;
            assert_eq!(last.taken > 0, game.winner(&after).is_some());
            assert_eq!(rows_of(game, &after), plain.grid);
            for pair in laps.windows(2) {
                assert_eq!(pair[0].landed, pair[1].lifted);
            }
        }
    });
}

#[test]
fn swapping_the_sides_changes_nothing_for_the_players() {
    visit(60, |game, position| {
        let swapped = position.swapped();
        assert_eq!(swapped.swapped(), *position);
        assert_ne!(swapped, *position);
        assert_eq!(swapped.to_move(), !position.to_move());
        for player in [Player::South, Player::North] {
            assert_eq!(swapped.side(player), position.side(!player));
        }
        let turned: Vec<u8> = game.grid(position).into_iter().rev().collect();
        assert_eq!(game.grid(&swapped), turned);
        assert_eq!(game.observation(&swapped), game.observation(position));
        assert_eq!(game.legal(&swapped), game.legal(position));
        assert_eq!(game.winner(&swapped), game.winner(position).map(|winner| !winner));

        let (rows, columns) = (2 * game.rules().rows(), game.rules().columns());
        let turn =
            |hole: Hole| Hole { row: rows - 1 - hole.row, column: columns - 1 - hole.column };
        for action in actions(game, position) {
            let (after, ply) = game.play(position, action).unwrap();
            assert_eq!(game.play(&swapped, action).unwrap(), (after.swapped(), ply));
            let mut laps = game.trace(position, action).unwrap();
            for lap in &mut laps {
                (lap.lifted, lap.landed) = (turn(lap.lifted), turn(lap.landed));
                lap.captured = lap.captured.iter().map(|&hole| turn(hole)).collect();
            }
            assert_eq!(game.trace(&swapped, action).unwrap(), laps);
        }
    });
}

#[test]
fn the_observation_is_the_board_from_the_movers_seat() {
    visit(70, |game, position| {
        let grid = game.grid(position);
        assert_eq!(grid.len(), game.rules().holes());
        let seen: Vec<u8> = match position.to_move() {
            Player::South => grid,
            Player::North => grid.into_iter().rev().collect(),
        };
        assert_eq!(game.observation(position), seen);
    });
}

#[test]
fn every_position_is_read_back_from_its_notation_and_its_grid() {
    visit(80, |game, position| {
        let text = game.notation(position);
        assert_eq!(game.parse(&text).unwrap(), *position);
        let (found, read) = Game::from_notation(&text).unwrap();
        assert_eq!((found.rules().rows(), found.rules().columns()), {
            (game.rules().rows(), game.rules().columns())
        });
        assert_eq!(found.rules().seeds(), 2);
        assert_eq!(read, *position);
        let grid: Vec<i64> = game.grid(position).into_iter().map(i64::from).collect();
        assert_eq!(game.position(&grid, position.to_move()).unwrap(), *position);
    });
}

#[test]
fn positions_are_equal_if_their_notations_are() {
    for game in all_games() {
        let mut random = Random(90);
        let mut seen: HashMap<Position, String> = HashMap::new();
        for _ in 0..200 {
            let position = random_position(&game, &mut random);
            let grid: Vec<i64> = game.grid(&position).into_iter().map(i64::from).collect();
            let other = game.position(&grid, !position.to_move()).unwrap();
            assert_ne!(position, other, "the player to move belongs to a position");
            for position in [position, other] {
                let text = game.notation(&position);
                assert_eq!(hash(position), hash(game.parse(&text).unwrap()));
                assert_eq!(*seen.entry(position).or_insert_with(|| text.clone()), text);
            }
        }
        let mut texts: Vec<&String> = seen.values().collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), seen.len());
    }
}

#[test]
fn games_are_equal_if_their_rules_are() {
    let mut rules: Vec<Rules> = all_games().iter().map(|game| *game.rules()).collect();
    rules.sort_by_key(|rules| (rules.rows(), rules.columns(), rules.seeds()));
    rules.dedup();
    for one in &rules {
        for other in &rules {
            let games = (Game::new(*one), Game::new(*other));
            assert_eq!(games.0 == games.1, one == other);
            assert_eq!(hash(games.0) == hash(games.1), one == other);
        }
    }
}

#[test]
fn a_position_does_not_depend_on_the_seeds_at_the_start() {
    visit(100, |game, position| {
        let (rows, columns) = (game.rules().rows() as i64, game.rules().columns() as i64);
        let other = Game::new(Rules::new(rows, columns, 1).unwrap());
        assert_eq!(other.legal(position), game.legal(position));
        for action in actions(game, position) {
            assert_eq!(other.play(position, action), game.play(position, action));
        }
    });
}

#[test]
fn perft_counts_the_sequences_of_moves() {
    fn count(game: &Game, position: &Position, depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let after = |action| game.play(position, action).unwrap().0;
        let legal = actions(game, position);
        legal.into_iter().map(|action| count(game, &after(action), depth - 1)).sum()
    }
    visit_positions(110, 4, |game, position| {
        for depth in 0..=3 {
            assert_eq!(game.perft(position, depth), count(game, position, depth));
        }
    });
}
