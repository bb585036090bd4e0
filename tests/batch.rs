//! A batch against single games: the same positions, and in every array what
//! the description of the array says.

use katro::{
    Arrays, Autoreset, Batch, Final, Game, Illegal, Options, Player, Position, Rules, StepError,
};

const SIZES: [usize; 6] = [1, 7, 63, 64, 65, 1000];

const MODES: [Autoreset; 3] = [Autoreset::NextStep, Autoreset::SameStep, Autoreset::Disabled];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A legal action of an open position.
    fn action(&mut self, game: &Game, position: &Position) -> i64 {
        let legal = game.legal(position);
        legal.iter().nth(self.below(legal.len())).unwrap() as i64
    }
}

fn board(rows: i64, columns: i64, seeds: i64) -> Game {
    Game::new(Rules::new(rows, columns, seeds).unwrap())
}

fn boards() -> Vec<Game> {
    let mut games: Vec<Game> = Rules::NAMED.map(|(_, rules)| Game::new(rules)).to_vec();
    games.extend([board(1, 1, 2), board(1, 8, 15), board(2, 8, 3), board(3, 8, 5), board(3, 1, 1)]);
    games
}

fn options(autoreset: Autoreset, illegal: Illegal, max_plies: Option<u32>) -> Options {
    Options { autoreset, illegal, max_plies }
}

/// Arrays in which every entry is wrong, so that none may be forgotten.
fn soiled(game: &Game, n: usize) -> Arrays {
    let mut arrays = Arrays::new(game, n);
    arrays.observation.fill(99);
    arrays.action_mask.fill(77);
    arrays.reward.fill(-9.0);
    arrays.terminated.fill(true);
    arrays.truncated.fill(true);
    arrays.to_move.fill(9);
    arrays.winner.fill(9);
    arrays.captured.fill(-9);
    arrays.laps.fill(-9);
    arrays.bound.fill(-9);
    arrays
}

fn index(player: Player) -> i64 {
    player.index() as i64
}

/// One game, played with [`Game::play`].
#[derive(Clone, Copy, PartialEq, Debug)]
struct Single {
    position: Position,
    plies: u32,
    ended: bool,
}

/// What a step is for one game.
struct Outcome {
    reward: f64,
    terminated: bool,
    truncated: bool,
    winner: i64,
    captured: i64,
    laps: i64,
}

const NOTHING: Outcome =
    Outcome { reward: 0.0, terminated: false, truncated: false, winner: -1, captured: 0, laps: 0 };

/// A batch made of single games.
struct Model {
    game: Game,
    options: Options,
    singles: Vec<Single>,
}

impl Model {
    fn new(game: Game, n: usize, options: Options) -> Model {
        let single = Single { position: game.start(), plies: 0, ended: false };
        Model { game, options, singles: vec![single; n] }
    }

    fn write(&self, i: usize, outcome: &Outcome, arrays: &mut Arrays) {
        let Single { position, ended, .. } = self.singles[i];
        let (holes, actions) = (self.game.rules().holes(), self.game.rules().num_actions());
        arrays.observation[i * holes..(i + 1) * holes]
            .copy_from_slice(&self.game.observation(&position));
        let legal = self.game.legal(&position);
        for action in 0..actions {
            arrays.action_mask[i * actions + action] =
                i8::from(ended || legal.contains(action as i64));
        }
        arrays.reward[i] = outcome.reward;
        arrays.terminated[i] = outcome.terminated;
        arrays.truncated[i] = outcome.truncated;
        arrays.to_move[i] = index(position.to_move());
        arrays.winner[i] = outcome.winner;
        arrays.captured[i] = outcome.captured;
        arrays.laps[i] = outcome.laps;
        if self.game.rules().binds() {
            for (entry, player) in [position.to_move(), !position.to_move()].iter().enumerate() {
                arrays.bound[2 * i + entry] = position.bound(*player).map_or(-1, |way| way as i8);
            }
        }
    }

    fn observe(&self) -> Arrays {
        let mut arrays = Arrays::new(&self.game, self.singles.len());
        for i in 0..self.singles.len() {
            self.write(i, &NOTHING, &mut arrays);
        }
        arrays
    }

