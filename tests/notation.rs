//! Positions, rules and actions as text and as numbers: what is read, and what
//! is said of everything else.

use std::error::Error;

use katro::{Game, GridError, MAX_SEEDS, NotationError, Player, Rules, RulesError};

const START: &str = "2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2 S";

fn game(name: &str) -> Game {
    Game::new(Rules::named(name).unwrap())
}

/// Checks the error of [`Game::from_notation`] and how it reads.
fn assert_refused(text: &str, error: &NotationError, message: &str) {
    let found = Game::from_notation(text).unwrap_err();
    assert_eq!(&found, error, "{text:?}");
    assert_message(&found, message);
}

/// Checks that an error says `message`, in the form that all messages have.
fn assert_message(error: &dyn Error, message: &str) {
    let text = error.to_string();
    assert_eq!(text, message);
    assert!(!text.ends_with(['.', '!', '\n']), "{text}");
    assert!(!text.starts_with(char::is_uppercase), "{text}");
}

fn count(text: &str) -> NotationError {
    NotationError::Count(text.to_owned())
}

fn player(text: &str) -> NotationError {
    NotationError::Player(text.to_owned())
}

// Good texts

#[test]
fn the_start_is_written_and_read_back() {
    let katro = game("katro");
    assert_eq!(katro.notation(&katro.start()), START);
    assert_eq!(katro.parse(START).unwrap(), katro.start());
    assert_eq!(Game::from_notation(START).unwrap(), (katro, katro.start()));
}

#[test]
fn rows_are_written_from_the_top_and_columns_from_the_left() {
    let game = game("katro-4x4");
    let text = "1,2,3,4/5,6,7,8/9,10,11,12/13,14,15,16 N";
    let position = game.parse(text).unwrap();
    assert_eq!(game.grid(&position), (1..=16).collect::<Vec<u8>>());
    assert_eq!(game.notation(&position), text);
    assert_eq!(position.to_move(), Player::North);
    assert_eq!(position, game.position(&(1..=16).collect::<Vec<i64>>(), Player::North).unwrap());
    // A side is its owner's view: outer row first, column 0 at his left hand.
    assert_eq!(position.side(Player::South), [0x100f_0e0d, 0x0c0b_0a09, 0]);
    assert_eq!(position.side(Player::North), [0x0102_0304, 0x0506_0708, 0]);
}

#[test]
fn the_observation_of_north_is_the_board_turned_round() {
    let game = game("katro-4x4");
    let text = "1,2,3,4/5,6,7,8/9,10,11,12/13,14,15,16";
    let seen = |player| game.observation(&game.parse(&format!("{text} {player}")).unwrap());
    assert_eq!(seen('S'), (1..=16).collect::<Vec<u8>>());
    assert_eq!(seen('N'), (1..=16).rev().collect::<Vec<u8>>());
}

#[test]
fn the_board_tells_the_rules() {
    for (text, rows, columns) in [
        ("1/1 S", 1, 1),
        ("1,0,0/0,0,1 N", 1, 3),
        ("0,0/0,0/0,0/0,1 S", 2, 2),
        ("0,0,0,0,0,0,0,0/0,0,0,0,0,0,0,0/0,0,0,0,0,0,0,0/0,0,0,0,0,0,0,1 S", 2, 8),
        ("0/0/0/0/0/1 N", 3, 1),
    ] {
        let (game, position) = Game::from_notation(text).unwrap();
        assert_eq!(*game.rules(), Rules::for_board(rows, columns).unwrap());
        assert_eq!(*game.rules(), Rules::new(rows, columns, 2).unwrap());
        assert_eq!(game.notation(&position), text);
    }
}

#[test]
fn a_game_reads_positions_with_any_number_of_seeds() {
    let game = Game::new(Rules::new(1, 2, 7).unwrap());
    for text in ["0,0/0,1 S", "255,0/0,0 N", "100,100/50,5 S", "0,1/254,0 N"] {
        assert_eq!(game.notation(&game.parse(text).unwrap()), text);
    }
}

