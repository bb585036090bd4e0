//! The drawn board: text exactly, SVG by what it must hold.

use std::collections::HashSet;

use katro::{Game, Hole, Lap, Player, Position, Rules};

/// The games of every size of board there is.
fn boards() -> impl Iterator<Item = Game> {
    (1..=3).flat_map(|rows| {
        (1..=8).map(move |columns| Game::new(Rules::new(rows, columns, 2).unwrap()))
    })
}

/// Checks that the tags of `xml` are closed in order, that no tag has an
/// attribute twice, and that there is one root.
fn assert_well_formed(xml: &str) {
    let mut open = Vec::new();
    for (index, markup) in xml.split('<').skip(1).enumerate() {
        let (tag, text) = markup.split_once('>').expect(markup);
        assert!(!text.contains('&') && !tag.contains('&'), "{markup}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{xml}");
            continue;
        }
        assert!(index == 0 || !open.is_empty(), "a second root: {markup}");
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let parts: Vec<&str> = attributes.trim_end_matches('/').trim().split('"').collect();
        assert_eq!(parts.len() % 2, 1, "{tag}");
        let mut names: Vec<&str> = parts.iter().step_by(2).map(|part| part.trim()).collect();
        assert_eq!(names.pop(), Some(""), "{tag}");
        for (i, attribute) in names.iter().enumerate() {
            assert!(attribute.ends_with('=') && !names[..i].contains(attribute), "{tag}");
        }
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} in {xml}");
}

fn dots(svg: &str) -> usize {
    let seeds = svg.split_once(r#"<g class="katro-seeds""#).unwrap().1;
    seeds.split_once("</g>").unwrap().0.matches("<circle ").count()
}

fn circles(game: &Game, position: &Position, last: Option<&[Lap]>) -> usize {
    game.svg(position, last).matches("<circle ").count()
}

#[test]
fn text_of_the_start() {
    let game = Game::new(Rules::KATRO);
    let drawn = [
        "North   f   e   d   c   b   a",
        "        2   2   2   2   2   2",
        "        2   2   2   2   2   2",
        "        2   2   2   2   2   2",
        "      -----------------------",
        "        2   2   2   2   2   2",
        "        2   2   2   2   2   2",
        "        2   2   2   2   2   2",
        "South   a   b   c   d   e   f",
        "South to move",
    ];
    assert_eq!(game.text(&game.start()), drawn.join("\n"));
}

#[test]
fn text_aligns_counts_up_to_255() {
    let game = Game::new(Rules::named("katro-4x4").unwrap());
    let position = game.parse("0,1,0,0/0,10,0,0/0,230,2,0/9,0,0,3 N").unwrap();
    let drawn = [
        "North   d   c   b   a",
        "        .   1   .   .",
        "        .  10   .   .",
        "      ---------------",
        "        . 230   2   .",
        "        9   .   .   3",
        "South   a   b   c   d",
        "North to move",
    ];
    assert_eq!(game.text(&position), drawn.join("\n"));
}

#[test]
fn text_names_the_winner() {
    let game = Game::new(Rules::new(1, 3, 2).unwrap());
    let position = game.parse("0,255,0/0,0,0 S").unwrap();
    let drawn = [
        "North   c   b   a",
        "        . 255   .",
        "      -----------",
        "        .   .   .",
        "South   a   b   c",
        "North has won",
    ];
    assert_eq!(game.text(&position), drawn.join("\n"));
}

#[test]
fn text_has_no_trailing_space() {
    for game in boards() {
        let text = game.text(&game.start());
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        assert_eq!(text.lines().count(), 2 * game.rules().rows() + 4);
        assert!(!text.ends_with('\n'));
    }
}

#[test]
fn svg_is_self_contained() {
    let game = Game::new(Rules::KATRO);
    let svg = game.svg(&game.start(), None);
    assert!(
        svg.starts_with(r#"<svg xmlns="http://www.w3.org/2000/svg" width="420" height="432" "#)
    );
    assert!(svg.contains(r#" viewBox="0 0 420 432""#));
    assert!(
        svg.contains(&format!("<title>{}: South to move</title>", game.notation(&game.start())))
    );
    for foreign in ["<text", "<style", "<script", "font", "href", "url("] {
        assert!(!svg.contains(foreign), "{foreign}");
    }
}

#[test]
fn svg_of_every_board_has_a_dot_for_every_seed() {
    for game in boards() {
        let mut crowded = vec![0; game.rules().holes()];
        crowded[0] = 255;
        let crowded = game.position(&crowded, Player::South).unwrap();
        for (position, seeds) in [(game.start(), game.rules().total_seeds()), (crowded, 255)] {
            let svg = game.svg(&position, None);
            assert_well_formed(&svg);
            assert_eq!(dots(&svg), seeds);
        }
    }
}

#[test]
fn svg_of_a_whole_game() {
    let game = Game::new(Rules::KATRO);
    let mut position = game.start();
    while let Some(action) = game.legal(&position).iter().last() {
        let laps = game.trace(&position, action as i64).unwrap();
        position = game.play(&position, action as i64).unwrap().0;
        let svg = game.svg(&position, Some(&laps));
        assert_well_formed(&svg);
        assert_eq!(dots(&svg), 72);

        let captured: HashSet<Hole> = laps.iter().flat_map(|lap| lap.captured.clone()).collect();
        let marks = circles(&game, &position, Some(&laps)) - circles(&game, &position, None);
        assert_eq!(marks, 2 + captured.len());
    }
    assert!(game.svg(&position, None).contains("has won</title>"));
}

#[test]
fn svg_ignores_marks_that_are_not_on_the_board() {
    let game = Game::new(Rules::KATRO);
    let nowhere = Hole { row: usize::MAX, column: usize::MAX };
    let lap = Lap { lifted: nowhere, seeds: 1, landed: nowhere, captured: vec![nowhere], taken: 1 };
    let plain = game.svg(&game.start(), None);
    assert_eq!(game.svg(&game.start(), Some(&[lap])), plain);
    assert_eq!(game.svg(&game.start(), Some(&[])), plain);
}