    /// Steps every game with an action that the batch does not refuse.
    fn step(&mut self, actions: &[i64]) -> (Arrays, Vec<Final>) {
        let mut arrays = Arrays::new(&self.game, self.singles.len());
        let mut finals = Vec::new();
        for (i, &action) in actions.iter().enumerate() {
            let start = Single { position: self.game.start(), plies: 0, ended: false };
            let single = &mut self.singles[i];
            let mut outcome = NOTHING;
            if single.ended {
                assert_eq!(self.options.autoreset, Autoreset::NextStep);
                *single = start;
            } else {
                let mover = single.position.to_move();
                if let Ok((after, ply)) = self.game.play(&single.position, action) {
                    single.position = after;
                    single.plies += 1;
                    (outcome.captured, outcome.laps) = (ply.captured.into(), ply.laps.into());
                    if let Some(winner) = self.game.winner(&after) {
                        assert_eq!(winner, mover);
                        outcome.winner = index(winner);
                        outcome.reward = 1.0;
                    }
                } else {
                    assert_eq!(self.options.illegal, Illegal::Lose);
                    outcome.winner = index(!mover);
                    outcome.reward = -1.0;
                }
                outcome.terminated = outcome.winner != -1;
                outcome.truncated = !outcome.terminated
                    && self.options.max_plies.is_some_and(|most| single.plies >= most);
                single.ended = outcome.terminated || outcome.truncated;
                if single.ended && self.options.autoreset == Autoreset::SameStep {
                    finals.push(Final {
                        game: i,
                        position: single.position,
                        winner: outcome.winner,
                        captured: outcome.captured,
                        laps: outcome.laps,
                    });
                    *single = start;
                    (outcome.winner, outcome.captured, outcome.laps) = (-1, 0, 0);
                }
            }
            self.write(i, &outcome, &mut arrays);
        }
        (arrays, finals)
    }
}

fn singles(batch: &Batch) -> Vec<Single> {
    let single =
        |i| Single { position: batch.position(i), plies: batch.plies(i), ended: batch.ended(i) };
    (0..batch.len()).map(single).collect()
}

fn assert_same(found: &Arrays, expected: &Arrays) {
    assert_eq!(found.observation, expected.observation);
    assert_eq!(found.action_mask, expected.action_mask);
    assert_eq!(found.reward, expected.reward);
    assert_eq!(found.terminated, expected.terminated);
    assert_eq!(found.truncated, expected.truncated);
    assert_eq!(found.to_move, expected.to_move);
    assert_eq!(found.winner, expected.winner);
    assert_eq!(found.captured, expected.captured);
    assert_eq!(found.laps, expected.laps);
    assert_eq!(found, expected);
}

/// What a comparison came across.
#[derive(Default, Debug)]
struct Seen {
    won: usize,
    lost: usize,
    cut: usize,
}

/// Steps a batch and single games with the same random actions.
fn compare(game: Game, n: usize, options: Options, steps: usize, seed: u64) -> Seen {
    let mut random = Random(seed);
    let mut batch = Batch::new(game, n, options);
    let mut model = Model::new(game, n, options);
    let mut arrays = soiled(&game, n);
    let mut seen = Seen::default();
    batch.observe(arrays.rows());
    assert_same(&arrays, &model.observe());

    for _ in 0..steps {
        let mut actions = Vec::with_capacity(n);
        for i in 0..n {
            if options.autoreset == Autoreset::Disabled && model.singles[i].ended {
                let mut fresh = Single { position: game.start(), plies: 0, ended: false };
                let (other, _) = game.play(&fresh.position, 0).unwrap();
                if game.winner(&other).is_none() && random.below(2) == 0 {
                    fresh.position = other;
                    batch.reset(i, Some(&other));
                } else {
                    batch.reset(i, None);
                }
                model.singles[i] = fresh;
            }
            actions.push(if model.singles[i].ended {
                // Whatever it is, it is ignored.
                [i64::MIN, -1, 0, 99, i64::MAX][random.below(5)]
            } else if options.illegal == Illegal::Lose && random.below(50) == 0 {
                random.below(game.rules().num_actions()) as i64
            } else {
                random.action(&game, &model.singles[i].position)
            });
        }
        let finals = batch.step(&actions, arrays.rows()).unwrap();
        let expected = model.step(&actions);
        assert_same(&arrays, &expected.0);
        assert_eq!(finals, expected.1);
        assert_eq!(singles(&batch), model.singles);
        for i in 0..n {
            assert!(!(arrays.terminated[i] && arrays.truncated[i]));
            seen.won += usize::from(arrays.reward[i] == 1.0);
            seen.lost += usize::from(arrays.reward[i] == -1.0);
            seen.cut += usize::from(arrays.truncated[i]);
        }
    }
    seen
}