#[test]
fn a_position_that_is_over_can_be_read() {
    let game = game("katro-4x4");
    for player in ["S", "N"] {
        let south = game.parse(&format!("0,0,0,0/0,0,0,0/0,0,0,0/0,0,0,1 {player}")).unwrap();
        assert_eq!(game.winner(&south), Some(Player::South));
        let north = game.parse(&format!("0,0,0,1/0,0,0,0/0,0,0,0/0,0,0,0 {player}")).unwrap();
        assert_eq!(game.winner(&north), Some(Player::North));
    }
}

#[test]
fn positions_made_in_different_ways_are_equal() {
    let game = game("katro");
    let (played, _) = game.play(&game.start(), 2).unwrap();
    let read = game.parse(&game.notation(&played)).unwrap();
    let grid: Vec<i64> = game.grid(&played).into_iter().map(i64::from).collect();
    assert_eq!(read, played);
    assert_eq!(game.position(&grid, Player::North).unwrap(), played);
    assert_ne!(game.position(&grid, Player::South).unwrap(), played);
}

// Bad texts

#[test]
fn a_text_needs_a_board_and_a_player() {
    let message = "a position is its rows, a space and S or N for the player to move";
    for text in ["", "S", "1/1", "1/1S", "1/1\tS", "1/1\nS", "1/1\u{a0}S", "1/1_S", "startpos"] {
        assert_refused(text, &NotationError::Parts, message);
    }
}

