//! The board drawn: as text, as an SVG and, for Python, as pixels.

use std::f64::consts::TAU;

use crate::game::{Game, Lap};
use crate::position::{Player, Position};

/// The side of the square around a hole. All measures are whole units of the
/// SVG, so that the edges of the board are sharp.
const CELL: usize = 60;
/// The radius of a hole.
const RADIUS: usize = 24;
/// The room around the board, for the letters.
const MARGIN: usize = 30;
/// The room between the sides.
const GAP: usize = 12;

const PAPER: &str = "#faf6ee";
const INK: &str = "#4a3420";
const WOOD: [&str; 2] = ["#c69a68", "#d4ad7c"];
const HOLLOW: &str = "#7d5636";
const SEED: &str = "#f4e6c8";
const MARK: &str = "#fffaf0";
const CAPTURE: &str = "#e0382a";
const TURN: &str = "#2f6f62";
const WON: &str = "#c98a14";

impl Game {
    /// Draws `position` for a terminal: South at the bottom, the letters of
    /// each player's columns from his own left, a dot for an empty hole.
    ///
    /// ```
    /// use katro::{Game, Rules};
    ///
    /// let game = Game::new(Rules::named("katro-4x4")?);
    /// let position = game.parse("2,2,2,2/0,2,2,2/2,12,2,2/2,2,0,0 N")?;
    /// let drawn = [
    ///     "North   d   c   b   a",
    ///     "        2   2   2   2",
    ///     "        .   2   2   2",
    ///     "      ---------------",
    ///     "        2  12   2   2",
    ///     "        2   2   .   .",
    ///     "South   a   b   c   d",
    ///     "North to move",
    /// ];
    /// assert_eq!(game.text(&position), drawn.join("\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn text(&self, position: &Position) -> String {
        let (rows, columns) = (self.rules().rows(), self.rules().columns());
        let line = |head: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("{cell:>4}")).collect();
            format!("{head:5}{cells}")
        };
        let count = |seeds: &u8| if *seeds == 0 { ".".to_owned() } else { seeds.to_string() };
        let letters = |player| self.letters(player).map(String::from).collect();

        let mut lines = vec![line("North", letters(Player::North))];
        for row in self.grid(position).chunks(columns) {
            lines.push(line("", row.iter().map(count).collect()));
        }
        lines.insert(1 + rows, format!("      {}", "-".repeat(4 * columns - 1)));
        lines.push(line("South", letters(Player::South)));
        lines.push(self.status(position));
        lines.join("\n")
    }

    /// Draws `position` as a self-contained SVG that needs no fonts.
    ///
    /// The tag of the player to move is filled; that of a winner has rays.
    /// `last` is the [trace](Game::trace) of the move that led here: a dashed
    /// ring marks the hole first lifted, a whole ring the hole where the last
    /// lap ended, red rings the captured holes.
    ///
    /// ```
    /// use katro::{Game, Rules};
    ///
    /// let game = Game::new(Rules::KATRO);
    /// let laps = game.trace(&game.start(), 2)?;
    /// let (position, _) = game.play(&game.start(), 2)?;
    /// assert!(game.svg(&position, Some(&laps)).starts_with("<svg "));
    /// # Ok::<(), katro::IllegalMove>(())
    /// ```
    pub fn svg(&self, position: &Position, last: Option<&[Lap]>) -> String {
        let (rows, columns) = (self.rules().rows(), self.rules().columns());
        let width = 2 * MARGIN + columns * CELL;
        let height = 2 * (MARGIN + rows * CELL) + GAP;
        let top = |row: usize| MARGIN + row * CELL + if row < rows { 0 } else { GAP };

        let mut board = String::new();
        for (row, wood) in [0, rows].into_iter().zip(WOOD) {
            let size = format!(r#"width="{}" height="{}""#, columns * CELL, rows * CELL);
            let y = top(row);
            board += &format!(r#"<rect x="{MARGIN}" y="{y}" {size} rx="14" fill="{wood}"/>"#);
        }

        let (mut holes, mut seeds, mut marks) = (String::new(), String::new(), String::new());
        let (mut plates, mut numbers) = (String::new(), String::new());
        let laps = last.unwrap_or_default();
        for hole in self.drawn() {
            let (x, y) = (MARGIN + hole.column * CELL + CELL / 2, top(hole.row) + CELL / 2);
            holes += &circle(x, y, RADIUS, "");
            let count = self.seeds(position, hole);
            seeds += &heap(x, y, count);
            if count > 4 {
                let digits = count.to_string();
                let wide = 9 * digits.len() + 5;
                let (x, y) = (x + CELL / 2 - wide, y + 13);
                plates += &format!(r#"<rect x="{x}" y="{y}" width="{wide}" height="16" rx="5"/>"#);
                numbers += &written(&digits, x + 4, y + 3);
            }
            if laps.iter().any(|lap| lap.captured.contains(&hole)) {
                marks += &circle(x, y, RADIUS, &format!(r#"stroke="{CAPTURE}""#));
            }
            if laps.last().is_some_and(|lap| lap.landed == hole) {
                marks += &circle(x, y, RADIUS, "");
            }
            if laps.first().is_some_and(|lap| lap.lifted == hole) {
                marks += &circle(x, y, RADIUS + 4, r#"stroke-dasharray="5 3.8""#);
            }
        }

        let (mut letters, mut tags) = (String::new(), String::new());
        for (player, x, y) in [
            (Player::North, width - MARGIN / 2, MARGIN / 2),
            (Player::South, MARGIN / 2, height - MARGIN / 2),
        ] {
            for (column, letter) in self.letters(player).enumerate() {
                let x = MARGIN + column * CELL + CELL / 2;
                letters += &written(&letter.to_string(), x - 3, y - 6);
            }
            let (fill, rays, ink) = match self.winner(position) {
                Some(winner) if winner == player => (WON, 4, MARK),
                None if position.to_move() == player => (TURN, 0, MARK),
                _ => (PAPER, 0, INK),
            };
            let rays = format!(r#"stroke-width="{rays}" stroke-dasharray="3.14""#);
            tags += &circle(x, y, 12, &format!(r#"fill="{fill}" stroke="{fill}" {rays}"#));
            let initial = written(&name(player)[..1], x - 3, y - 5);
            tags += &format!(r#"<path d="{initial}" stroke="{ink}"/>"#);
        }

        let title = format!("{}: {}", self.notation(position), self.status(position));
        let title = title.replace('<', "&lt;").replace('>', "&gt;");
        let size = format!(r#"width="{width}" height="{height}""#);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<rect {size} fill="{PAPER}"/>
{board}
<g fill="{HOLLOW}">{holes}</g>
<g class="katro-seeds" fill="{SEED}">{seeds}</g>
<g fill="none" stroke="{MARK}" stroke-width="2.6">{marks}</g>
<g fill="{INK}">{plates}</g>
<g fill="none" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">
<path d="{numbers}" stroke="{MARK}"/><path d="{letters}" stroke="{INK}"/>{tags}
</g>
</svg>"#
        )
    }

    /// The pixels of [`Game::svg`]: height, width, and red, green and blue of
    /// each pixel row by row.
    #[cfg(feature = "python")]
    pub(crate) fn rgb(&self, position: &Position, last: Option<&[Lap]>) -> (usize, usize, Vec<u8>) {
        use resvg::{tiny_skia::Pixmap, tiny_skia::Transform, usvg::Options, usvg::Tree};

        let Ok(tree) = Tree::from_str(&self.svg(position, last), &Options::default()) else {
            unreachable!("the SVG is made of numbers and of constants");
        };
        let size = tree.size().to_int_size();
        let Some(mut pixmap) = Pixmap::new(size.width(), size.height()) else {
            unreachable!("the board has at most 6 x 8 holes");
        };
        resvg::render(&tree, Transform::identity(), &mut pixmap.as_mut());
        // The background is opaque, so no colour is multiplied by an alpha.
        let pixels = pixmap.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
        (size.height() as usize, size.width() as usize, pixels)
    }

    /// The letters of a player's columns, as drawn from left to right.
    fn letters(&self, player: Player) -> impl Iterator<Item = char> {
        let columns = self.rules().columns() as u8;
        (0..columns).map(move |column| match player {
            Player::South => (b'a' + column).into(),
            Player::North => (b'a' + columns - 1 - column).into(),
        })
    }

    /// Whose turn it is, or who has won.
    fn status(&self, position: &Position) -> String {
        match self.winner(position) {
            Some(winner) => format!("{} has won", name(winner)),
            None if self.rules().binds() => {
                let text = self.notation(position);
                let directions = &text[text.len() - 2..];
                format!("{} to move, directions {directions}", name(position.to_move()))
            }
            None => format!("{} to move", name(position.to_move())),
        }
    }
}

fn name(player: Player) -> &'static str {
    match player {
        Player::South => "South",
        Player::North => "North",
    }
}

fn circle(x: usize, y: usize, radius: usize, attributes: &str) -> String {
    format!(r#"<circle cx="{x}" cy="{y}" r="{radius}" {attributes}/>"#)
}

/// The seeds of one hole: up to four side by side, more like the seeds of a
/// sunflower, the smaller the more they are.
fn heap(x: usize, y: usize, count: u8) -> String {
    let n = f64::from(count);
    // Neighbours in a sunflower of radius 1 are at least 1.5 / sqrt(n) apart.
    let radius = (17.0 / (n.sqrt() + 0.74)).min(6.0);
    let seed = |i: u8| {
        let (distance, turns) = match count {
            1 => (0.0, 0.0),
            2 | 3 => (9.5, (f64::from(i) + 0.75) / n),
            4 => (9.5, (f64::from(i) + 0.5) / n),
            _ => ((23.0 - radius) * ((f64::from(i) + 0.5) / n).sqrt(), 0.381_966 * f64::from(i)),
        };
        let (sin, cos) = (TAU * turns).sin_cos();
        let (x, y) = (x as f64 + distance * cos, y as f64 + distance * sin);
        format!(r#"<circle cx="{x:.2}" cy="{y:.2}" r="{radius:.2}"/>"#)
    };
    (0..count).map(seed).collect()
}

/// A text as the data of a path, its first glyph in the box of 6 x 10 units
/// that has its upper left corner at `x`, `y`.
fn written(text: &str, x: usize, y: usize) -> String {
    (0..).zip(text.chars()).map(|(i, glyph)| format!("M{} {y}{}", x + 9 * i, pen(glyph))).collect()
}

/// The strokes of a glyph: the digits, the letters of the columns, N and S.
fn pen(glyph: char) -> &'static str {
    match glyph {
        '0' => "m0 3q0-3 3-3t3 3v4q0 3-3 3t-3-3z",
        '1' => "m1 2l2-2v10",
        '2' => "m0 3q0-3 3-3t3 3q0 2-6 7h6",
        '3' => "m0 0h6l-3 4q3 0 3 3t-3 3q-2 0-3-1",
        '4' => "m4 10v-10l-4 7h6",
        '5' => "m5.5 0h-5v4.5q1-1 2.5-1 3 0 3 3.2t-3 3.3q-2 0-3-1",
        '6' => "m5 0q-5 2-5 7 0 3 3 3t3-3-3-3-3 3",
        '7' => "m0 0h6l-4 10",
        '8' => "m3 4.6q-2.6 0-2.6-2.3t2.6-2.3 2.6 2.3-2.6 2.3q-3 0-3 2.7t3 2.7 3-2.7-3-2.7",
        '9' => "m1 10q5-2 5-7 0-3-3-3t-3 3 3 3 3-3",
        'a' => "m6 4v6m0-3q0-3-3-3t-3 3 3 3 3-3",
        'b' => "m0 0v10m0-3q0-3 3-3t3 3-3 3-3-3",
        'c' => "m6 5q-1-1-3-1-3 0-3 3t3 3q2 0 3-1",
        'd' => "m6 0v10m0-3q0-3-3-3t-3 3 3 3 3-3",
        'e' => "m0 7h6q0-3-3-3t-3 3 3 3q2 0 3-1",
        'f' => "m6 0h-1q-3 0-3 3v7m-2-6h5",
        'g' => "m6 4v6q0 3-3 3-2 0-3-1m6-5q0-3-3-3t-3 3 3 3 3-3",
        'h' => "m0 0v10m0-3q0-3 3-3t3 3v3",
        'N' => "m0 10v-10l6 10v-10",
        'S' => "m6 1q-1-1-3-1-3 0-3 2.5t3 2.5 3 2.5-3 2.5-3-1",
        _ => "",
    }
}

#[cfg(all(test, feature = "python"))]
mod tests {
    use super::*;
    use crate::rules::Rules;

    /// The pixel at `x`, `y`, written like the colours above.
    fn pixel((height, width, pixels): &(usize, usize, Vec<u8>), x: usize, y: usize) -> String {
        assert_eq!(pixels.len(), 3 * height * width);
        let start = 3 * (y * width + x);
        pixels[start..start + 3].iter().fold("#".to_owned(), |hex, part| format!("{hex}{part:02x}"))
    }

    #[test]
    fn pixels_are_those_of_the_svg() {
        let game = Game::new(Rules::KATRO);
        let laps = game.trace(&game.start(), 2).unwrap();
        let (position, _) = game.play(&game.start(), 2).unwrap();
        let rgb = game.rgb(&position, Some(&laps));
        assert_eq!((rgb.0, rgb.1), (432, 420));
        for (x, y) in [(0, 0), (419, 0), (0, 431), (419, 431), (210, 215)] {
            assert_eq!(pixel(&rgb, x, y), PAPER);
        }
        assert_eq!(pixel(&rgb, 90, 90), WOOD[0]);
        assert_eq!(pixel(&rgb, 90, 341), WOOD[1]);
        assert_eq!(pixel(&rgb, 405, 5), TURN);
        assert_eq!(game.rgb(&position, Some(&laps)), rgb);
    }

    #[test]
    fn a_single_seed_lies_in_the_middle_of_its_hole() {
        let game = Game::new(Rules::new(1, 2, 1).unwrap());
        let rgb = game.rgb(&game.parse("0,1/1,0 S").unwrap(), None);
        for (x, y, fill) in [(60, 60, HOLLOW), (120, 60, SEED), (60, 132, SEED), (120, 132, HOLLOW)]
        {
            assert_eq!(pixel(&rgb, x, y), fill);
        }
    }

    #[test]
    fn every_board_becomes_pixels() {
        for (rows, columns) in (1..=3).flat_map(|rows| (1..=8).map(move |columns| (rows, columns)))
        {
            let game = Game::new(Rules::new(rows, columns, 1).unwrap());
            let mut grid = vec![0; game.rules().holes()];
            grid[0] = 255;
            for position in [game.start(), game.position(&grid, Player::North).unwrap()] {
                let rgb = game.rgb(&position, Some(&[]));
                assert_eq!(pixel(&rgb, rgb.1 - 1, rgb.0 - 1), PAPER);
            }
        }
    }
}