// A batch is its single games

#[test]
fn a_batch_of_any_size_plays_as_single_games() {
    for autoreset in MODES {
        for n in SIZES {
            let steps = (30_000 / n).clamp(60, 2_000);
            let options = options(autoreset, Illegal::Refuse, None);
            let seen = compare(Game::new(Rules::named("katro-4x4").unwrap()), n, options, steps, 1);
            assert!(seen.won > 20 && seen.lost == 0 && seen.cut == 0, "{seen:?}");
        }
    }
}

#[test]
fn a_batch_of_any_board_plays_as_single_games() {
    for (seed, game) in (10..).zip(boards()) {
        for autoreset in MODES {
            compare(game, 65, options(autoreset, Illegal::Refuse, None), 500, seed);
        }
    }
}

#[test]
fn a_batch_cuts_off_and_loses_as_single_games() {
    let (mut lost, mut cut) = (0, 0);
    for (seed, game) in (30..).zip(boards()) {
        for autoreset in MODES {
            for n in [7, 130] {
                let options = options(autoreset, Illegal::Lose, Some(25));
                let seen = compare(game, n, options, 400, seed);
                lost += seen.lost;
                cut += seen.cut;
            }
        }
    }
    assert!(lost > 1_000 && cut > 1_000, "{lost} lost, {cut} cut off");
}

#[test]
fn long_games_of_the_standard_rules_are_the_same() {
    for autoreset in MODES {
        let limit = options(autoreset, Illegal::Refuse, Some(300));
        let seen = compare(Game::new(Rules::KATRO), 64, limit, 3_000, 50);
        assert!(seen.won > 100 && seen.cut > 50, "{seen:?}");
    }
}

#[test]
fn a_game_does_not_depend_on_the_others() {
    // Game i of a large batch plays as the only game of a batch of one.
    let game = Game::new(Rules::KATRO);
    let options = options(Autoreset::SameStep, Illegal::Refuse, Some(100));
    let (n, watched) = (200, 131);
    let mut large = Batch::new(game, n, options);
    let mut small = Batch::new(game, 1, options);
    let (mut of_large, mut of_small) = (soiled(&game, n), soiled(&game, 1));
    let mut random = Random(60);
    for _ in 0..1_000 {
        let actions: Vec<i64> = (0..n).map(|i| random.action(&game, &large.position(i))).collect();
        let many = large.step(&actions, of_large.rows()).unwrap();
        let one = small.step(&actions[watched..=watched], of_small.rows()).unwrap();
        assert_eq!(large.position(watched), small.position(0));
        assert_eq!(of_large.observation[watched * 36..(watched + 1) * 36], of_small.observation);
        assert_eq!(of_large.action_mask[watched * 6..(watched + 1) * 6], of_small.action_mask);
        assert_eq!(of_large.laps[watched], of_small.laps[0]);
        let of_watched: Vec<&Final> = many.iter().filter(|last| last.game == watched).collect();
        assert_eq!(of_watched.len(), one.len());
        assert!(of_watched.iter().zip(&one).all(|(a, b)| a.position == b.position));
    }
}

#[test]
fn a_clone_goes_its_own_way() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 70, Options::default());
    let mut arrays = Arrays::new(&game, 70);
    batch.step(&[2; 70], arrays.rows()).unwrap();
    let before = singles(&batch);
    let mut clone = batch.clone();
    clone.step(&[2; 70], arrays.rows()).unwrap();
    assert_eq!(singles(&batch), before);
    batch.step(&[2; 70], arrays.rows()).unwrap();
    assert_eq!(singles(&batch), singles(&clone));
}

#[test]
fn a_batch_without_games_can_be_stepped() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 0, Options::default());
    assert!(batch.is_empty());
    let mut arrays = Arrays::new(&game, 0);
    batch.observe(arrays.rows());
    assert_eq!(batch.step(&[], arrays.rows()), Ok(Vec::new()));
    batch.afterstates(&mut [], &mut []);
    assert_eq!(arrays, Arrays::new(&game, 0));
}