#[test]
fn the_player_is_one_capital_letter_after_one_space() {
    for (text, part) in [
        ("1/1 ", ""),
        ("1/1 s", "s"),
        ("1/1 n", "n"),
        ("1/1 W", "W"),
        ("1/1 0", "0"),
        ("1/1 South", "South"),
        ("1/1 SS", "SS"),
        ("1/1  S", ""),
        ("1/1 S\n", "S\n"),
        ("1, 1/1,1 S", "1/1,1"),
        (" 1/1 S", "1/1"),
        ("1/1 Ѕ", "Ѕ"),
    ] {
        let message = format!("the player to move must be S or N, got {part:?}");
        assert_refused(text, &player(part), &message);
    }
    assert_eq!(player("S\n").to_string(), r#"the player to move must be S or N, got "S\n""#);
}

#[test]
fn the_directions_are_a_character_for_each_player() {
    for part in ["", " ", "S", "N", ">", ">>>", "> ", "rl", "->-", "—>"] {
        let message =
            format!("the directions must be -, > or < for South and for North, got {part:?}");
        let error = NotationError::Directions(part.to_owned());
        assert_refused(&format!("1/1 S {part}"), &error, &message);
    }
}

#[test]
fn directions_stand_where_the_rules_bind_players_and_only_there() {
    let bound = Game::new(Rules::named("katro-fieldnotes").unwrap());
    for directions in ["--", "->", "-<", ">-", ">>", "><", "<-", "<>", "<<"] {
        let text = bound.notation(&bound.start()).replace("--", directions);
        assert_eq!(bound.notation(&bound.parse(&text).unwrap()), text);
        let error = Game::from_notation(&text).unwrap_err();
        assert_eq!(error, NotationError::Bound { expected: false });
    }
    let standard = Game::new(Rules::KATRO);
    let text = standard.notation(&standard.start());
    assert_eq!(bound.parse(&text), Err(NotationError::Bound { expected: true }));
}

#[test]
fn a_hole_is_a_number_in_its_shortest_form() {
    for (text, part) in [
        (" S", ""),
        ("/ S", ""),
        (", S", ""),
        ("1/ S", ""),
        ("/1 S", ""),
        ("1//1 S", ""),
        ("1/1/ S", ""),
        ("1,/1,1 S", ""),
        ("1,,1/1,1,1 S", ""),
        ("-1/1 S", "-1"),
        ("-0/1 S", "-0"),
        ("+1/1 S", "+1"),
        ("1/01 S", "01"),
        ("00/1 S", "00"),
        ("1/007 S", "007"),
        ("1/x S", "x"),
        ("1/1.0 S", "1.0"),
        ("1/1e1 S", "1e1"),
        ("1/0x1 S", "0x1"),
        ("1/1_0 S", "1_0"),
        ("1;1/1;1 S", "1;1"),
        ("1|1 S", "1|1"),
        ("1\n/1 S", "1\n"),
        ("1/१ S", "१"),
        ("1/１ S", "１"),
        ("1/² S", "²"),
        ("1/9223372036854775808 S", "9223372036854775808"),
        ("1/99999999999999999999999999 S", "99999999999999999999999999"),
    ] {
        assert_refused(text, &count(part), &format!("{part:?} is not a number of seeds"));
    }
    assert_eq!(count("").to_string(), r#""" is not a number of seeds"#);
    assert_eq!(count("1\n").to_string(), r#""1\n" is not a number of seeds"#);
}

#[test]
fn all_rows_are_of_one_length() {
    for (text, row) in [
        ("1,1/1 S", 2),
        ("1/1,1 S", 2),
        ("1,1/1,1/1,1/1 S", 4),
        ("1,1/1,1/1,1,1/1 S", 3),
        ("2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2/2,2,2,2,2,2 S", 5),
    ] {
        let message = format!("row {row} has not as many holes as the first");
        assert_refused(text, &NotationError::Ragged { row }, &message);
    }
}

#[test]
fn an_odd_number_of_rows_cannot_be_shared_out() {
    for (text, rows) in
        [("1 S", 1), ("1,1/1,1/1,1 N", 3), ("1/1/1/1/1 S", 5), ("1/1/1/1/1/1/1 S", 7)]
    {
        let message = format!("the rows must be an even number, got {rows}");
        assert_refused(text, &NotationError::OddRows(rows), &message);
    }
}

#[test]
fn a_board_of_a_size_that_no_rules_have_is_refused() {
    let tall = "1/1/1/1/1/1/1/1 S";
    let error = NotationError::Rules(RulesError::Rows(4));
    assert_refused(tall, &error, "rows per side must be 1 to 3, got 4");
    let wide = "1,1,1,1,1,1,1,1,1/1,1,1,1,1,1,1,1,1 S";
    let error = NotationError::Rules(RulesError::Columns(9));
    assert_refused(wide, &error, "columns must be 1 to 8, got 9");
    assert_eq!(error.source().unwrap().to_string(), "columns must be 1 to 8, got 9");
    // Larger than any machine number of rows per side.
    let endless = format!("{}1 S", "1/".repeat(99_999));
    assert_refused(
        &endless,
        &NotationError::Rules(RulesError::Rows(50_000)),
        "rows per side must be 1 to 3, got 50000",
    );
}

#[test]
fn a_board_holds_1_to_255_seeds() {
    let error = NotationError::Grid(GridError::Total(0));
    assert_refused("0/0 S", &error, "a board without seeds is no position");
    assert_eq!(error.source().unwrap().to_string(), "a board without seeds is no position");
    for (text, total) in [
        ("256/0 S", 256),
        ("128/128 N", 256),
        ("255,1/0,0 S", 256),
        ("1000000/1 S", 1_000_001),
        ("9223372036854775807/0 S", i64::MAX),
        // The sum is too large for an i64.
        ("9223372036854775807,9223372036854775807/1,1 S", i64::MAX),
    ] {
        let message = format!("a board holds at most 255 seeds, got {total}");
        assert_refused(text, &NotationError::Grid(GridError::Total(total)), &message);
    }
    assert!(Game::from_notation("255/0 S").is_ok());
    assert!(Game::from_notation("0/1 S").is_ok());
}

#[test]
fn a_game_refuses_the_position_of_another_board() {
    for (name, text, expected, found) in [
        ("katro", "2,2,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S", (6, 6), (4, 4)),
        ("katro-4x4", START, (4, 4), (6, 6)),
        ("katro-4x6", "2,2,2,2/2,2,2,2/2,2,2,2/2,2,2,2 S", (4, 6), (4, 4)),
        ("katro-6x3", "2,2,2/2,2,2/2,2,2/2,2,2/2,2,2 S", (6, 3), (5, 3)),
        // Sizes that no rules have are only another board here.
        ("katro-4x4", "1 S", (4, 4), (1, 1)),
        ("katro-4x4", "1,1,1,1,1,1,1,1,1 S", (4, 4), (1, 9)),
    ] {
        let error = game(name).parse(text).unwrap_err();
        assert_eq!(error, NotationError::Board { expected, found });
        let message = format!(
            "the rules have a board of {} x {}, got {} x {}",
            expected.0, expected.1, found.0, found.1
        );
        assert_message(&error, &message);
        assert!(error.source().is_none());
    }
}

#[test]
fn a_game_says_the_same_of_a_bad_text() {
    let game = Game::new(Rules::new(1, 2, 2).unwrap());
    for text in [
        "",
        "1,1/1,1",
        "1,1/1,1 s",
        "1,1/1,1  S",
        "1,1/1 S",
        "1,1/1,01 S",
        "1,1/1,-1 S",
        "0,0/0,0 S",
        "200,1/50,5 S",
        "1,1/1,1 S\0",
        "1,1\u{2044}1,1 S",
    ] {
        assert_eq!(game.parse(text).unwrap_err(), Game::from_notation(text).unwrap_err());
    }
}

#[test]
fn every_change_of_one_character_is_another_position_or_an_error() {
    let katro = game("katro");
    let symbols: Vec<char> = "0123456789,/ SNsn-+.x\n\0é".chars().collect();
    let mut texts = Vec::new();
    for i in 0..=START.len() {
        if i < START.len() {
            texts.push(format!("{}{}", &START[..i], &START[i + 1..]));
        }
        for symbol in &symbols {
            texts.push(format!("{}{symbol}{}", &START[..i], &START[i..]));
            if i < START.len() {
                texts.push(format!("{}{symbol}{}", &START[..i], &START[i + 1..]));
            }
        }
    }
    let mut read = 0;
    for text in texts {
        match katro.parse(&text) {
            // What can be read has only this one form.
            Ok(position) => {
                assert_eq!(katro.notation(&position), text);
                assert_eq!(position == katro.start(), text == START);
                read += 1;
            }
            Err(error) => assert_message(&error, &error.to_string()),
        }
    }
    assert!(read > 36 * 9, "{read}");
}

// Grids

#[test]
fn a_grid_has_the_holes_of_the_board() {
    let game = game("katro-4x4");
    for found in [0, 1, 8, 15, 17, 36] {
        let error = game.position(&vec![1; found], Player::South).unwrap_err();
        assert_eq!(error, GridError::Holes { expected: 16, found });
        assert_message(&error, &format!("the board has 16 holes, got {found}"));
    }
}

#[test]
fn a_grid_has_no_negative_numbers() {
    let game = game("katro-4x4");
    for seeds in [-1, -200, i64::MIN] {
        let mut grid = [2; 16];
        grid[9] = seeds;
        let error = game.position(&grid, Player::South).unwrap_err();
        assert_eq!(error, GridError::Negative(seeds));
        assert_message(&error, &format!("a hole cannot hold {seeds} seeds"));
    }
    // Not even where the sum would do.
    let mut grid = [2; 16];
    (grid[0], grid[1]) = (300, -300);
    assert_eq!(game.position(&grid, Player::North), Err(GridError::Negative(-300)));
}

#[test]
fn a_grid_has_1_to_255_seeds() {
    let game = game("katro-4x4");
    assert_eq!(game.position(&[0; 16], Player::South), Err(GridError::Total(0)));
    assert_eq!(game.position(&[16; 16], Player::South), Err(GridError::Total(256)));
    assert_eq!(game.position(&[i64::MAX; 16], Player::South), Err(GridError::Total(i64::MAX)));
    let error = game.position(&[16; 16], Player::South).unwrap_err();
    assert_message(&error, "a board holds at most 255 seeds, got 256");
    let mut grid = [15; 16];
    grid[3] = 30;
    assert_eq!(grid.iter().sum::<i64>(), MAX_SEEDS as i64);
    let position = game.position(&grid, Player::South).unwrap();
    assert_eq!(game.grid(&position)[3], 30);
}

// Rules

#[test]
fn named_rules_have_their_names() {
    assert_eq!(Rules::default(), Rules::KATRO);
    assert_eq!(Rules::named("katro").unwrap(), Rules::KATRO);
    for (name, rules) in Rules::NAMED {
        assert_eq!(Rules::named(name).unwrap(), rules);
        assert_eq!(rules.name(), Some(name));
    }
    assert_eq!(Rules::new(3, 6, 3).unwrap().name(), None);
    for name in ["", "Katro", "katro ", "katro-6x6", "oware"] {
        let error = Rules::named(name).unwrap_err();
        assert_eq!(error, RulesError::Unknown(name.to_owned()));
        let names: Vec<&str> = Rules::NAMED.iter().map(|&(name, _)| name).collect();
        let message = format!("unknown rules {name:?}, known are {}", names.join(", "));
        assert_message(&error, &message);
    }
}

#[test]
fn rules_outside_their_ranges_are_refused() {
    for rows in [i64::MIN, -1, 0, 4, 6, i64::MAX] {
        let error = Rules::new(rows, 6, 2).unwrap_err();
        assert_eq!(error, RulesError::Rows(rows));
        assert_message(&error, &format!("rows per side must be 1 to 3, got {rows}"));
        assert_eq!(Rules::for_board(rows, 6), Err(error));
    }
    for columns in [i64::MIN, -1, 0, 9, i64::MAX] {
        let error = Rules::new(3, columns, 2).unwrap_err();
        assert_eq!(error, RulesError::Columns(columns));
        assert_message(&error, &format!("columns must be 1 to 8, got {columns}"));
    }
    for seeds in [i64::MIN, -1, 0] {
        let error = Rules::new(3, 6, seeds).unwrap_err();
        assert_eq!(error, RulesError::Seeds(seeds));
        assert_message(&error, &format!("seeds per hole must be at least 1, got {seeds}"));
    }
    for (rows, columns, seeds) in [(3, 8, 6), (3, 6, 8), (1, 1, 128), (2, 4, i64::MAX)] {
        let error = Rules::new(rows, columns, seeds).unwrap_err();
        assert_eq!(error, RulesError::TooManySeeds { rows, columns, seeds });
        let message = format!(
            "a board of 2 x {rows} x {columns} holes with {seeds} seeds each holds more than 255 seeds"
        );
        assert_message(&error, &message);
    }
}

#[test]
fn rules_at_the_ends_of_their_ranges_are_accepted() {
    for (rows, columns, seeds) in [(1, 1, 1), (1, 1, 127), (3, 8, 5), (3, 6, 7), (2, 8, 7)] {
        let rules = Rules::new(rows, columns, seeds).unwrap();
        assert_eq!(rules.total_seeds() as i64, 2 * rows * columns * seeds);
        let game = Game::new(rules);
        let text = game.notation(&game.start());
        assert_eq!(game.parse(&text).unwrap(), game.start());
    }
}

// Actions

#[test]
fn an_action_is_written_as_the_letter_of_its_column() {
    let rules = Rules::KATRO;
    for (action, letter) in (0..6).zip(["a", "b", "c", "d", "e", "f"]) {
        assert_eq!(rules.action_name(action).as_deref(), Some(letter));
        assert_eq!(rules.parse_action(letter), Some(action));
    }
    for action in [6, 7, 26, 255, 256, usize::MAX] {
        assert_eq!(rules.action_name(action), None);
    }
    for text in ["", "g", "A", "aa", " a", "a ", "0", "`", "é"] {
        assert_eq!(rules.parse_action(text), None);
    }
    assert_eq!(Rules::new(1, 8, 1).unwrap().parse_action("h"), Some(7));
    assert_eq!(Rules::new(1, 7, 1).unwrap().parse_action("h"), None);
}

#[test]
fn the_legal_actions_of_a_message_are_listed() {
    let game = game("katro-4x4");
    let legal = |text| game.legal(&game.parse(text).unwrap()).to_string();
    assert_eq!(legal("0,0,0,1/0,0,0,0/0,0,0,0/1,0,2,3 S"), "0, 2, 3");
    assert_eq!(legal("0,0,0,1/0,0,0,0/0,0,0,0/1,0,2,3 N"), "0");
    assert_eq!(legal("0,0,0,0/0,0,0,0/0,0,0,0/1,0,2,3 N"), "none");
}