#[test]
fn a_batch_tells_what_it_is() {
    let game = board(2, 3, 2);
    let options = options(Autoreset::Disabled, Illegal::Lose, Some(5));
    let batch = Batch::new(game, 65, options);
    assert_eq!((batch.len(), batch.is_empty()), (65, false));
    assert_eq!((*batch.game(), batch.options()), (game, options));
    let fresh = Single { position: game.start(), plies: 0, ended: false };
    assert_eq!(singles(&batch), [fresh; 65]);
    assert_eq!(Options::default(), self::options(Autoreset::NextStep, Illegal::Refuse, None));
}

#[test]
fn the_memory_of_a_batch_is_counted() {
    let game = Game::new(Rules::KATRO);
    let bytes = |n| Batch::bytes(&game, n);
    assert!(bytes(0).unwrap() <= bytes(1).unwrap());
    assert!(bytes(1_000).unwrap() >= 1_000 * (36 + 6 + 5 * 8 + 2 + 2 * 3 * 8));
    assert!(bytes(1_000_000).unwrap() < 1_000_000_000);
    assert_eq!(bytes(usize::MAX), None);
    assert_eq!(bytes(usize::MAX / 8), None);
}

// The ends of a game

/// A game in which South wins in `plies` plies, with its actions.
fn won_game(game: &Game, plies: usize) -> Vec<i64> {
    (0..)
        .map(|seed| {
            let mut random = Random(seed);
            let mut position = game.start();
            let mut actions = Vec::new();
            while game.winner(&position).is_none() {
                let action = random.action(game, &position);
                actions.push(action);
                position = game.play(&position, action).unwrap().0;
            }
            actions
        })
        .find(|actions| actions.len() == plies)
        .unwrap()
}

#[test]
fn a_game_is_cut_off_at_the_limit_unless_it_is_won_there() {
    let game = Game::new(Rules::named("katro-4x4").unwrap());
    let n = 17;
    let actions = won_game(&game, n);
    for (limit, last, won) in [(n - 1, n - 1, false), (n, n, true), (n + 1, n, true)] {
        for autoreset in MODES {
            let options = options(autoreset, Illegal::Refuse, Some(limit as u32));
            let mut batch = Batch::new(game, 1, options);
            let mut arrays = soiled(&game, 1);
            for (ply, &action) in (1..=last).zip(&actions) {
                let finals = batch.step(&[action], arrays.rows()).unwrap();
                let over = ply == last;
                assert_eq!(arrays.terminated, [over && won]);
                assert_eq!(arrays.truncated, [over && !won]);
                assert_eq!(arrays.reward, [if over && won { 1.0 } else { 0.0 }]);
                let reset = over && autoreset == Autoreset::SameStep;
                assert_eq!(batch.ended(0), over && !reset);
                assert_eq!(batch.plies(0), if reset { 0 } else { ply as u32 });
                assert_eq!(finals.len(), usize::from(reset));
            }
        }
    }
}

#[test]
fn a_limit_of_one_ply_cuts_off_every_game() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 3, options(Autoreset::SameStep, Illegal::Refuse, Some(1)));
    let mut arrays = soiled(&game, 3);
    for _ in 0..3 {
        let finals = batch.step(&[0, 1, 2], arrays.rows()).unwrap();
        assert_eq!(finals.iter().map(|last| last.game).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(finals.iter().map(|last| last.laps).collect::<Vec<_>>(), [7, 8, 7]);
        assert!(finals.iter().all(|last| last.winner == -1));
        assert_eq!(arrays.truncated, [true; 3]);
        assert_eq!(arrays.to_move, [0; 3]);
    }
}

/// South captures North's last seeds with action 2.
const WINNING: &str = "0,0,0,0,0,0/0,0,0,0,0,0/0,0,0,2,0,0/0,0,1,4,0,1/0,0,0,0,0,0/0,0,0,0,0,0 S";

#[test]
fn the_winning_move_is_worth_one_to_the_mover() {
    let game = Game::new(Rules::KATRO);
    let south = game.parse(WINNING).unwrap();
    for (position, winner) in [(south, 0), (south.swapped(), 1)] {
        let mut batch = Batch::new(game, 2, Options::default());
        let mut arrays = soiled(&game, 2);
        batch.reset(1, Some(&position));
        assert_eq!(batch.step(&[0, 2], arrays.rows()), Ok(Vec::new()));
        assert_eq!(arrays.reward, [0.0, 1.0]);
        assert_eq!((arrays.terminated, arrays.truncated), (vec![false, true], vec![false; 2]));
        assert_eq!(arrays.winner, [-1, winner]);
        assert_eq!(arrays.to_move, [1, 1 - winner]);
        assert_eq!((arrays.captured[1], arrays.laps[1]), (2, 1));
        // The last position, and a mask that a sampler can use.
        let (last, _) = game.play(&position, 2).unwrap();
        assert_eq!(arrays.observation[36..], game.observation(&last));
        assert_eq!(arrays.action_mask[6..], [1; 6]);
        assert_eq!((batch.position(1), batch.ended(0), batch.ended(1)), (last, false, true));
    }
}

#[test]
fn next_step_starts_the_game_in_the_step_after() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 2, options(Autoreset::NextStep, Illegal::Refuse, Some(9)));
    let mut arrays = soiled(&game, 2);
    batch.reset(1, Some(&game.parse(WINNING).unwrap()));
    batch.step(&[0, 2], arrays.rows()).unwrap();
    assert!(batch.ended(1));
    // The action of that step is ignored, whatever it is.
    assert_eq!(batch.step(&[0, i64::MIN], arrays.rows()), Ok(Vec::new()));
    assert_eq!(batch.position(1), game.start());
    assert_eq!((batch.plies(0), batch.plies(1), batch.ended(1)), (2, 0, false));
    assert_eq!((arrays.reward[1], arrays.terminated[1], arrays.truncated[1]), (0.0, false, false));
    assert_eq!((arrays.winner[1], arrays.captured[1], arrays.laps[1]), (-1, 0, 0));
    assert_eq!(arrays.observation[36..], [2; 36]);
    assert_eq!((&arrays.action_mask[6..], arrays.to_move[1]), (&[1; 6][..], 0));
}

#[test]
fn same_step_starts_the_game_at_once_and_keeps_its_end() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 2, options(Autoreset::SameStep, Illegal::Refuse, None));
    let mut arrays = soiled(&game, 2);
    let position = game.parse(WINNING).unwrap();
    batch.reset(1, Some(&position));
    let finals = batch.step(&[0, 2], arrays.rows()).unwrap();
    let (last, _) = game.play(&position, 2).unwrap();
    assert_eq!(finals, [Final { game: 1, position: last, winner: 0, captured: 2, laps: 1 }]);
    // The end is told in the arrays, the rest is the new game.
    assert_eq!((arrays.reward[1], arrays.terminated[1], arrays.truncated[1]), (1.0, true, false));
    assert_eq!((arrays.winner[1], arrays.captured[1], arrays.laps[1]), (-1, 0, 0));
    assert_eq!(arrays.observation[36..], [2; 36]);
    assert_eq!((&arrays.action_mask[6..], arrays.to_move[1]), (&[1; 6][..], 0));
    assert_eq!((batch.position(1), batch.plies(1), batch.ended(1)), (game.start(), 0, false));
}

#[test]
fn disabled_keeps_an_ended_game_until_it_is_reset() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 70, options(Autoreset::Disabled, Illegal::Refuse, None));
    let mut arrays = soiled(&game, 70);
    batch.reset(66, Some(&game.parse(WINNING).unwrap()));
    batch.step(&[2; 70], arrays.rows()).unwrap();
    let (before, written) = (singles(&batch), arrays.clone());
    let error = batch.step(&[2; 70], arrays.rows()).unwrap_err();
    assert_eq!(error, StepError::Ended { game: 66 });
    assert_eq!(error.to_string(), "game 66 is over and must be reset first");
    assert_eq!((singles(&batch), &arrays), (before, &written));
    batch.reset(66, None);
    assert!(batch.step(&[2; 70], arrays.rows()).is_ok());
    assert_eq!((batch.plies(66), batch.plies(0)), (1, 2));
}

// Illegal actions

#[test]
fn a_refused_step_changes_nothing() {
    let game = Game::new(Rules::named("katro-4x6").unwrap());
    for n in SIZES {
        let mut random = Random(70);
        let mut batch =
            Batch::new(game, n, options(Autoreset::NextStep, Illegal::Refuse, Some(40)));
        let mut arrays = soiled(&game, n);
        for _ in 0..30 {
            let mut actions: Vec<i64> = (0..n)
                .map(|i| if batch.ended(i) { 0 } else { random.action(&game, &batch.position(i)) })
                .collect();
            // An illegal action in any one game, often the last.
            let bad = if random.below(2) == 0 { n - 1 } else { random.below(n) };
            let legal = game.legal(&batch.position(bad));
            if !batch.ended(bad) {
                let illegal = [-1, 6, 7, 8, 64, 256, i64::MIN, i64::MAX]
                    .into_iter()
                    .chain((0..6).filter(|&action| !legal.contains(action)));
                for action in illegal {
                    let good = std::mem::replace(&mut actions[bad], action);
                    let (before, written) = (singles(&batch), arrays.clone());
                    let error = batch.step(&actions, arrays.rows()).unwrap_err();
                    let expected = game.play(&batch.position(bad), action).unwrap_err();
                    assert_eq!(error.to_string(), format!("game {bad}: {expected}"));
                    assert_eq!(error, StepError::Illegal { game: bad, error: expected });
                    assert_eq!(singles(&batch), before);
                    assert_same(&arrays, &written);
                    actions[bad] = good;
                }
            }
            batch.step(&actions, arrays.rows()).unwrap();
        }
    }
}

#[test]
fn the_first_bad_action_is_the_one_that_is_told() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 100, Options::default());
    let mut arrays = soiled(&game, 100);
    let mut actions = [0; 100];
    (actions[99], actions[65], actions[3]) = (-5, 17, 6);
    for (game, message) in [
        (3, "game 3: illegal action 6: legal are 0, 1, 2, 3, 4, 5 in "),
        (65, "game 65: illegal action 17: legal are 0, 1, 2, 3, 4, 5 in "),
        (99, "game 99: illegal action -5: legal are 0, 1, 2, 3, 4, 5 in "),
    ] {
        let error = batch.step(&actions, arrays.rows()).unwrap_err();
        assert!(matches!(&error, StepError::Illegal { game: found, .. } if *found == game));
        assert!(error.to_string().starts_with(message), "{error}");
        actions[game] = 0;
    }
    assert!(batch.step(&actions, arrays.rows()).is_ok());
}

#[test]
fn every_game_needs_an_action() {
    let game = Game::new(Rules::KATRO);
    for illegal in [Illegal::Refuse, Illegal::Lose] {
        let mut batch = Batch::new(game, 65, options(Autoreset::NextStep, illegal, None));
        let mut arrays = soiled(&game, 65);
        let (before, written) = (singles(&batch), arrays.clone());
        for found in [0, 1, 64, 66, 130] {
            let error = batch.step(&vec![0; found], arrays.rows()).unwrap_err();
            assert_eq!(error, StepError::Length { expected: 65, found });
            assert_eq!(error.to_string(), format!("65 games need 65 actions, got {found}"));
        }
        assert_eq!((singles(&batch), arrays), (before, written));
    }
}

/// Only columns 1 and 4 are legal for the player to move.
const CHOICE: &str = "2,2,2,2,2,2/2,2,2,2,2,2/2,2,2,2,2,2/1,1,1,1,1,1/1,1,1,1,1,1/0,3,0,0,1,0 S";

#[test]
fn an_illegal_action_loses_and_moves_no_seed() {
    let game = Game::new(Rules::KATRO);
    let south = game.parse(CHOICE).unwrap();
    for position in [south, south.swapped()] {
        let winner = index(!position.to_move());
        for autoreset in MODES {
            let mut batch = Batch::new(game, 2, options(autoreset, Illegal::Lose, Some(1)));
            let mut arrays = soiled(&game, 2);
            batch.reset(0, Some(&position));
            batch.reset(1, Some(&position));
            let finals = batch.step(&[0, 1], arrays.rows()).unwrap();
            assert_eq!(arrays.reward, [-1.0, 0.0]);
            assert_eq!(
                (arrays.terminated, arrays.truncated),
                (vec![true, false], vec![false, true])
            );
            if autoreset == Autoreset::SameStep {
                let lost = Final { game: 0, position, winner, captured: 0, laps: 0 };
                assert_eq!((finals.len(), finals[0]), (2, lost));
                assert_eq!(arrays.winner, [-1, -1]);
            } else {
                assert!(finals.is_empty());
                assert_eq!(arrays.winner, [winner, -1]);
                assert_eq!((arrays.captured[0], arrays.laps[0]), (0, 0));
                assert_eq!((batch.position(0), batch.ended(0)), (position, true));
                assert_eq!(arrays.observation[..36], game.observation(&position));
                assert_eq!(arrays.action_mask[..6], [1; 6]);
                assert_eq!(arrays.to_move[0], index(position.to_move()));
            }
        }
    }
}

#[test]
fn an_action_outside_the_action_space_is_refused_also_where_illegal_ones_lose() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 2, options(Autoreset::NextStep, Illegal::Lose, None));
    let mut arrays = soiled(&game, 2);
    batch.reset(1, Some(&game.parse(CHOICE).unwrap()));
    let (before, written) = (singles(&batch), arrays.clone());
    for action in [i64::MIN, -1, 6, 7, 8, 63, 64, 65, i64::MAX] {
        let error = batch.step(&[0, action], arrays.rows()).unwrap_err();
        let expected = game.play(&batch.position(1), action).unwrap_err();
        assert_eq!(error, StepError::Illegal { game: 1, error: expected });
    }
    assert_eq!((singles(&batch), arrays), (before, written));
}

#[test]
fn a_won_position_is_not_played_on() {
    // R10: no action is legal, for whoever is to move.
    let game = Game::new(Rules::KATRO);
    let text = "0,0,0,0,0,0/0,0,0,0,0,0/0,0,0,0,0,0/0,0,0,0,0,0/0,0,0,0,0,0/0,0,0,1,0,0";
    for illegal in [Illegal::Refuse, Illegal::Lose] {
        for player in ["S", "N"] {
            let won = game.parse(&format!("{text} {player}")).unwrap();
            let mut batch = Batch::new(game, 1, options(Autoreset::Disabled, illegal, None));
            batch.reset(0, Some(&won));
            let _ = batch.step(&[3], soiled(&game, 1).rows());
            assert_eq!(game.notation(&batch.position(0)), game.notation(&won));
        }
    }
}

// Looking, and putting back

#[test]
fn observe_shows_the_games_as_a_reset_leaves_them() {
    for game in boards() {
        for n in [1, 64, 65] {
            let options = options(Autoreset::Disabled, Illegal::Refuse, Some(30));
            let mut batch = Batch::new(game, n, options);
            let mut model = Model::new(game, n, options);
            let mut random = Random(80);
            for _ in 0..20 {
                for i in 0..n {
                    if batch.ended(i) {
                        batch.reset(i, None);
                        model.singles[i].clone_from(&Model::new(game, 1, options).singles[0]);
                    }
                }
                let actions: Vec<i64> =
                    (0..n).map(|i| random.action(&game, &batch.position(i))).collect();
                batch.step(&actions, soiled(&game, n).rows()).unwrap();
                model.step(&actions);
                let mut arrays = soiled(&game, n);
                batch.observe(arrays.rows());
                assert_same(&arrays, &model.observe());
                assert_eq!(singles(&batch), model.singles);
            }
        }
    }
}

#[test]
fn afterstates_are_what_every_legal_action_leads_to() {
    const LEFT_ALONE: u8 = 201;
    for game in boards() {
        let (holes, actions) = (game.rules().holes(), game.rules().num_actions());
        for n in [1, 64, 65] {
            let mut random = Random(90);
            let mut batch =
                Batch::new(game, n, options(Autoreset::NextStep, Illegal::Refuse, Some(30)));
            for _ in 0..40 {
                let mut expected = vec![LEFT_ALONE; n * actions * holes];
                let mut legal = vec![false; n * actions];
                let rows = expected.chunks_mut(holes).zip(&mut legal);
                for ((row, legal), (i, action)) in
                    rows.zip((0..n).flat_map(|i| (0..actions).map(move |action| (i, action))))
                {
                    match game.play(&batch.position(i), action as i64) {
                        Ok((after, _)) if !batch.ended(i) => {
                            row.copy_from_slice(&game.observation(&after));
                            *legal = true;
                        }
                        _ => {}
                    }
                }
                let mut grids = vec![LEFT_ALONE; n * actions * holes];
                let before = singles(&batch);
                let mut found = vec![true; n * actions];
                batch.afterstates(&mut grids, &mut found);
                assert_eq!(grids, expected);
                assert_eq!(found, legal);
                assert_eq!(singles(&batch), before);

                let moves: Vec<i64> =
                    (0..n)
                        .map(|i| {
                            if batch.ended(i) {
                                0
                            } else {
                                random.action(&game, &batch.position(i))
                            }
                        })
                        .collect();
                batch.step(&moves, soiled(&game, n).rows()).unwrap();
            }
        }
    }
}

#[test]
fn a_restored_batch_goes_on_as_before() {
    let game = Game::new(Rules::named("katro-4x4").unwrap());
    for autoreset in [Autoreset::NextStep, Autoreset::SameStep] {
        let options = options(autoreset, Illegal::Lose, Some(20));
        let mut batch = Batch::new(game, 65, options);
        let mut arrays = soiled(&game, 65);
        let mut random = Random(100);
        let mut actions = || (0..65).map(|_| random.below(4) as i64).collect::<Vec<_>>();
        for _ in 0..50 {
            batch.step(&actions(), arrays.rows()).unwrap();
            let mut copy = Batch::new(game, 65, options);
            for (i, single) in singles(&batch).into_iter().enumerate() {
                copy.restore(i, &single.position, single.plies, single.ended);
            }
            assert_eq!(singles(&copy), singles(&batch));
            let mut clone = batch.clone();
            let (mut one, mut other) = (soiled(&game, 65), soiled(&game, 65));
            for _ in 0..3 {
                let actions = actions();
                assert_eq!(clone.step(&actions, one.rows()), copy.step(&actions, other.rows()));
                assert_same(&one, &other);
                assert_eq!(singles(&clone), singles(&copy));
            }
        }
    }
}

#[test]
fn a_restored_game_has_its_plies_behind_it() {
    let game = Game::new(Rules::KATRO);
    let (played, _) = game.play(&game.start(), 2).unwrap();
    let mut batch = Batch::new(game, 4, options(Autoreset::NextStep, Illegal::Refuse, Some(10)));
    let mut arrays = soiled(&game, 4);
    batch.restore(0, &played, 8, false);
    batch.restore(1, &played, 9, false);
    batch.restore(2, &played, 10, true);
    batch.reset(3, Some(&played));
    assert_eq!((batch.plies(2), batch.ended(2), batch.plies(3)), (10, true, 0));
    batch.step(&[1; 4], arrays.rows()).unwrap();
    assert_eq!(arrays.truncated, [false, true, false, false]);
    assert_eq!((batch.position(2), batch.ended(2)), (game.start(), false));
    assert_eq!(batch.plies(3), 1);
}

// Speed

/// Games that are sown side by side, without vector instructions, are sown no faster than
/// one by one, but at a third of that speed. With AVX-512 they are 8 times as fast; the
/// bound is low, since the machine may be busy or have few instructions.
#[cfg(not(debug_assertions))]
#[test]
fn games_are_sown_side_by_side() {
    const PLIES: usize = 200;
    const GAMES: usize = 1024;
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, GAMES, options(Autoreset::SameStep, Illegal::Refuse, None));
    let seconds = |work: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    let (mut together, mut one_by_one) = (f64::MAX, f64::MAX);
    let mut position = game.start();
    let mut random = Random(1);
    for seed in 0..8 {
        let mut rollout = || _ = batch.rollout(PLIES as u64, seed, &mut || true);
        together = together.min(seconds(&mut rollout) / (PLIES * GAMES) as f64);
        let mut play = || {
            for _ in 0..10 * PLIES {
                let action = random.action(&game, &position);
                (position, _) = game.play(&position, action).unwrap();
                if game.winner(&position).is_some() {
                    position = game.start();
                }
            }
        };
        one_by_one = one_by_one.min(seconds(&mut play) / (10 * PLIES) as f64);
    }
    let ratio = one_by_one / together;
    assert!(ratio > 1.0, "side by side only {ratio:.2} times as fast as one by one");
}

// Wrong arrays

#[test]
#[should_panic]
fn arrays_of_another_number_of_games_are_refused() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 3, Options::default());
    let _ = batch.step(&[0; 3], Arrays::new(&game, 2).rows());
}

#[test]
#[should_panic]
fn arrays_of_another_board_are_refused() {
    let game = Game::new(Rules::named("katro-4x4").unwrap());
    let mut batch = Batch::new(game, 3, Options::default());
    let _ = batch.step(&[0; 3], Arrays::new(&Game::new(Rules::KATRO), 3).rows());
}

#[test]
#[should_panic]
fn arrays_with_a_missing_block_are_refused() {
    let game = Game::new(Rules::KATRO);
    let mut batch = Batch::new(game, 128, Options::default());
    let mut arrays = Arrays::new(&game, 128);
    arrays.laps.truncate(64);
    let _ = batch.step(&[0; 128], arrays.rows());
}

#[test]
#[should_panic]
fn afterstates_of_another_size_are_refused() {
    let game = Game::new(Rules::KATRO);
    Batch::new(game, 2, Options::default()).afterstates(&mut [0; 2 * 6 * 36 - 1], &mut [true; 12]);
}
